/* Hash map with insertion order: a dense array of entries and an open-addressing index of their numbers. */
#include "common/base/map.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"

static uint64_t hash_of(const char *key, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, finished with a mix */
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)key[i]) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ (h >> 29);
}

void sl_map_init(struct sl_map *map)
{
	memset(map, 0, sizeof(*map));
}

void sl_map_release(struct sl_map *map, void (*free_value)(void *))
{
	if (!map)
		return;
	for (size_t i = 0; i < map->entry_count; i++) {
		if (!map->entries[i].key)
			continue;
		if (free_value)
			free_value(map->entries[i].value);
		free(map->entries[i].key);
	}
	free(map->entries);
	free(map->index);
	sl_map_init(map);
}

/* The index slot that holds the key, or the empty one where it would go. Removed entries keep their slot until the rebuild. */
static size_t slot_of(const struct sl_map *map, const char *key, size_t len, uint64_t hash)
{
	size_t mask = map->index_cap - 1, i = (size_t)hash & mask;
	while (map->index[i]) {
		const struct sl_map_entry *e = &map->entries[map->index[i] - 1];
		if (e->key && e->hash == hash && e->len == len && memcmp(e->key, key, len) == 0)
			break;
		i = (i + 1) & mask;
	}
	return i;
}

static void rebuild(struct sl_map *map)
{
	size_t n = 0;
	for (size_t i = 0; i < map->entry_count; i++)
		if (map->entries[i].key)
			map->entries[n++] = map->entries[i];
	map->entry_count = n;
	size_t cap = 8;
	while (cap < (n + 1) * 2)
		cap *= 2;
	free(map->index);
	map->index = calloc(cap, sizeof(*map->index));
	if (!map->index)
		sl_bug(__FILE__, __LINE__, "out of memory");
	map->index_cap = cap;
	if (cap > map->entry_cap || !map->entries) {
		map->entry_cap = cap;
		map->entries = realloc(map->entries, cap * sizeof(*map->entries));
		if (!map->entries)
			sl_bug(__FILE__, __LINE__, "out of memory");
	}
	for (size_t i = 0; i < n; i++) {
		size_t mask = cap - 1, s = (size_t)map->entries[i].hash & mask;
		while (map->index[s])
			s = (s + 1) & mask;
		map->index[s] = (uint32_t)(i + 1);
	}
}

void *sl_map_getn(const struct sl_map *map, const char *key, size_t len)
{
	if (!map->count)
		return NULL;
	size_t s = slot_of(map, key, len, hash_of(key, len));
	return map->index[s] ? map->entries[map->index[s] - 1].value : NULL;
}

void *sl_map_get(const struct sl_map *map, const char *key)
{
	return sl_map_getn(map, key, strlen(key));
}

void *sl_map_setn(struct sl_map *map, const char *key, size_t len, void *value)
{
	/* keep the index at most 3/4 full, counting the slots of removed entries */
	if (!map->index_cap || (map->entry_count + 1) * 4 > map->index_cap * 3 || map->entry_count == map->entry_cap)
		rebuild(map);
	uint64_t hash = hash_of(key, len);
	size_t s = slot_of(map, key, len, hash);
	if (map->index[s]) {
		struct sl_map_entry *e = &map->entries[map->index[s] - 1];
		void *old = e->value;
		e->value = value;
		return old;
	}
	char *copy = malloc(len + 1);
	if (!copy)
		sl_bug(__FILE__, __LINE__, "out of memory");
	memcpy(copy, key, len);
	copy[len] = '\0';
	map->entries[map->entry_count] = (struct sl_map_entry){copy, len, hash, value};
	map->index[s] = (uint32_t)++map->entry_count;
	map->count++;
	return NULL;
}

void *sl_map_set(struct sl_map *map, const char *key, void *value)
{
	return sl_map_setn(map, key, strlen(key), value);
}

void *sl_map_del(struct sl_map *map, const char *key)
{
	if (!map->count)
		return NULL;
	size_t len = strlen(key), s = slot_of(map, key, len, hash_of(key, len));
	if (!map->index[s])
		return NULL;
	struct sl_map_entry *e = &map->entries[map->index[s] - 1];
	void *old = e->value;
	free(e->key);
	e->key = NULL;
	e->value = NULL;
	map->count--;
	return old;
}
