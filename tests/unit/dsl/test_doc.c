/* Documents: YAML 1.2 and JSON to values with positions; what is refused, and where the message points. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/dsl/doc.h"

/* First finding as "LINE:COL: text (hint)"; *ret_err the code. malloc'ed. */
static char *first_finding(const char *text, size_t len, const char *file, int *ret_err)
{
	struct sl_diags diags;
	struct sl_doc *doc = NULL;
	struct sl_buf out;
	sl_diags_init(&diags);
	sl_buf_init(&out);
	sl_buf_adds(&out, "");
	*ret_err = sl_doc_parse(text, len, file, &doc, &diags);
	if (diags.first) {
		sl_buf_printf(&out, "%d:%d: %s", diags.first->loc.line, diags.first->loc.col, diags.first->text);
		if (diags.first->hint)
			sl_buf_printf(&out, " (%s)", diags.first->hint);
	}
	cr_expect_eq(*ret_err != 0, diags.error_count != 0, "%s", text);
	cr_expect_eq(*ret_err != 0, doc == NULL, "%s", text);
	sl_doc_free(doc);
	sl_diags_release(&diags);
	return sl_buf_steal(&out);
}

Test(doc, values_follow_the_core_schema)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
		{"a: yes", "{\"a\":\"yes\"}"}, /* A128: not YAML 1.1 */
		{"on: off", "{\"on\":\"off\"}"},
		{"a: 012", "{\"a\":12}"},
		{"a: 0o14", "{\"a\":12}"},
		{"a: 0x1F", "{\"a\":31}"},
		{"a: 1:30", "{\"a\":\"1:30\"}"},
		{"a: 1_000", "{\"a\":\"1_000\"}"},
		{"a: 2020-01-01", "{\"a\":\"2020-01-01\"}"},
		{"a: [true, False, TRUE, ~, null, NULL, '', \"true\"]", "{\"a\":[true,false,true,null,null,null,\"\",\"true\"]}"},
		{"a: [1, -2, +3, 1.5, .5, 1., 1e3, -1.5E-1, e3, '1']", "{\"a\":[1,-2,3,1.5,0.5,1,1000,-0.15,\"e3\",\"1\"]}"},
		{"a:", "{\"a\":null}"},
		{"a: !!str 5", "{\"a\":\"5\"}"},
		{"a: !!int 5", "{\"a\":5}"},
		{"a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}"},
		{"a: >-\n  x\n  y\n", "{\"a\":\"x y\"}"},
		{"200: x", "{\"200\":\"x\"}"},
		{"- &x {b: 1}\n- *x\n- *x", "[{\"b\":1},{\"b\":1},{\"b\":1}]"},
		{"a: ${ .x }", "{\"a\":\"${ .x }\"}"},
		{"\xef\xbb\xbf" "a: 1", "{\"a\":1}"},
		{"9007199254740992", "9007199254740992"},
		{"{\"a\": \"\\ud83d\\ude00\\/\\u0041\", \"b\": [1, 2.5e2, -0.5, null, true]}",
			"{\"a\":\"\xf0\x9f\x98\x80/A\",\"b\":[1,250,-0.5,null,true]}"},
		{"{\n\t\"a\": {},\n\t\"b\": []\n}", "{\"a\":{},\"b\":[]}"},
		{"{a: 1, b: [x, y]}", "{\"a\":1,\"b\":[\"x\",\"y\"]}"},
		{"# comment\na: 1 # more\n", "{\"a\":1}"},
		{"---\na: 1\n...\n", "{\"a\":1}"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sl_diags diags;
		struct sl_doc *doc = NULL;
		sl_diags_init(&diags);
		int err = sl_doc_parse(cases[i].text, strlen(cases[i].text), "f", &doc, &diags);
		cr_expect_eq(err, 0, "%s: %s", cases[i].text, sl_diags_first(&diags));
		jv want = jv_null(), got = jv_null();
		if (!err && !sl_json_parse(cases[i].json, strlen(cases[i].json), &sl_json_default, &want, NULL)) {
			got = sl_doc_value(doc);
			char *text = sl_json_text(got);
			cr_expect(sl_json_equal(want, got), "%s: %s", cases[i].text, text);
			free(text);
		}
		jv_free(want);
		jv_free(got);
		sl_doc_free(doc);
		sl_diags_release(&diags);
	}
}

Test(doc, refusals_say_where)
{
	static const struct {
		const char *file, *text;
		int err;
		const char *finding; /* whole, or its beginning */
	} cases[] = {
		{"f", "", SL_EPARSE, "1:1: the document is empty"},
		{"f", "# nothing\n", SL_EPARSE, "1:1: the document is empty"},
		{"f", "a: 1\n---\nb: 2\n", SL_EPARSE, "2:1: a second document"},
		{"f", "a: 1\nb:\n  c: 2\na: 3\n", SL_EPARSE, "4:1: duplicate key \"a\" (first at 1:1)"},
		{"f", "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}", SL_EPARSE, "1:24: duplicate key \"c\" (first at 1:16)"},
		{"f", "b: &b {x: 1}\nc:\n  <<: *b\n", SL_EPARSE, "3:3: merge key << is not YAML 1.2"},
		{"f", "a: *x\n", SL_EPARSE, "1:5: alias *x has no anchor before it"},
		{"f", "a: &x {b: *x}\n", SL_EPARSE, "1:12: alias *x stands inside its own anchor"},
		{"f", "? [a]\n: b\n", SL_EPARSE, "1:3: a key must be a string"},
		{"f", "a:\n\tb: 1\n", SL_EPARSE, "2:1: a tab in the indentation"},
		{"f", "a: b\n\tc: d\n", SL_EPARSE, "2:1: a tab in the indentation"},
		{"f", "a:\n  b: 1\n c: 2\n", SL_EPARSE, "3:2: not well-formed YAML: "},
		{"f", "a: b: c\n", SL_EPARSE, "1:5: not well-formed YAML: "},
		{"f", "a: [1, 2\n", SL_EPARSE, "2:1: not well-formed YAML: "},
		{"f", "a: [1, 2\n  ", SL_EPARSE, "3:1: not well-formed YAML: "},
		{"f", "a: \"x\\qy\"\n", SL_EPARSE, "1:6: not well-formed YAML: invalid escape"},
		{"f", "a: @x\n", SL_EPARSE, "1:4: not well-formed YAML: "},
		{"f", "a: 9007199254740993\n", SL_ENUMBER, "1:4: 9007199254740993 is an integer beyond 2^53 (write it as a string: \"9007199254740993\")"},
		{"f", "a: -123456789012345678901234567890\n", SL_ENUMBER, "1:4: -123456789012345678901234567890 is an integer beyond 2^53"},
		{"f", "a: 1e999\n", SL_ENUMBER, "1:4: 1e999 is larger than any number"},
		{"f", "a: .nan\n", SL_ENUMBER, "1:4: .nan is not a JSON number"},
		{"f", "a: !!int x\n", SL_EPARSE, "1:10: tag "},
		{"f", "a: !custom x\n", SL_EPARSE, "1:12: tag "},
		{"f", "{\"a\": 1 \"b\": 2}", SL_EPARSE, "1:7: not well-formed JSON: "},
		{"f", "{\"a\": 1,}", SL_EPARSE, "1:8: not well-formed JSON: "},
		{"f", "{\"a\": tru}", SL_EPARSE, "1:7: not well-formed JSON: "},
		{"f", "{\"a\": }", SL_EPARSE, "1:7: not well-formed JSON: "},
		{"f", "{\"a\": [1, 2}", SL_EPARSE, "1:12: not well-formed JSON: "},
		{"f", "a: \xc3\xa9 \xff\n", SL_EENCODING, "1:6: byte 0xff is not UTF-8"},
		{"f", "a: 1\nb: \xed\xa0\x80\n", SL_EENCODING, "2:4: byte 0xed is not UTF-8"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int err;
		size_t len = strlen(cases[i].text);
		char *exact = malloc(len ? len : 1); /* what reads behind the text is noticed */
		memcpy(exact, cases[i].text, len);
		char *got = first_finding(exact, len, cases[i].file, &err);
		free(exact);
		cr_expect_eq(err, cases[i].err, "%s: %s", cases[i].text, sl_err_name(err));
		cr_expect_eq(strncmp(got, cases[i].finding, strlen(cases[i].finding)), 0, "%s: %s", cases[i].text, got);
		free(got);
	}
}

Test(doc, flow_style_is_yaml_only_in_a_file_named_so)
{
	const char *text = "{\"a\": 'x', # note\n \"b\": y}";
	int err;
	char *got = first_finding(text, strlen(text), "w.yaml", &err);
	cr_expect_eq(err, 0, "%s", got);
	free(got);
	got = first_finding(text, strlen(text), "w.json", &err);
	cr_expect_eq(err, SL_EPARSE);
	free(got);
}

Test(doc, every_finding_is_reported_not_only_the_first)
{
	const char *text = "a: 1\na: 2\nb: 9007199254740993\nc: {<<: 1}\n";
	struct sl_diags diags;
	struct sl_doc *doc = NULL;
	sl_diags_init(&diags);
	cr_expect_neq(sl_doc_parse(text, strlen(text), "f", &doc, &diags), 0);
	cr_expect_eq(diags.error_count, 3);
	cr_expect_str_eq(diags.first->next->pointer, "/b");
	sl_diags_release(&diags);
}

Test(doc, a_nul_byte_is_refused)
{
	int err;
	char *got = first_finding("a: x\0y", 6, "f", &err);
	cr_expect_eq(err, SL_EPARSE);
	cr_expect_str_eq(got, "1:5: a NUL character cannot stand in a document");
	free(got);
}

/* Releases of libfyaml differ in who notices. */
Test(doc, half_a_surrogate_pair_is_refused)
{
	const char *text = "{\"a\": \"\\ud83d x\"}";
	int err;
	char *got = first_finding(text, strlen(text), "f", &err);
	cr_expect(err == SL_EPARSE || err == SL_EENCODING, "%s", got);
	cr_expect_eq(strncmp(got, "1:", 2), 0, "%s", got);
	free(got);
}

static char *nested(int depth, const char *open, const char *close)
{
	struct sl_buf out;
	sl_buf_init(&out);
	for (int i = 0; i < depth; i++)
		sl_buf_adds(&out, open);
	for (int i = 0; i < depth; i++)
		sl_buf_adds(&out, close);
	return sl_buf_steal(&out);
}

Test(doc, depth_is_bounded, .timeout = 20)
{
	static const struct {
		int depth, err;
	} cases[] = {{200, 0}, {201, SL_EDEPTH}, {1000, SL_EDEPTH}, {100000, SL_EDEPTH}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int err;
		char *text = nested(cases[i].depth, "[", "]"), *got = first_finding(text, strlen(text), "f", &err);
		cr_expect_eq(err, cases[i].err, "%d: %s", cases[i].depth, got);
		free(got);
		free(text);
	}
}

Test(doc, size_is_bounded)
{
	size_t len = SL_DOC_BYTES_MAX + 1;
	char *text = malloc(len);
	int err;
	memset(text, 'a', len);
	char *got = first_finding(text, len, "f", &err);
	cr_expect_eq(err, SL_ETOOBIG);
	free(got);
	free(text);
}

Test(doc, a_billion_laughs_end_early, .timeout = 20)
{
	struct sl_buf out;
	int err;
	sl_buf_init(&out);
	sl_buf_adds(&out, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
	for (int i = 1; i < 12; i++) {
		sl_buf_printf(&out, "a%d: &a%d [", i, i);
		for (int j = 0; j < 9; j++)
			sl_buf_printf(&out, "%s*a%d", j ? ", " : "", i - 1);
		sl_buf_adds(&out, "]\n");
	}
	char *got = first_finding(out.data, out.len, "f", &err);
	cr_expect_eq(err, SL_ETOOBIG, "%s", got);
	free(got);
	sl_buf_release(&out);
}

Test(doc, a_large_document_is_read_in_reasonable_time, .timeout = 60)
{
	struct sl_buf out;
	int err;
	sl_buf_init(&out);
	for (int i = 0; out.len < 300000; i++)
		sl_buf_printf(&out, "key%d: {a: [1, 2, three], \"b\": 'x'}\n", i);
	char *got = first_finding(out.data, out.len, "f", &err);
	cr_expect_eq(err, 0, "%s", got);
	free(got);
	sl_buf_release(&out);
}

static void expect_loc(struct sl_doc *doc, const char *pointer, bool key, const char *want)
{
	char got[64];
	struct sl_loc loc = sl_doc_loc(doc, pointer, key);
	snprintf(got, sizeof(got), "%s:%d:%d+%d", loc.file ? loc.file : "-", loc.line, loc.col, loc.len);
	cr_expect_str_eq(got, want, "%s: %s", pointer, got);
}

Test(doc, pointers_lead_to_places)
{
	const char *text = "id: w\nstates:\n  - name: \"\xc3\xa9t\xc3\xa9\"\n    a/b~c: [1, x]\n    empty:\nref: f.json\n";
	const char *other = "{\"functions\": [\n  {\"name\": 5}]}";
	struct sl_diags diags;
	struct sl_doc *doc = NULL, *sub = NULL;
	sl_diags_init(&diags);
	cr_assert_eq(sl_doc_parse(text, strlen(text), "w.yaml", &doc, &diags), 0);
	cr_assert_eq(sl_doc_parse(other, strlen(other), "f.json", &sub, &diags), 0);
	expect_loc(doc, "", false, "w.yaml:1:1+0");
	expect_loc(doc, "/id", false, "w.yaml:1:5+1");
	expect_loc(doc, "/id", true, "w.yaml:1:1+2");
	expect_loc(doc, "/states/0", false, "w.yaml:3:5+0");
	expect_loc(doc, "/states/0/name", false, "w.yaml:3:11+5");
	expect_loc(doc, "/states/0/a~1b~0c/1", false, "w.yaml:4:16+1");
	expect_loc(doc, "/states/0/empty", false, "w.yaml:5:5+5");
	/* unknown: the nearest parent */
	expect_loc(doc, "/states/0/name/x/y", true, "w.yaml:3:11+5");
	expect_loc(doc, "/nowhere", false, "w.yaml:1:1+0");
	sl_doc_mount(doc, "/ref", sub, "/functions");
	expect_loc(doc, "/ref", false, "w.yaml:6:6+6");
	expect_loc(doc, "/ref/0/name", false, "f.json:2:12+1");
	sl_doc_free(doc);
	sl_diags_release(&diags);
}
