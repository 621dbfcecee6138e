/* Route lanes: one partition of a public topic or of sluice.commands (design section 3: intake, decode, route, emit, ack). No look-up
 * of state. Several batches may be on their way; the offset moves over the contiguous run of finished ones (R1). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/app/metrics.h"
#include "common/base/text.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/engine/route.h"
#include "services/common/dead_letter.h"
#include "services/coordinator/road.h"

#define BATCHES_MAX 4
#define DEAD_LETTER_MAX (900 * 1024)

struct route_lane *route_lane_new(struct sl_coordinator *co, const char *topic, int32_t partition)
{
	struct route_lane *lane = calloc(1, sizeof(*lane));
	sl_assert(lane);
	lane->co = co;
	lane->topic = sl_arena_str(&co->arena, topic);
	lane->partition = partition;
	lane->acked = lane->done = -1;
	for (int i = 0; i < co->opt.topics->event_count; i++)
		if (strcmp(co->opt.topics->events[i].topic, topic) == 0)
			lane->ns = co->opt.topics->events[i].ns;
	return lane;
}

static void batch_free(struct route_batch *batch)
{
	sl_arena_release(&batch->arena);
	free(batch->records);
	free(batch);
}

void route_lane_free(struct route_lane *lane)
{
	if (lane->deploy)
		deploy_free(lane->deploy);
	for (struct route_batch *b = lane->first, *next; b; b = next) {
		next = b->next;
		batch_free(b);
	}
	inbox_release(&lane->inbox, lane->co, lane->co->routed);
	free(lane);
}

static struct route_batch *batch_new(struct route_lane *lane)
{
	struct route_batch *batch = calloc(1, sizeof(*batch));
	sl_assert(batch);
	batch->lane = lane;
	sl_arena_init(&batch->arena);
	if (lane->last)
		lane->last->next = batch;
	else
		lane->first = batch;
	lane->last = batch;
	lane->batch_count++;
	return batch;
}

void route_add(struct route_batch *batch, const struct sl_record *rec)
{
	if (batch->count == batch->cap) {
		batch->cap = batch->cap ? batch->cap * 2 : 64;
		batch->records = realloc(batch->records, (size_t)batch->cap * sizeof(*batch->records));
		sl_assert(batch->records);
	}
	batch->records[batch->count++] = *rec;
}

void route_add_msg(struct route_batch *batch, struct sl_msg *msg)
{
	struct sl_record rec;
	int err = emit_record(batch->lane->co, &batch->arena, msg, &rec);
	if (err)
		sl_log(SL_ERROR, "%s/%d: message %s cannot be encoded: %s", batch->lane->topic, (int)batch->lane->partition,
			sl_msg_kind_text(msg->kind), sl_err_text(err));
	else
		route_add(batch, &rec);
	sl_msg_clear(msg);
}

/* --- taking a routed partition (R12) --- */

static void stop_lane(struct route_lane *lane, const char *text)
{
	lane->stage = ROUTE_STOPPED;
	co_fatal(lane->co, SL_ECONFIG, text);
}

static void started(struct route_lane *lane, int64_t offset)
{
	struct sl_coordinator *co = lane->co;
	lane->done = lane->acked = offset;
	lane->stage = ROUTE_RUN;
	co->opt.broker->ops->start(co->routed, lane->topic, lane->partition, offset);
}

static bool answered(struct route_lane *lane)
{
	lane->out--;
	lane->waiting = false;
	co_wake(lane->co);
	return lane->gone;
}

static void joined(void *arg, int err, const char *text)
{
	struct route_lane *lane = arg;
	(void)text;
	if (answered(lane))
		return;
	if (err) {
		lane->stage = ROUTE_TAKE;
		return;
	}
	started(lane, lane->done);
}

static void begin_committed(void *arg, int err)
{
	struct route_lane *lane = arg;
	char name[320];
	if (answered(lane))
		return;
	if (err) {
		lane->stage = ROUTE_TAKE;
		return;
	}
	snprintf(name, sizeof(name), "%s/%d", lane->topic, (int)lane->partition);
	struct sl_op op = {.kind = SL_OP_HSET, .key = "routed", .field = name, .value = {"1", 1}};
	lane->out++;
	lane->waiting = true;
	lane->co->opt.store->ops->write(lane->co->opt.store, &op, 1, joined, lane);
}

static void routed_loaded(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct route_lane *lane = arg;
	struct sl_coordinator *co = lane->co;
	char name[320], text[600];
	int64_t low, high, offset;
	bool known = false;
	if (answered(lane))
		return;
	lane->stage = ROUTE_TAKE;
	if (err || count < 1)
		return;
	snprintf(name, sizeof(name), "%s/%d", lane->topic, (int)lane->partition);
	for (int i = 0; i < hashes[0].count; i++)
		known = known || strcmp(hashes[0].fields[i].name, name) == 0;
	if (co->opt.broker->ops->watermarks(co->opt.broker, lane->topic, lane->partition, &low, &high) ||
		co->opt.broker->ops->committed(co->routed, lane->topic, lane->partition, &offset, NULL))
		return;
	if (offset < 0 && !known) { /* the first time: from the beginning, and said so before anything is read */
		lane->done = SL_RULE(routed_begin) ? low : high;
		lane->stage = ROUTE_TAKING;
		lane->out++;
		lane->waiting = true;
		if (!SL_RULE(routed_first))
			begin_committed(lane, 0);
		else if (co->opt.broker->ops->commit(co->routed, lane->topic, lane->partition, lane->done, NULL, begin_committed, lane))
			begin_committed(lane, SL_EAGAIN);
		return;
	}
	if (offset >= 0 && offset >= low && offset <= high) {
		started(lane, offset);
		return;
	}
	snprintf(text, sizeof(text),
		"%s: group %s-route %s, the topic holds %" PRId64 " to %" PRId64 ". Events may be missing. Restore the topic, or choose "
		"where to go on: kafka-consumer-groups --group %s-route --topic %s --reset-offsets --to-earliest (or --to-latest) --execute",
		name, co->opt.group, offset < 0 ? "has lost its offset" : "stands outside the topic", low, high - 1, co->opt.group,
		lane->topic);
	stop_lane(lane, text);
}

static void take(struct route_lane *lane)
{
	static const char *const key = "routed";
	lane->stage = ROUTE_TAKING;
	lane->out++;
	lane->waiting = true;
	lane->co->opt.store->ops->load(lane->co->opt.store, -1, &key, 1, routed_loaded, lane);
}

/* --- decode and route --- */

static void dead(struct route_batch *batch, const struct sl_record *rec, const char *reason)
{
	struct sl_record letter;
	const struct sl_coordinator *co = batch->lane->co;
	sl_dead_letter_record(co->opt.topics->dead_letter, rec, reason, DEAD_LETTER_MAX, &batch->arena, &letter);
	route_add(batch, &letter);
	sl_metric_add_l(SL_METRIC_dead_letters_total, "undecodable", 1);
	sl_log(SL_WARN, "%s/%d@%" PRId64 ": dead letter: %s", rec->topic, (int)rec->partition, rec->offset, reason);
}

static void why_written(void *arg, int err, const char *text)
{
	(void)arg, (void)err, (void)text; /* a decision that is lost costs an explanation, no event */
}

static void no_match(struct sl_coordinator *co, jv why)
{
	struct sl_buf text;
	sl_metric_add(SL_METRIC_events_unmatched_total, 1);
	sl_buf_init(&text);
	sl_json_write(&text, why);
	jv_free(why);
	struct sl_op op = {.kind = SL_OP_XADD, .key = "why", .field = "d", .value = sl_buf_bytes(&text), .number = 10000};
	co->opt.store->ops->write(co->opt.store, &op, 1, why_written, NULL);
	sl_buf_release(&text);
}

static void route_event(struct route_batch *batch, jv ev, const struct sl_record *rec)
{
	struct route_lane *lane = batch->lane;
	struct sl_origin origin = {lane->topic, rec->partition, rec->offset};
	struct sl_effects fx;
	jv why = jv_invalid();
	sl_effects_init(&fx, &batch->arena);
	int n = sl_route_event(&lane->co->engine, lane->ns, ev, &origin, &fx, &why);
	for (int i = 0; i < fx.count; i++) {
		fx.items[i].time_ms = rec->time_ms;
		route_add_msg(batch, &fx.items[i]);
	}
	sl_metric_add(SL_METRIC_events_routed_total, n);
	if (n == 0 && jv_is_valid(why))
		no_match(lane->co, why);
	else
		jv_free(why);
	sl_effects_release(&fx);
	jv_free(ev);
}

/* One record; false: a deployment, which must be the first of its batch: it changes what the next record meets. */
static bool route_one(struct route_batch *batch, const struct sl_record *rec, bool first, struct sl_diags *diags)
{
	struct route_lane *lane = batch->lane;
	jv ev;
	sl_diags_clear(diags);
	if (sl_event_decode(rec, &lane->co->opt.json, &ev, diags)) {
		dead(batch, rec, sl_diags_first(diags));
		return true;
	}
	if (lane->ns) {
		route_event(batch, ev, rec);
	} else if (!command_is_deployment(ev)) {
		command_route(batch, ev, rec);
	} else if (!first) {
		jv_free(ev);
		return false;
	} else {
		lane->deploy = deploy_new(lane, batch, ev, rec->time_ms);
		lane->stage = ROUTE_DEPLOY;
	}
	return true;
}

/* Partitions that overtake each other by more than the early window lose correlations (design section 5): people must know. */
static void watch_lag(struct route_lane *lane, int64_t time_ms)
{
	struct sl_coordinator *co = lane->co;
	int64_t lag_ms = co->opt.clock->ops->now_ms(co->opt.clock) - time_ms, window_ms = co->opt.limits.early_window_ms;
	char lag[32], window[32];
	sl_metric_observe_us(SL_METRIC_route_lag_seconds, lag_ms > 0 ? lag_ms * 1000 : 0);
	if (!lane->ns || !window_ms || lane->late == (lag_ms > window_ms))
		return;
	lane->late = lag_ms > window_ms;
	sl_duration_human(lag_ms, lag);
	sl_duration_human(window_ms, window);
	if (lane->late)
		sl_log(SL_WARN, "%s/%d: events are read %s after they were published, later than correlation.early_window_ms (%s): one that came "
				"early may have expired when its instance starts to wait. Start more coordinators, or set a longer window",
			lane->topic, (int)lane->partition, lag, window);
	else
		sl_log(SL_INFO, "%s/%d: events are read in time again", lane->topic, (int)lane->partition);
}

static void run_batch(struct route_lane *lane)
{
	struct sl_diags diags;
	int n = 0, max = co_batch_max(lane->co);
	struct route_batch *batch = batch_new(lane);
	sl_diags_init(&diags);
	watch_lag(lane, inbox_at(&lane->inbox, 0)->rec.time_ms);
	while (n < max && n < lane->inbox.count && !lane->deploy) {
		const struct sl_record *rec = &inbox_at(&lane->inbox, n)->rec;
		if (!route_one(batch, rec, n == 0, &diags))
			break;
		batch->next_offset = rec->offset + 1;
		n++;
	}
	sl_diags_release(&diags);
	sl_metric_add_l(SL_METRIC_records_in_total, lane->topic, n);
	inbox_drop(&lane->inbox, lane->co, lane->co->routed, n);
	lane->defs_ticket = 0;
	batch->closed = !lane->deploy;
}

/* --- emit and ack --- */

static void delivered(void *arg, int err)
{
	struct route_batch *batch = arg;
	struct route_lane *lane = batch->lane;
	batch->waiting--;
	lane->out--;
	if (err)
		sl_log(SL_ERROR, "%s/%d: Kafka refused a record for good: %s", lane->topic, (int)lane->partition, sl_err_text(err));
	if (!batch->waiting)
		co_wake(lane->co);
}

static void send(struct route_lane *lane)
{
	struct sl_broker *broker = lane->co->opt.broker;
	for (struct route_batch *b = lane->first; b; b = b->next) {
		while (b->sent < b->count) {
			if (broker->ops->produce(broker, &b->records[b->sent], delivered, b))
				return;
			b->sent++;
			b->waiting++;
			lane->out++;
		}
	}
}

static void acked(void *arg, int err)
{
	struct route_lane *lane = arg;
	lane->out--;
	lane->acking = false;
	if (err)
		lane->acked = -1; /* refused: a rebalance is on its way; what is repeated is recognised (R6) */
	co_wake(lane->co);
}

static void ack(struct route_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	while (lane->first && lane->first->closed && lane->first->sent == lane->first->count && !lane->first->waiting) {
		struct route_batch *b = lane->first;
		lane->done = b->next_offset;
		lane->first = b->next;
		if (!lane->first)
			lane->last = NULL;
		lane->batch_count--;
		batch_free(b);
	}
	if (!SL_RULE(routed_ack) && lane->last && lane->last->closed)
		lane->done = lane->last->next_offset;
	if (lane->acking || lane->acked == lane->done || lane->gone)
		return;
	lane->acking = true;
	lane->acked = lane->done;
	lane->out++;
	if (co->opt.broker->ops->commit(co->routed, lane->topic, lane->partition, lane->done, NULL, acked, lane))
		acked(lane, SL_EAGAIN);
}

static void backpressure(struct route_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	bool full = lane->inbox.count > 2 * co_batch_max(co), low = lane->inbox.count < co_batch_max(co);
	if (full && !lane->paused)
		co->opt.broker->ops->pause(co->routed, lane->topic, lane->partition, lane->paused = true);
	else if (low && lane->paused)
		co->opt.broker->ops->pause(co->routed, lane->topic, lane->partition, lane->paused = false);
}

void route_lane_turn(struct route_lane *lane)
{
	if (lane->waiting || lane->stage == ROUTE_STOPPED)
		return;
	if (lane->stage == ROUTE_TAKE)
		take(lane);
	if (lane->stage == ROUTE_DEPLOY && deploy_turn(lane->deploy)) {
		deploy_free(lane->deploy);
		lane->deploy = NULL;
		lane->last->closed = true;
		lane->stage = ROUTE_RUN;
	}
	send(lane);
	if (lane->stage == ROUTE_RUN && lane->inbox.count && lane->batch_count < BATCHES_MAX && !lane->co->draining) {
		if (!lane->defs_ticket)
			lane->defs_ticket = co_defs_ticket(lane->co);
		if (co_defs_current(lane->co, lane->defs_ticket)) {
			run_batch(lane);
			send(lane);
			lane->co->again = lane->co->again || (lane->inbox.count && !lane->deploy && lane->batch_count < BATCHES_MAX);
		}
	}
	ack(lane);
	backpressure(lane);
}
