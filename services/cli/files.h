/* Files for the CLI: reading with a limit, walking folders. */
#ifndef SL_CLI_FILES_H
#define SL_CLI_FILES_H

#include "common/base/diag.h"

/* Whole file as malloc'ed, NUL-terminated bytes; "-" is standard input. SL_ENOTFOUND, SL_ETOOBIG with a diagnostic. ret_len may be NULL. */
SL_MUST_CHECK int sl_file_read(const char *path, size_t bytes_max, char **ret, size_t *ret_len, struct sl_diags *diags);
/* Calls visit for each file below `path` (a file: itself) whose name ends in one of the suffixes, in order of name; hidden ones
 * are left out. SL_ENOTFOUND. */
SL_MUST_CHECK int sl_file_walk(const char *path, const char *const *suffixes, void (*visit)(void *arg, const char *path), void *arg);

#endif
