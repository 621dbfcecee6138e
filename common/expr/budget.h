/* The soft budget of an evaluation: a POSIX timer on the evaluating thread's own CPU time signals that thread, and the
 * handler halts libjq (design section 6). CPU time, because a busy machine must not make an innocent expression fail
 * (R11). Any thread may use it; each has its own timer. */
#ifndef SL_EXPR_BUDGET_H
#define SL_EXPR_BUDGET_H

#include <jq.h>
#include <stdbool.h>
#include <stdint.h>

/* Arms the timer; every begin has its end. */
void sl_budget_begin(int64_t ms);
void sl_budget_end(void);
/* True if the time since begin is used up. */
bool sl_budget_spent(void);
/* jq_next that the timer halts. */
jv sl_budget_next(jq_state *jq);

#endif
