/* Which language a definition is written in (A70), and the names of the languages. */
#include "common/dsl/doc.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
	[SL_DIALECT_AUTO] = "auto",
	[SL_DIALECT_SW08] = "sw08",
	[SL_DIALECT_SW09] = "sw09",
	[SL_DIALECT_DIREKTIV] = "direktiv",
	[SL_DIALECT_CNCF01] = "cncf01",
	[SL_DIALECT_SW10] = "sw10",
};

const char *sl_dialect_text(enum sl_dialect dialect)
{
	return (size_t)dialect < sizeof(names) / sizeof(*names) ? names[dialect] : "unknown";
}

int sl_dialect_of(const char *text, enum sl_dialect *ret)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(names[i], text)) {
			*ret = (enum sl_dialect)i;
			return 0;
		}
	}
	return SL_EINVAL;
}

static bool has(jv obj, const char *name)
{
	return jv_get_kind(obj) == JV_KIND_OBJECT && jv_object_has(jv_copy(obj), jv_string(name));
}

/* Asks every element of list `name` of obj; borrows. */
static bool any(jv obj, const char *name, bool (*test)(jv item))
{
	jv list = sl_json_get(obj, name);
	bool found = false;
	if (jv_get_kind(list) == JV_KIND_ARRAY) {
		jv_array_foreach(list, i, item)
		{
			found = found || test(item);
			jv_free(item);
		}
	}
	jv_free(list);
	return found;
}

static bool upper_case_type(jv state)
{
	const char *type = sl_json_str(state, "type");
	return type && *type && strspn(type, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(type);
}

static bool id_without_name(jv state)
{
	return has(state, "id") && !has(state, "name");
}

static bool action_of_09(jv action)
{
	return has(action, "publish") || has(action, "subscribe");
}

static bool actions_of_09(jv holder)
{
	return any(holder, "actions", action_of_09);
}

static bool state_of_09(jv state)
{
	jv action = sl_json_get(state, "action");
	bool found = action_of_09(action) || actions_of_09(state) || any(state, "branches", actions_of_09) ||
		     any(state, "onEvents", actions_of_09);
	jv_free(action);
	return found;
}

/* specVersion as "0.9" or, unquoted, 0.9. */
static bool spec_09_or_later(jv value)
{
	jv version = sl_json_get(value, "specVersion");
	double n = 0;
	if (jv_get_kind(version) == JV_KIND_NUMBER) {
		n = jv_number_value(version);
	} else if (jv_get_kind(version) == JV_KIND_STRING) {
		const char *text = jv_string_value(version);
		n = strtod(text + (*text == 'v'), NULL);
	}
	jv_free(version);
	return n >= 0.9;
}

enum sl_dialect sl_dialect_detect(jv value)
{
	jv document = sl_json_get(value, "document"), errors = sl_json_get(value, "errors");
	bool dsl = has(document, "dsl"), errors_object = jv_get_kind(errors) == JV_KIND_OBJECT;
	jv_free(document);
	jv_free(errors);
	if (dsl)
		return SL_DIALECT_SW10;
	if (has(value, "trigger-defs") || any(value, "states", upper_case_type))
		return SL_DIALECT_CNCF01;
	if (any(value, "states", id_without_name))
		return SL_DIALECT_DIREKTIV;
	if (spec_09_or_later(value) || errors_object || any(value, "states", state_of_09))
		return SL_DIALECT_SW09;
	return SL_DIALECT_SW08;
}
