/* The message schema: generated from msg.def, so that struct, text and codec cannot differ; and the schemas of other
 * releases, read field by field with our own bounded reader along avro-c's schema tree. */
#include "common/codec/schema.h"
#include "common/base/log.h"
#include "common/codec/codec.h"
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

const struct sl_msg_field sl_msg_fields[] = {
#define M(type, name, meaning) {SL_FIELD_##type, #name, offsetof(struct sl_msg, name)},
#include "common/model/msg.def"
#undef M
};
const int sl_msg_field_count = sizeof(sl_msg_fields) / sizeof(sl_msg_fields[0]);

static const char *const meanings[] = {
#define M(type, name, meaning) meaning,
#include "common/model/msg.def"
#undef M
};

#define NAME "io.sluice.internal.Message"
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *schema_text;
static uint64_t schema_fp;

static void add_field(struct sl_buf *out, int i)
{
	static const char *const avro_type[] = {
		"[\"null\",\"string\"]", "\"long\"", "\"boolean\"", "[\"null\",\"bytes\"]"};
	const struct sl_msg_field *f = &sl_msg_fields[i];
	const char *fallback = f->type == SL_FIELD_BOOL ? "false" : f->type == SL_FIELD_I64 ? "0" : "null";
	if (strncmp(f->name, "origin_", 7) == 0 && f->type == SL_FIELD_I64)
		fallback = "-1";
	sl_buf_printf(out, ",\n\t\t{\"name\": \"%s\", \"type\": %s, \"default\": %s, \"doc\": ", f->name,
		avro_type[f->type], fallback);
	struct sl_buf doc;
	sl_buf_init(&doc);
	sl_buf_printf(&doc, "%s%s", meanings[i], f->type == SL_FIELD_JSON ? " (JSON text)" : "");
	sl_buf_add_json_str(out, doc.data, doc.len);
	sl_buf_release(&doc);
	sl_buf_addc(out, '}');
}

/* Avro 1.9, Parsing Canonical Form: what identifies the schema; a changed comment does not change it. */
static void canonical(struct sl_buf *out)
{
	static const char *const avro_type[] = {
		"[\"null\",\"string\"]", "\"long\"", "\"boolean\"", "[\"null\",\"bytes\"]"};
	sl_buf_adds(out, "{\"name\":\"" NAME "\",\"type\":\"record\",\"fields\":[{\"name\":\"kind\",\"type\":\"int\"}");
	for (int i = 0; i < sl_msg_field_count; i++)
		sl_buf_printf(
			out, ",{\"name\":\"%s\",\"type\":%s}", sl_msg_fields[i].name, avro_type[sl_msg_fields[i].type]);
	sl_buf_adds(out, "]}");
}

static void generate(void)
{
	struct sl_buf text, form;
	sl_buf_init(&text);
	sl_buf_adds(&text,
		"{\n\t\"type\": \"record\",\n\t\"name\": \"Message\",\n\t\"namespace\": \"io.sluice.internal\",\n"
		"\t\"doc\": \"What travels between actors and services of Sluice. Generated from "
		"common/model/msg.def.\",\n"
		"\t\"fields\": [\n\t\t{\"name\": \"kind\", \"type\": \"int\", \"doc\": \"");
	for (int k = 1; k < SL_MSG_KIND_COUNT_; k++)
		sl_buf_printf(&text, "%s%d %s", k > 1 ? ", " : "", k, sl_msg_kind_text((enum sl_msg_kind)k));
	sl_buf_adds(&text, "\"}");
	for (int i = 0; i < sl_msg_field_count; i++)
		add_field(&text, i);
	sl_buf_adds(&text, "\n\t]\n}\n");
	schema_text = sl_buf_steal(&text);
	sl_buf_init(&form);
	canonical(&form);
	schema_fp = sl_avro_fingerprint(form.data, form.len);
	sl_buf_release(&form);
}

const char *sl_schema_text(void)
{
	pthread_once(&once, generate);
	return schema_text;
}

uint64_t sl_schema_fingerprint(void)
{
	pthread_once(&once, generate);
	return schema_fp;
}

const char *sl_codec_schema(uint64_t *ret_fp)
{
	if (ret_fp)
		*ret_fp = sl_schema_fingerprint();
	return sl_schema_text();
}

/* --- learned schemas: a few per process, kept for its lifetime --- */
static struct {
	uint64_t fp;
	avro_schema_t schema;
} * known;
static int known_count;

avro_schema_t sl_schema_find(uint64_t fp)
{
	for (int i = 0; i < known_count; i++)
		if (known[i].fp == fp)
			return known[i].schema;
	return NULL;
}

int sl_codec_learn(uint64_t fp, const char *text)
{
	avro_schema_t schema;
	if (sl_schema_find(fp))
		return 0;
	if (avro_schema_from_json_length(text, strlen(text), &schema) != 0)
		return SL_EPARSE;
	if (!is_avro_record(schema)) {
		avro_schema_decref(schema);
		return SL_ESCHEMA;
	}
	void *grown = realloc(known, (size_t)(known_count + 1) * sizeof(*known));
	if (!grown)
		sl_bug(__FILE__, __LINE__, "out of memory");
	known = grown;
	known[known_count].fp = fp;
	known[known_count++].schema = schema;
	return 0;
}

/* --- reading along a foreign schema --- */
#define DEPTH_MAX 64 /* of schema nesting: a recursive type whose value nests deeper is refused */

static void skip(struct sl_avro_in *in, avro_schema_t schema, int depth);

static void skip_blocks(struct sl_avro_in *in, avro_schema_t item, bool map, int depth)
{
	for (int64_t n; (n = sl_avro_block(in)) > 0;)
		for (; n > 0 && !in->bad; n--) {
			if (map)
				sl_avro_bytes(in);
			skip(in, item, depth);
		}
}

static avro_schema_t branch_of(struct sl_avro_in *in, avro_schema_t schema)
{
	int64_t branch = sl_avro_long(in);
	if (in->bad || branch < 0 || branch >= (int64_t)avro_schema_union_size(schema)) {
		in->bad = true;
		return NULL;
	}
	return avro_schema_union_branch(schema, (int)branch);
}

static void skip(struct sl_avro_in *in, avro_schema_t schema, int depth)
{
	if (depth > DEPTH_MAX)
		in->bad = true;
	if (in->bad)
		return;
	switch (avro_typeof(schema)) {
	case AVRO_STRING:
	case AVRO_BYTES:
		sl_avro_bytes(in);
		break;
	case AVRO_INT32:
	case AVRO_INT64:
	case AVRO_ENUM:
		sl_avro_long(in);
		break;
	case AVRO_FLOAT:
		sl_avro_skip(in, 4);
		break;
	case AVRO_DOUBLE:
		sl_avro_skip(in, 8);
		break;
	case AVRO_BOOLEAN:
		sl_avro_bool(in);
		break;
	case AVRO_NULL:
		break;
	case AVRO_FIXED:
		sl_avro_skip(in, (size_t)avro_schema_fixed_size(schema));
		break;
	case AVRO_RECORD:
		for (size_t i = 0; i < avro_schema_record_size(schema); i++)
			skip(in, avro_schema_record_field_get_by_index(schema, (int)i), depth + 1);
		break;
	case AVRO_MAP:
		skip_blocks(in, avro_schema_map_values(schema), true, depth + 1);
		break;
	case AVRO_ARRAY:
		skip_blocks(in, avro_schema_array_items(schema), false, depth + 1);
		break;
	case AVRO_UNION: {
		avro_schema_t branch = branch_of(in, schema);
		if (branch)
			skip(in, branch, depth + 1);
		break;
	}
	case AVRO_LINK:
		skip(in, avro_schema_link_target(schema), depth + 1);
		break;
	default:
		in->bad = true;
	}
}

static int wrong_type(const struct sl_msg_field *field, struct sl_diags *diags)
{
	return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
		"message field `%s` has an unexpected type in its writer's schema", field->name);
}

static int read_field(struct sl_avro_in *in, avro_schema_t schema, const struct sl_msg_field *field,
	struct sl_arena *arena, struct sl_msg *msg, struct sl_diags *diags)
{
	void *at = (char *)msg + field->offset;
	if (is_avro_union(schema)) {
		schema = branch_of(in, schema);
		if (!schema)
			return 0;
	}
	avro_type_t type = avro_typeof(schema);
	if (type == AVRO_NULL)
		return 0;
	switch (field->type) {
	case SL_FIELD_STR:
		return type != AVRO_STRING ? wrong_type(field, diags)
					   : sl_msg_field_str(sl_avro_bytes(in), field, arena, msg, diags);
	case SL_FIELD_JSON:
		return type != AVRO_BYTES && type != AVRO_STRING
			       ? wrong_type(field, diags)
			       : sl_msg_field_json(sl_avro_bytes(in), field, msg, diags);
	case SL_FIELD_I64:
		if (type != AVRO_INT64 && type != AVRO_INT32)
			return wrong_type(field, diags);
		*(int64_t *)at = sl_avro_long(in);
		return 0;
	case SL_FIELD_BOOL:
		if (type != AVRO_BOOLEAN)
			return wrong_type(field, diags);
		*(bool *)at = sl_avro_bool(in);
	}
	return 0;
}

static const struct sl_msg_field *field_named(const char *name)
{
	for (int i = 0; i < sl_msg_field_count; i++)
		if (strcmp(sl_msg_fields[i].name, name) == 0)
			return &sl_msg_fields[i];
	return NULL;
}

int sl_msg_read_foreign(
	struct sl_avro_in *in, avro_schema_t schema, struct sl_arena *arena, struct sl_msg *msg, struct sl_diags *diags)
{
	size_t count = avro_schema_record_size(schema);
	for (size_t i = 0; i < count && !in->bad; i++) {
		const char *name = avro_schema_record_field_name(schema, (int)i);
		avro_schema_t type = avro_schema_record_field_get_by_index(schema, (int)i);
		const struct sl_msg_field *field = field_named(name);
		if (strcmp(name, "kind") == 0 && (avro_typeof(type) == AVRO_INT32 || avro_typeof(type) == AVRO_INT64)) {
			int64_t kind = sl_avro_int(in);
			msg->kind = kind > 0 && kind < SL_MSG_KIND_COUNT_ ? (enum sl_msg_kind)kind : SL_MSG_NONE;
		} else if (field) {
			int err = read_field(in, type, field, arena, msg, diags);
			if (err)
				return err;
		} else {
			skip(in, type, 0); /* a newer release's field */
		}
	}
	return 0;
}
