/* What others may watch: lifecycle CloudEvents, and the last transitions of an instance. */
#include "common/engine/instance.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include <stdlib.h>
#include <string.h>

#define PREFIX "io.serverlessworkflow."

struct sl_msg *sl_effect_with_id(struct sl_run *run, enum sl_msg_kind kind)
{
	char id[SL_UUID_TEXT];
	sl_id_effect(run->actor->ns, run->pos, run->fx->count - run->fx_first, id);
	struct sl_msg *fx = sl_effects_add(run->fx, kind);
	fx->id = sl_arena_str(run->fx->arena, id);
	return fx;
}

/* Most times that a step tells are its own. */
static jv time_value(struct sl_run *run, int64_t ms)
{
	char text[32];
	if (ms == run->now_ms && jv_is_valid(run->now_text))
		return jv_copy(run->now_text);
	sl_time_format(ms, text);
	jv value = jv_string(text);
	if (ms == run->now_ms)
		run->now_text = jv_copy(value);
	return value;
}

static jv base(struct sl_run *run)
{
	const struct sl_plan *plan = run->inst->plan;
	jv data = sl_json_set(jv_object(), "workflow", jv_string(plan->id));
	if (plan->version)
		data = sl_json_set(data, "version", jv_string(plan->version));
	return sl_json_set(data, "instance", jv_string(run->id));
}

/* Takes data. */
static void send(struct sl_run *run, const char *type, jv data)
{
	struct sl_msg *fx = sl_effect_with_id(run, SL_MSG_LIFECYCLE);
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", jv_string(fx->id));
	ev = sl_json_set(ev, "source", jv_string(sl_arena_printf(run->fx->arena, "/sluice/%s", run->actor->ns)));
	ev = sl_json_set(ev, "type", jv_string(type));
	ev = sl_json_set(ev, "subject", jv_string(run->id));
	ev = sl_json_set(ev, "time", time_value(run, run->now_ms));
	ev = sl_json_set(ev, "datacontenttype", jv_string("application/json"));
	fx->instance = run->id;
	fx->event = sl_json_set(ev, "data", data);
}

void sl_life_started(struct sl_run *run)
{
	if (run->eng->limits.lifecycle_level < 1)
		return;
	send(run, PREFIX "workflow.started.v1",
		sl_json_set(base(run), "startedAt", time_value(run, run->inst->created_ms)));
}

void sl_life_ended(struct sl_run *run)
{
	const struct sl_instance *inst = run->inst;
	if (run->eng->limits.lifecycle_level < 1)
		return;
	jv data = sl_json_set(base(run), "startedAt", time_value(run, inst->created_ms));
	data = sl_json_set(data, "endedAt", time_value(run, run->now_ms));
	if (inst->status == SL_COMPLETED) {
		send(run, PREFIX "workflow.completed.v1", sl_json_set(data, "output", jv_copy(inst->output)));
		return;
	}
	if (jv_is_valid(inst->error))
		data = sl_json_set(data, "error", jv_copy(inst->error));
	send(run, inst->status == SL_FAULTED ? PREFIX "workflow.faulted.v1" : PREFIX "workflow.cancelled.v1", data);
}

void sl_life_state(struct sl_run *run, const struct sl_frame *state, bool entered)
{
	if (run->eng->limits.lifecycle_level < 2)
		return;
	send(run, entered ? PREFIX "state.entered.v1" : PREFIX "state.left.v1",
		sl_json_set(base(run), "state", jv_string(state->node->u.state.name)));
}

void sl_life_action(struct sl_run *run, const struct sl_frame *action, const char *what)
{
	const struct sl_action *node = &action->node->u.action;
	if (run->eng->limits.lifecycle_level < 3)
		return;
	jv data = sl_json_set(base(run), "action", node->name ? jv_string(node->name) : jv_string(action->node->ptr));
	data = sl_json_set(data, "attempt", jv_number(action->attempt));
	if ((strcmp(what, "faulted") == 0 || strcmp(what, "retried") == 0) && jv_is_valid(run->error))
		data = sl_json_set(data, "error", jv_copy(run->error));
	send(run, sl_arena_printf(run->fx->arena, PREFIX "action.%s.v1", what), data);
}

/* --- transitions --- */

/* What made this step, for people. */
static const char *cause_of(struct sl_run *run)
{
	const struct sl_msg *in = run->in;
	if (run->cause)
		return run->cause;
	jv ev = jv_copy(in->event);
	if (!jv_is_valid(ev) && jv_get_kind(in->events) == JV_KIND_ARRAY && jv_array_length(jv_copy(in->events)) > 0) {
		jv_free(ev);
		ev = jv_array_get(jv_copy(in->events), 0);
	}
	const char *type = sl_json_str(ev, "type"), *id = sl_json_str(ev, "id"), *source = sl_json_str(ev, "source");
	if (type)
		run->cause = sl_arena_printf(run->fx->arena, "%s: %.100s, id %.100s of %.100s",
			sl_msg_kind_text(in->kind), type, id ? id : "?", source ? source : "?");
	else if (in->command_id)
		run->cause = sl_arena_printf(
			run->fx->arena, "%s: command %.100s", sl_msg_kind_text(in->kind), in->command_id);
	else
		run->cause = sl_arena_str(run->fx->arena, sl_msg_kind_text(in->kind));
	jv_free(ev);
	return run->cause;
}

static char *copy_text(const char *text)
{
	char *copy = strdup(text);
	sl_assert(copy);
	return copy;
}

void sl_life_transition(struct sl_run *run, const char *state, const char *cause)
{
	struct sl_instance *inst = run->inst;
	int max = run->eng->limits.transitions_max;
	if (max <= 0)
		return;
	int slot = (int)(inst->transition_next % max);
	if (slot >= inst->transition_cap) {
		int cap = slot + 1 > inst->transition_cap * 2 ? slot + 1 : inst->transition_cap * 2;
		inst->transitions = realloc(inst->transitions, sizeof(*inst->transitions) * (size_t)cap);
		sl_assert(inst->transitions);
		for (int i = inst->transition_cap; i < cap; i++)
			inst->transitions[i] = (struct sl_transition){.n = -1};
		inst->transition_cap = cap;
	}
	struct sl_transition *at = &inst->transitions[slot];
	free(at->state);
	free(at->cause);
	at->n = inst->transition_next++;
	at->time_ms = run->now_ms;
	at->state = copy_text(state);
	at->cause = copy_text(cause ? cause : cause_of(run));
	at->dirty = true;
	inst->dirty = true;
}
