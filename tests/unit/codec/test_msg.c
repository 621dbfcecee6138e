/* Internal messages: schema, property, other releases, damage, lists. */
#include "helper.h"
#include <avro.h>
#include <limits.h>

static struct sl_bytes encoded(const struct sl_msg *msg, struct sl_buf *buf)
{
	sl_buf_init(buf);
	cr_assert_eq(sl_msg_encode(msg, buf), 0);
	return sl_buf_bytes(buf);
}

Test(codec_msg, fingerprint_is_avros)
{
	/* known answer of the Avro project's own tests */
	cr_assert_eq(sl_avro_fingerprint("\"int\"", 5), 0x7275d51a3f395c8fu);
	cr_assert_eq(sl_avro_fingerprint("", 0), 0xc15d213aa4d7a795u);
}

Test(codec_msg, schema_file_is_not_stale)
{
	const char *path = SL_SOURCE_DIR "/proto/message.avsc";
	uint64_t fp;
	const char *text = sl_codec_schema(&fp);
	if (getenv("SL_WRITE_GENERATED")) {
		FILE *f = fopen(path, "w");
		cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
	}
	char *file = read_whole(path, NULL);
	cr_assert(file && strcmp(file, text) == 0,
		"proto/message.avsc is stale: run this test with SL_WRITE_GENERATED=1");
	free(file);
}

Test(codec_msg, schema_names_every_field)
{
	avro_schema_t schema;
	const char *text = sl_codec_schema(NULL);
	cr_assert_eq(avro_schema_from_json_length(text, strlen(text), &schema), 0);
	cr_assert_eq(avro_schema_record_size(schema), (size_t)sl_msg_field_count + 1);
#define M(type, name, meaning) cr_assert(avro_schema_record_field_get_index(schema, #name) > 0, #name);
#include "common/model/msg.def"
#undef M
	avro_schema_decref(schema);
}

Test(codec_msg, decode_gives_what_was_encoded)
{
	uint64_t seed = 42;
	struct sl_arena arena;
	sl_arena_init(&arena);
	for (int i = 0; i < 500; i++) {
		struct sl_msg msg, back;
		struct sl_buf buf;
		random_msg(&seed, &arena, &msg);
		struct sl_bytes bytes = encoded(&msg, &buf);
		cr_assert_eq(sl_msg_decode(bytes, &arena, &back, NULL, NULL), 0);
		cr_assert(msg_equal(&msg, &back), "message %d", i);
		sl_msg_clear(&back);
		/* the same bytes along the schema, as another release reads them */
		avro_schema_t schema;
		const char *text = sl_codec_schema(NULL);
		cr_assert_eq(avro_schema_from_json_length(text, strlen(text), &schema), 0);
		struct sl_avro_in in = {(const uint8_t *)bytes.ptr + 10, (const uint8_t *)bytes.ptr + bytes.len, false};
		sl_msg_init(&back, SL_MSG_NONE);
		cr_assert_eq(sl_msg_read_foreign(&in, schema, &arena, &back, NULL), 0);
		cr_assert(!in.bad && in.at == in.end && msg_equal(&msg, &back), "message %d along the schema", i);
		avro_schema_decref(schema);
		sl_msg_clear(&back);
		sl_msg_clear(&msg);
		sl_buf_release(&buf);
		sl_arena_clear(&arena);
	}
	sl_arena_release(&arena);
}

Test(codec_msg, extreme_numbers_and_long_texts_survive)
{
	struct sl_arena arena;
	struct sl_msg msg, back;
	struct sl_buf buf;
	sl_arena_init(&arena);
	sl_msg_init(&msg, SL_MSG_START);
	msg.token = INT64_MIN;
	msg.attempt = INT64_MAX;
	char *large = sl_arena_alloc(&arena, 300001);
	memset(large, 'x', 300000);
	msg.reason = large;
	msg.to = "";
	msg.data = jv_string(large);
	msg.events = JV_ARRAY(jv_string(large), jv_number(9007199254740992.0 * 8));
	cr_assert_eq(sl_msg_decode(encoded(&msg, &buf), &arena, &back, NULL, NULL), 0);
	cr_assert(msg_equal(&msg, &back));
	sl_msg_clear(&msg);
	sl_msg_clear(&back);
	sl_buf_release(&buf);
	sl_arena_release(&arena);
}

/* avro-c as the independent reader of what we wrote by hand. */
Test(codec_msg, avro_c_reads_what_we_write)
{
	avro_schema_t schema;
	const char *text = sl_codec_schema(NULL);
	struct sl_msg msg;
	struct sl_buf buf;
	cr_assert_eq(avro_schema_from_json_length(text, strlen(text), &schema), 0);
	sl_msg_init(&msg, SL_MSG_ACTION);
	msg.ns = "default";
	msg.token = -7;
	msg.multi = true;
	msg.data = JV_OBJECT(jv_string("a"), jv_number(1));
	struct sl_bytes bytes = encoded(&msg, &buf);
	avro_value_iface_t *iface = avro_generic_class_from_schema(schema);
	avro_value_t value, field, branch;
	avro_generic_value_new(iface, &value);
	avro_reader_t reader = avro_reader_memory((const char *)bytes.ptr + 10, (int64_t)bytes.len - 10);
	cr_assert_eq(avro_value_read(reader, &value), 0);
	const char *s;
	const void *p;
	size_t n;
	int64_t number = 0;
	int kind = 0, flag = 0;
	avro_value_get_by_name(&value, "kind", &field, NULL);
	avro_value_get_int(&field, &kind);
	cr_assert_eq(kind, SL_MSG_ACTION);
	avro_value_get_by_name(&value, "ns", &field, NULL);
	avro_value_get_current_branch(&field, &branch);
	cr_assert_eq(avro_value_get_string(&branch, &s, &n), 0);
	cr_assert_str_eq(s, "default");
	avro_value_get_by_name(&value, "token", &field, NULL);
	avro_value_get_long(&field, &number);
	cr_assert_eq(number, -7);
	avro_value_get_by_name(&value, "origin_offset", &field, NULL);
	avro_value_get_long(&field, &number);
	cr_assert_eq(number, -1);
	avro_value_get_by_name(&value, "multi", &field, NULL);
	avro_value_get_boolean(&field, &flag);
	cr_assert(flag);
	avro_value_get_by_name(&value, "data", &field, NULL);
	avro_value_get_current_branch(&field, &branch);
	cr_assert_eq(avro_value_get_bytes(&branch, &p, &n), 0);
	cr_assert(n == 7 && memcmp(p, "{\"a\":1}", 7) == 0);
	avro_reader_free(reader);
	avro_value_decref(&value);
	avro_value_iface_decref(iface);
	avro_schema_decref(schema);
	sl_msg_clear(&msg);
	sl_buf_release(&buf);
}

/* A neighbouring release: fields in another order, some missing, some that we do not know, of every type. */
static const char other_release[] =
	"{\"type\":\"record\",\"name\":\"Message\",\"namespace\":\"io.sluice.internal\",\"fields\":["
	"{\"name\":\"to\",\"type\":[\"null\",\"string\"]},"
	"{\"name\":\"new_record\",\"type\":{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"x\",\"type\":"
	"\"double\"},{\"name\":\"f\",\"type\":\"float\"}]}},"
	"{\"name\":\"kind\",\"type\":\"int\"},"
	"{\"name\":\"new_map\",\"type\":{\"type\":\"map\",\"values\":\"string\"}},"
	"{\"name\":\"new_array\",\"type\":{\"type\":\"array\",\"items\":[\"null\",\"R\"]}},"
	"{\"name\":\"new_enum\",\"type\":{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}},"
	"{\"name\":\"new_fixed\",\"type\":{\"type\":\"fixed\",\"name\":\"F\",\"size\":3}},"
	"{\"name\":\"token\",\"type\":\"int\"},"
	"{\"name\":\"ok\",\"type\":\"boolean\"},"
	"{\"name\":\"ns\",\"type\":\"string\"},"
	"{\"name\":\"data\",\"type\":[\"bytes\",\"null\"]}]}";

static void add_double(struct sl_buf *b, double d)
{
	sl_buf_add(b, &d, 8);
}

static void other_message(struct sl_buf *b, uint64_t fp)
{
	sl_buf_init(b);
	sl_buf_add(b, "\xc3\x01", 2);
	sl_buf_add(b, &fp, 8);
	sl_avro_add_long(b, 1);
	sl_avro_add_bytes(b, "home.1", 6); /* to */
	add_double(b, 1.5);
	sl_buf_add(b, "\0\0\0\0", 4);	    /* new_record */
	sl_avro_add_long(b, SL_MSG_RESULT); /* kind */
	sl_avro_add_long(b, -1);	    /* new_map: block with its size */
	sl_avro_add_long(b, 4);
	sl_avro_add_bytes(b, "k", 1);
	sl_avro_add_bytes(b, "v", 1);
	sl_avro_add_long(b, 0);
	sl_avro_add_long(b, 2); /* new_array: null, R */
	sl_avro_add_long(b, 0);
	sl_avro_add_long(b, 1);
	add_double(b, 2.5);
	sl_buf_add(b, "\0\0\0\0", 4);
	sl_avro_add_long(b, 0);
	sl_avro_add_long(b, 1);		    /* new_enum */
	sl_buf_add(b, "abc", 3);	    /* new_fixed */
	sl_avro_add_long(b, 42);	    /* token */
	sl_buf_addc(b, 1);		    /* ok */
	sl_avro_add_bytes(b, "default", 7); /* ns */
	sl_avro_add_long(b, 0);
	sl_avro_add_bytes(b, "[1]", 3); /* data */
}

Test(codec_msg, message_of_another_release_needs_its_schema_then_maps_by_name)
{
	struct sl_arena arena;
	struct sl_buf b;
	struct sl_msg msg;
	uint64_t fp = 0;
	sl_arena_init(&arena);
	other_message(&b, 0x1122334455667788u);
	cr_assert_eq(sl_msg_decode(sl_buf_bytes(&b), &arena, &msg, &fp, NULL), SL_ENOSCHEMA);
	cr_assert_eq(fp, 0x1122334455667788u);
	cr_assert_eq(sl_codec_learn(fp, "{"), SL_EPARSE);
	cr_assert_eq(sl_codec_learn(fp, "\"int\""), SL_ESCHEMA);
	cr_assert_eq(sl_codec_learn(fp, other_release), 0);
	cr_assert_eq(sl_codec_learn(fp, other_release), 0);
	cr_assert_eq(sl_msg_decode(sl_buf_bytes(&b), &arena, &msg, &fp, NULL), 0);
	cr_assert_eq(msg.kind, SL_MSG_RESULT);
	cr_assert_str_eq(msg.to, "home.1");
	cr_assert_str_eq(msg.ns, "default");
	cr_assert_eq(msg.token, 42);
	cr_assert(msg.ok && !msg.multi);
	cr_assert_eq(msg.origin_offset, -1, "a missing field takes its default");
	cr_assert_null(msg.workflow);
	cr_assert(!jv_is_valid(msg.event));
	cr_assert_eq(jv_array_length(jv_copy(msg.data)), 1);
	sl_msg_clear(&msg);
	/* every truncation and every flipped byte: an answer, never a read out of bounds (the sanitizer watches) */
	for (size_t n = 0; n < b.len; n++) {
		char *cut = malloc(n ? n : 1);
		memcpy(cut, b.data, n);
		cr_assert_neq(sl_msg_decode((struct sl_bytes){cut, n}, &arena, &msg, &fp, NULL), 0, "%zu bytes", n);
		free(cut);
		for (int bit = 0; bit < 8; bit++) {
			char *flip = malloc(b.len);
			memcpy(flip, b.data, b.len);
			flip[n] = (char)(flip[n] ^ 1 << bit);
			if (sl_msg_decode((struct sl_bytes){flip, b.len}, &arena, &msg, &fp, NULL) == 0)
				sl_msg_clear(&msg);
			free(flip);
		}
	}
	sl_buf_release(&b);
	sl_arena_release(&arena);
}

Test(codec_msg, field_of_unexpected_type_in_foreign_schema_is_named)
{
	static const char schema[] = "{\"type\":\"record\",\"name\":\"M\",\"fields\":[{\"name\":\"kind\",\"type\":"
				     "\"int\"},{\"name\":\"token\",\"type\":\"string\"}]}";
	struct sl_arena arena;
	struct sl_diags diags;
	struct sl_msg msg;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	cr_assert_eq(sl_codec_learn(77, schema), 0);
	static const uint8_t bytes[] = {0xc3, 1, 77, 0, 0, 0, 0, 0, 0, 0, 2, 2, 'x'};
	cr_assert_eq(sl_msg_decode((struct sl_bytes){bytes, sizeof(bytes)}, &arena, &msg, NULL, &diags), SL_EPARSE);
	cr_assert_str_eq(sl_diags_first(&diags), "message field `token` has an unexpected type in its writer's schema");
	sl_diags_release(&diags);
	sl_arena_release(&arena);
}

Test(codec_msg, damaged_bytes_are_refused)
{
	uint64_t seed = 7;
	struct sl_arena arena;
	struct sl_buf b;
	struct sl_msg msg, back;
	sl_arena_init(&arena);
	random_msg(&seed, &arena, &msg);
	encoded(&msg, &b);
	for (size_t n = 0; n < b.len; n++) {
		char *cut = malloc(n ? n : 1);
		memcpy(cut, b.data, n);
		cr_assert_neq(sl_msg_decode((struct sl_bytes){cut, n}, &arena, &back, NULL, NULL), 0, "%zu bytes", n);
		free(cut);
		for (int bit = 0; bit < 8; bit++) {
			char *flip = malloc(b.len);
			memcpy(flip, b.data, b.len);
			flip[n] = (char)(flip[n] ^ 1 << bit);
			if (sl_msg_decode((struct sl_bytes){flip, b.len}, &arena, &back, NULL, NULL) == 0)
				sl_msg_clear(&back);
			free(flip);
		}
	}
	sl_buf_addc(&b, 0);
	cr_assert_eq(sl_msg_decode(sl_buf_bytes(&b), &arena, &back, NULL, NULL), SL_EPARSE, "trailing byte");
	cr_assert_eq(sl_msg_decode((struct sl_bytes){NULL, 0}, &arena, &back, NULL, NULL), SL_EPARSE);
	sl_msg_clear(&msg);
	sl_buf_release(&b);
	sl_arena_release(&arena);
}

static const char *header_of(const struct sl_record *rec, const char *name)
{
	for (int i = 0; i < rec->header_count; i++)
		if (strcmp(rec->headers[i].name, name) == 0)
			return rec->headers[i].value.ptr;
	return NULL;
}

Test(codec_msg, record_is_a_cloudevent_in_binary_mode)
{
	struct sl_arena arena;
	struct sl_msg msg, back;
	struct sl_record rec = {.topic = "sluice.actions", .partition = 3};
	sl_arena_init(&arena);
	sl_msg_init(&msg, SL_MSG_ACTION_CANCEL);
	msg.id = "effect-1";
	msg.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	cr_assert_eq(sl_msg_record(&msg, &arena, &rec), 0);
	cr_assert_str_eq(header_of(&rec, "ce_specversion"), "1.0");
	cr_assert_str_eq(header_of(&rec, "ce_id"), "effect-1");
	cr_assert_str_eq(header_of(&rec, "ce_source"), "sluice");
	cr_assert_str_eq(header_of(&rec, "ce_type"), "io.sluice.internal.action-cancel");
	cr_assert_str_eq(header_of(&rec, "content-type"), "application/avro");
	cr_assert_str_eq(header_of(&rec, "traceparent"), msg.traceparent);
	cr_assert_str_eq(rec.topic, "sluice.actions");
	cr_assert_eq(sl_msg_decode(rec.value, &arena, &back, NULL, NULL), 0);
	cr_assert(msg_equal(&msg, &back));
	sl_msg_clear(&back);
	sl_arena_release(&arena);
}

Test(codec_msg, list_gives_messages_and_paths_in_order)
{
	uint64_t seed = 3, fp = 0x0102030405060708u;
	struct sl_arena arena;
	struct sl_buf list, foreign;
	struct sl_msg msgs[20];
	struct sl_list_item *items;
	int count;
	sl_arena_init(&arena);
	sl_buf_init(&list);
	cr_assert_eq(sl_list_read(sl_buf_bytes(&list), &arena, &items, &count, NULL), 0);
	cr_assert_eq(count, 0);
	for (int i = 0; i < 20; i++) {
		random_msg(&seed, &arena, &msgs[i]);
		sl_list_add(&list, &msgs[i], i ? sl_arena_printf(&arena, "%d.0", i) : NULL);
	}
	cr_assert_eq(sl_list_read(sl_buf_bytes(&list), &arena, &items, &count, NULL), 0);
	cr_assert_eq(count, 20);
	for (int i = 0; i < 20; i++) {
		cr_assert(msg_equal(&msgs[i], &items[i].msg));
		cr_assert_str_eq(items[i].path, i ? sl_arena_printf(&arena, "%d.0", i) : "");
		sl_msg_clear(&items[i].msg);
		sl_msg_clear(&msgs[i]);
	}
	cr_assert_eq(sl_list_unknown(sl_buf_bytes(&list)), 0);
	for (size_t n = 1; n < list.len; n += 7) {
		char *cut = malloc(n);
		memcpy(cut, list.data, n);
		if (sl_list_read((struct sl_bytes){cut, n}, &arena, &items, &count, NULL) == 0)
			for (int i = 0; i < count; i++)
				sl_msg_clear(&items[i].msg);
		free(cut);
	}
	other_message(&foreign, fp);
	sl_avro_add_bytes(&list, foreign.data, foreign.len);
	sl_avro_add_bytes(&list, "", 0);
	cr_assert_eq(sl_list_read(sl_buf_bytes(&list), &arena, &items, &count, NULL), SL_ENOSCHEMA);
	cr_assert_eq(sl_list_unknown(sl_buf_bytes(&list)), fp);
	sl_buf_release(&foreign);
	sl_buf_release(&list);
	sl_arena_release(&arena);
}
