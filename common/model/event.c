/* CloudEvents: the check that every event passes on entry, and readers. */
#include "common/model/event.h"
#include "common/base/text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN 256 /* of an attribute, with the end */

static const char *const required[] = {"specversion", "id", "source", "type"};
/* CloudEvents 1.0, Optional Attributes: "MUST be a non-empty string" where present. */
static const char *const texts[] = {"datacontenttype", "dataschema", "subject", "time"};

static bool one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

static bool is_payload(const char *name)
{
	return strcmp(name, "data") == 0 || strcmp(name, "data_base64") == 0;
}

static bool legal_name(const char *name, size_t len)
{
	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9'))
			return false;
	return true;
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return true;
	return false;
}

static bool base64_valid(const char *text, size_t len)
{
	size_t pad = 0;
	if (len % 4)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool alnum = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (c == '=')
			pad++;
		else if (pad || !(alnum || c == '+' || c == '/'))
			return false;
	}
	return pad <= 2;
}

static size_t jv_len(jv text)
{
	return (size_t)jv_string_length_bytes(jv_copy(text));
}

static const char *pointer_to(const char *name, char buf[static 300])
{
	snprintf(buf, 300, "/%.290s", name);
	return buf;
}

/* One attribute's value; borrows. CloudEvents 1.0, Type System: Boolean, Integer, and strings without control
 * characters. */
static int check_value(const char *name, jv value, struct sl_diags *diags)
{
	jv_kind kind = jv_get_kind(value);
	char pointer[300];
	bool must_text = one_of(name, required, 4) || one_of(name, texts, 4);
	if (kind == JV_KIND_STRING) {
		const char *text = jv_string_value(value);
		size_t len = jv_len(value);
		int64_t ms;
		if (len == 0 && must_text)
			return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, pointer_to(name, pointer), "attribute `%s` is empty", name);
		if (has_control(text, len))
			return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, pointer_to(name, pointer),
				"attribute `%s` holds a control character", name);
		if (strcmp(name, "specversion") == 0 && strcmp(text, "1.0") != 0)
			return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, pointer_to(name, pointer),
				"specversion \"%.40s\" is not supported, only \"1.0\"", text);
		if (strcmp(name, "time") == 0 && sl_time_parse(text, &ms) != 0)
			return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, pointer_to(name, pointer),
				"attribute `time` is not an RFC 3339 time: \"%.60s\"", text);
		return 0;
	}
	if (must_text)
		return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, pointer_to(name, pointer), "attribute `%s` must be a string, not %s",
			name, jv_kind_name(kind));
	if (kind != JV_KIND_NUMBER && kind != JV_KIND_TRUE && kind != JV_KIND_FALSE)
		return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, pointer_to(name, pointer),
			"attribute `%s` must be a string, number or boolean, not %s", name, jv_kind_name(kind));
	return 0;
}

/* An Integer (CloudEvents 1.0, Type System) has no negative zero: 0 and -0 must make one correlation key. */
static bool negative_zero(jv value)
{
	return jv_get_kind(value) == JV_KIND_NUMBER && jv_number_value(value) == 0 && signbit(jv_number_value(value));
}

/* Moves one member of the raw object over; takes key and value. A75: names are folded to lower case. */
static int fold(jv *ev, jv key, jv value, struct sl_diags *diags)
{
	size_t len = jv_len(key);
	char name[NAME_MAX_LEN];
	int err = 0;
	if (len >= sizeof(name)) {
		err = sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL, "attribute name of %zu bytes", len);
		goto out;
	}
	memcpy(name, jv_string_value(key), len + 1);
	sl_lower(name);
	if (strlen(name) != len || (!is_payload(name) && !legal_name(name, len))) {
		err = sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL,
			"illegal attribute name `%s`: only letters and digits are allowed", name);
		goto out;
	}
	if (jv_object_has(jv_copy(*ev), jv_string(name))) {
		err = sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL,
			"attribute `%s` is there twice, in names that differ only in case", name);
		goto out;
	}
	/* CloudEvents JSON format: an unset attribute may be written as null; data may be null. */
	if (jv_get_kind(value) == JV_KIND_NULL && strcmp(name, "data") != 0)
		goto out;
	if (!is_payload(name)) {
		err = check_value(name, value, diags);
		if (negative_zero(value))
			value = jv_number(0);
	}
	if (!err) {
		*ev = jv_object_set(*ev, jv_string(name), value);
		value = jv_invalid();
	}
out:
	jv_free(key);
	jv_free(value);
	return err;
}

/* True: folding would change nothing and find nothing wrong, as with nearly every event. Borrows. */
static bool is_folded(jv raw)
{
	bool same = true;
	jv_object_foreach(raw, key, value)
	{
		const char *name = jv_string_value(key);
		size_t len = jv_len(key);
		bool payload = is_payload(name) && strlen(name) == len;
		if (jv_get_kind(value) == JV_KIND_NULL)
			same = same && payload && strcmp(name, "data") == 0;
		else
			same = same && len < NAME_MAX_LEN &&
			       (payload || (legal_name(name, len) && check_value(name, value, NULL) == 0 && !negative_zero(value)));
		jv_free(key);
		jv_free(value);
	}
	return same;
}

static int check_whole(jv ev, struct sl_diags *diags)
{
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
		if (!jv_object_has(jv_copy(ev), jv_string(required[i])))
			return sl_diag_error(
				diags, SL_ESCHEMA, SL_NOWHERE, NULL, "required attribute `%s` is missing", required[i]);
	jv bytes = sl_json_get(ev, "data_base64");
	if (!jv_is_valid(bytes)) {
		jv_free(bytes);
		return 0;
	}
	int err = 0;
	if (jv_object_has(jv_copy(ev), jv_string("data")))
		err = sl_diag_error(
			diags, SL_ESCHEMA, SL_NOWHERE, "/data_base64", "both `data` and `data_base64` are there");
	else if (jv_get_kind(bytes) != JV_KIND_STRING || !base64_valid(jv_string_value(bytes), jv_len(bytes)))
		err = sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, "/data_base64", "`data_base64` is not base64 text");
	jv_free(bytes);
	return err;
}

int sl_event_check(jv raw, jv *ret_ev, struct sl_diags *diags)
{
	int err = 0;
	if (jv_get_kind(raw) != JV_KIND_OBJECT) {
		err = sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, "", "a CloudEvent is a JSON object, not %s",
			jv_kind_name(jv_get_kind(raw)));
		jv_free(raw);
		return err;
	}
	jv ev = raw;
	if (!is_folded(raw)) {
		ev = jv_object();
		for (int i = jv_object_iter(raw); !err && jv_object_iter_valid(raw, i); i = jv_object_iter_next(raw, i))
			err = fold(&ev, jv_object_iter_key(raw, i), jv_object_iter_value(raw, i), diags);
		jv_free(raw);
	}
	if (!err)
		err = check_whole(ev, diags);
	if (err) {
		jv_free(ev);
		return err;
	}
	*ret_ev = ev;
	return 0;
}

const char *sl_event_attr(jv ev, const char *name)
{
	return is_payload(name) ? NULL : sl_json_str(ev, name);
}

bool sl_event_canonical(jv ev, const char *name, struct sl_buf *out)
{
	char lower[256];
	if (strlen(name) >= sizeof(lower))
		return false;
	memcpy(lower, name, strlen(name) + 1);
	sl_lower(lower);
	if (is_payload(lower))
		return false;
	jv value = sl_json_get(ev, lower);
	bool found = jv_is_valid(value) && sl_json_canonical(value, out);
	jv_free(value);
	return found;
}

jv sl_event_data(jv ev)
{
	jv data = sl_json_get(ev, "data");
	if (!jv_is_valid(data)) {
		jv_free(data);
		data = sl_json_get(ev, "data_base64");
	}
	if (!jv_is_valid(data)) {
		jv_free(data);
		data = jv_null();
	}
	return data;
}

void sl_event_identity(jv ev, struct sl_buf *out)
{
	const char *source = sl_event_attr(ev, "source"), *id = sl_event_attr(ev, "id");
	sl_buf_adds(out, source ? source : "");
	sl_buf_addc(out, '\0');
	sl_buf_adds(out, id ? id : "");
}
