/* The watchdog: looks at the stepping thread twenty times a second (R7).
 *
 * One word says what that thread does; only it writes the word, but for the last time:
 *
 *   idle --step--> step --enter--> expression      and back; each change makes a new number
 *                    \________________\_____ doomed: the watchdog swapped it in, and the thread stays where it is */
#include "services/coordinator/watchdog.h"
#include "common/base/log.h"
#include "common/expr/expr.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 50

enum { IDLE, STEP, EXPR, DOOMED, STATES };

struct sl_watchdog {
	struct sl_watchdog_options opt;
	_Atomic uint64_t word;          /* number * STATES + state */
	uint64_t mine;                  /* the same; the stepping thread's */
	_Atomic uint64_t step;          /* number of the step that the expression is part of */
	struct sl_stepping what;        /* written before STEP, read after DOOMED */
	clockid_t clock;                /* processor time of the stepping thread */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool stopping;
};

/* --- the stepping thread --- */

/* Taken out of what it does: the process is about to end, and nothing that it says may be wrong by then. */
static void change(struct sl_watchdog *dog, uint64_t next)
{
	uint64_t expected = dog->mine;
	if (!atomic_compare_exchange_strong_explicit(&dog->word, &expected, next, memory_order_acq_rel, memory_order_acquire))
		for (;;)
			pause();
	dog->mine = next;
}

static uint64_t fresh(const struct sl_watchdog *dog, unsigned state)
{
	return (dog->mine / STATES + 1) * STATES + state;
}

void sl_watchdog_stepping(void *watchdog, const struct sl_stepping *what)
{
	struct sl_watchdog *dog = watchdog;
	if (!what) {
		change(dog, fresh(dog, IDLE));
		return;
	}
	dog->what = *what;
	atomic_store_explicit(&dog->step, fresh(dog, STEP), memory_order_release);
	change(dog, fresh(dog, STEP));
}

static void enter(void *arg)
{
	struct sl_watchdog *dog = arg;
	if (dog->mine % STATES == STEP)
		change(dog, fresh(dog, EXPR));
}

static void leave(void *arg)
{
	struct sl_watchdog *dog = arg;
	if (dog->mine % STATES == EXPR)
		change(dog, fresh(dog, STEP));
}

/* --- the watchdog's thread --- */

struct sight {                  /* since when the same thing goes on */
	uint64_t word;
	int64_t cpu_ms, wall_ms, rss;
};

static int64_t clock_ms(clockid_t clock)
{
	struct timespec ts;
	return clock_gettime(clock, &ts) ? 0 : (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool too_long(const struct sl_watchdog *dog, const struct sight *expr, int64_t cpu)
{
	const struct sl_watchdog_options *opt = &dog->opt;
	int64_t used = cpu - expr->cpu_ms;
	if (used >= opt->hard_ms)
		return true;
	return used >= opt->hard_ms / 4 && used >= opt->soft_ms * 2 &&
	       clock_ms(CLOCK_MONOTONIC) - expr->wall_ms >= opt->hard_ms;
}

/* Resident bytes of the process. */
static int64_t resident(void)
{
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	long long size, pages;
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return 0;
	text[len] = 0;
	return sscanf(text, "%lld %lld", &size, &pages) == 2 ? (int64_t)pages * sysconf(_SC_PAGESIZE) : 0;
}

static void end(struct sl_watchdog *dog, uint64_t word, const char *reason)
{
	uint64_t expected = word;
	if (!atomic_compare_exchange_strong_explicit(
		    &dog->word, &expected, word - word % STATES + DOOMED, memory_order_acq_rel, memory_order_acquire))
		return; /* over in this very moment */
	const struct sl_stepping *what = &dog->what;
	sl_log(SL_ERROR, "%s~%s, partition %d at offset %lld (%s): %s; the process ends and is to be started again",
		what->ns, what->to, (int)what->partition, (long long)what->offset, what->path, reason);
	dog->opt.tell(dog->opt.arg, what, reason);
	_exit(SL_WATCHDOG_EXIT);
}

static void look(struct sl_watchdog *dog, struct sight *expr, struct sight *step)
{
	uint64_t word = atomic_load_explicit(&dog->word, memory_order_acquire);
	char reason[200];
	if (word % STATES == IDLE) {
		expr->word = step->word = 0;
		return;
	}
	int64_t cpu = clock_ms(dog->clock);
	if (word % STATES == EXPR && word == expr->word) {
		int64_t grown = resident() - expr->rss;
		if (too_long(dog, expr, cpu)) {
			snprintf(reason, sizeof(reason), "expression exceeded its hard budget: more than %lld ms",
				(long long)dog->opt.hard_ms);
			end(dog, word, reason);
		} else if (grown > dog->opt.memory_max) {
			snprintf(reason, sizeof(reason), "expression exceeded its hard budget: more than %lld MiB of memory",
				(long long)dog->opt.memory_max >> 20);
			end(dog, word, reason);
		}
	} else if (word % STATES == EXPR) {
		*expr = (struct sight){word, cpu, clock_ms(CLOCK_MONOTONIC), resident()};
	}
	/* the word changes with each expression, the step's number does not */
	uint64_t number = atomic_load_explicit(&dog->step, memory_order_acquire);
	if (number != step->word) {
		*step = (struct sight){.word = number, .cpu_ms = cpu};
	} else if (cpu - step->cpu_ms >= dog->opt.hard_ms * SL_WATCHDOG_STEP_FACTOR) {
		snprintf(reason, sizeof(reason), "step exceeded its hard budget: more than %lld ms of processor time",
			(long long)dog->opt.hard_ms * SL_WATCHDOG_STEP_FACTOR);
		end(dog, word, reason);
	}
}

static void *watch(void *arg)
{
	struct sl_watchdog *dog = arg;
	struct sight expr = {0}, step = {0};
	pthread_mutex_lock(&dog->lock);
	while (!dog->stopping) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += TICK_MS * 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&dog->over, &dog->lock, &until);
		if (!dog->stopping)
			look(dog, &expr, &step);
	}
	pthread_mutex_unlock(&dog->lock);
	return NULL;
}

/* --- life --- */

struct sl_watchdog *sl_watchdog_new(const struct sl_watchdog_options *opt)
{
	struct sl_watchdog *dog = calloc(1, sizeof(*dog));
	pthread_condattr_t attr;
	sl_assert(dog);
	dog->opt = *opt;
	pthread_mutex_init(&dog->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&dog->over, &attr);
	pthread_condattr_destroy(&attr);
	sl_assert(pthread_getcpuclockid(pthread_self(), &dog->clock) == 0);
	sl_assert(pthread_create(&dog->thread, NULL, watch, dog) == 0);
	sl_expr_watch(enter, leave, dog);
	return dog;
}

void sl_watchdog_free(struct sl_watchdog *dog)
{
	if (!dog)
		return;
	sl_expr_watch(NULL, NULL, NULL);
	pthread_mutex_lock(&dog->lock);
	dog->stopping = true;
	pthread_cond_signal(&dog->over);
	pthread_mutex_unlock(&dog->lock);
	pthread_join(dog->thread, NULL);
	pthread_cond_destroy(&dog->over);
	pthread_mutex_destroy(&dog->lock);
	free(dog);
}
