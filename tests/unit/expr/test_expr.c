/* Expressions: rulings, modes, variables, templates, functions. */
#include "helpers.h"

Test(expr, blanks_around_the_wrapping_do_not_matter_A07)
{
	GIVES("${ .a }", "{\"a\":1}", "1");
	GIVES("${ .a } ", "{\"a\":1}", "1");
	GIVES("  ${.a}\n", "{\"a\":{\"b\":[1]}}", "{\"b\":[1]}");
	GIVES("${ {\"x\": {y: .a}} | .x }", "{\"a\":1}", "{\"y\":1}");
	GIVES("${ \"}\" }", "{}", "\"}\"");
	GIVES("${ .a # the end }", "{\"a\":1}", "1");
	cr_expect(sl_expr_is_wrapped(" ${ .a } "));
	cr_expect(sl_expr_is_wrapped("${ \"}\" + \"\\(\"}\")\" }"));
	cr_expect_not(sl_expr_is_wrapped("${ .a } and ${ .b }"));
	cr_expect_not(sl_expr_is_wrapped("x ${ .a }"));
	cr_expect_not(sl_expr_is_wrapped(".a"));
	cr_expect_not(sl_expr_is_wrapped("$${ .a }"));
	cr_expect_not(sl_expr_is_wrapped(""));
}

Test(expr, bare_text_is_an_expression_too_A65)
{
	GIVES(".orders | length", "{\"orders\":[1,2]}", "2");
	GIVES("[.orders[] | select(. > 1)]", "{\"orders\":[1,2]}", "[2]");
}

Test(expr, no_result_is_null_and_several_are_an_error_A67)
{
	GIVES("empty", "{}", "null");
	GIVES(".a[]", "{\"a\":[]}", "null");
	GIVES(".a[]", "{\"a\":[5]}", "5");
	FAILS(".a[]", "{\"a\":[1,2,3]}", "`.a[]`: gave 3 results where one is needed; wrap it in [ ]");
	FAILS("range(1000000000)", "{}", "at least 1000 results");
}

Test(expr, several_results_are_collected_where_asked_A48)
{
	cr_expect_str_eq(eval_with(".a[]", SL_EXPR_COLLECT, "{\"a\":[1,2,3]}", "{}"), "[1,2,3]");
	cr_expect_str_eq(eval_with(".a[]", SL_EXPR_COLLECT, "{\"a\":[1]}", "{}"), "1");
	cr_expect_str_eq(eval_with(".a", SL_EXPR_COLLECT, "{\"a\":[1]}", "{}"), "[1]");
	cr_expect_str_eq(eval_with(".a[]", SL_EXPR_COLLECT, "{\"a\":[]}", "{}"), "[]");
}

static const char *test_with(const char *text, const char *input)
{
	static char out[512];
	struct sl_program *prog = sl_program_new();
	struct sl_buf err;
	sl_buf_init(&err);
	bool value = false;
	int id = sl_program_add(prog, text, SL_EXPR_ONE, &item_site, NULL);
	cr_assert_geq(id, 0, "%s", text);
	int failed = sl_program_test(prog, id, json(input), jv_null(), &value, &err);
	snprintf(out, sizeof(out), "%s", failed ? err.data : value ? "true" : "false");
	sl_buf_release(&err);
	sl_program_free(prog);
	return out;
}

Test(expr, conditions_are_true_false_or_null_A66)
{
	cr_expect_str_eq(test_with("${ .age >= 18 }", "{\"age\":18}"), "true");
	cr_expect_str_eq(test_with("${ .age >= 18 }", "{\"age\":17}"), "false");
	cr_expect_str_eq(test_with(".missing", "{}"), "false");
	cr_expect_str_eq(test_with("empty", "{}"), "false");
	cr_expect_str_eq(test_with(".a | not", "{\"a\":false}"), "true");
	cr_expect(strstr(test_with(".a", "{\"a\":1}"), "must give true or false, this one gave a number"));
	cr_expect(strstr(test_with(".a", "{\"a\":\"true\"}"), "gave a string"));
	cr_expect(strstr(test_with("[.a]", "{\"a\":1}"), "gave an array"));
	cr_expect(strstr(test_with(".a.b", "{\"a\":1}"), "Cannot index number with"));
}

Test(expr, simple_expressions_give_what_libjq_gives)
{
	/* the same expression where the fast evaluation applies and, with `| .` behind it, where it does not */
	static const char *const texts[] = {".", ".a", ".a.b", ".a.b.c", ".n", ".list[0]", ".list[9]", ".list[\"x\"]",
		".[\"a\"].b", ".\"a\"", ".missing.deeper", "$CONST.x", "$CONST", "$item.id", ".n == 1", ".n != 1",
		".n < 2", ".n >= 1.0", ".a < .list", ".s == \"x y\"", ".s > .n", "null == .missing", ".t == true", "1",
		"\"text\"", "true", "null", ".list.x", ".n[0]", ".a == .a", ".n.x == 1", "1 == .n.x", ".s[0]", "$order",
		"(.a)", "((.n) == (1))", "0", "9007199254740992", ".t", ". == null", ".list[1].id", "$WORKFLOW.id",
		"(.n == 1)", "\"\"", ".n <= .n"};
	const char *input =
		"{\"a\":{\"b\":{\"c\":[1]}},\"n\":1,\"s\":\"x y\",\"t\":true,\"list\":[{\"id\":1},{\"id\":\"two\"}]}";
	const char *vars = "{\"CONST\":{\"x\":[true]},\"item\":{\"id\":7},\"WORKFLOW\":{\"id\":\"w\"}}";
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char slow[200], fast[4096];
		snprintf(slow, sizeof(slow), "(%s) | .", texts[i]);
		snprintf(fast, sizeof(fast), "%s", eval_with(texts[i], SL_EXPR_ONE, input, vars));
		const char *want = eval_with(slow, SL_EXPR_ONE, input, vars);
		if (!strncmp(want, "ERROR", 5)) { /* they quote different texts */
			cr_expect_str_eq(strstr(fast, "`: "), strstr(want, "`: "), "%s", texts[i]);
			continue;
		}
		cr_expect_str_eq(fast, want, "%s: %s, libjq: %s", texts[i], fast, want);
	}
}

Test(expr, a_path_expression_gives_its_paths_A63)
{
	cr_expect_str_eq(eval_with("${ .a.b }", SL_EXPR_PATH, "{}", "{}"), "[[\"a\",\"b\"]]");
	cr_expect_str_eq(eval_with(".a[0]", SL_EXPR_PATH, "{}", "{}"), "[[\"a\",0]]");
	cr_expect_str_eq(eval_with(".a | .b", SL_EXPR_PATH, "{}", "{}"), "[[\"a\",\"b\"]]");
	cr_expect_str_eq(eval_with(".[\"x y\"]", SL_EXPR_PATH, "{}", "{}"), "[[\"x y\"]]");
	cr_expect_str_eq(eval_with(".", SL_EXPR_PATH, "{}", "{}"), "[[]]");
	cr_expect_str_eq(eval_with(".a[] | select(.x)", SL_EXPR_PATH, "{\"a\":[{},{\"x\":1},{\"x\":2}]}", "{}"),
		"[[\"a\",1],[\"a\",2]]");
	cr_expect_str_eq(eval_with(".a[$item]", SL_EXPR_PATH, "{}", "{\"item\":3}"), "[[\"a\",3]]");
	cr_expect(strstr(eval_with(".a[]", SL_EXPR_PATH, "{\"a\":[]}", "{}"), "denotes no place"));
	cr_expect(strstr(eval_with(".a | length", SL_EXPR_PATH, "{}", "{}"), "ERROR EEXPR"));
	cr_expect(strstr(eval_with(".a.b", SL_EXPR_PATH, "{\"a\":1}", "{}"), "Cannot index number"));
	cr_expect(strstr(eval_with(".a[2000000000]", SL_EXPR_PATH, "{}", "{}"), "index 2000000000 is too large"));
	cr_expect(strstr(add_message("\"a\"", SL_EXPR_PATH, &item_site), "is not a path"));
	cr_expect(strstr(add_message(".a == 1", SL_EXPR_PATH, &item_site), "is not a path"));
	cr_expect(strstr(add_message("$item.a", SL_EXPR_PATH, &item_site), "is not a path"));
}

Test(expr, a_path_expression_can_be_read)
{
	struct sl_program *prog = sl_program_new();
	struct sl_buf err;
	sl_buf_init(&err);
	jv ret;
	int id = sl_program_add(prog, ".a.b", SL_EXPR_PATH, &item_site, NULL);
	cr_assert_eq(sl_program_eval(prog, id, json("{\"a\":{\"b\":4}}"), jv_null(), &ret, &err), 0);
	cr_expect_eq(jv_number_value(ret), 4);
	jv_free(ret);
	cr_assert_eq(sl_program_eval(prog, id, json("{}"), jv_null(), &ret, &err), 0);
	cr_expect_eq(jv_get_kind(ret), JV_KIND_NULL);
	jv_free(ret);
	sl_buf_release(&err);
	sl_program_free(prog);
}

Test(expr, variables_come_with_the_evaluation)
{
	const char *vars = "{\"CONST\":{\"min\":18},\"WORKFLOW\":{\"id\":\"w\"},\"SECRETS\":{\"k\":\"s\"},\"item\":5,"
			   "\"now\":1700000000}";
	cr_expect_str_eq(eval_with("[$CONST.min, $WORKFLOW.id, $SECRETS.k, $item, .a]", SL_EXPR_ONE, "{\"a\":1}", vars),
		"[18,\"w\",\"s\",5,1]");
	cr_expect_str_eq(eval_with("now | todate", SL_EXPR_ONE, "{}", vars), "\"2023-11-14T22:13:20Z\"");
	cr_expect_str_eq(eval_with("[range(2)] | map(now)", SL_EXPR_ONE, "{}", vars), "[1700000000,1700000000]");
	cr_expect_str_eq(eval_with(".now", SL_EXPR_ONE, "{\"now\":1}", vars), "1");
	cr_expect_str_eq(eval_with("def now: 7; now", SL_EXPR_ONE, "{}", vars), "7");
	cr_expect_str_eq(eval_with("[$CONST, $order]", SL_EXPR_ONE, "{}", "{}"), "[null,null]");
	cr_expect_str_eq(eval_with("$CONST.min", SL_EXPR_ONE, "{}", "null"), "null");
	cr_expect_str_eq(eval_with(".a as $item | $item", SL_EXPR_ONE, "{\"a\":1}", vars), "1");
	cr_expect_str_eq(eval_with("reduce .[] as $x (0; . + $x)", SL_EXPR_ONE, "[1,2]", vars), "3");
	REFUSED("$nobody", "$nobody is not defined");
	REFUSED("$nobody | .a", "$nobody is not defined");
	REFUSED("[.[] | $nobody]", "$nobody is not defined");
	REFUSED("$__v", "`$__v` is refused");
	REFUSED("$__i | .", "`$__i` is refused");
	REFUSED("$__loc__", "refused");
	REFUSED("$$$$x", "`$` without a name");
}

Test(expr, templates_keep_shape_and_types_A64)
{
	const char *input = "{\"name\":\"Jo\",\"n\":3,\"o\":{\"k\":[1,null]},\"s\":\"${x}\"}";
	cr_expect_str_eq(fill("{\"a\":\"${ .n }\",\"b\":[\"${ .o }\",1,null,\"x\"],\"c\":{\"d\":true}}", input, "{}"),
		"{\"a\":3,\"b\":[{\"k\":[1,null]},1,null,\"x\"],\"c\":{\"d\":true}}");
	cr_expect_str_eq(fill("\"Hello ${ .name }\"", input, "{}"), "\"Hello Jo\"");
	cr_expect_str_eq(fill("\"${ .name } ${ .n } ${ .o } ${ .none } ${ .n > 1 }!\"", input, "{}"),
		"\"Jo 3 {\\\"k\\\":[1,null]} null true!\"");
	cr_expect_str_eq(fill("\"${ .a } \"", "{\"a\":[1]}", "{}"), "[1]");
	cr_expect_str_eq(fill("\"a ${ .s } b\"", input, "{}"), "\"a ${x} b\"", "a value is not scanned again");
	cr_expect_str_eq(fill("\"cost: $${ .n } $5 $\"", input, "{}"), "\"cost: ${ .n } $5 $\"");
	cr_expect_str_eq(fill("\"$${ .n }\"", input, "{}"), "\"${ .n }\"");
	cr_expect_str_eq(fill("\"$${a}${ .n }\"", input, "{}"), "\"${a}3\"");
	cr_expect_str_eq(fill("\"$$${a}\"", input, "{}"), "\"$${a}\"");
	cr_expect_str_eq(fill("\"${ \\\"}\\\" }-${ {a: 1} | .a }\"", input, "{}"), "\"}-1\"");
	cr_expect_str_eq(fill("\"x ${ \\\"\\\\(.n + 1)\\\" } ${ [.o.k[]] | length }\"", input, "{}"), "\"x 4 2\"");
	cr_expect_str_eq(fill("{\"a\":1,\"b\":[\"c\"]}", input, "{}"), "{\"a\":1,\"b\":[\"c\"]}");
	cr_expect_str_eq(fill("\"${ empty }\"", input, "{}"), "null");
	cr_expect_str_eq(
		fill("{\"a\":\"${ empty }\",\"b\":\"x${ empty }\"}", input, "{}"), "{\"a\":null,\"b\":\"xnull\"}");
	cr_expect_str_eq(fill("{\"a\":\"${ $item + 1 }\",\"t\":\"at ${ now }\"}", input, "{\"item\":1,\"now\":5}"),
		"{\"a\":2,\"t\":\"at 5\"}");
	cr_expect_str_eq(fill("{}", input, "{}"), "{}");
	cr_expect_str_eq(fill("7", input, "{}"), "7");
	cr_expect_str_eq(fill("\"quotes \\\" \\\\ ${ .name } \\n \\\\(.n)\"", input, "{}"),
		"\"quotes \\\" \\\\ Jo \\n \\\\(.n)\"");
}

Test(expr, template_errors_name_the_member)
{
	cr_expect_str_eq(fill("{\"a/b\":[1,\"${ .x + }\"]}", "{}", "{}"),
		"REFUSED expression `.x +`: syntax error, unexpected the end at /states/0/x/a~1b/1");
	cr_expect(strstr(fill("{\"a\":\"x ${ .y\"}", "{}", "{}"), "`${` without its `}`"));
	cr_expect(strstr(fill("{\"a\":\"${ .y[] }\"}", "{\"y\":[1,2]}", "{}"), "gave 2 results"));
	cr_expect(strstr(fill("{\"a\":\"x ${ input }\"}", "{}", "{}"), "`input` is refused"));
}

Test(expr, all_errors_of_a_template_are_reported)
{
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	sl_diags_init(&diags);
	jv tmpl = json("{\"a\":\"${ input }\",\"b\":[\"${ .x + }\",\"${ .fine }\"],\"c\":\"a ${ $SECRETS.x } b\"}");
	cr_expect_eq(sl_program_add_template(prog, tmpl, &item_site, &diags), SL_EEXPR);
	cr_expect_eq(diags.error_count, 3);
	jv_free(tmpl);
	sl_diags_release(&diags);
	sl_program_free(prog);
}

Test(expr, is_template_sees_unescaped_expressions)
{
	cr_expect(sl_expr_is_template("${ .a }"));
	cr_expect(sl_expr_is_template("x ${ .a }"));
	cr_expect(sl_expr_is_template("$${x} ${ .a }"));
	cr_expect_not(sl_expr_is_template("$${ .a }"));
	cr_expect_not(sl_expr_is_template("plain $5 {x}"));
	cr_expect_not(sl_expr_is_template(""));
}

static struct sl_program *with_functions(struct sl_diags *diags)
{
	struct sl_program *prog = sl_program_new();
	sl_diags_init(diags);
	cr_assert_eq(sl_program_add_function(prog, "isAdult", "${ .age >= 18 }", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "plus", ".a, .b", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "is-new", ".since == null", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "both", "fn:isAdult and fn:is-new", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "increment", ".count += 1 | del(.x)", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "key", "$SECRETS.key", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "isAdultToo", "fn:later # comment", &secret_site, diags), 0);
	cr_assert_eq(sl_program_add_function(prog, "later", "fn:isAdult", &secret_site, diags), 0);
	return prog;
}

static const char *use(const char *text, const char *input)
{
	static char out[1024];
	struct sl_diags diags;
	struct sl_program *prog = with_functions(&diags);
	struct sl_buf err;
	sl_buf_init(&err);
	jv ret;
	int id = sl_program_add(prog, text, SL_EXPR_ONE, &item_site, &diags);
	if (id < 0) {
		snprintf(out, sizeof(out), "%s", sl_diags_first(&diags));
	} else if (sl_program_eval(prog, id, json(input), jv_null(), &ret, &err)) {
		snprintf(out, sizeof(out), "%s", err.data);
	} else {
		char *t = sl_json_text(ret);
		snprintf(out, sizeof(out), "%s", t);
		free(t);
		jv_free(ret);
	}
	sl_buf_release(&err);
	sl_diags_release(&diags);
	sl_program_free(prog);
	return out;
}

Test(expr, functions_are_substituted_in_parentheses_A68)
{
	cr_expect_str_eq(use("${ fn:isAdult }", "{\"age\":20}"), "true");
	cr_expect_str_eq(use("${ .p | fn:isAdult }", "{\"p\":{\"age\":20}}"), "true", "a function of the piped input");
	cr_expect_str_eq(use("fn:isAdult | not", "{\"age\":20}"), "false");
	cr_expect_str_eq(use("[fn:plus] | length", "{\"a\":1,\"b\":2}"), "2");
	cr_expect_str_eq(use("[1 + fn:plus]", "{\"a\":1,\"b\":2}"), "[2,3]", "parentheses hold it together");
	cr_expect_str_eq(use("fn:is-new", "{}"), "true", "names may have dashes");
	cr_expect_str_eq(use("fn:both", "{\"age\":20}"), "true", "functions use functions");
	cr_expect_str_eq(
		use("fn:isAdultToo", "{\"age\":20}"), "true", "the longest name, and functions that came later");
	cr_expect_str_eq(use("fn:increment", "{\"count\":1,\"x\":0}"), "{\"count\":2}");
	cr_expect_str_eq(use("\"fn:isAdult\"", "{}"), "\"fn:isAdult\"", "not inside strings");
	cr_expect_str_eq(use("\"is: \\(fn:isAdult) fn:isAdult\"", "{\"age\":1}"), "\"is: false fn:isAdult\"");
	cr_expect_str_eq(use("{fn: 1, \"a\": fn:isAdult}", "{\"age\":20}"), "{\"fn\":1,\"a\":true}");
	cr_expect_str_eq(use(".fn", "{\"fn\":3}"), "3");
	cr_expect(strstr(use("fn:nobody", "{}"), "`fn:nobody`: there is no expression function of that name"));
	cr_expect(strstr(use("fn: isAdult", "{}"), "without a function name"));
	cr_expect(strstr(use("fn:isAdul", "{}"), "there is no expression function"));
	cr_expect(strstr(use("fn:key", "{}"), "$SECRETS may be used in"), "a secret through a function (A174)");
}

Test(expr, function_cycles_are_an_error_A68)
{
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	sl_diags_init(&diags);
	cr_expect_eq(sl_program_add_function(prog, "self", ". + fn:self", &item_site, &diags), SL_EEXPR);
	cr_expect(strstr(sl_diags_first(&diags), "`self` uses itself"));
	sl_diags_clear(&diags);
	cr_expect_eq(sl_program_add_function(prog, "a", "fn:b", &item_site, &diags), 0);
	cr_expect_eq(sl_program_add_function(prog, "b", "fn:c | .x", &item_site, &diags), 0);
	cr_expect_eq(sl_program_add_function(prog, "c", "[fn:a]", &item_site, &diags), SL_EEXPR);
	cr_expect(strstr(sl_diags_first(&diags), "uses itself through others"), "%s", sl_diags_first(&diags));
	cr_expect_str_eq(diags.first->rule, "A68");
	sl_diags_release(&diags);
	sl_program_free(prog);
}

Test(expr, functions_are_checked_where_they_stand)
{
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	sl_diags_init(&diags);
	cr_expect_eq(sl_program_add_function(prog, "broken", "${ .a + }", &item_site, &diags), SL_EEXPR);
	cr_expect(strstr(sl_diags_first(&diags), "unexpected the end"), "%s", sl_diags_first(&diags));
	cr_expect_eq(sl_program_add_function(prog, "closing", ".a) | (.b", &item_site, &diags), SL_EEXPR);
	cr_expect_eq(sl_program_add_function(prog, "refused", "input", &item_site, &diags), SL_EEXPR);
	cr_expect_eq(diags.error_count, 3);
	cr_expect_geq(sl_program_add(prog, "fn:refused", SL_EXPR_ONE, &item_site, &diags), 0, "said once");
	cr_expect_eq(sl_program_add_function(prog, "free", ".a + $whoever_uses_it", &item_site, &diags), 0);
	cr_expect_eq(sl_program_add_function(prog, "open", "fn:unknown", &item_site, &diags), 0);
	cr_expect_eq(diags.error_count, 3);
	cr_expect_eq(sl_program_check_function(prog, "open", &item_site, &diags), SL_EEXPR);
	cr_expect_eq(diags.error_count, 4);
	cr_expect_eq(sl_program_check_function(prog, "free", &item_site, &diags), 0);
	sl_diags_release(&diags);
	sl_program_free(prog);
}

Test(expr, secrets_are_detected_and_refused_elsewhere_A174)
{
	static const char *const yes[] = {"$SECRETS.x", "\"Bearer \\($SECRETS.token)\"", "{a: $SECRETS}",
		". + {b: [$SECRETS.a.b]}", "$SECRETS", "[.[] | $SECRETS]", "{$SECRETS}", "$SECRETS.a == 1"};
	static const char *const no[] = {".SECRETS", "\"$SECRETS\"", "{SECRETS: 1}", "\"\\(.SECRETS) $SECRETS.x\"",
		".a # $SECRETS", "{\"$SECRETS\": 1}", "$CONST.SECRETS", "\"\\\\($SECRETS)\""};
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	sl_diags_init(&diags);
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		int id = sl_program_add(prog, yes[i], SL_EXPR_ONE, &secret_site, &diags);
		cr_assert(id >= 0, "%s: %s", yes[i], sl_diags_first(&diags));
		cr_expect(sl_program_uses_secrets(prog, id), "%s", yes[i]);
		REFUSED(yes[i], "its value would be stored");
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		int id = sl_program_add(prog, no[i], SL_EXPR_ONE, &secret_site, &diags);
		cr_assert(id >= 0, "%s: %s", no[i], sl_diags_first(&diags));
		cr_expect_not(sl_program_uses_secrets(prog, id), "%s", no[i]);
		ACCEPTED(no[i]);
	}
	jv tmpl = json("{\"a\":[\"x ${ $SECRETS.k }\"],\"b\":\"${ .x }\"}");
	int id = sl_program_add_template(prog, tmpl, &secret_site, &diags);
	cr_expect(id >= 0 && sl_program_uses_secrets(prog, id));
	jv_free(tmpl);
	tmpl = json("{\"a\":\"$${ $SECRETS.k }\",\"b\":\"$SECRETS.x\"}");
	id = sl_program_add_template(prog, tmpl, &item_site, &diags);
	cr_expect(id >= 0 && !sl_program_uses_secrets(prog, id));
	jv_free(tmpl);
	cr_expect_eq(sl_program_add_function(prog, "auth", "\"Basic \" + $SECRETS.p", &secret_site, &diags), 0);
	id = sl_program_add(prog, ". + {h: fn:auth}", SL_EXPR_ONE, &secret_site, &diags);
	cr_expect(id >= 0 && sl_program_uses_secrets(prog, id));
	cr_expect(strstr(sl_program_portable(prog, id), "$SECRETS.p"));
	cr_expect_null(strstr(sl_program_portable(prog, id), "fn:"));
	sl_diags_release(&diags);
	sl_program_free(prog);
}

Test(expr, errors_quote_the_expression_and_libjqs_words_A89)
{
	FAILS("${ .a.b | .c }", "{\"a\":1}", "ERROR EEXPR `${ .a.b | .c }`: Cannot index number with");
	FAILS("error(\"my words\")", "{}", "my words");
	FAILS("error({code: 5})", "{}", "error: {\"code\":5}");
	FAILS(".a | tonumber", "{\"a\":\"x\"}", "`.a | tonumber`: ");
	GIVES("try error(\"x\") catch .", "{}", "\"x\"");
	GIVES(".a.b?", "{\"a\":1}", "null");
}

Test(expr, a_program_goes_on_after_errors_and_additions)
{
	struct sl_program *prog = sl_program_new();
	struct sl_buf err;
	sl_buf_init(&err);
	jv ret, vars = json("{\"item\":2}");
	int first = sl_program_add(prog, ".a + $item", SL_EXPR_ONE, &item_site, NULL);
	int constant = sl_program_add_const(prog, json("{\"k\":[1]}"));
	for (int round = 0; round < 3; round++) {
		cr_assert_eq(sl_program_eval(prog, first, json("{\"a\":1}"), vars, &ret, &err), 0);
		cr_expect_eq(jv_number_value(ret), 3);
		jv_free(ret);
		sl_buf_clear(&err);
		cr_expect_eq(sl_program_eval(prog, first, json("{\"a\":{}}"), vars, &ret, &err), SL_EEXPR);
		char text[64];
		snprintf(text, sizeof(text), ".a + %d + $item", round);
		int added = sl_program_add(prog, text, SL_EXPR_ONE, &item_site, NULL);
		cr_assert_eq(sl_program_eval(prog, added, json("{\"a\":1}"), vars, &ret, &err), 0);
		cr_expect_eq(jv_number_value(ret), 3 + round);
		jv_free(ret);
	}
	cr_assert_eq(sl_program_eval(prog, constant, jv_null(), vars, &ret, &err), 0);
	cr_expect_str_eq(sl_program_text(prog, constant), "{\"k\":[1]}");
	cr_expect_str_eq(sl_program_text(prog, first), ".a + $item");
	jv_free(ret);
	jv_free(vars);
	sl_buf_release(&err);
	sl_program_free(prog);
}

Test(expr, every_expression_of_a_large_program_gives_its_own_result)
{
	struct sl_program *prog = sl_program_new();
	struct sl_buf err;
	sl_buf_init(&err);
	sl_program_set_trusted(prog, true);
	jv vars = jv_object(), ret;
	for (int i = 0; i < 700; i++) {
		char text[64];
		snprintf(text, sizeof(text), "[.a + %d, \"%d\"]", i, i * 7);
		cr_assert_eq(sl_program_add(prog, text, SL_EXPR_ONE, &item_site, NULL), i);
	}
	for (int i = 699; i >= 0; i--) {
		char want[64];
		snprintf(want, sizeof(want), "[%d,\"%d\"]", i + 1000, i * 7);
		cr_assert_eq(sl_program_eval(prog, i, json("{\"a\":1000}"), vars, &ret, &err), 0, "%s", err.data);
		char *text = sl_json_text(ret);
		cr_expect_str_eq(text, want);
		free(text);
		jv_free(ret);
	}
	jv_free(vars);
	sl_buf_release(&err);
	sl_program_free(prog);
}

Test(expr, an_unchecked_expression_that_libjq_refuses_fails_alone)
{
	struct sl_program *prog = sl_program_new();
	struct sl_buf err;
	sl_buf_init(&err);
	sl_program_set_trusted(prog, true);
	jv ret;
	int good = sl_program_add(prog, ".a + 1", SL_EXPR_ONE, &item_site, NULL);
	int bad = sl_program_add(prog, ".a + + 1", SL_EXPR_ONE, &item_site, NULL);
	int good2 = sl_program_add(prog, ".a + 2", SL_EXPR_ONE, &item_site, NULL);
	cr_assert(bad >= 0);
	cr_expect_eq(sl_program_eval(prog, good, json("{\"a\":1}"), jv_null(), &ret, &err), 0);
	jv_free(ret);
	cr_expect_eq(sl_program_eval(prog, good2, json("{\"a\":1}"), jv_null(), &ret, &err), 0);
	cr_expect_eq(jv_number_value(ret), 3);
	jv_free(ret);
	cr_expect_eq(sl_program_eval(prog, bad, json("{\"a\":1}"), jv_null(), &ret, &err), SL_EEXPR);
	cr_expect(strstr(err.data, "syntax error"), "%s", err.data);
	sl_buf_release(&err);
	sl_program_free(prog);
}

Test(expr, once_evaluates_outside_any_program)
{
	struct sl_buf err;
	sl_buf_init(&err);
	jv vars = json("{\"SECRETS\":{\"k\":\"v\"},\"item\":1,\"own\":2}"), ret;
	cr_assert_eq(
		sl_expr_once("${ {a: $SECRETS.k, b: ($item + $own), c: .x} }", json("{\"x\":3}"), vars, &ret, &err), 0);
	char *text = sl_json_text(ret);
	cr_expect_str_eq(text, "{\"a\":\"v\",\"b\":3,\"c\":3}");
	free(text);
	jv_free(ret);
	cr_expect_eq(sl_expr_once("input", jv_null(), vars, &ret, &err), SL_EEXPR);
	cr_expect(strstr(err.data, "refused"));
	sl_buf_clear(&err);
	cr_expect_eq(sl_expr_once(".a +", jv_null(), vars, &ret, &err), SL_EEXPR);
	cr_expect(strstr(err.data, "syntax error"), "%s", err.data);
	sl_buf_clear(&err);
	cr_expect_eq(sl_expr_once("$absent | .x", jv_null(), vars, &ret, &err), SL_EEXPR);
	cr_expect(strstr(err.data, "$absent is not defined"), "%s", err.data);
	jv_free(vars);
	sl_buf_release(&err);
}

static int entered, left;
static void on_enter(void *arg)
{
	cr_assert_eq(arg, &entered);
	entered++;
}
static void on_leave(void *arg)
{
	cr_assert_eq(arg, &entered);
	left++;
}

Test(expr, the_watchdog_is_told_of_each_entry_R7)
{
	struct sl_program *prog = sl_program_new();
	struct sl_buf err;
	sl_buf_init(&err);
	sl_expr_watch(on_enter, on_leave, &entered);
	jv ret;
	int id = sl_program_add(prog, ".a + 1", SL_EXPR_ONE, &item_site, NULL),
	    simple = sl_program_add(prog, ".a", SL_EXPR_ONE, &item_site, NULL);
	cr_expect_eq(entered, 1, "the check when it is added");
	cr_assert_eq(sl_program_eval(prog, id, json("{\"a\":1}"), jv_null(), &ret, &err), 0);
	cr_expect_eq(entered, 3, "compiling and running");
	jv_free(ret);
	cr_assert_eq(sl_program_eval(prog, simple, json("{\"a\":1}"), jv_null(), &ret, &err), 0);
	cr_expect_eq(entered, 3, "libjq is not needed");
	jv_free(ret);
	cr_assert_eq(sl_program_eval(prog, id, json("{\"a\":{}}"), jv_null(), &ret, &err), SL_EEXPR);
	cr_expect_eq(entered, 4);
	cr_expect_eq(left, entered);
	sl_expr_watch(NULL, NULL, NULL);
	sl_buf_release(&err);
	sl_program_free(prog);
}
