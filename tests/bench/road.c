/* The coordinator alone on the memory adapters, for callgrind: instructions do not depend on what else the machine does.
 *
 *   road start|pair COUNT        one event per instance, or two that a correlation key joins
 *
 * Everything of the product but the Kafka and Redis clients runs as in the service. Prints CPU time per instance, the adapters' included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/adapters/memory/memory.h"
#include "common/dsl/dsl.h"
#include "common/expr/expr.h"
#include "services/coordinator/coordinator.h"

#define T0 INT64_C(1700000000000)
#define PARTITIONS 8
#define BURST 1024

static struct {
	struct sl_memory *mem;
	struct sl_topics topics;
	struct sl_event_topic events;
	struct sl_arena arena;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_coordinator *co;
	struct sl_broker *feeder;
} road;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "road: %s: %s\n", what, why);
	exit(1);
}

static void no_wake(void *arg)
{
	(void)arg;
}

static void on_fatal(void *arg, int err, const char *text)
{
	(void)arg, (void)err;
	die("the coordinator", text);
}

static void delivered(void *arg, int err)
{
	(void)arg;
	if (err)
		die("delivery", sl_err_text(err));
}

static void deploy(const char *file)
{
	char text[4096];
	struct sl_compile_options opt = {.dialect = SL_DIALECT_SW08, .deploy = true, .file = file};
	struct sl_plan *plan = NULL;
	struct sl_diags diags;
	FILE *f = fopen(file, "r");
	if (!f)
		die(file, "cannot be read");
	size_t n = fread(text, 1, sizeof(text), f);
	fclose(f);
	sl_diags_init(&diags);
	if (sl_compile(text, n, &opt, &plan, &diags))
		die(file, sl_diags_first(&diags));
	sl_plans_add(road.plans, "default", plan);
	sl_plans_point(road.plans, "default", plan->id, plan->version, plan->hash, true);
	sl_plan_unref(plan);
	sl_diags_release(&diags);
}

static void begin(void)
{
	struct sl_diags diags;
	sl_diags_init(&diags);
	road.mem = sl_memory_new(T0);
	sl_arena_init(&road.arena);
	sl_topics_init(&road.topics, &road.arena, "sluice.");
	road.events = (struct sl_event_topic){"sluice.events", "default"};
	road.topics.events = &road.events;
	road.topics.event_count = 1;
	const char *names[] = {road.topics.commands, road.topics.actions, road.topics.timers, road.topics.definitions,
		road.topics.dead_letter};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		sl_memory_topic(road.mem, names[i], 1, 0);
	sl_memory_topic(road.mem, "sluice.events", 4, 0);
	sl_memory_topic(road.mem, road.topics.lifecycle, 4, 0);
	sl_memory_topic(road.mem, road.topics.instances, PARTITIONS, 0);
	road.plans = sl_plans_new();
	road.feeder = sl_memory_broker(road.mem, "F");
	struct sl_definitions_options dopt = {.broker = sl_memory_broker(road.mem, "C"), .plans = road.plans,
		.topic = road.topics.definitions, .wake = no_wake, .fatal = on_fatal};
	struct sl_coordinator_options opt = {.broker = dopt.broker, .store = sl_memory_store(road.mem, "C"),
		.clock = sl_memory_clock(road.mem, "C"), .plans = road.plans, .topics = &road.topics, .json = sl_json_default,
		.group = "g", .wake = no_wake, .fatal = on_fatal};
	sl_limits_default(&opt.limits);
	if (sl_definitions_new(&dopt, &road.definitions, &diags))
		die("definitions", sl_diags_first(&diags));
	opt.definitions = road.definitions;
	if (sl_coordinator_new(&opt, &road.co, &diags))
		die("coordinator", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static void live(void)
{
	for (int64_t ran = 1; ran;) {
		bool more = sl_definitions_turn(road.definitions);
		more = sl_coordinator_turn(road.co) || more;
		ran = sl_memory_turn(road.mem, 0) + more;
	}
}

static void publish(const char *type, long i, int part)
{
	char value[512], key[32];
	int k = snprintf(key, sizeof(key), "1795264202646-%ld", i);
	int n = snprintf(value, sizeof(value),
		"{\"specversion\":\"1.0\",\"type\":\"%s\",\"source\":\"bench\",\"id\":\"%s-%d\",\"benchid\":\"%s\","
		"\"datacontenttype\":\"application/json\",\"data\":{\"number\":%ld,\"name\":\"customer %ld\",\"sent\":1795264202654}}",
		type, key, part, key, i, i);
	struct sl_record rec = {.topic = "sluice.events", .partition = (int32_t)(i % 4), .key = {key, (size_t)k}, .value = {value, (size_t)n}};
	if (road.feeder->ops->produce(road.feeder, &rec, delivered, NULL))
		die("publish", "refused");
}

static void phase(const char *type, int part, long count)
{
	for (long i = 0; i < count;) {
		for (int k = 0; k < BURST && i < count; k++)
			publish(type, i++, part);
		live();
	}
}

static long completed(void)
{
	static const char words[] = "workflow.completed.v1";
	struct sl_record rec;
	long count = 0;
	for (int32_t p = 0; p < 4; p++)
		for (int64_t i = 0; i < sl_memory_high(road.mem, road.topics.lifecycle, p); i++)
			count += sl_memory_record(road.mem, road.topics.lifecycle, p, i, &rec) &&
				 memmem(rec.value.ptr, rec.value.len, words, sizeof(words) - 1);
	return count;
}

static double cpu_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	bool pair = argc > 1 && strcmp(argv[1], "pair") == 0;
	long count = argc > 2 ? atol(argv[2]) : 0;
	if (count < 1)
		die("usage", "road start|pair COUNT");
	struct sl_expr_limits expr = {.soft_ms = 10000, .bytes_max = 4 << 20, .depth_max = 200};
	sl_expr_init(&expr);
	begin();
	deploy(pair ? "tests/bench/workflows/pair.sw.yaml" : "tests/bench/workflows/start.sw.yaml");
	live();
	double start = cpu_us();
	phase(pair ? "bench.first" : "bench.start", 0, count);
	if (pair)
		phase("bench.second", 1, count);
	double used = cpu_us() - start;
	if (completed() != count)
		die("instances", "not all of them have completed");
	printf("%.1f us per instance\n", used / (double)count);
	sl_memory_kill(road.mem, "C", true);
	sl_coordinator_free(road.co);
	sl_definitions_free(road.definitions);
	sl_memory_free(road.mem);
	sl_plans_free(road.plans);
	sl_arena_release(&road.arena);
	return 0;
}
