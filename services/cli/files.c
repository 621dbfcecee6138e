/* Files for the CLI. */
#include "services/cli/files.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/log.h"

int sl_file_read(const char *path, size_t bytes_max, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	bool in = strcmp(path, "-") == 0;
	struct sl_loc loc = {.file = path};
	struct stat st;
	struct sl_buf buf;
	char part[65536];
	size_t n;
	FILE *f = in ? stdin : fopen(path, "rb");
	if (!f)
		return sl_diag_error(diags, SL_ENOTFOUND, loc, NULL, "cannot be read: %s", strerror(errno));
	if (!in && fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
		fclose(f);
		return sl_diag_error(diags, SL_ENOTFOUND, loc, NULL, "is a folder, not a file");
	}
	sl_buf_init(&buf);
	while ((n = fread(part, 1, sizeof(part), f)) > 0 && buf.len <= bytes_max)
		sl_buf_add(&buf, part, n);
	int failed = ferror(f);
	if (!in)
		fclose(f);
	if (failed || buf.len > bytes_max) {
		sl_buf_release(&buf);
		return failed ? sl_diag_error(diags, SL_ENOTFOUND, loc, NULL, "cannot be read: %s", strerror(errno))
			      : sl_diag_error(diags, SL_ETOOBIG, loc, NULL, "is larger than %zu bytes", bytes_max);
	}
	if (ret_len)
		*ret_len = buf.len;
	*ret = sl_buf_steal(&buf);
	return 0;
}

static bool ends_with(const char *name, const char *const *suffixes)
{
	size_t len = strlen(name);
	for (; *suffixes; suffixes++) {
		size_t n = strlen(*suffixes);
		if (len > n && strcmp(name + len - n, *suffixes) == 0)
			return true;
	}
	return false;
}

static void walk_folder(const char *path, const char *const *suffixes, void (*visit)(void *arg, const char *path), void *arg, int depth)
{
	struct dirent **names;
	int n = depth < 64 ? scandir(path, &names, NULL, alphasort) : -1;
	for (int i = 0; i < n; i++) {
		char *full;
		struct stat st;
		if (names[i]->d_name[0] != '.') {
			sl_assert(asprintf(&full, "%s/%s", path, names[i]->d_name) > 0);
			if (stat(full, &st) == 0 && S_ISDIR(st.st_mode))
				walk_folder(full, suffixes, visit, arg, depth + 1);
			else if (ends_with(full, suffixes))
				visit(arg, full);
			free(full);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

int sl_file_walk(const char *path, const char *const *suffixes, void (*visit)(void *arg, const char *path), void *arg)
{
	struct stat st;
	if (stat(path, &st))
		return SL_ENOTFOUND;
	if (S_ISDIR(st.st_mode))
		walk_folder(path, suffixes, visit, arg, 0);
	else
		visit(arg, path);
	return 0;
}
