/* Load for the bench: publishes events as fast as Kafka takes them and waits until every instance has completed.
 *
 *   load BROKERS EVENTS-TOPIC LIFECYCLE-TOPIC KIND COUNT [RATE]
 *
 * KIND start: one event per instance (type bench.start, attribute benchid). KIND pair: two per instance (bench.first, then
 * bench.second of the same benchid). RATE: events/s, 0 or absent: as fast as possible. An instance counts when its lifecycle event
 * `completed` is acknowledged by Kafka, that is, when we read it. The workflow's output holds the sending time of its last event
 * (`sent`, ms), so latency is reading time minus that. Prints one line: instances/s, p50, p99 in ms, and how many are missing. */
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *brokers;
static double *latency;
static long latency_count, count;

static double now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec * 1000 + (double)ts.tv_nsec / 1e6;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "load: %s: %s\n", what, why);
	exit(1);
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings)
{
	char err[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", brokers, NULL, 0);
	for (int i = 0; settings[i]; i += 2)
		if (rd_kafka_conf_set(conf, settings[i], settings[i + 1], err, sizeof(err)) != RD_KAFKA_CONF_OK)
			die(settings[i], err);
	rd_kafka_t *rk = rd_kafka_new(type, conf, err, sizeof(err));
	if (!rk)
		die("client", err);
	return rk;
}

/* All partitions of the topic from their ends. */
static rd_kafka_t *reader(const char *topic)
{
	const char *settings[] = {"group.id", "bench", "enable.auto.commit", "false", "fetch.wait.max.ms", "20", "queued.min.messages",
		"100000", NULL};
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, settings);
	const struct rd_kafka_metadata *md;
	rd_kafka_topic_t *t = rd_kafka_topic_new(rk, topic, NULL);
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, t, &md, 10000);
	if (err || md->topic_cnt != 1 || md->topics[0].partition_cnt == 0)
		die(topic, rd_kafka_err2str(err ? err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART));
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(md->topics[0].partition_cnt);
	for (int p = 0; p < md->topics[0].partition_cnt; p++) {
		int64_t low, high;
		if (rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, 10000))
			die(topic, "no watermarks");
		rd_kafka_topic_partition_list_add(parts, topic, p)->offset = high;
	}
	rd_kafka_assign(rk, parts);
	rd_kafka_topic_partition_list_destroy(parts);
	rd_kafka_metadata_destroy(md);
	rd_kafka_topic_destroy(t);
	return rk;
}

static void read_one(const rd_kafka_message_t *msg)
{
	static const char completed[] = "workflow.completed.v1", sent[] = "\"sent\":";
	const char *value = msg->payload;
	if (msg->err || !memmem(value, msg->len, completed, sizeof(completed) - 1))
		return;
	const char *at = memmem(value, msg->len, sent, sizeof(sent) - 1);
	if (at && latency_count < count)
		latency[latency_count++] = now_ms() - strtod(at + sizeof(sent) - 1, NULL);
}

static long drain(rd_kafka_t *rk, int wait_ms)
{
	long n = 0;
	rd_kafka_message_t *msg;
	while ((msg = rd_kafka_consumer_poll(rk, n ? 0 : wait_ms))) {
		read_one(msg);
		rd_kafka_message_destroy(msg);
		n++;
		wait_ms = 0;
	}
	return n;
}

static void publish(rd_kafka_t *rk, const char *topic, const char *type, long run, long i, int part)
{
	char value[512], key[64];
	int k = snprintf(key, sizeof(key), "%ld-%ld", run, i);
	int n = snprintf(value, sizeof(value),
		"{\"specversion\":\"1.0\",\"type\":\"%s\",\"source\":\"bench\",\"id\":\"%ld-%ld-%d\",\"benchid\":\"%ld-%ld\","
		"\"datacontenttype\":\"application/json\",\"data\":{\"number\":%ld,\"name\":\"customer %ld\",\"sent\":%.0f}}",
		type, run, i, part, run, i, i, i, now_ms());
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

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	if (argc < 6) {
		fprintf(stderr, "usage: load BROKERS EVENTS LIFECYCLE start|pair COUNT [RATE]\n");
		return 2;
	}
	brokers = argv[1];
	count = atol(argv[5]);
	double rate = argc > 6 ? atof(argv[6]) : 0;
	bool pair = strcmp(argv[4], "pair") == 0;
	const char *settings[] = {"enable.idempotence", "true", "linger.ms", "5", "partitioner", "murmur2", "queue.buffering.max.messages",
		"200000", NULL};
	latency = calloc((size_t)count + 1, sizeof(*latency));
	rd_kafka_t *in = reader(argv[3]), *out = client(RD_KAFKA_PRODUCER, settings);
	long run = (long)now_ms(), sent = 0, total = count;
	double start = now_ms(), last = start;
	for (int phase = 0; phase < (pair ? 2 : 1); phase++) {
		double phase_start = now_ms();
		for (sent = 0; sent < total;) {
			long due = rate > 0 ? (long)((now_ms() - phase_start) * rate / 1000) : total;
			for (int k = 0; k < 500 && sent < total && sent < due; k++, sent++)
				publish(out, argv[2], !pair ? "bench.start" : phase ? "bench.second" : "bench.first", run, sent, phase);
			rd_kafka_poll(out, 0);
			drain(in, sent < total && sent >= due ? 1 : 0);
		}
	}
	rd_kafka_flush(out, 30000);
	while (latency_count < count && now_ms() - last < 30000)
		if (drain(in, 100))
			last = now_ms();
	double seconds = ((latency_count < count ? last : now_ms()) - start) / 1000;
	qsort(latency, (size_t)latency_count, sizeof(*latency), cmp);
	printf("%.0f %.0f %.0f %ld\n", (double)latency_count / seconds, latency_count ? latency[latency_count / 2] : -1,
		latency_count ? latency[latency_count * 99 / 100] : -1, count - latency_count);
	rd_kafka_consumer_close(in);
	rd_kafka_destroy(in);
	rd_kafka_destroy(out);
	free(latency);
	return latency_count < count;
}
