/* The schedule: the seed decides who moves next, what breaks and when. Afterwards everything is healed and runs until
 * nothing moves any more. */
#include "tests/sim/sim.h"
#include <stdio.h>
#include <string.h>

#define STEPS_MAX 3000
#define RETRIES_MAX 60

#define FAULT_PHASE_MS (10 * SIM_MINUTE_MS)
#define ROUNDS_MAX 20000

static struct sim_proc *any_proc(struct sim *sim)
{
	return &sim->procs[sim_below(sim, sim->proc_count)];
}

/* --- time --- */

static void pass_time(struct sim *sim)
{
	int64_t now = sl_memory_now(sim->world), ms = sim_chance(sim, 10) ? sim_below(sim, 5000) : sim_below(sim, 300);
	int64_t until = now + ms;
	if (until > SIM_START_MS + FAULT_PHASE_MS)
		return;
	bool fired = sl_memory_fire(sim->world, until);
	if (sim->cut.story == SIM_STORY_ALL)
		sim_tell(sim, "%s", fired ? "a timer fires" : "time passes");
}

static bool stands_still(const struct sim *sim, const char *lane)
{
	const char *sent = strchr(lane, '>');
	size_t len = sim->refusing ? strlen(sim->refusing) : 0;
	return (sim->held[0] && strcmp(lane, sim->held) == 0) ||
	       (sim->refusing && sent && strncmp(sent + 1, sim->refusing, len) == 0 && sent[1 + len] == '/');
}

static void run_lane(struct sim *sim)
{
	int count = sl_memory_lanes(sim->world);
	if (!count)
		return;
	int lane = sim_below(sim, count);
	if (stands_still(sim, sl_memory_lane_name(sim->world, lane))) {
		if (count == 1)
			pass_time(sim);
		return;
	}
	if (sim->cut.story == SIM_STORY_ALL)
		sim_tell(sim, "%s", sl_memory_lane_name(sim->world, lane));
	sl_memory_run(sim->world, lane);
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
	for (int64_t end = sim->cut.steps ? sim->cut.steps : STEPS_MAX; sim->step < end && !sim->wrong.len; sim->step++) {
		sim_recover(sim);
		sim_load_late(sim);
		sim->result->steps = sim->step + 1;
		int dice = sim_below(sim, 1000);
		if (dice < per_mille)
			sim_fault(sim);
		else if (dice < per_mille + publish)
			publish_next(sim);
		else if (dice < per_mille + publish + 30)
			pass_time(sim);
		else if (dice < per_mille + publish + 33 && sim->may_cancel)
			sim_cancel(sim, NULL);
		else if (dice < per_mille + publish + 40 && sim->faulted.count)
			sim_retry(sim);
		else if (dice < 500)
			sim_proc_turn(any_proc(sim));
		else if (sl_memory_lanes(sim->world))
			run_lane(sim);
		else
			idle(sim);
		if (sim->step % 64 == 0)
			sim_watch(sim);
		if (sim->step % 128 == 0 && !sim_load_next(sim) && sim_chance(sim, 20))
			break;
	}
}

/* What has faulted gets another life, until nothing faults any more. */
static void try_again(struct sim *sim)
{
	for (int n = 0; !sim->wrong.len && sim_retry(sim); n++) {
		sim_quiet(sim, 3000);
		if (n > RETRIES_MAX)
			sim_wrong(sim, "an instance faults again and again");
	}
}

void sim_heal(struct sim *sim)
{
	sim_tell(sim, "--- all is well from here on ---");
	sim_mend(sim);
	sim_load_late(sim);
	sim_quiet(sim, 100);
	do { /* calls set off further events */
		while (sim_load_next(sim) && !sim->wrong.len) {
			publish_next(sim);
			sim_quiet(sim, 100);
		}
		try_again(sim);
		sim_quiet(sim, 10 * SIM_MINUTE_MS);
	} while ((sim_load_next(sim) || sim->faulted.count) && !sim->wrong.len);
}

/* All that can happen without time passing. */
static void settle(struct sim *sim)
{
	bool more = true;
	for (int rounds = 0; more && !sim->wrong.len; rounds++) {
		more = sl_memory_turn(sim->world, 0) > 0;
		for (int i = 0; i < sim->proc_count; i++) {
			struct sim_proc *proc = &sim->procs[i];
			more = sim_proc_turn(proc) || more;
			if (proc->state == SIM_DOWN && proc->back <= sim->step) {
				sim_proc_start(proc);
				more = true;
			}
		}
		more = more || sl_memory_lanes(sim->world) > 0;
		if (rounds > ROUNDS_MAX)
			sim_wrong(sim, "does not come to rest");
	}
	sim_watch(sim);
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
