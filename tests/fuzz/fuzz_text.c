/* Durations, times, numbers, versions, globs, UTF-8: the small parsers of common/base. The input is lines, taken one by
 * one and, for globs and versions, in pairs. */
#include "common/base/text.h"
#include "tests/fuzz/fuzz.h"

static void duration(const char *text)
{
	char human[32];
	int64_t ms = -1;
	int err = sl_duration_parse(text, &ms);
	FUZZ_HOLDS(err == 0 ? ms >= 0 : (err == SL_EINVAL || err == SL_ETOOBIG) && ms == -1, "%s: %lld, %s", text,
		(long long)ms, sl_err_name(err));
	if (!err)
		sl_duration_human(ms, human);
}

static void moment(const char *text)
{
	char shown[32];
	int64_t ms, again;
	if (sl_time_parse(text, &ms) != 0)
		return;
	sl_time_format(ms, shown);
	FUZZ_HOLDS(
		sl_time_parse(shown, &again) == 0 && again == ms, "%s is %lld, written %s", text, (long long)ms, shown);
}

static void number(const char *text)
{
	char shown[32];
	int64_t n, again;
	if (sl_int_parse(text, &n) != 0)
		return;
	snprintf(shown, sizeof(shown), "%lld", (long long)n);
	FUZZ_HOLDS(sl_int_parse(shown, &again) == 0 && again == n, "%s", text);
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void pair(const char *a, const char *b)
{
	sl_glob(a, b);
	FUZZ_HOLDS(strpbrk(a, "*?") || sl_glob(a, b) == (strcmp(a, b) == 0), "%s against %s", a, b);
	if (sl_semver_valid(a) && sl_semver_valid(b))
		FUZZ_HOLDS(sign(sl_semver_cmp(a, b)) == -sign(sl_semver_cmp(b, a)), "%s, %s", a, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_arena arena;
	const char *line, *before = "";
	if (size > 4096)
		return -1;
	sl_arena_init(&arena);
	char *exact = fuzz_exact(in);
	sl_utf8_valid(exact, size);
	sl_murmur2(exact, size);
	free(exact);
	while ((line = fuzz_line(&in, &arena))) {
		duration(line);
		moment(line);
		number(line);
		pair(before, line);
		before = line;
	}
	sl_arena_release(&arena);
	return 0;
}
