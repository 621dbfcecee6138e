/* Contract of the broker port: groups - sharing, fixed names, handing over - on memory and on Kafka. */
#include "common/adapters/kafka/kafka.h"
#include "tests/contract/member.h"

struct two {
	struct member m[2];
	int each;
};

static bool shared(void *arg)
{
	struct two *t = arg;
	for (int p = 0; p < PARTS; p++) /* never two owners at a time */
		CHECK(!(t->m[0].owned[p] && t->m[1].owned[p]));
	return t->m[0].owned_count == t->each && t->m[1].owned_count == PARTS - t->each;
}

static void a_group_shares_partitions(struct rig *rig)
{
	const char *topic = rig_name("share"), *group = rig_name("group");
	rig_topic(rig, topic, PARTS, 0);
	struct sl_broker *b1 = rig_broker(rig, "one", NULL), *b2 = rig_broker(rig, "two", NULL);
	struct two t = {.each = PARTS};
	join(&t.m[0], b1, group, topic, 0);
	CHECK(rig_until(rig, shared, &t, 20000));
	join(&t.m[1], b2, group, topic, 0);
	t.each = PARTS / 2;
	CHECK(rig_until(rig, shared, &t, 20000));
	CHECK_INT(t.m[0].revoked, PARTS / 2); /* cooperative: the others were never taken away */
	for (int p = 0; p < PARTS; p++)
		produce_many(rig, b1, topic, p, p * 10, p * 10 + 10);
	await_records(rig, &t.m[0], PARTS * 5);
	await_records(rig, &t.m[1], PARTS * 5);
	leave(&t.m[1]);
	t.m[1].owned_count = 0;
	memset(t.m[1].owned, 0, sizeof(t.m[1].owned));
	t.each = PARTS;
	CHECK(rig_until(rig, shared, &t, 20000));
	leave(&t.m[0]);
	b1->ops->close(b1, 1000);
	b2->ops->close(b2, 1000);
}

static void an_instance_id_that_returns_has_its_partitions(struct rig *rig)
{
	const char *topic = rig_name("static"), *group = rig_name("group");
	rig_topic(rig, topic, PARTS, 0);
	struct sl_broker *b1 = rig_broker(rig, "one", "id-one"), *b2 = rig_broker(rig, "two", "id-two");
	struct two t = {.each = PARTS / 2};
	join(&t.m[0], b1, group, topic, 0);
	join(&t.m[1], b2, group, topic, 0);
	CHECK(rig_until(rig, shared, &t, 30000));
	bool had[PARTS];
	memcpy(had, t.m[1].owned, sizeof(had));
	if (!rig->real)
		sl_memory_kill(rig->world, "id-two", true);
	leave(&t.m[1]);
	b2->ops->close(b2, 1000);
	struct sl_broker *b3 = rig_broker(rig, "three", "id-two");
	struct member back = {0};
	int revoked = t.m[0].revoked, assigned = t.m[0].assigned;
	join(&back, b3, group, topic, 0);
	await_owned(rig, &back, PARTS / 2);
	CHECK(memcmp(had, back.owned, sizeof(had)) == 0);
	rig_settle(rig, 200);
	CHECK_INT(t.m[0].revoked, revoked);
	CHECK_INT(t.m[0].assigned, assigned);
	/* And while it lives, another of the same name fences it. */
	struct sl_broker *b4 = rig_broker(rig, "four", "id-two");
	if (!rig->real)
		b4 = b3; /* memory: a process is its name */
	struct member usurper = {0};
	join(&usurper, b4, group, topic, 0);
	CHECK(rig_until(rig, failed, &back, 30000));
	CHECK_INT(back.fatal_err, SL_EFENCED);
	CHECK(strstr(back.fatal_text, "instance id") != NULL);
	CHECK_INT(commit(rig, &back, topic, 0, 1, NULL), SL_EFENCED);
	leave(&back);
	leave(&usurper);
	leave(&t.m[0]);
	if (b4 != b3)
		b4->ops->close(b4, 1000);
	b3->ops->close(b3, 1000);
	b1->ops->close(b1, 1000);
}

/* --- handing over --- */

struct trio {
	struct member m[3];
	struct sl_broker *b[3];
	const char *topic, *group;
	int want; /* handing, or owned by each */
};

static bool one_owner(struct trio *t)
{
	for (int p = 0; p < PARTS; p++)
		CHECK(t->m[0].owned[p] + t->m[1].owned[p] + t->m[2].owned[p] <= 1);
	return true;
}

static bool asked(void *arg)
{
	struct trio *t = arg;
	return one_owner(t) && t->m[0].handing == t->want;
}

static bool halved(void *arg)
{
	struct trio *t = arg;
	return one_owner(t) && t->m[0].owned_count == PARTS / 2 && t->m[1].owned_count == PARTS / 2;
}

/* The first has everything, the second joins, the first is asked for half. */
static void ask_for_half(struct rig *rig, struct trio *t, int hand_over_ms, const char *id1, const char *id2)
{
	memset(t, 0, sizeof(*t));
	t->topic = rig_name("hand");
	t->group = rig_name("group");
	rig_topic(rig, t->topic, PARTS, 0);
	t->b[0] = rig_broker(rig, "one", id1);
	t->b[1] = rig_broker(rig, "two", id2);
	t->b[2] = rig_broker(rig, "three", NULL);
	t->m[0].hand_over_ms = hand_over_ms;
	join(&t->m[0], t->b[0], t->group, t->topic, 0);
	await_owned(rig, &t->m[0], PARTS);
	for (int p = 0; p < PARTS; p++)
		produce_many(rig, t->b[0], t->topic, p, 0, 10);
	await_records(rig, &t->m[0], PARTS * 10);
	join(&t->m[1], t->b[1], t->group, t->topic, 10);
	t->want = PARTS / 2;
	CHECK(rig_until(rig, asked, t, 20000));
}

static void hand_all(struct trio *t)
{
	for (int p = 0; p < PARTS; p++)
		if (t->m[0].asked[p])
			t->b[0]->ops->hand_over(t->m[0].con, t->topic, p);
}

static void close_trio(struct trio *t)
{
	for (int i = 0; i < 3; i++)
		if (t->m[i].con)
			leave(&t->m[i]);
	for (int i = 0; i < 3; i++)
		t->b[i]->ops->close(t->b[i], 1000);
}

static void partitions_are_handed_over_when_the_service_has_done(struct rig *rig)
{
	struct trio t;
	ask_for_half(rig, &t, 60000, NULL, NULL);
	/* longer than a session: still a member, whose commits are taken; what is handed over is not read */
	for (int p = 0; p < PARTS; p++)
		produce_many(rig, t.b[0], t.topic, p, 10, 20);
	for (int i = 0; i < 10; i++) {
		rig_settle(rig, 800);
		for (int p = 0; p < PARTS; p++)
			CHECK_INT(commit(rig, &t.m[0], t.topic, p, 10 + i, NULL), 0);
		CHECK_INT(t.m[0].owned_count, PARTS);
		CHECK_INT(t.m[1].owned_count, 0);
	}
	CHECK_INT(t.m[0].revoked, 0);
	CHECK_INT(t.m[0].seen_count, PARTS * 10 + PARTS / 2 * 10); /* what stays goes on meanwhile */
	int kept = -1, given = 0;
	for (int p = 0; p < PARTS; p++)
		kept = t.m[0].asked[p] ? kept : p;
	t.b[0]->ops->hand_over(t.m[0].con, t.topic, kept); /* nobody wants that one */
	while (!t.m[0].asked[given])
		given++;
	t.b[0]->ops->hand_over(t.m[0].con, t.topic, given);
	rig_settle(rig, 500);
	CHECK_INT(t.m[0].owned_count, t.m[0].owned[given] ? PARTS : PARTS - 1);
	hand_all(&t);
	CHECK(rig_until(rig, halved, &t, 20000));
	CHECK_INT(t.m[0].revoked, PARTS / 2);
	CHECK_INT(t.m[0].handing, PARTS / 2);
	for (int p = 0; p < PARTS; p++)
		produce_many(rig, t.b[0], t.topic, p, 20, 30);
	await_records(rig, &t.m[0], PARTS * 10 + PARTS / 2 * 20);
	await_records(rig, &t.m[1], PARTS / 2 * 20);
	rig_settle(rig, 300);
	CHECK_INT(t.m[0].seen_count, PARTS * 10 + PARTS / 2 * 20);
	CHECK_INT(t.m[1].seen_count, PARTS / 2 * 20);
	int64_t next[PARTS] = {0};
	for (int i = 0; i < t.m[0].seen_count; i++)
		CHECK_INT(t.m[0].seen[i].offset, next[t.m[0].seen[i].partition]++);
	close_trio(&t);
}

static void handing_over_has_its_time(struct rig *rig)
{
	struct trio t;
	ask_for_half(rig, &t, 2000, NULL, NULL);
	rig_settle(rig, 1500);
	CHECK_INT(t.m[0].owned_count, PARTS);
	CHECK(rig_until(rig, halved, &t, 5000));
	CHECK_INT(t.m[0].revoked, PARTS / 2);
	hand_all(&t); /* too late: nothing happens */
	rig_settle(rig, 300);
	CHECK(halved(&t));
	close_trio(&t);
}

static bool all_have(void *arg)
{
	struct trio *t = arg;
	int sum = 0;
	for (int i = 0; i < 3; i++) {
		if (t->m[i].owned_count < PARTS / 3)
			return false;
		sum += t->m[i].owned_count;
	}
	return one_owner(t) && sum == PARTS;
}

static void a_third_member_joins_while_one_hands_over(struct rig *rig)
{
	struct trio t;
	ask_for_half(rig, &t, 60000, NULL, NULL);
	join(&t.m[2], t.b[2], t.group, t.topic, 10);
	rig_settle(rig, 4000);
	CHECK_INT(t.m[0].owned_count, PARTS);
	hand_all(&t);
	/* the third may want more of it */
	for (int i = 0; i < 100 && !all_have(&t); i++) {
		rig_settle(rig, 200);
		hand_all(&t);
	}
	CHECK(all_have(&t));
	CHECK_INT(commit(rig, &t.m[0], t.topic, 0, 10, NULL), 0);
	CHECK_INT(commit(rig, &t.m[2], t.topic, 0, 10, NULL), 0);
	close_trio(&t);
}

static bool second_has_all(void *arg)
{
	struct trio *t = arg;
	return t->m[1].owned_count == PARTS;
}

static void closing_while_handing_over_leaves_at_once(struct rig *rig)
{
	struct trio t;
	ask_for_half(rig, &t, 60000, NULL, NULL);
	leave(&t.m[0]);
	CHECK_INT(t.m[0].revoked, 0);
	t.m[0].owned_count = 0;
	CHECK(rig_until(rig, second_has_all, &t, 5000));
	close_trio(&t);
}

static void a_session_that_ends_while_handing_over_revokes(struct rig *rig)
{
	struct trio t;
	ask_for_half(rig, &t, 60000, NULL, NULL);
	sl_memory_expire(rig->world, "one");
	CHECK(rig_until(rig, second_has_all, &t, 1000));
	CHECK_INT(commit(rig, &t.m[0], t.topic, 0, 10, NULL), SL_EFENCED);
	hand_all(&t);
	rig_settle(rig, 100);
	CHECK_INT(t.m[0].revoked, PARTS / 2);
	CHECK_INT(t.m[1].owned_count, PARTS);
	sl_memory_rejoin(rig->world, "one");
	CHECK(rig_until(rig, halved, &t, 1000));
	close_trio(&t);
}

static bool first_lost_all(void *arg)
{
	struct trio *t = arg;
	return t->m[0].revoked == PARTS;
}

static void a_member_fenced_while_handing_over_joins_anew(struct rig *rig)
{
	struct trio t;
	const char *id = rig_name("id-one");
	ask_for_half(rig, &t, 60000, id, rig_name("id-two"));
	struct sl_broker *b = rig_broker(rig, "usurper", id);
	struct member usurper = {0};
	join(&usurper, b, t.group, t.topic, -1);
	CHECK(rig_until(rig, first_lost_all, &t, 20000));
	leave(&usurper);
	b->ops->close(b, 1000);
	CHECK_INT(t.m[0].fatal_err, 0);
	for (int i = 0; i < 100 && !halved(&t); i++) {
		rig_settle(rig, 200);
		hand_all(&t);
	}
	CHECK(halved(&t));
	CHECK_INT(commit(rig, &t.m[0], t.topic, 0, 10, NULL), 0);
	close_trio(&t);
}

/* Commits all that it has, again and again, while others join. */
struct busy {
	struct member *m;
	const char *topic;
	int out, sent, refused;
};

static void busy_answered(void *arg, int err)
{
	struct busy *b = arg;
	b->out--;
	b->refused += err == SL_EFENCED;
}

static bool busy_turn(void *arg)
{
	struct busy *b = arg;
	for (int p = 0; p < PARTS && b->out < 20; p++) {
		if (!b->m->owned[p])
			continue;
		CHECK_INT(b->m->broker->ops->commit(b->m->con, b->topic, p, 0, NULL, busy_answered, b), 0);
		b->out++;
		b->sent++;
	}
	return false;
}

static bool busy_quiet(void *arg)
{
	return ((struct busy *)arg)->out == 0;
}

/* A commit that meets a rebalance must not cost the member what it has (librdkafka's issue 4059). */
static void commits_during_a_rebalance_cost_no_partitions(struct rig *rig)
{
	struct trio t = {.topic = rig_name("busy"), .group = rig_name("group")};
	rig_topic(rig, t.topic, PARTS, 0);
	for (int i = 0; i < 3; i++) {
		t.b[i] = rig_broker(rig, i == 0 ? "one" : i == 1 ? "two" : "three", NULL);
		int had = t.m[0].owned_count;
		join(&t.m[i], t.b[i], t.group, t.topic, 0);
		struct busy busy = {.m = &t.m[0], .topic = t.topic};
		for (int n = 0; n < 60; n++) {
			busy_turn(&busy);
			rig_settle(rig, 50);
			one_owner(&t);
		}
		CHECK(rig_until(rig, busy_quiet, &busy, 10000));
		CHECK_INT(busy.refused, 0);
		CHECK(busy.sent > 0);
		if (i > 0)
			CHECK_INT(t.m[0].revoked, PARTS - t.m[0].owned_count);
		CHECK(i == 0 || t.m[0].owned_count < had);
	}
	CHECK_INT(t.m[0].assigned, PARTS);
	close_trio(&t);
}

static bool one_has_lost(void *arg)
{
	struct member **both = arg;
	return both[0]->revoked || both[1]->owned_count == PARTS;
}

static bool came_back(void *arg)
{
	const struct member *m = arg;
	return m->revoked >= PARTS && m->owned_count == PARTS;
}

/* Its session ended while Kafka was away, or it stood still: librdkafka's consumer is dead, the process is not. */
static void a_member_fenced_once_joins_anew(struct rig *rig)
{
	const char *topic = rig_name("fenced"), *group = rig_name("group");
	rig_topic(rig, topic, PARTS, 0);
	/* a long session: who is fenced learns it late, when the other has left */
	struct sl_kafka_options opt = {.brokers = getenv("SLUICE_KAFKA_BROKERS"),
		.instance_id = "id-one",
		.session_timeout_ms = 40000,
		.log = note_log};
	struct sl_broker *b = sl_broker_kafka_new(&rig->loop, &opt), *other = sl_broker_kafka_new(&rig->loop, &opt);
	struct member m = {0}, usurper = {0};
	join(&m, b, group, topic, 0);
	await_owned(rig, &m, PARTS);
	produce_many(rig, b, topic, 3, 0, 100);
	await_records(rig, &m, 100);
	/* records in hand survive the consumer that they came from */
	m.take_all = false;
	struct sl_record rec;
	void *handle;
	produce_many(rig, b, topic, 3, 100, 200);
	rig_settle(rig, 300);
	CHECK(m.broker->ops->poll(m.con, &rec, &handle));
	join(&usurper, other, group, topic, -1);
	struct member *both[] = {&m, &usurper};
	CHECK(rig_until(rig, one_has_lost, both, 30000));
	m.take_all = true;
	leave(&usurper);
	CHECK(rig_until(rig, came_back, &m, 30000));
	CHECK_INT(m.fatal_err, 0);
	CHECK_INT(strtol(rec.value.ptr, NULL, 10), 100);
	m.broker->ops->release(m.con, handle);
	CHECK_INT(commit(rig, &m, topic, 3, 200, NULL), 0);
	produce_many(rig, b, topic, 3, 200, 300);
	await_records(rig, &m, 100 + 300); /* started from the beginning again */
	CHECK_INT(m.seen[m.seen_count - 1].number, 299);
	leave(&m);
	b->ops->close(b, 1000);
	other->ops->close(other, 1000);
}

static const struct test tests[] = {
	{"a group shares partitions", a_group_shares_partitions, NULL},
	{"an instance id that returns has its partitions", an_instance_id_that_returns_has_its_partitions, NULL},
	{"partitions are handed over when the service has done", partitions_are_handed_over_when_the_service_has_done, NULL},
	{"handing over has its time", handing_over_has_its_time, NULL},
	{"a third member joins while one hands over", a_third_member_joins_while_one_hands_over, NULL},
	{"closing while handing over leaves at once", closing_while_handing_over_leaves_at_once, NULL},
	{"a session that ends while handing over revokes", a_session_that_ends_while_handing_over_revokes, "memory"},
	{"a member fenced while handing over joins anew", a_member_fenced_while_handing_over_joins_anew, "kafka"},
	{"commits during a rebalance cost no partitions", commits_during_a_rebalance_cost_no_partitions, NULL},
	{"a member fenced once joins anew", a_member_fenced_once_joins_anew, "kafka"},
};

int main(int argc, char **argv)
{
	return rig_main(argc, argv, "kafka", "SLUICE_KAFKA_BROKERS", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
