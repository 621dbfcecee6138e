/* Short ways to add and evaluate expressions in tests. */
#ifndef SL_TESTS_UNIT_EXPR_HELPERS_H
#define SL_TESTS_UNIT_EXPR_HELPERS_H

#include "common/expr/expr.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNUSED __attribute__((unused))

static const char *const item_vars[] = {"item", "order", NULL};
static const struct sl_expr_site item_site = {
	.loc = {.file = "w.yaml", .line = 7, .col = 3}, .pointer = "/states/0/x", .vars = item_vars};
static const struct sl_expr_site secret_site = {.loc = {.file = "w.yaml", .line = 7, .col = 3},
	.pointer = "/states/0/x",
	.vars = item_vars,
	.secrets_allowed = true};

static UNUSED jv json(const char *text)
{
	jv value = jv_parse(text);
	cr_assert(jv_is_valid(value), "bad test JSON: %s", text);
	return value;
}

static UNUSED double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The first diagnostic's text of adding `text` ("" if it was accepted). */
static UNUSED const char *add_message(const char *text, enum sl_expr_mode mode, const struct sl_expr_site *site)
{
	static char message[1024];
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	sl_diags_init(&diags);
	int id = sl_program_add(prog, text, mode, site, &diags);
	if (id < 0) {
		cr_assert_eq(id, SL_EEXPR, "%s: %s", text, sl_err_name(id));
		cr_assert_eq(diags.error_count, 1, "%s", text);
		cr_assert_eq(diags.first->err, SL_EEXPR);
		cr_assert_eq(diags.first->loc.line, site->loc.line);
		cr_assert_str_eq(diags.first->pointer, site->pointer);
	} else {
		cr_assert_eq(diags.error_count, 0, "%s", text);
	}
	snprintf(message, sizeof(message), "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	sl_program_free(prog);
	return message;
}

#define ACCEPTED(text)                                                                                                 \
	do {                                                                                                           \
		const char *m_ = add_message(text, SL_EXPR_ONE, &item_site);                                           \
		cr_expect_str_eq(m_, "", "%s -> %s", text, m_);                                                        \
	} while (0)
#define REFUSED(text, part)                                                                                            \
	do {                                                                                                           \
		const char *m_ = add_message(text, SL_EXPR_ONE, &item_site);                                           \
		cr_expect(strstr(m_, part) != NULL, "%s -> `%s` lacks `%s`", text, m_, part);                          \
		cr_expect(strstr(m_, "jq:") == NULL && strstr(m_, "top-level") == NULL && strstr(m_, "Unix") == NULL,  \
			"%s", m_);                                                                                     \
	} while (0)

/* Evaluates once; the result as JSON, or "ERROR message". */
static UNUSED const char *eval_with(const char *text, enum sl_expr_mode mode, const char *input, const char *vars)
{
	static char shown[8][4096];
	static int next;
	char *out = shown[next++ % 8];
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	struct sl_buf err;
	sl_diags_init(&diags);
	sl_buf_init(&err);
	int id = sl_program_add(prog, text, mode, &secret_site, &diags);
	cr_assert(id >= 0, "%s: %s", text, sl_diags_first(&diags));
	jv v = json(vars), ret;
	int failed = mode == SL_EXPR_PATH ? sl_program_paths(prog, id, json(input), v, &ret, &err)
					  : sl_program_eval(prog, id, json(input), v, &ret, &err);
	if (failed) {
		snprintf(out, 4096, "ERROR %s %s", sl_err_name(failed), err.data ? err.data : "");
	} else {
		char *t = sl_json_text(ret);
		snprintf(out, 4096, "%s", t);
		free(t);
		jv_free(ret);
	}
	jv_free(v);
	sl_buf_release(&err);
	sl_diags_release(&diags);
	sl_program_free(prog);
	return out;
}

#define EVAL(text, input) eval_with(text, SL_EXPR_ONE, input, "{}")
#define GIVES(text, input, result) cr_expect_str_eq(EVAL(text, input), result, "%s -> %s", text, EVAL(text, input))
#define FAILS(text, input, part)                                                                                       \
	do {                                                                                                           \
		const char *r_ = EVAL(text, input);                                                                    \
		cr_expect(!strncmp(r_, "ERROR ", 6) && strstr(r_, part), "%s -> `%s` lacks `%s`", text, r_, part);     \
	} while (0)

/* A template, evaluated. */
static UNUSED const char *fill(const char *tmpl, const char *input, const char *vars)
{
	static char out[4096];
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	struct sl_buf err;
	sl_diags_init(&diags);
	sl_buf_init(&err);
	jv t = json(tmpl), v = json(vars), ret;
	int id = sl_program_add_template(prog, t, &secret_site, &diags);
	if (id < 0) {
		snprintf(out, sizeof(out), "REFUSED %s at %s", sl_diags_first(&diags), diags.first->pointer);
	} else if (sl_program_eval(prog, id, json(input), v, &ret, &err)) {
		snprintf(out, sizeof(out), "ERROR %s", err.data);
	} else {
		char *text = sl_json_text(ret);
		snprintf(out, sizeof(out), "%s", text);
		free(text);
		/* the portable form gives the same */
		jv again;
		cr_expect_eq(sl_expr_once(sl_program_portable(prog, id), json(input), v, &again, &err), 0, "%s: %s",
			sl_program_portable(prog, id), err.data);
		if (!err.len) {
			cr_expect(sl_json_equal(ret, again), "portable %s", sl_program_portable(prog, id));
			jv_free(again);
		}
		jv_free(ret);
	}
	jv_free(t);
	jv_free(v);
	sl_buf_release(&err);
	sl_diags_release(&diags);
	sl_program_free(prog);
	return out;
}

#endif
