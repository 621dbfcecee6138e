/* Structured log lines to stderr: one JSON object or, on a terminal, one readable line per call.
 * Only services and the CLI log (style 22); libraries return errors. Thread-safe. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include "common/base/err.h"

enum sl_level { SL_DEBUG, SL_INFO, SL_WARN, SL_ERROR };

void sl_log_init(const char *service, enum sl_level level, int json);
void sl_log_set_level(enum sl_level level);
/* A prefix for all lines of this thread until it is set again ("sluice.events/3@17"); NULL: none. Borrowed. */
void sl_log_context(const char *context);
void sl_log(enum sl_level level, const char *fmt, ...) SL_PRINTF(2, 3);
/* Our own bug: prints text with context and aborts (style 14). */
_Noreturn void sl_bug(const char *file, int line, const char *fmt, ...) SL_PRINTF(3, 4);

#define sl_assert(cond) ((cond) ? (void)0 : sl_bug(__FILE__, __LINE__, "assertion failed: %s", #cond))

#endif
