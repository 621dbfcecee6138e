/* Reading: where a partition starts, the next record, pausing. */
#include "common/adapters/kafka/consumer.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEK_MS 100
#define RUN_MAX 512 /* records of one partition before the next one's turn */

/* --- starting --- */

/* False: librdkafka has not taken the partition up yet. */
static bool seek(struct sl_consumer *con, struct source *src)
{
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(parts, src->topic, src->partition)->offset = src->start_at;
	rd_kafka_error_t *error = rd_kafka_seek_partitions(con->rk, parts, SEEK_MS);
	rd_kafka_resp_err_t err = error ? rd_kafka_error_code(error) : parts->elems[0].err;
	if (error)
		rd_kafka_error_destroy(error);
	if (!err) {
		src->starting = false;
		src->started = src->ready = true;
		rd_kafka_resume_partitions(con->rk, parts);
	}
	rd_kafka_topic_partition_list_destroy(parts);
	return !err;
}

void sl_kafka_consumer_seek_again(struct sl_consumer *con)
{
	for (int i = 0; i < con->source_count; i++)
		if (con->sources[i]->starting)
			seek(con, con->sources[i]);
}

static int no_offset(struct sl_consumer *con, const struct source *src)
{
	char text[600];
	snprintf(text, sizeof(text),
		"group %s has no offset for %s/%d. Choose: set it by hand to the beginning or to the end of the log",
		con->group, src->topic, src->partition);
	sl_kafka_consumer_news(con, NEWS_FATAL, src->partition, SL_ECONFIG, text);
	return 0;
}

int sl_kafka_consumer_start(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset)
{
	struct source *src = sl_kafka_consumer_source(con, topic, partition);
	if (!src)
		return SL_EFENCED;
	int64_t at = offset, high;
	int err = 0;
	if (offset == SL_OFFSET_COMMITTED) {
		err = sl_kafka_consumer_committed(con, topic, partition, &at, NULL);
		if (!err && at < 0)
			return no_offset(con, src);
	} else if (offset == SL_OFFSET_BEGINNING) {
		err = con->kafka->base.ops->watermarks(&con->kafka->base, topic, partition, &at, &high);
	}
	if (err)
		return err;
	if (at < 0)
		return SL_EINVAL;
	sl_kafka_aside_leave(src);
	src->start_at = src->next = at;
	src->starting = true;
	src->started = src->paused = false;
	seek(con, src); /* else the next turn or tick tries again */
	return 0;
}

void sl_kafka_consumer_pause(struct sl_consumer *con, const char *topic, int32_t partition, bool paused)
{
	struct source *src = sl_kafka_consumer_source(con, topic, partition);
	if (!src)
		return;
	src->paused = paused;
	src->ready = true;
	if (!paused) { /* what waits in the queue makes no event of its own */
		static const uint64_t one = 1;
		ssize_t n = write(sl_wake_fd(con->wake), &one, sizeof(one));
		(void)n;
	}
}

/* --- records --- */

static struct handle *handle_take(struct sl_consumer *con, rd_kafka_message_t *msg)
{
	struct handle *handle = con->spare;
	if (handle)
		con->spare = handle->next;
	else
		handle = sl_kafka_client_alloc(sizeof(*handle));
	handle->msg = msg;
	handle->prev = NULL;
	handle->next = con->used;
	if (handle->next)
		handle->next->prev = handle;
	con->used = handle;
	return handle;
}

void sl_kafka_consumer_release(struct sl_consumer *con, void *ptr)
{
	struct handle *handle = ptr;
	if (!handle)
		return;
	if (handle->prev)
		handle->prev->next = handle->next;
	else
		con->used = handle->next;
	if (handle->next)
		handle->next->prev = handle->prev;
	rd_kafka_message_destroy(handle->msg);
	handle->msg = NULL;
	if (handle->of)
		handle->of->handles--;
	handle->of = NULL;
	handle->next = con->spare;
	con->spare = handle;
}

void sl_kafka_consumer_handles_free(struct sl_consumer *con)
{
	while (con->used)
		sl_kafka_consumer_release(con, con->used);
	while (con->spare) {
		struct handle *handle = con->spare;
		con->spare = handle->next;
		free(handle->headers);
		free(handle);
	}
}

static void fill_headers(struct handle *handle, struct sl_record *ret)
{
	rd_kafka_headers_t *headers;
	if (rd_kafka_message_headers(handle->msg, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	int count = (int)rd_kafka_header_cnt(headers);
	if (count > handle->header_cap) {
		handle->headers = realloc(handle->headers, (size_t)count * sizeof(struct sl_header));
		sl_assert(handle->headers);
		handle->header_cap = count;
	}
	for (int i = 0; i < count; i++) {
		struct sl_header *h = &handle->headers[i];
		rd_kafka_header_get_all(headers, (size_t)i, &h->name, &h->value.ptr, &h->value.len);
	}
	ret->headers = handle->headers;
	ret->header_count = count;
}

static int64_t time_of(struct source *src, const struct sl_consumer *con, const rd_kafka_message_t *msg)
{
	rd_kafka_timestamp_type_t type;
	int64_t time_ms = rd_kafka_message_timestamp(msg, &type);
	if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ||
		(con->kafka->stamp_at_intake && type != RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)) {
		uv_timeval64_t now;
		uv_gettimeofday(&now);
		time_ms = now.tv_sec * 1000 + now.tv_usec / 1000;
		if (time_ms < src->time_ms)
			time_ms = src->time_ms;
		src->time_ms = time_ms;
	}
	return time_ms;
}

static void fill(
	struct sl_consumer *con, struct source *src, rd_kafka_message_t *msg, struct sl_record *ret, void **ret_handle)
{
	struct handle *handle = handle_take(con, msg);
	if (src->aside) {
		handle->of = con->aside;
		handle->of->handles++;
	}
	src->next = msg->offset + 1;
	memset(ret, 0, sizeof(*ret));
	ret->topic = rd_kafka_topic_name(msg->rkt);
	ret->partition = msg->partition;
	ret->offset = msg->offset;
	ret->time_ms = time_of(src, con, msg);
	ret->key = (struct sl_bytes){msg->key, msg->key_len};
	ret->value = (struct sl_bytes){msg->payload, msg->len};
	fill_headers(handle, ret);
	*ret_handle = handle;
}

/* The next record of one partition; errors on the way are told. */
static rd_kafka_message_t *next_of(struct sl_consumer *con, struct source *src)
{
	rd_kafka_message_t *msg;
	while ((msg = rd_kafka_consume_queue(src->aside ? src->aside : src->queue, 0)) != NULL) {
		if (!msg->err && msg->offset >= src->next)
			return msg;
		if (msg->err)
			sl_kafka_consumer_error(con, msg);
		rd_kafka_message_destroy(msg); /* or fetched before the seek, or already aside */
	}
	src->ready = false;
	return NULL;
}

bool sl_kafka_consumer_poll(struct sl_consumer *con, struct sl_record *ret, void **ret_handle)
{
	for (int i = 0; i < con->source_count; i++) {
		if (con->turn >= con->source_count)
			con->turn = 0;
		struct source *src = con->sources[con->turn];
		rd_kafka_message_t *msg = NULL;
		if (src->ready && src->started && !src->paused && !src->handing && con->run < RUN_MAX)
			msg = next_of(con, src);
		if (msg) {
			con->run++;
			fill(con, src, msg, ret, ret_handle);
			return true;
		}
		/* The last look of a round may come back to the one that used up its run. */
		if (con->run >= RUN_MAX)
			i = -1;
		con->run = 0;
		con->turn++;
	}
	return false;
}
