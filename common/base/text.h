/* Small things about text: UTF-8, durations and times, globs, numbers. No memory is taken. */
#ifndef SL_BASE_TEXT_H
#define SL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/err.h"

/* True for well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool sl_utf8_valid(const char *text, size_t len);
/* ASCII lower case, in place / copy with snprintf's contract. */
void sl_lower(char *text);

/* ISO 8601 duration -> milliseconds. A104: P1M = 30 days, P1Y = 365 days, P1W = 7 days; a fraction is allowed in the last
 * component only; "PT30D" and the like are rejected. Returns SL_EINVAL (malformed, or negative) or SL_ETOOBIG. */
SL_MUST_CHECK int sl_duration_parse(const char *text, int64_t *ret_ms);
/* RFC 3339 time -> milliseconds since 1970 UTC. SL_EINVAL. */
SL_MUST_CHECK int sl_time_parse(const char *text, int64_t *ret_ms);
/* "2024-01-01T00:00:00.000Z", needs 32 bytes; milliseconds are left out when zero. */
void sl_time_format(int64_t ms, char buf[static 32]);
/* "1h 4m", "350 ms": for people; needs 32 bytes. */
void sl_duration_human(int64_t ms, char buf[static 32]);

/* Anchored glob, `*` and `?` only, `*` crosses everything (A33). */
bool sl_glob(const char *pattern, const char *text);
/* Strict decimal integer, no blanks. SL_EINVAL, SL_ETOOBIG. */
SL_MUST_CHECK int sl_int_parse(const char *text, int64_t *ret);
/* The same for names that hold a number: only the one form that printing gives (no "007", no "-0"), so that two names
 * never mean one thing. SL_EINVAL, SL_ETOOBIG. */
SL_MUST_CHECK int sl_int_name(const char *text, int64_t *ret);
/* Semantic version (https://semver.org, 2.0.0). */
bool sl_semver_valid(const char *text);
int sl_semver_cmp(const char *a, const char *b);

/* Kafka's murmur2 (the Java client's default partitioner; librdkafka `murmur2`). */
uint32_t sl_murmur2(const void *bytes, size_t len);

#endif
