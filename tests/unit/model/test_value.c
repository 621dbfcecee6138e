/* JSON values: strict parsing, exact writing, merging (0.8 Data Merging, word for word), changes. */
#include <criterion/criterion.h>
#include "common/model/value.h"

static jv parse(const char *text)
{
	jv v;
	cr_assert_eq(sl_json_parse(text, strlen(text), NULL, &v, NULL), 0, "%s", text);
	return v;
}

static void round_trip(const char *text, const char *expect)
{
	jv v = parse(text);
	char *out = sl_json_text(v);
	cr_assert_str_eq(out, expect);
	jv again = parse(out);
	cr_assert(sl_json_equal(v, again), "%s", out);
	jv_free(again);
	free(out);
	jv_free(v);
}

Test(json, writes_what_it_read)
{
	round_trip(" { \"a\" : [ 1 , 2.5 , -0.001, 1e3, true, null ] } ", "{\"a\":[1,2.5,-0.001,1000,true,null]}");
	round_trip("\"\\u00e4\\ud83d\\ude00\\n\"", "\"\xc3\xa4\xf0\x9f\x98\x80\\n\"");
	round_trip("9007199254740992", "9007199254740992");
	round_trip("0.1", "0.1");
	round_trip("1e300", "1e+300");
	/* an integer's digits stand only for what is read back as one: what we publish, we take */
	round_trip("9007199254740992", "9007199254740992");
	round_trip("1e16", "1e+16");
	round_trip("-44674407370955161.5", "-4.467440737095516e+16");
	round_trip("36028797018963976.0", "36028797018963976.0");
	round_trip("9007199254740994.5", "9007199254740994.0");
	round_trip("[]", "[]");
	round_trip("{\"a\":1,\"a\":2}", "{\"a\":2}");
}

static void refused(const char *text, size_t len, int err, const char *pointer)
{
	struct sl_diags diags;
	jv v;
	sl_diags_init(&diags);
	cr_assert_eq(sl_json_parse(text, len, NULL, &v, &diags), err, "%.60s", text);
	cr_assert_eq(diags.error_count, 1);
	if (pointer)
		cr_assert_str_eq(diags.first->pointer, pointer);
	sl_diags_release(&diags);
}

Test(json, refuses_what_is_not_json)
{
	const char *bad[] = {"", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "nan", "NaN", "Infinity", "+1", "01", "1.", ".5", "1e", "'a'", "\"a", "\"\\x\"", "\"\\u12\"", "tru", "[1] 2", "{a:1}", "\"\t\"", "1 2"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i], strlen(bad[i]), SL_EPARSE, NULL);
	refused("\"\xff\"", 3, SL_EENCODING, NULL);
}

Test(json, integers_beyond_2_53_are_refused_with_their_pointer)
{
	refused("{\"a\":[1,{\"b/c\":9007199254740993}]}", 34, SL_ENUMBER, "/a/1/b~1c");
	refused("-9007199254740993", 17, SL_ENUMBER, "");
	refused("1e999", 5, SL_ENUMBER, "");
	struct sl_json_limits round = {.depth_max = 200, .round_integers = true};
	jv v;
	cr_assert_eq(sl_json_parse("9007199254740993", 16, &round, &v, NULL), 0);
	jv_free(v);
}

Test(json, depth_and_size_are_bounded)
{
	char deep[2001];
	memset(deep, '[', 1000);
	memset(deep + 1000, ']', 1000);
	refused(deep, 2000, SL_EDEPTH, NULL);
	struct sl_json_limits small = {.bytes_max = 3, .depth_max = 200};
	jv v;
	cr_assert_eq(sl_json_parse("[1,2]", 5, &small, &v, NULL), SL_ETOOBIG);
	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	cr_assert_eq(sl_json_parse(deep, 400, NULL, &v, NULL), 0);
	cr_assert_eq(sl_json_depth(v, 500), 200);
	cr_assert_eq(sl_json_depth(v, 50), 50);
	jv_free(v);
}

static void merges(const char *into, const char *from, const char *expect)
{
	jv result = sl_json_merge(parse(into), parse(from)), want = parse(expect);
	char *text = sl_json_text(result);
	cr_assert(sl_json_equal(result, want), "%s + %s = %s", into, from, text);
	free(text);
	jv_free(result);
	jv_free(want);
}

Test(merge, the_examples_of_the_text)
{
	merges("{\"customer\":{\"name\":\"John\",\"address\":\"1234 street\",\"zip\":\"12345\"}}", "{\"customer\":{\"name\":\"John\",\"zip\":\"54321\"}}",
		"{\"customer\":{\"name\":\"John\",\"address\":\"1234 street\",\"zip\":\"54321\"}}");
	merges("{\"customers\":[{\"name\":\"Michael\",\"zip\":\"6789\"}]}", "{\"customers\":[{\"name\":\"John\",\"zip\":\"12345\"},{\"name\":\"Jane\",\"zip\":\"54321\"}]}",
		"{\"customers\":[{\"name\":\"Michael\",\"zip\":\"6789\"},{\"name\":\"John\",\"zip\":\"12345\"},{\"name\":\"Jane\",\"zip\":\"54321\"}]}");
	merges("{\"age\":20}", "{\"age\":30}", "{\"age\":30}");
}

Test(merge, arrays_keep_what_they_have_and_append_what_is_new)
{
	merges("[1,1,2]", "[2,3,3,1.0]", "[1,1,2,3]");
	merges("{\"a\":[{\"x\":1}]}", "{\"a\":[{\"x\":1.0},{\"x\":2}]}", "{\"a\":[{\"x\":1},{\"x\":2}]}");
}

Test(merge, other_types_are_replaced)
{
	merges("{\"a\":[1]}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}");
	merges("{\"a\":null}", "{\"a\":[1]}", "{\"a\":[1]}");
	merges("\"text\"", "{\"a\":1}", "{\"a\":1}");
	merges("{\"a\":1}", "5", "5");
}

static void changes(const char *before, const char *after, const char *expect)
{
	jv result = sl_json_changes(parse(before), parse(after));
	jv want = expect ? parse(expect) : jv_invalid();
	cr_assert(sl_json_equal(result, want), "%s -> %s", before, after);
	jv_free(result);
	jv_free(want);
}

Test(changes, hold_what_must_be_merged)
{
	changes("{\"a\":1,\"b\":{\"c\":1,\"d\":2}}", "{\"a\":1,\"b\":{\"c\":1,\"d\":3},\"e\":4}", "{\"b\":{\"d\":3},\"e\":4}");
	changes("{\"a\":[1]}", "{\"a\":[1,2]}", "{\"a\":[1,2]}");
	changes("{\"a\":1}", "{\"a\":1.0}", NULL);
	changes("{\"a\":1,\"b\":2}", "{\"a\":1}", NULL);
	changes("1", "2", "2");
}

Test(read, pointers_and_members)
{
	jv v = parse("{\"a\":[{\"b/c\":{\"~\":7}}],\"s\":\"x\",\"t\":true}");
	jv at = sl_json_at(v, "/a/0/b~1c/~0");
	cr_assert_eq(jv_number_value(at), 7);
	jv_free(at);
	at = sl_json_at(v, "/a/1");
	cr_assert_not(jv_is_valid(at));
	jv_free(at);
	cr_assert_str_eq(sl_json_str(v, "s"), "x");
	cr_assert_null(sl_json_str(v, "a"));
	cr_assert(sl_json_bool(v, "t", false));
	cr_assert_eq(sl_json_int(v, "zz", 9), 9);
	jv_free(v);
}
