/* Contract of the clock port, on virtual time and on libuv. */
#include "common/adapters/uv/clock.h"
#include "tests/contract/rig.h"
#include <stdlib.h>
#include <time.h>

struct ring {
	struct sl_clock *clock;
	int64_t at_ms, rang_ms;
	int count, order;
	struct sl_timer *victim; /* stopped when this rings */
	bool again;
};
static int rings;

static void ring(void *arg)
{
	struct ring *r = arg;
	r->rang_ms = r->clock->ops->now_ms(r->clock);
	r->count++;
	r->order = ++rings;
	if (r->victim)
		r->clock->ops->stop(r->clock, r->victim);
	if (r->again) {
		r->again = false;
		r->clock->ops->at(r->clock, r->rang_ms + 10, ring, r);
	}
}

static bool rang(void *arg)
{
	return ((struct ring *)arg)->count > 0;
}

static bool rang_twice(void *arg)
{
	return ((struct ring *)arg)->count > 1;
}

static void finish(struct rig *rig, struct sl_clock *clock)
{
	if (rig->real)
		sl_clock_uv_free(clock);
}

static void now_is_wall_time(struct rig *rig)
{
	struct sl_clock *clock = rig_clock(rig);
	int64_t now = clock->ops->now_ms(clock), want = rig->real ? (int64_t)time(NULL) * 1000 : 1700000000000;
	CHECK(now >= want - 1000 && now <= want + 2000);
	finish(rig, clock);
}

static void timers_ring_in_order_and_never_early(struct rig *rig)
{
	struct sl_clock *clock = rig_clock(rig);
	int64_t now = clock->ops->now_ms(clock);
	struct ring r[4] = {0};
	static const int delays[] = {60, 20, 40, -1000};
	for (int i = 0; i < 4; i++) {
		r[i].clock = clock;
		r[i].at_ms = now + delays[i];
		CHECK(clock->ops->at(clock, r[i].at_ms, ring, &r[i]) != NULL);
	}
	CHECK_INT(rings, 0);
	CHECK(rig_until(rig, rang, &r[0], 2000));
	CHECK_INT(r[3].order, 1);
	CHECK_INT(r[1].order, 2);
	CHECK_INT(r[2].order, 3);
	CHECK_INT(r[0].order, 4);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(r[i].count, 1);
		CHECK(r[i].rang_ms >= r[i].at_ms);
	}
	finish(rig, clock);
}

static void a_stopped_timer_does_not_ring(struct rig *rig)
{
	struct sl_clock *clock = rig_clock(rig);
	int64_t now = clock->ops->now_ms(clock);
	struct ring a = {.clock = clock}, b = {.clock = clock}, c = {.clock = clock};
	struct sl_timer *ta = clock->ops->at(clock, now + 20, ring, &a);
	clock->ops->stop(clock, ta);
	b.victim = clock->ops->at(clock, now + 40, ring, &a);
	clock->ops->at(clock, now + 30, ring, &b);
	clock->ops->at(clock, now + 60, ring, &c);
	CHECK(rig_until(rig, rang, &c, 2000));
	CHECK_INT(a.count, 0);
	CHECK_INT(b.count, 1);
	finish(rig, clock);
}

static void a_timer_may_set_another(struct rig *rig)
{
	struct sl_clock *clock = rig_clock(rig);
	struct ring r = {.clock = clock, .again = true};
	clock->ops->at(clock, clock->ops->now_ms(clock), ring, &r);
	CHECK_INT(r.count, 0);
	CHECK(rig_until(rig, rang_twice, &r, 2000));
	CHECK_INT(r.count, 2);
	finish(rig, clock);
}

static void pending_timers_go_with_the_clock(struct rig *rig)
{
	struct sl_clock *clock = rig_clock(rig);
	struct ring r = {.clock = clock};
	for (int i = 0; i < 100; i++)
		clock->ops->at(clock, clock->ops->now_ms(clock) + 3600000 + i, ring, &r);
	finish(rig, clock);
	rig_settle(rig, 10);
	CHECK_INT(r.count, 0);
}

static const struct test tests[] = {
	{"now is wall time", now_is_wall_time, NULL},
	{"timers ring in order and never early", timers_ring_in_order_and_never_early, NULL},
	{"a stopped timer does not ring", a_stopped_timer_does_not_ring, NULL},
	{"a timer may set another", a_timer_may_set_another, NULL},
	{"pending timers go with the clock", pending_timers_go_with_the_clock, NULL},
};

int main(int argc, char **argv)
{
	return rig_main(argc, argv, "uv", NULL, tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
