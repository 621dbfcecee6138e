/* Diagnostics: what was wrong, where, and what to do about it. A definition's errors are all collected;
 * a run-time call usually leaves one. Owner: the caller; strings live in the list's own arena. */
#ifndef SL_BASE_DIAG_H
#define SL_BASE_DIAG_H

#include <stdbool.h>
#include <stdio.h>
#include "common/base/arena.h"
#include "common/base/buf.h"

enum sl_severity { SL_SEVERITY_ERROR, SL_SEVERITY_WARNING };

/* A place in a source text. line and col count from 1, 0 = unknown; col counts characters. */
struct sl_loc {
	const char *file;       /* borrowed; NULL: none */
	int line, col;
	int len;                /* characters to mark, 0 = 1 */
};

struct sl_diag {
	enum sl_severity severity;
	int err;                /* SL_E... */
	struct sl_loc loc;
	const char *pointer;    /* JSON Pointer (RFC 6901) or NULL */
	const char *text;       /* one sentence without a full stop */
	const char *hint;       /* what to do, or NULL */
	const char *rule;       /* spec section or ruling ("A111"), or NULL */
	struct sl_diag *next;
};

struct sl_diags {
	struct sl_arena arena;
	struct sl_diag *first, *last;
	int error_count, warning_count;
	int count_max;          /* further ones are counted, not kept; default 200 */
};

void sl_diags_init(struct sl_diags *diags);
void sl_diags_release(struct sl_diags *diags);
void sl_diags_clear(struct sl_diags *diags);
/* Adds an error and returns `err`, so that a caller can `return sl_diag_error(...)`. diags may be NULL. */
int sl_diag_error(struct sl_diags *diags, int err, struct sl_loc loc, const char *pointer, const char *fmt, ...)
	SL_PRINTF(5, 6);
void sl_diag_warn(struct sl_diags *diags, struct sl_loc loc, const char *pointer, const char *fmt, ...) SL_PRINTF(4, 5);
/* Give the last diagnostic a hint / a rule. */
void sl_diag_hint(struct sl_diags *diags, const char *fmt, ...) SL_PRINTF(2, 3);
void sl_diag_rule(struct sl_diags *diags, const char *rule);
/* Sorts by file, line and column (stable). */
void sl_diags_sort(struct sl_diags *diags);
/* "file:line:col: error: text (hint) [rule]" per line; with `source` the line is quoted and marked. */
void sl_diags_print(const struct sl_diags *diags, struct sl_buf *out, const char *source);
/* Text of the first error (or "" if none), for short answers. */
const char *sl_diags_first(const struct sl_diags *diags);

#define SL_NOWHERE ((struct sl_loc){0})

#endif
