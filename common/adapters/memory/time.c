/* Virtual time: one heap of moments, and the clock port of each process on it. */
#include "common/adapters/memory/world.h"
#include "common/base/log.h"
#include <stdlib.h>

static bool before(const struct due *a, const struct due *b)
{
	if (a->at_ms != b->at_ms)
		return a->at_ms < b->at_ms;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->seq < b->seq;
}

static void place(struct sl_memory *world, size_t slot, struct due *due)
{
	world->heap[slot] = due;
	due->slot = slot + 1;
}

static void sift_up(struct sl_memory *world, size_t slot, struct due *due)
{
	while (slot > 0 && before(due, world->heap[(slot - 1) / 2])) {
		place(world, slot, world->heap[(slot - 1) / 2]);
		slot = (slot - 1) / 2;
	}
	place(world, slot, due);
}

static void sift_down(struct sl_memory *world, size_t slot, struct due *due)
{
	for (;;) {
		size_t child = slot * 2 + 1;
		if (child >= world->heap_count)
			break;
		if (child + 1 < world->heap_count && before(world->heap[child + 1], world->heap[child]))
			child++;
		if (!before(world->heap[child], due))
			break;
		place(world, slot, world->heap[child]);
		slot = child;
	}
	place(world, slot, due);
}

void sl_mem_due_add(struct sl_memory *world, struct due *due)
{
	if (world->heap_count == world->heap_cap) {
		world->heap_cap = world->heap_cap ? world->heap_cap * 2 : 16;
		world->heap = realloc(world->heap, world->heap_cap * sizeof(struct due *));
		sl_assert(world->heap);
	}
	due->seq = ++world->seq;
	sift_up(world, world->heap_count++, due);
	due->prev = NULL;
	due->next = due->proc->dues;
	if (due->next)
		due->next->prev = due;
	due->proc->dues = due;
}

void sl_mem_due_remove(struct sl_memory *world, struct due *due)
{
	size_t slot = due->slot - 1;
	struct due *last = world->heap[--world->heap_count];
	if (last != due) {
		if (slot > 0 && before(last, world->heap[(slot - 1) / 2]))
			sift_up(world, slot, last);
		else
			sift_down(world, slot, last);
	}
	if (due->prev)
		due->prev->next = due->next;
	else
		due->proc->dues = due->next;
	if (due->next)
		due->next->prev = due->prev;
}

int64_t sl_memory_now(const struct sl_memory *world)
{
	return world->now_ms;
}

void sl_memory_set_now(struct sl_memory *world, int64_t now_ms)
{
	world->now_ms = now_ms;
}

int64_t sl_memory_due(const struct sl_memory *world)
{
	return world->heap_count ? world->heap[0]->at_ms : INT64_MAX;
}

bool sl_memory_fire(struct sl_memory *world, int64_t until_ms)
{
	if (world->heap_count == 0 || world->heap[0]->at_ms > until_ms) {
		if (until_ms != INT64_MAX && until_ms > world->now_ms)
			world->now_ms = until_ms;
		return false;
	}
	struct due *due = world->heap[0];
	if (due->at_ms > world->now_ms)
		world->now_ms = due->at_ms;
	sl_mem_due_remove(world, due);
	due->fire(world, due, false);
	return true;
}

/* --- the clock port --- */

struct sl_timer {
	struct due due;
	void (*fire)(void *arg);
	void *arg;
};

static struct process *process_of(struct sl_clock *clock)
{
	return (struct process *)((char *)clock - offsetof(struct process, clock));
}

void sl_memory_skew(struct sl_memory *world, const char *process, int64_t skew_ms)
{
	sl_mem_process_find(world, process)->skew_ms = skew_ms;
}

static int64_t clock_now(struct sl_clock *clock)
{
	const struct process *proc = process_of(clock);
	return proc->world->now_ms + proc->skew_ms;
}

static void timer_fire(struct sl_memory *world, struct due *due, bool dropped)
{
	(void)world;
	struct sl_timer *timer = (struct sl_timer *)due;
	void (*fire)(void *) = timer->fire;
	void *arg = timer->arg;
	free(timer);
	if (!dropped)
		fire(arg);
}

static struct sl_timer *clock_at(struct sl_clock *clock, int64_t at_ms, void (*fire)(void *arg), void *arg)
{
	struct process *proc = process_of(clock);
	if (proc->dead)
		return NULL;
	struct sl_timer *timer = sl_mem_new(sizeof(*timer));
	timer->due.at_ms = at_ms - proc->skew_ms;
	timer->due.rank = 1;
	timer->due.proc = proc;
	timer->due.fire = timer_fire;
	timer->fire = fire;
	timer->arg = arg;
	sl_mem_due_add(proc->world, &timer->due);
	return timer;
}

static void clock_stop(struct sl_clock *clock, struct sl_timer *timer)
{
	struct process *proc = process_of(clock);
	if (!timer || proc->dead) /* a dead process's timers are gone already */
		return;
	sl_mem_due_remove(proc->world, &timer->due);
	free(timer);
}

const struct sl_clock_ops sl_mem_clock_ops = {.now_ms = clock_now, .at = clock_at, .stop = clock_stop};
