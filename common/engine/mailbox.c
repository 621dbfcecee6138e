/* The mailbox's step: recognises duplicates (R6), keeps time (R11) and gives each kind of input to its handler. */
#include "common/engine/mailbox_int.h"
#include "common/base/rules.h"

#include "common/model/event.h"
#include <string.h>

/* Sweeping an old join or an empty mailbox is looked at again after this, when idle_ms is not set. */
#define IDLE_MS_DEFAULT 3600000

static bool has_contents(const struct sl_mailbox *box)
{
	return box->lists[BOX_SUBS].count || box->lists[BOX_JOINS].count || box->lists[BOX_EARLY].count ||
	       box->claim_count;
}

/* When to look at it again: the first early event or member past its time; an empty mailbox, or joins without a window
 * (their workflow may have gone), when it was idle long enough. */
void sl_box_reckon(struct sl_mailbox *box)
{
	int64_t idle = sl_json_int(box->header.obj, "idle", 0), expires = 0;
	if (box->lists[BOX_EARLY].head)
		expires = ((struct box_early *)box->lists[BOX_EARLY].head)->expires_ms + 1;
	box_each(&box->lists[BOX_JOINS], it)
	{
		int64_t at = ((struct box_join *)it)->expires_ms;
		at = at ? at + 1 : idle;
		expires = !expires || at < expires ? at : expires;
	}
	box->expires_ms = has_contents(box) ? expires : idle;
}

/* --- the inputs --- */

/* The instance gives up its subscriptions (token 0: all of them) and, when it ends, its claim. */
static void forget(struct sl_mailbox *box, const char *inst, int64_t token)
{
	for (struct box_sub *sub = sl_box_subs_of(box, inst), *next; sub; sub = next) {
		next = sub->same;
		if (!token || sub->token == token)
			sl_box_unsub(box, sub);
	}
	sl_map_each(&box->workflows, e)
	{
		const char *holder = sl_box_claim_of(e->value);
		if (holder && strcmp(holder, inst) == 0)
			sl_box_claim(box, e->value, NULL);
	}
}

static jv wants_of(const struct sl_msg *in)
{
	return jv_get_kind(in->wants) == JV_KIND_ARRAY ? jv_copy(in->wants) : jv_array();
}

static void on_event(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	struct sl_why why;
	bool more = jv_get_kind(in->extra) == JV_KIND_OBJECT && in->from && strcmp(in->from, st->box->id) == 0;
	if (more) {
		sl_box_decide_rest(st, in->event, in->workflow, sl_json_int(in->extra, "after", 0),
			sl_json_int(in->extra, "until", 0));
		return;
	}
	if (!sl_ring_add(&st->box->events, sl_box_event_mark(in->event)) && SL_RULE(box_events)) {
		sl_why_init(&why);
		sl_box_why(st, &why, in->event, SL_WHY_DUPLICATE);
		return;
	}
	sl_box_decide(st, in->event, NULL);
}

static void on_subscribe(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	struct box_sub *sub = sl_box_sub(st->box, in->from, in->workflow ? in->workflow : "", in->token, wants_of(in));
	if (sub)
		sl_box_offer_early(st, sub);
}

/* Unsubscribe and hand-back are one: no event can come between them. What is handed back passes the ring: it was seen
 * here before. */
static void on_unsubscribe(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	forget(st->box, in->from, in->token);
	if (jv_get_kind(in->events) != JV_KIND_ARRAY || st->box->local)
		return;
	jv_array_foreach(in->events, i, ev)
	{
		if (jv_get_kind(ev) == JV_KIND_OBJECT)
			sl_box_decide(st, ev, in->workflow ? in->workflow : "");
		jv_free(ev);
	}
}

/* Decided again as if it had just come, but only for the workflow that gave it back, and not if others of it had it
 * too. */
static void on_return(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	struct sl_why why;
	forget(st->box, in->from, in->token);
	if (in->token || st->box->local || jv_get_kind(in->event) != JV_KIND_OBJECT)
		return;
	if (in->multi) {
		sl_why_init(&why);
		why.note = "came back from an ended instance; others of the workflow got it too";
		sl_box_why(st, &why, in->event, SL_WHY_SEVERAL);
		return;
	}
	sl_box_decide(st, in->event, in->workflow ? in->workflow : "");
}

/* continueAs: the successor takes the place of its predecessor. If it is of another workflow, the claim of the old one
 * ends. */
static void on_transfer(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	struct sl_mailbox *box = st->box;
	const char *workflow = in->workflow ? in->workflow : "";
	if (!in->successor)
		return;
	bool found = sl_box_subs_of(box, in->from) != NULL;
	for (struct box_sub *sub; (sub = sl_box_subs_of(box, in->from)) != NULL;)
		sl_box_sub_rename(box, sub, in->successor, workflow, jv_copy(in->wants));
	sl_map_each(&box->workflows, e)
	{
		const char *holder = sl_box_claim_of(e->value);
		if (holder && strcmp(holder, in->from) == 0)
			sl_box_claim(box, e->value, NULL);
		else
			continue;
		struct box_wf *wf = sl_box_wf(box, workflow);
		if (!sl_box_claim_of(wf))
			sl_box_claim(box, wf, in->successor);
		break;
	}
	struct box_sub *sub = sl_box_subs_of(box, in->successor);
	if (!found)
		sub = sl_box_sub(box, in->successor, workflow, 0, wants_of(in));
	if (sub)
		sl_box_offer_early(st, sub);
}

/* A faulted instance asks to live again: only while no other instance of its workflow lives under this key. */
static void on_claim(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	struct sl_mailbox *box = st->box;
	struct box_wf *wf = sl_box_wf(box, in->workflow ? in->workflow : "");
	const char *holder = sl_box_claim_of(wf);
	struct box_sub *sub = NULL;
	bool ok = !holder || strcmp(holder, in->from) == 0;
	box_each(&box->lists[BOX_SUBS], it)
	{
		const struct box_sub *other = (const struct box_sub *)it;
		if (other->wf == wf && strcmp(other->inst, in->from) != 0)
			ok = false;
	}
	if (ok) {
		forget(box, in->from, 0);
		sl_box_claim(box, wf, in->from);
		sub = sl_box_sub(box, in->from, wf->id, 0, wants_of(in));
	}
	struct sl_msg *answer = sl_box_add(st, SL_MSG_CLAIM_ANSWER, in->from, jv_invalid());
	answer->ok = ok;
	answer->box = sl_arena_str(st->fx->arena, box->id);
	answer->workflow = sl_arena_str(st->fx->arena, wf->id);
	answer->command_id = sl_arena_str(st->fx->arena, in->command_id);
	if (sub)
		sl_box_offer_early(st, sub);
}

static void dispatch(struct box_step *st)
{
	switch (st->in->kind) {
	case SL_MSG_EVENT:
		on_event(st);
		break;
	case SL_MSG_SUBSCRIBE:
		on_subscribe(st);
		break;
	case SL_MSG_UNSUBSCRIBE:
		on_unsubscribe(st);
		break;
	case SL_MSG_RETURN:
		on_return(st);
		break;
	case SL_MSG_TRANSFER:
		on_transfer(st);
		break;
	case SL_MSG_CLAIM:
		on_claim(st);
		break;
	default:
		break;
	}
}

/* --- the step --- */

static bool for_mailbox(const struct sl_msg *in)
{
	switch (in->kind) {
	case SL_MSG_EVENT:
		return jv_get_kind(in->event) == JV_KIND_OBJECT;
	case SL_MSG_SUBSCRIBE:
	case SL_MSG_UNSUBSCRIBE:
	case SL_MSG_RETURN:
	case SL_MSG_TRANSFER:
	case SL_MSG_CLAIM:
		return in->from != NULL;
	case SL_MSG_SWEEP:
		return true;
	default:
		return false;
	}
}

/* R6. A local mailbox meets instances of its own partition only, whose effects never travel: no ids to remember. */
static bool seen_before(struct box_step *st)
{
	const struct sl_msg *in = st->in;
	struct sl_mailbox *box = st->box;
	struct sl_why why;
	if (in->from && in->id && !box->local && !sl_ring_add(&box->effects, sl_ring_mark_text(in->id)) && SL_RULE(box_effects))
		return true;
	if (in->kind != SL_MSG_EVENT || in->from || !in->origin_topic || in->origin_partition < 0)
		return false;
	if (sl_box_origin(box, in->origin_topic, in->origin_partition, in->origin_offset) || !SL_RULE(box_origin))
		return false;
	sl_why_init(&why);
	why.note = "this record was routed before";
	sl_box_why(st, &why, in->event, SL_WHY_DUPLICATE);
	return true;
}

static void create(struct box_step *st)
{
	struct sl_mailbox *box = st->box;
	sl_ring_init(&box->events, st->eng->limits.ring_max); /* empty: no memory to free */
	sl_ring_init(&box->effects, st->eng->limits.effect_ring_max);
	box->exists = true;
	sl_box_header(box, "created", jv_number((double)st->now_ms));
}

static int64_t idle_ms(const struct sl_engine *eng)
{
	return eng->limits.idle_ms > 0 ? eng->limits.idle_ms : IDLE_MS_DEFAULT;
}

/* Something changed: the time is kept (R11) and the next look is set. */
static void changed(struct box_step *st)
{
	struct sl_mailbox *box = st->box;
	box->now_ms = st->now_ms;
	box->gone = false;
	sl_box_header(box, "now", jv_number((double)st->now_ms));
	sl_box_header(box, "idle", jv_number((double)(st->now_ms + idle_ms(st->eng))));
	sl_box_reckon(box);
}

static void sweep(struct box_step *st)
{
	struct sl_mailbox *box = st->box;
	if (!box->exists || box->gone)
		return;
	int64_t idle = sl_json_int(box->header.obj, "idle", 0);
	sl_box_expire(st, true);
	if (!has_contents(box) && st->now_ms >= idle) {
		box->gone = true;
		return;
	}
	/* What expires is explained, so an effect tells. Joins without a window are looked at again later. */
	if (st->fx->count != st->first || (box->expires_ms && st->now_ms >= box->expires_ms))
		changed(st);
}

int sl_mailbox_step(const struct sl_engine *eng, struct sl_mailbox *box, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx)
{
	struct box_step st = {.eng = eng, .box = box, .in = in, .pos = pos, .fx = fx, .first = fx->count};
	st.now_ms = now_ms > box->now_ms ? now_ms : box->now_ms;
	if (!for_mailbox(in))
		return 0;
	if (in->kind == SL_MSG_SWEEP) {
		sweep(&st);
		return 0;
	}
	/* Nobody waits here: an event leaves no trace, nor does who leaves. Most local mailboxes are like that most of
	 * the time. */
	if (box->local && !box->lists[BOX_SUBS].count && in->kind != SL_MSG_SUBSCRIBE)
		return 0;
	if (!box->exists)
		create(&st);
	if (seen_before(&st))
		return 0;
	if (jv_get_kind(in->key) == JV_KIND_OBJECT)
		sl_box_learn_key(box, jv_copy(in->key));
	else if (in->kind == SL_MSG_EVENT && in->workflow && !in->from && !box->key_names && !box->join_workflow &&
		 !box->local)
		sl_box_join_of(box, in->workflow);
	sl_box_expire(&st, false);
	dispatch(&st);
	changed(&st);
	return 0;
}
