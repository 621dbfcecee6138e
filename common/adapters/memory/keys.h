/* What the store in memory holds: keys of Redis's types, each operation done at once. Private to memory/. */
#ifndef SL_ADAPTERS_MEMORY_KEYS_H
#define SL_ADAPTERS_MEMORY_KEYS_H

#include "common/adapters/memory/world.h"

/* Epoch in a header hash, -1 if there is none. */
int64_t sl_mem_keys_epoch(struct sl_memory *world, int32_t partition, const char *header);
/* Raises epoch and takes, then reads. */
void sl_mem_keys_take(
	struct sl_memory *world, int32_t partition, const char *header, struct sl_arena *arena, struct sl_hash *ret);
/* A copy in arena; a key of another type reads as absent. */
void sl_mem_keys_hash(
	struct sl_memory *world, int32_t partition, const char *key, struct sl_arena *arena, struct sl_hash *ret);
/* All or nothing: SL_ESTORE with a text when a key has another type or a number is none. */
int sl_mem_keys_apply(struct sl_memory *world, int32_t partition, const struct sl_op *ops, int count,
	struct sl_arena *arena, const char **ret_text);
int sl_mem_keys_range(struct sl_memory *world, int32_t partition, const char *key, double min, double max_score,
	int max, struct sl_arena *arena, struct sl_scored **ret);
int sl_mem_keys_stream(struct sl_memory *world, int32_t partition, const char *key, int max, struct sl_arena *arena,
	struct sl_store_entry **ret);

#endif
