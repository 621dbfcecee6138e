/* An HTTP answer -> the action's result or its error object. Pure.
 *
 * 2xx: a JSON body (application/json, ...+json) is parsed; text, and anything else that is UTF-8, is a string; other
 * bytes are base64 text; without a content type: JSON if it parses, else as above; an empty body is {} - it merges
 * nothing into the state data. Other statuses: {status, code: the status as text, title, detail}, members of
 * application/problem+json (RFC 9457) where the service sends them. No answer: codes of model/error.h (timeout 408,
 * unreachable 503, bad-response 502, too-big 413, forbidden 403). */
#ifndef SL_EXECUTOR_ANSWER_H
#define SL_EXECUTOR_ANSWER_H

#include "common/model/error.h"
#include "common/ports/caller.h"

/* Sets exactly one of the two; the other is invalid. Borrows the answer. */
void sl_answer_read(
	const struct sl_http_answer *answer, const struct sl_json_limits *limits, jv *ret_data, jv *ret_error);
/* Reason phrase of a status (RFC 9110), or NULL. */
const char *sl_answer_reason(int status);

#endif
