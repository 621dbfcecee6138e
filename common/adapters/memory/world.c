/* The world itself: tasks in lanes, processes and their end, time. */
#include "common/adapters/memory/world.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

void *sl_mem_new(size_t size)
{
	void *ptr = calloc(1, size);
	sl_assert(ptr);
	return ptr;
}

char *sl_mem_str(const char *text)
{
	if (!text)
		return NULL;
	char *copy = strdup(text);
	sl_assert(copy);
	return copy;
}

struct sl_memory *sl_memory_new(int64_t now_ms)
{
	struct sl_memory *world = sl_mem_new(sizeof(*world));
	world->now_ms = now_ms;
	world->queue_max = 100000;
	sl_map_init(&world->topics);
	sl_map_init(&world->keys);
	sl_buf_init(&world->scratch);
	return world;
}

/* --- tasks and lanes --- */

void sl_mem_lane_init(struct lane *lane, const char *who, const char *sep, const char *what, int number)
{
	memset(lane, 0, sizeof(*lane));
	lane->who = who;
	lane->sep = sep;
	lane->what = what;
	lane->number = number;
}

static void lane_activate(struct sl_memory *world, struct lane *lane)
{
	if (world->active_count == world->active_cap) {
		world->active_cap = world->active_cap ? world->active_cap * 2 : 16;
		world->active = realloc(world->active, (size_t)world->active_cap * sizeof(struct lane *));
		sl_assert(world->active);
	}
	world->active[world->active_count++] = lane;
	lane->active = world->active_count;
}

static void lane_deactivate(struct sl_memory *world, struct lane *lane)
{
	struct lane *last = world->active[--world->active_count];
	world->active[lane->active - 1] = last;
	last->active = lane->active;
	lane->active = 0;
}

void sl_mem_task_add(struct sl_memory *world, struct lane *lane, struct task *task)
{
	task->lane = lane;
	task->lane_next = NULL;
	task->next = NULL;
	task->prev = world->last;
	if (world->last)
		world->last->next = task;
	else
		world->first = task;
	world->last = task;
	if (lane->last)
		lane->last->lane_next = task;
	else
		lane->first = task;
	lane->last = task;
	if (!lane->active)
		lane_activate(world, lane);
}

void sl_mem_task_take(struct sl_memory *world, struct task *task)
{
	struct lane *lane = task->lane;
	if (task->prev)
		task->prev->next = task->next;
	else
		world->first = task->next;
	if (task->next)
		task->next->prev = task->prev;
	else
		world->last = task->prev;
	struct task *before = NULL;
	for (struct task *t = lane->first; t != task; t = t->lane_next)
		before = t;
	if (before)
		before->lane_next = task->lane_next;
	else
		lane->first = task->lane_next;
	if (lane->last == task)
		lane->last = before;
	if (!lane->first)
		lane_deactivate(world, lane);
}

void sl_mem_task_drop(struct sl_memory *world, bool (*match)(const struct task *task, const void *arg), const void *arg)
{
	for (struct task *task = world->first, *next; task; task = next) {
		next = task->next;
		if (!match(task, arg))
			continue;
		sl_mem_task_take(world, task);
		task->run(world, task, true);
	}
}

static void run_task(struct sl_memory *world, struct task *task)
{
	sl_mem_task_take(world, task);
	task->run(world, task, false);
}

int64_t sl_memory_turn(struct sl_memory *world, int64_t max)
{
	int64_t count = 0;
	while (world->first && (max == 0 || count < max)) {
		run_task(world, world->first);
		count++;
	}
	return count;
}

int sl_memory_lanes(const struct sl_memory *world)
{
	return world->active_count;
}

void sl_memory_run(struct sl_memory *world, int lane)
{
	sl_assert(lane >= 0 && lane < world->active_count);
	run_task(world, world->active[lane]->first);
}

const char *sl_memory_lane_name(struct sl_memory *world, int lane)
{
	sl_assert(lane >= 0 && lane < world->active_count);
	const struct lane *l = world->active[lane];
	sl_buf_clear(&world->scratch);
	sl_buf_printf(&world->scratch, "%s%s%s", l->who, l->sep, l->what);
	if (l->number >= 0)
		sl_buf_printf(&world->scratch, "/%d", l->number);
	return world->scratch.data;
}

/* --- processes --- */

struct process *sl_mem_process_find(struct sl_memory *world, const char *name)
{
	for (struct process *p = world->processes; p; p = p->next)
		if (!p->dead && strcmp(p->name, name) == 0)
			return p;
	struct process *proc = sl_mem_new(sizeof(*proc));
	proc->world = world;
	proc->name = sl_mem_str(name);
	proc->broker.ops = &sl_mem_broker_ops;
	proc->store.ops = &sl_mem_store_ops;
	proc->clock.ops = &sl_mem_clock_ops;
	proc->caller.ops = &sl_mem_caller_ops;
	sl_mem_lane_init(&proc->refusals, proc->name, "<", "refused", -1);
	sl_mem_lane_init(&proc->commands, proc->name, ">", "store", -1);
	sl_mem_lane_init(&proc->answers, proc->name, "<", "store", -1);
	proc->next = world->processes;
	world->processes = proc;
	return proc;
}

struct sl_broker *sl_memory_broker(struct sl_memory *world, const char *process)
{
	return &sl_mem_process_find(world, process)->broker;
}

struct sl_store *sl_memory_store(struct sl_memory *world, const char *process)
{
	return &sl_mem_process_find(world, process)->store;
}

struct sl_clock *sl_memory_clock(struct sl_memory *world, const char *process)
{
	return &sl_mem_process_find(world, process)->clock;
}

struct sl_caller *sl_memory_caller(struct sl_memory *world, const char *process)
{
	return &sl_mem_process_find(world, process)->caller;
}

static bool calls_process(const struct task *task, const void *arg)
{
	return task->to == arg;
}

static bool sent_by_process(const struct task *task, const void *arg)
{
	return task->from == arg;
}

static void drop_dues(struct sl_memory *world, struct process *proc)
{
	while (proc->dues) {
		struct due *due = proc->dues;
		sl_mem_due_remove(world, due);
		due->fire(world, due, true);
	}
}

void sl_memory_kill(struct sl_memory *world, const char *process, bool lose_sent)
{
	struct process *proc = sl_mem_process_find(world, process);
	proc->dead = true;
	sl_mem_task_drop(world, calls_process, proc);
	if (lose_sent)
		sl_mem_task_drop(world, sent_by_process, proc);
	drop_dues(world, proc);
	/* Nobody reads for it any more. */
	for (struct sl_consumer *con = proc->consumers; con; con = con->next)
		for (int i = 0; i < con->part_count; i++)
			if (con->parts[i])
				sl_mem_consumer_forget(con->parts[i]);
}

void sl_memory_queue_max(struct sl_memory *world, int count)
{
	world->queue_max = count;
}

static bool any(const struct task *task, const void *arg)
{
	(void)task;
	(void)arg;
	return true;
}

void sl_memory_free(struct sl_memory *world)
{
	if (!world)
		return;
	sl_mem_task_drop(world, any, NULL);
	for (struct process *p = world->processes; p; p = p->next)
		drop_dues(world, p);
	sl_mem_groups_free(world);
	while (world->processes) {
		struct process *p = world->processes;
		world->processes = p->next;
		sl_mem_consumers_free(p);
		for (int i = 0; i < p->link_count; i++)
			free(p->links[i]);
		free(p->links);
		sl_map_release(&p->lapsed, NULL);
		free(p->name);
		free(p);
	}
	sl_mem_cluster_free(world);
	sl_mem_store_free(world);
	free(world->active);
	free(world->heap);
	sl_buf_release(&world->scratch);
	free(world);
}
