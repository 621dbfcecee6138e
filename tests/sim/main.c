/* sluice-sim: runs seeds. `sluice-sim [-n COUNT] [--seed N] [--stop] [--trace] [--break RULE]`: COUNT seeds from N on (default 1 from 1). A failure
 * prints its seed and what was violated; `--seed N --trace` tells its story line by line. `--stop` ends
 * with the first failure. `--break RULE` takes a rule of common/base/rules.h away, in a build that can. */
#include "tests/sim/sim.h"
#include "common/base/rules.h"
#include "common/dsl/dsl.h"
#include "common/expr/expr.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the run's own tools --- */

uint64_t sim_random(struct sim *sim) /* splitmix64 */
{
	uint64_t z = (sim->random += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int sim_below(struct sim *sim, int n)
{
	return (int)(sim_random(sim) % (uint64_t)n);
}

bool sim_chance(struct sim *sim, int percent)
{
	return sim_below(sim, 100) < percent;
}

void sim_tell(struct sim *sim, const char *fmt, ...)
{
	va_list ap;
	if (!sim->trace)
		return;
	printf("%6lld %9lld  ", (long long)sim->step, (long long)(sl_memory_now(sim->world) - SIM_START_MS));
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void sim_wrong(struct sim *sim, const char *fmt, ...)
{
	va_list ap;
	if (sim->wrong.len > 4000)
		return;
	sl_buf_adds(&sim->wrong, "  ");
	va_start(ap, fmt);
	sl_buf_vprintf(&sim->wrong, fmt, ap);
	va_end(ap);
	sl_buf_addc(&sim->wrong, '\n');
}

/* --- plans outlive a run: compiling the same text again would take most of the time --- */

static struct sl_map plans;

int __real_sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags);
int __wrap_sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags);

int __wrap_sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags)
{
	struct sl_plan *plan = sl_map_getn(&plans, text, len);
	if (!plan) {
		int err = __real_sl_compile(text, len, opt, &plan, diags);
		if (err || !plan)
			return err;
		sl_map_setn(&plans, text, len, plan);
	}
	*ret_plan = sl_plan_ref(plan);
	return 0;
}

static void plan_unref(void *plan)
{
	sl_plan_unref(plan);
}

/* --- one run --- */

static void make_world(struct sim *sim)
{
	sim->world = sl_memory_new(SIM_START_MS);
	sl_topics_init(&sim->topics, &sim->arena, "sluice.");
	sim->event_topic = (struct sl_event_topic){"sluice.events", "default"};
	sim->topics.events = &sim->event_topic;
	sim->topics.event_count = 1;
	sim->partitions = 1 + sim_below(sim, SIM_PARTITIONS_MAX);
	const struct {
		const char *name;
		int32_t partitions;
	} topics[] = {{"sluice.events", SIM_EVENT_PARTITIONS}, {sim->topics.commands, 1},
		{sim->topics.instances, sim->partitions}, {sim->topics.actions, 2}, {sim->topics.timers, 2},
		{sim->topics.definitions, 1}, {sim->topics.lifecycle, 2}, {sim->topics.dead_letter, 1}};
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		sl_memory_topic(sim->world, topics[i].name, topics[i].partitions, 0);
	sl_memory_mock(sim->world, sim_mock, sim);
	sim->driver = sl_memory_broker(sim->world, "driver");
}

static void add_procs(struct sim *sim, enum sim_kind kind, char letter, int count)
{
	for (int i = 0; i < count; i++) {
		struct sim_proc *proc = &sim->procs[sim->proc_count++];
		proc->sim = sim;
		proc->kind = kind;
		snprintf(proc->name, sizeof(proc->name), "%c%d", letter, i % 1000);
		if (i == 0 || sim_chance(sim, 70))
			sim_proc_start(proc);
		else
			proc->back = 200 + sim_below(sim, 1500);
	}
}

static void run(struct sim *sim)
{
	static const int amounts[] = {0, 4, 8, 15, 30};
	sim->faults = amounts[sim_below(sim, 5)];
	sim->early_window_ms = sim_chance(sim, 65) ? 60 * SIM_MINUTE_MS : sim_chance(sim, 50) ? 10000 : 0;
	sim->may_cancel = sim_chance(sim, 20);
	sim->small_ring = sim_chance(sim, 15);
	make_world(sim);
	sim_load_make(sim);
	add_procs(sim, SIM_COORDINATOR, 'c', 1 + sim_below(sim, 3));
	add_procs(sim, SIM_EXECUTOR, 'x', 1 + sim_below(sim, 2));
	add_procs(sim, SIM_TIMER, 't', 1 + sim_below(sim, 2));
	sim_load_deploy(sim);
	sim_quiet(sim, 100);
	sim_schedule(sim);
	sim_heal(sim);
	if (sim->may_cancel) {
		sim_check_cancel_rest(sim);
		sim_quiet(sim, SIM_MINUTE_MS);
	}
	if (!sim->wrong.len)
		sim_check_outputs(sim);
	if (!sim->wrong.len && !sim->given_up)
		sim_quiet(sim, 180 * SIM_MINUTE_MS);
	if (!sim->wrong.len && !sim->given_up)
		sim_check_left(sim);
}

static uint64_t given_up;

static bool run_seed(uint64_t seed, bool trace)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	sl_assert(sim);
	sim->seed = sim->random = seed;
	sim->trace = trace;
	sl_arena_init(&sim->arena);
	sl_buf_init(&sim->wrong);
	run(sim);
	bool good = !sim->wrong.len;
	if (!good)
		printf("seed %llu: violated\n%s", (unsigned long long)seed, sim->wrong.data);
	given_up += sim->given_up;
	fflush(stdout);
	sim_procs_free(sim);
	sl_memory_backup_free(sim->backup);
	sl_memory_free(sim->world);
	sim_load_free(sim);
	sl_map_release(&sim->calls, NULL);
	sl_map_release(&sim->tags, NULL);
	sl_map_release(&sim->cancelled, NULL);
	sl_buf_release(&sim->wrong);
	sl_arena_release(&sim->arena);
	free(sim);
	return good;
}

static bool break_rule(const char *name)
{
#ifdef SLUICE_SIM_SWITCHES
#define R(rule)                                                                                                        \
	if (strcmp(name, #rule) == 0) {                                                                                \
		sl_rule_broken = SL_RULE_##rule;                                                                       \
		return true;                                                                                           \
	}
	SL_RULES(R)
#undef R
	fprintf(stderr, "no rule is called %s\n", name);
#else
	fprintf(stderr, "%s: only a build with -DSLUICE_SIM_SWITCHES can break rules\n", name);
#endif
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'}, {"trace", no_argument, NULL, 't'},
		{"count", required_argument, NULL, 'n'}, {"stop", no_argument, NULL, 'x'}, {"break", required_argument, NULL, 'b'}, {NULL, 0, NULL, 0}};
	uint64_t first = 1, count = 1, bad = 0;
	bool trace = false, stop = false;
	int opt;
	while ((opt = getopt_long(argc, argv, "n:", options, NULL)) != -1) {
		if (opt == 's')
			first = strtoull(optarg, NULL, 10);
		else if (opt == 't')
			trace = true;
		else if (opt == 'x')
			stop = true;
		else if (opt == 'b' && !break_rule(optarg))
			return 2;
		else if (opt == 'b')
			continue;
		else if (opt == 'n')
			count = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	sl_log_init("sim", trace ? SL_DEBUG : (enum sl_level)(SL_ERROR + 1), 0);
	sl_map_init(&plans);
	for (uint64_t seed = first; seed < first + count && !(stop && bad); seed++)
		bad += !run_seed(seed, trace);
	printf("%llu seeds, %llu violated, %llu not judged because a record was given up after three crashes (R7)\n",
		(unsigned long long)count, (unsigned long long)bad, (unsigned long long)given_up);
	sl_map_release(&plans, plan_unref);
	return bad ? 1 : 0;
}
