/* Avro binary encoding, the few primitives that the codec writes and reads by hand: writing over a table is several
 * times faster than avro-c's value API, and reading here never trusts a length (avro-c allocates what a record claims).
 * Private to codec. */
#ifndef SL_CODEC_AVRO_H
#define SL_CODEC_AVRO_H

#include "common/base/buf.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* --- writing --- */
static inline size_t sl_avro_varint(int64_t value, uint8_t bytes[static 10])
{
	uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
	size_t n = 0;
	while (zigzag > 127) {
		bytes[n++] = (uint8_t)(zigzag | 128);
		zigzag >>= 7;
	}
	bytes[n++] = (uint8_t)zigzag;
	return n;
}
static inline void sl_avro_add_long(struct sl_buf *out, int64_t value)
{
	uint8_t bytes[10];
	sl_buf_add(out, bytes, sl_avro_varint(value, bytes));
}
/* bytes and string look alike */
static inline void sl_avro_add_bytes(struct sl_buf *out, const void *bytes, size_t len)
{
	sl_avro_add_long(out, (int64_t)len);
	sl_buf_add(out, bytes, len);
}

/* --- reading: after the first error `bad` stays set and every read gives zero or empty --- */
struct sl_avro_in {
	const uint8_t *at, *end;
	bool bad;
};
int64_t sl_avro_long(struct sl_avro_in *in);
int64_t sl_avro_int(struct sl_avro_in *in); /* bad outside 32 bits */
bool sl_avro_bool(struct sl_avro_in *in);
double sl_avro_double(struct sl_avro_in *in);
struct sl_bytes sl_avro_bytes(struct sl_avro_in *in); /* borrowed from the input */
void sl_avro_skip(struct sl_avro_in *in, size_t len);
/* Items of the next block of an array or map, 0 at the end. More items than bytes are left is an error: no item that we
 * read is empty. */
int64_t sl_avro_block(struct sl_avro_in *in);
static inline size_t sl_avro_left(const struct sl_avro_in *in)
{
	return in->bad ? 0 : (size_t)(in->end - in->at);
}

/* CRC-64-AVRO (Avro 1.9, Schema Fingerprints). */
uint64_t sl_avro_fingerprint(const void *bytes, size_t len);

#endif
