/* Near timers: heap and hash table. */
#include "services/timer/due.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/text.h"

void sl_due_init(struct sl_due *due)
{
	memset(due, 0, sizeof(*due));
}

void sl_due_entry_free(struct sl_due_entry *entry)
{
	if (!entry)
		return;
	free(entry->traceparent);
	free(entry);
}

void sl_due_release(struct sl_due *due)
{
	for (size_t i = 0; i < due->bucket_count; i++) {
		for (struct sl_due_entry *entry = due->buckets[i], *next; entry; entry = next) {
			next = entry->chain;
			entry->chain = NULL;
			if (entry->state == SL_DUE_FIRING)
				entry->orphan = true;
			else
				sl_due_entry_free(entry);
		}
	}
	free(due->buckets);
	free(due->heap);
	sl_due_init(due);
}

/* --- heap --- */

static void place(struct sl_due *due, struct sl_due_entry *entry, uint32_t at)
{
	due->heap[at] = entry;
	entry->index = at;
}

static void sift_up(struct sl_due *due, struct sl_due_entry *entry, uint32_t at)
{
	while (at && due->heap[(at - 1) / 2]->due_ms > entry->due_ms) {
		place(due, due->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	place(due, entry, at);
}

static void sift_down(struct sl_due *due, struct sl_due_entry *entry, uint32_t at)
{
	for (;;) {
		uint32_t child = at * 2 + 1;
		if (child >= due->heap_count)
			break;
		if (child + 1 < due->heap_count && due->heap[child + 1]->due_ms < due->heap[child]->due_ms)
			child++;
		if (due->heap[child]->due_ms >= entry->due_ms)
			break;
		place(due, due->heap[child], at);
		at = child;
	}
	place(due, entry, at);
}

static void heap_add(struct sl_due *due, struct sl_due_entry *entry)
{
	if (due->heap_count == due->heap_cap) {
		due->heap_cap = due->heap_cap ? due->heap_cap * 2 : 64;
		due->heap = realloc(due->heap, due->heap_cap * sizeof(*due->heap));
		sl_assert(due->heap);
	}
	sift_up(due, entry, due->heap_count++);
}

static void heap_del(struct sl_due *due, struct sl_due_entry *entry)
{
	uint32_t at = entry->index;
	struct sl_due_entry *last = due->heap[--due->heap_count];
	if (last == entry)
		return;
	if (at && due->heap[(at - 1) / 2]->due_ms > last->due_ms)
		sift_up(due, last, at);
	else
		sift_down(due, last, at);
}

/* --- table --- */

static size_t bucket_of(const struct sl_due *due, const char *member)
{
	uint64_t hash = 1469598103934665603u; /* FNV-1a */
	for (; *member; member++)
		hash = (hash ^ (unsigned char)*member) * 1099511628211u;
	return (size_t)(hash ^ hash >> 32) & (due->bucket_count - 1);
}

static void grow(struct sl_due *due)
{
	struct sl_due_entry **old = due->buckets;
	size_t old_count = due->bucket_count;
	due->bucket_count = old_count ? old_count * 2 : 64;
	due->buckets = calloc(due->bucket_count, sizeof(*due->buckets));
	sl_assert(due->buckets);
	for (size_t i = 0; i < old_count; i++) {
		for (struct sl_due_entry *entry = old[i], *next; entry; entry = next) {
			next = entry->chain;
			size_t at = bucket_of(due, entry->member);
			entry->chain = due->buckets[at];
			due->buckets[at] = entry;
		}
	}
	free(old);
}

struct sl_due_entry *sl_due_find(const struct sl_due *due, const char *member)
{
	if (!due->bucket_count)
		return NULL;
	struct sl_due_entry *entry = due->buckets[bucket_of(due, member)];
	while (entry && strcmp(entry->member, member) != 0)
		entry = entry->chain;
	return entry;
}

static void unlink_entry(struct sl_due *due, struct sl_due_entry *entry)
{
	struct sl_due_entry **at = &due->buckets[bucket_of(due, entry->member)];
	while (*at != entry)
		at = &(*at)->chain;
	*at = entry->chain;
	entry->chain = NULL;
	due->count--;
}

static void add(struct sl_due *due, const char *member, int64_t due_ms, const char *traceparent)
{
	size_t len = strlen(member) + 1;
	struct sl_due_entry *entry = calloc(1, sizeof(*entry) + len);
	sl_assert(entry);
	memcpy(entry->member, member, len);
	entry->due_ms = due_ms;
	entry->traceparent = traceparent ? strdup(traceparent) : NULL;
	if (due->count >= due->bucket_count)
		grow(due);
	size_t at = bucket_of(due, member);
	entry->chain = due->buckets[at];
	due->buckets[at] = entry;
	due->count++;
	heap_add(due, entry);
}

/* --- the whole --- */

void sl_due_set(struct sl_due *due, const char *member, int64_t due_ms, const char *traceparent)
{
	struct sl_due_entry *entry = sl_due_find(due, member);
	if (entry && entry->due_ms == due_ms)
		return;
	if (entry && entry->state == SL_DUE_FIRED) {
		unlink_entry(due,
			entry); /* the old one still has to be removed from the store, before the new one enters it */
		entry->orphan = true;
		entry = NULL;
	}
	if (entry)
		sl_due_cancel(due, member);
	add(due, member, due_ms, traceparent);
}

bool sl_due_cancel(struct sl_due *due, const char *member)
{
	struct sl_due_entry *entry = sl_due_find(due, member);
	if (!entry || entry->state == SL_DUE_FIRED)
		return false;
	unlink_entry(due, entry);
	if (entry->state == SL_DUE_PENDING) {
		heap_del(due, entry);
		sl_due_entry_free(entry);
	} else {
		entry->orphan = true;
	}
	return true;
}

struct sl_due_entry *sl_due_first(const struct sl_due *due)
{
	return due->heap_count ? due->heap[0] : NULL;
}

struct sl_due_entry *sl_due_fire(struct sl_due *due)
{
	struct sl_due_entry *entry = sl_due_first(due);
	if (entry) {
		heap_del(due, entry);
		entry->state = SL_DUE_FIRING;
	}
	return entry;
}

void sl_due_back(struct sl_due *due, struct sl_due_entry *entry)
{
	entry->state = SL_DUE_PENDING;
	heap_add(due, entry);
}

void sl_due_forget(struct sl_due *due, struct sl_due_entry *entry)
{
	unlink_entry(due, entry);
	sl_due_entry_free(entry);
}
