/* Adapter of the caller port (common/ports/caller.h): libcurl's multi interface on a libuv loop.
 * Owner: the service. Thread: the loop's. Connections are kept and reused, HTTP/2 over TLS is negotiated; an answer is
 * bounded; every host name and every resolved address passes the egress rules, those of redirects too. */
#ifndef SL_ADAPTERS_HTTP_HTTP_H
#define SL_ADAPTERS_HTTP_HTTP_H

#include "common/ports/caller.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct sockaddr;

struct sl_http_options {
	/* Allow-list of targets, NULL-terminated: globs over the host ("*.example.com"), with ":port" behind to fix the
	 * port, and CIDR blocks over the resolved address ("10.0.0.0/8"). One of them must fit. NULL or empty:
	 * anything. Borrowed until new returns. */
	const char *const *allow;
	/* Addresses that are denied unless allowed here, whatever name led to them (design section 8). */
	bool loopback;		    /* 127/8, ::1, 0.0.0.0, :: */
	bool link_local;	    /* 169.254/16, fe80::/10 */
	bool metadata;		    /* 169.254.169.254, fd00:ec2::254, 100.100.100.200, 192.0.0.192 */
	int64_t timeout_ms;	    /* whole call, for requests without one; 0 = 30 s */
	int64_t connect_timeout_ms; /* 0 = 10 s */
	size_t answer_bytes_max;    /* for requests without one; 0 = 1 MiB */
	int redirects_max;	    /* -1: none followed; 0 = 3 */
	int connections_max;	    /* kept open; 0 = 512 */
	const char *user_agent;	    /* NULL: "sluice/VERSION". Borrowed until new returns */
	const char *ca_file;	    /* NULL: the system's. Borrowed until new returns */
};

/* The loop is borrowed. NULL only if libcurl cannot start. close() ends all calls without calling them back; the memory
 * goes in the loop's next turns. */
struct sl_caller *sl_caller_http_new(uv_loop_t *loop, const struct sl_http_options *opt);

/* --- egress rules (pure) --- */
/* What the rules say to a URL; SL_ALLOW_BY_ADDRESS: only if a CIDR block of the list holds the resolved address. */
enum sl_egress { SL_ALLOW, SL_ALLOW_BY_ADDRESS };
/* 0, or SL_EREFUSED / SL_EINVAL with a sentence in `why`: scheme not http(s), host not on the allow-list, URL
 * malformed. */
SL_MUST_CHECK int sl_egress_check_url(
	const char *const *allow, const char *url, enum sl_egress *ret, struct sl_buf *why);
/* The same for a resolved address: SL_EREFUSED with a sentence. IPv4 inside IPv6 (::ffff:a.b.c.d, 64:ff9b::/96) counts
 * as IPv4. A CIDR block never overrides the denied kinds of address. */
SL_MUST_CHECK int sl_egress_check_address(
	const struct sl_http_options *opt, enum sl_egress how, const struct sockaddr *addr, struct sl_buf *why);

#endif
