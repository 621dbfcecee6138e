/* Port: the store. Adapters: redis/ (hiredis) and memory/. Same thread rules as the broker.
 *
 * Keys are given without prefix and hash tag: the adapter makes "sluice:i:{7}:default~id" of partition 7 and "i:default~id".
 * Contract (tests/contract/test_store.c): a commit is applied whole or not at all, in the order of its operations, and only if
 * `epoch` is the header's epoch. An answer may be lost (SL_ELOST): then either may be the case (R4). */
#ifndef SL_PORTS_STORE_H
#define SL_PORTS_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/buf.h"

enum sl_op_kind {
	SL_OP_HSET,             /* key, field, value */
	SL_OP_HDEL,             /* key, field */
	SL_OP_HINCR,            /* key, field, number; a field that reaches 0 is removed */
	SL_OP_DEL,              /* key */
	SL_OP_ZADD,             /* key, field = member, number = score */
	SL_OP_ZREM,             /* key, field = member */
	SL_OP_XADD              /* key (stream, bounded by number), field, value */
};
struct sl_op {
	enum sl_op_kind kind;
	const char *key;        /* "i:NS~ID", "m:NS~HOME", "x", "e", "why", "p", ... */
	const char *field;
	struct sl_bytes value;
	int64_t number;
};
struct sl_commit {
	const char *header;     /* "p" (instances) or "tp" (timers): key of the partition's header hash */
	int32_t partition;
	int64_t epoch;
	const struct sl_op *ops;
	int count;
};
struct sl_kv { char *name; char *value; size_t len; };  /* NUL-terminated copies */
struct sl_hash { struct sl_kv *fields; int count; };    /* count 0: no such key */

/* Callbacks borrow what they are given. err: SL_EFENCED, SL_ELOST, SL_ESTORE (text names the cure), SL_EUNREACHABLE. */
typedef void (*sl_store_done_fn)(void *arg, int err, const char *text);
typedef void (*sl_store_hashes_fn)(void *arg, int err, const struct sl_hash *hashes, int count);
struct sl_scored { const char *member; double score; };
typedef void (*sl_store_range_fn)(void *arg, int err, const struct sl_scored *items, int count);
struct sl_store_entry { const char *id; const struct sl_hash *fields; };
typedef void (*sl_store_stream_fn)(void *arg, int err, const struct sl_store_entry *items, int count);

struct sl_store;
struct sl_store_ops {
	/* Raises the epoch of the header hash, counts field `takes` up (R7), then reads the hash: hashes[0]. */
	void (*take)(struct sl_store *store, const char *header, int32_t partition, sl_store_hashes_fn done, void *arg);
	/* Whole hashes, one pipelined read. */
	void (*load)(struct sl_store *store, int32_t partition, const char *const *keys, int count, sl_store_hashes_fn done, void *arg);
	/* One script (slices of at most 1 000 operations' arguments inside). The commit and all it points to is copied before return. */
	void (*commit)(struct sl_store *store, const struct sl_commit *commit, sl_store_done_fn done, void *arg);
	/* Members of a zset by score, lowest first, at most `max`. */
	void (*range)(struct sl_store *store, int32_t partition, const char *key, double min, double max_score, int max, sl_store_range_fn done, void *arg);
	/* Newest entries of a stream first. partition -1: a key without hash tag ("why"). */
	void (*stream)(struct sl_store *store, int32_t partition, const char *key, int max, sl_store_stream_fn done, void *arg);
	/* Operations outside any partition (partition -1 keys: "defs", "routed", "schema:FP", "why"); not fenced. HINCR-like raise: SL_OP_HSET only. */
	void (*write)(struct sl_store *store, const struct sl_op *ops, int count, sl_store_done_fn done, void *arg);
	/* Another number than before: the connection is a new one, and behind it may be an older store (a backup, a replica that took over).
	 * Its epochs may then be ours again: whoever has taken partitions must take them anew before the next commit (R10). */
	uint64_t (*session)(const struct sl_store *store);
	/* Is it up, with the settings that R10 wants? text names what is wrong. */
	void (*check)(struct sl_store *store, sl_store_done_fn done, void *arg);
	void (*close)(struct sl_store *store);
};
struct sl_store { const struct sl_store_ops *ops; };

#endif
