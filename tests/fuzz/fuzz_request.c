/* Requests: a line with method, URL template and marks of the call, a line for each parameter, an empty line, then the arguments as
 * JSON. Whatever the arguments are, they stay in their place: same scheme and authority, no segment of dots, no header of their own. */
#include "services/executor/request.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES (32u << 10)
#define PARAMS_MAX 8

/* "query form ern NAME": place, style, marks (explode, reserved, needed) and name */
static bool read_param(char *line, struct sl_http_param *ret)
{
	static const char *const places[] = {"path", "query", "header", "cookie", "body"};
	char *at = NULL, *place = strtok_r(line, " ", &at), *style = strtok_r(NULL, " ", &at), *marks = strtok_r(NULL, " ", &at);
	if (!marks || !*at)
		return false;
	int in = 0;
	while (in < 5 && strcmp(places[in], place) != 0)
		in++;
	*ret = (struct sl_http_param){.name = at,
		.in = in < 5 ? (enum sl_param_in)in : SL_IN_QUERY,
		.style = style,
		.explode = strchr(marks, 'e') != NULL,
		.allow_reserved = strchr(marks, 'r') != NULL,
		.required = strchr(marks, 'n') != NULL,
		.fallback = strchr(marks, 'd') ? jv_string("..") : jv_invalid()};
	return true;
}

static void read_call(char *line, struct sl_http_call *ret)
{
	char *at = NULL, *method = strtok_r(line, " ", &at), *url = strtok_r(NULL, " ", &at), *marks = strtok_r(NULL, " ", &at);
	static const char *const types[] = {"application/json", "application/x-www-form-urlencoded", "text/plain"};
	*ret = (struct sl_http_call){.method = method ? method : "GET", .url = url, .accept = "application/json"};
	if (!marks)
		return;
	ret->has_body = strchr(marks, 'b') != NULL;
	ret->body_required = strchr(marks, 'B') != NULL;
	ret->rest_query = strchr(marks, 'q') != NULL;
	ret->reserved_args = strchr(marks, '9') != NULL;
	ret->body_type = types[strchr(marks, 'f') ? 1 : strchr(marks, 't') ? 2 : 0];
}

static bool plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return false;
	return true;
}

static bool dots(const char *at, size_t len)
{
	return (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0);
}

/* The template's own odd bytes are the definition's matter: what is looked at is what the arguments add. */
static void check_url(const char *template, const char *url)
{
	size_t scheme = strncmp(template, "http://", 7) == 0 ? 7 : strncmp(template, "https://", 8) == 0 ? 8 : 0;
	size_t fixed = scheme + strcspn(template + scheme, "/?#");
	if (!scheme || memchr(template, '{', fixed))
		return;
	FUZZ_HOLDS(strncmp(template, url, fixed) == 0 && (!url[fixed] || strchr("/?", url[fixed])), "%s left %s", url, template);
	if (plain(template, strlen(template)))
		FUZZ_HOLDS(plain(url, strlen(url)), "%s holds what no URL may", url);
	if (strstr(template, "/.") || strstr(template, "}{"))
		return;
	for (const char *seg = url + fixed; *seg == '/';) {
		size_t len = strcspn(seg + 1, "/?#");
		FUZZ_HOLDS(!dots(seg + 1, len), "%s: arguments change the path of %s", url, template);
		seg += 1 + len;
	}
}

static void check_headers(const struct sl_http_request *req)
{
	for (int i = 0; req->headers && req->headers[i]; i++) {
		FUZZ_HOLDS(strpbrk(req->headers[i], ":;"), "header without a name's end: %s", req->headers[i]);
		FUZZ_HOLDS(!strpbrk(req->headers[i], "\r\n"), "a header inside a header: %s", req->headers[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sl_call_context ctx = {.action = "a1", .attempt = 2, .instance = "i1",
		.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_http_param params[PARAMS_MAX];
	struct sl_http_request req = {0};
	struct sl_http_call call;
	struct sl_arena arena;
	struct sl_buf why;
	if (size > SIZE_MAX_BYTES)
		return -1;
	sl_arena_init(&arena);
	sl_buf_init(&why);
	char *line = fuzz_line(&in, &arena);
	read_call(line ? line : sl_arena_str(&arena, ""), &call);
	call.params = params;
	while ((line = fuzz_line(&in, &arena)) && *line)
		if (call.param_count < PARAMS_MAX && read_param(line, &params[call.param_count]))
			call.param_count++;
	jv args = jv_invalid();
	if (in.at < in.end && sl_json_parse(in.at, (size_t)(in.end - in.at), &sl_json_default, &args, NULL))
		args = jv_null();
	int err = sl_request_build(&call, args, &ctx, &arena, &req, &why);
	FUZZ_HOLDS(!err || why.len, "%s without a word", sl_err_name(err));
	if (!err) {
		FUZZ_HOLDS(req.method && req.url, "no method or URL");
		check_url(call.url, req.url);
		check_headers(&req);
		sl_request_host(&arena, req.url);
	}
	jv_free(args);
	for (int i = 0; i < call.param_count; i++)
		jv_free(params[i].fallback);
	sl_buf_release(&why);
	sl_arena_release(&arena);
	return 0;
}
