/* Bump allocator in blocks that double up to 1 MiB. */
#include "common/base/arena.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"

struct sl_arena_block {
	struct sl_arena_block *next;
	size_t size;
	_Alignas(16) unsigned char data[];
};

#define FIRST 4096
#define LARGEST ((size_t)1 << 20)

void sl_arena_init(struct sl_arena *arena)
{
	memset(arena, 0, sizeof(*arena));
}

void sl_arena_release(struct sl_arena *arena)
{
	if (!arena)
		return;
	for (struct sl_arena_block *b = arena->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	sl_arena_init(arena);
}

void sl_arena_clear(struct sl_arena *arena)
{
	struct sl_arena_block *keep = arena->head;
	if (!keep)
		return;
	for (struct sl_arena_block *b = keep->next, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	keep->next = NULL;
	arena->used = 0;
	arena->size = arena->total = keep->size;
}

static void grow(struct sl_arena *arena, size_t need)
{
	size_t size = arena->size ? arena->size * 2 : FIRST;
	if (size > LARGEST)
		size = LARGEST;
	if (size < need)
		size = need;
	struct sl_arena_block *b = malloc(sizeof(*b) + size);
	if (!b)
		sl_bug(__FILE__, __LINE__, "out of memory: %zu bytes", size);
	b->next = arena->head;
	b->size = size;
	arena->head = b;
	arena->used = 0;
	arena->size = size;
	arena->total += size;
}

static void *take(struct sl_arena *arena, size_t size)
{
	size_t need = (size + 15) & ~(size_t)15;
	sl_assert(need >= size);
	if (!arena->head || arena->size - arena->used < need)
		grow(arena, need);
	void *p = arena->head->data + arena->used;
	arena->used += need;
	return p;
}

void *sl_arena_alloc(struct sl_arena *arena, size_t size)
{
	return memset(take(arena, size), 0, size);
}

char *sl_arena_strn(struct sl_arena *arena, const char *text, size_t len)
{
	sl_assert(len + 1 > len);
	char *p = take(arena, len + 1);
	memcpy(p, text, len);
	p[len] = '\0';
	return p;
}

char *sl_arena_str(struct sl_arena *arena, const char *text)
{
	return text ? sl_arena_strn(arena, text, strlen(text)) : NULL;
}

char *sl_arena_printf(struct sl_arena *arena, const char *fmt, ...)
{
	char text[256]; /* most fit: formatted once */
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sl_assert(n >= 0);
	char *p = take(arena, (size_t)n + 1);
	if ((size_t)n < sizeof(text))
		memcpy(p, text, (size_t)n + 1);
	else
		vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}
