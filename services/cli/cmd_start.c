/* sluice start, and the commands to one instance: cancel, retry, purge. */
#include <stdlib.h>
#include <string.h>
#include "common/base/text.h"
#include "services/cli/cli.h"
#include "services/cli/files.h"
#include "services/cli/remote.h"

/* Text, or "@FILE". False: a message was printed. */
static bool read_json(const struct sl_cli_command *cmd, const char *text, jv *ret)
{
	struct sl_diags diags;
	char *file = NULL;
	size_t len = strlen(text);
	sl_diags_init(&diags);
	int err = *text == '@' ? sl_file_read(text + 1, 64 * 1024 * 1024, &file, &len, &diags) : 0;
	if (!err)
		err = sl_json_parse(file ? file : text, len, NULL, ret, &diags);
	if (err && diags.first)
		sl_cli_usage(cmd, "--input: line %d, column %d: %s", diags.first->loc.line, diags.first->loc.col, diags.first->text);
	free(file);
	sl_diags_release(&diags);
	return !err;
}

struct ending {
	char *instance;
	jv data;
	const char *status;
};

static bool is_end(void *arg, jv ev)
{
	static const struct { const char *type, *status; } ends[] = {{"io.serverlessworkflow.workflow.completed.v1", "completed"},
		{"io.serverlessworkflow.workflow.faulted.v1", "faulted"}, {"io.serverlessworkflow.workflow.cancelled.v1", "cancelled"}};
	struct ending *end = arg;
	const char *type = sl_json_str(ev, "type"), *subject = sl_json_str(ev, "subject");
	for (size_t i = 0; type && subject && i < 3; i++) {
		if (strcmp(type, ends[i].type) != 0 || strcmp(subject, end->instance) != 0)
			continue;
		jv_free(end->data);
		end->data = sl_json_get(ev, "data");
		end->status = ends[i].status;
		return true;
	}
	return false;
}

static int print_end(const struct ending *end)
{
	jv output = sl_json_get(end->data, strcmp(end->status, "completed") == 0 ? "output" : "error");
	if (sl_cli_json()) {
		jv all = sl_json_set(jv_object(), "instance", jv_string(end->instance));
		all = sl_json_set(all, "status", jv_string(end->status));
		sl_cli_print_json(sl_json_set(all, strcmp(end->status, "completed") == 0 ? "output" : "error",
			jv_is_valid(output) ? jv_copy(output) : jv_null()));
	} else {
		printf("%s %s\n", end->instance, end->status);
		char *text = sl_json_text(output);
		puts(text);
		free(text);
	}
	jv_free(output);
	return strcmp(end->status, "completed") == 0 ? SL_EXIT_OK : SL_EXIT_WRONG;
}

/* The CLI chooses the id, so that it can wait for the end before the answer comes. */
static char *make_instance(const char *chosen)
{
	char id[SL_UUID_TEXT], time[32];
	if (chosen)
		return strdup(chosen);
	snprintf(time, sizeof(time), "%llu", (unsigned long long)uv_hrtime());
	sl_id_derive((const char *const[]){"instance", time, getenv("HOSTNAME") ? getenv("HOSTNAME") : ""}, 3, id);
	return strdup(id);
}

static int start(struct sl_remote *remote, const char *workflow, const char *version, const char *chosen, jv input, bool wait, int64_t timeout_ms)
{
	struct ending end = {.instance = make_instance(chosen), .data = jv_invalid()};
	struct sl_remote_until until = {is_end, &end, timeout_ms};
	jv data = sl_json_set(jv_object(), "workflow", jv_string(workflow)), answer = jv_invalid();
	data = sl_json_set(data, "instance", jv_string(end.instance));
	if (version)
		data = sl_json_set(data, "version", jv_string(version));
	if (jv_is_valid(input))
		data = sl_json_set(data, "input", input);
	int code = sl_remote_command(remote, "start", end.instance, data, wait ? &until : NULL, &answer);
	if (code == SL_EXIT_OK && end.status)
		code = print_end(&end);
	else if (code == SL_EXIT_OK && sl_cli_json())
		sl_cli_print_json(sl_json_set(jv_object(), "instance", jv_string(end.instance)));
	else if (code == SL_EXIT_OK)
		puts(end.instance);
	else if (sl_cli_json() && jv_is_valid(answer))
		sl_cli_print_json(jv_copy(answer));
	jv_free(answer);
	jv_free(end.data);
	free(end.instance);
	return code;
}

static int run_start(int argc, char **argv)
{
	const char *output = NULL, *ns = NULL, *version = NULL, *input_text = NULL, *id = NULL, *timeout = NULL;
	bool wait = false;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL},
		{"version", &version, NULL, NULL}, {"input", &input_text, NULL, NULL}, {"id", &id, NULL, NULL},
		{"timeout", &timeout, NULL, NULL}, {"wait", NULL, &wait, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	int64_t timeout_ms = 0;
	jv input = jv_invalid();
	if (!sl_cli_parse(&sl_cmd_start, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || count != 1)
		code = sl_cli_usage(&sl_cmd_start, "which workflow?");
	else if (id && !sl_user_id_valid(id))
		code = sl_cli_usage(&sl_cmd_start, "--id must be 1 to 128 of A-Z a-z 0-9 _ -");
	else if (timeout && (sl_int_parse(timeout, &timeout_ms) || timeout_ms < 1))
		code = sl_cli_usage(&sl_cmd_start, "--timeout is a number of seconds");
	else if (input_text && !read_json(&sl_cmd_start, input_text, &input))
		code = SL_EXIT_USAGE;
	else if ((code = sl_remote_open(&remote, &sl_cmd_start, SL_REMOTE_KAFKA, ns, rest, rest_count)) == SL_EXIT_OK) {
		code = start(&remote, words[0], version, id, jv_copy(input), wait, timeout_ms * 1000);
		sl_remote_close(&remote);
	}
	jv_free(input);
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_start = {
	.name = "start",
	.usage = "[--input JSON|@FILE] [--id ID] [--version V] [--wait [--timeout SECONDS]] WORKFLOW",
	.summary = "start an instance; with --wait print its output",
	.help = "  --input JSON    workflow data input; @FILE reads it from a file\n"
		"  --id ID         an id of one's own: a second start with it is refused\n"
		"  --version V     that version; without it the highest active one\n"
		"  --wait          wait for the end; exit 1 unless it completed\n"
		"  --timeout N     with --wait: at most N seconds (default 30)\n"
		"  --namespace NS  default: default\n",
	.run = run_start,
};

/* cancel, retry, purge: one command to each of the instances. */
static int run_instances(const struct sl_cli_command *cmd, const char *done, int argc, char **argv)
{
	const char *output = NULL, *ns = NULL, *reason = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL},
		{"reason", &reason, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	if (!sl_cli_parse(cmd, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || !count)
		code = sl_cli_usage(cmd, "which instances?");
	else if ((code = sl_remote_open(&remote, cmd, SL_REMOTE_KAFKA, ns, rest, rest_count)) == SL_EXIT_OK) {
		for (int i = 0; i < count && code != SL_EXIT_UNREACHABLE; i++) {
			jv data = sl_json_set(jv_object(), "instance", jv_string(words[i])), answer = jv_invalid();
			if (reason)
				data = sl_json_set(data, "reason", jv_string(reason));
			int one = sl_remote_command(&remote, cmd->name, words[i], data, NULL, &answer);
			if (sl_cli_json() && jv_is_valid(answer))
				sl_cli_print_json(sl_json_set(jv_copy(answer), "instance", jv_string(words[i])));
			else if (one == SL_EXIT_OK)
				printf("%s %s\n", words[i], done);
			jv_free(answer);
			code = one > code ? one : code;
		}
		sl_remote_close(&remote);
	}
	free(rest);
	free(words);
	return code;
}

static int run_cancel(int argc, char **argv)
{
	return run_instances(&sl_cmd_cancel, "cancelled", argc, argv);
}

static int run_retry(int argc, char **argv)
{
	return run_instances(&sl_cmd_retry, "goes on", argc, argv);
}

static int run_purge(int argc, char **argv)
{
	return run_instances(&sl_cmd_purge, "forgotten", argc, argv);
}

const struct sl_cli_command sl_cmd_cancel = {
	.name = "cancel",
	.usage = "[--reason TEXT] [--namespace NS] INSTANCE...",
	.summary = "end instances now, as cancelled",
	.help = "  --reason TEXT   kept with the instance\n  --namespace NS  default: default\n",
	.run = run_cancel,
};
const struct sl_cli_command sl_cmd_retry = {
	.name = "retry",
	.usage = "[--namespace NS] INSTANCE...",
	.summary = "let faulted instances go on at the node that failed",
	.help = "  --namespace NS  default: default\n\nRefused while another instance of the workflow lives for the same correlation key.\n",
	.run = run_retry,
};
const struct sl_cli_command sl_cmd_purge = {
	.name = "purge",
	.usage = "[--namespace NS] INSTANCE...",
	.summary = "forget ended instances before their retention is over",
	.help = "  --namespace NS  default: default\n",
	.run = run_purge,
};
