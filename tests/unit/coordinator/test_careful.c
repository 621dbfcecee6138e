/* Processes that die in a step, on the memory adapters (R7): what ends them is given up, everything else goes on. */
#include "tests/unit/coordinator/world.h"

#define KEYED "id: keyed\n" KEYED_REST
#define KEYED_REST                                                                                                          \
	HEAD "start: A\nevents:\n- name: E\n  type: go\n  source: /t\n  correlation:\n"                       \
	"  - contextAttributeName: orderid\nstates:\n- name: A\n  type: event\n  onEvents:\n  - eventRefs: [E]\n  end: true\n"

/* How the process C dies; each test is a process of its own. */
static struct {
	const char *victim;  /* whose step is the end: an instance; NULL: any whose path is not "." */
	bool armed, dying;
	bool proves;         /* the watchdog tells before the end */
	int deaths, faults;  /* faults: steps in the place of what was given up */
	bool noted;          /* a note was seen in the store */
} death;

static void done(void *arg, int err, const char *text)
{
	(void)text;
	*(int *)arg = err ? err : 1;
}

static void taken(void *arg, int err, const struct sl_hash *hashes, int count)
{
	(void)arg;
	(void)hashes;
	cr_assert(!err && count == 1);
}

/* What the watchdog's own connection does: the note, guarded by the epoch. */
static void prove(struct world *w, const struct sl_stepping *what)
{
	struct sl_store *store = sl_memory_store(w->mem, "W");
	const char *field = sl_arena_printf(&w->arena, "proved:%lld:%s", (long long)what->offset, what->path);
	const char *text = sl_arena_printf(&w->arena, "%s~%s too much: really", what->ns, what->to);
	struct sl_op op = {.kind = SL_OP_HSET, .key = "p", .field = field, .value = {text, strlen(text)}};
	struct sl_commit c = {.header = "p", .partition = what->partition, .epoch = what->epoch, .ops = &op, .count = 1};
	static int result;
	store->ops->commit(store, &c, done, &result);
}

static void stepping(void *arg, const struct sl_stepping *what)
{
	struct world *w = arg;
	if (!what)
		return;
	if (strchr(what->path, '!')) {
		death.faults++;
		return;
	}
	bool it = death.victim ? strcmp(what->to, death.victim) == 0 : strcmp(what->path, ".") != 0;
	if (!death.armed || !it || death.dying)
		return;
	death.dying = true;
	if (death.proves)
		prove(w, what);
}

static void live_again(struct world *w)
{
	struct sl_coordinator_options opt = {.stepping = stepping, .stepping_arg = w};
	sl_limits_default(&opt.limits);
	be_born(w, &opt);
}

static const char *header(struct world *w, const char *name)
{
	struct sl_hash *hash = sl_memory_peek(w->mem, 0, "p");
	const char *value = NULL;
	for (int i = 0; hash && i < hash->count; i++)
		if (strncmp(hash->fields[i].name, name, strlen(name)) == 0)
			value = sl_arena_str(&w->arena, hash->fields[i].value);
	sl_memory_hash_free(hash);
	return value;
}

/* Until nothing happens any more, in as many lives as it takes. */
static void live(struct world *w)
{
	for (int64_t ran = 1; ran;) {
		bool more = sl_definitions_turn(w->definitions);
		more = sl_coordinator_turn(w->co) || more;
		if (death.dying) {
			death.dying = false;
			cr_assert_lt(++death.deaths, 20, "it dies for ever");
			die(w);
			live_again(w);
		}
		ran = sl_memory_turn(w->mem, 1) + more;
		death.noted = death.noted || header(w, "note");
		if (!ran)
			ran = sl_memory_fire(w->mem, sl_memory_now(w->mem) + 20000);
	}
	cr_assert_str_empty(w->fatal);
}

static struct world *setup_wide(int32_t partitions)
{
	struct world *w = calloc(1, sizeof(*w));
	world_open(w, partitions);
	deploy(w, PLAIN);
	deploy(w, KEYED);
	live_again(w);
	return w;
}

static struct world *setup(void)
{
	return setup_wide(1);
}

static void teardown(struct world *w)
{
	world_close(w);
	free(w);
}

/* The header of an instance: {"status":...}. */
static void expect_header(struct world *w, const char *id, const char *part)
{
	int32_t partition = sl_id_partition("default", id, w->partitions);
	struct sl_hash *hash = sl_memory_peek(w->mem, partition, sl_arena_printf(&w->arena, "i:default~%s", id));
	const char *found = "(nothing)";
	for (int i = 0; hash && i < hash->count; i++)
		if (strcmp(hash->fields[i].name, "h") == 0)
			found = sl_arena_str(&w->arena, hash->fields[i].value);
	cr_expect(strstr(found, part), "%s: %s, not %s", id, found, part);
	sl_memory_hash_free(hash);
}

/* Records of a topic whose text has both parts; one that was sent again after a death counts once. */
static int different(struct world *w, const char *topic, const char *type, const char *part)
{
	struct sl_record rec, old;
	int count = 0;
	for (int64_t i = 0; i < sl_memory_high(w->mem, topic, 0); i++) {
		bool again = false;
		cr_assert(sl_memory_record(w->mem, topic, 0, i, &rec));
		for (int64_t k = 0; k < i && !again; k++)
			again = sl_memory_record(w->mem, topic, 0, k, &old) && old.value.len == rec.value.len &&
				memcmp(old.value.ptr, rec.value.ptr, rec.value.len) == 0;
		char *text = strndup(rec.value.ptr ? rec.value.ptr : "", rec.value.len);
		count += !again && strstr(text, type) && strstr(text, part);
		free(text);
	}
	return count;
}

static int instances(struct world *w, const char *type, const char *part)
{
	return different(w, w->topics.lifecycle, type, part);
}

static void expect_clean_header(struct world *w)
{
	cr_expect_null(header(w, "note"), "%s", header(w, "note"));
	cr_expect_null(header(w, "proved:"));
	cr_expect_str_eq(header(w, "takes"), "0");
}

Test(careful, a_step_that_ends_the_process_three_times_is_given_up)
{
	struct world *w = setup();
	death.victim = "poison";
	death.armed = true;
	start(w, "good1");
	start(w, "good2");
	start(w, "poison");
	start(w, "good3");
	live(w);
	cr_expect_eq(death.deaths, 5, "two in whole batches, three with the note: %d", death.deaths);
	cr_expect_eq(death.faults, 1);
	cr_expect(death.noted);
	expect_header(w, "poison", "\"status\":\"faulted\"");
	expect_header(w, "poison", "processing ended the process three times");
	expect_header(w, "good1", "completed");
	expect_header(w, "good2", "completed");
	expect_header(w, "good3", "completed");
	cr_expect_eq(sl_memory_high(w->mem, w->topics.dead_letter, 0), 1);
	expect_clean_header(w);
	teardown(w);
}

/* Partitions of one process die together: only the one that was stepping is to blame. */
Test(careful, other_partitions_of_the_process_are_not_to_blame)
{
	struct world *w = setup_wide(4);
	death.victim = "poison";
	death.armed = true;
	const char *ids[] = {"poison", "good1", "good2", "good3", "good4", "good5", "good6", "good7"};
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		start(w, ids[i]);
	live(w);
	cr_expect_eq(death.faults, 1);
	cr_expect_eq(sl_memory_high(w->mem, w->topics.dead_letter, 0), 1);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		expect_header(w, ids[i], i ? "completed" : "faulted");
	teardown(w);
}

/* What was given up is in the store before the next step can end the process: else each would wait for the other. */
Test(careful, two_steps_of_one_record_are_given_up_one_after_the_other)
{
	struct world *w = setup();
	deploy(w, "id: twin\n" KEYED_REST);
	death.armed = true; /* whatever a mailbox starts */
	publish(w, "e1", "1", "{}");
	live(w);
	cr_expect_eq(death.deaths, 8, "five for the first, three for the second: %d", death.deaths);
	cr_expect_eq(instances(w, "workflow.faulted", "ended the process three times"), 2);
	cr_expect_geq(sl_memory_high(w->mem, w->topics.dead_letter, 0), 2);
	expect_clean_header(w);
	teardown(w);
}

Test(careful, a_proved_note_needs_no_second_time)
{
	struct world *w = setup();
	death.victim = "poison";
	death.armed = death.proves = true;
	start(w, "good1");
	start(w, "poison");
	start(w, "good2");
	live(w);
	cr_expect_eq(death.deaths, 1);
	cr_expect_not(death.noted, "what is proved needs no notes");
	expect_header(w, "poison", "\"title\":\"too much\"");
	expect_header(w, "good1", "completed");
	expect_header(w, "good2", "completed");
	cr_expect_eq(sl_memory_high(w->mem, w->topics.dead_letter, 0), 1);
	expect_clean_header(w);
	teardown(w);
}

Test(careful, only_the_local_step_is_given_up_and_its_event_is_kept)
{
	struct sl_record rec;
	struct world *w = setup();
	death.armed = death.proves = true; /* whatever a mailbox starts: both die once */
	publish(w, "e1", "1", "{}");
	publish(w, "e2", "2", "{}");
	live(w);
	cr_expect_eq(death.deaths, 2);
	cr_expect_eq(instances(w, "workflow.faulted", "too much"), 2);
	cr_expect_eq(different(w, w->topics.dead_letter, "", ""), 2);
	cr_assert(sl_memory_record(w->mem, w->topics.dead_letter, 0, 0, &rec));
	cr_expect(memmem(rec.value.ptr, rec.value.len, "e1", 2), "the event is in the dead letter");
	/* the claim is free again: the next event of the key starts the next instance */
	death.armed = false;
	publish(w, "e3", "1", "{}");
	live(w);
	cr_expect_eq(instances(w, "workflow.completed", "keyed"), 1);
	expect_clean_header(w);
	teardown(w);
}

Test(careful, lost_answers_of_a_living_process_do_not_count)
{
	struct world *w = setup();
	live(w);
	die(w);
	start(w, "a");
	struct sl_store *store = sl_memory_store(w->mem, "W");
	for (int i = 0; i < 3; i++)
		store->ops->take(store, "p", 0, taken, NULL);
	sl_memory_turn(w->mem, 0);
	live_again(w);
	int cuts = 0;
	for (int64_t ran = 1; ran;) {
		bool more = sl_definitions_turn(w->definitions);
		more = sl_coordinator_turn(w->co) || more;
		const char *before = header(w, "note");
		ran = sl_memory_turn(w->mem, 1) + more;
		const char *after = header(w, "note");
		if (after && (!before || strcmp(before, after) != 0)) {
			cr_expect(strstr(after, " 1 "), "note %s", after);
			if (cuts < 12) {
				cuts++;
				sl_memory_cut(w->mem, "C", 0);
			}
		}
		if (!ran)
			ran = sl_memory_fire(w->mem, sl_memory_now(w->mem) + 20000);
	}
	cr_expect_eq(cuts, 12);
	expect_header(w, "a", "completed");
	cr_expect_eq(sl_memory_high(w->mem, w->topics.dead_letter, 0), 0);
	expect_clean_header(w);
	teardown(w);
}

Test(careful, restarts_of_a_quiet_partition_do_not_make_it_slow)
{
	struct world *w = setup();
	for (int i = 0; i < 6; i++) {
		live(w);
		die(w);
		live_again(w);
	}
	live(w);
	start(w, "a");
	live(w);
	cr_expect_not(death.noted);
	expect_header(w, "a", "completed");
	teardown(w);
}
