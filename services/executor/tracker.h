/* Which offsets of one partition are finished (design section 8): a contiguous run from the start, and runs beyond it,
 * which go with the committed offset as metadata, so that a restart repeats only unfinished calls. Pure. */
#ifndef SL_EXECUTOR_TRACKER_H
#define SL_EXECUTOR_TRACKER_H

#include "common/base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_run {
	int64_t from, to;
}; /* both inclusive */
struct sl_tracker {
	int64_t next;	     /* every offset below is finished */
	struct sl_run *runs; /* beyond next, sorted, apart from each other */
	int count, cap;
};

void sl_tracker_init(struct sl_tracker *tracker, int64_t next);
void sl_tracker_release(struct sl_tracker *tracker);
/* Idempotent; offsets below next are ignored. */
void sl_tracker_finish(struct sl_tracker *tracker, int64_t from, int64_t to);
bool sl_tracker_finished(const struct sl_tracker *tracker, int64_t offset);

/* "1;GAP+LENGTH,GAP+LENGTH...": each run by its distance from the end of the one before (from next) and its length. As
 * many of the lowest runs as fit bytes_max; "" when there are none. */
void sl_tracker_write(const struct sl_tracker *tracker, size_t bytes_max, struct sl_buf *out);
/* Adds the runs of such a text; text NULL or "": none. SL_EPARSE: not such a text, nothing is added. */
SL_MUST_CHECK int sl_tracker_read(struct sl_tracker *tracker, const char *text);

#endif
