/* sluice-executor: takes actions, calls services, answers the instances. One screen: what it is made of and how it
 * ends. With
 * --evaluate as its first argument it is its own helper process for expressions that use secrets (R8). */
#include "common/adapters/child/child.h"
#include "common/adapters/http/http.h"
#include "common/app/limits.h"
#include "common/base/log.h"
#include "common/expr/expr.h"
#include "services/common/host.h"
#include "services/executor/executor.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct state {
	struct sl_host host; /* first member */
	struct sl_caller *caller;
	struct sl_helper *helper;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_executor *ex;
};

static char **helper_argv;

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

static bool turn(struct sl_host *host)
{
	struct state *st = (struct state *)host;
	bool more = sl_definitions_turn(st->definitions);
	more = sl_executor_turn(st->ex) || more;
	if (host->draining && sl_executor_idle(st->ex))
		sl_service_drained(host->svc);
	return more;
}

/* The ports go first: they call back no more when the pipeline is freed. */
static void stop(struct sl_service *svc)
{
	struct state *st = svc->state;
	if (st->ex)
		sl_executor_close(st->ex);
	sl_definitions_free(st->definitions);
	sl_host_close(&st->host);
	st->caller->ops->close(st->caller);
	st->helper->ops->close(st->helper);
	sl_executor_free(st->ex);
	sl_plans_free(st->plans);
	sl_host_free(&st->host);
}

static int build(struct state *st, struct sl_diags *diags)
{
	struct sl_host *host = &st->host;
	const struct sl_config *cfg = host->svc->config;
	struct sl_definitions_options defs = {.broker = host->broker,
		.plans = st->plans,
		.topic = host->topics.definitions,
		.wake = sl_host_wake,
		.fatal = sl_host_fatal,
		.arg = host};
	int err = sl_definitions_new(&defs, &st->definitions, diags);
	if (err)
		return err;
	struct sl_executor_options opt = {.broker = host->broker,
		.store = host->store,
		.clock = host->clock,
		.caller = st->caller,
		.helper = st->helper,
		.definitions = st->definitions,
		.plans = st->plans,
		.topics = &host->topics,
		.group = sl_arena_printf(&host->arena, "%sexecutor", cfg->topic_prefix),
		.secret = secret,
		.secret_arg = host->svc->config,
		.json = sl_config_json_limits(cfg),
		.in_flight_max = (int)cfg->executor_in_flight_max,
		.timeout_ms = cfg->executor_timeout_ms,
		.hand_over_ms = (int)cfg->executor_hand_over_ms,
		.answer_bytes_max = (size_t)cfg->executor_answer_bytes_max,
		.result_bytes_max = (size_t)cfg->event_bytes_max * 4 - 65536,
		.wake = sl_host_wake,
		.fatal = sl_host_fatal,
		.arg = host};
	opt.json.bytes_max = (size_t)cfg->executor_answer_bytes_max;
	return sl_executor_new(&opt, &st->ex, diags);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	const struct sl_config *cfg = svc->config;
	struct state *st = calloc(1, sizeof(*st));
	sl_assert(st);
	int err = sl_host_open(&st->host, svc, turn, diags);
	if (err)
		return err;
	const char **allow = SL_NEWN(&st->host.arena, const char *, cfg->executor_egress_allow.count + 1);
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
	st->caller = sl_caller_http_new(svc->loop, &http);
	st->helper = sl_helper_child_new(svc->loop, &child);
	st->plans = sl_plans_new();
	svc->state = st;
	err = build(st, diags);
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
	return why ? why : sl_executor_ready(st->ex);
}

static void drain(struct sl_service *svc)
{
	struct state *st = svc->state;
	sl_executor_drain(st->ex);
	sl_host_drain(&st->host);
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
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
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
