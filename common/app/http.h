/* /healthz, /readyz and /metrics over libmicrohttpd, in a thread of its own, so that they answer while the loop works.
 * healthz: 200 as long as the loop turns; readyz: 200 or 503 with the reason. Only GET and HEAD. */
#ifndef SL_APP_HTTP_H
#define SL_APP_HTTP_H

#include "common/app/config.h"
#include <stdbool.h>
#include <stdint.h>

struct sl_http;

/* Listens as http.address, http.port and http.port_file say; metrics_who as in sl_metrics_text. *ret is NULL when
 * http.port is -1. SL_ECONFIG with a diagnostic: address unusable, port taken, file not writable. */
SL_MUST_CHECK int sl_http_new(
	const struct sl_config *cfg, const char *metrics_who, struct sl_http **ret, struct sl_diags *diags);
void sl_http_free(struct sl_http *http);      /* also removes the port file; NULL is allowed */
int sl_http_port(const struct sl_http *http); /* the port it listens on */
/* From the loop thread. NULL or "": ready; else why not (copied). At first: "starting". */
void sl_http_set_ready(struct sl_http *http, const char *why_not);
/* The loop turned; healthz fails when that was not said for stall_ms (default 30 000; 0: never). */
void sl_http_beat(struct sl_http *http);
void sl_http_set_stall(struct sl_http *http, int64_t stall_ms);

#endif
