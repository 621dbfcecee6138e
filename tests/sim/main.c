/* sluice-sim: runs seeds. A failure prints its seed, what was violated, and the fewest faults that still show it.
 *
 *   sluice-sim [-n COUNT] [--seed N] [--jobs J]   COUNT seeds from N on (default 1 from 1), in J processes
 *     --trace               tells the story of the seed line by line
 *     --stop                ends with the first failure
 *     --no-shrink           a failure is not made smaller
 *     --only-faults LIST    only these faults, by number ("none", "3,17"); --only-flows LIST only these workflows;
 *     --steps N             the hostile phase lasts N steps: what a shrunk failure names
 *     --break RULE          takes a rule of common/base/rules.h away, in a build that can; --rules lists them
 *   sluice-sim --search FILE | --check FILE       which seed notices that a rule is gone (rules.sh)
 *
 * Exit code: 0 fine, 1 a seed was violated, 2 usage. */
#include "tests/sim/sim.h"
#include "common/base/rules.h"
#include "common/dsl/dsl.h"
#include "common/expr/expr.h"
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHRUNK_MAX 3 /* failures of a run that are made smaller */

/* --- the run's own tools --- */

/* A stream of its own for a part of the run, so that leaving a part out changes nothing in the others. */
uint64_t sim_fork(struct sim *sim, uint64_t part, uint64_t number)
{
	uint64_t old = sim->random;
	sim->random = sim->seed * 0x2545f4914f6cdd1du + part * 0x9e3779b97f4a7c15u + number * 0xd6e8feb86659fd93u;
	sim_random(sim);
	return old;
}

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
	if (sim->cut.story == SIM_STORY_NONE || (sim->cut.story == SIM_STORY_FAULTS && !sim->in_fault))
		return;
	printf("%6lld %9lld  ", (long long)sim->step, (long long)(sl_memory_now(sim->world) - SIM_START_MS));
	if (sim->in_fault)
		printf("fault %d: ", sim->fault_count);
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
	sim->early_window_ms = sim_chance(sim, 50) ? 60 * SIM_MINUTE_MS : sim_chance(sim, 40) ? 10000 : 0;
	sim->may_cancel = sim_chance(sim, 20);
	sim->small_ring = sim_chance(sim, 20);
	make_world(sim);
	uint64_t old = sim_fork(sim, 1, 0);
	sim_load_make(sim);
	sim->random = old;
	add_procs(sim, SIM_COORDINATOR, 'c', 1 + sim_below(sim, 3));
	add_procs(sim, SIM_EXECUTOR, 'x', 1 + sim_below(sim, 2));
	add_procs(sim, SIM_TIMER, 't', 1 + sim_below(sim, 2));
	sim_load_deploy(sim);
	sim_quiet(sim, 100);
	sim_schedule(sim);
	sim_heal(sim);
	if (sim->may_cancel && !sim->wrong.len) {
		sim_check_cancel_rest(sim);
		sim_quiet(sim, SIM_MINUTE_MS);
	}
	if (!sim->wrong.len)
		sim_check_outputs(sim);
	if (!sim->wrong.len && !sim->given_up) {
		sim_procs_calm(sim);
		sim_quiet(sim, 180 * SIM_MINUTE_MS);
	}
	if (!sim->wrong.len && !sim->given_up)
		sim_check_left(sim);
}

bool sim_run(uint64_t seed, const struct sim_cut *cut, struct sim_result *ret)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	sl_assert(sim);
	sim->seed = sim->random = seed;
	sim->cut = *cut;
	sim->result = ret;
	*ret = (struct sim_result){0};
	sl_arena_init(&sim->arena);
	sl_buf_init(&sim->wrong);
	run(sim);
	bool good = !sim->wrong.len;
	if (!good && cut->story != SIM_STORY_FAULTS && !cut->quiet)
		printf("seed %llu: violated\n%s", (unsigned long long)seed, sim->wrong.data);
	ret->given_up = sim->given_up;
	fflush(stdout);
	sim_procs_free(sim);
	sl_memory_backup_free(sim->backup);
	sl_memory_backup_free(sim->replica);
	sl_memory_free(sim->world);
	sim_load_free(sim);
	sl_map_release(&sim->calls, NULL);
	sl_map_release(&sim->tags, NULL);
	sl_map_release(&sim->cancelled, NULL);
	sl_map_release(&sim->faulted, NULL);
	sl_buf_release(&sim->wrong);
	sl_arena_release(&sim->arena);
	free(sim);
	return good;
}

/* --- many runs --- */

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

static void list_rules(void)
{
#define R(rule) puts(#rule);
	SL_RULES(R)
#undef R
}

/* What all processes of a run share. */
struct shared {
	_Atomic uint64_t next, run, bad, given_up;
	_Atomic uint64_t at[SIM_JOBS_MAX]; /* seed that a worker is at */
	_Atomic bool stop;
};
struct job {
	struct sim_cut cut;
	uint64_t first, count;
	bool stop, shrink, search;
	const char *table;
	int jobs;
	struct shared *shared;
};

static void one(struct job *job, uint64_t seed)
{
	struct sim_result result;
	bool good = sim_run(seed, &job->cut, &result);
	job->shared->run++;
	job->shared->given_up += result.given_up;
	if (good)
		return;
	job->shared->stop = job->stop;
	if (job->shared->bad++ < SHRUNK_MAX && job->shrink)
		sim_shrink(seed, &job->cut);
	fflush(stdout);
}

static void work(struct job *job, int number)
{
	struct shared *shared = job->shared;
	for (uint64_t n; !shared->stop && (n = shared->next++) < job->count;) {
		shared->at[number] = job->first + n;
		one(job, job->first + n);
	}
	shared->at[number] = 0;
}

static void leave(void)
{
	fflush(stdout);
	sl_map_release(&plans, plan_unref);
}

static pid_t start_worker(struct job *job, int number)
{
	fflush(stdout);
	pid_t pid = fork();
	sl_assert(pid >= 0);
	if (pid == 0) {
		work(job, number);
		leave();
		exit(0);
	}
	return pid;
}

/* A worker that ends at a seed (an assertion of ours, a sanitizer) is a failure of that seed; another goes on. */
static void died(struct job *job, int number)
{
	uint64_t seed = job->shared->at[number];
	printf("seed %llu: violated\n  the process ended\n", (unsigned long long)seed);
	job->shared->at[number] = 0;
	job->shared->run++;
	job->shared->stop = job->stop;
	if (job->shared->bad++ < SHRUNK_MAX && job->shrink)
		sim_shrink(seed, &job->cut);
}

static void run_jobs(struct job *job)
{
	pid_t pids[SIM_JOBS_MAX];
	int status, left = job->jobs;
	for (int i = 0; i < job->jobs; i++)
		pids[i] = start_worker(job, i);
	while (left > 0) {
		pid_t pid = wait(&status);
		int i = 0;
		while (i < job->jobs && pids[i] != pid)
			i++;
		sl_assert(pid > 0 && i < job->jobs);
		bool ended = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
		if (ended && !job->shared->at[i])
			job->shared->bad++; /* not at a seed: a leak, found at the end */
		if (ended && job->shared->at[i]) {
			died(job, i);
			pids[i] = start_worker(job, i);
		} else {
			left--;
		}
	}
}

static bool options(int argc, char **argv, struct job *job)
{
	static const struct option names[] = {{"seed", required_argument, NULL, 's'}, {"trace", no_argument, NULL, 't'},
		{"count", required_argument, NULL, 'n'}, {"stop", no_argument, NULL, 'x'}, {"break", required_argument, NULL, 'b'},
		{"jobs", required_argument, NULL, 'j'}, {"no-shrink", no_argument, NULL, 'k'}, {"only-faults", required_argument, NULL, 'f'},
		{"only-flows", required_argument, NULL, 'w'}, {"steps", required_argument, NULL, 'p'},
		{"search", required_argument, NULL, 'r'}, {"check", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
	int opt;
	while ((opt = getopt_long(argc, argv, "n:j:", names, NULL)) != -1) {
		switch (opt) {
		case 's': job->first = strtoull(optarg, NULL, 10); break;
		case 'n': job->count = strtoull(optarg, NULL, 10); break;
		case 'j': job->jobs = (int)strtol(optarg, NULL, 10); break;
		case 't': job->cut.story = SIM_STORY_ALL; break;
		case 'x': job->stop = true; break;
		case 'k': job->shrink = false; break;
		case 'f': job->cut.faults = optarg; break;
		case 'w': job->cut.flows = optarg; break;
		case 'r':
		case 'c':
			job->table = optarg;
			job->search = opt == 'r';
			break;
		case 'p': job->cut.steps = strtoll(optarg, NULL, 10); break;
		case 'b':
			if (!break_rule(optarg))
				return false;
			break;
		default: return false;
		}
	}
	return job->jobs >= 1 && job->jobs <= SIM_JOBS_MAX && optind == argc;
}

int main(int argc, char **argv)
{
	struct job job = {.first = 1, .count = 1, .jobs = 1, .shrink = true};
	if (argc == 2 && strcmp(argv[1], "--rules") == 0) {
		list_rules();
		return 0;
	}
	if (!options(argc, argv, &job))
		return 2;
	bool trace = job.cut.story == SIM_STORY_ALL;
	sl_log_init("sim", trace ? SL_DEBUG : (enum sl_level)(SL_ERROR + 1), 0);
	sl_map_init(&plans);
	if (job.table)
		return sim_rules(job.table, job.search, job.count, job.jobs);
	job.shared = mmap(NULL, sizeof(*job.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sl_assert(job.shared != MAP_FAILED);
	if (trace || job.count == 1)
		for (uint64_t i = 0; i < job.count; i++)
			one(&job, job.first + i);
	else
		run_jobs(&job);
	printf("%llu seeds, %llu violated, %llu not judged because a record was given up after three crashes (R7)\n",
		(unsigned long long)job.shared->run, (unsigned long long)job.shared->bad, (unsigned long long)job.shared->given_up);
	bool bad = job.shared->bad > 0;
	munmap(job.shared, sizeof(*job.shared));
	leave();
	return bad ? 1 : 0;
}
