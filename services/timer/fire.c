/* What is due goes out: TIMER records, sweeps, dead letters. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/rules.h"
#include "services/timer/lane.h"

#define FLIGHTS_MAX 10000
#define SWEEP_NS "default" /* a sweep speaks to the partition, whatever lives there; every key needs a namespace */

/* --- flights --- */

static void take_off(struct lane *lane, struct sl_due_entry *entry, struct letter *letter, struct flight **ret)
{
	struct flight *flight = calloc(1, sizeof(*flight));
	sl_assert(flight);
	*flight = (struct flight){.lane = lane, .entry = entry, .letter = letter, .next = lane->tm->flights};
	if (flight->next)
		flight->next->prev = flight;
	lane->tm->flights = flight;
	lane->tm->flight_count++;
	lane->out++;
	*ret = flight;
}

static void drop_flight(struct flight *flight)
{
	struct sl_timers *tm = flight->lane->tm;
	if (flight->prev)
		flight->prev->next = flight->next;
	else
		tm->flights = flight->next;
	if (flight->next)
		flight->next->prev = flight->prev;
	tm->flight_count--;
	flight->lane->out--;
	free(flight);
}

void letter_free(struct letter *letter)
{
	sl_arena_release(&letter->arena);
	free(letter);
}

void flights_release(struct sl_timers *tm)
{
	while (tm->flights) {
		struct flight *flight = tm->flights;
		if (flight->entry && flight->entry->orphan)
			sl_due_entry_free(flight->entry);
		if (flight->letter && flight->letter->orphan)
			letter_free(flight->letter);
		drop_flight(flight);
		sl_assert(tm->flights != flight);
	}
}

static void delivered(void *arg, int err)
{
	struct flight *flight = arg;
	struct lane *lane = flight->lane;
	struct sl_due_entry *entry = flight->entry;
	struct letter *letter = flight->letter;
	if (err)
		sl_log(SL_ERROR, "timer partition %d: the broker refused %s: %s", (int)lane->partition,
			entry	 ? entry->member
			: letter ? "a dead letter"
				 : "a sweep",
			sl_err_text(err));
	else
		sl_metric_add_l(SL_METRIC_records_out_total,
			letter ? lane->tm->opt.topics->dead_letter : lane->tm->opt.topics->instances, 1);
	/* what the broker will never take would be refused again: it counts as fired */
	if (entry && entry->orphan) {
		sl_due_entry_free(entry);
	} else if (entry) {
		entry->state = SL_DUE_FIRED;
		entries_add(&lane->fired, entry);
	}
	if (letter && letter->orphan)
		letter_free(letter);
	else if (letter)
		letter->delivered = true;
	struct sl_timers *tm = lane->tm;
	drop_flight(flight);
	tm_wake(tm);
}

/* False: the producer's queue is full. */
static bool send(struct lane *lane, const struct sl_record *rec, struct sl_due_entry *entry, struct letter *letter)
{
	struct sl_timers *tm = lane->tm;
	struct flight *flight;
	take_off(lane, entry, letter, &flight);
	int err = tm->opt.broker->ops->produce(tm->opt.broker, rec, delivered, flight);
	if (err == SL_EAGAIN) {
		drop_flight(flight);
		tm->full = true;
		return false;
	}
	if (err)
		delivered(flight, err);
	return true;
}

/* --- timers --- */

bool member_parse(
	struct sl_arena *arena, const char *member, const char **ret_ns, const char **ret_instance, int64_t *ret_token)
{
	const char *first = strchr(member, '~'), *last = strrchr(member, '~');
	if (!first || first == last || sl_int_parse(last + 1, ret_token))
		return false;
	*ret_ns = sl_arena_strn(arena, member, (size_t)(first - member));
	*ret_instance = sl_arena_strn(arena, first + 1, (size_t)(last - first - 1));
	return **ret_ns && **ret_instance;
}

static int make_record(struct sl_timers *tm, struct sl_arena *arena, const struct sl_msg *msg, struct sl_record *ret)
{
	*ret = (struct sl_record){.partition = -1};
	int err = sl_msg_record(msg, arena, ret);
	const char *key = sl_id_kafka_key(arena, msg->ns, msg->to);
	ret->topic = tm->opt.topics->instances;
	ret->partition = sl_id_partition(msg->ns, msg->to, tm->instance_partitions);
	ret->key = (struct sl_bytes){key, strlen(key)};
	return err;
}

static int timer_record(
	struct sl_timers *tm, struct sl_arena *arena, const struct sl_due_entry *entry, struct sl_record *ret)
{
	struct sl_msg msg;
	char id[SL_UUID_TEXT], due[24];
	sl_msg_init(&msg, SL_MSG_TIMER);
	if (!member_parse(arena, entry->member, &msg.ns, &msg.to, &msg.token))
		return SL_EPARSE;
	snprintf(due, sizeof(due), "%" PRId64, entry->due_ms);
	const char *parts[] = {"timer", entry->member, due};
	sl_id_derive(parts, 3, id); /* fired twice, it is the same record (R6) */
	msg.id = id;
	msg.instance = msg.to;
	msg.due_ms = entry->due_ms;
	msg.time_ms = entry->due_ms; /* one id, one content: not our clock */
	msg.traceparent = entry->traceparent;
	return make_record(tm, arena, &msg, ret);
}

bool may_fire(struct sl_timers *tm)
{
	return !tm->draining && !tm->full && tm->flight_count < FLIGHTS_MAX && sl_schemas_published(tm->schemas);
}

void lane_fire(struct lane *lane)
{
	struct sl_timers *tm = lane->tm;
	int64_t now = tm_now(tm);
	struct sl_arena arena;
	struct sl_due_entry *entry;
	sl_arena_init(&arena);
	while (may_fire(tm) && (entry = sl_due_first(&lane->due)) && entry->due_ms <= now) {
		struct sl_record rec;
		sl_due_fire(&lane->due);
		int err = timer_record(tm, &arena, entry, &rec);
		if (err) {
			sl_log(SL_ERROR, "timer partition %d: %s is no timer: %s", (int)lane->partition, entry->member,
				sl_err_text(err));
			entry->state = SL_DUE_FIRED;
			entries_add(&lane->fired, entry);
			continue;
		}
		if (!send(lane, &rec, SL_RULE(timer_after) ? entry : NULL, NULL)) {
			sl_due_back(&lane->due, entry);
			break;
		}
		if (!SL_RULE(timer_after)) {
			entry->state = SL_DUE_FIRED;
			entries_add(&lane->fired, entry);
		}
		sl_metric_add(SL_METRIC_timers_fired_total, 1);
		sl_metric_observe_us(SL_METRIC_timer_late_seconds, (now - entry->due_ms) * 1000);
		sl_arena_clear(&arena);
	}
	sl_arena_release(&arena);
}

/* --- sweeps --- */

/* The owner of timer partition P sweeps the instance partitions P, P + n, P + 2n ... of which there may be more. */
void lane_sweep(struct lane *lane)
{
	struct sl_timers *tm = lane->tm;
	int64_t now = tm_now(tm);
	if (tm->opt.sweep_ms < 0 || now < lane->sweep_at_ms || tm->full)
		return;
	bool first = lane->sweep_at_ms == 0;
	lane->sweep_at_ms = now + tm->opt.sweep_ms;
	if (first)
		return; /* a restart is no reason to sweep */
	struct sl_arena arena;
	sl_arena_init(&arena);
	for (int32_t p = lane->partition; p < tm->instance_partitions; p += tm->timer_partitions) {
		struct sl_msg msg;
		struct sl_record rec;
		char id[SL_UUID_TEXT], when[24];
		sl_msg_init(&msg, SL_MSG_SWEEP);
		msg.ns = SWEEP_NS;
		msg.to = sl_arena_printf(&arena, "@%d", (int)p);
		snprintf(when, sizeof(when), "%" PRId64, now);
		const char *parts[] = {"sweep", msg.to, when};
		sl_id_derive(parts, 3, id);
		msg.id = id;
		msg.time_ms = now;
		if (make_record(tm, &arena, &msg, &rec) || !send(lane, &rec, NULL, NULL))
			break; /* the next one comes in a minute */
	}
	sl_arena_release(&arena);
}

/* --- dead letters --- */

void lane_send_letters(struct lane *lane)
{
	for (int i = 0; i < lane->item_count && !lane->tm->full; i++) {
		struct letter *letter = lane->items[lane->item_head + i].letter;
		if (!letter || letter->sent)
			continue;
		letter->sent = true;
		if (!send(lane, &letter->rec, NULL, letter))
			letter->sent = false;
	}
}
