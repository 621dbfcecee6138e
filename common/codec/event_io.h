/* What the readers and writers of public events share. Private to codec. */
#ifndef SL_CODEC_EVENT_IO_H
#define SL_CODEC_EVENT_IO_H

#include "common/codec/codec.h"

/* What a media type says about a payload. */
enum sl_media {
	SL_MEDIA_NONE, /* absent */
	SL_MEDIA_JSON, /* application/json, text/json, +json */
	SL_MEDIA_TEXT, /* text, XML; in UTF-8 */
	SL_MEDIA_BYTES /* everything else, and text in another charset */
};
/* Type in lower case without parameters; false: not a media type. *ret_utf8: charset absent, UTF-8 or US-ASCII. */
struct sl_media_type {
	char name[128];
	bool utf8;
};
bool sl_media_parse(const char *text, size_t len, struct sl_media_type *ret);
enum sl_media sl_media_of(const char *content_type); /* NULL: NONE */

/* Parses JSON of an event; the diagnostic says in one sentence what and where (`what`: "event", "data"; its pointer is
 * put behind `prefix`). */
SL_MUST_CHECK int sl_event_json(const char *what, const char *prefix, struct sl_bytes text,
	const struct sl_json_limits *limits, jv *ret, struct sl_diags *diags);
/* Puts a payload into ev as `data` or `data_base64`, as the media type says; takes ev, always gives one back. */
SL_MUST_CHECK int sl_event_set_payload(jv *ev, struct sl_bytes payload, const char *content_type,
	const struct sl_json_limits *limits, struct sl_diags *diags);
/* The payload's bytes, as they stand in binary mode, appended to out. *ret_type: its content type, NULL if there is no
 * payload. Borrows. */
SL_MUST_CHECK int sl_event_payload(jv ev, struct sl_buf *out, const char **ret_type);

/* event_avro.c: attributes and data of one datum, not yet checked. */
SL_MUST_CHECK int sl_event_read_avro(
	struct sl_bytes value, const struct sl_json_limits *limits, jv *ret_raw, struct sl_diags *diags);
SL_MUST_CHECK int sl_event_write_avro(jv ev, struct sl_buf *out);

#endif
