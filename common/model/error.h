/* The error object that handlers, $WORKFLOW.error, results and lifecycle events carry (rulings: "Merging when the
 * action failed", A08, A09): {type, status, code, title, detail, instance}, all optional but code or type. */
#ifndef SL_MODEL_ERROR_H
#define SL_MODEL_ERROR_H

#include "common/model/value.h"

/* code and detail may be NULL; status 0 = none. */
jv sl_error_new(const char *code, int status, const char *title, const char *detail);

/* Codes of errors that Sluice itself raises. */
#define SL_CODE_TIMEOUT "timeout"               /* A09, status 408 */
#define SL_CODE_EXPRESSION "expression"         /* A89, status 400 */
#define SL_CODE_DATA "data"                     /* merging / collection / size errors, status 400 */
#define SL_CODE_TOO_BIG "too-big"               /* R9, status 413 */
#define SL_CODE_UNREACHABLE "unreachable"       /* no answer from the service, status 503 */
#define SL_CODE_BAD_RESPONSE "bad-response"     /* answer is not what was promised, status 502 */
#define SL_CODE_FORBIDDEN "forbidden"           /* egress rules, status 403 */
#define SL_CODE_SECRET "secret"                 /* secret without a value (A105), status 500 */
#define SL_CODE_CANCELLED "cancelled"
#define SL_CODE_INTERNAL "internal"             /* R7: our bug, status 500 */

#endif
