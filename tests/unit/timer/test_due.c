/* Near timers: heap and table against a plain model. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "services/timer/due.h"

Test(due, fires_in_order_of_time_whatever_the_order_of_setting)
{
	struct sl_due due;
	unsigned seed = 3;
	char name[32];
	sl_due_init(&due);
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n~i%d~1", i);
		sl_due_set(&due, name, rand_r(&seed) % 1000, NULL);
	}
	int64_t last = -1;
	for (int i = 0; i < 2000; i++) {
		struct sl_due_entry *entry = sl_due_fire(&due);
		cr_assert(entry);
		cr_assert_geq(entry->due_ms, last);
		last = entry->due_ms;
		entry->state = SL_DUE_FIRED;
		sl_due_forget(&due, entry);
	}
	cr_expect_null(sl_due_fire(&due));
	cr_expect_eq(due.count, 0);
	sl_due_release(&due);
}

Test(due, random_changes_agree_with_a_plain_array)
{
	enum { N = 200 };
	int64_t model[N];
	struct sl_due due;
	unsigned seed = 11;
	char name[32];
	for (int i = 0; i < N; i++)
		model[i] = -1;
	sl_due_init(&due);
	for (int step = 0; step < 50000; step++) {
		int i = rand_r(&seed) % N;
		snprintf(name, sizeof(name), "n~i%d~1", i);
		switch (rand_r(&seed) % 3) {
		case 0:
			model[i] = rand_r(&seed) % 100000;
			sl_due_set(&due, name, model[i], i % 2 ? "trace" : NULL);
			break;
		case 1:
			cr_assert_eq(sl_due_cancel(&due, name), model[i] >= 0);
			model[i] = -1;
			break;
		default: {
			int64_t least = -1;
			for (int k = 0; k < N; k++)
				if (model[k] >= 0 && (least < 0 || model[k] < least))
					least = model[k];
			struct sl_due_entry *first = sl_due_first(&due);
			cr_assert_eq(first ? first->due_ms : -1, least);
			if (first && rand_r(&seed) % 2) {
				int at = atoi(first->member + 3);
				cr_assert_eq(sl_due_fire(&due), first);
				model[at] = -1;
				first->state = SL_DUE_FIRED;
				sl_due_forget(&due, first);
			}
		}
		}
	}
	sl_due_release(&due);
}

Test(due, what_is_on_its_way_survives_as_an_orphan)
{
	struct sl_due due;
	sl_due_init(&due);
	sl_due_set(&due, "n~a~1", 10, "t");
	struct sl_due_entry *firing = sl_due_fire(&due);
	sl_due_set(&due, "n~a~1", 10, NULL);
	cr_expect_null(sl_due_first(&due), "the same timer again, it is already firing");
	sl_due_set(&due, "n~a~1", 20, NULL);
	cr_expect(firing->orphan);
	cr_expect_eq(sl_due_first(&due)->due_ms, 20);
	struct sl_due_entry *second = sl_due_fire(&due);
	second->state = SL_DUE_FIRED;
	cr_expect_not(sl_due_cancel(&due, "n~a~1"), "fired already");
	sl_due_set(&due, "n~a~1", 30, NULL);
	cr_expect(second->orphan, "set anew before it was removed from the store");
	sl_due_release(&due);
	sl_due_entry_free(firing);
	sl_due_entry_free(second);
}
