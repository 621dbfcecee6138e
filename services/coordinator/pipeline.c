/* The road of one record through the coordinator (design section 3):
 *
 *   1 intake    records of all partitions in hand, into their lanes                    intake()
 *   2 decode    bytes -> event, command or input                                       route.c, pass.c
 *   3 route     events and commands -> records for sluice.instances                    route.c, command.c
 *   4 load      states that are not in memory, one pipelined read                      own.c
 *   5 step      pure call per input, in partition order, local effects depth first     pass.c
 *   6 commit    one script per partition and batch                                     own.c, own_ops.c
 *   7 emit      the outbox, sluice.instances first                                     own.c, emit.c
 *   8 ack       offsets of routed topics over finished runs; the rest is in the store  route.c, own.c
 *
 * Lanes wait for Kafka and Redis independently; a turn moves each as far as it can go. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include "services/coordinator/road.h"

#define INTAKE_MAX 1024         /* records in one turn, so that the lanes get theirs in between */
#define IN_HAND_MAX 1024        /* records that all lanes together have in their batches */
#define BATCH_MIN 64
#define DEFS_RETRY_MS 1000

void co_wake(struct sl_coordinator *co)
{
	if (co->opt.wake)
		co->opt.wake(co->opt.arg);
}

void co_fatal(struct sl_coordinator *co, int err, const char *text)
{
	if (co->opt.fatal)
		co->opt.fatal(co->opt.arg, err, text);
}

int co_batch_max(const struct sl_coordinator *co)
{
	int share = co->lane_count ? IN_HAND_MAX / co->lane_count : IN_HAND_MAX;
	share = share < BATCH_MIN ? BATCH_MIN : share;
	return share < co->opt.batch_records_max ? share : co->opt.batch_records_max;
}

/* --- sluice:defs --- */

static void defs_read(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct sl_coordinator *co = arg;
	co->defs_reading = false;
	if (!err && count == 1) {
		for (int i = 0; i < hashes[0].count; i++) {
			int64_t offset = strtoll(hashes[0].fields[i].value, NULL, 10);
			if (offset > co->defs_offset)
				co->defs_offset = offset;
		}
		co->defs_finished = co->defs_started;
	}
	co_wake(co);
}

static void defs_later(void *arg)
{
	struct sl_coordinator *co = arg;
	co->defs_timer = NULL;
	co_wake(co);
}

/* Behind a new connection may be an older store, which no longer names what has been written there since and who is late would never
 * hear of (R10): all that is in the topic by now counts. False: Kafka does not answer, tried again in a while. */
static bool defs_same_store(struct sl_coordinator *co)
{
	const struct sl_coordinator_options *opt = &co->opt;
	uint64_t session = opt->store->ops->session(opt->store);
	int64_t low, high;
	if (session == co->defs_session || !SL_RULE(defs_session))
		return true;
	if (co->defs_timer)
		return false;
	if (opt->broker->ops->watermarks(opt->broker, opt->topics->definitions, 0, &low, &high)) {
		co->defs_timer = opt->clock->ops->at(opt->clock, opt->clock->ops->now_ms(opt->clock) + DEFS_RETRY_MS, defs_later, co);
		return false;
	}
	if (high - 1 > co->defs_offset)
		co->defs_offset = high - 1;
	co->defs_session = session;
	return true;
}

static void defs_turn(struct sl_coordinator *co)
{
	static const char *const key = "defs";
	if (co->defs_reading || co->defs_asked <= co->defs_finished || !defs_same_store(co))
		return;
	co->defs_reading = true;
	co->defs_started = co->defs_asked;
	co->opt.store->ops->load(co->opt.store, -1, &key, 1, defs_read, co);
}

uint64_t co_defs_ticket(struct sl_coordinator *co)
{
	/* a read that is on its way began before this ticket: the next one counts */
	co->defs_asked = co->defs_started + 1;
	return co->defs_asked;
}

bool co_defs_current(const struct sl_coordinator *co, uint64_t ticket)
{
	return co->defs_finished >= ticket && sl_definitions_offset(co->opt.definitions) >= co->defs_offset;
}

/* --- partitions come and go --- */

static const char *route_key(char *buf, size_t size, const char *topic, int32_t partition)
{
	snprintf(buf, size, "%s/%d", topic, (int)partition);
	return buf;
}

static void route_assigned(void *arg, const char *topic, int32_t partition)
{
	struct sl_coordinator *co = arg;
	char key[320];
	sl_log(SL_DEBUG, "%s/%d: assigned", topic, (int)partition);
	sl_map_set(&co->routes, route_key(key, sizeof(key), topic, partition), route_lane_new(co, topic, partition));
	co_wake(co);
}

static void route_revoked(void *arg, const char *topic, int32_t partition)
{
	struct sl_coordinator *co = arg;
	char key[320];
	struct route_lane *lane = sl_map_del(&co->routes, route_key(key, sizeof(key), topic, partition));
	sl_log(SL_DEBUG, "%s/%d: revoked", topic, (int)partition);
	if (!lane)
		return;
	inbox_release(&lane->inbox, co, co->routed);
	lane->gone = true;
	lane->next_gone = co->gone_routes;
	co->gone_routes = lane;
	co_wake(co);
}

static void own_assigned(void *arg, const char *topic, int32_t partition)
{
	struct sl_coordinator *co = arg;
	sl_log(SL_DEBUG, "%s/%d: assigned", topic, (int)partition);
	sl_assert(partition < co->partitions && !co->lanes[partition]);
	co->lanes[partition] = own_lane_new(co, partition);
	co->lane_count++;
	sl_metric_add(SL_METRIC_partitions_owned, 1);
	sl_metric_add(SL_METRIC_partitions_taken_total, 1);
	co_wake(co);
}

static void own_revoked(void *arg, const char *topic, int32_t partition)
{
	struct sl_coordinator *co = arg;
	struct own_lane *lane = partition < co->partitions ? co->lanes[partition] : NULL;
	sl_log(SL_DEBUG, "%s/%d: revoked", topic, (int)partition);
	if (!lane)
		return;
	co->lanes[partition] = NULL;
	co->lane_count--;
	inbox_release(&lane->inbox, co, co->owned);
	lane->gone = true;
	lane->next_gone = co->gone_own;
	co->gone_own = lane;
	sl_metric_add(SL_METRIC_partitions_owned, -1);
	co_wake(co);
}

static void readable(void *arg)
{
	co_wake(arg);
}

static void consumer_fatal(void *arg, int err, const char *text)
{
	co_fatal(arg, err, text);
}

/* Lanes that are gone wait for the answers that will still come. */
static void free_gone(struct sl_coordinator *co)
{
	for (struct own_lane **at = &co->gone_own; *at;) {
		struct own_lane *lane = *at;
		if (lane->out) {
			at = &lane->next_gone;
			continue;
		}
		*at = lane->next_gone;
		own_lane_free(lane);
	}
	for (struct route_lane **at = &co->gone_routes; *at;) {
		struct route_lane *lane = *at;
		if (lane->out) {
			at = &lane->next_gone;
			continue;
		}
		*at = lane->next_gone;
		route_lane_free(lane);
	}
}

/* --- intake --- */

static void intake_routed(struct sl_coordinator *co)
{
	struct sl_record rec;
	void *handle;
	char key[320];
	for (int i = 0; i < INTAKE_MAX; i++) {
		if (!co->opt.broker->ops->poll(co->routed, &rec, &handle))
			return;
		struct route_lane *lane = sl_map_get(&co->routes, route_key(key, sizeof(key), rec.topic, rec.partition));
		if (lane && lane->stage != ROUTE_TAKE && lane->stage != ROUTE_TAKING)
			inbox_add(&lane->inbox, &rec, handle);
		else
			co->opt.broker->ops->release(co->routed, handle);
	}
	co->again = true;
}

static void intake_owned(struct sl_coordinator *co)
{
	struct sl_record rec;
	void *handle;
	for (int i = 0; i < INTAKE_MAX; i++) {
		if (!co->opt.broker->ops->poll(co->owned, &rec, &handle))
			return;
		struct own_lane *lane = rec.partition < co->partitions ? co->lanes[rec.partition] : NULL;
		/* while the partition is being taken again, start() rewinds to what the store has applied */
		bool wanted = lane && lane->stage >= OWN_RUN && lane->stage < OWN_BACKOFF &&
			      (rec.offset > lane->applied || !SL_RULE(applied));
		if (wanted)
			inbox_add(&lane->inbox, &rec, handle);
		else
			co->opt.broker->ops->release(co->owned, handle);
	}
	co->again = true;
}

bool sl_coordinator_turn(struct sl_coordinator *co)
{
	co->again = false;
	if (co->closed)
		return false;
	free_gone(co);
	intake_routed(co);
	intake_owned(co);
	defs_turn(co);
	if (!sl_schemas_published(co->schemas))
		return false; /* nobody could read our records */
	sl_map_each(&co->routes, e)
		route_lane_turn(e->value);
	for (int32_t p = 0; p < co->partitions; p++)
		if (co->lanes[p])
			own_lane_turn(co->lanes[p]);
	defs_turn(co);
	co->opt.broker->ops->kick(co->opt.broker);
	return co->again;
}

/* --- life --- */

static void defaults(struct sl_coordinator_options *opt)
{
	if (!opt->batch_records_max)
		opt->batch_records_max = 1024;
	if (!opt->batch_bytes_max)
		opt->batch_bytes_max = 4 * 1024 * 1024;
	if (!opt->local_steps_max)
		opt->local_steps_max = 10000;
	if (!opt->cache_bytes_max)
		opt->cache_bytes_max = 16 * 1024 * 1024;
}

static int join(struct sl_coordinator *co, const char *kind, const char *const *topics, int count, struct sl_consumer_events events,
	struct sl_consumer **ret)
{
	struct sl_consumer_options opt = {.group = sl_arena_printf(&co->arena, "%s-%s", co->opt.group, kind), .topics = topics,
		.topic_count = count, .events = events};
	return co->opt.broker->ops->consumer_new(co->opt.broker, &opt, ret);
}

int sl_coordinator_new(const struct sl_coordinator_options *opt, struct sl_coordinator **ret, struct sl_diags *diags)
{
	struct sl_coordinator *co = calloc(1, sizeof(*co));
	sl_assert(co);
	co->opt = *opt;
	co->defs_offset = -1;
	co->defs_session = opt->store->ops->session(opt->store); /* until now the definitions were read to their end */
	defaults(&co->opt);
	sl_arena_init(&co->arena);
	const struct sl_topics *topics = opt->topics;
	int err = opt->broker->ops->partitions(opt->broker, topics->instances, &co->partitions);
	if (err) {
		sl_diag_error(diags, err, SL_NOWHERE, NULL, "topic %s: %s", topics->instances, sl_err_text(err));
		sl_diag_hint(diags, err == SL_ENOTFOUND ? "sluice topics create" : "is Kafka there?");
		goto fail;
	}
	co->engine = (struct sl_engine){.plans = opt->plans, .waits = sl_definitions_waits(opt->definitions), .limits = opt->limits,
		.partitions = co->partitions, .seed = opt->seed, .single = opt->single};
	co->lanes = calloc((size_t)co->partitions, sizeof(*co->lanes));
	sl_assert(co->lanes);
	co->schemas = sl_schemas_new(opt->store, opt->wake, opt->arg);
	const char **names = SL_NEWN(&co->arena, const char *, topics->event_count + 1);
	for (int i = 0; i < topics->event_count; i++)
		names[i] = topics->events[i].topic;
	names[topics->event_count] = topics->commands;
	struct sl_consumer_events events = {.arg = co, .readable = readable, .fatal = consumer_fatal};
	events.assigned = own_assigned;
	events.revoked = own_revoked;
	err = join(co, "own", &topics->instances, 1, events, &co->owned);
	if (!err) {
		events.assigned = route_assigned;
		events.revoked = route_revoked;
		err = join(co, "route", names, topics->event_count + 1, events, &co->routed);
	}
	if (err) {
		sl_diag_error(diags, err, SL_NOWHERE, NULL, "cannot join the group %s: %s", opt->group, sl_err_text(err));
		goto fail;
	}
	*ret = co;
	return 0;
fail:
	sl_coordinator_free(co);
	return err;
}

void sl_coordinator_drain(struct sl_coordinator *co)
{
	co->draining = true;
	co_wake(co);
}

bool sl_coordinator_idle(const struct sl_coordinator *co)
{
	for (int32_t p = 0; p < co->partitions; p++) {
		const struct own_lane *lane = co->lanes[p];
		if (!lane || lane->stage == OWN_STOPPED)
			continue;
		if (co->draining ? lane->stage != OWN_RUN || lane->emitting || lane->outbox_stored : !own_lane_quiet(lane))
			return false;
	}
	sl_map_each(&co->routes, e) {
		const struct route_lane *lane = e->value;
		if (lane->first || lane->acking || lane->deploy || lane->waiting || (lane->inbox.count && !co->draining))
			return false;
	}
	return true;
}

const char *sl_coordinator_ready(const struct sl_coordinator *co)
{
	int mine = 0;
	for (int32_t p = 0; p < co->partitions; p++) {
		if (!co->lanes[p])
			continue;
		mine++;
		if (co->lanes[p]->stage == OWN_STOPPED)
			return "a partition has stopped: see the log";
		if (!co->lanes[p]->started || co->lanes[p]->stage == OWN_BACKOFF)
			return "partitions of sluice.instances are being taken";
	}
	int routes = 0;
	sl_map_each(&co->routes, e) {
		const struct route_lane *lane = e->value;
		routes++;
		if (lane->stage == ROUTE_STOPPED)
			return "a partition has stopped: see the log";
		if (lane->stage == ROUTE_TAKE || lane->stage == ROUTE_TAKING)
			return "partitions of public topics are being taken";
	}
	/* a member of a large group may rightly have none of one sort */
	return mine + routes ? NULL : "no partition yet";
}

void sl_coordinator_close(struct sl_coordinator *co)
{
	co->closed = true;
	if (co->defs_timer)
		co->opt.clock->ops->stop(co->opt.clock, co->defs_timer);
	co->defs_timer = NULL;
	for (int32_t p = 0; p < co->partitions && co->lanes; p++)
		if (co->lanes[p])
			inbox_release(&co->lanes[p]->inbox, co, co->owned);
	sl_map_each(&co->routes, e)
		inbox_release(&((struct route_lane *)e->value)->inbox, co, co->routed);
	if (co->routed)
		co->opt.broker->ops->consumer_close(co->routed);
	if (co->owned)
		co->opt.broker->ops->consumer_close(co->owned);
	co->routed = co->owned = NULL;
}

void sl_coordinator_free(struct sl_coordinator *co)
{
	if (!co)
		return;
	sl_coordinator_close(co); /* first: it gives the lanes' records back */
	for (int32_t p = 0; p < co->partitions && co->lanes; p++)
		if (co->lanes[p])
			own_lane_free(co->lanes[p]);
	sl_map_each(&co->routes, e)
		route_lane_free(e->value);
	sl_map_release(&co->routes, NULL);
	for (struct own_lane *lane = co->gone_own, *next; lane; lane = next) {
		next = lane->next_gone;
		own_lane_free(lane);
	}
	for (struct route_lane *lane = co->gone_routes, *next; lane; lane = next) {
		next = lane->next_gone;
		route_lane_free(lane);
	}
	sl_schemas_free(co->schemas);
	free(co->lanes);
	sl_arena_release(&co->arena);
	free(co);
}
