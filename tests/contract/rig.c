/* The rigs: making ports, letting time pass, running tests one after another in processes of their own. */
#include "tests/contract/rig.h"
#include "common/adapters/kafka/admin.h"
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/redis/redis.h"
#include "common/adapters/uv/clock.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_SECONDS_MAX 120

const char *rig_name(const char *base)
{
	static char names[16][128];
	static int next, serial;
	char *name = names[next++ % 16];
	snprintf(name, sizeof(names[0]), "%s-%d-%lld-%d", base, (int)getpid(), (long long)uv_hrtime() / 1000000,
		++serial);
	return name;
}

/* --- checks --- */

static void fail(const char *file, int line, const char *text, const char *detail)
{
	printf("    %s:%d: %s%s%s\n", file, line, text, detail ? ": " : "", detail ? detail : "");
	fflush(stdout);
	_exit(1);
}

void rig_check(bool ok, const char *file, int line, const char *text)
{
	if (!ok)
		fail(file, line, text, NULL);
}

void rig_check_int(int64_t a, int64_t b, const char *file, int line, const char *text)
{
	char detail[80];
	snprintf(detail, sizeof(detail), "%lld and %lld", (long long)a, (long long)b);
	if (a != b)
		fail(file, line, text, detail);
}

void rig_check_str(const char *a, const char *b, const char *file, int line, const char *text)
{
	char detail[400];
	snprintf(detail, sizeof(detail), "\"%s\" and \"%s\"", a ? a : "(null)", b ? b : "(null)");
	if (!a || !b || strcmp(a, b) != 0)
		fail(file, line, text, detail);
}

/* --- ports --- */

static void on_log(void *arg, int level, const char *text)
{
	struct rig *rig = arg;
	rig->logged++;
	snprintf(rig->last_log, sizeof(rig->last_log), "%s", text);
	if (getenv("SLUICE_VERBOSE"))
		fprintf(stderr, "    [%d] %s\n", level, text);
}

struct sl_broker *rig_broker(struct rig *rig, const char *client, const char *instance_id)
{
	if (!rig->real)
		return sl_memory_broker(rig->world, instance_id ? instance_id : client);
	struct sl_kafka_options opt = {.brokers = getenv("SLUICE_KAFKA_BROKERS"),
		.client_id = client,
		.instance_id = instance_id,
		.log = on_log,
		.log_arg = rig,
		.session_timeout_ms = 6000};
	struct sl_broker *broker = sl_broker_kafka_new(&rig->loop, &opt);
	CHECK(broker != NULL);
	return broker;
}

void rig_topic(struct rig *rig, const char *topic, int32_t partitions, size_t bytes_max)
{
	if (!rig->real) {
		sl_memory_topic(rig->world, topic, partitions, bytes_max);
		return;
	}
	char bytes[32];
	struct sl_diags diags;
	sl_diags_init(&diags);
	snprintf(bytes, sizeof(bytes), "%zu", bytes_max ? bytes_max : (size_t)1 << 20);
	const char *settings[] = {"message.timestamp.type", "LogAppendTime", "max.message.bytes", bytes, NULL};
	struct sl_kafka_options opt = {.brokers = getenv("SLUICE_KAFKA_BROKERS")};
	struct sl_kafka_topic spec = {
		.name = topic, .partitions = partitions, .partitions_exact = true, .settings = settings};
	CHECK_INT(sl_kafka_topics_create(&opt, &spec, 1, 10000, NULL, &diags), 0);
	sl_diags_release(&diags);
}

static void on_state(void *arg, bool up, const char *text)
{
	struct rig *rig = arg;
	rig->up = up;
	on_log(rig, 6, up ? "redis up" : text);
}

static bool is_up(void *arg)
{
	return ((struct rig *)arg)->up;
}

struct sl_store *rig_store(struct rig *rig, const char *client, const char *prefix, const char *query)
{
	if (!rig->real)
		return sl_memory_store(rig->world, client);
	char url[300];
	rig->up = false;
	snprintf(url, sizeof(url), "%s%s", getenv("SLUICE_REDIS_URL"), query ? query : "");
	struct sl_store *store = sl_store_redis_new(&rig->loop, url, prefix, on_state, rig);
	CHECK(store != NULL);
	CHECK(rig_until(rig, is_up, rig, 10000));
	return store;
}

struct sl_clock *rig_clock(struct rig *rig)
{
	return rig->real ? sl_clock_uv_new(&rig->loop) : sl_memory_clock(rig->world, "clock");
}

/* --- time --- */

static void nap_over(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

bool rig_until(struct rig *rig, bool (*done)(void *arg), void *arg, int timeout_ms)
{
	if (!rig->real) {
		int64_t end = sl_memory_now(rig->world) + timeout_ms;
		for (;;) {
			sl_memory_turn(rig->world, 0);
			if (done(arg))
				return true;
			if (!sl_memory_fire(rig->world, end))
				return false;
		}
	}
	bool over = false;
	uv_timer_t timer;
	uv_timer_init(&rig->loop, &timer);
	timer.data = &over;
	uv_timer_start(&timer, nap_over, (uint64_t)timeout_ms, 0);
	bool came = false;
	while (!(came = done(arg)) && !over)
		uv_run(&rig->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&rig->loop, UV_RUN_NOWAIT);
	return came;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

void rig_settle(struct rig *rig, int ms)
{
	rig_until(rig, never, NULL, ms);
}

/* --- running --- */

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		printf("    a handle of type %s was left open\n", uv_handle_type_name(handle->type));
}

static int run_inside(const struct test *test, bool real, const char *real_name)
{
	struct rig rig = {.name = real ? real_name : "memory", .real = real};
	alarm(TEST_SECONDS_MAX);
	if (real)
		uv_loop_init(&rig.loop);
	else
		rig.world = sl_memory_new(1700000000000);
	test->run(&rig);
	sl_memory_free(rig.world);
	if (real) {
		uv_walk(&rig.loop, close_handle, NULL);
		uv_run(&rig.loop, UV_RUN_DEFAULT);
		CHECK_INT(uv_loop_close(&rig.loop), 0);
	}
	return 0;
}

/* Each in a process of its own: a crash or a leak is that test's failure. */
static bool run_test(const struct test *test, bool real, const char *real_name)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		exit(run_inside(test, real, real_name));
	int status = 0;
	waitpid(pid, &status, 0);
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	printf("%s %s: %s", ok ? "ok" : "not ok", real ? real_name : "memory", test->name);
	if (WIFSIGNALED(status))
		printf(" (%s)", WTERMSIG(status) == SIGALRM ? "does not end" : strsignal(WTERMSIG(status)));
	printf("\n");
	return ok;
}

int rig_main(int argc, char **argv, const char *real_name, const char *env, const struct test *tests, int count)
{
	int failed = 0, passed = 0;
	const char *filter = argc > 1 ? argv[1] : "";
	for (int real = 0; real < (real_name ? 2 : 1); real++) {
		if (real && env && !getenv(env)) {
			bool must = getenv("SLUICE_REQUIRE_REAL") && strcmp(getenv("SLUICE_REQUIRE_REAL"), "1") == 0;
			printf("%s %s: left out, %s is not set (tests/contract/run.sh sets it)\n",
				must ? "not ok" : "#", real_name, env);
			failed += must;
			continue;
		}
		for (int i = 0; i < count; i++) {
			const char *name = real ? real_name : "memory";
			if ((tests[i].only && strcmp(tests[i].only, name) != 0) || !strstr(tests[i].name, filter))
				continue;
			if (run_test(&tests[i], real != 0, real_name))
				passed++;
			else
				failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
