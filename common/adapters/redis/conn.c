/* The connection: hiredis on libuv, set-up, reconnection with backoff, and a watchdog for silence. */
#include "common/adapters/redis/conn.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MS_FIRST 50
#define BACKOFF_MS_MAX 5000
#define TICK_MS 250

/* --- hiredis events on uv_poll --- */

struct poller {
	uv_poll_t poll;
	redisAsyncContext *ac; /* NULL: cleaned up */
	int events;
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct poller *p = poll->data;
	/* An error of the socket is for hiredis to find, by reading. */
	if (p->ac && (status < 0 || (events & UV_READABLE)))
		redisAsyncHandleRead(p->ac);
	if (p->ac && status == 0 && (events & UV_WRITABLE))
		redisAsyncHandleWrite(p->ac);
}

static void listen_for(struct poller *p, int events)
{
	p->events = events;
	if (events)
		uv_poll_start(&p->poll, events, on_poll);
	else
		uv_poll_stop(&p->poll);
}

static void add_read(void *arg)
{
	struct poller *p = arg;
	if (!(p->events & UV_READABLE))
		listen_for(p, p->events | UV_READABLE);
}

static void del_read(void *arg)
{
	struct poller *p = arg;
	listen_for(p, p->events & ~UV_READABLE);
}

static void add_write(void *arg)
{
	struct poller *p = arg;
	if (!(p->events & UV_WRITABLE))
		listen_for(p, p->events | UV_WRITABLE);
}

static void del_write(void *arg)
{
	struct poller *p = arg;
	listen_for(p, p->events & ~UV_WRITABLE);
}

static void poller_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void cleanup(void *arg)
{
	struct poller *p = arg;
	p->ac = NULL;
	uv_poll_stop(&p->poll);
	uv_close((uv_handle_t *)&p->poll, poller_closed);
}

static bool attach(struct redis *r, redisAsyncContext *ac)
{
	struct poller *p = sl_redis_alloc(sizeof(*p));
	if (uv_poll_init(r->loop, &p->poll, ac->c.fd) != 0) {
		free(p);
		return false;
	}
	p->poll.data = p;
	p->ac = ac;
	ac->ev.data = p;
	ac->ev.addRead = add_read;
	ac->ev.delRead = del_read;
	ac->ev.addWrite = add_write;
	ac->ev.delWrite = del_write;
	ac->ev.cleanup = cleanup;
	return true;
}

/* --- state --- */

static void on_timer(uv_timer_t *timer);

static void go_down(struct redis *r, const char *why)
{
	if (r->phase == PHASE_CLOSED)
		return;
	bool was_up = r->phase == PHASE_UP;
	r->ac = NULL;
	r->phase = PHASE_DOWN;
	r->retry_at = uv_now(r->loop) + (uint64_t)r->backoff_ms;
	r->backoff_ms = r->backoff_ms * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : r->backoff_ms * 2;
	struct sl_buf text;
	sl_buf_init(&text);
	sl_buf_printf(&text, "Redis at %s:%d: %s", r->url.host, r->url.port, why);
	if (strstr(why, "refused"))
		sl_buf_adds(&text, " (is it running? One that cannot write its append only file, as on a full disk, "
				   "ends itself: see "
				   "its log, make room, start it again; nothing is lost)");
	bool news = was_up || !r->why.data || strcmp(r->why.data, text.data) != 0;
	sl_buf_release(&r->why);
	r->why = text;
	uv_timer_start(&r->timer, on_timer, (uint64_t)(r->retry_at - uv_now(r->loop)), TICK_MS);
	if (news && r->state)
		r->state(r->state_arg, false, r->why.data);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis *r = ac->data;
	if (r->ac == ac)
		go_down(r, status == REDIS_OK ? "connection closed" : ac->c.errstr);
}

/* Ends the present connection: what waits for replies is lost. */
static void drop(struct redis *r, const char *why)
{
	redisAsyncContext *ac = r->ac;
	char text[256];
	snprintf(text, sizeof(text), "%s", why); /* may be part of what is freed */
	r->ac = NULL;
	redisAsyncFree(ac);
	go_down(r, text);
}

/* --- set-up --- */

enum { SETUP_AUTH, SETUP_SELECT, SETUP_SCRIPT, SETUP_INFO };

static void setup_reply(redisAsyncContext *ac, void *ptr, void *arg)
{
	struct redis *r = ac->data;
	const redisReply *reply = ptr;
	if (!reply || r->ac != ac)
		return;
	r->heard_at = uv_now(r->loop);
	int step = (int)(intptr_t)arg;
	if (reply->type == REDIS_REPLY_ERROR && step != SETUP_INFO) {
		drop(r, reply->str);
		return;
	}
	if (step == SETUP_SCRIPT && reply->type == REDIS_REPLY_STRING)
		snprintf(r->sha, sizeof(r->sha), "%s", reply->str);
	if (step == SETUP_INFO && reply->type == REDIS_REPLY_STRING) {
		const char *slaves = strstr(reply->str, "connected_slaves:");
		bool any = slaves && strtol(slaves + 17, NULL, 10) > 0;
		r->wait_replicas = r->url.replicas >= 0 ? r->url.replicas : any;
	}
	if (--r->setup_left > 0)
		return;
	r->phase = PHASE_UP;
	r->session++;
	r->backoff_ms = BACKOFF_MS_FIRST;
	sl_buf_clear(&r->why);
	if (r->state)
		r->state(r->state_arg, true, NULL);
}

static void setup(struct redis *r)
{
	r->phase = PHASE_SETUP;
	r->setup_left = 2;
	if (r->url.password) {
		r->setup_left++;
		if (r->url.user)
			redisAsyncCommand(
				r->ac, setup_reply, (void *)SETUP_AUTH, "AUTH %s %s", r->url.user, r->url.password);
		else
			redisAsyncCommand(r->ac, setup_reply, (void *)SETUP_AUTH, "AUTH %s", r->url.password);
	}
	if (r->url.db) {
		r->setup_left++;
		redisAsyncCommand(r->ac, setup_reply, (void *)SETUP_SELECT, "SELECT %d", r->url.db);
	}
	redisAsyncCommand(r->ac, setup_reply, (void *)SETUP_SCRIPT, "SCRIPT LOAD %s", sl_redis_commit_script);
	redisAsyncCommand(r->ac, setup_reply, (void *)SETUP_INFO, "INFO replication");
}

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct redis *r = ac->data;
	if (r->ac != ac)
		return;
	r->heard_at = uv_now(r->loop);
	if (status == REDIS_OK)
		setup(r);
	else
		go_down(r, ac->c.errstr); /* hiredis frees it */
}

static void connect_now(struct redis *r)
{
	redisAsyncContext *ac = redisAsyncConnect(r->url.host, r->url.port);
	sl_assert(ac);
	if (ac->err || !attach(r, ac)) {
		char text[128];
		snprintf(text, sizeof(text), "%s", ac->err ? ac->c.errstr : "cannot watch the socket");
		redisAsyncFree(ac);
		go_down(r, text);
		return;
	}
	ac->data = r;
	r->ac = ac;
	r->phase = PHASE_CONNECTING;
	r->heard_at = uv_now(r->loop);
	redisAsyncSetConnectCallback(ac, on_connect);
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
}

static void on_timer(uv_timer_t *timer)
{
	struct redis *r = timer->data;
	uint64_t now = uv_now(r->loop);
	if (r->phase == PHASE_DOWN && now >= r->retry_at)
		connect_now(r);
	else if (r->phase != PHASE_DOWN && r->ac && (r->first || r->phase != PHASE_UP) &&
		 now - r->heard_at > (uint64_t)r->url.timeout_ms)
		drop(r, "no answer");
}

void sl_redis_conn_start(struct redis *r)
{
	r->backoff_ms = BACKOFF_MS_FIRST;
	r->phase = PHASE_DOWN;
	uv_timer_init(r->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, on_timer, 0, TICK_MS);
}

static void conn_closed(uv_handle_t *handle)
{
	struct redis *r = handle->data;
	sl_redis_url_release(&r->url);
	sl_buf_release(&r->why);
	free(r->prefix);
	free(r);
}

void sl_redis_conn_close(struct redis *r)
{
	r->phase = PHASE_CLOSED;
	redisAsyncContext *ac = r->ac;
	r->ac = NULL;
	if (ac)
		redisAsyncFree(ac);
	sl_later_free(r->later);
	uv_close((uv_handle_t *)&r->timer, conn_closed);
}
