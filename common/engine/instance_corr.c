/* Correlation on the instance's side (design section 5): values, subscriptions, inbox, leaving. */
#include "common/engine/instance.h"

#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/engine/plans.h"
#include "common/engine/why.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- values --- */

static bool member_value(jv data, const char *name, struct sl_buf *out)
{
	bool found = false;
	if (jv_get_kind(data) != JV_KIND_OBJECT)
		return false;
	jv exact = sl_json_get(data, name);
	found = sl_json_canonical(exact, out);
	jv_free(exact);
	if (found)
		return true;
	jv_object_foreach(data, key, value) /* A75: names compare case-insensitively */
	{
		if (!found && strcasecmp(jv_string_value(key), name) == 0)
			found = sl_json_canonical(value, out);
		jv_free(key);
		jv_free(value);
	}
	return found;
}

bool sl_corr_value(const struct sl_instance *inst, const char *name, jv data, struct sl_buf *out)
{
	const char *bound = sl_json_str(inst->bindings, name);
	if (bound) {
		sl_buf_adds(out, bound);
		return true;
	}
	return member_value(data, name, out);
}

void sl_corr_bind_value(struct sl_run *run, const char *name, const char *value)
{
	struct sl_instance *inst = run->inst;
	if (sl_json_str(inst->bindings, name)) /* A81: the first fixes it */
		return;
	inst->bindings = sl_json_set(inst->bindings, name, jv_string(value));
	inst->dirty = true;
}

void sl_corr_bind(struct sl_run *run, jv ev)
{
	const struct sl_plan *plan = run->inst->plan;
	struct sl_buf value;
	sl_buf_init(&value);
	for (int s = 0; s < plan->set_count; s++) {
		for (int i = 0; i < plan->sets[s].count; i++) {
			sl_buf_clear(&value);
			sl_buf_adds(&value, "");
			if (sl_event_canonical(ev, plan->sets[s].names[i], &value))
				sl_corr_bind_value(run, plan->sets[s].names[i], value.data);
		}
	}
	sl_buf_release(&value);
	int hops = (int)sl_json_int(ev, "sluicehops", 0);
	if (hops > run->inst->hops) {
		run->inst->hops = hops;
		run->inst->dirty = true;
	}
}

/* --- subscriptions --- */

int sl_corr_set_of(const struct sl_plan *plan, jv key)
{
	if (jv_get_kind(key) != JV_KIND_OBJECT)
		return -1;
	int length = jv_object_length(jv_copy(key));
	for (int s = 0; s < plan->set_count; s++) {
		int same = 0;
		for (int i = 0; i < plan->sets[s].count; i++)
			same += sl_json_str(key, plan->sets[s].names[i]) != NULL;
		if (same == length && same == plan->sets[s].count)
			return s;
	}
	return -1;
}

void sl_corr_add(struct sl_instance *inst, const char *box, jv key)
{
	inst->subs = realloc(inst->subs, sizeof(*inst->subs) * (size_t)(inst->sub_count + 1));
	char *copy = strdup(box);
	sl_assert(inst->subs && copy);
	inst->subs[inst->sub_count++] = (struct sl_subscription){copy, sl_corr_set_of(inst->plan, key), key};
	inst->dirty = true;
}

static void send_subscribe(struct sl_run *run, const struct sl_subscription *sub)
{
	const struct sl_plan *plan = run->inst->plan;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_SUBSCRIBE);
	fx->to = sl_arena_str(run->fx->arena, sub->box);
	fx->workflow = plan->id;
	fx->plan = plan->hash;
	fx->key = jv_copy(sub->key);
	fx->wants = sub->set < 0 ? jv_array()
				 : sl_plan_wants(plan, (const char *const *)plan->sets[sub->set].names,
					   plan->sets[sub->set].count);
}

void sl_corr_subscribe(struct sl_run *run, int set, const char *const *values)
{
	struct sl_instance *inst = run->inst;
	const struct sl_key_set *names = &inst->plan->sets[set];
	char box[34] = "#";
	sl_home_of_key((const char *const *)names->names, values, names->count, box + 1);
	for (int i = 0; i < inst->sub_count; i++)
		if (strcmp(inst->subs[i].box, box) == 0)
			return;
	jv key = jv_object();
	for (int i = 0; i < names->count; i++)
		key = sl_json_set(key, names->names[i], jv_string(values[i]));
	sl_corr_add(inst, box, key);
	send_subscribe(run, &inst->subs[inst->sub_count - 1]);
}

void sl_corr_resubscribe(struct sl_run *run, const char *except)
{
	for (int i = 0; i < run->inst->sub_count; i++)
		if (!except || strcmp(run->inst->subs[i].box, except) != 0)
			send_subscribe(run, &run->inst->subs[i]);
}

/* Is there a reference whose values come from bindings and data alone? */
static bool wants_early(const struct sl_plan *plan, int set)
{
	for (int i = 0; i < plan->event_count; i++) {
		const struct sl_event_def *def = &plan->events[i];
		bool plain = def->set == set && !def->produced;
		for (int k = 0; plain && k < def->key_count; k++)
			plain = def->keys[k].value == SL_NO_EXPR;
		if (plain)
			return true;
	}
	return false;
}

static bool has_set(const struct sl_instance *inst, int set)
{
	for (int i = 0; i < inst->sub_count; i++)
		if (inst->subs[i].set == set)
			return true;
	return false;
}

void sl_corr_eager(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	const struct sl_plan *plan = inst->plan;
	for (int s = 0; s < plan->set_count && inst->root; s++) {
		if (has_set(inst, s) || !wants_early(plan, s))
			continue;
		const struct sl_key_set *set = &plan->sets[s];
		const char **values = SL_NEWN(run->fx->arena, const char *, set->count);
		struct sl_buf value;
		bool known = true;
		for (int i = 0; i < set->count && known; i++) {
			sl_buf_init(&value);
			sl_buf_adds(&value, "");
			known = sl_corr_value(inst, set->names[i], inst->root->own, &value);
			values[i] = sl_arena_str(run->fx->arena, value.data);
			sl_buf_release(&value);
		}
		if (known)
			sl_corr_subscribe(run, s, values);
	}
}

/* A START from a mailbox: it holds subscription and claim already (ok). */
void sl_corr_started(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	const struct sl_msg *in = run->in;
	if (jv_get_kind(in->key) == JV_KIND_OBJECT) {
		jv_object_foreach(in->key, name, value)
		{
			if (jv_get_kind(value) == JV_KIND_STRING)
				sl_corr_bind_value(run, jv_string_value(name), jv_string_value(value));
			jv_free(name);
			jv_free(value);
		}
	}
	if (in->ok && in->box) {
		sl_corr_add(inst, in->box, jv_copy(in->key));
		inst->claim_box = strdup(in->box);
		sl_assert(inst->claim_box);
	}
}

/* --- duplicates (R6) --- */

static uint64_t mark_of(jv ev)
{
	struct sl_buf id;
	sl_buf_init(&id);
	sl_event_identity(ev, &id);
	uint64_t mark = sl_ring_mark(id.data, id.len);
	sl_buf_release(&id);
	return mark;
}

static void mark_text(uint64_t mark, char text[static 17])
{
	snprintf(text, 17, "%016llx", (unsigned long long)mark);
}

/* Where the mark stands among those of events handed back; -1: it does not. */
static int handed_index(const struct sl_instance *inst, uint64_t mark)
{
	char text[17];
	if (!jv_is_valid(inst->handed))
		return -1;
	mark_text(mark, text);
	int count = jv_array_length(jv_copy(inst->handed)), found = -1;
	for (int i = 0; i < count && found < 0; i++) {
		jv item = jv_array_get(jv_copy(inst->handed), i);
		if (jv_get_kind(item) == JV_KIND_STRING && strcmp(jv_string_value(item), text) == 0)
			found = i;
		jv_free(item);
	}
	return found;
}

bool sl_corr_seen(struct sl_run *run, jv ev)
{
	struct sl_instance *inst = run->inst;
	uint64_t mark = mark_of(ev);
	if (!sl_ring_has(&inst->events, mark))
		return false;
	/* what a faulted instance handed back may come to it once more in its second life */
	return sl_instance_ended(inst) || handed_index(inst, mark) < 0;
}

void sl_corr_remember(struct sl_run *run, jv ev)
{
	struct sl_instance *inst = run->inst;
	uint64_t mark = mark_of(ev);
	int at = handed_index(inst, mark);
	if (at >= 0) {
		jv left = jv_array();
		jv_array_foreach(inst->handed, i, item) left =
			i == at ? (jv_free(item), left) : jv_array_append(left, item);
		jv_free(inst->handed);
		inst->handed = left;
		inst->dirty = true;
	}
	sl_ring_add(&inst->events, mark);
}

/* --- inbox --- */

static struct sl_inbox_item *item_new(jv ev, const char *box, bool multi)
{
	struct sl_inbox_item *item = calloc(1, sizeof(*item));
	sl_assert(item);
	item->ev = ev;
	item->box = box ? strdup(box) : NULL;
	item->multi = multi;
	item->dirty = true;
	return item;
}

void sl_inbox_item_free(struct sl_inbox_item *item)
{
	jv_free(item->ev);
	free(item->box);
	free(item);
}

bool sl_inbox_add(struct sl_run *run, jv ev, const char *box, bool multi, bool start)
{
	struct sl_instance *inst = run->inst;
	const struct sl_limits *limits = &run->eng->limits;
	struct sl_inbox_item *item = item_new(ev, box, multi);
	item->start = start;
	item->bytes = start ? 0 : sl_value_bytes(ev);
	if (!start &&
		(inst->inbox_count >= limits->inbox_max || inst->inbox_bytes + item->bytes > limits->inbox_bytes_max)) {
		struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_DEAD_LETTER);
		fx->reason = "inbox-full";
		fx->workflow = inst->plan->id;
		fx->instance = run->id;
		fx->origin_topic = run->in->origin_topic;
		fx->origin_partition = run->in->origin_partition;
		fx->origin_offset = run->in->origin_offset;
		fx->event = jv_copy(ev);
		sl_corr_why(run, ev, SL_WHY_FULL);
		sl_inbox_item_free(item);
		return false;
	}
	item->n = inst->inbox_next++;
	*inst->inbox_end = item;
	inst->inbox_end = &item->next;
	inst->inbox_count++;
	inst->inbox_bytes += item->bytes;
	return true;
}

/* To the front: it came before what is there. */
void sl_inbox_put_back(struct sl_run *run, jv ev, const char *box, bool multi)
{
	struct sl_instance *inst = run->inst;
	struct sl_inbox_item *item = item_new(ev, box, multi);
	item->bytes = sl_value_bytes(ev);
	item->n = inst->inbox ? inst->inbox->n - 1 : inst->inbox_next++;
	item->next = inst->inbox;
	if (!inst->inbox)
		inst->inbox_end = &item->next;
	inst->inbox = item;
	inst->inbox_count++;
	inst->inbox_bytes += item->bytes;
}

void sl_inbox_remove(struct sl_run *run, struct sl_inbox_item *item)
{
	struct sl_instance *inst = run->inst;
	struct sl_inbox_item **at = &inst->inbox;
	while (*at != item)
		at = &(*at)->next;
	*at = item->next;
	if (!item->next)
		inst->inbox_end = at;
	inst->inbox_count--;
	inst->inbox_bytes -= item->bytes;
	if (item->stored) {
		char name[32];
		snprintf(name, sizeof(name), "b:%lld", (long long)item->n);
		sl_instance_delete(inst, name);
	}
}

void sl_inbox_drop_starts(struct sl_run *run)
{
	for (struct sl_inbox_item *item = run->inst->inbox, *next; item; item = next) {
		next = item->next;
		if (!item->start)
			continue;
		sl_inbox_remove(run, item);
		sl_inbox_item_free(item);
	}
}

/* --- leaving --- */

static void remember_handed(struct sl_run *run, jv ev)
{
	struct sl_instance *inst = run->inst;
	char text[17];
	if (inst->status != SL_FAULTED)
		return;
	mark_text(mark_of(ev), text);
	if (!jv_is_valid(inst->handed)) {
		jv_free(inst->handed);
		inst->handed = jv_array();
	}
	inst->handed = jv_array_append(inst->handed, jv_string(text));
}

/* Unsubscribe and hand-back are one effect a mailbox. What several instances of the workflow got is not decided again.
 */
void sl_corr_leave(struct sl_run *run)
{
	struct sl_instance *inst = run->inst;
	for (int i = 0; i < inst->sub_count; i++) {
		jv back = jv_array();
		for (struct sl_inbox_item *item = inst->inbox; item; item = item->next) {
			if (!item->box || item->multi || strcmp(item->box, inst->subs[i].box) != 0 || !SL_RULE(hand_back))
				continue;
			back = jv_array_append(back, jv_copy(item->ev));
			remember_handed(run, item->ev);
		}
		struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_UNSUBSCRIBE);
		fx->to = sl_arena_str(run->fx->arena, inst->subs[i].box);
		fx->workflow = inst->plan->id;
		fx->plan = inst->plan->hash;
		fx->key = jv_copy(inst->subs[i].key);
		fx->events = back;
	}
	while (inst->inbox) {
		struct sl_inbox_item *item = inst->inbox;
		sl_inbox_remove(run, item);
		sl_inbox_item_free(item);
	}
}

void sl_corr_why(struct sl_run *run, jv ev, const char *decision)
{
	struct sl_why why;
	sl_why_init(&why);
	sl_why_result(&why, decision, run->inst->plan->id, run->inst->plan->hash, run->id);
	sl_effects_add(run->fx, SL_MSG_WHY)->data = sl_why_take(&why, run->id, ev, decision);
	sl_why_release(&why);
}
