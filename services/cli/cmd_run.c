/* sluice run: one definition in process, in virtual or real time, against mocks or the real services; prints the output. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/log.h"
#include "common/base/text.h"
#include "services/cli/cli.h"
#include "services/cli/files.h"
#include "services/cli/live.h"
#include "services/cli/local.h"
#include "services/cli/world.h"

/* A JSON or YAML document: text, or "@FILE" / a path. False: a message was printed. */
static bool read_doc(const char *what, const char *text, bool is_path, jv *ret)
{
	struct sl_diags diags;
	struct sl_doc *doc = NULL;
	struct sl_buf out;
	char *file = NULL;
	size_t len = strlen(text);
	const char *path = is_path ? text : *text == '@' ? text + 1 : NULL;
	sl_diags_init(&diags);
	int err = path ? sl_file_read(path, 64 * 1024 * 1024, &file, &len, &diags) : 0;
	if (!err)
		err = sl_doc_parse(file ? file : text, len, path ? path : what, &doc, &diags);
	if (!err)
		*ret = sl_doc_value(doc);
	sl_buf_init(&out);
	sl_diags_print(&diags, &out, NULL);
	if (out.data)
		fputs(out.data, stderr);
	sl_buf_release(&out);
	sl_doc_free(doc);
	sl_diags_release(&diags);
	free(file);
	return !err;
}

static void trace(void *arg, int64_t at_ms, const char *text)
{
	char when[32];
	(void)arg;
	sl_duration_human(at_ms, when);
	fprintf(stderr, "%10s  %s\n", when, text);
}

static bool deploy(struct sl_world *world, const char *path, struct sl_compile_options *opt, const char **ret_id)
{
	struct sl_diags diags;
	struct sl_buf out;
	char *text = NULL;
	size_t len = 0;
	sl_diags_init(&diags);
	sl_buf_init(&out);
	opt->file = path;
	int err = sl_file_read(path, 4 * 1024 * 1024, &text, &len, &diags);
	if (!err)
		err = sl_world_deploy(world, text, len, opt, ret_id, &diags);
	sl_diags_print(&diags, &out, text);
	if (out.data)
		fputs(out.data, stderr);
	sl_buf_release(&out);
	sl_diags_release(&diags);
	free(text);
	return !err;
}

/* Events: a list of CloudEvents, or of {after: "ms:N" | "state:NAME" | "start", event}. */
static bool add_events(struct sl_world *world, jv events)
{
	int n = jv_get_kind(events) == JV_KIND_ARRAY ? jv_array_length(jv_copy(events)) : -1;
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(events), i), inner = sl_json_get(one, "event"), ev = jv_get_kind(inner) == JV_KIND_OBJECT ? jv_copy(inner) : jv_copy(one);
		const char *after = sl_json_str(one, "after");
		char id[32];
		int64_t ms = 0;
		bool wrapped = jv_get_kind(inner) == JV_KIND_OBJECT;
		jv_free(inner);
		snprintf(id, sizeof(id), "event-%d", i);
		static const char *const names[] = {"specversion", "source", "id"};
		const char *const values[] = {"1.0", "sluice-cli", id};
		for (int k = 0; k < 3; k++) {
			jv has = sl_json_get(ev, names[k]);
			if (!jv_is_valid(has))
				ev = sl_json_set(ev, names[k], jv_string(values[k]));
			jv_free(has);
		}
		if (wrapped && after && strncmp(after, "state:", 6) == 0) {
			sl_world_event_at_state(world, after + 6, ev);
		} else if (!wrapped || !after || strcmp(after, "start") == 0 || (strncmp(after, "ms:", 3) == 0 && sl_int_parse(after + 3, &ms) == 0)) {
			sl_world_event(world, ms, ev);
		} else {
			fprintf(stderr, "sluice run: --events: entry %d: after must be start, ms:N or state:NAME\n", i);
			jv_free(ev);
			n = -1;
		}
		jv_free(one);
	}
	return n >= 0;
}

static int result(struct sl_world *world, const char *main_id)
{
	const struct sl_world_instance *all, *inst = NULL;
	int n = sl_world_instances(world, &all);
	for (int i = 0; i < n; i++)
		if (main_id && strcmp(all[i].id, main_id) == 0)
			inst = &all[i];
	if (!inst && n)
		inst = &all[0];
	if (!inst) {
		fputs("sluice run: no instance was started (--input starts one, --events may)\n", stderr);
		return SL_EXIT_WRONG;
	}
	bool completed = strcmp(inst->status, "completed") == 0;
	jv value = completed ? inst->output : inst->error;
	if (sl_cli_json()) {
		jv out = sl_json_set(jv_object(), "status", jv_string(inst->status));
		out = sl_json_set(out, completed ? "output" : "error", jv_is_valid(value) ? jv_copy(value) : jv_null());
		sl_cli_print_json(sl_json_set(out, "duration_ms", jv_number((double)((inst->ended_ms < 0 ? sl_world_now(world) : inst->ended_ms) - inst->started_ms))));
	} else {
		if (!completed)
			fprintf(stderr, "%s%s%s%s\n", sl_cli_color("red"), inst->status, sl_cli_color("off"), inst->ended_ms < 0 ? ": still waiting when nothing more happens" : "");
		if (jv_is_valid(value))
			sl_cli_print_json(jv_copy(value));
	}
	return completed ? SL_EXIT_OK : SL_EXIT_WRONG;
}

/* What the words of the command line say. */
struct wish {
	struct sl_compile_options compile;
	jv input, events, mocks, secrets;
	bool trace, real_time;
};

static int run_in(struct sl_world *world, const char *path, struct wish *wish)
{
	const char *workflow, *main_id = NULL, *why = "";
	bool has_events = jv_is_valid(wish->events);
	if (!deploy(world, path, &wish->compile, &workflow) || (has_events && !add_events(world, wish->events)))
		return SL_EXIT_WRONG;
	/* without events somebody must start it; an input starts it anyway */
	if ((jv_is_valid(wish->input) || !has_events) && sl_world_start(world, workflow, jv_copy(wish->input), &main_id)) {
		fprintf(stderr, "sluice run: %s is not there\n", workflow);
		return SL_EXIT_WRONG;
	}
	if (!sl_world_run(world, -1, &why)) {
		fprintf(stderr, "sluice run: %s (--mocks answers calls)\n", why);
		return SL_EXIT_WRONG;
	}
	return result(world, main_id);
}

static int run(const char *path, struct wish *wish)
{
	struct timespec ts;
	struct sl_local_files local = {.base = path};
	bool mocked = jv_is_valid(wish->mocks);
	struct sl_live *live = mocked ? NULL : sl_live_new(&local);
	struct sl_resources resources = {mocked ? sl_local_get : sl_live_get, mocked ? (void *)&local : live};
	clock_gettime(CLOCK_REALTIME, &ts);
	struct sl_world_options wopt = {.clock_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000, .seed = (uint64_t)ts.tv_nsec,
		.mocks = wish->mocks, .secrets = wish->secrets, .trace = wish->trace ? trace : NULL, .call = mocked ? NULL : sl_live_call,
		.until = wish->real_time ? sl_live_until : NULL, .arg = live};
	if (!mocked && !live) {
		fputs("sluice run: libcurl does not start\n", stderr);
		return SL_EXIT_WRONG;
	}
	wish->compile.resources = &resources;
	wish->compile.mocked = mocked;
	struct sl_world *world = sl_world_new(&wopt);
	int code = run_in(world, path, wish);
	wish->compile.resources = NULL;
	sl_world_free(world);
	sl_live_free(live);
	return code;
}

static int run_run(int argc, char **argv)
{
	const char *output = NULL, *dialect = NULL, *input_text = NULL, *events_path = NULL, *mocks_path = NULL, *secrets_path = NULL;
	struct wish wish = {.input = jv_invalid(), .events = jv_invalid(), .mocks = jv_invalid(), .secrets = jv_invalid()};
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"dialect", &dialect, NULL, NULL},
		{"input", &input_text, NULL, NULL}, {"events", &events_path, NULL, NULL}, {"mocks", &mocks_path, NULL, NULL},
		{"secrets", &secrets_path, NULL, NULL}, {"trace", NULL, &wish.trace, NULL}, {"lenient", NULL, &wish.compile.lenient, NULL},
		{"real-time", NULL, &wish.real_time, NULL},
		{NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	int count, code = SL_EXIT_USAGE;
	sl_log_set_level(SL_ERROR);
	if (!sl_cli_parse(&sl_cmd_run, argc, argv, options, words, &count, NULL, NULL))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output))
		code = sl_cli_usage(&sl_cmd_run, "--output is text or json");
	else if (dialect && sl_dialect_of(dialect, &wish.compile.dialect))
		code = sl_cli_usage(&sl_cmd_run, "unknown dialect '%s'", dialect);
	else if (count != 1)
		code = sl_cli_usage(&sl_cmd_run, "which definition?");
	else if ((!input_text || read_doc("--input", input_text, false, &wish.input)) && (!events_path || read_doc("--events", events_path, true, &wish.events)) &&
		 (!mocks_path || read_doc("--mocks", mocks_path, true, &wish.mocks)) && (!secrets_path || read_doc("--secrets", secrets_path, true, &wish.secrets)))
		code = run(words[0], &wish);
	jv_free(wish.input);
	jv_free(wish.events);
	jv_free(wish.mocks);
	jv_free(wish.secrets);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_run = {
	.name = "run",
	.usage = "[--input JSON|@FILE] [--events FILE] [--mocks FILE] [--real-time] [--trace] FILE",
	.summary = "run one definition in process, without Kafka and Redis, and print its output",
	.help = "  --input JSON    start it with this input; @FILE reads it from a file. Without --events it is started anyway\n"
		"  --events FILE   CloudEvents to publish: a list of events, or of {after: start | ms:N | state:NAME, event: ...}\n"
		"  --mocks FILE    answers of functions, as in scenario files: {FUNCTION: [{when?, return | error, delay_ms?, times?}]}.\n"
		"                  Then no service is called; without it the services are called for real\n"
		"  --real-time     sleeps and timeouts take their time; without it they pass at once\n"
		"  --secrets FILE  values of secrets: {NAME: value}\n"
		"  --trace         tell on standard error what happens when\n"
		"  --lenient, --dialect ID  as for validate\n\n"
		"Exit 0: completed; 1: anything else.\n",
	.run = run_run,
};
