/* The producer: idempotent, without message timeout, and made anew after a fatal error with every unconfirmed record
 * sent again in order (R12).
 *
 * Records wait in one list until they are confirmed: [handed to librdkafka ... | unsent ...]. librdkafka does not copy
 * values; it reads them from the list's blocks.
 *
 * A record that the broker refuses (keep_refused) must not be overtaken by later ones of its partition, or receivers
 * would take it for an old one (R6). librdkafka's gapless guarantee makes the refusal a fatal error; then all records
 * of that topic are held in a list of the topic's own, and tried again after a pause while the other topics go on. */
#include "common/adapters/kafka/client.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMAKE_PAUSE_MS 500	    /* between two new producers */
#define LIBRARY_QUEUE_MAX "1000000" /* our own bounds come first */
#define LIBRARY_BATCH_MAX 1000000   /* librdkafka's batch.size */
#define REFUSED_PAUSE_MS 2000
#define STALLED_MS 10000 /* unconfirmed for so long while brokers answer: people should know */

static void unlink_pending(struct kafka *kafka, struct pending *p)
{
	if (p->prev)
		p->prev->next = p->next;
	else
		kafka->first = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		kafka->last = p->prev;
	if (kafka->unsent == p)
		kafka->unsent = p->next;
	kafka->pending_count--;
	kafka->pending_bytes -= p->bytes;
}

static void settle(struct kafka *kafka, struct pending *p, int err)
{
	unlink_pending(kafka, p);
	if (!kafka->closing && p->delivered)
		p->delivered(p->arg, err);
	free(p);
}

/* Which errors of a record are its own fault, for ever. */
static int verdict(rd_kafka_resp_err_t err)
{
	int code = sl_kafka_client_err(err);
	if (code == SL_ENOTFOUND)
		return SL_EREFUSED;
	return code == SL_ETOOBIG || code == SL_EREFUSED ? code : 0;
}

/* --- refusals that people can mend --- */

static void advise(const struct kafka *kafka, const struct ktopic *topic, rd_kafka_resp_err_t err, struct sl_buf *text)
{
	sl_buf_printf(text, "topic %s refuses records: %s; nothing is lost, they are sent again until it takes them. ",
		topic->name, rd_kafka_err2str(err));
	if (sl_kafka_client_err(err) == SL_ETOOBIG)
		sl_buf_printf(text,
			"Raise its max.message.bytes: kafka-configs.sh --alter --entity-type topics --entity-name %s "
			"--add-config max.message.bytes=%zu",
			topic->name, kafka->message_bytes_max);
	else if (sl_kafka_client_err(err) == SL_ENOTFOUND)
		sl_buf_adds(text, "Create it: sluice topics create");
	else if (err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
		 err == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
		sl_buf_adds(text, "Give this user the right to write to it");
	else
		sl_buf_adds(text, "Look at the topic's settings (sluice topics check) and at the broker's log");
}

static void hold(struct kafka *kafka, struct ktopic *topic, rd_kafka_resp_err_t err)
{
	struct sl_buf text;
	sl_buf_init(&text);
	advise(kafka, topic, err, &text);
	if (!topic->refused || strcmp(topic->refused, text.data) != 0) {
		sl_kafka_client_log(kafka, 3, "%s", text.data);
		free(topic->refused);
		topic->refused = sl_kafka_client_str(text.data);
	}
	sl_buf_release(&text);
	topic->held_until = uv_now(kafka->loop) + REFUSED_PAUSE_MS;
	kafka->broken = true;
}

static void taken_again(struct kafka *kafka, struct ktopic *topic)
{
	sl_kafka_client_log(kafka, 6, "topic %s takes records again", topic->name);
	free(topic->refused);
	topic->refused = NULL;
}

const char *sl_kafka_producer_refused(struct kafka *kafka)
{
	sl_map_each(&kafka->topics, e)
	{
		const struct ktopic *topic = e->value;
		if (topic->refused)
			return topic->refused;
	}
	return NULL;
}

static void hold_back(struct ktopic *topic, struct pending *p)
{
	p->next = NULL;
	p->prev = topic->held_last;
	if (topic->held_last)
		topic->held_last->next = p;
	else
		topic->held_first = p;
	topic->held_last = p;
}

/* Out of the list goes what belongs to held topics; the counts stay. */
static void split(struct kafka *kafka)
{
	uint64_t now = uv_now(kafka->loop);
	struct pending *p = kafka->first;
	kafka->first = kafka->last = NULL;
	for (struct pending *next; p; p = next) {
		next = p->next;
		if (p->topic->held_until > now) {
			hold_back(p->topic, p);
			continue;
		}
		p->next = NULL;
		p->prev = kafka->last;
		if (kafka->last)
			kafka->last->next = p;
		else
			kafka->first = p;
		kafka->last = p;
	}
	kafka->unsent = kafka->first;
}

/* The list goes on with what was held: nothing of that topic is in the list. */
static void let_go(struct kafka *kafka, struct ktopic *topic)
{
	struct pending *p = topic->held_first;
	topic->held_until = 0;
	if (!p)
		return;
	p->prev = kafka->last;
	if (kafka->last)
		kafka->last->next = p;
	else
		kafka->first = p;
	kafka->last = topic->held_last;
	if (!kafka->unsent)
		kafka->unsent = p;
	topic->held_first = topic->held_last = NULL;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
	(void)rk;
	struct kafka *kafka = opaque;
	struct pending *p = msg->_private;
	if (!msg->err) {
		sl_kafka_client_up(kafka);
		if (p->topic->refused)
			taken_again(kafka, p->topic);
		settle(kafka, p, 0);
		return;
	}
	int err = verdict(msg->err);
	if (err && kafka->keep_refused && !kafka->closing) {
		hold(kafka, p->topic, msg->err);
		return;
	}
	if (err && !kafka->broken) {
		sl_kafka_client_log(kafka, 4, "a record for %s is refused: %s", rd_kafka_topic_name(msg->rkt),
			rd_kafka_err2str(msg->err));
		settle(kafka, p, err);
		return;
	}
	/* Anything else is no answer: it stays in the list, and a new producer sends the list again. */
	if (!kafka->closing && !kafka->broken) {
		sl_kafka_client_log(kafka, 4, "a record for %s was not taken: %s; sending again",
			rd_kafka_topic_name(msg->rkt), rd_kafka_err2str(msg->err));
		kafka->broken = true;
	}
}

bool sl_kafka_producer_start(struct kafka *kafka, struct sl_diags *diags)
{
	char number[32], text[512];
	rd_kafka_conf_t *conf = sl_kafka_client_conf(kafka, "producer", diags);
	if (!conf)
		return false;
	snprintf(number, sizeof(number), "%d", kafka->linger_ms);
	sl_kafka_client_default(kafka, "producer", conf, "linger.ms", number);
	snprintf(number, sizeof(number), "%zu", kafka->message_bytes_max);
	sl_kafka_client_default(kafka, "producer", conf, "message.max.bytes", number);
	sl_kafka_client_default(kafka, "producer", conf, "compression.type", kafka->compression);
	if (kafka->batch_bytes_max && kafka->batch_bytes_max < LIBRARY_BATCH_MAX) {
		snprintf(number, sizeof(number), "%zu", kafka->batch_bytes_max);
		sl_kafka_client_default(kafka, "producer", conf, "batch.size", number);
	}
	if (kafka->keep_refused)
		sl_kafka_client_default(kafka, "producer", conf, "enable.gapless.guarantee", "true");
	sl_kafka_client_default(kafka, "producer", conf, "queue.buffering.max.messages", LIBRARY_QUEUE_MAX);
	/* Records without key go anywhere; with key as every Java client puts them. */
	if (!sl_kafka_client_force(conf, "partitioner", "murmur2_random", diags) ||
		!sl_kafka_client_force(conf, "acks", "all", diags) ||
		!sl_kafka_client_force(conf, "enable.idempotence", "true", diags) ||
		!sl_kafka_client_force(conf, "message.timeout.ms", "0", diags)) {
		rd_kafka_conf_destroy(conf);
		return false;
	}
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!rk) {
		rd_kafka_conf_destroy(conf);
		sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "kafka: %s", text);
		return false;
	}
	static const uint64_t one = 1;
	rd_kafka_set_log_queue(rk, NULL);
	kafka->producer = rk;
	kafka->events = rd_kafka_queue_get_main(rk);
	rd_kafka_queue_io_event_enable(kafka->events, sl_wake_fd(kafka->wake), &one, sizeof(one));
	return true;
}

static void drop_producer(struct kafka *kafka)
{
	sl_map_each(&kafka->topics, e)
	{
		struct ktopic *topic = e->value;
		if (topic->rkt)
			rd_kafka_topic_destroy(topic->rkt);
		topic->rkt = NULL;
	}
	rd_kafka_queue_io_event_enable(kafka->events, -1, NULL, 0);
	rd_kafka_queue_destroy(kafka->events);
	rd_kafka_destroy(kafka->producer);
	kafka->events = NULL;
	kafka->producer = NULL;
}

/* --- sending --- */

static void tell_refused(void *arg, bool cancelled)
{
	(void)cancelled;
	struct kafka *kafka = arg;
	while (kafka->refused) {
		struct pending *p = kafka->refused;
		kafka->refused = p->next;
		kafka->pending_count--;
		kafka->pending_bytes -= p->bytes;
		if (!kafka->closing && p->delivered)
			p->delivered(p->arg, p->err);
		free(p);
	}
}

/* Out of the list; its owner hears of it in the next turn. */
static void refuse(struct kafka *kafka, struct pending *p, int err)
{
	unlink_pending(kafka, p);
	kafka->pending_count++;
	kafka->pending_bytes += p->bytes;
	p->err = err;
	p->next = NULL;
	if (!kafka->refused)
		sl_later_add(kafka->later, tell_refused, kafka);
	struct pending **at = &kafka->refused;
	while (*at)
		at = &(*at)->next;
	*at = p;
}

static rd_kafka_resp_err_t hand_over(struct kafka *kafka, struct pending *p)
{
	if (!p->topic->rkt)
		p->topic->rkt = rd_kafka_topic_new(kafka->producer, p->topic->name, NULL);
	if (!p->topic->rkt)
		return rd_kafka_last_error();
	rd_kafka_headers_t *headers = NULL;
	if (p->header_count) {
		headers = rd_kafka_headers_new((size_t)p->header_count);
		for (int i = 0; i < p->header_count; i++)
			rd_kafka_header_add(headers, p->headers[i].name, -1, p->headers[i].value.ptr,
				(ssize_t)p->headers[i].value.len);
	}
	int32_t partition = p->partition < 0 ? RD_KAFKA_PARTITION_UA : p->partition;
	if (p->partition < 0 && p->topic->fixed > 0 && p->key.ptr)
		partition = rd_kafka_msg_partitioner_murmur2(
			p->topic->rkt, p->key.ptr, p->key.len, p->topic->fixed, NULL, NULL);
	rd_kafka_vu_t vus[6] = {
		{.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = p->topic->rkt},
		{.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
		{.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)p->value.ptr, p->value.len}},
		{.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)p->key.ptr, p->key.len}},
		{.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = p},
		{.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
	};
	rd_kafka_error_t *error = rd_kafka_produceva(kafka->producer, vus, headers ? 6 : 5);
	if (!error)
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	rd_kafka_resp_err_t err = rd_kafka_error_code(error);
	rd_kafka_error_destroy(error);
	if (headers)
		rd_kafka_headers_destroy(headers);
	return err;
}

static void pump(struct kafka *kafka)
{
	while (kafka->unsent && !kafka->broken) {
		struct pending *p = kafka->unsent;
		rd_kafka_resp_err_t err = hand_over(kafka, p);
		if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			return; /* after a delivery */
		int refused = err ? verdict(err) : 0;
		if (refused == SL_ETOOBIG || (refused && !kafka->keep_refused)) { /* our own limit */
			refuse(kafka, p, refused);
			continue;
		}
		if (refused) {
			hold(kafka, p->topic, err);
			return;
		}
		if (err) {
			kafka->broken = true;
			return;
		}
		kafka->unsent = p->next;
	}
}

static struct sl_bytes put(char **at, struct sl_bytes src)
{
	if (!src.ptr)
		return (struct sl_bytes){0};
	struct sl_bytes dst = {.ptr = *at, .len = src.len};
	memcpy(*at, src.ptr, src.len);
	*at += src.len;
	return dst;
}

static struct pending *pending_new(struct kafka *kafka, const struct sl_record *rec)
{
	size_t heads = (size_t)rec->header_count * sizeof(struct sl_header), bytes = rec->key.len + rec->value.len;
	for (int i = 0; i < rec->header_count; i++)
		bytes += strlen(rec->headers[i].name) + 1 + rec->headers[i].value.len;
	struct pending *p = malloc(sizeof(*p) + heads + bytes + 1);
	sl_assert(p);
	memset(p, 0, sizeof(*p));
	char *at = (char *)(p + 1) + heads;
	p->kafka = kafka;
	p->topic = sl_kafka_client_topic(kafka, rec->topic);
	p->partition = rec->partition;
	p->bytes = bytes;
	p->headers = (struct sl_header *)(p + 1);
	p->header_count = rec->header_count;
	p->key = put(&at, rec->key);
	p->value = put(&at, rec->value);
	for (int i = 0; i < rec->header_count; i++) {
		const char *name = rec->headers[i].name;
		p->headers[i].name = put(&at, (struct sl_bytes){name, strlen(name) + 1}).ptr;
		p->headers[i].value = put(&at, rec->headers[i].value);
	}
	return p;
}

int sl_kafka_producer_produce(struct sl_broker *base, const struct sl_record *rec, sl_delivered_fn delivered, void *arg)
{
	struct kafka *kafka = (struct kafka *)base;
	if (kafka->pending_count >= kafka->queue_max || kafka->pending_bytes >= kafka->queue_bytes_max)
		return SL_EAGAIN;
	struct pending *p = pending_new(kafka, rec);
	p->delivered = delivered;
	p->arg = arg;
	p->since = uv_now(kafka->loop);
	if (p->topic->held_first || p->topic->held_until) {
		hold_back(p->topic, p);
		kafka->pending_count++;
		kafka->pending_bytes += p->bytes;
		return 0;
	}
	p->prev = kafka->last;
	if (kafka->last)
		kafka->last->next = p;
	else
		kafka->first = p;
	kafka->last = p;
	kafka->pending_count++;
	kafka->pending_bytes += p->bytes;
	if (!kafka->unsent)
		kafka->unsent = p;
	pump(kafka);
	return 0;
}

void sl_kafka_producer_kick(struct sl_broker *base)
{
	(void)base; /* librdkafka's threads send at latest after linger.ms */
}

/* --- events --- */

/* After a fatal error. What the old producer still has in hand is in our list and dies with it; what it had sent
 * may still arrive and is a duplicate like any other. */
static void remake(struct kafka *kafka)
{
	uint64_t now = uv_now(kafka->loop);
	if (kafka->broken_at && now - kafka->broken_at < REMAKE_PAUSE_MS)
		return; /* the tick comes back */
	kafka->broken_at = now;
	rd_kafka_purge(kafka->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	/* Confirmations that have arrived still count. */
	while (rd_kafka_poll(kafka->producer, 0) > 0)
		;
	drop_producer(kafka);
	if (!sl_kafka_producer_start(kafka, NULL))
		sl_bug(__FILE__, __LINE__, "settings that were right are wrong now");
	kafka->broken = false;
	split(kafka);
	if (!sl_kafka_producer_refused(kafka)) /* else it would be told every other second */
		sl_kafka_client_log(
			kafka, 6, "a new producer sends %d unconfirmed records again", kafka->pending_count);
	pump(kafka);
}

void sl_kafka_producer_serve(void *arg)
{
	struct kafka *kafka = arg;
	if (kafka->serving || kafka->closing)
		return;
	kafka->serving = true;
	while (!kafka->closing && rd_kafka_poll(kafka->producer, 0) > 0)
		;
	if (!kafka->closing && kafka->broken)
		remake(kafka);
	else if (!kafka->closing)
		pump(kafka);
	kafka->serving = false;
}

/* Brokers answer, but the oldest record is not confirmed: librdkafka tries again and says nothing. */
static void look_for_stall(struct kafka *kafka, uint64_t now)
{
	const struct pending *oldest = kafka->first;
	if (kafka->down)
		kafka->down_at = now;
	bool stalled = oldest && now - (oldest->since > kafka->down_at ? oldest->since : kafka->down_at) > STALLED_MS;
	if (stalled && !kafka->stalled) {
		sl_buf_clear(&kafka->trouble);
		sl_buf_printf(&kafka->trouble,
			"Kafka has not confirmed a record for topic %s for %d s; it is sent again until it is. Are as "
			"many "
			"replicas in sync as its min.insync.replicas wants, and do its partitions have a leader?",
			oldest->topic->name, STALLED_MS / 1000);
		sl_kafka_client_log(kafka, 4, "%s", kafka->trouble.data);
	} else if (!stalled && kafka->stalled && !kafka->down) {
		sl_kafka_client_log(kafka, 6, "Kafka confirms records again");
	}
	kafka->stalled = stalled;
}

void sl_kafka_producer_tick(struct kafka *kafka)
{
	uint64_t now = uv_now(kafka->loop);
	bool more = false;
	if (kafka->broken || kafka->closing)
		return;
	sl_map_each(&kafka->topics, e)
	{
		struct ktopic *topic = e->value;
		if (topic->held_until && now >= topic->held_until) {
			more = more || topic->held_first;
			let_go(kafka, topic);
		}
	}
	if (more)
		pump(kafka);
	look_for_stall(kafka, now);
}

void sl_kafka_producer_stop(struct kafka *kafka, int timeout_ms)
{
	uint64_t end = uv_hrtime() / 1000000 + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
	while (kafka->first && !kafka->broken) {
		uint64_t now = uv_hrtime() / 1000000;
		if (now >= end)
			break;
		pump(kafka);
		rd_kafka_flush(kafka->producer, (int)(end - now < 50 ? end - now : 50));
	}
	rd_kafka_purge(kafka->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	while (rd_kafka_poll(kafka->producer, 0) > 0)
		;
	drop_producer(kafka);
	sl_map_each(&kafka->topics, e) let_go(kafka, e->value);
	for (struct pending *p = kafka->first, *next; p; p = next) {
		next = p->next;
		settle(kafka, p, SL_ELOST);
	}
}
