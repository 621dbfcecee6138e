/* Makes a failing run smaller: fewer workflows, fewer faults, a shorter hostile phase. Each trial is a run of the same seed in
 * a process of its own, so that one which ends the process counts too. Any violation counts, not only the first one's. */
#include "tests/sim/sim.h"
#include "common/base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIALS_MAX 400
#define SECONDS_MAX 30

struct shrink {
	uint64_t seed;
	struct sim_cut cut;
	int *faults, fault_count; /* kept so far */
	bool flow_kept[SIM_FLOWS_MAX];
	struct sim_result *shared; /* of the last trial that ended in good order */
	struct sim_result whole;
	char *flow_list;
	struct sl_buf fault_list, flow_text;
	int trials;
	time_t until;
};

static void write_lists(struct shrink *sh)
{
	sl_buf_clear(&sh->fault_list);
	for (int i = 0; i < sh->fault_count; i++)
		sl_buf_printf(&sh->fault_list, "%s%d", i ? "," : "", sh->faults[i]);
	if (!sh->fault_count)
		sl_buf_adds(&sh->fault_list, "none");
	sl_buf_clear(&sh->flow_text);
	for (int i = 0; i < sh->whole.flow_count; i++)
		if (sh->flow_kept[i])
			sl_buf_printf(&sh->flow_text, "%s%s", sh->flow_text.len ? "," : "", sh->whole.flows[i]);
	sh->cut.faults = sh->fault_list.data;
	sh->cut.flows = sh->flow_text.data;
}

/* Runs the seed as `sh` has it now; true: still violated. */
static bool fails(struct shrink *sh)
{
	int status = 0;
	write_lists(sh);
	if (++sh->trials > TRIALS_MAX || time(NULL) > sh->until)
		return false;
	fflush(stdout);
	fflush(stderr);
	pid_t pid = fork();
	if (pid < 0)
		return false;
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(0);
		_exit(sim_run(sh->seed, &sh->cut, sh->shared) ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && status != 0;
}

static void without_flows(struct shrink *sh)
{
	for (int i = 0; i < sh->whole.flow_count; i++) {
		sh->flow_kept[i] = false;
		write_lists(sh);
		if (!sh->flow_text.len || !fails(sh))
			sh->flow_kept[i] = true;
	}
}

/* Leaves out `count` faults from `at` on; keeps them if that mends the run. */
static bool without(struct shrink *sh, int at, int count)
{
	int *old = malloc((size_t)(sh->fault_count + 1) * sizeof(int)), old_count = sh->fault_count;
	sl_assert(old);
	memcpy(old, sh->faults, (size_t)old_count * sizeof(int));
	memmove(sh->faults + at, sh->faults + at + count, (size_t)(old_count - at - count) * sizeof(int));
	sh->fault_count -= count;
	bool still = fails(sh);
	if (!still) {
		memcpy(sh->faults, old, (size_t)old_count * sizeof(int));
		sh->fault_count = old_count;
	}
	free(old);
	return still;
}

static void without_faults(struct shrink *sh)
{
	for (int size = sh->fault_count; size >= 1; size = size > 1 ? (size + 1) / 2 : 0)
		for (int at = 0; at < sh->fault_count;) {
			int n = sh->fault_count - at < size ? sh->fault_count - at : size;
			if (!without(sh, at, n))
				at += n;
		}
}

static void without_steps(struct shrink *sh)
{
	int64_t good = 0, bad = sh->whole.steps;
	while (bad - good > 16) { /* not sure to be monotonic: what is tried and fails is taken */
		sh->cut.steps = (good + bad) / 2;
		if (fails(sh))
			bad = sh->cut.steps;
		else
			good = sh->cut.steps;
	}
	sh->cut.steps = bad;
}

static void report(struct shrink *sh)
{
	int flows = 0;
	for (int i = 0; i < sh->whole.flow_count; i++)
		flows += sh->flow_kept[i];
	write_lists(sh);
	printf("  shrunk to %d of %d faults, %d of %d workflows, %lld of %lld steps:\n", sh->fault_count, sh->whole.faults, flows,
		sh->whole.flow_count, (long long)sh->cut.steps, (long long)sh->whole.steps);
	printf("    sluice-sim --seed %llu --only-flows %s --only-faults %s --steps %lld --trace\n", (unsigned long long)sh->seed,
		sh->cut.flows, sh->cut.faults, (long long)sh->cut.steps);
	fflush(stdout);
	pid_t pid = fork(); /* the faults that are left, as they go */
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(0);
		sh->cut.story = SIM_STORY_FAULTS;
		sim_run(sh->seed, &sh->cut, sh->shared);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void sim_shrink(uint64_t seed, const struct sim_cut *cut)
{
	struct shrink sh = {.seed = seed, .cut = *cut, .until = time(NULL) + SECONDS_MAX};
	if (cut->faults || cut->flows || cut->steps)
		return;
	sh.shared = mmap(NULL, sizeof(*sh.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh.shared == MAP_FAILED)
		return;
	sl_buf_init(&sh.fault_list);
	sl_buf_init(&sh.flow_text);
	sh.cut.story = SIM_STORY_NONE;
	sh.whole = (struct sim_result){0};
	fflush(stdout);
	pid_t pid = fork(); /* how much there is */
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(0);
		sim_run(seed, cut, sh.shared);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	sh.whole = *sh.shared;
	if (sh.whole.steps) {
		sh.faults = calloc((size_t)sh.whole.faults + 1, sizeof(int));
		sl_assert(sh.faults);
		for (int i = 0; i < sh.whole.faults; i++)
			sh.faults[i] = i + 1;
		sh.fault_count = sh.whole.faults;
		for (int i = 0; i < sh.whole.flow_count; i++)
			sh.flow_kept[i] = true;
		without_flows(&sh);
		without_faults(&sh);
		without_steps(&sh);
		report(&sh);
	}
	free(sh.faults);
	sl_buf_release(&sh.fault_list);
	sl_buf_release(&sh.flow_text);
	munmap(sh.shared, sizeof(*sh.shared));
}

bool sim_listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || !at[len]))
			return true;
	return false;
}
