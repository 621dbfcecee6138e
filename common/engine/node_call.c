/* Calls: expression functions are evaluated here, everything else becomes an action for the executor. */
#include "common/engine/instance.h"
#include "common/base/rules.h"

#include <stdio.h>

static const struct sl_function *function_of(struct sl_run *run, const struct sl_frame *frame)
{
	return &run->inst->plan->functions[frame->node->u.call.function];
}

static struct sl_frame *action_of(const struct sl_frame *frame)
{
	struct sl_frame *parent = frame->parent;
	return parent && parent->part == SL_PART_NODE && parent->node->kind == SL_NODE_ACTION ? parent : NULL;
}

/* The same over all attempts, another one each time the node runs again. */
void sl_call_action_id(struct sl_run *run, const struct sl_frame *frame, char ret[static SL_UUID_TEXT])
{
	char number[24];
	snprintf(number, sizeof(number), "%lld", (long long)(action_of(frame) ? action_of(frame)->m : frame->m));
	sl_id_derive((const char *const[]){"action", run->actor->ns, run->actor->id, number}, 4, ret);
}

void sl_call_cancel(struct sl_run *run, struct sl_frame *frame)
{
	char id[SL_UUID_TEXT];
	sl_call_action_id(run, frame, id);
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_ACTION_CANCEL);
	fx->action = sl_arena_str(run->fx->arena, id);
	fx->instance = run->id;
	fx->token = frame->token;
	fx->attempt = frame->attempt;
	frame->token = 0;
	run->inst->call_count--;
	sl_node_touch(frame);
}

static enum sl_out evaluate(struct sl_run *run, struct sl_frame *frame, jv input)
{
	const struct sl_call *call = &frame->node->u.call;
	jv value;
	/* with arguments the function sees those, else "by default the current state data" */
	if (call->args != SL_NO_EXPR && !sl_data_eval(run, frame, call->args, input, &input))
		return SL_OUT_FAILED;
	if (!sl_data_eval(run, frame, function_of(run, frame)->expr, input, &value))
		return SL_OUT_FAILED;
	return sl_node_done(run, value);
}

/* R8: secrets never come here, so such a call travels as expression and data. */
static bool arguments(struct sl_run *run, struct sl_frame *frame, jv input, jv *ret)
{
	const struct sl_call *call = &frame->node->u.call;
	if (call->uses_secrets) {
		*ret = input;
		return true;
	}
	if (call->args != SL_NO_EXPR)
		return sl_data_eval(run, frame, call->args, input, ret);
	jv_free(input);
	*ret = jv_object();
	return true;
}

static enum sl_out call_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_call *call = &frame->node->u.call;
	struct sl_frame *action = action_of(frame);
	bool async = action && action->node->u.action.async;
	jv input, data;
	char id[SL_UUID_TEXT];
	if (!sl_action_input(run, frame, &input))
		return SL_OUT_FAILED;
	if (function_of(run, frame)->kind == SL_FUNCTION_EXPRESSION && !call->uses_secrets)
		return evaluate(run, frame, input);
	if (!arguments(run, frame, input, &data))
		return SL_OUT_FAILED;
	frame->attempt = action ? action->attempt : 1;
	frame->token = sl_instance_token(run->inst);
	if (!frame->m)
		frame->m = frame->token;
	sl_call_action_id(run, frame, id);
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_ACTION);
	fx->action = sl_arena_str(run->fx->arena, id);
	fx->instance = run->id;
	fx->workflow = run->inst->plan->id;
	fx->plan = run->inst->plan->hash;
	fx->node = frame->node->ptr;
	fx->function = function_of(run, frame)->name;
	fx->attempt = frame->attempt;
	fx->deadline_ms = sl_action_deadline(frame);
	fx->data = data;
	if (call->uses_secrets)
		fx->vars = sl_data_vars(run, frame);
	if (async) { /* its result and its errors are nobody's */
		frame->token = 0;
		return sl_node_done(run, jv_invalid());
	}
	fx->token = frame->token;
	run->inst->call_count++;
	return SL_OUT_WAIT;
}

void sl_call_result(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	struct sl_frame *frame = sl_frame_by_token(run->inst->root, in->token);
	if (!frame || frame->part != SL_PART_NODE || frame->node->kind != SL_NODE_CALL ||
		(frame->attempt != in->attempt && SL_RULE(result_token)))
		return; /* late (R6) */
	run->changed = true;
	frame->token = 0;
	run->inst->call_count--;
	sl_node_touch(frame);
	if (jv_is_valid(in->error)) {
		jv_free(run->error);
		run->error = jv_copy(in->error);
		run->local = false;
		jv where = sl_json_get(run->error, "instance");
		if (!jv_is_valid(where))
			run->error = sl_json_set(run->error, "instance", jv_string(frame->node->ptr));
		jv_free(where);
		sl_node_climb(run, frame, SL_OUT_FAILED);
		return;
	}
	jv value = jv_is_valid(in->data) ? jv_copy(in->data) : jv_null();
	sl_node_climb(run, frame, sl_node_done(run, value));
}

const struct sl_node_ops sl_ops_call = {call_enter, NULL, NULL, NULL};
