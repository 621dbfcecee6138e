/* The watchdog (R7): a thread that ends the process when one expression exceeds the hard budget, after it has told the next owner
 * what was being stepped. Some expressions are one instruction of libjq and can't be halted (design section 6).
 *
 * Time is the processor time of the evaluating thread: a stopped process and waiting for Kafka or Redis never count. What has used a
 * quarter of the budget, and twice what the soft one allows, will not be halted any more: then the clock on the wall is enough, so that
 * the error is there soon on a busy machine too.
 *
 * One per process; created, used and freed by the thread that steps. The watched thread pays two uncontended compare-and-swaps an
 * expression and never waits, except in the moment before the end: then it is held where it is, so that what the watchdog tells is true. */
#ifndef SL_COORDINATOR_WATCHDOG_H
#define SL_COORDINATOR_WATCHDOG_H

#include "services/coordinator/coordinator.h"

#define SL_WATCHDOG_EXIT 70     /* exit code: the supervisor starts the process again */
#define SL_WATCHDOG_STEP_FACTOR 30      /* a whole step may take so many hard budgets of processor time */

struct sl_watchdog_options {
	int64_t soft_ms, hard_ms;
	int64_t memory_max;     /* growth of resident memory during one expression, in bytes */
	/* Tells the next owner: `what` is to be given up. In the watchdog's thread, right before the process ends with SL_WATCHDOG_EXIT. */
	void (*tell)(void *arg, const struct sl_stepping *what, const char *reason);
	void *arg;
};
struct sl_watchdog;

/* Also sets sl_expr_watch. */
struct sl_watchdog *sl_watchdog_new(const struct sl_watchdog_options *opt);
/* For sl_coordinator_options.stepping. */
void sl_watchdog_stepping(void *watchdog, const struct sl_stepping *what);
void sl_watchdog_free(struct sl_watchdog *dog);

#endif
