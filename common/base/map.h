/* Hash map from byte strings to pointers, insertion order kept for iteration. Keys are copied.
 * One thread, the caller's memory; values belong to the caller. */
#ifndef SL_BASE_MAP_H
#define SL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_map_entry {
	char *key;              /* NUL-terminated copy; NULL: removed */
	size_t len;
	uint64_t hash;
	void *value;
};
struct sl_map {
	struct sl_map_entry *entries;   /* in order of insertion, holes where key is NULL */
	size_t entry_count, entry_cap;  /* used slots including holes */
	uint32_t *index;                /* entry number + 1; 0 empty */
	size_t index_cap;               /* power of two */
	size_t count;                   /* live entries */
};

void sl_map_init(struct sl_map *map);
/* Frees keys and table; each value goes to free_value first unless that is NULL. */
void sl_map_release(struct sl_map *map, void (*free_value)(void *));
/* NULL if absent. */
void *sl_map_get(const struct sl_map *map, const char *key);
void *sl_map_getn(const struct sl_map *map, const char *key, size_t len);
/* Stores; returns the value that was there before (the caller's again) or NULL. */
void *sl_map_set(struct sl_map *map, const char *key, void *value);
void *sl_map_setn(struct sl_map *map, const char *key, size_t len, void *value);
/* Removes; returns the value that was there or NULL. Safe during sl_map_each on any entry. */
void *sl_map_del(struct sl_map *map, const char *key);

#define sl_map_each(map, e)                                                                        \
	for (struct sl_map_entry *e = (map)->entries, *e##_end = e ? e + (map)->entry_count : e;   \
	     e != e##_end; e++)                                                                    \
		if (e->key)

#endif
