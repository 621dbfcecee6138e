/* Own lanes on the memory adapters: a sweep takes away all that has expired, and what fits the cache is not read again. */
#include "tests/unit/coordinator/world.h"

#define PARTITIONS 8
#define KEYED                                                                                                               \
	"id: keyed\n" HEAD "start: A\nevents:\n- name: E\n  type: go\n  source: /t\n  correlation:\n"                       \
	"  - contextAttributeName: orderid\nstates:\n"                                                                        \
	"- name: A\n  type: event\n  onEvents:\n  - eventRefs: [E]\n  transition: B\n"                                      \
	"- name: B\n  type: event\n  onEvents:\n  - eventRefs: [E]\n  transition: B\n"

static struct sl_store_ops counting;
static const struct sl_store_ops *plain;
static int instances_read;

static void load(struct sl_store *store, int32_t partition, const char *const *keys, int count, sl_store_hashes_fn done, void *arg)
{
	for (int i = 0; i < count; i++)
		instances_read += strncmp(keys[i], "i:", 2) == 0;
	plain->load(store, partition, keys, count, done, arg);
}

static struct world *setup(int64_t cache_bytes_max)
{
	struct world *w = calloc(1, sizeof(*w));
	world_open(w, PARTITIONS);
	deploy(w, PLAIN);
	deploy(w, KEYED);
	struct sl_store *store = sl_memory_store(w->mem, "C");
	plain = store->ops;
	counting = *plain;
	counting.load = load;
	store->ops = &counting;
	struct sl_coordinator_options opt = {.store = store, .cache_bytes_max = cache_bytes_max};
	sl_limits_default(&opt.limits);
	opt.limits.retention_ms = 1000;
	be_born(w, &opt);
	return w;
}

static void teardown(struct world *w)
{
	world_close(w);
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

/* With so many bytes that the instance keeps. */
static void publish_much(struct world *w, const char *id, const char *order, size_t bytes)
{
	char *fill = sl_arena_alloc(&w->arena, bytes + 1);
	memset(fill, 'x', bytes);
	fill[bytes] = '\0';
	publish(w, id, order, sl_arena_printf(&w->arena, "{\"%s\":\"%s\"}", id, fill));
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
	for (int i = 0, n = 0; n < 2500; i++) {
		const char *id = sl_arena_printf(&w->arena, "n%d", i);
		if (sl_id_partition("default", id, PARTITIONS) != 3)
			continue;
		start(w, id);
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
	publish_much(w, "e1", "A1", 3000);
	live(w);
	cr_assert_eq(instances(w), 1);
	instances_read = 0;
	for (int i = 0; i < 5; i++) {
		publish_much(w, sl_arena_printf(&w->arena, "f%d", i), "A1", 10);
		live(w);
	}
	cr_expect_eq(instances_read, 0, "%d", instances_read);
	teardown(w);
}

Test(own, what_goes_beyond_the_cache_is_read_again)
{
	struct world *w = setup(64 * 1024);
	for (int i = 0; i < 40; i++) {
		publish_much(w, "e", sl_arena_printf(&w->arena, "A%d", i), 20000);
		live(w);
	}
	instances_read = 0;
	for (int i = 0; i < 40; i++) {
		publish_much(w, "f", sl_arena_printf(&w->arena, "A%d", i), 10);
		live(w);
	}
	cr_expect_geq(instances_read, 36, "%d", instances_read);
	teardown(w);
}

/* R10: the epoch of the backup is ours, so a commit would go through on top of a state that we do not know. */
Test(own, a_store_that_is_restored_while_we_run_is_brought_forward_from_the_log)
{
	struct world *w = setup(0);
	publish_much(w, "e1", "A1", 10);
	live(w);
	struct sl_memory_backup *backup = sl_memory_backup(w->mem);
	publish_much(w, "f1", "A1", 10);
	publish_much(w, "e2", "A2", 10);
	live(w);
	cr_assert_eq(instances(w), 2);
	sl_memory_restore(w->mem, backup);
	cr_assert_eq(instances(w), 1);
	live(w);
	cr_expect_eq(instances(w), 2, "%d: nothing new had to come", instances(w));
	sl_memory_restore(w->mem, backup);
	publish_much(w, "f2", "A1", 10);
	live(w);
	cr_expect_eq(instances(w), 2, "%d: not committed over what is missing", instances(w));
	sl_memory_backup_free(backup);
	teardown(w);
}
