/* The road of one action through the executor (design section 8):
 *
 *   1 take      partitions that came: where the group stands, which offsets beyond are finished      part.c
 *   2 intake    records into hand, far enough ahead to see cancellations                             intake()
 *   3 decode    bytes -> action or cancellation; what cannot be read becomes a dead letter           action.c
 *   4 prepare   plan, arguments, request; expressions with secrets go to the helper (R8)              action.c
 *   5 call      as many at a time as allowed, no host more than its share                             calls.c
 *   6 answer    results and dead letters to Kafka                                                     send()
 *   7 ack       delivered: the offset is finished (R1); offsets are committed with the runs beyond    part.c
 *
 * A partition that another executor is to have is handed over when its calls have come this whole road.
 *
 * One attempt per record: retries are the engine's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/model/error.h"
#include "services/executor/work.h"

#define INTAKE_MAX 2048 /* records in one turn */
#define TICK_MS 500	/* deadlines of what waits, retries of what failed */
#define RECENT_MAX 2048 /* actions of a partition that are remembered, R6 */

void ex_wake(struct sl_executor *ex)
{
	if (ex->opt.wake)
		ex->opt.wake(ex->opt.arg);
}

int64_t ex_now(const struct sl_executor *ex)
{
	return ex->opt.clock->ops->now_ms(ex->opt.clock);
}

void ex_move(struct act *act, struct list *list, enum stage stage)
{
	if (act->list) {
		if (act->prev)
			act->prev->next = act->next;
		else
			act->list->first = act->next;
		if (act->next)
			act->next->prev = act->prev;
		else
			act->list->last = act->prev;
		act->list->count--;
	}
	act->list = list;
	act->stage = stage;
	act->next = NULL;
	act->prev = list ? list->last : NULL;
	if (!list)
		return;
	if (list->last)
		list->last->next = act;
	else
		list->first = act;
	list->last = act;
	list->count++;
}

void ex_finish(struct act *act)
{
	struct part *part = act->part;
	if (!part->gone) {
		sl_tracker_finish(&part->tracker, act->offset, act->offset);
		part->dirty = true;
	}
	act_free(act);
}

void ex_drop(struct act *act, bool finished)
{
	struct part *part = act->part;
	struct sl_executor *ex = part->ex;
	switch (act->stage) {
	case CALLING:
		ex->opt.caller->ops->cancel(ex->opt.caller, act->handle);
		calls_ended(act);
		sl_metric_add_l(SL_METRIC_calls_total, "cancelled", 1);
		break;
	case DELIVERING:
	case LANDED:
		act->gone = !finished; /* an answer that is on its way finishes the offset by itself */
		return;
	case EVALUATING:
		if (act->list == &ex->asking)
			break;
		act->gone = true;
		if (finished) {
			sl_tracker_finish(&part->tracker, act->offset, act->offset);
			part->dirty = true;
		}
		return;
	default:
		break;
	}
	if (finished)
		ex_finish(act);
	else
		act_free(act);
}

static void each_of(struct list *list, const struct part *part, ex_visit_fn visit)
{
	for (struct act *act = list->first, *next; act; act = next) {
		next = act->next;
		if (!part || act->part == part)
			visit(act);
	}
}

void ex_each(struct sl_executor *ex, const struct part *part, ex_visit_fn visit)
{
	struct list *lists[] = {&ex->undecoded, &ex->wait_plan, &ex->asking, &ex->evaluating, &ex->calling,
		&ex->sending, &ex->delivering, &ex->landed};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		each_of(lists[i], part, visit);
	sl_map_each(&ex->hosts, e) each_of(&((struct host *)e->value)->queue, part, visit);
}

/* --- 2 intake --- */

static struct part *find_part(struct sl_executor *ex, const char *topic, int32_t partition)
{
	for (struct part *part = ex->parts; part; part = part->next)
		if (!part->gone && part->partition == partition && strcmp(part->topic, topic) == 0)
			return part;
	return NULL;
}

static void take_record(struct sl_executor *ex, const struct sl_record *rec)
{
	struct part *part = find_part(ex, rec->topic, rec->partition);
	if (!part || part->handing || part->stage != PART_RUN || rec->offset < part->seen)
		return;
	/* offsets that the log does not hold will never be read: they must not hold up the run */
	if (rec->offset > part->seen)
		sl_tracker_finish(&part->tracker, part->seen, rec->offset - 1);
	part->seen = rec->offset + 1;
	if (sl_tracker_finished(&part->tracker, rec->offset))
		return;
	ex_move(act_new(part, rec), &ex->undecoded, UNDECODED);
}

static void set_paused(struct sl_executor *ex, bool paused)
{
	if (ex->paused == paused)
		return;
	ex->paused = paused;
	for (struct part *part = ex->parts; part; part = part->next)
		if (!part->gone && part->stage == PART_RUN)
			ex->opt.broker->ops->pause(ex->con, part->topic, part->partition, paused);
}

static void intake(struct sl_executor *ex)
{
	bool full = ex->hand >= ex->opt.hand_max || ex->hand_bytes >= ex->opt.hand_bytes_max;
	bool room = ex->hand < ex->opt.hand_max / 2 + 1 && ex->hand_bytes < ex->opt.hand_bytes_max / 2 + 1;
	if (full || ex->draining)
		set_paused(ex, true);
	else if (room)
		set_paused(ex, false);
	struct sl_record rec;
	void *handle;
	int n = 0;
	/* polled also while paused: a consumer that does not poll is put out of its group */
	while (n < INTAKE_MAX && ex->opt.broker->ops->poll(ex->con, &rec, &handle)) {
		take_record(ex, &rec);
		ex->opt.broker->ops->release(ex->con, handle);
		n++;
	}
	if (n)
		sl_metric_add_l(SL_METRIC_records_in_total, ex->opt.topics->actions, n);
	ex->again = ex->again || n == INTAKE_MAX;
}

/* --- 3 decode --- */

static void cancel_action(struct act *cancel)
{
	struct part *part = cancel->part;
	struct act *act = cancel->msg.action ? sl_map_get(&part->actions, cancel->msg.action) : NULL;
	while (act) {
		struct act *older = act->older;
		/* what was set up after the cancellation is another attempt */
		if (act->offset < cancel->offset)
			ex_drop(act, true);
		act = older;
	}
	ex_finish(cancel);
}

/* R6: an owner that takes a partition of sluice.instances sends its last outbox again. Such an action is in hand or answered; its
 * record is finished without a call. What was seen is kept in two halves, the older of which goes as a whole. */
static bool taken_before(struct act *act)
{
	struct part *part = act->part;
	char mark[256];
	if (!act->msg.action)
		return false;
	snprintf(mark, sizeof(mark), "%s %" PRId64 " %" PRId64, act->msg.action, (int64_t)act->msg.attempt,
		(int64_t)act->msg.token);
	if (sl_map_get(&part->recent, mark) || sl_map_get(&part->older, mark))
		return true;
	if (part->recent.count >= RECENT_MAX / 2) {
		sl_map_release(&part->older, NULL);
		part->older = part->recent;
		sl_map_init(&part->recent);
	}
	sl_map_set(&part->recent, mark, part);
	return false;
}

static void decode(struct sl_executor *ex)
{
	for (struct act *act = ex->undecoded.first, *next; act; act = next) {
		next = act->next;
		if (!act_decode(act))
			break; /* order matters: a cancellation must not overtake its action */
		if (act->stage == UNDECODED && act->msg.kind == SL_MSG_ACTION_CANCEL) {
			cancel_action(act);
		} else if (act->stage == UNDECODED && taken_before(act)) {
			ex_finish(act);
		} else if (act->stage == UNDECODED) {
			ex_move(act, &ex->wait_plan, WAIT_PLAN);
			act->older = act->msg.action ? sl_map_set(&act->part->actions, act->msg.action, act) : NULL;
		}
	}
}

/* --- 4 prepare --- */

static void prepare(struct sl_executor *ex)
{
	if (ex->draining)
		return;
	for (struct act *act = ex->wait_plan.first, *next; act; act = next) {
		next = act->next;
		if (act_expired(act, ex_now(ex)))
			act_timeout(act);
		else
			act_prepare(act);
	}
	while (ex->asking.first)
		act_ask(ex->asking.first);
}

/* --- 6 answer --- */

static void delivered(void *arg, int err)
{
	struct act *act = arg;
	struct sl_executor *ex = act->part->ex;
	act->delivered = err;
	ex_move(act, &ex->landed, LANDED);
	ex_wake(ex);
}

static void send(struct sl_executor *ex)
{
	int n = 0;
	if (!ex->sending.first || !sl_schemas_published(ex->schemas))
		return;
	while (ex->sending.first) {
		struct act *act = ex->sending.first;
		int err = ex->opt.broker->ops->produce(ex->opt.broker, &act->out, delivered, act);
		if (err == SL_EAGAIN)
			break;
		ex_move(act, &ex->delivering, DELIVERING);
		act->part->out++;
		if (err)
			delivered(act, err);
		n++;
	}
	if (n)
		ex->opt.broker->ops->kick(ex->opt.broker);
}

/* --- 7 ack --- */

static void land(struct act *act)
{
	int err = act->delivered;
	act->part->out--;
	if (act->gone || act->part->gone) {
		act_free(act);
		return;
	}
	if (!err) {
		sl_metric_add_l(SL_METRIC_records_out_total, act->out.topic, 1);
		ex_finish(act);
		return;
	}
	sl_log(SL_ERROR, "%s/%d@%" PRId64 ": %s was refused by the broker: %s", act->part->topic,
		(int)act->part->partition, act->offset, act->letter ? "a dead letter" : "a result", sl_err_text(err));
	if (act->letter || sl_json_str(act->error, "code")) {
		ex_finish(act); /* smaller than this it does not get; the instance's own timeout answers */
		return;
	}
	act_answer(act, jv_invalid(),
		sl_error_new(SL_CODE_TOO_BIG, 413, "The result is too big",
			"the broker does not take a record of this size"));
}

static void ack(struct sl_executor *ex)
{
	while (ex->landed.first)
		land(ex->landed.first);
}

/* --- time --- */

static void on_tick(void *arg)
{
	struct sl_executor *ex = arg;
	ex->tick = NULL;
	ex_wake(ex);
}

/* What waits in a host's queue and has passed its deadline is answered, not called. */
static void expire(struct sl_executor *ex)
{
	int64_t now = ex_now(ex);
	if (now < ex->tick_at_ms)
		return;
	ex->tick_at_ms = now + TICK_MS;
	sl_map_each(&ex->hosts, e)
	{
		struct host *host = e->value;
		for (struct act *act = host->queue.first, *next; act; act = next) {
			next = act->next;
			if (act_expired(act, now))
				act_timeout(act);
		}
	}
	sl_metric_set(SL_METRIC_calls_in_flight, ex->calling.count);
	sl_metric_set(SL_METRIC_actions_waiting, ex->hand - ex->calling.count);
}

static void set_tick(struct sl_executor *ex)
{
	bool needed = ex->hand || ex->draining;
	int64_t at = ex_now(ex) + TICK_MS;
	for (struct part *part = ex->parts; part; part = part->next) {
		if (part->dirty && !part->committing) {
			needed = true;
			at = part->commit_at_ms < at ? part->commit_at_ms : at;
		}
		needed = needed || part->stage == PART_TAKE;
	}
	if (needed && !ex->tick)
		ex->tick = ex->opt.clock->ops->at(ex->opt.clock, at, on_tick, ex);
}

static void turn_parts(struct sl_executor *ex)
{
	for (struct part **at = &ex->parts; *at;) {
		struct part *part = *at;
		part_turn(part);
		if (part->gone && !part->out) {
			*at = part->next;
			part_free(part);
		} else {
			at = &part->next;
		}
	}
}

bool sl_executor_turn(struct sl_executor *ex)
{
	ex->again = false;
	if (ex->closed)
		return false;
	turn_parts(ex); /* 1 take, and 7: commit what the last turn finished */
	intake(ex);	/* 2 */
	decode(ex);	/* 3 */
	prepare(ex);	/* 4 */
	expire(ex);
	calls_start(ex); /* 5 */
	send(ex);	 /* 6 */
	ack(ex);	 /* 7 */
	set_tick(ex);
	return ex->again || ex->landed.first;
}

/* --- the object --- */

static void on_assigned(void *arg, const char *topic, int32_t partition)
{
	struct sl_executor *ex = arg;
	struct part *part = part_new(ex, topic, partition);
	part->next = ex->parts;
	ex->parts = part;
	ex_wake(ex);
}

/* Whoever has it next begins what is not begun; what is begun would be done twice. */
static void on_handing(void *arg, const char *topic, int32_t partition)
{
	struct sl_executor *ex = arg;
	struct part *part = find_part(ex, topic, partition);
	if (part)
		part_hand(part);
	ex_wake(ex);
}

static void on_revoked(void *arg, const char *topic, int32_t partition)
{
	struct sl_executor *ex = arg;
	struct part *part = find_part(ex, topic, partition);
	if (part)
		part_revoke(part);
	ex_wake(ex);
}

static void on_readable(void *arg)
{
	ex_wake(arg);
}

static void on_fatal(void *arg, int err, const char *text)
{
	struct sl_executor *ex = arg;
	ex->opt.fatal(ex->opt.arg, err, text);
}

static void fill_defaults(struct sl_executor_options *opt)
{
	opt->in_flight_max = opt->in_flight_max > 0 ? opt->in_flight_max : 512;
	if (opt->host_in_flight_max <= 0)
		opt->host_in_flight_max = opt->in_flight_max / 4 > 8 ? opt->in_flight_max / 4 : 8;
	opt->hand_max = opt->hand_max > 0 ? opt->hand_max : 10000;
	opt->hand_bytes_max = opt->hand_bytes_max > 0 ? opt->hand_bytes_max : 32 << 20;
	opt->timeout_ms = opt->timeout_ms > 0 ? opt->timeout_ms : 30000;
	opt->answer_bytes_max = opt->answer_bytes_max ? opt->answer_bytes_max : 1 << 20;
	opt->result_bytes_max = opt->result_bytes_max ? opt->result_bytes_max : 3 << 20;
	opt->commit_ms = opt->commit_ms > 0 ? opt->commit_ms : 100;
	if (!opt->json.depth_max)
		opt->json.depth_max = sl_json_default.depth_max;
}

int sl_executor_new(const struct sl_executor_options *opt, struct sl_executor **ret, struct sl_diags *diags)
{
	struct sl_executor *ex = calloc(1, sizeof(*ex));
	sl_assert(ex);
	ex->opt = *opt;
	fill_defaults(&ex->opt);
	sl_map_init(&ex->hosts);
	struct sl_consumer_options con = {.group = ex->opt.group,
		.topics = &ex->opt.topics->actions,
		.topic_count = 1,
		.hand_over_ms = ex->opt.hand_over_ms,
		.events = {.arg = ex,
			.assigned = on_assigned,
			.handing = on_handing,
			.revoked = on_revoked,
			.readable = on_readable,
			.fatal = on_fatal}};
	int err = opt->broker->ops->consumer_new(opt->broker, &con, &ex->con);
	if (err) {
		sl_diag_error(diags, err, SL_NOWHERE, NULL, "cannot read topic %s: %s", opt->topics->actions,
			sl_err_text(err));
		sl_map_release(&ex->hosts, NULL);
		free(ex);
		return err;
	}
	ex->schemas = sl_schemas_new(opt->store, opt->wake, opt->arg);
	if (!opt->helper)
		ex->inline_helper = sl_evaluator_new(opt->secret, opt->secret_arg);
	*ret = ex;
	return 0;
}

void sl_executor_drain(struct sl_executor *ex)
{
	ex->draining = true;
	ex_wake(ex);
}

bool sl_executor_idle(const struct sl_executor *ex)
{
	if (ex->calling.first || ex->evaluating.first || ex->delivering.first || ex->sending.first || ex->landed.first)
		return false;
	for (const struct part *part = ex->parts; part; part = part->next)
		if (part->out || (part->dirty && !part->gone))
			return false;
	return true;
}

const char *sl_executor_ready(const struct sl_executor *ex)
{
	if (ex->opt.definitions && !sl_definitions_complete(ex->opt.definitions))
		return "the definitions are still being read";
	for (const struct part *part = ex->parts; part; part = part->next)
		if (!part->gone && part->stage != PART_RUN)
			return "a partition of the actions topic is still being taken";
	return NULL;
}

void sl_executor_close(struct sl_executor *ex)
{
	if (ex->closed)
		return;
	ex->closed = true;
	if (ex->tick)
		ex->opt.clock->ops->stop(ex->opt.clock, ex->tick);
	for (struct part *part = ex->parts; part; part = part->next)
		if (!part->gone)
			part_revoke(part);
	ex->opt.broker->ops->consumer_close(ex->con);
}

void sl_executor_free(struct sl_executor *ex)
{
	if (!ex)
		return;
	sl_executor_close(ex);
	ex_each(ex, NULL, act_free);
	for (struct part *part = ex->parts, *next; part; part = next) {
		next = part->next;
		part_free(part);
	}
	calls_release(ex);
	sl_schemas_free(ex->schemas);
	sl_evaluator_free(ex->inline_helper);
	free(ex);
}
