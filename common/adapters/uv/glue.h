/* Small glue between libuv and libraries with threads or callbacks of their own: work for a later turn, and a file
 * descriptor whose writes wake the loop. Owner: the adapter that made it. Loop thread only (the descriptor: any
 * thread). */
#ifndef SL_ADAPTERS_UV_GLUE_H
#define SL_ADAPTERS_UV_GLUE_H

#include <stdbool.h>
#include <uv.h>

/* Calls back in a later turn, in order: a port's call never calls back before it has returned. */
struct sl_later;
struct sl_later *sl_later_new(uv_loop_t *loop);
/* fn is called exactly once; cancelled: by sl_later_free, only to free arg. */
void sl_later_add(struct sl_later *later, void (*fn)(void *arg, bool cancelled), void *arg);
/* NULL is allowed. Memory goes when the loop has run its close callbacks. */
void sl_later_free(struct sl_later *later);

/* Calls fn in the loop after 8 bytes (a uint64_t 1) were written to the descriptor; many writes may give one call. */
struct sl_wake;
struct sl_wake *sl_wake_new(uv_loop_t *loop, void (*fn)(void *arg), void *arg);
int sl_wake_fd(const struct sl_wake *wake);
/* No call after this. NULL is allowed. */
void sl_wake_free(struct sl_wake *wake);

#endif
