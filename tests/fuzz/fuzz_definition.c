/* Definitions (Serverless Workflow 0.8 as YAML or JSON) through parser, checks and lowering, strict and lenient;
 * documents must survive being written as JSON. libjq's own check of each expression is left out here (13 ms each):
 * fuzz_expression does that. */
#include "common/dsl/doc.h"
#include "common/dsl/lower.h"
#include "common/engine/plans.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES (32u << 10)

static const char openapi[] =
	"{openapi: 3.0.3, info: {title: t, version: '1'}, servers: [{url: 'http://service.example'}], paths: {/p/{id}: "
	"{post: {operationId: op, parameters: [{name: id, in: path, required: true, schema: {type: string}}], "
	"requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {'200': {description: "
	"ok}}}}}}";
static const char parts[] =
	"{functions: [{name: f, operation: .a, type: expression}], events: [{name: E, type: e, source: s}], errors: "
	"[{name: R, code: '1'}], retries: [{name: r, delay: PT1S}], timeouts: {}, constants: {c: 1}, secrets: [s]}";

/* Any resource is there: a service document or lists of definitions. */
static int get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	const char *text = strstr(uri, "api") ? openapi : parts;
	(void)arg;
	if (strstr(uri, "missing"))
		return sl_diag_error(diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "no resource '%s'", uri);
	*ret_len = strlen(text);
	*ret = strdup(text);
	return 0;
}

static void compile(const char *text, size_t len, const struct sl_compile_options *opt)
{
	struct sl_plan *plan = NULL;
	struct sl_diags diags;
	struct sl_buf shown;
	sl_diags_init(&diags);
	sl_buf_init(&shown);
	int err = sl_compile(text, len, opt, &plan, &diags);
	FUZZ_HOLDS(err == 0 || diags.error_count > 0, "%s without a word", sl_err_name(err));
	FUZZ_HOLDS(err != 0 || diags.error_count == 0, "compiled with errors: %s", sl_diags_first(&diags));
	FUZZ_HOLDS(!err || !plan, "a plan with %s", sl_err_name(err));
	if (plan) {
		struct sl_plans *plans = sl_plans_new();
		free(sl_plan_text(plan));
		sl_plans_add(plans, "default", plan);
		sl_plans_point(plans, "default", plan->id, plan->version, plan->hash, true);
		sl_plans_free(plans);
		sl_plan_unref(plan);
	}
	sl_diags_sort(&diags);
	sl_diags_print(&diags, &shown, NULL);
	sl_buf_release(&shown);
	sl_diags_release(&diags);
}

/* The same document as JSON text says the same. */
static void as_json(const char *text, size_t len)
{
	struct sl_doc *doc = NULL, *again = NULL;
	struct sl_diags diags;
	sl_diags_init(&diags);
	if (sl_doc_parse(text, len, "f", &doc, &diags) == 0) {
		jv value = sl_doc_value(doc);
		char *json = sl_json_text(value);
		int err = sl_doc_parse(json, strlen(json), "g", &again, &diags);
		FUZZ_HOLDS(!err, "its JSON is refused: %s: %s", sl_diags_first(&diags), json);
		jv other = sl_doc_value(again);
		FUZZ_HOLDS(sl_json_equal(value, other), "%s", json);
		jv_free(other);
		jv_free(value);
		free(json);
	}
	sl_doc_free(doc);
	sl_doc_free(again);
	sl_diags_release(&diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sl_resources resources = {get, NULL};
	const struct sl_compile_options strict = {
		.dialect = SL_DIALECT_SW08, .deploy = true, .trusted = true, .resources = &resources, .file = "f"};
	const struct sl_compile_options lenient = {.lenient = true, .trusted = true, .mocked = true, .file = "f"};
	if (size > SIZE_MAX_BYTES)
		return -1;
	char *text = fuzz_exact(fuzz_in(data, size));
	as_json(text, size);
	compile(text, size, &strict);
	compile(text, size, &lenient);
	free(text);
	return 0;
}
