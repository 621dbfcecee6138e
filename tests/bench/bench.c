/* What the programs of the bench share. */
#include "bench.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

double now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec * 1000 + (double)ts.tv_nsec / 1e6;
}

void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(2);
}

const char *brokers(void)
{
	const char *text = getenv("SLUICE_KAFKA_BROKERS");
	if (!text)
		die("SLUICE_KAFKA_BROKERS", "not set");
	return text;
}

rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings)
{
	char err[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", brokers(), NULL, 0);
	for (int i = 0; settings[i]; i += 2)
		if (rd_kafka_conf_set(conf, settings[i], settings[i + 1], err, sizeof(err)) != RD_KAFKA_CONF_OK)
			die(settings[i], err);
	rd_kafka_t *rk = rd_kafka_new(type, conf, err, sizeof(err));
	if (!rk)
		die("client", err);
	return rk;
}

rd_kafka_t *producer(void)
{
	static const char *const settings[] = {"enable.idempotence", "true", "linger.ms", "5", "partitioner", "murmur2",
		"queue.buffering.max.messages", "200000", NULL};
	return client(RD_KAFKA_PRODUCER, settings);
}

int partition_count(rd_kafka_t *rk, const char *topic)
{
	const struct rd_kafka_metadata *md;
	rd_kafka_topic_t *t = rd_kafka_topic_new(rk, topic, NULL);
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, t, &md, 10000);
	if (err || md->topic_cnt != 1 || md->topics[0].partition_cnt == 0)
		die(topic, rd_kafka_err2str(err ? err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART));
	int count = md->topics[0].partition_cnt;
	rd_kafka_metadata_destroy(md);
	rd_kafka_topic_destroy(t);
	return count;
}

rd_kafka_t *reader(const char *topic, int64_t back)
{
	static const char *const settings[] = {"group.id", "bench", "enable.auto.commit", "false", "fetch.wait.max.ms", "20",
		"queued.min.messages", "100000", NULL};
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, settings);
	int count = partition_count(rk, topic);
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(count);
	for (int p = 0; p < count; p++) {
		int64_t low, high;
		if (rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, 10000))
			die(topic, "no watermarks");
		rd_kafka_topic_partition_list_add(parts, topic, p)->offset = high - back > low ? high - back : low;
	}
	rd_kafka_assign(rk, parts);
	rd_kafka_topic_partition_list_destroy(parts);
	return rk;
}

void publish(rd_kafka_t *rk, const char *topic, const struct event *ev)
{
	char value[640], key[96];
	int k = snprintf(key, sizeof(key), "%s-%ld", ev->run, ev->i);
	int n = snprintf(value, sizeof(value),
		"{\"specversion\":\"1.0\",\"type\":\"%s\",\"source\":\"bench\",\"id\":\"%s-%d\",\"benchid\":\"%s\","
		"\"datacontenttype\":\"application/json\",\"data\":{\"number\":%ld,\"name\":\"customer %ld\",\"sent\":%.0f",
		ev->type, key, ev->part, key, ev->i, ev->i, now_ms());
	if (ev->items)
		n += snprintf(value + n, sizeof(value) - (size_t)n, ",\"items\":%ld", ev->items);
	n += snprintf(value + n, sizeof(value) - (size_t)n, "}}");
	for (;;) {
		rd_kafka_resp_err_t err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, (size_t)k),
			RD_KAFKA_V_VALUE(value, (size_t)n), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
			RD_KAFKA_V_HEADER("content-type", "application/cloudevents+json", 28), RD_KAFKA_V_END);
		if (!err)
			return;
		if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
			die(topic, rd_kafka_err2str(err));
		rd_kafka_poll(rk, 10);
	}
}

bool lifecycle_is(const rd_kafka_message_t *msg, const char *what, double *ret_sent)
{
	static const char sent[] = "\"sent\":";
	char type[64];
	int n = snprintf(type, sizeof(type), ".workflow.%s.v1\"", what);
	if (msg->err || !memmem(msg->payload, msg->len, type, (size_t)n))
		return false;
	const char *at = memmem(msg->payload, msg->len, sent, sizeof(sent) - 1);
	*ret_sent = at ? strtod(at + sizeof(sent) - 1, NULL) : 0;
	return true;
}

void samples_add(struct samples *s, double value)
{
	if (s->count == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		s->items = realloc(s->items, (size_t)s->cap * sizeof(*s->items));
		if (!s->items)
			die("samples", "no memory");
	}
	s->items[s->count++] = value;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

double samples_at(struct samples *s, int per_cent)
{
	if (!s->count)
		return -1;
	qsort(s->items, (size_t)s->count, sizeof(*s->items), cmp);
	return s->items[s->count * per_cent / 100];
}
