/* HTTP answers -> results and errors; finished offsets; redaction. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "services/executor/answer.h"
#include "services/executor/evaluate.h"
#include "services/executor/tracker.h"

static const struct {
	const char *name;
	struct sl_http_answer answer;
	const char *data, *error;       /* JSON; error: exactly */
} answers[] = {
	{"json", {.status = 200, .content_type = "application/json", .body = {"{\"a\":1}", 7}}, "{\"a\":1}", NULL},
	{"json with charset", {.status = 201, .content_type = "application/json; charset=utf-8", .body = {"[1]", 3}}, "[1]", NULL},
	{"+json", {.status = 200, .content_type = "application/hal+json", .body = {"null", 4}}, "null", NULL},
	{"text", {.status = 200, .content_type = "text/plain", .body = {"42", 2}}, "\"42\"", NULL},
	{"html", {.status = 200, .content_type = "text/html", .body = {"<p>", 3}}, "\"<p>\"", NULL},
	{"bytes", {.status = 200, .content_type = "application/octet-stream", .body = {"\xff\x00\x01\x02", 4}}, "\"/wABAg==\"", NULL},
	{"no type, json", {.status = 200, .body = {"{\"a\":1}", 7}}, "{\"a\":1}", NULL},
	{"no type, text", {.status = 200, .body = {"hi", 2}}, "\"hi\"", NULL},
	{"empty", {.status = 204}, "{}", NULL},
	{"empty json", {.status = 200, .content_type = "application/json"}, "{}", NULL},
	{"big integer", {.status = 200, .content_type = "application/json", .body = {"9007199254740993", 16}}, NULL, "bad-response"},
	{"garbage", {.status = 200, .content_type = "application/json", .body = {"{\"a\":", 5}}, NULL, "bad-response"},
	{"not utf-8", {.status = 200, .content_type = "application/json", .body = {"\"\xff\"", 3}}, NULL, "bad-response"},
	{"404", {.status = 404, .content_type = "text/plain", .body = {"gone fishing", 12}}, NULL,
		"{\"code\":\"404\",\"status\":404,\"title\":\"Not Found\",\"detail\":\"gone fishing\"}"},
	{"599", {.status = 599}, NULL, "{\"code\":\"599\",\"status\":599,\"title\":\"The service reported an error\"}"},
	{"304", {.status = 304}, NULL, "{\"code\":\"304\",\"status\":304,\"title\":\"Not Modified\"}"},
	{"problem", {.status = 503, .content_type = "application/problem+json",
		.body = {"{\"type\":\"urn:x\",\"title\":\"T\",\"detail\":\"D\",\"instance\":\"/i\",\"status\":1}", 68}}, NULL,
		"{\"code\":\"503\",\"status\":503,\"type\":\"urn:x\",\"title\":\"T\",\"detail\":\"D\",\"instance\":\"/i\"}"},
	{"timeout", {.err = SL_ETIMEOUT, .text = "x"}, NULL, "timeout"},
	{"unreachable", {.err = SL_EUNREACHABLE}, NULL, "unreachable"},
	{"refused", {.err = SL_EREFUSED, .text = "x"}, NULL, "forbidden"},
	{"too big", {.err = SL_ETOOBIG, .text = "x"}, NULL, "too-big"},
	{"no http", {.err = SL_EPARSE, .text = "x"}, NULL, "bad-response"},
};

Test(answer, each_kind_of_answer_becomes_data_or_a_named_error)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		jv data, error;
		sl_answer_read(&answers[i].answer, &sl_json_default, &data, &error);
		cr_assert_neq(jv_is_valid(data), jv_is_valid(error), "%s: one of the two", answers[i].name);
		jv got = jv_is_valid(data) ? data : error;
		char *text = sl_json_text(got);
		if (answers[i].data) {
			cr_expect_str_eq(text, answers[i].data, "%s: %s", answers[i].name, text);
		} else if (answers[i].error[0] == '{') {
			jv want;
			cr_assert_eq(sl_json_parse(answers[i].error, strlen(answers[i].error), &sl_json_default, &want, NULL), 0);
			cr_expect(sl_json_equal(got, want), "%s: %s", answers[i].name, text);
			jv_free(want);
		} else {
			cr_expect_str_eq(sl_json_str(got, "code"), answers[i].error, "%s: %s", answers[i].name, text);
			cr_expect(sl_json_int(got, "status", 0) >= 400, "%s: %s", answers[i].name, text);
			cr_expect(sl_json_str(got, "title"), "%s", text);
		}
		free(text);
		jv_free(got);
	}
}

Test(answer, a_long_error_text_is_cut_between_characters)
{
	char body[3000];
	for (size_t i = 0; i + 1 < sizeof(body); i += 2)
		memcpy(body + i, "\xc3\xa4", 2);
	memmove(body + 1, body, sizeof(body) - 1);
	body[0] = 'x';
	struct sl_http_answer answer = {.status = 500, .content_type = "text/plain", .body = {body, 2001}};
	jv data, error;
	sl_answer_read(&answer, &sl_json_default, &data, &error);
	cr_assert(sl_json_str(error, "detail"));
	cr_expect_eq(strlen(sl_json_str(error, "detail")), 1023);
	jv_free(error);
}

/* --- tracker --- */

Test(tracker, out_of_order_finishes_move_the_contiguous_run)
{
	struct sl_tracker t;
	sl_tracker_init(&t, 10);
	sl_tracker_finish(&t, 12, 12);
	sl_tracker_finish(&t, 14, 16);
	sl_tracker_finish(&t, 13, 13);
	cr_expect_eq(t.count, 1, "12..16 is one run");
	cr_expect_eq(t.next, 10);
	cr_expect(sl_tracker_finished(&t, 9) && sl_tracker_finished(&t, 12) && sl_tracker_finished(&t, 16));
	cr_expect_not(sl_tracker_finished(&t, 10) || sl_tracker_finished(&t, 11) || sl_tracker_finished(&t, 17));
	sl_tracker_finish(&t, 10, 10);
	cr_expect_eq(t.next, 11);
	sl_tracker_finish(&t, 11, 11);
	cr_expect_eq(t.next, 17);
	cr_expect_eq(t.count, 0);
	sl_tracker_finish(&t, 3, 12); /* old news */
	cr_expect_eq(t.next, 17);
	sl_tracker_release(&t);
}

Test(tracker, runs_survive_writing_and_reading_in_random_order)
{
	unsigned seed = 7;
	for (int round = 0; round < 200; round++) {
		bool done[300] = {false};
		struct sl_tracker t, back;
		struct sl_buf text;
		sl_buf_init(&text);
		sl_tracker_init(&t, 1000);
		int n = rand_r(&seed) % 280;
		for (int i = 0; i < n; i++) {
			int at = rand_r(&seed) % 300;
			done[at] = true;
			sl_tracker_finish(&t, 1000 + at, 1000 + at);
		}
		sl_tracker_write(&t, 4000, &text);
		sl_tracker_init(&back, t.next);
		cr_assert_eq(sl_tracker_read(&back, text.data), 0, "%s", text.data);
		for (int i = 0; i < 300; i++) {
			cr_assert_eq(sl_tracker_finished(&t, 1000 + i), done[i]);
			cr_assert_eq(sl_tracker_finished(&back, 1000 + i), done[i], "%s", text.data);
		}
		sl_tracker_release(&t);
		sl_tracker_release(&back);
		sl_buf_release(&text);
	}
}

Test(tracker, only_the_lowest_runs_that_fit_are_written)
{
	struct sl_tracker t, back;
	struct sl_buf text;
	sl_buf_init(&text);
	sl_tracker_init(&t, 0);
	for (int i = 1; i < 20000; i += 2)
		sl_tracker_finish(&t, i, i);
	sl_tracker_write(&t, 4000, &text);
	cr_expect_leq(text.len, 4000);
	cr_expect_geq(text.len, 3990);
	sl_tracker_init(&back, 0);
	cr_assert_eq(sl_tracker_read(&back, text.data), 0);
	cr_expect(sl_tracker_finished(&back, 1) && sl_tracker_finished(&back, 1001));
	cr_expect_not(sl_tracker_finished(&back, 19999));
	sl_tracker_release(&t);
	sl_tracker_release(&back);
	sl_buf_release(&text);
}

Test(tracker, a_foreign_text_is_refused_whole)
{
	static const char *const bad[] = {"x", "1;", "1;3", "1;3+", "1;3+1,", "1;0+1", "1;3+0", "1;-3+1", "2;3+1", "1;3+1 ", "1;3+1,x",
		"1;99999999999999999999+1"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sl_tracker t;
		sl_tracker_init(&t, 5);
		cr_expect_eq(sl_tracker_read(&t, bad[i]), SL_EPARSE, "%s", bad[i]);
		cr_expect_eq(t.count, 0, "%s", bad[i]);
		sl_tracker_release(&t);
	}
}

/* --- redaction --- */

static char *secret(void *arg, const char *name)
{
	(void)arg;
	return strcmp(name, "pass") == 0 ? strdup("hunter2") : strcmp(name, "longer") == 0 ? strdup("hunter2000") :
		strcmp(name, "pin") == 0 ? strdup("7") : NULL;
}

Test(redact, literal_values_go_everywhere_they_stand)
{
	static const char *const names[] = {"pass", "longer", "pin", "none"};
	static const struct { const char *in, *out; } cases[] = {
		{"\"hunter2\"", "\"[redacted]\""},
		{"\"x hunter2 y hunter2\"", "\"x [redacted] y [redacted]\""},
		{"\"hunter2000!\"", "\"[redacted]!\""},
		{"{\"a hunter2\":[\"hunter2\",1,null]}", "{\"a [redacted]\":[\"[redacted]\",1,null]}"},
		{"\"7\"", "\"[redacted]\""},
		{"\"17 and 7\"", "\"17 and 7\""},
		{"{\"ok\":true}", "{\"ok\":true}"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		jv value;
		cr_assert_eq(sl_json_parse(cases[i].in, strlen(cases[i].in), &sl_json_default, &value, NULL), 0);
		value = sl_redact(value, names, 4, secret, NULL);
		char *text = sl_json_text(value);
		cr_expect_str_eq(text, cases[i].out, "%s", text);
		free(text);
		jv_free(value);
	}
}
