/* Contract of the broker port, on memory and on Kafka; groups: test_group.c. */
#include "common/adapters/kafka/admin.h"
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/kafka/mock.h"
#include "common/base/text.h"
#include "tests/contract/member.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void records_arrive_whole_and_in_order(struct rig *rig)
{
	const char *topic = rig_name("order");
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	produce_many(rig, b, topic, 0, 0, 5000);
	struct member m = {0};
	join(&m, b, NULL, topic, SL_OFFSET_BEGINNING);
	await_records(rig, &m, 5000);
	rig_settle(rig, 50);
	CHECK_INT(m.seen_count, 5000);
	for (int i = 0; i < 5000; i++) {
		CHECK_INT(m.seen[i].number, i);
		CHECK_INT(m.seen[i].offset, i);
	}
	leave(&m);
	b->ops->close(b, 1000);
}

static bool has_record(void *arg)
{
	struct member *m = arg;
	struct sl_record rec;
	void *handle;
	if (!m->broker->ops->poll(m->con, &rec, &handle))
		return false;
	CHECK_INT(rec.key.len, 3);
	CHECK(memcmp(rec.key.ptr, "k\0y", 3) == 0);
	CHECK(rec.value.ptr == NULL);
	CHECK_INT(rec.header_count, 3);
	CHECK_STR(rec.headers[0].name, "ce_id");
	CHECK(rec.headers[0].value.len == 1 && memcmp(rec.headers[0].value.ptr, "7", 1) == 0);
	CHECK_STR(rec.headers[1].name, "empty");
	CHECK_INT(rec.headers[1].value.len, 0);
	CHECK_STR(rec.headers[2].name, "ce_id");
	CHECK_INT(rec.headers[2].value.len, 2);
	int64_t now = m->want;
	CHECK(rec.time_ms / 1000 >= now - 5 && rec.time_ms / 1000 <= now + 60);
	m->broker->ops->release(m->con, handle);
	return true;
}

static void keys_headers_and_time_are_kept(struct rig *rig)
{
	const char *topic = rig_name("whole");
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	char key[] = "k\0y", value[] = "12";
	struct sl_header headers[] = {{"ce_id", {"7", 1}}, {"empty", {"", 0}}, {"ce_id", {value, 2}}};
	struct sl_record rec = {
		.topic = topic, .partition = -1, .key = {key, 3}, .headers = headers, .header_count = 3};
	struct deliveries d = {.want = 1};
	CHECK_INT(b->ops->produce(b, &rec, on_delivered, &d), 0);
	memset(key, 'x', sizeof(key)); /* a copy was queued */
	memset(value, 'x', sizeof(value));
	memset(headers, 0, sizeof(headers));
	CHECK(rig_until(rig, delivered, &d, 10000));
	struct member m = {0};
	join(&m, b, NULL, topic, 0);
	m.take_all = false;
	m.want = (int)(rig->real ? time(NULL) : sl_memory_now(rig->world) / 1000);
	CHECK(rig_until(rig, has_record, &m, 10000));
	leave(&m);
	b->ops->close(b, 1000);
}

static void keys_choose_partitions_by_murmur2(struct rig *rig)
{
	const char *topic = rig_name("keys");
	rig_topic(rig, topic, PARTS, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	struct deliveries d = {0};
	int32_t count = 0;
	int err;
	while ((err = b->ops->partitions(b, topic, &count)) == SL_EAGAIN)
		rig_settle(rig, 20);
	CHECK_INT(err, 0);
	CHECK_INT(count, PARTS);
	CHECK_INT(b->ops->partitions(b, rig_name("nowhere"), &count), SL_ENOTFOUND);
	for (int i = 0; i < 100; i++) {
		char key[32];
		snprintf(key, sizeof(key), "default~%d", i);
		produce(b, topic, -1, key, i, &d);
	}
	produce(b, topic, 5, "default~0", 100, &d);
	CHECK(rig_until(rig, delivered, &d, 10000));
	CHECK_INT(d.failed, 0);
	struct member m = {0};
	join(&m, b, NULL, topic, SL_OFFSET_BEGINNING);
	await_records(rig, &m, 101);
	for (int i = 0; i < 101; i++) {
		char key[32];
		int len = snprintf(key, sizeof(key), "default~%d", m.seen[i].number);
		int32_t want = (int32_t)((sl_murmur2(key, (size_t)len) & 0x7fffffff) % PARTS);
		CHECK_INT(m.seen[i].partition, m.seen[i].number == 100 ? 5 : want);
	}
	leave(&m);
	b->ops->close(b, 1000);
}

static void refused_records_are_told(struct rig *rig)
{
	const char *topic = rig_name("small");
	rig_topic(rig, topic, 1, 20000);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	static char big[8 << 20];
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(rand() >> 7);
	struct deliveries d = {.want = 1}, huge = {.want = 1}, fine = {0};
	struct sl_record rec = {.topic = topic, .partition = 0, .value = {big, 60000}};
	CHECK_INT(b->ops->produce(b, &rec, on_delivered, &d), 0);
	CHECK_INT(d.count, 0);
	CHECK(rig_until(rig, delivered, &d, 10000));
	CHECK_INT(d.last_err, SL_ETOOBIG);
	rec.value.len = sizeof(big);
	CHECK_INT(b->ops->produce(b, &rec, on_delivered, &huge), 0);
	CHECK_INT(huge.count, 0);
	CHECK(rig_until(rig, delivered, &huge, 10000));
	CHECK_INT(huge.last_err, SL_ETOOBIG);
	produce(b, topic, 0, "k", 1, &fine);
	CHECK(rig_until(rig, delivered, &fine, 10000));
	CHECK_INT(fine.failed, 0);
	b->ops->close(b, 1000);
}

static void nothing_before_start_then_from_there(struct rig *rig)
{
	const char *topic = rig_name("start");
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	produce_many(rig, b, topic, 0, 0, 1000);
	struct member m = {0};
	join(&m, b, NULL, topic, -1);
	await_owned(rig, &m, 1);
	rig_settle(rig, 300);
	drain(&m);
	CHECK_INT(m.seen_count, 0);
	CHECK_INT(b->ops->start(m.con, topic, 0, 600), 0);
	await_records(rig, &m, 400);
	CHECK_INT(m.seen[0].offset, 600);
	/* Back in the middle of reading: nothing of before is seen. */
	m.seen_count = 0;
	m.take_all = false;
	produce_many(rig, b, topic, 0, 1000, 2000);
	rig_settle(rig, 300);
	CHECK_INT(b->ops->start(m.con, topic, 0, 100), 0);
	m.take_all = true;
	await_records(rig, &m, 1900);
	for (int i = 0; i < 1900; i++)
		CHECK_INT(m.seen[i].offset, 100 + i);
	CHECK_INT(b->ops->start(m.con, topic, 0, 2000), 0); /* the end is a place too */
	m.seen_count = 0;
	produce_many(rig, b, topic, 0, 2000, 2001);
	await_records(rig, &m, 1);
	CHECK_INT(m.seen[0].offset, 2000);
	CHECK_INT(b->ops->start(m.con, rig_name("other"), 0, 0), SL_EFENCED);
	leave(&m);
	b->ops->close(b, 1000);
}

static void paused_partitions_wait_and_lose_nothing(struct rig *rig)
{
	const char *topic = rig_name("pause");
	rig_topic(rig, topic, 2, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	struct member m = {0};
	join(&m, b, NULL, topic, 0);
	await_owned(rig, &m, 2);
	int produced = 0;
	for (int round = 0; round < 10; round++) {
		b->ops->pause(m.con, topic, 0, true);
		produce_many(rig, b, topic, 0, produced, produced + 300);
		produce_many(rig, b, topic, 1, 0, 1);
		produced += 300;
		await_records(rig, &m, round * 301 + 1);
		rig_settle(rig, 30);
		CHECK_INT(m.seen_count, round * 301 + 1);
		b->ops->pause(m.con, topic, 0, false);
		await_records(rig, &m, (round + 1) * 301);
	}
	int next = 0;
	for (int i = 0; i < m.seen_count; i++)
		if (m.seen[i].partition == 0)
			CHECK_INT(m.seen[i].offset, next++);
	CHECK_INT(next, produced);
	leave(&m);
	b->ops->close(b, 1000);
}

static void group_offsets_with_metadata(struct rig *rig)
{
	const char *topic = rig_name("offsets"), *group = rig_name("group");
	rig_topic(rig, topic, 2, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	produce_many(rig, b, topic, 0, 0, 100);
	struct member m = {0};
	int64_t offset;
	char *metadata = (char *)1;
	join(&m, b, group, topic, -1);
	await_owned(rig, &m, 2);
	CHECK_INT(b->ops->committed(m.con, topic, 0, &offset, &metadata), 0);
	CHECK_INT(offset, -1);
	CHECK(metadata == NULL);
	CHECK_INT(commit(rig, &m, topic, 0, 40, "50-60,70"), 0);
	CHECK_INT(commit(rig, &m, topic, 1, 0, NULL), 0);
	CHECK_INT(b->ops->committed(m.con, topic, 0, &offset, &metadata), 0);
	CHECK_INT(offset, 40);
	CHECK_STR(metadata, "50-60,70");
	free(metadata);
	CHECK_INT(b->ops->committed(m.con, topic, 1, &offset, &metadata), 0);
	CHECK_INT(offset, 0);
	CHECK(metadata == NULL);
	CHECK_INT(b->ops->start(m.con, topic, 0, SL_OFFSET_COMMITTED), 0);
	await_records(rig, &m, 60);
	CHECK_INT(m.seen[0].offset, 40);
	int64_t low, high;
	CHECK_INT(b->ops->watermarks(b, topic, 0, &low, &high), 0);
	CHECK_INT(low, 0);
	CHECK_INT(high, 100);
	leave(&m);
	/* Who comes later goes on there. */
	struct member n = {0};
	CHECK_INT(commit(rig, (join(&n, b, group, topic, -1), await_owned(rig, &n, 2), &n), topic, 0, 90, NULL), 0);
	CHECK_INT(b->ops->start(n.con, topic, 0, SL_OFFSET_COMMITTED), 0);
	await_records(rig, &n, 10);
	leave(&n);
	b->ops->close(b, 1000);
}

static void no_offset_is_fatal_with_choices(struct rig *rig)
{
	const char *topic = rig_name("nooffset");
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	struct member m = {0};
	join(&m, b, rig_name("group"), topic, SL_OFFSET_COMMITTED);
	CHECK(rig_until(rig, failed, &m, 15000));
	CHECK(strstr(m.fatal_text, "no offset") && strstr(m.fatal_text, "Choose"));
	leave(&m);
	b->ops->close(b, 1000);
}

static void offset_out_of_range_is_fatal_with_choices(struct rig *rig)
{
	const char *topic = rig_name("range");
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	produce_many(rig, b, topic, 0, 0, 10);
	struct member m = {0};
	join(&m, b, rig_name("group"), topic, 1000);
	CHECK(rig_until(rig, failed, &m, 15000));
	CHECK_INT(m.fatal_err, SL_ECONFIG);
	CHECK(strstr(m.fatal_text, topic) && strstr(m.fatal_text, "Choose"));
	CHECK_INT(m.seen_count, 0);
	leave(&m);
	b->ops->close(b, 1000);
}

static void a_full_queue_says_again(struct rig *rig)
{
	const char *topic = rig_name("full");
	rig_topic(rig, topic, 1, 0);
	struct deliveries d = {0};
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	int err = 0;
	for (int i = 0; !err && i < 200000; i++)
		err = produce(b, topic, 0, "k", i, &d);
	CHECK_INT(err, SL_EAGAIN);
	d.want--; /* that one was not taken */
	CHECK(rig_until(rig, delivered, &d, 30000));
	CHECK_INT(d.failed, 0);
	CHECK_INT(produce(b, topic, 0, "k", 0, &d), 0);
	CHECK(rig_until(rig, delivered, &d, 10000));
	b->ops->close(b, 1000);
}

static void close_sends_what_is_queued(struct rig *rig)
{
	const char *topic = rig_name("close");
	rig_topic(rig, topic, 1, 0);
	struct deliveries d = {0};
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	for (int i = 0; i < 1000; i++)
		produce(b, topic, 0, "k", i, &d);
	b->ops->close(b, 10000);
	rig_settle(rig, 50);
	CHECK_INT(d.count, 0);
	b = rig_broker(rig, "a", NULL);
	struct member m = {0};
	join(&m, b, NULL, topic, 0);
	await_records(rig, &m, 1000);
	leave(&m);
	b->ops->close(b, 1000);
}

/* --- Kafka alone --- */

/* All numbers 0..count-1 are there, and each first sight is in order (repetitions are allowed). */
static void check_none_lost(struct member *m, int count)
{
	int next = 0, repeated = 0;
	for (int i = 0; i < m->seen_count; i++) {
		CHECK(m->seen[i].number <= next);
		if (m->seen[i].number == next)
			next++;
		else
			repeated++;
	}
	CHECK_INT(next, count);
	CHECK(repeated <= count);
}

static bool saw_last(void *arg)
{
	struct member *m = arg;
	return m->seen_count > 0 && m->seen[m->seen_count - 1].number == m->want;
}

static void a_fatal_producer_error_loses_nothing(struct rig *rig)
{
	const char *topic = rig_name("fatal");
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	struct deliveries d = {0};
	for (int i = 0; i < 20000; i++) {
		CHECK_INT(produce(b, topic, 0, "k", i, &d), 0);
		if (i == 5000)
			rig_settle(rig, 10);
		if (i == 12000 || i == 18000)
			sl_kafka_test_fatal(b);
	}
	CHECK(rig_until(rig, delivered, &d, 30000));
	CHECK_INT(d.count, 20000);
	CHECK_INT(d.failed, 0);
	CHECK(rig->logged > 0);
	struct member m = {0};
	join(&m, b, NULL, topic, 0);
	m.want = 19999;
	CHECK(rig_until(rig, saw_last, &m, 20000));
	check_none_lost(&m, 20000);
	leave(&m);
	b->ops->close(b, 1000);
}

static void set_bytes_max(const char *topic, const char *bytes)
{
	struct sl_kafka_options opt = {.brokers = getenv("SLUICE_KAFKA_BROKERS")};
	CHECK_INT(sl_kafka_test_setting(&opt, topic, "max.message.bytes", bytes), 0);
}

static bool reachable(void *arg)
{
	const char *text;
	return sl_kafka_reachable(arg, &text);
}

/* The topic's limit is lowered under way, and put right again. */
static void what_a_topic_refuses_waits_in_order(struct rig *rig)
{
	const char *topic = rig_name("refuses"), *other = rig_name("other"), *text;
	rig_topic(rig, topic, 1, 0);
	rig_topic(rig, other, 1, 0);
	struct sl_kafka_options opt = {
		.brokers = getenv("SLUICE_KAFKA_BROKERS"), .keep_refused = true, .log = note_log};
	struct sl_broker *b = sl_broker_kafka_new(&rig->loop, &opt);
	struct deliveries d = {0}, fine = {0};
	produce_many(rig, b, topic, 0, 0, 10);
	set_bytes_max(topic, "300");
	static char big[4000];
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(rand() >> 7);
	memcpy(big, "10 ", 3);
	struct sl_record rec = {.topic = topic, .partition = 0, .value = {big, sizeof(big)}};
	d.want = 1;
	CHECK_INT(b->ops->produce(b, &rec, on_delivered, &d), 0);
	rig_settle(rig, 300);
	for (int i = 11; i < 50; i++)
		CHECK_INT(produce(b, topic, 0, "k", i, &d), 0);
	for (int i = 0; i < 50; i++)
		CHECK_INT(produce(b, other, 0, "k", i, &fine), 0);
	CHECK(rig_until(rig, delivered, &fine, 20000));
	CHECK_INT(fine.failed, 0);
	CHECK(!sl_kafka_reachable(b, &text));
	CHECK(strstr(text, topic) && strstr(text, "max.message.bytes="));
	rig_settle(rig, 3000);
	CHECK_INT(d.count, 0);
	set_bytes_max(topic, "1000000");
	CHECK(rig_until(rig, delivered, &d, 30000));
	CHECK_INT(d.failed, 0);
	CHECK(rig_until(rig, reachable, b, 10000));
	struct member m = {0};
	join(&m, b, NULL, topic, 0);
	m.want = 49;
	CHECK(rig_until(rig, saw_last, &m, 20000));
	check_none_lost(&m, 50);
	leave(&m);
	b->ops->close(b, 1000);
}

static void a_broker_that_is_killed_loses_nothing(struct rig *rig)
{
	const char *dir = getenv("SLUICE_KAFKA_DIR"), *script = getenv("SLUICE_KAFKA_SCRIPT");
	if (!dir || !script) {
		printf("    (left out: SLUICE_KAFKA_DIR and SLUICE_KAFKA_SCRIPT are not set)\n");
		return;
	}
	const char *topic = rig_name("killed"), *group = rig_name("group");
	char command[600];
	rig_topic(rig, topic, 1, 0);
	struct sl_broker *b = rig_broker(rig, "a", "id"), *idle = rig_broker(rig, "b", NULL);
	struct member m = {0};
	join(&m, b, group, topic, 0);
	struct deliveries d = {0};
	for (int i = 0; i < 20000; i++) {
		CHECK_INT(produce(b, topic, 0, "k", i, &d), 0);
		if (i % 1000 == 0)
			rig_settle(rig, 2);
		if (i == 10000) {
			snprintf(command, sizeof(command), "'%s' kill9 '%s'", script, dir);
			CHECK_INT(system(command), 0);
		}
	}
	rig_settle(rig, 300);
	CHECK(d.count < d.want);
	const char *text;
	CHECK(!sl_kafka_reachable(b, &text));
	CHECK(strstr(text, "cannot reach Kafka") != NULL);
	snprintf(command, sizeof(command), "'%s' start '%s' >/dev/null", script, dir);
	CHECK_INT(system(command), 0);
	CHECK(rig_until(rig, delivered, &d, 60000));
	CHECK_INT(d.failed, 0);
	m.want = 19999;
	CHECK(rig_until(rig, saw_last, &m, 30000));
	check_none_lost(&m, 20000);
	CHECK(sl_kafka_reachable(b, &text));
	CHECK(rig_until(rig, reachable, idle, 10000)); /* who has nothing to do learns it too */
	leave(&m);
	b->ops->close(b, 1000);
	idle->ops->close(idle, 1000);
}

static void the_mock_cluster_works_too(struct rig *rig)
{
	struct sl_kafka_mock *mock = sl_kafka_mock_new();
	CHECK(mock != NULL);
	CHECK_INT(sl_kafka_mock_topic(mock, "t", 2), 0);
	struct sl_kafka_options opt = {.brokers = sl_kafka_mock_brokers(mock), .stamp_at_intake = true};
	struct sl_broker *b = sl_broker_kafka_new(&rig->loop, &opt);
	produce_many(rig, b, "t", 0, 0, 500);
	struct member m = {0};
	join(&m, b, "g", "t", 0);
	await_records(rig, &m, 500);
	CHECK_INT(commit(rig, &m, "t", 0, 500, "x"), 0);
	leave(&m);
	b->ops->close(b, 1000);
	sl_kafka_mock_free(mock);
}

/* --- speed: contract_broker --bench --- */

static void bench(struct rig *rig)
{
	enum { COUNT = 300000, BYTES = 400 };
	const char *topic = rig_name("bench");
	rig_topic(rig, topic, PARTS, 0);
	struct sl_broker *b = rig_broker(rig, "a", NULL);
	struct deliveries d = {0};
	static char value[BYTES];
	for (size_t i = 0; i < BYTES; i++)
		value[i] = (char)('a' + i % 26);
	struct sl_header headers[] = {{"ce_id", {"0123456789abcdef", 16}}, {"ce_type", {"io.sluice.msg", 13}},
		{"ce_source", {"sluice", 6}}, {"ce_specversion", {"1.0", 3}}};
	uint64_t begin = uv_hrtime();
	uint64_t inside = 0;
	for (int i = 0; i < COUNT;) {
		struct sl_record rec = {.topic = topic,
			.partition = i % PARTS,
			.key = {"default~key", 11},
			.value = {value, BYTES},
			.headers = headers,
			.header_count = 4};
		uint64_t t = uv_hrtime();
		int err = b->ops->produce(b, &rec, on_delivered, &d);
		inside += uv_hrtime() - t;
		if (err) {
			d.want = d.count + 1000 < i ? d.count + 1000 : i;
			rig_until(rig, delivered, &d, 10000);
		} else {
			i++;
		}
	}
	d.want = COUNT;
	rig_until(rig, delivered, &d, 60000);
	printf("    produce calls: %.0f/s; delivered: %.0f/s\n", COUNT * 1e9 / (double)inside,
		COUNT * 1e9 / (double)(uv_hrtime() - begin));
	struct member m = {0};
	join(&m, b, NULL, topic, 0);
	await_owned(rig, &m, PARTS);
	begin = uv_hrtime();
	m.want = COUNT;
	rig_until(rig, saw_enough, &m, 60000);
	printf("    consumed: %.0f/s\n", m.seen_count * 1e9 / (double)(uv_hrtime() - begin));
	fflush(stdout);
	_exit(0);
}

static const struct test tests[] = {
	{"records arrive whole and in order", records_arrive_whole_and_in_order, NULL},
	{"keys, headers and time are kept", keys_headers_and_time_are_kept, NULL},
	{"keys choose partitions by murmur2", keys_choose_partitions_by_murmur2, NULL},
	{"refused records are told", refused_records_are_told, NULL},
	{"nothing before start, then from there", nothing_before_start_then_from_there, NULL},
	{"paused partitions wait and lose nothing", paused_partitions_wait_and_lose_nothing, NULL},
	{"group offsets with metadata", group_offsets_with_metadata, NULL},
	{"no offset is fatal and names the choices", no_offset_is_fatal_with_choices, NULL},
	{"an offset out of range is fatal and names the choices", offset_out_of_range_is_fatal_with_choices, NULL},
	{"a full queue says again", a_full_queue_says_again, NULL},
	{"close sends what is queued", close_sends_what_is_queued, NULL},
	{"a fatal producer error loses nothing", a_fatal_producer_error_loses_nothing, "kafka"},
	{"what a topic refuses waits in order", what_a_topic_refuses_waits_in_order, "kafka"},
	{"a broker that is killed loses nothing", a_broker_that_is_killed_loses_nothing, "kafka"},
	{"the mock cluster works too", the_mock_cluster_works_too, "kafka"},
};
static const struct test benches[] = {{"bench", bench, "kafka"}};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--bench") == 0)
		return rig_main(1, argv, "kafka", "SLUICE_KAFKA_BROKERS", benches, 1);
	return rig_main(argc, argv, "kafka", "SLUICE_KAFKA_BROKERS", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
