/* Decision records: what router and mailboxes leave for `sluice why EVENT`. Bounded: lists to SL_WHY_LIST_MAX entries,
 * the rest is counted in `more`; texts to SL_WHY_TEXT_MAX bytes.
 *
 *   {event: {id, source, type}, at, decision, results?: [{decision, workflow, plan?, instance?}],
 *    candidates?: [{workflow, instance?, plan?, attribute, wanted?, have?}], more?, note?}
 *
 * `at`: "router" or the mailbox. A candidate names the first attribute that failed with both values; `wanted` is
 * missing where any value would have done, `have` where the event lacks the attribute. */
#ifndef SL_ENGINE_WHY_H
#define SL_ENGINE_WHY_H

#include "common/engine/plans.h"

#define SL_WHY_LIST_MAX 20
#define SL_WHY_TEXT_MAX 200

/* Decisions, strongest first. */
#define SL_WHY_STARTED "started"     /* an instance was started */
#define SL_WHY_DELIVERED "delivered" /* sent to subscribed instances (they wait for it or keep it in their inbox) */
#define SL_WHY_JOINED "joined"	     /* waits for the other events of an all-of start */
#define SL_WHY_EARLY "early"	     /* found nobody yet; kept for the early window */
#define SL_WHY_NOBODY "nobody"	     /* found nobody, not kept */
#define SL_WHY_DUPLICATE "duplicate" /* seen before (R6) */
#define SL_WHY_EXPIRED "expired"     /* member of a join, its window passed; early event, nobody came for it */
#define SL_WHY_DEAD "dead"	     /* member of a join that no deployed plan completes any more */
#define SL_WHY_SEVERAL "several"     /* came back, but other instances of the workflow got it too */
#define SL_WHY_FULL "full"	     /* a bound was reached (R9) */
#define SL_WHY_HOPS "hops"	     /* publishing and starting went round too often */

struct sl_why {
	jv results, candidates;
	int more;
	const char *note; /* borrowed */
	int rank;	  /* of the strongest result */
};

void sl_why_init(struct sl_why *why);
void sl_why_release(struct sl_why *why);
/* A plan or an instance that was looked at and not taken. instance, plan and miss->wanted may be NULL. Borrows ev. */
void sl_why_candidate(struct sl_why *why, const char *workflow, const char *instance, const char *plan,
	const struct sl_mismatch *miss, jv ev);
/* What was done. plan and instance may be NULL. */
void sl_why_result(
	struct sl_why *why, const char *decision, const char *workflow, const char *plan, const char *instance);
/* The strongest decision among the results; SL_WHY_NOBODY without any. */
const char *sl_why_strongest(const struct sl_why *why);
/* The record; `why` is as after init. Borrows ev. */
jv sl_why_take(struct sl_why *why, const char *at, jv ev, const char *decision);

#endif
