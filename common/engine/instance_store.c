/* An instance as Redis hash fields: what changed since the last commit. The header is written by hand, for it changes
 * in every step. */
#include "common/engine/instance.h"

#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writer {
	struct sl_arena *arena;
	struct sl_instance *inst;
	struct sl_field *fields;
	int count, cap;
	struct sl_buf name, value;
};

/* --- pieces of JSON --- */

static void add_int(struct sl_buf *out, const char *name, int64_t value)
{
	sl_buf_add(out, ",\"", 2);
	sl_buf_adds(out, name);
	sl_buf_add(out, "\":", 2);
	sl_buf_addi(out, value);
}

static void add_some(struct sl_buf *out, const char *name, int64_t value)
{
	if (value)
		add_int(out, name, value);
}

static void add_name(struct sl_buf *out, const char *name)
{
	sl_buf_add(out, ",\"", 2);
	sl_buf_adds(out, name);
	sl_buf_add(out, "\":", 2);
}

static void add_text(struct sl_buf *out, const char *name, const char *text)
{
	if (!text)
		return;
	add_name(out, name);
	sl_buf_add_json_str(out, text, strlen(text));
}

static void add_json(struct sl_buf *out, const char *name, jv value)
{
	if (!jv_is_valid(value))
		return;
	add_name(out, name);
	sl_json_write(out, value);
}

/* Members that this release does not know go back as they came. */
static void add_rest(struct sl_buf *out, jv rest)
{
	if (!jv_is_valid(rest))
		return;
	jv_object_foreach(rest, name, value)
	{
		sl_buf_addc(out, ',');
		sl_buf_add_json_str(out, jv_string_value(name), (size_t)jv_string_length_bytes(jv_copy(name)));
		sl_buf_addc(out, ':');
		sl_json_write(out, value);
		jv_free(name);
		jv_free(value);
	}
}

/* --- header --- */

/* States are found below scopes, states, forks and branches only; lists and loops are not searched. */
static void add_states(struct sl_buf *out, const struct sl_frame *frame, int *count)
{
	enum sl_node_kind kind = frame->node->kind;
	if (frame->part == SL_PART_NODE && kind == SL_NODE_STATE) {
		sl_buf_adds(out, (*count)++ ? "," : "");
		sl_buf_add_json_str(out, frame->node->u.state.name, strlen(frame->node->u.state.name));
	}
	if (kind != SL_NODE_SCOPE && kind != SL_NODE_STATE && kind != SL_NODE_FORK)
		return;
	for (const struct sl_frame *child = frame->first; child; child = child->next)
		add_states(out, child, count);
}

static void add_subs(struct sl_buf *out, const struct sl_instance *inst)
{
	if (!inst->sub_count)
		return;
	add_name(out, "boxes");
	for (int i = 0; i < inst->sub_count; i++) {
		sl_buf_adds(out, i ? ",{\"box\":" : "[{\"box\":");
		sl_buf_add_json_str(out, inst->subs[i].box, strlen(inst->subs[i].box));
		add_json(out, "key", inst->subs[i].key);
		sl_buf_addc(out, '}');
	}
	sl_buf_addc(out, ']');
}

static void header(struct sl_buf *out, struct sl_instance *inst)
{
	const struct sl_plan *plan = inst->plan;
	int count = 0;
	sl_buf_adds(out, "{\"v\":1");
	add_text(out, "status", sl_status_text(inst->status));
	add_text(out, "workflow", plan->id);
	add_text(out, "version", plan->version);
	add_text(out, "plan", plan->hash);
	add_int(out, "created", inst->created_ms);
	add_int(out, "now", inst->now_ms);
	add_some(out, "ended", inst->ended_ms);
	add_some(out, "expires", inst->expires_ms);
	add_int(out, "token", inst->next_token);
	add_some(out, "timer", inst->timer);
	add_some(out, "stopping", inst->stopping);
	add_some(out, "timed_out", inst->timed_out);
	add_some(out, "retrying", inst->retrying);
	add_some(out, "hops", inst->hops);
	add_int(out, "transitions", inst->transition_next);
	add_some(out, "inbox", inst->inbox_next);
	add_text(out, "trace", inst->traceparent);
	add_text(out, "command", inst->command_id);
	add_text(out, "retry_command", inst->retry_command);
	add_text(out, "parent", inst->parent);
	add_some(out, "parent_token", inst->parent_token);
	add_text(out, "claim", inst->claim_box);
	if (jv_object_length(jv_copy(inst->bindings)) > 0)
		add_json(out, "bindings", inst->bindings);
	add_name(out, "states");
	sl_buf_addc(out, '[');
	if (inst->root)
		add_states(out, inst->root, &count);
	sl_buf_addc(out, ']');
	add_subs(out, inst);
	add_json(out, "handed", inst->handed);
	add_json(out, "handled", inst->handled);
	add_json(out, "error", inst->error);
	add_rest(out, inst->rest);
	sl_buf_addc(out, '}');
}

/* --- frames --- */

static void add_cond_types(struct sl_buf *out, const struct sl_plan *plan, const struct sl_cond *cond, int *count)
{
	if (cond->kind == SL_COND_EVENT) {
		const char *type = plan->events[cond->event].type;
		sl_buf_adds(out, (*count)++ ? "," : "");
		sl_buf_add_json_str(out, type ? type : "*", type ? strlen(type) : 1);
	}
	for (int i = 0; i < cond->count && cond->kind != SL_COND_EVENT; i++)
		add_cond_types(out, plan, &cond->items[i], count);
}

static void add_await(struct sl_buf *out, const struct sl_instance *inst, const struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	const struct sl_frame *state = sl_frame_state((struct sl_frame *)frame);
	int count = 0;
	if (state)
		add_text(out, "state", state->node->u.state.name);
	add_name(out, "waits");
	sl_buf_addc(out, '[');
	for (int i = 0; i < await->alt_count; i++)
		add_cond_types(out, inst->plan, &await->alts[i].cond, &count);
	sl_buf_addc(out, ']');
}

/* What people want to see: what a frame waits for. Not read back. */
static void add_waits_for(struct sl_buf *out, const struct sl_instance *inst, const struct sl_frame *frame)
{
	if (frame->part == SL_PART_NODE && frame->node->kind == SL_NODE_AWAIT && sl_await_waits(frame))
		add_await(out, inst, frame);
	if (frame->part != SL_PART_NODE || frame->first)
		return;
	if (frame->node->kind == SL_NODE_CALL && frame->token)
		add_text(out, "function", inst->plan->functions[frame->node->u.call.function].name);
}

static void frame_value(struct sl_buf *out, const struct sl_instance *inst, const struct sl_frame *frame)
{
	static const char *const parts[] = {NULL, "branch", "iteration"};
	sl_buf_adds(out, "{\"node\":");
	sl_buf_add_json_str(out, frame->node->ptr, strlen(frame->node->ptr));
	add_text(out, "part", parts[frame->part]);
	add_some(out, "phase", frame->phase);
	add_some(out, "token", frame->token);
	add_some(out, "timer", frame->timer);
	add_some(out, "due", frame->due_ms);
	add_some(out, "attempt", frame->attempt);
	add_some(out, "n", frame->n);
	add_some(out, "m", frame->m);
	add_waits_for(out, inst, frame);
	add_json(out, "acc", frame->acc);
	add_json(out, "info", frame->info);
	add_rest(out, frame->rest);
	sl_buf_addc(out, '}');
}

/* --- fields --- */

static struct sl_field *field_add(struct writer *w)
{
	if (w->count == w->cap) {
		int cap = w->cap ? w->cap * 2 : 16;
		struct sl_field *fields = SL_NEWN(w->arena, struct sl_field, cap);
		if (w->count)
			memcpy(fields, w->fields, sizeof(*fields) * (size_t)w->count);
		w->fields = fields;
		w->cap = cap;
	}
	return &w->fields[w->count++];
}

/* A field with the contents of w->name and w->value. */
static void put(struct writer *w)
{
	struct sl_field *field = field_add(w);
	field->name = sl_arena_strn(w->arena, w->name.data, w->name.len);
	field->value.ptr = sl_arena_strn(w->arena, w->value.data, w->value.len);
	field->value.len = w->value.len;
	if (w->inst->deleted.count)
		sl_map_del(&w->inst->deleted, w->name.data);
}

static void name_frame(struct writer *w, const char *prefix, const struct sl_frame *frame)
{
	sl_buf_clear(&w->name);
	sl_buf_clear(&w->value);
	sl_buf_adds(&w->name, prefix);
	sl_frame_path(frame, &w->name);
}

static void name_number(struct writer *w, const char *prefix, int64_t n)
{
	sl_buf_clear(&w->name);
	sl_buf_clear(&w->value);
	sl_buf_adds(&w->name, prefix);
	sl_buf_addc(&w->name, ':');
	sl_buf_addi(&w->name, n);
}

static void put_frame(struct writer *w, struct sl_frame *frame)
{
	if (frame->dirty || !frame->stored) {
		name_frame(w, "f:", frame);
		frame_value(&w->value, w->inst, frame);
		put(w);
	}
	if (frame->own_dirty && frame->written) {
		name_frame(w, "d:", frame);
		sl_json_write(&w->value, frame->own);
		put(w);
	} else if (frame->own_dirty && frame->own_stored) {
		name_frame(w, "d:", frame);
		sl_instance_delete(w->inst, w->name.data);
	}
	for (int i = 0; i < frame->slots.changed_count; i++) {
		int slot = frame->slots.changed[i];
		name_frame(w, "c:", frame);
		sl_buf_printf(&w->name, ":%d", slot);
		sl_json_write(&w->value, frame->slots.items[slot].value);
		put(w);
	}
}

static void put_inbox(struct writer *w, struct sl_inbox_item *item)
{
	if (!item->dirty)
		return;
	name_number(w, "b", item->n);
	sl_buf_adds(&w->value, "{\"event\":");
	sl_json_write(&w->value, item->ev);
	add_text(&w->value, "box", item->box);
	add_some(&w->value, "multi", item->multi);
	sl_buf_addc(&w->value, '}');
	put(w);
}

static void put_transition(struct writer *w, int slot)
{
	struct sl_transition *at = &w->inst->transitions[slot];
	if (!at->dirty)
		return;
	name_number(w, "t", slot);
	sl_buf_adds(&w->value, "{\"n\":");
	sl_buf_addi(&w->value, at->n);
	add_int(&w->value, "time", at->time_ms);
	add_text(&w->value, "state", at->state);
	add_text(&w->value, "cause", at->cause);
	sl_buf_addc(&w->value, '}');
	put(w);
}

static void put_ring(struct writer *w, const char *prefix, const struct sl_ring *ring)
{
	for (uint32_t i = 0; i < sl_ring_changed(ring); i++) {
		uint32_t slot = sl_ring_changed_slot(ring, i);
		char text[SL_RING_TEXT];
		name_number(w, prefix, slot);
		sl_ring_slot_text(ring, slot, text);
		sl_buf_adds(&w->value, text);
		put(w);
	}
}

static void put_named(struct writer *w, const char *name)
{
	sl_buf_clear(&w->name);
	sl_buf_clear(&w->value);
	sl_buf_adds(&w->name, name);
}

static void put_all(struct writer *w)
{
	struct sl_instance *inst = w->inst;
	if (inst->dirty) {
		put_named(w, "h");
		header(&w->value, inst);
		put(w);
	}
	if (inst->output_dirty && jv_is_valid(inst->output)) {
		put_named(w, "out");
		sl_json_write(&w->value, inst->output);
		put(w);
	}
	for (struct sl_frame *frame = inst->root; frame; frame = sl_frame_next_changed(frame, inst->root))
		if (frame->below)
			put_frame(w, frame);
	for (struct sl_inbox_item *item = inst->inbox; item; item = item->next)
		put_inbox(w, item);
	for (int i = 0; i < inst->transition_cap; i++)
		put_transition(w, i);
	put_ring(w, "r", &inst->events);
	put_ring(w, "i", &inst->effects);
	sl_map_each(&inst->deleted, e)
	{
		struct sl_field *field = field_add(w);
		field->name = sl_arena_strn(w->arena, e->key, e->len);
		field->value = (struct sl_bytes){NULL, 0};
	}
}

void sl_instance_changes(const struct sl_actor *actor, struct sl_instance *inst, struct sl_arena *arena,
	struct sl_field **ret, int *ret_count, bool *ret_gone)
{
	struct writer w = {.arena = arena, .inst = inst};
	(void)actor;
	*ret = NULL;
	*ret_count = 0;
	*ret_gone = inst->gone;
	if (inst->gone)
		return;
	sl_buf_init(&w.name);
	sl_buf_init(&w.value);
	put_all(&w);
	sl_buf_release(&w.name);
	sl_buf_release(&w.value);
	*ret = w.fields;
	*ret_count = w.count;
}

static void frame_committed(struct sl_frame *frame)
{
	struct sl_slots *slots = &frame->slots;
	frame->below = false;
	frame->stored = true;
	frame->dirty = false;
	if (frame->own_dirty)
		frame->own_stored = frame->written;
	frame->own_dirty = false;
	for (int i = 0; i < slots->changed_count; i++) {
		slots->items[slots->changed[i]].stored = true;
		slots->items[slots->changed[i]].dirty = false;
	}
	slots->changed_count = 0;
	for (struct sl_frame *child = frame->first; child; child = child->next)
		if (child->below)
			frame_committed(child);
}

void sl_instance_committed(struct sl_instance *inst)
{
	if (inst->root && inst->root->below)
		frame_committed(inst->root);
	for (struct sl_inbox_item *item = inst->inbox; item; item = item->next) {
		item->stored = true;
		item->dirty = false;
	}
	for (int i = 0; i < inst->transition_cap; i++) {
		inst->transitions[i].stored = inst->transitions[i].stored || inst->transitions[i].dirty;
		inst->transitions[i].dirty = false;
	}
	inst->output_stored = inst->output_stored || (inst->output_dirty && jv_is_valid(inst->output));
	inst->output_dirty = inst->dirty = false;
	sl_ring_committed(&inst->events);
	sl_ring_committed(&inst->effects);
	sl_map_release(&inst->deleted, NULL);
	sl_map_init(&inst->deleted);
}

/* --- forgetting --- */

static void delete_number(struct sl_instance *inst, const char *prefix, int64_t n)
{
	char name[32];
	snprintf(name, sizeof(name), "%s:%lld", prefix, (long long)n);
	sl_instance_delete(inst, name);
}

/* The names are kept until the commit, for the id may start again before it. */
void sl_instance_forget(struct sl_instance *inst)
{
	inst->gone = true;
	sl_frame_free(inst, inst->root);
	sl_instance_delete(inst, "h");
	if (inst->output_stored)
		sl_instance_delete(inst, "out");
	for (int i = 0; i < inst->transition_cap; i++)
		if (inst->transitions[i].stored)
			delete_number(inst, "t", i);
	for (struct sl_inbox_item *item = inst->inbox; item; item = item->next)
		if (item->stored)
			delete_number(inst, "b", item->n);
	for (uint32_t i = 0; i < sl_ring_count(&inst->events); i++)
		delete_number(inst, "r", i);
	for (uint32_t i = 0; i < sl_ring_count(&inst->effects); i++)
		delete_number(inst, "i", i);
}
