/* The soft budget of an evaluation: timer, signal, jq_halt. */
#include "common/expr/budget.h"
#include "common/base/log.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BUDGET_SIGNAL (SIGRTMIN + 4)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static __thread struct {
	timer_t timer;
	bool made;
	jq_state *jq;
	volatile sig_atomic_t running; /* inside jq_next: the handler may halt */
	volatile sig_atomic_t armed, spent;
} budget;

/* jq_halt asserts on its second call for one start, hence `running` is taken back with the first. */
static void on_signal(int sig)
{
	(void)sig;
	int saved = errno;
	if (budget.armed) {
		budget.spent = 1;
		if (budget.running) {
			budget.running = 0;
			jq_halt(budget.jq, jv_invalid(), jv_invalid());
		}
	}
	errno = saved;
}

/* Timers do not survive fork; the child makes its own. */
static void forget(void)
{
	budget.made = false;
	budget.armed = 0;
}

static void install(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(BUDGET_SIGNAL, &action, NULL);
	pthread_atfork(NULL, NULL, forget);
}

static void make(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, install);
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = BUDGET_SIGNAL};
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &budget.timer) != 0 &&
		timer_create(CLOCK_MONOTONIC, &event, &budget.timer) != 0)
		sl_bug(__FILE__, __LINE__, "timer_create: errno %d", errno);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, BUDGET_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	budget.made = true;
}

static void set_timer(int64_t ms)
{
	struct itimerspec spec = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
	timer_settime(budget.timer, 0, &spec, NULL);
}

void sl_budget_begin(int64_t ms)
{
	if (!budget.made)
		make();
	budget.spent = 0;
	budget.armed = 1;
	set_timer(ms > 0 ? ms : 1);
}

void sl_budget_end(void)
{
	budget.armed = 0;
	set_timer(0);
}

bool sl_budget_spent(void)
{
	return budget.spent;
}

jv sl_budget_next(jq_state *jq)
{
	budget.jq = jq;
	atomic_signal_fence(memory_order_seq_cst);
	budget.running = 1;
	atomic_signal_fence(memory_order_seq_cst);
	jv value = budget.spent ? jv_invalid() : jq_next(jq);
	atomic_signal_fence(memory_order_seq_cst);
	budget.running = 0;
	return value;
}
