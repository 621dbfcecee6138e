/* sluice show: one instance - status, states, waits, timers, data, last transitions with their causes. It reads what the engine
 * stored (common/engine/instance.h, "Stored form"). */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/text.h"
#include "services/cli/cli.h"
#include "services/cli/remote.h"

static jv field(jv fields, const char *name)
{
	const char *text = sl_json_str(fields, name);
	jv value;
	if (!text || sl_json_parse(text, strlen(text), NULL, &value, NULL))
		return jv_invalid();
	return value;
}

static jv time_of(jv obj, const char *name)
{
	char when[32];
	int64_t ms = sl_json_int(obj, name, 0);
	if (!ms)
		return jv_invalid();
	sl_time_format(ms, when);
	return jv_string(when);
}

static jv put(jv obj, const char *name, jv value)
{
	if (jv_is_valid(value))
		return sl_json_set(obj, name, value);
	jv_free(value);
	return obj;
}

/* Frames that wait: for events, an answer, a time. */
static jv waits(jv fields)
{
	jv list = jv_array();
	jv_object_foreach(fields, name, text)
	{
		if (strncmp(jv_string_value(name), "f:", 2) == 0) {
			jv frame = field(fields, jv_string_value(name)), one = jv_object();
			one = put(one, "state", sl_json_get(frame, "state"));
			one = put(one, "events", sl_json_get(frame, "waits"));
			one = put(one, "function", sl_json_get(frame, "function"));
			one = put(one, "attempt", sl_json_get(frame, "attempt"));
			one = put(one, "due", time_of(frame, "due"));
			bool any = sl_json_str(one, "function") || sl_json_str(one, "due");
			jv events = sl_json_get(one, "events");
			any = any || jv_is_valid(events);
			jv_free(events);
			one = put(one, "node", sl_json_get(frame, "node"));
			if (any)
				list = jv_array_append(list, one);
			else
				jv_free(one);
			jv_free(frame);
		}
		jv_free(name);
		jv_free(text);
	}
	return list;
}

/* Transitions in order. */
static jv transitions(jv fields)
{
	jv list = jv_array();
	jv_object_foreach(fields, name, text)
	{
		if (strncmp(jv_string_value(name), "t:", 2) == 0) {
			jv one = field(fields, jv_string_value(name));
			if (jv_is_valid(one))
				list = jv_array_append(list, jv_array_append(jv_array_append(jv_array(), sl_json_get(one, "n")),
					put(put(put(jv_object(), "time", time_of(one, "time")), "state", sl_json_get(one, "state")), "cause",
						sl_json_get(one, "cause"))));
			jv_free(one);
		}
		jv_free(name);
		jv_free(text);
	}
	list = jv_sort(list, jv_copy(list));
	jv plain = jv_array();
	int n = jv_array_length(jv_copy(list));
	for (int i = 0; i < n; i++)
		plain = jv_array_append(plain, jv_array_get(jv_array_get(jv_copy(list), i), 1));
	jv_free(list);
	return plain;
}

static int count_prefix(jv fields, const char *prefix)
{
	int n = 0;
	jv_object_foreach(fields, name, text)
	{
		n += strncmp(jv_string_value(name), prefix, strlen(prefix)) == 0;
		jv_free(name);
		jv_free(text);
	}
	return n;
}

static jv summary(const char *id, jv fields)
{
	jv header = field(fields, "h"), all = sl_json_set(jv_object(), "id", jv_string(id));
	static const char *const copied[] = {"workflow", "version", "status", "states", "bindings", "error", "parent", "boxes", "plan"};
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
		all = put(all, copied[i], sl_json_get(header, copied[i]));
	all = put(all, "created", time_of(header, "created"));
	all = put(all, "ended", time_of(header, "ended"));
	all = put(all, "kept until", time_of(header, "expires"));
	all = sl_json_set(all, "waits", waits(fields));
	all = sl_json_set(all, "inbox", jv_number(count_prefix(fields, "b:")));
	all = put(all, "output", field(fields, "out"));
	all = put(all, "data", field(fields, "d:0"));
	all = sl_json_set(all, "transitions", transitions(fields));
	jv_free(header);
	return all;
}

/* --- for people --- */

static void line(const char *name, jv all, const char *member)
{
	jv value = sl_json_get(all, member);
	if (jv_get_kind(value) == JV_KIND_STRING)
		printf("%-12s %s\n", name, jv_string_value(value));
	else if (jv_is_valid(value)) {
		char *text = sl_json_text(value);
		printf("%-12s %s\n", name, text);
		free(text);
	}
	jv_free(value);
}

static const char *status_color(const char *status)
{
	return sl_cli_color(strcmp(status, "completed") == 0 ? "green" : strcmp(status, "faulted") == 0 ? "red" : "yellow");
}

static void print_wait(jv one)
{
	jv events = sl_json_get(one, "events");
	const char *function = sl_json_str(one, "function"), *due = sl_json_str(one, "due"), *state = sl_json_str(one, "state");
	printf("%-12s ", "waits for");
	if (jv_is_valid(events)) {
		char *text = sl_json_text(events);
		printf("events %s", text);
		free(text);
	} else if (function) {
		printf("the answer of %s (attempt %d)", function, (int)sl_json_int(one, "attempt", 1));
	} else {
		printf("a time");
	}
	if (due) {
		char left[32];
		struct timespec ts;
		int64_t at;
		clock_gettime(CLOCK_REALTIME, &ts);
		if (sl_time_parse(due, &at) == 0) {
			sl_duration_human(at - ((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000), left);
			printf(", until %s (in %s)", due, left);
		}
	}
	printf("%s%s%s\n", state ? " in state " : "", state ? state : "", "");
	jv_free(events);
}

static void print_people(jv all)
{
	const char *status = sl_json_str(all, "status");
	line("instance", all, "id");
	printf("%-12s %s version %s\n", "workflow", sl_json_str(all, "workflow"), sl_json_str(all, "version") ? sl_json_str(all, "version") : "?");
	printf("%-12s %s%s%s\n", "status", status_color(status), status, sl_cli_color("off"));
	line("created", all, "created");
	line("ended", all, "ended");
	line("states", all, "states");
	line("correlation", all, "bindings");
	jv list = sl_json_get(all, "waits");
	for (int i = 0; i < jv_array_length(jv_copy(list)); i++) {
		jv one = jv_array_get(jv_copy(list), i);
		print_wait(one);
		jv_free(one);
	}
	jv_free(list);
	if (sl_json_int(all, "inbox", 0))
		printf("%-12s %d events\n", "inbox", (int)sl_json_int(all, "inbox", 0));
	line("error", all, "error");
	line("data", all, "data");
	line("output", all, "output");
	list = sl_json_get(all, "transitions");
	if (jv_array_length(jv_copy(list)))
		printf("%-12s\n", "transitions");
	for (int i = 0; i < jv_array_length(jv_copy(list)); i++) {
		jv one = jv_array_get(jv_copy(list), i);
		printf("  %s  %-24s %s%s%s\n", sl_json_str(one, "time"), sl_json_str(one, "state"), sl_cli_color("dim"),
			sl_json_str(one, "cause"), sl_cli_color("off"));
		jv_free(one);
	}
	jv_free(list);
}

static int show(struct sl_remote *remote, const char *id)
{
	int32_t partitions;
	jv fields;
	int code = sl_remote_partitions(remote, remote->topics.instances, &partitions);
	if (code != SL_EXIT_OK)
		return code;
	code = sl_remote_load(remote, sl_id_partition(remote->ns, id, partitions), sl_store_key(&remote->arena, remote->ns, id), &fields);
	if (code != SL_EXIT_OK)
		return code;
	jv header = field(fields, "h");
	if (!jv_is_valid(header)) {
		fprintf(stderr, "sluice show: no instance '%s' in namespace '%s' (never started, purged, or past its retention)\n", id, remote->ns);
		code = SL_EXIT_WRONG;
	} else if (sl_cli_json()) {
		sl_cli_print_json(summary(id, fields));
	} else {
		jv all = summary(id, fields);
		print_people(all);
		jv_free(all);
	}
	jv_free(header);
	jv_free(fields);
	return code;
}

static int run_show(int argc, char **argv)
{
	const char *output = NULL, *ns = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	if (!sl_cli_parse(&sl_cmd_show, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || count != 1 || sl_id_is_mailbox(words[0]) || strlen(words[0]) > SL_HOME_MAX)
		code = sl_cli_usage(&sl_cmd_show, "which instance?");
	else if ((code = sl_remote_open(&remote, &sl_cmd_show, SL_REMOTE_KAFKA | SL_REMOTE_REDIS, ns, rest, rest_count)) == SL_EXIT_OK) {
		code = show(&remote, words[0]);
		sl_remote_close(&remote);
	}
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_show = {
	.name = "show",
	.usage = "[--namespace NS] INSTANCE",
	.summary = "show one instance: status, states, waits, data, last transitions",
	.help = "  --namespace NS  default: default\n",
	.run = run_show,
};
