/* Building requests: OpenAPI 3 parameter styles, encoding, bodies, headers. */
#include <criterion/criterion.h>
#include <string.h>

#include "services/executor/request.h"
#include "services/executor/style.h"

static jv json(const char *text)
{
	jv value;
	cr_assert_eq(sl_json_parse(text, strlen(text), &sl_json_default, &value, NULL), 0, "%s", text);
	return value;
}

/* OpenAPI 3.0.4 "Style Examples": color = "blue" | ["blue","black","brown"] | {"R":100,"G":200,"B":150} (members sorted by name) */
static const struct { enum sl_param_in in; const char *style; bool explode; const char *empty, *text, *array, *object; } styles[] = {
	{SL_IN_PATH, "matrix", false, ";color", ";color=blue", ";color=blue,black,brown", ";color=B,150,G,200,R,100"},
	{SL_IN_PATH, "matrix", true, ";color", ";color=blue", ";color=blue;color=black;color=brown", ";B=150;G=200;R=100"},
	{SL_IN_PATH, "label", false, ".", ".blue", ".blue,black,brown", ".B,150,G,200,R,100"},
	{SL_IN_PATH, "label", true, ".", ".blue", ".blue.black.brown", ".B=150.G=200.R=100"},
	{SL_IN_PATH, "simple", false, "", "blue", "blue,black,brown", "B,150,G,200,R,100"},
	{SL_IN_PATH, "simple", true, "", "blue", "blue,black,brown", "B=150,G=200,R=100"},
	{SL_IN_HEADER, "simple", false, "", "blue", "blue,black,brown", "B,150,G,200,R,100"},
	{SL_IN_HEADER, "simple", true, "", "blue", "blue,black,brown", "B=150,G=200,R=100"},
	{SL_IN_QUERY, "form", false, "color=", "color=blue", "color=blue,black,brown", "color=B,150,G,200,R,100"},
	{SL_IN_QUERY, "form", true, "color=", "color=blue", "color=blue&color=black&color=brown", "B=150&G=200&R=100"},
	{SL_IN_QUERY, "spaceDelimited", false, NULL, NULL, "color=blue%20black%20brown", "color=B%20150%20G%20200%20R%20100"},
	{SL_IN_QUERY, "pipeDelimited", false, NULL, NULL, "color=blue%7Cblack%7Cbrown", "color=B%7C150%7CG%7C200%7CR%7C100"},
	{SL_IN_QUERY, "deepObject", true, NULL, NULL, NULL, "color%5BB%5D=150&color%5BG%5D=200&color%5BR%5D=100"},
	{SL_IN_COOKIE, "form", false, "color=", "color=blue", "color=blue,black,brown", "color=B,150,G,200,R,100"},
	{SL_IN_COOKIE, "form", true, "color=", "color=blue", "color=blue; color=black; color=brown", "B=150; G=200; R=100"},
};

static void check_style(size_t i, const char *value, const char *want)
{
	struct sl_http_param param = {.name = "color", .in = styles[i].in, .style = styles[i].style, .explode = styles[i].explode};
	struct sl_buf out, why;
	if (!want)
		return;
	sl_buf_init(&out);
	sl_buf_init(&why);
	jv arg = json(value);
	cr_expect_eq(sl_style_write(&out, &param, arg, &why), 0);
	jv_free(arg);
	cr_expect_str_eq(out.data ? out.data : "", want, "%s explode=%d in=%d: %s", styles[i].style, styles[i].explode,
		styles[i].in, out.data);
	sl_buf_release(&out);
	sl_buf_release(&why);
}

Test(style, every_style_writes_every_kind_of_value)
{
	for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
		check_style(i, "\"\"", styles[i].empty);
		check_style(i, "\"blue\"", styles[i].text);
		check_style(i, "[\"blue\",\"black\",\"brown\"]", styles[i].array);
		check_style(i, "{\"R\":100,\"G\":200,\"B\":150}", styles[i].object);
	}
}

Test(style, deep_objects_nest_and_refuse_scalars)
{
	struct sl_http_param param = {.name = "f", .in = SL_IN_QUERY, .style = "deepObject", .explode = true};
	struct sl_buf out, why;
	sl_buf_init(&out);
	sl_buf_init(&why);
	jv value = json("{\"a\":{\"b\":1},\"c\":[\"x\",\"y\"]}"), scalar = jv_number(3);
	cr_expect_eq(sl_style_write(&out, &param, value, &why), 0);
	cr_expect_str_eq(out.data, "f%5Ba%5D%5Bb%5D=1&f%5Bc%5D=x&f%5Bc%5D=y", "%s", out.data);
	cr_expect_eq(sl_style_write(&out, &param, scalar, &why), SL_EINVAL);
	cr_expect(strstr(why.data, "must be an object"));
	jv_free(value);
	jv_free(scalar);
	sl_buf_release(&out);
	sl_buf_release(&why);
}

Test(style, everything_but_unreserved_is_percent_encoded)
{
	struct sl_buf out;
	sl_buf_init(&out);
	const char *text = "aZ09-._~ /?#[]@!$&'()*+,;=%\"\xc3\xa4";
	sl_style_encode(&out, text, strlen(text), false);
	cr_expect_str_eq(out.data, "aZ09-._~%20%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%25%22%C3%A4");
	sl_buf_clear(&out);
	sl_style_encode(&out, text, strlen(text), true);
	cr_expect_str_eq(out.data, "aZ09-._~%20/?%23[]@!$%26'()*+,;=%25%22%C3%A4", "%s", out.data);
	sl_buf_release(&out);
}

/* --- whole requests --- */

static struct sl_http_param params[] = {
	{.name = "id", .in = SL_IN_PATH, .required = true, .style = "simple"},
	{.name = "limit", .in = SL_IN_QUERY, .required = true, .style = "form", .explode = true},
	{.name = "tags", .in = SL_IN_QUERY, .style = "form", .explode = true},
	{.name = "X-Trace", .in = SL_IN_HEADER, .style = "simple"},
	{.name = "sid", .in = SL_IN_COOKIE, .style = "form", .explode = true},
	{.name = "amount", .in = SL_IN_BODY, .required = true, .style = "form"},
};
#define PARAMS(from, n) .params = params + (from), .param_count = (n)

static const struct {
	const char *name;
	struct sl_http_call http;
	const char *args, *url, *body, *header, *why;   /* url NULL: refused with `why` */
} requests[] = {
	{"path, query, header, cookie", {.method = "GET", .url = "http://h/v1/pets/{id}/x", PARAMS(0, 5)},
		"{\"id\":\"a/b c\",\"limit\":5,\"tags\":[\"x\",\"y\"],\"X-Trace\":\"t1\",\"sid\":\"s;1\",\"unused\":1}",
		"http://h/v1/pets/a%2Fb%20c/x?limit=5&tags=x&tags=y", NULL, "X-Trace: t1|Cookie: sid=s%3B1", NULL},
	{"query behind a query", {.method = "GET", .url = "http://h/x?fixed=1#frag", PARAMS(1, 1)}, "{\"limit\":true}",
		"http://h/x?fixed=1&limit=true", NULL, NULL, NULL},
	{"argument in the query of the URL", {.method = "GET", .url = "http://h/x?a={id}&b=1", PARAMS(0, 2)}, "{\"id\":\"p&q\",\"limit\":1}",
		"http://h/x?a=p%26q&b=1&limit=1", NULL, NULL, NULL},
	{"required query missing", {.method = "GET", .url = "http://h/x", PARAMS(1, 1)}, "{}", NULL, NULL, NULL,
		"required query parameter limit"},
	{"null is missing", {.method = "GET", .url = "http://h/x", PARAMS(1, 1)}, "{\"limit\":null}", NULL, NULL, NULL,
		"required query parameter limit"},
	{"path missing", {.method = "GET", .url = "http://h/{id}", PARAMS(0, 1)}, "{}", NULL, NULL, NULL, "path parameter id"},
	{"path of dots", {.method = "GET", .url = "http://h/{id}/x", PARAMS(0, 1)}, "{\"id\":\"..\"}", NULL, NULL, NULL,
		"would change the path"},
	{"empty path", {.method = "GET", .url = "http://h/{id}/x", PARAMS(0, 1)}, "{\"id\":\"\"}", NULL, NULL, NULL,
		"would change the path"},
	{"undeclared path variable", {.method = "GET", .url = "http://h/{who}"}, "{\"who\":7}", "http://h/7", NULL, NULL, NULL},
	{"no document", {.method = "GET"}, "{}", NULL, NULL, NULL, "was not read"},
	{"line break in a header", {.method = "GET", .url = "http://h/", PARAMS(3, 1)}, "{\"X-Trace\":\"a\\r\\nEvil: 1\"}", NULL, NULL,
		NULL, "control character"},
	{"the rest is the body", {.method = "POST", .url = "http://h/{id}", PARAMS(0, 1), .has_body = true},
		"{\"id\":1,\"b\":[1,2],\"a\":\"x\"}", "http://h/1", "{\"a\":\"x\",\"b\":[1,2]}", "Content-Type: application/json", NULL},
	{"body alone", {.method = "POST", .url = "http://h/", .has_body = true}, "{\"body\":[1,2]}", "http://h/", "[1,2]",
		"Content-Type: application/json", NULL},
	{"body beside others is a member", {.method = "POST", .url = "http://h/", .has_body = true}, "{\"body\":1,\"x\":2}",
		"http://h/", "{\"body\":1,\"x\":2}", NULL, NULL},
	{"nothing left", {.method = "POST", .url = "http://h/", .has_body = true}, "{}", "http://h/", NULL, NULL, NULL},
	{"nothing left but required", {.method = "POST", .url = "http://h/", .has_body = true, .body_required = true}, "{}",
		"http://h/", "{}", NULL, NULL},
	{"required member missing", {.method = "POST", .url = "http://h/", PARAMS(5, 1), .has_body = true}, "{\"x\":1}", NULL, NULL, NULL,
		"required body parameter amount"},
	{"form", {.method = "POST", .url = "http://h/", .has_body = true, .body_type = "application/x-www-form-urlencoded"},
		"{\"a\":\"x y\",\"b\":[1,2]}", "http://h/", "a=x%20y&b=1&b=2", "Content-Type: application/x-www-form-urlencoded", NULL},
	{"text", {.method = "POST", .url = "http://h/", .has_body = true, .body_type = "text/plain"}, "{\"body\":\"hello\"}",
		"http://h/", "hello", "Content-Type: text/plain", NULL},
	{"text from an object", {.method = "POST", .url = "http://h/", .has_body = true, .body_type = "text/plain"}, "{\"a\":1}",
		"http://h/", "{\"a\":1}", NULL, NULL},
	{"multipart", {.method = "POST", .url = "http://h/", .has_body = true, .body_type = "multipart/form-data"}, "{\"a\":1}", NULL,
		NULL, NULL, "not supported yet"},
	{"arguments that are no object", {.method = "POST", .url = "http://h/", .has_body = true}, "[1,2]", "http://h/", "[1,2]", NULL,
		NULL},
	{"the rest as query", {.method = "GET", .url = "http://h/", .rest_query = true}, "{\"a\":[1,2],\"b\":\"&\",\"c\":null,\"d\":[]}",
		"http://h/?a=1&a=2&b=%26", NULL, NULL, NULL},
	{"reserved arguments", {.method = "POST", .url = "http://h/", .has_body = true, .reserved_args = true},
		"{\"headers\":{\"X-A\":\"1\"},\"cookies\":{\"c\":\"2\"},\"body\":{\"x\":1}}", "http://h/", "{\"x\":1}",
		"X-A: 1|Cookie: c=2", NULL},
	{"accept", {.method = "GET", .url = "http://h/", .accept = "application/json"}, "{}", "http://h/", NULL,
		"Accept: application/json|Idempotency-Key: act|Sluice-Attempt: 3|Sluice-Instance: inst", NULL},
};

/* the same text, or the same JSON (the order of members is libjq's) */
static bool body_is(const char *got, const char *want)
{
	if (strcmp(got, want) == 0 || want[0] != '{')
		return strcmp(got, want) == 0;
	jv a = json(got), b = json(want);
	bool same = sl_json_equal(a, b);
	jv_free(a);
	jv_free(b);
	return same;
}

static bool has_header(const struct sl_http_request *req, const char *want, size_t len)
{
	for (const char *const *header = req->headers; *header; header++)
		if (strlen(*header) == len && memcmp(*header, want, len) == 0)
			return true;
	return false;
}

Test(request, arguments_go_where_the_operation_says)
{
	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++)
		params[i].fallback = jv_invalid();
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		struct sl_call_context ctx = {.action = "act", .attempt = 3, .instance = "inst"};
		struct sl_http_request req = {0};
		struct sl_arena arena;
		struct sl_buf why;
		sl_arena_init(&arena);
		sl_buf_init(&why);
		jv args = json(requests[i].args);
		int err = sl_request_build(&requests[i].http, args, &ctx, &arena, &req, &why);
		jv_free(args);
		if (requests[i].why) {
			cr_expect_eq(err, SL_EINVAL, "%s", requests[i].name);
			cr_expect(why.data && strstr(why.data, requests[i].why), "%s: %s", requests[i].name, why.data);
		} else {
			cr_assert_eq(err, 0, "%s: %s", requests[i].name, why.data);
			cr_expect_str_eq(req.url, requests[i].url, "%s: %s", requests[i].name, req.url);
			cr_expect_eq(req.body.ptr != NULL, requests[i].body != NULL, "%s", requests[i].name);
			if (req.body.ptr && requests[i].body)
				cr_expect(body_is(req.body.ptr, requests[i].body), "%s: %s", requests[i].name, (const char *)req.body.ptr);
		}
		for (const char *want = requests[i].header; !err && want; want = strchr(want, '|') ? strchr(want, '|') + 1 : NULL)
			cr_expect(has_header(&req, want, strcspn(want, "|")), "%s: no %s", requests[i].name, want);
		sl_buf_release(&why);
		sl_arena_release(&arena);
	}
}

Test(request, a_default_stands_in_for_a_missing_argument)
{
	struct sl_http_param param = {.name = "n", .in = SL_IN_QUERY, .required = true, .style = "form", .fallback = jv_number(9)};
	struct sl_http_call http = {.method = "GET", .url = "http://h/", .params = &param, .param_count = 1};
	struct sl_call_context ctx = {.action = "a"};
	struct sl_http_request req;
	struct sl_arena arena;
	struct sl_buf why;
	sl_arena_init(&arena);
	sl_buf_init(&why);
	jv none = jv_object();
	cr_assert_eq(sl_request_build(&http, none, &ctx, &arena, &req, &why), 0);
	jv_free(none);
	cr_expect_str_eq(req.url, "http://h/?n=9");
	cr_expect_str_eq(sl_request_host(&arena, "https://API.Example.com:8443/x?y"), "api.example.com:8443");
	sl_buf_release(&why);
	sl_arena_release(&arena);
}

Test(request, a_call_is_a_span_of_its_own_in_the_instances_trace)
{
	struct sl_http_call http = {.method = "GET", .url = "http://h/"};
	struct sl_call_context ctx = {.action = "a", .attempt = 1,
		.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
	struct sl_arena arena;
	struct sl_buf why;
	const char *traces[2];
	sl_arena_init(&arena);
	sl_buf_init(&why);
	for (int i = 0; i < 2; i++) {
		struct sl_http_request req;
		ctx.attempt = i + 1;
		traces[i] = NULL;
		jv none = jv_object();
		cr_assert_eq(sl_request_build(&http, none, &ctx, &arena, &req, &why), 0);
		jv_free(none);
		for (const char *const *header = req.headers; *header; header++)
			if (strncmp(*header, "traceparent: ", 13) == 0)
				traces[i] = *header + 13;
		cr_assert(traces[i]);
		cr_expect_eq(strlen(traces[i]), 55);
		cr_expect_eq(strncmp(traces[i], ctx.traceparent, 36), 0, "%s", traces[i]);
		cr_expect_neq(strncmp(traces[i] + 36, ctx.traceparent + 36, 16), 0);
		cr_expect_str_eq(traces[i] + 52, "-01");
	}
	cr_expect_str_neq(traces[0], traces[1]);
	sl_buf_release(&why);
	sl_arena_release(&arena);
}
