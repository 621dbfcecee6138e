/* What breaks. Each fault draws from a stream of its own, so that leaving one out changes nothing in the others. */
#include "tests/sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAPSED_TAKES_MAX 2  /* one on its way when the session ended, one more after an assignment that was on its way too */
#define STRUCK_MAX 40	    /* deaths at one place, with other faults between */
#define STRUCK_QUIET_MAX 8  /* two takes without a commit, then three notes; commits of other records between */

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

static void expire(struct sim *sim, struct sim_proc *proc)
{
	sl_memory_expire(sim->world, proc->name);
	proc->member = false;
}

static void end(struct sim_proc *proc, int64_t back, bool lose_sent)
{
	sim_proc_kill(proc, lose_sent);
	proc->back = back;
}

static void crash(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (!sim_proc_alive(proc))
		return;
	bool lose_sent = sim_chance(sim, 50);
	end(proc, sim->step + (sim_chance(sim, 60) ? sim_below(sim, 20) : sim_below(sim, 600)), lose_sent);
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
	proc->back = sim->step + sim_below(sim, sim_chance(sim, 30) ? 1500 : 400);
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
	sim->restored = true;
}

/* R10: a replica that lags takes over, or a backup is restored, while everything lives. What it holds is as of now; it takes over later. */
static void fail_over(struct sim *sim)
{
	if (sim->replica)
		return;
	sim->replica = sl_memory_backup(sim->world);
	sim->replica_step = sim->step + sim_below(sim, sim_chance(sim, 50) ? 60 : 500);
	sim->replica_random = sim_random(sim);
	sim_tell(sim, "the replica of the store gets nothing any more, and takes over at step %lld", (long long)sim->replica_step);
	struct sim_flow *flow = &sim->flows[sim_below(sim, sim->flow_count)];
	if (!flow->late || sim->held[0])
		return;
	/* what is deployed meanwhile, and who hears of it late */
	flow->late = (int32_t)sim->step + 1;
	snprintf(sim->held, sizeof(sim->held), "c%d=%s/0", sim_below(sim, 3), sim->topics.definitions);
	sim->held_step = sim->replica_step + sim_below(sim, 300);
	sim_tell(sim, "nothing moves on %s until step %lld", sim->held, (long long)sim->held_step);
}

/* The process loses its connection, with what was on it, and finds the store again when its step has come. */
static void lose_store(struct sim *sim, struct sim_proc *proc)
{
	uint64_t old = sim->random;
	sim->random = proc->store_random;
	int pending = sl_memory_store_pending(sim->world, proc->name), applied = sim_below(sim, pending + 1);
	bool answered = sim_chance(sim, 50);
	proc->store_lost = 0;
	proc->store_step = sim->step + sim_below(sim, sim_chance(sim, 70) ? 8 : 150);
	bool timer = proc->kind == SIM_TIMER; /* goes on with what it has in memory when more has come */
	proc->end_step = sim_chance(sim, timer ? 70 : 30) ? proc->store_step + 1 + sim_below(sim, timer ? 800 : 200) : 0;
	sim_tell(sim, "%s loses the store, %d of %d commands were done%s, finds it again at step %lld", proc->name, applied, pending,
		answered ? " and answered" : "", (long long)proc->store_step);
	sl_memory_sever(sim->world, proc->name, applied, answered);
	sim->random = old;
}

/* The store that was there is gone; or some have it for a while longer, and what they write there is lost (split brain). */
static void take_over(struct sim *sim)
{
	uint64_t old = sim->random;
	sim->random = sim->replica_random;
	bool beside = sim_chance(sim, 40);
	for (int i = 0; i < sim->proc_count; i++) {
		struct sim_proc *proc = &sim->procs[i];
		if (!sim_proc_alive(proc))
			continue;
		proc->store_random = sim_random(sim);
		proc->store_lost = sim->step + 1 + sim_below(sim, 200);
		if (!beside || sim_chance(sim, 50))
			lose_store(sim, proc);
	}
	sim_tell(sim, beside ? "the replica takes over beside the old store" : "the replica takes over");
	(beside ? sl_memory_restore_beside : sl_memory_restore)(sim->world, sim->replica);
	sl_memory_cut(sim->world, "dog", 0); /* the watchdog's */
	sl_memory_backup_free(sim->replica);
	sim->replica = NULL;
	sim->restored = true;
	sim->random = old;
}

/* Who lost the store finds it again. */
static void find_store(struct sim *sim, struct sim_proc *proc)
{
	if (!sim_proc_alive(proc))
		proc->store_lost = 0;
	else if (proc->store_lost && (sim->step >= proc->store_lost || sim->calm))
		lose_store(sim, proc);
	if (sim_proc_alive(proc) && (sim->step >= proc->store_step || sim->calm))
		sl_memory_reconnect(sim->world, proc->name);
	if (!proc->end_step || sim->step < proc->end_step || sim->calm)
		return;
	proc->end_step = 0;
	if (sim_proc_alive(proc))
		end(proc, sim->step + 20, false);
}

/* --- delays, producers, brokers --- */

/* Nothing moves on one connection for a while: what was sent on others overtakes it. */
static void hold(struct sim *sim)
{
	int lanes = sl_memory_lanes(sim->world), coordinators = 0;
	if (sim->held[0])
		return;
	while (coordinators < sim->proc_count && sim->procs[coordinators].kind == SIM_COORDINATOR)
		coordinators++;
	if (lanes && sim_chance(sim, 20))
		snprintf(sim->held, sizeof(sim->held), "%s", sl_memory_lane_name(sim->world, sim_below(sim, lanes)));
	else
		snprintf(sim->held, sizeof(sim->held), "%s>%s/%d", sim->procs[sim_below(sim, coordinators)].name, sim->topics.instances,
			sim_below(sim, sim->partitions));
	sim->held_step = sim->step + sim_below(sim, sim_chance(sim, 50) ? 1000 : 200);
	sim_tell(sim, "nothing moves on %s until step %lld", sim->held, (long long)sim->held_step);
}

static void producer_fatal(struct sim *sim)
{
	struct sim_proc *proc = any_proc(sim);
	if (proc->state != SIM_UP)
		return;
	sim_tell(sim, "the producer of %s fails and sends again what is not confirmed", proc->name);
	sl_memory_producer_fatal(sim->world, proc->name);
}

/* A topic takes no records for a while (right, size, room): each producer keeps them in order, sends those of other topics, and is made
 * anew, which sends what is not confirmed again (adapters/kafka/producer.c). */
static void refuse(struct sim *sim)
{
	const char *const topics[] = {sim->topics.instances, sim->topics.actions, sim->topics.timers, sim->topics.lifecycle,
		sim->topics.definitions, sim->event_topic.topic};
	if (sim->refusing)
		return;
	sim->refusing = topics[sim_below(sim, 6)];
	sim->refusing_step = sim->step + sim_below(sim, 250);
	sim_tell(sim, "%s refuses records until step %lld", sim->refusing, (long long)sim->refusing_step);
	for (int i = 0; i < sim->proc_count; i++)
		if (sim->procs[i].state == SIM_UP && sim_chance(sim, 50))
			sl_memory_producer_fatal(sim->world, sim->procs[i].name);
}

/* A mailbox that forgets at once cannot know what is published twice; what is between actors is known by its effect id. */
static void duplicate(struct sim *sim)
{
	int i = sim->event_count ? sim_below(sim, sim->event_count) : 0;
	if (sim->small_ring)
		producer_fatal(sim);
	else if (i < sim->event_count && sim->events[i].published)
		sim_publish(sim, &sim->events[i]);
}

static void tighten(struct sim *sim)
{
	sim_tell(sim, "producers take few records at a time");
	sim->tight = true;
	sim->wide_step = sim->step + sim_below(sim, 300);
	sl_memory_queue_max(sim->world, 1 + sim_below(sim, 3));
}

static void widen(struct sim *sim)
{
	sim->tight = false;
	sl_memory_queue_max(sim->world, 100000);
}

/* The brokers' clock, which stamps the log. */
static void step_clock(struct sim *sim)
{
	int64_t ms = sim_below(sim, 6000) - 3000;
	sim_tell(sim, "the brokers' clock steps by %lld ms", (long long)ms);
	sl_memory_set_now(sim->world, sl_memory_now(sim->world) + ms);
	sim->skewed = true;
}

/* --- choosing --- */

static void (*const faults[])(struct sim *sim) = {crash, crash, crash, make_zombie, make_zombie, make_zombie, cut, cut, store_away, resize,
	skew, restore, fail_over, fail_over, duplicate, duplicate, duplicate, hold, hold, hold, hold, hold, producer_fatal, refuse, refuse,
	tighten, step_clock, sim_load_again};

void sim_fault(struct sim *sim)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", ++sim->fault_count);
	sim->result->faults = sim->fault_count;
	if (sim->cut.faults && !sim_listed(sim->cut.faults, number))
		return;
	uint64_t old = sim_fork(sim, 3, (uint64_t)sim->fault_count);
	sim->in_fault = true;
	faults[sim_below(sim, sizeof(faults) / sizeof(faults[0]))](sim);
	sim->in_fault = false;
	sim->random = old;
}

/* --- and comes back --- */

static void notice(struct sim *sim, struct sim_proc *proc)
{
	int takes = sl_memory_lapsed_takes(sim->world, proc->name);
	sim_tell(sim, "%s notices that its session has ended", proc->name);
	if (takes > LAPSED_TAKES_MAX)
		sim_wrong(sim, "%s took a partition %d times after its session had ended", proc->name, takes);
	sl_memory_rejoin(sim->world, proc->name);
	proc->zombie = false;
	proc->member = true;
}

/* Some still have the store that was replaced. */
static bool split(const struct sim *sim)
{
	for (int i = 0; i < sim->proc_count; i++)
		if (sim->procs[i].store_lost)
			return true;
	return false;
}

void sim_recover(struct sim *sim)
{
	if (sim->down && sim->step >= sim->up_step) {
		sim_tell(sim, "the store is well again");
		sl_memory_store_state(sim->world, true, NULL);
		sim->down = false;
	}
	if (sim->tight && sim->step >= sim->wide_step)
		widen(sim);
	if (sim->held[0] && sim->step >= sim->held_step)
		sim->held[0] = 0;
	if (sim->step >= sim->refusing_step)
		sim->refusing = NULL;
	if (sim->replica && sim->step >= sim->replica_step && !split(sim))
		take_over(sim);
	for (int i = 0; i < sim->proc_count; i++) {
		struct sim_proc *proc = &sim->procs[i];
		find_store(sim, proc);
		if (sim->step < proc->back)
			continue;
		if (proc->state == SIM_DOWN)
			sim_proc_start(proc);
		else if (proc->zombie)
			notice(sim, proc);
	}
}

void sim_mend(struct sim *sim)
{
	sim->calm = true;
	if (sim->down)
		sl_memory_store_state(sim->world, true, NULL);
	sim->down = false;
	sim->held[0] = 0;
	sim->refusing = NULL;
	widen(sim);
	for (int i = 0; i < sim->proc_count; i++) {
		struct sim_proc *proc = &sim->procs[i];
		find_store(sim, proc);
		if (proc->state == SIM_DOWN)
			sim_proc_start(proc);
		else if (proc->zombie)
			notice(sim, proc);
		if (proc->skewed)
			sl_memory_skew(sim->world, proc->name, 0);
		proc->zombie = proc->skewed = false;
		proc->back = 0;
	}
}

/* --- R7 --- */

/* The watchdog's last words, as its own connection writes them: done before the process ends. */
static bool tell_proved(struct sim *sim, const struct sl_stepping *what)
{
	char field[64], text[96];
	snprintf(field, sizeof(field), "proved:%lld:%s", (long long)what->offset, what->path);
	snprintf(text, sizeof(text), "%s~%s expression exceeded its hard budget", what->ns, what->to);
	struct sl_op op = {.kind = SL_OP_HSET, .key = "p", .field = field, .value = {text, strlen(text)}};
	struct sl_commit commit = {.header = "p", .partition = what->partition, .epoch = what->epoch, .ops = &op, .count = 1};
	struct sl_store *store = sl_memory_store(sim->world, "dog");
	store->ops->commit(store, &commit, NULL, NULL);
	for (int i = 0; i < sl_memory_lanes(sim->world); i++) {
		if (strcmp(sl_memory_lane_name(sim->world, i), "dog>store") == 0) {
			sl_memory_run(sim->world, i);
			break;
		}
	}
	struct sl_hash *hash = sl_memory_peek(sim->world, what->partition, "p");
	bool found = false;
	for (int i = 0; i < hash->count; i++)
		found = found || strcmp(hash->fields[i].name, field) == 0;
	sl_memory_hash_free(hash);
	return found;
}

void sim_stepping(void *arg, const struct sl_stepping *what)
{
	struct sim_proc *proc = arg;
	struct sim *sim = proc->sim;
	struct sim_poison *poison = &sim->poison;
	if (!what || !*poison->instance || proc->struck || strcmp(what->to, poison->instance) != 0 || strcmp(what->path, ".") != 0)
		return;
	if (what->offset != poison->offset) { /* the same command, routed once more */
		poison->offset = what->offset;
		poison->struck = 0;
		poison->noted = false;
	}
	sim_tell(sim, "the start of %s ends %s", what->to, proc->name);
	if (poison->noted && what->epoch > poison->epoch && !sim->restored)
		sim_wrong(sim, "the watchdog had noted the step of %s at offset %lld, and it was made again", what->to,
			(long long)what->offset);
	if (++poison->struck > (sim->faults ? STRUCK_MAX : STRUCK_QUIET_MAX))
		sim_wrong(sim, "the start of %s has ended %d processes", what->to, poison->struck);
	if (poison->proved && tell_proved(sim, what)) {
		poison->noted = true;
		poison->epoch = what->epoch;
	}
	sl_memory_kill(sim->world, proc->name, sim_chance(sim, 50));
	proc->struck = true;
}
