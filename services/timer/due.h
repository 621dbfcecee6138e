/* Timers of the near horizon in memory: a binary heap by due time and a hash table by name. Pure.
 *
 *   PENDING (in the heap) -> FIRING (its record is on the way) -> FIRED (delivered, to be removed from the store) ->
 * gone */
#ifndef SL_TIMER_DUE_H
#define SL_TIMER_DUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_due_state { SL_DUE_PENDING, SL_DUE_FIRING, SL_DUE_FIRED };
struct sl_due_entry {
	int64_t due_ms;
	struct sl_due_entry *chain; /* hash table */
	char *traceparent;	    /* NULL: none; owned */
	uint32_t index;		    /* in the heap, PENDING only */
	uint8_t state;
	bool orphan;   /* no longer in the table; whoever holds it frees it */
	char member[]; /* "NS~INSTANCE~TOKEN" */
};

struct sl_due {
	struct sl_due_entry **heap;
	uint32_t heap_count, heap_cap;
	struct sl_due_entry **buckets;
	size_t bucket_count, count; /* count: all states */
};

void sl_due_init(struct sl_due *due);
/* Frees all entries but those FIRING: they become orphans, freed with sl_due_entry_free when their delivery is known.
 * Orphans are not in the table: their holder frees them. */
void sl_due_release(struct sl_due *due);

/* Adds a timer or moves it; traceparent is copied, NULL: none. One that is already firing stays as it is when its due
 * time is the same, else a new one takes its place and the old one becomes an orphan. */
void sl_due_set(struct sl_due *due, const char *member, int64_t due_ms, const char *traceparent);
/* Removes it; false: not here. One that is FIRING becomes an orphan, a FIRED one stays to be removed from the store. */
bool sl_due_cancel(struct sl_due *due, const char *member);
struct sl_due_entry *sl_due_find(const struct sl_due *due, const char *member);
/* The earliest pending one, NULL: none. */
struct sl_due_entry *sl_due_first(const struct sl_due *due);
/* Takes the earliest out of the heap; it is FIRING then. */
struct sl_due_entry *sl_due_fire(struct sl_due *due);
/* A FIRING one could not be sent: pending again. */
void sl_due_back(struct sl_due *due, struct sl_due_entry *entry);
/* Takes a FIRED entry out of the table and frees it. */
void sl_due_forget(struct sl_due *due, struct sl_due_entry *entry);
void sl_due_entry_free(struct sl_due_entry *entry);

#endif
