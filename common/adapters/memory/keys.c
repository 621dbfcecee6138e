/* Hashes, sorted sets and streams by name; the operations of a commit on them. */
#include "common/adapters/memory/keys.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { HASH, ZSET, STREAM };

struct blob {
	size_t len;
	double score;	     /* ZSET */
	char *field, id[48]; /* STREAM */
	char data[];
};

struct entry {
	enum type type;
	struct sl_map items;  /* HASH: field -> blob, ZSET: member -> blob */
	struct blob **stream; /* STREAM, oldest first */
	int stream_count, stream_cap;
	uint64_t stream_seq;
};

static void blob_free(void *ptr)
{
	struct blob *blob = ptr;
	if (!blob)
		return;
	free(blob->field);
	free(blob);
}

static struct blob *blob_new(struct sl_bytes value)
{
	struct blob *blob = sl_mem_new(sizeof(*blob) + value.len + 1);
	blob->len = value.len;
	if (value.len)
		memcpy(blob->data, value.ptr, value.len);
	return blob;
}

static void entry_free(void *ptr)
{
	struct entry *entry = ptr;
	if (!entry)
		return;
	sl_map_release(&entry->items, blob_free);
	for (int i = 0; i < entry->stream_count; i++)
		blob_free(entry->stream[i]);
	free(entry->stream);
	free(entry);
}

void sl_mem_store_free(struct sl_memory *world)
{
	sl_map_release(&world->keys, entry_free);
	sl_map_release(&world->old_keys, entry_free);
	free(world->store_text);
}

static const char *full_key(struct sl_memory *world, int32_t partition, const char *key)
{
	if (partition < 0)
		return key;
	sl_buf_clear(&world->scratch);
	sl_buf_printf(&world->scratch, "{%d}%s", partition, key);
	return world->scratch.data;
}

static struct entry *find(struct sl_memory *world, int32_t partition, const char *key)
{
	return sl_map_get(&world->keys, full_key(world, partition, key));
}

static struct entry *make(struct sl_memory *world, int32_t partition, const char *key, enum type type)
{
	struct entry *entry = find(world, partition, key);
	if (!entry) {
		entry = sl_mem_new(sizeof(*entry));
		entry->type = type;
		sl_map_init(&entry->items);
		sl_map_set(&world->keys, full_key(world, partition, key), entry);
	}
	return entry;
}

/* As in Redis, an empty hash or set is no key. */
static void drop_if_empty(struct sl_memory *world, int32_t partition, const char *key, struct entry *entry)
{
	if (entry->type != STREAM && entry->items.count == 0) {
		sl_map_del(&world->keys, full_key(world, partition, key));
		entry_free(entry);
	}
}

/* --- reading --- */

static int64_t number_of(const struct entry *entry, const char *field, int64_t missing)
{
	const struct blob *blob = entry ? sl_map_get(&entry->items, field) : NULL;
	int64_t number;
	return blob && sl_int_parse(blob->data, &number) == 0 ? number : missing;
}

int64_t sl_mem_keys_epoch(struct sl_memory *world, int32_t partition, const char *header)
{
	return number_of(find(world, partition, header), "epoch", -1);
}

void sl_mem_keys_hash(
	struct sl_memory *world, int32_t partition, const char *key, struct sl_arena *arena, struct sl_hash *ret)
{
	*ret = (struct sl_hash){0};
	struct entry *entry = find(world, partition, key);
	if (!entry || entry->type != HASH)
		return;
	ret->fields = SL_NEWN(arena, struct sl_kv, entry->items.count + 1);
	sl_map_each(&entry->items, e)
	{
		const struct blob *blob = e->value;
		struct sl_kv *kv = &ret->fields[ret->count++];
		kv->name = sl_arena_strn(arena, e->key, e->len);
		kv->value = sl_arena_strn(arena, blob->data, blob->len);
		kv->len = blob->len;
	}
}

static int by_score(const void *a, const void *b)
{
	const struct sl_scored *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return strcmp(x->member, y->member);
}

int sl_mem_keys_range(struct sl_memory *world, int32_t partition, const char *key, double min, double max_score,
	int max, struct sl_arena *arena, struct sl_scored **ret)
{
	struct entry *entry = find(world, partition, key);
	*ret = NULL;
	if (!entry || entry->type != ZSET)
		return 0;
	struct sl_scored *items = SL_NEWN(arena, struct sl_scored, entry->items.count + 1);
	int count = 0;
	sl_map_each(&entry->items, e)
	{
		const struct blob *blob = e->value;
		if (blob->score < min || blob->score > max_score)
			continue;
		items[count++] = (struct sl_scored){sl_arena_strn(arena, e->key, e->len), blob->score};
	}
	qsort(items, (size_t)count, sizeof(*items), by_score);
	*ret = items;
	return count < max ? count : max;
}

int sl_mem_keys_stream(struct sl_memory *world, int32_t partition, const char *key, int max, struct sl_arena *arena,
	struct sl_store_entry **ret)
{
	struct entry *entry = find(world, partition, key);
	*ret = NULL;
	if (!entry || entry->type != STREAM)
		return 0;
	int count = entry->stream_count < max ? entry->stream_count : max;
	*ret = SL_NEWN(arena, struct sl_store_entry, count + 1);
	for (int i = 0; i < count; i++) {
		const struct blob *blob = entry->stream[entry->stream_count - 1 - i];
		struct sl_hash *fields = SL_NEW(arena, struct sl_hash);
		fields->fields = SL_NEW(arena, struct sl_kv);
		fields->count = 1;
		fields->fields[0].name = sl_arena_str(arena, blob->field);
		fields->fields[0].value = sl_arena_strn(arena, blob->data, blob->len);
		fields->fields[0].len = blob->len;
		(*ret)[i].id = sl_arena_str(arena, blob->id);
		(*ret)[i].fields = fields;
	}
	return count;
}

/* --- writing --- */

static void set_field(struct entry *entry, const char *field, struct sl_bytes value)
{
	blob_free(sl_map_set(&entry->items, field, blob_new(value)));
}

static void add_number(struct entry *entry, const char *field, int64_t number)
{
	int64_t sum = number_of(entry, field, 0) + number;
	char text[32];
	int len = snprintf(text, sizeof(text), "%lld", (long long)sum);
	if (sum == 0)
		blob_free(sl_map_del(&entry->items, field));
	else
		set_field(entry, field, (struct sl_bytes){text, (size_t)len});
}

void sl_mem_keys_take(
	struct sl_memory *world, int32_t partition, const char *header, struct sl_arena *arena, struct sl_hash *ret)
{
	struct entry *entry = make(world, partition, header, HASH);
	add_number(entry, "epoch", 1);
	add_number(entry, "takes", 1);
	sl_mem_keys_hash(world, partition, header, arena, ret);
}

static void stream_add(struct sl_memory *world, struct entry *entry, const struct sl_op *op)
{
	if (entry->stream_count == entry->stream_cap) {
		entry->stream_cap = entry->stream_cap ? entry->stream_cap * 2 : 16;
		entry->stream = realloc(entry->stream, (size_t)entry->stream_cap * sizeof(struct blob *));
		sl_assert(entry->stream);
	}
	struct blob *blob = blob_new(op->value);
	blob->field = sl_mem_str(op->field);
	snprintf(blob->id, sizeof(blob->id), "%lld-%llu", (long long)world->now_ms,
		(unsigned long long)++entry->stream_seq);
	entry->stream[entry->stream_count++] = blob;
	int over = op->number > 0 && entry->stream_count > op->number ? entry->stream_count - (int)op->number : 0;
	for (int i = 0; i < over; i++)
		blob_free(entry->stream[i]);
	memmove(entry->stream, entry->stream + over, (size_t)(entry->stream_count - over) * sizeof(struct blob *));
	entry->stream_count -= over;
}

static enum type type_of(enum sl_op_kind kind)
{
	return kind == SL_OP_ZADD || kind == SL_OP_ZREM ? ZSET : kind == SL_OP_XADD ? STREAM : HASH;
}

static void apply(struct sl_memory *world, int32_t partition, const struct sl_op *op)
{
	bool makes =
		op->kind == SL_OP_HSET || op->kind == SL_OP_HINCR || op->kind == SL_OP_ZADD || op->kind == SL_OP_XADD;
	struct entry *entry =
		makes ? make(world, partition, op->key, type_of(op->kind)) : find(world, partition, op->key);
	if (!entry)
		return;
	switch (op->kind) {
	case SL_OP_HSET:
		set_field(entry, op->field, op->value);
		return;
	case SL_OP_HINCR:
		add_number(entry, op->field, op->number);
		break;
	case SL_OP_ZADD: {
		struct blob *blob = blob_new((struct sl_bytes){0});
		blob->score = (double)op->number;
		blob_free(sl_map_set(&entry->items, op->field, blob));
		return;
	}
	case SL_OP_HDEL:
	case SL_OP_ZREM:
		blob_free(sl_map_del(&entry->items, op->field));
		break;
	case SL_OP_XADD:
		stream_add(world, entry, op);
		return;
	case SL_OP_DEL:
		sl_map_del(&world->keys, full_key(world, partition, op->key));
		entry_free(entry);
		return;
	}
	drop_if_empty(world, partition, op->key, entry);
}

int sl_mem_keys_apply(struct sl_memory *world, int32_t partition, const struct sl_op *ops, int count,
	struct sl_arena *arena, const char **ret_text)
{
	for (int i = 0; i < count; i++) {
		const struct entry *entry = find(world, partition, ops[i].key);
		if (!entry || ops[i].kind == SL_OP_DEL)
			continue;
		if (entry->type != type_of(ops[i].kind)) {
			*ret_text = sl_arena_printf(
				arena, "key %s holds another type; somebody else writes here", ops[i].key);
			return SL_ESTORE;
		}
		if (ops[i].kind == SL_OP_HINCR && number_of(entry, ops[i].field, INT64_MIN) == INT64_MIN &&
			sl_map_get(&entry->items, ops[i].field)) {
			*ret_text = sl_arena_printf(arena, "field %s of key %s is no number", ops[i].field, ops[i].key);
			return SL_ESTORE;
		}
	}
	for (int i = 0; i < count; i++)
		apply(world, partition, &ops[i]);
	return 0;
}

/* --- for drivers --- */

static void kv_set(struct sl_kv *kv, const char *name, const char *value, size_t len)
{
	kv->name = sl_mem_str(name);
	kv->value = sl_mem_new(len + 1);
	memcpy(kv->value, value, len);
	kv->len = len;
}

struct sl_hash *sl_memory_peek(struct sl_memory *world, int32_t partition, const char *key)
{
	struct sl_hash *hash = sl_mem_new(sizeof(*hash));
	struct entry *entry = find(world, partition, key);
	if (!entry)
		return hash;
	hash->fields = sl_mem_new((entry->items.count + (size_t)entry->stream_count + 1) * sizeof(struct sl_kv));
	sl_map_each(&entry->items, e)
	{
		const struct blob *blob = e->value;
		char score[32];
		int len = snprintf(score, sizeof(score), "%.17g", blob->score);
		if (entry->type == ZSET)
			kv_set(&hash->fields[hash->count++], e->key, score, (size_t)len);
		else
			kv_set(&hash->fields[hash->count++], e->key, blob->data, blob->len);
	}
	for (int i = 0; i < entry->stream_count; i++)
		kv_set(&hash->fields[hash->count++], entry->stream[i]->id, entry->stream[i]->data,
			entry->stream[i]->len);
	return hash;
}

void sl_memory_hash_free(struct sl_hash *hash)
{
	if (!hash)
		return;
	for (int i = 0; i < hash->count; i++) {
		free(hash->fields[i].name);
		free(hash->fields[i].value);
	}
	free(hash->fields);
	free(hash);
}

void sl_memory_keys(struct sl_memory *world, void (*visit)(void *arg, int32_t partition, const char *key), void *arg)
{
	sl_map_each(&world->keys, e)
	{
		const char *end = e->key[0] == '{' ? strchr(e->key, '}') : NULL;
		visit(arg, end ? (int32_t)strtol(e->key + 1, NULL, 10) : -1, end ? end + 1 : e->key);
	}
}

struct sl_memory_backup {
	struct sl_map keys;
};

static struct blob *blob_copy(const struct blob *src)
{
	struct blob *copy = blob_new((struct sl_bytes){src->data, src->len});
	copy->score = src->score;
	copy->field = sl_mem_str(src->field);
	memcpy(copy->id, src->id, sizeof(copy->id));
	return copy;
}

static void keys_copy(struct sl_map *dst, const struct sl_map *src)
{
	sl_map_init(dst);
	sl_map_each(src, e)
	{
		const struct entry *old = e->value;
		struct entry *entry = sl_mem_new(sizeof(*entry));
		entry->type = old->type;
		sl_map_init(&entry->items);
		sl_map_each(&old->items, i) sl_map_setn(&entry->items, i->key, i->len, blob_copy(i->value));
		entry->stream_count = entry->stream_cap = old->stream_count;
		entry->stream_seq = old->stream_seq;
		if (old->stream_count)
			entry->stream = sl_mem_new((size_t)old->stream_count * sizeof(struct blob *));
		for (int i = 0; i < old->stream_count; i++)
			entry->stream[i] = blob_copy(old->stream[i]);
		sl_map_setn(dst, e->key, e->len, entry);
	}
}

struct sl_memory_backup *sl_memory_backup(struct sl_memory *world)
{
	struct sl_memory_backup *backup = sl_mem_new(sizeof(*backup));
	keys_copy(&backup->keys, &world->keys);
	return backup;
}

void sl_memory_restore(struct sl_memory *world, const struct sl_memory_backup *backup)
{
	sl_mem_store_replaced(world, false);
	sl_map_release(&world->keys, entry_free);
	keys_copy(&world->keys, &backup->keys);
}

void sl_memory_restore_beside(struct sl_memory *world, const struct sl_memory_backup *backup)
{
	sl_mem_store_replaced(world, true);
	sl_map_release(&world->old_keys, entry_free);
	world->old_keys = world->keys;
	keys_copy(&world->keys, &backup->keys);
}

void sl_memory_backup_free(struct sl_memory_backup *backup)
{
	if (!backup)
		return;
	sl_map_release(&backup->keys, entry_free);
	free(backup);
}
