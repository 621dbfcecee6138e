/* One shape for the three services: arguments, log, loop, health, signals, drain and stop. A service's main.c is
 *
 *	static const struct sl_service_spec spec = {.name = "timer", .letter = "T", .summary = "...",
 *		.start = ..., .ready = ..., .drain = ..., .stop = ...};
 *	int main(int argc, char **argv) { return sl_service_main(&spec, argc, argv); }
 *
 * Everything here runs in the loop thread. */
#ifndef SL_APP_SERVICE_H
#define SL_APP_SERVICE_H

#include "common/app/config.h"
#include "common/app/http.h"
#include "common/app/metrics.h"
#include <uv.h>

struct sl_service;

struct sl_service_spec {
	const char *name;    /* "coordinator" */
	const char *letter;  /* "C": its metrics */
	const char *summary; /* one sentence for --help */
	/* Builds what the service is made of on svc->loop and sets svc->state; the loop runs afterwards. An error of
	 * class RETRY is logged (once per text) and start is called again each second until it succeeds or the process
	 * is stopped, any other ends the process. A start that fails frees what it built. */
	int (*start)(struct sl_service *svc, struct sl_diags *diags);
	/* NULL: ready; else why not. Asked four times a second. May be NULL. */
	const char *(*ready)(struct sl_service *svc);
	/* A signal came: take nothing new, finish what is in hand, then sl_service_drained. May be NULL. */
	void (*drain)(struct sl_service *svc);
	/* Drained, or stop.timeout_ms is over: leave the groups, close all handles, free svc->state. Called once, and
	 * only after a start that succeeded. The loop then runs until the closed handles are gone. May be NULL. */
	void (*stop)(struct sl_service *svc);
};

struct sl_service {
	const struct sl_service_spec *spec;
	struct sl_config *config;
	uv_loop_t *loop;
	void *state;		    /* the service's own */
	struct sl_service_run *run; /* private */
};

/* Does everything; returns the exit code: 0 stopped on request, 1 failed, 2 usage or configuration. */
int sl_service_main(const struct sl_service_spec *spec, int argc, char **argv);
/* The same without parsing; for sl_service_main and tests. cfg stays the caller's. */
int sl_service_run(const struct sl_service_spec *spec, struct sl_config *cfg);

/* What is in hand is finished: go on to stop. Idempotent; also ends a service that nobody signalled. */
void sl_service_drained(struct sl_service *svc);
/* Begins the drain as a signal would. */
void sl_service_stop(struct sl_service *svc);
/* Cannot go on: logs, drains and exits with 1. */
void sl_service_fail(struct sl_service *svc, int err, const char *fmt, ...) SL_PRINTF(3, 4);
bool sl_service_stopping(const struct sl_service *svc);

#endif
