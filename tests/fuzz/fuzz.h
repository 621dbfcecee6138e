/* What the fuzz targets share. A target is one file fuzz_NAME.c: it decodes hostile bytes with the public functions of
 * one layer and states what must hold for whatever was accepted (FUZZ_HOLDS). No clock, no chance, no state from one
 * input to the next. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/diag.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A property of what was accepted; a break is a finding like a crash. */
#define FUZZ_HOLDS(cond, ...)                                                                                          \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #cond);                      \
			fprintf(stderr, __VA_ARGS__);                                                                  \
			fputc('\n', stderr);                                                                           \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* Bytes not yet taken. */
struct fuzz_in {
	const char *at, *end;
};
static inline struct fuzz_in fuzz_in(const uint8_t *data, size_t size)
{
	return (struct fuzz_in){(const char *)data, (const char *)data + size};
}
/* The next line without its end, NUL-terminated in the arena; NULL: there is none. */
static inline char *fuzz_line(struct fuzz_in *in, struct sl_arena *arena)
{
	if (in->at >= in->end)
		return NULL;
	const char *nl = memchr(in->at, '\n', (size_t)(in->end - in->at));
	const char *stop = nl ? nl : in->end;
	char *line = sl_arena_strn(arena, in->at, (size_t)(stop - in->at));
	in->at = nl ? nl + 1 : in->end;
	return line;
}
/* A copy of exactly the size, so that reading one byte too far is noticed; free it. */
static inline char *fuzz_exact(struct fuzz_in in)
{
	size_t len = (size_t)(in.end - in.at);
	char *copy = malloc(len ? len : 1);
	if (!copy)
		abort();
	if (len)
		memcpy(copy, in.at, len);
	return copy;
}

#endif
