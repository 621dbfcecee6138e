/* Scopes and states: filters, handlers and timeout around a body, then the way to the next state. */
#include "common/engine/instance.h"

/* phases of a state */
enum { STATE_INPUT = 1, STATE_BODY, STATE_OUTPUT };

/* --- state --- */

/* The rule of this state that handles run->error, in list order; NULL: none. */
const struct sl_rule *sl_state_rule(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_state *state = &frame->node->u.state;
	if (run->fatal)
		return NULL;
	for (int i = 0; i < state->rule_count; i++)
		if (sl_rule_matches(&state->rules[i], run->error, run->local))
			return state->rules[i].then == SL_THEN_RAISE ? NULL : &state->rules[i];
	return NULL;
}

static enum sl_out leave(struct sl_run *run, struct sl_frame *frame, const struct sl_goto *next, jv data);

/* "Workflow Error Handling": nothing of what failed is merged, the error is known as $WORKFLOW.error. */
static enum sl_out handle(struct sl_run *run, struct sl_frame *frame)
{
	struct sl_instance *inst = run->inst;
	const struct sl_rule *rule = sl_state_rule(run, frame);
	if (!rule)
		return SL_OUT_FAILED;
	while (frame->first)
		sl_frame_drop(run, frame->first);
	jv_free(inst->handled);
	inst->handled = run->error;
	run->error = jv_invalid();
	run->local = false;
	jv_free(run->vars);
	run->vars = jv_invalid();
	inst->dirty = true;
	run->next = rule->then == SL_THEN_GOTO ? rule->next : frame->node->u.state.next;
	if (++run->steps > run->eng->limits.steps_max)
		run->fatal = true;
	return leave(run, frame, run->next, jv_invalid());
}

/* produceEvents go out in list order before the transition takes effect. `data` (taken): the new document, invalid to
 * leave it as it is; it is set only when all went well, so that the way out can be gone again. */
static enum sl_out leave(struct sl_run *run, struct sl_frame *frame, const struct sl_goto *next, jv data)
{
	if (run->fatal) {
		jv_free(data);
		return sl_node_fail(run, frame, SL_CODE_TOO_BIG, 413, "Too many steps",
			"more than %d steps for one input", run->eng->limits.steps_max);
	}
	bool ok = true;
	if (next && next->transform != SL_NO_EXPR) {
		jv input = jv_is_valid(data) ? data : sl_frame_data(frame);
		data = jv_invalid();
		ok = sl_data_eval(run, frame, next->transform, input, &data);
	}
	for (int i = 0; ok && next && i < next->event_count; i++)
		ok = sl_publish(run, frame, &next->events[i], jv_is_valid(data) ? jv_copy(data) : sl_frame_data(frame));
	if (!ok) {
		jv_free(data);
		return SL_OUT_FAILED;
	}
	if (jv_is_valid(data))
		sl_frame_set_data(frame, data);
	sl_frame_timer_clear(run, frame);
	sl_life_state(run, frame, false);
	run->next = next;
	return sl_node_done(run, jv_invalid());
}

/* An error on the way out of a handler is not handled by the same state again. */
static enum sl_out state_output(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_state *state = &frame->node->u.state;
	const struct sl_goto *next = run->next ? run->next : state->next;
	jv data = jv_invalid();
	run->next = NULL;
	frame->phase = STATE_OUTPUT;
	if (state->output != SL_NO_EXPR && !sl_data_filter(run, frame, state->output, sl_frame_data(frame), &data))
		return handle(run, frame);
	enum sl_out out = leave(run, frame, next, data);
	return out == SL_OUT_FAILED ? handle(run, frame) : out;
}

static enum sl_out state_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	if (out == SL_OUT_FAILED)
		return handle(run, frame);
	if (out != SL_OUT_DONE)
		return out;
	sl_frame_drop(run, child);
	return state_output(run, frame);
}

static enum sl_out state_body(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_state *state = &frame->node->u.state;
	struct sl_frame *child;
	frame->phase = STATE_BODY;
	run->next = NULL;
	if (!state->body)
		return state_output(run, frame);
	enum sl_out out = sl_node_start(run, frame, state->body, SL_PART_NODE, 0, &child);
	return out == SL_OUT_WAIT ? SL_OUT_WAIT : state_child(run, frame, child, out);
}

/* The timer is set once the body waits: what ends at once needs none. */
static enum sl_out with_timer(struct sl_run *run, struct sl_frame *frame, enum sl_out out)
{
	const struct sl_span *span = &frame->node->u.state.timeout;
	int64_t ms;
	if (out != SL_OUT_WAIT || !span->given || frame->timer)
		return out;
	if (!sl_data_span(run, frame, span, &ms))
		return handle(run, frame);
	sl_frame_timer_set(run, frame, run->now_ms + ms);
	return SL_OUT_WAIT;
}

static enum sl_out state_enter(struct sl_run *run, struct sl_frame *frame)
{
	frame->phase = STATE_INPUT;
	if (!sl_data_select(run, frame, frame->node->u.state.input))
		return handle(run, frame);
	return with_timer(run, frame, state_body(run, frame));
}

static enum sl_out state_timer(struct sl_run *run, struct sl_frame *frame)
{
	sl_node_timeout(run, frame, "state");
	return handle(run, frame);
}

static enum sl_out state_resume(struct sl_run *run, struct sl_frame *frame)
{
	if (frame->first)
		return with_timer(run, frame, SL_OUT_WAIT);
	if (frame->phase == STATE_BODY)
		return with_timer(run, frame, state_body(run, frame));
	run->next = NULL; /* what an alternative chose is not kept; a failing way out begins again with the body */
	if (frame->phase == STATE_OUTPUT && frame->node->u.state.next)
		return state_output(run, frame);
	if (frame->phase == STATE_OUTPUT)
		return with_timer(run, frame, state_body(run, frame));
	return state_enter(run, frame);
}

const struct sl_node_ops sl_ops_state = {state_enter, state_child, state_timer, state_resume};

/* --- scope --- */

static enum sl_out scope_end(struct sl_run *run, struct sl_frame *frame, const struct sl_goto *next)
{
	if (next && next->end == SL_END_FAIL)
		return sl_node_fail(run, frame, next->error_code ? next->error_code : SL_CODE_INTERNAL, 0, NULL,
			"the workflow ended in failure");
	sl_node_done(run, jv_invalid());
	if (next && next->end == SL_END_TERMINATE) /* A99 */
		return SL_OUT_ENDED;
	return SL_OUT_DONE;
}

enum sl_out sl_scope_from(struct sl_run *run, struct sl_frame *frame, int index)
{
	const struct sl_scope *scope = &frame->node->u.scope;
	for (;;) {
		struct sl_frame *child = sl_frame_new(run->inst, frame, scope->states[index], SL_PART_NODE, index);
		sl_life_transition(run, child->node->u.state.name, NULL);
		sl_life_state(run, child, true);
		enum sl_out out = sl_node_enter(run, child);
		if (out != SL_OUT_DONE)
			return out;
		const struct sl_goto *next = run->next;
		run->next = NULL;
		sl_frame_drop(run, child);
		if (!next || next->kind == SL_GOTO_END || (run->inst->stopping && !frame->parent))
			return scope_end(run, frame, next);
		index = next->target;
	}
}

static enum sl_out scope_enter(struct sl_run *run, struct sl_frame *frame)
{
	return sl_scope_from(run, frame, frame->node->u.scope.start);
}

static enum sl_out scope_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	if (out != SL_OUT_DONE)
		return out;
	const struct sl_goto *next = run->next;
	run->next = NULL;
	sl_frame_drop(run, child);
	if (!next || next->kind == SL_GOTO_END || (run->inst->stopping && !frame->parent))
		return scope_end(run, frame, next);
	return sl_scope_from(run, frame, next->target);
}

const struct sl_node_ops sl_ops_scope = {scope_enter, scope_child, NULL, NULL};
