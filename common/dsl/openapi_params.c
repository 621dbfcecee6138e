/* OpenAPI documents: parameters and server URLs of an operation. */
#include "common/dsl/openapi.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"

/* --- parameters ("Parameter Object") --- */
static int read_in(const char *text, enum sl_param_in *ret)
{
	static const char *const names[] = {"path", "query", "header", "cookie"};
	for (int i = 0; text && i < 4; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum sl_param_in)i;
			return 0;
		}
	}
	return SL_ESCHEMA;
}

static bool style_fits(enum sl_param_in in, const char *style)
{
	static const char *const fits[] = {
		[SL_IN_PATH] = " simple label matrix ",
		[SL_IN_QUERY] = " form spaceDelimited pipeDelimited deepObject ",
		[SL_IN_HEADER] = " simple ",
		[SL_IN_COOKIE] = " form ",
	};
	char word[40];
	int n = snprintf(word, sizeof(word), " %s ", style);
	return n < (int)sizeof(word) && strstr(fits[in], word);
}

static int read_schema(const struct sl_openapi *api, jv param, struct sl_http_param *p, struct sl_buf *err)
{
	if (jv_object_has(jv_copy(param), jv_string("content")))
		return sl_openapi_fail(api, SL_EUNSUPPORTED, err,
			"parameter '%s' is described by 'content'; only 'schema' is supported", p->name);
	jv schema;
	int rc = sl_openapi_deref(api, sl_json_get(param, "schema"), &schema, err);
	if (rc < 0)
		return rc;
	p->fallback = sl_json_get(schema, "default");
	jv_free(schema);
	return 0;
}

/* Borrows param. */
static int read_param(
	const struct sl_openapi *api, jv param, struct sl_arena *arena, struct sl_http_param *ret, struct sl_buf *err)
{
	const char *name = sl_json_str(param, "name"), *in = sl_json_str(param, "in");
	if (!name || !*name)
		return sl_openapi_fail(api, SL_ESCHEMA, err, "a parameter has no name");
	struct sl_http_param p = {.name = sl_arena_str(arena, name), .fallback = jv_invalid()};
	if (read_in(in, &p.in) < 0)
		return sl_openapi_fail(api, SL_ESCHEMA, err,
			"parameter '%s' is in '%s'; path, query, header and cookie exist", name, in ? in : "");
	p.required = sl_json_bool(param, "required", false);
	if (p.in == SL_IN_PATH && !p.required)
		return sl_openapi_fail(api, SL_ESCHEMA, err, "path parameter '%s' lacks 'required: true'", name);
	const char *style = sl_json_str(param, "style");
	if (!style)
		style = p.in == SL_IN_QUERY || p.in == SL_IN_COOKIE ? "form" : "simple";
	if (!style_fits(p.in, style))
		return sl_openapi_fail(
			api, SL_ESCHEMA, err, "parameter '%s' in %s cannot have style '%s'", name, in, style);
	p.style = sl_arena_str(arena, style);
	p.explode = sl_json_bool(param, "explode", strcmp(style, "form") == 0);
	p.allow_reserved = sl_json_bool(param, "allowReserved", false);
	int rc = read_schema(api, param, &p, err);
	if (rc == 0)
		*ret = p;
	return rc;
}

/* "If in is header and the name is Accept, Content-Type or Authorization, the parameter definition shall be ignored."
 */
static bool is_ignored(const struct sl_http_param *p)
{
	return p->in == SL_IN_HEADER &&
	       (strcasecmp(p->name, "accept") == 0 || strcasecmp(p->name, "content-type") == 0 ||
		       strcasecmp(p->name, "authorization") == 0);
}

/* Adds one, in place of what the path item said of the same name and place. */
static void put_param(struct sl_http_call *call, struct sl_http_param p)
{
	int at = 0;
	while (at < call->param_count && (call->params[at].in != p.in || strcmp(call->params[at].name, p.name) != 0))
		at++;
	if (at == call->param_count)
		call->param_count++;
	else
		jv_free(call->params[at].fallback);
	call->params[at] = p;
}

static int add_params(
	const struct sl_openapi *api, jv list, struct sl_arena *arena, struct sl_http_call *call, struct sl_buf *err)
{
	int rc = 0, count = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;
	if (jv_is_valid(list) && jv_get_kind(list) != JV_KIND_ARRAY)
		rc = sl_openapi_fail(api, SL_ESCHEMA, err, "'parameters' is not a list");
	for (int i = 0; i < count && rc == 0; i++) {
		jv param;
		struct sl_http_param p = {0};
		rc = sl_openapi_deref(api, jv_array_get(jv_copy(list), i), &param, err);
		if (rc < 0)
			break;
		rc = read_param(api, param, arena, &p, err);
		jv_free(param);
		if (rc < 0)
			break;
		sl_assert(p.name);
		if (is_ignored(&p))
			jv_free(p.fallback);
		else
			put_param(call, p);
	}
	jv_free(list);
	return rc;
}

/* Every {name} of the path needs its parameter, else the call could never be made. */
static int check_path(
	const struct sl_openapi *api, const char *path, const struct sl_http_call *call, struct sl_buf *err)
{
	for (const char *open = strchr(path, '{'); open; open = strchr(open + 1, '{')) {
		const char *close = strchr(open, '}');
		if (!close)
			return sl_openapi_fail(api, SL_ESCHEMA, err, "path '%s' has an unclosed brace", path);
		size_t len = (size_t)(close - open - 1);
		bool known = false;
		for (int i = 0; i < call->param_count; i++) {
			const struct sl_http_param *p = &call->params[i];
			known = known ||
				(p->in == SL_IN_PATH && strlen(p->name) == len && memcmp(p->name, open + 1, len) == 0);
		}
		if (!known)
			return sl_openapi_fail(api, SL_ESCHEMA, err, "path '%s' has no path parameter '%.*s'", path,
				(int)len, open + 1);
	}
	return 0;
}

int sl_openapi_params(const struct sl_openapi *api, jv item, jv op, const char *path, struct sl_arena *arena,
	struct sl_http_call *call, struct sl_buf *err)
{
	jv shared = sl_json_get(item, "parameters"), own = sl_json_get(op, "parameters");
	int most = (jv_get_kind(shared) == JV_KIND_ARRAY ? jv_array_length(jv_copy(shared)) : 0) +
		   (jv_get_kind(own) == JV_KIND_ARRAY ? jv_array_length(jv_copy(own)) : 0);
	call->params = SL_NEWN(arena, struct sl_http_param, most + 1);
	int rc = add_params(api, shared, arena, call, err);
	if (rc < 0)
		jv_free(own);
	else
		rc = add_params(api, own, arena, call, err);
	return rc < 0 ? rc : check_path(api, path, call, err);
}

/* --- servers ("Server Object") --- */
static bool is_http(const char *uri)
{
	return strncasecmp(uri, "http://", 7) == 0 || strncasecmp(uri, "https://", 8) == 0;
}

/* Server variables take their defaults. */
static int substitute(
	const struct sl_openapi *api, const char *url, jv variables, struct sl_buf *out, struct sl_buf *err)
{
	sl_buf_adds(out, "");
	while (*url) {
		const char *close = *url == '{' ? strchr(url, '}') : NULL;
		if (!close) {
			sl_buf_addc(out, *url++);
			continue;
		}
		char name[100];
		snprintf(name, sizeof(name), "%.*s", (int)(close - url - 1), url + 1);
		jv variable = sl_json_get(variables, name);
		jv value = sl_json_get(variable, "default");
		bool ok = sl_json_canonical(value, out);
		jv_free(value);
		jv_free(variable);
		if (!ok)
			return sl_openapi_fail(api, SL_ESCHEMA, err, "server variable '%s' has no default", name);
		url = close + 1;
	}
	return 0;
}

/* RFC 3986 section 5.2.4 on the path that begins at `path` within buf. */
static void remove_dots(struct sl_buf *buf, size_t path)
{
	char *copy = strdup(buf->data + path);
	buf->len = path;
	buf->data[path] = 0;
	for (const char *seg = copy; seg && *seg;) {
		const char *next = strchr(seg + 1, '/');
		size_t len = next ? (size_t)(next - seg) : strlen(seg);
		bool dot = len == 2 && memcmp(seg, "/.", 2) == 0, up = len == 3 && memcmp(seg, "/..", 3) == 0;
		if (up) {
			while (buf->len > path && buf->data[--buf->len] != '/')
				;
			buf->data[buf->len] = 0;
		}
		if (!dot && !up)
			sl_buf_add(buf, seg, len);
		else if (!next)
			sl_buf_addc(buf, '/');
		seg = next;
	}
	free(copy);
}

/* "This URL ... MAY be relative, to indicate that the host location is relative to the location where the document is."
 */
static int resolve(const struct sl_openapi *api, const char *url, struct sl_buf *out, struct sl_buf *err)
{
	sl_buf_adds(out, "");
	if (is_http(url)) {
		sl_buf_adds(out, url);
		return 0;
	}
	if (strstr(url, "://"))
		return sl_openapi_fail(api, SL_EUNSUPPORTED, err, "server URL '%s' is neither http nor https", url);
	if (!is_http(api->uri))
		return sl_openapi_fail(api, SL_ESCHEMA, err,
			"server URL '%s' is relative, but the document's own address is not http(s); "
			"give 'servers' an absolute URL",
			url);
	const char *host = strstr(api->uri, "://") + 3;
	size_t host_len = strcspn(host, "/?#");
	if (strncmp(url, "//", 2) == 0) {
		sl_buf_add(out, api->uri, (size_t)(host - api->uri) - 2);
		sl_buf_adds(out, url);
		return 0;
	}
	sl_buf_add(out, api->uri, (size_t)(host - api->uri) + host_len);
	size_t path = out->len;
	if (url[0] != '/') {
		const char *dir = host + host_len;
		size_t len = strcspn(dir, "?#");
		while (len && dir[len - 1] != '/')
			len--;
		sl_buf_add(out, len ? dir : "/", len ? len : 1);
	}
	sl_buf_adds(out, url);
	remove_dots(out, path);
	return 0;
}

int sl_openapi_server(const struct sl_openapi *api, jv servers, struct sl_buf *ret, struct sl_buf *err)
{
	jv first = jv_get_kind(servers) == JV_KIND_ARRAY && jv_array_length(jv_copy(servers)) > 0
			   ? jv_array_get(jv_copy(servers), 0)
			   : jv_invalid();
	const char *url = sl_json_str(first, "url");
	if (jv_is_valid(first) && !url) {
		jv_free(first);
		return sl_openapi_fail(api, SL_ESCHEMA, err, "the first server has no 'url'");
	}
	jv variables = sl_json_get(first, "variables");
	struct sl_buf text;
	sl_buf_init(&text);
	int rc = substitute(api, url ? url : "/", variables, &text, err);
	if (rc == 0)
		rc = resolve(api, text.data, ret, err);
	/* "the path is appended (no relative URL resolution) to the expanded URL" */
	while (rc == 0 && ret->len && ret->data[ret->len - 1] == '/')
		ret->data[--ret->len] = 0;
	sl_buf_release(&text);
	jv_free(variables);
	jv_free(first);
	return rc;
}
