/* A service's side of a consumer and of a producer, for the tests of the broker port. */
#ifndef SL_TESTS_CONTRACT_MEMBER_H
#define SL_TESTS_CONTRACT_MEMBER_H

#include "tests/contract/rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8
#define SEEN_MAX 400000

struct seen {
	int32_t partition;
	int64_t offset;
	int number; /* of the record: its value */
};

struct member {
	struct sl_broker *broker;
	struct sl_consumer *con;
	int64_t start_at; /* SL_OFFSET_... or a number; -1: do not start */
	bool owned[PARTS], asked[PARTS];
	int owned_count, assigned, revoked, handing;
	int hand_over_ms; /* 0: does not want to be asked */
	struct seen *seen;
	int seen_count, want, want_owned;
	int fatal_err, commit_calls, commit_err;
	char fatal_text[600];
	bool take_all; /* poll when readable */
};

static inline void drain(struct member *m)
{
	struct sl_record rec;
	void *handle;
	while (m->con && m->broker->ops->poll(m->con, &rec, &handle)) {
		CHECK(m->seen_count < SEEN_MAX);
		struct seen *s = &m->seen[m->seen_count++];
		s->partition = rec.partition;
		s->offset = rec.offset;
		s->number = rec.value.ptr ? (int)strtol((const char *)rec.value.ptr, NULL, 10) : -1;
		CHECK(rec.partition < PARTS && m->owned[rec.partition] && !m->asked[rec.partition]);
		m->broker->ops->release(m->con, handle);
	}
}

static inline void on_assigned(void *arg, const char *topic, int32_t partition)
{
	struct member *m = arg;
	CHECK(!m->owned[partition]);
	m->owned[partition] = true;
	m->owned_count++;
	m->assigned++;
	if (m->start_at != -1)
		CHECK_INT(m->broker->ops->start(m->con, topic, partition, m->start_at), 0);
}

static inline void on_revoked(void *arg, const char *topic, int32_t partition)
{
	struct member *m = arg;
	(void)topic;
	CHECK(m->owned[partition]);
	m->owned[partition] = m->asked[partition] = false;
	m->owned_count--;
	m->revoked++;
}

static inline void on_handing(void *arg, const char *topic, int32_t partition)
{
	struct member *m = arg;
	(void)topic;
	CHECK(m->owned[partition] && !m->asked[partition]);
	m->asked[partition] = true;
	m->handing++;
}

static inline void on_readable(void *arg)
{
	struct member *m = arg;
	if (m->take_all)
		drain(m);
}

static inline void on_fatal(void *arg, int err, const char *text)
{
	struct member *m = arg;
	m->fatal_err = err;
	snprintf(m->fatal_text, sizeof(m->fatal_text), "%s", text);
}

static inline void join(struct member *m, struct sl_broker *broker, const char *group, const char *topic, int64_t start_at)
{
	m->broker = broker;
	m->start_at = start_at;
	m->take_all = true;
	m->seen = calloc(SEEN_MAX, sizeof(*m->seen));
	struct sl_consumer_options opt = {.group = group,
		.topics = &topic,
		.topic_count = 1,
		.hand_over_ms = m->hand_over_ms,
		.events = {.arg = m,
			.assigned = on_assigned,
			.handing = m->hand_over_ms ? on_handing : NULL,
			.revoked = on_revoked,
			.readable = on_readable,
			.fatal = on_fatal}};
	CHECK_INT(broker->ops->consumer_new(broker, &opt, &m->con), 0);
	CHECK_INT(m->assigned, 0); /* never before the call has returned */
}

static inline void leave(struct member *m)
{
	m->broker->ops->consumer_close(m->con);
	m->con = NULL;
	free(m->seen);
}

static inline bool saw_enough(void *arg)
{
	struct member *m = arg;
	return m->seen_count >= m->want;
}

static inline bool owns_enough(void *arg)
{
	struct member *m = arg;
	return m->owned_count == m->want_owned;
}

static inline bool failed(void *arg)
{
	return ((struct member *)arg)->fatal_err != 0;
}

static inline void await_records(struct rig *rig, struct member *m, int count)
{
	m->want = count;
	if (!rig_until(rig, saw_enough, m, 20000))
		CHECK_INT(m->seen_count, count);
}

static inline void await_owned(struct rig *rig, struct member *m, int count)
{
	m->want_owned = count;
	if (!rig_until(rig, owns_enough, m, 20000))
		CHECK_INT(m->owned_count, count);
}

/* --- producing --- */

struct deliveries {
	int want, count, failed, last_err;
};

static inline void on_delivered(void *arg, int err)
{
	struct deliveries *d = arg;
	d->count++;
	if (err) {
		d->failed++;
		d->last_err = err;
	}
}

static inline bool delivered(void *arg)
{
	struct deliveries *d = arg;
	return d->count >= d->want;
}

static inline int produce(struct sl_broker *broker, const char *topic, int32_t partition, const char *key, int number,
	struct deliveries *d)
{
	char value[16];
	int len = snprintf(value, sizeof(value), "%d ", number);
	struct sl_record rec = {.topic = topic,
		.partition = partition,
		.key = {key, key ? strlen(key) : 0},
		.value = {value, (size_t)len}};
	d->want++;
	return broker->ops->produce(broker, &rec, on_delivered, d);
}

static inline void produce_many(
	struct rig *rig, struct sl_broker *broker, const char *topic, int32_t partition, int from, int to)
{
	struct deliveries d = {0};
	for (int i = from; i < to; i++)
		CHECK_INT(produce(broker, topic, partition, "k", i, &d), 0);
	CHECK_INT(d.count, 0);
	broker->ops->kick(broker);
	CHECK(rig_until(rig, delivered, &d, 20000));
	CHECK_INT(d.count, to - from);
	CHECK_INT(d.failed, 0);
}

static inline void on_commit(void *arg, int err)
{
	struct member *m = arg;
	m->commit_calls++;
	m->commit_err = err;
}

static inline bool committed_once(void *arg)
{
	return ((struct member *)arg)->commit_calls > 0;
}

static inline int commit(struct rig *rig, struct member *m, const char *topic, int32_t p, int64_t offset, const char *metadata)
{
	m->commit_calls = 0;
	CHECK_INT(m->broker->ops->commit(m->con, topic, p, offset, metadata, on_commit, m), 0);
	CHECK_INT(m->commit_calls, 0);
	CHECK(rig_until(rig, committed_once, m, 10000));
	return m->commit_err;
}

static inline void note_log(void *arg, int level, const char *text)
{
	(void)arg;
	if (getenv("SLUICE_VERBOSE"))
		fprintf(stderr, "    [%d] %s\n", level, text);
}

#endif
