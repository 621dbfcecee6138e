/* A plan's HTTP function + evaluated arguments -> one HTTP request (model/plan.h, struct sl_http_call; OpenAPI 3.0
 * "Parameter Object", "Style Values"; RFC 3986, RFC 6570). Pure; memory in the caller's arena. */
#ifndef SL_EXECUTOR_REQUEST_H
#define SL_EXECUTOR_REQUEST_H

#include "common/model/plan.h"
#include "common/ports/caller.h"

/* What goes along with every call; strings borrowed, NULL: left out. */
struct sl_call_context {
	const char *action; /* Idempotency-Key: the logical action, the same across retries */
	int64_t attempt;    /* Sluice-Attempt, from 1 */
	const char
		*instance; /* Sluice-Instance: what a service puts into `workflowinstanceid` to answer this instance */
	const char *traceparent; /* the instance's; the call gets a span of its own in that trace */
};

/* Fills method, url, headers and body. Borrows args. SL_EINVAL with a sentence: a required parameter is missing, a
 * value cannot stand where it should, a header would hold a line break, the function has no URL. */
SL_MUST_CHECK int sl_request_build(const struct sl_http_call *http, jv args, const struct sl_call_context *ctx,
	struct sl_arena *arena, struct sl_http_request *ret, struct sl_buf *why);
/* "host:port" of a URL, lower case, for counting calls per host. Arena memory. */
const char *sl_request_host(struct sl_arena *arena, const char *url);

#endif
