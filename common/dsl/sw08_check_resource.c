/* Sections that stand in files of their own (`functions: "file://x.json"`): fetched through the caller, inlined into
 * the definition, mounted into its document, so that everything after sees one definition and every finding its own
 * file. */
#include "common/dsl/sw08_check.h"
#include <stdlib.h>
#include <string.h>

enum section_form { SECTION_LIST, SECTION_OBJECT, SECTION_SCHEMA };
static const struct section {
	const char *name;
	enum section_form form;
	int kind; /* enum sl_sw08_kind, -1: no names */
} sections[] = {
	{"functions", SECTION_LIST, SL_SW08_FUNCTION},
	{"events", SECTION_LIST, SL_SW08_EVENT},
	{"retries", SECTION_LIST, SL_SW08_RETRY},
	{"errors", SECTION_LIST, SL_SW08_ERROR},
	{"auth", SECTION_LIST, SL_SW08_AUTH},
	{"secrets", SECTION_LIST, -1},
	{"extensions", SECTION_LIST, -1},
	{"timeouts", SECTION_OBJECT, -1},
	{"constants", SECTION_OBJECT, -1},
	{"dataInputSchema", SECTION_SCHEMA, -1},
	{"dataOutputSchema", SECTION_SCHEMA, -1},
};

/* A120: without the resource its references are left for deployment. */
static void defer(struct sl_sw08_context *c, const struct section *s, const char *ptr, const char *uri, const char *why)
{
	if (s->kind >= 0)
		c->names[s->kind].deferred = true;
	c->deferred = true;
	if (!why)
		return;
	sl_sw08_warn(c, ptr, false, "A120", "%s not loaded from %s: %s", s->name, uri, why);
	sl_diag_hint(c->diags, "what refers to it is checked when it is deployed");
}

/* The bytes; NULL when there are none, which was said if need be. */
static char *fetch(
	struct sl_sw08_context *c, const struct section *s, const char *ptr, const char *uri, size_t *ret_len)
{
	char *text = NULL;
	const struct sl_resources *resources = c->opt->resources;
	if (!resources) {
		defer(c, s, ptr, uri, "resources are not read here");
		return NULL;
	}
	struct sl_diags said;
	sl_diags_init(&said);
	int err = resources->get(resources->arg, uri, &text, ret_len, &said);
	const char *why = *sl_diags_first(&said) ? sl_diags_first(&said) : sl_err_text(err);
	if (err == SL_EAGAIN) {
		c->wanted = true;
		defer(c, s, ptr, uri, NULL);
	} else if (err && c->opt->deploy) {
		sl_sw08_error(c, ptr, false, "A120", "%s cannot be loaded from %s: %s", s->name, uri, why);
		defer(c, s, ptr, uri, NULL);
	} else if (err) {
		defer(c, s, ptr, uri, why);
	}
	sl_diags_release(&said);
	return err ? NULL : text;
}

/* The section inside a resource: {"functions": [...]}, or the bare list; constants are an object of anything, so only
 * a lone member `constants` is a wrapper. *ret_inner is its pointer in the resource. */
static jv unwrap(const struct section *s, jv value, const char **ret_inner)
{
	*ret_inner = "";
	jv inside = sl_json_get(value, s->name);
	bool lone = jv_get_kind(value) == JV_KIND_OBJECT && jv_object_length(jv_copy(value)) == 1;
	if (jv_is_valid(inside) && s->form != SECTION_SCHEMA && (lone || strcmp(s->name, "constants"))) {
		*ret_inner = NULL;
		jv_free(value);
		return inside;
	}
	jv_free(inside);
	return value;
}

static void inline_section(struct sl_sw08_context *c, const struct section *s, const char *ptr, const char *uri)
{
	size_t len = 0;
	char *text = fetch(c, s, ptr, uri, &len);
	struct sl_doc *sub = NULL;
	if (!text)
		return;
	int err = sl_doc_parse(text, len, uri, &sub, c->diags);
	free(text);
	if (err) {
		defer(c, s, ptr, uri, NULL);
		return;
	}
	const char *inner;
	jv value = unwrap(s, sl_doc_value(sub), &inner);
	if (!inner)
		inner = sl_arena_printf(&c->arena, "/%s", s->name);
	jv_kind kind = jv_get_kind(value);
	if (s->form == SECTION_SCHEMA || kind == (s->form == SECTION_LIST ? JV_KIND_ARRAY : JV_KIND_OBJECT)) {
		sl_doc_mount(c->doc, ptr, sub, inner);
		const char *slash = strchr(ptr + 1, '/');
		if (slash) { /* /dataInputSchema/schema */
			jv holder = sl_json_get(c->def, s->name);
			c->def = sl_json_set(c->def, s->name, sl_json_set(holder, slash + 1, value));
		} else {
			c->def = sl_json_set(c->def, s->name, value);
		}
		return;
	}
	struct sl_loc loc = sl_doc_loc(sub, inner, false);
	sl_diag_error(c->diags, SL_ESCHEMA, loc, inner, "this resource must hold %s of %s",
		s->form == SECTION_LIST ? "a list" : "an object", s->name);
	sl_diag_hint(c->diags, "it is named at %d:%d of the definition", sl_doc_loc(c->doc, ptr, false).line,
		sl_doc_loc(c->doc, ptr, false).col);
	defer(c, s, ptr, uri, NULL);
	jv_free(value);
	sl_doc_free(sub);
}

void sl_sw08_resolve(struct sl_sw08_context *c)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		const struct section *s = &sections[i];
		jv value = sl_json_get(c->def, s->name);
		if (s->form == SECTION_SCHEMA && jv_get_kind(value) == JV_KIND_STRING) {
			/* the short form: "the string value is the external schema URI" */
			value = sl_json_set(jv_object(), "schema", value);
			c->def = sl_json_set(c->def, s->name, jv_copy(value));
		}
		jv schema = s->form == SECTION_SCHEMA ? sl_json_get(value, "schema") : jv_invalid();
		const char *ptr = sl_arena_printf(&c->arena, "/%s", s->name);
		if (jv_get_kind(schema) == JV_KIND_STRING && *jv_string_value(schema))
			inline_section(c, s, sl_arena_printf(&c->arena, "%s/schema", ptr), jv_string_value(schema));
		else if (jv_get_kind(value) == JV_KIND_STRING && *jv_string_value(value) && s->form != SECTION_SCHEMA)
			inline_section(c, s, ptr, jv_string_value(value));
		jv_free(schema);
		jv_free(value);
	}
}
