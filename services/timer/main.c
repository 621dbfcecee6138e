/* sluice-timer: keeps timers in Redis and sends what is due. One screen: what it is made of and how it ends. */
#include "common/base/log.h"
#include "services/common/host.h"
#include "services/timer/timer.h"
#include <stdlib.h>

struct state {
	struct sl_host host; /* first member */
	struct sl_timers *tm; /* NULL until Kafka has told the numbers of partitions */
};

static void join(struct state *st)
{
	struct sl_host *host = &st->host;
	const struct sl_config *cfg = host->svc->config;
	struct sl_timers_options opt = {.broker = host->broker,
		.store = host->store,
		.clock = host->clock,
		.topics = &host->topics,
		.group = sl_arena_printf(&host->arena, "%stimer", cfg->topic_prefix),
		.horizon_ms = cfg->timer_horizon_ms,
		.batch_max = (int)cfg->batch_records_max,
		.wake = sl_host_wake,
		.fatal = sl_host_fatal,
		.arg = host};
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = sl_timers_new(&opt, &st->tm, &diags);
	if (err && sl_err_class(err) != SL_CLASS_RETRY) /* else the next turn tries again */
		sl_service_fail(host->svc, err, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static bool turn(struct sl_host *host)
{
	struct state *st = (struct state *)host;
	bool more = false;
	if (!st->tm && !host->draining)
		join(st);
	if (st->tm)
		more = sl_timers_turn(st->tm);
	if (host->draining && (!st->tm || sl_timers_idle(st->tm)))
		sl_service_drained(host->svc);
	return more;
}

/* The ports go first: they call back no more when the pipeline is freed. */
static void stop(struct sl_service *svc)
{
	struct state *st = svc->state;
	if (st->tm)
		sl_timers_close(st->tm);
	sl_host_close(&st->host);
	sl_timers_free(st->tm);
	sl_host_free(&st->host);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	struct state *st = calloc(1, sizeof(*st));
	sl_assert(st);
	int err = sl_host_open(&st->host, svc, turn, diags);
	if (err)
		return err;
	svc->state = st;
	sl_host_run(&st->host);
	return 0;
}

static const char *ready(struct sl_service *svc)
{
	struct state *st = svc->state;
	const char *why = sl_host_ready(&st->host);
	if (!why && !st->tm)
		why = "the topics are being looked up";
	return why ? why : sl_timers_ready(st->tm);
}

static void drain(struct sl_service *svc)
{
	struct state *st = svc->state;
	if (st->tm)
		sl_timers_drain(st->tm);
	sl_host_drain(&st->host);
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
