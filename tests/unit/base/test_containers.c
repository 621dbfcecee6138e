/* Arena, buffer, map, diagnostics, error table. */
#include <criterion/criterion.h>
#include <stdio.h>
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/diag.h"
#include "common/base/map.h"

Test(arena, memory_is_zeroed_aligned_and_kept_until_clear)
{
	struct sl_arena arena;
	sl_arena_init(&arena);
	for (int i = 1; i < 3000; i++) {
		unsigned char *p = sl_arena_alloc(&arena, (size_t)i);
		cr_assert_eq((uintptr_t)p % 16, 0);
		for (int k = 0; k < i; k++)
			cr_assert_eq(p[k], 0);
		memset(p, 0xff, (size_t)i);
	}
	sl_arena_clear(&arena);
	cr_assert_str_eq(sl_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
	cr_assert_null(sl_arena_str(&arena, NULL));
	sl_arena_release(&arena);
	sl_arena_release(NULL);
}

Test(buf, json_strings_are_escaped)
{
	struct sl_buf buf;
	sl_buf_init(&buf);
	sl_buf_add_json_str(&buf, "a\"b\\c\n\t\x01\x7f\xc3\xa4\0z", 13);
	cr_assert_str_eq(buf.data, "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\xc3\xa4\\u0000z\"");
	sl_buf_release(&buf);
}

Test(buf, steal_gives_a_string_even_when_empty)
{
	struct sl_buf buf;
	sl_buf_init(&buf);
	char *text = sl_buf_steal(&buf);
	cr_assert_str_eq(text, "");
	free(text);
}

Test(map, keeps_order_survives_removal_and_growth)
{
	struct sl_map map;
	char key[32];
	sl_map_init(&map);
	for (intptr_t i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "k%d", (int)i);
		cr_assert_null(sl_map_set(&map, key, (void *)(i + 1)));
	}
	for (intptr_t i = 0; i < 5000; i += 2) {
		snprintf(key, sizeof(key), "k%d", (int)i);
		cr_assert_eq(sl_map_del(&map, key), (void *)(i + 1));
		cr_assert_null(sl_map_del(&map, key));
	}
	cr_assert_eq(map.count, 2500);
	intptr_t expect = 1, seen = 0;
	sl_map_each(&map, e) {
		cr_assert_eq(e->value, (void *)(expect + 1));
		expect += 2;
		seen++;
	}
	cr_assert_eq(seen, 2500);
	for (int round = 0; round < 20000; round++) { /* holes do not pile up */
		cr_assert_null(sl_map_set(&map, "again", &map));
		cr_assert_eq(sl_map_del(&map, "again"), &map);
	}
	cr_assert_lt(map.entry_cap, 20000);
	cr_assert_eq(sl_map_get(&map, "k4999"), (void *)5000);
	sl_map_release(&map, NULL);
}

Test(diag, lines_name_place_hint_and_rule_and_quote_the_source)
{
	struct sl_diags diags;
	struct sl_buf out;
	sl_buf_init(&out);
	sl_diags_init(&diags);
	cr_assert_eq(sl_diag_error(&diags, SL_ESCHEMA, (struct sl_loc){"f.yaml", 2, 3, 4}, "/b", "bad %s", "thing"), SL_ESCHEMA);
	sl_diag_hint(&diags, "say %d", 1);
	sl_diag_rule(&diags, "A1");
	sl_diag_warn(&diags, (struct sl_loc){"f.yaml", 1, 1, 0}, NULL, "careful");
	sl_diags_sort(&diags);
	sl_diags_print(&diags, &out, "a: 1\n  beta: 2\n");
	cr_assert_str_eq(out.data, "f.yaml:1:1: warning: careful\n    a: 1\n    ^\nf.yaml:2:3: error: bad thing (say 1) [A1]\n      beta: 2\n      ^^^^\n");
	cr_assert_str_eq(sl_diags_first(&diags), "bad thing");
	sl_diags_release(&diags);
	sl_buf_release(&out);
}

Test(err, every_code_has_a_class_and_is_negative)
{
#define SL_ERR(name, class, text) cr_assert_lt(SL_##name, 0); cr_assert_eq(sl_err_class(SL_##name), SL_CLASS_##class); cr_assert_str_eq(sl_err_text(SL_##name), text);
#include "common/base/err.def"
#undef SL_ERR
	cr_assert_eq(sl_err_class(0), SL_CLASS_OK);
	cr_assert_eq(sl_err_class(-5), SL_CLASS_FATAL);
}
