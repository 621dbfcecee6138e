/* Deferred calls on an idle handle; wake-ups through an eventfd. */
#include "common/adapters/uv/glue.h"
#include "common/base/log.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct call {
	struct call *next;
	void (*fn)(void *arg, bool cancelled);
	void *arg;
};

struct sl_later {
	uv_idle_t idle;
	struct call *first, **last;
};

/* Only what was there at the turn's beginning: who adds from a callback is served in the next turn (style 18). */
static void turn(uv_idle_t *idle)
{
	struct sl_later *later = idle->data;
	struct call *calls = later->first;
	later->first = NULL;
	later->last = &later->first;
	uv_idle_stop(idle);
	while (calls) {
		struct call *call = calls;
		calls = call->next;
		bool gone = uv_is_closing((uv_handle_t *)&later->idle);
		call->fn(call->arg, gone);
		free(call);
	}
}

struct sl_later *sl_later_new(uv_loop_t *loop)
{
	struct sl_later *later = calloc(1, sizeof(*later));
	sl_assert(later);
	later->last = &later->first;
	uv_idle_init(loop, &later->idle);
	later->idle.data = later;
	return later;
}

void sl_later_add(struct sl_later *later, void (*fn)(void *arg, bool cancelled), void *arg)
{
	struct call *call = calloc(1, sizeof(*call));
	sl_assert(call);
	call->fn = fn;
	call->arg = arg;
	*later->last = call;
	later->last = &call->next;
	uv_idle_start(&later->idle, turn);
}

static void later_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void sl_later_free(struct sl_later *later)
{
	if (!later)
		return;
	uv_close((uv_handle_t *)&later->idle, later_closed);
	struct call *calls = later->first;
	later->first = NULL;
	later->last = &later->first;
	while (calls) {
		struct call *call = calls;
		calls = call->next;
		call->fn(call->arg, true);
		free(call);
	}
}

struct sl_wake {
	uv_poll_t poll;
	int fd;
	void (*fn)(void *arg);
	void *arg;
};

static void woken(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	struct sl_wake *wake = poll->data;
	uint64_t count;
	if (read(wake->fd, &count, sizeof(count)) < 0)
		return;
	wake->fn(wake->arg);
}

struct sl_wake *sl_wake_new(uv_loop_t *loop, void (*fn)(void *arg), void *arg)
{
	struct sl_wake *wake = calloc(1, sizeof(*wake));
	sl_assert(wake);
	wake->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	sl_assert(wake->fd >= 0);
	wake->fn = fn;
	wake->arg = arg;
	uv_poll_init(loop, &wake->poll, wake->fd);
	wake->poll.data = wake;
	uv_poll_start(&wake->poll, UV_READABLE, woken);
	return wake;
}

int sl_wake_fd(const struct sl_wake *wake)
{
	return wake->fd;
}

static void wake_closed(uv_handle_t *handle)
{
	struct sl_wake *wake = handle->data;
	close(wake->fd);
	free(wake);
}

void sl_wake_free(struct sl_wake *wake)
{
	if (!wake)
		return;
	uv_poll_stop(&wake->poll);
	uv_close((uv_handle_t *)&wake->poll, wake_closed);
}
