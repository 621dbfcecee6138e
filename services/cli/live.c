/* Real services for `sluice run`. */
#include "services/cli/live.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>
#include "common/adapters/http/http.h"
#include "common/base/log.h"
#include "services/executor/answer.h"
#include "services/executor/request.h"

#define DOCUMENT_MAX (4 * 1024 * 1024)
#define DOCUMENT_TIMEOUT_MS 10000

struct sl_live {
	uv_loop_t loop;
	struct sl_caller *caller;
	struct sl_local_files *files;
};

struct sl_live *sl_live_new(struct sl_local_files *files)
{
	struct sl_live *live = calloc(1, sizeof(*live));
	sl_assert(live && uv_loop_init(&live->loop) == 0);
	live->files = files;
	/* a program on the user's own machine: what it may reach is what the user may reach, but for cloud metadata */
	live->caller = sl_caller_http_new(&live->loop, &(struct sl_http_options){.loopback = true, .link_local = true});
	if (!live->caller) {
		uv_loop_close(&live->loop);
		free(live);
		return NULL;
	}
	return live;
}

void sl_live_free(struct sl_live *live)
{
	if (!live)
		return;
	live->caller->ops->close(live->caller);
	uv_run(&live->loop, UV_RUN_DEFAULT);
	uv_loop_close(&live->loop);
	free(live);
}

struct waited {
	bool done;
	void (*read)(struct waited *waited, const struct sl_http_answer *answer);
	jv data, error;	     /* of a call */
	struct sl_buf *body; /* of a document */
	struct sl_diags *diags;
	const char *uri;
	int err;
};

static void answered(void *arg, const struct sl_http_answer *answer)
{
	struct waited *waited = arg;
	waited->read(waited, answer);
	waited->done = true;
}

static void wait_for(struct sl_live *live, const struct sl_http_request *req, struct waited *waited)
{
	struct sl_http_handle *handle = live->caller->ops->call(live->caller, req, answered, waited);
	sl_assert(handle);
	while (!waited->done)
		uv_run(&live->loop, UV_RUN_ONCE);
}

/* --- calls --- */

static void read_answer(struct waited *waited, const struct sl_http_answer *answer)
{
	sl_answer_read(answer, &sl_json_default, &waited->data, &waited->error);
}

int64_t sl_live_call(void *arg, const struct sl_function *function, const struct sl_call_context *ctx, jv args, int64_t timeout_ms,
	jv *ret_data, jv *ret_error)
{
	struct sl_live *live = arg;
	struct waited waited = {.read = read_answer, .data = jv_invalid(), .error = jv_invalid()};
	struct sl_http_request req = {0};
	struct sl_arena arena;
	struct sl_buf why;
	uint64_t begin = uv_hrtime();
	sl_arena_init(&arena);
	sl_buf_init(&why);
	if (sl_request_build(&function->http, args, ctx, &arena, &req, &why)) {
		waited.error = sl_error_new("400", 400, "The request cannot be made", why.data);
	} else {
		req.timeout_ms = timeout_ms;
		wait_for(live, &req, &waited);
	}
	sl_buf_release(&why);
	sl_arena_release(&arena);
	*ret_data = waited.data;
	*ret_error = waited.error;
	return (int64_t)((uv_hrtime() - begin) / 1000000);
}

/* --- service documents --- */

static void read_document(struct waited *waited, const struct sl_http_answer *answer)
{
	if (answer->err)
		waited->err = sl_diag_error(waited->diags, SL_EUNREACHABLE, SL_NOWHERE, NULL, "%s: %s", waited->uri,
			answer->text ? answer->text : sl_err_text(answer->err));
	else if (answer->status != 200)
		waited->err = sl_diag_error(waited->diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "%s: HTTP status %d", waited->uri, answer->status);
	else
		sl_buf_add(waited->body, answer->body.ptr, answer->body.len);
}

int sl_live_get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	struct sl_live *live = arg;
	int err = sl_local_get(live->files, uri, ret, ret_len, diags);
	if (err != SL_EAGAIN)
		return err;
	struct sl_buf body;
	struct waited waited = {.read = read_document, .body = &body, .diags = diags, .uri = uri};
	struct sl_http_request req = {.method = "GET", .url = uri, .timeout_ms = DOCUMENT_TIMEOUT_MS, .answer_bytes_max = DOCUMENT_MAX};
	sl_buf_init(&body);
	wait_for(live, &req, &waited);
	if (waited.err) {
		sl_buf_release(&body);
		return waited.err;
	}
	*ret_len = body.len;
	*ret = malloc(body.len + 1);
	sl_assert(*ret);
	memcpy(*ret, body.data ? body.data : "", body.len);
	(*ret)[body.len] = '\0';
	sl_buf_release(&body);
	return 0;
}

/* --- time --- */

void sl_live_until(void *arg, int64_t wall_ms)
{
	(void)arg;
	struct timespec until = {wall_ms / 1000, wall_ms % 1000 * 1000000};
	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) != 0)
		;
}
