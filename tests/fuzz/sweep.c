/* Limit sweep: the scenarios of flows/ with one limit after the other raised from nothing until they pass. At each
 * failure the limit must be named (an error of the instance, a dead letter, a refused command), and at every end, good
 * or bad, what is stored must be whole: every actor readable and unchanged by reading, lists and counts as the actors
 * say, nothing that belongs to an ended instance. Limits that only cut work into pieces must not change any result.
 * Leaks: LeakSanitizer. fuzz_sweep [-v] [LIMIT...] sl_limits_default, sl_coordinator_new and sl_world_free are wrapped
 * (-Wl,--wrap). */
#include "common/base/log.h"
#include "common/expr/expr.h"
#include "services/cli/scenario.h"
#include "services/cli/world_int.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum where { ENGINE_INT, ENGINE_I64, BATCH_INT, BATCH_I64, JSON_BYTES, JSON_DEPTH, EXPR_BYTES, EXPR_DEPTH };

struct knob {
	const char *name;
	enum where where;
	size_t offset; /* in sl_limits or sl_coordinator_options */
	int64_t from, to;
	const char *flows; /* NULL: all */
	/* code of the error or part of the reason; NULL: nothing may fail */
	const char *error;
};
#define ENGINE(type, field) ENGINE_##type, offsetof(struct sl_limits, field)
#define BATCH(type, field) BATCH_##type, offsetof(struct sl_coordinator_options, field)
static const struct knob knobs[] = {
	{"instance.steps_max", ENGINE(INT, steps_max), 0, 300, "loop each relay", "too-big"},
	{"instance.state_bytes_max", ENGINE(I64, state_bytes_max), 0, 3000, "loop each pair", "too-big"},
	{"instance.inbox_max", ENGINE(INT, inbox_max), 0, 4, "pair", "inbox-full"},
	{"instance.inbox_bytes_max", ENGINE(I64, inbox_bytes_max), 0, 600, "pair", "inbox-full"},
	{"correlation.join_max", ENGINE(INT, join_max), 1, 4, "join", "join-full"},
	{"correlation.hops_max", ENGINE(INT, hops_max), 1, 12, "relay", "too-big"},
	{"expr.bytes_max", EXPR_BYTES, 0, 1, 3000, "loop each", "expression"},
	{"expr.depth_max", EXPR_DEPTH, 0, 1, 5, "loop each", "expression"},
	{"event.bytes_max", JSON_BYTES, 0, 1, 800, "pair join relay", "more than the limit"},
	{"data.depth_max", JSON_DEPTH, 0, 1, 5, "pair join relay", "deeper than"},
	{"instance.in_flight_max", ENGINE(INT, in_flight_max), 1, 4, NULL, NULL},
	{"instance.transitions_max", ENGINE(INT, transitions_max), 0, 4, NULL, NULL},
	{"instance.ring_max", ENGINE(INT, ring_max), 4, 8, NULL, NULL},
	{"instance.effect_ring_max", ENGINE(INT, effect_ring_max), 4, 8, NULL, NULL},
	{"correlation.fan_out_max", ENGINE(INT, fan_out_max), 1, 4, NULL, NULL},
	{"batch.records_max", BATCH(INT, batch_records_max), 1, 4, NULL, NULL},
	{"batch.bytes_max", BATCH(I64, batch_bytes_max), 1, 4, NULL, NULL},
	{"steps.local_max", BATCH(INT, local_steps_max), 1, 5, NULL, NULL},
	{"cache.bytes_max", BATCH(I64, cache_bytes_max), 1, 4, NULL, NULL},
};
static const char *const flows[] = {"ask", "branches", "each", "join", "late", "loop", "pair", "relay"};

static const struct knob *knob; /* being swept */
static int64_t value;
static int wrong, runs;
static bool verbose, named;

#define EXPECT(cond, ...)                                                                                              \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			wrong++;                                                                                       \
			printf("not ok %s=%lld: ", knob->name, (long long)value);                                      \
			printf(__VA_ARGS__);                                                                           \
			printf("\n");                                                                                  \
		}                                                                                                      \
	} while (0)

/* --- the limit --- */

void __real_sl_limits_default(struct sl_limits *limits);
void __wrap_sl_limits_default(struct sl_limits *limits);
void __wrap_sl_limits_default(struct sl_limits *limits)
{
	__real_sl_limits_default(limits);
	if (knob->where == ENGINE_INT)
		*(int *)(void *)((char *)limits + knob->offset) = (int)value;
	else if (knob->where == ENGINE_I64)
		*(int64_t *)(void *)((char *)limits + knob->offset) = value;
}

int __real_sl_coordinator_new(
	const struct sl_coordinator_options *opt, struct sl_coordinator **ret, struct sl_diags *diags);
int __wrap_sl_coordinator_new(
	const struct sl_coordinator_options *opt, struct sl_coordinator **ret, struct sl_diags *diags);
int __wrap_sl_coordinator_new(
	const struct sl_coordinator_options *opt, struct sl_coordinator **ret, struct sl_diags *diags)
{
	struct sl_coordinator_options copy = *opt;
	if (knob->where == BATCH_INT)
		*(int *)(void *)((char *)&copy + knob->offset) = (int)value;
	else if (knob->where == BATCH_I64)
		*(int64_t *)(void *)((char *)&copy + knob->offset) = value;
	else if (knob->where == JSON_BYTES)
		copy.json.bytes_max = (size_t)value;
	else if (knob->where == JSON_DEPTH)
		copy.json.depth_max = (int)value;
	return __real_sl_coordinator_new(&copy, ret, diags);
}

/* --- what is stored at the end --- */

struct check {
	struct sl_world *world;
	struct sl_engine eng;
	struct sl_map status; /* "NS~ID" -> its status text */
	int instances, live;
};

static void find_name(const char *text)
{
	if (verbose && text)
		printf("  %s\n", text);
	named = named || (text && knob->error && strstr(text, knob->error));
}

static jv field_of(const struct sl_hash *hash, const char *name)
{
	jv got = jv_invalid();
	for (int i = 0; i < hash->count; i++)
		if (strcmp(hash->fields[i].name, name) == 0 &&
			sl_json_parse(hash->fields[i].value, hash->fields[i].len, NULL, &got, NULL) != 0)
			got = jv_invalid();
	return got;
}

/* Readable, and nothing changes by reading. */
static void check_actor(struct check *c, const char *key, const struct sl_hash *hash)
{
	char id[SL_HOME_MAX + 32];
	const char *home = strchr(key, '~') + 1;
	snprintf(id, sizeof(id), "%s%s", *key == 'm' && *home != '@' ? "#" : "", home);
	struct sl_actor *actor = sl_actor_new(NS, id);
	struct sl_field *list = calloc((size_t)hash->count + 1, sizeof(*list)), *changes;
	struct sl_summary sum;
	struct sl_arena arena;
	struct sl_diags diags;
	int count;
	bool gone;
	sl_assert(list);
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	for (int i = 0; i < hash->count; i++)
		list[i] = (struct sl_field){hash->fields[i].name, {hash->fields[i].value, hash->fields[i].len}};
	int err = sl_actor_load(&c->eng, actor, list, hash->count, &diags);
	EXPECT(err == 0, "%s cannot be read: %s", key, sl_diags_first(&diags));
	sl_actor_changes(actor, &arena, &changes, &count, &gone);
	EXPECT(err || (count == 0 && !gone), "%s: %d fields to write right after reading", key, count);
	sl_actor_summary(actor, &sum);
	if (!err && actor->kind == SL_ACTOR_INSTANCE) {
		jv h = field_of(hash, "h"), error = sl_json_get(h, "error");
		EXPECT(sum.status != SL_RUNNING && sum.status != SL_SUSPENDED, "%s is %s at the end", key,
			sl_status_text(sum.status));
		EXPECT(sum.status != SL_FAULTED || (sl_json_str(error, "code") && sl_json_str(error, "title")),
			"%s is faulted without a named error", key);
		find_name(sl_json_str(error, "code"));
		sl_map_set(&c->status, key + 2, (char *)(uintptr_t)sl_status_text(sum.status));
		c->instances++;
		c->live += sum.status < SL_COMPLETED;
		jv_free(error);
		jv_free(h);
	}
	free(list);
	sl_diags_release(&diags);
	sl_arena_release(&arena);
	sl_actor_free(actor);
}

static void visit_actor(void *arg, int32_t partition, const char *key)
{
	struct check *c = arg;
	if (partition != 0 || (strncmp(key, "i:", 2) != 0 && strncmp(key, "m:", 2) != 0))
		return;
	struct sl_hash *hash = sl_memory_peek(c->world->memory, 0, key);
	check_actor(c, key, hash);
	sl_memory_hash_free(hash);
}

static bool lives(const struct check *c, const char *id)
{
	char key[SL_HOME_MAX + 32];
	snprintf(key, sizeof(key), NS "~%s", id ? id : "");
	const char *status = sl_map_get(&c->status, key);
	return status && (strcmp(status, "waiting") == 0 || strcmp(status, "running") == 0);
}

/* Subscriptions and claims are those of living instances. */
static void visit_mailbox(void *arg, int32_t partition, const char *key)
{
	struct check *c = arg;
	if (partition != 0 || strncmp(key, "m:", 2) != 0)
		return;
	struct sl_hash *hash = sl_memory_peek(c->world->memory, 0, key);
	for (int i = 0; i < hash->count; i++) {
		const char *name = hash->fields[i].name;
		if (strncmp(name, "s:", 2) != 0 && strncmp(name, "c:", 2) != 0)
			continue;
		jv obj = field_of(hash, name);
		EXPECT(lives(c, sl_json_str(obj, "instance")), "%s %s: instance %s does not live", key, name,
			sl_json_str(obj, "instance"));
		jv_free(obj);
	}
	sl_memory_hash_free(hash);
}

/* The listing names each instance once, with its status. */
static void on_listing(void *arg, int err, const struct sl_scored *items, int count)
{
	struct check *c = arg;
	EXPECT(!err && count == c->instances, "%d instances are listed, %d are there", count, c->instances);
	for (int i = 0; !err && i < count; i++) {
		const char *bar = strchr(items[i].member, '|'), *last = strrchr(items[i].member, '|');
		const char *status = last ? sl_map_get(&c->status, last + 1) : NULL;
		EXPECT(status && strncmp(items[i].member, status, (size_t)(bar - items[i].member)) == 0,
			"listed as %s, but %s", items[i].member, status ? status : "not there");
	}
}

static void check_header(struct check *c)
{
	struct sl_hash *p = sl_memory_peek(c->world->memory, 0, "p");
	int64_t live = 0;
	for (int i = 0; i < p->count; i++) {
		if (strncmp(p->fields[i].name, "n:", 2) == 0)
			live += strtol(p->fields[i].value, NULL, 10);
		EXPECT(strcmp(p->fields[i].name, "todo") != 0 || p->fields[i].len == 0, "steps are left to do");
		EXPECT(strcmp(p->fields[i].name, "note") != 0 || p->fields[i].len == 0, "a note is left");
	}
	EXPECT(live == c->live, "%lld instances are counted as living, %d do", (long long)live, c->live);
	sl_memory_hash_free(p);
}

static void check_timers(const struct check *c)
{
	for (int i = 0; i < c->world->agenda_count; i++) {
		const struct happening *h = &c->world->agenda[i];
		EXPECT(h->done || h->class != HAPPENS_TIMER || lives(c, h->msg.to), "a timer of %s is left", h->msg.to);
	}
}

/* Dead letters and refused commands tell why. */
static void check_words(struct sl_world *world)
{
	struct sl_record rec;
	jv_array_foreach(world->dead, i, reason)
	{
		EXPECT(jv_string_length_bytes(jv_copy(reason)) > 0, "a dead letter without a reason");
		EXPECT(knob->error, "dead letter: %s", jv_string_value(reason));
		find_name(jv_string_value(reason));
		jv_free(reason);
	}
	for (int64_t at = 0; sl_memory_record(world->memory, world->topics.lifecycle, 0, at, &rec); at++) {
		jv ev;
		if (sl_event_decode(&rec, &sl_json_default, &ev, NULL) != 0)
			continue;
		jv data = sl_event_data(ev);
		if (strcmp(sl_event_attr(ev, "type"), "io.sluice.answer") == 0 && !sl_json_bool(data, "ok", false)) {
			EXPECT(sl_json_str(data, "reason"), "refused without a reason");
			find_name(sl_json_str(data, "reason"));
		}
		jv_free(data);
		jv_free(ev);
	}
}

void __real_sl_world_free(struct sl_world *world);
void __wrap_sl_world_free(struct sl_world *world);
void __wrap_sl_world_free(struct sl_world *world)
{
	struct check c = {.world = world, .eng = {.plans = world->plans, .partitions = 1}};
	struct sl_store *store = sl_memory_store(world->memory, "checker");
	__real_sl_limits_default(&c.eng.limits);
	sl_map_init(&c.status);
	EXPECT(!world->stop, "the world stopped: %s", world->stop);
	sl_memory_keys(world->memory, visit_actor, &c);
	sl_memory_keys(world->memory, visit_mailbox, &c);
	store->ops->range(store, 0, "x", 0, 1e18, 1000, on_listing, &c);
	sl_memory_turn(world->memory, 0);
	check_header(&c);
	check_timers(&c);
	check_words(world);
	sl_map_release(&c.status, NULL);
	__real_sl_world_free(world);
}

/* --- the sweep --- */

static bool run(const char *flow)
{
	char path[512];
	struct sl_expr_limits expr = {.soft_ms = 2000, .bytes_max = 4u << 20, .depth_max = 200};
	struct sl_scenario_result result;
	if (knob->where == EXPR_BYTES)
		expr.bytes_max = (size_t)value;
	else if (knob->where == EXPR_DEPTH)
		expr.depth_max = (int)value;
	sl_expr_init(&expr);
	snprintf(path, sizeof(path), "%s/tests/fuzz/flows/%s.yaml", SL_SOURCE_DIR, flow);
	named = false;
	runs++;
	sl_scenario_run(path, &result);
	bool passed = result.passed;
	EXPECT(passed || knob->error, "%s: %s", flow, result.difference);
	EXPECT(passed || !knob->error || named, "%s failed, and nobody says \"%s\": %s", flow, knob->error,
		result.difference);
	if (verbose)
		printf("%s=%lld %s %s\n", knob->name, (long long)value, flow, passed ? "passed" : "failed");
	sl_scenario_result_clear(&result);
	return passed;
}

/* Fails at the start (if it can fail at all), passes at the end, and between changes from one to the other once. */
static void sweep(const char *flow)
{
	int changes = 0;
	bool first = false, before = false;
	for (value = knob->from; value <= knob->to; value += 1 + value / 4) {
		bool passed = run(flow);
		if (value == knob->from)
			first = passed;
		else
			changes += passed != before;
		before = passed;
	}
	EXPECT(before, "%s does not pass with the largest limit", flow);
	EXPECT(!knob->error || (!first && changes == 1), "%s: failed %s, then changed %d times", flow,
		first ? "not at first" : "at first", changes);
}

static bool has_word(const char *words, const char *word)
{
	const char *at = words ? strstr(words, word) : word;
	return at != NULL;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;
	sl_log_init("sweep", SL_ERROR, 0);
	verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	for (size_t k = 0; k < sizeof(knobs) / sizeof(knobs[0]); k++) {
		bool chosen = argc <= 1 + verbose;
		for (int i = 1 + verbose; i < argc; i++)
			chosen = chosen || strcmp(argv[i], knobs[k].name) == 0;
		if (!chosen)
			continue;
		knob = &knobs[k];
		wrong = 0;
		for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++)
			if (has_word(knob->flows, flows[i]))
				sweep(flows[i]);
		printf("%s %s, %d runs so far\n", wrong ? "not ok" : "ok", knob->name, runs);
		passed += !wrong;
		failed += wrong != 0;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
