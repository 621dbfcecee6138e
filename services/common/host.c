/* What hosts a pipeline in a process. */
#include "services/common/host.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/uv/clock.h"
#include "common/base/log.h"

/* Where jemalloc is linked: few arenas, and what a burst needed goes back soon. Read by name. */
extern const char *malloc_conf;
const char *malloc_conf = "narenas:2,dirty_decay_ms:500,muzzy_decay_ms:0";

#define TICK_MS 100
#define TRIM_TICKS 50
#define CHECK_TICKS 100
#define RECHECK_TICKS 2 /* while something is wrong: ready soon after it is mended */
#define CLOSE_MS 2000

/* --- turns --- */

static void on_idle(uv_idle_t *handle)
{
	(void)handle;
}

static void on_prepare(uv_prepare_t *handle)
{
	struct sl_host *host = handle->data;
	if (host->turn(host))
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

static void on_tick(uv_timer_t *handle)
{
	struct sl_host *host = handle->data;
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
	int err = sl_connect_check_topics(svc->config, diags);
	if (!err) {
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
		return "Redis does not answer";
	return *host->store_trouble ? host->store_trouble : NULL;
}

void sl_host_drain(struct sl_host *host)
{
	host->draining = true;
	sl_host_wake(host);
}

static void closed(uv_handle_t *handle)
{
	struct sl_host *host = handle->data;
	if (--host->handles == 0)
		free(host);
}

void sl_host_close(struct sl_host *host)
{
	uv_prepare_stop(&host->prepare);
	uv_timer_stop(&host->tick);
	host->broker->ops->close(host->broker, CLOSE_MS);
	host->store->ops->close(host->store);
}

void sl_host_free(struct sl_host *host)
{
	sl_clock_uv_free(host->clock);
	sl_arena_release(&host->arena);
	uv_close((uv_handle_t *)&host->async, closed);
	uv_close((uv_handle_t *)&host->prepare, closed);
	uv_close((uv_handle_t *)&host->idle, closed);
	uv_close((uv_handle_t *)&host->tick, closed);
}
