/* Group offsets with metadata: commit and look-up. */
#include "common/adapters/kafka/consumer.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

#define COMMITTED_TIMEOUT_MS 5000

static void unlink_commit(struct offset_commit *commit)
{
	if (commit->prev)
		commit->prev->next = commit->next;
	else
		commit->con->commits = commit->next;
	if (commit->next)
		commit->next->prev = commit->prev;
}

/* Told when librdkafka has returned: who is told may close the consumer. */
static void finish(struct offset_commit *commit, int err)
{
	struct sl_consumer *con = commit->con;
	commit->err = err;
	commit->next = NULL;
	*con->finished_last = commit;
	con->finished_last = &commit->next;
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
	(void)rk;
	struct offset_commit *commit = opaque;
	unlink_commit(commit);
	if (!err && offsets && offsets->cnt > 0)
		err = offsets->elems[0].err;
	if (!err)
		sl_kafka_client_up(commit->con->kafka);
	int code = sl_kafka_client_err(err);
	/* Of a session that ends while a revocation waits, librdkafka says nothing. */
	if (code == SL_EFENCED)
		commit->con->wanted_until = 0;
	finish(commit, code);
}

/* Takes parts. */
static int hand_in(struct offset_commit *commit, rd_kafka_topic_partition_list_t *parts)
{
	struct sl_consumer *con = commit->con;
	rd_kafka_resp_err_t err = rd_kafka_commit_queue(con->rk, parts, con->main, on_commit, commit);
	rd_kafka_topic_partition_list_destroy(parts);
	if (err)
		return sl_kafka_client_err(err);
	commit->prev = NULL;
	commit->next = con->commits;
	if (commit->next)
		commit->next->prev = commit;
	con->commits = commit;
	return 0;
}

static struct offset_commit *take_waiting(struct sl_consumer *con)
{
	struct offset_commit *commit = con->waiting;
	con->waiting = commit->next;
	if (!con->waiting)
		con->waiting_last = &con->waiting;
	return commit;
}

void sl_kafka_consumer_commit_waiting(struct sl_consumer *con)
{
	while (con->waiting) {
		struct offset_commit *commit = take_waiting(con);
		int err = hand_in(commit, commit->parts);
		commit->parts = NULL;
		if (err)
			finish(commit, err);
	}
}

void sl_kafka_consumer_refuse_commits(struct sl_consumer *con)
{
	while (con->commits) {
		struct offset_commit *commit = con->commits;
		con->commits = commit->next;
		finish(commit, SL_EFENCED);
	}
	while (con->waiting) {
		struct offset_commit *commit = take_waiting(con);
		rd_kafka_topic_partition_list_destroy(commit->parts);
		commit->parts = NULL;
		finish(commit, SL_EFENCED);
	}
}

int sl_kafka_consumer_commit(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset,
	const char *metadata, void (*done)(void *arg, int err), void *arg)
{
	if (!con->group || offset < 0)
		return SL_EINVAL;
	struct offset_commit *commit = sl_kafka_client_alloc(sizeof(*commit));
	commit->con = con;
	commit->done = done;
	commit->arg = arg;
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_t *part = rd_kafka_topic_partition_list_add(parts, topic, partition);
	part->offset = offset;
	if (metadata) {
		part->metadata = sl_kafka_client_str(metadata);
		part->metadata_size = strlen(metadata);
	}
	if (con->waiting || sl_kafka_consumer_commits_wait(con)) {
		commit->parts = parts;
		*con->waiting_last = commit;
		con->waiting_last = &commit->next;
		return 0;
	}
	int err = hand_in(commit, parts);
	if (err)
		free(commit);
	return err;
}

int sl_kafka_consumer_committed(
	struct sl_consumer *con, const char *topic, int32_t partition, int64_t *ret_offset, char **ret_metadata)
{
	if (!con->group)
		return SL_EINVAL;
	/* The answer would come behind that to JoinGroup, for which others that hand over may take their time. */
	if (con->hand_over_ms && sl_kafka_consumer_rejoins(con))
		return SL_EAGAIN;
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(parts, topic, partition);
	rd_kafka_resp_err_t err = rd_kafka_committed(con->rk, parts, COMMITTED_TIMEOUT_MS);
	const rd_kafka_topic_partition_t *part = &parts->elems[0];
	if (!err)
		err = part->err;
	if (!err) {
		sl_kafka_client_up(con->kafka);
		*ret_offset = part->offset >= 0 ? part->offset : -1;
		if (ret_metadata) {
			*ret_metadata = NULL;
			if (part->metadata && part->metadata_size) {
				*ret_metadata = sl_kafka_client_alloc(part->metadata_size + 1);
				memcpy(*ret_metadata, part->metadata, part->metadata_size);
			}
		}
	}
	rd_kafka_topic_partition_list_destroy(parts);
	return sl_kafka_client_err(err);
}
