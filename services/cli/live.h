/* Real services for `sluice run`: calls and service documents over HTTP, one at a time, each waited for. */
#ifndef SL_CLI_LIVE_H
#define SL_CLI_LIVE_H

#include "services/cli/local.h"
#include "services/cli/world.h"

struct sl_live;
/* NULL: libcurl cannot start. files: where documents that are no URL come from; borrowed. */
struct sl_live *sl_live_new(struct sl_local_files *files);
void sl_live_free(struct sl_live *live); /* NULL is allowed */

/* sl_world_options.call; arg is the sl_live. */
int64_t sl_live_call(void *arg, const struct sl_function *function, const struct sl_call_context *ctx, jv args, int64_t timeout_ms,
	jv *ret_data, jv *ret_error);
/* sl_resources.get: http(s) URIs are fetched, others are files. */
int sl_live_get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags);
/* sl_world_options.until: sleeps until the wall clock shows that. */
void sl_live_until(void *arg, int64_t wall_ms);

#endif
