/* sluice-coordinator: routes events and commands, owns and steps instances. One screen: what it is made of and how it ends. */
#include "common/adapters/http/http.h"
#include "common/adapters/redis/note.h"
#include "common/app/limits.h"
#include "common/base/log.h"
#include "common/expr/expr.h"
#include "services/common/host.h"
#include "services/coordinator/coordinator.h"
#include "services/coordinator/watchdog.h"
#include <stdlib.h>

struct state {
	struct sl_host host; /* first member */
	struct sl_caller *caller;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_watchdog *dog;
	struct sl_coordinator *co; /* NULL until the definitions have been read to their end */
};

static enum sl_event_mode event_mode(const struct sl_config *cfg)
{
	if (sl_config_is(cfg->event_mode, "binary"))
		return SL_EVENT_BINARY;
	return sl_config_is(cfg->event_mode, "avro") ? SL_EVENT_AVRO : SL_EVENT_STRUCTURED;
}

/* R7: in the watchdog's thread, while this one is stuck in a step. */
static void tell(void *arg, const struct sl_stepping *what, const char *reason)
{
	const struct sl_config *cfg = arg;
	struct sl_buf text, why;
	sl_buf_init(&text);
	sl_buf_init(&why);
	sl_buf_printf(&text, "%s~%s %s", what->ns, what->to, reason);
	int err = sl_redis_note_proved(cfg->redis_url, cfg->redis_prefix, what->partition, what->epoch, what->offset, what->path,
		text.data, &why);
	if (err)
		sl_log(SL_ERROR, "the next owner cannot be told: %s", why.data ? why.data : sl_err_text(err));
	sl_buf_release(&text);
	sl_buf_release(&why);
}

static void join(struct state *st)
{
	struct sl_host *host = &st->host;
	const struct sl_config *cfg = host->svc->config;
	const char **allow = SL_NEWN(&host->arena, const char *, cfg->deploy_resources_allow.count + 1);
	for (int i = 0; i < cfg->deploy_resources_allow.count; i++)
		allow[i] = cfg->deploy_resources_allow.items[i];
	struct sl_coordinator_options opt = {.broker = host->broker,
		.store = host->store,
		.clock = host->clock,
		.caller = st->caller,
		.definitions = st->definitions,
		.plans = st->plans,
		.topics = &host->topics,
		.json = sl_config_json_limits(cfg),
		.event_mode = event_mode(cfg),
		.group = sl_arena_printf(&host->arena, "%scoordinator", cfg->topic_prefix),
		.resources_allow = allow,
		.batch_records_max = (int)cfg->batch_records_max,
		.batch_bytes_max = cfg->batch_bytes_max,
		.local_steps_max = (int)cfg->steps_local_max,
		.cache_bytes_max = cfg->cache_bytes_max,
		.wake = sl_host_wake,
		.fatal = sl_host_fatal,
		.arg = host,
		.stepping = sl_watchdog_stepping,
		.stepping_arg = st->dog};
	struct sl_diags diags;
	sl_config_limits(cfg, &opt.limits);
	sl_diags_init(&diags);
	int err = sl_coordinator_new(&opt, &st->co, &diags);
	if (err && sl_err_class(err) != SL_CLASS_RETRY) /* else the next turn tries again */
		sl_service_fail(host->svc, err, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static bool turn(struct sl_host *host)
{
	struct state *st = (struct state *)host;
	bool more = sl_definitions_turn(st->definitions);
	if (!st->co && !host->draining && sl_definitions_complete(st->definitions))
		join(st);
	if (st->co)
		more = sl_coordinator_turn(st->co) || more;
	if (host->draining && (!st->co || sl_coordinator_idle(st->co)))
		sl_service_drained(host->svc);
	return more;
}

/* The ports go first: they call back no more when the pipeline is freed. */
static void stop(struct sl_service *svc)
{
	struct state *st = svc->state;
	if (st->co)
		sl_coordinator_close(st->co);
	sl_definitions_free(st->definitions);
	sl_host_close(&st->host);
	st->caller->ops->close(st->caller);
	sl_coordinator_free(st->co);
	sl_watchdog_free(st->dog);
	sl_plans_free(st->plans);
	sl_host_free(&st->host);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	const struct sl_config *cfg = svc->config;
	struct sl_http_options http = {.loopback = true}; /* deploy.resources_allow decides what may be fetched */
	struct sl_expr_limits expr = {.soft_ms = cfg->expr_soft_ms,
		.bytes_max = (size_t)cfg->instance_state_bytes_max * 4,
		.depth_max = (int)cfg->data_depth_max};
	struct state *st = calloc(1, sizeof(*st));
	sl_assert(st);
	sl_expr_init(&expr);
	int err = sl_host_open(&st->host, svc, turn, diags);
	if (err)
		return err;
	st->caller = sl_caller_http_new(svc->loop, &http);
	st->plans = sl_plans_new();
	st->dog = sl_watchdog_new(&(struct sl_watchdog_options){.soft_ms = cfg->expr_soft_ms,
		.hard_ms = cfg->expr_hard_ms,
		.memory_max = cfg->expr_memory_max,
		.tell = tell,
		.arg = svc->config});
	struct sl_definitions_options opt = {.broker = st->host.broker,
		.plans = st->plans,
		.topic = st->host.topics.definitions,
		.wake = sl_host_wake,
		.fatal = sl_host_fatal,
		.arg = st};
	svc->state = st;
	err = sl_definitions_new(&opt, &st->definitions, diags);
	if (err)
		stop(svc);
	else
		sl_host_run(&st->host);
	return err;
}

static const char *ready(struct sl_service *svc)
{
	struct state *st = svc->state;
	const char *why = sl_host_ready(&st->host);
	if (!why && !st->co)
		why = "the definitions are being read";
	return why ? why : sl_coordinator_ready(st->co);
}

static void drain(struct sl_service *svc)
{
	struct state *st = svc->state;
	if (st->co)
		sl_coordinator_drain(st->co);
	sl_host_drain(&st->host);
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
	return sl_service_main(&spec, argc, argv);
}
