/* Bytes <-> nouns. CloudEvents over Kafka (JSON, binary, Avro) for public topics, Avro single-object encoding for internal
 * ones. Every internal record is a CloudEvent in binary mode too: ce_* headers, content-type application/avro. */
#ifndef SL_CODEC_CODEC_H
#define SL_CODEC_CODEC_H

#include "common/model/event.h"
#include "common/model/msg.h"
#include "common/ports/broker.h"

struct sl_codec_limits { struct sl_json_limits json; };

/* --- public events: CloudEvents Kafka protocol binding 1.0 --- */
enum sl_event_mode { SL_EVENT_STRUCTURED, SL_EVENT_BINARY, SL_EVENT_AVRO };
/* Decodes whichever mode the content-type header says (structured JSON, structured Avro, else binary; a record without content-type and
 * ce_ headers whose value begins with '{' is tried as structured JSON). Errors as sl_json_parse and sl_event_check, SL_EPARSE for a
 * content type that is not one of ours without ce_ headers, and for batches. */
SL_MUST_CHECK int sl_event_decode(const struct sl_record *rec, const struct sl_json_limits *limits, jv *ret_ev, struct sl_diags *diags);
/* Fills value and headers of rec (memory in arena). Borrows ev. */
SL_MUST_CHECK int sl_event_encode(jv ev, enum sl_event_mode mode, struct sl_arena *arena, struct sl_record *rec);

/* --- internal messages --- */
/* Appends marker + fingerprint + Avro body. Borrows msg. */
SL_MUST_CHECK int sl_msg_encode(const struct sl_msg *msg, struct sl_buf *out);
/* Value and headers of a record for an internal topic; memory in arena. */
SL_MUST_CHECK int sl_msg_record(const struct sl_msg *msg, struct sl_arena *arena, struct sl_record *rec);
/* SL_EPARSE damaged, SL_ENOSCHEMA: unknown fingerprint (*ret_fp): load it with sl_codec_learn, then again. Strings in arena. */
SL_MUST_CHECK int sl_msg_decode(struct sl_bytes bytes, struct sl_arena *arena, struct sl_msg *ret, uint64_t *ret_fp, struct sl_diags *diags);

/* Our own schemas, for sluice:schema:FP: text and fingerprint (CRC-64-AVRO). */
const char *sl_codec_schema(uint64_t *ret_fp);
/* A foreign writer's schema text. */
SL_MUST_CHECK int sl_codec_learn(uint64_t fp, const char *text);

/* Lists (todo, outbox): length-prefixed messages. Body of an outbox entry: message + explicit path. */
void sl_list_add(struct sl_buf *list, const struct sl_msg *msg, const char *path);
struct sl_list_item { struct sl_msg msg; const char *path; };
/* Items in arena; the caller clears each item's msg. SL_EPARSE damaged; SL_ENOSCHEMA: see sl_list_unknown. */
SL_MUST_CHECK int sl_list_read(struct sl_bytes list, struct sl_arena *arena, struct sl_list_item **ret, int *ret_count, struct sl_diags *diags);

/* Fingerprint of the first schema in the list that is not known yet (load it with sl_codec_learn, then read again); 0: none. */
uint64_t sl_list_unknown(struct sl_bytes list);

#endif
