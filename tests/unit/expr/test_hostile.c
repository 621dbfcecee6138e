/* Expressions that want too much: the named error, soon, and the process and the program go on. */
#include "helpers.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sl_program *prog;
static int good;

static void still_fine(void)
{
	struct sl_buf err;
	sl_buf_init(&err);
	jv ret = jv_null();
	int failed = sl_program_eval(prog, good, json("{\"a\":[1,2,3]}"), jv_null(), &ret, &err);
	cr_assert_eq(failed, 0, "%s", err.data);
	cr_assert_eq(jv_number_value(ret), 6);
	jv_free(ret);
	sl_buf_release(&err);
}

/* Runs it in a program beside others; the error's code and how long it took. */
static int hurt(const char *text, enum sl_expr_mode mode, struct sl_buf *err)
{
	jv ret;
	struct sl_diags diags;
	sl_diags_init(&diags);
	int id = sl_program_add(prog, text, mode, &item_site, &diags);
	int failed = id;
	double start = seconds_now();
	if (id >= 0)
		failed = mode == SL_EXPR_PATH ? sl_program_paths(prog, id, json("{\"a\":1}"), jv_null(), &ret, err)
					      : sl_program_eval(prog, id, json("{\"a\":1}"), jv_null(), &ret, err);
	else
		sl_buf_adds(err, sl_diags_first(&diags));
	if (failed == 0)
		jv_free(ret);
	cr_expect_lt(seconds_now() - start, 3.0, "%s took %.2f s", text, seconds_now() - start);
	sl_diags_release(&diags);
	return failed;
}

static void setup(void)
{
	prog = sl_program_new();
	good = sl_program_add(prog, ".a | add", SL_EXPR_ONE, &item_site, NULL);
	still_fine();
}

static void teardown(void)
{
	sl_program_free(prog);
}

TestSuite(hostile, .init = setup, .fini = teardown);

Test(hostile, endless_expressions_are_halted)
{
	static const char *const texts[] = {"def f: f; f", "[repeat(1)]", "def f: 1 + f; f", "[range(1000000000)]",
		"[limit(1000000000000; repeat(\"aaaa\"))]", "last(range(1000000000))", "def f(x): f(x | x); f(.)",
		"[recurse(. , .)]", "reduce range(1000000000) as $i (0; . + $i)", "until(false; .)",
		"[while(true; .)] | length", "try (def f: f; f) catch .", "(def f: f; f)?", "[.[] | repeat(.)]",
		"\"a\" | until(false; . + .[0:1])", "{a: [repeat(1)]}", "first(repeat(empty))",
		"[repeat(\"x\" | ascii_downcase)]", "label $x | repeat(1) | select(. > 1)", "def f: def g: f; g; f",
		"..|repeat(.)|empty", "reduce repeat(1) as $x ([]; . + [$x])"};
	struct sl_buf err;
	sl_buf_init(&err);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int failed = hurt(texts[i], SL_EXPR_ONE, &err);
		cr_expect_eq(failed, SL_EBUDGET, "%s: %s %s", texts[i], sl_err_name(failed), err.data);
		cr_expect(strstr(err.data, "took longer than 100 ms"), "%s: %s", texts[i], err.data);
		sl_buf_clear(&err);
		still_fine();
	}
	sl_buf_release(&err);
}

Test(hostile, what_the_version_of_jq_decides_ends_too)
{
	static const char *const texts[] = {"\"aaa\" | gsub(\"\"; \"x\")", "\"ab\" | [gsub(\"^\"; \"x\")]",
		"\"abc\" | [match(\"\"; \"g\")] | length", "\"a\" | indices(\"\")", "[combinations(infinite)]",
		"\"abc\" | [scan(\"\")]"};
	struct sl_buf err;
	sl_buf_init(&err);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int failed = hurt(texts[i], SL_EXPR_ONE, &err);
		cr_expect(failed == 0 || failed == SL_EBUDGET || failed == SL_EEXPR, "%s: %s", texts[i],
			sl_err_name(failed));
		sl_buf_clear(&err);
		still_fine();
	}
	sl_buf_release(&err);
}

Test(hostile, the_other_modes_are_halted_too)
{
	struct sl_buf err;
	sl_buf_init(&err);
	cr_expect_eq(hurt("repeat(1)", SL_EXPR_COLLECT, &err), SL_EBUDGET);
	cr_expect_eq(hurt("range(100000000)", SL_EXPR_COLLECT, &err), SL_EBUDGET);
	cr_expect_eq(hurt("repeat(1)", SL_EXPR_ONE, &err), SL_EEXPR);
	cr_expect(strstr(err.data, "at least 1000 results"));
	cr_expect_eq(hurt("repeat(.a)", SL_EXPR_PATH, &err), SL_EBUDGET);
	cr_expect_eq(hurt("recurse(.a)", SL_EXPR_PATH, &err), SL_EEXPR, "the number 1 has no .a");
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, deep_results_are_refused)
{
	struct sl_buf err;
	sl_buf_init(&err);
	cr_expect_eq(hurt("reduce range(201) as $i (0; [.])", SL_EXPR_ONE, &err), SL_EDEPTH, "%s", err.data);
	cr_expect(strstr(err.data, "the result is nested deeper than 200"), "%s", err.data);
	cr_expect_eq(hurt("reduce range(200) as $i (0; [.])", SL_EXPR_ONE, &err), 0, "%s", err.data);
	cr_expect_eq(hurt("reduce range(20000) as $i (0; {a: .})", SL_EXPR_ONE, &err), SL_EDEPTH);
	sl_buf_clear(&err);
	/* with the stack of sl_expr_init: hundreds of thousands of levels are built, halted and freed */
	int failed = hurt("reduce range(100000000) as $i (0; [.])", SL_EXPR_ONE, &err);
	cr_expect_eq(failed, SL_EBUDGET, "%s", err.data);
	still_fine();
	failed = hurt("(reduce range(60000) as $i (0; [.])) | 1", SL_EXPR_ONE, &err);
	cr_expect(failed == 0 || failed == SL_EBUDGET, "%s", err.data);
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, large_results_are_refused)
{
	struct sl_buf err;
	sl_buf_init(&err);
	cr_expect_eq(hurt("\"0123456789\" * 500000", SL_EXPR_ONE, &err), SL_EBUDGET, "%s", err.data);
	cr_expect(strstr(err.data, "larger than 4194304 bytes") || strstr(err.data, "took longer"), "%s", err.data);
	/* 2^100 nodes that share everything: measuring must stop */
	cr_expect_eq(hurt("reduce range(100) as $i (1; [., .])", SL_EXPR_ONE, &err), SL_EBUDGET, "%s", err.data);
	cr_expect_eq(hurt("\"x\" * 100000 | [., ., ., ., ., ., ., ., ., .] | [., ., ., ., .]", SL_EXPR_ONE, &err),
		SL_EBUDGET);
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, a_template_cannot_multiply_its_input_beyond_the_limit)
{
	struct sl_buf err;
	sl_buf_init(&err);
	jv ret, tmpl = json("[\"${ .a }${ .a }${ .a }\",\"${ .a }\"]"), list = jv_array();
	int id = sl_program_add_template(prog, tmpl, &item_site, NULL);
	jv_free(tmpl);
	for (int i = 0; i < 20000; i++)
		list = jv_array_append(list,
			jv_string("a string of some eighty bytes that takes its place in the result again and again"));
	int failed = sl_program_eval(prog, id, jv_object_set(jv_object(), jv_string("a"), list), jv_null(), &ret, &err);
	cr_expect_eq(failed, SL_EBUDGET, "%s", sl_err_name(failed));
	cr_expect(strstr(err.data, "larger than"), "%s", err.data);
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, deep_input_is_refused_before_libjq)
{
	struct sl_buf err;
	sl_buf_init(&err);
	jv deep = jv_number(1), ret;
	for (int i = 0; i < 201; i++)
		deep = JV_ARRAY(deep);
	int failed = sl_program_eval(prog, good, deep, jv_null(), &ret, &err);
	cr_expect_eq(failed, SL_EDEPTH);
	cr_expect(strstr(err.data, "the input is nested deeper than 200"), "%s", err.data);
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, regular_expressions_cannot_backtrack_for_ever)
{
	struct sl_buf err;
	sl_buf_init(&err);
	int failed = hurt(
		"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\" | test(\"^(a|a|aa)*$\")",
		SL_EXPR_ONE, &err);
	cr_expect(failed == SL_EEXPR || failed == SL_EBUDGET, "%s %s", sl_err_name(failed), err.data);
	failed = hurt("\"x\" * 5000 | test(\"(x+x+)+y\")", SL_EXPR_ONE, &err);
	cr_expect(failed == SL_EEXPR || failed == SL_EBUDGET, "%s %s", sl_err_name(failed), err.data);
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, refused_texts_leave_the_program_alone)
{
	struct sl_buf err;
	sl_buf_init(&err);
	cr_expect_eq(hurt("import \"a\" as a; .", SL_EXPR_ONE, &err), SL_EEXPR);
	cr_expect_eq(hurt(".a) elif true then (.b", SL_EXPR_ONE, &err), SL_EEXPR);
	cr_expect_eq(hurt("1 as $x | 2 as", SL_EXPR_ONE, &err), SL_EEXPR);
	still_fine();
	sl_buf_release(&err);
}

Test(hostile, a_template_shares_one_budget)
{
	struct sl_buf err;
	sl_buf_init(&err);
	jv tmpl = json("[\"${ [range(20000)] | length }\",\"${ def f: f; f }\",\"${ def f: f; f | . }\",\"${ def g: g; "
		       "g }\"]"),
	   ret;
	int id = sl_program_add_template(prog, tmpl, &item_site, NULL);
	jv_free(tmpl);
	double start = seconds_now();
	cr_expect_eq(sl_program_eval(prog, id, jv_object(), jv_null(), &ret, &err), SL_EBUDGET);
	cr_expect_lt(seconds_now() - start, 2.0);
	still_fine();
	sl_buf_release(&err);
}

static int elsewhere_failed;
static void *elsewhere(void *arg)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL); /* as libraries do for their threads */
	struct sl_buf err;
	sl_buf_init(&err);
	elsewhere_failed = hurt(arg, SL_EXPR_ONE, &err);
	still_fine();
	sl_buf_release(&err);
	return NULL;
}

Test(hostile, the_budget_works_in_whatever_thread_evaluates)
{
	pthread_t thread;
	cr_assert_eq(pthread_create(&thread, NULL, elsewhere, "def f: f; f"), 0);
	pthread_join(thread, NULL);
	cr_expect_eq(elsewhere_failed, SL_EBUDGET);
}

Test(hostile, the_budget_works_in_a_forked_process)
{
	struct sl_buf err;
	sl_buf_init(&err);
	cr_expect_eq(hurt("def f: f; f", SL_EXPR_ONE, &err), SL_EBUDGET); /* this process has its timer */
	pid_t child = fork();
	if (child == 0) {
		jv ret;
		alarm(5);
		int id = sl_program_add(prog, "[repeat(2)]", SL_EXPR_ONE, &item_site, NULL);
		_exit(sl_program_eval(prog, id, jv_null(), jv_null(), &ret, &err) == SL_EBUDGET ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	sl_buf_release(&err);
}

Test(hostile, limits_can_be_set)
{
	struct sl_expr_limits limits = {.soft_ms = 300, .bytes_max = 100, .depth_max = 3},
			      usual = {.soft_ms = 100, .bytes_max = 4u << 20, .depth_max = 200};
	struct sl_buf err;
	sl_buf_init(&err);
	sl_expr_init(&limits);
	double start = seconds_now();
	cr_expect_eq(hurt("def f: f; f", SL_EXPR_ONE, &err), SL_EBUDGET);
	cr_expect_gt(seconds_now() - start, 0.28);
	cr_expect(strstr(err.data, "took longer than 300 ms"));
	cr_expect_eq(hurt("[[[[1]]]] | .", SL_EXPR_ONE, &err), SL_EDEPTH);
	cr_expect_eq(hurt("[[[1]]] | .", SL_EXPR_ONE, &err), 0);
	cr_expect_eq(hurt("[range(100)]", SL_EXPR_ONE, &err), SL_EBUDGET);
	sl_expr_init(&usual);
	sl_buf_release(&err);
}

Test(hostile, a_thousand_rounds_of_a_hundred_expressions_take_less_than_a_second_each)
{
	struct sl_buf err;
	sl_buf_init(&err);
	sl_program_set_trusted(prog, true);
	int ids[100];
	for (int i = 0; i < 100; i++) {
		char text[64];
		snprintf(text, sizeof(text), i % 2 ? "[.a[] | select(. > %d)]" : ".a[%d] >= 1", i);
		ids[i] = sl_program_add(prog, text, SL_EXPR_ONE, &item_site, NULL);
	}
	jv input = json("{\"a\":[1,2,3,100]}"), vars = json("{\"CONST\":{}}"), ret;
	cr_assert_eq(sl_program_eval(prog, ids[1], jv_copy(input), vars, &ret, &err), 0);
	jv_free(ret);
	double start = seconds_now();
	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(sl_program_eval(prog, ids[i % 100], jv_copy(input), vars, &ret, &err), 0, "%s", err.data);
		jv_free(ret);
	}
	double took = seconds_now() - start;
	cr_expect_lt(took, 1.0);
	jv_free(input);
	jv_free(vars);
	sl_buf_release(&err);
}

Test(hostile, adding_the_same_text_again_costs_nothing)
{
	int first = sl_program_add(prog, "[.a[] | . * 3]", SL_EXPR_ONE, &item_site, NULL);
	cr_assert(first >= 0);
	double start = seconds_now();
	for (int i = 0; i < 1000; i++) {
		struct sl_program *other = sl_program_new();
		cr_assert(sl_program_add(other, "[.a[] | . * 3]", SL_EXPR_ONE, &item_site, NULL) >= 0);
		sl_program_free(other);
	}
	cr_expect_lt(seconds_now() - start, 1.0);
}
