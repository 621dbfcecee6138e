/* The broker object on librdkafka: settings, logging, what the cluster's errors mean, the port's function table. */
#include "common/adapters/kafka/client.h"
#include "common/adapters/kafka/consumer.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

#define TICK_MS 200
#define METADATA_TIMEOUT_MS 500
#define PROBE_EVERY_MS 1000
#define PROBE_TIMEOUT_MS 50
#define WATERMARK_TIMEOUT_MS 5000

void *sl_kafka_client_alloc(size_t size)
{
	void *ptr = calloc(1, size);
	sl_assert(ptr);
	return ptr;
}

char *sl_kafka_client_str(const char *text)
{
	if (!text)
		return NULL;
	char *copy = strdup(text);
	sl_assert(copy);
	return copy;
}

void sl_kafka_client_log(const struct kafka *kafka, int level, const char *fmt, ...)
{
	if (!kafka->log)
		return;
	struct sl_buf text;
	va_list ap;
	sl_buf_init(&text);
	va_start(ap, fmt);
	sl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	kafka->log(kafka->log_arg, level, text.data);
	sl_buf_release(&text);
}

int sl_kafka_client_err(rd_kafka_resp_err_t err)
{
	switch (err) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		return 0;
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
		return SL_ETOOBIG;
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
		return SL_ENOTFOUND;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_INVALID_RECORD:
	case RD_KAFKA_RESP_ERR_INVALID_MSG:
	case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
	case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
		return SL_EREFUSED;
	case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
	case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
	case RD_KAFKA_RESP_ERR__FENCED:
	case RD_KAFKA_RESP_ERR__FATAL: /* a consumer's only fatal error is that another has its instance id */
	case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
		return SL_EFENCED;
	case RD_KAFKA_RESP_ERR__TIMED_OUT:
	case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
	case RD_KAFKA_RESP_ERR__TRANSPORT:
	case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
	case RD_KAFKA_RESP_ERR__RESOLVE:
		return SL_EUNREACHABLE;
	default:
		return SL_EAGAIN;
	}
}

/* --- settings --- */

static const char *setting_for(const char *setting, const char *side)
{
	size_t len = strlen(side);
	if (strncmp(setting, side, len) == 0 && setting[len] == '.')
		return setting + len + 1;
	if (strncmp(setting, "producer.", 9) == 0 || strncmp(setting, "consumer.", 9) == 0)
		return NULL;
	return setting;
}

void sl_kafka_client_default(
	const struct kafka *kafka, const char *side, rd_kafka_conf_t *conf, const char *name, const char *value)
{
	for (int i = 0; i < kafka->setting_count; i += 2) {
		const char *set = setting_for(kafka->settings[i], side);
		if (set && strcmp(set, name) == 0)
			return;
	}
	/* What this librdkafka does not know yet keeps its old behaviour. */
	(void)!rd_kafka_conf_set(conf, name, value, NULL, 0);
}

bool sl_kafka_client_force(rd_kafka_conf_t *conf, const char *name, const char *value, struct sl_diags *diags)
{
	char text[512];
	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return true;
	sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "kafka.%s: %s", name, text);
	return false;
}

static void trouble(struct kafka *kafka, rd_kafka_resp_err_t err, const char *reason)
{
	sl_buf_clear(&kafka->trouble);
	sl_buf_printf(&kafka->trouble, "cannot reach Kafka at %s: %s", kafka->brokers,
		reason ? reason : rd_kafka_err2str(err));
	if (!kafka->down)
		sl_kafka_client_log(kafka, 4, "%s; trying again until it answers", kafka->trouble.data);
	kafka->down = true;
}

void sl_kafka_client_up(struct kafka *kafka)
{
	if (!kafka->down)
		return;
	kafka->down = false;
	sl_kafka_client_log(kafka, 6, "Kafka at %s answers", kafka->brokers);
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
	struct kafka *kafka = opaque;
	rd_kafka_resp_err_t err = (rd_kafka_resp_err_t)code;
	if (kafka->closing)
		return;
	if (err == RD_KAFKA_RESP_ERR__FATAL) {
		if (rk == kafka->producer) {
			char text[256];
			rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(rk, text, sizeof(text));
			if (fatal != RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE) /* the refused record tells */
				sl_kafka_client_log(kafka, 4, "the producer must be made anew: %s", text);
			kafka->broken = true;
		}
		return; /* a consumer's arrives as its message */
	}
	if (err == RD_KAFKA_RESP_ERR__TRANSPORT || err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
		err == RD_KAFKA_RESP_ERR__RESOLVE || err == RD_KAFKA_RESP_ERR__TIMED_OUT) {
		if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || err == RD_KAFKA_RESP_ERR__RESOLVE)
			trouble(kafka, err, reason);
		return; /* one connection of several: librdkafka connects again */
	}
	sl_kafka_client_log(kafka, 4, "Kafka: %s", reason ? reason : rd_kafka_err2str(err));
}

static void on_log(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
	struct kafka *kafka = rd_kafka_opaque(rk);
	/* Trouble is told once by on_error and by whoever goes on from it; librdkafka would repeat it for each
	 * connection. */
	if (kafka->closing || strcmp(fac, "FAIL") == 0 || strcmp(fac, "ERROR") == 0 || strcmp(fac, "FATAL") == 0 ||
		(strcmp(fac, "CONFWARN") == 0 && strstr(text, "enable.gapless.guarantee")))
		return;
	sl_kafka_client_log(kafka, level, "librdkafka: %s: %s", fac, text);
}

static bool apply_settings(const struct kafka *kafka, const char *side, rd_kafka_conf_t *conf, struct sl_diags *diags)
{
	for (int i = 0; i < kafka->setting_count; i += 2) {
		const char *name = setting_for(kafka->settings[i], side);
		if (name && !sl_kafka_client_force(conf, name, kafka->settings[i + 1], diags))
			return false;
	}
	return true;
}

rd_kafka_conf_t *sl_kafka_client_conf(struct kafka *kafka, const char *side, struct sl_diags *diags)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set_opaque(conf, kafka);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, on_log);
	sl_kafka_client_default(kafka, side, conf, "reconnect.backoff.max.ms", "2000");
	sl_kafka_client_default(kafka, side, conf, "socket.keepalive.enable", "true");
	sl_kafka_client_default(kafka, side, conf, "log.connection.close", "false");
	if (!apply_settings(kafka, side, conf, diags) ||
		!sl_kafka_client_force(conf, "bootstrap.servers", kafka->brokers, diags) ||
		!sl_kafka_client_force(conf, "client.id", kafka->client_id, diags) ||
		!sl_kafka_client_force(conf, "log.queue", "true", diags)) {
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	return conf;
}

struct ktopic *sl_kafka_client_topic(struct kafka *kafka, const char *name)
{
	struct ktopic *topic = sl_map_get(&kafka->topics, name);
	if (!topic) {
		topic = sl_kafka_client_alloc(sizeof(*topic));
		topic->name = sl_kafka_client_str(name);
		sl_map_set(&kafka->topics, name, topic);
	}
	if (!topic->rkt && kafka->producer)
		topic->rkt = rd_kafka_topic_new(kafka->producer, name, NULL);
	return topic;
}

/* --- questions to the cluster --- */

static int client_partitions(struct sl_broker *base, const char *name, int32_t *ret_count)
{
	struct kafka *kafka = (struct kafka *)base;
	struct ktopic *topic = sl_kafka_client_topic(kafka, name);
	if (topic->fixed > 0 || topic->partitions > 0) {
		*ret_count = topic->fixed > 0 ? topic->fixed : topic->partitions;
		return 0;
	}
	if (!topic->rkt)
		return SL_EINVAL;
	const struct rd_kafka_metadata *md = NULL;
	rd_kafka_resp_err_t err = rd_kafka_metadata(kafka->producer, 0, topic->rkt, &md, METADATA_TIMEOUT_MS);
	if (err)
		return kafka->down || err != RD_KAFKA_RESP_ERR__TIMED_OUT ? sl_kafka_client_err(err) : SL_EAGAIN;
	sl_kafka_client_up(kafka);
	int code = SL_EAGAIN;
	if (md->topic_cnt == 1) {
		const struct rd_kafka_metadata_topic *t = &md->topics[0];
		if (t->err == RD_KAFKA_RESP_ERR_NO_ERROR && t->partition_cnt > 0) {
			*ret_count = topic->partitions = t->partition_cnt;
			code = 0;
		} else if (t->err) {
			code = sl_kafka_client_err(t->err);
		}
	}
	rd_kafka_metadata_destroy(md);
	return code;
}

static int client_watermarks(
	struct sl_broker *base, const char *topic, int32_t partition, int64_t *ret_low, int64_t *ret_high)
{
	struct kafka *kafka = (struct kafka *)base;
	rd_kafka_resp_err_t err = rd_kafka_query_watermark_offsets(
		kafka->producer, topic, partition, ret_low, ret_high, WATERMARK_TIMEOUT_MS);
	if (!err)
		sl_kafka_client_up(kafka);
	return sl_kafka_client_err(err);
}

void sl_kafka_fix_partitions(struct sl_broker *broker, const char *name, int32_t count)
{
	struct ktopic *topic = sl_kafka_client_topic((struct kafka *)broker, name);
	topic->fixed = count;
	topic->partitions = 0;
}

bool sl_kafka_reachable(struct sl_broker *broker, const char **ret_text)
{
	struct kafka *kafka = (struct kafka *)broker;
	const char *refused = sl_kafka_producer_refused(kafka);
	*ret_text = kafka->down || kafka->stalled ? kafka->trouble.data : refused ? refused : "";
	return !kafka->down && !kafka->stalled && !refused;
}

void sl_kafka_queued(struct sl_broker *broker, int *ret_count, size_t *ret_bytes)
{
	const struct kafka *kafka = (const struct kafka *)broker;
	*ret_count = kafka->pending_count;
	*ret_bytes = kafka->pending_bytes;
}

void sl_kafka_test_fatal(struct sl_broker *broker)
{
	struct kafka *kafka = (struct kafka *)broker;
	rd_kafka_test_fatal_error(
		kafka->producer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "asked for by a test");
}

/* --- life --- */

/* While no broker answers somebody has to ask, or an idle service would never learn that they are back. */
static void probe(struct kafka *kafka)
{
	uint64_t now = uv_now(kafka->loop);
	const struct rd_kafka_metadata *md;
	if (!kafka->down || now - kafka->probed_at < PROBE_EVERY_MS)
		return;
	kafka->probed_at = now;
	if (rd_kafka_metadata(kafka->producer, 0, NULL, &md, PROBE_TIMEOUT_MS))
		return;
	rd_kafka_metadata_destroy(md);
	sl_kafka_client_up(kafka);
}

static void tick(uv_timer_t *timer)
{
	struct kafka *kafka = timer->data;
	probe(kafka);
	sl_kafka_producer_serve(kafka);
	sl_kafka_producer_tick(kafka);
	for (struct sl_consumer *con = kafka->consumers, *next; con; con = next) {
		next = sl_kafka_consumer_next(con);
		sl_kafka_consumer_tick(con);
	}
}

void sl_kafka_client_tick_in(struct kafka *kafka, uint64_t ms)
{
	if (!uv_is_closing((uv_handle_t *)&kafka->tick) && uv_timer_get_due_in(&kafka->tick) > ms)
		uv_timer_start(&kafka->tick, tick, ms, TICK_MS);
}

static void topic_free(void *value)
{
	struct ktopic *topic = value;
	if (topic->rkt)
		rd_kafka_topic_destroy(topic->rkt);
	free(topic->name);
	free(topic->refused);
	free(topic);
}

static void tick_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void options_free(struct kafka *kafka)
{
	free(kafka->brokers);
	free(kafka->client_id);
	free(kafka->instance_id);
	free(kafka->compression);
	for (int i = 0; i < kafka->setting_count; i++)
		free(kafka->settings[i]);
	free(kafka->settings);
	sl_buf_release(&kafka->trouble);
}

static void client_close(struct sl_broker *base, int timeout_ms)
{
	struct kafka *kafka = (struct kafka *)base;
	kafka->closing = true;
	while (kafka->consumers)
		sl_kafka_consumer_close(kafka->consumers);
	if (kafka->producer)
		sl_kafka_producer_stop(kafka, timeout_ms);
	sl_map_release(&kafka->topics, topic_free);
	sl_wake_free(kafka->wake);
	sl_later_free(kafka->later);
	options_free(kafka);
	uv_close((uv_handle_t *)&kafka->tick, tick_closed);
}

static const struct sl_broker_ops ops = {
	.produce = sl_kafka_producer_produce,
	.kick = sl_kafka_producer_kick,
	.partitions = client_partitions,
	.consumer_new = sl_kafka_consumer_new,
	.start = sl_kafka_consumer_start,
	.poll = sl_kafka_consumer_poll,
	.release = sl_kafka_consumer_release,
	.pause = sl_kafka_consumer_pause,
	.hand_over = sl_kafka_consumer_hand_over,
	.commit = sl_kafka_consumer_commit,
	.committed = sl_kafka_consumer_committed,
	.watermarks = client_watermarks,
	.consumer_close = sl_kafka_consumer_close,
	.close = client_close,
};

static void options_copy(struct kafka *kafka, const struct sl_kafka_options *opt)
{
	kafka->brokers = sl_kafka_client_str(opt->brokers ? opt->brokers : "");
	kafka->client_id = sl_kafka_client_str(opt->client_id ? opt->client_id : "sluice");
	kafka->instance_id = sl_kafka_client_str(opt->instance_id);
	kafka->compression = sl_kafka_client_str(opt->compression ? opt->compression : "lz4");
	kafka->message_bytes_max = opt->message_bytes_max ? opt->message_bytes_max : 5u << 20;
	kafka->batch_bytes_max = opt->batch_bytes_max;
	kafka->keep_refused = opt->keep_refused;
	kafka->linger_ms = opt->linger_ms ? opt->linger_ms : 2;
	kafka->session_timeout_ms = opt->session_timeout_ms ? opt->session_timeout_ms : 10000;
	kafka->queue_max = opt->queue_max ? opt->queue_max : 100000;
	kafka->queue_bytes_max = opt->queue_bytes_max ? opt->queue_bytes_max : 256u << 20;
	kafka->stamp_at_intake = opt->stamp_at_intake;
	kafka->log = opt->log;
	kafka->log_arg = opt->log_arg;
	int count = 0;
	while (opt->settings && opt->settings[count] && opt->settings[count + 1])
		count += 2;
	kafka->settings = sl_kafka_client_alloc(sizeof(char *) * (size_t)(count + 1));
	kafka->setting_count = count;
	for (int i = 0; i < count; i++)
		kafka->settings[i] = sl_kafka_client_str(opt->settings[i]);
}

struct sl_broker *sl_broker_kafka_new(uv_loop_t *loop, const struct sl_kafka_options *opt)
{
	struct kafka *kafka = sl_kafka_client_alloc(sizeof(*kafka));
	kafka->base.ops = &ops;
	kafka->loop = loop;
	options_copy(kafka, opt);
	sl_buf_init(&kafka->trouble);
	sl_map_init(&kafka->topics);
	kafka->later = sl_later_new(loop);
	kafka->wake = sl_wake_new(loop, sl_kafka_producer_serve, kafka);
	uv_timer_init(loop, &kafka->tick);
	kafka->tick.data = kafka;
	if (!sl_kafka_producer_start(kafka, opt->diags)) {
		client_close(&kafka->base, 0);
		return NULL;
	}
	uv_timer_start(&kafka->tick, tick, TICK_MS, TICK_MS);
	return &kafka->base;
}
