/* Redaction of secret values in what leaves the executor (R8). */
#include <stdlib.h>
#include <string.h>

#include "services/executor/evaluate.h"

#define MASK "[redacted]"
#define PART_MIN 3 /* shorter values are not looked for inside longer text: "1" is in everything */

struct words {
	char **text;
	size_t *len;
	int count;
};

/* Longest match first, so that a secret inside another does not leave the rest of it. */
static size_t match_at(const struct words *words, const char *at, size_t left, bool whole)
{
	size_t best = 0;
	for (int i = 0; i < words->count; i++) {
		size_t len = words->len[i];
		if (!len || len > left || len <= best || (len < PART_MIN && !(whole && len == left)))
			continue;
		if (memcmp(at, words->text[i], len) == 0)
			best = len;
	}
	return best;
}

static jv redact_text(const struct words *words, jv text)
{
	const char *from = jv_string_value(text);
	size_t len = (size_t)jv_string_length_bytes(jv_copy(text));
	struct sl_buf out;
	sl_buf_init(&out);
	bool changed = false;
	for (size_t i = 0; i < len;) {
		size_t n = match_at(words, from + i, len - i, i == 0);
		if (n) {
			sl_buf_adds(&out, MASK);
			i += n;
			changed = true;
		} else {
			sl_buf_addc(&out, from[i++]);
		}
	}
	if (changed) {
		jv_free(text);
		text = jv_string_sized(out.data, (int)out.len);
	}
	sl_buf_release(&out);
	return text;
}

static jv redact_value(const struct words *words, jv value)
{
	switch (jv_get_kind(value)) {
	case JV_KIND_STRING:
		return redact_text(words, value);
	case JV_KIND_ARRAY: {
		int n = jv_array_length(jv_copy(value));
		for (int i = 0; i < n; i++) {
			jv item = jv_array_get(jv_copy(value), i);
			value = jv_array_set(value, i, redact_value(words, item));
		}
		return value;
	}
	case JV_KIND_OBJECT: {
		jv clean = jv_object();
		jv_object_foreach(value, key, item)
		{
			clean = jv_object_set(clean, redact_text(words, key), redact_value(words, item));
		}
		jv_free(value);
		return clean;
	}
	default:
		return value;
	}
}

jv sl_redact(jv value, const char *const *names, int count, sl_secret_fn secret, void *arg)
{
	if (!count || !secret || !jv_is_valid(value))
		return value;
	struct words words = {.text = calloc((size_t)count, sizeof(char *)),
		.len = calloc((size_t)count, sizeof(size_t)),
		.count = count};
	if (!words.text || !words.len)
		abort();
	for (int i = 0; i < count; i++) {
		words.text[i] = secret(arg, names[i]);
		words.len[i] = words.text[i] ? strlen(words.text[i]) : 0;
	}
	value = redact_value(&words, value);
	for (int i = 0; i < count; i++) {
		if (words.text[i])
			explicit_bzero(words.text[i], words.len[i]);
		free(words.text[i]);
	}
	free(words.text);
	free(words.len);
	return value;
}
