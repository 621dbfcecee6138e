/* Await: which events it takes, from deliveries and from the inbox (A77, A79-A81). */
#include <string.h>

#include "common/engine/await.h"
#include "common/engine/plans.h"

bool sl_await_waits(const struct sl_frame *frame)
{
	return frame->phase == AWAIT_WAITS;
}

/* Type, source and filters, then the key: each attribute present (A81) and equal to the value that is known. */
static bool matches(struct sl_run *run, const struct sl_frame *frame, int event, jv ev)
{
	const struct sl_plan *plan = run->inst->plan;
	const struct sl_event_def *def = &plan->events[event];
	char text[16];
	if (!sl_event_def_matches(def, ev, NULL))
		return false;
	jv keys = sl_await_keys(frame, sl_await_name(plan, event, text));
	bool same = jv_get_kind(keys) == JV_KIND_OBJECT;
	struct sl_buf value;
	sl_buf_init(&value);
	for (int k = 0; k < def->key_count && same; k++) {
		const char *wanted = sl_json_str(keys, def->keys[k].name);
		if (!wanted)
			wanted = sl_json_str(run->inst->bindings, def->keys[k].name);
		sl_buf_clear(&value);
		sl_buf_adds(&value, "");
		same = sl_event_canonical(ev, def->keys[k].name, &value) &&
		       (!wanted || strcmp(wanted, value.data) == 0);
	}
	sl_buf_release(&value);
	jv_free(keys);
	return same;
}

/* The first reference that has no event yet and matches; false: none. */
bool sl_await_collect(struct sl_run *run, struct sl_frame *frame, jv ev, const char *box, bool multi, bool start)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count;
	int *events = sl_await_all_events(run, &frame->node->u.await, &count);
	for (int i = 0; i < count; i++) {
		if (sl_await_has(run, frame, events[i]))
			continue;
		if (start ? !sl_event_def_matches(&plan->events[events[i]], ev, NULL)
			  : !matches(run, frame, events[i], ev))
			continue;
		jv item = sl_json_set(jv_object(), "name", jv_string(sl_await_name(plan, events[i], text)));
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
	for (struct sl_inbox_item *item = run->inst->inbox, *next; item && sl_await_satisfied(run, frame) < 0;
		item = next) {
		next = item->next;
		if (!sl_await_collect(run, frame, item->ev, item->box, item->multi, item->start))
			continue;
		sl_inbox_remove(run, item);
		if (!item->start)
			sl_corr_why(run, item->ev, "taken");
		sl_inbox_item_free(item);
	}
}

/* What is in the inbox already needs no subscription for what is unkeyed. */
bool sl_await_arm(struct sl_run *run, struct sl_frame *frame)
{
	if (!sl_await_arm_keys(run, frame))
		return false;
	take_inbox(run, frame);
	if (sl_await_satisfied(run, frame) < 0)
		sl_await_subscribe_local(run, frame);
	return true;
}

/* `used`: alternative whose events are consumed, -1: none are. */
void sl_await_put_back_but(struct sl_run *run, struct sl_frame *frame, int used)
{
	const struct sl_plan *plan = run->inst->plan;
	char text[16];
	int count = jv_get_kind(frame->own) == JV_KIND_ARRAY ? jv_array_length(jv_copy(frame->own)) : 0, n = 0;
	int *events = NULL;
	jv kept = jv_array();
	if (used >= 0) {
		events = SL_NEWN(run->fx->arena, int, sl_await_size(&frame->node->u.await.alts[used].cond) + 1);
		n = sl_await_events(&frame->node->u.await.alts[used].cond, events, 0);
	}
	for (int i = count - 1; i >= 0; i--) { /* from the back: each goes to the front */
		jv item = jv_array_get(jv_copy(frame->own), i);
		const char *name = sl_json_str(item, "name"), *box = sl_json_str(item, "box");
		bool keep = false;
		for (int k = 0; k < n && name; k++)
			keep = keep || strcmp(sl_await_name(plan, events[k], text), name) == 0;
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
		sl_await_put_back_but(run, frame, -1);
}
