/* C11 threads told through pthreads, for programs under the thread sanitizer: it watches pthreads only, while
 * librdkafka starts its threads with thrd_create and waits with mtx_t and cnd_t. Unwatched, such a thread crashes in
 * the first function that the sanitizer replaces, and what it hands over under its locks looks like a race. Preloaded
 * by tests/tsan.sh; in glibc the types are the same.
 *
 * Locks of librdkafka count only as calls of this library, since what it calls itself is left out
 * (tests/tsan/suppressions). Nothing is destroyed: who destroys a lock knows by a reference count, which the sanitizer
 * does not see, that nobody holds it. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "mtx_t holds a mutex");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "cnd_t holds a condition");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "thrd_t is a thread");

static int result(int err)
{
	switch (err) {
	case 0:
		return thrd_success;
	case ENOMEM:
		return thrd_nomem;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	default:
		return thrd_error;
	}
}

struct start {
	thrd_start_t run;
	void *arg;
};

static void *begin(void *arg)
{
	struct start start = *(struct start *)arg;
	free(arg);
	return (void *)(intptr_t)start.run(start.arg);
}

int thrd_create(thrd_t *ret, thrd_start_t run, void *arg)
{
	struct start *start = malloc(sizeof(*start));
	if (!start)
		return thrd_nomem;
	*start = (struct start){run, arg};
	int err = pthread_create((pthread_t *)ret, NULL, begin, start);
	if (err)
		free(start);
	return result(err);
}

int thrd_join(thrd_t thread, int *ret)
{
	void *value;
	int err = pthread_join((pthread_t)thread, &value);
	if (!err && ret)
		*ret = (int)(intptr_t)value;
	return result(err);
}

int thrd_detach(thrd_t thread)
{
	return result(pthread_detach((pthread_t)thread));
}

int mtx_init(mtx_t *mtx, int type)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
	int err = pthread_mutex_init((pthread_mutex_t *)mtx, &attr);
	pthread_mutexattr_destroy(&attr);
	return result(err);
}

void mtx_destroy(mtx_t *mtx)
{
	(void)mtx;
}

int mtx_lock(mtx_t *mtx)
{
	return result(pthread_mutex_lock((pthread_mutex_t *)mtx));
}

int mtx_trylock(mtx_t *mtx)
{
	return result(pthread_mutex_trylock((pthread_mutex_t *)mtx));
}

int mtx_timedlock(mtx_t *restrict mtx, const struct timespec *restrict until)
{
	return result(pthread_mutex_timedlock((pthread_mutex_t *)mtx, until));
}

int mtx_unlock(mtx_t *mtx)
{
	return result(pthread_mutex_unlock((pthread_mutex_t *)mtx));
}

int cnd_init(cnd_t *cnd)
{
	return result(pthread_cond_init((pthread_cond_t *)cnd, NULL));
}

void cnd_destroy(cnd_t *cnd)
{
	(void)cnd;
}

int cnd_signal(cnd_t *cnd)
{
	return result(pthread_cond_signal((pthread_cond_t *)cnd));
}

int cnd_broadcast(cnd_t *cnd)
{
	return result(pthread_cond_broadcast((pthread_cond_t *)cnd));
}

int cnd_wait(cnd_t *cnd, mtx_t *mtx)
{
	return result(pthread_cond_wait((pthread_cond_t *)cnd, (pthread_mutex_t *)mtx));
}

int cnd_timedwait(cnd_t *restrict cnd, mtx_t *restrict mtx, const struct timespec *restrict until)
{
	return result(pthread_cond_timedwait((pthread_cond_t *)cnd, (pthread_mutex_t *)mtx, until));
}

/* --- read-write locks: pthreads' own already, but called from here --- */

static int next(const char *name, pthread_rwlock_t *lock)
{
	int (*call)(pthread_rwlock_t *);
	*(void **)&call = dlsym(RTLD_NEXT, name);
	return call(lock);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	return next("pthread_rwlock_rdlock", lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	return next("pthread_rwlock_wrlock", lock);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	return next("pthread_rwlock_unlock", lock);
}

int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
	(void)lock;
	return 0;
}
