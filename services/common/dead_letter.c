/* Dead letters of records that cannot be processed. */
#include "services/common/dead_letter.h"

#include <inttypes.h>
#include <string.h>

#define OWN_HEADERS 5
#define PART (64 * 1024)

static struct sl_bytes copy(struct sl_arena *arena, struct sl_bytes from)
{
	return from.ptr ? (struct sl_bytes){sl_arena_strn(arena, from.ptr, from.len), from.len} : from;
}

static void add(struct sl_header *headers, int *count, const char *name, const char *value)
{
	headers[(*count)++] = (struct sl_header){name, {value, strlen(value)}};
}

void sl_dead_letter_record(const char *topic, const struct sl_record *rec, const char *reason, size_t bytes_max,
	struct sl_arena *arena, struct sl_record *ret)
{
	*ret = (struct sl_record){.topic = topic, .partition = -1, .key = copy(arena, rec->key), .value = rec->value};
	bool cut = rec->value.len > bytes_max;
	if (cut)
		ret->value.len = rec->value.len < PART ? rec->value.len : PART;
	ret->value = copy(arena, ret->value);
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, rec->header_count + OWN_HEADERS + 1);
	int n = 0;
	for (; n < rec->header_count; n++)
		headers[n] = (struct sl_header){
			sl_arena_str(arena, rec->headers[n].name), copy(arena, rec->headers[n].value)};
	if (cut)
		add(headers, &n, "sluice-cut-from-bytes", sl_arena_printf(arena, "%zu", rec->value.len));
	add(headers, &n, "sluice-reason", sl_arena_str(arena, reason));
	add(headers, &n, "sluice-origin-topic", sl_arena_str(arena, rec->topic));
	add(headers, &n, "sluice-origin-partition", sl_arena_printf(arena, "%d", (int)rec->partition));
	add(headers, &n, "sluice-origin-offset", sl_arena_printf(arena, "%" PRId64, rec->offset));
	add(headers, &n, "sluice-attempts", "1");
	ret->headers = headers;
	ret->header_count = n;
}
