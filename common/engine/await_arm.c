/* Await: which events it refers to, the values of their keys, and where it subscribes (design section 5 "Instance",
 * "Values"). */
#include <stdio.h>
#include <string.h>

#include "common/engine/await.h"
#include "common/engine/route.h"

const char *sl_await_name(const struct sl_plan *plan, int event, char text[static 16])
{
	if (plan->events[event].name)
		return plan->events[event].name;
	snprintf(text, 16, "%d", event);
	return text;
}

/* --- which events --- */

/* Numbers of the events of a condition, in order; returns the count. */
int sl_await_events(const struct sl_cond *cond, int *ret, int count)
{
	if (cond->kind == SL_COND_EVENT) {
		ret[count] = cond->event;
		return count + 1;
	}
	for (int i = 0; i < cond->count; i++)
		count = sl_await_events(&cond->items[i], ret, count);
	return count;
}

int sl_await_size(const struct sl_cond *cond)
{
	int size = cond->kind == SL_COND_EVENT;
	for (int i = 0; i < cond->count && cond->kind != SL_COND_EVENT; i++)
		size += sl_await_size(&cond->items[i]);
	return size;
}

/* All events that the await refers to, each once, in order; arena memory. */
int *sl_await_all_events(struct sl_run *run, const struct sl_await *await, int *ret_count)
{
	int size = 0, count = 0;
	for (int i = 0; i < await->alt_count; i++)
		size += sl_await_size(&await->alts[i].cond);
	int *events = SL_NEWN(run->fx->arena, int, size ? size : 1);
	for (int i = 0; i < await->alt_count; i++) {
		int *own = SL_NEWN(run->fx->arena, int, sl_await_size(&await->alts[i].cond) + 1);
		int n = sl_await_events(&await->alts[i].cond, own, 0);
		for (int k = 0; k < n; k++) {
			bool known = false;
			for (int j = 0; j < count; j++)
				known = known || events[j] == own[k];
			if (!known)
				events[count++] = own[k];
		}
	}
	*ret_count = count;
	return events;
}

/* What was collected for an event definition; a copy or invalid. */
jv sl_await_collected(const struct sl_frame *frame, const char *name)
{
	int count = jv_get_kind(frame->own) == JV_KIND_ARRAY ? jv_array_length(jv_copy(frame->own)) : 0;
	for (int i = 0; i < count; i++) {
		jv item = jv_array_get(jv_copy(frame->own), i);
		const char *its = sl_json_str(item, "name");
		if (its && strcmp(its, name) == 0)
			return item;
		jv_free(item);
	}
	return jv_invalid();
}

bool sl_await_has(struct sl_run *run, const struct sl_frame *frame, int event)
{
	char text[16];
	jv item = sl_await_collected(frame, sl_await_name(run->inst->plan, event, text));
	bool found = jv_is_valid(item);
	jv_free(item);
	return found;
}

static bool cond_true(struct sl_run *run, const struct sl_frame *frame, const struct sl_cond *cond)
{
	if (cond->kind == SL_COND_EVENT)
		return sl_await_has(run, frame, cond->event);
	for (int i = 0; i < cond->count; i++)
		if (cond_true(run, frame, &cond->items[i]) != (cond->kind == SL_COND_AND))
			return cond->kind == SL_COND_OR;
	return cond->kind == SL_COND_AND;
}

/* The alternative that is satisfied: its number, or for `all` 0 once every one is; -1: not yet. */
int sl_await_satisfied(struct sl_run *run, const struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	int done = 0;
	for (int i = 0; i < await->alt_count; i++) {
		if (!cond_true(run, frame, &await->alts[i].cond))
			continue;
		if (!await->all)
			return i;
		done++;
	}
	return await->all && done == await->alt_count ? 0 : -1;
}

/* --- arming --- */

jv sl_await_keys(const struct sl_frame *frame, const char *name)
{
	jv keys = sl_json_get(frame->info, "keys");
	jv known = sl_json_get(keys, name);
	jv_free(keys);
	return known;
}

/* Values of one event's key, by the rule of design section 5. *ret_keys null: an expression gave null and will be asked
 * again after the action's result. */
static bool key_values(struct sl_run *run, struct sl_frame *frame, const struct sl_event_def *def, jv *ret_keys)
{
	bool again = frame->m == 1;
	jv keys = jv_object(), data = sl_frame_data(frame);
	struct sl_buf value;
	sl_buf_init(&value);
	for (int k = 0; k < def->key_count; k++) {
		const struct sl_key_part *part = &def->keys[k];
		bool known = false;
		sl_buf_clear(&value);
		sl_buf_adds(&value, "");
		if (part->value != SL_NO_EXPR) {
			jv result;
			if (!sl_data_eval(run, frame, part->value, jv_copy(data), &result)) {
				sl_buf_release(&value);
				jv_free(keys);
				jv_free(data);
				return false;
			}
			known = sl_json_canonical(result, &value);
			jv_free(result);
			if (!known && again) {
				jv_free(keys);
				keys = jv_null();
				break;
			}
		}
		if (known || sl_corr_value(run->inst, part->name, data, &value))
			keys = sl_json_set(keys, part->name, jv_string(value.data));
	}
	sl_buf_release(&value);
	jv_free(data);
	*ret_keys = keys;
	return true;
}

static bool is_complete(const struct sl_event_def *def, jv keys)
{
	return def->key_count > 0 && jv_get_kind(keys) == JV_KIND_OBJECT &&
	       jv_object_length(jv_copy(keys)) == def->key_count;
}

static void subscribe_key(struct sl_run *run, const struct sl_event_def *def, jv keys)
{
	const char **values = SL_NEWN(run->fx->arena, const char *, def->key_count);
	for (int k = 0; k < def->key_count; k++)
		values[k] = sl_arena_str(run->fx->arena, sl_json_str(keys, def->keys[k].name));
	if (def->set >= 0)
		sl_corr_subscribe(run, def->set, values);
}

static jv want_of(const struct sl_event_def *def)
{
	jv want = jv_object();
	if (def->type)
		want = sl_json_set(want, "type", jv_string(def->type));
	if (def->source)
		want = sl_json_set(want, "source", jv_string(def->source));
	jv filters = jv_object();
	for (int i = 0; i < def->filter_count; i++)
		if (def->filters[i].value)
			filters = sl_json_set(filters, def->filters[i].name, jv_string(def->filters[i].value));
	if (jv_object_length(jv_copy(filters)))
		return sl_json_set(want, "filters", filters);
	jv_free(filters);
	return want;
}

static const char *type_of(const struct sl_event_def *def)
{
	return def->type ? def->type : "*";
}

static bool has_local(jv list, const char *type)
{
	bool found = false;
	if (jv_get_kind(list) != JV_KIND_ARRAY)
		return false;
	jv_array_foreach(list, i, item)
	{
		found = found || strcmp(jv_string_value(item), type) == 0;
		jv_free(item);
	}
	return found;
}

static struct sl_msg *local_msg(struct sl_run *run, struct sl_frame *frame, enum sl_msg_kind kind, const char *type)
{
	int32_t partition = sl_id_partition(run->actor->ns, run->actor->id, run->eng->partitions);
	const char *to =
		sl_route_local_box(run->fx->arena, partition, run->actor->ns, strcmp(type, "*") == 0 ? NULL : type);
	struct sl_msg *fx = sl_effects_add(run->fx, kind);
	fx->to = to;
	fx->workflow = run->inst->plan->id;
	fx->plan = run->inst->plan->hash;
	fx->token = frame->token;
	return fx;
}

/* Unkeyed or unbound: at the partition's local mailbox of the type, by token, while the wait lasts. */
void sl_await_subscribe_local(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count, *events = sl_await_all_events(run, &frame->node->u.await, &count);
	jv list = sl_json_get(frame->info, "local");
	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		jv_free(list);
		list = jv_array();
	}
	for (int i = 0; i < count; i++) {
		const struct sl_event_def *def = &plan->events[events[i]];
		if (has_local(list, type_of(def)))
			continue;
		jv wants = jv_array();
		for (int k = i; k < count; k++) {
			const struct sl_event_def *other = &plan->events[events[k]];
			jv keys = sl_await_keys(frame, sl_await_name(plan, events[k], text));
			if (strcmp(type_of(other), type_of(def)) == 0 && jv_get_kind(keys) == JV_KIND_OBJECT &&
				!is_complete(other, keys))
				wants = jv_array_append(wants, want_of(other));
			jv_free(keys);
		}
		if (jv_array_length(jv_copy(wants)) == 0) {
			jv_free(wants);
			continue;
		}
		if (!frame->token)
			frame->token = sl_instance_token(run->inst);
		list = jv_array_append(list, jv_string(type_of(def)));
		local_msg(run, frame, SL_MSG_SUBSCRIBE, type_of(def))->wants = wants;
	}
	frame->info = sl_json_set(frame->info, "local", list);
}

/* Keys and their mailboxes. Values known so far are kept; what was null is asked again. */
bool sl_await_arm_keys(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count;
	int *events = sl_await_all_events(run, &frame->node->u.await, &count);
	if (!jv_is_valid(frame->info)) {
		jv_free(frame->info);
		frame->info = jv_object();
	}
	for (int i = 0; i < count; i++) {
		const struct sl_event_def *def = &plan->events[events[i]];
		const char *name = sl_await_name(plan, events[i], text);
		jv keys = sl_await_keys(frame, name);
		bool known = jv_get_kind(keys) == JV_KIND_OBJECT;
		if (known) {
			jv_free(keys);
			continue;
		}
		jv_free(keys);
		if (!key_values(run, frame, def, &keys))
			return false;
		if (is_complete(def, keys))
			subscribe_key(run, def, keys);
		jv all = sl_json_get(frame->info, "keys");
		if (jv_get_kind(all) != JV_KIND_OBJECT) {
			jv_free(all);
			all = jv_object();
		}
		frame->info = sl_json_set(frame->info, "keys", sl_json_set(all, name, keys));
	}
	return true;
}

void sl_await_disarm(struct sl_run *run, struct sl_frame *frame)
{
	jv list = sl_json_get(frame->info, "local");
	if (jv_get_kind(list) == JV_KIND_ARRAY) {
		jv_array_foreach(list, i, type)
		{
			local_msg(run, frame, SL_MSG_UNSUBSCRIBE, jv_string_value(type));
			jv_free(type);
		}
	}
	jv_free(list);
	jv_free(frame->info);
	frame->info = jv_invalid();
	frame->token = 0;
	sl_node_touch(frame);
}
