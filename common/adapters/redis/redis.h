/* The store port on Redis: one pipelined connection on a libuv loop, one script per commit.
 *
 * Owner: the service. Loop thread only. After close the memory goes when the loop has run its close callbacks. */
#ifndef SL_ADAPTERS_REDIS_REDIS_H
#define SL_ADAPTERS_REDIS_REDIS_H

#include "common/base/diag.h"
#include "common/ports/store.h"
#include <stdbool.h>
#include <uv.h>

/* up: commands are taken from now on. Not up: text says why, and connecting goes on; told when the state or the reason
 * changes. */
typedef void (*sl_redis_state_fn)(void *arg, bool up, const char *text);

/* url: redis://[[user]:password@]host[:port][/db][?replicas=N&wait_ms=M&timeout_ms=T]
 *   replicas    confirmations of replicas that a commit waits for (WAIT); default 1 if Redis has any when we connect,
 * else 0 wait_ms     how long (default 5000); then the commit ends with SL_ELOST timeout_ms  silence after which the
 * connection counts as broken (default 10000) prefix: of all keys; NULL: "sluice". NULL is returned for a bad url
 * (sl_redis_url_check says why). Until the connection is up every call ends with SL_EUNREACHABLE. */
struct sl_store *sl_store_redis_new(
	uv_loop_t *loop, const char *url, const char *prefix, sl_redis_state_fn state, void *arg);
/* 0 or SL_ECONFIG with a diagnostic. */
SL_MUST_CHECK int sl_redis_url_check(const char *url, struct sl_diags *diags);
bool sl_redis_up(const struct sl_store *store);
/* Why it is not up (borrowed until the next call); NULL: it is, or it has not been tried yet. */
const char *sl_redis_trouble(const struct sl_store *store);

#endif
