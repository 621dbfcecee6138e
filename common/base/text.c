/* UTF-8, durations, times, globs, numbers, versions, murmur2. */
#include "common/base/text.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool sl_utf8_valid(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;
	while (s < end) {
		if (*s < 0x80) {
			s++;
			continue;
		}
		int more = *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : 1;
		if (*s < 0xc2 || *s > 0xf4 || end - s <= more)
			return false;
		/* RFC 3629 section 4: the second byte excludes overlong forms, surrogates and what is above U+10FFFF */
		unsigned char low = *s == 0xe0 ? 0xa0 : *s == 0xf0 ? 0x90 : 0x80;
		unsigned char high = *s == 0xed ? 0x9f : *s == 0xf4 ? 0x8f : 0xbf;
		if (s[1] < low || s[1] > high)
			return false;
		for (int i = 2; i <= more; i++)
			if ((s[i] & 0xc0) != 0x80)
				return false;
		s += more + 1;
	}
	return true;
}

void sl_lower(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + 32);
}

static const struct {
	char unit;
	double ms;
} date_units[] = {{'Y', 365 * 86400e3}, {'M', 30 * 86400e3}, {'W', 7 * 86400e3}, {'D', 86400e3}},
  time_units[] = {{'H', 3600e3}, {'M', 60e3}, {'S', 1e3}};

/* One "12.5" with its unit; advances *at. */
static int component(const char **at, double *ret, char *ret_unit, bool *ret_fraction)
{
	const char *s = *at;
	if (!isdigit((unsigned char)*s))
		return SL_EINVAL;
	double value = 0, scale = 1;
	for (; isdigit((unsigned char)*s); s++)
		value = value * 10 + (*s - '0');
	*ret_fraction = *s == '.' || *s == ',';
	if (*ret_fraction) {
		if (!isdigit((unsigned char)*++s))
			return SL_EINVAL;
		for (; isdigit((unsigned char)*s); s++) {
			scale /= 10;
			value += (*s - '0') * scale;
		}
	}
	*ret = value;
	*ret_unit = *s;
	*at = *s ? s + 1 : s;
	return 0;
}

int sl_duration_parse(const char *text, int64_t *ret_ms)
{
	double total = 0;
	int unit = 0, parts = 0;
	bool in_time = false, fraction = false;
	if (*text++ != 'P')
		return SL_EINVAL;
	while (*text) {
		if (*text == 'T') {
			if (in_time || !text[1])
				return SL_EINVAL;
			in_time = true;
			unit = 0;
			text++;
			continue;
		}
		double value;
		char name;
		if (fraction || component(&text, &value, &name, &fraction))
			return SL_EINVAL; /* a fraction is allowed in the last component only (A104) */
		int n = in_time ? 3 : 4;
		while (unit < n && (in_time ? time_units[unit].unit : date_units[unit].unit) != name)
			unit++;
		if (unit == n)
			return SL_EINVAL;
		total += value * (in_time ? time_units[unit].ms : date_units[unit].ms);
		unit++;
		parts++;
	}
	if (!parts)
		return SL_EINVAL;
	if (total > 9e15)
		return SL_ETOOBIG;
	*ret_ms = (int64_t)llround(total);
	return 0;
}

static bool digits(const char **s, int n, int *ret)
{
	int v = 0;
	for (int i = 0; i < n; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return false;
		v = v * 10 + (**s - '0');
	}
	*ret = v;
	return true;
}

#define YEAR_0_MS (INT64_C(-62167219200) * 1000)
#define YEAR_10000_MS (INT64_C(253402300800) * 1000)

int sl_time_parse(const char *s, int64_t *ret_ms)
{
	struct tm tm = {0};
	int year, mon, ms = 0, offset = 0, oh = 0, om = 0;
	if (!digits(&s, 4, &year) || *s++ != '-' || !digits(&s, 2, &mon) || *s++ != '-' || !digits(&s, 2, &tm.tm_mday))
		return SL_EINVAL;
	if (*s != 'T' && *s != 't' && *s != ' ')
		return SL_EINVAL;
	s++;
	if (!digits(&s, 2, &tm.tm_hour) || *s++ != ':' || !digits(&s, 2, &tm.tm_min) || *s++ != ':' ||
		!digits(&s, 2, &tm.tm_sec))
		return SL_EINVAL;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return SL_EINVAL;
		for (int scale = 100; isdigit((unsigned char)*s); s++, scale /= 10)
			ms += (*s - '0') * scale;
	}
	if (*s == 'Z' || *s == 'z') {
		s++;
	} else if (*s == '+' || *s == '-') {
		int sign = *s++ == '-' ? -1 : 1;
		if (!digits(&s, 2, &oh) || *s++ != ':' || !digits(&s, 2, &om) || oh > 23 || om > 59)
			return SL_EINVAL;
		offset = sign * (oh * 60 + om);
	} else {
		return SL_EINVAL;
	}
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (*s || mon < 1 || mon > 12 || tm.tm_mday < 1 || tm.tm_mday > days[mon - 1] + (mon == 2 && leap) ||
		tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return SL_EINVAL;
	tm.tm_year = year - 1900;
	tm.tm_mon = mon - 1;
	int64_t got = ((int64_t)timegm(&tm) - offset * 60) * 1000 + ms;
	if (got < YEAR_0_MS || got >= YEAR_10000_MS) /* the offset leads out of what RFC 3339 can write */
		return SL_EINVAL;
	*ret_ms = got;
	return 0;
}

/* Two digits and what stands behind them, unless that is 0. */
static char *put_digits(char *at, int value, char next)
{
	*at++ = (char)('0' + value / 10);
	*at++ = (char)('0' + value % 10);
	if (next)
		*at++ = next;
	return at;
}

void sl_time_format(int64_t ms, char buf[static 32])
{
	int64_t frac = ((ms % 1000) + 1000) % 1000;
	time_t sec = (time_t)(ms / 1000 - (ms % 1000 < 0));
	struct tm tm;
	gmtime_r(&sec, &tm);
	int year = tm.tm_year + 1900;
	char *at = buf;
	if (year >= 0 && year <= 9999) /* by hand: every lifecycle event holds several */
		at = put_digits(put_digits(at, year / 100, '\0'), year % 100, '-');
	else
		at += snprintf(buf, 12, "%04d-", year);
	at = put_digits(at, tm.tm_mon + 1, '-');
	at = put_digits(at, tm.tm_mday, 'T');
	at = put_digits(at, tm.tm_hour, ':');
	at = put_digits(at, tm.tm_min, ':');
	at = put_digits(at, tm.tm_sec, frac ? '.' : 'Z');
	if (frac) {
		*at++ = (char)('0' + frac / 100);
		at = put_digits(at, (int)(frac % 100), 'Z');
	}
	*at = '\0';
}

void sl_duration_human(int64_t ms, char buf[static 32])
{
	const char *sign = ms < 0 ? "-" : "";
	long long v = ms < 0 ? -ms : ms;
	if (v < 1000)
		snprintf(buf, 32, "%s%lld ms", sign, v);
	else if (v < 10000)
		snprintf(buf, 32, "%s%lld.%lld s", sign, v / 1000, v % 1000 / 100);
	else if (v < 60000)
		snprintf(buf, 32, "%s%lld s", sign, v / 1000);
	else if (v < 3600000)
		snprintf(buf, 32, "%s%lldm %llds", sign, v / 60000, v % 60000 / 1000);
	else if (v < 86400000)
		snprintf(buf, 32, "%s%lldh %lldm", sign, v / 3600000, v % 3600000 / 60000);
	else
		snprintf(buf, 32, "%s%lldd %lldh", sign, v / 86400000, v % 86400000 / 3600000);
}

bool sl_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *mark = NULL; /* back-track to the last star only: linear in practice */
	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			mark = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++mark;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

int sl_int_parse(const char *text, int64_t *ret)
{
	const char *s = text;
	bool neg = *s == '-';
	int64_t v = 0;
	if (neg)
		s++;
	if (!isdigit((unsigned char)*s))
		return SL_EINVAL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *s - '0', &v))
			return SL_ETOOBIG; /* counted downwards: INT64_MIN has no positive twin */
	if (*s)
		return SL_EINVAL;
	if (!neg && v == INT64_MIN)
		return SL_ETOOBIG;
	*ret = neg ? v : -v;
	return 0;
}

int sl_int_name(const char *text, int64_t *ret)
{
	const char *digits = text + (*text == '-');
	return *digits == '0' && (digits[1] || digits != text) ? SL_EINVAL : sl_int_parse(text, ret);
}

/* One dot-separated list of identifiers up to `stop`; numeric ones without leading zero if strict. */
static bool identifiers(const char **s, const char *stop, bool strict)
{
	for (;;) {
		const char *start = *s;
		bool numeric = true;
		for (; isalnum((unsigned char)**s) || **s == '-'; (*s)++)
			numeric = numeric && isdigit((unsigned char)**s);
		if (*s == start || (strict && numeric && *start == '0' && *s - start > 1))
			return false;
		if (**s != '.')
			return !**s || strchr(stop, **s);
		(*s)++;
	}
}

bool sl_semver_valid(const char *text)
{
	const char *s = text;
	for (int i = 0; i < 3; i++) {
		const char *start = s;
		while (isdigit((unsigned char)*s))
			s++;
		if (s == start || (*start == '0' && s - start > 1))
			return false;
		if (i < 2 && *s++ != '.')
			return false;
	}
	if (*s == '-') {
		s++;
		if (!identifiers(&s, "+", true))
			return false;
	}
	if (*s == '+') {
		s++;
		if (!identifiers(&s, "", false))
			return false;
	}
	return !*s;
}

static int cmp_identifier(const char *a, size_t na, const char *b, size_t nb)
{
	bool da = strspn(a, "0123456789") >= na, db = strspn(b, "0123456789") >= nb;
	if (da != db)
		return da ? -1 : 1; /* numeric identifiers are lower (semver 11.4.3) */
	if (da && na != nb)
		return na < nb ? -1 : 1;
	int c = strncmp(a, b, na < nb ? na : nb);
	return c ? c : na < nb ? -1 : na > nb;
}

/* Dot-separated identifiers, each ending at '.' or one of `stop`. */
static int cmp_list(const char *a, const char *b, const char *stop)
{
	for (;;) {
		size_t na = strcspn(a, stop), nb = strcspn(b, stop);
		const char *da = memchr(a, '.', na), *db = memchr(b, '.', nb);
		na = da ? (size_t)(da - a) : na;
		nb = db ? (size_t)(db - b) : nb;
		int c = cmp_identifier(a, na, b, nb);
		if (c)
			return c;
		if (!da || !db)
			return !da && !db ? 0 : da ? 1 : -1; /* the longer list is higher (semver 11.4.4) */
		a = da + 1;
		b = db + 1;
	}
}

int sl_semver_cmp(const char *a, const char *b)
{
	int c = cmp_list(a, b, "-+");
	if (c)
		return c;
	const char *pa = strchr(a, '-'), *pb = strchr(b, '-');
	if (pa && memchr(a, '+', (size_t)(pa - a)))
		pa = NULL;
	if (pb && memchr(b, '+', (size_t)(pb - b)))
		pb = NULL;
	if (!pa || !pb)
		return pa ? -1 : pb ? 1 : 0; /* a pre-release is lower */
	return cmp_list(pa + 1, pb + 1, "+");
}

uint32_t sl_murmur2(const void *bytes, size_t len)
{
	const unsigned char *d = bytes;
	const uint32_t m = 0x5bd1e995;
	uint32_t h = 0x9747b28cu ^ (uint32_t)len;
	for (; len >= 4; d += 4, len -= 4) {
		uint32_t k = (uint32_t)d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 | (uint32_t)d[3] << 24;
		k *= m;
		k ^= k >> 24;
		k *= m;
		h *= m;
		h ^= k;
	}
	if (len == 3)
		h ^= (uint32_t)d[2] << 16;
	if (len >= 2)
		h ^= (uint32_t)d[1] << 8;
	if (len >= 1) {
		h ^= d[0];
		h *= m;
	}
	h ^= h >> 13;
	h *= m;
	h ^= h >> 15;
	return h;
}
