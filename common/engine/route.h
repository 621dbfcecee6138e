/* Route (design section 5): where an event or a command belongs. Pure: shapes of the known plans in, records for
 * sluice.instances out; no look-up of state. */
#ifndef SL_ENGINE_ROUTE_H
#define SL_ENGINE_ROUTE_H

#include "common/engine/engine.h"

struct sl_origin { const char *topic; int32_t partition; int64_t offset; };

/* Adds START / EVENT messages to fx, each with origin, ns, id (R3) and traceparent set. Returns how many; 0: no plan wants
 * it - then *ret_why (owned by the caller) is the decision record for `sluice why`. Borrows ev. */
int sl_route_event(const struct sl_engine *eng, const char *ns, jv ev, const struct sl_origin *origin, struct sl_effects *fx, jv *ret_why);

#endif
