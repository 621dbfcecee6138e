/* R7's proved note: the watchdog's last words about a partition, over a connection of its own, since the loop's thread is stuck.
 * Any thread; blocks for a few seconds at most. */
#ifndef SL_ADAPTERS_REDIS_NOTE_H
#define SL_ADAPTERS_REDIS_NOTE_H

#include "common/base/buf.h"
#include "common/base/err.h"

/* Sets `proved:OFFSET:PATH` of PREFIX:p:{PARTITION} to text if the partition still has that epoch, as a commit does. prefix NULL:
 * "sluice". SL_EFENCED: it has another owner; SL_EUNREACHABLE, SL_ESTORE: `why` (may be NULL) tells. */
SL_MUST_CHECK int sl_redis_note_proved(const char *url, const char *prefix, int32_t partition, int64_t epoch, int64_t offset,
	const char *path, const char *text, struct sl_buf *why);

#endif
