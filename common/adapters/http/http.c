/* The caller port on libcurl's multi interface: curl says which sockets and when, libuv watches them.
 *
 * curl calls on_socket and on_timeout from inside its own functions; nothing here calls a user back from there.
 * Finished calls move to the ready list, which is emptied when curl has returned; so a callback may start or cancel
 * calls. */
#include <stdlib.h>
#include <string.h>

#include "common/adapters/http/transfer.h"

#define IDLE_EASY_MAX 64

struct list {
	struct sl_http_handle *head;
};

struct http_caller {
	struct sl_caller base;
	uv_loop_t *loop;
	CURLM *multi;
	uv_timer_t curl_timer, soon; /* soon: answers that were known at once */
	int open_handles;	     /* uv handles that keep this memory alive */
	bool closing;
	struct http_options opt;
	struct list active, ready;
	CURL *idle[IDLE_EASY_MAX];
	int idle_count;
};

struct watch { /* one socket of curl's */
	uv_poll_t poll;
	struct http_caller *c;
	curl_socket_t fd;
};

static void list_add(struct list *list, struct sl_http_handle *h)
{
	h->prev = NULL;
	h->next = list->head;
	if (list->head)
		list->head->prev = h;
	list->head = h;
}

static void list_del(struct list *list, struct sl_http_handle *h)
{
	if (h->prev)
		h->prev->next = h->next;
	else
		list->head = h->next;
	if (h->next)
		h->next->prev = h->prev;
}

static void give_back(struct http_caller *c, CURL *easy)
{
	if (c->idle_count < IDLE_EASY_MAX)
		c->idle[c->idle_count++] = easy;
	else
		curl_easy_cleanup(easy);
}

static void handle_free(struct sl_http_handle *h)
{
	struct http_caller *c = h->caller;
	if (h->easy) {
		curl_multi_remove_handle(c->multi, h->easy);
		give_back(c, h->easy);
	}
	sl_transfer_free(h);
}

static void to_ready(struct http_caller *c, struct sl_http_handle *h)
{
	h->ready = true;
	list_add(&c->ready, h);
}

static void call_back(struct http_caller *c)
{
	while (c->ready.head && !c->closing) {
		struct sl_http_handle *h = c->ready.head;
		list_del(&c->ready, h);
		h->done(h->arg, &h->result);
		handle_free(h);
	}
}

static void on_soon(uv_timer_t *timer)
{
	call_back(timer->data);
}

/* --- curl on the loop --- */

static void collect(struct http_caller *c)
{
	CURLMsg *msg;
	int left;
	while ((msg = curl_multi_info_read(c->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		CURL *easy = msg->easy_handle;
		CURLcode code = msg->data.result;
		struct sl_http_handle *h = NULL;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&h);
		bool again = sl_transfer_end(h, code);
		curl_multi_remove_handle(c->multi, easy);
		if (again) {
			sl_transfer_prepare(h, easy, uv_now(c->loop));
			curl_multi_add_handle(c->multi, easy);
			continue;
		}
		list_del(&c->active, h);
		h->easy = NULL;
		give_back(c, easy);
		to_ready(c, h);
	}
	call_back(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	struct http_caller *c = w->c;
	int flags = status < 0 ? CURL_CSELECT_ERR : 0, running;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	curl_multi_socket_action(c->multi, w->fd, flags, &running);
	collect(c);
}

static void on_curl_timer(uv_timer_t *timer)
{
	struct http_caller *c = timer->data;
	int running;
	curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(c);
}

static int on_timeout(CURLM *multi, long timeout_ms, void *arg)
{
	struct http_caller *c = arg;
	(void)multi;
	if (c->closing || timeout_ms < 0)
		uv_timer_stop(&c->curl_timer);
	else
		uv_timer_start(&c->curl_timer, on_curl_timer, (uint64_t)timeout_ms, 0);
	return 0;
}

static void on_watch_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_data)
{
	struct http_caller *c = arg;
	struct watch *w = socket_data;
	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			curl_multi_assign(c->multi, fd, NULL);
			uv_poll_stop(&w->poll);
			uv_close((uv_handle_t *)&w->poll, on_watch_closed);
		}
		return 0;
	}
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			abort();
		w->c = c;
		w->fd = fd;
		w->poll.data = w;
		if (uv_poll_init_socket(c->loop, &w->poll, fd)) {
			free(w);
			return -1;
		}
		curl_multi_assign(c->multi, fd, w);
	}
	int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
	uv_poll_start(&w->poll, events, on_poll);
	return 0;
}

/* --- the port --- */

static struct sl_http_handle *http_call(
	struct sl_caller *caller, const struct sl_http_request *req, sl_http_done_fn done, void *arg)
{
	struct http_caller *c = (struct http_caller *)caller;
	uv_update_time(c->loop);
	struct sl_http_handle *h = sl_transfer_new(c, &c->opt, req, uv_now(c->loop));
	h->done = done;
	h->arg = arg;
	int err = sl_egress_check_url(c->opt.v.allow, req->url, &h->egress, &h->why);
	if (err) {
		h->result.err = err;
		h->result.text = h->why.data;
		to_ready(c, h);
		uv_timer_start(&c->soon, on_soon, 0, 0);
		return h;
	}
	CURL *easy = c->idle_count ? c->idle[--c->idle_count] : curl_easy_init();
	if (!easy)
		abort();
	sl_transfer_prepare(h, easy, uv_now(c->loop));
	list_add(&c->active, h);
	curl_multi_add_handle(c->multi, easy);
	return h;
}

static void http_cancel(struct sl_caller *caller, struct sl_http_handle *h)
{
	struct http_caller *c = (struct http_caller *)caller;
	list_del(h->ready ? &c->ready : &c->active, h);
	handle_free(h);
}

static void caller_free(struct http_caller *c)
{
	for (char **item = c->opt.allow; item && *item; item++)
		free(*item);
	free(c->opt.allow);
	free(c->opt.user_agent);
	free(c->opt.ca_file);
	free(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct http_caller *c = handle->data;
	if (--c->open_handles == 0)
		caller_free(c);
}

static void http_close(struct sl_caller *caller)
{
	struct http_caller *c = (struct http_caller *)caller;
	c->closing = true;
	while (c->active.head)
		http_cancel(caller, c->active.head);
	while (c->ready.head)
		http_cancel(caller, c->ready.head);
	while (c->idle_count)
		curl_easy_cleanup(c->idle[--c->idle_count]);
	curl_multi_cleanup(c->multi);
	uv_close((uv_handle_t *)&c->curl_timer, on_timer_closed);
	uv_close((uv_handle_t *)&c->soon, on_timer_closed);
}

static void copy_options(struct http_options *to, const struct sl_http_options *from)
{
	to->v = *from;
	to->v.timeout_ms = from->timeout_ms > 0 ? from->timeout_ms : 30000;
	to->v.connect_timeout_ms = from->connect_timeout_ms > 0 ? from->connect_timeout_ms : 10000;
	to->v.answer_bytes_max = from->answer_bytes_max ? from->answer_bytes_max : 1 << 20;
	to->v.redirects_max = from->redirects_max ? from->redirects_max : 3;
	to->v.connections_max = from->connections_max > 0 ? from->connections_max : 512;
	int n = 0;
	while (from->allow && from->allow[n])
		n++;
	to->allow = calloc((size_t)n + 1, sizeof(char *));
	to->user_agent = strdup(from->user_agent ? from->user_agent : "sluice/" SLUICE_VERSION);
	to->ca_file = from->ca_file ? strdup(from->ca_file) : NULL;
	if (!to->allow || !to->user_agent)
		abort();
	for (int i = 0; i < n; i++)
		if (!(to->allow[i] = strdup(from->allow[i])))
			abort();
	to->v.allow = (const char *const *)to->allow;
	to->v.user_agent = to->v.ca_file = NULL;
}

static const struct sl_caller_ops http_ops = {.call = http_call, .cancel = http_cancel, .close = http_close};

struct sl_caller *sl_caller_http_new(uv_loop_t *loop, const struct sl_http_options *opt)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return NULL;
	struct http_caller *c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	c->base.ops = &http_ops;
	c->loop = loop;
	c->multi = curl_multi_init();
	if (!c->multi) {
		free(c);
		return NULL;
	}
	copy_options(&c->opt, opt);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)c->opt.v.connections_max);
	uv_timer_init(loop, &c->curl_timer);
	uv_timer_init(loop, &c->soon);
	c->curl_timer.data = c->soon.data = c;
	c->open_handles = 2;
	return &c->base;
}
