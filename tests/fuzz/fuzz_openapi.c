/* OpenAPI documents: parsed, then every operation that a walk over its paths finds is made into a call. */
#include "common/dsl/openapi.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES (32u << 10)
#define OPERATIONS_MAX 16

static void call(const struct sl_openapi *api, const char *operation)
{
	struct sl_http_call got = {0};
	struct sl_arena arena;
	struct sl_buf err;
	sl_arena_init(&arena);
	sl_buf_init(&err);
	int code = sl_openapi_call(api, operation, &arena, &got, &err);
	FUZZ_HOLDS(!code || err.len, "%s without a word", sl_err_name(code));
	FUZZ_HOLDS(code || (got.method && got.url), "a call without method or URL");
	for (int i = 0; !code && i < got.param_count; i++)
		jv_free(got.params[i].fallback);
	sl_buf_release(&err);
	sl_arena_release(&arena);
}

/* {operation: ...} of one path item */
static int item_calls(const struct sl_openapi *api, jv item, int done)
{
	if (jv_get_kind(item) != JV_KIND_OBJECT)
		return done;
	jv_object_foreach(item, method, op)
	{
		const char *id = sl_json_str(op, "operationId");
		if (id && done < OPERATIONS_MAX) {
			call(api, id);
			done++;
		}
		jv_free(method);
		jv_free(op);
	}
	return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_openapi *api = NULL;
	struct sl_buf err;
	int done = 0;
	if (size > SIZE_MAX_BYTES)
		return -1;
	char *text = fuzz_exact(fuzz_in(data, size));
	sl_buf_init(&err);
	int code = sl_openapi_parse(text, size, "http://service.example/api.yaml", &api, &err);
	FUZZ_HOLDS(!code || err.len, "%s without a word", sl_err_name(code));
	if (!code) {
		jv paths = sl_json_get(api->root, "paths");
		call(api, "none");
		if (jv_get_kind(paths) == JV_KIND_OBJECT) {
			jv_object_foreach(paths, path, item)
			{
				done = item_calls(api, item, done);
				jv_free(path);
				jv_free(item);
			}
		}
		jv_free(paths);
		sl_openapi_free(api);
	}
	sl_buf_release(&err);
	free(text);
	return 0;
}
