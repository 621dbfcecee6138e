/* CloudEvents as records of a public topic: structured JSON, binary, Avro. The input is header lines "name: value", an
 * empty line, then the record's value. What is accepted must survive all three modes of writing. */
#include "common/codec/codec.h"
#include "tests/fuzz/fuzz.h"

#define HEADERS_MAX 40

static const struct sl_json_limits limits = {.bytes_max = 1 << 16, .depth_max = 200};

static const struct sl_header *header_of(const struct sl_record *rec, const char *name)
{
	for (int i = 0; i < rec->header_count; i++)
		if (strcmp(rec->headers[i].name, name) == 0)
			return &rec->headers[i];
	return NULL;
}

static bool same_bytes(struct sl_bytes a, struct sl_bytes b)
{
	return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Binary and Avro know fewer types than JSON (42 becomes "42", bytes get a content type): what counts there is that
 * both events are the same record in binary mode. */
static bool same_record(jv a, jv b)
{
	struct sl_arena arena;
	struct sl_record x = {0}, y = {0};
	sl_arena_init(&arena);
	bool same = sl_event_encode(a, SL_EVENT_BINARY, &arena, &x) == 0 &&
		    sl_event_encode(b, SL_EVENT_BINARY, &arena, &y) == 0 && x.header_count == y.header_count &&
		    same_bytes(x.value, y.value);
	for (int i = 0; same && i < x.header_count; i++) {
		const struct sl_header *other = header_of(&y, x.headers[i].name);
		same = other && same_bytes(x.headers[i].value, other->value);
	}
	sl_arena_release(&arena);
	return same;
}

static void round_trip(jv ev, enum sl_event_mode mode)
{
	struct sl_arena arena;
	struct sl_diags diags;
	struct sl_record rec = {0};
	jv again;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	int err = sl_event_encode(ev, mode, &arena, &rec);
	char *before = sl_json_text(ev);
	FUZZ_HOLDS(!err, "mode %d: %s: %s", mode, sl_err_name(err), before);
	err = sl_event_decode(&rec, &sl_json_default, &again, &diags);
	FUZZ_HOLDS(!err, "mode %d: written, but %s: %s", mode, sl_diags_first(&diags), before);
	char *after = sl_json_text(again);
	FUZZ_HOLDS(mode == SL_EVENT_STRUCTURED ? sl_json_equal(ev, again) : same_record(ev, again),
		"mode %d: %s became %s", mode, before, after);
	free(before);
	free(after);
	jv_free(again);
	sl_diags_release(&diags);
	sl_arena_release(&arena);
}

static int read_headers(struct fuzz_in *in, struct sl_arena *arena, struct sl_header *headers)
{
	int count = 0;
	char *line;
	while ((line = fuzz_line(in, arena)) && *line && count < HEADERS_MAX) {
		char *colon = strstr(line, ": ");
		if (!colon)
			continue;
		*colon = '\0';
		headers[count++] = (struct sl_header){line, {colon + 2, strlen(colon + 2)}};
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_header headers[HEADERS_MAX];
	struct sl_arena arena;
	struct sl_diags diags;
	struct sl_buf identity;
	jv ev;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	sl_buf_init(&identity);
	struct sl_record rec = {.topic = "sluice.events", .headers = headers};
	rec.header_count = read_headers(&in, &arena, headers);
	char *value = fuzz_exact(in);
	rec.value = (struct sl_bytes){value, (size_t)(in.end - in.at)};
	int err = sl_event_decode(&rec, &limits, &ev, &diags);
	FUZZ_HOLDS(!err == !diags.error_count, "%s without a word", sl_err_name(err));
	if (!err) {
		sl_event_identity(ev, &identity);
		jv_free(sl_event_data(ev));
		round_trip(ev, SL_EVENT_STRUCTURED);
		round_trip(ev, SL_EVENT_BINARY);
		round_trip(ev, SL_EVENT_AVRO);
		jv_free(ev);
	}
	free(value);
	sl_buf_release(&identity);
	sl_diags_release(&diags);
	sl_arena_release(&arena);
	return 0;
}
