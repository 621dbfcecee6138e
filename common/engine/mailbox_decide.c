/* To whom an event belongs: subscribed instances, a new instance, a join, or nobody yet (design section 5, "Mailbox").
 */
#include "common/engine/mailbox_int.h"
#include "common/base/rules.h"

#include "common/model/event.h"
#include <stdlib.h>
#include <string.h>

/* --- effects --- */

struct sl_msg *sl_box_add(struct box_step *st, enum sl_msg_kind kind, const char *to, jv ev)
{
	struct sl_arena *arena = st->fx->arena;
	struct sl_msg *msg = sl_effects_add(st->fx, kind);
	const char *trace = jv_get_kind(ev) == JV_KIND_OBJECT ? sl_event_attr(ev, "traceparent") : NULL;
	msg->to = sl_arena_str(arena, to);
	msg->traceparent = sl_arena_str(arena, trace ? trace : st->in->traceparent);
	return msg;
}

void sl_box_why(struct box_step *st, struct sl_why *why, jv ev, const char *decision)
{
	struct sl_msg *msg = sl_box_add(st, SL_MSG_WHY, NULL, jv_invalid());
	msg->data = sl_why_take(why, st->box->id, ev, decision);
}

static void deliver(struct box_step *st, const struct box_sub *sub, jv ev, bool multi)
{
	struct sl_msg *msg = sl_box_add(st, SL_MSG_DELIVER, sub->inst, ev);
	msg->event = jv_copy(ev);
	msg->box = sl_arena_str(st->fx->arena, st->box->id);
	msg->workflow = sl_arena_str(st->fx->arena, sub->wf->id);
	msg->token = sub->token;
	msg->multi = multi;
}

/* --- which plans an event would start here --- */

struct starter {
	struct sl_plan *plan;
	struct starter *next;
};
struct starters {
	struct box_step *st;
	jv ev;
	const char *only;
	struct sl_why *why;
	struct starter *first, **last;
};

/* Does the event's key for these names live here? A mailbox that was forgotten learns its key again from the event. */
static bool key_is_here(struct box_step *st, const char *const *names, int count, jv ev)
{
	struct sl_mailbox *box = st->box;
	char home[33];
	bool same = count == box->key_count;
	if (box->key_names) {
		for (int i = 0; same && i < count; i++)
			same = strcmp(names[i], box->key_names[i]) == 0;
		return same;
	}
	const char **values = SL_NEWN(st->fx->arena, const char *, count ? count : 1);
	jv key = jv_object();
	same = count > 0;
	for (int i = 0; same && i < count; i++) {
		struct sl_buf value;
		sl_buf_init(&value);
		same = sl_event_canonical(ev, names[i], &value);
		if (same) {
			values[i] = sl_arena_strn(st->fx->arena, value.len ? value.data : "", value.len);
			key = sl_json_set(key, names[i], jv_string(values[i]));
		}
		sl_buf_release(&value);
	}
	if (same) {
		sl_home_of_key(names, values, count, home);
		same = strcmp(box->id + 1, home) == 0;
	}
	if (same)
		sl_box_learn_key(box, jv_copy(key));
	jv_free(key);
	return same;
}

static bool starts_here(struct box_step *st, const struct sl_event_ref *ref, jv ev)
{
	const char *const *join;
	int join_count;
	if (!ref->start)
		return false;
	if (sl_plan_join(ref->plan, &join, &join_count)) {
		if (!join_count)
			return st->box->join_workflow && strcmp(st->box->join_workflow, ref->plan->id) == 0;
		return key_is_here(st, join, join_count, ev);
	}
	if (ref->def->set < 0)
		return false; /* uncorrelated: the router starts it */
	const struct sl_key_set *set = &ref->plan->sets[ref->def->set];
	return key_is_here(st, (const char *const *)set->names, set->count, ev);
}

static void visit_starter(void *arg, const struct sl_event_ref *ref)
{
	struct starters *s = arg;
	struct sl_mismatch miss;
	if (!ref->listening || (s->only && strcmp(s->only, ref->plan->id) != 0) || !starts_here(s->st, ref, s->ev))
		return;
	if (!sl_event_def_matches(ref->def, s->ev, &miss)) {
		sl_why_candidate(s->why, ref->plan->id, NULL, ref->plan->hash, &miss, s->ev);
		return;
	}
	for (struct starter *it = s->first; it; it = it->next)
		if (it->plan == ref->plan)
			return;
	struct starter *it = SL_NEW(s->st->fx->arena, struct starter);
	it->plan = ref->plan;
	*s->last = it;
	s->last = &it->next;
}

static struct starter *starters_of(struct box_step *st, jv ev, const char *only, struct sl_why *why)
{
	struct starters s = {.st = st, .ev = ev, .only = only, .why = why};
	const char *type = sl_event_attr(ev, "type");
	s.last = &s.first;
	if (st->box->local)
		return NULL;
	if (type)
		sl_plans_refs(st->eng->plans, st->box->ns, type, visit_starter, &s);
	sl_plans_refs(st->eng->plans, st->box->ns, NULL, visit_starter, &s);
	return s.first;
}

/* --- deciding --- */

/* Who wants it; per workflow how many, and who of them would get it alone: the claim's holder, else the oldest. */
static void match_subs(struct box_step *st, jv ev, const char *only, struct sl_why *why)
{
	sl_map_each(&st->box->workflows, e)
	{
		struct box_wf *wf = e->value;
		wf->wanting = 0;
		wf->pick = NULL;
		wf->starts = false;
	}
	box_each(&st->box->lists[BOX_SUBS], it)
	{
		struct box_sub *sub = (struct box_sub *)it;
		struct sl_mismatch miss;
		sub->match = false;
		if (only && strcmp(only, sub->wf->id) != 0)
			continue;
		sub->match = sl_box_sub_wants(sub, ev, &miss);
		if (!sub->match) {
			sl_why_candidate(why, sub->wf->id, sub->inst, NULL, &miss, ev);
			continue;
		}
		const char *holder = sl_box_claim_of(sub->wf);
		sub->wf->wanting++;
		if (!sub->wf->pick || (holder && strcmp(holder, sub->inst) == 0))
			sub->wf->pick = sub;
	}
}

/* A78, A173: a living instance takes what would start another; only without one is one started. */
static bool decide_starter(struct box_step *st, struct sl_plan *plan, jv ev, struct sl_why *why)
{
	struct box_wf *wf = sl_box_wf(st->box, plan->id);
	wf->starts = true;
	if (wf->wanting && SL_RULE(claim)) {
		deliver(st, wf->pick, ev, false);
		sl_why_result(why, SL_WHY_DELIVERED, plan->id, NULL, wf->pick->inst);
		return true;
	}
	if ((sl_box_claim_of(wf) || wf->sub_count) && SL_RULE(claim)) {
		why->note = "an instance of the workflow lives and does not want it";
		return false;
	}
	const char *const *join;
	int join_count;
	if (sl_plan_join(plan, &join, &join_count))
		sl_box_join(st, plan, ev, why);
	else
		sl_box_start(st, plan, jv_array_append(jv_array(), jv_copy(ev)), NULL, why);
	return true;
}

/* Deliveries to everybody who wants it, in chunks (R9): the rest follows as an effect of our own. */
static int deliver_all(
	struct box_step *st, jv ev, const char *only, int64_t after, int64_t until, bool rest, struct sl_why *why)
{
	int given = 0, max = st->eng->limits.fan_out_max;
	box_each(&st->box->lists[BOX_SUBS], it)
	{
		struct box_sub *sub = (struct box_sub *)it;
		if (sub->item.n <= after || sub->item.n > until || !sub->match || sub->wf->starts)
			continue;
		if (max > 0 && given == max) {
			struct sl_msg *more = sl_box_add(st, SL_MSG_EVENT, st->box->id, ev);
			more->event = jv_copy(ev);
			more->workflow = sl_arena_str(st->fx->arena, only);
			more->extra = sl_json_set(jv_object(), "after", jv_number((double)after));
			more->extra = sl_json_set(more->extra, "until", jv_number((double)until));
			break;
		}
		deliver(st, sub, ev, rest || sub->wf->wanting > 1);
		sl_why_result(why, SL_WHY_DELIVERED, sub->wf->id, NULL, sub->inst);
		after = sub->item.n;
		given++;
	}
	return given;
}

static void keep_early(struct box_step *st, jv ev, struct sl_why *why)
{
	const struct sl_limits *limits = &st->eng->limits;
	struct box_list *early = &st->box->lists[BOX_EARLY];
	if (!SL_RULE(early) || limits->early_window_ms <= 0 || limits->early_max <= 0 || st->box->local || st->box->join_workflow) {
		sl_box_why(st, why, ev, SL_WHY_NOBODY);
		return;
	}
	while (early->count >= limits->early_max) {
		struct sl_why full;
		sl_why_init(&full);
		full.note = "too many early events: the oldest goes";
		sl_box_why(st, &full, ((struct box_early *)early->head)->event, SL_WHY_FULL);
		sl_box_item_remove(st->box, BOX_EARLY, early->head);
	}
	sl_box_early_add(st->box, ev, st->now_ms, st->now_ms + limits->early_window_ms);
	sl_box_why(st, why, ev, SL_WHY_EARLY);
}

static void decide(struct box_step *st, jv ev, const char *only)
{
	struct sl_mailbox *box = st->box;
	struct sl_why why;
	int64_t until = box->lists[BOX_SUBS].last_n;
	bool found = false;
	sl_why_init(&why);
	struct starter *starters = starters_of(st, ev, only, &why);
	match_subs(st, ev, only, &why);
	for (struct starter *it = starters; it; it = it->next)
		sl_box_wf(box, it->plan->id)->starts = true;
	found = deliver_all(st, ev, only, 0, until, false, &why) > 0;
	for (struct starter *it = starters; it; it = it->next)
		found |= decide_starter(st, it->plan, ev, &why);
	if (!found)
		keep_early(st, ev, &why);
	else
		sl_box_why(st, &why, ev, sl_why_strongest(&why));
	sl_why_release(&why);
}

void sl_box_decide(struct box_step *st, jv ev, const char *only)
{
	decide(st, ev, only);
	while (st->again) { /* only now: deciding keeps notes in the workflows */
		struct box_again *next = st->again;
		st->again = next->next;
		decide(st, next->event, next->only);
		jv_free(next->event);
	}
}

void sl_box_decide_rest(struct box_step *st, jv ev, const char *only, int64_t after, int64_t until)
{
	struct sl_why why;
	sl_why_init(&why);
	struct starter *starters = starters_of(st, ev, only, &why);
	match_subs(st, ev, only, &why);
	for (struct starter *it = starters; it; it = it->next)
		sl_box_wf(st->box, it->plan->id)->starts = true;
	if (deliver_all(st, ev, only, after, until, true, &why))
		sl_box_why(st, &why, ev, SL_WHY_DELIVERED);
	sl_why_release(&why);
}

/* --- early events --- */

void sl_box_offer_early(struct box_step *st, struct box_sub *sub)
{
	box_each(&st->box->lists[BOX_EARLY], it)
	{
		struct box_early *early = (struct box_early *)it;
		struct sl_why why;
		if (!sl_box_sub_wants(sub, early->event, NULL))
			continue;
		sl_why_init(&why);
		why.note = "was early";
		deliver(st, sub, early->event, false);
		sl_why_result(&why, SL_WHY_DELIVERED, sub->wf->id, NULL, sub->inst);
		sl_box_why(st, &why, early->event, SL_WHY_DELIVERED);
		sl_box_item_remove(st->box, BOX_EARLY, it);
	}
}

void sl_box_expire(struct box_step *st, bool dead)
{
	struct box_list *list = &st->box->lists[BOX_EARLY];
	while (list->head && st->now_ms > ((struct box_early *)list->head)->expires_ms) {
		struct sl_why why;
		sl_why_init(&why);
		why.note = "nobody came for it within the early window";
		sl_box_why(st, &why, ((struct box_early *)list->head)->event, SL_WHY_EXPIRED);
		sl_box_item_remove(st->box, BOX_EARLY, list->head);
	}
	sl_box_join_expire(st, dead);
}
