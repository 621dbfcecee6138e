/* sluice validate: every violation of a definition with file:line:col and a hint. */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/dsl/dsl.h"
#include "services/cli/cli.h"
#include "services/cli/files.h"
#include "services/cli/local.h"

static void print_text(const char *path, const struct sl_diags *diags, const char *source, bool ok)
{
	struct sl_buf out;
	sl_buf_init(&out);
	sl_diags_print(diags, &out, source);
	if (out.data)
		fputs(out.data, stderr);
	sl_buf_release(&out);
	if (ok)
		printf("%sok%s %s%s\n", sl_cli_color("green"), sl_cli_color("off"), path, diags->warning_count ? " (with warnings)" : "");
	else
		printf("%snot ok%s %s: %d error%s\n", sl_cli_color("red"), sl_cli_color("off"), path, diags->error_count,
			diags->error_count == 1 ? "" : "s");
}

static jv diag_json(const struct sl_diag *d)
{
	jv one = sl_json_set(jv_object(), "severity", jv_string(d->severity == SL_SEVERITY_ERROR ? "error" : "warning"));
	one = sl_json_set(one, "text", jv_string(d->text));
	if (d->loc.file)
		one = sl_json_set(one, "file", jv_string(d->loc.file));
	if (d->loc.line) {
		one = sl_json_set(one, "line", jv_number(d->loc.line));
		one = sl_json_set(one, "column", jv_number(d->loc.col));
	}
	if (d->pointer)
		one = sl_json_set(one, "pointer", jv_string(d->pointer));
	if (d->hint)
		one = sl_json_set(one, "hint", jv_string(d->hint));
	if (d->rule)
		one = sl_json_set(one, "rule", jv_string(d->rule));
	return one;
}

/* True: valid. */
static bool validate(const char *path, const struct sl_compile_options *base, jv *list)
{
	struct sl_compile_options opt = *base;
	struct sl_local_files local = {.base = path};
	struct sl_resources resources = {sl_local_get, &local};
	struct sl_plan *plan = NULL;
	struct sl_diags diags;
	char *text = NULL;
	size_t len = 0;
	sl_diags_init(&diags);
	opt.file = path;
	opt.resources = &resources;
	int err = sl_file_read(path, 64 * 1024 * 1024, &text, &len, &diags);
	if (!err) {
		err = sl_compile(text, len, &opt, &plan, &diags);
		if (err == SL_EAGAIN || err == SL_ENOTFOUND) { /* resources on the network: checked at deployment (A120) */
			sl_diags_clear(&diags);
			opt.resources = NULL;
			err = sl_compile(text, len, &opt, &plan, &diags);
		}
	}
	sl_plan_unref(plan);
	sl_diags_sort(&diags);
	bool ok = !err && !diags.error_count;
	if (sl_cli_json()) {
		jv one = sl_json_set(jv_object(), "file", jv_string(path)), all = jv_array();
		for (const struct sl_diag *d = diags.first; d; d = d->next)
			all = jv_array_append(all, diag_json(d));
		one = sl_json_set(one, "valid", jv_bool(ok));
		*list = jv_array_append(*list, sl_json_set(one, "diagnostics", all));
	} else {
		print_text(path, &diags, text, ok);
	}
	sl_diags_release(&diags);
	free(text);
	return ok;
}

static int run_validate(int argc, char **argv)
{
	const char *output = NULL, *dialect = NULL;
	struct sl_compile_options opt = {0};
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"dialect", &dialect, NULL, NULL},
		{"lenient", NULL, &opt.lenient, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	int count, code = SL_EXIT_OK;
	jv list = jv_array();
	if (!sl_cli_parse(&sl_cmd_validate, argc, argv, options, words, &count, NULL, NULL))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output))
		code = sl_cli_usage(&sl_cmd_validate, "--output is text or json");
	else if (dialect && sl_dialect_of(dialect, &opt.dialect))
		code = sl_cli_usage(&sl_cmd_validate, "unknown dialect '%s' (sw08, sw09, direktiv, cncf01)", dialect);
	else if (!count)
		code = sl_cli_usage(&sl_cmd_validate, "which files?");
	if (code == SL_EXIT_OK) {
		for (int i = 0; i < count; i++)
			if (!validate(words[i], &opt, &list))
				code = SL_EXIT_WRONG;
		if (sl_cli_json())
			sl_cli_print_json(jv_copy(list));
	}
	jv_free(list);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_validate = {
	.name = "validate",
	.usage = "[--dialect ID] [--lenient] [--output json] FILE...",
	.summary = "check definitions: every error with file:line:col",
	.help = "  --dialect ID    sw08, sw09, direktiv or cncf01; without it the definition tells\n"
		"  --lenient       forgive what other engines accept, with a warning\n"
		"  --output json   diagnostics as JSON\n\n"
		"FILE - is standard input. Resources that a definition names by relative path or file:// are read beside it.\n"
		"What Sluice cannot run yet is a warning here and refused at deploy.\n",
	.run = run_validate,
};
