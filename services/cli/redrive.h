/* Redriving dead letters: what became of each letter, decided letter by letter (docs/operations.md, "Dead letters").
 *
 * A record that was refused at the door goes to its topic again as it came. An event that the engine gave up goes to
 * the instance that could not take it. Other letters are inputs of actors: they stood in an order that is gone, and are
 * refused. What was redriven is remembered in Redis (`sluice:redriven`: PARTITION/OFFSET of the letter -> JSON) as long
 * as the letter lasts. */
#ifndef SL_CLI_REDRIVE_H
#define SL_CLI_REDRIVE_H

#include "services/cli/remote.h"

struct sl_redrive {
	const char *const *letters; /* "PARTITION/OFFSET"; none: all that reason and topic leave */
	int letter_count;
	const char *reason, *topic; /* part of the reason, name or glob of the topic of origin; NULL: any */
	bool dry_run, again;
};

/* "PARTITION/OFFSET" */
bool sl_letter_place(const char *text, int32_t *ret_partition, int64_t *ret_offset);
/* Does a letter fit? What has no headers of ours has neither reason nor origin. */
bool sl_letter_matches(const struct sl_record *rec, const char *reason, const char *topic);
/* Returns an exit code; what became of each letter is printed. SL_EXIT_WRONG: one at least was not redriven for a
 * reason. */
int sl_redrive(struct sl_remote *remote, const struct sl_redrive *what);

#endif
