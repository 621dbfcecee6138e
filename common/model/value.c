/* JSON values: a strict parser that builds jv at once, a writer, equality, merging, readers. */
#include "common/model/value.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/text.h"

const struct sl_json_limits sl_json_default = {.bytes_max = 0, .depth_max = 200, .round_integers = false};

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

struct parser {
	const char *start, *at, *end;
	const struct sl_json_limits *limits;
	struct sl_diags *diags;
	int err, depth;
	struct sl_buf pointer, text;
};

static struct sl_loc loc_of(const struct parser *p, const char *at)
{
	struct sl_loc loc = {.line = 1, .col = 1};
	for (const char *s = p->start; s < at; s++) {
		if (*s == '\n') {
			loc.line++;
			loc.col = 1;
		} else if (((unsigned char)*s & 0xc0) != 0x80) {
			loc.col++;
		}
	}
	return loc;
}

static jv fail(struct parser *p, int err, const char *at, const char *text)
{
	if (!p->err)
		p->err = sl_diag_error(p->diags, err, loc_of(p, at), p->pointer.len ? p->pointer.data : "", "%s", text);
	return jv_invalid();
}

static void blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
}

static int hex4(const char *s)
{
	int v = 0;
	for (int i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)s[i]))
			return -1;
		v = v * 16 + (isdigit((unsigned char)s[i]) ? s[i] - '0' : (s[i] | 32) - 'a' + 10);
	}
	return v;
}

static void add_utf8(struct sl_buf *out, int c)
{
	char b[4];
	size_t n = 0;
	if (c < 0x80) {
		b[n++] = (char)c;
	} else if (c < 0x800) {
		b[n++] = (char)(0xc0 | c >> 6);
		b[n++] = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		b[n++] = (char)(0xe0 | c >> 12);
		b[n++] = (char)(0x80 | (c >> 6 & 63));
		b[n++] = (char)(0x80 | (c & 63));
	} else {
		b[n++] = (char)(0xf0 | c >> 18);
		b[n++] = (char)(0x80 | (c >> 12 & 63));
		b[n++] = (char)(0x80 | (c >> 6 & 63));
		b[n++] = (char)(0x80 | (c & 63));
	}
	sl_buf_add(out, b, n);
}

/* One escape behind the backslash; false: not JSON. A lone surrogate becomes U+FFFD, as libjq does. */
static bool escape(struct parser *p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (p->at >= p->end)
		return false;
	char c = *p->at++;
	const char *simple = c ? strchr(from, c) : NULL;
	if (simple) {
		sl_buf_addc(&p->text, to[simple - from]);
		return true;
	}
	if (c != 'u' || p->end - p->at < 4)
		return false;
	int code = hex4(p->at);
	if (code < 0)
		return false;
	p->at += 4;
	if (code >= 0xd800 && code < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
		int low = hex4(p->at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			p->at += 6;
		}
	}
	add_utf8(&p->text, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
	return true;
}

static jv string(struct parser *p)
{
	const char *open = p->at++, *plain = p->at;
	bool escaped = false;
	for (;; p->at++) {
		if (p->at >= p->end)
			return fail(p, SL_EPARSE, open, "string without end");
		unsigned char c = (unsigned char)*p->at;
		if (c == '"')
			break;
		if (c < 0x20)
			return fail(p, SL_EPARSE, p->at, "control character in a string");
		if (c != '\\')
			continue;
		if (!escaped)
			sl_buf_clear(&p->text);
		escaped = true;
		sl_buf_add(&p->text, plain, (size_t)(p->at - plain));
		p->at++;
		if (!escape(p))
			return fail(p, SL_EPARSE, p->at - 1, "invalid escape in a string");
		plain = p->at--;
	}
	const char *s = plain;
	size_t len = (size_t)(p->at - plain);
	if (escaped) {
		sl_buf_add(&p->text, plain, len);
		s = p->text.data;
		len = p->text.len;
	}
	p->at++;
	return jv_string_sized(s, (int)len);
}

static jv number(struct parser *p)
{
	const char *s = p->at, *d;
	bool integer = true;
	if (s < p->end && *s == '-')
		s++;
	d = s;
	while (s < p->end && isdigit((unsigned char)*s))
		s++;
	if (s == d || (*d == '0' && s - d > 1))
		return fail(p, SL_EPARSE, p->at, "not a JSON value");
	if (s < p->end && *s == '.') {
		integer = false;
		d = ++s;
		while (s < p->end && isdigit((unsigned char)*s))
			s++;
		if (s == d)
			return fail(p, SL_EPARSE, p->at, "number without digits behind the point");
	}
	if (s < p->end && (*s == 'e' || *s == 'E')) {
		integer = false;
		s++;
		if (s < p->end && (*s == '+' || *s == '-'))
			s++;
		d = s;
		while (s < p->end && isdigit((unsigned char)*s))
			s++;
		if (s == d)
			return fail(p, SL_EPARSE, p->at, "number without digits in the exponent");
	}
	char small[64];
	size_t len = (size_t)(s - p->at);
	char *copy = len < sizeof(small) ? small : malloc(len + 1);
	if (!copy)
		sl_bug(__FILE__, __LINE__, "out of memory");
	memcpy(copy, p->at, len);
	copy[len] = '\0';
	double v = strtod(copy, NULL);
	if (copy != small)
		free(copy);
	if (!isfinite(v))
		return fail(p, SL_ENUMBER, p->at, "number beyond the range of a double");
	if (integer && fabs(v) > EXACT_MAX && !p->limits->round_integers)
		return fail(p, SL_ENUMBER, p->at, "integer beyond 2^53: send it as a string");
	if (integer && fabs(v) == EXACT_MAX && !p->limits->round_integers && copy == small &&
		strcmp(small[0] == '-' ? small + 1 : small, "9007199254740992") != 0)
		return fail(p, SL_ENUMBER, p->at, "integer beyond 2^53: send it as a string");
	p->at = s;
	return jv_number(v);
}

static jv value(struct parser *p);

static size_t push(struct parser *p, const char *name, size_t len)
{
	size_t before = p->pointer.len;
	sl_buf_addc(&p->pointer, '/');
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '~')
			sl_buf_adds(&p->pointer, "~0");
		else if (name[i] == '/')
			sl_buf_adds(&p->pointer, "~1");
		else
			sl_buf_addc(&p->pointer, name[i]);
	}
	return before;
}

static void pop(struct parser *p, size_t before)
{
	if (p->err)
		return; /* the diagnostic's pointer stays as it was */
	p->pointer.len = before;
	p->pointer.data[before] = '\0';
}

static jv object(struct parser *p)
{
	jv obj = jv_object();
	p->at++;
	blanks(p);
	if (p->at < p->end && *p->at == '}') {
		p->at++;
		return obj;
	}
	for (;;) {
		blanks(p);
		if (p->at >= p->end || *p->at != '"') {
			jv_free(obj);
			return fail(p, SL_EPARSE, p->at, "expected a member name");
		}
		jv name = string(p);
		blanks(p);
		if (!jv_is_valid(name) || p->at >= p->end || *p->at != ':') {
			jv_free(obj);
			jv_free(name);
			return fail(p, SL_EPARSE, p->at, "expected ':' behind a member name");
		}
		p->at++;
		size_t before = push(p, jv_string_value(name), (size_t)jv_string_length_bytes(jv_copy(name)));
		jv v = value(p);
		pop(p, before);
		if (p->err) {
			jv_free(obj);
			jv_free(name);
			jv_free(v);
			return jv_invalid();
		}
		obj = jv_object_set(obj, name, v);
		blanks(p);
		if (p->at < p->end && *p->at == ',') {
			p->at++;
			continue;
		}
		if (p->at < p->end && *p->at == '}') {
			p->at++;
			return obj;
		}
		jv_free(obj);
		return fail(p, SL_EPARSE, p->at, "expected ',' or '}' in an object");
	}
}

static jv array(struct parser *p)
{
	jv arr = jv_array();
	p->at++;
	blanks(p);
	if (p->at < p->end && *p->at == ']') {
		p->at++;
		return arr;
	}
	for (int i = 0;; i++) {
		char index[16];
		int n = snprintf(index, sizeof(index), "%d", i);
		size_t before = push(p, index, (size_t)n);
		jv v = value(p);
		pop(p, before);
		if (p->err) {
			jv_free(arr);
			jv_free(v);
			return jv_invalid();
		}
		arr = jv_array_append(arr, v);
		blanks(p);
		if (p->at < p->end && *p->at == ',') {
			p->at++;
			continue;
		}
		if (p->at < p->end && *p->at == ']') {
			p->at++;
			return arr;
		}
		jv_free(arr);
		return fail(p, SL_EPARSE, p->at, "expected ',' or ']' in an array");
	}
}

static bool word(struct parser *p, const char *text)
{
	size_t n = strlen(text);
	if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0)
		return false;
	p->at += n;
	return true;
}

static jv value(struct parser *p)
{
	jv v;
	blanks(p);
	if (p->at >= p->end)
		return fail(p, SL_EPARSE, p->at, "unexpected end of the text");
	switch (*p->at) {
	case '{':
	case '[':
		if (p->depth >= p->limits->depth_max)
			return fail(p, SL_EDEPTH, p->at, "nested deeper than the limit");
		p->depth++;
		v = *p->at == '{' ? object(p) : array(p);
		p->depth--;
		return v;
	case '"':
		return string(p);
	case 't':
		return word(p, "true") ? jv_true() : fail(p, SL_EPARSE, p->at, "not a JSON value");
	case 'f':
		return word(p, "false") ? jv_false() : fail(p, SL_EPARSE, p->at, "not a JSON value");
	case 'n':
		return word(p, "null") ? jv_null() : fail(p, SL_EPARSE, p->at, "not a JSON value");
	default:
		return number(p);
	}
}

int sl_json_parse(const char *text, size_t len, const struct sl_json_limits *limits, jv *ret, struct sl_diags *diags)
{
	struct parser p = {.start = text, .at = text, .end = text + len, .diags = diags};
	p.limits = limits ? limits : &sl_json_default;
	if ((p.limits->bytes_max && len > p.limits->bytes_max) || len > (size_t)1 << 30)
		return sl_diag_error(diags, SL_ETOOBIG, SL_NOWHERE, NULL, "%zu bytes are more than the limit of %zu", len,
			p.limits->bytes_max);
	if (!sl_utf8_valid(text, len))
		return sl_diag_error(diags, SL_EENCODING, SL_NOWHERE, NULL, "not valid UTF-8");
	sl_buf_init(&p.pointer);
	sl_buf_init(&p.text);
	jv v = value(&p);
	if (!p.err) {
		blanks(&p);
		if (p.at != p.end)
			fail(&p, SL_EPARSE, p.at, "text behind the JSON value");
	}
	sl_buf_release(&p.pointer);
	sl_buf_release(&p.text);
	if (p.err) {
		jv_free(v);
		return p.err;
	}
	*ret = v;
	return 0;
}

static void write_number(struct sl_buf *out, double d)
{
	char text[40];
	if (isnan(d)) {
		sl_buf_adds(out, "null"); /* as libjq does */
		return;
	}
	if (isinf(d))
		d = d > 0 ? 1.7976931348623157e308 : -1.7976931348623157e308;
	if (d == floor(d) && fabs(d) <= EXACT_MAX) {
		int64_t v = (int64_t)d;
		if (v == 0 && signbit(d)) {
			sl_buf_adds(out, "-0");
			return;
		}
		uint64_t u = v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v;
		char *end = text + sizeof(text), *at = end;
		do
			*--at = (char)('0' + u % 10);
		while (u /= 10);
		if (v < 0)
			*--at = '-';
		sl_buf_add(out, at, (size_t)(end - at));
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	sl_buf_adds(out, text);
	/* bare digits beyond 2^53 would be refused where they come in again (A167) */
	if (!text[strcspn(text, ".e")])
		sl_buf_adds(out, ".0");
}

void sl_json_write(struct sl_buf *out, jv v)
{
	bool first = true;
	switch (jv_get_kind(v)) {
	case JV_KIND_INVALID:
	case JV_KIND_NULL:
		sl_buf_add(out, "null", 4);
		break;
	case JV_KIND_FALSE:
		sl_buf_add(out, "false", 5);
		break;
	case JV_KIND_TRUE:
		sl_buf_add(out, "true", 4);
		break;
	case JV_KIND_NUMBER:
		write_number(out, jv_number_value(v));
		break;
	case JV_KIND_STRING:
		sl_buf_add_json_str(out, jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)));
		break;
	case JV_KIND_ARRAY:
		sl_buf_addc(out, '[');
		jv_array_foreach(v, i, item)
		{
			if (!first)
				sl_buf_addc(out, ',');
			first = false;
			sl_json_write(out, item);
			jv_free(item);
		}
		sl_buf_addc(out, ']');
		break;
	case JV_KIND_OBJECT:
		sl_buf_addc(out, '{');
		jv_object_foreach(v, name, member)
		{
			if (!first)
				sl_buf_addc(out, ',');
			first = false;
			sl_buf_add_json_str(out, jv_string_value(name), (size_t)jv_string_length_bytes(jv_copy(name)));
			sl_buf_addc(out, ':');
			sl_json_write(out, member);
			jv_free(name);
			jv_free(member);
		}
		sl_buf_addc(out, '}');
		break;
	}
}

char *sl_json_text(jv v)
{
	struct sl_buf out;
	sl_buf_init(&out);
	sl_json_write(&out, v);
	return sl_buf_steal(&out);
}

bool sl_json_equal(jv a, jv b)
{
	if (!jv_is_valid(a) || !jv_is_valid(b))
		return !jv_is_valid(a) && !jv_is_valid(b);
	return jv_equal(jv_copy(a), jv_copy(b));
}

int sl_json_depth(jv v, int max)
{
	int deepest = 0;
	jv_kind kind = jv_get_kind(v);
	if (max <= 0 || (kind != JV_KIND_ARRAY && kind != JV_KIND_OBJECT))
		return 0;
	if (kind == JV_KIND_ARRAY) {
		jv_array_foreach(v, i, item)
		{
			int d = deepest < max - 1 ? sl_json_depth(item, max - 1) : 0;
			deepest = d > deepest ? d : deepest;
			jv_free(item);
		}
	} else {
		jv_object_foreach(v, name, member)
		{
			int d = deepest < max - 1 ? sl_json_depth(member, max - 1) : 0;
			deepest = d > deepest ? d : deepest;
			jv_free(name);
			jv_free(member);
		}
	}
	return deepest + 1;
}

static bool contains(jv array_value, int upto, jv item)
{
	for (int i = 0; i < upto; i++) {
		jv other = jv_array_get(jv_copy(array_value), i);
		bool same = jv_equal(other, jv_copy(item));
		if (same)
			return true;
	}
	return false;
}

jv sl_json_merge(jv into, jv from)
{
	if (!jv_is_valid(from)) {
		jv_free(from);
		return into;
	}
	if (jv_get_kind(into) == JV_KIND_ARRAY && jv_get_kind(from) == JV_KIND_ARRAY) {
		/* A05: keep what is there as it is, append what is not yet contained */
		jv_array_foreach(from, i, item)
		{
			if (contains(into, jv_array_length(jv_copy(into)), item))
				jv_free(item);
			else
				into = jv_array_append(into, item);
		}
		jv_free(from);
		return into;
	}
	if (jv_get_kind(into) != JV_KIND_OBJECT || jv_get_kind(from) != JV_KIND_OBJECT) {
		jv_free(into); /* A06 */
		return from;
	}
	jv_object_foreach(from, name, member)
	{
		jv_kind kind = jv_get_kind(member);
		if (kind == JV_KIND_OBJECT || kind == JV_KIND_ARRAY) { /* A62: recursively */
			jv old = jv_object_get(jv_copy(into), jv_copy(name));
			if (jv_get_kind(old) == kind) {
				into = jv_object_set(into, jv_copy(name), jv_null()); /* so that `old` is not shared */
				member = sl_json_merge(old, member);
			} else {
				jv_free(old);
			}
		}
		into = jv_object_set(into, name, member);
	}
	jv_free(from);
	return into;
}

jv sl_json_changes(jv before, jv after)
{
	if (jv_get_kind(before) != JV_KIND_OBJECT || jv_get_kind(after) != JV_KIND_OBJECT) {
		bool same = sl_json_equal(before, after);
		jv_free(before);
		if (!same)
			return after;
		jv_free(after);
		return jv_invalid();
	}
	jv changes = jv_invalid();
	jv_object_foreach(after, name, member)
	{
		jv old = jv_object_get(jv_copy(before), jv_copy(name));
		jv change;
		if (jv_identical(jv_copy(old), jv_copy(member))) { /* the usual case: shared, unchanged */
			jv_free(old);
			jv_free(member);
			change = jv_invalid();
		} else if (!jv_is_valid(old)) {
			jv_free(old);
			change = member;
		} else {
			change = sl_json_changes(old, member);
		}
		if (!jv_is_valid(change)) {
			jv_free(change);
			jv_free(name);
			continue;
		}
		if (!jv_is_valid(changes)) {
			jv_free(changes);
			changes = jv_object();
		}
		changes = jv_object_set(changes, name, change);
	}
	jv_free(before);
	jv_free(after);
	return changes;
}

jv sl_json_get(jv obj, const char *name)
{
	if (jv_get_kind(obj) != JV_KIND_OBJECT)
		return jv_invalid();
	return jv_object_get(jv_copy(obj), jv_string(name));
}

const char *sl_json_str(jv obj, const char *name)
{
	jv v = sl_json_get(obj, name);
	const char *text = jv_get_kind(v) == JV_KIND_STRING ? jv_string_value(v) : NULL;
	jv_free(v); /* obj keeps it alive */
	return text;
}

int64_t sl_json_int(jv obj, const char *name, int64_t otherwise)
{
	jv v = sl_json_get(obj, name);
	int64_t n = jv_get_kind(v) == JV_KIND_NUMBER && fabs(jv_number_value(v)) <= EXACT_MAX
			    ? (int64_t)jv_number_value(v)
			    : otherwise;
	jv_free(v);
	return n;
}

bool sl_json_bool(jv obj, const char *name, bool otherwise)
{
	jv v = sl_json_get(obj, name);
	jv_kind kind = jv_get_kind(v);
	jv_free(v);
	return kind == JV_KIND_TRUE ? true : kind == JV_KIND_FALSE ? false : otherwise;
}

jv sl_json_at(jv v, const char *pointer)
{
	struct sl_buf name;
	jv at = jv_copy(v);
	sl_buf_init(&name);
	while (*pointer == '/') {
		sl_buf_clear(&name);
		for (pointer++; *pointer && *pointer != '/'; pointer++) {
			if (*pointer == '~' && (pointer[1] == '0' || pointer[1] == '1'))
				sl_buf_addc(&name, *++pointer == '0' ? '~' : '/');
			else
				sl_buf_addc(&name, *pointer);
		}
		int64_t index;
		const char *text = name.data ? name.data : "";
		if (jv_get_kind(at) == JV_KIND_OBJECT) {
			at = jv_object_get(at, jv_string(text));
		} else if (jv_get_kind(at) == JV_KIND_ARRAY && sl_int_parse(text, &index) == 0 && index >= 0 &&
			   index < jv_array_length(jv_copy(at))) {
			at = jv_array_get(at, (int)index);
		} else {
			jv_free(at);
			at = jv_invalid();
		}
	}
	sl_buf_release(&name);
	return at;
}

jv sl_json_set(jv obj, const char *name, jv v)
{
	return jv_object_set(obj, jv_string(name), v);
}

bool sl_json_canonical(jv v, struct sl_buf *out)
{
	switch (jv_get_kind(v)) {
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
	case JV_KIND_NUMBER:
		sl_json_write(out, v);
		return true;
	case JV_KIND_STRING:
		sl_buf_add(out, jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)));
		return true;
	default:
		return false;
	}
}
