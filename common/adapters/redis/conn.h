/* Private to redis/: the connection, and requests that wait for its replies. */
#ifndef SL_ADAPTERS_REDIS_CONN_H
#define SL_ADAPTERS_REDIS_CONN_H

#include "common/adapters/redis/redis.h"
#include "common/adapters/uv/glue.h"
#include "common/base/arena.h"
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

struct redis;
struct request;

enum phase { PHASE_DOWN, PHASE_CONNECTING, PHASE_SETUP, PHASE_UP, PHASE_CLOSED };

struct redis_url {
	char *host, *user, *password;
	int port, db, replicas; /* replicas -1: as many as one, if there is one */
	int wait_ms, timeout_ms;
};

/* One call of the port: one or more commands, answered together. */
struct request {
	struct request *prev, *next;
	struct redis *redis;
	struct sl_arena arena;
	struct sl_buf out; /* its commands, formatted */
	int commands, replies;
	bool writes; /* lost answer: SL_ELOST, else SL_EUNREACHABLE */
	bool again;  /* sent a second time with the script's text */
	int err;
	const char *text;
	/* Takes reply number n; an error reply never comes here. */
	void (*take)(struct request *req, int n, const redisReply *reply);
	/* Tells the caller. */
	void (*tell)(struct request *req);
	/* results */
	struct sl_hash *hashes;
	struct sl_scored *items;
	struct sl_store_entry *entries;
	int count, want;
	size_t head_len; /* of out: what EVAL replaces (commit) */
	int args;
	union {
		sl_store_done_fn done;
		sl_store_hashes_fn hashes;
		sl_store_range_fn range;
		sl_store_stream_fn stream;
	} call;
	void *arg;
};

struct redis {
	struct sl_store base;
	uv_loop_t *loop;
	struct redis_url url;
	char *prefix;
	sl_redis_state_fn state;
	void *state_arg;
	struct sl_later *later;
	uv_timer_t timer; /* reconnection and watchdog */
	redisAsyncContext *ac;
	enum phase phase;
	int setup_left, backoff_ms;
	uint64_t heard_at; /* loop time of the last sign of life */
	uint64_t retry_at;
	uint64_t session; /* connections so far */
	struct sl_buf why;
	char sha[48]; /* of the commit script */
	int wait_replicas;
	struct request *first, *last; /* not yet told */
};

extern const char sl_redis_commit_script[];

void *sl_redis_alloc(size_t size);
int sl_redis_url_parse(const char *url, struct redis_url *ret, struct sl_diags *diags);
void sl_redis_url_release(struct redis_url *url);

/* --- formatting (RESP) --- */
void sl_redis_resp_begin(struct sl_buf *out, int args);
void sl_redis_resp_arg(struct sl_buf *out, const void *bytes, size_t len);
void sl_redis_resp_str(struct sl_buf *out, const char *text);
void sl_redis_resp_int(struct sl_buf *out, int64_t number);
/* PREFIX:i:{P}:rest of "i:rest"; PREFIX:key for partition -1. */
void sl_redis_resp_key(struct sl_buf *out, const struct redis *r, int32_t partition, const char *key);

/* --- requests --- */
struct request *sl_redis_request_new(struct redis *r, bool writes, void *arg);
/* Sends what is in out (req->commands of them); takes the request. */
void sl_redis_request_send(struct request *req);
void sl_redis_request_fail(struct request *req, int err, const char *fmt, ...) SL_PRINTF(3, 4);
/* Maps an error reply to a code and a text with the cure; false: the script is not known (NOSCRIPT). */
bool sl_redis_request_error(struct request *req, const char *reply);

void sl_redis_conn_start(struct redis *r);
void sl_redis_conn_close(struct redis *r);

#endif
