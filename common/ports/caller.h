/* Port: HTTP calls. Adapters: http/ (libcurl multi on the loop) and memory/ (mocks). */
#ifndef SL_PORTS_CALLER_H
#define SL_PORTS_CALLER_H

#include <stdint.h>
#include "common/base/buf.h"

struct sl_http_request {
	const char *method, *url;
	const char *const *headers;     /* "Name: value", NULL-terminated */
	struct sl_bytes body;           /* ptr NULL: none */
	int64_t timeout_ms;             /* whole call; 0 = the caller's default */
	size_t answer_bytes_max;        /* SL_ETOOBIG beyond */
};
struct sl_http_answer {
	int err;                        /* 0, SL_ETIMEOUT, SL_EUNREACHABLE, SL_EREFUSED (egress rules), SL_ETOOBIG, SL_EPARSE (no HTTP) */
	const char *text;               /* detail when err */
	int status;
	const char *content_type;       /* NULL: none */
	struct sl_bytes body;
};
typedef void (*sl_http_done_fn)(void *arg, const struct sl_http_answer *answer);        /* borrows */

struct sl_http_handle;
struct sl_caller;
struct sl_caller_ops {
	/* Copies the request. done is called exactly once unless cancelled; never before this returns. */
	struct sl_http_handle *(*call)(struct sl_caller *caller, const struct sl_http_request *req, sl_http_done_fn done, void *arg);
	void (*cancel)(struct sl_caller *caller, struct sl_http_handle *handle);
	void (*close)(struct sl_caller *caller);
};
struct sl_caller { const struct sl_caller_ops *ops; };

#endif
