/* Internal messages: Avro single-object encoding (marker C3 01, fingerprint, body), written and read over the table of
 * fields; messages of other releases go through schema.c. */
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/codec/codec.h"
#include "common/codec/schema.h"
#include <stdlib.h>

/* What is inside was checked where it entered; the wrapping (events: [{data}]) adds levels, and rounded integers were
 * accepted. */
static const struct sl_json_limits inner = {.bytes_max = 0, .depth_max = 256, .round_integers = true};

static void add_json(struct sl_buf *out, jv value)
{
	/* The length stands before the text and is known after it: leave room for one byte and move what is longer. */
	uint8_t bytes[10];
	size_t start = out->len;
	sl_buf_addc(out, '\0');
	sl_json_write(out, value);
	size_t len = out->len - start - 1, n = sl_avro_varint((int64_t)len, bytes);
	if (n > 1) {
		sl_buf_add(out, bytes, n - 1); /* grows; overwritten by the move */
		memmove(out->data + start + n, out->data + start + 1, len);
	}
	memcpy(out->data + start, bytes, n);
}

int sl_msg_encode(const struct sl_msg *msg, struct sl_buf *out)
{
	uint64_t fp = sl_schema_fingerprint();
	uint8_t head[10] = {0xc3, 0x01};
	sl_assert(msg->kind > SL_MSG_NONE && msg->kind < SL_MSG_KIND_COUNT_);
	for (int i = 0; i < 8; i++)
		head[2 + i] = (uint8_t)(fp >> 8 * i);
	sl_buf_reserve(out, 256);
	sl_buf_add(out, head, sizeof(head));
	sl_avro_add_long(out, msg->kind);
	for (int i = 0; i < sl_msg_field_count; i++) {
		const void *at = (const char *)msg + sl_msg_fields[i].offset;
		switch (sl_msg_fields[i].type) {
		case SL_FIELD_STR: {
			const char *text = *(const char *const *)at;
			sl_buf_addc(out, text ? 2 : 0);
			if (text)
				sl_avro_add_bytes(out, text, strlen(text));
			break;
		}
		case SL_FIELD_I64:
			sl_avro_add_long(out, *(const int64_t *)at);
			break;
		case SL_FIELD_BOOL:
			sl_buf_addc(out, *(const bool *)at ? 1 : 0);
			break;
		case SL_FIELD_JSON: {
			jv value = *(const jv *)at;
			bool there = jv_is_valid(value);
			sl_buf_addc(out, there ? 2 : 0);
			if (there)
				add_json(out, value);
		}
		}
	}
	return 0;
}

int sl_msg_field_str(struct sl_bytes bytes, const struct sl_msg_field *field, struct sl_arena *arena,
	struct sl_msg *msg, struct sl_diags *diags)
{
	if (memchr(bytes.ptr, 0, bytes.len) || !sl_utf8_valid(bytes.ptr, bytes.len))
		return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL, "message field `%s` is not text", field->name);
	*(const char **)((char *)msg + field->offset) = sl_arena_strn(arena, bytes.ptr, bytes.len);
	return 0;
}

int sl_msg_field_json(
	struct sl_bytes bytes, const struct sl_msg_field *field, struct sl_msg *msg, struct sl_diags *diags)
{
	jv value;
	int err = sl_json_parse(bytes.ptr, bytes.len, &inner, &value, NULL);
	if (err)
		return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL, "message field `%s` is not JSON: %s",
			field->name, sl_err_text(err));
	jv *at = (jv *)((char *)msg + field->offset);
	jv_free(*at); /* a schema may name a field only once, but the bytes decide nothing about memory */
	*at = value;
	return 0;
}

/* Body with our own schema: the table in order. */
static int read_own(struct sl_avro_in *in, struct sl_arena *arena, struct sl_msg *msg, struct sl_diags *diags)
{
	int64_t kind = sl_avro_int(in);
	msg->kind = kind > 0 && kind < SL_MSG_KIND_COUNT_ ? (enum sl_msg_kind)kind : SL_MSG_NONE;
	for (int i = 0; i < sl_msg_field_count && !in->bad; i++) {
		const struct sl_msg_field *field = &sl_msg_fields[i];
		void *at = (char *)msg + field->offset;
		int err = 0;
		if (field->type == SL_FIELD_I64) {
			*(int64_t *)at = sl_avro_long(in);
			continue;
		}
		if (field->type == SL_FIELD_BOOL) {
			*(bool *)at = sl_avro_bool(in);
			continue;
		}
		int64_t branch = sl_avro_long(in);
		if (branch != 0 && branch != 1)
			in->bad = true;
		if (in->bad || branch == 0)
			continue;
		struct sl_bytes bytes = sl_avro_bytes(in);
		if (in->bad)
			break;
		err = field->type == SL_FIELD_STR ? sl_msg_field_str(bytes, field, arena, msg, diags)
						  : sl_msg_field_json(bytes, field, msg, diags);
		if (err)
			return err;
	}
	return 0;
}

int sl_msg_decode(
	struct sl_bytes bytes, struct sl_arena *arena, struct sl_msg *ret, uint64_t *ret_fp, struct sl_diags *diags)
{
	const uint8_t *head = bytes.ptr;
	if (!head || bytes.len < 11 || head[0] != 0xc3 || head[1] != 0x01)
		return sl_diag_error(
			diags, SL_EPARSE, SL_NOWHERE, NULL, "not an internal message: no Avro single-object marker");
	uint64_t fp = 0;
	for (int i = 7; i >= 0; i--)
		fp = fp << 8 | head[2 + i];
	bool own = fp == sl_schema_fingerprint();
	avro_schema_t schema = own ? NULL : sl_schema_find(fp);
	if (!own && !schema) {
		if (ret_fp)
			*ret_fp = fp;
		return sl_diag_error(diags, SL_ENOSCHEMA, SL_NOWHERE, NULL, "the writer's schema %016llx is not known",
			(unsigned long long)fp);
	}
	struct sl_avro_in in = {head + 10, head + bytes.len, false};
	struct sl_msg msg;
	sl_msg_init(&msg, SL_MSG_NONE);
	int err = own ? read_own(&in, arena, &msg, diags) : sl_msg_read_foreign(&in, schema, arena, &msg, diags);
	if (!err && in.bad)
		err = sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"damaged internal message: it ends too early or a length is wrong");
	else if (!err && in.at != in.end)
		err = sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"damaged internal message: %zu bytes behind its end", sl_avro_left(&in));
	else if (!err && msg.kind == SL_MSG_NONE)
		err = sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"internal message of a kind that this release does not know");
	if (err) {
		sl_msg_clear(&msg);
		return err;
	}
	*ret = msg;
	return 0;
}

static struct sl_header header(const char *name, const char *value)
{
	return (struct sl_header){name, {value, strlen(value)}};
}

int sl_msg_record(const struct sl_msg *msg, struct sl_arena *arena, struct sl_record *rec)
{
	struct sl_buf body;
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, 6);
	const char *id = msg->id ? msg->id : msg->action ? msg->action : sl_msg_kind_text(msg->kind);
	int n = 0;
	sl_buf_init(&body);
	int err = sl_msg_encode(msg, &body);
	if (err) {
		sl_buf_release(&body);
		return err;
	}
	headers[n++] = header("ce_specversion", "1.0");
	headers[n++] = header("ce_id", sl_arena_str(arena, id));
	headers[n++] = header("ce_source", "sluice");
	headers[n++] = header("ce_type", sl_arena_printf(arena, "io.sluice.internal.%s", sl_msg_kind_text(msg->kind)));
	headers[n++] = header("content-type", "application/avro");
	if (msg->traceparent)
		headers[n++] = header("traceparent", sl_arena_str(arena, msg->traceparent));
	rec->value = (struct sl_bytes){sl_arena_strn(arena, body.data, body.len), body.len};
	rec->headers = headers;
	rec->header_count = n;
	sl_buf_release(&body);
	return 0;
}
