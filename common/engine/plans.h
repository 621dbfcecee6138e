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

/* --- event references: what router and mailboxes ask --- */

/* Sets waited and may_be_unbound of a plan's consumed event definitions; sl_plans_add calls it. A key's values are surely known when
 * each part has an expression of its own or is bound by the start event: by every one of them, for all-of starts by
 * one. Anything else is taken for unbound (A172), for then the router must ask every partition. */
void sl_plan_mark_events(struct sl_plan *plan);
/* The names at which the start events of `plan` join: false unless it has an all-of start over several events. *ret_names is
 * borrowed; *ret_count 0: at the join mailbox of the workflow. */
bool sl_plan_join(const struct sl_plan *plan, const char *const **ret_names, int *ret_count);
/* What an instance of `plan` wants of the mailbox of these names (sorted): [{type?, source?, filters?: {name: value}}] for every
 * reference of that key set, start events included. An empty array: nothing. */
jv sl_plan_wants(const struct sl_plan *plan, const char *const *names, int count);

/* One place of a plan that consumes events. */
struct sl_event_ref {
	struct sl_plan *plan;
	const struct sl_event_def *def;
	bool start;             /* among the start events */
	bool listening;         /* as in sl_plans_each */
};
/* Visits the references of all known plans of ns that name exactly `type`, NULL: those that take any type. */
void sl_plans_refs(const struct sl_plans *plans, const char *ns, const char *type,
	void (*visit)(void *arg, const struct sl_event_ref *ref), void *arg);

/* Why an event did not match: attribute and the value that was wanted (borrowed). */
struct sl_mismatch { const char *attribute, *wanted; };
/* Type, source (A80: equality) and literal filters (canonical equality; an absent attribute is no match). ret_miss may be NULL. Borrows ev. */
bool sl_event_matches(const char *type, const char *source, const struct sl_attr_filter *filters, int filter_count,
	jv ev, struct sl_mismatch *ret_miss);
bool sl_event_def_matches(const struct sl_event_def *def, jv ev, struct sl_mismatch *ret_miss);

#endif
