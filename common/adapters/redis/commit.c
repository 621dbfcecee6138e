/* The commit: operations grouped by key and kind, and the script that applies them if the epoch still holds. */
#include "common/adapters/redis/store.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include <stdlib.h>
#include <string.h>

/* KEYS: the header, then every other key once. ARGV: epoch, one letter a key (h hash, z sorted set, s stream, * any),
 * then groups: letter, number of the key, number of arguments, arguments. Answers 1, or 0 when the epoch has moved on.
 * Redis does not roll a script back, so everything that can be wrong is looked at before the first write. A group has
 * at most 1 000 arguments: Lua's unpack has little stack. */
const char sl_redis_commit_script[] =
	"if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end\n"
	"local kinds = {h = 'hash', z = 'zset', s = 'stream'}\n"
	"for i = 2, #KEYS do\n"
	"  local kind = kinds[string.sub(ARGV[2], i, i)]\n"
	"  if kind then\n"
	"    local t = redis.call('TYPE', KEYS[i]).ok\n"
	"    if t ~= 'none' and t ~= kind then return redis.error_reply('SLTYPE ' .. KEYS[i] .. ' holds a ' .. t) end\n"
	"  end\n"
	"end\n"
	"local verbs = {S = 'HSET', H = 'HDEL', Z = 'ZADD', R = 'ZREM'}\n"
	"local i, n = 3, #ARGV\n"
	"while i <= n do\n"
	"  local op, key, last = ARGV[i], KEYS[tonumber(ARGV[i + 1])], i + 2 + tonumber(ARGV[i + 2])\n"
	"  i = i + 3\n"
	"  if verbs[op] then\n"
	"    redis.call(verbs[op], key, unpack(ARGV, i, last))\n"
	"  elseif op == 'D' then\n"
	"    redis.call('DEL', key)\n"
	"  elseif op == 'I' then\n"
	"    for j = i, last, 2 do\n"
	"      if redis.call('HINCRBY', key, ARGV[j], ARGV[j + 1]) == 0 then redis.call('HDEL', key, ARGV[j]) end\n"
	"    end\n"
	"  else\n"
	"    for j = i, last, 3 do\n"
	"      redis.call('XADD', key, 'MAXLEN', '~', ARGV[j], '*', ARGV[j + 1], ARGV[j + 2])\n"
	"    end\n"
	"  end\n"
	"  i = last + 1\n"
	"end\n"
	"return 1\n";

#define GROUP_ARGS_MAX 1000

struct shape { /* of an operation in the script */
	char letter, type;
	int args;
};

static struct shape shape_of(enum sl_op_kind kind)
{
	switch (kind) {
	case SL_OP_HSET:
		return (struct shape){'S', 'h', 2};
	case SL_OP_HDEL:
		return (struct shape){'H', 'h', 1};
	case SL_OP_HINCR:
		return (struct shape){'I', 'h', 2};
	case SL_OP_DEL:
		return (struct shape){'D', '*', 0};
	case SL_OP_ZADD:
		return (struct shape){'Z', 'z', 2};
	case SL_OP_ZREM:
		return (struct shape){'R', 'z', 1};
	case SL_OP_XADD:
		return (struct shape){'X', 's', 3};
	}
	sl_bug(__FILE__, __LINE__, "operation %d", (int)kind);
}

struct group {
	int first, count, key; /* operations, number of the key (from 1) */
};

struct layout {
	struct sl_map keys; /* name -> number, as a pointer */
	char *types;
	struct group *groups;
	int group_count, args; /* args: of all groups */
};

static int key_number(struct layout *l, const char *key, char type)
{
	intptr_t number = (intptr_t)sl_map_get(&l->keys, key);
	if (!number) {
		number = (intptr_t)l->keys.count + 1;
		sl_map_set(&l->keys, key, (void *)number);
		l->types[number - 1] = type;
	} else if (l->types[number - 1] == '*') {
		l->types[number - 1] = type;
	}
	return (int)number;
}

static void lay_out(struct layout *l, struct sl_arena *arena, const struct sl_commit *commit)
{
	sl_map_init(&l->keys);
	l->types = sl_arena_alloc(arena, (size_t)commit->count + 2);
	l->groups = SL_NEWN(arena, struct group, commit->count + 1);
	l->group_count = l->args = 0;
	key_number(l, commit->header, 'h');
	struct group *g = NULL;
	for (int i = 0; i < commit->count; i++) {
		const struct sl_op *op = &commit->ops[i];
		struct shape s = shape_of(op->kind);
		bool same = g && commit->ops[g->first].kind == op->kind && s.args > 0 &&
			    (g->count + 1) * s.args <= GROUP_ARGS_MAX &&
			    (commit->ops[g->first].key == op->key || strcmp(commit->ops[g->first].key, op->key) == 0);
		if (!same) {
			g = &l->groups[l->group_count++];
			*g = (struct group){.first = i, .key = key_number(l, op->key, s.type)};
			l->args += 3;
		}
		g->count++;
		l->args += s.args;
	}
}

static void put_op(struct sl_buf *out, const struct sl_op *op)
{
	switch (op->kind) {
	case SL_OP_HSET:
		sl_redis_resp_str(out, op->field);
		sl_redis_resp_arg(out, op->value.ptr, op->value.len);
		break;
	case SL_OP_HDEL:
	case SL_OP_ZREM:
		sl_redis_resp_str(out, op->field);
		break;
	case SL_OP_HINCR:
		sl_redis_resp_str(out, op->field);
		sl_redis_resp_int(out, op->number);
		break;
	case SL_OP_ZADD:
		sl_redis_resp_int(out, op->number);
		sl_redis_resp_str(out, op->field);
		break;
	case SL_OP_XADD:
		sl_redis_resp_int(out, op->number);
		sl_redis_resp_str(out, op->field);
		sl_redis_resp_arg(out, op->value.ptr, op->value.len);
		break;
	case SL_OP_DEL:
		break;
	}
}

static void take_commit(struct request *req, int n, const redisReply *reply)
{
	if (n == 0 && reply->type == REDIS_REPLY_INTEGER && reply->integer == 0)
		sl_redis_request_fail(req, SL_EFENCED, "the partition has another owner");
	else if (n == 1 && reply->type == REDIS_REPLY_INTEGER && reply->integer < req->want)
		sl_redis_request_fail(
			req, SL_ELOST, "%lld of %d replicas confirmed in time", reply->integer, req->want);
}

static size_t bytes_of(const struct sl_commit *commit)
{
	size_t bytes = 512;
	for (int i = 0; i < commit->count; i++)
		bytes += commit->ops[i].value.len + 128;
	return bytes;
}

void sl_redis_commit(struct sl_store *store, const struct sl_commit *commit, sl_store_done_fn done, void *arg)
{
	struct redis *r = (struct redis *)store;
	struct request *req = sl_redis_request_new(r, true, arg);
	struct layout l;
	struct sl_buf *out = &req->out;
	lay_out(&l, &req->arena, commit);
	int keys = (int)l.keys.count;
	req->args = 3 + keys + 2 + l.args;
	sl_buf_reserve(out, bytes_of(commit));
	sl_redis_resp_begin(out, req->args);
	sl_redis_resp_str(out, "EVALSHA");
	sl_redis_resp_str(out, r->sha);
	req->head_len = out->len;
	sl_redis_resp_int(out, keys);
	sl_map_each(&l.keys, e) sl_redis_resp_key(out, r, commit->partition, e->key);
	sl_redis_resp_int(out, commit->epoch);
	sl_redis_resp_arg(out, l.types, (size_t)keys);
	for (int i = 0; i < l.group_count; i++) {
		const struct group *g = &l.groups[i];
		struct shape s = shape_of(commit->ops[g->first].kind);
		sl_redis_resp_arg(out, &s.letter, 1);
		sl_redis_resp_int(out, g->key);
		sl_redis_resp_int(out, (int64_t)g->count * s.args);
		for (int n = 0; n < g->count; n++)
			put_op(out, &commit->ops[g->first + n]);
	}
	sl_map_release(&l.keys, NULL);
	req->commands = 1;
	req->take = take_commit;
	req->tell = sl_redis_tell_done;
	req->call.done = done;
	req->want = r->wait_replicas;
	if (req->want > 0) { /* R10: also when a failover happens, the commit is there */
		sl_redis_resp_begin(out, 3);
		sl_redis_resp_str(out, "WAIT");
		sl_redis_resp_int(out, req->want);
		sl_redis_resp_int(out, r->url.wait_ms);
		req->commands = 2;
	}
	sl_redis_request_send(req);
}
