/* Dead letters of records that cannot be processed. */
#include "services/common/dead_letter.h"

#include "common/base/text.h"
#include <inttypes.h>
#include <string.h>

#define OWN_HEADERS 7
#define PART (64 * 1024)

static struct sl_bytes copy(struct sl_arena *arena, struct sl_bytes from)
{
	return from.ptr ? (struct sl_bytes){sl_arena_strn(arena, from.ptr, from.len), from.len} : from;
}

static void add(struct sl_header *headers, int *count, const char *name, const char *value)
{
	headers[(*count)++] = (struct sl_header){name, {value, strlen(value)}};
}

/* --- reading headers from the last one on --- */

/* Takes the header before *end if that is its name. */
static const char *take(const struct sl_record *rec, int *end, const char *name, struct sl_arena *arena)
{
	if (!*end || strcmp(rec->headers[*end - 1].name, name) != 0)
		return NULL;
	const struct sl_bytes *value = &rec->headers[--*end].value;
	return sl_arena_strn(arena, value->ptr ? value->ptr : "", value->len);
}

static bool take_number(
	const struct sl_record *rec, int *end, const char *name, struct sl_arena *arena, int64_t max, int64_t *ret)
{
	const char *text = take(rec, end, name, arena);
	int64_t number;
	if (!text || sl_int_parse(text, &number) || number < 0 || number > max)
		return false;
	*ret = number;
	return true;
}

int sl_dead_letter_parse(const struct sl_record *rec, struct sl_arena *arena, struct sl_dead_letter *ret)
{
	struct sl_dead_letter letter = {.origin_partition = -1, .origin_offset = -1};
	int end = rec->header_count;
	int64_t partition;
	if (!take_number(rec, &end, "sluice-attempts", arena, INT64_MAX, &letter.attempts))
		return SL_ESCHEMA;
	if (take_number(rec, &end, "sluice-origin-offset", arena, INT64_MAX, &letter.origin_offset)) {
		if (!take_number(rec, &end, "sluice-origin-partition", arena, INT32_MAX, &partition))
			return SL_ESCHEMA;
		letter.origin_partition = (int32_t)partition;
		if (!(letter.origin_topic = take(rec, &end, "sluice-origin-topic", arena)))
			return SL_ESCHEMA;
	}
	letter.instance = take(rec, &end, "sluice-instance", arena);
	letter.ns = take(rec, &end, "sluice-namespace", arena);
	if (!(letter.reason = take(rec, &end, "sluice-reason", arena)))
		return SL_ESCHEMA;
	letter.raw = !letter.ns;
	if (letter.raw) {
		(void)take_number(rec, &end, "sluice-cut-from-bytes", arena, INT64_MAX, &letter.cut_from);
		letter.redriven = take(rec, &end, "sluice-redriven", arena);
	}
	letter.header_count = end;
	*ret = letter;
	return 0;
}

/* --- writing --- */

void sl_dead_letter_record(const char *topic, const struct sl_record *rec, const char *reason, size_t bytes_max,
	struct sl_arena *arena, struct sl_record *ret)
{
	*ret = (struct sl_record){.topic = topic, .partition = -1, .key = copy(arena, rec->key), .value = rec->value};
	bool cut = rec->value.len > bytes_max;
	if (cut)
		ret->value.len = rec->value.len < PART ? rec->value.len : PART;
	ret->value = copy(arena, ret->value);
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, rec->header_count + OWN_HEADERS);
	int own = rec->header_count, n = 0;
	int64_t attempts = 0;
	const char *redriven = NULL;
	if (take_number(rec, &own, "sluice-attempts", arena, INT32_MAX, &attempts))
		redriven = take(rec, &own, "sluice-redriven", arena);
	if (!redriven) { /* not ours: the producer's own */
		own = rec->header_count;
		attempts = 0;
	}
	for (; n < own; n++)
		headers[n] = (struct sl_header){
			sl_arena_str(arena, rec->headers[n].name), copy(arena, rec->headers[n].value)};
	if (redriven)
		add(headers, &n, "sluice-redriven", redriven);
	if (cut)
		add(headers, &n, "sluice-cut-from-bytes", sl_arena_printf(arena, "%zu", rec->value.len));
	add(headers, &n, "sluice-reason", sl_arena_str(arena, reason));
	add(headers, &n, "sluice-origin-topic", sl_arena_str(arena, rec->topic));
	add(headers, &n, "sluice-origin-partition", sl_arena_printf(arena, "%d", (int)rec->partition));
	add(headers, &n, "sluice-origin-offset", sl_arena_printf(arena, "%" PRId64, rec->offset));
	add(headers, &n, "sluice-attempts", sl_arena_printf(arena, "%" PRId64, attempts + 1));
	ret->headers = headers;
	ret->header_count = n;
}

void sl_dead_letter_redrive(const struct sl_record *rec, const struct sl_dead_letter *letter, const char *name,
	struct sl_bytes value, struct sl_arena *arena, struct sl_record *ret)
{
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, letter->header_count + 2);
	int n = letter->header_count;
	if (n)
		memcpy(headers, rec->headers, (size_t)n * sizeof(*headers));
	add(headers, &n, "sluice-redriven", sl_arena_str(arena, name));
	add(headers, &n, "sluice-attempts", sl_arena_printf(arena, "%" PRId64, letter->attempts));
	*ret = (struct sl_record){.topic = letter->origin_topic,
		.partition = letter->origin_partition,
		.key = rec->key,
		.value = value,
		.headers = headers,
		.header_count = n};
}
