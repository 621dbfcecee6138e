/* sluice deploy, sluice undeploy. */
#include <stdlib.h>
#include <string.h>
#include "services/cli/cli.h"
#include "services/cli/files.h"
#include "services/cli/local.h"
#include "services/cli/remote.h"

/* Compiles here first: mistakes show with their source lines, and the resources on this disk go along. True: may be sent. */
static bool prepare(const char *path, struct sl_compile_options *opt, char **ret_text, jv *resources)
{
	struct sl_local_files local = {.base = path, .collect = resources};
	struct sl_resources get = {sl_local_get, &local};
	struct sl_plan *plan = NULL;
	struct sl_diags diags;
	struct sl_buf out;
	size_t len = 0;
	sl_diags_init(&diags);
	sl_buf_init(&out);
	opt->file = path;
	opt->deploy = true;
	opt->resources = &get;
	*ret_text = NULL;
	int err = sl_file_read(path, 4 * 1024 * 1024, ret_text, &len, &diags);
	if (!err)
		err = sl_compile(*ret_text, len, opt, &plan, &diags);
	opt->resources = NULL;
	bool ok = !err || err == SL_EAGAIN; /* SL_EAGAIN: the coordinator fetches what is on the network */
	if (err != SL_EAGAIN) {
		sl_diags_sort(&diags);
		sl_diags_print(&diags, &out, *ret_text);
		if (out.data)
			fputs(out.data, stderr);
	}
	sl_plan_unref(plan);
	sl_buf_release(&out);
	sl_diags_release(&diags);
	return ok;
}

static int deploy(struct sl_remote *remote, const char *path, struct sl_compile_options *opt)
{
	jv resources = jv_object(), answer = jv_invalid();
	char *text = NULL;
	int code = SL_EXIT_WRONG;
	if (prepare(path, opt, &text, &resources)) {
		jv data = sl_json_set(jv_object(), "definition", jv_string(text));
		data = sl_json_set(data, "file", jv_string(path));
		data = sl_json_set(data, "resources", jv_copy(resources));
		if (opt->dialect != SL_DIALECT_AUTO)
			data = sl_json_set(data, "dialect", jv_string(sl_dialect_text(opt->dialect)));
		if (opt->lenient)
			data = sl_json_set(data, "lenient", jv_true());
		/* one key for all: deployments of one workflow must be in one partition, and its id is only known inside */
		code = sl_remote_command(remote, "deploy", "deploy", data, NULL, &answer);
	}
	if (sl_cli_json() && jv_is_valid(answer)) {
		sl_cli_print_json(sl_json_set(jv_copy(answer), "file", jv_string(path)));
	} else if (code == SL_EXIT_OK) {
		const char *reason = sl_json_str(answer, "reason");
		printf("%sdeployed%s %s version %s%s%s\n", sl_cli_color("green"), sl_cli_color("off"), sl_json_str(answer, "workflow"),
			sl_json_str(answer, "version"), reason ? ": " : "", reason ? reason : "");
	}
	jv_free(answer);
	jv_free(resources);
	free(text);
	return code;
}

static int run_deploy(int argc, char **argv)
{
	const char *output = NULL, *dialect = NULL, *ns = NULL;
	struct sl_compile_options opt = {0};
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"dialect", &dialect, NULL, NULL},
		{"namespace", &ns, NULL, NULL}, {"lenient", NULL, &opt.lenient, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	if (!sl_cli_parse(&sl_cmd_deploy, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output))
		code = sl_cli_usage(&sl_cmd_deploy, "--output is text or json");
	else if (dialect && sl_dialect_of(dialect, &opt.dialect))
		code = sl_cli_usage(&sl_cmd_deploy, "unknown dialect '%s'", dialect);
	else if (!count)
		code = sl_cli_usage(&sl_cmd_deploy, "which files?");
	else if ((code = sl_remote_open(&remote, &sl_cmd_deploy, SL_REMOTE_KAFKA, ns, rest, rest_count)) == SL_EXIT_OK) {
		for (int i = 0; i < count && code != SL_EXIT_UNREACHABLE; i++) {
			int one = deploy(&remote, words[i], &opt);
			code = one > code ? one : code;
		}
		sl_remote_close(&remote);
	}
	free(rest);
	free(words);
	return code;
}

static int run_undeploy(int argc, char **argv)
{
	const char *output = NULL, *ns = NULL, *version = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL},
		{"version", &version, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	if (!sl_cli_parse(&sl_cmd_undeploy, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || count != 1)
		code = sl_cli_usage(&sl_cmd_undeploy, "which workflow?");
	else if ((code = sl_remote_open(&remote, &sl_cmd_undeploy, SL_REMOTE_KAFKA, ns, rest, rest_count)) == SL_EXIT_OK) {
		jv data = sl_json_set(jv_object(), "workflow", jv_string(words[0])), answer = jv_invalid();
		if (version)
			data = sl_json_set(data, "version", jv_string(version));
		code = sl_remote_command(&remote, "undeploy", "deploy", data, NULL, &answer);
		if (sl_cli_json() && jv_is_valid(answer))
			sl_cli_print_json(jv_copy(answer));
		else if (code == SL_EXIT_OK)
			printf("undeployed %s version %s: its instances go on, new ones do not start\n", words[0],
				sl_json_str(answer, "version"));
		jv_free(answer);
		sl_remote_close(&remote);
	}
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_deploy = {
	.name = "deploy",
	.usage = "[--namespace NS] [--dialect ID] [--lenient] FILE...",
	.summary = "deploy definitions",
	.help = "  --namespace NS  default: default\n"
		"  --dialect ID    sw08, ...; without it the definition tells\n"
		"  --lenient       forgive what other engines accept\n\n"
		"Relative and file:// resources are read here and go along; the coordinator fetches http(s):// ones that\n"
		"deploy.resources_allow permits. The same version with other content is refused.\n",
	.run = run_deploy,
};

const struct sl_cli_command sl_cmd_undeploy = {
	.name = "undeploy",
	.usage = "[--namespace NS] [--version V] WORKFLOW",
	.summary = "stop new instances of a workflow; running ones go on",
	.help = "  --version V     that version; without it the highest active one\n",
	.run = run_undeploy,
};
