/* Bump allocator: everything that lives as long as one record, one batch or one plan.
 * Owner: whoever called init. One thread. Freed as a whole; out of memory aborts (R7). */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include "common/base/err.h"

struct sl_arena_block;
struct sl_arena {
	struct sl_arena_block *head;
	size_t used, size;      /* of the head block, bytes */
	size_t total;           /* bytes held by all blocks */
};

void sl_arena_init(struct sl_arena *arena);
/* Frees all blocks; the arena is as after init. NULL is allowed. */
void sl_arena_release(struct sl_arena *arena);
/* Forgets all contents, keeps one block for reuse. */
void sl_arena_clear(struct sl_arena *arena);
/* Zeroed, aligned for any type; never NULL. */
void *sl_arena_alloc(struct sl_arena *arena, size_t size);
/* NUL-terminated copies; sl_arena_str(NULL) is NULL. */
char *sl_arena_str(struct sl_arena *arena, const char *text);
char *sl_arena_strn(struct sl_arena *arena, const char *text, size_t len);
char *sl_arena_printf(struct sl_arena *arena, const char *fmt, ...) SL_PRINTF(2, 3);

#define SL_NEW(arena, type) ((type *)sl_arena_alloc((arena), sizeof(type)))
#define SL_NEWN(arena, type, n) ((type *)sl_arena_alloc((arena), sizeof(type) * (size_t)(n)))

#endif
