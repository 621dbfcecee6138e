/* Retries and the matching of error rules: pure functions. */
#include "common/engine/instance.h"

#include "common/base/text.h"
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#define DELAY_MAX_MS (INT64_C(366) * 24 * 3600 * 1000 * 100)

bool sl_retry_again(const struct sl_retry *retry, int attempt)
{
	return retry->attempts_max == 0 || attempt < retry->attempts_max; /* A01: total attempts */
}

int64_t sl_retry_delay_ms(const struct sl_retry *retry, int attempt, double unit, int64_t cap_ms)
{
	/* A85: next = (previous + increment) * multiplier; A86: without delay from 0 */
	double delay = (double)retry->delay_ms;
	for (int i = 1; i < attempt && delay < (double)DELAY_MAX_MS; i++) {
		double next = (delay + (double)retry->increment_ms) * (retry->multiplier > 0 ? retry->multiplier : 1);
		if (next == delay)
			break;
		delay = next;
	}
	/* the jitter is added to the result and not carried on */
	delay += unit * (delay * retry->jitter + (double)retry->jitter_ms);
	int64_t ms = delay > 0 ? (int64_t)llround(fmin(delay, (double)DELAY_MAX_MS)) : 0;
	if (retry->delay_max_ms > 0 && ms > retry->delay_max_ms)
		ms = retry->delay_max_ms;
	return cap_ms > 0 && ms > cap_ms ? cap_ms : ms;
}

double sl_retry_unit(uint64_t seed, const char *instance, const char *node, int attempt)
{
	char text[64], id[SL_UUID_TEXT];
	uint32_t bits = 0;
	snprintf(text, sizeof(text), "%llu/%d", (unsigned long long)seed, attempt);
	sl_id_derive((const char *const[]){"jitter", text, instance, node}, 4, id);
	for (int i = 0; i < 8; i++)
		bits = bits << 4 | (uint32_t)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
	return (double)bits / 4294967295.0 * 2 - 1;
}

/* Codes and statuses compare as strings. */
static bool text_is(jv error, const char *name, const char *text)
{
	struct sl_buf buf;
	jv value = sl_json_get(error, name);
	sl_buf_init(&buf);
	bool same = jv_is_valid(value) && sl_json_canonical(value, &buf) && strcmp(buf.len ? buf.data : "", text) == 0;
	sl_buf_release(&buf);
	jv_free(value);
	return same;
}

static bool matches_regex(const char *pattern, const char *text)
{
	regex_t regex;
	if (strcmp(pattern, "*") == 0) /* A131 */
		return true;
	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	bool found = regexec(&regex, text, 0, NULL, 0) == 0;
	regfree(&regex);
	return found;
}

static bool match_one(const struct sl_match *match, jv error, bool plain, bool catch_all)
{
	const char *code = sl_json_str(error, "code");
	switch (match->kind) {
	case SL_MATCH_CODE: /* A08: code or status */
		return text_is(error, "code", match->text) || text_is(error, "status", match->text);
	case SL_MATCH_TYPE:
		return (!match->text || text_is(error, "type", match->text)) &&
		       (!match->status || text_is(error, "status", match->status)) &&
		       (!match->instance || text_is(error, "instance", match->instance));
	case SL_MATCH_GLOB:
		return code && sl_glob(match->text, code);
	case SL_MATCH_REGEX:
		return code && matches_regex(match->text, code);
	case SL_MATCH_ANY:
		return catch_all || !plain;
	case SL_MATCH_RESULT: /* CNCF: a result value or a code (A60) */
		return match->text && code && strcmp(match->text, code) == 0;
	}
	return false;
}

static bool match_list(const struct sl_match *list, int count, jv error, bool plain, bool catch_all)
{
	for (int i = 0; i < count; i++)
		if (match_one(&list[i], error, plain, catch_all))
			return true;
	return false;
}

bool sl_rule_matches(const struct sl_rule *rule, jv error, bool plain)
{
	/* Retrying what was evaluated here gives the same again, so only a rule that names the error retries it. */
	bool catch_all = !rule->retry;
	if (match_list(rule->excepts, rule->except_count, error, plain, true))
		return false;
	if (rule->except)
		return (catch_all || !plain) && !match_list(rule->matches, rule->match_count, error, plain, true);
	return match_list(rule->matches, rule->match_count, error, plain, catch_all);
}
