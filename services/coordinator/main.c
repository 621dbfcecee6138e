/* sluice-coordinator: routes events and commands, owns and steps instances. One screen: what it is made of and how it ends. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/adapters/http/http.h"
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/uv/clock.h"
#include "common/app/limits.h"
#include "common/app/service.h"
#include "common/base/log.h"
#include "common/expr/expr.h"
#include "services/common/connect.h"
#include "services/coordinator/coordinator.h"

struct state {
	struct sl_service *svc;
	struct sl_arena arena;
	struct sl_topics topics;
	struct sl_broker *broker;
	struct sl_store *store;
	struct sl_clock *clock;
	struct sl_caller *caller;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_coordinator *co;      /* NULL until the definitions have been read to their end */
	uv_prepare_t prepare;
	uv_idle_t idle;                 /* runs while more is ready: the loop does not sleep */
	uv_async_t async;
	uv_timer_t tick;                /* what waits for time alone gets a turn */
	int handles;                    /* still open */
	unsigned ticks;
	char store_trouble[256];        /* "": Redis is well */
	bool draining;
};

#define TICK_MS 100
#define TRIM_TICKS 50
#define CHECK_TICKS 100

static void wake(void *arg)
{
	uv_async_send(&((struct state *)arg)->async);
}

static void fatal(void *arg, int err, const char *text)
{
	sl_service_fail(((struct state *)arg)->svc, err, "%s", text);
}

static enum sl_event_mode event_mode(const struct sl_config *cfg)
{
	return sl_config_is(cfg->event_mode, "binary") ? SL_EVENT_BINARY
	       : sl_config_is(cfg->event_mode, "avro") ? SL_EVENT_AVRO
						       : SL_EVENT_STRUCTURED;
}

static void join(struct state *st)
{
	const struct sl_config *cfg = st->svc->config;
	const char **allow = SL_NEWN(&st->arena, const char *, cfg->deploy_resources_allow.count + 1);
	for (int i = 0; i < cfg->deploy_resources_allow.count; i++)
		allow[i] = cfg->deploy_resources_allow.items[i];
	struct sl_coordinator_options opt = {.broker = st->broker, .store = st->store, .clock = st->clock, .caller = st->caller,
		.definitions = st->definitions, .plans = st->plans, .topics = &st->topics, .json = sl_config_json_limits(cfg),
		.event_mode = event_mode(cfg), .group = sl_arena_printf(&st->arena, "%scoordinator", cfg->topic_prefix),
		.resources_allow = allow, .batch_records_max = (int)cfg->batch_records_max, .batch_bytes_max = cfg->batch_bytes_max,
		.local_steps_max = (int)cfg->steps_local_max, .cache_bytes_max = cfg->cache_bytes_max, .wake = wake, .fatal = fatal,
		.arg = st};
	struct sl_diags diags;
	sl_config_limits(cfg, &opt.limits);
	sl_diags_init(&diags);
	int err = sl_coordinator_new(&opt, &st->co, &diags);
	if (err)
		sl_service_fail(st->svc, err, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static void turn(uv_prepare_t *handle);
static void idle(uv_idle_t *handle)
{
	(void)handle;
}

static void turn(uv_prepare_t *handle)
{
	struct state *st = handle->data;
	bool more = sl_definitions_turn(st->definitions);
	if (!st->co && !st->draining && sl_definitions_complete(st->definitions))
		join(st);
	if (st->co)
		more = sl_coordinator_turn(st->co) || more;
	if (st->draining && (!st->co || sl_coordinator_idle(st->co)))
		sl_service_drained(st->svc);
	if (more)
		uv_idle_start(&st->idle, idle);
	else
		uv_idle_stop(&st->idle);
}

static void woken(uv_async_t *handle)
{
	(void)handle; /* the next turn sees what there is */
}

static void checked(void *arg, int err, const char *text)
{
	struct state *st = arg;
	snprintf(st->store_trouble, sizeof(st->store_trouble), "%s", err ? (text ? text : sl_err_text(err)) : "");
}

static void ticked(uv_timer_t *handle)
{
	struct state *st = handle->data;
	if (st->ticks % CHECK_TICKS == 0) /* R10: is Redis as safe as it must be? */
		st->store->ops->check(st->store, checked, st);
	if (++st->ticks % TRIM_TICKS == 0)
		malloc_trim(0); /* what a burst needed goes back */
}

static void closed(uv_handle_t *handle)
{
	struct state *st = handle->data;
	if (--st->handles == 0)
		free(st);
}

/* The ports go first: they call back no more when the pipeline is freed. */
static void stop(struct sl_service *svc)
{
	struct state *st = svc->state;
	if (st->co)
		sl_coordinator_close(st->co);
	sl_definitions_free(st->definitions);
	uv_close((uv_handle_t *)&st->async, closed);
	uv_close((uv_handle_t *)&st->prepare, closed);
	uv_close((uv_handle_t *)&st->idle, closed);
	uv_close((uv_handle_t *)&st->tick, closed);
	st->broker->ops->close(st->broker, 2000);
	st->store->ops->close(st->store);
	st->caller->ops->close(st->caller);
	sl_coordinator_free(st->co);
	sl_clock_uv_free(st->clock);
	sl_plans_free(st->plans);
	sl_arena_release(&st->arena);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	const struct sl_config *cfg = svc->config;
	struct sl_http_options http = {.loopback = true}; /* deploy.resources_allow decides what may be fetched */
	struct sl_expr_limits expr = {.soft_ms = cfg->expr_soft_ms, .bytes_max = (size_t)cfg->instance_state_bytes_max * 4,
		.depth_max = (int)cfg->data_depth_max};
	int err = sl_connect_check_topics(cfg, diags);
	if (err)
		return err;
	struct state *st = calloc(1, sizeof(*st));
	sl_assert(st);
	st->svc = svc;
	sl_expr_init(&expr);
	sl_arena_init(&st->arena);
	sl_connect_topics(cfg, &st->arena, &st->topics);
	st->broker = sl_connect_kafka(cfg, svc->loop, svc->spec->name, diags);
	st->store = st->broker ? sl_connect_redis(cfg, svc->loop, svc->spec->name, diags) : NULL;
	if (!st->store) {
		if (st->broker)
			st->broker->ops->close(st->broker, 0);
		sl_arena_release(&st->arena);
		free(st);
		return SL_ECONFIG;
	}
	st->clock = sl_clock_uv_new(svc->loop);
	st->caller = sl_caller_http_new(svc->loop, &http);
	st->plans = sl_plans_new();
	uv_async_init(svc->loop, &st->async, woken);
	uv_prepare_init(svc->loop, &st->prepare);
	uv_idle_init(svc->loop, &st->idle);
	uv_timer_init(svc->loop, &st->tick);
	uv_timer_start(&st->tick, ticked, TICK_MS, TICK_MS);
	st->async.data = st->prepare.data = st->idle.data = st->tick.data = st;
	st->handles = 4;
	struct sl_definitions_options opt = {.broker = st->broker, .plans = st->plans, .topic = st->topics.definitions, .wake = wake,
		.fatal = fatal, .arg = st};
	svc->state = st;
	err = sl_definitions_new(&opt, &st->definitions, diags);
	if (err)
		stop(svc);
	else
		uv_prepare_start(&st->prepare, turn);
	return err;
}

static const char *ready(struct sl_service *svc)
{
	struct state *st = svc->state;
	const char *text = NULL;
	if (!st->co)
		return "the definitions are being read";
	if (!sl_kafka_reachable(st->broker, &text))
		return text ? text : "Kafka does not answer";
	if (*st->store_trouble)
		return st->store_trouble;
	return sl_coordinator_ready(st->co);
}

static void drain(struct sl_service *svc)
{
	struct state *st = svc->state;
	st->draining = true;
	if (st->co)
		sl_coordinator_drain(st->co);
	wake(st);
}

static const struct sl_service_spec spec = {
	.name = "coordinator",
	.letter = "C",
	.summary = "routes events and commands to workflow instances, and runs them",
	.start = start,
	.ready = ready,
	.drain = drain,
	.stop = stop,
};

int main(int argc, char **argv)
{
	mallopt(M_ARENA_MAX, 2); /* librdkafka's threads need no arenas of their own */
	return sl_service_main(&spec, argc, argv);
}
