/* The ring of marks: membership, forgetting, stored form. */
#include "common/engine/ring.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* A stored ring, as the store would hold it. */
struct stored {
	char slots[2000][SL_RING_TEXT];
	bool there[2000];
};

static int commit(struct sl_ring *ring, struct stored *store)
{
	int n = (int)sl_ring_changed(ring);
	for (int i = 0; i < n; i++) {
		uint32_t slot = sl_ring_changed_slot(ring, (uint32_t)i);
		sl_ring_slot_text(ring, slot, store->slots[slot]);
		store->there[slot] = true;
	}
	sl_ring_committed(ring);
	return n;
}

/* Backwards, for a store gives fields in any order. */
static void load(struct sl_ring *ring, const struct stored *store, int max)
{
	sl_ring_init(ring, max);
	for (int slot = 1999; slot >= 0; slot--) {
		char name[16];
		snprintf(name, sizeof name, "%d", slot);
		if (store->there[slot])
			cr_assert_eq(sl_ring_load(ring, name, (struct sl_bytes){store->slots[slot], 18}), 0);
	}
}

Test(ring, an_empty_ring_has_no_memory_and_knows_nothing)
{
	struct sl_ring ring;
	sl_ring_init(&ring, 256);
	cr_assert_eq(sl_ring_bytes(&ring), 0);
	cr_assert_not(sl_ring_has(&ring, sl_ring_mark_text("a")));
	cr_assert_eq(sl_ring_changed(&ring), 0);
	cr_assert(sl_ring_add(&ring, sl_ring_mark_text("a")));
	cr_assert(sl_ring_add(&ring, sl_ring_mark_text("b")));
	cr_assert_lt(sl_ring_bytes(&ring), 300, "two entries cost little: %zu", sl_ring_bytes(&ring));
	sl_ring_release(&ring);
}

Test(ring, remembers_exactly_the_last_n)
{
	struct sl_ring ring;
	sl_ring_init(&ring, 100);
	for (uint64_t i = 1; i <= 1000; i++) {
		cr_assert(sl_ring_add(&ring, i * 0x9e3779b97f4a7c15u >> 2));
		cr_assert_not(sl_ring_add(&ring, i * 0x9e3779b97f4a7c15u >> 2), "known now");
		for (uint64_t k = i > 110 ? i - 110 : 1; k <= i; k++)
			cr_assert_eq(sl_ring_has(&ring, k * 0x9e3779b97f4a7c15u >> 2), i - k < 100, "%d at %d", (int)k,
				(int)i);
	}
	cr_assert_eq(sl_ring_count(&ring), 100);
	cr_assert_eq(sl_ring_at(&ring, 0), 901 * 0x9e3779b97f4a7c15u >> 2);
	cr_assert_eq(sl_ring_at(&ring, 99), 1000 * 0x9e3779b97f4a7c15u >> 2);
	sl_ring_release(&ring);
}

Test(ring, an_entry_changes_one_slot)
{
	struct sl_ring ring;
	struct stored store = {0};
	sl_ring_init(&ring, 10);
	for (int i = 0; i < 100; i++) {
		sl_ring_add(&ring, (uint64_t)i + 1000);
		cr_assert_eq(commit(&ring, &store), 1);
	}
	for (int i = 0; i < 25; i++)
		sl_ring_add(&ring, (uint64_t)i + 5000);
	cr_assert_eq(commit(&ring, &store), 10, "a slot that was written twice is stored once");
	sl_ring_release(&ring);
}

/* Whatever the length of the history, a loaded ring goes on like the one that was stored. */
Test(ring, loading_gives_the_same_ring)
{
	for (int n = 0; n < 70; n++) {
		struct sl_ring ring, again;
		struct stored store = {0};
		sl_ring_init(&ring, 16);
		for (int i = 0; i < n; i++) {
			sl_ring_add(&ring, (uint64_t)i + 7);
			if (i % 5 == 0)
				commit(&ring, &store);
		}
		commit(&ring, &store);
		load(&again, &store, 16);
		cr_assert_eq(sl_ring_count(&again), sl_ring_count(&ring));
		for (uint32_t i = 0; i < sl_ring_count(&ring); i++)
			cr_assert_eq(sl_ring_at(&again, i), sl_ring_at(&ring, i), "%d entries, the %uth", n, i);
		for (int i = 0; i < 20; i++) {
			cr_assert(sl_ring_add(&again, (uint64_t)i + 900));
			cr_assert(sl_ring_add(&ring, (uint64_t)i + 900));
			for (int k = 0; k < n; k++)
				cr_assert_eq(sl_ring_has(&again, (uint64_t)k + 7), sl_ring_has(&ring, (uint64_t)k + 7));
		}
		sl_ring_release(&ring);
		sl_ring_release(&again);
	}
}

/* ring_max may change between releases or restarts: nothing recent is forgotten, new entries are stored where loading
 * finds them. */
Test(ring, a_changed_length_keeps_what_is_recent)
{
	static const int lengths[][2] = {{8, 16}, {16, 8}, {5, 12}, {12, 5}};
	for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
		for (int n = 0; n < 40; n++) {
			struct stored store = {0};
			struct sl_ring ring;
			int next = 0, small = lengths[c][0] < lengths[c][1] ? lengths[c][0] : lengths[c][1];
			sl_ring_init(&ring, lengths[c][0]);
			for (int i = 0; i < n; i++)
				sl_ring_add(&ring, (uint64_t)++next);
			commit(&ring, &store);
			sl_ring_release(&ring);
			for (int round = 0; round < 6; round++) {
				load(&ring, &store, lengths[c][1]);
				for (int i = 0; i < 7; i++) {
					cr_assert(sl_ring_add(&ring, (uint64_t)++next));
					for (int k = next; k > 0 && k > next - small; k--)
						cr_assert(sl_ring_has(&ring, (uint64_t)k),
							"%d -> %d, %d, round %d: %d of %d", lengths[c][0],
							lengths[c][1], n, round, k, next);
				}
				commit(&ring, &store);
				sl_ring_release(&ring);
			}
		}
	}
}

Test(ring, damaged_slots_are_refused)
{
	struct sl_ring ring;
	sl_ring_init(&ring, 16);
	cr_assert_eq(sl_ring_load(&ring, "x", (struct sl_bytes){"\"0123456789abcdef\"", 18}), SL_EPARSE);
	cr_assert_eq(sl_ring_load(&ring, "-1", (struct sl_bytes){"\"0123456789abcdef\"", 18}), SL_EPARSE);
	cr_assert_eq(sl_ring_load(&ring, "99999999", (struct sl_bytes){"\"0123456789abcdef\"", 18}), SL_EPARSE);
	cr_assert_eq(sl_ring_load(&ring, "1", (struct sl_bytes){"\"0123456789abcdeF\"", 18}), SL_EPARSE);
	cr_assert_eq(sl_ring_load(&ring, "1", (struct sl_bytes){"\"0123\"", 6}), SL_EPARSE);
	cr_assert_eq(sl_ring_load(&ring, "1", (struct sl_bytes){NULL, 0}), SL_EPARSE);
	cr_assert_eq(sl_ring_load(&ring, "3", (struct sl_bytes){"0123456789abcdef", 16}), 0);
	cr_assert(sl_ring_has(&ring, 0x0123456789abcdefu));
	cr_assert(sl_ring_add(&ring, 5), "a gap is filled");
	cr_assert_eq(sl_ring_changed_slot(&ring, 0), 0);
	sl_ring_release(&ring);
}

Test(ring, a_successor_inherits_the_marks)
{
	struct sl_ring ring, next;
	sl_ring_init(&ring, 64);
	sl_ring_init(&next, 64);
	for (uint64_t i = 0; i < 100; i++)
		sl_ring_add(&ring, i + 1);
	jv marks = sl_ring_json(&ring);
	marks = jv_array_append(marks, jv_string("no mark"));
	sl_ring_add_json(&next, marks);
	jv_free(marks);
	cr_assert_eq(sl_ring_count(&next), 64);
	for (uint32_t i = 0; i < 64; i++)
		cr_assert_eq(sl_ring_at(&next, i), sl_ring_at(&ring, i));
	sl_ring_release(&ring);
	sl_ring_release(&next);
}

Test(ring, marks_are_stable_and_distinct)
{
	cr_assert_eq(sl_ring_mark_text("a"), sl_ring_mark("a", 1));
	cr_assert_neq(sl_ring_mark_text("a"), sl_ring_mark_text("b"));
	cr_assert_eq(sl_ring_mark_text("sluice") >> 63, 0);
	cr_assert_eq(sl_ring_mark_text("sluice"), 0x3c994db9d32abd3cu, "the stored value must never change: %llx",
		(unsigned long long)sl_ring_mark_text("sluice"));
}
