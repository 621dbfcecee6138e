/* The schedule: the seed decides who moves next, what breaks and when. Afterwards everything is healed and runs until
 * nothing moves any more. */
#include "tests/sim/sim.h"
#include <stdio.h>
#include <string.h>

#define STEPS_MAX 3000
#define FAULT_PHASE_MS (10 * SIM_MINUTE_MS)
#define ROUNDS_MAX 20000

static int alive(const struct sim *sim, enum sim_kind kind)
{
	int n = 0;
	for (int i = 0; i < sim->proc_count; i++)
		n += sim->procs[i].kind == kind && sim_proc_alive(&sim->procs[i]);
	return n;
}

static struct sim_proc *any_proc(struct sim *sim)
{
	return &sim->procs[sim_below(sim, sim->proc_count)];
}

static void run_lane(struct sim *sim)
{
	int count = sl_memory_lanes(sim->world);
	if (!count)
		return;
	int lane = sim_below(sim, count);
	if (sim->trace)
		sim_tell(sim, "%s", sl_memory_lane_name(sim->world, lane));
	sl_memory_run(sim->world, lane);
}

/* --- faults --- */

static void expire(struct sim *sim, struct sim_proc *proc)
{
	sl_memory_expire(sim->world, proc->name);
	proc->member = false;
}

static void crash(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (!sim_proc_alive(proc))
		return;
	sim_proc_kill(proc, sim_chance(sim, 50));
	proc->back = sim->step + (sim_chance(sim, 60) ? sim_below(sim, 20) : sim_below(sim, 600));
	if (proc->member && sim_chance(sim, 30)) {
		sim_tell(sim, "the session of %s ends", proc->name);
		expire(sim, proc);
	}
}

static void make_zombie(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (proc->state != SIM_UP || proc->zombie)
		return;
	sim_tell(sim, "the session of %s ends while it lives", proc->name);
	expire(sim, proc);
	proc->zombie = true;
	proc->back = sim->step + sim_below(sim, 400);
}

static void cut(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (!sim_proc_alive(proc))
		return;
	int pending = sl_memory_store_pending(sim->world, proc->name);
	int applied = sim_below(sim, pending + 1);
	sim_tell(sim, "the store connection of %s breaks, %d of %d commands were done", proc->name, applied, pending);
	sl_memory_cut(sim->world, proc->name, applied);
}

static void store_away(struct sim *sim)
{
	if (sim->down)
		return;
	bool full = sim_chance(sim, 30);
	sim_tell(sim, full ? "the store has no room" : "the store is away");
	sl_memory_store_state(sim->world, full, full ? "no space left on device" : NULL);
	sim->down = true;
	sim->up_step = sim->step + sim_below(sim, 200);
}

static void resize(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (proc->state == SIM_UP && !proc->zombie && alive(sim, proc->kind) > 1) {
		sim_proc_drain(proc);
		proc->back = sim->step + 300 + sim_below(sim, 1000);
	}
}

static void skew(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (!sim_proc_alive(proc))
		return;
	int64_t ms = sim_below(sim, 4000) - 2000;
	sim_tell(sim, "the clock of %s steps by %lld ms", proc->name, (long long)ms);
	sl_memory_skew(sim->world, proc->name, ms);
	proc->skewed = sim->skewed = true;
}

static void duplicate(struct sim *sim)
{
	int i = sim->event_count ? sim_below(sim, sim->event_count) : 0;
	if (i < sim->event_count && sim->events[i].published && !sim->small_ring)
		sim_publish(sim, &sim->events[i]);
}

/* R10: everything stops, an older copy of the store takes its place, everything starts again. */
static void restore(struct sim *sim)
{
	if (!sim->backup) {
		sim_tell(sim, "the store is backed up");
		sim->backup = sl_memory_backup(sim->world);
		return;
	}
	if (!sim_chance(sim, 30))
		return;
	for (int i = 0; i < sim->proc_count; i++) {
		if (sim_proc_alive(&sim->procs[i]))
			sim_proc_kill(&sim->procs[i], sim_chance(sim, 50));
		sim->procs[i].back = sim->step + sim_below(sim, 50);
	}
	sl_memory_turn(sim->world, 0); /* last words reach the old store, not the restored one */
	sim_tell(sim, "the store is restored from its backup");
	sl_memory_restore(sim->world, sim->backup);
}

static void fault(struct sim *sim)
{
	switch (sim_below(sim, 14)) {
	case 0:
	case 1:
	case 2:
		crash(sim);
		break;
	case 3:
	case 4:
		make_zombie(sim);
		break;
	case 5:
	case 6:
		cut(sim);
		break;
	case 7:
		store_away(sim);
		break;
	case 8:
		resize(sim);
		break;
	case 9:
		skew(sim);
		break;
	case 10:
		restore(sim);
		break;
	default:
		duplicate(sim);
	}
}

/* What was broken for a while comes back when its step has come. */
static void recover(struct sim *sim)
{
	if (sim->down && sim->step >= sim->up_step) {
		sim_tell(sim, "the store is well again");
		sl_memory_store_state(sim->world, true, NULL);
		sim->down = false;
	}
	for (int i = 0; i < sim->proc_count; i++) {
		struct sim_proc *proc = &sim->procs[i];
		if (sim->step < proc->back)
			continue;
		if (proc->state == SIM_DOWN) {
			sim_proc_start(proc);
		} else if (proc->zombie) {
			sim_tell(sim, "%s notices that its session has ended", proc->name);
			sl_memory_rejoin(sim->world, proc->name);
			proc->zombie = false;
			proc->member = true;
		}
	}
}

/* --- time --- */

static void pass_time(struct sim *sim)
{
	int64_t now = sl_memory_now(sim->world), ms = sim_chance(sim, 10) ? sim_below(sim, 5000) : sim_below(sim, 300);
	int64_t until = now + ms;
	if (until > SIM_START_MS + FAULT_PHASE_MS)
		return;
	bool fired = sl_memory_fire(sim->world, until);
	if (sim->trace)
		sim_tell(sim, "%s", fired ? "a timer fires" : "time passes");
}

static void publish_next(struct sim *sim)
{
	struct sim_event *event = sim_load_next(sim);
	if (!event)
		return;
	sim_publish(sim, event);
	if (sim_chance(sim, 15) && !sim->small_ring)
		sim_publish(sim, event);
}

/* Nothing is on its way: who has something in hand goes on, else time passes. */
static void idle(struct sim *sim)
{
	bool more = false;
	for (int i = 0; i < sim->proc_count; i++)
		more = sim_proc_turn(&sim->procs[i]) || more;
	if (!more && !sl_memory_lanes(sim->world))
		pass_time(sim);
}

/* --- the phases --- */

void sim_schedule(struct sim *sim)
{
	int publish = 3 + sim_below(sim, 40), per_mille = sim->faults;
	for (int64_t end = sim->step + STEPS_MAX; sim->step < end && !sim->wrong.len; sim->step++) {
		recover(sim);
		int dice = sim_below(sim, 1000);
		if (dice < per_mille)
			fault(sim);
		else if (dice < per_mille + publish)
			publish_next(sim);
		else if (dice < per_mille + publish + 30)
			pass_time(sim);
		else if (dice < per_mille + publish + 33 && sim->may_cancel)
			sim_cancel(sim, NULL);
		else if (dice < 500)
			sim_proc_turn(any_proc(sim));
		else if (sl_memory_lanes(sim->world))
			run_lane(sim);
		else
			idle(sim);
		if (sim->step % 128 == 0 && !sim_load_next(sim) && sim_chance(sim, 20))
			break;
	}
}

void sim_heal(struct sim *sim)
{
	sim_tell(sim, "--- all is well from here on ---");
	if (sim->down)
		sl_memory_store_state(sim->world, true, NULL);
	sim->down = false;
	for (int i = 0; i < sim->proc_count; i++) {
		struct sim_proc *proc = &sim->procs[i];
		if (proc->state == SIM_DOWN)
			sim_proc_start(proc);
		else if (proc->zombie)
			sl_memory_rejoin(sim->world, proc->name);
		if (proc->skewed)
			sl_memory_skew(sim->world, proc->name, 0);
		proc->zombie = proc->skewed = false;
	}
	for (int i = 0; i < sim->proc_count; i++)
		sim->procs[i].back = 0;
	do { /* calls set off further events */
		while (sim_load_next(sim) && !sim->wrong.len) {
			publish_next(sim);
			sim_quiet(sim, 100);
		}
		sim_quiet(sim, 10 * SIM_MINUTE_MS);
	} while (sim_load_next(sim) && !sim->wrong.len);
}

/* All that can happen without time passing. */
static void settle(struct sim *sim)
{
	int rounds = 0, idle = 0;
	while (idle < 2) {
		bool more = sl_memory_turn(sim->world, 0) > 0;
		for (int i = 0; i < sim->proc_count; i++)
			more = sim_proc_turn(&sim->procs[i]) || more;
		idle = more ? 0 : idle + 1;
		for (int i = 0; i < sim->proc_count; i++)
			if (sim->procs[i].state == SIM_DOWN && sim->procs[i].back <= sim->step)
				sim_proc_start(&sim->procs[i]);
		if (sim->wrong.len)
			return;
		if (++rounds > ROUNDS_MAX) {
			sim_wrong(sim, "does not come to rest");
			return;
		}
	}
}

void sim_quiet(struct sim *sim, int64_t ms)
{
	int64_t until = sl_memory_now(sim->world) + ms;
	settle(sim);
	while (!sim->wrong.len && sl_memory_fire(sim->world, until))
		settle(sim);
	if (!sim->wrong.len)
		settle(sim);
}
