/* Lowering 0.8: functions that call services: `rest` through an OpenAPI document, `custom` in Sluice's plain HTTP form.
 */
#include "common/base/text.h"
#include "common/dsl/openapi.h"
#include "common/dsl/sw08_lower.h"
#include <stdlib.h>
#include <string.h>

/* A service document of this lowering: read once, whatever the number of functions that name it. */
struct document {
	struct sl_openapi *api; /* NULL: cannot be used */
};

static void free_document(void *arg)
{
	struct document *document = arg;
	sl_openapi_free(document->api);
	free(document);
}

void sl_lower_documents_free(struct sl_map *documents)
{
	sl_map_release(documents, free_document);
}

/* What is wrong with a service document is no error where nobody will call the service. */
static void complain(struct sl_lower *lo, const char *at, int err, const char *text)
{
	struct sl_loc loc = sl_doc_loc(lo->doc, at, false);
	if (lo->opt->mocked) {
		sl_diag_warn(lo->diags, loc, at, "%s", text);
	} else if (err == SL_EUNSUPPORTED) {
		sl_lower_unsupported(lo, at, "%s", text);
	} else {
		sl_diag_error(lo->diags, SL_ESCHEMA, loc, at, "%s", text);
		lo->failed = true;
	}
}

static struct sl_openapi *fetch(struct sl_lower *lo, const char *at, const char *uri)
{
	char *text = NULL;
	size_t len = 0;
	struct sl_openapi *api = NULL;
	struct sl_diags diags;
	struct sl_buf err;
	sl_diags_init(&diags);
	sl_buf_init(&err);
	int rc = lo->opt->resources->get(lo->opt->resources->arg, uri, &text, &len, &diags);
	if (rc == SL_EAGAIN) {
		lo->again = true;
	} else if (rc < 0) {
		const char *why = sl_diags_first(&diags);
		sl_buf_printf(&err, "OpenAPI document '%s' cannot be had: %s", uri, *why ? why : sl_err_text(rc));
		complain(lo, at, rc, err.data);
	} else {
		rc = sl_openapi_parse(text, len, uri, &api, &err);
		if (rc < 0)
			complain(lo, at, rc, err.data);
	}
	free(text);
	sl_buf_release(&err);
	sl_diags_release(&diags);
	return api;
}

/* 0.8 "Using Functions for RESTful Service Invocations": operation is <URI>#<operationId>. */
void sl_lower_service(struct sl_lower *lo, struct sl_function *function, struct sl_map *documents)
{
	const char *at = sl_lower_ptr(lo, "%s/operation", function->ptr);
	const char *operation = sl_lower_text(lo, at, NULL);
	const char *hash = operation ? strchr(operation, '#') : NULL;
	if (!hash || hash == operation || !hash[1]) {
		complain(lo, at, SL_ESCHEMA,
			"operation of a rest function must be <URI of an OpenAPI document>#<operationId>");
		return;
	}
	if (!lo->opt->resources) {
		sl_lower_warn(lo, at, "the OpenAPI document of '%s' is checked at deploy", function->name);
		return;
	}
	const char *uri = sl_arena_strn(&lo->scratch, operation, (size_t)(hash - operation));
	struct document *document = sl_map_get(documents, uri);
	if (!document) {
		document = calloc(1, sizeof(*document));
		if (!document)
			abort();
		document->api = fetch(lo, at, uri);
		sl_map_set(documents, uri, document);
	}
	if (!document->api)
		return;
	struct sl_buf err;
	sl_buf_init(&err);
	int rc = sl_openapi_call(document->api, hash + 1, lo->arena, &function->http, &err);
	if (rc < 0)
		complain(lo, at, rc, err.data);
	sl_buf_release(&err);
}

/* --- custom ---
 * Sluice's plain HTTP form (0.8 "Defining custom function types": the format of `operation` is the runtime's):
 *
 *     - name: createOrder
 *       type: custom
 *       operation: POST https://orders.example.com/customers/{customer}/orders
 *       metadata:
 *         headers:
 *           X-Channel: workflow
 *
 * `operation` is "METHOD URL", or "URL" alone, which is a POST. METHOD is GET, HEAD, DELETE, OPTIONS, POST, PUT or
 * PATCH in capitals; URL is absolute, http or https. Each {name} in the URL is filled from the argument of that name,
 * percent-encoded, and that argument is used up. The other arguments are the JSON body of POST, PUT and PATCH (`body`
 * alone: its value is the body) and query parameters of the other methods. metadata.headers are sent with every call;
 * an argument with a header's name replaces its value. The answer's body is the result. */
static const struct {
	const char *name;
	bool body;
} methods[] = {
	{"GET", false},
	{"HEAD", false},
	{"DELETE", false},
	{"OPTIONS", false},
	{"POST", true},
	{"PUT", true},
	{"PATCH", true},
};

static bool split_operation(struct sl_lower *lo, const char *text, struct sl_http_call *ret)
{
	ret->method = "POST";
	ret->has_body = true;
	ret->url = text;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		size_t len = strlen(methods[i].name);
		if (strncmp(text, methods[i].name, len) == 0 && text[len] == ' ') {
			ret->method = methods[i].name;
			ret->has_body = methods[i].body;
			ret->url = text + len + strspn(text + len, " ");
		}
	}
	ret->url = sl_arena_strn(lo->arena, ret->url, strcspn(ret->url, " \t\r\n#"));
	size_t scheme = strncasecmp(ret->url, "http://", 7) == 0    ? 7
			: strncasecmp(ret->url, "https://", 8) == 0 ? 8
								    : 0;
	return scheme && ret->url[scheme];
}

static bool add_url_params(struct sl_lower *lo, struct sl_http_call *call)
{
	for (const char *open = strchr(call->url, '{'); open; open = strchr(open + 1, '{')) {
		const char *close = strchr(open, '}');
		if (!close || close == open + 1)
			return false;
		const char *name = sl_arena_strn(lo->arena, open + 1, (size_t)(close - open - 1));
		bool seen = false;
		for (int i = 0; i < call->param_count; i++)
			seen = seen || strcmp(call->params[i].name, name) == 0;
		if (!seen)
			call->params[call->param_count++] = (struct sl_http_param){.name = name,
				.in = SL_IN_PATH,
				.required = true,
				.style = "simple",
				.fallback = jv_invalid()};
	}
	return true;
}

static void add_headers(struct sl_lower *lo, const char *at, jv headers, struct sl_http_call *call)
{
	jv_object_foreach(headers, key, value)
	{
		struct sl_buf text;
		sl_buf_init(&text);
		if (!sl_json_canonical(value, &text) || strpbrk(text.data, "\r\n") || !*jv_string_value(key))
			sl_lower_error(lo, sl_lower_ptr(lo, "%s/%s", at, jv_string_value(key)),
				"a header's value must be one line of text");
		else
			call->params[call->param_count++] =
				(struct sl_http_param){.name = sl_arena_str(lo->arena, jv_string_value(key)),
					.in = SL_IN_HEADER,
					.style = "simple",
					.fallback = jv_string(text.data)};
		sl_buf_release(&text);
		jv_free(key);
		jv_free(value);
	}
}

void sl_lower_custom(struct sl_lower *lo, struct sl_function *function)
{
	const char *at = sl_lower_ptr(lo, "%s/operation", function->ptr);
	const char *operation = sl_lower_text(lo, at, NULL);
	struct sl_http_call *call = &function->http;
	if (!operation)
		return;
	if (!split_operation(lo, operation, call)) {
		*call = (struct sl_http_call){0};
		complain(lo, at, SL_EUNSUPPORTED,
			sl_lower_ptr(lo, "custom function '%s'; the form is \"METHOD http(s)://...\"", operation));
		return;
	}
	const char *headers_at = sl_lower_ptr(lo, "%s/metadata/headers", function->ptr);
	jv headers = sl_lower_at(lo, headers_at, NULL);
	int header_count = jv_get_kind(headers) == JV_KIND_OBJECT ? jv_object_length(jv_copy(headers)) : 0;
	call->params = SL_NEWN(lo->arena, struct sl_http_param, strlen(call->url) + (size_t)header_count + 1);
	if (!add_url_params(lo, call))
		sl_lower_error(lo, at, "the URL has an empty or unclosed brace");
	if (header_count)
		add_headers(lo, headers_at, headers, call);
	else if (jv_is_valid(headers) && jv_get_kind(headers) != JV_KIND_OBJECT)
		sl_lower_error(lo, headers_at, "metadata.headers must be an object of names and values");
	jv_free(headers);
	call->rest_query = !call->has_body;
	call->body_required = call->has_body;
	call->body_type = call->has_body ? "application/json" : NULL;
	call->accept = "application/json, text/plain;q=0.9, */*;q=0.1";
}

/* --- arguments --- */
static const struct sl_http_param *find_param(const struct sl_http_call *call, const char *name)
{
	for (int i = 0; i < call->param_count; i++)
		if (strcmp(call->params[i].name, name) == 0)
			return &call->params[i];
	return NULL;
}

void sl_lower_check_arguments(struct sl_lower *lo, const char *ptr, jv args, const struct sl_function *function)
{
	const struct sl_http_call *call = &function->http;
	if (!call->url || (jv_is_valid(args) && jv_get_kind(args) != JV_KIND_OBJECT))
		return;
	for (int i = 0; i < call->param_count; i++) {
		const struct sl_http_param *param = &call->params[i];
		if (param->required && !jv_is_valid(param->fallback) && param->in != SL_IN_BODY &&
			!sl_lower_has(lo, ptr, param->name))
			sl_lower_warn(lo, ptr, "function '%s' requires the argument '%s'", function->name, param->name);
	}
	if (call->has_body || call->rest_query || !jv_is_valid(args))
		return;
	jv_object_foreach(args, key, value)
	{
		if (!find_param(call, jv_string_value(key)))
			sl_lower_warn(lo, ptr,
				"argument '%s' is not sent: function '%s' has no such parameter and no body",
				jv_string_value(key), function->name);
		jv_free(key);
		jv_free(value);
	}
}
