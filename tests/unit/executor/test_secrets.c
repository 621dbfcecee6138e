/* Secrets (R8) and definitions: from the definitions topic through the helper to the call, and nothing of them in the result. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/adapters/child/child.h"
#include "common/adapters/memory/memory.h"
#include "common/expr/expr.h"
#include "services/executor/executor.h"

static const char definition[] =
	"id: pay\n"
	"version: 1.0.0\n"
	"specVersion: '0.8'\n"
	"name: pay\n"
	"start: Pay\n"
	"secrets: [TOKEN, MISSING_IN_SOME]\n"
	"functions:\n"
	"  - name: charge\n"
	"    type: custom\n"
	"    operation: POST http://bank.test/charge\n"
	"  - name: sign\n"
	"    type: expression\n"
	"    operation: '${ {signed: (.text + \"/\" + $SECRETS.TOKEN)} }'\n"
	"states:\n"
	"  - name: Pay\n"
	"    type: operation\n"
	"    actions:\n"
	"      - functionRef: {refName: charge, arguments: {token: '${ $SECRETS.TOKEN }', amount: '${ .amount }'}}\n"
	"      - functionRef: {refName: sign, arguments: {text: '${ .text }'}}\n"
	"      - functionRef: {refName: charge, arguments: {x: '${ [range(10)] | error(\"bad \" + $SECRETS.TOKEN) }'}}\n"
	"    end: true\n";

static struct sl_topics topics = {.instances = "sluice.instances", .actions = "sluice.actions", .definitions = "sluice.definitions",
	.dead_letter = "sluice.dead-letter"};

struct world {
	struct sl_memory *mem;
	struct sl_plans *plans;
	struct sl_definitions *defs;
	struct sl_executor *ex;
	struct sl_arena arena;
	char hash[65], sent[2000];
	bool no_secrets;
};

static void no_wake(void *arg)
{
	(void)arg;
}

static void on_fatal(void *arg, int err, const char *text)
{
	(void)arg;
	cr_assert_fail("%d %s", err, text);
}

static char *secret(void *arg, const char *name)
{
	struct world *w = arg;
	if (w->no_secrets && strcmp(name, "MISSING_IN_SOME") == 0)
		return NULL;
	return strdup(strcmp(name, "TOKEN") == 0 ? "s3cr3t-value" : "other");
}

static int64_t mock(void *arg, const struct sl_http_request *req, struct sl_http_answer *ret)
{
	struct world *w = arg;
	snprintf(w->sent, sizeof(w->sent), "%.*s", (int)req->body.len, (const char *)req->body.ptr);
	/* a service that echoes what it got */
	*ret = (struct sl_http_answer){.status = 200, .content_type = "application/json", .body = req->body};
	return 1;
}

static void produce(struct world *w, const char *topic, struct sl_record *rec)
{
	struct sl_broker *broker = sl_memory_broker(w->mem, "F");
	rec->topic = topic;
	rec->partition = 0;
	cr_assert_eq(broker->ops->produce(broker, rec, NULL, NULL), 0);
	broker->ops->kick(broker);
}

static void deploy(struct world *w)
{
	struct sl_diags diags;
	struct sl_plan *plan = NULL;
	struct sl_record rec;
	struct sl_compile_options opt = {.deploy = true};
	sl_diags_init(&diags);
	cr_assert_eq(sl_compile(definition, strlen(definition), &opt, &plan, &diags), 0, "%s", sl_diags_first(&diags));
	memcpy(w->hash, plan->hash, sizeof(w->hash));
	struct sl_definition def = {.ns = "default", .id = plan->id, .version = plan->version, .hash = plan->hash, .dialect = "sw08",
		.file = "pay.yaml", .text = definition, .len = strlen(definition), .resources = jv_invalid()};
	cr_assert_eq(sl_definition_record(&def, &w->arena, &rec), 0);
	produce(w, topics.definitions, &rec);
	sl_pointer_record("default", plan->id, plan->version, plan->hash, true, &w->arena, &rec);
	produce(w, topics.definitions, &rec);
	sl_plan_unref(plan);
	sl_diags_release(&diags);
}

static void setup(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->mem = sl_memory_new(1700000000000);
	sl_memory_topic(w->mem, topics.actions, 1, 0);
	sl_memory_topic(w->mem, topics.instances, 1, 0);
	sl_memory_topic(w->mem, topics.definitions, 1, 0);
	sl_memory_topic(w->mem, topics.dead_letter, 1, 0);
	sl_memory_mock(w->mem, mock, w);
	sl_arena_init(&w->arena);
	w->plans = sl_plans_new();
	struct sl_definitions_options defs = {.broker = sl_memory_broker(w->mem, "E"), .plans = w->plans, .topic = topics.definitions,
		.wake = no_wake, .fatal = on_fatal, .arg = w};
	cr_assert_eq(sl_definitions_new(&defs, &w->defs, NULL), 0);
}

static void join(struct world *w, struct sl_helper *helper)
{
	struct sl_executor_options opt = {.broker = sl_memory_broker(w->mem, "E"), .store = sl_memory_store(w->mem, "E"),
		.clock = sl_memory_clock(w->mem, "E"), .caller = sl_memory_caller(w->mem, "E"), .helper = helper,
		.definitions = w->defs, .plans = w->plans, .topics = &topics, .group = "x", .secret = secret, .secret_arg = w,
		.wake = no_wake, .fatal = on_fatal, .arg = w};
	cr_assert_eq(sl_executor_new(&opt, &w->ex, NULL), 0);
}

static void teardown(struct world *w)
{
	sl_memory_kill(w->mem, "E", true);
	sl_executor_free(w->ex);
	sl_definitions_free(w->defs);
	sl_memory_free(w->mem);
	sl_plans_free(w->plans);
	sl_arena_release(&w->arena);
}

static void give(struct world *w, int action, const char *data)
{
	struct sl_msg msg;
	struct sl_record rec = {0};
	char id[16];
	snprintf(id, sizeof(id), "a%d", action);
	sl_msg_init(&msg, SL_MSG_ACTION);
	msg.ns = "default";
	msg.instance = "home.1";
	msg.plan = w->hash;
	msg.node = sl_arena_printf(&w->arena, "/states/0/actions/%d/functionRef", action);
	msg.action = id;
	msg.token = 1 + action;
	msg.attempt = 1;
	cr_assert_eq(sl_json_parse(data, strlen(data), &sl_json_default, &msg.data, NULL), 0);
	msg.vars = jv_object();
	cr_assert_eq(sl_msg_record(&msg, &w->arena, &rec), 0);
	rec.key = (struct sl_bytes){"k", 1};
	produce(w, topics.actions, &rec);
	sl_msg_clear(&msg);
}

/* Data or error of the n-th result as text, in the arena. */
static const char *result(struct world *w, int n)
{
	struct sl_record rec;
	struct sl_msg msg;
	uint64_t fp;
	if (!sl_memory_record(w->mem, topics.instances, 0, n, &rec))
		return "(none)";
	cr_assert_eq(sl_msg_decode(rec.value, &w->arena, &msg, &fp, NULL), 0);
	char *text = sl_json_text(jv_is_valid(msg.error) ? msg.error : msg.data);
	const char *kept = sl_arena_str(&w->arena, text);
	free(text);
	sl_msg_clear(&msg);
	return kept;
}

static void run(struct world *w, uv_loop_t *loop, int want)
{
	for (int i = 0; i < 2000 && sl_memory_high(w->mem, topics.instances, 0) < want; i++) {
		sl_definitions_turn(w->defs);
		sl_executor_turn(w->ex);
		if (!sl_memory_turn(w->mem, 0) && !sl_memory_fire(w->mem, sl_memory_now(w->mem) + 10) && loop) {
			uv_run(loop, UV_RUN_NOWAIT);
			usleep(5000);
		}
	}
}

static void check_all(struct world *w, uv_loop_t *loop)
{
	give(w, 0, "{\"amount\":7}");
	run(w, loop, 1);
	cr_expect(strstr(w->sent, "s3cr3t-value"), "the service gets it: %s", w->sent);
	cr_expect(strstr(result(w, 0), "[redacted]") && strstr(result(w, 0), "7"), "%s", result(w, 0));
	give(w, 1, "{\"text\":\"t\"}");
	run(w, loop, 2);
	cr_expect_str_eq(result(w, 1), "{\"signed\":\"t/[redacted]\"}", "%s", result(w, 1));
	give(w, 2, "{}");
	run(w, loop, 3);
	cr_expect(strstr(result(w, 2), "\"code\":\"expression\""), "%s", result(w, 2));
	for (int i = 0; i < 3; i++)
		cr_expect_not(strstr(result(w, i), "s3cr3t"), "%s", result(w, i));
}

TestSuite(secrets, .timeout = 60);

Test(secrets, reach_the_service_and_nothing_else)
{
	struct world w;
	setup(&w);
	deploy(&w);
	join(&w, NULL);
	check_all(&w, NULL);
	cr_expect(sl_definitions_complete(w.defs));
	cr_expect_eq(sl_definitions_offset(w.defs), 1);
	cr_expect(sl_plans_current(w.plans, "default", "pay", NULL));
	teardown(&w);
}

Test(secrets, a_listed_secret_without_value_is_an_error)
{
	struct world w;
	setup(&w);
	w.no_secrets = true;
	deploy(&w);
	join(&w, NULL);
	give(&w, 0, "{\"amount\":7}");
	run(&w, NULL, 1);
	cr_expect(strstr(result(&w, 0), "\"code\":\"secret\"") && strstr(result(&w, 0), "MISSING_IN_SOME"), "%s", result(&w, 0));
	teardown(&w);
}

Test(secrets, a_definition_that_does_not_compile_is_told_to_its_actions)
{
	struct world w;
	struct sl_record rec;
	setup(&w);
	struct sl_definition def = {.ns = "default", .id = "bad", .version = "1.0.0", .hash = "badhash", .text = "id: [", .len = 5,
		.resources = jv_invalid()};
	cr_assert_eq(sl_definition_record(&def, &w.arena, &rec), 0);
	produce(&w, topics.definitions, &rec);
	snprintf(w.hash, sizeof(w.hash), "badhash");
	join(&w, NULL);
	give(&w, 0, "{}");
	run(&w, NULL, 1);
	cr_expect(strstr(result(&w, 0), "does not compile"), "%s", result(&w, 0));
	teardown(&w);
}

/* --- the helper process --- */

static struct sl_helper *open_helper(uv_loop_t *loop, const char *const *argv, int timeout_ms)
{
	struct sl_child_options opt = {.argv = argv, .timeout_ms = timeout_ms};
	cr_assert_eq(uv_loop_init(loop), 0);
	return sl_helper_child_new(loop, &opt);
}

static void close_helper(uv_loop_t *loop, struct sl_helper *helper)
{
	helper->ops->close(helper);
	uv_run(loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(loop), 0);
}

Test(secrets, the_helper_process_evaluates_them)
{
	struct world w;
	uv_loop_t loop;
	static char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);
	cr_assert_gt(n, 0);
	program[n] = '\0';
	char *name = strrchr(program, '/');
	snprintf(name, sizeof(program) - (size_t)(name - program), "/sluice-executor");
	const char *const argv[] = {program, "--evaluate", NULL};
	setenv("SLUICE_SECRET_TOKEN", "s3cr3t-value", 1);
	setenv("SLUICE_SECRET_MISSING_IN_SOME", "x", 1);
	struct sl_helper *helper = open_helper(&loop, argv, 20000);
	setup(&w);
	deploy(&w);
	join(&w, helper);
	check_all(&w, &loop);
	close_helper(&loop, helper);
	teardown(&w);
}

struct answer { int calls, err; char line[64]; };

static void on_answer(void *arg, int err, const char *line, size_t len)
{
	struct answer *a = arg;
	a->calls++;
	a->err = err;
	snprintf(a->line, sizeof(a->line), "%.*s", (int)len, line ? line : "");
}

Test(helper, dies_hangs_and_is_started_again)
{
	static const char *const argv[] = {"/bin/bash", "-c",
		"while read -r -u 0 line; do case $line in die) exit 1;; hang) exec sleep 100;; *) echo \"got $line\" >&0;; esac; done", NULL};
	static const struct { const char *line; int err; const char *answer; } cases[] = {
		{"a", 0, "got a"}, {"b", 0, "got b"}, {"die", SL_ELOST, ""}, {"c", 0, "got c"}, {"hang", SL_ETIMEOUT, ""}, {"d", 0, "got d"},
	};
	struct answer answers[6] = {0};
	uv_loop_t loop;
	struct sl_helper *helper = open_helper(&loop, argv, 2000);
	for (int i = 0; i < 6; i++) {
		helper->ops->ask(helper, cases[i].line, strlen(cases[i].line), on_answer, &answers[i]);
		cr_assert_eq(answers[i].calls, 0);
	}
	for (int i = 0; i < 2000 && !answers[5].calls; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
		usleep(5000);
	}
	for (int i = 0; i < 6; i++) {
		cr_expect_eq(answers[i].calls, 1, "%s", cases[i].line);
		cr_expect_eq(answers[i].err, cases[i].err, "%s: %d", cases[i].line, answers[i].err);
		cr_expect_str_eq(answers[i].line, cases[i].answer, "%s: %s", cases[i].line, answers[i].line);
	}
	close_helper(&loop, helper);
}

Test(helper, that_cannot_be_started_says_so)
{
	static const char *const argv[] = {"/no/such/program", NULL};
	struct answer answer = {0};
	uv_loop_t loop;
	struct sl_helper *helper = open_helper(&loop, argv, 2000);
	helper->ops->ask(helper, "x", 1, on_answer, &answer);
	for (int i = 0; i < 100 && !answer.calls; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
		usleep(5000);
	}
	cr_expect_eq(answer.err, SL_EUNREACHABLE, "%d", answer.err);
	close_helper(&loop, helper);
}
