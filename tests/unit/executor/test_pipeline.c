/* The executor's road on the memory adapters: actions in, calls out, results and offsets. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/adapters/memory/memory.h"
#include "common/expr/expr.h"
#include "services/executor/executor.h"

#define T0 1700000000000

static struct sl_topics topics = {.instances = "sluice.instances", .actions = "sluice.actions", .timers = "sluice.timers",
	.definitions = "sluice.definitions", .dead_letter = "sluice.dead-letter"};

struct world {
	struct sl_memory *mem;
	struct sl_plans *plans;
	struct sl_executor *ex, *other; /* other: joins later, as process X */
	struct sl_broker *feeder;
	struct sl_arena arena;
	struct sl_executor_options opt;
	char fatal[600];
	/* the mock */
	int calls;
	char log[8192];                 /* "METHOD URL body;" of each call */
	int64_t delay_ms;
	int status;
	const char *answer, *type;
	const char *slow_host;
	int64_t attempt;                /* of the next actions */
	int32_t partition;              /* where they go */
};

static void no_wake(void *arg)
{
	(void)arg;
}

static void on_fatal(void *arg, int err, const char *text)
{
	struct world *w = arg;
	(void)err;
	snprintf(w->fatal, sizeof(w->fatal), "%s", text);
}

static int64_t mock(void *arg, const struct sl_http_request *req, struct sl_http_answer *ret)
{
	struct world *w = arg;
	size_t at = strlen(w->log);
	w->calls++;
	if (sizeof(w->log) - at > 600)
		snprintf(w->log + at, sizeof(w->log) - at, "%s %s %.*s;", req->method, req->url, (int)req->body.len,
			req->body.ptr ? (const char *)req->body.ptr : "");
	*ret = (struct sl_http_answer){.status = w->status, .content_type = w->type, .body = {w->answer, strlen(w->answer)}};
	if (w->slow_host)
		return strstr(req->url, w->slow_host) ? 20000 : 1;
	return w->delay_ms;
}

static char *no_secret(void *arg, const char *name)
{
	(void)arg;
	return strcmp(name, "TOKEN") == 0 ? strdup("s3cr3t") : NULL;
}

/* A plan by hand: functions and CALL nodes are all that the executor looks at. */
static void add_plan(struct world *w, const char *hash, int functions, const char *url)
{
	struct sl_plan *plan = sl_plan_new();
	snprintf(plan->hash, sizeof(plan->hash), "%s", hash);
	plan->id = plan->name = "wf";
	plan->version = "1.0.0";
	plan->function_count = functions;
	plan->functions = SL_NEWN(&plan->arena, struct sl_function, functions);
	for (int i = 0; i < functions; i++) {
		struct sl_function *f = &plan->functions[i];
		f->name = sl_arena_printf(&plan->arena, "f%d", i);
		f->kind = SL_FUNCTION_HTTP;
		f->expr = SL_NO_EXPR;
		f->http = (struct sl_http_call){.method = "POST", .url = sl_arena_printf(&plan->arena, url, i), .has_body = true,
			.body_required = true};
	}
	plan->root = sl_plan_node(plan, SL_NODE_SCOPE, "", SL_NOWHERE);
	sl_plans_add(w->plans, "default", plan);
	sl_plan_unref(plan);
}

static struct sl_executor *start_as(struct world *w, const char *process)
{
	struct sl_executor *ex;
	struct sl_diags diags;
	sl_diags_init(&diags);
	w->opt.broker = sl_memory_broker(w->mem, process);
	w->opt.store = sl_memory_store(w->mem, process);
	w->opt.clock = sl_memory_clock(w->mem, process);
	w->opt.caller = sl_memory_caller(w->mem, process);
	cr_assert_eq(sl_executor_new(&w->opt, &ex, &diags), 0, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	return ex;
}

static void start(struct world *w)
{
	w->ex = start_as(w, "E");
}

static void setup(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->mem = sl_memory_new(T0);
	sl_memory_topic(w->mem, topics.actions, 2, 0);
	sl_memory_topic(w->mem, topics.instances, 4, 0);
	sl_memory_topic(w->mem, topics.dead_letter, 1, 0);
	sl_memory_mock(w->mem, mock, w);
	w->plans = sl_plans_new();
	sl_arena_init(&w->arena);
	w->feeder = sl_memory_broker(w->mem, "F");
	w->status = 200;
	w->attempt = 2;
	w->answer = "{\"ok\":true}";
	w->type = "application/json";
	w->opt = (struct sl_executor_options){.plans = w->plans, .topics = &topics, .group = "x", .secret = no_secret,
		.wake = no_wake, .fatal = on_fatal, .arg = w};
	start(w);
}

static void teardown(struct world *w)
{
	sl_memory_kill(w->mem, "E", true);
	sl_executor_free(w->ex);
	if (w->other)
		sl_memory_kill(w->mem, "X", true);
	sl_executor_free(w->other);
	sl_memory_free(w->mem);
	sl_plans_free(w->plans);
	sl_arena_release(&w->arena);
}

/* Everything that can happen without time passing. */
static void settle(struct world *w)
{
	int64_t ran;
	do {
		bool more = sl_executor_turn(w->ex);
		if (w->other)
			more = sl_executor_turn(w->other) || more;
		ran = sl_memory_turn(w->mem, 0) + more;
	} while (ran);
}

static void pass(struct world *w, int64_t ms)
{
	int64_t until = sl_memory_now(w->mem) + ms;
	settle(w);
	while (sl_memory_fire(w->mem, until))
		settle(w);
	settle(w);
}

static void send(struct world *w, enum sl_msg_kind kind, const char *action, const char *function, jv data, int64_t deadline_ms)
{
	struct sl_msg msg;
	struct sl_record rec = {.topic = topics.actions, .partition = 0, .key = {action, strlen(action)}};
	sl_msg_init(&msg, kind);
	msg.ns = "default";
	msg.instance = msg.from = "home.1";
	msg.plan = "hash1";
	msg.node = "/x";
	msg.action = action;
	msg.function = function;
	msg.token = 5;
	msg.attempt = w->attempt;
	msg.data = data;
	msg.deadline_ms = deadline_ms;
	cr_assert_eq(sl_msg_record(&msg, &w->arena, &rec), 0);
	rec.topic = topics.actions;
	rec.partition = w->partition;
	cr_assert_eq(w->feeder->ops->produce(w->feeder, &rec, NULL, NULL), 0);
	w->feeder->ops->kick(w->feeder);
	sl_msg_clear(&msg);
}

/* The n-th result of the instance topic (all go to one partition); false: there is none. */
static bool result(struct world *w, int n, struct sl_msg *ret)
{
	for (int32_t p = 0; p < 4; p++) {
		struct sl_record rec;
		struct sl_diags diags;
		uint64_t fp;
		if (!sl_memory_record(w->mem, topics.instances, p, n, &rec))
			continue;
		sl_diags_init(&diags);
		cr_assert_eq(sl_msg_decode(rec.value, &w->arena, ret, &fp, &diags), 0);
		sl_diags_release(&diags);
		cr_assert_eq(p, sl_id_partition("default", "home.1", 4), "it goes where the instance lives");
		return true;
	}
	return false;
}

static int results(struct world *w)
{
	int n = 0;
	for (int32_t p = 0; p < 4; p++)
		n += (int)sl_memory_high(w->mem, topics.instances, p);
	return n;
}

static jv args(const char *text)
{
	jv value;
	cr_assert_eq(sl_json_parse(text, strlen(text), &sl_json_default, &value, NULL), 0);
	return value;
}

TestSuite(executor, .timeout = 60);

Test(executor, an_action_is_called_and_answered_and_its_offset_committed)
{
	struct world w;
	struct sl_msg msg;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{\"q\":1}"), 0);
	pass(&w, 5000);
	cr_expect_str_eq(w.log, "POST http://svc0/x {\"q\":1};", "%s", w.log);
	cr_assert_eq(results(&w), 1);
	cr_assert(result(&w, 0, &msg));
	cr_expect_eq(msg.kind, SL_MSG_RESULT);
	cr_expect_str_eq(msg.to, "home.1");
	cr_expect_eq(msg.token, 5);
	cr_expect_eq(msg.attempt, 2);
	cr_expect(sl_json_bool(msg.data, "ok", false));
	cr_expect_not(jv_is_valid(msg.error));
	sl_msg_clear(&msg);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 1);
	cr_expect(sl_executor_idle(w.ex));
	cr_expect_null(sl_executor_ready(w.ex));
	teardown(&w);
}

Test(executor, an_action_that_comes_again_is_not_called_again)
{
	struct world w;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	w.delay_ms = 100;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 50);
	cr_expect_eq(w.calls, 1, "it is in hand");
	pass(&w, 5000);
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 5000);
	cr_expect_eq(w.calls, 1, "it has been answered");
	cr_expect_eq(results(&w), 1);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 3);
	teardown(&w);
}

static const struct { int status; const char *answer, *code; } failures[] = {
	{404, "no", "404"}, {500, "", "500"}, {200, "{broken", "bad-response"},
};

Test(executor, errors_of_services_are_results)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct world w;
		struct sl_msg msg;
		setup(&w);
		add_plan(&w, "hash1", 1, "http://svc%d/x");
		w.status = failures[i].status;
		w.answer = failures[i].answer;
		send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
		pass(&w, 5000);
		cr_assert(result(&w, 0, &msg));
		cr_expect_not(jv_is_valid(msg.data));
		cr_expect_str_eq(sl_json_str(msg.error, "code"), failures[i].code);
		sl_msg_clear(&msg);
		teardown(&w);
	}
}

Test(executor, deadlines_pass_before_during_and_without_a_call)
{
	struct world w;
	struct sl_msg msg;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	w.delay_ms = 3000;
	send(&w, SL_MSG_ACTION, "late", "f0", args("{}"), T0 - 1);
	send(&w, SL_MSG_ACTION, "slow", "f0", args("{}"), T0 + 1000);
	pass(&w, 500);
	cr_expect_eq(w.calls, 1, "what is too late is not called");
	pass(&w, 5000);
	cr_assert_eq(results(&w), 2);
	for (int i = 0; i < 2; i++) {
		cr_assert(result(&w, i, &msg));
		cr_expect_str_eq(sl_json_str(msg.error, "code"), "timeout");
		cr_expect_eq(sl_json_int(msg.error, "status", 0), 408);
		sl_msg_clear(&msg);
	}
	teardown(&w);
}

Test(executor, an_unknown_plan_is_waited_for)
{
	struct world w;
	setup(&w);
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	send(&w, SL_MSG_ACTION, "a2", "f0", args("{}"), T0 + 1000);
	pass(&w, 3000);
	cr_expect_eq(w.calls, 0);
	cr_expect_eq(results(&w), 1, "the one whose time was over");
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	pass(&w, 3000);
	cr_expect_eq(w.calls, 1);
	cr_expect_eq(results(&w), 2);
	teardown(&w);
}

Test(executor, cancelled_actions_are_not_answered)
{
	struct world w;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	w.delay_ms = 2000;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	send(&w, SL_MSG_ACTION, "a2", "f0", args("{}"), 0);
	pass(&w, 500);
	cr_expect_eq(w.calls, 2);
	send(&w, SL_MSG_ACTION_CANCEL, "a1", NULL, jv_invalid(), 0);
	send(&w, SL_MSG_ACTION_CANCEL, "nobody", NULL, jv_invalid(), 0);
	pass(&w, 5000);
	cr_expect_eq(results(&w), 1);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 4);
	/* a new attempt behind the cancellation is called */
	w.attempt++;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 5000);
	cr_expect_eq(results(&w), 2);
	teardown(&w);
}

Test(executor, cancellations_are_seen_beyond_the_calls_that_run)
{
	struct world w;
	char id[16];
	setup(&w);
	teardown(&w);
	setup(&w);
	sl_executor_free((sl_memory_kill(w.mem, "E", true), w.ex));
	w.opt.in_flight_max = 2;
	start(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	w.delay_ms = 10000;
	for (int i = 0; i < 50; i++) {
		snprintf(id, sizeof(id), "a%d", i);
		send(&w, SL_MSG_ACTION, id, "f0", args("{}"), 0);
	}
	for (int i = 2; i < 50; i++) {
		snprintf(id, sizeof(id), "a%d", i);
		send(&w, SL_MSG_ACTION_CANCEL, id, NULL, jv_invalid(), 0);
	}
	pass(&w, 30000);
	cr_expect_eq(w.calls, 2, "%d", w.calls);
	cr_expect_eq(results(&w), 2);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 98);
	teardown(&w);
}

Test(executor, a_restart_repeats_only_unfinished_calls)
{
	struct world w;
	char id[16];
	setup(&w);
	add_plan(&w, "hash1", 2, "http://svc%d/x");
	w.slow_host = "svc0";
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "a%d", i);
		send(&w, SL_MSG_ACTION, id, i % 5 == 0 ? "f0" : "f1", args("{}"), 0);
	}
	pass(&w, 5000);
	cr_expect_eq(w.calls, 20);
	cr_expect_eq(results(&w), 16, "the slow ones hold up nobody");
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 0);
	sl_memory_kill(w.mem, "E", true);
	sl_executor_free(w.ex);
	w.calls = 0;
	w.log[0] = '\0';
	start(&w);
	pass(&w, 5000);
	cr_expect_eq(w.calls, 4, "%s", w.log);
	pass(&w, 60000);
	cr_expect_eq(results(&w), 20);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 20);
	teardown(&w);
}

Test(executor, a_slow_host_leaves_room_for_others)
{
	struct world w;
	char id[16];
	setup(&w);
	sl_executor_free((sl_memory_kill(w.mem, "E", true), w.ex));
	w.opt.in_flight_max = 20;
	w.opt.host_in_flight_max = 10;
	start(&w);
	add_plan(&w, "hash1", 2, "http://svc%d/x");
	w.slow_host = "svc0";
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "a%d", i);
		send(&w, SL_MSG_ACTION, id, i < 50 ? "f0" : "f1", args("{}"), 0);
	}
	pass(&w, 10000);
	cr_expect_eq(results(&w), 50, "%d", results(&w));
	pass(&w, 200000);
	cr_expect_eq(results(&w), 100);
	teardown(&w);
}

Test(executor, what_cannot_be_read_becomes_a_dead_letter)
{
	struct world w;
	struct sl_record rec = {.topic = topics.actions, .partition = 0, .key = {"k", 1}, .value = {"garbage", 7}}, letter;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	cr_assert_eq(w.feeder->ops->produce(w.feeder, &rec, NULL, NULL), 0);
	send(&w, SL_MSG_TIMER_SET, "t", NULL, jv_invalid(), 0);
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 3000);
	cr_expect_eq(sl_memory_high(w.mem, topics.dead_letter, 0), 2);
	cr_assert(sl_memory_record(w.mem, topics.dead_letter, 0, 0, &letter));
	cr_expect_eq(letter.value.len, 7);
	bool reason = false;
	for (int i = 0; i < letter.header_count; i++)
		reason |= strcmp(letter.headers[i].name, "sluice-reason") == 0 && letter.headers[i].value.len > 0;
	cr_expect(reason);
	cr_expect_eq(results(&w), 1);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 3);
	teardown(&w);
}

Test(executor, an_oversized_result_becomes_an_error)
{
	struct world w;
	struct sl_msg msg;
	setup(&w);
	sl_executor_free((sl_memory_kill(w.mem, "E", true), w.ex));
	w.opt.result_bytes_max = 2000;
	start(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	char big[4000];
	memset(big, 'x', sizeof(big));
	big[0] = big[sizeof(big) - 2] = '"';
	big[sizeof(big) - 1] = '\0';
	w.answer = big;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 3000);
	cr_assert(result(&w, 0, &msg));
	cr_expect_str_eq(sl_json_str(msg.error, "code"), "too-big");
	sl_msg_clear(&msg);
	teardown(&w);
}

Test(executor, a_lost_group_offset_stops_with_choices)
{
	struct world w;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 3000);
	sl_memory_kill(w.mem, "E", true);
	sl_executor_free(w.ex);
	w.opt.group = "another"; /* the store knows the partition, this group does not */
	start(&w);
	pass(&w, 3000);
	cr_expect(strstr(w.fatal, "lost its offset") && strstr(w.fatal, "--to-earliest"), "%s", w.fatal);
	cr_expect_eq(w.calls, 1);
	teardown(&w);
}

Test(executor, drain_finishes_what_runs_and_starts_nothing)
{
	struct world w;
	setup(&w);
	sl_executor_free((sl_memory_kill(w.mem, "E", true), w.ex));
	w.opt.in_flight_max = 1;
	start(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	w.delay_ms = 1000;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	send(&w, SL_MSG_ACTION, "a2", "f0", args("{}"), 0);
	pass(&w, 100);
	sl_executor_drain(w.ex);
	cr_expect_not(sl_executor_idle(w.ex));
	pass(&w, 5000);
	cr_expect(sl_executor_idle(w.ex));
	cr_expect_eq(w.calls, 1);
	cr_expect_eq(results(&w), 1);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 0), 1);
	teardown(&w);
}

Test(executor, two_share_the_work_and_a_revoked_partition_is_dropped)
{
	struct world w;
	setup(&w);
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	w.delay_ms = 5000;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	pass(&w, 100);
	sl_memory_expire(w.mem, "E");
	sl_memory_rejoin(w.mem, "E");
	pass(&w, 20000);
	cr_expect_eq(w.calls, 2, "the call of the revoked partition is made again by its new owner");
	cr_expect_geq(results(&w), 1);
	teardown(&w);
}

/* --- handing over: partition 1 is the one that goes when another joins --- */

static void two_called_one_waiting(struct world *w, int64_t delay_ms, int hand_over_ms)
{
	setup(w);
	sl_executor_free((sl_memory_kill(w->mem, "E", true), w->ex));
	w->opt.in_flight_max = 2;
	w->opt.hand_over_ms = hand_over_ms;
	start(w);
	add_plan(w, "hash1", 1, "http://svc%d/x");
	w->delay_ms = delay_ms;
	w->partition = 1;
	send(w, SL_MSG_ACTION, "a1", "f0", args("{\"n\":1}"), 0);
	send(w, SL_MSG_ACTION, "a2", "f0", args("{\"n\":2}"), 0);
	send(w, SL_MSG_ACTION, "a3", "f0", args("{\"n\":3}"), 0);
	pass(w, 1000);
	cr_assert_eq(w->calls, 2);
	w->other = start_as(w, "X");
	pass(w, 1000);
	send(w, SL_MSG_ACTION, "a4", "f0", args("{\"n\":4}"), 0);
	pass(w, 500);
}

static int times(const struct world *w, const char *body)
{
	int n = 0;
	for (const char *at = w->log; (at = strstr(at, body)); at++)
		n++;
	return n;
}

Test(executor, calls_under_way_end_before_their_partition_goes)
{
	struct world w;
	two_called_one_waiting(&w, 3000, 10000);
	cr_expect_eq(w.calls, 2, "what was not called is the other's, who has to wait");
	pass(&w, 1000);
	cr_expect_eq(results(&w), 2);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 1), 2);
	pass(&w, 20000);
	cr_expect_eq(w.calls, 4);
	for (int n = 1; n <= 4; n++) {
		char body[16];
		snprintf(body, sizeof(body), "{\"n\":%d}", n);
		cr_expect_eq(times(&w, body), 1, "%s: %d", body, times(&w, body));
	}
	cr_expect_eq(results(&w), 4);
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 1), 4);
	w.partition = 0; /* who has the other half is where it was */
	send(&w, SL_MSG_ACTION, "a5", "f0", args("{\"n\":5}"), 0);
	pass(&w, 5000);
	cr_expect_eq(times(&w, "{\"n\":5}"), 1);
	teardown(&w);
}

Test(executor, a_call_longer_than_handing_over_may_take_is_made_again)
{
	struct world w;
	two_called_one_waiting(&w, 12000, 5000);
	pass(&w, 3000);
	cr_expect_eq(w.calls, 2);
	pass(&w, 500);
	cr_expect_eq(w.calls, 4, "the other makes them");
	pass(&w, 40000);
	cr_expect_eq(w.calls, 6);
	cr_expect_eq(times(&w, "{\"n\":1}"), 2);
	cr_expect_eq(times(&w, "{\"n\":3}"), 1);
	cr_expect_eq(results(&w), 4, "one result each");
	cr_expect_eq(sl_memory_group_offset(w.mem, "x", topics.actions, 1), 4);
	teardown(&w);
}

Test(executor, without_time_to_hand_over_calls_are_made_again_at_once)
{
	struct world w;
	two_called_one_waiting(&w, 3000, 0);
	cr_expect_eq(w.calls, 4);
	pass(&w, 20000);
	cr_expect_eq(results(&w), 4);
	teardown(&w);
}

Test(executor, a_stop_while_handing_over_finishes_the_same_calls)
{
	struct world w;
	two_called_one_waiting(&w, 5000, 10000);
	sl_executor_drain(w.ex);
	pass(&w, 1000);
	cr_expect_not(sl_executor_idle(w.ex));
	pass(&w, 2000);
	cr_expect(sl_executor_idle(w.ex));
	sl_executor_close(w.ex);
	pass(&w, 20000);
	cr_expect_eq(w.calls, 4);
	cr_expect_eq(results(&w), 4);
	teardown(&w);
}

Test(executor, a_session_lost_while_handing_over_leaves_the_calls_to_the_next)
{
	struct world w;
	two_called_one_waiting(&w, 5000, 10000);
	sl_memory_expire(w.mem, "E");
	pass(&w, 100);
	cr_expect_eq(w.calls, 4, "the next owner cannot know of them");
	sl_memory_rejoin(w.mem, "E");
	pass(&w, 20000);
	cr_expect_eq(w.calls, 6);
	teardown(&w);
}

Test(executor, partitions_that_are_not_taken_yet_are_handed_over_at_once)
{
	struct world w;
	setup(&w);
	sl_executor_free((sl_memory_kill(w.mem, "E", true), w.ex));
	add_plan(&w, "hash1", 1, "http://svc%d/x");
	sl_memory_store_state(w.mem, false, NULL); /* nothing can be taken */
	start(&w);
	pass(&w, 2000);
	w.other = start_as(&w, "X");
	pass(&w, 2000);
	w.partition = 1;
	send(&w, SL_MSG_ACTION, "a1", "f0", args("{}"), 0);
	sl_memory_store_state(w.mem, true, NULL);
	sl_memory_kill(w.mem, "E", true);
	pass(&w, 2000);
	cr_expect_eq(w.calls, 1, "the other has it, though the first lives on in the group");
	teardown(&w);
}
