/* How an instance ends, and what is checked after every step. */
#include "common/engine/instance.h"

#include <stdlib.h>

void sl_instance_answer(struct sl_run *run, const char *command_id, bool ok, const char *reason)
{
	if (!command_id)
		return;
	struct sl_msg *fx = sl_effect_with_id(run, SL_MSG_ANSWER);
	fx->command_id = sl_arena_str(run->fx->arena, command_id);
	fx->instance = run->id;
	fx->ok = ok;
	fx->reason = reason;
	fx->data = sl_json_set(jv_object(), "instance", jv_string(run->id));
}

static void clear_timer(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	if (!inst->timer)
		return;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_TIMER_CANCEL);
	fx->to = fx->instance = run->id;
	fx->token = inst->timer;
	inst->timer = 0;
}

static void tell_parent(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	if (!inst->parent)
		return;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_SUBFLOW_RESULT);
	fx->to = sl_arena_str(run->fx->arena, inst->parent);
	fx->token = inst->parent_token;
	if (inst->status == SL_COMPLETED)
		fx->data = jv_copy(inst->output);
	else
		fx->error = jv_copy(inst->error);
}

/* Whatever the status: nothing is waited for any more, and what was not taken goes back. */
static void ended(struct sl_run *run, enum sl_status status)
{
	struct sl_instance *inst = run->inst;
	inst->status = status;
	inst->ended_ms = run->now_ms;
	inst->expires_ms = run->now_ms + run->eng->limits.retention_ms;
	inst->dirty = true;
	clear_timer(run);
	sl_corr_leave(run);
	tell_parent(run);
	sl_life_ended(run);
	sl_life_transition(run, "", sl_status_text(status));
}

static void set_error(struct sl_instance *inst, jv error)
{
	jv_free(inst->error);
	inst->error = error;
}

/* Keeps all frames: `retry` goes on from them. */
static void fault(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	set_error(inst, run->error);
	run->error = jv_invalid();
	if (inst->root)
		sl_frame_release_waits(run, inst->root);
	ended(run, SL_FAULTED);
}

void sl_instance_fault(struct sl_run *run, jv error)
{
	jv_free(run->error);
	run->error = error;
	fault(run);
}

static void too_big(struct sl_run *run, int64_t bytes)
{
	jv_free(run->error);
	run->error = jv_invalid();
	sl_node_fail(run, NULL, SL_CODE_TOO_BIG, 413, "Too big", "the instance's data take %lld bytes, more than %lld",
		(long long)bytes, (long long)run->eng->limits.state_bytes_max);
	fault(run);
	sl_frame_drop(run, run->inst->root); /* the oversized data go */
}

void sl_instance_cancel(struct sl_run *run, jv error)
{
	struct sl_instance *inst = run->inst;
	set_error(inst, error);
	sl_frame_drop(run, inst->root);
	ended(run, SL_CANCELLED);
}

static void complete(struct sl_run *run, enum sl_out out)
{
	struct sl_instance *inst = run->inst;
	jv data = sl_frame_data(inst->root);
	int64_t bytes = sl_value_bytes(data);
	if (bytes > run->eng->limits.state_bytes_max) {
		jv_free(data);
		too_big(run, bytes);
		return;
	}
	jv_free(inst->output);
	inst->output = data;
	inst->output_dirty = true;
	sl_frame_drop(run, inst->root);
	if (inst->plan->keep_active && out != SL_OUT_ENDED) { /* A100: idles until terminated or timed out */
		inst->status = SL_WAITING;
		return;
	}
	ended(run, SL_COMPLETED);
}

static jv timeout_error(void)
{
	return sl_error_new(SL_CODE_TIMEOUT, 408, "Timeout", "workflow timed out");
}

/* A21, A94: stop the flow, run the runBefore chain to its end, then terminate. */
static void stop_now(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	int before = inst->plan->timeouts.run_before;
	if (before < 0 || inst->timed_out || !inst->root) {
		sl_instance_cancel(run, timeout_error());
		return;
	}
	inst->timed_out = true;
	inst->stopping = false;
	while (inst->root->first)
		sl_frame_drop(run, inst->root->first);
	sl_node_touch(inst->root);
	enum sl_out out = sl_scope_from(run, inst->root, before);
	if (out != SL_OUT_WAIT)
		sl_instance_over(run, out);
}

void sl_instance_timeout(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	inst->timer = 0;
	inst->dirty = true;
	/* a waiting state counts as finished (A21) */
	if (inst->plan->timeouts.interrupt || inst->status == SL_WAITING)
		stop_now(run);
	else
		inst->stopping = true;
}

void sl_instance_over(struct sl_run *run, enum sl_out out)
{
	struct sl_instance *inst = run->inst;
	if (inst->timed_out)
		sl_instance_cancel(run, timeout_error());
	else if (out == SL_OUT_FAILED)
		fault(run);
	else if (inst->stopping)
		stop_now(run);
	else
		complete(run, out);
}

/* --- after a step --- */

/* Only what changed is measured again. */
int64_t sl_instance_measure(struct sl_instance *inst)
{
	for (struct sl_frame *frame = inst->root; frame; frame = sl_frame_next_changed(frame, inst->root)) {
		if (!frame->below)
			continue;
		if (frame->written && !frame->sized)
			frame->own_bytes = sl_value_bytes(frame->own);
		frame->sized = true;
		int64_t bytes = (frame->written ? frame->own_bytes : 0) + frame->slots.bytes;
		if (jv_is_valid(frame->acc))
			bytes += sl_value_bytes(frame->acc);
		inst->data_bytes += bytes - frame->counted;
		frame->counted = bytes;
	}
	return inst->data_bytes;
}

void sl_instance_settle(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	if (sl_instance_ended(inst))
		return;
	int64_t bytes = sl_instance_measure(inst);
	if (bytes > run->eng->limits.state_bytes_max) {
		too_big(run, bytes);
		return;
	}
	inst->status = inst->call_count ? SL_RUNNING : SL_WAITING;
}
