/* What an actor remembers of the past: the last N marks (64-bit hashes of event identities or effect ids), for R6.
 *
 * Stored form: one small field per slot, so that taking one event writes one slot and not the whole ring. The owner
 * names the fields (`r:17`); the value is a JSON string of 16 hex digits. Which slot is written next is told by the
 * values: the highest bit of a mark is the number of the lap, even or odd, and the first slot of another lap than slot
 * 0's is next. So N may be changed by configuration while rings are stored: a longer ring grows at its end, what lies
 * behind the end of a shorter one stays remembered.
 *
 * Owner: an actor. One thread. An empty ring has no memory; it grows with its use. Out of memory aborts (R7). */
#ifndef SL_ENGINE_RING_H
#define SL_ENGINE_RING_H

#include "common/base/buf.h"
#include "common/model/value.h"
#include <stdbool.h>
#include <stdint.h>

struct sl_ring {
	uint32_t max;	     /* slots */
	uint32_t next;	     /* slot that is written next, below max (once `settled`) */
	uint32_t changed;    /* slots written since the last sl_ring_committed, the newest ones before `next` */
	bool settled;	     /* `next` and `lap` were found after loading */
	uint64_t lap;	     /* lap bit of the next write */
	struct sl_buf slots; /* uint64_t each, 0: empty */
	struct sl_buf
		index; /* uint16_t each: slot + 1 by hash, 0: empty; a power of two, none while the ring is small */
};

#define SL_RING_TEXT 19 /* a stored slot with quotes and NUL */

/* `max`: slots, 1..32768 (fewer or more are taken as these). */
void sl_ring_init(struct sl_ring *ring, int max);
void sl_ring_release(struct sl_ring *ring);

/* Mark of some bytes: never 0, never with the highest bit. Stored, so it is the same in every release and on every
 * machine. */
uint64_t sl_ring_mark(const void *bytes, size_t len);
uint64_t sl_ring_mark_text(const char *text);

bool sl_ring_has(struct sl_ring *ring, uint64_t mark);
/* Remembers; forgets the oldest when full. False: it was known already, nothing changed. */
bool sl_ring_add(struct sl_ring *ring, uint64_t mark);
/* Marks that are remembered, and the i-th of them, oldest first. */
uint32_t sl_ring_count(struct sl_ring *ring);
uint64_t sl_ring_at(struct sl_ring *ring, uint32_t i);

/* --- stored form --- */
/* Number of slots changed since load or the last commit; the i-th of them, and a slot's value as JSON text. */
uint32_t sl_ring_changed(const struct sl_ring *ring);
uint32_t sl_ring_changed_slot(const struct sl_ring *ring, uint32_t i);
void sl_ring_slot_text(const struct sl_ring *ring, uint32_t slot, char ret[static SL_RING_TEXT]);
void sl_ring_committed(struct sl_ring *ring);
/* Takes a stored slot, in any order. `slot_text`: what stands behind the prefix of the field's name ("17"). SL_EPARSE.
 */
SL_MUST_CHECK int sl_ring_load(struct sl_ring *ring, const char *slot_text, struct sl_bytes value);

/* The marks, oldest first, as an array of hex strings: what a successor inherits. */
jv sl_ring_json(struct sl_ring *ring);
/* Adds the marks of such an array; what is no mark is passed over. Borrows. */
void sl_ring_add_json(struct sl_ring *ring, jv marks);

/* Memory held, beside the struct. */
size_t sl_ring_bytes(const struct sl_ring *ring);

#endif
