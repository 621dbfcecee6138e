/* The message schema: text and fingerprint of ours, and those that were learned. Private to codec. */
#ifndef SL_CODEC_SCHEMA_H
#define SL_CODEC_SCHEMA_H

#include "common/codec/avro.h"
#include "common/model/msg.h"
#include <avro/schema.h>

enum sl_field_type { SL_FIELD_STR, SL_FIELD_I64, SL_FIELD_BOOL, SL_FIELD_JSON };
struct sl_msg_field {
	enum sl_field_type type;
	const char *name;
	size_t offset;
};
extern const struct sl_msg_field sl_msg_fields[];
extern const int sl_msg_field_count;

/* Text of proto/message.avsc; process lifetime. */
const char *sl_schema_text(void);
/* Fingerprint of its Parsing Canonical Form. */
uint64_t sl_schema_fingerprint(void);
/* Schema learned under that fingerprint, NULL if unknown. */
avro_schema_t sl_schema_find(uint64_t fp);

/* Reads one message that was written with `schema`; `msg` is initialised. 0 or SL_EPARSE / errors of sl_json_parse. */
SL_MUST_CHECK int sl_msg_read_foreign(struct sl_avro_in *in, avro_schema_t schema, struct sl_arena *arena,
	struct sl_msg *msg, struct sl_diags *diags);
/* One field out of its bytes; shared by both readers. */
SL_MUST_CHECK int sl_msg_field_str(struct sl_bytes bytes, const struct sl_msg_field *field, struct sl_arena *arena,
	struct sl_msg *msg, struct sl_diags *diags);
SL_MUST_CHECK int sl_msg_field_json(
	struct sl_bytes bytes, const struct sl_msg_field *field, struct sl_msg *msg, struct sl_diags *diags);

#endif
