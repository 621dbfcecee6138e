/* The plans that a process knows: definitions by content hash, and which of them are active (sluice.definitions).
 * Also what the router asks: which shapes of event references exist. In memory only; one owner, one thread. */
#ifndef SL_ENGINE_PLANS_H
#define SL_ENGINE_PLANS_H

#include "common/model/plan.h"

struct sl_plans;

struct sl_plans *sl_plans_new(void);
void sl_plans_free(struct sl_plans *plans);
/* Knows `plan` from now on (takes a reference of its own). Idempotent per (ns, hash). */
void sl_plans_add(struct sl_plans *plans, const char *ns, struct sl_plan *plan);
/* The pointer ns/id/version names `hash`; active false: undeployed, its instances go on. */
void sl_plans_point(struct sl_plans *plans, const char *ns, const char *id, const char *version, const char *hash, bool active);
/* Shapes of a plan that is inactive and has no instance left anywhere may be dropped. */
void sl_plans_forget(struct sl_plans *plans, const char *ns, const char *hash);

/* Borrowed; NULL if unknown. */
struct sl_plan *sl_plans_by_hash(const struct sl_plans *plans, const char *ns, const char *hash);
/* Active one of that version; version NULL: the highest active semantic version (A108, A168). */
struct sl_plan *sl_plans_current(const struct sl_plans *plans, const char *ns, const char *id, const char *version);
/* Does the pointer exist (active or not), and with which hash? NULL if not. */
const char *sl_plans_pointer(const struct sl_plans *plans, const char *ns, const char *id, const char *version, bool *ret_active);

/* Visits every known plan of ns; `listening`: it is the highest active version of its workflow, so its start events
 * start instances (A168). Order of first add. */
void sl_plans_each(const struct sl_plans *plans, const char *ns,
	void (*visit)(void *arg, struct sl_plan *plan, bool listening), void *arg);

#endif
