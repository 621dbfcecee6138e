/* Ids and homes: fixed for ever, since they decide where state lives. */
#include <criterion/criterion.h>
#include "common/model/id.h"
#include "common/base/text.h"
#include "common/model/msg.h"

Test(id, derived_ids_are_length_prefixed_and_fixed)
{
	char a[SL_UUID_TEXT], b[SL_UUID_TEXT];
	sl_id_derive((const char *const[]){"ab", "c"}, 2, a);
	sl_id_derive((const char *const[]){"a", "bc"}, 2, b);
	cr_assert_str_neq(a, b);
	cr_assert_eq(strlen(a), 36);
	cr_assert_eq(a[14], '5');
	sl_id_derive((const char *const[]){"ab", "c"}, 2, b);
	cr_assert_str_eq(a, b);
	cr_assert_str_eq(a, "9f0d9658-b0f7-5853-a3c4-690502f73a96", "ids of earlier releases must stay: %s", a);
}

Test(id, an_id_tells_its_partition)
{
	char home[33], id[64], box[40];
	sl_home_of_key((const char *const[]){"patientid"}, (const char *const[]){"55"}, 1, home);
	snprintf(id, sizeof(id), "%s.abc", home);
	snprintf(box, sizeof(box), "#%s", home);
	cr_assert_eq(sl_id_partition("default", id, 32), sl_id_partition("default", box, 32));
	cr_assert_eq(sl_id_partition("default", "@7~default~x.y", 32), 7);
	cr_assert_eq(sl_id_partition("default", "@7", 32), 7);
	struct sl_arena arena;
	sl_arena_init(&arena);
	char *key = sl_id_kafka_key(&arena, "default", "my-order");
	cr_assert_str_eq(key, "default~my-order");
	cr_assert_eq(sl_id_partition("default", "my-order", 1000), (int32_t)((sl_murmur2(key, strlen(key)) & 0x7fffffff) % 1000));
	sl_arena_release(&arena);
}

Test(id, homes_of_different_keys_differ)
{
	char a[33], b[33];
	sl_home_of_key((const char *const[]){"a", "b"}, (const char *const[]){"1", "2"}, 2, a);
	sl_home_of_key((const char *const[]){"a", "b"}, (const char *const[]){"12", ""}, 2, b);
	cr_assert_str_neq(a, b);
	cr_assert_eq(strlen(a), 32);
}

Test(id, an_address_of_any_length_has_a_partition)
{
	char text[2000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	int32_t p = sl_id_partition("default", text, 7);
	cr_assert(p >= 0 && p < 7);
	text[sizeof(text) - 3] = '.';
	cr_assert(sl_id_partition("default", text, 7) >= 0);
}

Test(msg, every_kind_has_a_name_that_leads_back)
{
	for (int k = 1; k < SL_MSG_KIND_COUNT_; k++)
		cr_assert_eq(sl_msg_kind_of(sl_msg_kind_text((enum sl_msg_kind)k)), (enum sl_msg_kind)k);
	cr_assert_eq(sl_msg_kind_of("nonsense"), SL_MSG_NONE);
}

Test(msg, a_copy_is_independent_of_the_first_arena)
{
	struct sl_arena a, b;
	struct sl_msg msg, copy;
	sl_arena_init(&a);
	sl_arena_init(&b);
	sl_msg_init(&msg, SL_MSG_EVENT);
	msg.to = sl_arena_str(&a, "x");
	msg.event = jv_object();
	sl_msg_copy(&b, &copy, &msg);
	sl_msg_clear(&msg);
	sl_arena_release(&a);
	cr_assert_str_eq(copy.to, "x");
	cr_assert_eq(copy.origin_offset, -1);
	sl_msg_clear(&copy);
	sl_arena_release(&b);
}
