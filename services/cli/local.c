/* Resources of a definition on the user's disk. */
#include "services/cli/local.h"
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "services/cli/files.h"

int sl_local_get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	struct sl_local_files *local = arg;
	const char *path = uri;
	char *copy = strdup(local->base), *full = NULL;
	sl_assert(copy);
	if (strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0) {
		free(copy);
		return SL_EAGAIN;
	}
	if (strncmp(uri, "file://", 7) == 0)
		path = uri + 7;
	/* "file://x.json" means x.json beside the definition in all examples of the texts; "file:///x.json" is absolute */
	sl_assert(asprintf(&full, "%s%s%s", *path == '/' ? "" : dirname(copy), *path == '/' ? "" : "/", path) > 0);
	int err = sl_file_read(full, 4 * 1024 * 1024, ret, ret_len, diags);
	if (!err && local->collect)
		*local->collect = sl_json_set(*local->collect, uri, jv_string_sized(*ret, (int)*ret_len));
	free(full);
	free(copy);
	return err;
}
