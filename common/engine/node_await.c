/* Await: what runs once its events are in, and when time runs out (0.8 "Event State", "Callback State", "Switch State"
 * with events, eventRef; A12, A19, A20). */
#include "common/engine/await.h"

static struct sl_frame *action_of(const struct sl_frame *frame)
{
	struct sl_frame *parent = frame->parent;
	return parent && parent->part == SL_PART_NODE && parent->node->kind == SL_NODE_ACTION ? parent : NULL;
}

/* Event data filters, in order of the references. In an action the data are its result, and its own filter merges them.
 */
static bool apply_events(struct sl_run *run, struct sl_frame *frame, const struct sl_alt *alt)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int *events = SL_NEWN(run->fx->arena, int, sl_await_size(&alt->cond) + 1);
	int count = sl_await_events(&alt->cond, events, 0);
	for (int i = 0; i < count; i++) {
		jv item = sl_await_collected(frame, sl_await_name(plan, events[i], text));
		if (!jv_is_valid(item)) {
			jv_free(item);
			continue;
		}
		jv ev = sl_json_get(item, "event");
		jv_free(item);
		jv value = plan->events[events[i]].data_only ? sl_event_data(ev) : jv_copy(ev);
		jv_free(ev);
		if (!action_of(frame)) {
			if (!sl_data_apply(run, frame, &alt->filter, value, NULL))
				return false;
			continue;
		}
		jv selected;
		if (!sl_data_filter(run, frame, alt->filter.select, value, &selected))
			return false;
		sl_node_done(run, selected);
	}
	return true;
}

static enum sl_out bodies(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	for (;;) {
		const struct sl_alt *alt = &await->alts[frame->n];
		struct sl_frame *child;
		if (!apply_events(run, frame, alt))
			return SL_OUT_FAILED;
		if (alt->body) {
			enum sl_out out = sl_node_start(run, frame, alt->body, SL_PART_NODE, (int)frame->n, &child);
			if (out != SL_OUT_DONE)
				return out;
			sl_frame_drop(run, child);
		}
		if (!await->all || frame->n + 1 >= await->alt_count)
			break;
		frame->n++;
	}
	run->next = await->all ? NULL : await->alts[frame->n].next;
	if (action_of(frame))
		return SL_OUT_DONE; /* run->value is the event's */
	return sl_node_done(run, jv_invalid());
}

/* Goes on once everything is in; the result of `before` is merged first, even when the event came first. */
static enum sl_out proceed(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	int alt = sl_await_satisfied(run, frame);
	if (alt < 0 || frame->m == 1)
		return SL_OUT_WAIT;
	sl_frame_timer_clear(run, frame);
	if (frame->token || jv_is_valid(frame->info))
		sl_await_disarm(run, frame);
	if (!await->all)
		sl_await_put_back_but(run, frame, alt);
	frame->phase = AWAIT_BODIES;
	frame->n = alt;
	return bodies(run, frame);
}

static bool is_start(struct sl_run *run, const struct sl_frame *frame)
{
	return frame->node == run->inst->plan->start.await;
}

/* A start state (a command started it, A169) has no end of waiting, but a time between its first and its last event. */
static enum sl_out set_window(struct sl_run *run, struct sl_frame *frame)
{
	int64_t window_ms = run->inst->plan->start.window_ms;
	if (window_ms > 0 && jv_is_valid(frame->own) && !frame->timer)
		sl_frame_timer_set(run, frame, run->now_ms + window_ms);
	return SL_OUT_WAIT;
}

static enum sl_out set_timeout(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_span *span = &frame->node->u.await.timeout;
	int64_t ms;
	if (is_start(run, frame))
		return set_window(run, frame);
	if (!span->given || frame->timer)
		return SL_OUT_WAIT;
	if (!sl_data_span(run, frame, span, &ms))
		return SL_OUT_FAILED;
	sl_frame_timer_set(run, frame, run->now_ms + ms);
	return SL_OUT_WAIT;
}

static enum sl_out before_done(struct sl_run *run, struct sl_frame *frame)
{
	frame->m = 0;
	jv_free(run->value);
	run->value = jv_invalid();
	if (!sl_await_arm(run, frame))
		return SL_OUT_FAILED;
	return proceed(run, frame);
}

static enum sl_out await_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	struct sl_frame *action = action_of(frame);
	struct sl_frame *child;
	enum sl_out out;
	frame->phase = AWAIT_WAITS;
	frame->m = await->before ? 1 : 0;
	if (action && action->node->u.action.async) { /* produces only */
		if (!await->before)
			return sl_node_done(run, jv_invalid());
		frame->m = 0;
		out = sl_node_start(run, frame, await->before, SL_PART_NODE, await->alt_count, &child);
		return out == SL_OUT_DONE ? sl_node_done(run, jv_invalid()) : out;
	}
	if (!sl_await_arm(run, frame))
		return SL_OUT_FAILED;
	if (await->before) {
		out = sl_node_start(run, frame, await->before, SL_PART_NODE, await->alt_count, &child);
		if (out == SL_OUT_DONE) {
			sl_frame_drop(run, child);
			out = before_done(run, frame);
		}
	} else {
		out = proceed(run, frame);
	}
	if (out == SL_OUT_WAIT && frame->phase == AWAIT_WAITS)
		out = set_timeout(run, frame);
	return out;
}

static enum sl_out await_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	const struct sl_await *await = &frame->node->u.await;
	if (out != SL_OUT_DONE)
		return out;
	sl_frame_drop(run, child);
	if (frame->phase == AWAIT_WAITS)
		return before_done(run, frame);
	if (await->all && frame->n + 1 < await->alt_count) {
		frame->n++;
		return bodies(run, frame);
	}
	run->next = await->all ? NULL : await->alts[frame->n].next;
	return sl_node_done(run, jv_invalid());
}

/* A19: no action is performed; A12: an eventRef raises. */
static enum sl_out await_timer(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	if (is_start(run, frame)) { /* what came is void, and the wait begins again */
		sl_frame_clear_own(frame);
		return SL_OUT_WAIT;
	}
	while (frame->first)
		sl_frame_drop(run, frame->first);
	sl_await_disarm(run, frame);
	sl_await_put_back(run, frame);
	if (await->timeout_raises)
		return sl_node_timeout(run, frame, "event");
	run->next = await->timeout_next;
	return sl_node_done(run, jv_invalid());
}

static enum sl_out await_resume(struct sl_run *run, struct sl_frame *frame)
{
	if (frame->phase == AWAIT_BODIES)
		return frame->first ? SL_OUT_WAIT : bodies(run, frame);
	if (!frame->first && (frame->phase == 0 || frame->m == 1))
		return await_enter(run, frame);
	if (!sl_await_arm(run, frame))
		return SL_OUT_FAILED;
	enum sl_out out = frame->first ? SL_OUT_WAIT : proceed(run, frame);
	return out == SL_OUT_WAIT ? set_timeout(run, frame) : out;
}

const struct sl_node_ops sl_ops_await = {await_enter, await_child, await_timer, await_resume};

/* --- deliveries --- */

bool sl_await_offer(struct sl_run *run, jv ev, const char *box, bool multi, int64_t token)
{
	struct sl_frame *root = run->inst->root;
	for (struct sl_frame *frame = root; frame; frame = sl_frame_next(frame, root)) {
		if (frame->part != SL_PART_NODE || frame->node->kind != SL_NODE_AWAIT || frame->phase != AWAIT_WAITS)
			continue;
		if ((token && frame->token != token) || sl_await_satisfied(run, frame) >= 0 ||
			!sl_await_collect(run, frame, ev, box, multi, false))
			continue;
		run->changed = true;
		sl_node_touch(frame);
		sl_corr_remember(run, ev);
		enum sl_out out = proceed(run, frame);
		if (out == SL_OUT_WAIT && frame->phase == AWAIT_WAITS)
			out = set_timeout(run, frame);
		sl_node_climb(run, frame, out);
		return true;
	}
	return false;
}
