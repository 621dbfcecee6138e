/* Text helpers: UTF-8, durations, times, globs, numbers, versions, murmur2. */
#include <criterion/criterion.h>
#include "common/base/text.h"

Test(text, utf8_accepts_what_rfc3629_allows)
{
	const char *good[] = {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert(sl_utf8_valid(good[i], strlen(good[i])), "%zu", i);
}

Test(text, utf8_refuses_overlong_surrogates_and_cut_sequences)
{
	const char *bad[] = {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xc3", "\xe2\x82", "\xff"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(sl_utf8_valid(bad[i], strlen(bad[i])), "%zu", i);
}

Test(text, durations)
{
	static const struct { const char *text; int64_t ms; } good[] = {{"PT0S", 0}, {"PT1S", 1000}, {"PT0.5S", 500}, {"PT1,25S", 1250},
		{"PT15M", 900000}, {"P2DT3H4M", 183840000}, {"P1M", 30LL * 86400000}, {"P1Y", 365LL * 86400000}, {"P1W", 7 * 86400000},
		{"PT1.5H", 5400000}, {"P1Y2M3DT4H5M6S", 365LL * 86400000 + 63LL * 86400000 + 14706000}, {"PT0.0004S", 0}};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int64_t ms = -1;
		cr_assert_eq(sl_duration_parse(good[i].text, &ms), 0, "%s", good[i].text);
		cr_assert_eq(ms, good[i].ms, "%s: %lld", good[i].text, (long long)ms);
	}
	const char *bad[] = {"", "P", "PT", "1S", "PT1", "P1S", "PT30D", "PT2W", "PT1.5H30M", "P1DT", "-PT1S", "PT-1S", "PT1S ", " PT1S", "pt1s", "P1D1Y", "PT1S1M", "PTS", "PT.5S", "PT1.S"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t ms = 7;
		cr_assert_eq(sl_duration_parse(bad[i], &ms), SL_EINVAL, "%s", bad[i]);
		cr_assert_eq(ms, 7, "output untouched on failure");
	}
	int64_t ms;
	cr_assert_eq(sl_duration_parse("P99999999999999999Y", &ms), SL_ETOOBIG);
}

Test(text, times_round_trip_and_refuse_what_is_no_date)
{
	int64_t ms;
	char buf[32];
	cr_assert_eq(sl_time_parse("2020-01-05T17:31:00Z", &ms), 0);
	cr_assert_eq(ms, 1578245460000);
	cr_assert_eq(sl_time_parse("2020-01-05T18:31:00.250+01:00", &ms), 0);
	cr_assert_eq(ms, 1578245460250);
	sl_time_format(ms, buf);
	cr_assert_str_eq(buf, "2020-01-05T17:31:00.250Z");
	sl_time_format(0, buf);
	cr_assert_str_eq(buf, "1970-01-01T00:00:00Z");
	sl_time_format(-1, buf);
	cr_assert_str_eq(buf, "1969-12-31T23:59:59.999Z");
	cr_assert_eq(sl_time_parse("0020-01-05T17:31:00Z", &ms), 0);
	sl_time_format(ms, buf);
	cr_assert_str_eq(buf, "0020-01-05T17:31:00Z");
	cr_assert_eq(sl_time_parse("0000-01-01T00:00:00+00:01", &ms), SL_EINVAL, "the year before 0");
	cr_assert_eq(sl_time_parse("9999-12-31T23:59:59-00:01", &ms), SL_EINVAL, "year 10000");
	sl_time_format(INT64_MIN, buf);
	sl_time_format(INT64_MAX, buf);
	const char *bad[] = {"2020-02-30T00:00:00Z", "2020-01-05", "2020-01-05T25:00:00Z", "2020-01-05T00:00:00", "2020-01-05T00:00:00Zx"};
	for (size_t i = 0; i < 5; i++)
		cr_assert_eq(sl_time_parse(bad[i], &ms), SL_EINVAL, "%s", bad[i]);
}

Test(text, globs_are_anchored_and_star_crosses_dots)
{
	cr_assert(sl_glob("*", ""));
	cr_assert(sl_glob("io.*", "io.disk.full"));
	cr_assert(sl_glob("*.full", "io.disk.full"));
	cr_assert(sl_glob("a?c*e", "abcxxe"));
	cr_assert_not(sl_glob("disk", "io.disk.full"));
	cr_assert_not(sl_glob("io.*x", "io.disk.full"));
	cr_assert_not(sl_glob("", "a"));
}

Test(text, integers_are_strict)
{
	int64_t v;
	cr_assert_eq(sl_int_parse("-9223372036854775808", &v), 0);
	cr_assert_eq(v, INT64_MIN);
	cr_assert_eq(sl_int_parse("9223372036854775807", &v), 0);
	cr_assert_eq(v, INT64_MAX);
	cr_assert_eq(sl_int_parse("9223372036854775808", &v), SL_ETOOBIG);
	cr_assert_eq(sl_int_parse("", &v), SL_EINVAL);
	cr_assert_eq(sl_int_parse("1x", &v), SL_EINVAL);
	cr_assert_eq(sl_int_parse(" 1", &v), SL_EINVAL);
	cr_assert_eq(sl_int_parse("007", &v), 0);
	cr_assert_eq(sl_int_name("007", &v), SL_EINVAL);
	cr_assert_eq(sl_int_name("-0", &v), SL_EINVAL);
	cr_assert_eq(sl_int_name("-", &v), SL_EINVAL);
	cr_assert_eq(sl_int_name("-7", &v), 0);
	cr_assert_eq(v, -7);
	cr_assert_eq(sl_int_name("0", &v), 0);
	cr_assert_eq(v, 0);
}

Test(text, semantic_versions)
{
	const char *good[] = {"0.0.0", "1.2.3", "1.0.0-alpha.1", "1.0.0+build.5", "1.0.0-x-y.z+001"};
	const char *bad[] = {"1", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.x"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert(sl_semver_valid(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(sl_semver_valid(bad[i]), "%s", bad[i]);
	/* the order of semver.org, section 11 */
	const char *order[] = {"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0", "2.0.0-a-1", "2.0.0-a-2"};
	for (size_t i = 0; i + 1 < sizeof(order) / sizeof(order[0]); i++) {
		cr_assert_lt(sl_semver_cmp(order[i], order[i + 1]), 0, "%s < %s", order[i], order[i + 1]);
		cr_assert_gt(sl_semver_cmp(order[i + 1], order[i]), 0, "%s > %s", order[i + 1], order[i]);
	}
	cr_assert_eq(sl_semver_cmp("1.0.0+a", "1.0.0+b"), 0);
}

Test(text, murmur2_is_that_of_kafka)
{
	/* values of the Java client's own unit test */
	cr_assert_eq((int32_t)sl_murmur2("21", 2), -973932308);
	cr_assert_eq((int32_t)sl_murmur2("foobar", 6), -790332482);
	cr_assert_eq((int32_t)sl_murmur2("a-little-bit-long-string", 24), -985981536);
	cr_assert_eq((int32_t)sl_murmur2("a-little-bit-longer-string", 26), -1486304829);
	cr_assert_eq((int32_t)sl_murmur2("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 48), -58897971);
	cr_assert_eq((int32_t)sl_murmur2("abc", 3), 479470107);
}

Test(text, people_read_durations)
{
	char buf[32];
	sl_duration_human(350, buf);
	cr_assert_str_eq(buf, "350 ms");
	sl_duration_human(3840000, buf);
	cr_assert_str_eq(buf, "1h 4m");
	sl_duration_human(2500, buf);
	cr_assert_str_eq(buf, "2.5 s");
}
