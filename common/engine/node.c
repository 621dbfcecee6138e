/* Dispatch over node kinds, and how outcomes climb. */
#include "common/engine/instance.h"

#include "common/base/log.h"
#include <stdarg.h>

static const struct sl_node_ops *const by_kind[] = {[SL_NODE_SCOPE] = &sl_ops_scope,
	[SL_NODE_STATE] = &sl_ops_state,
	[SL_NODE_ACTIONS] = &sl_ops_actions,
	[SL_NODE_ACTION] = &sl_ops_action,
	[SL_NODE_CALL] = &sl_ops_call,
	[SL_NODE_SUBFLOW] = NULL, /* refused at deploy */
	[SL_NODE_AWAIT] = &sl_ops_await,
	[SL_NODE_FORK] = &sl_ops_fork,
	[SL_NODE_EACH] = &sl_ops_each,
	[SL_NODE_SLEEP] = &sl_ops_sleep,
	[SL_NODE_ASSIGN] = &sl_ops_assign,
	[SL_NODE_EMIT] = &sl_ops_emit,
	[SL_NODE_CHOOSE] = &sl_ops_choose,
	[SL_NODE_RAISE] = &sl_ops_raise,
	[SL_NODE_VALIDATE] = NULL,
	[SL_NODE_VARIABLE] = NULL};

static const struct sl_node_ops *ops_of(const struct sl_frame *frame)
{
	if (frame->part == SL_PART_BRANCH)
		return &sl_ops_branch;
	if (frame->part == SL_PART_ITERATION)
		return &sl_ops_iteration;
	return by_kind[frame->node->kind];
}

void sl_node_touch(struct sl_frame *frame)
{
	sl_frame_touch(frame);
}

enum sl_out sl_node_done(struct sl_run *run, jv value)
{
	jv_free(run->value);
	run->value = value;
	return SL_OUT_DONE;
}

static enum sl_out fail_with(struct sl_run *run, const struct sl_frame *frame, jv error)
{
	jv_free(run->error);
	run->error = frame ? sl_json_set(error, "instance", jv_string(frame->node->ptr)) : error;
	return SL_OUT_FAILED;
}

enum sl_out sl_node_fail(struct sl_run *run, const struct sl_frame *frame, const char *code, int status,
	const char *title, const char *fmt, ...)
{
	struct sl_buf detail;
	va_list ap;
	sl_buf_init(&detail);
	va_start(ap, fmt);
	sl_buf_vprintf(&detail, fmt, ap);
	va_end(ap);
	enum sl_out out = fail_with(run, frame, sl_error_new(code, status, title, detail.data));
	sl_buf_release(&detail);
	return out;
}

enum sl_out sl_node_timeout(struct sl_run *run, const struct sl_frame *frame, const char *what)
{
	run->local = false;
	return sl_node_fail(run, frame, SL_CODE_TIMEOUT, 408, "Timeout", "%s timed out", what); /* A09 */
}

enum sl_out sl_node_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_node_ops *ops = ops_of(frame);
	if (++run->steps > run->eng->limits.steps_max) { /* R9; no handler may go round once more */
		run->fatal = true;
		return sl_node_fail(run, frame, SL_CODE_TOO_BIG, 413, "Too many steps",
			"more than %d steps for one input", run->eng->limits.steps_max);
	}
	if (!ops)
		return sl_node_fail(
			run, frame, SL_CODE_INTERNAL, 500, "Not supported", "this kind of node cannot run yet");
	sl_node_touch(frame);
	return ops->enter(run, frame);
}

enum sl_out sl_node_start(struct sl_run *run, struct sl_frame *parent, const struct sl_node *node,
	enum sl_frame_part part, int index, struct sl_frame **ret_child)
{
	*ret_child = sl_frame_new(run->inst, parent, node, part, index);
	return sl_node_enter(run, *ret_child);
}

enum sl_out sl_node_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	sl_node_touch(frame);
	return ops_of(frame)->child(run, frame, child, out);
}

enum sl_out sl_node_timer(struct sl_run *run, struct sl_frame *frame)
{
	sl_node_touch(frame);
	sl_assert(ops_of(frame)->timer);
	return ops_of(frame)->timer(run, frame);
}

enum sl_out sl_node_resume(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_node_ops *ops = ops_of(frame);
	sl_node_touch(frame);
	if (ops->resume)
		return ops->resume(run, frame);
	return frame->first ? SL_OUT_WAIT : sl_node_enter(run, frame);
}

void sl_node_climb(struct sl_run *run, struct sl_frame *frame, enum sl_out out)
{
	while (out != SL_OUT_WAIT) {
		struct sl_frame *parent = frame->parent;
		if (!parent || out == SL_OUT_ENDED) {
			sl_instance_over(run, out);
			return;
		}
		out = sl_node_child(run, parent, frame, out);
		frame = parent;
	}
}
