/* Load for the bench: publishes events and waits until every instance has come as far as it should.
 *
 *   load KIND COUNT [NAME=VALUE...]       Kafka: SLUICE_KAFKA_BROKERS
 *
 * start   one event per instance; counts `completed`           pair   two per instance, first all the first ones
 * park    the first of a pair only; counts `started`           wake   the second ones of COUNT instances of an earlier park
 * chain   as start, but one instance at a time
 *
 * rate=N events/s (0: as fast as Kafka takes them), prefix=TOPIC-PREFIX, run=NAME first part of every benchid, of=N wake: number that
 * was parked (the woken ones are spread over them), type=TYPE of the start event, items=N a number in its data.
 *
 * An instance counts when its lifecycle event is acknowledged by Kafka, that is, when we read it. The workflow's output holds the
 * sending time of its last event (`sent`, ms), so latency is reading time minus that. Prints one line: instances/s, p50, p99 in ms,
 * and how many are missing. Exit 1: some are missing. */
#include "bench.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SILENCE_MS (strcmp(load.kind, "chain") == 0 ? 300000 : 30000) /* after which what is missing is missing */

/* A fresh idempotent producer keeps its first records until it has its id, which takes up to a second and is no one's latency but ours. */
#define PRODUCER_READY_US 1500000

static struct {
	const char *kind, *prefix, *run, *type, *until;
	long count, of, items;
	double rate;
	char events[128], lifecycle[128];
	struct samples latency;
	long arrived;
} load = {.prefix = "sluice.", .type = "bench.start", .until = "completed"};

static long drain(rd_kafka_t *rk, int wait_ms)
{
	long n = 0;
	double sent;
	rd_kafka_message_t *msg;
	while ((msg = rd_kafka_consumer_poll(rk, n ? 0 : wait_ms))) {
		if (lifecycle_is(msg, load.until, &sent) && load.arrived < load.count) {
			load.arrived++;
			samples_add(&load.latency, sent > 0 ? now_ms() - sent : 0);
		}
		rd_kafka_message_destroy(msg);
		n++;
	}
	return n;
}

static void await(rd_kafka_t *in, long count)
{
	double last = now_ms();
	while (load.arrived < count && now_ms() - last < SILENCE_MS)
		if (drain(in, 100))
			last = now_ms();
}

static void send_all(rd_kafka_t *out, rd_kafka_t *in, const char *type, int part)
{
	double start = now_ms();
	bool wake = strcmp(load.kind, "wake") == 0;
	for (long sent = 0; sent < load.count;) {
		long due = load.rate > 0 ? (long)((now_ms() - start) * load.rate / 1000) : load.count;
		for (int k = 0; k < 500 && sent < load.count && sent < due; k++, sent++) {
			long i = wake ? (long)((double)sent * (double)load.of / (double)load.count) : sent;
			publish(out, load.events, &(struct event){type, load.run, i, load.items, part});
		}
		rd_kafka_poll(out, 0);
		drain(in, sent < load.count && sent >= due ? 1 : 0);
	}
}

static void send_chain(rd_kafka_t *out, rd_kafka_t *in)
{
	for (long i = 0; i < load.count && load.arrived == i; i++) {
		publish(out, load.events, &(struct event){load.type, load.run, i, load.items, 0});
		rd_kafka_flush(out, 10000);
		await(in, i + 1);
	}
}

static void option(const char *text)
{
	const char *value = strchr(text, '=');
	size_t n = value ? (size_t)(value - text) : 0;
	if (!value)
		die(text, "not NAME=VALUE");
	value++;
	if (strncmp(text, "rate", n) == 0)
		load.rate = atof(value);
	else if (strncmp(text, "prefix", n) == 0)
		load.prefix = value;
	else if (strncmp(text, "run", n) == 0)
		load.run = value;
	else if (strncmp(text, "of", n) == 0)
		load.of = atol(value);
	else if (strncmp(text, "type", n) == 0)
		load.type = value;
	else if (strncmp(text, "items", n) == 0)
		load.items = atol(value);
	else
		die(text, "no such option");
}

int main(int argc, char **argv)
{
	char run[32];
	if (argc < 3)
		die("usage", "load start|pair|park|wake|chain COUNT [NAME=VALUE...]");
	snprintf(run, sizeof(run), "%.0f", now_ms());
	load.run = run;
	load.kind = argv[1];
	load.of = load.count = atol(argv[2]);
	for (int i = 3; i < argc; i++)
		option(argv[i]);
	snprintf(load.events, sizeof(load.events), "%sevents", load.prefix);
	snprintf(load.lifecycle, sizeof(load.lifecycle), "%slifecycle", load.prefix);
	bool pair = strcmp(load.kind, "pair") == 0, park = strcmp(load.kind, "park") == 0;
	if (park)
		load.until = "started";
	rd_kafka_t *in = reader(load.lifecycle, 0), *out = producer();
	partition_count(out, load.events);
	usleep(PRODUCER_READY_US);
	double start = now_ms();
	if (strcmp(load.kind, "chain") == 0)
		send_chain(out, in);
	else if (strcmp(load.kind, "start") == 0)
		send_all(out, in, load.type, 0);
	else if (pair || park)
		send_all(out, in, "bench.first", 0);
	if (pair || strcmp(load.kind, "wake") == 0)
		send_all(out, in, "bench.second", 1);
	rd_kafka_flush(out, 30000);
	await(in, load.count);
	double seconds = (now_ms() - start - (load.arrived < load.count ? SILENCE_MS : 0)) / 1000;
	printf("%.0f %.0f %.0f %ld\n", (double)load.arrived / seconds, samples_at(&load.latency, 50), samples_at(&load.latency, 99),
		load.count - load.arrived);
	rd_kafka_consumer_close(in);
	rd_kafka_destroy(in);
	rd_kafka_destroy(out);
	free(load.latency.items);
	return load.arrived < load.count;
}
