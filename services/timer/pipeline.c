/* The road of a timer (design section 8):
 *
 *   1 take      partitions that came: epoch and applied offset, like the coordinator's (R2, R4)        lane.c
 *   2 intake    records into their partitions' hands; what cannot be read becomes a dead letter        intake()
 *   3 load      timers of the near horizon from the store, page by page                                lane.c
 *   4 fire      what is due goes to sluice.instances; sweeps; dead letters                             fire.c
 *   5 commit    one script per partition and batch: what was set and cancelled, the applied offset,
 *               and the removal of what was fired and delivered                                        lane.c
 *   6 mirror    Kafka's committed offset follows the applied one, for lag tools                        lane.c
 *
 * A partition has one operation of the store on its way; firing does not wait for it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "services/common/dead_letter.h"
#include "services/timer/lane.h"

#define INTAKE_MAX 2048
#define HAND_MAX 20000
#define TICK_MS 1000

void tm_wake(struct sl_timers *tm)
{
	if (tm->opt.wake)
		tm->opt.wake(tm->opt.arg);
}

int64_t tm_now(const struct sl_timers *tm)
{
	return tm->opt.clock->ops->now_ms(tm->opt.clock);
}

static struct lane *find_lane(struct sl_timers *tm, int32_t partition)
{
	for (struct lane *lane = tm->lanes; lane; lane = lane->next)
		if (!lane->gone && lane->partition == partition)
			return lane;
	return NULL;
}

/* --- 2 intake --- */

static void add_letter(struct lane *lane, const struct sl_record *rec, const char *reason)
{
	struct letter *letter = calloc(1, sizeof(*letter));
	sl_assert(letter);
	sl_arena_init(&letter->arena);
	sl_dead_letter_record(lane->tm->opt.topics->dead_letter, rec, reason, 900 * 1024, &letter->arena, &letter->rec);
	sl_log(SL_WARN, "%s/%d@%" PRId64 ": dead letter: %s", rec->topic, (int)rec->partition, rec->offset, reason);
	sl_metric_add_l(SL_METRIC_dead_letters_total, "undecodable", 1);
	lane_add(lane, (struct item){.offset = rec->offset, .kind = SL_MSG_NONE, .letter = letter});
}

static void add_message(
	struct lane *lane, const struct sl_record *rec, const struct sl_msg *msg, struct sl_arena *arena)
{
	if (msg->kind != SL_MSG_TIMER_SET && msg->kind != SL_MSG_TIMER_CANCEL) {
		add_letter(lane, rec, "neither sets nor cancels a timer");
		return;
	}
	const char *instance = msg->instance ? msg->instance : msg->from;
	if (!msg->ns || !instance) {
		add_letter(lane, rec, "a timer without namespace or instance");
		return;
	}
	const char *member = sl_arena_printf(arena, "%s~%s~%" PRId64, msg->ns, instance, msg->token);
	lane_add(lane,
		(struct item){.offset = rec->offset,
			.kind = msg->kind,
			.member = strdup(member),
			.due_ms = msg->due_ms,
			.traceparent =
				msg->kind == SL_MSG_TIMER_SET && msg->traceparent ? strdup(msg->traceparent) : NULL});
}

/* False: its schema is on its way. */
static bool take_record(struct sl_timers *tm, const struct sl_record *rec)
{
	struct lane *lane = find_lane(tm, rec->partition);
	if (!lane || lane->stage != LANE_RUN || rec->offset < lane->seen)
		return true; /* R2: at or before the applied offset, or from before we took the partition anew */
	struct sl_arena arena;
	struct sl_diags diags;
	struct sl_msg msg;
	uint64_t fp = 0;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	sl_msg_init(&msg, SL_MSG_NONE);
	int err = sl_msg_decode(rec->value, &arena, &msg, &fp, &diags);
	enum sl_schema_state schema = err == SL_ENOSCHEMA ? sl_schemas_ask(tm->schemas, fp) : SL_SCHEMA_MISSING;
	if (schema == SL_SCHEMA_KNOWN)
		err = sl_msg_decode(rec->value, &arena, &msg, &fp, &diags);
	bool taken = !(err == SL_ENOSCHEMA && schema == SL_SCHEMA_COMING);
	if (taken) {
		if (err)
			add_letter(lane, rec, diags.first ? sl_diags_first(&diags) : sl_err_text(err));
		else
			add_message(lane, rec, &msg, &arena);
		lane->seen = rec->offset + 1;
	}
	sl_msg_clear(&msg);
	sl_diags_release(&diags);
	sl_arena_release(&arena);
	return taken;
}

static void set_paused(struct sl_timers *tm, bool paused)
{
	if (tm->paused == paused)
		return;
	tm->paused = paused;
	for (struct lane *lane = tm->lanes; lane; lane = lane->next)
		if (!lane->gone && lane->stage == LANE_RUN)
			tm->opt.broker->ops->pause(tm->con, tm->opt.topics->timers, lane->partition, paused);
}

static bool take_stuck(struct sl_timers *tm)
{
	if (!tm->stuck_handle)
		return true;
	if (!take_record(tm, &tm->stuck))
		return false;
	tm->opt.broker->ops->release(tm->con, tm->stuck_handle);
	tm->stuck_handle = NULL;
	return true;
}

static void intake(struct sl_timers *tm)
{
	struct sl_record rec;
	void *handle;
	int n = 0;
	if (tm->hand >= HAND_MAX || tm->draining)
		set_paused(tm, true);
	else if (tm->hand < HAND_MAX / 2)
		set_paused(tm, false);
	while (take_stuck(tm) && n < INTAKE_MAX && tm->opt.broker->ops->poll(tm->con, &rec, &handle)) {
		n++;
		if (take_record(tm, &rec)) {
			tm->opt.broker->ops->release(tm->con, handle);
		} else {
			tm->stuck = rec;
			tm->stuck_handle = handle;
		}
	}
	if (n)
		sl_metric_add_l(SL_METRIC_records_in_total, tm->opt.topics->timers, n);
	tm->again = tm->again || n == INTAKE_MAX;
}

/* --- time --- */

static void on_alarm(void *arg)
{
	struct sl_timers *tm = arg;
	tm->alarm = NULL;
	tm_wake(tm);
}

static void set_alarm(struct sl_timers *tm)
{
	int64_t at = tm_now(tm) + TICK_MS;
	size_t near = 0;
	bool firing = may_fire(tm); /* else a delivery wakes us, and what is due can wait for it */
	for (struct lane *lane = tm->lanes; lane; lane = lane->next) {
		struct sl_due_entry *first = sl_due_first(&lane->due);
		if (firing && lane->stage == LANE_RUN && !lane->gone && first && first->due_ms < at)
			at = first->due_ms;
		near += lane->due.count;
	}
	sl_metric_set(SL_METRIC_timers_near, (int64_t)near);
	if (!tm->lanes || (tm->alarm && tm->alarm_at_ms <= at))
		return;
	if (tm->alarm)
		tm->opt.clock->ops->stop(tm->opt.clock, tm->alarm);
	tm->alarm_at_ms = at;
	tm->alarm = tm->opt.clock->ops->at(tm->opt.clock, at, on_alarm, tm);
}

bool sl_timers_turn(struct sl_timers *tm)
{
	if (tm->closed)
		return false;
	tm->again = tm->full = false;
	intake(tm); /* 2 */
	for (struct lane **at = &tm->lanes; *at;) {
		struct lane *lane = *at;
		if (lane->gone && !lane->out) {
			*at = lane->next;
			lane_free(lane);
			continue;
		}
		if (!lane->gone && lane->stage == LANE_RUN && may_fire(tm)) {
			lane_fire(lane); /* 4 */
			lane_sweep(lane);
			lane_send_letters(lane);
		}
		if (!lane->gone)
			lane_turn(lane); /* 1 take, 3 load, 5 commit, 6 mirror */
		at = &lane->next;
	}
	tm->opt.broker->ops->kick(tm->opt.broker);
	set_alarm(tm);
	return tm->again;
}

/* --- the object --- */

static void on_assigned(void *arg, const char *topic, int32_t partition)
{
	struct sl_timers *tm = arg;
	(void)topic;
	struct lane *lane = lane_new(tm, partition);
	lane->next = tm->lanes;
	tm->lanes = lane;
	tm_wake(tm);
}

static void on_revoked(void *arg, const char *topic, int32_t partition)
{
	struct sl_timers *tm = arg;
	(void)topic;
	struct lane *lane = find_lane(tm, partition);
	if (lane)
		lane_revoke(lane);
	tm_wake(tm);
}

static void on_readable(void *arg)
{
	tm_wake(arg);
}

static void on_fatal(void *arg, int err, const char *text)
{
	struct sl_timers *tm = arg;
	tm->opt.fatal(tm->opt.arg, err, text);
}

static void fill_defaults(struct sl_timers_options *opt)
{
	opt->horizon_ms = opt->horizon_ms > 0 ? opt->horizon_ms : 60000;
	opt->near_max = opt->near_max > 0 ? opt->near_max : 200000;
	opt->batch_max = opt->batch_max > 0 ? opt->batch_max : 1024;
	opt->page_max = opt->page_max > 0 ? opt->page_max : 1000;
	opt->sweep_ms = opt->sweep_ms ? opt->sweep_ms : 60000;
}

int sl_timers_new(const struct sl_timers_options *opt, struct sl_timers **ret, struct sl_diags *diags)
{
	const struct sl_topics *topics = opt->topics;
	int32_t timers, instances;
	int err = opt->broker->ops->partitions(opt->broker, topics->timers, &timers);
	if (err)
		return sl_diag_error(diags, err, SL_NOWHERE, NULL, "topic %s: %s", topics->timers, sl_err_text(err));
	err = opt->broker->ops->partitions(opt->broker, topics->instances, &instances);
	if (err)
		return sl_diag_error(diags, err, SL_NOWHERE, NULL, "topic %s: %s", topics->instances, sl_err_text(err));
	struct sl_timers *tm = calloc(1, sizeof(*tm));
	sl_assert(tm);
	tm->opt = *opt;
	fill_defaults(&tm->opt);
	tm->timer_partitions = timers;
	tm->instance_partitions = instances;
	struct sl_consumer_options con = {.group = tm->opt.group,
		.topics = &tm->opt.topics->timers,
		.topic_count = 1,
		.events = {.arg = tm,
			.assigned = on_assigned,
			.revoked = on_revoked,
			.readable = on_readable,
			.fatal = on_fatal}};
	err = opt->broker->ops->consumer_new(opt->broker, &con, &tm->con);
	if (err) {
		free(tm);
		return sl_diag_error(
			diags, err, SL_NOWHERE, NULL, "cannot read topic %s: %s", topics->timers, sl_err_text(err));
	}
	tm->schemas = sl_schemas_new(opt->store, opt->wake, opt->arg);
	*ret = tm;
	return 0;
}

void sl_timers_drain(struct sl_timers *tm)
{
	tm->draining = true;
	tm_wake(tm);
}

bool sl_timers_idle(const struct sl_timers *tm)
{
	for (const struct lane *lane = tm->lanes; lane; lane = lane->next)
		if (lane->out || (!lane->gone && (lane->item_count || lane->fired.count)))
			return false;
	return true;
}

const char *sl_timers_ready(const struct sl_timers *tm)
{
	for (const struct lane *lane = tm->lanes; lane; lane = lane->next)
		if (!lane->gone && lane->stage != LANE_RUN)
			return "a partition of the timer topic is still being taken";
	return NULL;
}

void sl_timers_close(struct sl_timers *tm)
{
	if (tm->closed)
		return;
	tm->closed = true;
	if (tm->alarm)
		tm->opt.clock->ops->stop(tm->opt.clock, tm->alarm);
	tm->alarm = NULL;
	if (tm->stuck_handle)
		tm->opt.broker->ops->release(tm->con, tm->stuck_handle);
	for (struct lane *lane = tm->lanes; lane; lane = lane->next)
		if (!lane->gone)
			lane_revoke(lane);
	tm->opt.broker->ops->consumer_close(tm->con);
}

void sl_timers_free(struct sl_timers *tm)
{
	if (!tm)
		return;
	sl_timers_close(tm);
	flights_release(tm);
	for (struct lane *lane = tm->lanes, *next; lane; lane = next) {
		next = lane->next;
		lane_free(lane);
	}
	sl_schemas_free(tm->schemas);
	free(tm);
}
