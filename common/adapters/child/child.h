/* Adapter of the helper port: a child process with a socket pair as its standard input; lines go both ways there.
 * Owner: the service; thread: the loop's. The child is started with the first question and again after its death. */
#ifndef SL_ADAPTERS_CHILD_CHILD_H
#define SL_ADAPTERS_CHILD_CHILD_H

#include "common/ports/helper.h"
#include <uv.h>

struct sl_child_options {
	const char *const *argv; /* argv[0] is the program's path; NULL-terminated; borrowed until close */
	int timeout_ms;		 /* for one answer, then the child is killed; 0 = 5 s */
	size_t answer_bytes_max; /* a longer line counts as death; 0 = 16 MiB */
};

/* The loop is borrowed. close() ends the child; the memory goes in the loop's next turns. */
struct sl_helper *sl_helper_child_new(uv_loop_t *loop, const struct sl_child_options *opt);

#endif
