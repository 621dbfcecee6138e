/* The second life of a faulted instance: `retry` (design section 5: it asks its mailbox first). */
#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/engine/instance.h"

#include "common/engine/plans.h"
#include <stdlib.h>
#include <string.h>

/* The mailbox where instances of this workflow must not meet another: where it was started, or would have been. */
static const struct sl_subscription *claim_sub(const struct sl_instance *inst)
{
	const struct sl_start_events *starts = &inst->plan->start;
	for (int i = 0; i < inst->sub_count && inst->claim_box; i++)
		if (strcmp(inst->subs[i].box, inst->claim_box) == 0)
			return &inst->subs[i];
	for (int i = 0; i < inst->sub_count && starts->count > 0 && starts->common_count > 0; i++) {
		jv key = inst->subs[i].key;
		int same = 0;
		for (int k = 0; k < starts->common_count; k++)
			same += sl_json_str(key, starts->common[k]) != NULL;
		if (same == starts->common_count && jv_get_kind(key) == JV_KIND_OBJECT &&
			jv_object_length(jv_copy(key)) == same)
			return &inst->subs[i];
	}
	return NULL;
}

/* First the frames with children, from the top: their timers count anew. Then each frame that stands alone goes on. */
static void resume_frames(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	int count = 0, inner = 0;
	for (struct sl_frame *frame = inst->root; frame; frame = sl_frame_next(frame, inst->root))
		count++;
	unsigned *serials = SL_NEWN(run->fx->arena, unsigned, count);
	count = 0;
	for (struct sl_frame *frame = inst->root; frame; frame = sl_frame_next(frame, inst->root))
		if (frame->first)
			serials[count++] = frame->serial;
	inner = count;
	for (struct sl_frame *frame = inst->root; frame; frame = sl_frame_next(frame, inst->root))
		if (!frame->first)
			serials[count++] = frame->serial;
	for (int i = 0; i < count && !sl_instance_ended(inst); i++) {
		struct sl_frame *frame = sl_frame_by_serial(inst->root, serials[i]);
		if (!frame || (i >= inner && frame->first))
			continue;
		sl_node_climb(run, frame, sl_node_resume(run, frame));
	}
}

static void revive(struct sl_run *run, const char *subscribed)
{
	struct sl_instance *inst = run->inst;
	run->changed = true;
	inst->status = SL_RUNNING;
	inst->ended_ms = inst->expires_ms = 0;
	inst->stopping = inst->timed_out = false;
	jv_free(inst->error);
	inst->error = jv_invalid();
	inst->dirty = true;
	struct sl_frame *state = inst->root->first;
	sl_life_transition(run, state && state->node->kind == SL_NODE_STATE ? state->node->u.state.name : "", NULL);
	sl_corr_resubscribe(run, subscribed);
	resume_frames(run);
}

void sl_instance_retry(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	const char *refused = inst->status != SL_FAULTED ? "not-faulted"
			      : inst->retrying		 ? "retrying"
			      : !inst->root		 ? "no-data"
							 : NULL;
	if (refused) {
		sl_instance_answer(run, run->in->command_id, false, refused);
		return;
	}
	const struct sl_subscription *sub = claim_sub(inst);
	if (!sub || !SL_RULE(retry_claim)) {
		sl_instance_answer(run, run->in->command_id, true, NULL);
		revive(run, NULL);
		return;
	}
	run->changed = true;
	inst->retrying = true;
	inst->dirty = true;
	free(inst->retry_command);
	inst->retry_command = run->in->command_id ? strdup(run->in->command_id) : NULL;
	sl_assert(!inst->retry_command == !run->in->command_id);
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_CLAIM);
	fx->to = sl_arena_str(run->fx->arena, sub->box);
	fx->workflow = inst->plan->id;
	fx->plan = inst->plan->hash;
	fx->key = jv_copy(sub->key);
	fx->wants = sub->set < 0 ? jv_array()
				 : sl_plan_wants(inst->plan, (const char *const *)inst->plan->sets[sub->set].names,
					   inst->plan->sets[sub->set].count);
}

void sl_instance_claim_answer(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	char *command = inst->retry_command;
	run->changed = true;
	inst->retrying = false;
	inst->retry_command = NULL;
	inst->dirty = true;
	sl_instance_answer(run, command, run->in->ok, run->in->ok ? NULL : "claimed");
	free(command);
	if (run->in->ok)
		revive(run, run->in->from);
}
