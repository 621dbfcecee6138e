/* Public events: three modes in and out, and every way of being wrong has its own sentence. */
#include "common/codec/base64.h"
#include "helper.h"
#include <avro.h>

struct pair {
	const char *name, *value;
};
#define HEADERS(...)                                                                                                   \
	(const struct pair[])                                                                                          \
	{                                                                                                              \
		__VA_ARGS__,                                                                                           \
		{                                                                                                      \
			NULL, NULL                                                                                     \
		}                                                                                                      \
	}
#define CE                                                                                                             \
	{"ce_specversion", "1.0"}, {"ce_id", "1"}, {"ce_source", "/clinic"},                                           \
	{                                                                                                              \
		"ce_type", "org.vitals"                                                                                \
	}

static int decode(const struct pair *pairs, struct sl_bytes value, const struct sl_json_limits *limits, jv *ev,
	struct sl_diags *diags)
{
	struct sl_header headers[20];
	struct sl_record rec = {.topic = "sluice.events", .value = value, .headers = headers};
	for (; pairs && pairs->name; pairs++)
		headers[rec.header_count++] = (struct sl_header){pairs->name, {pairs->value, strlen(pairs->value)}};
	return sl_event_decode(&rec, limits, ev, diags);
}

static struct sl_bytes text(const char *s)
{
	return (struct sl_bytes){s, s ? strlen(s) : 0};
}

/* The event as JSON text with sorted members. */
static void check(const struct pair *headers, struct sl_bytes value, const char *want, const char *file, int line)
{
	jv ev, expected;
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = decode(headers, value, NULL, &ev, &diags);
	cr_assert_eq(err, 0, "%s:%d: %s %s", file, line, sl_err_name(err), sl_diags_first(&diags));
	cr_assert_eq(sl_json_parse(want, strlen(want), NULL, &expected, NULL), 0, "%s:%d", file, line);
	if (!sl_json_equal(ev, expected)) {
		char *got = sl_json_text(ev);
		cr_assert(false, "%s:%d:\n got %s\nwant %s", file, line, got, want);
	}
	jv_free(ev);
	jv_free(expected);
	sl_diags_release(&diags);
}
#define GIVES(headers, value, want) check(headers, value, want, __FILE__, __LINE__)

static void refuse(const struct pair *headers, struct sl_bytes value, const struct sl_json_limits *limits, int want_err,
	const char *want, int line)
{
	jv ev;
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = decode(headers, value, limits, &ev, &diags);
	cr_assert_eq(err, want_err, "line %d: %s instead of %s: %s", line, sl_err_name(err), sl_err_name(want_err),
		sl_diags_first(&diags));
	cr_assert_str_eq(sl_diags_first(&diags), want, "line %d: %s", line, sl_diags_first(&diags));
	/* and without anybody listening */
	cr_assert_eq(decode(headers, value, limits, &ev, NULL), want_err);
	sl_diags_release(&diags);
}
#define REFUSED(headers, value, err, want) refuse(headers, value, NULL, err, want, __LINE__)

#define STRUCTURED HEADERS({"content-type", "application/cloudevents+json"})
#define EVENT(more) "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/clinic\",\"type\":\"org.vitals\"" more "}"

Test(codec_event, structured_json_is_read)
{
	GIVES(STRUCTURED, text(EVENT(",\"data\":{\"a\":[1,2.5,null]}")), EVENT(",\"data\":{\"a\":[1,2.5,null]}"));
	GIVES(HEADERS({"Content-Type", "Application/CloudEvents+JSON ; charset=\"UTF-8\""}), text(EVENT("")),
		EVENT(""));
	GIVES(NULL, text(" \n" EVENT("")), EVENT(""));
	/* A75: names are folded, unset attributes dropped, data null stays */
	GIVES(STRUCTURED, text(EVENT(",\"patientId\":\"55\",\"subject\":null,\"data\":null,\"count\":42,\"ok\":true")),
		EVENT(",\"patientid\":\"55\",\"data\":null,\"count\":42,\"ok\":true"));
	GIVES(STRUCTURED,
		text(EVENT(",\"time\":\"2024-01-01T00:00:00Z\",\"datacontenttype\":\"text/plain\",\"data\":\"hi\"")),
		EVENT(",\"time\":\"2024-01-01T00:00:00Z\",\"datacontenttype\":\"text/plain\",\"data\":\"hi\""));
	/* bytes that are JSON by their type come back as JSON, others stay */
	GIVES(STRUCTURED, text(EVENT(",\"datacontenttype\":\"application/json\",\"data_base64\":\"eyJhIjoxfQ==\"")),
		EVENT(",\"datacontenttype\":\"application/json\",\"data\":{\"a\":1}"));
	GIVES(STRUCTURED, text(EVENT(",\"datacontenttype\":\"image/png\",\"data_base64\":\"eyJhIjoxfQ==\"")),
		EVENT(",\"datacontenttype\":\"image/png\",\"data_base64\":\"eyJhIjoxfQ==\""));
}

Test(codec_event, an_integer_has_no_negative_zero)
{
	struct sl_diags diags;
	jv ev;
	sl_diags_init(&diags);
	const char *text = EVENT(",\"room\":-0,\"data\":-0");
	struct sl_record rec = {.value = {text, strlen(text)}};
	cr_assert_eq(sl_event_decode(&rec, &sl_json_default, &ev, &diags), 0, "%s", sl_diags_first(&diags));
	char *got = sl_json_text(ev);
	cr_assert(strstr(got, "\"room\":0"), "%s", got);
	cr_assert(strstr(got, "\"data\":-0"), "%s", got);
	free(got);
	jv_free(ev);
	sl_diags_release(&diags);
}

Test(codec_event, binary_is_read)
{
	GIVES(HEADERS(CE, {"content-type", "application/json"}, {"ce_patientId", "Grüße"}, {"other", "x"}),
		text("{\"a\":1}"),
		EVENT(",\"datacontenttype\":\"application/json\",\"patientid\":\"Grüße\",\"data\":{\"a\":1}"));
	GIVES(HEADERS(CE, {"content-type", "application/vnd.x+json; charset=utf-8"}), text("7"),
		EVENT(",\"datacontenttype\":\"application/vnd.x+json; charset=utf-8\",\"data\":7"));
	GIVES(HEADERS(CE, {"content-type", "text/plain"}), text("12"),
		EVENT(",\"datacontenttype\":\"text/plain\",\"data\":\"12\""));
	GIVES(HEADERS(CE, {"content-type", "text/plain; charset=iso-8859-1"}), text("\xe4"),
		EVENT(",\"datacontenttype\":\"text/plain; charset=iso-8859-1\",\"data_base64\":\"5A==\""));
	GIVES(HEADERS(CE, {"content-type", "application/xml"}), text("<a/>"),
		EVENT(",\"datacontenttype\":\"application/xml\",\"data\":\"<a/>\""));
	GIVES(HEADERS(CE, {"content-type", "image/png"}), ((struct sl_bytes){"\x89PNG", 4}),
		EVENT(",\"datacontenttype\":\"image/png\",\"data_base64\":\"iVBORw==\""));
	GIVES(HEADERS(CE), text("{\"a\":1}"), EVENT(",\"data\":{\"a\":1}"));
	GIVES(HEADERS(CE, {"ce_sluicehops", "7"}), text("1"), EVENT(",\"sluicehops\":7,\"data\":1"));
	GIVES(HEADERS(CE, {"ce_sluicehops", "x"}), text("1"), EVENT(",\"sluicehops\":\"x\",\"data\":1"));
	GIVES(HEADERS(CE), text("hello"), EVENT(",\"data_base64\":\"aGVsbG8=\""));
	GIVES(HEADERS(CE), ((struct sl_bytes){NULL, 0}), EVENT(""));
	GIVES(HEADERS(CE, {"content-type", "application/json"}), text(""),
		EVENT(",\"datacontenttype\":\"application/json\""));
}

Test(codec_event, broken_json_says_where)
{
	REFUSED(STRUCTURED, text("{\"id\":1,\n \"type\" 2}"), SL_EPARSE,
		"event: broken JSON: expected ':' behind a member name (line 2, column 9)");
	REFUSED(STRUCTURED, text(""), SL_EPARSE, "event: the record has no value");
	REFUSED(STRUCTURED, text(EVENT(",\"data\":{\"a\":[1,}}")), SL_EPARSE,
		"event: broken JSON: not a JSON value at /data/a/1 (line 1, column 85)");
	REFUSED(HEADERS(CE, {"content-type", "application/json"}), text("{"), SL_EPARSE,
		"data: broken JSON: expected a member name at /data (line 1, column 2)");
	REFUSED(STRUCTURED, text("[" EVENT("") "]"), SL_ESCHEMA, "a CloudEvent is a JSON object, not array");
}

Test(codec_event, missing_and_wrong_attributes_are_named)
{
	REFUSED(STRUCTURED, text("{\"specversion\":\"1.0\",\"source\":\"s\",\"type\":\"t\"}"), SL_ESCHEMA,
		"required attribute `id` is missing");
	REFUSED(STRUCTURED, text("{\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}"), SL_ESCHEMA,
		"required attribute `specversion` is missing");
	REFUSED(STRUCTURED, text("{\"specversion\":\"0.3\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}"), SL_ESCHEMA,
		"specversion \"0.3\" is not supported, only \"1.0\"");
	REFUSED(STRUCTURED, text("{\"specversion\":\"1.0\",\"id\":\"\",\"source\":\"s\",\"type\":\"t\"}"), SL_ESCHEMA,
		"attribute `id` is empty");
	REFUSED(STRUCTURED, text("{\"specversion\":\"1.0\",\"id\":7,\"source\":\"s\",\"type\":\"t\"}"), SL_ESCHEMA,
		"attribute `id` must be a string, not number");
	REFUSED(STRUCTURED, text(EVENT(",\"x\":[1]")), SL_ESCHEMA,
		"attribute `x` must be a string, number or boolean, not array");
	REFUSED(STRUCTURED, text(EVENT(",\"patient_id\":\"1\"")), SL_ESCHEMA,
		"illegal attribute name `patient_id`: only letters and digits are allowed");
	REFUSED(STRUCTURED, text(EVENT(",\"\":\"1\"")), SL_ESCHEMA,
		"illegal attribute name ``: only letters and digits are allowed");
	REFUSED(STRUCTURED, text(EVENT(",\"patientId\":\"1\",\"patientid\":\"1\"")), SL_ESCHEMA,
		"attribute `patientid` is there twice, in names that differ only in case");
	REFUSED(STRUCTURED, text(EVENT(",\"time\":\"yesterday\"")), SL_ESCHEMA,
		"attribute `time` is not an RFC 3339 time: \"yesterday\"");
	REFUSED(STRUCTURED, text(EVENT(",\"subject\":\"\"")), SL_ESCHEMA, "attribute `subject` is empty");
	REFUSED(STRUCTURED, text(EVENT(",\"subject\":\"a\\u0000b\"")), SL_ESCHEMA,
		"attribute `subject` holds a control character");
	REFUSED(STRUCTURED, text(EVENT(",\"data\\u0000\":1")), SL_ESCHEMA,
		"illegal attribute name `data`: only letters and digits are allowed");
	REFUSED(STRUCTURED, text(EVENT(",\"data\":1,\"data_base64\":\"\"")), SL_ESCHEMA,
		"both `data` and `data_base64` are there");
	REFUSED(STRUCTURED, text(EVENT(",\"data_base64\":\"a\"")), SL_ESCHEMA, "`data_base64` is not base64 text");
	REFUSED(HEADERS({"ce_id", "1"}), text("1"), SL_ESCHEMA, "required attribute `specversion` is missing");
	REFUSED(HEADERS(CE, {"ce_id", "2"}), text("1"), SL_ESCHEMA, "attribute `id` is there twice");
	REFUSED(HEADERS(CE, {"ce_Id", "2"}), text("1"), SL_ESCHEMA,
		"attribute `id` is there twice, in names that differ only in case");
	REFUSED(HEADERS(CE, {"ce_data", "2"}), text("1"), SL_ESCHEMA, "illegal attribute name `data`");
}

Test(codec_event, size_depth_encoding_and_numbers_are_bounded)
{
	size_t big = 10 << 20;
	char *bytes = malloc(big);
	struct sl_json_limits limits = {.bytes_max = 1 << 20, .depth_max = 200};
	memset(bytes, 'x', big);
	refuse(STRUCTURED, (struct sl_bytes){bytes, big}, &limits, SL_ETOOBIG,
		"event: 10485788 bytes are more than the limit of 1048576", __LINE__);
	memset(bytes, '[', 1000);
	memset(bytes + 1000, ']', 1000);
	REFUSED(HEADERS(CE, {"content-type", "application/json"}), ((struct sl_bytes){bytes, 2000}), SL_EDEPTH,
		"data: nested deeper than the limit (line 1, column 201)");
	free(bytes);
	REFUSED(STRUCTURED, text(EVENT(",\"data\":\"\xff\"")), SL_EENCODING, "event: not valid UTF-8");
	REFUSED(HEADERS(CE, {"content-type", "application/json"}), text("\"\xc0\x80\""), SL_EENCODING,
		"data: not valid UTF-8");
	REFUSED(HEADERS(CE, {"content-type", "text/plain"}), text("\xed\xa0\x80"), SL_EENCODING,
		"data: not valid UTF-8, though its content type is \"text/plain\"");
	REFUSED(HEADERS(CE, {"ce_subject", "\xff"}), text("1"), SL_EENCODING, "attribute `subject` is not valid UTF-8");
	REFUSED(STRUCTURED, text(EVENT(",\"data\":{\"order\":[{\"id\":9007199254740993}]}")), SL_ENUMBER,
		"event: integer beyond 2^53: send it as a string at /data/order/0/id (line 1, column 93)");
	REFUSED(HEADERS(CE, {"content-type", "application/json"}), text("{\"n\":12345678901234567890}"), SL_ENUMBER,
		"data: integer beyond 2^53: send it as a string at /data/n (line 1, column 6)");
	REFUSED(HEADERS(CE), text("{\"n\":12345678901234567890}"), SL_ENUMBER,
		"data: integer beyond 2^53: send it as a string at /data/n (line 1, column 6)");
	jv ev;
	limits.round_integers = true;
	cr_assert_eq(decode(HEADERS(CE), text("{\"n\":12345678901234567890}"), &limits, &ev, NULL), 0);
	jv_free(ev);
}

Test(codec_event, wrong_content_types_are_named)
{
	REFUSED(HEADERS({"content-type", "text/xml"}), text("<a/>"), SL_EPARSE,
		"not a CloudEvent: content type \"text/xml\" without ce_ headers (structured events have "
		"application/cloudevents+json)");
	REFUSED(HEADERS({"content-type", "application/cloudevents-batch+json"}), text("[]"), SL_EPARSE,
		"batches of events (\"application/cloudevents-batch+json\") are not part of the Kafka binding: send "
		"one event a record");
	REFUSED(HEADERS({"content-type", "application/cloudevents+xml"}), text("<a/>"), SL_EPARSE,
		"event format \"application/cloudevents+xml\" is not supported, only application/cloudevents+json and "
		"+avro");
	REFUSED(HEADERS({"content-type", "application/cloudevents+json; charset=utf-16"}), text(EVENT("")),
		SL_EENCODING, "event: the content type's charset is not UTF-8");
	REFUSED(HEADERS(CE, {"content-type", "application/json; charset=latin1"}), text("1"), SL_EENCODING,
		"data: JSON must be UTF-8, the content type says \"application/json; charset=latin1\"");
	REFUSED(NULL, text("hello"), SL_EPARSE,
		"not a CloudEvent: neither a content-type nor ce_ headers, and the value is no JSON object");
	REFUSED(NULL, ((struct sl_bytes){NULL, 0}), SL_EPARSE,
		"not a CloudEvent: neither a content-type nor ce_ headers, and the value is no JSON object");
}

/* ev -> bytes -> event, compared with `want`. */
static void round_trip(const char *event, enum sl_event_mode mode, const char *want, int line)
{
	struct sl_arena arena;
	struct sl_record rec = {.topic = "t", .partition = -1};
	jv ev, back, expected;
	sl_arena_init(&arena);
	cr_assert_eq(sl_json_parse(event, strlen(event), NULL, &ev, NULL), 0, "line %d", line);
	cr_assert_eq(sl_json_parse(want, strlen(want), NULL, &expected, NULL), 0, "line %d", line);
	cr_assert_eq(sl_event_encode(ev, mode, &arena, &rec), 0);
	cr_assert_eq(sl_event_decode(&rec, NULL, &back, NULL), 0);
	if (!sl_json_equal(back, expected)) {
		char *got = sl_json_text(back);
		cr_assert(false, "line %d mode %d:\n got %s\nwant %s", line, (int)mode, got, want);
	}
	jv_free(ev);
	jv_free(back);
	jv_free(expected);
	sl_arena_release(&arena);
}
#define JSON_TYPE ",\"datacontenttype\":\"application/json\""

Test(codec_event, what_is_encoded_is_decoded)
{
	for (int mode = SL_EVENT_STRUCTURED; mode <= SL_EVENT_AVRO; mode++) {
		const char *type = mode == SL_EVENT_STRUCTURED ? "" : JSON_TYPE; /* bytes need their type */
		char want[400];
		round_trip(EVENT(""), (enum sl_event_mode)mode, EVENT(""), __LINE__);
		static const char *const datas[] = {
			"{\"a\":[1,2.5,null,{\"b\":\"Grüße\"}]}", "null", "\"text\"", "3", "[]"};
		for (size_t i = 0; i < sizeof(datas) / sizeof(datas[0]); i++) {
			char event[400];
			snprintf(event, sizeof(event), EVENT(",\"data\":%s"), datas[i]);
			snprintf(want, sizeof(want), EVENT("%s,\"data\":%s"), type, datas[i]);
			round_trip(event, (enum sl_event_mode)mode, want, __LINE__);
		}
		round_trip(EVENT(",\"datacontenttype\":\"text/plain\",\"data\":\"hi\""), (enum sl_event_mode)mode,
			EVENT(",\"datacontenttype\":\"text/plain\",\"data\":\"hi\""), __LINE__);
		round_trip(EVENT(",\"datacontenttype\":\"image/png\",\"data_base64\":\"iVBORw==\""),
			(enum sl_event_mode)mode,
			EVENT(",\"datacontenttype\":\"image/png\",\"data_base64\":\"iVBORw==\""), __LINE__);
		round_trip(EVENT(",\"n\":42,\"ok\":false,\"patientid\":\"55\""), (enum sl_event_mode)mode,
			mode == SL_EVENT_BINARY ? EVENT(",\"n\":\"42\",\"ok\":\"false\",\"patientid\":\"55\"")
						: EVENT(",\"n\":42,\"ok\":false,\"patientid\":\"55\""),
			__LINE__);
	}
}

Test(codec_event, encoded_headers_follow_the_kafka_binding)
{
	struct sl_arena arena;
	struct sl_record rec = {0};
	jv ev = jv_parse(EVENT(",\"patientid\":\"55\",\"data\":{\"a\":1}"));
	int seen = 0;
	sl_arena_init(&arena);
	cr_assert_eq(sl_event_encode(ev, SL_EVENT_STRUCTURED, &arena, &rec), 0);
	cr_assert_eq(rec.header_count, 1);
	cr_assert_str_eq(rec.headers[0].value.ptr, "application/cloudevents+json; charset=UTF-8");
	cr_assert_eq(sl_event_encode(ev, SL_EVENT_BINARY, &arena, &rec), 0);
	cr_assert_eq(rec.header_count, 6);
	for (int i = 0; i < rec.header_count; i++) {
		seen += strcmp(rec.headers[i].name, "ce_patientid") == 0 && strcmp(rec.headers[i].value.ptr, "55") == 0;
		seen += strcmp(rec.headers[i].name, "content-type") == 0 &&
			strcmp(rec.headers[i].value.ptr, "application/json") == 0;
	}
	cr_assert_eq(seen, 2);
	cr_assert(rec.value.len == 7 && memcmp(rec.value.ptr, "{\"a\":1}", 7) == 0);
	jv_free(ev);
	ev = jv_string("no event");
	cr_assert_eq(sl_event_encode(ev, SL_EVENT_STRUCTURED, &arena, &rec), SL_ESCHEMA);
	jv_free(ev);
	sl_arena_release(&arena);
}

/* --- Avro --- */
static void attribute(struct sl_buf *b, const char *name, const char *value)
{
	sl_avro_add_bytes(b, name, strlen(name));
	sl_avro_add_long(b, 3);
	sl_avro_add_bytes(b, value, strlen(value));
}

static void four(struct sl_buf *b, int more)
{
	sl_buf_init(b);
	sl_avro_add_long(b, 4 + more);
	attribute(b, "specversion", "1.0");
	attribute(b, "id", "1");
	attribute(b, "source", "/clinic");
	attribute(b, "type", "org.vitals");
}

#define AVRO HEADERS({"content-type", "application/cloudevents+avro"})

Test(codec_event, avro_attribute_types_are_read)
{
	struct sl_buf b;
	four(&b, 4);
	sl_avro_add_bytes(&b, "patientId", 9);
	sl_avro_add_long(&b, 2);
	sl_avro_add_long(&b, 42);
	sl_avro_add_bytes(&b, "ok", 2);
	sl_avro_add_long(&b, 1);
	sl_buf_addc(&b, 1);
	sl_avro_add_bytes(&b, "subject", 7);
	sl_avro_add_long(&b, 0);
	sl_avro_add_bytes(&b, "sig", 3);
	sl_avro_add_long(&b, 4);
	sl_avro_add_bytes(&b, "\xff\x00", 2);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 1);
	GIVES(AVRO, sl_buf_bytes(&b), EVENT(",\"patientid\":42,\"ok\":true,\"sig\":\"/wA=\""));
	sl_buf_release(&b);
}

Test(codec_event, avro_data_union_is_read)
{
	struct sl_buf b;
	double d = 2.5;
	four(&b, 0);
	sl_avro_add_long(&b, 0);
	size_t start = b.len;
	sl_avro_add_long(&b, 0);
	sl_avro_add_bytes(&b, "hi", 2);
	GIVES(AVRO, sl_buf_bytes(&b), EVENT(",\"data_base64\":\"aGk=\""));
	b.len = start;
	sl_avro_add_long(&b, 2);
	sl_buf_addc(&b, 1);
	GIVES(AVRO, sl_buf_bytes(&b), EVENT(",\"data\":true"));
	b.len = start;
	sl_avro_add_long(&b, 5);
	sl_buf_add(&b, &d, 8);
	GIVES(AVRO, sl_buf_bytes(&b), EVENT(",\"data\":2.5"));
	b.len = start;
	sl_avro_add_long(&b, 6);
	sl_avro_add_bytes(&b, "Grüße", 7);
	GIVES(AVRO, sl_buf_bytes(&b), EVENT(",\"data\":\"Grüße\""));
	/* map: n null, s "x", o {value: {a: [ {value: {}} ], m: {k: {value: {z: true}}} }} */
	b.len = start;
	sl_avro_add_long(&b, 3);
	sl_avro_add_long(&b, 3);
	sl_avro_add_bytes(&b, "n", 1);
	sl_avro_add_long(&b, 0);
	sl_avro_add_bytes(&b, "s", 1);
	sl_avro_add_long(&b, 4);
	sl_avro_add_bytes(&b, "x", 1);
	sl_avro_add_bytes(&b, "o", 1);
	sl_avro_add_long(&b, 2);
	sl_avro_add_long(&b, 2);
	sl_avro_add_bytes(&b, "a", 1);
	sl_avro_add_long(&b, 3);
	sl_avro_add_long(&b, 1);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 0);
	sl_avro_add_bytes(&b, "m", 1);
	sl_avro_add_long(&b, 2);
	sl_avro_add_long(&b, 1);
	sl_avro_add_bytes(&b, "k", 1);
	sl_avro_add_long(&b, 1);
	sl_avro_add_bytes(&b, "z", 1);
	sl_avro_add_long(&b, 1);
	sl_buf_addc(&b, 1);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 0);
	const char *want = EVENT(",\"data\":{\"n\":null,\"s\":\"x\",\"o\":{\"a\":[{}],\"m\":{\"k\":{\"z\":true}}}}");
	GIVES(AVRO, sl_buf_bytes(&b), want);
	jv ev;
	for (size_t n = 0; n < b.len; n++) {
		char *cut = malloc(n ? n : 1);
		memcpy(cut, b.data, n);
		cr_assert_eq(decode(AVRO, (struct sl_bytes){cut, n}, NULL, &ev, NULL), SL_EPARSE, "%zu bytes", n);
		free(cut);
		for (int bit = 0; bit < 8; bit++) {
			char *flip = malloc(b.len);
			memcpy(flip, b.data, b.len);
			flip[n] = (char)(flip[n] ^ 1 << bit);
			if (decode(AVRO, (struct sl_bytes){flip, b.len}, NULL, &ev, NULL) == 0)
				jv_free(ev);
			free(flip);
		}
	}
	sl_buf_release(&b);
}

Test(codec_event, broken_avro_is_named)
{
	struct sl_buf b;
	REFUSED(AVRO, text("garbage"), SL_EPARSE, "event: damaged Avro: not a datum of the CloudEvents schema");
	REFUSED(AVRO, ((struct sl_bytes){NULL, 0}), SL_EPARSE,
		"event: damaged Avro: not a datum of the CloudEvents schema");
	four(&b, 0);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 1);
	sl_buf_adds(&b, "xyz");
	REFUSED(AVRO, sl_buf_bytes(&b), SL_EPARSE, "event: damaged Avro: 3 bytes behind the datum");
	sl_buf_release(&b);
	four(&b, 1);
	attribute(&b, "ID", "2");
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 1);
	REFUSED(AVRO, sl_buf_bytes(&b), SL_ESCHEMA, "attribute `id` is there twice, in names that differ only in case");
	sl_buf_release(&b);
	/* arrays 1 000 deep: value: { a: [ {value: {a: [ ... */
	four(&b, 0);
	sl_avro_add_long(&b, 0);
	sl_avro_add_long(&b, 4);
	for (int i = 0; i < 1000; i++) {
		sl_avro_add_long(&b, 1);
		sl_avro_add_long(&b, 1);
		sl_avro_add_bytes(&b, "a", 1);
		sl_avro_add_long(&b, 3);
	}
	for (int i = 0; i < 4000; i++)
		sl_avro_add_long(&b, 0);
	REFUSED(AVRO, sl_buf_bytes(&b), SL_EDEPTH, "event: data is nested deeper than the limit");
	sl_buf_release(&b);
}

/* avro-c and the CloudEvents project's schema read what we write. */
Test(codec_event, avro_c_reads_our_avro_events)
{
	struct sl_arena arena;
	struct sl_record rec = {0};
	size_t len = 0;
	char *schema_text = read_whole(SL_SOURCE_DIR "/proto/cloudevents.avsc", &len);
	avro_schema_t schema;
	cr_assert_eq(avro_schema_from_json_length(schema_text, len, &schema), 0);
	sl_arena_init(&arena);
	jv ev = jv_parse(EVENT(",\"n\":7,\"data\":{\"a\":1}"));
	cr_assert_eq(sl_event_encode(ev, SL_EVENT_AVRO, &arena, &rec), 0);
	avro_value_iface_t *iface = avro_generic_class_from_schema(schema);
	avro_value_t value;
	avro_generic_value_new(iface, &value);
	avro_reader_t reader = avro_reader_memory(rec.value.ptr, (int64_t)rec.value.len);
	cr_assert_eq(avro_value_read(reader, &value), 0);
	char *json;
	cr_assert_eq(avro_value_to_json(&value, 1, &json), 0);
	cr_assert_not_null(strstr(json, "\"n\": {\"int\": 7}"), "%s", json);
	cr_assert_not_null(strstr(json, "\"datacontenttype\": {\"string\": \"application/json\"}"), "%s", json);
	cr_assert_not_null(strstr(json, "\"data\": {\"bytes\": \"{\\\"a\\\":1}\"}"), "%s", json);
	free(json);
	avro_reader_free(reader);
	avro_value_decref(&value);
	avro_value_iface_decref(iface);
	avro_schema_decref(schema);
	jv_free(ev);
	free(schema_text);
	sl_arena_release(&arena);
}

Test(codec_event, structured_bytes_cut_and_flipped_never_crash)
{
	static const char event[] =
		EVENT(",\"datacontenttype\":\"application/json\",\"data_base64\":\"eyJhIjoxfQ==\",\"x\":\"\\u00e4\"");
	jv ev;
	for (size_t n = 0; n + 1 < sizeof(event); n++) {
		char *copy = malloc(n ? n : 1);
		memcpy(copy, event, n);
		cr_assert_neq(decode(STRUCTURED, (struct sl_bytes){copy, n}, NULL, &ev, NULL), 0);
		free(copy);
		for (int bit = 0; bit < 8; bit++) {
			copy = malloc(sizeof(event) - 1);
			memcpy(copy, event, sizeof(event) - 1);
			copy[n] = (char)(copy[n] ^ 1 << bit);
			if (decode(STRUCTURED, (struct sl_bytes){copy, sizeof(event) - 1}, NULL, &ev, NULL) == 0)
				jv_free(ev);
			free(copy);
		}
	}
}

Test(codec_event, readers_find_attributes_in_any_case)
{
	struct sl_buf out;
	jv ev = jv_parse(EVENT(",\"patientid\":42,\"ok\":true"));
	sl_buf_init(&out);
	cr_assert_str_eq(sl_event_attr(ev, "type"), "org.vitals");
	cr_assert_null(sl_event_attr(ev, "patientid"));
	cr_assert(sl_event_canonical(ev, "PatientId", &out));
	cr_assert(sl_event_canonical(ev, "ok", &out));
	cr_assert(!sl_event_canonical(ev, "absent", &out));
	cr_assert_str_eq(out.data, "42true");
	sl_buf_clear(&out);
	sl_event_identity(ev, &out);
	cr_assert(out.len == 9 && memcmp(out.data, "/clinic\0001", 9) == 0);
	jv data = sl_event_data(ev);
	cr_assert_eq(jv_get_kind(data), JV_KIND_NULL);
	jv_free(data);
	jv_free(ev);
	sl_buf_release(&out);
}

Test(codec_event, base64_is_rfc_4648)
{
	static const char *const table[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
		{"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	for (int i = 0; i < 7; i++) {
		struct sl_buf b, back;
		sl_buf_init(&b);
		sl_buf_init(&back);
		sl_base64_encode(table[i][0], strlen(table[i][0]), &b);
		cr_assert_str_eq(b.data ? b.data : "", table[i][1]);
		cr_assert_eq(sl_base64_decode(b.data ? b.data : "", b.len, &back), 0);
		cr_assert_str_eq(back.data ? back.data : "", table[i][0]);
		sl_buf_release(&b);
		sl_buf_release(&back);
	}
	struct sl_buf bad;
	sl_buf_init(&bad);
	cr_assert_eq(sl_base64_decode("Zg=a", 4, &bad), SL_EINVAL);
	cr_assert_eq(sl_base64_decode("Zg", 2, &bad), SL_EINVAL);
	cr_assert_eq(sl_base64_decode("Z===", 4, &bad), SL_EINVAL);
	sl_buf_release(&bad);
}
