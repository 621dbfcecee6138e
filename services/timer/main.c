/* sluice-timer: keeps timers in Redis and sends what is due. One screen: what it is made of and how it ends. */
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/uv/clock.h"
#include "common/app/service.h"
#include "common/base/log.h"
#include "services/common/connect.h"
#include "services/timer/timer.h"
#include <stdlib.h>

struct state {
	struct sl_service *svc;
	struct sl_arena arena;
	struct sl_topics topics;
	struct sl_broker *broker;
	struct sl_store *store;
	struct sl_clock *clock;
	struct sl_timers *tm; /* NULL until Kafka has told the numbers of partitions */
	uv_prepare_t prepare;
	uv_idle_t idle; /* runs while more is ready: the loop does not sleep */
	uv_async_t async;
	int handles; /* those that are not closed yet: this memory is theirs too */
	uv_timer_t again;
	bool draining;
};

static void wake(void *arg)
{
	uv_async_send(&((struct state *)arg)->async);
}

static void fatal(void *arg, int err, const char *text)
{
	sl_service_fail(((struct state *)arg)->svc, err, "%s", text);
}

static void woken_again(uv_timer_t *handle)
{
	(void)handle; /* the next turn tries to join */
}

static void join(struct state *st)
{
	const struct sl_config *cfg = st->svc->config;
	struct sl_timers_options opt = {.broker = st->broker,
		.store = st->store,
		.clock = st->clock,
		.topics = &st->topics,
		.group = sl_arena_printf(&st->arena, "%stimer", cfg->topic_prefix),
		.horizon_ms = cfg->timer_horizon_ms,
		.batch_max = (int)cfg->batch_records_max,
		.wake = wake,
		.fatal = fatal,
		.arg = st};
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = sl_timers_new(&opt, &st->tm, &diags);
	if (err && sl_err_class(err) == SL_CLASS_RETRY)
		uv_timer_start(&st->again, woken_again, 100, 0); /* metadata is on its way */
	else if (err)
		sl_service_fail(st->svc, err, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static void idle(uv_idle_t *handle)
{
	(void)handle;
}

static void turn(uv_prepare_t *handle)
{
	struct state *st = handle->data;
	bool more = false;
	if (!st->tm && !st->draining && !uv_is_active((uv_handle_t *)&st->again))
		join(st);
	if (st->tm)
		more = sl_timers_turn(st->tm);
	if (st->draining && (!st->tm || sl_timers_idle(st->tm)))
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
	if (st->tm)
		sl_timers_close(st->tm);
	uv_close((uv_handle_t *)&st->async, closed);
	uv_close((uv_handle_t *)&st->prepare, closed);
	uv_close((uv_handle_t *)&st->idle, closed);
	uv_close((uv_handle_t *)&st->again, closed);
	st->broker->ops->close(st->broker, 2000);
	st->store->ops->close(st->store);
	sl_timers_free(st->tm);
	sl_clock_uv_free(st->clock);
	sl_arena_release(&st->arena);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	int err = sl_connect_check_topics(svc->config, diags);
	if (err)
		return err;
	struct state *st = calloc(1, sizeof(*st));
	sl_assert(st);
	st->svc = svc;
	sl_arena_init(&st->arena);
	sl_connect_topics(svc->config, &st->arena, &st->topics);
	st->broker = sl_connect_kafka(svc->config, svc->loop, svc->spec->name, diags);
	st->store = st->broker ? sl_connect_redis(svc->config, svc->loop, svc->spec->name, diags) : NULL;
	if (!st->store) {
		if (st->broker)
			st->broker->ops->close(st->broker, 0);
		sl_arena_release(&st->arena);
		free(st);
		return SL_ECONFIG;
	}
	st->clock = sl_clock_uv_new(svc->loop);
	uv_async_init(svc->loop, &st->async, woken);
	uv_prepare_init(svc->loop, &st->prepare);
	uv_idle_init(svc->loop, &st->idle);
	uv_timer_init(svc->loop, &st->again);
	st->async.data = st->prepare.data = st->idle.data = st->again.data = st;
	st->handles = 4;
	svc->state = st;
	uv_prepare_start(&st->prepare, turn);
	return 0;
}

static const char *ready(struct sl_service *svc)
{
	struct state *st = svc->state;
	const char *text = NULL;
	if (!sl_kafka_reachable(st->broker, &text))
		return text ? text : "Kafka does not answer";
	return st->tm ? sl_timers_ready(st->tm) : "the topics are being looked up";
}

static void drain(struct sl_service *svc)
{
	struct state *st = svc->state;
	st->draining = true;
	if (st->tm)
		sl_timers_drain(st->tm);
	wake(st);
}

static const struct sl_service_spec spec = {
	.name = "timer",
	.letter = "T",
	.summary = "keeps timers and sends what is due",
	.start = start,
	.ready = ready,
	.drain = drain,
	.stop = stop,
};

int main(int argc, char **argv)
{
	return sl_service_main(&spec, argc, argv);
}
