/* Own lanes: one partition of sluice.instances through take, load, step, commit, emit (design section 3; R2, R4, R5, R7).
 *
 *   PROVE -> TAKE -> RUN -> DEFS -> LOAD <-> STEP -> WAITS -> COMMIT -> RUN
 *
 * A refused or lost commit leads back to PROVE with an empty cache. The outbox of a batch is on its way while the next batch
 * is read and stepped; only the next commit waits for it. PROVE and TAKE are in own_take.c, the step in pass.c, what a commit holds
 * in own_ops.c, the way of the outbox in own_emit.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/engine/mailbox.h"
#include "services/coordinator/road.h"

#define MIRROR_MS 1000

/* Monotonic microseconds, for metrics only. */
static int64_t own_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void own_log(const struct own_lane *lane, enum sl_level level, const char *text)
{
	sl_log(level, "%s/%d: %s", lane->co->opt.topics->instances, (int)lane->partition, text);
}

struct own_lane *own_lane_new(struct sl_coordinator *co, int32_t partition)
{
	struct own_lane *lane = calloc(1, sizeof(*lane));
	sl_assert(lane);
	lane->co = co;
	lane->partition = partition;
	lane->stage = OWN_TAKE;
	lane->applied = lane->mirrored = -1;
	lane->sweep = jv_invalid();
	sl_arena_init(&lane->arena);
	sl_arena_init(&lane->emit_arena);
	sl_effects_init(&lane->fx, &lane->arena);
	sl_effects_init(&lane->outbox, &lane->arena);
	return lane;
}

void own_lane_free(struct own_lane *lane)
{
	if (lane->timer)
		lane->co->opt.clock->ops->stop(lane->co->opt.clock, lane->timer);
	if (lane->emitting) /* the next owner sends them */
		sl_metric_add(SL_METRIC_outbox_records, -(lane->emit_first_count + lane->emit_later_count));
	pass_reset(lane);
	own_cache_drop(lane);
	careful_release(lane);
	inbox_release(&lane->inbox, lane->co, lane->co->owned);
	free(lane->stack.items);
	free(lane->why);
	sl_effects_release(&lane->fx);
	sl_effects_release(&lane->outbox);
	sl_arena_release(&lane->arena);
	sl_arena_release(&lane->emit_arena);
	sl_map_release(&lane->told, NULL);
	free(lane);
}

bool own_lane_quiet(const struct own_lane *lane)
{
	return lane->stage == OWN_STOPPED || (lane->stage == OWN_RUN && !lane->inbox.count && !lane->emitting && !lane->stack.count);
}

/* --- waiting and trying again --- */

static void backoff_over(void *arg)
{
	struct own_lane *lane = arg;
	lane->timer = NULL;
	lane->waiting = false;
	lane->stage = OWN_PROVE;
	co_wake(lane->co);
}

/* Forget what is in memory and take the partition again after a while (R4). */
void own_retake(struct own_lane *lane, bool at_once)
{
	struct sl_clock *clock = lane->co->opt.clock;
	pass_reset(lane);
	careful_end(lane);
	if (SL_RULE(cache_drop))
		own_cache_drop(lane);
	sl_map_release(&lane->told, NULL); /* the store may be an older one */
	if (lane->emitting)
		sl_metric_add(SL_METRIC_outbox_records, -(lane->emit_first_count + lane->emit_later_count));
	lane->emit_first_count = lane->emit_later_count = 0; /* what is unsent is dropped; what is queued may still arrive */
	inbox_drop(&lane->inbox, lane->co, lane->co->owned, lane->inbox.count);
	if (at_once) {
		lane->stage = OWN_PROVE;
		return;
	}
	lane->stage = OWN_BACKOFF;
	lane->waiting = true;
	lane->backoff_ms = lane->backoff_ms ? (lane->backoff_ms < 5000 ? lane->backoff_ms * 2 : 10000) : 100;
	lane->timer = clock->ops->at(clock, clock->ops->now_ms(clock) + lane->backoff_ms, backoff_over, lane);
}

/* An answer has come; true: the lane is gone and nothing may be done with it. */
bool own_answered(struct own_lane *lane)
{
	lane->out--;
	lane->waiting = false;
	co_wake(lane->co);
	return lane->gone;
}

void own_ask(struct own_lane *lane)
{
	lane->out++;
	lane->waiting = true;
}

/* --- load --- */

static bool visit_neighbour(void *arg, const char *ns, const char *id)
{
	pass_want(arg, ns, id);
	return true;
}

static void add_actor(struct own_lane *lane, const char *key, const struct sl_hash *hash)
{
	const char *tilde = strchr(key, '~');
	sl_metric_add(SL_METRIC_cache_misses_total, 1);
	char *ns = sl_arena_strn(&lane->arena, key, (size_t)(tilde - key));
	struct sl_actor *actor = sl_actor_new(ns, tilde + 1);
	struct sl_diags diags;
	if (hash->count) {
		struct sl_field *fields = SL_NEWN(&lane->arena, struct sl_field, hash->count);
		for (int i = 0; i < hash->count; i++)
			fields[i] = (struct sl_field){hash->fields[i].name, {hash->fields[i].value, hash->fields[i].len}};
		sl_diags_init(&diags);
		int err = sl_actor_load(&lane->co->engine, actor, fields, hash->count, &diags);
		if (err) {
			sl_map_set(&lane->broken, key, sl_arena_printf(&lane->arena, "stored state of %s: %s", tilde + 1,
				*sl_diags_first(&diags) ? sl_diags_first(&diags) : sl_err_text(err)));
			sl_actor_free(actor);
			sl_diags_release(&diags);
			return;
		}
		sl_diags_release(&diags);
	}
	own_cache_add(lane, key, actor);
	/* who is subscribed will probably get a delivery: read it with the rest */
	if (actor->kind == SL_ACTOR_MAILBOX && hash->count)
		sl_actor_neighbours(actor, visit_neighbour, lane);
}

static void loaded(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct own_lane *lane = arg;
	struct sl_map asked;
	if (own_answered(lane))
		return;
	if (err) {
		own_retake(lane, false);
		return;
	}
	asked = lane->missing;
	sl_map_init(&lane->missing);
	int i = 0;
	sl_map_each(&asked, e) {
		if (i < count)
			add_actor(lane, e->key, &hashes[i++]);
		sl_map_del(&lane->missing, e->key); /* a mailbox before it may have wanted it once more */
	}
	sl_map_release(&asked, NULL);
}

static void swept(void *arg, int err, const struct sl_scored *items, int count)
{
	struct own_lane *lane = arg;
	if (own_answered(lane))
		return;
	if (err) {
		own_retake(lane, false);
		return;
	}
	lane->sweep_read = true;
	jv_free(lane->sweep);
	lane->sweep = jv_array();
	for (int i = 0; i < count; i++)
		lane->sweep = jv_array_append(lane->sweep, jv_string(items[i].member));
}

/* Reads what is missing; false: nothing is. */
static bool load(struct own_lane *lane)
{
	struct sl_store *store = lane->co->opt.store;
	if (lane->sweep_wanted && !lane->sweep_read) {
		own_ask(lane);
		store->ops->range(store, lane->partition, "e", 0,
			(double)lane->co->opt.clock->ops->now_ms(lane->co->opt.clock), SWEEP_MAX, swept, lane);
		return true;
	}
	if (!lane->missing.count)
		return false;
	const char **keys = SL_NEWN(&lane->arena, const char *, lane->missing.count);
	int n = 0;
	sl_map_each(&lane->missing, e)
		keys[n++] = e->value;
	own_ask(lane);
	store->ops->load(store, lane->partition, keys, n, loaded, lane);
	return true;
}

/* --- commit --- */

/* A step's actor is as the store has it. */
static void settle(struct own_lane *lane, const char *key, struct sl_actor *actor)
{
	struct sl_summary old = actor->committed, now;
	sl_actor_committed(actor);
	sl_actor_summary(actor, &now);
	bool ended = *now.workflow && now.status >= SL_COMPLETED;
	if (now.exists && !old.exists && *now.workflow)
		sl_metric_add(SL_METRIC_instances_started_total, 1);
	if (now.exists && ended && (!old.exists || old.status < SL_COMPLETED))
		sl_metric_add_l(SL_METRIC_instances_ended_total, sl_status_text(now.status), 1);
	actor->committed = now;
	if (sl_actor_idle(actor)) /* hardly asked for again */
		own_cache_remove(lane, key, actor);
	else
		own_cache_count(lane, actor);
}

/* The stack outlives a batch that was cut; everything else of the batch goes. */
static void keep_todo(struct own_lane *lane)
{
	struct sl_arena fresh;
	struct todo kept = {0};
	sl_arena_init(&fresh);
	for (int i = 0; i < lane->stack.count; i++) {
		struct work w = lane->stack.items[i];
		sl_msg_copy(&fresh, &w.msg, &lane->stack.items[i].msg);
		w.path = sl_arena_str(&fresh, lane->stack.items[i].path);
		todo_push(&kept, &w);
	}
	pass_reset(lane);
	if (!kept.count)
		return;
	sl_arena_release(&lane->arena);
	free(lane->stack.items);
	lane->arena = fresh;
	lane->stack = kept;
	lane->dirty = true;
}

static void committed(void *arg, int err, const char *text)
{
	struct own_lane *lane = arg;
	if (err) /* also of a partition that was revoked meanwhile */
		sl_metric_add_l(SL_METRIC_commits_total, err == SL_EFENCED ? "fenced" : err == SL_ESTORE ? "refused" : "lost", 1);
	if (own_answered(lane))
		return;
	if (err == SL_ESTORE) {
		own_log(lane, SL_ERROR, text ? text : "the store refused the commit");
		own_retake(lane, false); /* goes on by itself after the cure */
		return;
	}
	if (err) {
		own_log(lane, SL_WARN, err == SL_EFENCED ? "another owner has taken the partition" : "the answer of a commit was lost");
		own_retake(lane, err == SL_EFENCED || err == SL_ELOST);
		return;
	}
	sl_metric_add_l(SL_METRIC_commits_total, "ok", 1);
	sl_metric_observe_us(SL_METRIC_commit_seconds, own_us() - lane->commit_us);
	sl_metric_observe_us(SL_METRIC_batch_seconds, own_us() - lane->batch_us);
	sl_map_each(&lane->touched, e)
		settle(lane, e->key, e->value);
	if (lane->taken)
		lane->applied = lane->records[lane->taken - 1].offset;
	lane->backoff_ms = 0;
	lane->outbox_stored = lane->outbox.count > 0;
	own_emit_begin(lane, lane->outbox.items, lane->outbox.count);
	inbox_drop(&lane->inbox, lane->co, lane->co->owned, lane->taken);
	keep_todo(lane);
	careful_committed(lane);
	lane->stage = OWN_RUN;
	own_cache_trim(lane->co);
}

/* --- waits that the plans do not tell of --- */

static void told(void *arg, int err, const char *text)
{
	struct own_lane *lane = arg;
	(void)text;
	if (own_answered(lane))
		return;
	if (err) {
		own_retake(lane, false);
		return;
	}
	sl_map_each(&lane->telling, e)
		sl_map_set(&lane->told, e->key, lane);
	lane->stage = OWN_COMMIT;
}

static void wait_written(void *arg, int err)
{
	struct own_lane *lane = arg;
	if (!own_answered(lane) && err)
		own_retake(lane, false);
}

/* Who waits at a local mailbox is told to all routers as a definition is (deploy.c): a record in sluice.definitions that we have read
 * back, then sluice:defs raised to its offset, then the commit. So whoever hears of the wait publishes to routers that know of it, and
 * it does not depend on what the store holds (R10). A wait that nobody needs any more costs a record. False: not read back yet, or
 * the producer is full. */
static bool tell(struct own_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	struct sl_record rec;
	if (!lane->telling.count || !SL_RULE(wait_told)) {
		lane->stage = OWN_COMMIT;
		return true;
	}
	sl_map_each(&lane->telling, e) {
		if (sl_definitions_wait_known(co->opt.definitions, e->key, lane->partition))
			continue;
		if (!e->value)
			return false;
		sl_wait_record(e->key, lane->partition, &lane->arena, &rec);
		rec.topic = co->opt.topics->definitions;
		rec.partition = 0;
		if (co->opt.broker->ops->produce(co->opt.broker, &rec, wait_written, lane))
			return false;
		e->value = NULL;
		own_ask(lane);
		return true;
	}
	/* a field of ours, which only rises */
	const char *offset = sl_arena_printf(&lane->arena, "%" PRId64, sl_definitions_offset(co->opt.definitions));
	struct sl_op op = {.kind = SL_OP_HSET, .key = "defs", .field = sl_arena_printf(&lane->arena, "local:%d", (int)lane->partition),
		.value = {offset, strlen(offset)}};
	own_ask(lane);
	co->opt.store->ops->write(co->opt.store, &op, 1, told, lane);
	return true;
}

static void commit(struct own_lane *lane)
{
	struct sl_store *store = lane->co->opt.store;
	struct sl_commit c;
	struct sl_buf outbox, todo;
	sl_buf_init(&outbox);
	sl_buf_init(&todo);
	own_ops(lane, &c, &outbox, &todo);
	own_ask(lane);
	lane->commit_us = own_us();
	store->ops->commit(store, &c, committed, lane);
	sl_buf_release(&outbox);
	sl_buf_release(&todo);
}

/* --- careful mode (R7) --- */

static void noted(void *arg, int err, const char *text)
{
	struct own_lane *lane = arg;
	(void)text;
	if (own_answered(lane))
		return;
	if (err) {
		own_retake(lane, err == SL_EFENCED || err == SL_ELOST);
		return;
	}
	lane->stage = lane->note_read ? OWN_DEFS : OWN_STEP;
	lane->note_read = false;
}

/* Notes what comes next; what the last batch sent is delivered by then. */
static void note(struct own_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	struct sl_op set = careful_note(lane);
	struct sl_commit c = {.header = "p", .partition = lane->partition, .epoch = lane->epoch, .ops = &set, .count = 1};
	own_ask(lane);
	co->opt.store->ops->commit(co->opt.store, &c, noted, lane);
}

/* --- the stages --- */

/* Kafka's committed offset merely mirrors the applied one, for lag tools (design section 3, stage 8). */
static void mirror(struct own_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	int64_t now = co->opt.clock->ops->now_ms(co->opt.clock);
	if (lane->mirrored == lane->applied || (now < lane->mirror_at_ms && !co->draining))
		return;
	if (co->opt.broker->ops->commit(co->owned, co->opt.topics->instances, lane->partition, lane->applied + 1, NULL, NULL, NULL) == 0)
		lane->mirrored = lane->applied;
	lane->mirror_at_ms = now + MIRROR_MS;
}

/* Far behind: tell the broker to wait, go on when the batch is done. */
static void backpressure(struct own_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	bool full = lane->inbox.count > 2 * co_batch_max(co), low = lane->inbox.count < co_batch_max(co);
	if (full && !lane->paused)
		co->opt.broker->ops->pause(co->owned, co->opt.topics->instances, lane->partition, lane->paused = true);
	else if (low && lane->paused)
		co->opt.broker->ops->pause(co->owned, co->opt.topics->instances, lane->partition, lane->paused = false);
}

static bool run(struct own_lane *lane)
{
	mirror(lane);
	if (lane->co->draining && !lane->stack.count) {
		/* delivered: the next owner need not send it again */
		if (!lane->outbox_stored || lane->emitting)
			return false;
		lane->batch_us = own_us();
		lane->stage = OWN_COMMIT;
		return true;
	}
	if (!lane->inbox.count && !lane->stack.count)
		return false;
	lane->defs_ticket = co_defs_ticket(lane->co);
	lane->stage = OWN_DEFS;
	lane->batch_us = own_us();
	return true;
}

/* False: waits for the schema of a record's writer. */
static bool begin(struct own_lane *lane)
{
	if (lane->schema_wanted) {
		switch (sl_schemas_ask(lane->co->schemas, lane->schema_wanted)) {
		case SL_SCHEMA_COMING:
			return false;
		case SL_SCHEMA_MISSING:
			sl_map_set(&lane->broken, "schema", "unknown");
			break;
		case SL_SCHEMA_KNOWN:
			break;
		}
		lane->schema_wanted = 0;
	}
	if (!pass_begin(lane))
		return true; /* asks for the schema in the next round */
	lane->stage = OWN_LOAD;
	return true;
}

static void stepped(struct own_lane *lane, enum pass_result result)
{
	lane->stage = result == PASS_MISSING ? OWN_LOAD : result == PASS_NOTE ? OWN_NOTE : OWN_WAITS;
}

/* The store may be an older one, whose epoch is ours: what we have in memory does not belong to it (R10). */
static bool outlived(const struct own_lane *lane)
{
	const struct sl_store *store = lane->co->opt.store;
	return lane->stage >= OWN_RUN && lane->stage < OWN_BACKOFF && lane->session != store->ops->session(store) && SL_RULE(session);
}

void own_lane_turn(struct own_lane *lane)
{
	own_emit_turn(lane);
	backpressure(lane);
	while (!lane->waiting) {
		if (outlived(lane))
			own_retake(lane, true);
		switch (lane->stage) {
		case OWN_PROVE:
			if (SL_RULE(prove))
				own_prove(lane);
			else
				lane->stage = OWN_TAKE;
			break;
		case OWN_TAKE:
			if (lane->emit_out) /* deliveries of our own last outbox */
				return;
			own_take(lane);
			break;
		case OWN_RUN:
			if (!run(lane))
				return;
			break;
		case OWN_DEFS:
			if (!co_defs_current(lane->co, lane->defs_ticket))
				return;
			if (lane->inbox.count && careful_wants_note(lane, inbox_at(&lane->inbox, 0)->rec.offset, "-")) {
				lane->note_read = true;
				lane->stage = OWN_NOTE;
				break;
			}
			if (!begin(lane))
				return;
			break;
		case OWN_LOAD:
			if (!load(lane))
				lane->stage = OWN_STEP;
			break;
		case OWN_NOTE:
			if (lane->emitting || !careful_begin(lane))
				return;
			note(lane);
			break;
		case OWN_STEP:
			stepped(lane, pass_run(lane));
			break;
		case OWN_WAITS:
			if (!tell(lane))
				return;
			break;
		case OWN_COMMIT:
			if (lane->emitting)
				return;
			commit(lane);
			break;
		case OWN_BACKOFF:
		case OWN_STOPPED:
			return;
		}
	}
}
