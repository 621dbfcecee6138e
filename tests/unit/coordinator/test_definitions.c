/* sluice.definitions: what is written there is read the same by all; what cannot be used does not stop what comes behind it. */
#include "tests/unit/coordinator/world.h"

#define TEXT "id: w\nversion: '1.0.0'\nspecVersion: '0.8'\nstart: A\nstates: [{name: A, type: inject, data: {}, end: true}]\n"

/* Without a coordinator: who reads is looked at alone. */
static struct world *setup(void)
{
	struct world *w = calloc(1, sizeof(*w));
	world_open(w, 8);
	struct sl_definitions_options opt = {.broker = sl_memory_broker(w->mem, "C"), .plans = w->plans,
		.topic = w->topics.definitions, .wake = no_wake, .fatal = on_fatal, .arg = w};
	cr_assert_eq(sl_definitions_new(&opt, &w->definitions, NULL), 0);
	return w;
}

static void teardown(struct world *w)
{
	cr_assert_str_empty(w->fatal);
	sl_definitions_free(w->definitions);
	world_close(w);
	free(w);
}

static void put(struct world *w, struct sl_record *rec)
{
	feed(w, w->topics.definitions, 0, rec);
}

static void put_wait(struct world *w, const char *name, int32_t partition)
{
	struct sl_record rec;
	sl_wait_record(name, partition, &w->arena, &rec);
	put(w, &rec);
}

/* As a wait record, with another value and another type of event. */
static void put_odd(struct world *w, const char *value, const char *type)
{
	struct sl_record rec;
	sl_wait_record("default~x", 0, &w->arena, &rec);
	if (value)
		rec.value = (struct sl_bytes){value, strlen(value)};
	for (int i = 0; type && i < rec.header_count; i++)
		if (strcmp(rec.headers[i].name, "ce_type") == 0)
			((struct sl_header *)rec.headers)[i].value = (struct sl_bytes){type, strlen(type)};
	put(w, &rec);
}

static void read_all(struct world *w)
{
	for (int64_t ran = 1; ran;)
		ran = sl_definitions_turn(w->definitions) + sl_memory_turn(w->mem, 0);
	cr_assert(sl_definitions_complete(w->definitions));
}

Test(definitions, a_wait_is_known_by_namespace_type_and_partition)
{
	struct world *w = setup();
	put_wait(w, "default~order.paid", 3);
	put_wait(w, "default~order.paid", 5);
	put_wait(w, "default~order.paid", 3); /* another owner, later */
	put_wait(w, "other~*", 0);
	put_wait(w, "default~a~b/c d", 7); /* a type may hold anything */
	read_all(w);
	const struct sl_waits *waits = sl_map_get(sl_definitions_waits(w->definitions), "default~order.paid");
	cr_assert(waits && waits->count == 2 && waits->partitions[0] == 3 && waits->partitions[1] == 5);
	cr_expect(sl_definitions_wait_known(w->definitions, "default~order.paid", 5));
	cr_expect(sl_definitions_wait_known(w->definitions, "other~*", 0));
	cr_expect(sl_definitions_wait_known(w->definitions, "default~a~b/c d", 7));
	cr_expect_not(sl_definitions_wait_known(w->definitions, "default~order.paid", 4));
	cr_expect_not(sl_definitions_wait_known(w->definitions, "other~order.paid", 3));
	cr_expect_eq(sl_definitions_offset(w->definitions), 4);
	teardown(w);
}

Test(definitions, a_wait_has_one_key_so_that_compaction_keeps_one)
{
	struct world *w = setup();
	struct sl_record a, b;
	sl_wait_record("default~t", 12, &w->arena, &a);
	sl_wait_record("default~t", 12, &w->arena, &b);
	cr_assert_eq(a.key.len, strlen("@12~default~t"));
	cr_expect_eq(memcmp(a.key.ptr, "@12~default~t", a.key.len), 0);
	cr_expect_eq(a.value.len, b.value.len);
	cr_expect_eq(memcmp(a.value.ptr, b.value.ptr, a.value.len), 0, "one id, one content (R3)");
	teardown(w);
}

Test(definitions, what_cannot_be_used_is_passed_over)
{
	struct world *w = setup();
	put_odd(w, "{", NULL);
	put_odd(w, "[]", NULL);
	put_odd(w, "{\"ns\":\"default\",\"type\":\"x\"}", NULL);
	put_odd(w, "{\"ns\":\"default\",\"type\":\"x\",\"partition\":-1}", NULL);
	put_odd(w, "{\"ns\":\"default\",\"type\":\"x\",\"partition\":4294967296}", NULL);
	put_odd(w, "{\"ns\":\"default\",\"partition\":1}", NULL);
	put_odd(w, NULL, "io.sluice.of.a.later.release");
	put_odd(w, "{\"ns\":\"default\",\"id\":\"w\"}", "io.sluice.definition.pointer");
	put_odd(w, "{\"ns\":\"default\",\"hash\":\"h\",\"definition\":\"states: 1\"}", "io.sluice.definition");
	read_all(w);
	cr_expect_eq(sl_definitions_waits(w->definitions)->count, 0);
	cr_expect_not_null(sl_definitions_broken(w->definitions, "default", "h"));
	cr_expect_eq(sl_definitions_offset(w->definitions), 8);

	struct sl_definition def = {.ns = "default", .id = "w", .version = "1.0.0", .hash = "h1", .text = TEXT, .len = strlen(TEXT),
		.resources = jv_invalid()};
	struct sl_record rec;
	cr_assert_eq(sl_definition_record(&def, &w->arena, &rec), 0);
	put(w, &rec);
	sl_pointer_record("default", "w", "1.0.0", "h1", true, &w->arena, &rec);
	put(w, &rec);
	put_wait(w, "default~x", 1);
	read_all(w);
	bool active = false;
	const char *hash = sl_plans_pointer(w->plans, "default", "w", "1.0.0", &active);
	cr_expect(hash && strcmp(hash, "h1") == 0 && active);
	cr_expect_not_null(sl_plans_by_hash(w->plans, "default", "h1"));
	cr_expect(sl_definitions_wait_known(w->definitions, "default~x", 1));
	teardown(w);
}
