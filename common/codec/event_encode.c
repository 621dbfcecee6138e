/* Public events out: CloudEvents Kafka protocol binding 1.0. */
#include "common/codec/base64.h"
#include "common/codec/event_io.h"
#include <string.h>

int sl_event_payload(jv ev, struct sl_buf *out, const char **ret_type)
{
	const char *type = sl_event_attr(ev, "datacontenttype");
	const char *base64 = sl_json_str(ev, "data_base64");
	if (base64) {
		/* Without a type a reader would have to guess. */
		*ret_type = type ? type : "application/octet-stream";
		return sl_base64_decode(base64, strlen(base64), out) ? SL_ESCHEMA : 0;
	}
	jv data = sl_json_get(ev, "data");
	if (!jv_is_valid(data)) {
		*ret_type = NULL;
	} else if (jv_get_kind(data) == JV_KIND_STRING && type && sl_media_of(type) != SL_MEDIA_JSON) {
		sl_buf_add(out, jv_string_value(data), (size_t)jv_string_length_bytes(jv_copy(data)));
		*ret_type = type;
	} else {
		/* A value that is not text is written as JSON, whatever its attribute claims. */
		sl_json_write(out, data);
		*ret_type = type && sl_media_of(type) == SL_MEDIA_JSON ? type : "application/json";
	}
	jv_free(data);
	return 0;
}

static struct sl_bytes keep(struct sl_arena *arena, const struct sl_buf *buf)
{
	return (struct sl_bytes){sl_arena_strn(arena, buf->data ? buf->data : "", buf->len), buf->len};
}

static struct sl_header content_type(struct sl_arena *arena, const char *type)
{
	return (struct sl_header){"content-type", {sl_arena_str(arena, type), strlen(type)}};
}

static int encode_binary(jv ev, struct sl_arena *arena, struct sl_record *rec)
{
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, jv_object_length(jv_copy(ev)) + 1);
	const char *type = NULL;
	struct sl_buf out;
	int n = 0;
	sl_buf_init(&out);
	int err = sl_event_payload(ev, &out, &type);
	if (err) {
		sl_buf_release(&out);
		return err;
	}
	rec->value = type ? keep(arena, &out) : (struct sl_bytes){NULL, 0};
	if (!type)
		type = sl_event_attr(ev, "datacontenttype");
	for (int i = jv_object_iter(ev); jv_object_iter_valid(ev, i); i = jv_object_iter_next(ev, i)) {
		jv key = jv_object_iter_key(ev, i), value = jv_object_iter_value(ev, i);
		const char *name = jv_string_value(key);
		sl_buf_clear(&out);
		if (strcmp(name, "data") != 0 && strcmp(name, "data_base64") != 0 &&
			strcmp(name, "datacontenttype") != 0 && sl_json_canonical(value, &out))
			headers[n++] = (struct sl_header){sl_arena_printf(arena, "ce_%s", name), keep(arena, &out)};
		jv_free(key);
		jv_free(value);
	}
	if (type)
		headers[n++] = content_type(arena, type);
	rec->headers = headers;
	rec->header_count = n;
	sl_buf_release(&out);
	return 0;
}

int sl_event_encode(jv ev, enum sl_event_mode mode, struct sl_arena *arena, struct sl_record *rec)
{
	struct sl_buf out;
	int err = 0;
	if (jv_get_kind(ev) != JV_KIND_OBJECT)
		return SL_ESCHEMA;
	if (mode == SL_EVENT_BINARY)
		return encode_binary(ev, arena, rec);
	sl_buf_init(&out);
	if (mode == SL_EVENT_AVRO)
		err = sl_event_write_avro(ev, &out);
	else
		sl_json_write(&out, ev);
	if (!err) {
		struct sl_header *header = SL_NEW(arena, struct sl_header);
		*header = content_type(arena, mode == SL_EVENT_AVRO ? "application/cloudevents+avro"
								    : "application/cloudevents+json; charset=UTF-8");
		rec->value = keep(arena, &out);
		rec->headers = header;
		rec->header_count = 1;
	}
	sl_buf_release(&out);
	return err;
}
