/* The timer's road on the memory adapters: set, cancel, fire, restart, zombies, lost answers, sweeps. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/adapters/memory/memory.h"
#include "services/timer/timer.h"

#define T0 1700000000000
#define PARTITIONS 2

static struct sl_topics topics = {.instances = "sluice.instances", .timers = "sluice.timers", .dead_letter = "sluice.dead-letter"};

struct world {
	struct sl_memory *mem;
	struct sl_timers *tm[2];        /* processes "A", "B" */
	struct sl_arena arena;
	struct sl_timers_options opt;
	char fatal[600];
};

static void no_wake(void *arg)
{
	(void)arg;
}

static void on_fatal(void *arg, int err, const char *text)
{
	struct world *w = arg;
	(void)err;
	snprintf(w->fatal, sizeof(w->fatal), "%s", text);
}

static const char *const names[2] = {"A", "B"};

static void start(struct world *w, int i)
{
	struct sl_diags diags;
	sl_diags_init(&diags);
	w->opt.broker = sl_memory_broker(w->mem, names[i]);
	w->opt.store = sl_memory_store(w->mem, names[i]);
	w->opt.clock = sl_memory_clock(w->mem, names[i]);
	cr_assert_eq(sl_timers_new(&w->opt, &w->tm[i], &diags), 0, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static void crash(struct world *w, int i, bool lose)
{
	sl_memory_kill(w->mem, names[i], lose);
	sl_timers_free(w->tm[i]);
	w->tm[i] = NULL;
}

static void setup(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->mem = sl_memory_new(T0);
	sl_memory_topic(w->mem, topics.timers, PARTITIONS, 0);
	sl_memory_topic(w->mem, topics.instances, PARTITIONS, 0);
	sl_memory_topic(w->mem, topics.dead_letter, 1, 0);
	sl_arena_init(&w->arena);
	w->opt = (struct sl_timers_options){.topics = &topics, .group = "t", .sweep_ms = -1, .wake = no_wake, .fatal = on_fatal, .arg = w};
}

static void teardown(struct world *w)
{
	for (int i = 0; i < 2; i++)
		if (w->tm[i])
			crash(w, i, true);
	sl_memory_free(w->mem);
	sl_arena_release(&w->arena);
}

static void settle(struct world *w)
{
	int64_t ran;
	int rounds = 0; /* while the store is away, each turn tries to write the schema */
	do {
		ran = 0;
		for (int i = 0; i < 2; i++)
			ran += w->tm[i] && sl_timers_turn(w->tm[i]);
		ran += sl_memory_turn(w->mem, 0);
	} while (ran && ++rounds < 1000);
}

static void pass(struct world *w, int64_t ms)
{
	int64_t until = sl_memory_now(w->mem) + ms;
	settle(w);
	while (sl_memory_fire(w->mem, until))
		settle(w);
	settle(w);
}

static void give(struct world *w, enum sl_msg_kind kind, const char *instance, int64_t token, int64_t due_ms)
{
	struct sl_broker *feeder = sl_memory_broker(w->mem, "F");
	struct sl_msg msg;
	struct sl_record rec = {0};
	sl_msg_init(&msg, kind);
	msg.ns = "default";
	msg.instance = instance;
	msg.token = token;
	msg.due_ms = due_ms;
	msg.traceparent = token % 2 ? "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" : NULL;
	cr_assert_eq(sl_msg_record(&msg, &w->arena, &rec), 0);
	const char *key = sl_id_kafka_key(&w->arena, msg.ns, instance);
	rec.topic = topics.timers;
	rec.partition = sl_id_partition(msg.ns, instance, PARTITIONS);
	rec.key = (struct sl_bytes){key, strlen(key)};
	cr_assert_eq(feeder->ops->produce(feeder, &rec, NULL, NULL), 0);
	feeder->ops->kick(feeder);
	sl_arena_clear(&w->arena);
}

/* How often that timer fired, and the append time of the first. */
static int fired(struct world *w, const char *instance, int64_t token, int64_t *ret_first_ms)
{
	int32_t p = sl_id_partition("default", instance, PARTITIONS);
	int64_t high = sl_memory_high(w->mem, topics.instances, p);
	int n = 0;
	for (int64_t offset = 0; offset < high; offset++) {
		struct sl_record rec;
		struct sl_msg msg;
		uint64_t fp;
		if (!sl_memory_record(w->mem, topics.instances, p, offset, &rec))
			continue;
		cr_assert_eq(sl_msg_decode(rec.value, &w->arena, &msg, &fp, NULL), 0);
		if (msg.kind == SL_MSG_TIMER && strcmp(msg.to, instance) == 0 && msg.token == token && n++ == 0) {
			if (ret_first_ms)
				*ret_first_ms = rec.time_ms;
			cr_expect_eq(msg.traceparent != NULL, token % 2 == 1);
			cr_expect_geq(rec.time_ms, msg.due_ms);
		}
		sl_msg_clear(&msg);
		sl_arena_clear(&w->arena);
	}
	return n;
}

/* Fields of a key in any partition. */
static int left(struct world *w, const char *key)
{
	int n = 0;
	for (int32_t p = 0; p < PARTITIONS; p++) {
		struct sl_hash *hash = sl_memory_peek(w->mem, p, key);
		n += hash ? hash->count : 0;
		if (hash)
			sl_memory_hash_free(hash);
	}
	return n;
}

TestSuite(timer, .timeout = 120);

Test(timer, fires_when_due_and_is_forgotten_when_delivered)
{
	struct world w;
	int64_t at = 0;
	setup(&w);
	start(&w, 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0 + 5000);
	give(&w, SL_MSG_TIMER_SET, "a.1", 2, T0 - 5000);
	pass(&w, 1000);
	cr_expect_eq(fired(&w, "a.1", 1, NULL), 0);
	cr_expect_eq(fired(&w, "a.1", 2, NULL), 1, "what is late already fires at once");
	cr_expect_eq(left(&w, "t"), 1);
	pass(&w, 10000);
	cr_expect_eq(fired(&w, "a.1", 1, &at), 1);
	cr_expect_leq(at - (T0 + 5000), 50, "%lld ms late", (long long)(at - T0 - 5000));
	cr_expect_eq(left(&w, "t"), 0);
	cr_expect_eq(left(&w, "t:d:default~a.1~1"), 0);
	cr_expect(sl_timers_idle(w.tm[0]));
	cr_expect_null(sl_timers_ready(w.tm[0]));
	cr_expect_eq(sl_memory_group_offset(w.mem, "t", topics.timers, sl_id_partition("default", "a.1", PARTITIONS)), 2);
	teardown(&w);
}

Test(timer, cancelled_ones_do_not_fire_and_moved_ones_fire_once)
{
	struct world w;
	setup(&w);
	start(&w, 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0 + 5000);
	give(&w, SL_MSG_TIMER_SET, "a.1", 2, T0 + 5000);
	give(&w, SL_MSG_TIMER_SET, "a.1", 3, T0 + 86400000);
	pass(&w, 1000);
	give(&w, SL_MSG_TIMER_CANCEL, "a.1", 1, 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 2, T0 + 20000);
	give(&w, SL_MSG_TIMER_CANCEL, "a.1", 3, 0);
	give(&w, SL_MSG_TIMER_CANCEL, "a.1", 99, 0);
	pass(&w, 10000);
	cr_expect_eq(fired(&w, "a.1", 1, NULL), 0);
	cr_expect_eq(fired(&w, "a.1", 2, NULL), 0);
	pass(&w, 86400000 * 2);
	cr_expect_eq(fired(&w, "a.1", 1, NULL), 0);
	cr_expect_eq(fired(&w, "a.1", 2, NULL), 1);
	cr_expect_eq(fired(&w, "a.1", 3, NULL), 0);
	cr_expect_eq(left(&w, "t"), 0);
	cr_expect_eq(left(&w, "t:d:default~a.1~3"), 0);
	teardown(&w);
}

Test(timer, far_ones_wait_in_the_store_and_fire_on_time)
{
	struct world w;
	setup(&w);
	start(&w, 0);
	int64_t due[] = {T0 + 59000, T0 + 61000, T0 + 150000, T0 + 7200000};
	for (int i = 0; i < 4; i++)
		give(&w, SL_MSG_TIMER_SET, "a.1", i, due[i]);
	pass(&w, 8000000);
	for (int i = 0; i < 4; i++) {
		int64_t at = 0;
		cr_expect_eq(fired(&w, "a.1", i, &at), 1);
		cr_expect_leq(at - due[i], 50, "%d: %lld ms late", i, (long long)(at - due[i]));
	}
	teardown(&w);
}

Test(timer, a_restart_loses_nothing)
{
	struct world w;
	char id[16];
	setup(&w);
	w.opt.page_max = 7; /* many pages, and ties across their borders */
	start(&w, 0);
	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof(id), "i%d.1", i);
		give(&w, SL_MSG_TIMER_SET, id, i % 2, T0 + 10000 + i / 40 * 1000);
	}
	pass(&w, 2000);
	crash(&w, 0, true);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "i%d.1", i);
		give(&w, SL_MSG_TIMER_CANCEL, id, i % 2, 0);
	}
	sl_memory_set_now(w.mem, T0 + 14500); /* some are late meanwhile */
	start(&w, 0);
	pass(&w, 100);
	for (int i = 40; i < 300; i++) {
		snprintf(id, sizeof(id), "i%d.1", i);
		cr_expect_eq(fired(&w, id, i % 2, NULL), i / 40 <= 4, "%s", id);
	}
	pass(&w, 20000);
	for (int i = 40; i < 300; i++) {
		snprintf(id, sizeof(id), "i%d.1", i);
		cr_expect_eq(fired(&w, id, i % 2, NULL), 1, "%s", id);
	}
	cr_expect_eq(left(&w, "t"), 0);
	teardown(&w);
}

Test(timer, a_zombie_cannot_change_what_the_new_owner_holds)
{
	struct world w;
	setup(&w);
	start(&w, 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0 + 60000);
	pass(&w, 5000);
	sl_memory_expire(w.mem, "A");
	start(&w, 1);
	pass(&w, 5000);
	give(&w, SL_MSG_TIMER_SET, "a.1", 2, T0 + 70000);
	give(&w, SL_MSG_TIMER_CANCEL, "a.1", 1, 0);
	pass(&w, 5000);
	/* the zombie believes in timer 1, sends it and would remove it; the instance ignores the late token */
	pass(&w, 100000);
	cr_expect_eq(fired(&w, "a.1", 2, NULL), 1, "%d", fired(&w, "a.1", 2, NULL));
	cr_expect_leq(fired(&w, "a.1", 1, NULL), 1);
	cr_expect_eq(left(&w, "t"), 0);
	sl_memory_rejoin(w.mem, "A");
	give(&w, SL_MSG_TIMER_SET, "b.1", 4, T0 + 130000);
	give(&w, SL_MSG_TIMER_SET, "c.1", 4, T0 + 130000);
	give(&w, SL_MSG_TIMER_SET, "d.1", 4, T0 + 130000);
	pass(&w, 200000);
	cr_expect_eq(fired(&w, "b.1", 4, NULL) + fired(&w, "c.1", 4, NULL) + fired(&w, "d.1", 4, NULL), 3);
	cr_expect_str_eq(w.fatal, "");
	teardown(&w);
}

Test(timer, lost_answers_and_an_absent_store_are_survived)
{
	struct world w;
	char id[16];
	setup(&w);
	start(&w, 0);
	pass(&w, 1000);
	for (int i = 0; i < 40; i++) {
		snprintf(id, sizeof(id), "i%d.1", i);
		give(&w, SL_MSG_TIMER_SET, id, 1, T0 + 10000 + i * 500);
		for (int k = 0; k < 3; k++) {
			sl_timers_turn(w.tm[0]);
			sl_memory_turn(w.mem, 3);
		}
		sl_memory_cut(w.mem, "A", i % 2);
		if (i % 10 == 5)
			sl_memory_store_state(w.mem, false, NULL);
		pass(&w, 100);
		sl_memory_store_state(w.mem, true, NULL);
		pass(&w, 1500);
	}
	pass(&w, 60000);
	for (int i = 0; i < 40; i++) {
		snprintf(id, sizeof(id), "i%d.1", i);
		cr_expect_geq(fired(&w, id, 1, NULL), 1, "%s", id);
	}
	cr_expect_eq(left(&w, "t"), 0);
	cr_expect_str_eq(w.fatal, "");
	teardown(&w);
}

/* Every timer that is set fires once it is due, whatever dies in between; none that was cancelled well before fires, unless a zombie
 * sends it. */
/* R10: a far timer is not in memory; once the store is an older one it is only in the log. */
Test(timer, a_store_that_is_restored_while_we_run_is_brought_forward_from_the_log)
{
	struct world w;
	setup(&w);
	start(&w, 0);
	give(&w, SL_MSG_TIMER_SET, "near", 1, T0 + 5000);
	settle(&w);
	struct sl_memory_backup *backup = sl_memory_backup(w.mem);
	give(&w, SL_MSG_TIMER_CANCEL, "near", 1, 0);
	give(&w, SL_MSG_TIMER_SET, "far", 2, T0 + 7200000);
	settle(&w);
	sl_memory_restore(w.mem, backup);
	sl_memory_backup_free(backup);
	pass(&w, 7300000);
	cr_expect_eq(fired(&w, "near", 1, NULL), 0, "cancelled");
	cr_expect_eq(fired(&w, "far", 2, NULL), 1);
	teardown(&w);
}

Test(timer, random_crashes_lose_no_timer)
{
	enum { N = 120 };
	for (unsigned seed = 1; seed <= 30; seed++) {
		unsigned state = seed;
		int64_t due[N];
		bool cancelled[N] = {false};
		struct world w;
		char id[16];
		setup(&w);
		w.opt.page_max = 5;
		w.opt.batch_max = 8;
		w.opt.near_max = 20;
		start(&w, 0);
		for (int i = 0; i < N; i++) {
			int64_t now = sl_memory_now(w.mem);
			due[i] = now + rand_r(&state) % 30000;
			snprintf(id, sizeof(id), "i%d.1", i);
			give(&w, SL_MSG_TIMER_SET, id, i, due[i]);
			int j = rand_r(&state) % (i + 1);
			if (rand_r(&state) % 4 == 0 && !cancelled[j]) {
				snprintf(id, sizeof(id), "i%d.1", j);
				give(&w, SL_MSG_TIMER_CANCEL, id, j, 0);
				cancelled[j] = true;
			}
			for (int k = rand_r(&state) % 20; k > 0; k--) {
				sl_timers_turn(w.tm[0]);
				sl_memory_turn(w.mem, 1 + rand_r(&state) % 3);
			}
			if (rand_r(&state) % 3 == 0)
				pass(&w, rand_r(&state) % 1000);
			if (rand_r(&state) % 10 == 0) {
				crash(&w, 0, rand_r(&state) % 2);
				start(&w, 0);
			} else if (rand_r(&state) % 10 == 0) {
				sl_memory_cut(w.mem, "A", rand_r(&state) % 3);
			}
		}
		pass(&w, 60000);
		for (int i = 0; i < N; i++) {
			snprintf(id, sizeof(id), "i%d.1", i);
			if (!cancelled[i])
				cr_expect_geq(fired(&w, id, i, NULL), 1, "seed %u: %s", seed, id);
		}
		cr_expect_eq(left(&w, "t"), 0, "seed %u: %d left", seed, left(&w, "t"));
		cr_expect_str_eq(w.fatal, "");
		teardown(&w);
	}
}

Test(timer, many_pending_ones_load_quickly)
{
	enum { N = 30000 };
	struct world w;
	struct timespec from, to;
	setup(&w);
	w.opt.batch_max = 5000;
	sl_memory_queue_max(w.mem, N * 2);
	start(&w, 0);
	for (int i = 0; i < N; i++) {
		char id[16];
		snprintf(id, sizeof(id), "i%d.1", i);
		give(&w, SL_MSG_TIMER_SET, id, 2, T0 + 30000);
	}
	pass(&w, 5000);
	cr_assert_eq(left(&w, "t"), N);
	crash(&w, 0, true);
	clock_gettime(CLOCK_MONOTONIC, &from);
	start(&w, 0);
	pass(&w, 20000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	cr_expect_leq(to.tv_sec - from.tv_sec, 5);
	pass(&w, 20000);
	cr_expect_eq(left(&w, "t"), 0);
	int64_t sent = 0;
	for (int32_t p = 0; p < PARTITIONS; p++)
		sent += sl_memory_high(w.mem, topics.instances, p);
	cr_expect_eq(sent, N);
	teardown(&w);
}

Test(timer, sweeps_every_instance_partition)
{
	struct world w;
	setup(&w);
	sl_memory_topic(w.mem, topics.instances, 5, 0); /* more than timer partitions */
	w.opt.sweep_ms = 60000;
	start(&w, 0);
	pass(&w, 185000);
	for (int32_t p = 0; p < 5; p++) {
		struct sl_record rec;
		struct sl_msg msg;
		uint64_t fp;
		cr_expect_eq(sl_memory_high(w.mem, topics.instances, p), 3, "%d: %lld", p, (long long)sl_memory_high(w.mem, topics.instances, p));
		cr_assert(sl_memory_record(w.mem, topics.instances, p, 0, &rec));
		cr_assert_eq(sl_msg_decode(rec.value, &w.arena, &msg, &fp, NULL), 0);
		cr_expect_eq(msg.kind, SL_MSG_SWEEP);
		cr_expect_eq(msg.to[0], '@');
		cr_expect_eq(atoi(msg.to + 1), p);
		sl_msg_clear(&msg);
	}
	teardown(&w);
}

Test(timer, what_cannot_be_read_becomes_a_dead_letter)
{
	struct world w;
	struct sl_record rec = {.topic = topics.timers, .partition = sl_id_partition("default", "a.1", PARTITIONS), .key = {"k", 1},
		.value = {"garbage", 7}};
	setup(&w);
	struct sl_broker *feeder = sl_memory_broker(w.mem, "F");
	start(&w, 0);
	cr_assert_eq(feeder->ops->produce(feeder, &rec, NULL, NULL), 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0);
	pass(&w, 5000);
	cr_expect_eq(sl_memory_high(w.mem, topics.dead_letter, 0), 1);
	cr_expect_eq(fired(&w, "a.1", 1, NULL), 1);
	cr_expect_eq(sl_memory_group_offset(w.mem, "t", topics.timers, rec.partition), 2);
	teardown(&w);
}

Test(timer, a_log_that_lacks_the_applied_offset_stops_with_choices)
{
	struct world w;
	int32_t p = sl_id_partition("default", "a.1", PARTITIONS);
	setup(&w);
	start(&w, 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0);
	pass(&w, 5000);
	crash(&w, 0, true);
	for (int i = 0; i < 5; i++)
		give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0);
	sl_memory_turn(w.mem, 0);
	sl_memory_trim(w.mem, topics.timers, p, 4);
	start(&w, 0);
	pass(&w, 5000);
	cr_expect(strstr(w.fatal, "applied offset 0") && strstr(w.fatal, "HSET"), "%s", w.fatal);
	teardown(&w);
}

Test(timer, drain_delivers_and_commits_what_is_in_hand)
{
	struct world w;
	setup(&w);
	start(&w, 0);
	give(&w, SL_MSG_TIMER_SET, "a.1", 1, T0 + 100);
	pass(&w, 100);
	sl_timers_drain(w.tm[0]);
	pass(&w, 5000);
	cr_expect(sl_timers_idle(w.tm[0]));
	give(&w, SL_MSG_TIMER_SET, "a.1", 2, T0 + 200);
	pass(&w, 5000);
	cr_expect_eq(fired(&w, "a.1", 2, NULL), 0, "nothing new is taken");
	teardown(&w);
}
