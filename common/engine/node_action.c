/* Lists of actions, and what surrounds one action: condition, sleeps, attempts, filters (0.8 "Action Definition",
 * "Retries"). */
#include "common/engine/instance.h"

/* phases of an action */
enum { ACTION_SLEEP_BEFORE = 1, ACTION_BODY, ACTION_RETRY_WAIT, ACTION_SLEEP_AFTER };

/* --- a list --- */

/* What a finished action contributes to an iteration's result: merged in order (A72). */
static void contribute(struct sl_run *run, struct sl_frame *list)
{
	jv value = run->value;
	run->value = jv_invalid();
	if (!jv_is_valid(value) || !sl_each_collects(list)) {
		jv_free(value);
		return;
	}
	list->acc = jv_is_valid(list->acc) ? sl_json_merge(list->acc, value) : value;
}

/* n: how many items were started. */
static enum sl_out list_advance(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_actions *actions = &frame->node->u.actions;
	while (frame->n < actions->count && (actions->parallel || !frame->first)) {
		struct sl_frame *child;
		int index = (int)frame->n++;
		enum sl_out out = sl_node_start(run, frame, actions->items[index], SL_PART_NODE, index, &child);
		if (out == SL_OUT_WAIT)
			continue;
		if (out != SL_OUT_DONE)
			return out;
		contribute(run, frame);
		sl_frame_drop(run, child);
	}
	if (frame->first)
		return SL_OUT_WAIT;
	return sl_node_done(run, jv_copy(frame->acc));
}

static enum sl_out list_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	if (out != SL_OUT_DONE)
		return out;
	contribute(run, frame);
	sl_frame_drop(run, child);
	return list_advance(run, frame);
}

static enum sl_out list_resume(struct sl_run *run, struct sl_frame *frame)
{
	return frame->first ? SL_OUT_WAIT : list_advance(run, frame);
}

const struct sl_node_ops sl_ops_actions = {list_advance, list_child, NULL, list_resume};

/* --- one action --- */

int64_t sl_action_deadline(const struct sl_frame *body)
{
	const struct sl_frame *frame = body->parent;
	if (!frame || frame->part != SL_PART_NODE || frame->node->kind != SL_NODE_ACTION ||
		!frame->node->u.action.timeout.given)
		return 0;
	return frame->due_ms;
}

bool sl_action_input(struct sl_run *run, struct sl_frame *body, jv *ret)
{
	struct sl_frame *frame = body->parent;
	jv data = sl_frame_input(body);
	if (frame && frame->part == SL_PART_NODE && frame->node->kind == SL_NODE_AWAIT)
		frame = frame->parent; /* eventRef: the event that is produced before the wait */
	if (frame && frame->part == SL_PART_NODE && frame->node->kind == SL_NODE_ACTION &&
		frame->node->u.action.from != SL_NO_EXPR)
		return sl_data_eval(run, frame, frame->node->u.action.from, data, ret);
	*ret = data;
	return true;
}

static enum sl_out attempt(struct sl_run *run, struct sl_frame *frame);

static const struct sl_rule *rule_of(struct sl_run *run, const struct sl_action *action)
{
	if (run->fatal || action->async)
		return NULL;
	for (int i = 0; i < action->rule_count; i++)
		if (sl_rule_matches(&action->rules[i], run->error, run->local))
			return &action->rules[i];
	return NULL;
}

static enum sl_out raise_exceeded(struct sl_run *run, struct sl_frame *frame, const struct sl_retry *retry)
{
	if (!retry || !retry->exceeded)
		return SL_OUT_FAILED;
	return sl_node_fail(run, frame, retry->exceeded, 0, NULL, "%d attempts failed", frame->attempt);
}

/* An attempt failed with run->error; *ret_again: the next one is due at once. */
static enum sl_out attempt_failed(struct sl_run *run, struct sl_frame *frame, bool *ret_again)
{
	const struct sl_action *action = &frame->node->u.action;
	const struct sl_rule *rule = rule_of(run, action);
	*ret_again = false;
	sl_frame_timer_clear(run, frame);
	if (rule && rule->retry && sl_retry_again(rule->retry, frame->attempt)) {
		double unit = sl_retry_unit(run->eng->seed, run->actor->id, frame->node->ptr, frame->attempt);
		/* unlimited attempts are autoRetries' default policy: its delay grows to a configured bound */
		int64_t cap = rule->retry->attempts_max ? 0 : run->eng->limits.retry_delay_max_ms;
		int64_t ms = sl_retry_delay_ms(rule->retry, frame->attempt, unit, cap);
		sl_life_action(run, frame, "retried");
		while (frame->first)
			sl_frame_drop(run, frame->first);
		run->local = false;
		frame->phase = ACTION_RETRY_WAIT;
		if (ms > 0)
			sl_frame_timer_set(run, frame, run->now_ms + ms);
		*ret_again = ms <= 0;
		return SL_OUT_WAIT;
	}
	sl_life_action(run, frame, "faulted");
	if (rule && rule->then == SL_THEN_CONTINUE) {
		while (frame->first)
			sl_frame_drop(run, frame->first);
		return sl_node_done(run, jv_invalid());
	}
	return rule ? raise_exceeded(run, frame, rule->retry) : SL_OUT_FAILED;
}

static enum sl_out fail_attempt(struct sl_run *run, struct sl_frame *frame)
{
	bool again;
	enum sl_out out = attempt_failed(run, frame, &again);
	return again ? attempt(run, frame) : out;
}

/* The body is done: result filter, then the sleep after (A88). */
static enum sl_out attempt_done(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_action *action = &frame->node->u.action;
	jv value = run->value, used = jv_invalid();
	int64_t ms;
	run->value = jv_invalid();
	sl_frame_timer_clear(run, frame);
	while (frame->first)
		sl_frame_drop(run, frame->first);
	if (jv_is_valid(value) && !action->async) {
		if (!sl_data_apply(run, frame, &action->result, value, &used))
			return SL_OUT_FAILED;
	} else {
		jv_free(value);
	}
	sl_life_action(run, frame, "completed");
	if (action->sleep_after.given) {
		if (!sl_data_span(run, frame, &action->sleep_after, &ms)) {
			jv_free(used);
			return SL_OUT_FAILED;
		}
		if (ms > 0) {
			frame->acc = used;
			frame->phase = ACTION_SLEEP_AFTER;
			sl_frame_timer_set(run, frame, run->now_ms + ms);
			return SL_OUT_WAIT;
		}
	}
	return sl_node_done(run, used);
}

static enum sl_out body_start(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_action *action = &frame->node->u.action;
	struct sl_frame *child;
	int64_t ms;
	frame->phase = ACTION_BODY;
	frame->attempt++;
	if (!frame->m)
		frame->m = sl_instance_token(run->inst); /* names the logical action, whatever the attempt */
	if (action->timeout.given) {
		if (!sl_data_span(run, frame, &action->timeout, &ms))
			return SL_OUT_FAILED;
		frame->due_ms = run->now_ms + ms;
	}
	sl_life_action(run, frame, "started");
	enum sl_out out = sl_node_start(run, frame, action->body, SL_PART_NODE, 0, &child);
	if (out == SL_OUT_WAIT && action->timeout.given)
		sl_frame_timer_set(run, frame, frame->due_ms); /* A10; also for an executor that is lost */
	return out;
}

static enum sl_out attempt(struct sl_run *run, struct sl_frame *frame)
{
	for (;;) {
		bool again;
		enum sl_out out = body_start(run, frame);
		if (out == SL_OUT_DONE)
			out = attempt_done(run, frame);
		if (out != SL_OUT_FAILED)
			return out;
		out = attempt_failed(run, frame, &again);
		if (!again)
			return out;
	}
}

static enum sl_out action_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_action *action = &frame->node->u.action;
	int64_t ms;
	frame->attempt = 0;
	if (action->condition != SL_NO_EXPR) {
		bool yes;
		if (!sl_data_test(run, frame, action->condition, sl_frame_input(frame), &yes))
			return SL_OUT_FAILED;
		if (!yes)
			return sl_node_done(run, jv_invalid());
	}
	if (action->sleep_before.given) {
		if (!sl_data_span(run, frame, &action->sleep_before, &ms))
			return SL_OUT_FAILED;
		if (ms > 0) {
			frame->phase = ACTION_SLEEP_BEFORE;
			sl_frame_timer_set(run, frame, run->now_ms + ms);
			return SL_OUT_WAIT;
		}
	}
	return attempt(run, frame);
}

static enum sl_out action_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	(void)child;
	if (out == SL_OUT_DONE)
		out = attempt_done(run, frame);
	return out == SL_OUT_FAILED ? fail_attempt(run, frame) : out;
}

static enum sl_out sleep_over(struct sl_run *run, struct sl_frame *frame)
{
	jv value = frame->acc;
	frame->acc = jv_invalid();
	return sl_node_done(run, value);
}

static enum sl_out action_timer(struct sl_run *run, struct sl_frame *frame)
{
	switch (frame->phase) {
	case ACTION_BODY:
		while (frame->first)
			sl_frame_drop(run, frame->first);
		sl_node_timeout(run, frame, "action");
		return fail_attempt(run, frame);
	case ACTION_SLEEP_AFTER:
		return sleep_over(run, frame);
	default:
		return attempt(run, frame);
	}
}

static enum sl_out action_resume(struct sl_run *run, struct sl_frame *frame)
{
	if (frame->first) { /* its body is resumed by itself, as a first attempt */
		int64_t ms;
		frame->attempt = 1;
		if (frame->node->u.action.timeout.given &&
			sl_data_span(run, frame, &frame->node->u.action.timeout, &ms))
			sl_frame_timer_set(run, frame, run->now_ms + ms);
		return SL_OUT_WAIT;
	}
	frame->attempt = 0;
	if (frame->phase == ACTION_SLEEP_AFTER)
		return sleep_over(run, frame);
	if (frame->phase == ACTION_BODY || frame->phase == ACTION_RETRY_WAIT)
		return attempt(run, frame);
	return action_enter(run, frame);
}

const struct sl_node_ops sl_ops_action = {action_enter, action_child, action_timer, action_resume};
