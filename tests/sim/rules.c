/* Takes each rule of common/base/rules.h away in turn and finds seeds that notice. Compiled plans are shared by all runs of a
 * worker process; a run that ends its process, or uses too much processor time, has noticed too. */
#include "common/base/rules.h"
#include "tests/sim/sim.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SLUICE_SIM_SWITCHES

#define RULES_MAX 64
#define NEAR 400	/* seeds that are tried when the recorded one no longer notices */
#define CPU_SECONDS 20	/* for one run */

static const char *const names[] = {
	"none",
#define R(rule) #rule,
	SL_RULES(R)
#undef R
};
#define RULES ((int)(sizeof(names) / sizeof(names[0])))

struct shared {
	_Atomic uint64_t next, caught[RULES_MAX];
	_Atomic uint64_t recorded[RULES_MAX]; /* seed of the table, tried first; 0: none, or it did not notice */
	_Atomic uint64_t seed[SIM_JOBS_MAX]; /* what each worker is at */
	_Atomic int rule[SIM_JOBS_MAX];
};

static bool clean(uint64_t seed, int rule)
{
	struct sim_cut cut = {.quiet = true};
	struct sim_result result;
	struct itimerval limit = {.it_value = {.tv_sec = CPU_SECONDS}}, none = {0};
	sl_rule_broken = (enum sl_protocol_rule)rule;
	setitimer(ITIMER_PROF, &limit, NULL);
	bool good = sim_run(seed, &cut, &result);
	setitimer(ITIMER_PROF, &none, NULL);
	sl_rule_broken = SL_RULE_none;
	return good;
}

static void try_one(struct shared *shared, int worker, int rule, uint64_t seed)
{
	shared->rule[worker] = rule;
	shared->seed[worker] = seed;
	if (!clean(seed, rule)) {
		shared->rule[worker] = 0;
		bool good = clean(seed, 0);
		if (good)
			shared->caught[rule] = seed;
		printf(good ? "%s: noticed by %llu\n" : "%s: seed %llu is violated with all rules\n", names[rule],
			(unsigned long long)seed);
		fflush(stdout);
	}
	shared->seed[worker] = 0;
}

static bool all_caught(const struct shared *shared)
{
	for (int r = 1; r < RULES; r++)
		if (!shared->caught[r])
			return false;
	return true;
}

/* First the recorded seeds, one rule after the other; then every seed for every rule that is left. */
static void work(struct shared *shared, int worker, uint64_t count)
{
	for (int r = 1; r < RULES; r++) {
		uint64_t seed = atomic_exchange(&shared->recorded[r], 0);
		if (seed)
			try_one(shared, worker, r, seed);
	}
	for (uint64_t n; !all_caught(shared) && (n = shared->next++) < count;)
		for (int r = 1; r < RULES; r++)
			if (!shared->caught[r])
				try_one(shared, worker, r, n + 1);
}

static pid_t start(struct shared *shared, int worker, uint64_t count)
{
	fflush(stdout);
	pid_t pid = fork();
	sl_assert(pid >= 0);
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		work(shared, worker, count);
		fflush(stdout);
		_exit(0);
	}
	return pid;
}

static void run_workers(struct shared *shared, int jobs, uint64_t count)
{
	pid_t pids[SIM_JOBS_MAX];
	int status, left = jobs;
	for (int i = 0; i < jobs; i++)
		pids[i] = start(shared, i, count);
	while (left > 0) {
		pid_t pid = wait(&status);
		int i = 0;
		while (i < jobs && pids[i] != pid)
			i++;
		sl_assert(pid > 0 && i < jobs);
		if (!shared->seed[i]) {
			left--;
			continue;
		}
		if (shared->rule[i])
			shared->caught[shared->rule[i]] = shared->seed[i]; /* ended its process: noticed */
		shared->seed[i] = 0;
		pids[i] = start(shared, i, count);
	}
}

static void read_table(struct shared *shared, const char *path, uint64_t *ret)
{
	char rule[64];
	unsigned long long seed;
	FILE *file = fopen(path, "r");
	while (file && fscanf(file, "%63s %llu", rule, &seed) == 2)
		for (int r = 1; r < RULES; r++)
			if (strcmp(rule, names[r]) == 0)
				shared->recorded[r] = ret[r] = seed;
	if (file)
		fclose(file);
}

static int report(const struct shared *shared, const uint64_t *recorded, const char *write)
{
	int bad = 0;
	FILE *file = write ? fopen(write, "w") : NULL;
	for (int r = 1; r < RULES; r++) {
		unsigned long long seed = shared->caught[r];
		bad += !seed;
		if (!seed)
			printf("not ok %s: no seed notices that it is gone\n", names[r]);
		else if (recorded[r] && recorded[r] != seed)
			printf("ok %s %llu (seed %llu of caught.txt no longer notices: write it anew)\n", names[r], seed,
				(unsigned long long)recorded[r]);
		else
			printf("ok %s %llu\n", names[r], seed);
		if (file && seed)
			fprintf(file, "%s %llu\n", names[r], seed);
	}
	if (file)
		fclose(file);
	printf("%d passed, %d failed\n", RULES - 1 - bad, bad);
	return bad ? 1 : 0;
}

int sim_rules(const char *table, bool search, uint64_t count, int jobs)
{
	uint64_t recorded[RULES_MAX] = {0};
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sl_assert(shared != MAP_FAILED && RULES <= RULES_MAX);
	if (!search)
		read_table(shared, table, recorded);
	run_workers(shared, jobs, search ? count : NEAR);
	int rc = report(shared, recorded, search ? table : NULL);
	munmap(shared, sizeof(*shared));
	return rc;
}

#else

int sim_rules(const char *table, bool search, uint64_t count, int jobs)
{
	(void)table, (void)search, (void)count, (void)jobs;
	fprintf(stderr, "only a build with -DSLUICE_SIM_SWITCHES can break rules\n");
	return 2;
}

#endif
