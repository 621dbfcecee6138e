/* Requests: formatting, sending, collecting replies, and what Redis's errors mean. */
#include "common/adapters/redis/conn.h"
#include "common/base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- RESP --- */

static void put_count(struct sl_buf *out, char mark, int64_t number)
{
	char text[24];
	int at = (int)sizeof(text);
	uint64_t n = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	text[--at] = '\n';
	text[--at] = '\r';
	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	text[--at] = mark;
	sl_buf_add(out, text + at, sizeof(text) - (size_t)at);
}

void sl_redis_resp_begin(struct sl_buf *out, int args)
{
	put_count(out, '*', args);
}

void sl_redis_resp_arg(struct sl_buf *out, const void *bytes, size_t len)
{
	put_count(out, '$', (int64_t)len);
	if (len)
		sl_buf_add(out, bytes, len);
	sl_buf_add(out, "\r\n", 2);
}

void sl_redis_resp_str(struct sl_buf *out, const char *text)
{
	sl_redis_resp_arg(out, text, strlen(text));
}

void sl_redis_resp_int(struct sl_buf *out, int64_t number)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%lld", (long long)number);
	sl_redis_resp_arg(out, text, (size_t)len);
}

void sl_redis_resp_key(struct sl_buf *out, const struct redis *r, int32_t partition, const char *key)
{
	char tag[24] = "";
	size_t prefix = strlen(r->prefix), kind = strcspn(key, ":"), rest = strlen(key) - kind;
	int tag_len = partition < 0 ? 0 : snprintf(tag, sizeof(tag), ":{%d}", partition);
	put_count(out, '$', (int64_t)(prefix + 1 + kind + (size_t)tag_len + rest));
	sl_buf_add(out, r->prefix, prefix);
	sl_buf_addc(out, ':');
	sl_buf_add(out, key, kind);
	sl_buf_add(out, tag, (size_t)tag_len);
	sl_buf_add(out, key + kind, rest);
	sl_buf_add(out, "\r\n", 2);
}

/* --- life of a request --- */

struct request *sl_redis_request_new(struct redis *r, bool writes, void *arg)
{
	struct request *req = sl_redis_alloc(sizeof(*req));
	req->redis = r;
	req->writes = writes;
	req->arg = arg;
	sl_arena_init(&req->arena);
	sl_buf_init(&req->out);
	req->prev = r->last;
	if (r->last)
		r->last->next = req;
	else
		r->first = req;
	r->last = req;
	return req;
}

static void request_free(struct request *req)
{
	struct redis *r = req->redis;
	if (req->prev)
		req->prev->next = req->next;
	else
		r->first = req->next;
	if (req->next)
		req->next->prev = req->prev;
	else
		r->last = req->prev;
	sl_arena_release(&req->arena);
	sl_buf_release(&req->out);
	free(req);
}

void sl_redis_request_fail(struct request *req, int err, const char *fmt, ...)
{
	if (req->err)
		return; /* the first reason counts */
	struct sl_buf text;
	va_list ap;
	sl_buf_init(&text);
	va_start(ap, fmt);
	sl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	req->err = err;
	req->text = sl_arena_str(&req->arena, text.data);
	sl_buf_release(&text);
}

static void finish(struct request *req)
{
	if (req->redis->phase != PHASE_CLOSED)
		req->tell(req);
	request_free(req);
}

static void lost(struct request *req)
{
	if (req->writes)
		sl_redis_request_fail(req, SL_ELOST, "the connection to Redis broke before the answer came");
	else
		sl_redis_request_fail(req, SL_EUNREACHABLE, "the connection to Redis broke");
}

static void not_sent(void *arg, bool cancelled)
{
	(void)cancelled;
	finish(arg);
}

/* With the script's text: Redis was restarted or its scripts were flushed. */
static bool send_again(struct request *req);

static void on_reply(redisAsyncContext *ac, void *ptr, void *arg)
{
	(void)ac;
	struct request *req = arg;
	const redisReply *reply = ptr;
	int n = req->replies++;
	req->redis->heard_at = uv_now(req->redis->loop);
	if (!reply)
		lost(req);
	else if (reply->type == REDIS_REPLY_ERROR && !sl_redis_request_error(req, reply->str))
		req->again = true;
	else if (reply->type != REDIS_REPLY_ERROR && !req->err && req->take)
		req->take(req, n, reply);
	if (req->replies < req->commands)
		return;
	if (req->again && !req->err && send_again(req))
		return;
	finish(req);
}

/* One formatted command from `at` on; returns where the next one begins. */
static size_t command_len(const char *data, size_t at)
{
	char *end;
	long args = strtol(data + at + 1, &end, 10);
	at = (size_t)(end - data) + 2;
	for (long i = 0; i < args; i++) {
		long len = strtol(data + at + 1, &end, 10);
		at = (size_t)(end - data) + 2 + (size_t)len + 2;
	}
	return at;
}

void sl_redis_request_send(struct request *req)
{
	struct redis *r = req->redis;
	if (r->phase != PHASE_UP || !r->ac) {
		sl_redis_request_fail(
			req, SL_EUNREACHABLE, "%s", r->why.len ? r->why.data : "Redis is not connected yet");
		sl_later_add(r->later, not_sent, req);
		return;
	}
	if (req->commands == 0) { /* nothing to ask */
		sl_later_add(r->later, not_sent, req);
		return;
	}
	if (r->first == req)
		r->heard_at = uv_now(r->loop);
	size_t at = 0;
	int sent = 0;
	for (; sent < req->commands; sent++) {
		size_t end = req->commands == 1 ? req->out.len : command_len(req->out.data, at);
		if (redisAsyncFormattedCommand(r->ac, on_reply, req, req->out.data + at, end - at) != REDIS_OK)
			break;
		at = end;
	}
	if (sent == req->commands)
		return;
	/* The connection is just ending: nothing more goes out, what went before is answered with NULL. */
	req->commands = sent;
	lost(req);
	if (sent == 0)
		sl_later_add(r->later, not_sent, req);
}

static bool send_again(struct request *req)
{
	struct redis *r = req->redis;
	if (!req->head_len || !r->ac)
		return false;
	struct sl_buf out;
	sl_buf_init(&out);
	sl_buf_reserve(&out, req->out.len + 8192);
	sl_redis_resp_begin(&out, req->args);
	sl_redis_resp_str(&out, "EVAL");
	sl_redis_resp_str(&out, sl_redis_commit_script);
	sl_buf_add(&out, req->out.data + req->head_len, req->out.len - req->head_len);
	sl_buf_release(&req->out);
	req->out = out;
	req->head_len = 0;
	req->again = false;
	req->replies = 0;
	sl_redis_request_send(req);
	return true;
}

/* --- errors --- */

static bool says(const char *reply, const char *word)
{
	return strstr(reply, word) != NULL;
}

bool sl_redis_request_error(struct request *req, const char *reply)
{
	if (strncmp(reply, "NOSCRIPT", 8) == 0 && req->head_len)
		return false;
	if (says(reply, "READONLY"))
		sl_redis_request_fail(req, SL_ESTORE,
			"this Redis is a replica and takes no writes (%s); point Sluice at the primary", reply);
	else if (says(reply, "OOM command"))
		sl_redis_request_fail(req, SL_ESTORE,
			"Redis is out of memory (%s); raise maxmemory or free some, and keep maxmemory-policy "
			"noeviction",
			reply);
	else if (says(reply, "MISCONF") || says(reply, "No space left"))
		sl_redis_request_fail(req, SL_ESTORE,
			"Redis cannot write its file (%s); make room on its disk and look at its log", reply);
	else if (says(reply, "NOAUTH") || says(reply, "NOPERM") || says(reply, "WRONGPASS"))
		sl_redis_request_fail(req, SL_ESTORE,
			"Redis refuses this user (%s); check user, password and their permissions", reply);
	else if (says(reply, "NOREPLICAS"))
		sl_redis_request_fail(req, SL_ESTORE,
			"Redis misses replicas (%s); bring them back or lower min-replicas-to-write", reply);
	else if (says(reply, "CLUSTERDOWN") || says(reply, "MOVED ") || says(reply, "CROSSSLOT"))
		sl_redis_request_fail(req, SL_ESTORE, "this is a Redis Cluster (%s); Sluice needs one primary", reply);
	else if (strncmp(reply, "LOADING", 7) == 0 || strncmp(reply, "BUSY", 4) == 0 ||
		 strncmp(reply, "MASTERDOWN", 10) == 0)
		sl_redis_request_fail(req, SL_EUNREACHABLE, "Redis is not ready (%s)", reply);
	else if (says(reply, "SLTYPE"))
		sl_redis_request_fail(req, SL_ESTORE,
			"somebody else writes Sluice's keys: %s; give Sluice a prefix or a database of its own", reply);
	else
		sl_redis_request_fail(req, SL_ESTORE, "Redis says: %s", reply);
	return true;
}
