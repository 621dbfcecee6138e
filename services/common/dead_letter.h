/* Dead letters of records that cannot be processed (design section 2, R9): the record as it is, with why and where from
 * in headers behind its own: [`sluice-redriven`] [`sluice-cut-from-bytes`] `sluice-reason`, `sluice-origin-topic`,
 * `-partition`,
 * `-offset`, `sluice-attempts`. A letter that the engine writes about an event that it had decoded already is that
 * event in structured mode, with `sluice-reason`, `sluice-namespace`, `sluice-instance` and, where it is known, the
 * origin.
 *
 * What a record brings along itself may have such names too: only the last headers, in this order, are ours. */
#ifndef SL_SERVICES_DEAD_LETTER_H
#define SL_SERVICES_DEAD_LETTER_H

#include "common/base/arena.h"
#include "common/ports/broker.h"

/* Everything is copied into arena. A value above bytes_max is cut to 64 KiB and `sluice-cut-from-bytes` tells its size.
 * A record that was redriven counts its attempts on.
 */
void sl_dead_letter_record(const char *topic, const struct sl_record *rec, const char *reason, size_t bytes_max,
	struct sl_arena *arena, struct sl_record *ret);

struct sl_dead_letter {
	const char *reason, *origin_topic, *ns, *instance; /* NULL: not told */
	const char *redriven;				   /* the letter that it was redriven from; NULL: none */
	int32_t origin_partition;			   /* -1: not told */
	int64_t origin_offset;				   /* -1: not told */
	int64_t attempts;
	int64_t cut_from; /* bytes of the whole value; 0: the value is whole */
	bool raw;	  /* the record as it came; else an event that the engine wrote (ns is told) */
	int header_count; /* of the record's own headers, which come first */
};
/* Reads a letter's headers; texts in arena. SL_ESCHEMA: no letter of ours. */
SL_MUST_CHECK int sl_dead_letter_parse(const struct sl_record *rec, struct sl_arena *arena, struct sl_dead_letter *ret);

/* The record that a letter stands for, as it goes to `topic` again: its own headers, then `sluice-redriven: LETTER` and
 * how often it was tried. `value` is given apart: a letter may hold only its beginning. Headers are in arena; all else
 * is borrowed. */
void sl_dead_letter_redrive(const struct sl_record *rec, const struct sl_dead_letter *letter, const char *name,
	struct sl_bytes value, struct sl_arena *arena, struct sl_record *ret);

#endif
