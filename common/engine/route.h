/* Route (design section 5): where an event or a command belongs. Pure: shapes of the known plans in, records for
 * sluice.instances out; no look-up of state. */
#ifndef SL_ENGINE_ROUTE_H
#define SL_ENGINE_ROUTE_H

#include "common/engine/engine.h"

struct sl_origin {
	const char *topic;
	int32_t partition;
	int64_t offset;
};

/* Adds START / EVENT messages to fx, each with origin, ns, id (R3) and traceparent set. Returns how many; 0: no plan
 * wants it - then *ret_why (owned by the caller) is the decision record for `sluice why`, else invalid. An event past
 * limits.hops_max adds a DEAD_LETTER, which is not counted. Borrows ev. */
int sl_route_event(const struct sl_engine *eng, const char *ns, jv ev, const struct sl_origin *origin,
	struct sl_effects *fx, jv *ret_why);

/* Address of the local mailbox of an event type in a partition: "@P~NS~TYPE", TYPE "*" for NULL (any type). Arena
 * memory. */
char *sl_route_local_box(struct sl_arena *arena, int32_t partition, const char *ns, const char *type);

#endif
