/* Growable byte buffer. */
#include "common/base/buf.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"

void sl_buf_init(struct sl_buf *buf)
{
	memset(buf, 0, sizeof(*buf));
}

void sl_buf_release(struct sl_buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	sl_buf_init(buf);
}

void sl_buf_clear(struct sl_buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void sl_buf_reserve(struct sl_buf *buf, size_t more)
{
	size_t need = buf->len + more + 1;
	sl_assert(need > buf->len);
	if (need <= buf->cap)
		return;
	size_t cap = buf->cap ? buf->cap * 2 : 64;
	if (cap < need)
		cap = need;
	char *data = realloc(buf->data, cap);
	if (!data)
		sl_bug(__FILE__, __LINE__, "out of memory: %zu bytes", cap);
	buf->data = data;
	buf->cap = cap;
}

void sl_buf_add(struct sl_buf *buf, const void *bytes, size_t len)
{
	sl_buf_reserve(buf, len);
	if (len)
		memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void sl_buf_addc(struct sl_buf *buf, char c)
{
	sl_buf_add(buf, &c, 1);
}

void sl_buf_adds(struct sl_buf *buf, const char *text)
{
	sl_buf_add(buf, text, strlen(text));
}

void sl_buf_vprintf(struct sl_buf *buf, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	sl_buf_reserve(buf, 48); /* most texts fit what is there: formatted once */
	size_t room = buf->cap - buf->len;
	int n = vsnprintf(buf->data + buf->len, room, fmt, ap);
	sl_assert(n >= 0);
	if ((size_t)n >= room) {
		sl_buf_reserve(buf, (size_t)n);
		vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, again);
	}
	va_end(again);
	buf->len += (size_t)n;
}

void sl_buf_printf(struct sl_buf *buf, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	sl_buf_vprintf(buf, fmt, ap);
	va_end(ap);
}

void sl_buf_addi(struct sl_buf *buf, int64_t value)
{
	char text[24], *end = text + sizeof(text), *at = end;
	uint64_t u = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
	do
		*--at = (char)('0' + u % 10);
	while (u /= 10);
	if (value < 0)
		*--at = '-';
	sl_buf_add(buf, at, (size_t)(end - at));
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

void sl_buf_add_json_str(struct sl_buf *buf, const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t plain = 0, first = 0;
	sl_buf_reserve(buf, len + 2);
	buf->data[buf->len++] = '"';
	while (first < len && is_plain((unsigned char)text[first]))
		first++;
	for (size_t i = first; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (is_plain(c))
			continue;
		sl_buf_add(buf, text + plain, i - plain);
		plain = i + 1;
		char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
		const char *known = strchr("\"\"\\\\\nn\rr\tt\bb\ff", c);
		if (c && known && (c == '"' || c == '\\' || c < 0x20)) {
			char two[2] = {'\\', c == '"' || c == '\\' ? (char)c : known[1]};
			sl_buf_add(buf, two, 2);
		} else {
			sl_buf_add(buf, esc, 6);
		}
	}
	sl_buf_add(buf, text + plain, len - plain);
	sl_buf_addc(buf, '"');
}

char *sl_buf_steal(struct sl_buf *buf)
{
	sl_buf_reserve(buf, 0);
	char *data = buf->data;
	data[buf->len] = '\0';
	sl_buf_init(buf);
	return data;
}

struct sl_bytes sl_buf_bytes(const struct sl_buf *buf)
{
	return (struct sl_bytes){buf->data ? buf->data : "", buf->len};
}
