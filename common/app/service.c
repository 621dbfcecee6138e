/* The life of a service: parse, log, loop, health, start (again until it works), run, drain, stop. */
#include "common/app/service.h"
#include "common/base/log.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum stage { STARTING, RUNNING, DRAINING, STOPPED };
struct sl_service_run {
	struct sl_service *svc;
	enum stage stage;
	bool started; /* start succeeded: stop is due */
	int exit_code;
	struct sl_http *http;
	uv_signal_t term, interrupt;
	uv_timer_t tick;	  /* health */
	uv_timer_t again;	  /* next attempt to start; later the bound of the drain */
	struct sl_buf last_error; /* what start said last: logged once per text */
};

#define TICK_MS 250
#define START_AGAIN_MS 1000
#define CLOSE_MS 5000 /* handles that a service forgot to close */

static void close_own(struct sl_service_run *run)
{
	uv_handle_t *own[] = {(uv_handle_t *)&run->term, (uv_handle_t *)&run->interrupt, (uv_handle_t *)&run->tick,
		(uv_handle_t *)&run->again};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!uv_is_closing(own[i]))
			uv_close(own[i], NULL);
}

/* The only function that changes the stage (style 15). */
static void enter(struct sl_service_run *run, enum stage stage)
{
	static const char *const names[] = {"starting", "running", "draining", "stopped"};
	sl_assert(stage > run->stage);
	sl_log(SL_DEBUG, "%s -> %s", names[run->stage], names[stage]);
	run->stage = stage;
}

static void finish(struct sl_service_run *run)
{
	if (run->stage == STOPPED)
		return;
	enter(run, STOPPED);
	if (run->started && run->svc->spec->stop)
		run->svc->spec->stop(run->svc);
	close_own(run);
}

static void drain_late(uv_timer_t *timer)
{
	struct sl_service_run *run = timer->data;
	sl_log(SL_WARN,
		"not drained within stop.timeout_ms (%lld ms): stopping anyway; what is unfinished is done again after "
		"a restart",
		(long long)run->svc->config->stop_timeout_ms);
	finish(run);
}

void sl_service_stop(struct sl_service *svc)
{
	struct sl_service_run *run = svc->run;
	if (run->stage >= DRAINING)
		return;
	enter(run, DRAINING);
	if (run->http)
		sl_http_set_ready(run->http, "stopping");
	if (!run->started || !svc->spec->drain) {
		finish(run);
		return;
	}
	uv_timer_start(&run->again, drain_late, (uint64_t)svc->config->stop_timeout_ms, 0);
	svc->spec->drain(svc);
}

void sl_service_drained(struct sl_service *svc)
{
	struct sl_service_run *run = svc->run;
	if (run->stage < DRAINING)
		enter(run, DRAINING);
	finish(run);
}

void sl_service_fail(struct sl_service *svc, int err, const char *fmt, ...)
{
	struct sl_buf text;
	va_list ap;
	sl_buf_init(&text);
	va_start(ap, fmt);
	sl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	sl_log(SL_ERROR, "%s (%s)", text.data ? text.data : sl_err_text(err), sl_err_name(err));
	sl_buf_release(&text);
	svc->run->exit_code = 1;
	sl_service_stop(svc);
}

bool sl_service_stopping(const struct sl_service *svc)
{
	return svc->run->stage >= DRAINING;
}

static void on_signal(uv_signal_t *handle, int signum)
{
	struct sl_service_run *run = handle->data;
	if (run->stage >= DRAINING) {
		sl_log(SL_WARN, "second signal: leaving at once");
		if (run->http && *run->svc->config->http_port_file)
			unlink(run->svc->config->http_port_file);
		_exit(128 + signum);
	}
	sl_log(SL_INFO, "%s: stopping", signum == SIGINT ? "interrupted" : "asked to stop");
	sl_service_stop(run->svc);
}

static void on_tick(uv_timer_t *timer)
{
	struct sl_service_run *run = timer->data;
	if (!run->http)
		return;
	sl_http_beat(run->http);
	if (run->stage == RUNNING)
		sl_http_set_ready(run->http, run->svc->spec->ready ? run->svc->spec->ready(run->svc) : NULL);
}

/* One attempt; a reason that may pass (no broker yet) is tried again. */
static void attempt(uv_timer_t *timer)
{
	struct sl_service_run *run = timer->data;
	struct sl_service *svc = run->svc;
	struct sl_diags diags;
	struct sl_buf text;
	sl_diags_init(&diags);
	sl_buf_init(&text);
	int err = svc->spec->start(svc, &diags);
	if (!err) {
		run->started = true;
		if (run->stage == STARTING) {
			enter(run, RUNNING);
			sl_log(SL_INFO, "started%s", run->last_error.len ? " after all" : "");
		} else if (run->stage == STOPPED && svc->spec->stop) {
			svc->spec->stop(svc); /* start itself asked for the end */
		}
	} else {
		for (const struct sl_diag *d = diags.first; d; d = d->next)
			sl_buf_printf(&text, "%s%s%s%s%s", text.len ? "; " : "", d->text, d->hint ? " (" : "",
				d->hint ? d->hint : "", d->hint ? ")" : "");
		if (!text.len)
			sl_buf_adds(&text, sl_err_text(err));
		bool again = sl_err_class(err) == SL_CLASS_RETRY;
		if (!again || !run->last_error.data || strcmp(run->last_error.data, text.data) != 0)
			sl_log(again ? SL_WARN : SL_ERROR, again ? "cannot start yet: %s" : "cannot start: %s",
				text.data);
		if (run->http)
			sl_http_set_ready(run->http, text.data);
		sl_buf_clear(&run->last_error);
		sl_buf_adds(&run->last_error, text.data);
		if (again) {
			uv_timer_start(&run->again, attempt, START_AGAIN_MS, 0);
		} else {
			run->exit_code = 1;
			sl_service_stop(svc);
		}
	}
	sl_buf_release(&text);
	sl_diags_release(&diags);
}

static void forgotten(uv_handle_t *handle, void *arg)
{
	(void)arg;
	sl_log(SL_DEBUG, "left open at the end: a %s handle", uv_handle_type_name(uv_handle_get_type(handle)));
}

/* stop() closed everything; the loop runs until the close callbacks are through. */
static void empty_loop(struct sl_service *svc)
{
	uint64_t until = uv_now(svc->loop) + CLOSE_MS;
	while (uv_loop_alive(svc->loop) && uv_now(svc->loop) < until) {
		uv_run(svc->loop, UV_RUN_NOWAIT);
		if (uv_loop_alive(svc->loop))
			usleep(1000);
		uv_update_time(svc->loop);
	}
	if (uv_loop_close(svc->loop) == UV_EBUSY)
		uv_walk(svc->loop, forgotten, NULL);
}

static void init_log(const struct sl_service_spec *spec, const struct sl_config *cfg)
{
	static const char *const levels[] = {"debug", "info", "warn", "error"};
	enum sl_level level = SL_INFO;
	for (int i = 0; i < 4; i++)
		if (sl_config_is(cfg->log_level, levels[i]))
			level = (enum sl_level)i;
	bool json = sl_config_is(cfg->log_format, "json") ||
		    (sl_config_is(cfg->log_format, "auto") && !isatty(STDERR_FILENO));
	sl_log_init(spec->name, level, json);
}

int sl_service_run(const struct sl_service_spec *spec, struct sl_config *cfg)
{
	uv_loop_t loop;
	struct sl_diags diags;
	struct sl_service svc = {.spec = spec, .config = cfg, .loop = &loop};
	struct sl_service_run run = {.svc = &svc};
	svc.run = &run;
	sl_diags_init(&diags);
	signal(SIGPIPE, SIG_IGN);
	if (sl_http_new(cfg, spec->letter, &run.http, &diags)) {
		sl_log(SL_ERROR, "%s", sl_diags_first(&diags));
		sl_diags_release(&diags);
		return 2;
	}
	sl_diags_release(&diags);
	sl_assert(uv_loop_init(&loop) == 0);
	uv_signal_init(&loop, &run.term);
	uv_signal_init(&loop, &run.interrupt);
	uv_timer_init(&loop, &run.tick);
	uv_timer_init(&loop, &run.again);
	run.term.data = run.interrupt.data = run.tick.data = run.again.data = &run;
	uv_signal_start(&run.term, on_signal, SIGTERM);
	uv_signal_start(&run.interrupt, on_signal, SIGINT);
	uv_timer_start(&run.tick, on_tick, TICK_MS, TICK_MS);
	uv_timer_start(&run.again, attempt, 0, 0);
	if (run.http)
		sl_log(SL_INFO, "version " SLUICE_VERSION ", health and metrics on %s port %d", cfg->http_address,
			sl_http_port(run.http));
	else
		sl_log(SL_INFO, "version " SLUICE_VERSION);
	while (run.stage != STOPPED)
		uv_run(&loop, UV_RUN_ONCE);
	empty_loop(&svc);
	sl_http_free(run.http);
	sl_buf_release(&run.last_error);
	sl_log(SL_INFO, "stopped");
	return run.exit_code;
}

static void print_help(const struct sl_service_spec *spec)
{
	struct sl_buf out;
	sl_buf_init(&out);
	sl_buf_printf(&out,
		"sluice-%s: %s\n\nUsage: sluice-%s [--config FILE] [--NAME VALUE]...\n"
		"  --config FILE   settings as YAML (SLUICE_CONFIG)\n  --help          this text\n  --version       "
		"the version\n\n",
		spec->name, spec->summary, spec->name);
	sl_config_help(&out);
	fputs(out.data, stdout);
	sl_buf_release(&out);
}

int sl_service_main(const struct sl_service_spec *spec, int argc, char **argv)
{
	struct sl_config cfg;
	struct sl_diags diags;
	struct sl_buf text;
	int code = 0;
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	sl_buf_init(&text);
	int err = sl_config_load(&cfg, argc, argv, environ, false, &diags);
	if (!err && !cfg.help && !cfg.version && cfg.arg_count > 0)
		err = sl_diag_error(&diags, SL_ECONFIG, SL_NOWHERE, NULL, "unexpected argument \"%s\"", cfg.args[0]);
	sl_diags_print(&diags, &text, NULL);
	if (text.len)
		fputs(text.data, stderr);
	if (err) {
		fprintf(stderr, "Try: %s --help\n", argc ? argv[0] : spec->name);
		code = 2;
	} else if (cfg.help) {
		print_help(spec);
	} else if (cfg.version) {
		printf("sluice-%s %s\n", spec->name, SLUICE_VERSION);
	} else {
		setenv("TZ", "UTC", 1); /* design section 6: expressions see no local time */
		tzset();
		init_log(spec, &cfg);
		code = sl_service_run(spec, &cfg);
	}
	sl_buf_release(&text);
	sl_diags_release(&diags);
	sl_config_release(&cfg);
	return code;
}
