/* A70: which language a definition is written in, and what compile does with it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "common/dsl/doc.h"

Test(detect, names_of_dialects_go_both_ways)
{
	static const char *const names[] = {"auto", "sw08", "sw09", "direktiv", "cncf01", "sw10"};
	enum sl_dialect dialect;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		cr_expect_eq(sl_dialect_of(names[i], &dialect), 0);
		cr_expect_str_eq(sl_dialect_text(dialect), names[i]);
	}
	cr_expect_eq(sl_dialect_of("sw07", &dialect), SL_EINVAL);
}

Test(detect, first_rule_that_holds)
{
	static const struct {
		const char *text, *dialect;
	} cases[] = {
		{"{}", "sw08"},
		{"[1]", "sw08"},
		{"{specVersion: '0.8', states: [{name: A, type: inject}]}", "sw08"},
		{"{specVersion: 0.8}", "sw08"},
		{"{specVersion: '0.9'}", "sw09"},
		{"{specVersion: 0.9}", "sw09"},
		{"{specVersion: v0.9}", "sw09"},
		{"{specVersion: '1.0'}", "sw09"},
		{"{specVersion: '0.8', states: [{name: A, id: a, type: inject}]}", "sw08"},
		{"{specVersion: '0.8', errors: [{name: x}]}", "sw08"},
		{"{specVersion: '0.8', errors: {definitions: []}}", "sw09"},
		{"{specVersion: '0.8', states: [{name: A, actions: [{publish: {event: e}}]}]}", "sw09"},
		{"{specVersion: '0.8', states: [{name: A, onEvents: [{actions: [{subscribe: {event: e}}]}]}]}", "sw09"},
		{"{specVersion: '0.8', states: [{name: A, branches: [{actions: [{subscribe: {event: e}}]}]}]}", "sw09"},
		{"{specVersion: '0.8', states: [{name: A, action: {publish: {event: e}}}]}", "sw09"},
		{"{specVersion: '0.8', states: [{name: A, type: inject, data: {publish: 1}}]}", "sw08"},
		{"{id: x, states: [{id: a, type: noop}]}", "direktiv"},
		{"{states: [{name: A}, {id: a, type: noop}], specVersion: '0.9'}", "direktiv"},
		{"{states: [{name: A, type: OPERATION}]}", "cncf01"},
		{"{trigger-defs: [], states: [{id: a}]}", "cncf01"},
		{"{document: {dsl: 1.0.0}, states: [{type: OPERATION}]}", "sw10"},
		{"{document: {name: x}, specVersion: '0.8'}", "sw08"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sl_doc *doc = NULL;
		struct sl_diags diags;
		sl_diags_init(&diags);
		cr_assert_eq(sl_doc_parse(cases[i].text, strlen(cases[i].text), "f", &doc, &diags), 0, "%s", sl_diags_first(&diags));
		jv value = sl_doc_value(doc);
		cr_expect_str_eq(sl_dialect_text(sl_dialect_detect(value)), cases[i].dialect, "%s", cases[i].text);
		jv_free(value);
		sl_doc_free(doc);
		sl_diags_release(&diags);
	}
}

/* --- compile --- */

struct outcome {
	int err;
	struct sl_plan *plan;
	struct sl_buf said;
};

static int get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	(void)uri;
	(void)diags;
	if (!arg)
		return SL_EAGAIN;
	*ret = strdup(arg);
	*ret_len = strlen(arg);
	return 0;
}

static struct outcome compile(const char *text, struct sl_compile_options opt)
{
	struct outcome out = {0};
	struct sl_diags diags;
	sl_diags_init(&diags);
	sl_buf_init(&out.said);
	sl_buf_adds(&out.said, "");
	opt.file = "w";
	out.err = sl_compile(text, strlen(text), &opt, &out.plan, &diags);
	sl_diags_print(&diags, &out.said, NULL);
	sl_diags_release(&diags);
	return out;
}

static void release(struct outcome *out)
{
	sl_plan_unref(out->plan);
	sl_buf_release(&out->said);
}

#define SMALL "states: [{name: A, type: inject, data: {a: 1}, end: true}]"

Test(compile, a_plan_has_its_names_and_hash)
{
	struct outcome a = compile("id: w\nversion: 1.2.3\nspecVersion: '0.8'\n" SMALL, (struct sl_compile_options){0});
	cr_assert_eq(a.err, 0, "%s", a.said.data);
	cr_assert_not_null(a.plan);
	cr_expect_str_eq(a.plan->id, "w");
	cr_expect_str_eq(a.plan->name, "w");
	cr_expect_str_eq(a.plan->version, "1.2.3");
	cr_expect_str_eq(a.plan->dialect, "sw08");
	cr_expect_eq(strlen(a.plan->hash), 64);
	/* order and layout do not matter, content does */
	struct outcome b = compile("{\"specVersion\": \"0.8\", \"version\": \"1.2.3\",\n \"states\": [{\"end\": true, \"data\": {\"a\": 1}, "
		"\"type\": \"inject\", \"name\": \"A\"}], \"id\": \"w\"}", (struct sl_compile_options){0});
	struct outcome c = compile("id: w\nversion: 1.2.4\nspecVersion: '0.8'\n" SMALL, (struct sl_compile_options){0});
	cr_assert(b.plan && c.plan, "%s%s", b.said.data, c.said.data);
	cr_expect_str_eq(a.plan->hash, b.plan->hash);
	cr_expect_str_neq(a.plan->hash, c.plan->hash);
	release(&a);
	release(&b);
	release(&c);
}

Test(compile, key_and_lenient_version_name_the_plan)
{
	struct outcome a = compile("key: k\nname: N\nversion: 1.5\n" SMALL, (struct sl_compile_options){.lenient = true});
	cr_assert_eq(a.err, 0, "%s", a.said.data);
	cr_expect_str_eq(a.plan->id, "k");
	cr_expect_str_eq(a.plan->name, "N");
	cr_expect_str_eq(a.plan->version, "1.5");
	release(&a);
}

Test(compile, the_hash_covers_resources)
{
	const char *text = "id: w\nspecVersion: '0.8'\nconstants: file://c\n" SMALL;
	struct sl_resources one = {get, "{\"a\": 1}"}, same = {get, "{\"a\":  1}"}, none = {get, NULL};
	struct outcome a = compile(text, (struct sl_compile_options){.resources = &one, .deploy = true});
	struct outcome b = compile(text, (struct sl_compile_options){.resources = &same, .deploy = true});
	struct outcome c = compile(text, (struct sl_compile_options){.resources = &none, .deploy = true});
	cr_assert(a.plan && b.plan, "%s%s", a.said.data, b.said.data);
	cr_expect_str_neq(a.plan->hash, b.plan->hash);
	cr_expect_eq(sl_json_int(a.plan->constants, "a", 0), 1);
	cr_expect_eq(c.err, SL_EAGAIN, "%s", c.said.data);
	cr_expect_null(c.plan);
	release(&a);
	release(&b);
	release(&c);
}

Test(compile, results_by_what_is_wrong)
{
	static const struct {
		const char *text;
		bool deploy;
		enum sl_dialect dialect;
		int err;
		bool plan;
		const char *said;
	} cases[] = {
		{"a: [", false, SL_DIALECT_AUTO, SL_EPARSE, false, "w:2:1: error: not well-formed"},
		{"[1]", false, SL_DIALECT_AUTO, SL_ESCHEMA, false, "must be an object"},
		{"id: w\nspecVersion: '0.9'", false, SL_DIALECT_AUTO, SL_EUNSUPPORTED, false, "not supported yet: dialect sw09"},
		{"id: w\nstates: [{id: a, type: noop}]", false, SL_DIALECT_AUTO, SL_EUNSUPPORTED, false, "not supported yet: dialect direktiv"},
		{"id: w\nspecVersion: '0.8'\n" SMALL, false, SL_DIALECT_CNCF01, SL_EUNSUPPORTED, false, "not supported yet: dialect cncf01"},
		{"id: w\nspecVersion: '0.9'\n" SMALL, false, SL_DIALECT_SW08, SL_ESCHEMA, false, "specVersion \"0.9\" is not \"0.8\""},
		{"id: w\nspecVersion: '0.8'\nkeepActive: true\n" SMALL, false, SL_DIALECT_AUTO, 0, false, "warning: not supported yet: keepActive (3:1)"},
		{"id: w\nspecVersion: '0.8'\nkeepActive: true\n" SMALL, true, SL_DIALECT_AUTO, SL_EUNSUPPORTED, false, "error: not supported yet: keepActive (3:1)"},
		{"id: w\nspecVersion: '0.8'\nstates: [{name: A, type: switch, dataConditions: [{condition: '${ .a | }', end: true}], defaultCondition: {end: true}}]",
			false, SL_DIALECT_AUTO, SL_ESCHEMA, false, "w:3:"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct outcome out = compile(cases[i].text, (struct sl_compile_options){.deploy = cases[i].deploy, .dialect = cases[i].dialect});
		cr_expect_eq(out.err, cases[i].err, "%s: %s\n%s", cases[i].text, sl_err_name(out.err), out.said.data);
		cr_expect_eq(out.plan != NULL, cases[i].plan, "%s", cases[i].text);
		cr_expect_not_null(strstr(out.said.data, cases[i].said), "%s\n%s", cases[i].text, out.said.data);
		release(&out);
	}
}

/* Not lowered, for it has errors elsewhere or unsupported parts: the expressions are judged all the same. */
Test(compile, expressions_are_judged_beside_other_findings)
{
	struct outcome out = compile("id: w\nspecVersion: '0.8'\nstates:\n"
		"- name: A\n  type: foreach\n  inputCollection: .x\n  iterationParam: one\n  nonsense: 1\n  metadata: {x: '${ .| }'}\n"
		"  actions:\n  - subFlowRef: other\n    condition: \"${ $one | }\"\n"
		"  - functionRef: {refName: f, arguments: {a: '${ $one.b }', b: '${ $two }', c: 'x ${ $SECRETS.s }'}}\n"
		"    actionDataFilter: {toStateData: '1 + 1', results: '${ $SECRETS.s }'}\n"
		"  end: true\nfunctions: [{name: f, type: expression, operation: '.a |'}]\n", (struct sl_compile_options){0});
	cr_expect_eq(out.err, SL_ESCHEMA);
	static const char *const said[] = {"w:8:3: error", "w:11:5: warning", "w:12:", "w:13:", "w:14:", "w:16:"};
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
		cr_expect_not_null(strstr(out.said.data, said[i]), "%s in\n%s", said[i], out.said.data);
	cr_expect_null(strstr(out.said.data, "w:9:"), "%s", out.said.data);
	release(&out);
}
