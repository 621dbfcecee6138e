/* The helper port as a child process on the loop.
 *
 *     ask -> queue -> (one at a time) -> write -> read line -> done
 *                                        exit or timeout -> done(SL_ELOST, SL_ETIMEOUT), next question starts a new
 * child */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/adapters/child/child.h"
#include "common/base/buf.h"

struct question {
	struct question *next;
	char *line; /* with its line break */
	size_t len;
	sl_helper_done_fn done;
	void *arg;
};

struct child;
struct process {	     /* one life of the child */
	struct child *owner; /* NULL: nobody listens any more */
	uv_process_t process;
	uv_pipe_t pipe;
	int open_handles;
	bool exited;
	struct sl_buf in;
	char chunk[65536];
};

struct child {
	struct sl_helper base;
	uv_loop_t *loop;
	struct sl_child_options opt;
	struct process *process;       /* NULL: none runs */
	struct question *first, *last; /* first: the one that the child works on, when asked */
	bool asked;
	uv_timer_t timer; /* the answer's time, or 0: look at the queue */
};

static void next(struct child *c);

/* --- one life --- */

static void on_closed(uv_handle_t *handle)
{
	struct process *p = handle->data;
	if (--p->open_handles)
		return;
	sl_buf_release(&p->in);
	free(p);
}

/* Nobody hears of this process any more; it is killed in case it lives. */
static void abandon(struct child *c)
{
	struct process *p = c->process;
	if (!p)
		return;
	c->process = NULL;
	p->owner = NULL;
	if (!p->exited)
		uv_process_kill(&p->process, SIGKILL);
	uv_close((uv_handle_t *)&p->pipe, on_closed);
	/* uv_process_t is closed by on_exit, so that the child is reaped */
}

static void end_question(struct child *c, int err, const char *line, size_t len)
{
	struct question *q = c->first;
	c->first = q->next;
	if (!c->first)
		c->last = NULL;
	c->asked = false;
	uv_timer_stop(&c->timer);
	q->done(q->arg, err, line, len);
	free(q->line);
	free(q);
}

static void on_timer(uv_timer_t *timer)
{
	struct child *c = timer->data;
	if (c->asked) {
		abandon(c);
		end_question(c, SL_ETIMEOUT, NULL, 0);
	}
	next(c);
}

static void look_again(struct child *c)
{
	if (!c->asked && c->first)
		uv_timer_start(&c->timer, on_timer, 0, 0);
}

static void died(struct process *p)
{
	struct child *c = p->owner;
	if (!c)
		return;
	abandon(c);
	if (c->asked)
		end_question(c, SL_ELOST, NULL, 0);
	look_again(c);
}

static void on_exit_process(uv_process_t *process, int64_t status, int signal_number)
{
	struct process *p = process->data;
	(void)status, (void)signal_number;
	p->exited = true;
	died(p);
	uv_close((uv_handle_t *)process, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct process *p = handle->data;
	(void)size;
	*ret = uv_buf_init(p->chunk, sizeof(p->chunk));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct process *p = stream->data;
	if (!p->owner || n == 0)
		return;
	if (n < 0) {
		died(p);
		return;
	}
	sl_buf_add(&p->in, buf->base, (size_t)n);
	char *end = memchr(p->in.data, '\n', p->in.len);
	if (!end) {
		if (p->in.len > p->owner->opt.answer_bytes_max)
			died(p);
		return;
	}
	struct child *c = p->owner;
	if (!c->asked) { /* an answer without a question: it is not what we started */
		died(p);
		return;
	}
	size_t len = (size_t)(end - p->in.data);
	struct sl_buf line = p->in;
	sl_buf_init(&p->in);
	end_question(c, 0, line.data, len);
	sl_buf_release(&line);
	look_again(c);
}

static bool start(struct child *c)
{
	struct process *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->owner = c;
	sl_buf_init(&p->in);
	p->process.data = p->pipe.data = p;
	uv_pipe_init(c->loop, &p->pipe, 0);
	uv_stdio_container_t io[3] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->pipe},
		{.flags = UV_IGNORE}, {.flags = UV_INHERIT_FD, .data.fd = 2}};
	uv_process_options_t options = {.exit_cb = on_exit_process,
		.file = c->opt.argv[0],
		.args = (char **)(uintptr_t)c->opt.argv,
		.stdio = io,
		.stdio_count = 3};
	p->open_handles = 2;
	if (uv_spawn(c->loop, &p->process, &options)) {
		p->owner = NULL;
		uv_close((uv_handle_t *)&p->process, on_closed);
		uv_close((uv_handle_t *)&p->pipe, on_closed);
		return false;
	}
	uv_read_start((uv_stream_t *)&p->pipe, on_alloc, on_read);
	c->process = p;
	return true;
}

/* --- the port --- */

struct write {
	uv_write_t req;
	char *line;
};

static void on_written(uv_write_t *req, int status)
{
	struct write *w = (struct write *)req;
	(void)status; /* a broken pipe shows as the child's end */
	free(w->line);
	free(w);
}

static void next(struct child *c)
{
	if (c->asked || !c->first)
		return;
	if (!c->process && !start(c)) {
		end_question(c, SL_EUNREACHABLE, NULL, 0);
		look_again(c);
		return;
	}
	struct write *w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->line = c->first->line;
	uv_buf_t buf = uv_buf_init(w->line, (unsigned)c->first->len);
	c->first->line = NULL;
	c->asked = true;
	uv_timer_start(&c->timer, on_timer, (uint64_t)c->opt.timeout_ms, 0);
	if (uv_write(&w->req, (uv_stream_t *)&c->process->pipe, &buf, 1, on_written))
		on_written(&w->req, 0); /* the child's end follows */
}

static void child_ask(struct sl_helper *helper, const char *line, size_t len, sl_helper_done_fn done, void *arg)
{
	struct child *c = (struct child *)helper;
	struct question *q = calloc(1, sizeof(*q));
	if (!q || !(q->line = malloc(len + 1)))
		abort();
	memcpy(q->line, line, len);
	q->line[len] = '\n';
	q->len = len + 1;
	q->done = done;
	q->arg = arg;
	if (c->last)
		c->last->next = q;
	else
		c->first = q;
	c->last = q;
	if (!c->asked)
		uv_timer_start(&c->timer, on_timer, 0, 0);
}

static void on_child_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void child_close(struct sl_helper *helper)
{
	struct child *c = (struct child *)helper;
	abandon(c);
	while (c->first) {
		struct question *q = c->first;
		c->first = q->next;
		free(q->line);
		free(q);
	}
	uv_close((uv_handle_t *)&c->timer, on_child_closed);
}

static const struct sl_helper_ops child_ops = {.ask = child_ask, .close = child_close};

struct sl_helper *sl_helper_child_new(uv_loop_t *loop, const struct sl_child_options *opt)
{
	struct child *c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	c->base.ops = &child_ops;
	c->loop = loop;
	c->opt = *opt;
	c->opt.timeout_ms = opt->timeout_ms > 0 ? opt->timeout_ms : 5000;
	c->opt.answer_bytes_max = opt->answer_bytes_max ? opt->answer_bytes_max : 16u << 20;
	uv_timer_init(loop, &c->timer);
	c->timer.data = c;
	return &c->base;
}
