/* The instance as an actor: which input finds what. */
#include "common/engine/instance.h"

#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/engine/why.h"
#include <stdlib.h>
#include <string.h>

struct sl_instance *sl_instance_new(struct sl_plan *plan, const struct sl_limits *limits)
{
	struct sl_instance *inst = calloc(1, sizeof(*inst));
	sl_assert(inst);
	inst->plan = sl_plan_ref(plan);
	inst->next_token = 1;
	inst->bindings = jv_object();
	inst->handed = inst->handled = inst->error = inst->output = inst->rest = jv_invalid();
	inst->inbox_end = &inst->inbox;
	inst->dirty = true;
	sl_ring_init(&inst->events, limits->ring_max);
	sl_ring_init(&inst->effects, limits->effect_ring_max);
	sl_map_init(&inst->deleted);
	return inst;
}

void sl_instance_free(struct sl_instance *inst)
{
	if (!inst)
		return;
	sl_frame_free(inst, inst->root);
	for (struct sl_inbox_item *item = inst->inbox, *next; item; item = next) {
		next = item->next;
		sl_inbox_item_free(item);
	}
	for (int i = 0; i < inst->sub_count; i++) {
		free(inst->subs[i].box);
		jv_free(inst->subs[i].key);
	}
	for (int i = 0; i < inst->transition_cap; i++) {
		free(inst->transitions[i].state);
		free(inst->transitions[i].cause);
	}
	free(inst->subs);
	free(inst->transitions);
	free(inst->traceparent);
	free(inst->command_id);
	free(inst->retry_command);
	free(inst->parent);
	free(inst->claim_box);
	jv_free(inst->bindings);
	jv_free(inst->handed);
	jv_free(inst->handled);
	jv_free(inst->error);
	jv_free(inst->output);
	jv_free(inst->rest);
	sl_ring_release(&inst->events);
	sl_ring_release(&inst->effects);
	sl_map_release(&inst->deleted, NULL);
	sl_plan_unref(inst->plan);
	free(inst);
}

bool sl_instance_ended(const struct sl_instance *inst)
{
	return inst->status == SL_COMPLETED || inst->status == SL_FAULTED || inst->status == SL_CANCELLED;
}

int64_t sl_instance_token(struct sl_instance *inst)
{
	inst->dirty = true;
	return inst->next_token++;
}

void sl_instance_delete(struct sl_instance *inst, const char *name)
{
	sl_map_set(&inst->deleted, name, &inst->deleted);
}

size_t sl_instance_bytes(const struct sl_instance *inst)
{
	size_t bytes = sizeof(*inst) + (size_t)inst->inbox_bytes * 2 + sl_ring_bytes(&inst->events) +
		       sl_ring_bytes(&inst->effects);
	bytes += (size_t)inst->transition_cap * 96 + (size_t)inst->inbox_count * sizeof(struct sl_inbox_item);
	return bytes + (size_t)inst->frame_count * sizeof(struct sl_frame) + (size_t)inst->data_bytes * 3;
}

/* --- answers to deliveries that cannot be taken --- */

/* Under an id that derives from the delivery's: a repeated delivery comes back as the same return. */
static void give_back(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	if (!in->box || !SL_RULE(give_back))
		return;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_RETURN);
	fx->to = sl_arena_str(run->fx->arena, in->box);
	fx->workflow = run->inst ? run->inst->plan->id : sl_arena_str(run->fx->arena, in->workflow);
	fx->token = in->token;
	fx->multi = in->multi;
	fx->event = jv_copy(in->event);
	fx->time_ms = in->time_ms; /* one id, one content */
	if (in->id) {
		char id[SL_UUID_TEXT];
		sl_id_derive((const char *const[]){"return", in->id}, 2, id);
		fx->id = sl_arena_str(run->fx->arena, id);
	}
}

/* The mailbox granted a claim that nobody uses any more. */
static void give_up_claim(struct sl_run *run)
{
	if (!run->in->ok || !run->in->from)
		return;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_UNSUBSCRIBE);
	fx->to = sl_arena_str(run->fx->arena, run->in->from);
	fx->workflow = run->inst ? run->inst->plan->id : sl_arena_str(run->fx->arena, run->in->workflow);
}

static void event_lost(struct sl_run *run, const char *note)
{
	struct sl_why why;
	sl_why_init(&why);
	why.note = note;
	sl_effects_add(run->fx, SL_MSG_WHY)->data = sl_why_take(&why, run->id, run->in->event, "ended");
	sl_why_release(&why);
}

/* Inputs for an instance that does not exist (any more). */
static void unknown(struct sl_run *run)
{
	switch (run->in->kind) {
	case SL_MSG_DELIVER:
		give_back(run);
		break;
	case SL_MSG_EVENT:
		event_lost(run, "workflowinstanceid names an instance that does not exist");
		break;
	case SL_MSG_CLAIM_ANSWER:
		give_up_claim(run);
		break;
	default:
		sl_instance_answer(run, run->in->command_id, false, "unknown-instance");
	}
}

/* --- start --- */

static void take_start_events(struct sl_run *run)
{
	if (jv_get_kind(run->in->events) != JV_KIND_ARRAY)
		return;
	jv_array_foreach(run->in->events, i, ev)
	{
		const char *trace = sl_json_str(ev, "traceparent");
		if (trace && !run->inst->traceparent) {
			run->inst->traceparent = strdup(trace);
			sl_assert(run->inst->traceparent);
		}
		if (run->in->kind != SL_MSG_FAULT) /* given up, not taken: after `retry` it may come redriven */
			sl_corr_remember(run, ev);
		sl_corr_bind(run, ev);
		sl_inbox_add(run, ev, NULL, false, true);
	}
}

static void set_workflow_timer(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	const struct sl_span *span = &inst->plan->timeouts.workflow;
	if (sl_instance_ended(inst) || !inst->root || !span->given || span->expr != SL_NO_EXPR || inst->timer)
		return;
	inst->timer = sl_instance_token(inst);
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_TIMER_SET);
	fx->to = fx->instance = run->id;
	fx->token = inst->timer;
	fx->due_ms = inst->created_ms + span->ms > run->now_ms ? inst->created_ms + span->ms : run->now_ms + span->ms;
}

static char *dup_or_null(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void begin(struct sl_run *run, struct sl_plan *plan)
{
	const struct sl_msg *in = run->in;
	struct sl_instance *old = run->actor->inst;
	struct sl_instance *inst = sl_instance_new(plan, &run->eng->limits);
	if (old) { /* a forgotten one of the same id: what is stored of it goes first */
		sl_map_each(&old->deleted, e) sl_instance_delete(inst, e->key);
		sl_instance_free(old);
	}
	run->actor->inst = run->inst = inst;
	run->changed = true;
	inst->created_ms = inst->now_ms = run->now_ms;
	inst->command_id = dup_or_null(in->command_id);
	inst->parent = dup_or_null(in->parent);
	inst->parent_token = in->parent_token;
	inst->traceparent = dup_or_null(in->traceparent);
	sl_instance_answer(run, in->command_id, true, NULL);
	sl_life_started(run);
	sl_corr_started(run);
	take_start_events(run);
	struct sl_frame *root = sl_frame_new(inst, NULL, plan->root, SL_PART_NODE, 0);
	bool given = jv_is_valid(in->data) && jv_get_kind(in->data) != JV_KIND_NULL;
	sl_frame_set_own(root, given ? jv_copy(in->data) : jv_object());
	if (in->kind == SL_MSG_FAULT) { /* R7: nothing of it may run; its start events are in the dead letter */
		sl_inbox_drop_starts(run);
		sl_instance_fault(run, jv_copy(in->error));
		return;
	}
	sl_corr_eager(run);
	enum sl_out out = sl_node_enter(run, root);
	sl_inbox_drop_starts(run);
	if (out != SL_OUT_WAIT)
		sl_instance_over(run, out);
	set_workflow_timer(run);
}

static int start(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	struct sl_instance *inst = run->actor->inst;
	struct sl_plan *plan;
	if (inst && !inst->gone) { /* the same command again was answered already */
		if (in->command_id && (!inst->command_id || strcmp(inst->command_id, in->command_id) != 0))
			sl_instance_answer(run, in->command_id, false, "exists");
		return 0;
	}
	if (in->plan) {
		plan = sl_plans_by_hash(run->eng->plans, run->actor->ns, in->plan);
		if (!plan)
			return SL_ENOTFOUND;
	} else {
		plan = in->workflow ? sl_plans_current(run->eng->plans, run->actor->ns, in->workflow, in->version)
				    : NULL;
		if (!plan) {
			sl_instance_answer(run, in->command_id, false, "unknown-workflow");
			return 0;
		}
	}
	begin(run, plan);
	return 0;
}

/* --- events --- */

static void take_event(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	struct sl_instance *inst = run->inst;
	const char *box = in->kind == SL_MSG_DELIVER ? in->box : NULL;
	bool from_actor = in->kind == SL_MSG_DELIVER && in->id && in->from;
	uint64_t effect = from_actor ? sl_ring_mark_text(in->id) : 0;
	/* taken or kept before; the ring of events is shorter and may have forgotten it */
	bool known = from_actor && SL_RULE(inst_effects) && sl_ring_has(&inst->effects, effect);
	if (jv_get_kind(in->event) != JV_KIND_OBJECT)
		return;
	if (sl_instance_ended(inst)) {
		if (in->kind == SL_MSG_EVENT)
			event_lost(run, "the instance that workflowinstanceid names has ended");
		else if (!sl_corr_seen(run, in->event) && !known)
			give_back(run);
		return;
	}
	if (known || (SL_RULE(inst_events) && sl_corr_seen(run, in->event)))
		return;
	/* unkeyed deliveries are never kept; late ones name a token that nobody has */
	if (!sl_await_offer(run, in->event, in->token ? NULL : box, in->multi, in->token) && !in->token) {
		/* what an inbox that is full refused was not taken: it may come again, redriven from the dead letter */
		bool kept = SL_RULE(inbox) && sl_inbox_add(run, jv_copy(in->event), box, in->multi, false);
		if (kept || !SL_RULE(inbox))
			sl_corr_remember(run, in->event);
		if (kept)
			sl_corr_why(run, in->event, "inbox");
		run->changed = true;
	}
	if (run->changed && from_actor)
		sl_ring_add(&inst->effects, effect);
}

/* --- timers, commands --- */

static void take_timer(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	if (sl_instance_ended(inst) || !run->in->token)
		return;
	if (run->in->token == inst->timer) {
		run->changed = true;
		sl_instance_timeout(run);
		return;
	}
	struct sl_frame *frame = sl_frame_by_timer(inst->root, run->in->token);
	if (!frame)
		return; /* late (R6) */
	run->changed = true;
	frame->timer = 0;
	sl_node_climb(run, frame, sl_node_timer(run, frame));
}

/* R6: a routed record may come twice. A command is known by its position, from which its id derives; its first answer stands. */
static bool command_again(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	bool command = in->kind == SL_MSG_CANCEL || in->kind == SL_MSG_RETRY || in->kind == SL_MSG_PURGE;
	return command && in->id && !sl_ring_add(&run->inst->effects, sl_ring_mark_text(in->id));
}

static void take_cancel(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	if (sl_instance_ended(run->inst)) {
		sl_instance_answer(run, in->command_id, false, "ended");
		return;
	}
	run->changed = true;
	sl_instance_cancel(run,
		sl_error_new(SL_CODE_CANCELLED, 0, "Cancelled", in->reason ? in->reason : "cancelled by a command"));
	sl_instance_answer(run, in->command_id, true, NULL);
}

static void take_purge(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	if (!sl_instance_ended(inst) || inst->retrying) {
		sl_instance_answer(run, run->in->command_id, false, "running");
		return;
	}
	sl_instance_answer(run, run->in->command_id, true, NULL);
	sl_instance_forget(inst);
}

static void take_sweep(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	if (sl_instance_ended(inst) && inst->expires_ms && run->now_ms >= inst->expires_ms && !inst->retrying)
		sl_instance_forget(inst);
}

/* R7: stepping an input of this instance ended the process, or would have. */
static void take_fault(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	const char *kind = sl_json_str(run->in->extra, "kind");
	if (sl_instance_ended(inst) && inst->retrying && kind && sl_msg_kind_of(kind) == SL_MSG_CLAIM_ANSWER) {
		sl_instance_answer(run, inst->retry_command, false, "internal");
		free(inst->retry_command);
		inst->retry_command = NULL;
		inst->retrying = false;
		run->changed = true;
		give_up_claim(run);
	}
	sl_instance_answer(run, run->in->command_id, false, "internal");
	if (sl_instance_ended(inst))
		return;
	run->changed = true;
	sl_instance_fault(run, jv_copy(run->in->error));
}

/* A fault stands for a start where that was given up: then the instance comes to be, already faulted. */
static bool is_start(const struct sl_msg *in)
{
	const char *kind = in->kind == SL_MSG_FAULT ? sl_json_str(in->extra, "kind") : NULL;
	return in->kind == SL_MSG_START || (kind && sl_msg_kind_of(kind) == SL_MSG_START);
}

static void dispatch(struct sl_run *run)
{
	switch (run->in->kind) {
	case SL_MSG_DELIVER:
	case SL_MSG_EVENT:
		take_event(run);
		break;
	case SL_MSG_RESULT:
		if (!sl_instance_ended(run->inst))
			sl_call_result(run);
		break;
	case SL_MSG_TIMER:
		take_timer(run);
		break;
	case SL_MSG_CANCEL:
		take_cancel(run);
		break;
	case SL_MSG_RETRY:
		sl_instance_retry(run);
		set_workflow_timer(run);
		break;
	case SL_MSG_CLAIM_ANSWER:
		if (run->inst->retrying)
			sl_instance_claim_answer(run);
		else
			give_up_claim(run);
		set_workflow_timer(run);
		break;
	case SL_MSG_PURGE:
		take_purge(run);
		break;
	case SL_MSG_SWEEP:
		take_sweep(run);
		break;
	case SL_MSG_FAULT:
		take_fault(run);
		break;
	default:
		sl_instance_answer(run, run->in->command_id, false, "not-supported");
	}
}

/* --- the step --- */

static void finish(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	const char *trace = run->in->traceparent;
	if (inst && run->changed && !inst->gone) {
		if (!sl_instance_ended(inst))
			sl_corr_eager(run);
		sl_instance_settle(run);
		inst->now_ms = run->now_ms;
		inst->dirty = true;
		if (!trace)
			trace = sl_arena_str(run->fx->arena, inst->traceparent);
	}
	for (int i = run->fx_first; i < run->fx->count && trace; i++)
		if (!run->fx->items[i].traceparent)
			run->fx->items[i].traceparent = trace;
	jv_free(run->value);
	jv_free(run->error);
	jv_free(run->vars);
}

int sl_instance_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx)
{
	struct sl_run run = {
		.eng = eng, .actor = actor, .in = in, .pos = pos, .now_ms = now_ms, .fx = fx, .fx_first = fx->count};
	struct sl_instance *inst = actor->inst && !actor->inst->gone ? actor->inst : NULL;
	int err = 0;
	run.id = sl_arena_str(fx->arena, actor->id);
	run.value = run.error = run.vars = jv_invalid();
	/* R11: never back, and never before a fired timer's due time */
	if (inst && inst->now_ms > run.now_ms && SL_RULE(time_forward))
		run.now_ms = inst->now_ms;
	if (in->kind == SL_MSG_TIMER && in->due_ms > run.now_ms && SL_RULE(timer_due))
		run.now_ms = in->due_ms;
	run.inst = inst;
	if (is_start(in))
		err = start(&run);
	else if (!inst)
		unknown(&run);
	else if (!command_again(&run))
		dispatch(&run);
	finish(&run);
	return err;
}
