/* R8: expressions that use secrets are evaluated by a helper process of the executor (`sluice-executor --evaluate`),
 * whose death is that call's error. One JSON line in, one out:
 *
 *   {"ns", "hash", "node": CALL node's pointer, "input", "vars", "definition"?: text of the definition's record}
 *   {"value": ...} | {"need": true}: send the definition along | {"error": {...}}
 *
 * The value is the call's arguments, or for an expression function its result. */
#ifndef SL_EXECUTOR_EVALUATE_H
#define SL_EXECUTOR_EVALUATE_H

#include "common/model/msg.h"
#include "common/model/plan.h"

/* A secret's value, malloc'ed; NULL: it has none. Read anew at each call, so that a rotated secret needs no restart. */
typedef char *(*sl_secret_fn)(void *arg, const char *name);

struct sl_evaluator;
struct sl_evaluator *sl_evaluator_new(sl_secret_fn secret, void *arg);
void sl_evaluator_free(struct sl_evaluator *ev);
/* Makes a plan known without its text, for an evaluator in the process that has it. */
void sl_evaluator_know(struct sl_evaluator *ev, const char *ns, struct sl_plan *plan);
/* One question -> one answer (no line break); never fails. */
void sl_evaluator_answer(struct sl_evaluator *ev, const char *line, size_t len, struct sl_buf *out);
/* The helper's main: questions from fd, answers to it, until it closes. */
int sl_evaluator_serve(struct sl_evaluator *ev, int fd);

/* The question for an action; `definition` NULL: without. */
void sl_evaluator_question(const struct sl_msg *action, const char *definition, struct sl_buf *out);

/* --- redaction --- */
/* Replaces every literal occurrence of the named secrets' values in all strings and member names of `value` by
 * "[redacted]". A value shorter than 3 bytes is replaced only where it is the whole string. Takes value. */
jv sl_redact(jv value, const char *const *names, int count, sl_secret_fn secret, void *arg);

#endif
