/* Own lanes on the memory adapters: a sweep takes away all that has expired, and what fits the cache is not read again. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/adapters/memory/memory.h"
#include "common/dsl/dsl.h"
#include "services/coordinator/coordinator.h"

#define T0 INT64_C(1700000000000)
#define PARTITIONS 8
#define HEAD "version: '1.0.0'\nspecVersion: '0.8'\nname: Test\n"
#define PLAIN "id: plain\n" HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {done: true}\n  end: true\n"
#define KEYED                                                                                                               \
	"id: keyed\n" HEAD "start: A\nevents:\n- name: E\n  type: go\n  source: /t\n  correlation:\n"                       \
	"  - contextAttributeName: orderid\nstates:\n"                                                                        \
	"- name: A\n  type: event\n  onEvents:\n  - eventRefs: [E]\n  transition: B\n"                                      \
	"- name: B\n  type: event\n  onEvents:\n  - eventRefs: [E]\n  transition: B\n"

struct world {
	struct sl_memory *mem;
	struct sl_topics topics;
	struct sl_event_topic events;
	struct sl_arena arena;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_coordinator *co;
	struct sl_broker *feeder;
	char fatal[600];
};

static struct sl_store_ops counting;
static const struct sl_store_ops *plain;
static int instances_read;

static void load(struct sl_store *store, int32_t partition, const char *const *keys, int count, sl_store_hashes_fn done, void *arg)
{
	for (int i = 0; i < count; i++)
		instances_read += strncmp(keys[i], "i:", 2) == 0;
	plain->load(store, partition, keys, count, done, arg);
}

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

static void delivered(void *arg, int err)
{
	(void)arg;
	cr_assert_eq(err, 0);
}

static void deploy(struct world *w, const char *yaml)
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

static struct world *setup(int64_t cache_bytes_max)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sl_diags diags;
	sl_diags_init(&diags);
	w->mem = sl_memory_new(T0);
	sl_arena_init(&w->arena);
	sl_topics_init(&w->topics, &w->arena, "sluice.");
	w->events = (struct sl_event_topic){"sluice.events", "default"};
	w->topics.events = &w->events;
	w->topics.event_count = 1;
	const char *names[] = {"sluice.events", w->topics.commands, w->topics.actions, w->topics.timers, w->topics.definitions,
		w->topics.lifecycle, w->topics.dead_letter};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		sl_memory_topic(w->mem, names[i], 1, 0);
	sl_memory_topic(w->mem, w->topics.instances, PARTITIONS, 4 << 20);
	w->plans = sl_plans_new();
	w->feeder = sl_memory_broker(w->mem, "F");
	deploy(w, PLAIN);
	deploy(w, KEYED);
	struct sl_store *store = sl_memory_store(w->mem, "C");
	plain = store->ops;
	counting = *plain;
	counting.load = load;
	store->ops = &counting;
	struct sl_definitions_options dopt = {.broker = sl_memory_broker(w->mem, "C"), .plans = w->plans,
		.topic = w->topics.definitions, .wake = no_wake, .fatal = on_fatal, .arg = w};
	struct sl_coordinator_options opt = {.broker = dopt.broker, .store = store, .clock = sl_memory_clock(w->mem, "C"),
		.plans = w->plans, .topics = &w->topics, .json = sl_json_default, .group = "g", .wake = no_wake, .fatal = on_fatal,
		.arg = w, .cache_bytes_max = cache_bytes_max};
	sl_limits_default(&opt.limits);
	opt.limits.retention_ms = 1000;
	cr_assert_eq(sl_definitions_new(&dopt, &w->definitions, &diags), 0);
	opt.definitions = w->definitions;
	cr_assert_eq(sl_coordinator_new(&opt, &w->co, &diags), 0, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	return w;
}

static void teardown(struct world *w)
{
	sl_memory_kill(w->mem, "C", true);
	sl_coordinator_free(w->co);
	sl_definitions_free(w->definitions);
	sl_memory_free(w->mem);
	sl_plans_free(w->plans);
	sl_arena_release(&w->arena);
	free(w);
}

/* Until nothing happens any more. */
static void live(struct world *w)
{
	for (int64_t ran = 1; ran;) {
		bool more = sl_definitions_turn(w->definitions);
		more = sl_coordinator_turn(w->co) || more;
		ran = sl_memory_turn(w->mem, 0) + more;
	}
	cr_assert_str_empty(w->fatal);
}

static void send(struct world *w, const struct sl_msg *msg)
{
	struct sl_record rec = {0};
	cr_assert_eq(sl_msg_record(msg, &w->arena, &rec), 0);
	rec.topic = w->topics.instances;
	rec.partition = sl_id_partition(msg->ns, msg->to, PARTITIONS);
	cr_assert_eq(w->feeder->ops->produce(w->feeder, &rec, delivered, NULL), 0);
}

static void publish(struct world *w, const char *id, const char *order, size_t bytes)
{
	char *fill = sl_arena_alloc(&w->arena, bytes + 1);
	memset(fill, 'x', bytes);
	fill[bytes] = '\0';
	const char *text = sl_arena_printf(&w->arena,
		"{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"/t\",\"type\":\"go\",\"orderid\":\"%s\",\"data\":{\"%s\":\"%s\"}}", id,
		order, id, fill);
	struct sl_record rec = {.topic = "sluice.events", .value = {text, strlen(text)}};
	cr_assert_eq(w->feeder->ops->produce(w->feeder, &rec, delivered, NULL), 0);
}

static void count_instance(void *arg, int32_t partition, const char *key)
{
	(void)partition;
	*(int *)arg += strncmp(key, "i:", 2) == 0;
}

static int instances(struct world *w)
{
	int count = 0;
	sl_memory_keys(w->mem, count_instance, &count);
	return count;
}

Test(own, one_sweep_takes_away_all_that_has_expired_however_many)
{
	struct world *w = setup(0);
	struct sl_msg msg;
	sl_msg_init(&msg, SL_MSG_START);
	msg.ns = "default";
	msg.workflow = "plain";
	for (int i = 0, n = 0; n < 2500; i++) {
		msg.to = sl_arena_printf(&w->arena, "n%d", i);
		if (sl_id_partition("default", msg.to, PARTITIONS) != 3)
			continue;
		send(w, &msg);
		n++;
	}
	live(w);
	cr_assert_eq(instances(w), 2500, "%d", instances(w));
	sl_memory_set_now(w->mem, T0 + 5000);
	sl_msg_init(&msg, SL_MSG_SWEEP);
	msg.ns = "default";
	msg.to = "@3";
	send(w, &msg);
	live(w);
	cr_expect_eq(instances(w), 0, "%d", instances(w));
	teardown(w);
}

Test(own, an_instance_larger_than_the_share_of_its_partition_stays_in_memory_while_the_others_need_little)
{
	struct world *w = setup(64 * 1024);
	publish(w, "e1", "A1", 3000);
	live(w);
	cr_assert_eq(instances(w), 1);
	instances_read = 0;
	for (int i = 0; i < 5; i++) {
		publish(w, sl_arena_printf(&w->arena, "f%d", i), "A1", 10);
		live(w);
	}
	cr_expect_eq(instances_read, 0, "%d", instances_read);
	teardown(w);
}

Test(own, what_goes_beyond_the_cache_is_read_again)
{
	struct world *w = setup(64 * 1024);
	for (int i = 0; i < 40; i++) {
		publish(w, "e", sl_arena_printf(&w->arena, "A%d", i), 20000);
		live(w);
	}
	instances_read = 0;
	for (int i = 0; i < 40; i++) {
		publish(w, "f", sl_arena_printf(&w->arena, "A%d", i), 10);
		live(w);
	}
	cr_expect_geq(instances_read, 36, "%d", instances_read);
	teardown(w);
}

/* R10: the epoch of the backup is ours, so a commit would go through on top of a state that we do not know. */
Test(own, a_store_that_is_restored_while_we_run_is_brought_forward_from_the_log)
{
	struct world *w = setup(0);
	publish(w, "e1", "A1", 10);
	live(w);
	struct sl_memory_backup *backup = sl_memory_backup(w->mem);
	publish(w, "f1", "A1", 10);
	publish(w, "e2", "A2", 10);
	live(w);
	cr_assert_eq(instances(w), 2);
	sl_memory_restore(w->mem, backup);
	cr_assert_eq(instances(w), 1);
	live(w);
	cr_expect_eq(instances(w), 2, "%d: nothing new had to come", instances(w));
	sl_memory_restore(w->mem, backup);
	publish(w, "f2", "A1", 10);
	live(w);
	cr_expect_eq(instances(w), 2, "%d: not committed over what is missing", instances(w));
	sl_memory_backup_free(backup);
	teardown(w);
}
