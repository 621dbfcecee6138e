/* What the codec's tests share: files, random messages, comparison. */
#ifndef TESTS_CODEC_HELPER_H
#define TESTS_CODEC_HELPER_H

#include "common/codec/codec.h"
#include "common/codec/schema.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline char *read_whole(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	struct sl_buf buf;
	char part[4096];
	size_t n;
	if (!f)
		return NULL;
	sl_buf_init(&buf);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		sl_buf_add(&buf, part, n);
	fclose(f);
	if (ret_len)
		*ret_len = buf.len;
	return sl_buf_steal(&buf);
}

/* One object with every field that is set: how fixtures write down what they hold. */
static inline char *msg_text(const struct sl_msg *msg)
{
	jv obj = sl_json_set(jv_object(), "kind", jv_string(sl_msg_kind_text(msg->kind)));
	for (int i = 0; i < sl_msg_field_count; i++) {
		const struct sl_msg_field *f = &sl_msg_fields[i];
		const void *at = (const char *)msg + f->offset;
		if (f->type == SL_FIELD_STR && *(const char *const *)at)
			obj = sl_json_set(obj, f->name, jv_string(*(const char *const *)at));
		else if (f->type == SL_FIELD_BOOL && *(const bool *)at)
			obj = sl_json_set(obj, f->name, jv_true());
		else if (f->type == SL_FIELD_JSON && jv_is_valid(*(const jv *)at))
			obj = sl_json_set(obj, f->name, jv_copy(*(const jv *)at));
		else if (f->type == SL_FIELD_I64) {
			char number[32];
			int64_t v = *(const int64_t *)at;
			int64_t none = strncmp(f->name, "origin_", 7) == 0 ? -1 : 0;
			snprintf(number, sizeof(number), "%lld", (long long)v);
			if (v != none)
				obj = sl_json_set(obj, f->name, jv_string(number));
		}
	}
	jv text = jv_dump_string(obj, JV_PRINT_SORTED);
	char *copy = strdup(jv_string_value(text));
	jv_free(text);
	return copy;
}

static inline bool msg_equal(const struct sl_msg *a, const struct sl_msg *b)
{
	bool same = a->kind == b->kind;
	for (int i = 0; i < sl_msg_field_count; i++) {
		const struct sl_msg_field *f = &sl_msg_fields[i];
		const void *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;
		if (f->type == SL_FIELD_STR) {
			const char *s = *(const char *const *)x, *t = *(const char *const *)y;
			same &= s && t ? strcmp(s, t) == 0 : s == t;
		} else if (f->type == SL_FIELD_I64) {
			same &= *(const int64_t *)x == *(const int64_t *)y;
		} else if (f->type == SL_FIELD_BOOL) {
			same &= *(const bool *)x == *(const bool *)y;
		} else {
			same &= sl_json_equal(*(const jv *)x, *(const jv *)y);
		}
	}
	return same;
}

static inline uint32_t rnd(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static inline jv random_json(uint64_t *seed, int depth)
{
	static const char *const words[] = {
		"", "a", "patient", "Grüße", "\xf0\x9f\x8c\x8a", "with \"quotes\" and \\ and \n"};
	jv v;
	switch (rnd(seed) % (depth > 0 ? 7 : 5)) {
	case 0:
		return jv_null();
	case 1:
		return jv_bool((int)(rnd(seed) & 1));
	case 2:
		return jv_number((double)(int32_t)rnd(seed));
	case 3:
		return jv_number((double)rnd(seed) / 7.0);
	case 4:
		return jv_string(words[rnd(seed) % 6]);
	case 5:
		v = jv_array();
		for (uint32_t n = rnd(seed) % 4; n > 0; n--)
			v = jv_array_append(v, random_json(seed, depth - 1));
		return v;
	default:
		v = jv_object();
		for (uint32_t n = rnd(seed) % 4; n > 0; n--)
			v = jv_object_set(v, jv_string(words[rnd(seed) % 6]), random_json(seed, depth - 1));
		return v;
	}
}

static inline void random_msg(uint64_t *seed, struct sl_arena *arena, struct sl_msg *msg)
{
	sl_msg_init(msg, (enum sl_msg_kind)(1 + rnd(seed) % (SL_MSG_KIND_COUNT_ - 1)));
	for (int i = 0; i < sl_msg_field_count; i++) {
		void *at = (char *)msg + sl_msg_fields[i].offset;
		if (rnd(seed) % 3 == 0)
			continue;
		if (sl_msg_fields[i].type == SL_FIELD_STR)
			*(const char **)at = sl_arena_printf(arena, "Grüße%.*s%u", (int)(rnd(seed) % 90),
				"/long-enough-text-to-need-two-bytes-of-length-when-it-is-taken-whole-and-again-and-"
				"again",
				rnd(seed));
		else if (sl_msg_fields[i].type == SL_FIELD_I64)
			*(int64_t *)at = (int64_t)((uint64_t)rnd(seed) << 33 | rnd(seed)) >> rnd(seed) % 60;
		else if (sl_msg_fields[i].type == SL_FIELD_BOOL)
			*(bool *)at = true;
		else
			*(jv *)at = random_json(seed, 4);
	}
}

#endif
