/* The life of a service, with real signals and real HTTP. */
#include "common/app/service.h"
#include "common/base/log.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* One request; the whole answer, NUL-terminated. */
static void request(int port, const char *line, char *ret, size_t size)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char text[300];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t len = 0;
	ssize_t n;
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	while (len + 1 < size && (n = read(fd, ret + len, size - len - 1)) > 0)
		len += (size_t)n;
	ret[len] = '\0';
	close(fd);
}

static void check(int port, const char *line, const char *status, const char *contains)
{
	static char got[65536];
	request(port, line, got, sizeof(got));
	cr_assert_not_null(strstr(got, status), "%s: %s", line, got);
	cr_assert_not_null(strstr(got, contains), "%s: %s", line, got);
}

Test(app_http, answers_health_readiness_and_metrics)
{
	struct sl_config cfg;
	struct sl_http *http, *second;
	struct sl_diags diags;
	char file[] = "/tmp/sluice-port-XXXXXX", number[16] = "";
	close(mkstemp(file));
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	cfg.http_port_file = file;
	cr_assert_eq(sl_http_new(&cfg, "C", &http, &diags), 0, "%s", sl_diags_first(&diags));
	int port = sl_http_port(http);
	cr_assert_gt(port, 0);
	FILE *f = fopen(file, "r");
	cr_assert_not_null(fgets(number, sizeof(number), f));
	fclose(f);
	cr_assert_eq(atoi(number), port);
	sl_metric_add(SL_METRIC_instances_started_total, 3);
	check(port, "GET /healthz", "HTTP/1.1 200", "\r\n\r\nok\n");
	check(port, "GET /readyz", "HTTP/1.1 503", "\r\n\r\nstarting\n");
	sl_http_set_ready(http, "waiting for Redis");
	check(port, "GET /readyz", "HTTP/1.1 503", "waiting for Redis\n");
	sl_http_set_ready(http, NULL);
	check(port, "GET /readyz", "HTTP/1.1 200", "ready\n");
	check(port, "GET /metrics", "HTTP/1.1 200", "\nsluice_instances_started_total 3\n");
	check(port, "GET /metrics", "text/plain; version=0.0.4", "# TYPE sluice_commit_seconds histogram\n");
	check(port, "HEAD /healthz", "HTTP/1.1 200", "\r\n\r\n");
	check(port, "GET /other", "HTTP/1.1 404", "/readyz");
	check(port, "POST /healthz", "HTTP/1.1 405", "Allow: GET, HEAD");
	sl_http_set_stall(http, 1);
	usleep(20000);
	check(port, "GET /healthz", "HTTP/1.1 503", "the loop has not turned");
	/* the port is taken */
	cfg.http_port = port;
	cfg.http_port_file = "";
	cr_assert_eq(sl_http_new(&cfg, "C", &second, &diags), SL_ECONFIG);
	cr_assert_eq(strncmp(sl_diags_first(&diags), "cannot listen on 127.0.0.1 port", 31), 0, "%s",
		sl_diags_first(&diags));
	sl_diags_clear(&diags);
	cfg.http_address = "localhost";
	cr_assert_eq(sl_http_new(&cfg, "C", &second, &diags), SL_ECONFIG);
	cr_assert_str_eq(sl_diags_first(&diags), "`http.address`: \"localhost\" is not an IP address");
	cfg.http_port = -1;
	cr_assert_eq(sl_http_new(&cfg, "C", &second, &diags), 0);
	cr_assert_null(second);
	sl_http_free(http);
	sl_http_free(NULL);
	cr_assert_neq(access(file, F_OK), 0, "the port file goes with the server");
	sl_config_release(&cfg);
	sl_diags_release(&diags);
}

Test(app_metrics, counts_labels_and_buckets)
{
	struct sl_buf out;
	sl_metrics_reset();
	sl_buf_init(&out);
	sl_metric_add(SL_METRIC_events_routed_total, 2);
	sl_metric_set(SL_METRIC_cache_bytes, 77);
	sl_metric_add_l(SL_METRIC_records_in_total, "a\"b", 1);
	sl_metric_add_l(SL_METRIC_records_in_total, "a\"b", 4);
	sl_metric_observe_us(SL_METRIC_commit_seconds, 100);
	sl_metric_observe_us(SL_METRIC_commit_seconds, 101);
	sl_metric_observe_us(SL_METRIC_commit_seconds, 100000000);
	sl_metric_observe_us(SL_METRIC_commit_seconds, -5);
	sl_metrics_text("C", &out);
	cr_assert_not_null(strstr(out.data, "sluice_events_routed_total 2\n"));
	cr_assert_not_null(strstr(out.data, "sluice_cache_bytes 77\n"));
	cr_assert_not_null(strstr(out.data, "sluice_records_in_total{topic=\"a\\\"b\"} 5\n"));
	cr_assert_not_null(strstr(out.data, "sluice_commit_seconds_bucket{le=\"0.0001\"} 2\n"));
	cr_assert_not_null(strstr(out.data, "sluice_commit_seconds_bucket{le=\"60\"} 3\n"));
	cr_assert_not_null(strstr(out.data, "sluice_commit_seconds_bucket{le=\"+Inf\"} 4\nsluice_commit_seconds_sum "
					    "100.000201\nsluice_commit_seconds_count 4\n"));
	cr_assert_null(strstr(out.data, "sluice_timers_near"), "only the coordinator's");
	for (int i = 0; i < 100; i++) {
		char label[16];
		snprintf(label, sizeof(label), "t%d", i);
		sl_metric_add_l(SL_METRIC_dead_letters_total, label, 1);
	}
	cr_assert_eq(sl_metric_get(SL_METRIC_dead_letters_total, "t0"), 1);
	cr_assert_eq(sl_metric_get(SL_METRIC_dead_letters_total, "t99"), 0);
	cr_assert_eq(sl_metric_get(SL_METRIC_dead_letters_total, "other"), 37);
	sl_metrics_reset();
	cr_assert_eq(sl_metric_get(SL_METRIC_events_routed_total, NULL), 0);
	sl_metrics_reset();
	sl_buf_release(&out);
}

static void *count_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20000; i++) {
		sl_metric_add(SL_METRIC_steps_total, 1);
		sl_metric_add_l(SL_METRIC_calls_total, i & 1 ? "ok" : "error", 1);
	}
	return NULL;
}

Test(app_metrics, threads_lose_no_count)
{
	pthread_t threads[3];
	sl_metrics_reset();
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, count_up, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(sl_metric_get(SL_METRIC_steps_total, NULL), 60000);
	cr_assert_eq(sl_metric_get(SL_METRIC_calls_total, "ok"), 30000);
	cr_assert_eq(sl_metric_get(SL_METRIC_calls_total, "error"), 30000);
	sl_metrics_reset();
}

/* --- services --- */
static char trace[200]; /* what was called, in order */
static uv_timer_t timer;
static int starts_to_fail, fail_with, drain_mode;

static void say(const char *word)
{
	strncat(trace, word, sizeof(trace) - strlen(trace) - 1);
}

static void fire(uv_timer_t *t)
{
	(void)t;
	say("signal ");
	kill(getpid(), SIGTERM);
}

static int start(struct sl_service *svc, struct sl_diags *diags)
{
	say("start ");
	if (starts_to_fail-- > 0)
		return sl_diag_error(diags, fail_with, SL_NOWHERE, NULL, "no broker at %s", svc->config->kafka_brokers);
	uv_timer_init(svc->loop, &timer);
	timer.data = svc;
	uv_timer_start(&timer, fire, 20, 0);
	return 0;
}

static void drained(uv_timer_t *t)
{
	say("drained ");
	sl_service_drained(t->data);
	sl_service_drained(t->data);
}

static void drain(struct sl_service *svc)
{
	cr_assert(sl_service_stopping(svc));
	say("drain ");
	if (drain_mode == 0)
		uv_timer_start(&timer, drained, 10, 0);
	else if (drain_mode == 1)
		sl_service_drained(svc);
	/* 2: never */
}

static void stop(struct sl_service *svc)
{
	(void)svc;
	say("stop");
	uv_close((uv_handle_t *)&timer, NULL);
}

static const char *not_ready(struct sl_service *svc)
{
	(void)svc;
	return "catching up";
}

static const struct sl_service_spec spec = {.name = "probe",
	.letter = "T",
	.summary = "a test",
	.start = start,
	.ready = not_ready,
	.drain = drain,
	.stop = stop};

static int run(void)
{
	struct sl_config cfg;
	sl_config_init(&cfg);
	cfg.stop_timeout_ms = 100;
	sl_log_init("probe", SL_ERROR, 0);
	int code = sl_service_run(&spec, &cfg);
	sl_config_release(&cfg);
	return code;
}

Test(app_service, signal_drains_then_stops)
{
	cr_assert_eq(run(), 0);
	cr_assert_str_eq(trace, "start signal drain drained stop");
}

Test(app_service, drain_may_be_over_at_once)
{
	drain_mode = 1;
	cr_assert_eq(run(), 0);
	cr_assert_str_eq(trace, "start signal drain stop");
}

Test(app_service, drain_that_never_ends_is_bounded)
{
	drain_mode = 2;
	cr_assert_eq(run(), 0);
	cr_assert_str_eq(trace, "start signal drain stop");
}

Test(app_service, start_waits_for_what_may_come)
{
	starts_to_fail = 2;
	fail_with = SL_EUNREACHABLE;
	cr_assert_eq(run(), 0);
	cr_assert_str_eq(trace, "start start start signal drain drained stop");
}

Test(app_service, start_that_cannot_work_ends_the_process)
{
	starts_to_fail = 1;
	fail_with = SL_ECONFIG;
	cr_assert_eq(run(), 1);
	cr_assert_str_eq(trace, "start ");
}

static int start_and_fail(struct sl_service *svc, struct sl_diags *diags)
{
	int err = start(svc, diags);
	uv_timer_stop(&timer);
	sl_service_fail(svc, SL_ESTORE, "the store is read-only");
	return err;
}

Test(app_service, failure_inside_start_still_frees)
{
	struct sl_service_spec failing = spec;
	struct sl_config cfg;
	failing.start = start_and_fail;
	sl_log_init("probe", SL_ERROR, 0);
	sl_config_init(&cfg);
	cr_assert_eq(sl_service_run(&failing, &cfg), 1);
	cr_assert_str_eq(trace, "start stop");
	sl_config_release(&cfg);
}

static int wait_for(pid_t pid)
{
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(app_service, second_signal_leaves_at_once)
{
	drain_mode = 2;
	char file[] = "/tmp/sluice-port-XXXXXX";
	close(mkstemp(file));
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = {
			"probe", "--stop.timeout_ms", "60s", "--log.level", "error", "--http.port_file", file, NULL};
		_exit(sl_service_main(&spec, 7, argv));
	}
	/* the first signal is its own, after 20 ms */
	char text[16] = "";
	for (int i = 0; i < 200 && !strchr(text, '\n'); i++) {
		FILE *f = fopen(file, "r");
		if (f && !fgets(text, sizeof(text), f))
			text[0] = '\0';
		if (f)
			fclose(f);
		usleep(10000);
	}
	usleep(500000);
	check(atoi(text), "GET /readyz", "503", "stopping\n");
	kill(pid, SIGTERM);
	cr_assert_eq(wait_for(pid), 128 + SIGTERM);
}

Test(app_service, help_version_and_usage)
{
	struct {
		char *argv[4];
		int argc, code;
		const char *out;
	} table[] = {
		{{"p", "--version", NULL}, 2, 0, "sluice-probe " SLUICE_VERSION "\n"},
		{{"p", "--help", NULL}, 2, 0, "sluice-probe: a test\n"},
		{{"p", "--nonsense", "1", NULL}, 3, 2, ""},
		{{"p", "word", NULL}, 2, 2, ""},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char file[] = "/tmp/sluice-out-XXXXXX", got[200] = "";
		int fd = mkstemp(file);
		pid_t pid = fork();
		if (pid == 0) {
			dup2(fd, STDOUT_FILENO);
			close(STDERR_FILENO);
			int code = sl_service_main(&spec, table[i].argc, table[i].argv);
			fflush(stdout);
			_exit(code);
		}
		cr_assert_eq(wait_for(pid), table[i].code, "%s", table[i].argv[1]);
		cr_assert_geq(pread(fd, got, sizeof(got) - 1, 0), 0);
		cr_assert_eq(strncmp(got, table[i].out, strlen(table[i].out)), 0, "%s", got);
		close(fd);
		unlink(file);
	}
}
