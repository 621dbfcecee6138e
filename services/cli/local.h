/* Resources of a definition on the user's disk: relative paths and file:// beside the definition. */
#ifndef SL_CLI_LOCAL_H
#define SL_CLI_LOCAL_H

#include "common/dsl/dsl.h"

struct sl_local_files {
	const char *base;       /* path of the definition; its folder is where relative ones are looked up */
	jv *collect;            /* not NULL: uri -> text of all that was read (for a deployment) */
};
/* sl_resources.get: http(s) URIs are SL_EAGAIN (the coordinator fetches them). */
int sl_local_get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags);

#endif
