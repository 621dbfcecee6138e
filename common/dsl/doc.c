/* Reads YAML 1.2 (core schema) and JSON into a jv, and remembers where every value stood. The tree of doc_tree.c
 * becomes the value: aliases are counted while they grow it, and every finding of this second pass (duplicate keys, big
 * integers, merge keys) is reported, not only the first. */
#include "common/dsl/doc.h"
#include "common/base/map.h"
#include "common/base/text.h"
#include "common/dsl/doc_tree.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct place {
	struct sl_loc value, key;
};
struct mount {
	const char *pointer, *inner;
	struct sl_doc *sub;
	struct mount *next;
};
struct sl_doc {
	struct sl_arena arena;
	const char *file;
	jv value;
	struct sl_map places; /* pointer -> struct place, in the arena */
	struct mount *mounts;
};

struct reader {
	struct sl_doc *doc;
	struct sl_diags *diags;
	int err; /* first error */
	struct sl_buf pointer;
	int inside, aliased; /* aliases open now; nodes that came through aliases */
	bool gave_up;
};

static int fail(struct reader *r, int err, struct sl_loc loc, const char *pointer, const char *text)
{
	sl_diag_error(r->diags, err, loc, pointer, "%s", text);
	if (!r->err)
		r->err = err;
	return err;
}

/* --- tree to value --- */

static bool one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

static size_t digits_of(const char *s, const char *set)
{
	return strspn(s, set);
}

/* YAML 1.2 core schema, section 10.3.2: [-+]? [0-9]+ | 0o [0-7]+ | 0x [0-9a-fA-F]+ */
static bool is_integer(const char *s, int *ret_base)
{
	*ret_base = s[0] == '0' && s[1] == 'o' ? 8 : s[0] == '0' && s[1] == 'x' ? 16 : 10;
	if (*ret_base == 10)
		s += *s == '-' || *s == '+';
	else
		s += 2;
	size_t n = digits_of(s, *ret_base == 8	  ? "01234567"
				: *ret_base == 16 ? "0123456789abcdefABCDEF"
						  : "0123456789");
	return n && !s[n];
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *s)
{
	s += *s == '-' || *s == '+';
	size_t n = digits_of(s, "0123456789"), m = 0;
	s += n;
	if (*s == '.')
		m = digits_of(++s, "0123456789");
	s += m;
	if (!n && !m)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		n = digits_of(s, "0123456789");
		s += n;
		if (!n)
			return false;
	}
	return !*s;
}

static jv bad_number(struct reader *r, const struct sl_doc_node *node, const char *why)
{
	sl_diag_error(r->diags, SL_ENUMBER, node->loc, r->pointer.data, "%s %s", node->text, why);
	sl_diag_hint(r->diags, "write it as a string: \"%s\"", node->text);
	r->err = r->err ? r->err : SL_ENUMBER;
	return jv_null();
}

static jv integer(struct reader *r, const struct sl_doc_node *node, int base)
{
	const char *s = node->text + (base == 10 ? 0 : 2);
	bool minus = *s == '-';
	s += *s == '-' || *s == '+';
	s += strspn(s, "0");
	/* A167: beyond 2^53 jq 1.6 would silently compute with another number */
	unsigned long long n = strlen(s) > 18 ? ULLONG_MAX : strtoull(s, NULL, base);
	if (n > 1ull << 53)
		return bad_number(r, node, "is an integer beyond 2^53");
	return jv_number(minus ? -(double)n : (double)n);
}

static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const trues[] = {"true", "True", "TRUE", NULL};
static const char *const falses[] = {"false", "False", "FALSE", NULL};
static const char *const odd_numbers[] = {
	".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", NULL};

/* A128: what a plain scalar means, YAML 1.2 core schema. */
static jv plain(struct reader *r, const struct sl_doc_node *node)
{
	const char *s = node->text;
	int base;
	if (strlen(s) != node->len)
		return jv_string_sized(s, (int)node->len);
	if (one_of(s, nulls))
		return jv_null();
	if (one_of(s, trues))
		return jv_true();
	if (one_of(s, falses))
		return jv_false();
	if (is_integer(s, &base))
		return integer(r, node, base);
	if (one_of(s, odd_numbers))
		return bad_number(r, node, "is not a JSON number");
	if (is_float(s)) {
		double d = strtod(s, NULL);
		return isfinite(d) ? jv_number(d) : bad_number(r, node, "is larger than any number of JSON");
	}
	return jv_string_sized(s, (int)node->len);
}

static const char *tag_name(const char *tag)
{
	static const char core[] = "tag:yaml.org,2002:";
	if (!strncmp(tag, core, sizeof(core) - 1))
		return tag + sizeof(core) - 1;
	return !strncmp(tag, "!!", 2) ? tag + 2 : tag;
}

static jv scalar(struct reader *r, const struct sl_doc_node *node)
{
	const char *tag = node->tag ? tag_name(node->tag) : "";
	if (!sl_utf8_valid(node->text, node->len)) {
		fail(r, SL_EENCODING, node->loc, r->pointer.data, "an escape names half of a surrogate pair");
		return jv_null();
	}
	if (!strcmp(tag, "str") || !strcmp(tag, "!") || (!*tag && !node->plain))
		return jv_string_sized(node->text, (int)node->len);
	jv value = plain(r, node);
	jv_kind kind = jv_get_kind(value);
	bool fits = !*tag || (!strcmp(tag, "null") && kind == JV_KIND_NULL) ||
		    (!strcmp(tag, "bool") && (kind == JV_KIND_TRUE || kind == JV_KIND_FALSE)) ||
		    ((!strcmp(tag, "int") || !strcmp(tag, "float")) && kind == JV_KIND_NUMBER);
	if (!fits) {
		sl_diag_error(r->diags, SL_EPARSE, node->loc, r->pointer.data, "tag %s does not fit \"%s\"", node->tag,
			node->text);
		r->err = r->err ? r->err : SL_EPARSE;
	}
	return value;
}

static jv build(struct reader *r, const struct sl_doc_node *node, int depth);

static void push(struct reader *r, const char *name)
{
	sl_buf_addc(&r->pointer, '/');
	for (; *name; name++) {
		if (*name == '~' || *name == '/')
			sl_buf_adds(&r->pointer, *name == '~' ? "~0" : "~1");
		else
			sl_buf_addc(&r->pointer, *name);
	}
}

static void pop(struct reader *r, size_t len)
{
	r->pointer.len = len;
	r->pointer.data[len] = 0;
}

static void remember(struct reader *r, struct sl_loc value, struct sl_loc key)
{
	struct place *place = SL_NEW(&r->doc->arena, struct place);
	place->value = value;
	place->key = key;
	sl_map_set(&r->doc->places, r->pointer.data, place);
}

/* A key: scalars only, by their text (`200:` is "200"), never twice, never a YAML 1.1 merge. */
static bool usable_key(struct reader *r, const struct sl_doc_node *key, jv map)
{
	if (key->kind != SL_DOC_SCALAR) {
		fail(r, SL_EPARSE, key->loc, r->pointer.data, "a key must be a string");
		return false;
	}
	if (key->plain && !strcmp(key->text, "<<")) {
		fail(r, SL_EPARSE, key->loc, r->pointer.data, "merge key << is not YAML 1.2");
		sl_diag_hint(r->diags, "write the members out, or refer to a whole value with *alias");
		return false;
	}
	if (strlen(key->text) != key->len || !sl_utf8_valid(key->text, key->len)) {
		fail(r, SL_EENCODING, key->loc, r->pointer.data,
			"a key with a NUL character or half of a surrogate pair");
		return false;
	}
	if (jv_object_has(jv_copy(map), jv_string_sized(key->text, (int)key->len))) {
		size_t len = r->pointer.len;
		push(r, key->text);
		const struct place *first = sl_map_get(&r->doc->places, r->pointer.data);
		sl_diag_error(r->diags, SL_EPARSE, key->loc, r->pointer.data, "duplicate key \"%s\"", key->text);
		if (first)
			sl_diag_hint(r->diags, "first at %d:%d", first->key.line, first->key.col);
		r->err = r->err ? r->err : SL_EPARSE;
		pop(r, len);
		return false;
	}
	return true;
}

static jv build_map(struct reader *r, const struct sl_doc_node *node, int depth)
{
	jv map = jv_object();
	size_t len = r->pointer.len;
	for (const struct sl_doc_node *key = node->first; key && key->next; key = key->next->next) {
		const struct sl_doc_node *name = key->target ? key->target : key;
		if (!usable_key(r, name, map))
			continue;
		push(r, name->text);
		remember(r, key->next->loc, key->loc);
		jv value = build(r, key->next, depth);
		map = jv_object_set(map, jv_string_sized(name->text, (int)name->len), value);
		pop(r, len);
	}
	return map;
}

static jv build_list(struct reader *r, const struct sl_doc_node *node, int depth)
{
	jv list = jv_array();
	size_t len = r->pointer.len;
	int i = 0;
	for (const struct sl_doc_node *item = node->first; item; item = item->next) {
		sl_buf_printf(&r->pointer, "/%d", i++);
		remember(r, item->loc, item->loc);
		list = jv_array_append(list, build(r, item, depth));
		pop(r, len);
	}
	return list;
}

static jv build(struct reader *r, const struct sl_doc_node *node, int depth)
{
	const struct sl_doc_node *real = node->target ? node->target : node;
	r->inside += node->target != NULL;
	if (r->inside && ++r->aliased > SL_DOC_ALIASED_MAX && !r->gave_up) {
		fail(r, SL_ETOOBIG, node->loc, r->pointer.data, "aliases make this document grow without measure");
		r->gave_up = true;
	}
	if (depth > SL_DOC_DEPTH_MAX && !r->gave_up) {
		fail(r, SL_EDEPTH, node->loc, r->pointer.data, "nested deeper than 200 levels");
		r->gave_up = true;
	}
	jv value;
	if (r->gave_up)
		value = jv_null();
	else if (real->kind == SL_DOC_MAP)
		value = build_map(r, real, depth + 1);
	else if (real->kind == SL_DOC_LIST)
		value = build_list(r, real, depth + 1);
	else
		value = scalar(r, real);
	r->inside -= node->target != NULL;
	return value;
}

/* --- the whole --- */

static struct sl_doc *doc_new(const char *file)
{
	struct sl_doc *doc = calloc(1, sizeof(*doc));
	if (!doc)
		abort();
	sl_arena_init(&doc->arena);
	sl_map_init(&doc->places);
	doc->file = sl_arena_str(&doc->arena, file);
	doc->value = jv_null();
	return doc;
}

static int read_as(
	const char *text, size_t len, const char *file, bool json, struct sl_doc **ret, struct sl_diags *diags)
{
	struct reader r = {.doc = doc_new(file), .diags = diags};
	struct sl_arena nodes; /* the tree, gone after the parse */
	struct sl_doc_node *root = NULL;
	sl_arena_init(&nodes);
	sl_buf_init(&r.pointer);
	sl_buf_adds(&r.pointer, "");
	r.err = sl_doc_tree(text, len, r.doc->file, json, &nodes, &root, diags);
	if (!r.err) {
		remember(&r, root->loc, root->loc);
		jv_free(r.doc->value);
		r.doc->value = build(&r, root, 0);
	}
	sl_buf_release(&r.pointer);
	sl_arena_release(&nodes);
	if (r.err)
		sl_doc_free(r.doc);
	else
		*ret = r.doc;
	return r.err;
}

/* JSON has a grammar of its own, stricter than YAML's flow style: `{"a":1 "b":2}` is a legal YAML map. What begins
 * like JSON is read as JSON; only a file that says YAML may then still be YAML. */
static bool looks_like_json(const char *text, size_t len)
{
	const char *end = text + len;
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		text += 3;
	while (text < end && strchr(" \t\r\n", *text) && *text)
		text++;
	if (text == end || (*text != '{' && *text != '['))
		return false;
	bool map = *text++ == '{';
	while (text < end && *text && strchr(" \t\r\n", *text))
		text++;
	return text == end || (*text && strchr(map ? "\"}" : "\"{[]-0123456789", *text));
}

static bool named_yaml(const char *file)
{
	size_t len = file ? strlen(file) : 0;
	return len > 4 && (!strcmp(file + len - 4, ".yml") || (len > 5 && !strcmp(file + len - 5, ".yaml")));
}

/* The first byte that is not UTF-8, or NUL; -1: none. */
static long bad_byte(const char *text, size_t len, struct sl_loc *loc)
{
	loc->line = loc->col = 1;
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)text[i];
		size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		if (!c || i + n > len || !sl_utf8_valid(text + i, n))
			return (long)i;
		if (c == '\n') {
			loc->line++;
			loc->col = 1;
		} else {
			loc->col++;
		}
		i += n;
	}
	return -1;
}

int sl_doc_parse(const char *text, size_t len, const char *file, struct sl_doc **ret, struct sl_diags *diags)
{
	struct sl_loc loc = {.file = file};
	if (len > SL_DOC_BYTES_MAX)
		return sl_diag_error(
			diags, SL_ETOOBIG, loc, NULL, "the document has %zu bytes; 4 MiB are allowed", len);
	long at = bad_byte(text, len, &loc);
	if (at >= 0 && text[at])
		return sl_diag_error(
			diags, SL_EENCODING, loc, NULL, "byte 0x%02x is not UTF-8", (unsigned char)text[at]);
	if (at >= 0)
		return sl_diag_error(diags, SL_EPARSE, loc, NULL, "a NUL character cannot stand in a document");
	if (!looks_like_json(text, len))
		return read_as(text, len, file, false, ret, diags);
	if (!named_yaml(file))
		return read_as(text, len, file, true, ret, diags);
	struct sl_diags none;
	sl_diags_init(&none);
	int err = read_as(text, len, file, true, ret, &none);
	sl_diags_release(&none);
	return err ? read_as(text, len, file, false, ret, diags) : 0;
}

void sl_doc_free(struct sl_doc *doc)
{
	if (!doc)
		return;
	for (struct mount *m = doc->mounts; m; m = m->next)
		sl_doc_free(m->sub);
	jv_free(doc->value);
	sl_map_release(&doc->places, NULL);
	sl_arena_release(&doc->arena);
	free(doc);
}

jv sl_doc_value(const struct sl_doc *doc)
{
	return jv_copy(doc->value);
}

void sl_doc_mount(struct sl_doc *doc, const char *pointer, struct sl_doc *sub, const char *inner)
{
	struct mount *m = SL_NEW(&doc->arena, struct mount);
	m->pointer = sl_arena_str(&doc->arena, pointer);
	m->inner = sl_arena_str(&doc->arena, inner);
	m->sub = sub;
	m->next = doc->mounts;
	doc->mounts = m;
}

struct sl_loc sl_doc_loc(const struct sl_doc *doc, const char *pointer, bool key)
{
	for (const struct mount *m = doc->mounts; m; m = m->next) {
		size_t n = strlen(m->pointer);
		if (strncmp(pointer, m->pointer, n) || pointer[n] != '/')
			continue;
		struct sl_buf inside;
		sl_buf_init(&inside);
		sl_buf_printf(&inside, "%s%s", m->inner, pointer + n);
		struct sl_loc loc = sl_doc_loc(m->sub, inside.data, key);
		sl_buf_release(&inside);
		return loc;
	}
	size_t len = strlen(pointer);
	for (;;) {
		const struct place *place = sl_map_getn(&doc->places, pointer, len);
		if (place)
			return key ? place->key : place->value;
		while (len && pointer[len - 1] != '/')
			len--;
		if (!len)
			return (struct sl_loc){.file = doc->file};
		len--;
		key = false; /* the nearest parent's own place */
	}
}
