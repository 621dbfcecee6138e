/* OpenAPI 3.0 / 3.1 documents: one operation becomes the HTTP call of a plan function.
 * A document is owned by its caller, immutable after parsing, one thread. Messages go to `err` and name the document;
 * what comes out lives in the arena given (params' fallbacks are owned jv, freed with the plan). */
#ifndef SL_DSL_OPENAPI_H
#define SL_DSL_OPENAPI_H

#include "common/model/plan.h"

struct sl_openapi {
	char *uri; /* as the definition names it: for messages, and the base of relative server URLs */
	jv root;
};

/* SL_EPARSE: neither YAML nor JSON; SL_ESCHEMA: no OpenAPI document; SL_EUNSUPPORTED: Swagger 2.0 or an unknown
 * version. */
SL_MUST_CHECK int sl_openapi_parse(
	const char *text, size_t len, const char *uri, struct sl_openapi **ret, struct sl_buf *err);
void sl_openapi_free(struct sl_openapi *api); /* NULL allowed */

/* Fills *ret only on success. SL_ENOTFOUND: no such operationId; SL_ESCHEMA: the document is malformed, or has it
 * twice; SL_EUNSUPPORTED: uses what we cannot send. */
SL_MUST_CHECK int sl_openapi_call(const struct sl_openapi *api, const char *operation, struct sl_arena *arena,
	struct sl_http_call *ret, struct sl_buf *err);

/* --- shared by openapi*.c only --- */
/* Follows "$ref" inside the document; takes v. *ret is invalid when v was. */
SL_MUST_CHECK int sl_openapi_deref(const struct sl_openapi *api, jv v, jv *ret, struct sl_buf *err);
/* Appends "OpenAPI document 'URI': " and the text; returns code. */
int sl_openapi_fail(const struct sl_openapi *api, int code, struct sl_buf *err, const char *fmt, ...) SL_PRINTF(4, 5);
/* Parameters of path item and operation (borrowed), path template for checking. */
SL_MUST_CHECK int sl_openapi_params(const struct sl_openapi *api, jv item, jv op, const char *path,
	struct sl_arena *arena, struct sl_http_call *call, struct sl_buf *err);
/* Server URL (borrows servers; invalid: the default "/"). */
SL_MUST_CHECK int sl_openapi_server(const struct sl_openapi *api, jv servers, struct sl_buf *ret, struct sl_buf *err);

#endif
