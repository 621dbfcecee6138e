/* OpenAPI 3 parameter styles (OpenAPI 3.0.4 "Style Values" and "Style Examples", which follow RFC 6570). */
#include "services/executor/style.h"

#include <string.h>

void sl_style_encode(struct sl_buf *out, const char *text, size_t len, bool reserved)
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	static const char also[] = ":/?[]@!$'()*+,;=";
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c && (strchr(unreserved, c) || (reserved && strchr(also, c))))
			sl_buf_addc(out, c);
		else
			sl_buf_printf(out, "%%%02X", (unsigned char)c);
	}
}

/* One primitive; what is nested deeper than a style can say is written as compact JSON. */
static void add_value(struct sl_buf *out, const struct sl_http_param *param, jv value)
{
	struct sl_buf text;
	sl_buf_init(&text);
	if (jv_get_kind(value) == JV_KIND_STRING)
		sl_buf_add(&text, jv_string_value(value), (size_t)jv_string_length_bytes(jv_copy(value)));
	else
		sl_json_write(&text, value);
	if (param->in == SL_IN_HEADER)
		sl_buf_add(out, text.data ? text.data : "", text.len);
	else
		sl_style_encode(
			out, text.data ? text.data : "", text.len, param->in == SL_IN_QUERY && param->allow_reserved);
	sl_buf_release(&text);
}

static void add_name(struct sl_buf *out, const struct sl_http_param *param, const char *name)
{
	if (param->in == SL_IN_HEADER)
		sl_buf_adds(out, name);
	else
		sl_style_encode(out, name, strlen(name), false);
}

/* A list of elements: arrays give values, objects "key GLUE value". */
struct shape {
	const char *prefix; /* before the first */
	const char *glue;   /* between elements */
	const char *equals; /* between a member's name and its value */
	const char *each;   /* array elements: "NAME=" before each one, NULL: none */
};

static void add_array(struct sl_buf *out, const struct sl_http_param *param, const struct shape *shape, jv value)
{
	int n = jv_array_length(jv_copy(value));
	sl_buf_adds(out, shape->prefix);
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(value), i);
		if (i)
			sl_buf_adds(out, shape->glue);
		if (shape->each) {
			add_name(out, param, shape->each);
			sl_buf_addc(out, '=');
		}
		add_value(out, param, item);
		jv_free(item);
	}
}

static void add_object(struct sl_buf *out, const struct sl_http_param *param, const struct shape *shape, jv value)
{
	jv keys = jv_keys(jv_copy(value));
	int n = jv_array_length(jv_copy(keys));
	sl_buf_adds(out, shape->prefix);
	for (int i = 0; i < n; i++) {
		jv key = jv_array_get(jv_copy(keys), i);
		jv item = jv_object_get(jv_copy(value), jv_copy(key));
		if (i)
			sl_buf_adds(out, shape->glue);
		add_name(out, param, jv_string_value(key));
		sl_buf_adds(out, shape->equals);
		add_value(out, param, item);
		jv_free(item);
		jv_free(key);
	}
	jv_free(keys);
}

static void add_shaped(struct sl_buf *out, const struct sl_http_param *param, const struct shape *shape, jv value)
{
	jv_kind kind = jv_get_kind(value);
	if (kind == JV_KIND_ARRAY) {
		add_array(out, param, shape, value);
	} else if (kind == JV_KIND_OBJECT) {
		add_object(out, param, shape, value);
	} else {
		sl_buf_adds(out, shape->prefix);
		add_value(out, param, value);
	}
}

static void write_path(struct sl_buf *out, const struct sl_http_param *param, jv value)
{
	bool explode = param->explode;
	if (strcmp(param->style, "label") == 0) {
		add_shaped(out, param, &(struct shape){".", explode ? "." : ",", explode ? "=" : ",", NULL}, value);
		return;
	}
	if (strcmp(param->style, "matrix") != 0) {
		add_shaped(out, param, &(struct shape){"", ",", explode ? "=" : ",", NULL}, value);
		return;
	}
	jv_kind kind = jv_get_kind(value);
	if (explode && (kind == JV_KIND_ARRAY || kind == JV_KIND_OBJECT)) {
		add_shaped(
			out, param, &(struct shape){";", ";", "=", kind == JV_KIND_ARRAY ? param->name : NULL}, value);
		return;
	}
	sl_buf_addc(out, ';');
	add_name(out, param, param->name);
	if (kind == JV_KIND_STRING && !*jv_string_value(value))
		return; /* RFC 6570 3.2.7: an empty value has no '=' */
	sl_buf_addc(out, '=');
	add_shaped(out, param, &(struct shape){"", ",", ",", NULL}, value);
}

static void write_deep(struct sl_buf *out, const struct sl_http_param *param, const char *prefix, jv value)
{
	jv keys = jv_keys(jv_copy(value));
	int n = jv_array_length(jv_copy(keys));
	for (int i = 0; i < n; i++) {
		jv key = jv_array_get(jv_copy(keys), i);
		jv item = jv_object_get(jv_copy(value), jv_copy(key));
		struct sl_buf name;
		sl_buf_init(&name);
		sl_buf_printf(&name, "%s[%s]", prefix, jv_string_value(key));
		if (i)
			sl_buf_addc(out, '&');
		if (jv_get_kind(item) == JV_KIND_OBJECT) {
			write_deep(out, param, name.data, item);
		} else if (jv_get_kind(item) == JV_KIND_ARRAY) {
			add_array(out, param, &(struct shape){"", "&", "", name.data}, item);
		} else {
			add_name(out, param, name.data);
			sl_buf_addc(out, '=');
			add_value(out, param, item);
		}
		sl_buf_release(&name);
		jv_free(item);
		jv_free(key);
	}
	jv_free(keys);
}

/* form (default), spaceDelimited, pipeDelimited; cookies know form only. */
static void write_form(struct sl_buf *out, const struct sl_http_param *param, jv value)
{
	jv_kind kind = jv_get_kind(value);
	const char *joiner = param->in == SL_IN_COOKIE ? "; " : "&";
	if (param->explode && kind == JV_KIND_ARRAY) {
		add_array(out, param, &(struct shape){"", joiner, "", param->name}, value);
		return;
	}
	if (param->explode && kind == JV_KIND_OBJECT) {
		add_object(out, param, &(struct shape){"", joiner, "=", NULL}, value);
		return;
	}
	const char *glue = strcmp(param->style, "spaceDelimited") == 0	? "%20"
			   : strcmp(param->style, "pipeDelimited") == 0 ? "%7C"
									: ",";
	add_name(out, param, param->name);
	sl_buf_addc(out, '=');
	add_shaped(out, param, &(struct shape){"", glue, glue, NULL}, value);
}

int sl_style_write(struct sl_buf *out, const struct sl_http_param *param, jv value, struct sl_buf *why)
{
	if (param->in == SL_IN_PATH || param->in == SL_IN_HEADER) {
		write_path(out, param, value);
		return 0;
	}
	if (strcmp(param->style, "deepObject") != 0) {
		write_form(out, param, value);
		return 0;
	}
	if (jv_get_kind(value) != JV_KIND_OBJECT) {
		sl_buf_printf(why, "parameter %s has style deepObject, its argument must be an object", param->name);
		return SL_EINVAL;
	}
	write_deep(out, param, param->name, value);
	return 0;
}
