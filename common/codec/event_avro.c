/* CloudEvents in Avro (CloudEvents 1.0.2, Avro Event Format): one datum of the CloudEvents project's schema, which
 * proto/cloudevents.avsc repeats: a map of attributes and a union for the data. */
#include "common/base/text.h"
#include "common/codec/avro.h"
#include "common/codec/base64.h"
#include "common/codec/event_io.h"
#include <math.h>
#include <string.h>

struct reader {
	struct sl_avro_in in;
	const struct sl_json_limits *limits;
	struct sl_diags *diags;
	int err;
};

/* Types of the schema's unions, in their order there. */
enum type { T_NULL, T_BOOL, T_INT, T_STRING, T_BYTES, T_DOUBLE, T_MAP_TOP, T_MAP_DATA, T_ARRAY_DATA, T_DATA };
static const enum type attribute_union[] = {T_NULL, T_BOOL, T_INT, T_STRING, T_BYTES};
static const enum type data_union[] = {T_BYTES, T_NULL, T_BOOL, T_MAP_TOP, T_ARRAY_DATA, T_DOUBLE, T_STRING};
static const enum type top_union[] = {T_NULL, T_BOOL, T_DATA, T_DOUBLE, T_STRING};
static const enum type inner_union[] = {T_NULL, T_BOOL, T_MAP_DATA, T_ARRAY_DATA, T_DOUBLE, T_STRING};
#define UNION(list) list, sizeof(list) / sizeof((list)[0])

static jv refuse(struct reader *r, int err, const char *text)
{
	if (!r->err)
		r->err = sl_diag_error(r->diags, err, SL_NOWHERE, NULL, "event: %s", text);
	r->in.bad = true;
	return jv_invalid();
}

static enum type read_branch(struct reader *r, const enum type *list, size_t count)
{
	int64_t branch = sl_avro_long(&r->in);
	if (r->in.bad || branch < 0 || branch >= (int64_t)count) {
		r->in.bad = true;
		return T_NULL;
	}
	return list[branch];
}

static jv read_text(struct reader *r, struct sl_bytes text)
{
	if (!sl_utf8_valid(text.ptr, text.len))
		return refuse(r, SL_EENCODING, "a string is not valid UTF-8");
	return jv_string_sized(text.ptr, (int)text.len);
}

static jv read_bytes(struct sl_bytes bytes)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_base64_encode(bytes.ptr, bytes.len, &text);
	jv v = jv_string_sized(text.data ? text.data : "", (int)text.len);
	sl_buf_release(&text);
	return v;
}

static jv read_value(struct reader *r, enum type type, int depth);

static jv read_map(struct reader *r, const enum type *list, size_t count, int depth)
{
	jv obj = jv_object();
	for (int64_t n; (n = sl_avro_block(&r->in)) > 0;)
		for (; n > 0 && !r->in.bad; n--) {
			jv key = read_text(r, sl_avro_bytes(&r->in));
			if (r->in.bad) {
				jv_free(key);
				break;
			}
			/* a map may repeat a key; for attributes that is an error like two names that differ only in
			 * case */
			if (depth == 0 && jv_object_has(jv_copy(obj), jv_copy(key)))
				refuse(r, SL_ESCHEMA, "an attribute is there twice");
			jv v = read_value(r, list ? read_branch(r, list, count) : T_DATA, depth + 1);
			obj = jv_object_set(obj, key, jv_is_valid(v) ? v : (jv_free(v), jv_null()));
		}
	return obj;
}

static jv read_array(struct reader *r, int depth)
{
	jv arr = jv_array();
	for (int64_t n; (n = sl_avro_block(&r->in)) > 0;)
		for (; n > 0 && !r->in.bad; n--) {
			jv v = read_value(r, T_DATA, depth + 1);
			arr = jv_array_append(arr, jv_is_valid(v) ? v : (jv_free(v), jv_null()));
		}
	return arr;
}

static jv read_value(struct reader *r, enum type type, int depth)
{
	if (depth > r->limits->depth_max)
		return refuse(r, SL_EDEPTH, "data is nested deeper than the limit");
	if (r->in.bad)
		return jv_invalid();
	switch (type) {
	case T_NULL:
		return jv_null();
	case T_BOOL:
		return jv_bool(sl_avro_bool(&r->in));
	case T_INT:
		return jv_number((double)sl_avro_int(&r->in));
	case T_DOUBLE: {
		double d = sl_avro_double(&r->in);
		return isfinite(d) ? jv_number(d)
				   : refuse(r, SL_ENUMBER, "data holds a number that JSON has not (NaN or infinite)");
	}
	case T_STRING:
		return read_text(r, sl_avro_bytes(&r->in));
	case T_BYTES:
		return read_bytes(sl_avro_bytes(&r->in));
	case T_MAP_TOP:
		return read_map(r, UNION(top_union), depth);
	case T_DATA: /* record CloudEventData: its one field `value` is the object */
		return read_map(r, UNION(inner_union), depth);
	case T_MAP_DATA:
		return read_map(r, NULL, 0, depth);
	case T_ARRAY_DATA:
		return read_array(r, depth);
	}
	return jv_invalid();
}

static jv read_data(struct reader *r, jv raw)
{
	enum type type = read_branch(r, UNION(data_union));
	if (r->in.bad)
		return raw;
	if (type == T_NULL)
		return raw; /* no data */
	if (type == T_BYTES) {
		/* JSON in bytes is what the format's own example shows; without a type bytes are bytes. */
		struct sl_bytes bytes = sl_avro_bytes(&r->in);
		const char *content_type = sl_json_str(raw, "datacontenttype");
		if (r->in.bad)
			return raw;
		int err = sl_event_set_payload(
			&raw, bytes, content_type ? content_type : "application/octet-stream", r->limits, r->diags);
		if (err) {
			r->err = err;
			r->in.bad = true;
		}
		return raw;
	}
	jv data = read_value(r, type, 1);
	return jv_object_set(raw, jv_string("data"), jv_is_valid(data) ? data : (jv_free(data), jv_null()));
}

int sl_event_read_avro(struct sl_bytes value, const struct sl_json_limits *limits, jv *ret_raw, struct sl_diags *diags)
{
	const uint8_t *from = value.ptr ? value.ptr : (const uint8_t *)"";
	struct reader r = {.in = {from, from + (value.ptr ? value.len : 0), false}, .limits = limits, .diags = diags};
	jv raw = read_map(&r, UNION(attribute_union), 0);
	if (!r.in.bad && (jv_object_has(jv_copy(raw), jv_string("data")) ||
				 jv_object_has(jv_copy(raw), jv_string("data_base64"))))
		refuse(&r, SL_ESCHEMA, "illegal attribute name `data`");
	if (!r.in.bad)
		raw = read_data(&r, raw);
	if (!r.err && r.in.bad)
		r.err = sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"event: damaged Avro: not a datum of the CloudEvents schema");
	if (!r.err && r.in.at != r.in.end)
		r.err = sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"event: damaged Avro: %zu bytes behind the datum", sl_avro_left(&r.in));
	if (r.err) {
		jv_free(raw);
		return r.err;
	}
	*ret_raw = raw;
	return 0;
}

/* --- writing --- */
static void add_text(struct sl_buf *out, const char *text)
{
	sl_avro_add_bytes(out, text, strlen(text));
}

static void add_attribute(struct sl_buf *out, const char *name, jv value)
{
	add_text(out, name);
	switch (jv_get_kind(value)) {
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
		sl_avro_add_long(out, 1);
		sl_buf_addc(out, jv_get_kind(value) == JV_KIND_TRUE ? 1 : 0);
		return;
	case JV_KIND_NUMBER: {
		double d = jv_number_value(value);
		if (d == floor(d) && fabs(d) <= INT32_MAX) {
			sl_avro_add_long(out, 2);
			sl_avro_add_long(out, (int64_t)d);
			return;
		}
		break;
	}
	default:
		break;
	}
	/* beyond CloudEvents' Integer: its canonical string */
	struct sl_buf text;
	sl_buf_init(&text);
	sl_json_canonical(value, &text);
	sl_avro_add_long(out, 3);
	sl_avro_add_bytes(out, text.data ? text.data : "", text.len);
	sl_buf_release(&text);
}

int sl_event_write_avro(jv ev, struct sl_buf *out)
{
	const char *type = NULL;
	struct sl_buf payload;
	int64_t count = 0;
	sl_buf_init(&payload);
	int err = sl_event_payload(ev, &payload, &type);
	if (err)
		goto out;
	/* the type of bytes must be told; without payload the attribute stays what it was */
	const char *shown = type ? type : sl_event_attr(ev, "datacontenttype");
	struct sl_buf attributes;
	sl_buf_init(&attributes);
	for (int i = jv_object_iter(ev); jv_object_iter_valid(ev, i); i = jv_object_iter_next(ev, i)) {
		jv key = jv_object_iter_key(ev, i), value = jv_object_iter_value(ev, i);
		const char *name = jv_string_value(key);
		if (strcmp(name, "data") != 0 && strcmp(name, "data_base64") != 0 &&
			strcmp(name, "datacontenttype") != 0) {
			add_attribute(&attributes, name, value);
			count++;
		}
		jv_free(key);
		jv_free(value);
	}
	if (shown) {
		add_text(&attributes, "datacontenttype");
		sl_avro_add_long(&attributes, 3);
		add_text(&attributes, shown);
		count++;
	}
	sl_avro_add_long(out, count);
	sl_buf_add(out, attributes.data, attributes.len);
	sl_avro_add_long(out, 0);
	sl_buf_release(&attributes);
	if (type) {
		sl_avro_add_long(out, 0);
		sl_avro_add_bytes(out, payload.data ? payload.data : "", payload.len);
	} else {
		sl_avro_add_long(out, 1);
	}
out:
	sl_buf_release(&payload);
	return err;
}
