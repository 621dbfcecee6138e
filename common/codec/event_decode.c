/* Public events in: CloudEvents Kafka protocol binding 1.0, structured (JSON, Avro) and binary. Everything here comes
 * from anyone: each way of being wrong has its own sentence. */
#include "common/base/text.h"
#include "common/codec/base64.h"
#include "common/codec/event_io.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sl_media_parse(const char *text, size_t len, struct sl_media_type *ret)
{
	size_t n = 0, at = 0;
	ret->utf8 = true;
	while (at < len && isspace((unsigned char)text[at]))
		at++;
	for (; at < len && text[at] != ';'; at++)
		if (!isspace((unsigned char)text[at])) {
			if (n + 1 >= sizeof(ret->name) || (unsigned char)text[at] < 0x21 ||
				(unsigned char)text[at] > 0x7e)
				return false;
			ret->name[n++] = (char)tolower((unsigned char)text[at]);
		}
	ret->name[n] = '\0';
	const char *slash = strchr(ret->name, '/');
	if (!slash || slash == ret->name || !slash[1])
		return false;
	/* RFC 9110 8.3.1: parameters ;name=value, value perhaps in quotes; only charset means something here */
	while (at < len) {
		char param[64];
		size_t p = 0;
		for (at++; at < len && text[at] != ';'; at++)
			if (!isspace((unsigned char)text[at]) && text[at] != '"' && p + 1 < sizeof(param))
				param[p++] = (char)tolower((unsigned char)text[at]);
		param[p] = '\0';
		if (strncmp(param, "charset=", 8) == 0)
			ret->utf8 = strcmp(param + 8, "utf-8") == 0 || strcmp(param + 8, "utf8") == 0 ||
				    strcmp(param + 8, "us-ascii") == 0;
	}
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && strcmp(text + n - m, end) == 0;
}

enum sl_media sl_media_of(const char *content_type)
{
	struct sl_media_type type;
	if (!content_type)
		return SL_MEDIA_NONE;
	if (!sl_media_parse(content_type, strlen(content_type), &type))
		return SL_MEDIA_BYTES;
	if (strcmp(type.name, "application/json") == 0 || strcmp(type.name, "text/json") == 0 ||
		ends_with(type.name, "+json"))
		return SL_MEDIA_JSON;
	if (strncmp(type.name, "text/", 5) == 0 || strcmp(type.name, "application/xml") == 0 ||
		ends_with(type.name, "+xml"))
		return type.utf8 ? SL_MEDIA_TEXT : SL_MEDIA_BYTES;
	return SL_MEDIA_BYTES;
}

int sl_event_json(const char *what, const char *prefix, struct sl_bytes text, const struct sl_json_limits *limits,
	jv *ret, struct sl_diags *diags)
{
	struct sl_diags inner;
	struct sl_buf pointer;
	sl_diags_init(&inner);
	int err = sl_json_parse(text.ptr, text.len, limits, ret, &inner);
	if (!err || !diags)
		goto out;
	const struct sl_diag *d = inner.first;
	const char *kind = err == SL_EPARSE ? "broken JSON: " : "";
	sl_buf_init(&pointer);
	sl_buf_printf(&pointer, "%s%s", prefix, d && d->pointer ? d->pointer : "");
	/* the way to 1 000 levels down tells nobody anything */
	bool show = err != SL_EDEPTH && pointer.len > 0 && pointer.len < 200;
	if (d && d->loc.line)
		sl_diag_error(diags, err, d->loc, pointer.data, "%s: %s%s%s%s (line %d, column %d)", what, kind,
			d->text, show ? " at " : "", show ? pointer.data : "", d->loc.line, d->loc.col);
	else
		sl_diag_error(
			diags, err, SL_NOWHERE, pointer.data, "%s: %s%s", what, kind, d ? d->text : sl_err_text(err));
	sl_buf_release(&pointer);
out:
	sl_diags_release(&inner);
	return err;
}

static jv set_base64(jv ev, struct sl_bytes payload)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_base64_encode(payload.ptr, payload.len, &text);
	ev = jv_object_set(ev, jv_string("data_base64"), jv_string_sized(text.data ? text.data : "", (int)text.len));
	sl_buf_release(&text);
	return ev;
}

int sl_event_set_payload(jv *ev, struct sl_bytes payload, const char *content_type, const struct sl_json_limits *limits,
	struct sl_diags *diags)
{
	jv data;
	struct sl_media_type type;
	switch (sl_media_of(content_type)) {
	case SL_MEDIA_JSON: {
		if (sl_media_parse(content_type, strlen(content_type), &type) && !type.utf8)
			return sl_diag_error(diags, SL_EENCODING, SL_NOWHERE, NULL,
				"data: JSON must be UTF-8, the content type says \"%.80s\"", content_type);
		int err = sl_event_json("data", "/data", payload, limits, &data, diags);
		if (!err)
			*ev = jv_object_set(*ev, jv_string("data"), data);
		return err;
	}
	case SL_MEDIA_TEXT:
		if (!sl_utf8_valid(payload.ptr, payload.len))
			return sl_diag_error(diags, SL_EENCODING, SL_NOWHERE, "/data",
				"data: not valid UTF-8, though its content type is \"%.80s\"", content_type);
		*ev = jv_object_set(*ev, jv_string("data"), jv_string_sized(payload.ptr, (int)payload.len));
		return 0;
	case SL_MEDIA_NONE: {
		/* Nobody said what it is: JSON if it is JSON, else bytes. */
		int err = sl_event_json("data", "/data", payload, limits, &data, NULL);
		if (!err)
			*ev = jv_object_set(*ev, jv_string("data"), data);
		else if (err == SL_EPARSE || err == SL_EENCODING)
			*ev = set_base64(*ev, payload);
		else
			return sl_event_json("data", "/data", payload, limits, &data, diags);
		return 0;
	}
	case SL_MEDIA_BYTES:
		break;
	}
	*ev = set_base64(*ev, payload);
	return 0;
}

static const struct sl_header *find_header(const struct sl_record *rec, const char *name)
{
	for (int i = 0; i < rec->header_count; i++)
		if (strcasecmp(rec->headers[i].name, name) == 0 && rec->headers[i].value.ptr)
			return &rec->headers[i];
	return NULL;
}

static bool is_attribute(const struct sl_header *h)
{
	return strncasecmp(h->name, "ce_", 3) == 0;
}

/* One ce_ header; names are folded by sl_event_check, which also finds two that differ only in case. */
static int add_attribute(jv *raw, const char *name, struct sl_bytes value, struct sl_diags *diags)
{
	size_t len = strlen(name);
	if (!sl_utf8_valid(name, len) || !sl_utf8_valid(value.ptr ? value.ptr : "", value.len))
		return sl_diag_error(diags, SL_EENCODING, SL_NOWHERE, NULL, "attribute `%s` is not valid UTF-8",
			sl_utf8_valid(name, len) ? name : "?");
	if (strcasecmp(name, "data") == 0 || strcasecmp(name, "data_base64") == 0)
		return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL, "illegal attribute name `%s`", name);
	if (jv_object_has(jv_copy(*raw), jv_string(name)))
		return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL, "attribute `%s` is there twice", name);
	*raw = jv_object_set(*raw, jv_string(name), jv_string_sized(value.ptr ? value.ptr : "", (int)value.len));
	return 0;
}

/* Binary mode has no types; the one extension that the engine counts with is an Integer wherever it came from (R9). */
static jv restore_hops(jv raw)
{
	const char *text = sl_json_str(raw, "sluicehops");
	int64_t hops;
	if (text && sl_int_parse(text, &hops) == 0 && hops >= 0 && hops <= INT32_MAX)
		raw = jv_object_set(raw, jv_string("sluicehops"), jv_number((double)hops));
	return raw;
}

static int decode_binary(
	const struct sl_record *rec, const struct sl_json_limits *limits, jv *ret_raw, struct sl_diags *diags)
{
	const struct sl_header *type = find_header(rec, "content-type");
	jv raw = jv_object();
	int err = 0;
	for (int i = 0; i < rec->header_count && !err; i++)
		if (is_attribute(&rec->headers[i]))
			err = add_attribute(&raw, rec->headers[i].name + 3, rec->headers[i].value, diags);
	if (!err && type)
		err = add_attribute(&raw, "datacontenttype", type->value, diags);
	if (!err && rec->value.ptr && rec->value.len > 0)
		err = sl_event_set_payload(&raw, rec->value, sl_json_str(raw, "datacontenttype"), limits, diags);
	if (err)
		jv_free(raw);
	else
		*ret_raw = restore_hops(raw);
	return err;
}

/* SDKs put JSON that they hold as bytes into data_base64 (JSON format 1.0, 3.1.1): bring it back. */
static int unwrap_base64(jv *ev, const struct sl_json_limits *limits, struct sl_diags *diags)
{
	const char *text = sl_json_str(*ev, "data_base64");
	const char *type = sl_event_attr(*ev, "datacontenttype");
	struct sl_buf bytes;
	jv data;
	if (!text || !type || sl_media_of(type) != SL_MEDIA_JSON)
		return 0;
	sl_buf_init(&bytes);
	int err = sl_base64_decode(text, strlen(text), &bytes);
	if (!err)
		err = sl_event_json("data_base64", "/data", sl_buf_bytes(&bytes), limits, &data, NULL);
	if (!err) {
		*ev = jv_object_delete(*ev, jv_string("data_base64"));
		*ev = jv_object_set(*ev, jv_string("data"), data);
	} else if (err == SL_ENUMBER || err == SL_EDEPTH || err == SL_ETOOBIG) {
		err = sl_event_json("data_base64", "/data", sl_buf_bytes(&bytes), limits, &data, diags);
	} else {
		err = 0; /* not JSON after all: stays bytes */
	}
	sl_buf_release(&bytes);
	return err;
}

static int decode_structured(
	struct sl_bytes value, const struct sl_json_limits *limits, jv *ret_raw, struct sl_diags *diags)
{
	if (!value.ptr || value.len == 0)
		return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL, "event: the record has no value");
	return sl_event_json("event", "", value, limits, ret_raw, diags);
}

/* A structured event named by its content type; `name` begins with application/cloudevents. */
static int decode_named(const struct sl_record *rec, const struct sl_media_type *type,
	const struct sl_json_limits *limits, jv *ret_raw, struct sl_diags *diags)
{
	if (strcmp(type->name, "application/cloudevents+json") == 0) {
		if (!type->utf8)
			return sl_diag_error(diags, SL_EENCODING, SL_NOWHERE, NULL,
				"event: the content type's charset is not UTF-8");
		return decode_structured(rec->value, limits, ret_raw, diags);
	}
	if (strcmp(type->name, "application/cloudevents+avro") == 0)
		return sl_event_read_avro(rec->value, limits, ret_raw, diags);
	if (strncmp(type->name, "application/cloudevents-batch", 29) == 0)
		return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"batches of events (\"%s\") are not part of the Kafka binding: send one event a record",
			type->name);
	return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
		"event format \"%s\" is not supported, only application/cloudevents+json and +avro", type->name);
}

static bool looks_like_object(struct sl_bytes value)
{
	const char *at = value.ptr;
	for (size_t i = 0; at && i < value.len; i++)
		if (!isspace((unsigned char)at[i]))
			return at[i] == '{';
	return false;
}

static int decode_any(
	const struct sl_record *rec, const struct sl_json_limits *limits, jv *ret_raw, struct sl_diags *diags)
{
	const struct sl_header *content = find_header(rec, "content-type");
	struct sl_media_type type;
	bool parsed = content && sl_media_parse(content->value.ptr, content->value.len, &type);
	if (parsed && strncmp(type.name, "application/cloudevents", 23) == 0)
		return decode_named(rec, &type, limits, ret_raw, diags);
	for (int i = 0; i < rec->header_count; i++)
		if (is_attribute(&rec->headers[i]))
			return decode_binary(rec, limits, ret_raw, diags);
	if (content) {
		int len = content->value.len > 80 ? 80 : (int)content->value.len;
		bool text = sl_utf8_valid(content->value.ptr, (size_t)len);
		return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
			"not a CloudEvent: content type \"%.*s\" without ce_ headers (structured events have "
			"application/cloudevents+json)",
			text ? len : 1, text ? (const char *)content->value.ptr : "?");
	}
	if (looks_like_object(rec->value))
		return decode_structured(rec->value, limits, ret_raw, diags);
	return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL,
		"not a CloudEvent: neither a content-type nor ce_ headers, and the value is no JSON object");
}

int sl_event_decode(
	const struct sl_record *rec, const struct sl_json_limits *limits, jv *ret_ev, struct sl_diags *diags)
{
	size_t size = rec->value.len;
	jv raw = jv_null(), ev;
	if (!limits)
		limits = &sl_json_default;
	for (int i = 0; i < rec->header_count; i++)
		size += rec->headers[i].value.len;
	if (limits->bytes_max && size > limits->bytes_max)
		return sl_diag_error(diags, SL_ETOOBIG, SL_NOWHERE, NULL,
			"event: %zu bytes are more than the limit of %zu", size, limits->bytes_max);
	int err = decode_any(rec, limits, &raw, diags);
	if (!err)
		err = sl_event_check(raw, &ev, diags);
	if (err)
		return err;
	err = unwrap_base64(&ev, limits, diags);
	if (err)
		jv_free(ev);
	else
		*ret_ev = ev;
	return err;
}
