/* Starts: one instance for one event, or for the members of an all-of join once they are complete. */
#include "common/engine/mailbox_int.h"
#include "common/base/rules.h"

#include "common/model/event.h"
#include <stdio.h>
#include <string.h>

#define SERIAL_BYTES 32

/* 64 bits of a derived id; the version and variant digits in its middle are left out. */
static void serial_of(const char id[SL_UUID_TEXT], char ret[static SERIAL_BYTES])
{
	snprintf(ret, SERIAL_BYTES, "%.8s%.8s", id, id + 28);
}

static struct sl_msg *add_start(struct box_step *st, const struct sl_plan *plan, const char *inst, jv events)
{
	struct sl_arena *arena = st->fx->arena;
	char id[SL_UUID_TEXT];
	jv last = jv_array_get(jv_copy(events), jv_array_length(jv_copy(events)) - 1);
	sl_id_effect(st->box->ns, st->pos, st->fx->count - st->first, id);
	struct sl_msg *msg = sl_box_add(st, SL_MSG_START, inst, last);
	msg->id = sl_arena_str(arena, id);
	msg->workflow = sl_arena_str(arena, plan->id);
	msg->version = sl_arena_str(arena, plan->version);
	msg->plan = sl_arena_str(arena, plan->hash);
	msg->events = events;
	jv_free(last);
	return msg;
}

/* The serial of an instance that one event starts: readable in a single process, else from the effect's id (R3). */
static void next_serial(struct box_step *st, char ret[static SERIAL_BYTES])
{
	struct sl_mailbox *box = st->box;
	if (st->eng->single) {
		int64_t n = sl_json_int(box->header.obj, "serial", 0) + 1;
		sl_box_header(box, "serial", jv_number((double)n));
		snprintf(ret, SERIAL_BYTES, "%lld", (long long)n);
	} else {
		char id[SL_UUID_TEXT];
		sl_id_effect(box->ns, st->pos, st->fx->count - st->first, id);
		serial_of(id, ret);
	}
}

/* Claim, subscription, start and the early events, all in this step: nothing can come between them. */
void sl_box_start(struct box_step *st, struct sl_plan *plan, jv events, const char *serial, struct sl_why *why)
{
	struct sl_mailbox *box = st->box;
	struct sl_arena *arena = st->fx->arena;
	char made[SERIAL_BYTES];
	if (!serial || st->eng->single) {
		next_serial(st, made);
		serial = made;
	}
	const char *inst = sl_arena_printf(arena, "%s.%s", box->id + 1, serial);
	struct sl_msg *msg = add_start(st, plan, inst, events);
	msg->box = sl_arena_str(arena, box->id);
	msg->ok = true;
	msg->key = sl_json_get(box->header.obj, "key");
	sl_box_claim(box, sl_box_wf(box, plan->id), inst);
	struct box_sub *sub = sl_box_sub(
		box, inst, plan->id, 0, sl_plan_wants(plan, (const char *const *)box->key_names, box->key_count));
	sl_why_result(why, SL_WHY_STARTED, plan->id, plan->hash, inst);
	if (sub)
		sl_box_offer_early(st, sub);
}

/* --- all-of --- */

static void drop(struct box_step *st, struct box_join *join, const char *decision, const char *note)
{
	struct sl_why why;
	sl_why_init(&why);
	why.note = note;
	sl_why_result(&why, decision, join->workflow, NULL, NULL);
	sl_box_why(st, &why, join->event, decision);
	sl_box_item_remove(st->box, BOX_JOINS, &join->item);
}

static bool fits_some(const struct sl_plan *plan, jv ev)
{
	for (int i = 0; i < plan->start.count; i++)
		if (sl_event_def_matches(&plan->events[plan->start.events[i]], ev, NULL))
			return true;
	return false;
}

/* Does this mailbox still join for the plan (NULL: nothing listens any more)? */
static bool joins_here(const struct sl_mailbox *box, const struct sl_plan *plan)
{
	const char *const *names;
	int count;
	if (!plan || !sl_plan_join(plan, &names, &count))
		return false;
	if (!count)
		return box->join_workflow != NULL;
	bool same = count == box->key_count;
	for (int i = 0; same && i < count; i++)
		same = strcmp(names[i], box->key_names[i]) == 0;
	return same;
}

/* A140: the window is each member's own. A member is dead when the version that listens now has no use for it (A168).
 */
void sl_box_join_expire(struct box_step *st, bool dead)
{
	box_each(&st->box->lists[BOX_JOINS], it)
	{
		struct box_join *join = (struct box_join *)it;
		if (join->expires_ms && st->now_ms > join->expires_ms) {
			drop(st, join, SL_WHY_EXPIRED, "the other events of the start did not come within its window");
			continue;
		}
		if (!dead)
			continue;
		struct sl_plan *plan = sl_plans_current(st->eng->plans, st->box->ns, join->workflow, NULL);
		if (!joins_here(st->box, plan) || !fits_some(plan, join->event))
			drop(st, join, SL_WHY_DEAD, "no deployed version of the workflow starts with it");
	}
}

/* For each start event the oldest member that fits and is not used by another one (A139). NULL unless complete. */
static struct box_join **complete(struct box_step *st, const struct sl_plan *plan)
{
	int n = plan->start.count;
	struct box_join **members = SL_NEWN(st->fx->arena, struct box_join *, n);
	struct box_list *list = &st->box->lists[BOX_JOINS];
	box_each(list, it)((struct box_join *)it)->used = false;
	for (int i = 0; i < n; i++) {
		const struct sl_event_def *def = &plan->events[plan->start.events[i]];
		box_each(list, it)
		{
			struct box_join *join = (struct box_join *)it;
			if (join->used || strcmp(join->workflow, plan->id) != 0 ||
				!sl_event_def_matches(def, join->event, NULL))
				continue;
			join->used = true;
			members[i] = join;
			break;
		}
		if (!members[i])
			return NULL;
	}
	return members;
}

/* The id of an instance that several events start derives from them. */
static void members_id(struct box_step *st, const struct sl_plan *plan, jv events, char ret[static SL_UUID_TEXT])
{
	int n = jv_array_length(jv_copy(events)), at = 0;
	const char **parts = SL_NEWN(st->fx->arena, const char *, 3 + 2 * n);
	parts[at++] = "join";
	parts[at++] = st->box->ns;
	parts[at++] = plan->id;
	jv_array_foreach(events, i, ev)
	{
		const char *source = sl_event_attr(ev, "source"), *id = sl_event_attr(ev, "id");
		parts[at++] = source ? source : "";
		parts[at++] = id ? id : "";
		jv_free(ev); /* events holds it */
	}
	sl_id_derive(parts, at, ret);
}

/* Members that are left wait in the living instance now. */
static void decide_left(struct box_step *st, const struct sl_plan *plan)
{
	struct box_again **last = &st->again;
	while (*last)
		last = &(*last)->next;
	box_each(&st->box->lists[BOX_JOINS], it)
	{
		struct box_join *join = (struct box_join *)it;
		if (strcmp(join->workflow, plan->id) != 0)
			continue;
		struct box_again *again = SL_NEW(st->fx->arena, struct box_again);
		again->event = jv_copy(join->event);
		again->only = plan->id;
		*last = again;
		last = &again->next;
		sl_box_item_remove(st->box, BOX_JOINS, it);
	}
}

static void start_members(struct box_step *st, struct sl_plan *plan, struct box_join **members, struct sl_why *why)
{
	char id[SL_UUID_TEXT], serial[SERIAL_BYTES];
	jv events = jv_array();
	for (int i = 0; i < plan->start.count; i++) {
		events = jv_array_append(events, jv_copy(members[i]->event));
		sl_box_item_remove(st->box, BOX_JOINS, &members[i]->item);
	}
	members_id(st, plan, events, id);
	if (st->box->join_workflow) { /* uncorrelated: an id of its own, no claim */
		(void)add_start(st, plan, id, events);
		sl_why_result(why, SL_WHY_STARTED, plan->id, plan->hash, id);
		return;
	}
	serial_of(id, serial);
	sl_box_start(st, plan, events, serial, why);
	decide_left(st, plan);
}

/* Is there no member yet for a start event that ev could be? */
static bool is_missing(struct box_step *st, const struct sl_plan *plan, jv ev)
{
	for (int i = 0; i < plan->start.count; i++) {
		const struct sl_event_def *def = &plan->events[plan->start.events[i]];
		bool have = !sl_event_def_matches(def, ev, NULL);
		box_each(&st->box->lists[BOX_JOINS], it)
		{
			struct box_join *join = (struct box_join *)it;
			have = have ||
			       (strcmp(join->workflow, plan->id) == 0 && sl_event_def_matches(def, join->event, NULL));
		}
		if (!have)
			return true;
	}
	return false;
}

void sl_box_join(struct box_step *st, struct sl_plan *plan, jv ev, struct sl_why *why)
{
	const struct sl_limits *limits = &st->eng->limits;
	struct box_list *list = &st->box->lists[BOX_JOINS];
	uint64_t mark = sl_box_event_mark(ev);
	int waiting = 0;
	box_each(list, it)
	{
		struct box_join *join = (struct box_join *)it;
		if (strcmp(join->workflow, plan->id) != 0)
			continue;
		waiting++;
		if (join->mark == mark) {
			sl_why_result(why, SL_WHY_DUPLICATE, plan->id, plan->hash, NULL);
			return;
		}
	}
	/* R9. What the join lacks always gets in, or a full one could never be completed. */
	if (limits->join_max > 0 && waiting >= limits->join_max && !is_missing(st, plan, ev)) {
		struct sl_msg *dead = sl_box_add(st, SL_MSG_DEAD_LETTER, NULL, ev);
		dead->reason = "join-full";
		dead->workflow = sl_arena_str(st->fx->arena, plan->id);
		dead->event = jv_copy(ev);
		sl_why_result(why, SL_WHY_FULL, plan->id, plan->hash, NULL);
		return;
	}
	int64_t window = plan->start.window_ms;
	sl_box_join_add(st->box, plan->id, ev, st->now_ms, window > 0 ? st->now_ms + window : 0);
	struct box_join **members = complete(st, plan);
	if (members)
		start_members(st, plan, members, why);
	else if (!SL_RULE(join))
		sl_box_item_remove(st->box, BOX_JOINS, list->tail);
	else
		sl_why_result(why, SL_WHY_JOINED, plan->id, plan->hash, NULL);
}
