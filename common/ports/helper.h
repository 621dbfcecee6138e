/* Port: a helper process that answers one line with one line (R8: expressions that use secrets). Adapters: child/ (a
 * process of our own program on the loop). Same thread rules as the broker. */
#ifndef SL_PORTS_HELPER_H
#define SL_PORTS_HELPER_H

#include "common/base/err.h"
#include <stddef.h>

/* Borrows line. err: SL_ELOST the helper died on this question, SL_ETIMEOUT it was ended because it took too long,
 * SL_EUNREACHABLE it could not be started. */
typedef void (*sl_helper_done_fn)(void *arg, int err, const char *line, size_t len);

struct sl_helper;
struct sl_helper_ops {
	/* Copies the line (no line breaks inside). done is called exactly once, never before this returns; not after
	 * close. One question at a time is with the helper, so its death belongs to that one; it is started again for
	 * the next. */
	void (*ask)(struct sl_helper *helper, const char *line, size_t len, sl_helper_done_fn done, void *arg);
	void (*close)(struct sl_helper *helper);
};
struct sl_helper {
	const struct sl_helper_ops *ops;
};

#endif
