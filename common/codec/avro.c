/* Avro binary encoding: reading primitives and the schema fingerprint. */
#include "common/codec/avro.h"

static void fail(struct sl_avro_in *in)
{
	in->bad = true;
	in->at = in->end;
}

int64_t sl_avro_long(struct sl_avro_in *in)
{
	uint64_t zigzag = 0;
	for (int shift = 0; shift < 70; shift += 7) {
		if (in->bad || in->at >= in->end)
			break;
		uint8_t b = *in->at++;
		if (shift == 63 && b > 1)
			break;
		zigzag |= (uint64_t)(b & 127) << shift;
		if (b < 128)
			return (int64_t)(zigzag >> 1 ^ (0 - (zigzag & 1)));
	}
	fail(in);
	return 0;
}

int64_t sl_avro_int(struct sl_avro_in *in)
{
	int64_t v = sl_avro_long(in);
	if (v < INT32_MIN || v > INT32_MAX) {
		fail(in);
		return 0;
	}
	return v;
}

bool sl_avro_bool(struct sl_avro_in *in)
{
	if (in->bad || in->at >= in->end || *in->at > 1) {
		fail(in);
		return false;
	}
	return *in->at++ == 1;
}

void sl_avro_skip(struct sl_avro_in *in, size_t len)
{
	if (sl_avro_left(in) < len)
		fail(in);
	else
		in->at += len;
}

double sl_avro_double(struct sl_avro_in *in)
{
	const uint8_t *from = in->at;
	uint64_t bits = 0;
	double v;
	sl_avro_skip(in, 8);
	if (in->bad)
		return 0;
	for (int i = 7; i >= 0; i--)
		bits = bits << 8 | from[i];
	memcpy(&v, &bits, sizeof(v));
	return v;
}

struct sl_bytes sl_avro_bytes(struct sl_avro_in *in)
{
	int64_t len = sl_avro_long(in);
	if (in->bad || len < 0 || (uint64_t)len > sl_avro_left(in)) {
		fail(in);
		return (struct sl_bytes){"", 0};
	}
	struct sl_bytes bytes = {in->at, (size_t)len};
	in->at += len;
	return bytes;
}

int64_t sl_avro_block(struct sl_avro_in *in)
{
	int64_t count = sl_avro_long(in);
	if (count < 0) {
		/* a negative count is followed by the block's size in bytes */
		count = count == INT64_MIN ? INT64_MAX : -count;
		if (sl_avro_long(in) < 0)
			fail(in);
	}
	if ((uint64_t)count > sl_avro_left(in)) {
		fail(in);
		return 0;
	}
	return count;
}

uint64_t sl_avro_fingerprint(const void *bytes, size_t len)
{
	const uint64_t empty = 0xc15d213aa4d7a795u;
	const uint8_t *at = bytes;
	uint64_t fp = empty;
	for (size_t i = 0; i < len; i++) {
		uint64_t v = (fp ^ at[i]) & 0xff;
		for (int bit = 0; bit < 8; bit++)
			v = v >> 1 ^ (empty & (0 - (v & 1)));
		fp = fp >> 8 ^ v;
	}
	return fp;
}
