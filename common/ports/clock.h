/* Port: the clock. Adapters: uv/ and memory/ (virtual). */
#ifndef SL_PORTS_CLOCK_H
#define SL_PORTS_CLOCK_H

#include <stdint.h>

struct sl_timer;
struct sl_clock;
struct sl_clock_ops {
	int64_t (*now_ms)(struct sl_clock *clock);      /* wall clock, ms since 1970 UTC */
	/* Calls once at or after at_ms; stop frees a pending one, a fired one is freed already. */
	struct sl_timer *(*at)(struct sl_clock *clock, int64_t at_ms, void (*fire)(void *arg), void *arg);
	void (*stop)(struct sl_clock *clock, struct sl_timer *timer);
};
struct sl_clock { const struct sl_clock_ops *ops; };

#endif
