/* What is refused before libjq sees it, found by a real tokenizer. */
#include "helpers.h"

Test(words, what_reaches_outside_the_data_is_refused)
{
	static const char *const words[] = {"env", "input", "inputs", "debug", "stderr", "halt", "halt_error",
		"input_filename", "input_line_number", "get_search_list", "modulemeta", "localtime", "get_prog_origin",
		"builtins"};
	char text[200], part[80];
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		snprintf(part, sizeof(part), "`%s` is refused: ", words[i]);
		REFUSED(words[i], part);
		static const char *const places[] = {".a | %s", "[%s]", "{a: %s}", "{(%s): 1}", "\"x \\(%s) y\"",
			"\"a\\(\"b\\(%s)\")\"", "if . then %s else 1 end", "try %s catch .", "map(%s)",
			"{a: if . then 1, %s else 2 end}", "%s # comment", "# comment\n%s", ". as $x | %s", "[.[%s]]",
			"def f: %s; f", "{\"a\\(%s)\": 1}", "def %s: 1; %s", "reduce %s as $x (0; 1)", "-%s", "..|%s",
			"@base64 \"\\(%s)\""};
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			snprintf(text, sizeof(text), places[k], words[i], words[i]);
			REFUSED(text, "is refused");
		}
	}
	REFUSED("strflocaltime(\"%Y\")", "`strflocaltime` is refused");
	REFUSED("halt_error(1)", "refused");
	REFUSED("input_line_number", "refused");
	REFUSED("$ENV", "`$ENV` is refused");
	REFUSED("$ENV.PATH", "`$ENV` is refused");
	REFUSED("\"\\($ENV.PATH)\"", "`$ENV` is refused");
	REFUSED("$__loc__", "refused");
	REFUSED("$__prog_args", "refused");
	REFUSED("_strindices(1)", "names that begin with _");
	REFUSED("def _x: 1; _x", "cannot be the name");
}

Test(words, module_directives_are_refused)
{
	REFUSED("import \"a\" as a; .", "`import` is refused: module directives are not allowed");
	REFUSED("include \"a\"; .", "`include` is refused");
	REFUSED("module {}; .", "`module` is refused");
	REFUSED("import \"a\" as $a; $a", "refused");
	REFUSED("# x\nimport \"a\" as a; .", "refused");
	REFUSED("a::b", "module directives are not allowed");
	REFUSED("{a: b::c}", "module directives are not allowed");
	REFUSED("$a::b", "module directives are not allowed");
}

Test(words, strings_comments_fields_and_keys_do_not_trigger)
{
	ACCEPTED("\"input env $ENV import \\\"a\\\" as a\"");
	ACCEPTED("\"\\\\(input)\"");
	ACCEPTED("\"x\\\"input\"");
	ACCEPTED(".input");
	ACCEPTED(".a.env.debug");
	ACCEPTED(".\"input\"");
	ACCEPTED(".[\"input\"]");
	ACCEPTED(".a # input $ENV import");
	ACCEPTED("# input\n.a");
	ACCEPTED("{input: 1}");
	ACCEPTED("{input}");
	ACCEPTED("{a: 1, input: 2, env}");
	ACCEPTED("{ input : 1 }");
	ACCEPTED("{a: {input: 1}, debug: [{halt: 2}]}");
	ACCEPTED("{\"input\": .env}");
	ACCEPTED("{\"a b\": 1, import: 2, if: 3}");
	ACCEPTED(". as {input: $x} | $x");
	ACCEPTED("{a: 1 # x\n, input # y\n: 2}");
	ACCEPTED("$item.input");
	ACCEPTED(".inputs_of.mine");
	ACCEPTED("\"{{ input }}\"");
	GIVES("{input: .env, debug: \"halt\"}", "{\"env\":1}", "{\"input\":1,\"debug\":\"halt\"}");
	GIVES(".a # }\n| . + 1 # ) end", "{\"a\":1}", "2");
}

Test(words, what_versions_of_jq_disagree_on_is_refused_A69)
{
	REFUSED("pick(.a)", "`pick` is not in every version of jq");
	REFUSED("toarray", "`toarray` is not in every version of jq; write `if type");
	REFUSED(".a | abs", "`abs` is not in every version");
	REFUSED("have_decnum", "not in every version");
	REFUSED("have_literal_numbers", "not in every version");
	REFUSED("trim", "not in every version");
	REFUSED("ltrimstr(\"a\") | ltrim", "not in every version");
	REFUSED("scan(\"a\"; \"g\")", "`scan` is not in every version");
	REFUSED("leaf_paths", "write `paths(scalars)`");
	REFUSED("recurse_down", "write `recurse`");
	REFUSED("debug(\"x\")", "refused");
	REFUSED("@base32d", "`@base32d` is not a format that every version");
	REFUSED("@urid", "not a format");
	REFUSED("@nonsense", "not a format");
	REFUSED("if .a then 1 end", "`if` without `else`");
	REFUSED("if .a then 1 elif .b then 2 end", "`if` without `else`");
	REFUSED(".a.[0]", "leave the dot out");
	REFUSED(".a .[\"b\"]", "leave the dot out");
	REFUSED("[.a[].[0]]", "leave the dot out");
	REFUSED(".a # x \\\n | input", "comment");
	REFUSED(".a # x\r | input", "comment");
	REFUSED("9007199254740993", "beyond 2^53");
	REFUSED("1e999", "too large");
	ACCEPTED("ltrimstr(\"a\")");
	ACCEPTED("[splits(\"a\")]");
	ACCEPTED("getpath([\"a\"])");
	ACCEPTED("@base32 \"x\\(.)\"");
	ACCEPTED("scan(\"a\")");
	ACCEPTED("if .a then 1 else 2 end");
	ACCEPTED("if .a then .b | if . then 1 else 2 end elif .c then 3 else 4 end");
	ACCEPTED("def pick(f): f; pick(.a)");
	ACCEPTED("def f(abs; $trim): abs + $trim; f(1; 2)");
	ACCEPTED(".[0]");
	ACCEPTED("[.a, .[0]]");
	ACCEPTED(". as [$a] | .[0]");
	ACCEPTED("if .[0] then .[0] else .[0] end");
	ACCEPTED("9007199254740992");
	ACCEPTED(".a\r\n| .b");
	ACCEPTED(".a # windows\r\n| .b");
	GIVES("[limit(0; 1, 2)]", "{}", "[]");
	GIVES("[limit(1; 1, 2)]", "{}", "[1]");
	GIVES("[path(limit(1; .a, .b))]", "{}", "[[\"a\"]]");
	GIVES("\"abc\" | indices(\"\")", "{}", "[]");
	GIVES("\"abc\" | index(\"\")", "{}", "null");
	GIVES("[\"abcb\" | index(\"b\"), rindex(\"b\"), indices(\"b\")]", "{}", "[1,3,[1,3]]");
	GIVES("[65, 66] | implode", "{}", "\"AB\"");
	FAILS("[\"a\"] | implode", "{}", "array of code points");
	FAILS("[-1] | implode", "{}", "array of code points");
	FAILS("[1114112] | implode", "{}", "array of code points");
	GIVES("[1.0, 2.50, 1e3] | tojson", "{}", "\"[1,2.5,1000]\"");
}

Test(words, builtins_that_take_jq_down_are_made_safe)
{
	GIVES("[scan(\"[a-z]+\")]", "\"ab é cd\"", "[\"ab\",\"cd\"]");
	GIVES("[match(\"é\"; \"g\").offset]", "\"é aé\"", "[0,3]");
	GIVES("[match([\"A\", \"gi\"]).offset]", "\"aba\"", "[0,2]");
	GIVES("gsub(\"\\\\s+\"; \"-\")", "\"a é  b\"", "\"a-é-b\"");
	GIVES("gsub(\"(?<x>[ab])\"; .x + .x)", "\"abc\"", "\"aabbc\"");
	GIVES("gsub(\"A\"; \"x\"; \"i\")", "\"abc\"", "\"xbc\"");
	GIVES("sub(\"b\"; \"x\")", "\"abcb\"", "\"axcb\"");
	GIVES("sub(\"b\"; \"x\"; \"g\")", "\"abcb\"", "\"axcx\"");
	GIVES("sub(\"$\"; \"!\")", "\"é\"", "\"é!\"");
	GIVES("[splits(\", *\")]", "\"a,  b,c\"", "[\"a\",\"b\",\"c\"]");
	GIVES("split(\", *\"; null)", "\"a,  b\"", "[\"a\",\"b\"]");
	GIVES("split(\",\")", "\"a,b\"", "[\"a\",\"b\"]");
	GIVES("[capture(\"(?<k>[a-z])\"; \"g\")]", "\"a b\"", "[{\"k\":\"a\"},{\"k\":\"b\"}]");
	GIVES("capture(\"(?<k>[a-z]+)\")", "\"ab c\"", "{\"k\":\"ab\"}");
	GIVES("test(\"B\"; \"i\")", "\"abc\"", "true");
	FAILS("\"aaa\" | gsub(\"\"; \"x\")", "{}", "matches the empty text");
	FAILS("[scan(\"x*\")]", "\"aé\"", "matches the empty text");
	FAILS("[match(\"\"; \"g\")]", "\"é\"", "matches the empty text");
	FAILS("[splits(\"\\\\b\")]", "\"é b\"", "matches the empty text");
	FAILS("gsub(\"^\"; \"x\")", "\"ab\"", "matches the empty text");
	FAILS("scan(\"a\")", "5", "cannot be matched");
	FAILS("gsub(\"(\"; \"x\")", "\"ab\"", "unmatched parenthesis");
	GIVES("todate", "0", "\"1970-01-01T00:00:00Z\"");
	GIVES("todateiso8601", "1425599621", "\"2015-03-05T23:53:41Z\"");
	GIVES("strftime(\"%Y\")", "0", "\"1970\"");
	GIVES("gmtime | strftime(\"%Y\")", "0", "\"1970\"");
	FAILS("todate", "1e18", "converting number of seconds");
	FAILS("strftime(1)", "0", "requires a string format");
	FAILS("strftime(\"%Y\")", "\"x\"", "requires parsed datetime inputs");
	FAILS("strftime(\"%Y\")", "[1,\"a\",null]", "requires parsed datetime inputs"); /* jq 1.6 leaks */
	FAILS("todate", "[1,\"a\",null]", "requires parsed datetime inputs");
	GIVES("[.[] % 5]", "[7,-7,5]", "[2,-2,0]");
	GIVES(". % -1", "-1e300", "0");
	GIVES("[(7,8) % (5,3)]", "{}", "[2,3,1,2]");
	GIVES(".a %= 4", "{\"a\":7}", "{\"a\":3}");
	FAILS(".[0] % .[1]", "[1,0]", "divisor is zero");
	REFUSED("jn(2000000000; 1.5)", "`jn` is refused");
}

Test(words, every_common_function_compiles_with_its_arity)
{
	ACCEPTED("[.[]|tostring, tojson, type, length, utf8bytelength, not, keys, values, add, any, all, flatten, "
		 "floor, sqrt]");
	ACCEPTED("map(def f: 1; def g: 2; f + g)");
	ACCEPTED("[range(0; 10; 2), range(3), range(1; 2)]");
	ACCEPTED("sub(\"a\"; \"b\"; \"g\") | gsub(\"a\"; \"b\") | test(\"x\") | tostring");
	ACCEPTED("[foreach .[] as $x (0; . + $x; [$x, .])]");
	ACCEPTED("label $out | foreach .[] as $i (0; . + $i; if . > 3 then ., break $out else empty end)");
	ACCEPTED("with_entries(select(.value | type == \"number\")) | to_entries | from_entries");
	ACCEPTED("group_by(.a) | map({k: .[0].a, n: length}) | sort_by(.n) | unique_by(.k) | min_by(.n), max_by(.n)");
	ACCEPTED("path(..) , [paths] , [paths(type == \"number\")] , del(.a) , delpaths([[\"a\"]])");
	ACCEPTED(".a |= . + 1 | .b += 2 | .c //= 3 | .d = 4 | .e *= 2 | .f -= 1 | .g /= 2 | .h %= 2");
	ACCEPTED(". as [$a, {b: $c, $d}] | [$a, $c, $d]");
	ACCEPTED(".[] as [$a] ?// $a | [$a]");
	ACCEPTED(".a[1:2] | .[:-1] | .[2:]");
	ACCEPTED("todate | fromdate | strftime(\"%Y\") | strptime(\"%Y\") | mktime | gmtime");
	ACCEPTED("IN(1, 2) or isempty(empty) or (. == infinite) or (nan | isnan)");
	ACCEPTED("[limit(3; repeat(1))], first(range(5)), last, nth(1), until(. > 3; . + 1), [while(. < 3; . + 1)]");
	REFUSED("map(.; .)", "`map` is not defined with 2 arguments");
	REFUSED("nonsense", "`nonsense` is not defined");
	REFUSED("nonsense(1)", "`nonsense` is not defined");
	REFUSED("split", "`split` is not defined with 0 arguments");
}

Test(words, nothing_can_break_out_of_its_brackets)
{
	static const char *const texts[] = {".a) elif true then (.b", ".a) | (.b", "(.a", ".a)", "[.a", ".a]", "{a: 1",
		".a}", ".a else .b", ".a end", "if .a then .b", "if .a then (.b else 1 end)", "\"a", "\"a\\(.b\"",
		".a\"", "\"\\(.a\"))\"", ".a # )\n)", "then 1", "(.a] | [.b)", "{a: (1}, b: 2)", ".a) as $x | (.b",
		"1; 2", "def f: 1;", "def f: 1", "def", "as $x", ". as $x", "label $x", ".a |", "| .a", ".a..b", "",
		"   ", "# only a comment", ".a +", "&", ".a & .b", "a b", "\"\\q\"", "\"\\u12\"", "1.2.3", "...",
		"'single'", "\xc3", "\"\xff\"", ".\xc3\xa9", "$", "$ x", "@", "fn:", "fn:x", "{(1)}", "{1}", "try",
		"reduce . as $x", "reduce . as $x (0)", "\"\\(1; 2)\"", ".[", "..", "`", "\\", ".a ? // ", "?//",
		"foreach .[] as $x (1)"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *message = add_message(texts[i], SL_EXPR_ONE, &item_site);
		if (!strcmp(texts[i], "..")) {
			cr_expect_str_eq(message, "");
			continue;
		}
		cr_expect(strncmp(message, "expression `", 12) == 0, "%s -> %s", texts[i], message);
		cr_expect(strstr(message, "jq:") == NULL && strstr(message, "<top") == NULL, "%s -> %s", texts[i],
			message);
		const char *path = add_message(texts[i], SL_EXPR_PATH, &item_site);
		cr_expect(*path, "%s", texts[i]);
	}
	REFUSED(".a) elif true then (.b", "`)` closes nothing");
	REFUSED("(.a] | [.b)", "`]` meets an open `(`");
	REFUSED("if .a then .b", "`if` is not closed with `end`");
	REFUSED(".a else .b", "`else` without `if`");
	REFUSED("\"a", "a string has no closing quote");
	REFUSED("", "the expression is empty");
	REFUSED("def f: 1;", "definitions without an expression");
	REFUSED(".a +", "syntax error, unexpected the end");
	REFUSED(".a\n| | .b", "line 2");
	REFUSED("\xc3", "not valid UTF-8");
}

Test(words, long_and_deep_texts_are_refused_soon)
{
	double start = seconds_now();
	size_t size = 100000;
	char *text = malloc(size + 1);
	memset(text, '[', size);
	text[size] = 0;
	REFUSED(text, "an expression may have 16 KiB");
	text[10000] = 0;
	REFUSED(text, "nested deeper than 128");
	memset(text, '(', 10000);
	REFUSED(text, "nested deeper than 128");
	for (int i = 0; i < 10000; i++)
		text[i] = "-("[i % 2];
	REFUSED(text, "nested deeper than 128");
	for (int i = 0; i < 16000; i++)
		text[i] = ".|"[i % 2];
	text[15999] = text[16000] = 0;
	const char *message = add_message(text, SL_EXPR_ONE, &item_site); /* libjq decides; it must live */
	cr_expect(!*message || strstr(message, "expression"), "%s", message);
	for (int i = 0; i + 8 <= 16000; i += 8)
		memcpy(text + i, ".|.a|=1|", 8);
	REFUSED(text, "too long to be compiled");
	for (int i = 0; i + 8 <= 16000; i += 8)
		memcpy(text + i, ". as $x|", 8);
	message = add_message(text, SL_EXPR_ONE, &item_site);
	cr_expect(*message);
	text[15999] = '.';
	double compiling = seconds_now();
	message = add_message(text, SL_EXPR_ONE, &item_site);
	cr_expect(!*message || strstr(message, "expression"), "%s", message);
	cr_expect_lt(seconds_now() - compiling, 5.0);
	memset(text, '-', 15999);
	text[15998] = '1';
	message = add_message(text, SL_EXPR_ONE, &item_site);
	free(text);
	cr_expect_lt(seconds_now() - start, 15.0);
}

Test(words, functions_cannot_multiply_without_end)
{
	struct sl_program *prog = sl_program_new();
	struct sl_diags diags;
	sl_diags_init(&diags);
	cr_assert_eq(sl_program_add_function(prog, "f0", ".a+.b", &item_site, &diags), 0);
	int err = 0, i;
	for (i = 1; i < 30 && !err; i++) {
		char name[16], text[64];
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(text, sizeof(text), "fn:f%d+fn:f%d+fn:f%d", i - 1, i - 1, i - 1);
		err = sl_program_add_function(prog, name, text, &item_site, &diags);
	}
	cr_expect_eq(err, SL_EEXPR);
	cr_expect(i > 3 && i < 12, "%d", i);
	cr_expect(strstr(sl_diags_first(&diags), "too long to be compiled") ||
			  strstr(sl_diags_first(&diags), "longer than"),
		"%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	sl_program_free(prog);
}
