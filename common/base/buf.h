/* Growable byte buffer. `data` is always NUL-terminated behind `len` once anything was written, so that
 * text can be used as a C string. One thread, the caller's memory. Out of memory aborts (R7). */
#ifndef SL_BASE_BUF_H
#define SL_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/err.h"

/* Borrowed bytes; `ptr` NULL means absent. */
struct sl_bytes {
	const void *ptr;
	size_t len;
};

struct sl_buf {
	char *data;
	size_t len, cap;
};

void sl_buf_init(struct sl_buf *buf);
void sl_buf_release(struct sl_buf *buf);
void sl_buf_clear(struct sl_buf *buf);               /* len = 0, keeps the memory */
void sl_buf_reserve(struct sl_buf *buf, size_t more);
void sl_buf_add(struct sl_buf *buf, const void *bytes, size_t len);
void sl_buf_addc(struct sl_buf *buf, char c);
void sl_buf_adds(struct sl_buf *buf, const char *text);
void sl_buf_addi(struct sl_buf *buf, int64_t value); /* decimal */
void sl_buf_printf(struct sl_buf *buf, const char *fmt, ...) SL_PRINTF(2, 3);
void sl_buf_vprintf(struct sl_buf *buf, const char *fmt, va_list ap) SL_PRINTF(2, 0);
/* A JSON string with quotes and escapes; `text` is valid UTF-8. */
void sl_buf_add_json_str(struct sl_buf *buf, const char *text, size_t len);
/* Gives the malloc'ed bytes to the caller (free them); the buffer is empty afterwards. Never NULL. */
char *sl_buf_steal(struct sl_buf *buf);
/* Borrowed view of the contents. */
struct sl_bytes sl_buf_bytes(const struct sl_buf *buf);

#endif
