/* OpenAPI 3 parameter styles: a JSON value as the text of a path segment, query string, header or cookie. Pure. */
#ifndef SL_EXECUTOR_STYLE_H
#define SL_EXECUTOR_STYLE_H

#include "common/model/plan.h"

/* Appends `text` percent-encoded: unreserved characters (RFC 3986 2.3) stay, with `reserved` also those of 2.2 except
 * '#' and
 * '&', which would end the value. */
void sl_style_encode(struct sl_buf *out, const char *text, size_t len, bool reserved);

/* Appends the value in the parameter's style. Path: what replaces {name}. Query and cookie: "name=value" pairs, to be
 * joined by '&' (query) or "; " (cookie): the joiner is put between several pairs of one parameter. Header: the field
 * value, as it is. Borrows value. SL_EINVAL: the style has no form for it (deepObject of a scalar). */
SL_MUST_CHECK int sl_style_write(struct sl_buf *out, const struct sl_http_param *param, jv value, struct sl_buf *why);

#endif
