/* Dead letters: what they keep, what is read from them, what goes back on the road. */
#include "services/common/dead_letter.h"
#include <criterion/criterion.h>
#include <string.h>

static struct sl_arena arena;

static void setup(void)
{
	sl_arena_init(&arena);
}

static void teardown(void)
{
	sl_arena_release(&arena);
}
TestSuite(dead_letter, .init = setup, .fini = teardown);

static struct sl_bytes bytes(const char *text)
{
	return (struct sl_bytes){text, strlen(text)};
}

static const char *header(const struct sl_record *rec, int i)
{
	return i < rec->header_count
		       ? sl_arena_printf(&arena, "%s: %.*s", rec->headers[i].name, (int)rec->headers[i].value.len,
				 rec->headers[i].value.ptr ? (const char *)rec->headers[i].value.ptr : "")
		       : "none";
}

static struct sl_record record(const struct sl_header *headers, int count, const char *value)
{
	return (struct sl_record){.topic = "events",
		.partition = 3,
		.offset = 42,
		.key = bytes("k"),
		.value = bytes(value),
		.headers = headers,
		.header_count = count};
}

Test(dead_letter, keeps_the_record_and_tells_reason_and_origin)
{
	const struct sl_header own[] = {{"x", {"1", 1}}, {"y", {NULL, 0}}};
	struct sl_record rec = record(own, 2, "value"), out;
	struct sl_dead_letter letter;
	sl_dead_letter_record("dead", &rec, "no event", 100, &arena, &out);
	cr_assert_eq(sl_dead_letter_parse(&out, &arena, &letter), 0);
	cr_expect_str_eq(out.topic, "dead");
	cr_expect_str_eq(letter.reason, "no event");
	cr_expect_str_eq(letter.origin_topic, "events");
	cr_expect_eq(letter.origin_partition, 3);
	cr_expect_eq(letter.origin_offset, 42);
	cr_expect_eq(letter.attempts, 1);
	cr_expect_eq(letter.cut_from, 0);
	cr_expect(letter.raw);
	cr_expect_null(letter.redriven);
	cr_expect_eq(letter.header_count, 2);
	cr_expect_null(out.headers[1].value.ptr);
}

Test(dead_letter, a_big_value_is_cut_and_its_size_told)
{
	static char big[100000];
	struct sl_record rec = record(NULL, 0, ""), out;
	struct sl_dead_letter letter;
	rec.value = (struct sl_bytes){big, sizeof(big)};
	sl_dead_letter_record("dead", &rec, "too big", sizeof(big) - 1, &arena, &out);
	cr_assert_eq(sl_dead_letter_parse(&out, &arena, &letter), 0);
	cr_expect_eq(out.value.len, 65536);
	cr_expect_eq(letter.cut_from, 100000);
	cr_expect_eq(letter.header_count, 0);
}

Test(dead_letter, redriven_it_has_its_own_headers_and_comes_back_with_one_attempt_more)
{
	const struct sl_header own[] = {{"x", {"1", 1}}};
	struct sl_record rec = record(own, 1, "value"), first, again, second;
	struct sl_dead_letter letter;
	sl_dead_letter_record("dead", &rec, "why", 100, &arena, &first);
	cr_assert_eq(sl_dead_letter_parse(&first, &arena, &letter), 0);
	sl_dead_letter_redrive(&first, &letter, "0/7", first.value, &arena, &again);
	cr_expect_str_eq(again.topic, "events");
	cr_expect_eq(again.partition, 3);
	cr_assert_eq(again.header_count, 3);
	cr_expect_str_eq(header(&again, 0), "x: 1");
	cr_expect_str_eq(header(&again, 1), "sluice-redriven: 0/7");
	cr_expect_str_eq(header(&again, 2), "sluice-attempts: 1");

	sl_dead_letter_record("dead", &again, "why", 100, &arena, &second);
	cr_assert_eq(sl_dead_letter_parse(&second, &arena, &letter), 0);
	cr_expect_eq(letter.attempts, 2);
	cr_expect_str_eq(letter.redriven, "0/7");
	cr_expect_eq(letter.header_count, 1);
	sl_dead_letter_redrive(&second, &letter, "1/1", second.value, &arena, &again);
	cr_assert_eq(again.header_count, 3);
	cr_expect_str_eq(header(&again, 1), "sluice-redriven: 1/1");
	cr_expect_str_eq(header(&again, 2), "sluice-attempts: 2");
}

Test(dead_letter, headers_of_a_producer_with_our_names_are_its_own)
{
	const struct sl_header own[] = {{"sluice-reason", {"r", 1}}, {"sluice-namespace", {"n", 1}},
		{"sluice-instance", {"i", 1}}, {"sluice-origin-topic", {"commands", 8}},
		{"sluice-origin-partition", {"0", 1}}, {"sluice-origin-offset", {"0", 1}},
		{"sluice-attempts", {"9", 1}}};
	struct sl_record rec = record(own, 7, "value"), out;
	struct sl_dead_letter letter;
	sl_dead_letter_record("dead", &rec, "why", 100, &arena, &out);
	cr_assert_eq(sl_dead_letter_parse(&out, &arena, &letter), 0);
	cr_expect_str_eq(letter.origin_topic, "events");
	cr_expect_str_eq(letter.reason, "why");
	cr_expect_null(letter.ns);
	cr_expect_null(letter.instance);
	cr_expect_eq(letter.attempts, 1);
	cr_expect_eq(letter.header_count, 7);
}

Test(dead_letter, of_the_engine_is_an_event_for_somebody)
{
	const struct sl_header headers[] = {{"content-type", {"application/cloudevents+json", 28}},
		{"sluice-reason", {"inbox-full", 10}}, {"sluice-namespace", {"default", 7}},
		{"sluice-instance", {"i1", 2}}, {"sluice-attempts", {"1", 1}}};
	struct sl_record rec = record(headers, 5, "{}");
	struct sl_dead_letter letter;
	cr_assert_eq(sl_dead_letter_parse(&rec, &arena, &letter), 0);
	cr_expect_not(letter.raw);
	cr_expect_str_eq(letter.ns, "default");
	cr_expect_str_eq(letter.instance, "i1");
	cr_expect_null(letter.origin_topic);
	cr_expect_eq(letter.origin_partition, -1);
	cr_expect_eq(letter.header_count, 1);
}

Test(dead_letter, what_is_no_letter_of_ours_is_refused)
{
	const struct sl_header wrong[] = {{"sluice-reason", {"r", 1}}, {"sluice-origin-topic", {"t", 1}},
		{"sluice-origin-partition", {"-1", 2}}, {"sluice-origin-offset", {"0", 1}},
		{"sluice-attempts", {"1", 1}}};
	struct sl_dead_letter letter;
	for (int count = 0; count <= 5; count++) {
		struct sl_record rec = record(wrong, count, "v");
		cr_expect_eq(sl_dead_letter_parse(&rec, &arena, &letter), SL_ESCHEMA, "%d headers", count);
	}
}
