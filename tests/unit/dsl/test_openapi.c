/* OpenAPI documents -> HTTP calls: servers, parameters, bodies, references, and what is said about wrong documents. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "common/dsl/openapi.h"

static struct sl_openapi *api;
static struct sl_arena arena;
static struct sl_http_call call;
static struct sl_buf err;

static void begin(void)
{
	sl_arena_init(&arena);
	sl_buf_init(&err);
	memset(&call, 0, sizeof(call));
	api = NULL;
}

static void end(void)
{
	for (int i = 0; i < call.param_count; i++)
		jv_free(call.params[i].fallback);
	sl_openapi_free(api);
	sl_buf_release(&err);
	sl_arena_release(&arena);
}

TestSuite(openapi, .init = begin, .fini = end);

/* Parses `text` and looks up `operation`; the code of the first that fails. */
static int load(const char *uri, const char *text, const char *operation)
{
	int rc = sl_openapi_parse(text, strlen(text), uri, &api, &err);
	return rc < 0 ? rc : sl_openapi_call(api, operation, &arena, &call, &err);
}

static const struct sl_http_param *param(const char *name)
{
	for (int i = 0; i < call.param_count; i++)
		if (strcmp(call.params[i].name, name) == 0)
			return &call.params[i];
	cr_assert_fail("no parameter %s", name);
	return NULL;
}

static void expect_error(int rc, int want, const char *text)
{
	cr_assert_eq(rc, want, "got %s: %s", sl_err_name(rc), err.len ? err.data : "");
	cr_assert(err.len && strstr(err.data, text), "'%s' lacks '%s'", err.len ? err.data : "", text);
}

static void expect_ok(int rc)
{
	cr_assert_eq(rc, 0, "%s", err.len ? err.data : "");
}

static const char store[] =
	"openapi: 3.0.3\n"
	"info: {title: store, version: '1'}\n"
	"servers:\n"
	"- url: https://{region}.example.com:{port}/{base}/\n"
	"  variables:\n"
	"    region: {default: eu, enum: [eu, us]}\n"
	"    port: {default: '8443'}\n"
	"    base: {default: v1}\n"
	"- url: https://second.example.com\n"
	"paths:\n"
	"  x-comment: not a path\n"
	"  /orders/{orderId}:\n"
	"    parameters:\n"
	"    - {$ref: '#/components/parameters/OrderId'}\n"
	"    - {name: verbose, in: query, schema: {type: boolean, default: false}}\n"
	"    get:\n"
	"      operationId: getOrder\n"
	"      parameters:\n"
	"      - {name: verbose, in: query, required: true, schema: {type: boolean, default: true}}\n"
	"      - {name: ids, in: query, style: pipeDelimited, explode: false, allowReserved: true, schema: {type: array}}\n"
	"      - {name: filter, in: query, style: deepObject, schema: {type: object}}\n"
	"      - {name: X-Trace, in: header, schema: {type: string}}\n"
	"      - {name: session, in: cookie, schema: {type: string}}\n"
	"      - {name: Authorization, in: header, schema: {type: string}}\n"
	"      responses:\n"
	"        200: {content: {text/plain: {}, application/json: {}}}\n"
	"        404: {content: {application/problem+json: {}}}\n"
	"    put:\n"
	"      operationId: putOrder\n"
	"      servers: [{url: 'https://write.example.com/'}]\n"
	"      requestBody: {$ref: '#/components/requestBodies/Order'}\n"
	"      responses: {'204': {description: done}}\n"
	"  /form:\n"
	"    servers: [{url: 'https://form.example.com'}]\n"
	"    post:\n"
	"      operationId: form\n"
	"      requestBody: {content: {text/plain: {}, application/x-www-form-urlencoded: {}}}\n"
	"  /text:\n"
	"    post:\n"
	"      operationId: text\n"
	"      requestBody: {required: true, content: {text/plain: {}}}\n"
	"  /upload:\n"
	"    post:\n"
	"      operationId: upload\n"
	"      requestBody: {content: {multipart/form-data: {}, application/xml: {}}}\n"
	"  /twice:\n"
	"    get: {operationId: twice}\n"
	"    post: {operationId: twice}\n"
	"components:\n"
	"  parameters:\n"
	"    OrderId: {name: orderId, in: path, required: true, schema: {$ref: '#/components/schemas/Id'}}\n"
	"  requestBodies:\n"
	"    Order:\n"
	"      required: true\n"
	"      content:\n"
	"        application/xml: {}\n"
	"        application/json:\n"
	"          schema:\n"
	"            allOf:\n"
	"            - {$ref: '#/components/schemas/Base'}\n"
	"            - {type: object, properties: {note: {type: string}, count: {type: integer, default: 1}}}\n"
	"  schemas:\n"
	"    Id: {type: string, default: latest}\n"
	"    Base: {type: object, properties: {currency: {type: string, default: EUR}}}\n";

Test(openapi, path_template_follows_the_server_with_its_variables)
{
	expect_ok(load("file://store.yaml", store, "getOrder"));
	cr_assert_str_eq(call.method, "GET");
	cr_assert_str_eq(call.url, "https://eu.example.com:8443/v1/orders/{orderId}");
	cr_assert(!call.has_body);
	cr_assert(!call.rest_query);
}

Test(openapi, operation_parameters_replace_those_of_the_path)
{
	expect_ok(load("file://store.yaml", store, "getOrder"));
	cr_assert_eq(call.param_count, 6);
	cr_assert(param("verbose")->required);
	cr_assert_eq(jv_get_kind(param("verbose")->fallback), JV_KIND_TRUE);
}

Test(openapi, parameter_references_and_schema_defaults_are_followed)
{
	expect_ok(load("file://store.yaml", store, "getOrder"));
	const struct sl_http_param *id = param("orderId");
	cr_assert_eq(id->in, SL_IN_PATH);
	cr_assert(id->required);
	cr_assert_str_eq(id->style, "simple");
	cr_assert(!id->explode);
	cr_assert_str_eq(jv_string_value(id->fallback), "latest");
}

Test(openapi, styles_have_their_defaults_by_place)
{
	expect_ok(load("file://store.yaml", store, "getOrder"));
	cr_assert_str_eq(param("verbose")->style, "form");
	cr_assert(param("verbose")->explode);
	cr_assert_str_eq(param("ids")->style, "pipeDelimited");
	cr_assert(!param("ids")->explode);
	cr_assert(param("ids")->allow_reserved);
	cr_assert_str_eq(param("filter")->style, "deepObject");
	cr_assert_eq(param("X-Trace")->in, SL_IN_HEADER);
	cr_assert_str_eq(param("X-Trace")->style, "simple");
	cr_assert_eq(param("session")->in, SL_IN_COOKIE);
	cr_assert_str_eq(param("session")->style, "form");
}

Test(openapi, accept_names_json_first_and_only_answers_of_success)
{
	expect_ok(load("file://store.yaml", store, "getOrder"));
	cr_assert_str_eq(call.accept, "application/json, text/plain");
}

Test(openapi, json_is_preferred_whatever_the_order_and_defaults_of_the_body_are_kept)
{
	expect_ok(load("file://store.yaml", store, "putOrder"));
	cr_assert_str_eq(call.method, "PUT");
	cr_assert_str_eq(call.url, "https://write.example.com/orders/{orderId}");
	cr_assert(call.has_body);
	cr_assert(call.body_required);
	cr_assert_str_eq(call.body_type, "application/json");
	cr_assert_str_eq(call.accept, "application/json");
	cr_assert_eq(param("currency")->in, SL_IN_BODY);
	cr_assert_str_eq(jv_string_value(param("currency")->fallback), "EUR");
	cr_assert_eq(jv_number_value(param("count")->fallback), 1);
	cr_assert_eq(call.param_count, 4); /* orderId, verbose, currency, count; note has no default */
}

Test(openapi, form_wins_over_text_and_path_servers_over_the_documents)
{
	expect_ok(load("file://store.yaml", store, "form"));
	cr_assert_str_eq(call.url, "https://form.example.com/form");
	cr_assert_str_eq(call.body_type, "application/x-www-form-urlencoded");
	cr_assert(!call.body_required);
}

Test(openapi, plain_text_bodies)
{
	expect_ok(load("file://store.yaml", store, "text"));
	cr_assert_str_eq(call.body_type, "text/plain");
	cr_assert(call.body_required);
}

Test(openapi, other_bodies_are_unsupported_and_named)
{
	expect_error(load("file://store.yaml", store, "upload"), SL_EUNSUPPORTED, "takes only application/xml, multipart/form-data");
}

Test(openapi, unknown_operation_says_which_there_are)
{
	expect_error(load("file://store.yaml", store, "getOrders"), SL_ENOTFOUND, "'file://store.yaml': has no operation 'getOrders'; it has ");
	cr_assert(strstr(err.data, "form"));
}

Test(openapi, duplicate_operation_ids_are_refused)
{
	expect_error(load("file://store.yaml", store, "twice"), SL_ESCHEMA, "operationId 'twice' is there 2 times");
}

/* --- servers --- */
static void expect_url(const char *uri, const char *server, const char *want)
{
	char text[400];
	snprintf(text, sizeof(text), "{\"openapi\":\"3.1.0\",%s\"paths\":{\"/p\":{\"get\":{\"operationId\":\"o\"}}}}", server);
	expect_ok(load(uri, text, "o"));
	cr_assert_str_eq(call.url, want);
	sl_openapi_free(api);
	api = NULL;
}

Test(openapi, relative_servers_resolve_against_the_document)
{
	expect_url("http://h.example:81/api/doc.json", "", "http://h.example:81/p");
	expect_url("http://h.example/api/doc.json", "\"servers\":[{\"url\":\"/v2\"}],", "http://h.example/v2/p");
	expect_url("http://h.example/api/doc.json?x=/y/z", "\"servers\":[{\"url\":\"v2/\"}],", "http://h.example/api/v2/p");
	expect_url("https://h.example/a/b/doc.json", "\"servers\":[{\"url\":\"../c/./d\"}],", "https://h.example/a/c/d/p");
	expect_url("https://h.example", "\"servers\":[{\"url\":\"v3\"}],", "https://h.example/v3/p");
	expect_url("https://h.example/x", "\"servers\":[{\"url\":\"//other.example/y\"}],", "https://other.example/y/p");
	expect_url("file://x.json", "\"servers\":[{\"url\":\"http://abs.example\"}],", "http://abs.example/p");
}

Test(openapi, relative_server_of_a_file_is_an_error)
{
	expect_error(load("file://x.json", "{\"openapi\":\"3.0.0\",\"paths\":{\"/p\":{\"get\":{\"operationId\":\"o\"}}}}", "o"), SL_ESCHEMA,
		"server URL '/' is relative");
}

Test(openapi, server_variable_without_default_is_an_error)
{
	expect_error(load("file://x.json",
		"{\"openapi\":\"3.0.0\",\"servers\":[{\"url\":\"http://{h}/\"}],\"paths\":{\"/p\":{\"get\":{\"operationId\":\"o\"}}}}", "o"),
		SL_ESCHEMA, "server variable 'h' has no default");
}

Test(openapi, server_of_another_scheme_is_unsupported)
{
	expect_error(load("file://x.json",
		"{\"openapi\":\"3.0.0\",\"servers\":[{\"url\":\"ws://h\"}],\"paths\":{\"/p\":{\"get\":{\"operationId\":\"o\"}}}}", "o"),
		SL_EUNSUPPORTED, "neither http nor https");
}

/* --- wrong documents --- */
Test(openapi, swagger_2_is_named)
{
	expect_error(load("u", "swagger: '2.0'\npaths: {}\n", "o"), SL_EUNSUPPORTED, "OpenAPI document 'u': is Swagger 2.0");
}

Test(openapi, other_versions_are_named)
{
	expect_error(load("u", "openapi: 3.2.0\npaths: {}\n", "o"), SL_EUNSUPPORTED, "version '3.2.0'");
}

Test(openapi, something_else_is_no_document)
{
	expect_error(load("u", "hello: world\n", "o"), SL_ESCHEMA, "no OpenAPI 3 document");
}

Test(openapi, broken_text_is_placed)
{
	expect_error(load("u", "{\"openapi\": \"3.0.0\",\n \"paths\": [}", "o"), SL_EPARSE, "line 2");
}

Test(openapi, paths_must_be_there)
{
	expect_error(load("u", "openapi: 3.0.0\n", "o"), SL_ESCHEMA, "no object 'paths'");
}

/* A document with one GET /p/{id} whose parameters are given. */
static int with_params(const char *params)
{
	char text[600];
	snprintf(text, sizeof(text), "{\"openapi\":\"3.0.0\",\"servers\":[{\"url\":\"http://h\"}],\"paths\":{\"/p/{id}\":"
		"{\"get\":{\"operationId\":\"o\",\"parameters\":%s}}}}", params);
	return load("u", text, "o");
}

Test(openapi, path_without_its_parameter)
{
	expect_error(with_params("[]"), SL_ESCHEMA, "path '/p/{id}' has no path parameter 'id'");
}

Test(openapi, path_parameter_must_be_required)
{
	expect_error(with_params("[{\"name\":\"id\",\"in\":\"path\"}]"), SL_ESCHEMA, "lacks 'required: true'");
}

Test(openapi, style_must_fit_the_place)
{
	expect_error(with_params("[{\"name\":\"id\",\"in\":\"path\",\"required\":true,\"style\":\"form\"}]"), SL_ESCHEMA, "cannot have style 'form'");
}

Test(openapi, unknown_place)
{
	expect_error(with_params("[{\"name\":\"id\",\"in\":\"body\"}]"), SL_ESCHEMA, "is in 'body'");
}

Test(openapi, parameter_with_content_is_unsupported)
{
	expect_error(with_params("[{\"name\":\"id\",\"in\":\"path\",\"required\":true,\"content\":{}}]"), SL_EUNSUPPORTED, "'content'");
}

Test(openapi, reference_to_nowhere)
{
	expect_error(with_params("[{\"$ref\":\"#/components/parameters/X\"}]"), SL_ESCHEMA, "'#/components/parameters/X' leads nowhere");
}

Test(openapi, reference_to_another_document_is_unsupported)
{
	expect_error(with_params("[{\"$ref\":\"common.json#/X\"}]"), SL_EUNSUPPORTED, "leads to another document");
}

Test(openapi, circular_reference_ends)
{
	expect_error(with_params("[{\"$ref\":\"#/paths/~1p~1%7Bid%7D/get/parameters/0\"}]"), SL_ESCHEMA, "in a circle");
}

Test(openapi, a_circular_schema_of_a_body_ends)
{
	expect_ok(load("u", "openapi: 3.1.0\nservers: [{url: 'http://h'}]\npaths:\n  /p:\n    post:\n      operationId: o\n      requestBody:\n"
		"        content:\n          application/json: {schema: {$ref: '#/components/schemas/A'}}\n"
		"components: {schemas: {A: {allOf: [{$ref: '#/components/schemas/A'}, {$ref: '#/components/schemas/A'}], properties: {x: {default: 1}}}}}\n", "o"));
	cr_assert(call.has_body);
	cr_assert_eq(call.param_count, 1);
}
