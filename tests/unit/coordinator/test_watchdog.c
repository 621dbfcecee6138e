/* The watchdog: what ends a process, what does not, and what it tells first (R7). */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/expr/expr.h"
#include "services/coordinator/watchdog.h"

static const struct sl_stepping what = {3, 7, 42, "0.1", "default", "i1"};

/* Exits with the right code only if it was told the right things. */
static void tell(void *arg, const struct sl_stepping *told, const char *reason)
{
	const char *wanted = arg;
	bool right = told->partition == 3 && told->epoch == 7 && told->offset == 42 && strcmp(told->path, "0.1") == 0 &&
		     strcmp(told->to, "i1") == 0 && strstr(reason, wanted);
	if (!right) {
		fprintf(stderr, "told: %s\n", reason);
		_exit(1);
	}
}

static void (*teller)(void *arg, const struct sl_stepping *told, const char *reason) = tell;

static struct sl_watchdog *dog(int64_t hard_ms, int64_t memory_max, const char *reason)
{
	struct sl_expr_limits limits = {.soft_ms = 50, .bytes_max = 1 << 20, .depth_max = 200};
	sl_expr_init(&limits);
	return sl_watchdog_new(&(struct sl_watchdog_options){
		.soft_ms = 50, .hard_ms = hard_ms, .memory_max = memory_max, .tell = teller, .arg = (void *)(uintptr_t)reason});
}

static int evaluate(const char *text)
{
	struct sl_buf err;
	jv value = jv_invalid();
	sl_buf_init(&err);
	int result = sl_expr_once(text, jv_null(), jv_null(), &value, &err);
	if (!result)
		jv_free(value);
	sl_buf_release(&err);
	return result;
}

/* One instruction of libjq each; the factor comes from the data so that no compiler folds it. */
#define LONG "(\"a\" | length * 2000000000) as $n | \"a\" * $n"
#define WIDE "(\"a\" | length * 60000000) as $n | \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" * $n"

static void burn(int ms)
{
	struct timespec from, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

Test(watchdog, ends_the_process_at_the_hard_budget, .exit_code = SL_WATCHDOG_EXIT, .timeout = 60)
{
	struct sl_watchdog *d = dog(300, INT64_C(1) << 40, "expression exceeded its hard budget: more than 300 ms");
	sl_watchdog_stepping(d, &what);
	evaluate(LONG);
	sl_watchdog_stepping(d, NULL);
}

Test(watchdog, ends_the_process_when_memory_grows, .exit_code = SL_WATCHDOG_EXIT, .timeout = 60)
{
	struct sl_watchdog *d = dog(1000000, INT64_C(64) << 20, "more than 64 MiB of memory");
	sl_watchdog_stepping(d, &what);
	evaluate(WIDE);
	sl_watchdog_stepping(d, NULL);
}

/* A busy or stopped machine, played: a signal holds the evaluating thread up in the midst of the expression, when that thread has
 * used some processor time; how long that takes by the clock on the wall does not matter. */
static int held_ms;
static pthread_t evaluating;
static atomic_bool let_go;

static void hold(int sig)
{
	(void)sig;
	struct timespec ts = {.tv_sec = held_ms / 1000, .tv_nsec = held_ms % 1000 * 1000000};
	while (nanosleep(&ts, &ts))
		;
	atomic_store(&let_go, true);
}

static int64_t used_ms(clockid_t clock)
{
	struct timespec ts;
	return clock_gettime(clock, &ts) ? 0 : (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void *hold_after(void *arg)
{
	clockid_t clock;
	if (pthread_getcpuclockid(evaluating, &clock))
		return NULL;
	for (int64_t from = used_ms(clock); used_ms(clock) < from + *(int *)arg;)
		usleep(1000);
	pthread_kill(evaluating, SIGUSR1);
	return NULL;
}

static void hold_up(int *after_ms, int ms, pthread_t *ret)
{
	held_ms = ms;
	evaluating = pthread_self();
	signal(SIGUSR1, hold);
	pthread_create(ret, NULL, hold_after, after_ms);
}

/* The end must come while the thread is held, or before where the machine is busy anyway: afterwards its own time would be enough. */
static void tell_before_let_go(void *arg, const struct sl_stepping *told, const char *reason)
{
	if (atomic_load(&let_go)) {
		fprintf(stderr, "the thread ran again before the end came\n");
		_exit(1);
	}
	tell(arg, told, reason);
}

Test(watchdog, ends_the_process_soon_on_a_busy_machine, .exit_code = SL_WATCHDOG_EXIT, .timeout = 60)
{
	static int after = 1000; /* of 2500: more than a quarter, and far from all */
	pthread_t thread;
	teller = tell_before_let_go;
	struct sl_watchdog *d = dog(2500, INT64_C(1) << 40, "expression exceeded its hard budget: more than 2500 ms");
	hold_up(&after, 30000, &thread);
	sl_watchdog_stepping(d, &what);
	evaluate(LONG);
	sl_watchdog_stepping(d, NULL);
}

Test(watchdog, waits_for_a_stopped_process)
{
	static int after = 10;
	pthread_t thread;
	struct sl_watchdog *d = dog(400, INT64_C(1) << 40, "nothing");
	hold_up(&after, 1500, &thread);
	sl_watchdog_stepping(d, &what);
	cr_expect_eq(evaluate("def f: f; f"), SL_EBUDGET, "halted by the soft budget as ever");
	sl_watchdog_stepping(d, NULL);
	pthread_join(thread, NULL);
	sl_watchdog_free(d);
}

Test(watchdog, ends_a_step_that_never_does, .exit_code = SL_WATCHDOG_EXIT, .timeout = 60)
{
	struct sl_watchdog *d = dog(20, INT64_C(1) << 40, "step exceeded its hard budget");
	sl_watchdog_stepping(d, &what);
	burn(20 * SL_WATCHDOG_STEP_FACTOR + 2000);
	sl_watchdog_stepping(d, NULL);
}

Test(watchdog, leaves_many_short_expressions_and_steps_alone)
{
	struct sl_watchdog *d = dog(100, INT64_C(1) << 40, "nothing");
	for (int s = 0; s < 20; s++) {
		sl_watchdog_stepping(d, &what);
		for (int i = 0; i < 3; i++) {
			cr_expect_eq(evaluate("1 + 1"), 0);
			burn(10); /* between expressions: not theirs */
		}
		sl_watchdog_stepping(d, NULL);
	}
	sl_watchdog_free(d);
}

Test(watchdog, time_that_is_not_the_processors_does_not_count)
{
	struct sl_watchdog *d = dog(50, INT64_C(1) << 40, "nothing");
	sl_watchdog_stepping(d, &what);
	usleep(50 * 1000 * SL_WATCHDOG_STEP_FACTOR + 500000);
	sl_watchdog_stepping(d, NULL);
	usleep(200000);
	burn(300); /* no step: nobody looks */
	cr_expect_eq(evaluate("[range(100)] | length"), 0);
	sl_watchdog_free(d);
}
