/* Reading aside: while a revocation waits for its answer, librdkafka fetches nothing at all for that consumer, for as long as
 * handing over takes. What stays with us is read through a second one then, which belongs to no group. */
#include "common/adapters/kafka/consumer.h"
#include "common/base/log.h"
#include <stdlib.h>

#define ASIDE_AFTER_MS 100 /* most have handed over by then */

static const uint64_t one = 1;

/* Not started yet, or on its way somewhere: its turn comes with the answer. */
static bool stays(const struct source *src)
{
	return src->started && !src->handing;
}

static bool open_aside(struct sl_consumer *con)
{
	char text[512];
	struct sl_diags diags;
	sl_diags_init(&diags);
	rd_kafka_conf_t *conf = sl_kafka_consumer_conf(con, NULL, &diags);
	rd_kafka_t *rk = conf ? rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text)) : NULL;
	if (conf && !rk)
		rd_kafka_conf_destroy(conf);
	sl_diags_release(&diags);
	if (!rk)
		return false;
	con->aside = sl_kafka_client_alloc(sizeof(*con->aside));
	con->aside->rk = rk;
	rd_kafka_poll_set_consumer(rk);
	rd_kafka_set_log_queue(rk, NULL);
	con->aside_main = rd_kafka_queue_get_consumer(rk);
	rd_kafka_queue_io_event_enable(con->aside_main, sl_wake_fd(con->wake), &one, sizeof(one));
	return true;
}

void sl_kafka_aside_begin(struct sl_consumer *con)
{
	uint64_t asked_at = con->wanted_until - (uint64_t)con->hand_over_ms;
	bool any = false;
	for (int i = 0; i < con->source_count; i++)
		any = any || stays(con->sources[i]);
	if (!any || con->aside || uv_now(con->kafka->loop) < asked_at + ASIDE_AFTER_MS || !open_aside(con))
		return;
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(con->source_count);
	for (int i = 0; i < con->source_count; i++) {
		struct source *src = con->sources[i];
		if (!stays(src))
			continue;
		rd_kafka_topic_partition_list_add(parts, src->topic, src->partition)->offset = src->next;
		src->aside = rd_kafka_queue_get_partition(con->aside->rk, src->topic, src->partition);
		sl_assert(src->aside);
		rd_kafka_queue_forward(src->aside, NULL);
		rd_kafka_queue_io_event_enable(src->aside, sl_wake_fd(con->wake), &one, sizeof(one));
	}
	if (rd_kafka_assign(con->aside->rk, parts))
		sl_kafka_client_log(con->kafka, 4, "reading aside: %s", rd_kafka_err2str(rd_kafka_last_error()));
	rd_kafka_topic_partition_list_destroy(parts);
}

void sl_kafka_aside_leave(struct source *src)
{
	if (!src->aside)
		return;
	rd_kafka_queue_io_event_enable(src->aside, -1, NULL, 0);
	rd_kafka_queue_destroy(src->aside);
	src->aside = NULL;
}

void sl_kafka_aside_end(struct sl_consumer *con)
{
	if (!con->aside)
		return;
	for (int i = 0; i < con->source_count; i++) {
		struct source *src = con->sources[i];
		if (!src->aside)
			continue;
		sl_kafka_aside_leave(src);
		src->start_at = src->next;
		src->starting = true;
		src->started = false;
	}
	rd_kafka_queue_io_event_enable(con->aside_main, -1, NULL, 0);
	rd_kafka_queue_destroy(con->aside_main);
	con->aside_main = NULL;
	con->aside->next = con->retired;
	con->retired = con->aside;
	con->aside = NULL;
}

void sl_kafka_aside_serve(struct sl_consumer *con)
{
	rd_kafka_message_t *msg;
	while (con->aside && (msg = rd_kafka_consumer_poll(con->aside->rk, 0)) != NULL) {
		if (msg->err)
			sl_kafka_consumer_error(con, msg);
		rd_kafka_message_destroy(msg);
	}
}
