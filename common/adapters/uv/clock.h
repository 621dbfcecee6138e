/* The clock port on libuv: wall clock and timers of one loop.
 * Owner: the service. Loop thread only. */
#ifndef SL_ADAPTERS_UV_CLOCK_H
#define SL_ADAPTERS_UV_CLOCK_H

#include "common/ports/clock.h"
#include <uv.h>

struct sl_clock *sl_clock_uv_new(uv_loop_t *loop);
/* Stops what is pending; the memory goes when the loop has run its close callbacks. NULL is allowed. */
void sl_clock_uv_free(struct sl_clock *clock);

#endif
