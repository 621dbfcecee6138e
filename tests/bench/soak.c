/* Load and sampler of the soak: a steady mixed load, and every five seconds one line of CSV.
 *
 *   soak SECONDS RATE NAME=PIDFILE... [group:GROUP=TOPIC...]      Kafka: SLUICE_KAFKA_BROKERS; CSV on standard output
 *
 * Of RATE events/s 30 % start a workflow that ends at once, 30 % are pairs (the second one second after the first, of the same key), 20 %
 * start one with an HTTP call, 10 % one that sleeps two seconds, 10 % one that times out after three. Latency is the time from the
 * instance's last event to its `completed` on sluice.lifecycle, less what it must wait for by its definition.
 * Columns: seconds since the start; events sent; instances completed and, so far, awaited; p50 and p99 in ms of the window; resident MB
 * of each process (0: it is not there), lag of each group in records. The last line of all, "# lost N", counts what had not completed
 * 60 s after the last one; exit 1 if N is not 0. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

#define WINDOW_MS 5000
#define GROUPS_MAX 8
#define PARTS_MAX 256
#define SECOND_AFTER_MS 1000
#define SILENCE_MS 60000

struct kind { const char *type; double wait_ms; };
static const struct kind kinds[] = {{"bench.start", 0}, {"bench.first", 0}, {"bench.call", 0}, {"bench.sleep", 2000}, {"bench.timeout", 3000}};
enum { START, PAIR, CALL, SLEEP, TIMEOUT };
/* 17 instances, 20 events: 6 starts, 3 pairs, 4 calls, 2 that sleep, 2 that time out. */
static const int mix[] = {START, CALL, PAIR, START, SLEEP, START, CALL, TIMEOUT, START, PAIR, CALL, START, SLEEP, CALL, START, PAIR, TIMEOUT};
#define MIX_COUNT ((long)(sizeof(mix) / sizeof(mix[0])))

struct group { rd_kafka_t *rk; const char *topic; int partitions; };
struct process { const char *name, *file; };
static struct {
	struct group groups[GROUPS_MAX];
	struct process processes[GROUPS_MAX];
	int group_count, process_count;
	rd_kafka_t *in, *out;
	char run[32];
	struct { long i; double due; } *seconds; /* second events, by time: a ring */
	long first, last, cap;
	long events, started, completed;
	struct samples window;
} soak;

static void pid_path(const struct process *p, char *ret, size_t size)
{
	long pid = 0;
	FILE *f = fopen(p->file, "r");
	if (f && fscanf(f, "%ld", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	snprintf(ret, size, "/proc/%ld/statm", pid);
}

static double rss_mb(const struct process *p)
{
	char path[64];
	long size, resident = 0;
	pid_path(p, path, sizeof(path));
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return (double)resident * 4096 / 1048576;
}

/* Records between the group's committed offsets and the ends; -1: not known now. */
static long lag(const struct group *g)
{
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(g->partitions);
	long sum = 0;
	for (int p = 0; p < g->partitions; p++)
		rd_kafka_topic_partition_list_add(parts, g->topic, p);
	if (rd_kafka_committed(g->rk, parts, 5000))
		sum = -1;
	for (int p = 0; p < g->partitions && sum >= 0; p++) {
		int64_t low, high;
		if (rd_kafka_query_watermark_offsets(g->rk, g->topic, p, &low, &high, 5000))
			sum = -1;
		else
			sum += (long)(high - (parts->elems[p].offset > low ? parts->elems[p].offset : low));
	}
	rd_kafka_topic_partition_list_destroy(parts);
	return sum;
}

static const struct kind *kind_of(const rd_kafka_message_t *msg)
{
	static const char *const names[] = {"bench-start", "bench-pair", "bench-call", "bench-sleep", "bench-timeout"};
	for (int i = 0; i < 5; i++)
		if (memmem(msg->payload, msg->len, names[i], strlen(names[i])))
			return &kinds[i];
	return NULL;
}

static long drain(int wait_ms)
{
	rd_kafka_message_t *msg;
	long n = 0;
	double sent;
	while ((msg = rd_kafka_consumer_poll(soak.in, n ? 0 : wait_ms))) {
		const struct kind *kind = lifecycle_is(msg, "completed", &sent) ? kind_of(msg) : NULL;
		if (kind) {
			soak.completed++;
			samples_add(&soak.window, now_ms() - sent - kind->wait_ms);
		}
		rd_kafka_message_destroy(msg);
		n++;
	}
	return n;
}

static void send_event(const char *type, long i, int part)
{
	publish(soak.out, "sluice.events", &(struct event){type, soak.run, i, 0, part});
	soak.events++;
}

static void later(long i)
{
	if (soak.last - soak.first == soak.cap)
		die("pairs", "too many");
	soak.seconds[soak.last++ % soak.cap].i = i;
	soak.seconds[(soak.last - 1) % soak.cap].due = now_ms() + SECOND_AFTER_MS;
}

static void send_seconds(bool all)
{
	for (; soak.first < soak.last && (all || soak.seconds[soak.first % soak.cap].due <= now_ms()); soak.first++)
		send_event("bench.second", soak.seconds[soak.first % soak.cap].i, 1);
}

static void sample(double start)
{
	printf("%.0f,%ld,%ld,%ld,%.0f,%.0f", (now_ms() - start) / 1000, soak.events, soak.completed, soak.started - soak.completed,
		samples_at(&soak.window, 50), samples_at(&soak.window, 99));
	soak.window.count = 0;
	for (int i = 0; i < soak.process_count; i++)
		printf(",%.1f", rss_mb(&soak.processes[i]));
	for (int i = 0; i < soak.group_count; i++)
		printf(",%ld", lag(&soak.groups[i]));
	printf("\n");
	fflush(stdout);
}

static void parse(int argc, char **argv)
{
	printf("seconds,events,completed,awaited,p50_ms,p99_ms");
	for (int i = 3; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (!value || soak.group_count == GROUPS_MAX || soak.process_count == GROUPS_MAX)
			die(argv[i], "not NAME=PIDFILE, or too many");
		*value++ = '\0';
		if (strncmp(argv[i], "group:", 6) != 0) {
			soak.processes[soak.process_count++] = (struct process){argv[i], value};
			printf(",%s_mb", argv[i]);
			continue;
		}
		struct group *g = &soak.groups[soak.group_count++];
		const char *const settings[] = {"group.id", argv[i] + 6, NULL};
		g->rk = client(RD_KAFKA_CONSUMER, settings);
		g->topic = value;
		g->partitions = partition_count(g->rk, value);
		printf(",%s_lag", argv[i] + 6);
	}
	printf("\n");
}

static void run(double seconds, double rate, double start)
{
	double next = start + WINDOW_MS;
	long n = 0;
	while (now_ms() - start < seconds * 1000) {
		send_seconds(false);
		while ((double)soak.events < (now_ms() - start) / 1000 * rate) {
			int kind = mix[n++ % MIX_COUNT];
			send_event(kinds[kind].type, soak.started, 0);
			if (kind == PAIR)
				later(soak.started);
			soak.started++;
		}
		rd_kafka_poll(soak.out, 0);
		drain(2);
		if (now_ms() >= next) {
			sample(start);
			next += WINDOW_MS;
		}
	}
	send_seconds(true);
	rd_kafka_flush(soak.out, 30000);
	for (double last = now_ms(); soak.completed < soak.started && now_ms() - last < SILENCE_MS;) {
		if (drain(100))
			last = now_ms();
		if (now_ms() >= next) {
			sample(start);
			next += WINDOW_MS;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage", "soak SECONDS RATE NAME=PIDFILE... group:GROUP=TOPIC...");
	double seconds = atof(argv[1]), rate = atof(argv[2]), start = now_ms();
	snprintf(soak.run, sizeof(soak.run), "%.0f", start);
	soak.cap = (long)(rate * SECOND_AFTER_MS / 1000 * 60) + 100;
	soak.seconds = calloc((size_t)soak.cap, sizeof(*soak.seconds));
	if (!soak.seconds)
		die("soak", "no memory");
	parse(argc, argv);
	soak.in = reader("sluice.lifecycle", 0);
	soak.out = producer();
	run(seconds, rate, now_ms());
	printf("# lost %ld\n", soak.started - soak.completed);
	rd_kafka_consumer_close(soak.in);
	rd_kafka_destroy(soak.in);
	rd_kafka_destroy(soak.out);
	for (int i = 0; i < soak.group_count; i++)
		rd_kafka_destroy(soak.groups[i].rk);
	free(soak.seconds);
	free(soak.window.items);
	return soak.started != soak.completed;
}
