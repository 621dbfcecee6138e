/* Base64 (RFC 4648, with padding). */
#include "common/codec/base64.h"
#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sl_base64_encode(const void *bytes, size_t len, struct sl_buf *out)
{
	const uint8_t *in = bytes;
	sl_buf_reserve(out, len / 3 * 4 + 5);
	sl_buf_add(out, "", 0); /* text also when there is nothing */
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t v = (uint32_t)in[i] << 16;
		v |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
		v |= left > 2 ? (uint32_t)in[i + 2] : 0;
		char quad[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
			left > 2 ? digits[v & 63] : '='};
		sl_buf_add(out, quad, 4);
	}
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int sl_base64_decode(const char *text, size_t len, struct sl_buf *out)
{
	if (len % 4)
		return SL_EINVAL;
	sl_buf_reserve(out, len / 4 * 3 + 1);
	sl_buf_add(out, "", 0);
	for (size_t i = 0; i < len; i += 4) {
		int pad = i + 4 == len ? (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=') : 0;
		uint32_t v = 0;
		for (int k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : value_of(text[i + (size_t)k]);
			if (d < 0)
				return SL_EINVAL;
			v = v << 6 | (uint32_t)d;
		}
		char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
		sl_buf_add(out, three, (size_t)(3 - pad));
	}
	return 0;
}
