/* Private to redis/: what the port's function table is made of. */
#ifndef SL_ADAPTERS_REDIS_STORE_H
#define SL_ADAPTERS_REDIS_STORE_H

#include "common/adapters/redis/conn.h"

/* commit.c */
void sl_redis_commit(struct sl_store *store, const struct sl_commit *commit, sl_store_done_fn done, void *arg);
/* store.c: calls req->call.done */
void sl_redis_tell_done(struct request *req);

#endif
