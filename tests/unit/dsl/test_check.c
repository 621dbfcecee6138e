/* The checks of 0.8, from case files that anyone can extend: check/README is the head of check/workflow.txt. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/dsl/sw08_check.h"
#include "common/expr/expr.h"

struct resource {
	char *uri;
	struct sl_buf text;
	bool wanted;
};
struct testcase {
	const char *file;
	int line;
	char *name, *result;
	bool lenient, deploy, bare, no_files;
	struct sl_buf text;
	char *expect[64];
	int expect_count;
	struct resource resources[12];
	int resource_count;
};

static int get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	struct testcase *tc = arg;
	(void)diags;
	for (int i = 0; i < tc->resource_count; i++) {
		if (strcmp(tc->resources[i].uri, uri))
			continue;
		if (tc->resources[i].wanted)
			return SL_EAGAIN;
		*ret = strdup(tc->resources[i].text.data);
		*ret_len = tc->resources[i].text.len;
		return 0;
	}
	return SL_ENOTFOUND;
}

static void finding(const struct sl_diag *d, struct sl_buf *out)
{
	sl_buf_clear(out);
	if (d->severity == SL_SEVERITY_WARNING)
		sl_buf_adds(out, "w ");
	if (d->loc.file && strcmp(d->loc.file, "case"))
		sl_buf_printf(out, "%s:", d->loc.file);
	sl_buf_printf(out, "%d:%d: %s", d->loc.line, d->loc.col, d->text);
	if (d->hint)
		sl_buf_printf(out, " (%s)", d->hint);
}

/* Each finding must fit one expected line, each line one finding. */
static bool compare(struct testcase *tc, struct sl_diags *diags, struct sl_buf *report)
{
	bool used[64] = {false}, good = true;
	struct sl_buf text;
	sl_buf_init(&text);
	for (const struct sl_diag *d = diags->first; d; d = d->next) {
		finding(d, &text);
		int i = 0;
		while (i < tc->expect_count) {
			const char *want = tc->expect[i], *colon = strstr(want, ": ");
			size_t head = colon ? (size_t)(colon + 2 - want) : strlen(want);
			if (!used[i] && !strncmp(text.data, want, head) && strstr(text.data + head, want + head))
				break;
			i++;
		}
		if (i < tc->expect_count) {
			used[i] = true;
			continue;
		}
		sl_buf_printf(report, "  unexpected: %s\n", text.data);
		good = false;
	}
	for (int i = 0; i < tc->expect_count; i++) {
		if (!used[i])
			sl_buf_printf(report, "  missing:    %s\n", tc->expect[i]);
		good = good && used[i];
	}
	sl_buf_release(&text);
	return good;
}

static int check(struct testcase *tc, struct sl_diags *diags)
{
	struct sl_resources resources = {.get = get, .arg = tc};
	struct sl_compile_options opt = {.lenient = tc->lenient, .deploy = tc->deploy, .file = "case",
		.resources = tc->no_files ? NULL : &resources};
	struct sl_doc *doc = NULL;
	int err = sl_doc_parse(tc->text.data, tc->text.len, "case", &doc, diags);
	if (err)
		return err;
	struct sl_sw08_checked checked;
	err = sl_sw08_check(doc, &opt, &checked, diags);
	if (!err && checked.wanted)
		err = SL_EAGAIN;
	jv_free(checked.resolved);
	sl_doc_free(doc);
	return err;
}

/* The result that the findings imply, or the one that the case names. */
static bool result_fits(struct testcase *tc, int err, struct sl_diags *diags)
{
	const char *want = tc->result ? tc->result : diags->error_count ? "ESCHEMA" : "OK";
	return !strcmp(sl_err_name(err), want);
}

static int failed_count, run_count;

static void run(struct testcase *tc)
{
	if (!tc->name)
		return;
	if (!tc->bare)
		sl_buf_adds(&tc->text, "id: w\nspecVersion: '0.8'\n");
	struct sl_diags diags;
	struct sl_buf report;
	sl_diags_init(&diags);
	sl_buf_init(&report);
	int err = check(tc, &diags);
	bool good = compare(tc, &diags, &report);
	if (!result_fits(tc, err, &diags)) {
		sl_buf_printf(&report, "  result: %s\n", sl_err_name(err));
		good = false;
	}
	for (const struct sl_diag *d = diags.first; d; d = d->next)
		if (!d->rule && d->err != SL_EUNSUPPORTED && !strstr(d->text, "not supported yet") && !strstr(d->text, "well-formed") &&
			!strstr(d->text, "this resource"))
			cr_log_warn("%s: no rule: %s", tc->name, d->text);
	run_count++;
	if (!good) {
		failed_count++;
		fprintf(stderr, "%s:%d: %s\n%s", tc->file, tc->line, tc->name, report.data);
	}
	sl_buf_release(&report);
	sl_diags_release(&diags);
}

static void clear(struct testcase *tc)
{
	free(tc->name);
	free(tc->result);
	sl_buf_release(&tc->text);
	for (int i = 0; i < tc->expect_count; i++)
		free(tc->expect[i]);
	for (int i = 0; i < tc->resource_count; i++) {
		free(tc->resources[i].uri);
		sl_buf_release(&tc->resources[i].text);
	}
	const char *file = tc->file;
	memset(tc, 0, sizeof(*tc));
	tc->file = file;
}

static void head(struct testcase *tc, const char *line)
{
	const char *flags = strrchr(line, '[');
	tc->name = strdup(line);
	tc->lenient = flags && strstr(flags, "lenient");
	tc->deploy = flags && strstr(flags, "deploy");
	tc->bare = flags && strstr(flags, "bare");
	tc->no_files = flags && strstr(flags, "nofiles");
}

/* "--- WORD REST": the next part. Returns where its lines go, NULL: nowhere or into expect. */
static struct sl_buf *part(struct testcase *tc, const char *line, bool *expecting)
{
	*expecting = !strncmp(line, "--- expect", 10);
	if (*expecting) {
		tc->result = line[10] == ' ' ? strdup(line + 11) : NULL;
		return NULL;
	}
	struct resource *r = &tc->resources[tc->resource_count++];
	r->wanted = !strncmp(line, "--- wanted ", 11);
	r->uri = strdup(line + (r->wanted ? 11 : 13));
	return &r->text;
}

static void run_file(const char *name)
{
	char path[512], *line = NULL;
	size_t cap = 0;
	ssize_t len;
	snprintf(path, sizeof(path), "%s/tests/unit/dsl/check/%s", SL_SOURCE_DIR, name);
	FILE *f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	struct testcase tc = {.file = name};
	struct sl_buf *to = NULL;
	bool expecting = false;
	int number = 0;
	failed_count = run_count = 0;
	while ((len = getline(&line, &cap, f)) >= 0) {
		number++;
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "### ", 4)) {
			run(&tc);
			clear(&tc);
			tc.line = number;
			head(&tc, line + 4);
			to = &tc.text;
			expecting = false;
		} else if (!strncmp(line, "--- ", 4) && tc.name) {
			to = part(&tc, line, &expecting);
		} else if (to) {
			sl_buf_printf(to, "%s\n", line);
		} else if (expecting && *line && *line != '#') {
			tc.expect[tc.expect_count++] = strdup(line);
		}
	}
	run(&tc);
	clear(&tc);
	free(line);
	fclose(f);
	cr_assert_gt(run_count, 0);
	cr_assert_eq(failed_count, 0, "%s: %d of %d cases failed", name, failed_count, run_count);
}

Test(check, workflow) { run_file("workflow.txt"); }
Test(check, definitions_and_resources) { run_file("definitions.txt"); }
Test(check, states_and_actions) { run_file("states.txt"); }
Test(check, transitions_compensation_correlation) { run_file("flow.txt"); }
Test(check, examples_of_the_specification) { run_file("examples.txt"); }
