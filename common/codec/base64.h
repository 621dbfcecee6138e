/* Base64 (RFC 4648, with padding): binary payloads of CloudEvents. */
#ifndef SL_CODEC_BASE64_H
#define SL_CODEC_BASE64_H

#include "common/base/buf.h"

/* Appends the text of the bytes. */
void sl_base64_encode(const void *bytes, size_t len, struct sl_buf *out);
/* Appends the bytes of the text; SL_EINVAL: not base64 (out may have grown). */
SL_MUST_CHECK int sl_base64_decode(const char *text, size_t len, struct sl_buf *out);

#endif
