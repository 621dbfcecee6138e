/* What hosts a pipeline in a process: the connections that every service has, and turns on the loop. A service's state begins with a
 * struct sl_host. Loop thread only.
 *
 * A turn comes before each sleep of the loop, after each sl_host_wake, and ten times a second for what waits for time alone. */
#ifndef SL_SERVICES_HOST_H
#define SL_SERVICES_HOST_H

#include "common/app/service.h"
#include "common/ports/clock.h"
#include "services/common/connect.h"
#include "services/common/layout.h"

struct sl_host {
	struct sl_service *svc;
	struct sl_arena arena;
	struct sl_topics topics;
	struct sl_broker *broker;
	struct sl_store *store;
	struct sl_clock *clock;
	bool draining;                  /* set by sl_host_drain */

	/* private */
	bool (*turn)(struct sl_host *host);
	uv_prepare_t prepare;
	uv_idle_t idle;                 /* runs while more is ready: the loop does not sleep */
	uv_async_t async;
	uv_timer_t tick;
	int handles;                    /* still open: this memory is theirs too */
	unsigned ticks;
	int64_t topic_ticks;            /* since the topics were looked at */
	char store_trouble[256];        /* "": Redis is well */
	char topic_trouble[2048];       /* "": the topics are as they must be */
	const char *layout_trouble;     /* NULL: known */
	struct sl_layout *layout;
	uv_work_t topic_check;
	bool checking, closing;
};

/* Checks the topics (a mistake there may be mended while we wait) and connects; `host` is the beginning of a malloc'ed state. turn: everything that can go on; true: more is ready
 * now. An error (with a diagnostic) frees the state. */
SL_MUST_CHECK int sl_host_open(struct sl_host *host, struct sl_service *svc, bool (*turn)(struct sl_host *host), struct sl_diags *diags);
/* Turns begin. */
void sl_host_run(struct sl_host *host);
/* For the pipeline's options. */
void sl_host_wake(void *host);
void sl_host_fatal(void *host, int err, const char *text);
/* NULL: Kafka, its topics and Redis are as they must be (R10); else why not. */
const char *sl_host_ready(struct sl_host *host);
void sl_host_drain(struct sl_host *host);
/* Closes the connections: after it no port calls back any more. Then the caller frees its pipeline, and sl_host_free lets go of the rest;
 * the state's memory goes when the loop has closed its handles. */
void sl_host_close(struct sl_host *host);
void sl_host_free(struct sl_host *host);

#endif
