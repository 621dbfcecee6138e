/* The HTTP caller against services that behave and misbehave (tests/e2e/stub.py). */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/adapters/http/http.h"

static pid_t stub;
static int port;
static char dir[] = "/tmp/sluice-http-XXXXXX";
static uv_loop_t loop;
static struct sl_caller *caller;

struct got {
	int calls, err, status;
	char *body, *type, *text;
	size_t len;
};

static void start_stub(void)
{
	char port_file[64];
	cr_assert(mkdtemp(dir));
	snprintf(port_file, sizeof(port_file), "%s/port", dir);
	stub = fork();
	if (stub == 0) {
		execlp("python3", "python3", SL_SOURCE_DIR "/tests/e2e/stub.py", "--port-file", port_file, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 600 && !port; i++) {
		FILE *in = fopen(port_file, "r");
		if (in) {
			cr_assert_eq(fscanf(in, "%d", &port), 1);
			fclose(in);
			unlink(port_file);
		}
		usleep(50000);
	}
	cr_assert(port, "the stub did not start");
	rmdir(dir);
	cr_assert_eq(uv_loop_init(&loop), 0);
}

static void stop_stub(void)
{
	if (caller)
		caller->ops->close(caller);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&loop), 0, "nothing is left on the loop");
	kill(stub, SIGKILL);
	waitpid(stub, NULL, 0);
}

static void open_caller(struct sl_http_options opt)
{
	caller = sl_caller_http_new(&loop, &opt);
	cr_assert(caller);
}

static void on_done(void *arg, const struct sl_http_answer *answer)
{
	struct got *got = arg;
	got->calls++;
	got->err = answer->err;
	got->status = answer->status;
	got->text = answer->text ? strdup(answer->text) : NULL;
	got->type = answer->content_type ? strdup(answer->content_type) : NULL;
	got->len = answer->body.len;
	got->body = calloc(1, answer->body.len + 1);
	if (answer->body.len)
		memcpy(got->body, answer->body.ptr, answer->body.len);
}

static const char *url_of(const char *path)
{
	static char url[8][640];
	static int n;
	char *to = url[n++ % 8];
	snprintf(to, sizeof(url[0]), "http://127.0.0.1:%d%s", port, path);
	return to;
}

static struct sl_http_handle *begin(const char *method, const char *url, const char *body, int64_t timeout_ms, struct got *got)
{
	static const char *const headers[] = {"Content-Type: application/json", "Idempotency-Key: k1", "Authorization: Basic xyz", NULL};
	struct sl_http_request req = {.method = method, .url = url, .headers = headers, .timeout_ms = timeout_ms,
		.answer_bytes_max = 1000};
	if (body)
		req.body = (struct sl_bytes){body, strlen(body)};
	memset(got, 0, sizeof(*got));
	struct sl_http_handle *handle = caller->ops->call(caller, &req, on_done, got);
	cr_assert_eq(got->calls, 0, "no answer before call returns");
	return handle;
}

static void run_until(const struct got *got)
{
	while (!got->calls)
		uv_run(&loop, UV_RUN_ONCE);
}

static void forget(struct got *got)
{
	free(got->body);
	free(got->type);
	free(got->text);
	memset(got, 0, sizeof(*got));
}

TestSuite(caller, .init = start_stub, .fini = stop_stub, .timeout = 60);

Test(caller, methods_headers_and_bodies_arrive)
{
	struct got got;
	open_caller((struct sl_http_options){.loopback = true});
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	for (int i = 0; i < 5; i++) {
		char want[64];
		snprintf(want, sizeof(want), "\"method\":\"%s\"", methods[i]);
		begin(methods[i], url_of("/echo?q=a%20b"), i ? "{\"x\":1}" : NULL, 5000, &got);
		run_until(&got);
		cr_expect_eq(got.err, 0, "%s", got.text);
		cr_expect_eq(got.status, 200);
		cr_expect_str_eq(got.type, "application/json");
		cr_expect(strstr(got.body, want), "%s", got.body);
		cr_expect(strstr(got.body, "\"q\":\"a b\""), "%s", got.body);
		cr_expect(strstr(got.body, "\"idempotency-key\":\"k1\""), "%s", got.body);
		cr_expect(strstr(got.body, "\"user-agent\":\"sluice/"), "%s", got.body);
		if (i)
			cr_expect(strstr(got.body, "\"body\":{\"x\":1}"), "%s", got.body);
		forget(&got);
	}
	begin("POST", url_of("/echo"), NULL, 5000, &got);
	run_until(&got);
	cr_expect(strstr(got.body, "\"content-length\":\"0\""), "%s", got.body);
	forget(&got);
	begin("HEAD", url_of("/ok"), NULL, 5000, &got);
	run_until(&got);
	cr_expect_eq(got.err, 0);
	cr_expect_eq(got.status, 200);
	cr_expect_eq(got.len, 0);
	forget(&got);
}

Test(caller, misbehaving_services_give_the_named_error)
{
	struct got got;
	open_caller((struct sl_http_options){.loopback = true});
	static const struct { const char *path; int err, status; const char *text; } cases[] = {
		{"/status/404", 0, 404, NULL}, {"/status/500", 0, 500, NULL}, {"/empty", 0, 204, NULL}, {"/garbage", 0, 200, NULL},
		{"/huge?bytes=5000", SL_ETOOBIG, 0, "larger than 1000 bytes"}, {"/huge", SL_ETOOBIG, 0, "larger"},
		{"/cut", SL_EPARSE, 0, NULL}, {"/drop", SL_EUNREACHABLE, 0, NULL}, {"/nonsense", SL_EPARSE, 0, NULL},
		{"/never", SL_ETIMEOUT, 0, NULL}, {"/slow?ms=3000", SL_ETIMEOUT, 0, NULL}, {"/slow?ms=10", 0, 200, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin("GET", url_of(cases[i].path), NULL, 700, &got);
		run_until(&got);
		cr_expect_eq(got.err, cases[i].err, "%s: %d %s", cases[i].path, got.err, got.text);
		if (!cases[i].err)
			cr_expect_eq(got.status, cases[i].status, "%s: %d", cases[i].path, got.status);
		else
			cr_expect(got.text && *got.text, "%s", cases[i].path);
		if (cases[i].text)
			cr_expect(strstr(got.text, cases[i].text), "%s: %s", cases[i].path, got.text);
		forget(&got);
	}
	begin("GET", "http://127.0.0.1:1/", NULL, 700, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EUNREACHABLE, "%s", got.text);
	forget(&got);
	begin("GET", "http://no-such-host.invalid/", NULL, 5000, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EUNREACHABLE, "%s", got.text);
	forget(&got);
}

Test(caller, redirects_are_followed_three_times_and_under_the_rules)
{
	struct got got;
	char path[600];
	static const char *const allow[] = {"127.0.0.1", "localhost", NULL};
	open_caller((struct sl_http_options){.loopback = true, .allow = allow});
	begin("POST", url_of("/redirect?to=/echo"), "{\"x\":1}", 5000, &got);
	run_until(&got);
	cr_expect(strstr(got.body, "\"method\":\"GET\""), "302 after POST: %s", got.body);
	cr_expect(strstr(got.body, "\"authorization\""), "the same host: %s", got.body);
	forget(&got);
	begin("POST", url_of("/redirect?status=307&to=/echo"), "{\"x\":1}", 5000, &got);
	run_until(&got);
	cr_expect(strstr(got.body, "\"method\":\"POST\""), "%s", got.body);
	cr_expect(strstr(got.body, "\"body\":{\"x\":1}"), "%s", got.body);
	forget(&got);
	snprintf(path, sizeof(path), "/redirect?to=http://localhost:%d/echo", port);
	begin("GET", url_of(path), NULL, 5000, &got);
	run_until(&got);
	cr_expect_eq(got.status, 200, "%s", got.text);
	cr_expect_not(got.body && strstr(got.body, "\"authorization\""), "another host gets no credentials: %s", got.body);
	forget(&got);
	begin("GET", url_of("/loop"), NULL, 5000, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EPARSE, "%d", got.err);
	cr_expect(strstr(got.text, "more than 3"), "%s", got.text);
	forget(&got);
	static const char *const forbidden[] = {"http://evil.test/", "http://169.254.169.254/latest", "file:///etc/passwd"};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/redirect?to=%s", forbidden[i]);
		begin("GET", url_of(path), NULL, 5000, &got);
		run_until(&got);
		cr_expect_eq(got.err, SL_EREFUSED, "%s: %d %s", forbidden[i], got.err, got.text);
		forget(&got);
	}
}

Test(caller, denied_addresses_are_refused_whatever_name_leads_there)
{
	struct got got;
	char url[100];
	open_caller((struct sl_http_options){0});
	begin("GET", url_of("/ok"), NULL, 2000, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EREFUSED, "%d %s", got.err, got.text);
	cr_expect(strstr(got.text, "loopback"), "%s", got.text);
	forget(&got);
	snprintf(url, sizeof(url), "http://localhost:%d/ok", port);
	begin("GET", url, NULL, 2000, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EREFUSED, "%d %s", got.err, got.text);
	forget(&got);
	begin("GET", "http://169.254.169.254/latest/meta-data/", NULL, 2000, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EREFUSED);
	cr_expect(strstr(got.text, "metadata"), "%s", got.text);
	forget(&got);
	begin("GET", "ftp://example.com/x", NULL, 2000, &got);
	run_until(&got);
	cr_expect_eq(got.err, SL_EREFUSED);
	forget(&got);
}

static void start_another(void *arg, const struct sl_http_answer *answer)
{
	cr_expect_eq(answer->status, 200);
	begin("GET", url_of("/ok"), NULL, 2000, arg);
}

Test(caller, calls_run_side_by_side_and_can_be_cancelled)
{
	struct got slow, fast[20], never, next = {0};
	open_caller((struct sl_http_options){.loopback = true});
	begin("GET", url_of("/slow?ms=3000"), NULL, 60000, &slow);
	struct sl_http_handle *handle = begin("GET", url_of("/never"), NULL, 60000, &never);
	for (int i = 0; i < 20; i++)
		begin("GET", url_of("/ok"), NULL, 5000, &fast[i]);
	for (int i = 0; i < 20; i++) {
		run_until(&fast[i]);
		cr_expect_eq(fast[i].status, 200);
		forget(&fast[i]);
	}
	cr_expect_eq(slow.calls, 0, "a slow call holds up nobody");
	caller->ops->cancel(caller, handle);
	run_until(&slow);
	cr_expect_eq(slow.status, 200);
	forget(&slow);
	cr_expect_eq(never.calls, 0, "a cancelled call never answers");
	struct sl_http_request req = {.method = "GET", .url = url_of("/ok")};
	caller->ops->call(caller, &req, start_another, &next);
	run_until(&next);
	cr_expect_eq(next.status, 200, "a callback may start a call");
	forget(&next);
	begin("GET", url_of("/never"), NULL, 5000, &never); /* and is open at close */
	uv_run(&loop, UV_RUN_NOWAIT);
}
