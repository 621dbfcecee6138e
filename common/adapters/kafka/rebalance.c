/* Partitions come and go: the group's rebalances, handing partitions over, and when offsets may not be committed.
 *
 * A cooperative rebalance has two rounds. In the first, whoever has too much is asked to give (REVOKE), takes what is left
 * (ASSIGN) and joins again; in the second others get it. Between REVOKE and our answer the group is stable: heartbeats and
 * commits go on, so that answer may wait until the service has handed over. librdkafka wants all of it at once, fetches
 * nothing meanwhile (aside.c), and does not tell of a session that ends meanwhile: then the commits do, or the time is up. */
#include "common/adapters/kafka/consumer.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REJOIN_MS 3000 /* librdkafka asks to be let in again within, after a revocation */
#define BEAT_MS 50	/* and within, after the answer to a heartbeat that told it of a rebalance */
#define API_JOIN_GROUP 11
#define API_HEARTBEAT 12
#define API_SYNC_GROUP 14

static const uint64_t one = 1;

/* --- joining again --- */

/* From JoinGroup to SyncGroup the group gets a new generation. A commit of the old one that the group's coordinator reads behind
 * JoinGroup is refused, and librdkafka (before 2.10, its issue 4059) then believes that it has lost all its partitions. So
 * commits wait that long. librdkafka does not tell when it joins again; its requests do, on a thread of its own. They tell too late for
 * a commit that is just being handed in: as it is the answer to a heartbeat that makes it join, commits wait a moment after each. */
struct joining {
	_Atomic bool now;
	_Atomic uint64_t beat_ns; /* when the last heartbeat was answered */
};

static rd_kafka_resp_err_t on_sent(rd_kafka_t *rk, int sock, const char *broker, int32_t id, int16_t key, int16_t version,
	int32_t corr, size_t size, void *arg)
{
	(void)rk, (void)sock, (void)broker, (void)id, (void)version, (void)corr, (void)size;
	if (key == API_JOIN_GROUP)
		((struct joining *)arg)->now = true;
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_answered(rd_kafka_t *rk, int sock, const char *broker, int32_t id, int16_t key, int16_t version,
	int32_t corr, size_t size, int64_t rtt, rd_kafka_resp_err_t err, void *arg)
{
	(void)rk, (void)sock, (void)broker, (void)id, (void)version, (void)corr, (void)size, (void)rtt;
	struct joining *joining = arg;
	if (key == API_SYNC_GROUP && !err)
		joining->now = false;
	if (key == API_HEARTBEAT)
		joining->beat_ns = uv_hrtime();
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *arg, char *text, size_t size)
{
	(void)conf, (void)text, (void)size;
	rd_kafka_resp_err_t err = rd_kafka_interceptor_add_on_request_sent(rk, "sluice", on_sent, arg);
	return err ? err : rd_kafka_interceptor_add_on_response_received(rk, "sluice", on_answered, arg);
}

struct joining *sl_kafka_joining_new(rd_kafka_conf_t *conf)
{
	struct joining *joining = sl_kafka_client_alloc(sizeof(*joining));
	rd_kafka_conf_interceptor_add_on_new(conf, "sluice", on_new, joining);
	return joining;
}

bool sl_kafka_consumer_rejoins(const struct sl_consumer *con)
{
	return con->joining->now || (con->rejoin_until && uv_now(con->kafka->loop) < con->rejoin_until);
}

bool sl_kafka_consumer_commits_wait(const struct sl_consumer *con)
{
	uint64_t beat_ns = con->joining->beat_ns; /* before the clock: it may come this moment */
	uint64_t past_ns = uv_hrtime() - beat_ns;
	if (past_ns < BEAT_MS * UINT64_C(1000000)) {
		sl_kafka_client_tick_in(con->kafka, BEAT_MS - past_ns / 1000000);
		return true;
	}
	return sl_kafka_consumer_rejoins(con);
}

/* --- sources --- */

static void source_add(struct sl_consumer *con, const char *topic, int32_t partition)
{
	struct source *src = sl_kafka_consumer_source(con, topic, partition);
	if (src)
		return;
	src = sl_kafka_client_alloc(sizeof(*src));
	src->topic = sl_kafka_client_str(topic);
	src->partition = partition;
	/* Before the assignment: nothing of this partition may reach the main queue. */
	src->queue = rd_kafka_queue_get_partition(con->rk, topic, partition);
	sl_assert(src->queue);
	rd_kafka_queue_forward(src->queue, NULL);
	rd_kafka_queue_io_event_enable(src->queue, sl_wake_fd(con->wake), &one, sizeof(one));
	con->sources = realloc(con->sources, (size_t)(con->source_count + 1) * sizeof(struct source *));
	sl_assert(con->sources);
	con->sources[con->source_count++] = src;
}

static void source_free(struct source *src)
{
	sl_kafka_aside_leave(src);
	rd_kafka_queue_io_event_enable(src->queue, -1, NULL, 0);
	rd_kafka_queue_destroy(src->queue);
	free(src->topic);
	free(src);
}

void sl_kafka_consumer_drop_sources(struct sl_consumer *con)
{
	for (int i = 0; i < con->source_count; i++)
		source_free(con->sources[i]);
	con->source_count = 0;
}

static void source_remove(struct sl_consumer *con, const char *topic, int32_t partition)
{
	for (int i = 0; i < con->source_count; i++) {
		struct source *src = con->sources[i];
		if (src->partition != partition || strcmp(src->topic, topic) != 0)
			continue;
		source_free(src);
		con->sources[i] = con->sources[--con->source_count];
		return;
	}
}

static void log_error(const struct kafka *kafka, const char *what, rd_kafka_error_t *error)
{
	if (!error)
		return;
	sl_kafka_client_log(kafka, 4, "%s: %s", what, rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
}

/* Nobody is told of partitions that were added to a topic whose number is fixed. */
static bool unused(const struct sl_consumer *con, const char *name, int32_t partition)
{
	const struct ktopic *topic = sl_map_get(&con->kafka->topics, name);
	return topic && topic->fixed > 0 && partition >= topic->fixed;
}

/* Every partition gets an explicit offset, so that librdkafka asks nobody for one, and is paused until start(). */
static void take_partitions(struct sl_consumer *con, rd_kafka_topic_partition_list_t *parts, bool incremental)
{
	for (int i = 0; i < parts->cnt; i++) {
		parts->elems[i].offset = 0;
		if (unused(con, parts->elems[i].topic, parts->elems[i].partition))
			continue;
		source_add(con, parts->elems[i].topic, parts->elems[i].partition);
	}
	rd_kafka_pause_partitions(con->rk, parts);
	if (incremental)
		log_error(con->kafka, "taking partitions", rd_kafka_incremental_assign(con->rk, parts));
	else if (rd_kafka_assign(con->rk, parts))
		sl_kafka_client_log(con->kafka, 4, "taking partitions: %s", rd_kafka_err2str(rd_kafka_last_error()));
	rd_kafka_pause_partitions(con->rk, parts);
	for (int i = 0; i < parts->cnt; i++)
		if (!unused(con, parts->elems[i].topic, parts->elems[i].partition))
			sl_kafka_consumer_news(con, NEWS_ASSIGNED, parts->elems[i].partition, 0, parts->elems[i].topic);
}

/* --- rebalances --- */

static void give(struct sl_consumer *con, rd_kafka_topic_partition_list_t *parts)
{
	for (int i = 0; i < parts->cnt; i++) {
		if (!sl_kafka_consumer_source(con, parts->elems[i].topic, parts->elems[i].partition))
			continue;
		source_remove(con, parts->elems[i].topic, parts->elems[i].partition);
		sl_kafka_consumer_news(con, NEWS_REVOKED, parts->elems[i].partition, 0, parts->elems[i].topic);
	}
}

/* The service is asked to hand over what of it is ours; false: it has nothing to hand over, or no time to. */
static bool ask(struct sl_consumer *con, const rd_kafka_topic_partition_list_t *parts)
{
	if (!con->events.handing || con->hand_over_ms <= 0 || con->remake || con->failed || rd_kafka_assignment_lost(con->rk))
		return false;
	int asked = 0;
	for (int i = 0; i < parts->cnt; i++) {
		struct source *src = sl_kafka_consumer_source(con, parts->elems[i].topic, parts->elems[i].partition);
		if (!src)
			continue;
		src->handing = true;
		asked++;
		sl_kafka_consumer_news(con, NEWS_HANDING, src->partition, 0, src->topic);
	}
	if (!asked)
		return false;
	con->wanted = rd_kafka_topic_partition_list_copy(parts);
	con->wanted_until = uv_now(con->kafka->loop) + (uint64_t)con->hand_over_ms;
	return true;
}

void sl_kafka_consumer_hand_over(struct sl_consumer *con, const char *topic, int32_t partition)
{
	struct source *src = sl_kafka_consumer_source(con, topic, partition);
	if (!src || !src->handing)
		return;
	src->handed = true;
	ssize_t n = write(sl_wake_fd(con->wake), &one, sizeof(one));
	(void)n; /* full means that it wakes anyway */
}

static bool all_handed(const struct sl_consumer *con)
{
	for (int i = 0; i < con->source_count; i++)
		if (con->sources[i]->handing && !con->sources[i]->handed)
			return false;
	return true;
}

void sl_kafka_consumer_serve_wanted(struct sl_consumer *con)
{
	if (!con->wanted)
		return;
	if (!all_handed(con) && uv_now(con->kafka->loop) < con->wanted_until) {
		sl_kafka_aside_begin(con);
		return;
	}
	rd_kafka_topic_partition_list_t *parts = con->wanted;
	con->wanted = NULL;
	con->rejoins = true;
	give(con, parts);
	sl_kafka_aside_end(con);
	sl_kafka_consumer_commit_waiting(con);
	log_error(con->kafka, "handing partitions over", rd_kafka_incremental_unassign(con->rk, parts));
	rd_kafka_topic_partition_list_destroy(parts);
}

void sl_kafka_consumer_forget_wanted(struct sl_consumer *con, bool answer)
{
	if (!con->wanted)
		return;
	if (answer)
		log_error(con->kafka, "leaving", rd_kafka_incremental_unassign(con->rk, con->wanted));
	rd_kafka_topic_partition_list_destroy(con->wanted);
	con->wanted = NULL;
}

/* False: the answer waits. */
static bool give_back(struct sl_consumer *con, rd_kafka_topic_partition_list_t *parts, bool cooperative)
{
	if (con->wanted) { /* the session ended meanwhile, and librdkafka tells for once */
		give(con, con->wanted);
		sl_kafka_aside_end(con);
		sl_kafka_consumer_forget_wanted(con, true);
	} else if (cooperative && ask(con, parts)) {
		return false;
	}
	con->rejoins = cooperative && !rd_kafka_assignment_lost(con->rk);
	if (!con->rejoins)
		con->rejoin_until = uv_now(con->kafka->loop) + REJOIN_MS;
	give(con, parts);
	return true;
}

static void take(struct sl_consumer *con, rd_kafka_topic_partition_list_t *parts, bool cooperative)
{
	uint64_t now = uv_now(con->kafka->loop);
	sl_kafka_client_up(con->kafka);
	if (!con->joined) {
		con->joined_at = now;
		/* Who comes back under its fixed name has what it had, without a rebalance. If its predecessor ended between the two
		 * rounds of one, what that was to give belongs to nobody: so there is another one. */
		con->rejoins = cooperative && con->hand_over_ms && con->kafka->instance_id &&
			       !sl_kafka_consumer_join(con);
	}
	con->joined = true;
	con->given = con->given || parts->cnt;
	if (con->rejoins)
		con->rejoin_until = now + REJOIN_MS;
	con->rejoins = false;
	take_partitions(con, parts, cooperative);
}

void sl_kafka_consumer_on_rebalance(
	rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts, void *opaque)
{
	struct kafka *kafka = opaque;
	struct sl_consumer *con = kafka->consumers;
	while (con && con->rk != rk)
		con = sl_kafka_consumer_next(con); /* none: it is being closed */
	bool cooperative = strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE") == 0;
	if (con) {
		con->rejoin_until = 0;
		sl_kafka_consumer_commit_waiting(con);
	}
	if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && con)
		take(con, parts, cooperative);
	else if (con && !give_back(con, parts, cooperative))
		return;
	else if (cooperative)
		log_error(kafka, "giving partitions back", rd_kafka_incremental_unassign(rk, parts));
	else
		rd_kafka_assign(rk, NULL);
}

/* A reader without group: every partition of its topics, once their number is known. */
void sl_kafka_consumer_assign_all(struct sl_consumer *con)
{
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(16);
	for (int i = 0; i < con->topic_count; i++) {
		int32_t count = 0;
		int err = con->kafka->base.ops->partitions(&con->kafka->base, con->topics[i], &count);
		if (err) {
			rd_kafka_topic_partition_list_destroy(parts);
			return; /* the next tick asks again */
		}
		for (int32_t p = 0; p < count; p++)
			rd_kafka_topic_partition_list_add(parts, con->topics[i], p);
	}
	con->assigning = false;
	take_partitions(con, parts, false);
	rd_kafka_topic_partition_list_destroy(parts);
}
