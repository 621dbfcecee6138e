/* Router and mailboxes under random schedules: fake instances, partitions that overtake each other, duplicates of every
 * sort that travels, cancellations, retries, continueAs. The oracle knows what was published and what is held in the
 * end: every event is consumed exactly once, waiting in an inbox or a join, early, or explained; per key and workflow
 * one claimed instance lives. */
#include "tests/unit/engine/mailbox_world.h"

#define SCHEDULES 3000

/* --- one schedule --- */

static void deploy(struct world *w)
{
	for (int i = 0; i < FAKES; i++) {
		struct sl_plan *plan = build_plan(fakes[i].id, "1.0.0", fakes[i].id);
		for (const char *type = fakes[i].starts; *type; type++)
			plan->start.events[plan->start.count++] =
				build_event(plan, (char[]){*type, 0}, NULL, keys_of(*type));
		plan->start.all = fakes[i].all;
		plan->start.await = build_await(plan, 0);
		for (const struct fake_op *op = fakes[i].ops; op->op != END; op++)
			if (op->op == WAIT)
				build_wait(plan, build_event(plan, (char[]){op->type, 0}, NULL, keys_of(op->type)));
		build_deploy(w->plans, "default", plan);
	}
}

static int compose(struct world *w, int *todo)
{
	static const char *const groups[] = {"ABB", "CD", "E", "GH", "IJJ", "STT", "M", "XY"};
	int count = 0;
	for (int g = 1 + rnd(w, 3); g > 0; g--) {
		const char *types = groups[rnd(w, FAKES)];
		for (int i = 1 + rnd(w, 3); i > 0; i--) {
			for (const char *type = types; *type; type++) {
				char k[16];
				snprintf(k, sizeof k, "%d", 1 + rnd(w, 2));
				todo[count++] = new_event(w, *type, k, "");
			}
		}
	}
	for (int i = count - 1; i > 0 && rnd(w, 2); i--) {
		int k = rnd(w, i + 1), swap = todo[i];
		todo[i] = todo[k];
		todo[k] = swap;
	}
	return count;
}

static void settle(struct world *w)
{
	bool moved = true;
	w->settling = true;
	while (moved) {
		moved = take_later(w);
		for (int p = 0; p < PARTITIONS; p++)
			while (take_record(w, p))
				moved = true;
		/* what faulted is tried again until it lives or its key is taken */
		for (int i = 0; !moved && i < w->inst_count; i++) {
			struct inst *inst = w->insts[i];
			if (inst->status != 2 || inst->command)
				continue;
			inst->command = true;
			command(w, SL_MSG_RETRY, inst->id);
			moved = true;
		}
	}
}

static void play(struct world *w)
{
	int todo[EVENTS_MAX / 2], count = compose(w, todo), next = 0;
	while (next < count) {
		int what = rnd(w, 100);
		w->now += rnd(w, 3);
		if (what < 20) {
			publish(w, todo[next]);
			if (!w->overflow && rnd(w, 7) == 0) /* the publisher repeats itself, later */
				todo[count < EVENTS_MAX / 2 ? count++ : count - 1] = todo[next];
			next++;
		} else if (what < 80) {
			take_record(w, rnd(w, PARTITIONS));
		} else if (what < 90) {
			take_later(w);
		} else if (what < 95) {
			random_command(w);
		}
	}
	settle(w);
}

/* --- the oracle --- */

static int consumers(struct world *w, int n, bool only_claimed)
{
	int count = 0;
	for (int i = 0; i < w->inst_count; i++) {
		int here = 0;
		for (int k = 0; k < w->insts[i]->consumed_count; k++)
			here += w->insts[i]->consumed[k] == n;
		if (here > 1)
			fail(w, "%s consumed event %d twice", w->insts[i]->id, n);
		count += here && (!only_claimed || w->insts[i]->claimed);
	}
	return count;
}

static const char *where(struct world *w, int n)
{
	char text[32];
	for (int i = 0; i < w->inst_count; i++)
		for (int k = 0; k < w->insts[i]->inbox_count; k++)
			if (w->insts[i]->inbox[k] == n)
				return w->insts[i]->status ? "inbox of the ended" : "inbox";
	snprintf(text, sizeof text, "\"id\":\"%d\"", n);
	for (int b = 0; b < w->box_count; b++)
		sl_map_each(&w->boxes[b].store, e) if (strstr(e->value, text)) return e->key[0] == 'e' ? "early"
		: e->key[0] == 'j'								       ? "join"
												       : "stored oddly";
	return w->events[n].explained ? "explained" : "nowhere";
}

static const struct inst *alive(struct world *w, char type, const char *k)
{
	for (int i = 0; i < w->inst_count; i++) {
		const struct inst *inst = w->insts[i];
		const struct fake_plan *fake = &fakes[inst->plan];
		bool wants = strchr(fake->starts, type) != NULL;
		for (const struct fake_op *op = fake->ops; op->op != END; op++)
			wants |= op->op == WAIT && op->type == type && op->set == 1;
		if (inst->status == 0 && wants && strcmp(inst->k, k) == 0)
			return inst;
	}
	return NULL;
}

static void check_event(struct world *w, int n)
{
	const struct published *e = &w->events[n];
	bool starts = strchr("AISMGHXY", e->type) != NULL, free_start = strchr("CE", e->type) != NULL;
	int all = consumers(w, n, false), claimed = consumers(w, n, true);
	const char *at = where(w, n);
	if (free_start && all != 1)
		fail(w, "uncorrelated start %c%d started %d", e->type, n, all);
	if (starts && all > 1)
		fail(w, "start %c%d was consumed %d times", e->type, n, all);
	if (strchr("BJT", e->type) && claimed > 1)
		fail(w, "%c%d was consumed by %d claimed instances", e->type, n, claimed);
	if (all || e->type == 'D') /* an unkeyed event is for who waits at that moment */
		return;
	if (strchr("AISM", e->type) && strcmp(at, "inbox") != 0)
		fail(w, "start %c%d of key %s is %s", e->type, n, e->k, at);
	if (strchr("GHXY", e->type) && strcmp(at, "inbox") != 0 && strcmp(at, "join") != 0)
		fail(w, "start %c%d of key %s is %s", e->type, n, e->k, at);
	if (strcmp(at, "nowhere") == 0 || strcmp(at, "inbox of the ended") == 0 || strcmp(at, "stored oddly") == 0)
		fail(w, "%c%d of key %s is %s", e->type, n, e->k, at);
	if (strcmp(at, "early") == 0 && !w->windowed && alive(w, e->type, e->k))
		fail(w, "%c%d is early though %s lives", e->type, n, alive(w, e->type, e->k)->id);
	if (strcmp(at, "explained") == 0 && !w->windowed && claimed == 0 && e->type != 'B' && e->type != 'F')
		fail(w, "%c%d of key %s was given up", e->type, n, e->k);
}

static void check_boxes(struct world *w)
{
	for (int b = 0; b < w->box_count; b++) {
		bool half[2] = {false, false}, any = false;
		sl_map_each(&w->boxes[b].store, e)
		{
			any |= strchr("scje", e->key[0]) != NULL;
			half[0] |= e->key[0] == 'j' &&
				   (strstr(e->value, "\"type\":\"G\"") || strstr(e->value, "\"type\":\"X\""));
			half[1] |= e->key[0] == 'j' &&
				   (strstr(e->value, "\"type\":\"H\"") || strstr(e->value, "\"type\":\"Y\""));
			if (e->key[0] != 'c' && e->key[0] != 's')
				continue;
			jv obj;
			cr_assert_eq(sl_json_parse(e->value, strlen(e->value), &sl_json_default, &obj, NULL), 0);
			const struct inst *inst = inst_of(w, sl_json_str(obj, "instance"));
			if (!inst || inst->status)
				fail(w, "%s: %s names %s, which has ended", w->boxes[b].id, e->key,
					sl_json_str(obj, "instance"));
			jv_free(obj);
		}
		if (half[0] && half[1])
			fail(w, "%s: both halves of a join wait", w->boxes[b].id);
		/* all is quiet: an empty mailbox goes, one with contents stays */
		struct sl_msg in;
		struct sl_effects fx;
		sl_msg_init(&in, SL_MSG_SWEEP);
		sl_effects_init(&fx, &w->arena);
		struct sl_mailbox *box = box_of(w, w->boxes[b].id)->box;
		cr_assert_eq(sl_mailbox_step(&w->eng, box, &in, &(struct sl_pos){0, 0, ""}, w->now + 10, &fx), 0);
		struct sl_summary sum;
		sl_mailbox_summary(box, &sum);
		cr_assert(!any || sum.exists);
		cr_assert_eq(
			sl_mailbox_step(&w->eng, box, &in, &(struct sl_pos){0, 0, ""}, w->now + 100000000, &fx), 0);
		sl_mailbox_summary(box, &sum);
		if (!any && sum.exists)
			fail(w, "%s is empty and stays", w->boxes[b].id);
		sl_effects_release(&fx);
	}
}

static void check(struct world *w)
{
	for (int n = 0; n < w->event_count; n++)
		check_event(w, n);
	for (int i = 0; i < w->inst_count; i++) {
		const struct inst *inst = w->insts[i];
		if (inst->status == 0 && !inst->waits)
			fail(w, "%s waits for nothing", inst->id);
		if (inst->status == 0 && inst->wait_type == 0)
			fail(w, "%s never got its result", inst->id);
		if (inst->status == 0 && inst->wait_type == 'F')
			fail(w, "%s never got its callback", inst->id);
	}
	check_boxes(w);
}

static void release(struct world *w)
{
	for (int n = 0; n < w->event_count; n++)
		jv_free(w->events[n].ev);
	for (int b = 0; b < w->box_count; b++) {
		sl_mailbox_free(w->boxes[b].box);
		sl_map_release(&w->boxes[b].store, free);
		free(w->boxes[b].id);
	}
	for (int p = 0; p < PARTITIONS; p++)
		for (int i = 0; i < w->tails[p]; i++)
			sl_msg_clear(&w->queues[p][i]);
	sl_arena_release(&w->arena);
	sl_plans_free(w->plans);
}

Test(mailbox_random, schedules)
{
	static struct world w;
	int consumed = 0, early = 0, instances = 0;
	const char *only = getenv("SEED");
	for (int seed = only ? atoi(only) : 1; seed <= (only ? atoi(only) : SCHEDULES); seed++) {
		w.seed = seed;
		w.random = (uint64_t)seed * 0x9e3779b97f4a7c15u;
		w.settling = false;
		w.windowed = seed % 4 == 0;
		w.overflow = seed % 5 == 0;
		w.now = 1000;
		w.event_count = w.inst_count = w.box_count = w.later_count = 0;
		memset(w.heads, 0, sizeof w.heads);
		memset(w.tails, 0, sizeof w.tails);
		w.topic[0] = w.topic[1] = 0;
		sl_arena_init(&w.arena);
		w.plans = sl_plans_new();
		w.eng = (struct sl_engine){.plans = w.plans, .partitions = PARTITIONS};
		w.eng.limits = (struct sl_limits){.early_window_ms = w.windowed ? 20 : 10000000,
			.early_max = 1000,
			.join_max = 1000,
			.fan_out_max = 1 + seed % 3,
			.idle_ms = 1000000,
			.ring_max = w.overflow ? 1 : 256,
			.effect_ring_max = 1024};
		deploy(&w);
		play(&w);
		check(&w);
		for (int n = 0; n < w.event_count; n++) {
			consumed += consumers(&w, n, false) > 0;
			early += w.events[n].early;
		}
		instances += w.inst_count;
		release(&w);
	}
	if (!only) { /* the schedules do what they are meant to do */
		cr_assert_gt(instances, 2 * SCHEDULES);
		cr_assert_gt(consumed, 3 * SCHEDULES);
		cr_assert_gt(early, SCHEDULES / 2);
	}
}
