/* sluice-executor: takes actions, calls services, answers the instances. One screen: what it is made of and how it
 * ends. With
 * --evaluate as its first argument it is its own helper process for expressions that use secrets (R8). */
#include "common/adapters/child/child.h"
#include "common/adapters/http/http.h"
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/uv/clock.h"
#include "common/app/limits.h"
#include "common/app/service.h"
#include "common/base/log.h"
#include "common/expr/expr.h"
#include "services/common/connect.h"
#include "services/executor/executor.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct state {
	struct sl_service *svc;
	struct sl_arena arena;
	struct sl_topics topics;
	struct sl_broker *broker;
	struct sl_store *store;
	struct sl_clock *clock;
	struct sl_caller *caller;
	struct sl_helper *helper;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_executor *ex;
	uv_prepare_t prepare;
	uv_idle_t idle; /* runs while more is ready: the loop does not sleep */
	uv_async_t async;
	int handles; /* those that are not closed yet: this memory is theirs too */
	bool draining;
};

static char **helper_argv;

static void wake(void *arg)
{
	uv_async_send(&((struct state *)arg)->async);
}

static void fatal(void *arg, int err, const char *text)
{
	sl_service_fail(((struct state *)arg)->svc, err, "%s", text);
}

static char *secret(void *arg, const char *name)
{
	return sl_config_secret(arg, name);
}

static void limit_expressions(const struct sl_config *cfg)
{
	struct sl_expr_limits expr = {.soft_ms = cfg->expr_soft_ms,
		.bytes_max = (size_t)cfg->instance_state_bytes_max * 4,
		.depth_max = (int)cfg->data_depth_max};
	sl_expr_init(&expr);
}

static void idle(uv_idle_t *handle)
{
	(void)handle;
}

static void turn(uv_prepare_t *handle)
{
	struct state *st = handle->data;
	bool more = sl_definitions_turn(st->definitions);
	more = sl_executor_turn(st->ex) || more;
	if (st->draining && sl_executor_idle(st->ex))
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
	if (st->ex)
		sl_executor_close(st->ex);
	sl_definitions_free(st->definitions);
	uv_close((uv_handle_t *)&st->async, closed);
	uv_close((uv_handle_t *)&st->prepare, closed);
	uv_close((uv_handle_t *)&st->idle, closed);
	st->broker->ops->close(st->broker, 2000);
	st->store->ops->close(st->store);
	st->caller->ops->close(st->caller);
	st->helper->ops->close(st->helper);
	sl_executor_free(st->ex);
	sl_clock_uv_free(st->clock);
	sl_plans_free(st->plans);
	sl_arena_release(&st->arena);
}

static int build(struct state *st, struct sl_diags *diags)
{
	const struct sl_config *cfg = st->svc->config;
	struct sl_definitions_options defs = {.broker = st->broker,
		.plans = st->plans,
		.topic = st->topics.definitions,
		.wake = wake,
		.fatal = fatal,
		.arg = st};
	int err = sl_definitions_new(&defs, &st->definitions, diags);
	if (err)
		return err;
	struct sl_executor_options opt = {.broker = st->broker,
		.store = st->store,
		.clock = st->clock,
		.caller = st->caller,
		.helper = st->helper,
		.definitions = st->definitions,
		.plans = st->plans,
		.topics = &st->topics,
		.group = sl_arena_printf(&st->arena, "%sexecutor", cfg->topic_prefix),
		.secret = secret,
		.secret_arg = st->svc->config,
		.json = sl_config_json_limits(cfg),
		.in_flight_max = (int)cfg->executor_in_flight_max,
		.timeout_ms = cfg->executor_timeout_ms,
		.answer_bytes_max = (size_t)cfg->executor_answer_bytes_max,
		.result_bytes_max = (size_t)cfg->event_bytes_max * 4 - 65536,
		.wake = wake,
		.fatal = fatal,
		.arg = st};
	opt.json.bytes_max = (size_t)cfg->executor_answer_bytes_max;
	return sl_executor_new(&opt, &st->ex, diags);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	const struct sl_config *cfg = svc->config;
	int err = sl_connect_check_topics(cfg, diags);
	if (err)
		return err;
	struct state *st = calloc(1, sizeof(*st));
	sl_assert(st);
	st->svc = svc;
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
	const char **allow = SL_NEWN(&st->arena, const char *, cfg->executor_egress_allow.count + 1);
	for (int i = 0; i < cfg->executor_egress_allow.count; i++)
		allow[i] = cfg->executor_egress_allow.items[i];
	struct sl_http_options http = {.allow = allow,
		.loopback = cfg->executor_egress_loopback,
		.timeout_ms = cfg->executor_timeout_ms,
		.answer_bytes_max = (size_t)cfg->executor_answer_bytes_max,
		.connections_max = (int)cfg->executor_in_flight_max};
	struct sl_child_options child = {
		.argv = (const char *const *)helper_argv, .timeout_ms = (int)cfg->expr_hard_ms};
	limit_expressions(cfg);
	st->clock = sl_clock_uv_new(svc->loop);
	st->caller = sl_caller_http_new(svc->loop, &http);
	st->helper = sl_helper_child_new(svc->loop, &child);
	st->plans = sl_plans_new();
	uv_async_init(svc->loop, &st->async, woken);
	uv_prepare_init(svc->loop, &st->prepare);
	uv_idle_init(svc->loop, &st->idle);
	st->async.data = st->prepare.data = st->idle.data = st;
	st->handles = 3;
	svc->state = st;
	err = build(st, diags);
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
	if (!sl_kafka_reachable(st->broker, &text))
		return text ? text : "Kafka does not answer";
	return sl_executor_ready(st->ex);
}

static void drain(struct sl_service *svc)
{
	struct state *st = svc->state;
	st->draining = true;
	sl_executor_drain(st->ex);
}

static const struct sl_service_spec spec = {
	.name = "executor",
	.letter = "E",
	.summary = "calls services for workflow instances",
	.start = start,
	.ready = ready,
	.drain = drain,
	.stop = stop,
};

/* The helper: questions on descriptor 0, which is a socket pair; nothing else of the executor's is open in it. */
static int evaluate(int argc, char **argv)
{
	struct sl_config cfg;
	struct sl_diags diags;
	sl_diags_init(&diags);
	sl_config_init(&cfg);
	closefrom(3);
	setenv("TZ", "UTC", 1);
	sl_log_init("executor-helper", SL_WARN, !isatty(2));
#ifndef __SANITIZE_ADDRESS__
	struct rlimit memory = {
		512u << 20, 512u << 20}; /* an expression that wants more ends this process, not the executor */
	setrlimit(RLIMIT_AS, &memory);
#endif
	int err = sl_config_load(&cfg, argc, argv, environ, false, &diags);
	if (!err) {
		limit_expressions(&cfg);
		struct sl_evaluator *ev = sl_evaluator_new(secret, &cfg);
		err = sl_evaluator_serve(ev, 0);
		sl_evaluator_free(ev);
	}
	sl_config_release(&cfg);
	sl_diags_release(&diags);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--evaluate") == 0)
		return evaluate(argc - 1, argv + 1);
	helper_argv = calloc((size_t)argc + 2, sizeof(char *));
	sl_assert(helper_argv);
	helper_argv[0] = "/proc/self/exe";
	helper_argv[1] = "--evaluate";
	for (int i = 1; i < argc; i++)
		helper_argv[i + 1] = argv[i];
	int code = sl_service_main(&spec, argc, argv);
	free(helper_argv);
	return code;
}
