/* Dead letters of records that cannot be processed (design section 2, R9): the record as it is, with why and where from
 * in headers `sluice-reason`, `sluice-origin-topic`, `-partition`, `-offset`, `sluice-attempts`. */
#ifndef SL_SERVICES_DEAD_LETTER_H
#define SL_SERVICES_DEAD_LETTER_H

#include "common/base/arena.h"
#include "common/ports/broker.h"

/* Everything is copied into arena. A value above bytes_max is cut to 64 KiB and `sluice-cut-from-bytes` tells its size.
 */
void sl_dead_letter_record(const char *topic, const struct sl_record *rec, const char *reason, size_t bytes_max,
	struct sl_arena *arena, struct sl_record *ret);

#endif
