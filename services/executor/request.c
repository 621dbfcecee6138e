/* Plan function + arguments -> HTTP request. */
#include "services/executor/request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"
#include "common/model/id.h"
#include "services/executor/style.h"

struct build {
	const struct sl_http_call *http;
	jv rest; /* arguments that no parameter took; owned */
	jv args; /* borrowed */
	struct sl_arena *arena;
	struct sl_buf *why;
	struct sl_buf url, query, cookie;
	const char **headers; /* arena */
	int header_count, header_cap;
	const char *content_type;
};

static int fail(struct build *b, const char *fmt, ...) SL_PRINTF(2, 3);
static int fail(struct build *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	sl_buf_vprintf(b->why, fmt, ap);
	va_end(ap);
	return SL_EINVAL;
}

/* RFC 9110 5.1, 5.5: a name is a token; a line break in a value would make a header of its own. */
static int add_header(struct build *b, const char *name, const char *value)
{
	if (!*name)
		return fail(b, "a header without a name");
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("!#$%&'*+-.^_`|~", *c))
			return fail(b, "%s is no name for a header", name);
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < 0x20 && *c != '\t')
			return fail(b, "the value of header %s holds a control character", name);
	if (b->header_count + 1 >= b->header_cap) {
		int cap = b->header_cap ? b->header_cap * 2 : 16;
		const char **bigger = SL_NEWN(b->arena, const char *, cap);
		if (b->header_count)
			memcpy(bigger, b->headers, (size_t)b->header_count * sizeof(*bigger));
		b->headers = bigger;
		b->header_cap = cap;
	}
	/* "Name;" is how curl sends a header without a value */
	b->headers[b->header_count++] =
		*value ? sl_arena_printf(b->arena, "%s: %s", name, value) : sl_arena_printf(b->arena, "%s;", name);
	b->headers[b->header_count] = NULL;
	return 0;
}

static const struct sl_http_param *find_param(const struct sl_http_call *http, enum sl_param_in in, const char *name)
{
	for (int i = 0; i < http->param_count; i++)
		if (http->params[i].in == in && strcmp(http->params[i].name, name) == 0)
			return &http->params[i];
	return NULL;
}

/* The argument, else the schema's default; null is absent. A copy, invalid if there is none. */
static jv argument(struct build *b, const struct sl_http_param *param)
{
	jv value = sl_json_get(b->args, param->name);
	if (jv_get_kind(value) == JV_KIND_NULL) {
		jv_free(value);
		value = jv_invalid();
	}
	return jv_is_valid(value) ? value : jv_copy(param->fallback);
}

static void take_rest(struct build *b, const char *name)
{
	if (jv_get_kind(b->rest) == JV_KIND_OBJECT)
		b->rest = jv_object_delete(b->rest, jv_string(name));
}

/* --- parameters --- */

/* {name} in the URL. In the path a segment of dots, or none at all, would name another resource. */
static int add_path_value(struct build *b, const struct sl_http_param *param, struct sl_buf *out)
{
	jv value = argument(b, param);
	if (!jv_is_valid(value)) {
		jv_free(value);
		return fail(b, "path parameter %s has no argument", param->name);
	}
	size_t before = out->len;
	int err = sl_style_write(out, param, value, b->why);
	jv_free(value);
	const char *text = out->data ? out->data + before : "";
	if (!err && out == &b->url && (!*text || strcmp(text, ".") == 0 || strcmp(text, "..") == 0))
		err = fail(
			b, "path parameter %s is %s, which would change the path", param->name, *text ? text : "empty");
	return err;
}

static int expand(struct build *b, const char *from, size_t len, struct sl_buf *out)
{
	for (size_t i = 0; i < len; i++) {
		const char *end = from[i] == '{' ? memchr(from + i, '}', len - i) : NULL;
		if (!end) {
			sl_buf_addc(out, from[i]);
			continue;
		}
		char *name = sl_arena_strn(b->arena, from + i + 1, (size_t)(end - (from + i + 1)));
		const struct sl_http_param *param = find_param(b->http, SL_IN_PATH, name);
		/* a variable that no parameter declares is an argument all the same */
		struct sl_http_param undeclared = {
			.name = name, .in = SL_IN_PATH, .required = true, .style = "simple", .fallback = jv_invalid()};
		int err = add_path_value(b, param ? param : &undeclared, out);
		if (err)
			return err;
		take_rest(b, name);
		i = (size_t)(end - from);
	}
	return 0;
}

static int add_param(struct build *b, const struct sl_http_param *param)
{
	static const char *const kinds[] = {"path", "query", "header", "cookie", "body"};
	jv value = argument(b, param);
	take_rest(b, param->name);
	if (!jv_is_valid(value)) {
		jv_free(value);
		return param->required
			       ? fail(b, "required %s parameter %s has no argument", kinds[param->in], param->name)
			       : 0;
	}
	struct sl_buf text;
	sl_buf_init(&text);
	int err = sl_style_write(&text, param, value, b->why);
	jv_free(value);
	struct sl_buf *out = param->in == SL_IN_QUERY ? &b->query : &b->cookie;
	if (!err && param->in == SL_IN_HEADER) {
		err = add_header(b, param->name, text.data ? text.data : "");
	} else if (!err && text.len) {
		if (out->len)
			sl_buf_adds(out, param->in == SL_IN_QUERY ? "&" : "; ");
		sl_buf_add(out, text.data, text.len);
	}
	sl_buf_release(&text);
	return err;
}

static int add_params(struct build *b)
{
	for (int i = 0; i < b->http->param_count; i++) {
		const struct sl_http_param *param = &b->http->params[i];
		if (param->in == SL_IN_PATH || param->in == SL_IN_BODY)
			continue;
		int err = add_param(b, param);
		if (err)
			return err;
	}
	return 0;
}

/* Members of an object as exploded form pairs. */
static int add_pairs(struct build *b, struct sl_buf *out, enum sl_param_in in, jv members)
{
	if (jv_get_kind(members) != JV_KIND_OBJECT)
		return 0;
	jv keys = jv_keys(jv_copy(members));
	int n = jv_array_length(jv_copy(keys)), err = 0;
	for (int i = 0; i < n && !err; i++) {
		jv key = jv_array_get(jv_copy(keys), i);
		jv value = jv_object_get(jv_copy(members), jv_copy(key));
		struct sl_http_param param = {.name = jv_string_value(key), .in = in, .explode = true, .style = "form"};
		size_t before = out->len;
		if (jv_get_kind(value) != JV_KIND_NULL) {
			if (before)
				sl_buf_adds(out, in == SL_IN_COOKIE ? "; " : "&");
			size_t at = out->len;
			err = sl_style_write(out, &param, value, b->why);
			if (out->len == at)
				out->data[out->len = before] = '\0'; /* an empty list has no pair */
		}
		jv_free(value);
		jv_free(key);
	}
	jv_free(keys);
	return err;
}

/* 0.9 http functions: `headers` and `cookies` are arguments of their own. */
static int add_reserved(struct build *b)
{
	jv headers = sl_json_get(b->rest, "headers"), cookies = sl_json_get(b->rest, "cookies");
	int err = 0;
	take_rest(b, "headers");
	take_rest(b, "cookies");
	if (jv_get_kind(headers) == JV_KIND_OBJECT) {
		jv_object_foreach(headers, key, value)
		{
			struct sl_buf text;
			sl_buf_init(&text);
			struct sl_http_param param = {
				.name = jv_string_value(key), .in = SL_IN_HEADER, .style = "simple"};
			if (!err)
				err = sl_style_write(&text, &param, value, b->why);
			if (!err)
				err = add_header(b, jv_string_value(key), text.data ? text.data : "");
			sl_buf_release(&text);
			jv_free(key);
			jv_free(value);
		}
	}
	if (!err)
		err = add_pairs(b, &b->cookie, SL_IN_COOKIE, cookies);
	jv_free(headers);
	jv_free(cookies);
	return err;
}

/* --- body --- */

static bool is_json(const char *type)
{
	size_t len = strcspn(type, ";");
	while (len && isspace((unsigned char)type[len - 1]))
		len--;
	return (len == 16 && strncasecmp(type, "application/json", 16) == 0) ||
	       (len > 5 && strncasecmp(type + len - 5, "+json", 5) == 0);
}

/* What the body says: the rest as one object, or `body` alone (model/plan.h). Invalid: no body. */
static int body_value(struct build *b, jv *ret)
{
	const struct sl_http_call *http = b->http;
	if (jv_get_kind(b->rest) != JV_KIND_OBJECT) {
		*ret = jv_copy(b->rest); /* arguments that are no object are the body themselves */
		return 0;
	}
	jv body = jv_copy(b->rest);
	for (int i = 0; i < http->param_count; i++) {
		const struct sl_http_param *param = &http->params[i];
		if (param->in != SL_IN_BODY || jv_object_has(jv_copy(body), jv_string(param->name)))
			continue;
		if (jv_is_valid(param->fallback)) {
			body = sl_json_set(body, param->name, jv_copy(param->fallback));
		} else if (param->required) {
			jv_free(body);
			return fail(b, "required body parameter %s has no argument", param->name);
		}
	}
	int n = jv_object_length(jv_copy(body));
	if (n == 1 && jv_object_has(jv_copy(body), jv_string("body")) && !find_param(http, SL_IN_BODY, "body"))
		body = jv_object_get(body, jv_string("body"));
	else if (n == 0 && !http->body_required) {
		jv_free(body);
		body = jv_invalid();
	}
	*ret = body;
	return 0;
}

static int write_body(struct build *b, jv value, struct sl_http_request *ret)
{
	const char *type = b->http->body_type ? b->http->body_type : "application/json";
	struct sl_buf text;
	sl_buf_init(&text);
	int err = 0;
	if (is_json(type)) {
		sl_json_write(&text, value);
	} else if (strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0) {
		err = jv_get_kind(value) == JV_KIND_OBJECT ? add_pairs(b, &text, SL_IN_QUERY, value)
							   : fail(b, "a form body needs an object of arguments");
	} else if (strncasecmp(type, "multipart/", 10) == 0) {
		err = fail(b, "request bodies of type %s are not supported yet", type);
	} else if (jv_get_kind(value) == JV_KIND_STRING) {
		sl_buf_add(&text, jv_string_value(value), (size_t)jv_string_length_bytes(jv_copy(value)));
	} else {
		sl_json_write(&text, value);
	}
	if (!err) {
		ret->body = (struct sl_bytes){sl_arena_strn(b->arena, text.data ? text.data : "", text.len), text.len};
		b->content_type = type;
	}
	sl_buf_release(&text);
	return err;
}

static int add_body(struct build *b, struct sl_http_request *ret)
{
	if (!b->http->has_body)
		return 0;
	jv value;
	int err = body_value(b, &value);
	if (err)
		return err;
	if (jv_is_valid(value))
		err = write_body(b, value, ret);
	jv_free(value);
	return err;
}

/* --- the whole --- */

static bool has_header(const struct build *b, const char *name)
{
	size_t len = strlen(name);
	for (int i = 0; i < b->header_count; i++)
		if (strncasecmp(b->headers[i], name, len) == 0 &&
			(b->headers[i][len] == ':' || b->headers[i][len] == ';'))
			return true;
	return false;
}

/* W3C Trace Context: same trace, a span of our own for this attempt. */
static const char *child_trace(struct build *b, const struct sl_call_context *ctx)
{
	const char *trace = ctx->traceparent;
	if (!trace || strlen(trace) != 55 || strncmp(trace, "00-", 3) != 0)
		return NULL;
	const char *attempt = sl_arena_printf(b->arena, "%lld", (long long)ctx->attempt);
	const char *parts[] = {"span", trace, ctx->action ? ctx->action : "", attempt};
	char hex[65];
	char *text = sl_arena_printf(b->arena, "%s|%s|%s|%s", parts[0], parts[1], parts[2], parts[3]);
	sl_hash_hex(text, strlen(text), hex);
	return sl_arena_printf(b->arena, "%.36s%.16s%s", trace, hex, trace + 52);
}

static int add_context(struct build *b, const struct sl_call_context *ctx)
{
	char attempt[24];
	snprintf(attempt, sizeof(attempt), "%lld", (long long)ctx->attempt);
	const char *trace = child_trace(b, ctx);
	const char *pairs[][2] = {{"Idempotency-Key", ctx->action},
		{"Sluice-Attempt", ctx->attempt > 0 ? attempt : NULL}, {"Sluice-Instance", ctx->instance},
		{"traceparent", trace}, {"Accept", b->http->accept}, {"Content-Type", b->content_type},
		{"Cookie", b->cookie.len ? b->cookie.data : NULL}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		/* what the function itself says comes first */
		int err = pairs[i][1] && !has_header(b, pairs[i][0]) ? add_header(b, pairs[i][0], pairs[i][1]) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int build(struct build *b, const struct sl_call_context *ctx, struct sl_http_request *ret)
{
	const char *url = b->http->url;
	if (!url)
		return fail(b, "the function's service document was not read, so it cannot be called");
	size_t path_len = strcspn(url, "?#");
	size_t query_len = url[path_len] == '?' ? strcspn(url + path_len + 1, "#") : 0;
	int err = expand(b, url, path_len, &b->url);
	if (err || (err = expand(b, url + path_len + 1, query_len, &b->query)) || (err = add_params(b)))
		return err;
	if (b->http->reserved_args && (err = add_reserved(b)))
		return err;
	if (b->http->rest_query && (err = add_pairs(b, &b->query, SL_IN_QUERY, b->rest)))
		return err;
	if ((err = add_body(b, ret)) || (err = add_context(b, ctx)))
		return err;
	if (b->query.len)
		sl_buf_printf(&b->url, "?%s", b->query.data);
	ret->method = b->http->method;
	ret->url = sl_arena_str(b->arena, b->url.data ? b->url.data : "");
	ret->headers = b->headers;
	return 0;
}

int sl_request_build(const struct sl_http_call *http, jv args, const struct sl_call_context *ctx,
	struct sl_arena *arena, struct sl_http_request *ret, struct sl_buf *why)
{
	struct build b = {.http = http, .args = args, .arena = arena, .why = why};
	b.rest = jv_is_valid(args) && jv_get_kind(args) != JV_KIND_NULL ? jv_copy(args) : jv_object();
	sl_buf_init(&b.url);
	sl_buf_init(&b.query);
	sl_buf_init(&b.cookie);
	struct sl_http_request req = {0};
	int err = build(&b, ctx, &req);
	if (!err)
		*ret = req;
	jv_free(b.rest);
	sl_buf_release(&b.url);
	sl_buf_release(&b.query);
	sl_buf_release(&b.cookie);
	return err;
}

const char *sl_request_host(struct sl_arena *arena, const char *url)
{
	const char *host = strstr(url, "://");
	host = host ? host + 3 : url;
	char *text = sl_arena_strn(arena, host, strcspn(host, "/?#"));
	sl_lower(text);
	return text;
}
