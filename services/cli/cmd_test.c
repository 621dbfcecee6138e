/* sluice test: runs scenario files in process, in virtual time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/log.h"
#include "services/cli/cli.h"
#include "services/cli/files.h"
#include "services/cli/scenario.h"

struct run {
	const char *filter;
	FILE *junit;
	struct sl_buf cases;
	jv list;
	int passed, failed, found;
};

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void add_xml(struct sl_buf *out, const char *text)
{
	for (; *text; text++) {
		const char *esc = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : *text == '"' ? "&quot;" : NULL;
		if (esc)
			sl_buf_adds(out, esc);
		else if ((unsigned char)*text >= 0x20 || *text == '\n' || *text == '\t')
			sl_buf_addc(out, *text);
	}
}

static void report_junit(struct run *run, const char *path, const struct sl_scenario_result *result, double took)
{
	sl_buf_adds(&run->cases, "  <testcase classname=\"");
	add_xml(&run->cases, path);
	sl_buf_adds(&run->cases, "\" name=\"");
	add_xml(&run->cases, result->name);
	sl_buf_printf(&run->cases, "\" time=\"%.3f\"", took);
	if (result->passed) {
		sl_buf_adds(&run->cases, "/>\n");
		return;
	}
	sl_buf_adds(&run->cases, "><failure>");
	add_xml(&run->cases, result->difference);
	sl_buf_adds(&run->cases, "</failure></testcase>\n");
}

static void report(struct run *run, const char *path, const struct sl_scenario_result *result)
{
	if (sl_cli_json()) {
		jv one = sl_json_set(jv_object(), "file", jv_string(path));
		one = sl_json_set(one, "name", jv_string(result->name));
		one = sl_json_set(one, "passed", jv_bool(result->passed));
		if (result->difference)
			one = sl_json_set(one, "difference", jv_string(result->difference));
		run->list = jv_array_append(run->list, one);
	} else if (result->passed) {
		printf("%sok%s %s\n", sl_cli_color("green"), sl_cli_color("off"), result->name);
	} else if (strncmp(result->difference, "not supported yet: ", 19) == 0) {
		printf("%snot ok%s %s: %.*s\n", sl_cli_color("yellow"), sl_cli_color("off"), result->name,
			(int)strcspn(result->difference, "\n"), result->difference);
	} else {
		printf("%snot ok%s %s (%s)\n%s", sl_cli_color("red"), sl_cli_color("off"), result->name, path, result->difference);
	}
}

/* In a folder, NAME.sw.yaml and NAME.sw.json are definitions that scenarios refer to. */
static bool is_definition(const char *path)
{
	const char *name = strrchr(path, '/');
	return strstr(name ? name : path, ".sw.") != NULL;
}

static void one(void *arg, const char *path)
{
	struct run *run = arg;
	if (is_definition(path))
		return;
	struct sl_scenario_result result;
	double start = seconds();
	run->found++;
	sl_scenario_run(path, &result);
	if (!run->filter || strstr(result.name, run->filter) || strstr(path, run->filter)) {
		if (result.passed)
			run->passed++;
		else
			run->failed++;
		report(run, path, &result);
		if (run->junit)
			report_junit(run, path, &result, seconds() - start);
	}
	sl_scenario_result_clear(&result);
}

static int run_test(int argc, char **argv)
{
	static const char *const suffixes[] = {".json", ".yaml", ".yml", NULL};
	const char *output = NULL, *junit = NULL, *filter = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"junit", &junit, NULL, NULL},
		{"filter", &filter, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	int count, code = SL_EXIT_OK;
	struct run run = {.list = jv_array()};
	sl_log_set_level(SL_ERROR);
	if (!sl_cli_parse(&sl_cmd_test, argc, argv, options, words, &count, NULL, NULL))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output))
		code = sl_cli_usage(&sl_cmd_test, "--output is text or json");
	else if (!count)
		code = sl_cli_usage(&sl_cmd_test, "which files or folders?");
	else if (junit && !(run.junit = fopen(junit, "w")))
		code = sl_cli_usage(&sl_cmd_test, "%s cannot be written", junit);
	run.filter = filter;
	for (int i = 0; i < count && code == SL_EXIT_OK; i++)
		if (sl_file_walk(words[i], suffixes, one, &run))
			code = sl_cli_usage(&sl_cmd_test, "%s: no such file or folder", words[i]);
	if (code == SL_EXIT_OK) {
		if (sl_cli_json())
			sl_cli_print_json(jv_copy(run.list));
		else
			printf("%d passed, %d failed\n", run.passed, run.failed);
		code = run.failed || !run.passed ? SL_EXIT_WRONG : SL_EXIT_OK;
	}
	if (run.junit) {
		fprintf(run.junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"sluice\" tests=\"%d\" failures=\"%d\">\n%s</testsuite>\n",
			run.passed + run.failed, run.failed, run.cases.data ? run.cases.data : "");
		fclose(run.junit);
	}
	sl_buf_release(&run.cases);
	jv_free(run.list);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_test = {
	.name = "test",
	.usage = "[--filter TEXT] [--junit FILE] [--output json] PATH...",
	.summary = "run scenario files (in process, in virtual time)",
	.help = "PATH is a scenario file (JSON or YAML) or a folder of them, taken with its subfolders; files named\n"
		"NAME.sw.yaml or NAME.sw.json are definitions, not scenarios.\n\n"
		"  --filter TEXT   only scenarios with TEXT in name or path\n"
		"  --junit FILE    write the results as JUnit XML\n"
		"  --output json   print the results as JSON\n\n"
		"Exits 0 only if every scenario passed and there was one. docs/scenarios.md has the format.\n",
	.run = run_test,
};
