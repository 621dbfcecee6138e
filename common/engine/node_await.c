/* Await: arming, collecting events, and what then runs (0.8 "Event State", "Callback State", "Switch State" with events,
 * eventRef; A19, A20, A77, A79; design section 5 "Instance"). */
#include "common/engine/instance.h"

#include <stdio.h>
#include <string.h>
#include "common/engine/plans.h"
#include "common/engine/route.h"

/* phases; m is 1 while `before` is not done, n is the alternative whose body runs */
enum { AWAIT_WAITS = 1, AWAIT_BODIES };

/* info: {keys: {EVENT: {attribute: value} | null (waits for the action's result)}, local: [type, "*" for any]}
 * own:  [{name: EVENT, event, box?, multi?}] in order of arrival */

bool sl_await_waits(const struct sl_frame *frame)
{
	return frame->phase == AWAIT_WAITS;
}

static const char *def_name(const struct sl_plan *plan, int event, char text[static 16])
{
	if (plan->events[event].name)
		return plan->events[event].name;
	snprintf(text, 16, "%d", event);
	return text;
}

/* --- which events --- */

/* Numbers of the events of a condition, in order; returns the count. */
static int cond_events(const struct sl_cond *cond, int *ret, int count)
{
	if (cond->kind == SL_COND_EVENT) {
		ret[count] = cond->event;
		return count + 1;
	}
	for (int i = 0; i < cond->count; i++)
		count = cond_events(&cond->items[i], ret, count);
	return count;
}

static int cond_size(const struct sl_cond *cond)
{
	int size = cond->kind == SL_COND_EVENT;
	for (int i = 0; i < cond->count && cond->kind != SL_COND_EVENT; i++)
		size += cond_size(&cond->items[i]);
	return size;
}

/* All events that the await refers to, each once, in order; arena memory. */
static int *all_events(struct sl_run *run, const struct sl_await *await, int *ret_count)
{
	int size = 0, count = 0;
	for (int i = 0; i < await->alt_count; i++)
		size += cond_size(&await->alts[i].cond);
	int *events = SL_NEWN(run->fx->arena, int, size ? size : 1);
	for (int i = 0; i < await->alt_count; i++) {
		int *own = SL_NEWN(run->fx->arena, int, cond_size(&await->alts[i].cond) + 1);
		int n = cond_events(&await->alts[i].cond, own, 0);
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
static jv collected(const struct sl_frame *frame, const char *name)
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

static bool is_collected(struct sl_run *run, const struct sl_frame *frame, int event)
{
	char text[16];
	jv item = collected(frame, def_name(run->inst->plan, event, text));
	bool found = jv_is_valid(item);
	jv_free(item);
	return found;
}

static bool cond_true(struct sl_run *run, const struct sl_frame *frame, const struct sl_cond *cond)
{
	if (cond->kind == SL_COND_EVENT)
		return is_collected(run, frame, cond->event);
	for (int i = 0; i < cond->count; i++)
		if (cond_true(run, frame, &cond->items[i]) != (cond->kind == SL_COND_AND))
			return cond->kind == SL_COND_OR;
	return cond->kind == SL_COND_AND;
}

/* The alternative that is satisfied: its number, or for `all` 0 once every one is; -1: not yet. */
static int satisfied(struct sl_run *run, const struct sl_frame *frame)
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

static jv known_keys(const struct sl_frame *frame, const char *name)
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
	return def->key_count > 0 && jv_get_kind(keys) == JV_KIND_OBJECT && jv_object_length(jv_copy(keys)) == def->key_count;
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
	const char *to = sl_route_local_box(run->fx->arena, partition, run->actor->ns, strcmp(type, "*") == 0 ? NULL : type);
	struct sl_msg *fx = sl_effects_add(run->fx, kind);
	fx->to = to;
	fx->workflow = run->inst->plan->id;
	fx->plan = run->inst->plan->hash;
	fx->token = frame->token;
	return fx;
}

/* Unkeyed or unbound: at the partition's local mailbox of the type, by token, while the wait lasts. */
static void subscribe_local(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count, *events = all_events(run, &frame->node->u.await, &count);
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
			jv keys = known_keys(frame, def_name(plan, events[k], text));
			if (strcmp(type_of(other), type_of(def)) == 0 && jv_get_kind(keys) == JV_KIND_OBJECT && !is_complete(other, keys))
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
static bool arm_keys(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count;
	int *events = all_events(run, &frame->node->u.await, &count);
	if (!jv_is_valid(frame->info)) {
		jv_free(frame->info);
		frame->info = jv_object();
	}
	for (int i = 0; i < count; i++) {
		const struct sl_event_def *def = &plan->events[events[i]];
		const char *name = def_name(plan, events[i], text);
		jv keys = known_keys(frame, name);
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

/* --- taking events --- */

/* Type, source and filters, then the key: each attribute present (A81) and equal to the value that is known. */
static bool matches(struct sl_run *run, const struct sl_frame *frame, int event, jv ev)
{
	const struct sl_plan *plan = run->inst->plan;
	const struct sl_event_def *def = &plan->events[event];
	char text[16];
	if (!sl_event_def_matches(def, ev, NULL))
		return false;
	jv keys = known_keys(frame, def_name(plan, event, text));
	bool same = jv_get_kind(keys) == JV_KIND_OBJECT;
	struct sl_buf value;
	sl_buf_init(&value);
	for (int k = 0; k < def->key_count && same; k++) {
		const char *wanted = sl_json_str(keys, def->keys[k].name);
		if (!wanted)
			wanted = sl_json_str(run->inst->bindings, def->keys[k].name);
		sl_buf_clear(&value);
		sl_buf_adds(&value, "");
		same = sl_event_canonical(ev, def->keys[k].name, &value) && (!wanted || strcmp(wanted, value.data) == 0);
	}
	sl_buf_release(&value);
	jv_free(keys);
	return same;
}

/* The first reference that has no event yet and matches; false: none. */
static bool collect(struct sl_run *run, struct sl_frame *frame, jv ev, const char *box, bool multi, bool start)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count;
	int *events = all_events(run, &frame->node->u.await, &count);
	for (int i = 0; i < count; i++) {
		if (is_collected(run, frame, events[i]))
			continue;
		if (start ? !sl_event_def_matches(&plan->events[events[i]], ev, NULL) : !matches(run, frame, events[i], ev))
			continue;
		jv item = sl_json_set(jv_object(), "name", jv_string(def_name(plan, events[i], text)));
		item = sl_json_set(item, "event", jv_copy(ev));
		if (box)
			item = sl_json_set(item, "box", jv_string(box));
		if (multi)
			item = sl_json_set(item, "multi", jv_true());
		jv own = jv_get_kind(frame->own) == JV_KIND_ARRAY ? jv_copy(frame->own) : jv_array();
		sl_frame_set_own(frame, jv_array_append(own, item));
		sl_corr_bind(run, ev);
		return true;
	}
	return false;
}

static void take_inbox(struct sl_run *run, struct sl_frame *frame)
{
	for (struct sl_inbox_item *item = run->inst->inbox, *next; item && satisfied(run, frame) < 0; item = next) {
		next = item->next;
		if (!collect(run, frame, item->ev, item->box, item->multi, item->start))
			continue;
		sl_inbox_remove(run, item);
		if (!item->start)
			sl_corr_why(run, item->ev, "taken");
		sl_inbox_item_free(item);
	}
}

/* What is in the inbox already needs no subscription for what is unkeyed. */
static bool arm(struct sl_run *run, struct sl_frame *frame)
{
	if (!arm_keys(run, frame))
		return false;
	take_inbox(run, frame);
	if (satisfied(run, frame) < 0)
		subscribe_local(run, frame);
	return true;
}

/* `used`: alternative whose events are consumed, -1: none are. */
static void put_back(struct sl_run *run, struct sl_frame *frame, int used)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count = jv_get_kind(frame->own) == JV_KIND_ARRAY ? jv_array_length(jv_copy(frame->own)) : 0, n = 0;
	int *events = NULL;
	jv kept = jv_array();
	if (used >= 0) {
		events = SL_NEWN(run->fx->arena, int, cond_size(&frame->node->u.await.alts[used].cond) + 1);
		n = cond_events(&frame->node->u.await.alts[used].cond, events, 0);
	}
	for (int i = count - 1; i >= 0; i--) { /* from the back: each goes to the front */
		jv item = jv_array_get(jv_copy(frame->own), i);
		const char *name = sl_json_str(item, "name"), *box = sl_json_str(item, "box");
		bool keep = false;
		for (int k = 0; k < n && name; k++)
			keep = keep || strcmp(def_name(plan, events[k], text), name) == 0;
		if (!keep && box)
			sl_inbox_put_back(run, sl_json_get(item, "event"), box, sl_json_bool(item, "multi", false));
		if (keep)
			kept = jv_array_append(kept, item);
		else
			jv_free(item);
	}
	jv order = jv_array();
	for (int i = jv_array_length(jv_copy(kept)) - 1; i >= 0; i--)
		order = jv_array_append(order, jv_array_get(jv_copy(kept), i));
	jv_free(kept);
	sl_frame_set_own(frame, order);
}

void sl_await_put_back(struct sl_run *run, struct sl_frame *frame)
{
	if (frame->phase == AWAIT_WAITS && jv_is_valid(frame->own))
		put_back(run, frame, -1);
}

/* --- what then runs --- */

static struct sl_frame *action_of(const struct sl_frame *frame)
{
	struct sl_frame *parent = frame->parent;
	return parent && parent->part == SL_PART_NODE && parent->node->kind == SL_NODE_ACTION ? parent : NULL;
}

/* Event data filters, in order of the references. In an action the data are its result, and its own filter merges them. */
static bool apply_events(struct sl_run *run, struct sl_frame *frame, const struct sl_alt *alt)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int *events = SL_NEWN(run->fx->arena, int, cond_size(&alt->cond) + 1);
	int count = cond_events(&alt->cond, events, 0);
	for (int i = 0; i < count; i++) {
		jv item = collected(frame, def_name(plan, events[i], text));
		if (!jv_is_valid(item)) {
			jv_free(item);
			continue;
		}
		jv ev = sl_json_get(item, "event");
		jv_free(item);
		jv value = plan->events[events[i]].data_only ? sl_event_data(ev) : jv_copy(ev);
		jv_free(ev);
		if (!action_of(frame)) {
			if (!sl_data_apply(run, frame, &alt->filter, value, NULL))
				return false;
			continue;
		}
		jv selected;
		if (!sl_data_filter(run, frame, alt->filter.select, value, &selected))
			return false;
		sl_node_done(run, selected);
	}
	return true;
}

static enum sl_out bodies(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	for (;;) {
		const struct sl_alt *alt = &await->alts[frame->n];
		struct sl_frame *child;
		if (!apply_events(run, frame, alt))
			return SL_OUT_FAILED;
		if (alt->body) {
			enum sl_out out = sl_node_start(run, frame, alt->body, SL_PART_NODE, (int)frame->n, &child);
			if (out != SL_OUT_DONE)
				return out;
			sl_frame_drop(run, child);
		}
		if (!await->all || frame->n + 1 >= await->alt_count)
			break;
		frame->n++;
	}
	run->next = await->all ? NULL : await->alts[frame->n].next;
	if (action_of(frame))
		return SL_OUT_DONE; /* run->value is the event's */
	return sl_node_done(run, jv_invalid());
}

/* Goes on once everything is in; the result of `before` is merged first, even when the event came first. */
static enum sl_out proceed(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	int alt = satisfied(run, frame);
	if (alt < 0 || frame->m == 1)
		return SL_OUT_WAIT;
	sl_frame_timer_clear(run, frame);
	if (frame->token || jv_is_valid(frame->info))
		sl_await_disarm(run, frame);
	if (!await->all)
		put_back(run, frame, alt);
	frame->phase = AWAIT_BODIES;
	frame->n = alt;
	return bodies(run, frame);
}

static enum sl_out set_timeout(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_span *span = &frame->node->u.await.timeout;
	int64_t ms;
	if (!span->given || frame->timer)
		return SL_OUT_WAIT;
	if (!sl_data_span(run, frame, span, &ms))
		return SL_OUT_FAILED;
	sl_frame_timer_set(run, frame, run->now_ms + ms);
	return SL_OUT_WAIT;
}

static enum sl_out before_done(struct sl_run *run, struct sl_frame *frame)
{
	frame->m = 0;
	jv_free(run->value);
	run->value = jv_invalid();
	if (!arm(run, frame))
		return SL_OUT_FAILED;
	return proceed(run, frame);
}

static enum sl_out await_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	struct sl_frame *action = action_of(frame);
	struct sl_frame *child;
	enum sl_out out;
	frame->phase = AWAIT_WAITS;
	frame->m = await->before ? 1 : 0;
	if (action && action->node->u.action.async) { /* produces only */
		if (!await->before)
			return sl_node_done(run, jv_invalid());
		frame->m = 0;
		out = sl_node_start(run, frame, await->before, SL_PART_NODE, await->alt_count, &child);
		return out == SL_OUT_DONE ? sl_node_done(run, jv_invalid()) : out;
	}
	if (!arm(run, frame))
		return SL_OUT_FAILED;
	if (await->before) {
		out = sl_node_start(run, frame, await->before, SL_PART_NODE, await->alt_count, &child);
		if (out == SL_OUT_DONE) {
			sl_frame_drop(run, child);
			out = before_done(run, frame);
		}
	} else {
		out = proceed(run, frame);
	}
	if (out == SL_OUT_WAIT && frame->phase == AWAIT_WAITS)
		out = set_timeout(run, frame);
	return out;
}

static enum sl_out await_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	const struct sl_await *await = &frame->node->u.await;
	if (out != SL_OUT_DONE)
		return out;
	sl_frame_drop(run, child);
	if (frame->phase == AWAIT_WAITS)
		return before_done(run, frame);
	if (await->all && frame->n + 1 < await->alt_count) {
		frame->n++;
		return bodies(run, frame);
	}
	run->next = await->all ? NULL : await->alts[frame->n].next;
	return sl_node_done(run, jv_invalid());
}

/* A19: no action is performed; A12: an eventRef raises. */
static enum sl_out await_timer(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_await *await = &frame->node->u.await;
	while (frame->first)
		sl_frame_drop(run, frame->first);
	sl_await_disarm(run, frame);
	sl_await_put_back(run, frame);
	if (await->timeout_raises)
		return sl_node_timeout(run, frame, "event");
	run->next = await->timeout_next;
	return sl_node_done(run, jv_invalid());
}

static enum sl_out await_resume(struct sl_run *run, struct sl_frame *frame)
{
	if (frame->phase == AWAIT_BODIES)
		return frame->first ? SL_OUT_WAIT : bodies(run, frame);
	if (!frame->first && (frame->phase == 0 || frame->m == 1))
		return await_enter(run, frame);
	if (!arm(run, frame))
		return SL_OUT_FAILED;
	enum sl_out out = frame->first ? SL_OUT_WAIT : proceed(run, frame);
	return out == SL_OUT_WAIT ? set_timeout(run, frame) : out;
}

const struct sl_node_ops sl_ops_await = {await_enter, await_child, await_timer, await_resume};

/* --- deliveries --- */

bool sl_await_offer(struct sl_run *run, jv ev, const char *box, bool multi, int64_t token)
{
	struct sl_frame *root = run->inst->root;
	for (struct sl_frame *frame = root; frame; frame = sl_frame_next(frame, root)) {
		if (frame->part != SL_PART_NODE || frame->node->kind != SL_NODE_AWAIT || frame->phase != AWAIT_WAITS)
			continue;
		if ((token && frame->token != token) || satisfied(run, frame) >= 0 || !collect(run, frame, ev, box, multi, false))
			continue;
		run->changed = true;
		sl_node_touch(frame);
		sl_corr_remember(run, ev);
		sl_node_climb(run, frame, proceed(run, frame));
		return true;
	}
	return false;
}
