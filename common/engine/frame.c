/* The tree of frames: making, finding, dropping; documents by reference; timers. */
#include "common/base/rules.h"
#include "common/engine/instance.h"

#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the tree --- */

static void link_child(struct sl_frame *parent, struct sl_frame *frame)
{
	struct sl_frame *before = parent->last; /* usually the new one is the last */
	while (before && before->index > frame->index)
		before = before->prev;
	sl_assert(!before || before->index != frame->index);
	frame->prev = before;
	frame->next = before ? before->next : parent->first;
	if (frame->prev)
		frame->prev->next = frame;
	else
		parent->first = frame;
	if (frame->next)
		frame->next->prev = frame;
	else
		parent->last = frame;
	parent->child_count++;
}

static void unlink_child(struct sl_frame *frame)
{
	struct sl_frame *parent = frame->parent;
	if (!parent)
		return;
	if (frame->prev)
		frame->prev->next = frame->next;
	else
		parent->first = frame->next;
	if (frame->next)
		frame->next->prev = frame->prev;
	else
		parent->last = frame->prev;
	parent->child_count--;
}

struct sl_frame *sl_frame_new(struct sl_instance *inst, struct sl_frame *parent, const struct sl_node *node,
	enum sl_frame_part part, int index)
{
	struct sl_frame *frame = calloc(1, sizeof(*frame));
	sl_assert(frame);
	frame->node = node;
	frame->part = part;
	frame->index = index;
	frame->parent = parent;
	frame->serial = ++inst->next_serial;
	frame->acc = frame->info = frame->rest = frame->own = jv_invalid();
	if (parent)
		link_child(parent, frame);
	else
		inst->root = frame;
	inst->frame_count++;
	sl_frame_touch(frame);
	return frame;
}

/* Marks the way down to it, as far as it is not marked. */
static void mark(struct sl_frame *frame)
{
	for (; frame && !frame->below; frame = frame->parent)
		frame->below = true;
}

void sl_frame_touch(struct sl_frame *frame)
{
	frame->dirty = true;
	mark(frame);
}

static void delete_field(struct sl_instance *inst, const struct sl_frame *frame, const char *prefix, int slot)
{
	struct sl_buf name;
	sl_buf_init(&name);
	sl_buf_adds(&name, prefix);
	sl_frame_path(frame, &name);
	if (slot >= 0)
		sl_buf_printf(&name, ":%d", slot);
	sl_instance_delete(inst, name.data);
	sl_buf_release(&name);
}

void sl_frame_slots_drop(struct sl_instance *inst, struct sl_frame *frame)
{
	for (int i = 0; i < frame->slots.count; i++) {
		if (frame->slots.items[i].stored)
			delete_field(inst, frame, "c:", i);
		jv_free(frame->slots.items[i].value);
	}
	free(frame->slots.items);
	free(frame->slots.changed);
	frame->slots = (struct sl_slots){0};
}

static void free_tree(struct sl_instance *inst, struct sl_frame *frame)
{
	for (struct sl_frame *child = frame->first, *next; child; child = next) {
		next = child->next;
		free_tree(inst, child);
	}
	if (frame->stored)
		delete_field(inst, frame, "f:", -1);
	if (frame->own_stored)
		delete_field(inst, frame, "d:", -1);
	sl_frame_slots_drop(inst, frame);
	inst->frame_count--;
	inst->data_bytes -= frame->counted;
	jv_free(frame->acc);
	jv_free(frame->info);
	jv_free(frame->rest);
	jv_free(frame->own);
	free(frame);
}

void sl_frame_free(struct sl_instance *inst, struct sl_frame *frame)
{
	if (!frame)
		return;
	if (inst->root == frame)
		inst->root = NULL;
	unlink_child(frame);
	free_tree(inst, frame);
}

struct sl_frame *sl_frame_next(struct sl_frame *frame, const struct sl_frame *top)
{
	if (frame->first)
		return frame->first;
	while (frame != top && !frame->next)
		frame = frame->parent;
	return frame == top ? NULL : frame->next;
}

struct sl_frame *sl_frame_next_changed(struct sl_frame *frame, const struct sl_frame *top)
{
	if (frame->first && frame->below)
		return frame->first;
	while (frame != top && !frame->next)
		frame = frame->parent;
	return frame == top ? NULL : frame->next;
}

void sl_frame_release_waits(struct sl_run *run, struct sl_frame *top)
{
	for (struct sl_frame *frame = top; frame; frame = sl_frame_next(frame, top)) {
		sl_frame_timer_clear(run, frame);
		if (!frame->token || frame->part != SL_PART_NODE)
			continue;
		if (frame->node->kind == SL_NODE_CALL)
			sl_call_cancel(run, frame);
		else if (frame->node->kind == SL_NODE_AWAIT)
			sl_await_disarm(run, frame);
	}
}

void sl_frame_drop(struct sl_run *run, struct sl_frame *frame)
{
	if (!frame)
		return;
	sl_frame_release_waits(run, frame);
	for (struct sl_frame *at = frame; at; at = sl_frame_next(at, frame))
		if (at->part == SL_PART_NODE && at->node->kind == SL_NODE_AWAIT)
			sl_await_put_back(run, at);
	sl_frame_free(run->inst, frame);
}

struct sl_frame *sl_frame_child(const struct sl_frame *frame, int index)
{
	if (!frame->last || index > frame->last->index) /* usually it is a new one behind the last */
		return NULL;
	for (struct sl_frame *child = frame->last; child && child->index >= index; child = child->prev)
		if (child->index == index)
			return child;
	return NULL;
}

void sl_frame_path(const struct sl_frame *frame, struct sl_buf *out)
{
	char text[16];
	if (frame->parent)
		sl_frame_path(frame->parent, out);
	int n = snprintf(text, sizeof(text), frame->parent ? ".%d" : "%d", frame->index);
	sl_buf_add(out, text, (size_t)n);
}

struct sl_frame *sl_frame_by_token(struct sl_frame *root, int64_t token)
{
	for (struct sl_frame *frame = root; frame && token; frame = sl_frame_next(frame, root))
		if (SL_RULE(result_token) ? frame->token == token : frame->token && frame->node->kind == SL_NODE_CALL)
			return frame;
	return NULL;
}

struct sl_frame *sl_frame_by_timer(struct sl_frame *root, int64_t timer)
{
	for (struct sl_frame *frame = root; frame && timer; frame = sl_frame_next(frame, root))
		if (SL_RULE(timer_token) ? frame->timer == timer : frame->timer != 0)
			return frame;
	return NULL;
}

struct sl_frame *sl_frame_by_serial(struct sl_frame *root, unsigned serial)
{
	for (struct sl_frame *frame = root; frame; frame = sl_frame_next(frame, root))
		if (frame->serial == serial)
			return frame;
	return NULL;
}

struct sl_frame *sl_frame_state(struct sl_frame *frame)
{
	while (frame && !(frame->part == SL_PART_NODE && frame->node->kind == SL_NODE_STATE))
		frame = frame->parent;
	return frame;
}

/* --- documents --- */

struct sl_frame *sl_frame_owner(struct sl_frame *frame)
{
	while (frame->parent && frame->part == SL_PART_NODE)
		frame = frame->parent;
	return frame;
}

/* A15: the element overlays a copy of the state's data. */
static jv iteration_data(struct sl_frame *iteration)
{
	const struct sl_each *each = &iteration->node->u.each;
	struct sl_frame *loop = iteration->parent;
	jv item = jv_array_get(jv_copy(loop->own), iteration->index);
	if (each->whole)
		return item;
	jv data = sl_frame_data(loop);
	if (jv_get_kind(data) != JV_KIND_OBJECT) {
		jv_free(data);
		data = jv_object();
	}
	return sl_json_set(data, each->param, item);
}

jv sl_frame_data(struct sl_frame *frame)
{
	struct sl_frame *owner = sl_frame_owner(frame);
	if (!jv_is_valid(owner->own)) {
		jv_free(owner->own);
		if (owner->part == SL_PART_ITERATION)
			owner->own = iteration_data(owner);
		else if (owner->part == SL_PART_BRANCH)
			owner->own = sl_frame_data(owner->parent);
		else
			owner->own = jv_object();
	}
	return jv_copy(owner->own);
}

static struct sl_frame *parallel_above(struct sl_frame *frame)
{
	for (; frame->parent && frame->part == SL_PART_NODE; frame = frame->parent)
		if (frame->node->kind == SL_NODE_ACTIONS && frame->node->u.actions.parallel)
			return frame;
	return NULL;
}

jv sl_frame_input(struct sl_frame *frame)
{
	struct sl_frame *list = parallel_above(frame);
	if (list && jv_is_valid(list->own))
		return jv_copy(list->own);
	return sl_frame_data(frame);
}

void sl_frame_set_own(struct sl_frame *frame, jv own)
{
	jv_free(frame->own);
	frame->own = own;
	frame->written = true;
	frame->own_dirty = true;
	frame->sized = false;
	mark(frame);
}

void sl_frame_clear_own(struct sl_frame *frame)
{
	jv_free(frame->own);
	frame->own = jv_invalid();
	frame->written = false;
	frame->own_dirty = true; /* a part that is stored goes */
	frame->sized = false;
	mark(frame);
}

void sl_frame_set_data(struct sl_frame *frame, jv data)
{
	struct sl_frame *list = parallel_above(frame);
	if (list && !jv_is_valid(list->own))
		sl_frame_set_own(list, sl_frame_data(frame));
	sl_frame_set_own(sl_frame_owner(frame), data);
}

void sl_frame_slot_set(struct sl_frame *frame, int index, jv value)
{
	struct sl_slots *slots = &frame->slots;
	if (index >= slots->count) {
		int count = index + 1 > slots->count * 2 ? index + 1 : slots->count * 2;
		slots->items = realloc(slots->items, sizeof(*slots->items) * (size_t)count);
		sl_assert(slots->items);
		for (int i = slots->count; i < count; i++)
			slots->items[i] = (struct sl_slot){.value = jv_invalid()};
		slots->count = count;
	}
	jv_free(slots->items[index].value);
	slots->items[index].value = value;
	slots->bytes += sl_value_bytes(value);
	mark(frame);
	if (slots->items[index].dirty)
		return;
	slots->items[index].dirty = true;
	if (slots->changed_count == slots->changed_cap) {
		slots->changed_cap = slots->changed_cap ? slots->changed_cap * 2 : 8;
		slots->changed = realloc(slots->changed, sizeof(*slots->changed) * (size_t)slots->changed_cap);
		sl_assert(slots->changed);
	}
	slots->changed[slots->changed_count++] = index;
}

int64_t sl_value_bytes(jv value)
{
	int64_t bytes = 2;
	switch (jv_get_kind(value)) {
	case JV_KIND_STRING:
		return 2 + jv_string_length_bytes(jv_copy(value));
	case JV_KIND_NUMBER:
		return 8;
	case JV_KIND_ARRAY:
		jv_array_foreach(value, i, item)
		{
			bytes += 1 + sl_value_bytes(item);
			jv_free(item);
		}
		return bytes;
	case JV_KIND_OBJECT:
		jv_object_foreach(value, name, member)
		{
			bytes += 4 + jv_string_length_bytes(name) + sl_value_bytes(member);
			jv_free(member);
		}
		return bytes;
	default:
		return 4;
	}
}

/* --- timers --- */

void sl_frame_timer_set(struct sl_run *run, struct sl_frame *frame, int64_t due_ms)
{
	frame->timer = sl_instance_token(run->inst);
	frame->due_ms = due_ms;
	sl_node_touch(frame);
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_TIMER_SET);
	fx->to = fx->instance = run->id;
	fx->token = frame->timer;
	fx->due_ms = due_ms;
}

void sl_frame_timer_clear(struct sl_run *run, struct sl_frame *frame)
{
	if (!frame->timer)
		return;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_TIMER_CANCEL);
	fx->to = fx->instance = run->id;
	fx->token = frame->timer;
	fx->due_ms = frame->due_ms;
	frame->timer = 0;
	sl_node_touch(frame);
}
