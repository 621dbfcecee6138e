/* /healthz, /readyz, /metrics: libmicrohttpd with a polling thread of its own. */
#include "common/app/http.h"
#include "common/app/metrics.h"
#include "common/base/log.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct sl_http {
	struct MHD_Daemon *daemon;
	char *who, *port_file;
	int port;
	pthread_mutex_t lock; /* why_not */
	char why_not[4096];
	_Atomic int64_t beat_ms, stall_ms;
};

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static enum MHD_Result answer(struct MHD_Connection *con, unsigned status, const char *type, struct sl_buf *body)
{
	size_t len = body->len;
	struct MHD_Response *res = MHD_create_response_from_buffer(len, sl_buf_steal(body), MHD_RESPMEM_MUST_FREE);
	if (!res)
		return MHD_NO;
	MHD_add_response_header(res, "Content-Type", type);
	MHD_add_response_header(res, "Cache-Control", "no-store");
	if (status == 405)
		MHD_add_response_header(res, "Allow", "GET, HEAD");
	enum MHD_Result r = MHD_queue_response(con, status, res);
	MHD_destroy_response(res);
	return r;
}

static unsigned health(struct sl_http *http, struct sl_buf *body)
{
	int64_t silent = now_ms() - http->beat_ms, stall = http->stall_ms;
	if (stall && silent > stall) {
		sl_buf_printf(body, "the loop has not turned for %lld s\n", (long long)silent / 1000);
		return 503;
	}
	sl_buf_adds(body, "ok\n");
	return 200;
}

static unsigned readiness(struct sl_http *http, struct sl_buf *body)
{
	pthread_mutex_lock(&http->lock);
	bool ready = !http->why_not[0];
	sl_buf_printf(body, "%s\n", ready ? "ready" : http->why_not);
	pthread_mutex_unlock(&http->lock);
	return ready ? 200 : 503;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *con, const char *url, const char *method,
	const char *version, const char *upload, size_t *upload_len, void **request)
{
	static const char text[] = "text/plain; charset=utf-8";
	static int seen;
	struct sl_http *http = arg;
	struct sl_buf body;
	unsigned status = 200;
	(void)version;
	(void)upload;
	/* the first call has only headers; answering there would cut a body off */
	if (!*request) {
		*request = &seen;
		return MHD_YES;
	}
	if (*upload_len) {
		*upload_len = 0;
		return MHD_YES;
	}
	sl_buf_init(&body);
	sl_buf_add(&body, "", 0);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		sl_buf_adds(&body, "only GET and HEAD\n");
		status = 405;
	} else if (strcmp(url, "/healthz") == 0) {
		status = health(http, &body);
	} else if (strcmp(url, "/readyz") == 0) {
		status = readiness(http, &body);
	} else if (strcmp(url, "/metrics") == 0) {
		sl_metrics_text(http->who, &body);
		return answer(con, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
	} else {
		sl_buf_adds(&body, "/healthz /readyz /metrics\n");
		status = 404;
	}
	return answer(con, status, text, &body);
}

/* Written beside and renamed: who waits for the file never reads half a number. */
static int write_port(const struct sl_http *http, struct sl_diags *diags)
{
	char temp[4096];
	if ((size_t)snprintf(temp, sizeof(temp), "%s.new", http->port_file) >= sizeof(temp))
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "`http.port_file` is too long");
	FILE *f = fopen(temp, "w");
	bool fine = f && fprintf(f, "%d\n", http->port) > 0;
	fine = f && fclose(f) == 0 && fine;
	if (!fine || rename(temp, http->port_file))
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "`http.port_file` %s: %s", http->port_file,
			strerror(errno));
	return 0;
}

static int listen_on(struct sl_http *http, const char *address, int port, struct sl_diags *diags)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr *addr = (struct sockaddr *)&v4;
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
	if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1) {
		addr = (struct sockaddr *)&v6;
		flags |= MHD_USE_IPv6;
	} else if (inet_pton(AF_INET, address, &v4.sin_addr) != 1) {
		return sl_diag_error(
			diags, SL_ECONFIG, SL_NOWHERE, NULL, "`http.address`: \"%s\" is not an IP address", address);
	}
	errno = 0;
	http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, handle, http, MHD_OPTION_SOCK_ADDR, addr,
		MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_CONNECTION_LIMIT, 64u,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768, MHD_OPTION_END);
	if (!http->daemon)
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "cannot listen on %s port %d: %s", address,
			port, errno ? strerror(errno) : "refused by the system");
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
	http->port = info ? info->port : port;
	return 0;
}

int sl_http_new(const struct sl_config *cfg, const char *metrics_who, struct sl_http **ret, struct sl_diags *diags)
{
	*ret = NULL;
	if (cfg->http_port < 0)
		return 0;
	struct sl_http *http = calloc(1, sizeof(*http));
	if (!http)
		sl_bug(__FILE__, __LINE__, "out of memory");
	pthread_mutex_init(&http->lock, NULL);
	snprintf(http->why_not, sizeof(http->why_not), "starting");
	http->who = strdup(metrics_who);
	http->beat_ms = now_ms();
	http->stall_ms = 30000;
	int err = listen_on(http, cfg->http_address, (int)cfg->http_port, diags);
	if (!err && *cfg->http_port_file) {
		http->port_file = strdup(cfg->http_port_file);
		err = write_port(http, diags);
	}
	if (err) {
		free(http->port_file);
		http->port_file = NULL; /* it was not ours */
		sl_http_free(http);
		return err;
	}
	*ret = http;
	return 0;
}

void sl_http_free(struct sl_http *http)
{
	if (!http)
		return;
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	if (http->port_file)
		unlink(http->port_file);
	pthread_mutex_destroy(&http->lock);
	free(http->port_file);
	free(http->who);
	free(http);
}

int sl_http_port(const struct sl_http *http)
{
	return http->port;
}

void sl_http_set_ready(struct sl_http *http, const char *why_not)
{
	pthread_mutex_lock(&http->lock);
	snprintf(http->why_not, sizeof(http->why_not), "%s", why_not ? why_not : "");
	pthread_mutex_unlock(&http->lock);
}

void sl_http_beat(struct sl_http *http)
{
	http->beat_ms = now_ms();
}

void sl_http_set_stall(struct sl_http *http, int64_t stall_ms)
{
	http->stall_ms = stall_ms;
}
