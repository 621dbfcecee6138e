/* Fork: branches on copies of the data, joined by how many are done (0.8 "Parallel State", A17, A18, A170). */
#include "common/engine/instance.h"

/* phases of a branch */
enum { BRANCH_RUNS = 1, BRANCH_DONE };

static bool is_done(const struct sl_frame *branch)
{
	return branch->phase == BRANCH_DONE;
}

/* --- the fork --- */

static int done_count(const struct sl_frame *frame)
{
	int count = 0;
	for (const struct sl_frame *branch = frame->first; branch; branch = branch->next)
		count += is_done(branch);
	return count;
}

/* A done branch holds its changes only (all of its data, if they are collected). A17: the others are cancelled. */
static enum sl_out join(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_fork *fork = &frame->node->u.fork;
	jv data = fork->collect ? jv_array() : sl_frame_data(frame);
	for (struct sl_frame *branch = frame->first; branch; branch = branch->next) {
		if (!is_done(branch))
			continue;
		if (fork->collect)
			data = jv_array_append(data, jv_copy(branch->own));
		else if (jv_is_valid(branch->own))
			data = sl_json_merge(data, jv_copy(branch->own));
	}
	while (frame->first)
		sl_frame_drop(run, frame->first);
	if (!fork->collect || !fork->result) {
		sl_frame_set_data(frame, data);
	} else if (!sl_data_apply(run, frame, fork->result, data, NULL)) {
		return SL_OUT_FAILED;
	}
	return sl_node_done(run, jv_invalid());
}

/* n: how many branches were started. */
static enum sl_out fork_advance(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_fork *fork = &frame->node->u.fork;
	while (frame->n < fork->count) {
		struct sl_frame *branch;
		int index = (int)frame->n++;
		enum sl_out out = sl_node_start(run, frame, frame->node, SL_PART_BRANCH, index, &branch);
		if (out == SL_OUT_WAIT || out == SL_OUT_DONE)
			continue;
		out = sl_node_child(run, frame, branch, out);
		if (out != SL_OUT_WAIT)
			return out;
	}
	return done_count(frame) >= fork->need ? join(run, frame) : SL_OUT_WAIT;
}

/* A170: the state hears of it at once, unless it would not handle it and enough others can still be done. */
static enum sl_out branch_failed(struct sl_run *run, struct sl_frame *frame, struct sl_frame *branch)
{
	const struct sl_fork *fork = &frame->node->u.fork;
	struct sl_frame *state = sl_frame_state(frame);
	int left = fork->count - (int)frame->n; /* not started yet */
	for (const struct sl_frame *other = frame->first; other; other = other->next)
		left += other != branch;
	bool handled = !fork->tolerant && state && sl_state_rule(run, state);
	if (run->fatal || handled || (!fork->tolerant && fork->need >= fork->count))
		return SL_OUT_FAILED;
	if (left < fork->need)
		return fork->failed_code
			       ? sl_node_fail(run, frame, fork->failed_code, 0, NULL, "too many branches failed")
			       : SL_OUT_FAILED;
	sl_frame_drop(run, branch);
	run->local = false;
	return SL_OUT_WAIT;
}

static enum sl_out fork_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *branch, enum sl_out out)
{
	if (out == SL_OUT_FAILED)
		return branch_failed(run, frame, branch);
	if (out != SL_OUT_DONE)
		return out;
	return done_count(frame) >= frame->node->u.fork.need ? join(run, frame) : SL_OUT_WAIT;
}

static enum sl_out fork_resume(struct sl_run *run, struct sl_frame *frame)
{
	return frame->first ? SL_OUT_WAIT : fork_advance(run, frame);
}

const struct sl_node_ops sl_ops_fork = {fork_advance, fork_child, NULL, fork_resume};

/* --- a branch --- */

static enum sl_out branch_done(struct sl_run *run, struct sl_frame *frame)
{
	while (frame->first)
		sl_frame_drop(run, frame->first);
	sl_frame_timer_clear(run, frame);
	frame->phase = BRANCH_DONE;
	jv after = sl_frame_data(frame);
	if (!frame->node->u.fork.collect)
		after = frame->written ? sl_json_changes(sl_frame_data(frame->parent), after)
				       : (jv_free(after), jv_invalid());
	if (jv_is_valid(after)) {
		sl_frame_set_own(frame, after);
	} else {
		jv_free(after);
		sl_frame_clear_own(frame);
	}
	jv_free(run->value);
	run->value = jv_invalid();
	run->next = NULL;
	return SL_OUT_DONE;
}

static enum sl_out branch_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	(void)child;
	return out == SL_OUT_DONE ? branch_done(run, frame) : out;
}

static enum sl_out branch_timeout_set(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_span *span = &frame->node->u.fork.branches[frame->index].timeout;
	int64_t ms;
	if (!span->given || frame->timer)
		return SL_OUT_WAIT;
	if (!sl_data_span(run, frame, span, &ms))
		return SL_OUT_FAILED;
	sl_frame_timer_set(run, frame, run->now_ms + ms);
	return SL_OUT_WAIT;
}

static enum sl_out branch_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_branch *branch = &frame->node->u.fork.branches[frame->index];
	struct sl_frame *child;
	frame->phase = BRANCH_RUNS;
	if (!branch->body)
		return branch_done(run, frame);
	enum sl_out out = sl_node_start(run, frame, branch->body, SL_PART_NODE, 0, &child);
	if (out == SL_OUT_WAIT)
		return branch_timeout_set(run, frame);
	return branch_child(run, frame, child, out);
}

static enum sl_out branch_timer(struct sl_run *run, struct sl_frame *frame)
{
	return sl_node_timeout(run, frame, "branch");
}

static enum sl_out branch_resume(struct sl_run *run, struct sl_frame *frame)
{
	if (is_done(frame))
		return SL_OUT_WAIT;
	return frame->first ? branch_timeout_set(run, frame) : branch_enter(run, frame);
}

const struct sl_node_ops sl_ops_branch = {branch_enter, branch_child, branch_timer, branch_resume};
