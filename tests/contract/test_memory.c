/* What the world in memory can do beyond the ports: crashes, zombies, cut connections, lanes, backups, mocks. */
#include "tests/contract/rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log {
	char text[600];
};

static void note(struct log *log, const char *fmt, int a, int b)
{
	size_t len = strlen(log->text);
	snprintf(log->text + len, sizeof(log->text) - len, fmt, a, b);
}

static void on_delivered(void *arg, int err)
{
	note(arg, "d%d ", err, 0);
}

static void on_done(void *arg, int err, const char *text)
{
	(void)text;
	note(arg, "c%d ",
		err == SL_ELOST		 ? 1
		: err == SL_EFENCED	 ? 2
		: err == SL_EUNREACHABLE ? 3
		: err == SL_ESTORE	 ? 4
					 : err,
		0);
}

static void on_hashes(void *arg, int err, const struct sl_hash *hashes, int count)
{
	(void)hashes;
	note(arg, "h%d/%d ", err == SL_EUNREACHABLE ? 3 : err, count);
}

struct proc {
	struct sl_broker *broker;
	struct sl_consumer *con;
	struct log *log;
	bool owned[4];
	int commit_err;
};

static void on_assigned(void *arg, const char *topic, int32_t p)
{
	struct proc *proc = arg;
	proc->owned[p] = true;
	proc->broker->ops->start(proc->con, topic, p, 0);
}

static void on_revoked(void *arg, const char *topic, int32_t p)
{
	(void)topic;
	((struct proc *)arg)->owned[p] = false;
}

static void on_readable(void *arg)
{
	struct proc *proc = arg;
	struct sl_record rec;
	void *handle;
	while (proc->broker->ops->poll(proc->con, &rec, &handle))
		note(proc->log, "r%d@%d ", (int)rec.partition, (int)rec.offset);
}

static void on_fatal(void *arg, int err, const char *text)
{
	(void)text;
	note(((struct proc *)arg)->log, "fatal%d ", err == SL_EFENCED, 0);
}

static void on_commit(void *arg, int err)
{
	((struct proc *)arg)->commit_err = err;
}

static void join(struct proc *proc, struct sl_memory *world, const char *name, struct log *log)
{
	static const char *const topics[] = {"t"};
	*proc = (struct proc){.broker = sl_memory_broker(world, name), .log = log};
	struct sl_consumer_options opt = {.group = "g",
		.topics = topics,
		.topic_count = 1,
		.events = {.arg = proc,
			.assigned = on_assigned,
			.revoked = on_revoked,
			.readable = on_readable,
			.fatal = on_fatal}};
	CHECK_INT(proc->broker->ops->consumer_new(proc->broker, &opt, &proc->con), 0);
}

static void produce(struct sl_broker *b, int32_t p, struct log *log)
{
	struct sl_record rec = {.topic = "t", .partition = p, .value = {"x", 1}};
	CHECK_INT(b->ops->produce(b, &rec, on_delivered, log), 0);
}

/* --- tests --- */

static void lanes_run_as_the_driver_chooses(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	sl_memory_topic(w, "t", 2, 0);
	struct sl_broker *b = sl_memory_broker(w, "A");
	produce(b, 0, &log);
	produce(b, 1, &log);
	CHECK_INT(sl_memory_lanes(w), 2);
	int second = strcmp(sl_memory_lane_name(w, 0), "A>t/1") == 0 ? 0 : 1;
	CHECK_STR(sl_memory_lane_name(w, second), "A>t/1");
	sl_memory_run(w, second);
	CHECK_INT(sl_memory_high(w, "t", 0), 0);
	CHECK_INT(sl_memory_high(w, "t", 1), 1);
	CHECK_STR(log.text, ""); /* its answer is a task of its own */
	CHECK_INT(sl_memory_turn(w, 0), 3);
	CHECK_STR(log.text, "d0 d0 ");
	CHECK_INT(sl_memory_lanes(w), 0);
}

static void a_crash_loses_or_delivers_what_was_sent(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	sl_memory_topic(w, "t", 1, 0);
	produce(sl_memory_broker(w, "A"), 0, &log);
	sl_memory_kill(w, "A", true);
	sl_memory_turn(w, 0);
	CHECK_INT(sl_memory_high(w, "t", 0), 0);
	produce(sl_memory_broker(w, "A"), 0, &log);
	sl_memory_kill(w, "A", false);
	sl_memory_turn(w, 0);
	CHECK_INT(sl_memory_high(w, "t", 0), 1); /* a dead process's last words */
	CHECK_STR(log.text, "");
	struct sl_clock *clock = sl_memory_clock(w, "A");
	clock->ops->at(clock, 0, (void (*)(void *))abort, NULL);
	sl_memory_kill(w, "A", true);
	CHECK(!sl_memory_fire(w, INT64_MAX));
}

static void a_zombie_keeps_reading_and_is_fenced(struct rig *rig)
{
	struct log one = {0}, two = {0};
	struct proc a, b;
	struct sl_memory *w = rig->world;
	sl_memory_topic(w, "t", 2, 0);
	join(&a, w, "A", &one);
	sl_memory_turn(w, 0);
	CHECK(a.owned[0] && a.owned[1]);
	join(&b, w, "B", &two);
	sl_memory_turn(w, 0);
	CHECK(a.owned[0] != b.owned[0] && a.owned[1] != b.owned[1]);
	sl_memory_expire(w, "A");
	sl_memory_turn(w, 0);
	CHECK(b.owned[0] && b.owned[1]);
	CHECK(a.owned[0] || a.owned[1]); /* it has not noticed */
	produce(sl_memory_broker(w, "P"), a.owned[0] ? 0 : 1, &two);
	sl_memory_turn(w, 0);
	CHECK(strstr(one.text, "@0") && strstr(two.text, "@0"));
	a.commit_err = 1;
	a.broker->ops->commit(a.con, "t", 0, 1, NULL, on_commit, &a);
	sl_memory_turn(w, 0);
	CHECK_INT(a.commit_err, SL_EFENCED);
	CHECK_INT(sl_memory_group_offset(w, "g", "t", 0), -1);
	sl_memory_rejoin(w, "A");
	sl_memory_turn(w, 0);
	CHECK_INT(a.owned[0] + a.owned[1], 1);
	CHECK(a.owned[0] != b.owned[0] && a.owned[1] != b.owned[1]);
	a.broker->ops->commit(a.con, "t", 0, 1, NULL, on_commit, &a);
	sl_memory_turn(w, 0);
	CHECK_INT(a.commit_err, 0);
}

static void a_process_that_returns_has_its_partitions(struct rig *rig)
{
	struct log log = {0};
	struct proc a, b, again;
	struct sl_memory *w = rig->world;
	sl_memory_topic(w, "t", 4, 0);
	join(&a, w, "A", &log);
	join(&b, w, "B", &log);
	sl_memory_turn(w, 0);
	bool had[4];
	memcpy(had, a.owned, sizeof(had));
	sl_memory_kill(w, "A", false);
	sl_memory_turn(w, 0);
	CHECK_INT(b.owned[0] + b.owned[1] + b.owned[2] + b.owned[3], 2);
	join(&again, w, "A", &log);
	sl_memory_turn(w, 0);
	CHECK(memcmp(had, again.owned, sizeof(had)) == 0);
	sl_memory_kill(w, "A", false);
	sl_memory_expire(w, "A");
	sl_memory_turn(w, 0);
	CHECK_INT(b.owned[0] + b.owned[1] + b.owned[2] + b.owned[3], 4);
	CHECK_STR(log.text, "");
}

static int64_t epoch_of(struct sl_memory *w)
{
	struct sl_hash *hash = sl_memory_peek(w, 1, "p");
	int64_t epoch = 0;
	for (int i = 0; i < hash->count; i++)
		if (strcmp(hash->fields[i].name, "epoch") == 0)
			epoch = strtoll(hash->fields[i].value, NULL, 10);
	sl_memory_hash_free(hash);
	return epoch;
}

static void put(struct sl_store *s, const char *value, struct log *log)
{
	struct sl_op op = {.kind = SL_OP_HSET, .key = "i:x", .field = "v", .value = {value, strlen(value)}};
	struct sl_commit c = {.header = "p", .partition = 1, .epoch = 1, .ops = &op, .count = 1};
	s->ops->commit(s, &c, on_done, log);
}

static void expect(struct sl_memory *w, const char *value)
{
	struct sl_hash *hash = sl_memory_peek(w, 1, "i:x");
	CHECK_INT(hash->count, value ? 1 : 0);
	if (value)
		CHECK_STR(hash->fields[0].value, value);
	sl_memory_hash_free(hash);
}

static void a_cut_connection_applies_some(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	struct sl_store *s = sl_memory_store(w, "A");
	s->ops->take(s, "p", 1, on_hashes, &log);
	sl_memory_turn(w, 0);
	CHECK_STR(log.text, "h0/1 ");
	log.text[0] = 0;
	put(s, "1", &log);
	put(s, "2", &log);
	s->ops->load(s, 1, (const char *const[]){"i:x"}, 1, on_hashes, &log);
	put(s, "3", &log);
	CHECK_INT(sl_memory_store_pending(w, "A"), 4);
	sl_memory_cut(w, "A", 2);
	CHECK_STR(log.text, "");
	sl_memory_turn(w, 0);
	CHECK_STR(log.text, "c1 c1 h3/0 c1 ");
	expect(w, "2");
	CHECK_INT(epoch_of(w), 1);
	/* Also an answer that was under way is lost. */
	log.text[0] = 0;
	put(s, "4", &log);
	sl_memory_turn(w, 1);
	sl_memory_cut(w, "A", 0);
	sl_memory_turn(w, 0);
	CHECK_STR(log.text, "c1 ");
	expect(w, "4");
}

static void a_zombies_commit_may_still_arrive(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	struct sl_store *s = sl_memory_store(w, "A");
	s->ops->take(s, "p", 1, on_hashes, &log);
	sl_memory_turn(w, 0);
	put(s, "late", &log);
	sl_memory_kill(w, "A", false);
	sl_memory_turn(w, 0);
	expect(w, "late");
	s = sl_memory_store(w, "A");
	put(s, "lost", &log);
	sl_memory_kill(w, "A", true);
	sl_memory_turn(w, 0);
	expect(w, "late");
	CHECK_STR(log.text, "h0/1 ");
}

static void a_store_in_trouble_says_so(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	struct sl_store *s = sl_memory_store(w, "A");
	s->ops->take(s, "p", 1, on_hashes, &log);
	sl_memory_turn(w, 0);
	sl_memory_store_state(w, false, NULL);
	put(s, "1", &log);
	sl_memory_turn(w, 0);
	sl_memory_store_state(w, true, "disk full");
	put(s, "2", &log);
	s->ops->check(s, on_done, &log);
	sl_memory_turn(w, 0);
	sl_memory_store_state(w, true, NULL);
	put(s, "3", &log);
	sl_memory_turn(w, 0);
	CHECK_STR(log.text, "h0/1 c3 c4 c4 c0 ");
	expect(w, "3");
}

static void a_backup_comes_back(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	struct sl_store *s = sl_memory_store(w, "A");
	s->ops->take(s, "p", 1, on_hashes, &log);
	put(s, "old", &log);
	sl_memory_turn(w, 0);
	struct sl_memory_backup *backup = sl_memory_backup(w);
	put(s, "new", &log);
	sl_memory_turn(w, 0);
	expect(w, "new");
	sl_memory_restore(w, backup);
	expect(w, "old");
	sl_memory_backup_free(backup);
}

/* Split brain: what A does until it reconnects happens in the store that was replaced. */
static void a_replaced_store_lives_on_beside(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	struct sl_store *s = sl_memory_store(w, "A");
	s->ops->take(s, "p", 1, on_hashes, &log);
	put(s, "old", &log);
	sl_memory_turn(w, 0);
	struct sl_memory_backup *backup = sl_memory_backup(w);
	uint64_t session = s->ops->session(s);
	sl_memory_restore_beside(w, backup);
	put(s, "lost", &log);
	sl_memory_turn(w, 0);
	expect(w, "old");
	put(s, "lost too", &log);
	put(s, "not done", &log);
	sl_memory_sever(w, "A", 1, true);
	put(s, "not sent", &log);
	sl_memory_turn(w, 0);
	CHECK_STR(log.text, "h0/1 c0 c0 c0 c1 c3 ");
	CHECK(s->ops->session(s) == session);
	sl_memory_reconnect(w, "A");
	CHECK(s->ops->session(s) != session);
	put(s, "new", &log);
	sl_memory_turn(w, 0);
	expect(w, "new");
	sl_memory_backup_free(backup);
}

static void trimmed_records_are_out_of_range(struct rig *rig)
{
	struct log log = {0};
	struct proc a;
	struct sl_memory *w = rig->world;
	struct sl_record rec;
	sl_memory_topic(w, "t", 1, 0);
	for (int i = 0; i < 5; i++)
		produce(sl_memory_broker(w, "P"), 0, &log);
	sl_memory_turn(w, 0);
	sl_memory_trim(w, "t", 0, 3);
	CHECK(!sl_memory_record(w, "t", 0, 2, &rec));
	CHECK(sl_memory_record(w, "t", 0, 3, &rec));
	log.text[0] = 0;
	join(&a, w, "A", &log); /* starts at 0 */
	sl_memory_turn(w, 0);
	CHECK_STR(log.text, "fatal0 ");
}

static int64_t mock(void *arg, const struct sl_http_request *req, struct sl_http_answer *ret)
{
	(void)arg;
	ret->status = 200;
	ret->content_type = "application/json";
	ret->body = (struct sl_bytes){req->url, strlen(req->url)};
	return strtol(strrchr(req->url, '/') + 1, NULL, 10);
}

static void on_answer(void *arg, const struct sl_http_answer *answer)
{
	struct log *log = arg;
	size_t len = strlen(log->text);
	snprintf(log->text + len, sizeof(log->text) - len, "%s:%d:%.*s ", answer->err ? "err" : "ok",
		answer->err ? answer->err == SL_ETIMEOUT : answer->status, (int)answer->body.len,
		(const char *)answer->body.ptr);
}

static void on_ring(void *arg)
{
	note(arg, "ring ", 0, 0);
}

static void mocks_answer_in_virtual_time_before_timers(struct rig *rig)
{
	struct log log = {0};
	struct sl_memory *w = rig->world;
	struct sl_caller *c = sl_memory_caller(w, "A");
	struct sl_clock *clock = sl_memory_clock(w, "A");
	int64_t now = sl_memory_now(w);
	sl_memory_mock(w, mock, NULL);
	clock->ops->at(clock, now + 50, on_ring, &log);
	struct sl_http_request req = {.method = "GET", .url = "http://x/50"};
	c->ops->call(c, &req, on_answer, &log);
	req.url = "http://x/10";
	c->ops->call(c, &req, on_answer, &log);
	req.url = "http://x/20";
	struct sl_http_handle *gone = c->ops->call(c, &req, on_answer, &log);
	req.url = "http://x/90";
	req.timeout_ms = 30;
	c->ops->call(c, &req, on_answer, &log);
	c->ops->cancel(c, gone);
	CHECK_STR(log.text, "");
	CHECK_INT(sl_memory_due(w), now + 10);
	while (sl_memory_fire(w, INT64_MAX))
		;
	CHECK_STR(log.text, "ok:200:http://x/10 err:1: ok:200:http://x/50 ring ");
	CHECK_INT(sl_memory_now(w), now + 50);
	CHECK(!sl_memory_fire(w, now + 1000));
	CHECK_INT(sl_memory_now(w), now + 1000);
	sl_memory_skew(w, "A", 7);
	CHECK_INT(clock->ops->now_ms(clock), now + 1007);
}

static void worlds_are_cheap(struct rig *rig)
{
	(void)rig;
	uint64_t begin = uv_hrtime();
	for (int i = 0; i < 1000; i++) {
		struct log log = {0};
		struct proc a;
		struct sl_memory *w = sl_memory_new(0);
		sl_memory_topic(w, "t", 4, 0);
		join(&a, w, "A", &log);
		for (int n = 0; n < 20; n++)
			produce(a.broker, n % 4, &log);
		sl_memory_turn(w, 0);
		CHECK_INT(sl_memory_high(w, "t", 0), 5);
		sl_memory_free(w);
	}
	double ms = (double)(uv_hrtime() - begin) / 1e6;
	CHECK(ms < 10000);
}

static const struct test tests[] = {
	{"lanes run as the driver chooses", lanes_run_as_the_driver_chooses, "memory"},
	{"a crash loses or delivers what was sent", a_crash_loses_or_delivers_what_was_sent, "memory"},
	{"a zombie keeps reading and is fenced", a_zombie_keeps_reading_and_is_fenced, "memory"},
	{"a process that returns has its partitions", a_process_that_returns_has_its_partitions, "memory"},
	{"a cut connection applies some", a_cut_connection_applies_some, "memory"},
	{"a zombie's commit may still arrive", a_zombies_commit_may_still_arrive, "memory"},
	{"a store in trouble says so", a_store_in_trouble_says_so, "memory"},
	{"a backup comes back", a_backup_comes_back, "memory"},
	{"a replaced store lives on beside", a_replaced_store_lives_on_beside, "memory"},
	{"trimmed records are out of range", trimmed_records_are_out_of_range, "memory"},
	{"mocks answer in virtual time, before timers", mocks_answer_in_virtual_time_before_timers, "memory"},
	{"worlds are cheap", worlds_are_cheap, "memory"},
};

int main(int argc, char **argv)
{
	return rig_main(argc, argv, NULL, NULL, tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
