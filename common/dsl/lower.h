/* Lowering: a checked, resolved document becomes a plan; and plans as readable text. */
#ifndef SL_DSL_LOWER_H
#define SL_DSL_LOWER_H

#include "common/dsl/dsl.h"

/* Serverless Workflow 0.8. `resolved` is borrowed: the document that passed the checks, with functions, events, errors,
 * retries, timeouts, constants and secrets inlined. Fills an empty `plan`. Every error goes to diags. Returns 0;
 * SL_ESCHEMA: errors (expressions, references, service documents); SL_EUNSUPPORTED: only uses of what is not there yet;
 * SL_EAGAIN: no error so far, but service documents are wanted. On an error the plan is only good for sl_plan_unref. */
SL_MUST_CHECK int sl_sw08_lower(const struct sl_doc *doc, jv resolved, const struct sl_compile_options *opt,
	struct sl_plan *plan, struct sl_diags *diags);

/* The plan as indented text, one node a line; malloc'ed. For golden tests and `sluice validate --plan`. */
char *sl_plan_text(const struct sl_plan *plan);

#endif
