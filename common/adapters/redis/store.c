/* The store port's other calls: take, reads, writes outside partitions, the check of Redis's settings. */
#include "common/adapters/redis/store.h"
#include "common/base/log.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char take_script[] = "redis.call('HINCRBY', KEYS[1], 'epoch', 1)\n"
				  "redis.call('HINCRBY', KEYS[1], 'takes', 1)\n"
				  "return redis.call('HGETALL', KEYS[1])\n";

static const char incr_script[] = "if redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2]) == 0 then redis.call('HDEL', "
				  "KEYS[1], ARGV[1]) end return 1";

/* --- telling --- */

void sl_redis_tell_done(struct request *req)
{
	if (req->call.done)
		req->call.done(req->arg, req->err, req->text);
}

static void tell_hashes(struct request *req)
{
	req->call.hashes(req->arg, req->err, req->err ? NULL : req->hashes, req->err ? 0 : req->count);
}

static void tell_range(struct request *req)
{
	req->call.range(req->arg, req->err, req->items, req->err ? 0 : req->count);
}

static void tell_stream(struct request *req)
{
	req->call.stream(req->arg, req->err, req->entries, req->err ? 0 : req->count);
}

/* --- replies --- */

static void hash_of(struct sl_arena *arena, const redisReply *reply, struct sl_hash *ret)
{
	ret->count = reply->type == REDIS_REPLY_ARRAY ? (int)(reply->elements / 2) : 0;
	ret->fields = SL_NEWN(arena, struct sl_kv, ret->count + 1);
	for (int i = 0; i < ret->count; i++) {
		const redisReply *name = reply->element[(size_t)i * 2], *value = reply->element[(size_t)i * 2 + 1];
		ret->fields[i].name = sl_arena_strn(arena, name->str, (size_t)name->len);
		ret->fields[i].value = sl_arena_strn(arena, value->str, (size_t)value->len);
		ret->fields[i].len = (size_t)value->len;
	}
}

static void take_hash(struct request *req, int n, const redisReply *reply)
{
	hash_of(&req->arena, reply, &req->hashes[n]);
}

static void take_range(struct request *req, int n, const redisReply *reply)
{
	(void)n;
	if (reply->type != REDIS_REPLY_ARRAY)
		return;
	req->count = (int)(reply->elements / 2);
	req->items = SL_NEWN(&req->arena, struct sl_scored, req->count + 1);
	for (int i = 0; i < req->count; i++) {
		const redisReply *member = reply->element[(size_t)i * 2], *score = reply->element[(size_t)i * 2 + 1];
		req->items[i].member = sl_arena_strn(&req->arena, member->str, (size_t)member->len);
		req->items[i].score = strtod(score->str, NULL);
	}
}

static void take_stream(struct request *req, int n, const redisReply *reply)
{
	(void)n;
	if (reply->type != REDIS_REPLY_ARRAY)
		return;
	req->count = (int)reply->elements;
	req->entries = SL_NEWN(&req->arena, struct sl_store_entry, req->count + 1);
	for (int i = 0; i < req->count; i++) {
		const redisReply *entry = reply->element[i];
		struct sl_hash *fields = SL_NEW(&req->arena, struct sl_hash);
		req->entries[i].id = sl_arena_strn(&req->arena, entry->element[0]->str, (size_t)entry->element[0]->len);
		hash_of(&req->arena, entry->element[1], fields);
		req->entries[i].fields = fields;
	}
}

/* --- the port --- */

static void redis_take(
	struct sl_store *store, const char *header, int32_t partition, sl_store_hashes_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, false, arg);
	sl_redis_resp_begin(&req->out, 4);
	sl_redis_resp_str(&req->out, "EVAL");
	sl_redis_resp_str(&req->out, take_script);
	sl_redis_resp_str(&req->out, "1");
	sl_redis_resp_key(&req->out, r, partition, header);
	req->commands = req->count = 1;
	req->hashes = SL_NEW(&req->arena, struct sl_hash);
	req->take = take_hash;
	req->tell = tell_hashes;
	req->call.hashes = done;
	sl_redis_request_send(req);
}

static void redis_load(struct sl_store *store, int32_t partition, const char *const *keys, int count,
	sl_store_hashes_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, false, arg);
	for (int i = 0; i < count; i++) {
		sl_redis_resp_begin(&req->out, 2);
		sl_redis_resp_str(&req->out, "HGETALL");
		sl_redis_resp_key(&req->out, r, partition, keys[i]);
	}
	req->commands = req->count = count;
	req->hashes = SL_NEWN(&req->arena, struct sl_hash, count + 1);
	req->take = take_hash;
	req->tell = tell_hashes;
	req->call.hashes = done;
	sl_redis_request_send(req);
}

static void resp_score(struct sl_buf *out, double score)
{
	char text[40];
	if (isinf(score))
		snprintf(text, sizeof(text), "%s", score < 0 ? "-inf" : "+inf");
	else
		snprintf(text, sizeof(text), "%.17g", score);
	sl_redis_resp_str(out, text);
}

static void redis_range(struct sl_store *store, int32_t partition, const char *key, double min, double max_score,
	int max, sl_store_range_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, false, arg);
	sl_redis_resp_begin(&req->out, 8);
	sl_redis_resp_str(&req->out, "ZRANGEBYSCORE");
	sl_redis_resp_key(&req->out, r, partition, key);
	resp_score(&req->out, min);
	resp_score(&req->out, max_score);
	sl_redis_resp_str(&req->out, "WITHSCORES");
	sl_redis_resp_str(&req->out, "LIMIT");
	sl_redis_resp_str(&req->out, "0");
	sl_redis_resp_int(&req->out, max);
	req->commands = 1;
	req->take = take_range;
	req->tell = tell_range;
	req->call.range = done;
	sl_redis_request_send(req);
}

static void redis_stream(
	struct sl_store *store, int32_t partition, const char *key, int max, sl_store_stream_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, false, arg);
	sl_redis_resp_begin(&req->out, 6);
	sl_redis_resp_str(&req->out, "XREVRANGE");
	sl_redis_resp_key(&req->out, r, partition, key);
	sl_redis_resp_str(&req->out, "+");
	sl_redis_resp_str(&req->out, "-");
	sl_redis_resp_str(&req->out, "COUNT");
	sl_redis_resp_int(&req->out, max);
	req->commands = 1;
	req->take = take_stream;
	req->tell = tell_stream;
	req->call.stream = done;
	sl_redis_request_send(req);
}

static void put_write(struct sl_buf *out, const struct redis *r, const struct sl_op *op)
{
	static const char *const verbs[] = {[SL_OP_HSET] = "HSET",
		[SL_OP_HDEL] = "HDEL",
		[SL_OP_HINCR] = "EVAL",
		[SL_OP_DEL] = "DEL",
		[SL_OP_ZADD] = "ZADD",
		[SL_OP_ZREM] = "ZREM",
		[SL_OP_XADD] = "XADD"};
	static const int args[] = {[SL_OP_HSET] = 4,
		[SL_OP_HDEL] = 3,
		[SL_OP_HINCR] = 6,
		[SL_OP_DEL] = 2,
		[SL_OP_ZADD] = 4,
		[SL_OP_ZREM] = 3,
		[SL_OP_XADD] = 8};
	sl_redis_resp_begin(out, args[op->kind]);
	sl_redis_resp_str(out, verbs[op->kind]);
	if (op->kind == SL_OP_HINCR) {
		sl_redis_resp_str(out, incr_script);
		sl_redis_resp_str(out, "1");
	}
	sl_redis_resp_key(out, r, -1, op->key);
	if (op->kind == SL_OP_XADD) {
		sl_redis_resp_str(out, "MAXLEN");
		sl_redis_resp_str(out, "~");
		sl_redis_resp_int(out, op->number);
		sl_redis_resp_str(out, "*");
	}
	if (op->kind == SL_OP_ZADD)
		sl_redis_resp_int(out, op->number);
	if (op->kind != SL_OP_DEL)
		sl_redis_resp_str(out, op->field);
	if (op->kind == SL_OP_HSET || op->kind == SL_OP_XADD)
		sl_redis_resp_arg(out, op->value.ptr, op->value.len);
	if (op->kind == SL_OP_HINCR)
		sl_redis_resp_int(out, op->number);
}

static void redis_write(struct sl_store *store, const struct sl_op *ops, int count, sl_store_done_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, true, arg);
	for (int i = 0; i < count; i++)
		put_write(&req->out, r, &ops[i]);
	req->commands = count;
	req->tell = sl_redis_tell_done;
	req->call.done = done;
	sl_redis_request_send(req);
}

/* --- check --- */

struct wanted {
	const char *setting, *value;
};
static const struct wanted wanted[] = {
	{"appendonly", "yes"}, {"appendfsync", "always"}, {"maxmemory-policy", "noeviction"}};
#define WANTED ((int)(sizeof(wanted) / sizeof(wanted[0])))

/* "name:123" of INFO; 0: not there. */
static int64_t info_number(const char *info, const char *name)
{
	const char *at = strstr(info, name);
	return at && (at == info || at[-1] == '\n') ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static void take_check(struct request *req, int n, const redisReply *reply)
{
	if (n < WANTED) {
		const char *value =
			reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 ? reply->element[1]->str : "";
		if (strcmp(value, wanted[n].value) != 0)
			sl_redis_request_fail(req, SL_ESTORE,
				"Redis has %s=%s and Sluice needs %s (CONFIG SET %s %s, and in redis.conf)",
				wanted[n].setting, value, wanted[n].value, wanted[n].setting, wanted[n].value);
		return;
	}
	if (reply->type != REDIS_REPLY_STRING)
		return;
	if (strstr(reply->str, "aof_last_write_status:err"))
		sl_redis_request_fail(req, SL_ESTORE,
			"Redis cannot write its append only file; make room on its disk and look at its log");
	if (strstr(reply->str, "role:slave"))
		sl_redis_request_fail(
			req, SL_ESTORE, "this Redis is a replica and takes no writes; point Sluice at the primary");
	int64_t used = info_number(reply->str, "used_memory:"), limit = info_number(reply->str, "maxmemory:");
	if (limit > 0 && used >= limit)
		sl_redis_request_fail(req, SL_ESTORE,
			"Redis is out of memory: %lld of %lld bytes used; raise maxmemory or free some, and keep "
			"maxmemory-policy "
			"noeviction",
			(long long)used, (long long)limit);
	const char *slaves = strstr(reply->str, "connected_slaves:");
	long have = slaves ? strtol(slaves + 17, NULL, 10) : 0;
	if (slaves && have < req->want)
		sl_redis_request_fail(
			req, SL_ESTORE, "Redis has %ld replicas and commits wait for %d", have, req->want);
}

static void redis_check(struct sl_store *store, sl_store_done_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, false, arg);
	for (int i = 0; i < WANTED; i++) {
		sl_redis_resp_begin(&req->out, 3);
		sl_redis_resp_str(&req->out, "CONFIG");
		sl_redis_resp_str(&req->out, "GET");
		sl_redis_resp_str(&req->out, wanted[i].setting);
	}
	sl_redis_resp_begin(&req->out, 2);
	sl_redis_resp_str(&req->out, "INFO");
	sl_redis_resp_str(&req->out, "persistence");
	sl_redis_resp_begin(&req->out, 2);
	sl_redis_resp_str(&req->out, "INFO");
	sl_redis_resp_str(&req->out, "memory");
	sl_redis_resp_begin(&req->out, 2);
	sl_redis_resp_str(&req->out, "INFO");
	sl_redis_resp_str(&req->out, "replication");
	req->commands = WANTED + 3;
	req->want = r->wait_replicas;
	req->take = take_check;
	req->tell = sl_redis_tell_done;
	req->call.done = done;
	sl_redis_request_send(req);
}

/* --- life --- */

static uint64_t redis_session(const struct sl_store *store)
{
	return ((const struct redis *)store)->session;
}

static void redis_close(struct sl_store *store)
{
	sl_redis_conn_close((struct redis *)store);
}

static const struct sl_store_ops ops = {
	.take = redis_take,
	.load = redis_load,
	.commit = sl_redis_commit,
	.range = redis_range,
	.stream = redis_stream,
	.write = redis_write,
	.check = redis_check,
	.session = redis_session,
	.close = redis_close,
};

struct sl_store *sl_store_redis_new(
	uv_loop_t *loop, const char *url, const char *prefix, sl_redis_state_fn state, void *arg)
{
	struct redis_url parsed;
	if (sl_redis_url_parse(url, &parsed, NULL))
		return NULL;
	struct redis *r = sl_redis_alloc(sizeof(*r));
	r->base.ops = &ops;
	r->loop = loop;
	r->url = parsed;
	r->prefix = strdup(prefix ? prefix : "sluice");
	sl_assert(r->prefix);
	r->state = state;
	r->state_arg = arg;
	r->later = sl_later_new(loop);
	sl_buf_init(&r->why);
	sl_redis_conn_start(r);
	return &r->base;
}

const char *sl_redis_trouble(const struct sl_store *store)
{
	const struct redis *r = (const struct redis *)store;
	return r->phase == PHASE_UP || !r->why.len ? NULL : r->why.data;
}

bool sl_redis_up(const struct sl_store *store)
{
	return ((const struct redis *)store)->phase == PHASE_UP;
}
