/* An instance read back from its fields. */
#include "common/engine/instance.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN_MAX 100000000 /* of one frame: iterations, collected results */

struct part { /* a field that belongs to a frame */
	const char *path;
	size_t len;
	int depth;
	const struct sl_field *field;
};

static int damaged(struct sl_diags *diags, const char *field, const char *text)
{
	return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, field, "stored instance: %s", text);
}

static int parse(const struct sl_field *field, jv *ret, struct sl_diags *diags)
{
	struct sl_json_limits limits = {.depth_max = 1000, .round_integers = true}; /* it was checked when it came in */
	if (sl_json_parse(field->value.ptr, field->value.len, &limits, ret, diags) != 0)
		return damaged(diags, field->name, "not JSON");
	return 0;
}

/* Removes a known member from the rest and gives it. */
static jv take(jv *rest, const char *name)
{
	jv value = sl_json_get(*rest, name);
	if (jv_is_valid(value))
		*rest = jv_object_delete(*rest, jv_string(name));
	return value;
}

static int64_t take_int(jv *rest, const char *name)
{
	int64_t n = sl_json_int(*rest, name, 0);
	jv_free(take(rest, name));
	return n;
}

static char *take_text(jv *rest, const char *name)
{
	jv value = take(rest, name);
	char *text = jv_get_kind(value) == JV_KIND_STRING ? strdup(jv_string_value(value)) : NULL;
	jv_free(value);
	return text;
}

static jv rest_or_none(jv rest)
{
	if (jv_object_length(jv_copy(rest)) > 0)
		return rest;
	jv_free(rest);
	return jv_invalid();
}

/* --- header --- */

static bool status_of(const char *text, enum sl_status *ret)
{
	for (int s = SL_RUNNING; s <= SL_CANCELLED; s++)
		if (text && strcmp(text, sl_status_text((enum sl_status)s)) == 0) {
			*ret = (enum sl_status)s;
			return true;
		}
	return false;
}

static void load_subs(struct sl_instance *inst, jv boxes)
{
	if (jv_get_kind(boxes) == JV_KIND_ARRAY) {
		jv_array_foreach(boxes, i, box)
		{
			const char *id = sl_json_str(box, "box");
			if (id)
				sl_corr_add(inst, id, sl_json_get(box, "key"));
			jv_free(box);
		}
	}
	jv_free(boxes);
}

/* Takes h. */
static int load_header(struct sl_instance *inst, jv h, struct sl_diags *diags)
{
	char *status = take_text(&h, "status");
	bool known = status_of(status, &inst->status);
	free(status);
	inst->created_ms = take_int(&h, "created");
	inst->now_ms = take_int(&h, "now");
	inst->ended_ms = take_int(&h, "ended");
	inst->expires_ms = take_int(&h, "expires");
	inst->next_token = take_int(&h, "token");
	inst->timer = take_int(&h, "timer");
	inst->stopping = take_int(&h, "stopping") != 0;
	inst->timed_out = take_int(&h, "timed_out") != 0;
	inst->retrying = take_int(&h, "retrying") != 0;
	inst->hops = (int)take_int(&h, "hops");
	inst->transition_next = take_int(&h, "transitions");
	inst->inbox_next = take_int(&h, "inbox");
	inst->traceparent = take_text(&h, "trace");
	inst->command_id = take_text(&h, "command");
	inst->retry_command = take_text(&h, "retry_command");
	inst->parent = take_text(&h, "parent");
	inst->parent_token = take_int(&h, "parent_token");
	inst->claim_box = take_text(&h, "claim");
	jv bindings = take(&h, "bindings");
	if (jv_get_kind(bindings) == JV_KIND_OBJECT) {
		jv_free(inst->bindings);
		inst->bindings = bindings;
	} else {
		jv_free(bindings);
	}
	load_subs(inst, take(&h, "boxes"));
	inst->handed = take(&h, "handed");
	inst->handled = take(&h, "handled");
	inst->error = take(&h, "error");
	static const char *const derived[] = {"v", "workflow", "version", "plan", "states"};
	for (size_t i = 0; i < sizeof(derived) / sizeof(*derived); i++)
		jv_free(take(&h, derived[i]));
	inst->rest = rest_or_none(h);
	return known ? 0 : damaged(diags, "h", "no status");
}

/* --- frames --- */

/* The next number of a path, as printing gives it; -1: it is no path. */
static int path_next(const char **at, const char *end)
{
	const char *start = *at;
	int index = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
		if ((index = index * 10 + (**at - '0')) > CHILDREN_MAX)
			return -1;
	if (*at == start || (*start == '0' && *at - start > 1) || (*at < end && (**at != '.' || *at + 1 == end)))
		return -1;
	*at += *at < end;
	return index;
}

static struct sl_frame *frame_at(struct sl_instance *inst, const char *path, size_t len)
{
	struct sl_frame *frame = NULL;
	for (const char *at = path, *end = path + len; at < end;) {
		int index = path_next(&at, end);
		frame = index < 0 ? NULL : frame ? sl_frame_child(frame, index) : inst->root;
		if (!frame || frame->index != index)
			return NULL;
	}
	return frame;
}

static enum sl_frame_part part_of(jv *value)
{
	char *text = take_text(value, "part");
	enum sl_frame_part part = !text				? SL_PART_NODE
				  : strcmp(text, "branch") == 0 ? SL_PART_BRANCH
								: SL_PART_ITERATION;
	free(text);
	return part;
}

static int load_frame(struct sl_instance *inst, const struct part *part, struct sl_diags *diags)
{
	jv value;
	int err = parse(part->field, &value, diags);
	if (err)
		return err;
	size_t cut = part->len;
	while (cut > 0 && part->path[cut - 1] != '.')
		cut--;
	struct sl_frame *parent = cut ? frame_at(inst, part->path, cut - 1) : NULL;
	const struct sl_node *node =
		sl_json_str(value, "node") ? sl_plan_find(inst->plan, sl_json_str(value, "node")) : NULL;
	const char *last = part->path + cut;
	int index = path_next(&last, part->path + part->len);
	if (!node || index < 0 || (cut && !parent) || (!cut && inst->root) ||
		(parent && sl_frame_child(parent, index))) {
		jv_free(value);
		return damaged(diags, part->field->name,
			node ? "a frame without its parent, or twice" : "a frame of a node that the plan lacks");
	}
	struct sl_frame *frame = sl_frame_new(inst, parent, node, part_of(&value), index);
	jv_free(take(&value, "node"));
	static const char *const shown[] = {"function", "state", "waits"}; /* for people, and derived */
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		jv_free(take(&value, shown[i]));
	frame->phase = (int)take_int(&value, "phase");
	frame->token = take_int(&value, "token");
	frame->timer = take_int(&value, "timer");
	frame->due_ms = take_int(&value, "due");
	frame->attempt = (int)take_int(&value, "attempt");
	frame->n = take_int(&value, "n");
	frame->m = take_int(&value, "m");
	frame->acc = take(&value, "acc");
	frame->info = take(&value, "info");
	frame->rest = rest_or_none(value);
	frame->stored = true;
	if (frame->token && frame->part == SL_PART_NODE && node->kind == SL_NODE_CALL)
		inst->call_count++;
	return 0;
}

static int load_data(struct sl_instance *inst, const struct part *part, struct sl_diags *diags)
{
	struct sl_frame *frame = frame_at(inst, part->path, part->len);
	jv value;
	if (!frame)
		return damaged(diags, part->field->name, "data of a frame that is not there");
	int err = parse(part->field, &value, diags);
	if (err)
		return err;
	sl_frame_set_own(frame, value);
	frame->own_stored = true;
	return 0;
}

static int load_slot(struct sl_instance *inst, const struct part *part, struct sl_diags *diags)
{
	const char *colon = memchr(part->path, ':', part->len);
	struct sl_frame *frame = colon ? frame_at(inst, part->path, (size_t)(colon - part->path)) : NULL;
	int64_t index;
	jv value;
	if (!frame || sl_int_name(colon + 1, &index) != 0 || index < 0 ||
		index >= (jv_get_kind(frame->own) == JV_KIND_ARRAY ? jv_array_length(jv_copy(frame->own)) : 0))
		return damaged(diags, part->field->name, "a result of an iteration that is not there");
	int err = parse(part->field, &value, diags);
	if (err)
		return err;
	sl_frame_slot_set(frame, (int)index, value);
	return 0;
}

static int by_depth(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	return x->depth != y->depth ? x->depth - y->depth : strcmp(x->field->name, y->field->name);
}

static int check_frames(struct sl_instance *inst, struct sl_diags *diags)
{
	int err = 0;
	for (struct sl_frame *frame = inst->root; frame && !err; frame = sl_frame_next(frame, inst->root)) {
		const char *wrong = sl_frame_unsound(inst, frame);
		struct sl_buf name;
		if (!wrong)
			continue;
		sl_buf_init(&name);
		sl_buf_adds(&name, "f:");
		sl_frame_path(frame, &name);
		err = damaged(diags, name.data, wrong);
		sl_buf_release(&name);
	}
	return err;
}

/* Parents before children, frames before what belongs to them. */
static int load_frames(struct sl_instance *inst, const struct sl_field *fields, int count, struct sl_diags *diags)
{
	struct part *parts = calloc((size_t)count + 1, sizeof(*parts));
	int n = 0, err = 0;
	sl_assert(parts);
	for (int i = 0; i < count; i++) {
		const char *name = fields[i].name;
		if (strncmp(name, "f:", 2) != 0)
			continue;
		struct part *part = &parts[n++];
		*part = (struct part){.path = name + 2, .len = strlen(name + 2), .field = &fields[i]};
		for (const char *at = part->path; *at; at++)
			part->depth += *at == '.';
	}
	qsort(parts, (size_t)n, sizeof(*parts), by_depth);
	for (int i = 0; i < n && !err; i++)
		err = load_frame(inst, &parts[i], diags);
	free(parts);
	for (int i = 0; i < 2 * count && !err; i++) { /* first the data, then the results of its elements */
		const struct sl_field *field = &fields[i % count];
		struct part part = {.path = field->name + 2, .field = field};
		if (strlen(field->name) <= 2 || field->name[1] != ':')
			continue;
		part.len = strlen(part.path);
		if (i < count && field->name[0] == 'd')
			err = load_data(inst, &part, diags);
		else if (i >= count && field->name[0] == 'c')
			err = load_slot(inst, &part, diags);
	}
	return err ? err : check_frames(inst, diags);
}

/* --- the rest --- */

static int load_inbox(struct sl_instance *inst, const struct sl_field *field, struct sl_diags *diags)
{
	int64_t n;
	jv value;
	if (sl_int_name(field->name + 2, &n) != 0)
		return damaged(diags, field->name, "no number");
	int err = parse(field, &value, diags);
	if (err)
		return err;
	struct sl_inbox_item *item = calloc(1, sizeof(*item)), **at = &inst->inbox;
	sl_assert(item);
	item->n = n;
	item->box = take_text(&value, "box");
	item->multi = take_int(&value, "multi") != 0;
	item->ev = sl_json_get(value, "event");
	item->bytes = sl_value_bytes(item->ev);
	item->stored = true;
	jv_free(value);
	while (*at && (*at)->n < n)
		at = &(*at)->next;
	item->next = *at;
	*at = item;
	if (!item->next)
		inst->inbox_end = &item->next;
	inst->inbox_count++;
	inst->inbox_bytes += item->bytes;
	return 0;
}

static int load_transition(struct sl_instance *inst, const struct sl_field *field, struct sl_diags *diags)
{
	int64_t slot;
	jv value;
	if (sl_int_name(field->name + 2, &slot) != 0 || slot < 0 || slot > 100000)
		return damaged(diags, field->name, "no number");
	int err = parse(field, &value, diags);
	if (err)
		return err;
	if (slot >= inst->transition_cap) {
		inst->transitions = realloc(inst->transitions, sizeof(*inst->transitions) * (size_t)(slot + 1));
		sl_assert(inst->transitions);
		for (int i = inst->transition_cap; i <= slot; i++)
			inst->transitions[i] = (struct sl_transition){.n = -1};
		inst->transition_cap = (int)slot + 1;
	}
	struct sl_transition *at = &inst->transitions[slot];
	at->n = take_int(&value, "n");
	at->time_ms = take_int(&value, "time");
	at->state = take_text(&value, "state");
	at->cause = take_text(&value, "cause");
	at->stored = true;
	jv_free(value);
	return 0;
}

static int load_other(struct sl_instance *inst, const struct sl_field *field, struct sl_diags *diags)
{
	const char *name = field->name;
	if (strcmp(name, "out") == 0) {
		jv_free(inst->output);
		inst->output_stored = true;
		return parse(field, &inst->output, diags);
	}
	if (!name[0] || name[1] != ':')
		return 0;
	switch (name[0]) {
	case 'b':
		return load_inbox(inst, field, diags);
	case 't':
		return load_transition(inst, field, diags);
	case 'r':
		return sl_ring_load(&inst->events, name + 2, field->value) ? damaged(diags, name, "no mark") : 0;
	case 'i':
		return sl_ring_load(&inst->effects, name + 2, field->value) ? damaged(diags, name, "no mark") : 0;
	default:
		return 0; /* a later release's */
	}
}

int sl_instance_load(const struct sl_engine *eng, const char *ns, const struct sl_field *fields, int count,
	struct sl_instance **ret, struct sl_diags *diags)
{
	const struct sl_field *field = NULL;
	jv h;
	for (int i = 0; i < count; i++)
		if (strcmp(fields[i].name, "h") == 0)
			field = &fields[i];
	if (!field)
		return damaged(diags, "h", "no header");
	int err = parse(field, &h, diags);
	if (err)
		return err;
	const char *hash = sl_json_str(h, "plan");
	if (jv_get_kind(h) != JV_KIND_OBJECT || !hash) {
		jv_free(h);
		return damaged(diags, "h", "no plan");
	}
	struct sl_plan *plan = sl_plans_by_hash(eng->plans, ns, hash);
	if (!plan) {
		err = sl_diag_error(diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "plan %.64s is not known", hash);
		jv_free(h);
		return err;
	}
	struct sl_instance *inst = sl_instance_new(plan, &eng->limits);
	err = load_header(inst, h, diags);
	if (!err)
		err = load_frames(inst, fields, count, diags);
	for (int i = 0; i < count && !err; i++)
		err = load_other(inst, &fields[i], diags);
	if (err) {
		sl_instance_free(inst);
		return err;
	}
	sl_instance_measure(inst);
	sl_instance_committed(inst); /* what was read is what is stored */
	*ret = inst;
	return 0;
}
