/* Applies the tables: types, required and unknown members, formats; and how findings are worded. */
#include "common/base/text.h"
#include "common/dsl/sw08_check.h"
#include "common/expr/expr.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- wording --- */

static void say(
	struct sl_sw08_context *c, bool error, const char *ptr, bool key, const char *rule, const char *fmt, va_list ap)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_buf_vprintf(&text, fmt, ap);
	struct sl_loc loc = sl_doc_loc(c->doc, ptr, key);
	if (error)
		sl_diag_error(c->diags, SL_ESCHEMA, loc, ptr, "%s", text.data);
	else
		sl_diag_warn(c->diags, loc, ptr, "%s", text.data);
	sl_diag_rule(c->diags, rule);
	sl_buf_release(&text);
}

void sl_sw08_error(struct sl_sw08_context *c, const char *ptr, bool key, const char *rule, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(c, true, ptr, key, rule, fmt, ap);
	va_end(ap);
}

void sl_sw08_warn(struct sl_sw08_context *c, const char *ptr, bool key, const char *rule, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(c, false, ptr, key, rule, fmt, ap);
	va_end(ap);
}

void sl_sw08_forgive(struct sl_sw08_context *c, const char *ptr, bool key, const char *rule, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(c, !c->opt->lenient, ptr, key, rule, fmt, ap);
	va_end(ap);
}

void sl_sw08_later(struct sl_sw08_context *c, const char *ptr, const char *what)
{
	struct sl_loc loc = sl_doc_loc(c->doc, ptr, true);
	c->unsupported = true;
	if (c->opt->deploy) {
		sl_diag_error(
			c->diags, SL_EUNSUPPORTED, loc, ptr, "not supported yet: %s (%d:%d)", what, loc.line, loc.col);
		c->unsupported_count++;
	} else {
		sl_diag_warn(c->diags, loc, ptr, "not supported yet: %s (%d:%d)", what, loc.line, loc.col);
		sl_diag_hint(c->diags, "valid 0.8, but deploy refuses it");
	}
}

const char *sl_sw08_ptr(struct sl_sw08_context *c, const char *ptr, const char *name)
{
	struct sl_buf out;
	sl_buf_init(&out);
	sl_buf_printf(&out, "%s/", ptr);
	for (; *name; name++) {
		if (*name == '~' || *name == '/')
			sl_buf_adds(&out, *name == '~' ? "~0" : "~1");
		else
			sl_buf_addc(&out, *name);
	}
	const char *text = sl_arena_str(&c->arena, out.data);
	sl_buf_release(&out);
	return text;
}

const char *sl_sw08_item(struct sl_sw08_context *c, const char *ptr, int index)
{
	return sl_arena_printf(&c->arena, "%s/%d", ptr, index);
}

bool sl_sw08_has(jv obj, const char *name)
{
	return jv_get_kind(obj) == JV_KIND_OBJECT && jv_object_has(jv_copy(obj), jv_string(name));
}

/* --- did you mean --- */

#define WORD_MAX 40

/* Edit distance with swapped neighbours as one edit; case does not count. */
static int distance(const char *a, const char *b)
{
	int n = (int)strlen(a), m = (int)strlen(b);
	int d[WORD_MAX + 1][WORD_MAX + 1];
	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (int i = 0; i <= n; i++)
		d[i][0] = i;
	for (int j = 0; j <= m; j++)
		d[0][j] = j;
	for (int i = 1; i <= n; i++) {
		for (int j = 1; j <= m; j++) {
			bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
			int best = d[i - 1][j - 1] + !same;
			best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
			best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[n][m];
}

static void nearer(const char *word, const char *candidate, const char **best, int *best_distance)
{
	int d = distance(word, candidate), allowed = (int)strlen(word) / 3;
	if (d <= (allowed < 1 ? 1 : allowed) && d < *best_distance) {
		*best = candidate;
		*best_distance = d;
	}
}

const char *sl_sw08_nearest(const char *word, const char *const *words)
{
	const char *best = NULL;
	int d = WORD_MAX;
	for (; *words; words++)
		nearer(word, *words, &best, &d);
	return best;
}

static const char *nearest_prop(const char *word, const struct sl_sw08_prop *props)
{
	const char *best = NULL;
	int d = WORD_MAX;
	for (; props->name; props++)
		if (props->types)
			nearer(word, props->name, &best, &d);
	return best;
}

/* --- types and formats --- */

static const char *kind_text(jv value)
{
	switch (jv_get_kind(value)) {
	case JV_KIND_NULL:
		return "null";
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
		return "a boolean";
	case JV_KIND_NUMBER:
		return "a number";
	case JV_KIND_STRING:
		return "a string";
	case JV_KIND_ARRAY:
		return "a list";
	default:
		return "an object";
	}
}

static unsigned type_of(jv value)
{
	switch (jv_get_kind(value)) {
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
		return SL_T_BOOL;
	case JV_KIND_NUMBER:
		return SL_T_NUMBER;
	case JV_KIND_STRING:
		return SL_T_TEXT;
	case JV_KIND_ARRAY:
		return SL_T_LIST | SL_T_TEXTS;
	case JV_KIND_OBJECT:
		return SL_T_OBJECT;
	default:
		return 0;
	}
}

static void wrong_type(
	struct sl_sw08_context *c, const struct sl_sw08_prop *prop, jv value, const char *ptr, const char *section)
{
	static const struct {
		unsigned type;
		const char *text;
	} texts[] = {{SL_T_TEXT, "a string"}, {SL_T_NUMBER, "a number"}, {SL_T_BOOL, "true or false"},
		{SL_T_OBJECT, "an object"}, {SL_T_LIST, "a list"}, {SL_T_TEXTS, "a list of strings"}};
	struct sl_buf wanted;
	sl_buf_init(&wanted);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (prop->types & texts[i].type)
			sl_buf_printf(&wanted, "%s%s", wanted.len ? " or " : "", texts[i].text);
	sl_sw08_error(c, ptr, false, section, "\"%s\" must be %s, not %s", prop->name, wanted.data, kind_text(value));
	sl_buf_release(&wanted);
	jv_kind kind = jv_get_kind(value);
	const char *text = kind == JV_KIND_STRING ? jv_string_value(value) : "";
	if ((prop->types & SL_T_BOOL) && (!strcmp(text, "true") || !strcmp(text, "false"))) {
		sl_diag_hint(c->diags, "write %s without quotes", text);
		sl_diag_rule(c->diags, "A115");
	} else if ((prop->types & SL_T_TEXT) &&
		   (kind == JV_KIND_NUMBER || kind == JV_KIND_TRUE || kind == JV_KIND_FALSE)) {
		char *json = sl_json_text(value);
		sl_diag_hint(c->diags, "write \"%s\" in quotes", json);
		free(json);
	}
}

static void check_duration(struct sl_sw08_context *c, enum sl_sw08_format format, const char *text, const char *ptr)
{
	int64_t ms;
	if (format != SL_F_FIXED && sl_expr_is_template(text))
		return; /* A64: judged when it is known */
	int err = sl_duration_parse(text, &ms);
	if (err == SL_ETOOBIG) {
		sl_sw08_error(c, ptr, false, "A104", "duration \"%s\" is longer than any clock runs", text);
	} else if (err) {
		sl_sw08_error(c, ptr, false, "A104", "\"%s\" is not an ISO 8601 duration", text);
		const char *time = strchr(text, 'T');
		if (*text == 'P' && time && strpbrk(time, "DWY"))
			sl_diag_hint(c->diags, "years, months, weeks and days stand before the T: \"P30D\"");
		else
			sl_diag_hint(c->diags, "like \"PT15M\" or \"P2DT3H4M\"");
	} else if (format == SL_F_POSITIVE && !ms) {
		sl_sw08_error(c, ptr, false, "0.8 States Timeout Definition", "the timeout must be greater than zero");
	}
}

/* A125: a number, or its digits in a string. */
static void check_count(struct sl_sw08_context *c, const struct sl_sw08_prop *prop, jv value, const char *ptr)
{
	int64_t n = 0;
	bool good;
	if (jv_get_kind(value) == JV_KIND_NUMBER) {
		double d = jv_number_value(value);
		good = d == floor(d) && fabs(d) <= 1e9;
		n = good ? (int64_t)d : 0;
	} else {
		good = sl_int_parse(jv_string_value(value), &n) == 0 && n <= 1000000000;
	}
	if (good && n >= prop->min)
		return;
	char *json = sl_json_text(value);
	sl_sw08_error(c, ptr, false, prop->ruling, "\"%s\" must be a whole number of at least %d, not %s", prop->name,
		prop->min, json);
	free(json);
}

static void check_word(struct sl_sw08_context *c, const struct sl_sw08_prop *prop, const char *text, const char *ptr,
	const char *section)
{
	struct sl_buf all;
	sl_buf_init(&all);
	bool found = false;
	for (const char *const *w = prop->words; *w; w++) {
		sl_buf_printf(&all, "%s%s", all.len ? ", " : "", *w);
		found = found || !strcmp(*w, text);
	}
	if (!found) {
		const char *near = sl_sw08_nearest(text, prop->words);
		sl_sw08_error(
			c, ptr, false, section, "\"%s\" must be one of %s, not \"%s\"", prop->name, all.data, text);
		if (near)
			sl_diag_hint(c->diags, "did you mean \"%s\"?", near);
	}
	sl_buf_release(&all);
}

static bool check_texts(
	struct sl_sw08_context *c, const struct sl_sw08_prop *prop, jv list, const char *ptr, const char *section)
{
	bool good = true;
	jv_array_foreach(list, i, item)
	{
		bool text = jv_get_kind(item) == JV_KIND_STRING && *jv_string_value(item);
		if (!text)
			sl_sw08_error(c, sl_sw08_item(c, ptr, i), false, section,
				"each element of \"%s\" must be a non-empty string", prop->name);
		good = good && text;
		jv_free(item);
	}
	return good;
}

static void check_list(struct sl_sw08_context *c, const struct sl_sw08_prop *prop, jv list, const char *ptr)
{
	jv_array_foreach(list, i, item)
	{
		const char *at = sl_sw08_item(c, ptr, i);
		if (jv_get_kind(item) == JV_KIND_OBJECT)
			sl_sw08_object(c, item, at, prop->shape);
		else
			sl_sw08_error(c, at, false, prop->shape->section,
				"each element of \"%s\" must be an object, not %s", prop->name, kind_text(item));
		jv_free(item);
	}
}

/* Is there anything in it? `false` and empty lists ask for nothing that we lack. */
static bool asks(jv value)
{
	switch (jv_get_kind(value)) {
	case JV_KIND_FALSE:
		return false;
	case JV_KIND_ARRAY:
		return jv_array_length(jv_copy(value)) > 0;
	default:
		return true;
	}
}

/* One member. True if a rule may look at it. */
static bool check_value(
	struct sl_sw08_context *c, const struct sl_sw08_prop *prop, jv value, const char *ptr, const char *section)
{
	unsigned type = type_of(value) & prop->types;
	if (!type) {
		wrong_type(c, prop, value, ptr, section);
		return false;
	}
	const char *text = type == SL_T_TEXT ? jv_string_value(value) : NULL;
	if (text && !*text && !prop->may_be_empty) {
		sl_sw08_error(c, ptr, false, section, "\"%s\" must not be empty", prop->name);
		return false;
	}
	if (prop->later && asks(value))
		sl_sw08_later(c, ptr, prop->later);
	if (prop->format == SL_F_COUNT)
		check_count(c, prop, value, ptr);
	else if (prop->format == SL_F_WORD && text)
		check_word(c, prop, text, ptr, section);
	else if (prop->format != SL_F_NONE && text)
		check_duration(c, prop->format, text, ptr);
	if (type & SL_T_TEXTS && prop->types & SL_T_TEXTS)
		return check_texts(c, prop, value, ptr, section);
	if (type == SL_T_OBJECT && prop->shape)
		sl_sw08_object(c, value, ptr, prop->shape);
	else if (type == SL_T_LIST && prop->shape)
		check_list(c, prop, value, ptr);
	return true;
}

static const struct sl_sw08_prop *prop_named(const struct sl_sw08_shape *shape, const char *name)
{
	for (const struct sl_sw08_prop *p = shape->props; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

/* "state "A"": people look for names, not for pointers. */
static const char *who(struct sl_sw08_context *c, jv obj, const struct sl_sw08_shape *shape)
{
	const char *name = sl_json_str(obj, "name");
	return name && *name && !shape->open ? sl_arena_printf(&c->arena, "%s \"%s\"", shape->what, name) : shape->what;
}

static void unknown_member(
	struct sl_sw08_context *c, jv obj, const char *name, const char *ptr, const struct sl_sw08_shape *shape)
{
	const char *near = nearest_prop(name, shape->props), *at = sl_sw08_ptr(c, ptr, name);
	if (!shape->open) {
		sl_sw08_forgive(c, at, true, "A123", "%s: unknown property \"%s\"", who(c, obj, shape), name);
	} else if (near && !sl_sw08_has(obj, near)) { /* 0.8 Additional Properties: allowed, but a slip is likely */
		sl_sw08_warn(
			c, at, true, "0.8 Additional Properties", "additional property \"%s\" has no effect", name);
	} else {
		return;
	}
	if (near)
		sl_diag_hint(c->diags, "did you mean \"%s\"?", near);
}

void sl_sw08_object(struct sl_sw08_context *c, jv obj, const char *ptr, const struct sl_sw08_shape *shape)
{
	jv_object_foreach(obj, key, value)
	{
		const char *name = jv_string_value(key);
		const struct sl_sw08_prop *prop = prop_named(shape, name);
		if (!prop)
			unknown_member(c, obj, name, ptr, shape);
		else if (!prop->types)
			sl_sw08_error(c, sl_sw08_ptr(c, ptr, name), true, prop->ruling, "%s", prop->note);
		jv_free(key);
		jv_free(value);
	}
	for (const struct sl_sw08_prop *p = shape->props; p->name; p++) {
		if (!p->types)
			continue;
		jv value = sl_json_get(obj, p->name);
		const char *at = sl_sw08_ptr(c, ptr, p->name);
		if (!jv_is_valid(value)) {
			if (p->required)
				sl_sw08_error(c, ptr, false, p->ruling ? p->ruling : shape->section,
					"%s: \"%s\" is missing", who(c, obj, shape), p->name);
		} else if (check_value(c, p, value, at, shape->section) && p->rule) {
			p->rule(c, obj, value, at);
		}
		jv_free(value);
	}
	if (shape->rule)
		shape->rule(c, obj, ptr);
}

void sl_sw08_either(struct sl_sw08_context *c, jv obj, const char *ptr, const char *what, const char *a, const char *b,
	bool needed, const char *rule)
{
	bool has_a = sl_sw08_has(obj, a), has_b = sl_sw08_has(obj, b);
	const char *name = sl_json_str(obj, "name");
	const char *subject = name && *name && *ptr ? sl_arena_printf(&c->arena, "%s \"%s\"", what, name) : what;
	if (has_a && has_b)
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, b), true, rule, "%s: \"%s\" and \"%s\" exclude each other",
			subject, a, b);
	else if (!has_a && !has_b && needed)
		sl_sw08_error(c, ptr, false, rule, "%s needs \"%s\" or \"%s\"", subject, a, b);
}
