/* HTTP calls that a mock answers, after a delay in virtual time. */
#include "common/adapters/memory/world.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

struct sl_http_handle {
	struct due due;
	struct sl_arena arena;
	struct sl_http_answer answer;
	sl_http_done_fn done;
	void *arg;
};

static struct process *process_of(struct sl_caller *caller)
{
	return (struct process *)((char *)caller - offsetof(struct process, caller));
}

static void handle_free(struct sl_http_handle *handle)
{
	sl_arena_release(&handle->arena);
	free(handle);
}

static void answered(struct sl_memory *world, struct due *due, bool dropped)
{
	(void)world;
	struct sl_http_handle *handle = (struct sl_http_handle *)due;
	if (!dropped)
		handle->done(handle->arg, &handle->answer);
	handle_free(handle);
}

static void answer_copy(
	struct sl_http_handle *handle, const struct sl_http_request *req, const struct sl_http_answer *src)
{
	struct sl_http_answer *dst = &handle->answer;
	dst->err = src->err;
	dst->status = src->status;
	dst->text = sl_arena_str(&handle->arena, src->text);
	dst->content_type = sl_arena_str(&handle->arena, src->content_type);
	if (req->answer_bytes_max && src->body.len > req->answer_bytes_max) {
		dst->err = SL_ETOOBIG;
		dst->text =
			sl_arena_printf(&handle->arena, "the answer has more than %zu bytes", req->answer_bytes_max);
		return;
	}
	dst->body.len = src->body.len;
	if (src->body.ptr)
		dst->body.ptr = sl_arena_strn(&handle->arena, src->body.ptr, src->body.len);
}

static struct sl_http_handle *call(
	struct sl_caller *caller, const struct sl_http_request *req, sl_http_done_fn done, void *arg)
{
	struct process *proc = process_of(caller);
	struct sl_memory *world = proc->world;
	if (proc->dead)
		return NULL;
	struct sl_http_handle *handle = sl_mem_new(sizeof(*handle));
	sl_arena_init(&handle->arena);
	handle->done = done;
	handle->arg = arg;
	struct sl_http_answer answer = {.err = SL_EUNREACHABLE, .text = "nothing is mocked here"};
	int64_t delay_ms = 0;
	if (world->mock) {
		answer = (struct sl_http_answer){0};
		delay_ms = world->mock(world->mock_arg, req, &answer);
	}
	if (req->timeout_ms > 0 && delay_ms > req->timeout_ms) {
		delay_ms = req->timeout_ms;
		answer = (struct sl_http_answer){.err = SL_ETIMEOUT, .text = "no answer in time"};
	}
	answer_copy(handle, req, &answer);
	handle->due.at_ms = world->now_ms + delay_ms;
	handle->due.rank = 0;
	handle->due.proc = proc;
	handle->due.fire = answered;
	sl_mem_due_add(world, &handle->due);
	return handle;
}

static void cancel(struct sl_caller *caller, struct sl_http_handle *handle)
{
	struct process *proc = process_of(caller);
	if (!handle || proc->dead)
		return;
	sl_mem_due_remove(proc->world, &handle->due);
	handle_free(handle);
}

static void caller_close(struct sl_caller *caller)
{
	struct process *proc = process_of(caller);
	for (struct due *due = proc->dues, *next; due; due = next) {
		next = due->next;
		if (due->fire == answered)
			cancel(caller, (struct sl_http_handle *)due);
	}
}

const struct sl_caller_ops sl_mem_caller_ops = {.call = call, .cancel = cancel, .close = caller_close};

void sl_memory_mock(struct sl_memory *world, sl_memory_mock_fn mock, void *arg)
{
	world->mock = mock;
	world->mock_arg = arg;
}
