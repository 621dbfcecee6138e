/* A coordinator on the memory adapters: its topics, plans that were deployed, and a feeder beside it. Included by the tests of this
 * folder; each test's own struct begins with a struct world. */
#ifndef SL_TEST_COORDINATOR_WORLD_H
#define SL_TEST_COORDINATOR_WORLD_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/adapters/memory/memory.h"
#include "common/dsl/dsl.h"
#include "services/coordinator/coordinator.h"

#define T0 INT64_C(1700000000000)
#define HEAD "version: '1.0.0'\nspecVersion: '0.8'\nname: Test\n"
#define PLAIN "id: plain\n" HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {done: true}\n  end: true\n"

struct world {
	struct sl_memory *mem;
	struct sl_topics topics;
	struct sl_event_topic events;
	struct sl_arena arena;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_coordinator *co; /* of the process C */
	struct sl_broker *feeder;
	int32_t partitions; /* of sluice.instances */
	char fatal[600];
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

static inline void delivered(void *arg, int err)
{
	(void)arg;
	cr_assert_eq(err, 0);
}

static inline void deploy(struct world *w, const char *yaml)
{
	struct sl_compile_options opt = {.dialect = SL_DIALECT_SW08, .deploy = true, .file = "t.yaml"};
	struct sl_plan *plan = NULL;
	struct sl_diags diags;
	sl_diags_init(&diags);
	cr_assert_eq(sl_compile(yaml, strlen(yaml), &opt, &plan, &diags), 0, "%s", sl_diags_first(&diags));
	sl_plans_add(w->plans, "default", plan);
	sl_plans_point(w->plans, "default", plan->id, plan->version, plan->hash, true);
	sl_plan_unref(plan);
	sl_diags_release(&diags);
}

static inline void world_open(struct world *w, int32_t partitions)
{
	w->mem = sl_memory_new(T0);
	w->partitions = partitions;
	sl_arena_init(&w->arena);
	sl_topics_init(&w->topics, &w->arena, "sluice.");
	w->events = (struct sl_event_topic){"sluice.events", "default"};
	w->topics.events = &w->events;
	w->topics.event_count = 1;
	const char *names[] = {"sluice.events", w->topics.commands, w->topics.actions, w->topics.timers, w->topics.definitions,
		w->topics.lifecycle, w->topics.dead_letter};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		sl_memory_topic(w->mem, names[i], 1, 0);
	sl_memory_topic(w->mem, w->topics.instances, partitions, 4 << 20);
	w->plans = sl_plans_new();
	w->feeder = sl_memory_broker(w->mem, "F");
}

/* The process C begins. more: what the test wants of the coordinator; its ports, plans and topics are the world's, but a store. */
static inline void be_born(struct world *w, const struct sl_coordinator_options *more)
{
	struct sl_diags diags;
	struct sl_coordinator_options opt = *more;
	sl_diags_init(&diags);
	struct sl_definitions_options defs = {.broker = sl_memory_broker(w->mem, "C"), .plans = w->plans,
		.topic = w->topics.definitions, .wake = no_wake, .fatal = on_fatal, .arg = w};
	cr_assert_eq(sl_definitions_new(&defs, &w->definitions, &diags), 0);
	opt.definitions = w->definitions;
	opt.broker = defs.broker;
	opt.store = opt.store ? opt.store : sl_memory_store(w->mem, "C");
	opt.clock = sl_memory_clock(w->mem, "C");
	opt.plans = w->plans;
	opt.topics = &w->topics;
	opt.json = sl_json_default;
	opt.group = "g";
	opt.wake = no_wake;
	opt.fatal = on_fatal;
	opt.arg = w;
	cr_assert_eq(sl_coordinator_new(&opt, &w->co, &diags), 0, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

/* What its last turn has sent is lost too. */
static inline void die(struct world *w)
{
	sl_memory_kill(w->mem, "C", true);
	sl_coordinator_free(w->co);
	sl_definitions_free(w->definitions);
	w->co = NULL;
	w->definitions = NULL;
}

static inline void world_close(struct world *w)
{
	if (w->co)
		die(w);
	sl_memory_free(w->mem);
	sl_plans_free(w->plans);
	sl_arena_release(&w->arena);
}

static inline void feed(struct world *w, const char *topic, int32_t partition, struct sl_record *rec)
{
	rec->topic = topic;
	rec->partition = partition;
	cr_assert_eq(w->feeder->ops->produce(w->feeder, rec, delivered, NULL), 0);
}

/* To the partition where its actor lives. */
static inline void send(struct world *w, const struct sl_msg *msg)
{
	struct sl_record rec = {0};
	cr_assert_eq(sl_msg_record(msg, &w->arena, &rec), 0);
	feed(w, w->topics.instances, sl_id_partition(msg->ns, msg->to, w->partitions), &rec);
}

static inline void start(struct world *w, const char *id)
{
	struct sl_msg msg;
	sl_msg_init(&msg, SL_MSG_START);
	msg.ns = "default";
	msg.to = id;
	msg.workflow = "plain";
	send(w, &msg);
}

/* An event of type "go". data: an object's text. */
static inline void publish(struct world *w, const char *id, const char *order, const char *data)
{
	const char *text = sl_arena_printf(&w->arena,
		"{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"/t\",\"type\":\"go\",\"orderid\":\"%s\",\"data\":%s}", id, order, data);
	struct sl_record rec = {.value = {text, strlen(text)}};
	feed(w, "sluice.events", 0, &rec);
}

#endif
