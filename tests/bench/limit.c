/* The bare loop: what any program could reach at most with the hops and commits that row (a) takes per instance, for comparison.
 * None of the product's code is in it: nothing is decoded, evaluated or remembered.
 *
 *   limit FROM-PREFIX PREFIX BATCH        Kafka: SLUICE_KAFKA_BROKERS, Redis: SLUICE_REDIS_URL (redis://HOST:PORT/0)
 *
 * Copies what the product wrote last under FROM-PREFIX (the record for the owner, the two lifecycle records, the state of one
 * instance in Redis), so sizes, keys and headers are the product's own. Then, until SIGTERM, in two threads:
 *   route  PREFIXevents -> one record on PREFIXinstances each; commits the offset behind what is acknowledged
 *   own    PREFIXinstances -> per partition and batch of at most BATCH one script that checks the epoch and writes states, indexes,
 *          outbox and applied offset -> two lifecycle records each, acknowledged before that partition's next script
 * Topics must be there. Says "ready" on its output. */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LANES_MAX 64
#define ROUTE_BATCH 512
#define ROUTE_OUT 8     /* batches of the route that are on their way */
#define FIELDS_MAX 64
#define SENT_DIGITS 13

struct pattern { /* a record to be sent with another key and another sending time */
	char *value;
	size_t len, sent; /* sent: where the digits stand, 0 none */
	rd_kafka_headers_t *headers;
};
struct lane { /* a partition of PREFIXinstances */
	rd_kafka_message_t **msgs;
	int count, cap, taken, out; /* taken: in the script on its way; out: records not yet acknowledged */
	int64_t applied, mirrored;
	double mirrored_at;
};
static struct {
	const char *from, *prefix;
	int batch;
	struct pattern routed, started, completed;
	char *names[FIELDS_MAX], *values[FIELDS_MAX];
	size_t lens[FIELDS_MAX];
	int fields;
	char events[128], instances[128], lifecycle[128], sha[64];
	redisContext *redis;
} limit;
static volatile sig_atomic_t stopped;

static const char script[] =
	"if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end\n"
	"local n, at = tonumber(ARGV[2]), 5\n"
	"for i = 4, #KEYS do\n"
	"  redis.call('HSET', KEYS[i], unpack(ARGV, at, at + n - 1))\n"
	"  at = at + n\n"
	"end\n"
	"redis.call('ZADD', KEYS[2], unpack(ARGV, at, at + (#KEYS - 3) * 2 - 1))\n"
	"at = at + (#KEYS - 3) * 2\n"
	"redis.call('ZADD', KEYS[3], unpack(ARGV, at))\n"
	"redis.call('HSET', KEYS[1], 'applied', ARGV[3], 'takes', '0', 'outbox', ARGV[4], 'todo', '')\n"
	"return 1\n";

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void topic(char ret[128], const char *prefix, const char *name)
{
	snprintf(ret, 128, "%s%s", prefix, name);
}

/* --- what the product wrote --- */

static void pattern_set(struct pattern *p, const rd_kafka_message_t *msg)
{
	rd_kafka_headers_t *headers;
	static const char sent[] = "\"sent\":";
	free(p->value);
	p->value = malloc(msg->len + 1);
	if (!p->value)
		die("pattern", "no memory");
	memcpy(p->value, msg->payload, msg->len);
	p->len = msg->len;
	const char *at = memmem(p->value, p->len, sent, sizeof(sent) - 1);
	p->sent = at ? (size_t)(at - p->value) + sizeof(sent) - 1 : 0;
	if (p->headers)
		rd_kafka_headers_destroy(p->headers);
	p->headers = !rd_kafka_message_headers(msg, &headers) ? rd_kafka_headers_copy(headers) : NULL;
}

static const char *sent_of(const rd_kafka_message_t *msg)
{
	static const char sent[] = "\"sent\":";
	const char *at = msg->err ? NULL : memmem(msg->payload, msg->len, sent, sizeof(sent) - 1);
	return at ? at + sizeof(sent) - 1 : NULL;
}

/* The latest records of a topic; the first ones that are of use stay. */
static void copy_from(const char *name, bool lifecycle)
{
	char full[128];
	double sent;
	rd_kafka_message_t *msg;
	topic(full, limit.from, name);
	rd_kafka_t *in = reader(full, 50);
	for (int i = 0; i < 400 && (msg = rd_kafka_consumer_poll(in, i ? 1000 : 5000)); i++) {
		if (!lifecycle && sent_of(msg))
			pattern_set(&limit.routed, msg);
		else if (lifecycle && lifecycle_is(msg, "started", &sent))
			pattern_set(&limit.started, msg);
		else if (lifecycle && lifecycle_is(msg, "completed", &sent))
			pattern_set(&limit.completed, msg);
		rd_kafka_message_destroy(msg);
	}
	rd_kafka_consumer_close(in);
	rd_kafka_destroy(in);
}

static void copy_records(void)
{
	copy_from("instances", false);
	copy_from("lifecycle", true);
	if (!limit.routed.sent || !limit.started.value || !limit.completed.sent)
		die(limit.from, "no records of row (a) to take as patterns");
}

static redisReply *ask(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	redisReply *reply = redisvCommand(limit.redis, format, ap);
	va_end(ap);
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		die("redis", reply ? reply->str : limit.redis->errstr);
	return reply;
}

/* The fields of one ended instance. */
static void copy_state(void)
{
	char cursor[32] = "0";
	do {
		redisReply *page = ask("SCAN %s MATCH sluice:i:* COUNT 1000", cursor);
		snprintf(cursor, sizeof(cursor), "%s", page->element[0]->str);
		if (page->element[1]->elements) {
			redisReply *hash = ask("HGETALL %s", page->element[1]->element[0]->str);
			for (size_t i = 0; i + 1 < hash->elements && limit.fields < FIELDS_MAX; i += 2, limit.fields++) {
				limit.names[limit.fields] = strdup(hash->element[i]->str);
				limit.values[limit.fields] = strdup(hash->element[i + 1]->str);
				limit.lens[limit.fields] = hash->element[i + 1]->len;
			}
			freeReplyObject(hash);
		}
		freeReplyObject(page);
	} while (!limit.fields && strcmp(cursor, "0") != 0);
	if (!limit.fields)
		die("redis", "no instance to take as pattern");
}

/* --- sending --- */

static rd_kafka_t *sender(void (*delivered)(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque))
{
	static const char *const settings[] = {"linger.ms", "2", "compression.type", "lz4", "partitioner", "murmur2_random", "acks",
		"all", "enable.idempotence", "true", "message.timeout.ms", "0", "queue.buffering.max.messages", "1000000", NULL};
	char err[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", brokers(), NULL, 0);
	for (int i = 0; settings[i]; i += 2)
		if (rd_kafka_conf_set(conf, settings[i], settings[i + 1], err, sizeof(err)) != RD_KAFKA_CONF_OK)
			die(settings[i], err);
	rd_kafka_conf_set_dr_msg_cb(conf, delivered);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof(err));
	if (!rk)
		die("producer", err);
	return rk;
}

static void send_one(rd_kafka_t *rk, const char *to, const struct pattern *p, const void *key, size_t key_len, const char *sent, int *out)
{
	char *value = malloc(p->len);
	if (!value)
		die("record", "no memory");
	memcpy(value, p->value, p->len);
	if (p->sent && sent)
		memcpy(value + p->sent, sent, SENT_DIGITS);
	rd_kafka_headers_t *headers = p->headers ? rd_kafka_headers_copy(p->headers) : NULL;
	rd_kafka_resp_err_t err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(to), RD_KAFKA_V_KEY(key, key_len),
		RD_KAFKA_V_VALUE(value, p->len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_FREE), RD_KAFKA_V_HEADERS(headers),
		RD_KAFKA_V_OPAQUE(out), RD_KAFKA_V_END);
	if (err)
		die(to, rd_kafka_err2str(err));
	++*out;
}

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
	(void)rk, (void)opaque;
	if (msg->err)
		die("delivery", rd_kafka_err2str(msg->err));
	--*(int *)msg->_private;
}

static rd_kafka_t *consumer(const char *group, const char *name)
{
	const char *const settings[] = {"group.id", group, "enable.auto.commit", "false", "enable.auto.offset.store", "false",
		"queued.min.messages", "10000", "queued.max.messages.kbytes", "4096", "fetch.wait.max.ms", "100", NULL};
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, settings);
	int count = partition_count(rk, name);
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(count);
	for (int p = 0; p < count && p < LANES_MAX; p++)
		rd_kafka_topic_partition_list_add(parts, name, p)->offset = RD_KAFKA_OFFSET_END;
	rd_kafka_assign(rk, parts);
	rd_kafka_topic_partition_list_destroy(parts);
	return rk;
}

static void commit_offset(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *parts)
{
	rd_kafka_commit(rk, parts, 1);
	rd_kafka_topic_partition_list_destroy(parts);
}

/* --- the routing hop --- */

struct routed { int out; bool used; rd_kafka_topic_partition_list_t *offsets; };

static void route_batch(rd_kafka_t *in, rd_kafka_t *out, struct routed *batch, long *serial)
{
	rd_kafka_message_t *msg;
	char key[64];
	batch->offsets = rd_kafka_topic_partition_list_new(4);
	for (int n = 0; n < ROUTE_BATCH && (msg = rd_kafka_consumer_poll(in, n ? 0 : 5)); n++) {
		const char *sent = sent_of(msg);
		if (sent) {
			int k = snprintf(key, sizeof(key), "default~%08lx-0000-5000-8000-%012lx", (*serial)++, (long)msg->offset);
			send_one(out, limit.instances, &limit.routed, key, (size_t)k, sent, &batch->out);
			rd_kafka_topic_partition_t *part =
				rd_kafka_topic_partition_list_find(batch->offsets, limit.events, msg->partition);
			if (!part)
				part = rd_kafka_topic_partition_list_add(batch->offsets, limit.events, msg->partition);
			part->offset = msg->offset + 1;
			batch->used = true;
		}
		rd_kafka_message_destroy(msg);
	}
	if (!batch->used)
		rd_kafka_topic_partition_list_destroy(batch->offsets);
}

static void *route(void *arg)
{
	rd_kafka_t *in = consumer("limit-route", limit.events), *out = sender(delivered);
	struct routed ring[ROUTE_OUT] = {0};
	int first = 0, next = 0;
	long serial = (long)now_ms() & 0xfffffff;
	(void)arg;
	while (!stopped) {
		if (!ring[next].used) {
			route_batch(in, out, &ring[next], &serial);
			next = (next + ring[next].used) % ROUTE_OUT;
		}
		rd_kafka_poll(out, ring[next].used ? 1 : 0);
		while (ring[first].used && !ring[first].out) {
			commit_offset(in, ring[first].offsets);
			ring[first] = (struct routed){0};
			first = (first + 1) % ROUTE_OUT;
		}
	}
	rd_kafka_flush(out, 5000);
	rd_kafka_consumer_close(in);
	rd_kafka_destroy(in);
	rd_kafka_destroy(out);
	return NULL;
}

/* --- the owner --- */

static struct lane lanes[LANES_MAX];

static void take(rd_kafka_t *in)
{
	rd_kafka_message_t *msg;
	for (int n = 0; n < 1024 && (msg = rd_kafka_consumer_poll(in, 0)); n++) {
		if (msg->err) {
			rd_kafka_message_destroy(msg);
			continue;
		}
		struct lane *lane = &lanes[msg->partition];
		if (lane->count == lane->cap) {
			lane->cap = lane->cap ? lane->cap * 2 : 256;
			lane->msgs = realloc(lane->msgs, (size_t)lane->cap * sizeof(*lane->msgs));
			if (!lane->msgs)
				die("take", "no memory");
		}
		lane->msgs[lane->count++] = msg;
	}
}

struct args { const char **ptr; size_t *len; int count, cap; };

static void arg(struct args *a, const char *ptr, size_t len)
{
	if (a->count == a->cap) {
		a->cap = a->cap ? a->cap * 2 : 4096;
		a->ptr = realloc(a->ptr, (size_t)a->cap * sizeof(*a->ptr));
		a->len = realloc(a->len, (size_t)a->cap * sizeof(*a->len));
		if (!a->ptr || !a->len)
			die("args", "no memory");
	}
	a->ptr[a->count] = ptr;
	a->len[a->count++] = len;
}

static void arg_str(struct args *a, const char *text)
{
	arg(a, text, strlen(text));
}

/* One script for the first `taken` records of the lane. */
static void append_script(int partition)
{
	static struct args a;
	static char names[LANES_MAX * 4096], outbox[4 << 20];
	struct lane *lane = &lanes[partition];
	char head[3][64], numbers[3][32];
	size_t used = 0, pair = limit.started.len + limit.completed.len + 2 * 160; /* what surrounds them as internal messages */
	const char *keys[4096], *members[4096];
	int n = lane->taken;
	a.count = 0;
	arg_str(&a, "EVALSHA");
	arg_str(&a, limit.sha);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", n + 3);
	arg_str(&a, numbers[0]);
	for (int i = 0; i < 3; i++) {
		snprintf(head[i], sizeof(head[i]), "limit:%c:{%d}", "pxe"[i], partition);
		arg_str(&a, head[i]);
	}
	for (int i = 0; i < n; i++) {
		const rd_kafka_message_t *msg = lane->msgs[i];
		keys[i] = names + used;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "limit:i:{%d}:%.*s", partition, (int)msg->key_len,
			(const char *)msg->key) + 1;
		members[i] = names + used;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "completed|bench-start|%.*s", (int)msg->key_len,
			(const char *)msg->key) + 1;
		arg_str(&a, keys[i]);
	}
	arg_str(&a, "1");
	snprintf(numbers[1], sizeof(numbers[1]), "%d", limit.fields * 2);
	arg_str(&a, numbers[1]);
	snprintf(numbers[2], sizeof(numbers[2]), "%lld", (long long)lane->msgs[n - 1]->offset);
	arg_str(&a, numbers[2]);
	arg(&a, outbox, pair * (size_t)n < sizeof(outbox) ? pair * (size_t)n : sizeof(outbox));
	for (int i = 0; i < n; i++)
		for (int f = 0; f < limit.fields; f++) {
			arg_str(&a, limit.names[f]);
			arg(&a, limit.values[f], limit.lens[f]);
		}
	for (int list = 0; list < 2; list++)
		for (int i = 0; i < n; i++) {
			arg_str(&a, "1795264202813");
			arg_str(&a, list ? members[i] + strlen("completed|bench-start|") : members[i]);
		}
	redisAppendCommandArgv(limit.redis, a.count, a.ptr, a.len);
}

static void emit(struct lane *lane, rd_kafka_t *out)
{
	void *reply;
	if (redisGetReply(limit.redis, &reply) != REDIS_OK)
		die("redis", limit.redis->errstr);
	if (((redisReply *)reply)->type != REDIS_REPLY_INTEGER || ((redisReply *)reply)->integer != 1)
		die("script", ((redisReply *)reply)->str ? ((redisReply *)reply)->str : "epoch");
	freeReplyObject(reply);
	for (int i = 0; i < lane->taken; i++) {
		rd_kafka_message_t *msg = lane->msgs[i];
		const char *id = (const char *)msg->key + strlen("default~");
		size_t len = msg->key_len - strlen("default~");
		send_one(out, limit.lifecycle, &limit.started, id, len, NULL, &lane->out);
		send_one(out, limit.lifecycle, &limit.completed, id, len, sent_of(msg), &lane->out);
		lane->applied = msg->offset;
		rd_kafka_message_destroy(msg);
	}
	lane->count -= lane->taken;
	memmove(lane->msgs, lane->msgs + lane->taken, (size_t)lane->count * sizeof(*lane->msgs));
	lane->taken = 0;
}

static void mirror(rd_kafka_t *in, int partition)
{
	struct lane *lane = &lanes[partition];
	if (lane->mirrored == lane->applied || now_ms() - lane->mirrored_at < 1000)
		return;
	rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(parts, limit.instances, partition)->offset = lane->applied + 1;
	commit_offset(in, parts);
	lane->mirrored = lane->applied;
	lane->mirrored_at = now_ms();
}

static void own(void)
{
	rd_kafka_t *in = consumer("limit-own", limit.instances), *out = sender(delivered);
	int count = partition_count(in, limit.instances);
	for (int p = 0; p < count; p++)
		freeReplyObject(ask("HSET limit:p:{%d} epoch 1", p));
	printf("ready\n");
	fflush(stdout);
	while (!stopped) {
		bool busy = false;
		take(in);
		for (int p = 0; p < count; p++) {
			struct lane *lane = &lanes[p];
			lane->taken = lane->out ? 0 : lane->count < limit.batch ? lane->count : limit.batch;
			if (lane->taken)
				append_script(p);
			busy = busy || lane->taken;
		}
		for (int p = 0; p < count; p++)
			if (lanes[p].taken)
				emit(&lanes[p], out);
		for (int p = 0; p < count; p++)
			mirror(in, p);
		rd_kafka_poll(out, busy ? 0 : 1);
	}
	rd_kafka_flush(out, 5000);
	rd_kafka_consumer_close(in);
	rd_kafka_destroy(in);
	rd_kafka_destroy(out);
}

static void connect_redis(void)
{
	char host[128];
	int port;
	const char *url = getenv("SLUICE_REDIS_URL");
	if (!url || sscanf(url, "redis://%127[^:]:%d", host, &port) != 2)
		die("SLUICE_REDIS_URL", "not redis://HOST:PORT/0");
	limit.redis = redisConnect(host, port);
	if (!limit.redis || limit.redis->err)
		die(url, limit.redis ? limit.redis->errstr : "no memory");
	redisReply *sha = ask("SCRIPT LOAD %s", script);
	snprintf(limit.sha, sizeof(limit.sha), "%s", sha->str);
	freeReplyObject(sha);
}

int main(int argc, char **argv)
{
	pthread_t router;
	if (argc != 4)
		die("usage", "limit FROM-PREFIX PREFIX BATCH");
	limit.from = argv[1];
	limit.prefix = argv[2];
	limit.batch = atoi(argv[3]);
	if (limit.batch < 1 || limit.batch > 1024)
		die("BATCH", "1 to 1024");
	topic(limit.events, limit.prefix, "events");
	topic(limit.instances, limit.prefix, "instances");
	topic(limit.lifecycle, limit.prefix, "lifecycle");
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	connect_redis();
	copy_records();
	copy_state();
	if (pthread_create(&router, NULL, route, NULL))
		die("thread", "cannot start");
	own();
	pthread_join(router, NULL);
	redisFree(limit.redis);
	return 0;
}
