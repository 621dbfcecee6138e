/* What hosts a pipeline in a process. */
#include "services/common/host.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/uv/clock.h"
#include "common/base/log.h"

/* Where jemalloc is linked: few arenas, and what a burst needed goes back soon. Read by name. */
extern const char *malloc_conf;
const char *malloc_conf = "narenas:2,dirty_decay_ms:500,muzzy_decay_ms:0";

#define TICK_MS 100
#define TRIM_TICKS 50
#define CHECK_TICKS 30
#define RECHECK_TICKS 2 /* while something is wrong: ready soon after it is mended */
#define TOPIC_RECHECK_MS 5000
#define TOPIC_CHECK_MS 1000
#define CLOSE_MS 2000

/* --- turns --- */

static void on_idle(uv_idle_t *handle)
{
	(void)handle;
}

static void on_prepare(uv_prepare_t *handle)
{
	struct sl_host *host = handle->data;
	if (!host->layout_trouble || host->draining ? host->turn(host) : false)
		uv_idle_start(&host->idle, on_idle);
	else
		uv_idle_stop(&host->idle);
}

static void on_async(uv_async_t *handle)
{
	(void)handle; /* the next turn sees what there is */
}

static void checked(void *arg, int err, const char *text)
{
	struct sl_host *host = arg;
	snprintf(host->store_trouble, sizeof(host->store_trouble), "%s", !err ? "" : text ? text : sl_err_text(err));
}

/* --- the topics, looked at again while the service runs: their settings belong to others --- */

static void tell_topics(struct sl_host *host, const char *text)
{
	if (*text && strcmp(text, host->topic_trouble) != 0)
		sl_log(SL_WARN, "%s", text);
	else if (!*text && *host->topic_trouble)
		sl_log(SL_INFO, "the topics are as they must be again");
	snprintf(host->topic_trouble, sizeof(host->topic_trouble), "%s", text);
}

struct topic_check { /* what the worker's thread has */
	struct sl_host *host;
	const struct sl_config *config;
	int err;
	char text[sizeof(((struct sl_host *)0)->topic_trouble)];
};

static void check_topics(uv_work_t *work)
{
	struct topic_check *check = work->data;
	struct sl_diags diags;
	struct sl_buf text;
	sl_diags_init(&diags);
	sl_buf_init(&text);
	check->err = sl_connect_check_topics(check->config, TOPIC_CHECK_MS, &diags);
	for (const struct sl_diag *d = diags.first; d; d = d->next)
		if (d->severity == SL_SEVERITY_ERROR)
			sl_buf_printf(&text, "%s%s%s%s%s", text.len ? "; " : "", d->text, d->hint ? " (" : "", d->hint ? d->hint : "",
				d->hint ? ")" : "");
	snprintf(check->text, sizeof(check->text), "%s", text.len ? text.data : "");
	sl_buf_release(&text);
	sl_diags_release(&diags);
}

static void handle_gone(struct sl_host *host)
{
	if (--host->handles == 0)
		free(host);
}

static void topics_checked(uv_work_t *work, int status)
{
	struct topic_check *check = work->data;
	struct sl_host *host = check->host;
	/* Kafka that does not answer is told elsewhere */
	if (status == 0 && !host->closing && (!check->err || check->err == SL_ENOTFOUND || check->err == SL_EINVAL))
		tell_topics(host, check->text);
	free(check);
	host->checking = false;
	handle_gone(host);
}

static void recheck_topics(struct sl_host *host)
{
	const char *text;
	int64_t every_ms = host->svc->config->topic_check_ms, waited_ms = ++host->topic_ticks * TICK_MS;
	bool due = waited_ms >= every_ms || (*host->topic_trouble && waited_ms >= TOPIC_RECHECK_MS);
	if (!due || host->checking || host->draining || !sl_kafka_reachable(host->broker, &text))
		return;
	host->topic_ticks = 0;
	struct topic_check *check = calloc(1, sizeof(*check));
	sl_assert(check);
	check->host = host;
	check->config = host->svc->config;
	host->topic_check.data = check;
	host->checking = true;
	host->handles++;
	if (uv_queue_work(host->svc->loop, &host->topic_check, check_topics, topics_checked))
		topics_checked(&host->topic_check, UV_ECANCELED);
}

static void fix_partitions(void *arg, int32_t count)
{
	struct sl_host *host = arg;
	sl_kafka_fix_partitions(host->broker, host->topics.instances, count);
}

static void on_tick(uv_timer_t *handle)
{
	struct sl_host *host = handle->data;
	if (host->layout_trouble && !host->draining)
		host->layout_trouble = sl_layout_turn(host->layout);
	recheck_topics(host);
	if (host->ticks % (*host->store_trouble ? RECHECK_TICKS : CHECK_TICKS) == 0) /* R10: is Redis as safe as it must be? */
		host->store->ops->check(host->store, checked, host);
	if (++host->ticks % TRIM_TICKS == 0)
		malloc_trim(0); /* what a burst needed goes back */
}

void sl_host_wake(void *host)
{
	uv_async_send(&((struct sl_host *)host)->async);
}

void sl_host_fatal(void *host, int err, const char *text)
{
	sl_service_fail(((struct sl_host *)host)->svc, err, "%s", text);
}

/* --- life --- */

int sl_host_open(struct sl_host *host, struct sl_service *svc, bool (*turn)(struct sl_host *host), struct sl_diags *diags)
{
	mallopt(M_ARENA_MAX, 2); /* librdkafka's threads need no arenas of their own */
	host->svc = svc;
	host->turn = turn;
	sl_arena_init(&host->arena);
	int err = sl_connect_check_topics(svc->config, 0, diags);
	if (err == SL_ENOTFOUND || err == SL_EINVAL)
		err = SL_EAGAIN; /* who keeps the topics can mend that while we wait */
	if (!err) {
		for (const struct sl_diag *d = diags->first; d; d = d->next)
			sl_log(SL_WARN, "%s%s%s%s", d->text, d->hint ? " (" : "", d->hint ? d->hint : "", d->hint ? ")" : "");
		sl_connect_topics(svc->config, &host->arena, &host->topics);
		host->broker = sl_connect_kafka(svc->config, svc->loop, svc->spec->name, diags);
		host->store = host->broker ? sl_connect_redis(svc->config, svc->loop, svc->spec->name, diags) : NULL;
		err = host->store ? 0 : SL_ECONFIG;
	}
	if (err) {
		if (host->broker)
			host->broker->ops->close(host->broker, 0);
		sl_arena_release(&host->arena);
		free(host);
		return err;
	}
	host->clock = sl_clock_uv_new(svc->loop);
	host->layout = sl_layout_new(&(struct sl_layout_options){.broker = host->broker,
		.store = host->store,
		.topic = host->topics.instances,
		.fix = fix_partitions,
		.wake = sl_host_wake,
		.arg = host});
	host->layout_trouble = "the layout of the instances is being read";
	uv_async_init(svc->loop, &host->async, on_async);
	uv_prepare_init(svc->loop, &host->prepare);
	uv_idle_init(svc->loop, &host->idle);
	uv_timer_init(svc->loop, &host->tick);
	host->async.data = host->prepare.data = host->idle.data = host->tick.data = host;
	host->handles = 4;
	return 0;
}

void sl_host_run(struct sl_host *host)
{
	uv_prepare_start(&host->prepare, on_prepare);
	uv_timer_start(&host->tick, on_tick, TICK_MS, TICK_MS);
}

const char *sl_host_ready(struct sl_host *host)
{
	const char *text = NULL;
	if (!sl_kafka_reachable(host->broker, &text))
		return text && *text ? text : "Kafka does not answer";
	if (!sl_connect_redis_up(host->store))
		return sl_connect_redis_trouble(host->store) ? sl_connect_redis_trouble(host->store) : "Redis does not answer";
	if (*host->store_trouble)
		return host->store_trouble;
	if (*host->topic_trouble)
		return host->topic_trouble;
	if (host->layout_trouble)
		return host->layout_trouble;
	return sl_kafka_joining(host->broker) ? "a consumer group has not given out its partitions yet" : NULL;
}

void sl_host_drain(struct sl_host *host)
{
	host->draining = true;
	sl_host_wake(host);
}

static void closed(uv_handle_t *handle)
{
	handle_gone(handle->data);
}

void sl_host_close(struct sl_host *host)
{
	host->closing = true;
	if (host->checking)
		uv_cancel((uv_req_t *)&host->topic_check);
	uv_prepare_stop(&host->prepare);
	uv_timer_stop(&host->tick);
	host->broker->ops->close(host->broker, CLOSE_MS);
	host->store->ops->close(host->store);
}

void sl_host_free(struct sl_host *host)
{
	sl_clock_uv_free(host->clock);
	sl_layout_free(host->layout);
	sl_arena_release(&host->arena);
	uv_close((uv_handle_t *)&host->async, closed);
	uv_close((uv_handle_t *)&host->prepare, closed);
	uv_close((uv_handle_t *)&host->idle, closed);
	uv_close((uv_handle_t *)&host->tick, closed);
}
