/* Shows that a run under the thread sanitizer means something: `proof race` races in a C11 thread and must be noticed,
 * `proof lock` does the same under a C11 lock and must not. */
#include <stdio.h>
#include <string.h>
#include <threads.h>

static mtx_t lock;
static int locked, shared;

static int count(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++) {
		if (locked)
			mtx_lock(&lock);
		shared++;
		if (locked)
			mtx_unlock(&lock);
	}
	return 0;
}

int main(int argc, char **argv)
{
	thrd_t threads[2];
	locked = argc > 1 && strcmp(argv[1], "lock") == 0;
	mtx_init(&lock, mtx_plain);
	for (int i = 0; i < 2; i++)
		if (thrd_create(&threads[i], count, NULL) != thrd_success)
			return 2;
	for (int i = 0; i < 2; i++)
		thrd_join(threads[i], NULL);
	mtx_destroy(&lock);
	printf("%d\n", shared);
	return 0;
}
