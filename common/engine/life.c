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

/* Lifecycle events are written as text at once: most instances tell two of them, and nobody here reads them. */

static void add_text(struct sl_buf *out, const char *name, const char *text)
{
	sl_buf_addc(out, ',');
	sl_buf_add_json_str(out, name, strlen(name));
	sl_buf_addc(out, ':');
	sl_buf_add_json_str(out, text, strlen(text));
}

static void add_time(struct sl_buf *out, const char *name, int64_t ms)
{
	char text[32];
	sl_time_format(ms, text);
	add_text(out, name, text);
}

/* Borrows value. */
static void add_value(struct sl_buf *out, const char *name, jv value)
{
	sl_buf_addc(out, ',');
	sl_buf_add_json_str(out, name, strlen(name));
	sl_buf_addc(out, ':');
	sl_json_write(out, value);
}

/* The event up to its data's common members; finish() closes it. */
static struct sl_msg *begin(struct sl_run *run, const char *type, struct sl_buf *out)
{
	const struct sl_plan *plan = run->inst->plan;
	struct sl_msg *fx = sl_effect_with_id(run, SL_MSG_LIFECYCLE);
	fx->instance = run->id;
	sl_buf_init(out);
	sl_buf_reserve(out, 512);
	sl_buf_adds(out, "{\"specversion\":\"1.0\"");
	add_text(out, "id", fx->id);
	sl_buf_adds(out, ",\"source\":\"/sluice/");
	sl_buf_adds(out, run->actor->ns);
	sl_buf_adds(out, "\",\"type\":\"" PREFIX);
	sl_buf_adds(out, type);
	sl_buf_adds(out, ".v1\"");
	add_text(out, "subject", run->id);
	add_time(out, "time", run->now_ms);
	sl_buf_adds(out, ",\"datacontenttype\":\"application/json\",\"data\":{\"workflow\":");
	sl_buf_add_json_str(out, plan->id, strlen(plan->id));
	if (plan->version)
		add_text(out, "version", plan->version);
	add_text(out, "instance", run->id);
	return fx;
}

static void finish(struct sl_run *run, struct sl_msg *fx, struct sl_buf *out)
{
	sl_buf_adds(out, "}}");
	fx->text = sl_arena_strn(run->fx->arena, out->data, out->len);
	sl_buf_release(out);
}

void sl_life_started(struct sl_run *run)
{
	struct sl_buf out;
	if (run->eng->limits.lifecycle_level < 1)
		return;
	struct sl_msg *fx = begin(run, "workflow.started", &out);
	add_time(&out, "startedAt", run->inst->created_ms);
	finish(run, fx, &out);
}

void sl_life_ended(struct sl_run *run)
{
	const struct sl_instance *inst = run->inst;
	struct sl_buf out;
	if (run->eng->limits.lifecycle_level < 1)
		return;
	struct sl_msg *fx = begin(run,
		inst->status == SL_COMPLETED ? "workflow.completed"
		: inst->status == SL_FAULTED ? "workflow.faulted"
					     : "workflow.cancelled",
		&out);
	add_time(&out, "startedAt", inst->created_ms);
	add_time(&out, "endedAt", run->now_ms);
	if (inst->status == SL_COMPLETED)
		add_value(&out, "output", inst->output);
	else if (jv_is_valid(inst->error))
		add_value(&out, "error", inst->error);
	finish(run, fx, &out);
}

void sl_life_state(struct sl_run *run, const struct sl_frame *state, bool entered)
{
	struct sl_buf out;
	if (run->eng->limits.lifecycle_level < 2)
		return;
	struct sl_msg *fx = begin(run, entered ? "state.entered" : "state.left", &out);
	add_text(&out, "state", state->node->u.state.name);
	finish(run, fx, &out);
}

void sl_life_action(struct sl_run *run, const struct sl_frame *action, const char *what)
{
	const struct sl_action *node = &action->node->u.action;
	struct sl_buf out;
	if (run->eng->limits.lifecycle_level < 3)
		return;
	struct sl_msg *fx = begin(run, sl_arena_printf(run->fx->arena, "action.%s", what), &out);
	add_text(&out, "action", node->name ? node->name : action->node->ptr);
	sl_buf_printf(&out, ",\"attempt\":%d", action->attempt);
	if ((strcmp(what, "faulted") == 0 || strcmp(what, "retried") == 0) && jv_is_valid(run->error))
		add_value(&out, "error", run->error);
	finish(run, fx, &out);
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
