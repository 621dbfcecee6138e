/* Processes of the simulator: each has its own plans, definitions reader and pipeline object on its own ports. */
#include "tests/sim/sim.h"
#include <stdio.h>
#include <string.h>

static void wake(void *arg)
{
	(void)arg; /* the schedule decides who turns */
}

static void fatal(void *arg, int err, const char *text)
{
	struct sim_proc *proc = arg;
	sim_wrong(proc->sim, "%s cannot go on: %s (%s)", proc->name, text, sl_err_text(err));
}

static void start_definitions(struct sim_proc *proc, struct sl_diags *diags)
{
	struct sim *sim = proc->sim;
	struct sl_definitions_options opt = {.broker = sl_memory_broker(sim->world, proc->name),
		.plans = proc->plans,
		.topic = sim->topics.definitions,
		.wake = wake,
		.fatal = fatal,
		.arg = proc};
	if (sl_definitions_new(&opt, &proc->defs, diags))
		sim_wrong(sim, "%s does not start: %s", proc->name, sl_diags_first(diags));
}

void sim_proc_start(struct sim_proc *proc)
{
	struct sl_diags diags;
	sim_tell(proc->sim, "%s starts", proc->name);
	proc->state = SIM_READING;
	proc->zombie = proc->skewed = proc->struck = false;
	proc->plans = sl_plans_new();
	sl_diags_init(&diags);
	if (proc->kind != SIM_TIMER)
		start_definitions(proc, &diags);
	sl_diags_release(&diags);
}

static int new_coordinator(struct sim_proc *proc, struct sl_diags *diags)
{
	struct sim *sim = proc->sim;
	struct sl_coordinator_options opt = {.broker = sl_memory_broker(sim->world, proc->name),
		.store = sl_memory_store(sim->world, proc->name),
		.clock = sl_memory_clock(sim->world, proc->name),
		.definitions = proc->defs,
		.plans = proc->plans,
		.topics = &sim->topics,
		.json = sl_json_default,
		.group = "sluice",
		.batch_records_max = 1 + (int)(sim->seed % 5) * 3,
		.local_steps_max = sim->seed % 3 == 0 ? 3 : 0,
		.seed = 1,
		.wake = wake,
		.fatal = fatal,
		.arg = proc,
		.stepping = sim_stepping,
		.stepping_arg = proc};
	sl_limits_default(&opt.limits);
	opt.limits.early_window_ms = sim->early_window_ms;
	opt.limits.retention_ms = 20 * SIM_MINUTE_MS;
	opt.limits.lifecycle_level = 2;
	if (sim->small_ring)
		opt.limits.ring_max = 1;
	if (sim->seed % 7 == 0)
		opt.cache_bytes_max = 1;
	return sl_coordinator_new(&opt, &proc->co, diags);
}

static int new_executor(struct sim_proc *proc, struct sl_diags *diags)
{
	struct sim *sim = proc->sim;
	static const int hand_over_ms[] = {0, 30, 300, 10000}; /* from at once to longer than any call */
	struct sl_executor_options opt = {.broker = sl_memory_broker(sim->world, proc->name),
		.store = sl_memory_store(sim->world, proc->name),
		.clock = sl_memory_clock(sim->world, proc->name),
		.caller = sl_memory_caller(sim->world, proc->name),
		.definitions = proc->defs,
		.plans = proc->plans,
		.topics = &sim->topics,
		.group = "sluice-executor",
		.json = sl_json_default,
		.hand_over_ms = hand_over_ms[sim->seed / 4 % 4],
		.wake = wake,
		.fatal = fatal,
		.arg = proc};
	return sl_executor_new(&opt, &proc->ex, diags);
}

static int new_timers(struct sim_proc *proc, struct sl_diags *diags)
{
	struct sim *sim = proc->sim;
	struct sl_timers_options opt = {.broker = sl_memory_broker(sim->world, proc->name),
		.store = sl_memory_store(sim->world, proc->name),
		.clock = sl_memory_clock(sim->world, proc->name),
		.topics = &sim->topics,
		.group = "sluice-timer",
		.horizon_ms = sim->seed % 2 || sim->calm ? 0 : sim->seed % 4 ? 2000 : 300, /* short: pages are read all the time */
		.sweep_ms = 10 * SIM_MINUTE_MS,
		.wake = wake,
		.fatal = fatal,
		.arg = proc};
	return sl_timers_new(&opt, &proc->tm, diags);
}

/* A coordinator joins its groups only after reading the definitions to their end (design section 5). */
static void join(struct sim_proc *proc)
{
	struct sl_diags diags;
	if (proc->kind == SIM_COORDINATOR && !sl_definitions_complete(proc->defs))
		return;
	sl_diags_init(&diags);
	int err = proc->kind == SIM_COORDINATOR ? new_coordinator(proc, &diags)
		  : proc->kind == SIM_EXECUTOR	? new_executor(proc, &diags)
						: new_timers(proc, &diags);
	if (err)
		sim_wrong(proc->sim, "%s does not start: %s", proc->name, sl_diags_first(&diags));
	sl_diags_release(&diags);
	proc->state = SIM_UP;
	proc->member = true;
	sim_tell(proc->sim, "%s joins", proc->name);
}

bool sim_proc_alive(const struct sim_proc *proc)
{
	return proc->state != SIM_DOWN;
}

static void release(struct sim_proc *proc)
{
	sl_coordinator_free(proc->co);
	sl_executor_free(proc->ex);
	sl_timers_free(proc->tm);
	sl_definitions_free(proc->defs);
	sl_plans_free(proc->plans);
	proc->co = NULL;
	proc->ex = NULL;
	proc->tm = NULL;
	proc->defs = NULL;
	proc->plans = NULL;
	proc->state = SIM_DOWN;
	proc->zombie = false;
}

void sim_proc_kill(struct sim_proc *proc, bool lose_sent)
{
	sim_tell(proc->sim, "%s is killed%s", proc->name, lose_sent ? ", what it sent is lost" : "");
	sl_memory_kill(proc->sim->world, proc->name, lose_sent);
	release(proc);
}

void sim_proc_drain(struct sim_proc *proc)
{
	sim_tell(proc->sim, "%s drains", proc->name);
	proc->state = SIM_DRAINING;
	if (proc->co)
		sl_coordinator_drain(proc->co);
	if (proc->ex)
		sl_executor_drain(proc->ex);
	if (proc->tm)
		sl_timers_drain(proc->tm);
}

static bool idle(const struct sim_proc *proc)
{
	return (!proc->co || sl_coordinator_idle(proc->co)) && (!proc->ex || sl_executor_idle(proc->ex)) &&
	       (!proc->tm || sl_timers_idle(proc->tm));
}

static void leave(struct sim_proc *proc)
{
	if (proc->co)
		sl_coordinator_close(proc->co);
	if (proc->ex)
		sl_executor_close(proc->ex);
	if (proc->tm)
		sl_timers_close(proc->tm);
	sim_tell(proc->sim, "%s has left", proc->name);
	sl_memory_kill(proc->sim->world, proc->name, false);
	release(proc);
	proc->member = false;
}

bool sim_proc_turn(struct sim_proc *proc)
{
	bool more = false;
	if (proc->state == SIM_DOWN)
		return false;
	if (proc->defs)
		more = sl_definitions_turn(proc->defs);
	if (proc->state == SIM_READING)
		join(proc);
	if (proc->co)
		more = sl_coordinator_turn(proc->co) || more;
	if (proc->struck) {
		release(proc);
		proc->back = proc->sim->calm ? 0 : proc->sim->step + sim_below(proc->sim, 60);
		return true;
	}
	if (proc->ex)
		more = sl_executor_turn(proc->ex) || more;
	if (proc->tm)
		more = sl_timers_turn(proc->tm) || more;
	if (proc->state == SIM_DRAINING && idle(proc)) {
		leave(proc);
		return true;
	}
	return more;
}

void sim_procs_calm(struct sim *sim)
{
	for (int i = 0; i < sim->proc_count; i++) {
		if (sim->procs[i].kind != SIM_TIMER)
			continue;
		sim_proc_kill(&sim->procs[i], false);
		sim_proc_start(&sim->procs[i]);
	}
}

void sim_procs_free(struct sim *sim)
{
	for (int i = 0; i < sim->proc_count; i++) {
		if (!sim_proc_alive(&sim->procs[i]))
			continue;
		sl_memory_kill(sim->world, sim->procs[i].name, true);
		release(&sim->procs[i]);
	}
}
