/* Contract of the store port, on memory and on Redis. */
#include "common/adapters/redis/redis.h"
#include "common/base/buf.h"
#include "tests/contract/rig.h"
#include <hiredis/hiredis.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- waiting for answers --- */

struct answer {
	int calls, err;
	char text[400];
	int count;	    /* hashes, items, entries */
	struct sl_buf dump; /* of hashes: "name=value " each, "| " between hashes */
};

static bool answered(void *arg)
{
	return ((struct answer *)arg)->calls > 0;
}

static void on_done(void *arg, int err, const char *text)
{
	struct answer *a = arg;
	a->calls++;
	a->err = err;
	snprintf(a->text, sizeof(a->text), "%s", text ? text : "");
}

static void on_hashes(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct answer *a = arg;
	a->calls++;
	a->err = err;
	a->count = count;
	for (int i = 0; i < count; i++) {
		for (int f = 0; f < hashes[i].count; f++) {
			CHECK_INT(hashes[i].fields[f].value[hashes[i].fields[f].len], 0);
			sl_buf_printf(&a->dump, "%s=", hashes[i].fields[f].name);
			sl_buf_add(&a->dump, hashes[i].fields[f].value, hashes[i].fields[f].len);
			sl_buf_addc(&a->dump, ' ');
		}
		sl_buf_adds(&a->dump, "|");
	}
}

static void on_range(void *arg, int err, const struct sl_scored *items, int count)
{
	struct answer *a = arg;
	a->calls++;
	a->err = err;
	a->count = count;
	for (int i = 0; i < count; i++)
		sl_buf_printf(&a->dump, "%s:%.0f ", items[i].member, items[i].score);
}

static void on_stream(void *arg, int err, const struct sl_store_entry *items, int count)
{
	struct answer *a = arg;
	a->calls++;
	a->err = err;
	a->count = count;
	for (int i = 0; i < count; i++) {
		CHECK(items[i].id && *items[i].id);
		CHECK_INT(items[i].fields->count, 1);
		sl_buf_printf(&a->dump, "%s=%s ", items[i].fields->fields[0].name, items[i].fields->fields[0].value);
	}
}

static void reset(struct answer *a)
{
	a->calls = a->err = a->count = 0;
	sl_buf_clear(&a->dump);
	if (a->dump.data)
		a->dump.data[0] = 0;
}

static const char *wait_for(struct rig *rig, struct answer *a)
{
	CHECK_INT(a->calls, 0); /* never before the call has returned */
	CHECK(rig_until(rig, answered, a, 15000));
	CHECK_INT(a->calls, 1);
	return a->dump.data ? a->dump.data : "";
}

#define BYTES(text)                                                                                                    \
	{                                                                                                              \
		text, sizeof(text) - 1                                                                                 \
	}
#define HSET(k, f, v)                                                                                                  \
	{                                                                                                              \
		.kind = SL_OP_HSET, .key = k, .field = f, .value = BYTES(v)                                            \
	}

/* Takes partition p and returns its epoch. */
static int64_t take(struct rig *rig, struct sl_store *store, int32_t p, struct answer *a)
{
	reset(a);
	store->ops->take(store, "p", p, on_hashes, a);
	const char *dump = wait_for(rig, a);
	CHECK_INT(a->err, 0);
	CHECK_INT(a->count, 1);
	const char *epoch = strstr(dump, "epoch=");
	CHECK(epoch != NULL);
	return strtoll(epoch + 6, NULL, 10);
}

static int commit(struct rig *rig, struct sl_store *store, int32_t p, int64_t epoch, const struct sl_op *ops, int count,
	struct answer *a)
{
	struct sl_commit c = {.header = "p", .partition = p, .epoch = epoch, .ops = ops, .count = count};
	reset(a);
	store->ops->commit(store, &c, on_done, a);
	wait_for(rig, a);
	return a->err;
}

static const char *load(struct rig *rig, struct sl_store *store, int32_t p, const char *key, struct answer *a)
{
	reset(a);
	store->ops->load(store, p, &key, 1, on_hashes, a);
	const char *dump = wait_for(rig, a);
	CHECK_INT(a->err, 0);
	return dump;
}

static struct sl_store *open_store(struct rig *rig)
{
	return rig_store(rig, "a", rig_name("contract"), NULL);
}

static void done_with(struct sl_store *store, struct answer *a)
{
	store->ops->close(store);
	sl_buf_release(&a->dump);
}

/* --- tests --- */

static void take_raises_epoch_and_counts(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	CHECK_INT(take(rig, store, 7, &a), 1);
	CHECK(strstr(a.dump.data, "takes=1 ") != NULL);
	CHECK_INT(take(rig, store, 7, &a), 2);
	CHECK(strstr(a.dump.data, "takes=2 ") != NULL);
	CHECK_INT(take(rig, store, 8, &a), 1);
	done_with(store, &a);
}

static void commit_applies_all_kinds_in_order(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 3, &a);
	const struct sl_op ops[] = {
		HSET("i:ns~1", "x", "old"),
		HSET("i:ns~1", "y", "2"),
		HSET("i:ns~1", "x", "new"),
		HSET("i:ns~1", "z", "3"),
		{.kind = SL_OP_HDEL, .key = "i:ns~1", .field = "z"},
		HSET("i:ns~2", "a", "1"),
		{.kind = SL_OP_DEL, .key = "i:ns~2"},
		HSET("i:ns~2", "b", "2"),
		HSET("i:ns~3", "a", "1"),
		{.kind = SL_OP_DEL, .key = "i:ns~3"},
		{.kind = SL_OP_ZADD, .key = "e", .field = "late", .number = 300},
		{.kind = SL_OP_ZADD, .key = "e", .field = "early", .number = 100},
		{.kind = SL_OP_ZADD, .key = "e", .field = "gone", .number = 50},
		{.kind = SL_OP_ZREM, .key = "e", .field = "gone"},
		{.kind = SL_OP_XADD, .key = "why", .field = "d", .value = BYTES("1"), .number = 1000},
		{.kind = SL_OP_XADD, .key = "why", .field = "d", .value = BYTES("2"), .number = 1000},
		{.kind = SL_OP_HINCR, .key = "p", .field = "n:h", .number = 5},
		{.kind = SL_OP_HINCR, .key = "p", .field = "n:h", .number = -2},
		{.kind = SL_OP_HINCR, .key = "p", .field = "n:zero", .number = 1},
		{.kind = SL_OP_HINCR, .key = "p", .field = "n:zero", .number = -1},
		HSET("p", "applied", "17"),
	};
	CHECK_INT(commit(rig, store, 3, epoch, ops, sizeof(ops) / sizeof(ops[0]), &a), 0);
	const char *dump = load(rig, store, 3, "i:ns~1", &a);
	CHECK(strstr(dump, "x=new ") && strstr(dump, "y=2 ") && !strstr(dump, "z="));
	CHECK_STR(load(rig, store, 3, "i:ns~2", &a), "b=2 |");
	CHECK_STR(load(rig, store, 3, "i:ns~3", &a), "|");
	dump = load(rig, store, 3, "p", &a);
	CHECK(strstr(dump, "applied=17 ") && strstr(dump, "n:h=3 ") && !strstr(dump, "n:zero"));
	reset(&a);
	store->ops->range(store, 3, "e", -INFINITY, INFINITY, 10, on_range, &a);
	CHECK_STR(wait_for(rig, &a), "early:100 late:300 ");
	reset(&a);
	store->ops->range(store, 3, "e", 101, 300, 10, on_range, &a);
	CHECK_STR(wait_for(rig, &a), "late:300 ");
	reset(&a);
	store->ops->range(store, 3, "e", 0, 1000, 1, on_range, &a);
	CHECK_STR(wait_for(rig, &a), "early:100 ");
	reset(&a);
	store->ops->stream(store, 3, "why", 10, on_stream, &a);
	CHECK_STR(wait_for(rig, &a), "d=2 d=1 ");
	reset(&a);
	store->ops->stream(store, 3, "why", 1, on_stream, &a);
	CHECK_STR(wait_for(rig, &a), "d=2 ");
	done_with(store, &a);
}

static void old_epoch_is_fenced_and_changes_nothing(struct rig *rig)
{
	struct answer a = {0};
	const char *prefix = rig_name("contract");
	struct sl_store *one = rig_store(rig, "a", prefix, NULL), *two = rig_store(rig, "b", prefix, NULL);
	int64_t old = take(rig, one, 1, &a);
	int64_t new = take(rig, two, 1, &a);
	CHECK_INT(new, old + 1);
	const struct sl_op ops[] = {HSET("i:ns~1", "x", "1"), HSET("p", "applied", "1")};
	CHECK_INT(commit(rig, one, 1, old, ops, 2, &a), SL_EFENCED);
	CHECK_STR(load(rig, two, 1, "i:ns~1", &a), "|");
	CHECK_INT(commit(rig, two, 1, new + 1, ops, 2, &a), SL_EFENCED);
	CHECK_INT(commit(rig, two, 2, 1, ops, 2, &a), SL_EFENCED); /* nobody ever took it */
	CHECK_INT(commit(rig, two, 1, new, ops, 2, &a), 0);
	CHECK_STR(load(rig, one, 1, "i:ns~1", &a), "x=1 |");
	one->ops->close(one);
	done_with(two, &a);
}

static void wrong_type_is_refused_whole(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a);
	const struct sl_op make[] = {{.kind = SL_OP_ZADD, .key = "i:ns~bad", .field = "m", .number = 1}};
	CHECK_INT(commit(rig, store, 1, epoch, make, 1, &a), 0);
	const struct sl_op ops[] = {HSET("i:ns~good", "x", "1"), HSET("i:ns~bad", "x", "1")};
	CHECK_INT(commit(rig, store, 1, epoch, ops, 2, &a), SL_ESTORE);
	CHECK(strstr(a.text, "ns~bad") != NULL);
	CHECK_STR(load(rig, store, 1, "i:ns~good", &a), "|");
	done_with(store, &a);
}

static void large_commits_are_whole(struct rig *rig)
{
	enum { FIELDS = 5000, KEYS = 3000 };
	static struct sl_op ops[FIELDS + KEYS];
	static char names[FIELDS + KEYS][24];
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a);
	for (int i = 0; i < FIELDS + KEYS; i++) {
		snprintf(names[i], sizeof(names[i]), i < FIELDS ? "f:%d" : "i:ns~%d", i);
		ops[i] = (struct sl_op){.kind = SL_OP_HSET,
			.key = i < FIELDS ? "i:ns~big" : names[i],
			.field = i < FIELDS ? names[i] : "x",
			.value = {names[i], strlen(names[i])}};
	}
	CHECK_INT(commit(rig, store, 1, epoch, ops, FIELDS + KEYS, &a), 0);
	reset(&a);
	static const char *keys[KEYS + 1];
	keys[0] = "i:ns~big";
	for (int i = 0; i < KEYS; i++)
		keys[i + 1] = names[FIELDS + i];
	store->ops->load(store, 1, keys, KEYS + 1, on_hashes, &a);
	const char *dump = wait_for(rig, &a);
	CHECK_INT(a.count, KEYS + 1);
	CHECK(strstr(dump, "f:0=f:0 ") && strstr(dump, "f:4999=f:4999 ") && strstr(dump, "|x=i:ns~7999 |"));
	int fields = 0;
	for (const char *at = dump; (at = strchr(at, '=')); at++)
		fields++;
	CHECK_INT(fields, FIELDS + KEYS);
	done_with(store, &a);
}

static void values_are_bytes(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a);
	char value[] = "a\0b\r\n\xff", key[] = "i:ns~1", field[] = "bin";
	struct sl_op ops[] = {{.kind = SL_OP_HSET, .key = key, .field = field, .value = {value, 6}},
		{.kind = SL_OP_HSET, .key = key, .field = "empty", .value = {"", 0}}};
	struct sl_commit c = {.header = "p", .partition = 1, .epoch = epoch, .ops = ops, .count = 2};
	store->ops->commit(store, &c, NULL, NULL);
	memset(value, '!', sizeof(value) - 1); /* all was copied before the call returned */
	memset(field, '!', sizeof(field) - 1);
	memset(key, '!', sizeof(key) - 1);
	memset(ops, 0, sizeof(ops));
	load(rig, store, 1, "i:ns~1", &a);
	CHECK_INT(a.dump.len, strlen("bin=") + 6 + strlen(" empty= |"));
	CHECK(memcmp(a.dump.data, "bin=a\0b\r\n\xff empty= |", a.dump.len) == 0);
	done_with(store, &a);
}

static void keys_outside_partitions(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	const struct sl_op ops[] = {HSET("defs", "offset", "41"), HSET("schema:FP", "text", "{}"),
		{.kind = SL_OP_HINCR, .key = "defs", .field = "n", .number = 2},
		{.kind = SL_OP_HINCR, .key = "defs", .field = "m", .number = 0},
		{.kind = SL_OP_XADD, .key = "why", .field = "d", .value = BYTES("x"), .number = 10},
		HSET("routed", "sluice.events/1", "1"), HSET("routed", "sluice.events/2", "1"),
		{.kind = SL_OP_HDEL, .key = "routed", .field = "sluice.events/1"}};
	store->ops->write(store, ops, sizeof(ops) / sizeof(ops[0]), on_done, &a);
	wait_for(rig, &a);
	CHECK_INT(a.err, 0);
	CHECK_STR(load(rig, store, -1, "defs", &a), "offset=41 n=2 |");
	CHECK_STR(load(rig, store, -1, "schema:FP", &a), "text={} |");
	CHECK_STR(load(rig, store, -1, "routed", &a), "sluice.events/2=1 |");
	CHECK_STR(load(rig, store, 0, "defs", &a), "|");
	reset(&a);
	store->ops->stream(store, -1, "why", 5, on_stream, &a);
	CHECK_STR(wait_for(rig, &a), "d=x ");
	done_with(store, &a);
}

static void nothing_asked_is_answered(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	store->ops->load(store, 1, NULL, 0, on_hashes, &a);
	wait_for(rig, &a);
	CHECK_INT(a.err, 0);
	CHECK_INT(a.count, 0);
	reset(&a);
	store->ops->write(store, NULL, 0, on_done, &a);
	wait_for(rig, &a);
	CHECK_INT(a.err, 0);
	int64_t epoch = take(rig, store, 1, &a);
	CHECK_INT(commit(rig, store, 1, epoch, NULL, 0, &a), 0);
	CHECK_INT(commit(rig, store, 1, epoch + 1, NULL, 0, &a), SL_EFENCED);
	done_with(store, &a);
}

struct order {
	int next, at;
	bool ok;
};
static struct order order;

static void in_order(void *arg, int err, const char *text)
{
	(void)text;
	order.ok = order.ok && err == 0 && *(int *)arg == order.next;
	order.next++;
}

static bool all_came(void *arg)
{
	(void)arg;
	return order.next == 200;
}

static void pipelined_commits_keep_their_order(struct rig *rig)
{
	static int numbers[200];
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a);
	order = (struct order){.ok = true};
	for (int i = 0; i < 200; i++) {
		char value[16];
		int len = snprintf(value, sizeof(value), "%d", i);
		struct sl_op op = {.kind = SL_OP_HSET, .key = "i:ns~1", .field = "x", .value = {value, (size_t)len}};
		struct sl_commit c = {.header = "p", .partition = 1, .epoch = epoch, .ops = &op, .count = 1};
		numbers[i] = i;
		store->ops->commit(store, &c, in_order, &numbers[i]);
	}
	CHECK_INT(order.next, 0);
	CHECK(rig_until(rig, all_came, NULL, 10000));
	CHECK(order.ok);
	CHECK_STR(load(rig, store, 1, "i:ns~1", &a), "x=199 |");
	done_with(store, &a);
}

static void timers_have_their_own_header(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	take(rig, store, 1, &a);
	store->ops->take(store, "tp", 1, on_hashes, (reset(&a), &a));
	wait_for(rig, &a);
	const struct sl_op ops[] = {
		HSET("t:d", "id", "record"), {.kind = SL_OP_ZADD, .key = "t", .field = "id", .number = 5}};
	struct sl_commit c = {.header = "tp", .partition = 1, .epoch = 1, .ops = ops, .count = 2};
	reset(&a);
	store->ops->commit(store, &c, on_done, &a);
	wait_for(rig, &a);
	CHECK_INT(a.err, 0);
	CHECK_STR(load(rig, store, 1, "t:d", &a), "id=record |");
	done_with(store, &a);
}

static void check_says_well(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	store->ops->check(store, on_done, &a);
	wait_for(rig, &a);
	CHECK_STR(a.text, "");
	CHECK_INT(a.err, 0);
	done_with(store, &a);
}

static void close_drops_answers(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	store->ops->take(store, "p", 1, on_hashes, &a);
	store->ops->load(store, 1, (const char *const[]){"i:a"}, 1, on_hashes, &a);
	store->ops->close(store);
	rig_settle(rig, 100);
	CHECK_INT(a.calls, 0);
	sl_buf_release(&a.dump);
}

/* --- Redis alone --- */

static redisContext *side_door(void)
{
	const char *url = getenv("SLUICE_REDIS_URL"), *colon = strrchr(url, ':');
	redisContext *c = redisConnect("127.0.0.1", (int)strtol(colon + 1, NULL, 10));
	CHECK(c && !c->err);
	return c;
}

static void tell_redis(redisContext *c, const char *command)
{
	redisReply *reply = redisCommand(c, command);
	CHECK(reply && reply->type != REDIS_REPLY_ERROR);
	freeReplyObject(reply);
}

static void keys_look_as_documented(struct rig *rig)
{
	struct answer a = {0};
	const char *prefix = rig_name("look");
	struct sl_store *store = rig_store(rig, "a", prefix, NULL);
	int64_t epoch = take(rig, store, 7, &a);
	const struct sl_op ops[] = {
		HSET("i:default~id:1", "x", "1"), {.kind = SL_OP_ZADD, .key = "x", .field = "m", .number = 1}};
	CHECK_INT(commit(rig, store, 7, epoch, ops, 2, &a), 0);
	redisContext *c = side_door();
	redisReply *reply = redisCommand(c, "EXISTS %s:p:{7} %s:i:{7}:default~id:1 %s:x:{7}", prefix, prefix, prefix);
	CHECK_INT(reply->integer, 3);
	freeReplyObject(reply);
	redisFree(c);
	done_with(store, &a);
}

static void a_forgotten_script_is_sent_again(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a);
	redisContext *c = side_door();
	tell_redis(c, "SCRIPT FLUSH");
	redisFree(c);
	const struct sl_op ops[] = {HSET("i:ns~1", "x", "1")};
	CHECK_INT(commit(rig, store, 1, epoch, ops, 1, &a), 0);
	CHECK_STR(load(rig, store, 1, "i:ns~1", &a), "x=1 |");
	CHECK_INT(commit(rig, store, 1, epoch, ops, 1, &a), 0);
	done_with(store, &a);
}

static bool is_down(void *arg)
{
	return !((struct rig *)arg)->up;
}

static bool is_up(void *arg)
{
	return ((struct rig *)arg)->up;
}

static bool both(void *arg)
{
	struct answer *a = arg;
	return a[0].calls && a[1].calls;
}

static void a_broken_connection_is_told_and_mended(struct rig *rig)
{
	struct answer a[2] = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a[0]);
	redisContext *c = side_door();
	uint64_t session = store->ops->session(store);
	tell_redis(c, "CLIENT PAUSE 2000");
	const struct sl_op ops[] = {HSET("i:ns~1", "x", "1")};
	struct sl_commit commit_it = {.header = "p", .partition = 1, .epoch = epoch, .ops = ops, .count = 1};
	reset(&a[0]);
	store->ops->commit(store, &commit_it, on_done, &a[0]);
	store->ops->load(store, 1, (const char *const[]){"i:ns~1"}, 1, on_hashes, &a[1]);
	rig_settle(rig, 100);
	CHECK_INT(a[0].calls + a[1].calls, 0);
	tell_redis(c, "CLIENT KILL TYPE normal SKIPME yes");
	CHECK(rig_until(rig, both, a, 5000));
	CHECK_INT(a[0].err, SL_ELOST);
	CHECK_INT(a[1].err, SL_EUNREACHABLE);
	CHECK(rig_until(rig, is_down, rig, 1000));
	reset(&a[0]);
	store->ops->commit(store, &commit_it, on_done, &a[0]);
	wait_for(rig, &a[0]);
	CHECK_INT(a[0].err, SL_EUNREACHABLE);
	CHECK(strstr(a[0].text, "Redis at 127.0.0.1") != NULL);
	CHECK(rig_until(rig, is_up, rig, 10000));
	CHECK(store->ops->session(store) != session); /* R10: it may be an older store */
	take(rig, store, 1, &a[0]);
	session = store->ops->session(store);
	take(rig, store, 2, &a[0]);
	CHECK(store->ops->session(store) == session);
	redisFree(c);
	sl_buf_release(&a[1].dump);
	done_with(store, &a[0]);
}

static void silence_counts_as_broken(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = rig_store(rig, "a", rig_name("contract"), "?timeout_ms=500");
	redisContext *c = side_door();
	tell_redis(c, "CLIENT PAUSE 3000");
	reset(&a);
	store->ops->take(store, "p", 1, on_hashes, &a);
	uint64_t begin = uv_hrtime();
	wait_for(rig, &a);
	CHECK_INT(a.err, SL_EUNREACHABLE);
	CHECK(uv_hrtime() - begin < 2500000000u);
	CHECK(rig_until(rig, is_up, rig, 10000));
	redisFree(c);
	done_with(store, &a);
}

static void an_absent_server_is_waited_for(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = sl_store_redis_new(&rig->loop, "redis://127.0.0.1:1", NULL, NULL, NULL);
	rig_settle(rig, 300);
	CHECK(!sl_redis_up(store));
	store->ops->check(store, on_done, &a);
	wait_for(rig, &a);
	CHECK_INT(a.err, SL_EUNREACHABLE);
	CHECK(strstr(a.text, "127.0.0.1:1") && strstr(a.text, "refused"));
	done_with(store, &a);
}

static void refusals_name_the_cure(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	int64_t epoch = take(rig, store, 1, &a);
	const struct sl_op ops[] = {HSET("i:ns~1", "x", "1")};
	redisContext *c = side_door();
	tell_redis(c, "CONFIG SET maxmemory 1");
	int err = commit(rig, store, 1, epoch, ops, 1, &a);
	tell_redis(c, "CONFIG SET maxmemory 0");
	CHECK_INT(err, SL_ESTORE);
	CHECK(strstr(a.text, "maxmemory") != NULL);
	tell_redis(c, "REPLICAOF 127.0.0.1 1");
	err = commit(rig, store, 1, epoch, ops, 1, &a);
	tell_redis(c, "REPLICAOF NO ONE");
	CHECK_INT(err, SL_ESTORE);
	CHECK(strstr(a.text, "primary") != NULL);
	tell_redis(c, "CONFIG SET appendfsync everysec");
	reset(&a);
	store->ops->check(store, on_done, &a);
	wait_for(rig, &a);
	tell_redis(c, "CONFIG SET appendfsync always");
	CHECK_INT(a.err, SL_ESTORE);
	CHECK(strstr(a.text, "CONFIG SET appendfsync always") != NULL);
	CHECK_INT(commit(rig, store, 1, epoch, ops, 1, &a), 0);
	redisFree(c);
	done_with(store, &a);
}

static void commits_wait_for_replicas(struct rig *rig)
{
	struct answer a = {0};
	struct sl_store *store = rig_store(rig, "a", rig_name("contract"), "?replicas=1&wait_ms=200");
	int64_t epoch = take(rig, store, 1, &a);
	const struct sl_op ops[] = {HSET("i:ns~1", "x", "1")};
	CHECK_INT(commit(rig, store, 1, epoch, ops, 1, &a), SL_ELOST); /* there is none */
	CHECK(strstr(a.text, "replicas") != NULL);
	CHECK_INT(commit(rig, store, 1, epoch + 1, ops, 1, &a), SL_EFENCED);
	done_with(store, &a);
}

static void urls(struct rig *rig)
{
	(void)rig;
	static const char *const good[] = {"redis://localhost", "redis://h:6380/3", "redis://:p%40ss@h",
		"redis://u:p@[::1]:6379/0?replicas=2", "redis://h?wait_ms=1&timeout_ms=2"};
	static const char *const bad[] = {"localhost:6379", "rediss://h", "redis://", "redis://h:x", "redis://h/x",
		"redis://h?replica=1", "redis://h:70000", "redis://[::1"};
	struct sl_diags diags;
	sl_diags_init(&diags);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_INT(sl_redis_url_check(good[i], &diags), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(sl_redis_url_check(bad[i], &diags), SL_ECONFIG);
	sl_diags_release(&diags);
}

/* --- speed: contract_store --bench --- */

static int bench_left;

static void bench_done(void *arg, int err, const char *text)
{
	(void)arg;
	(void)text;
	CHECK_INT(err, 0);
	bench_left--;
}

static bool bench_over(void *arg)
{
	return bench_left <= *(int *)arg;
}

/* Like a coordinator: 1 KB states, an outbox of 300 bytes for each, several partitions in flight. */
static void bench(struct rig *rig)
{
	enum { ROUNDS = 100 };
	struct answer a = {0};
	struct sl_store *store = open_store(rig);
	static char state[1024], outbox[300 * 256], names[256][16];
	memset(state, 's', sizeof(state));
	memset(outbox, 'o', sizeof(outbox));
	for (int p = 0; p < 4; p++)
		CHECK_INT(take(rig, store, p, &a), 1);
	for (int batch = 8; batch <= 256; batch *= batch == 64 ? 4 : 8) {
		static struct sl_op ops[257];
		for (int i = 0; i < batch; i++) {
			snprintf(names[i], sizeof(names[i]), "i:ns~%d", i);
			ops[i] = (struct sl_op){
				.kind = SL_OP_HSET, .key = names[i], .field = "state", .value = {state, sizeof(state)}};
		}
		ops[batch] = (struct sl_op){
			.kind = SL_OP_HSET, .key = "p", .field = "outbox", .value = {outbox, (size_t)batch * 300}};
		for (int flight = 1; flight <= 4; flight *= 4) {
			uint64_t begin = uv_hrtime();
			bench_left = 0;
			for (int i = 0; i < ROUNDS; i++) {
				struct sl_commit c = {.header = "p",
					.partition = i % flight,
					.epoch = 1,
					.ops = ops,
					.count = batch + 1};
				bench_left++;
				store->ops->commit(store, &c, bench_done, NULL);
				int limit = flight - 1;
				CHECK(rig_until(rig, bench_over, &limit, 10000));
			}
			int none = 0;
			CHECK(rig_until(rig, bench_over, &none, 10000));
			printf("    batch %d, %d in flight: %.0f actors/s\n", batch, flight,
				ROUNDS * batch * 1e9 / (double)(uv_hrtime() - begin));
		}
	}
	done_with(store, &a);
}

static const struct test benches[] = {{"bench", bench, "redis"}};

static const struct test tests[] = {
	{"take raises the epoch and counts takes", take_raises_epoch_and_counts, NULL},
	{"a commit applies all kinds of operations in order", commit_applies_all_kinds_in_order, NULL},
	{"an old epoch is fenced and changes nothing", old_epoch_is_fenced_and_changes_nothing, NULL},
	{"a key of a wrong type refuses the whole commit", wrong_type_is_refused_whole, NULL},
	{"large commits are whole", large_commits_are_whole, NULL},
	{"values are bytes and are copied", values_are_bytes, NULL},
	{"keys outside partitions", keys_outside_partitions, NULL},
	{"nothing asked is answered", nothing_asked_is_answered, NULL},
	{"pipelined commits keep their order", pipelined_commits_keep_their_order, NULL},
	{"timers have a header of their own", timers_have_their_own_header, NULL},
	{"check says well", check_says_well, NULL},
	{"close drops answers", close_drops_answers, NULL},
	{"keys look as documented", keys_look_as_documented, "redis"},
	{"a forgotten script is sent again", a_forgotten_script_is_sent_again, "redis"},
	{"a broken connection is told and mended", a_broken_connection_is_told_and_mended, "redis"},
	{"silence counts as broken", silence_counts_as_broken, "redis"},
	{"an absent server is waited for", an_absent_server_is_waited_for, "redis"},
	{"refusals name the cure", refusals_name_the_cure, "redis"},
	{"commits wait for replicas", commits_wait_for_replicas, "redis"},
	{"urls", urls, "redis"},
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--bench") == 0)
		return rig_main(1, argv, "redis", "SLUICE_REDIS_URL", benches, 1);
	return rig_main(argc, argv, "redis", "SLUICE_REDIS_URL", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
