/* Retries: delays, jitter, matching. */
#include "common/engine/instance.h"

#include <criterion/criterion.h>

Test(retry, increment_gives_the_series_of_the_text)
{
	struct sl_retry retry = {.attempts_max = 4, .delay_ms = 10000, .increment_ms = 2000};
	int64_t want[] = {10000, 12000, 14000, 16000};
	for (int i = 0; i < 4; i++)
		cr_expect_eq(sl_retry_delay_ms(&retry, i + 1, 0, 0), want[i]);
}

Test(retry, multiplier_gives_the_series_of_the_text)
{
	struct sl_retry retry = {.attempts_max = 4, .delay_ms = 10000, .multiplier = 2};
	int64_t want[] = {10000, 20000, 40000, 80000};
	for (int i = 0; i < 4; i++)
		cr_expect_eq(sl_retry_delay_ms(&retry, i + 1, 0, 0), want[i]);
}

Test(retry, increment_comes_before_multiplier)
{
	struct sl_retry retry = {.delay_ms = 1000, .increment_ms = 500, .multiplier = 2};
	cr_expect_eq(sl_retry_delay_ms(&retry, 2, 0, 0), 3000);
	cr_expect_eq(sl_retry_delay_ms(&retry, 3, 0, 0), 7000);
}

Test(retry, increment_without_delay_counts_from_zero)
{
	struct sl_retry retry = {.increment_ms = 2000};
	cr_expect_eq(sl_retry_delay_ms(&retry, 1, 0, 0), 0);
	cr_expect_eq(sl_retry_delay_ms(&retry, 2, 0, 0), 2000);
}

Test(retry, jitter_is_not_carried_on_and_max_delay_comes_last)
{
	struct sl_retry retry = {.delay_ms = 10000, .multiplier = 4, .jitter_ms = 1000, .delay_max_ms = 100000};
	cr_expect_eq(sl_retry_delay_ms(&retry, 1, 1, 0), 11000);
	cr_expect_eq(sl_retry_delay_ms(&retry, 2, -1, 0), 39000);
	cr_expect_eq(sl_retry_delay_ms(&retry, 3, 0, 0), 100000);
	cr_expect_eq(sl_retry_delay_ms(&retry, 4, -1, 0), 100000);
}

Test(retry, relative_jitter_and_never_below_zero)
{
	struct sl_retry retry = {.delay_ms = 6000, .jitter = 0.3};
	cr_expect_eq(sl_retry_delay_ms(&retry, 1, 1, 0), 7800);
	cr_expect_eq(sl_retry_delay_ms(&retry, 1, -1, 0), 4200);
	retry.jitter_ms = 100000;
	cr_expect_eq(sl_retry_delay_ms(&retry, 1, -1, 0), 0);
}

Test(retry, cap_holds_for_ever)
{
	struct sl_retry retry = {.delay_ms = 1000, .multiplier = 2};
	cr_expect_eq(sl_retry_delay_ms(&retry, 5, 0, 3600000), 16000);
	cr_expect_eq(sl_retry_delay_ms(&retry, 1000000, 0, 3600000), 3600000);
}

Test(retry, attempts_are_counted_in_all)
{
	struct sl_retry retry = {.attempts_max = 2}, once = {.attempts_max = 1}, unlimited = {0};
	cr_expect(sl_retry_again(&retry, 1));
	cr_expect_not(sl_retry_again(&retry, 2));
	cr_expect_not(sl_retry_again(&once, 1));
	cr_expect(sl_retry_again(&unlimited, 1000000));
}

Test(retry, unit_is_derived_and_spread)
{
	double a = sl_retry_unit(1, "i", "/n", 1), low = 1, high = -1;
	cr_expect_float_eq(a, sl_retry_unit(1, "i", "/n", 1), 0);
	cr_expect(a != sl_retry_unit(1, "i", "/n", 2) && a != sl_retry_unit(2, "i", "/n", 1) &&
		  a != sl_retry_unit(1, "j", "/n", 1));
	for (int i = 0; i < 200; i++) {
		double u = sl_retry_unit(7, "i", "/n", i);
		cr_assert(u >= -1 && u <= 1);
		low = u < low ? u : low;
		high = u > high ? u : high;
	}
	cr_expect(low < -0.8 && high > 0.8);
}

Test(retry, rule_matches_code_or_status_as_text)
{
	struct sl_match matches[] = {{.kind = SL_MATCH_CODE, .text = "404"}, {.kind = SL_MATCH_CODE, .text = "gone"}};
	struct sl_rule rule = {.matches = matches, .match_count = 2};
	jv by_status = sl_error_new(NULL, 404, NULL, NULL), by_code = sl_error_new("gone", 410, NULL, NULL),
	   other = sl_error_new("x", 500, NULL, NULL);
	cr_expect(sl_rule_matches(&rule, by_status, false));
	cr_expect(sl_rule_matches(&rule, by_code, false));
	cr_expect_not(sl_rule_matches(&rule, other, false));
	rule.except = true;
	cr_expect_not(sl_rule_matches(&rule, by_status, false));
	cr_expect(sl_rule_matches(&rule, other, false));
	jv_free(by_status);
	jv_free(by_code);
	jv_free(other);
}

Test(retry, catch_all_retry_leaves_errors_of_expressions_alone)
{
	struct sl_retry policy = {0};
	struct sl_match any = {.kind = SL_MATCH_ANY};
	struct sl_rule rule = {.matches = &any, .match_count = 1, .retry = &policy};
	jv error = sl_error_new(SL_CODE_EXPRESSION, 400, NULL, NULL);
	cr_expect(sl_rule_matches(&rule, error, false));
	cr_expect_not(sl_rule_matches(&rule, error, true));
	rule.retry = NULL;
	cr_expect(sl_rule_matches(&rule, error, true));
	jv_free(error);
}
