/* Timers at wall-clock times on libuv's monotonic ones. */
#include "common/adapters/uv/clock.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <time.h>

/* The wall clock may be stepped while a timer sleeps; nobody sleeps longer than this without looking at it. */
#define NAP_MS_MAX 30000

struct sl_timer {
	uv_timer_t handle;
	struct uv_clock *clock;
	struct sl_timer *prev, *next;
	int64_t at_ms;
	void (*fire)(void *arg);
	void *arg;
};

struct uv_clock {
	struct sl_clock base;
	uv_loop_t *loop;
	struct sl_timer *timers;
};

static int64_t wall_now(struct sl_clock *clock)
{
	(void)clock;
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void freed(uv_handle_t *handle)
{
	free(handle->data);
}

static void forget(struct sl_timer *timer)
{
	if (timer->prev)
		timer->prev->next = timer->next;
	else
		timer->clock->timers = timer->next;
	if (timer->next)
		timer->next->prev = timer->prev;
	uv_close((uv_handle_t *)&timer->handle, freed);
}

static void rung(uv_timer_t *handle);

static void nap(struct sl_timer *timer)
{
	int64_t left = timer->at_ms - wall_now(NULL);
	if (left < 0)
		left = 0;
	else if (left > NAP_MS_MAX)
		left = NAP_MS_MAX;
	uv_timer_start(&timer->handle, rung, (uint64_t)left, 0);
}

static void rung(uv_timer_t *handle)
{
	struct sl_timer *timer = handle->data;
	if (wall_now(NULL) < timer->at_ms) {
		uv_update_time(handle->loop);
		nap(timer);
		return;
	}
	void (*fire)(void *) = timer->fire;
	void *arg = timer->arg;
	forget(timer);
	fire(arg);
}

static struct sl_timer *uv_at(struct sl_clock *base, int64_t at_ms, void (*fire)(void *arg), void *arg)
{
	struct uv_clock *clock = (struct uv_clock *)base;
	struct sl_timer *timer = calloc(1, sizeof(*timer));
	sl_assert(timer);
	timer->clock = clock;
	timer->at_ms = at_ms;
	timer->fire = fire;
	timer->arg = arg;
	uv_timer_init(clock->loop, &timer->handle);
	timer->handle.data = timer;
	timer->next = clock->timers;
	if (timer->next)
		timer->next->prev = timer;
	clock->timers = timer;
	nap(timer);
	return timer;
}

static void uv_stop_timer(struct sl_clock *clock, struct sl_timer *timer)
{
	(void)clock;
	if (!timer)
		return;
	uv_timer_stop(&timer->handle);
	forget(timer);
}

static const struct sl_clock_ops ops = {.now_ms = wall_now, .at = uv_at, .stop = uv_stop_timer};

struct sl_clock *sl_clock_uv_new(uv_loop_t *loop)
{
	struct uv_clock *clock = calloc(1, sizeof(*clock));
	sl_assert(clock);
	clock->base.ops = &ops;
	clock->loop = loop;
	return &clock->base;
}

void sl_clock_uv_free(struct sl_clock *base)
{
	if (!base)
		return;
	struct uv_clock *clock = (struct uv_clock *)base;
	while (clock->timers)
		uv_stop_timer(base, clock->timers);
	free(clock);
}
