/* sluice why: what became of an event, after the fact, from the decision streams of router, mailboxes and instances. */
#include <stdlib.h>
#include <string.h>
#include "services/cli/cli.h"
#include "services/cli/remote.h"

#define STREAM_MAX 10000

static void pick_line(const char *text, size_t len, double at_ms, const char *id, const char *source, jv *found)
{
	jv why;
	if (sl_json_parse(text, len, NULL, &why, NULL))
		return;
	jv event = sl_json_get(why, "event");
	const char *its = sl_json_str(event, "id"), *from = sl_json_str(event, "source");
	if (its && strcmp(its, id) == 0 && (!source || (from && strcmp(from, source) == 0)))
		*found = jv_array_append(*found, sl_json_set(jv_copy(why), "time_ms", jv_number(at_ms)));
	jv_free(event);
	jv_free(why);
}

/* Decisions about the event in one stream, oldest first, each with the stream's time; an entry holds one a line. */
static void pick(jv entries, const char *id, const char *source, jv *found)
{
	for (int i = jv_array_length(jv_copy(entries)) - 1; i >= 0; i--) {
		jv entry = jv_array_get(jv_copy(entries), i);
		const char *text = sl_json_str(entry, "d"), *at = sl_json_str(entry, "id");
		while (text && *text) {
			size_t len = strcspn(text, "\n");
			pick_line(text, len, strtod(at ? at : "0", NULL), id, source, found);
			text += len + (text[len] == '\n');
		}
		jv_free(entry);
	}
}

static int collect(struct sl_remote *remote, const char *id, const char *source, jv *found)
{
	int32_t partitions;
	int code = sl_remote_partitions(remote, remote->topics.instances, &partitions);
	for (int32_t p = -1; code == SL_EXIT_OK && p < partitions; p++) {
		jv entries;
		code = sl_remote_stream(remote, p, "why", STREAM_MAX, &entries);
		if (code == SL_EXIT_OK) {
			pick(entries, id, source, found);
			jv_free(entries);
		}
	}
	return code;
}

static void sort_by_time(jv *found)
{
	jv keys = jv_array();
	int n = jv_array_length(jv_copy(*found));
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(*found), i);
		keys = jv_array_append(keys, jv_number((double)sl_json_int(one, "time_ms", 0)));
		jv_free(one);
	}
	*found = jv_sort(*found, keys);
}

static const char *explain(const char *decision)
{
	static const struct { const char *decision, *text; } table[] = {{"started", "started an instance"},
		{"delivered", "delivered to an instance that subscribed"}, {"joined", "waits for the other events of a start"},
		{"early", "found nobody yet; kept for those who subscribe soon"}, {"nobody", "nobody wanted it at that moment"},
		{"duplicate", "seen before: ignored"}, {"expired", "its window passed"}, {"dead", "no deployed plan completes its join any more"},
		{"several", "came back, but other instances got it too"}, {"full", "a bound was reached"},
		{"hops", "publishing and starting went round too often"}, {"inbox", "kept in the instance's inbox"},
		{"consumed", "taken by a waiting state"}, {"ended", "the instance had ended"}, {"unmatched", "no plan wants it"}};
	for (size_t i = 0; decision && i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].decision, decision) == 0)
			return table[i].text;
	return decision ? decision : "?";
}

static void print_list(jv why, const char *member, bool candidates)
{
	jv list = sl_json_get(why, member);
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(list), i);
		const char *workflow = sl_json_str(one, "workflow"), *instance = sl_json_str(one, "instance");
		const char *attribute = sl_json_str(one, "attribute"), *wanted = sl_json_str(one, "wanted"), *have = sl_json_str(one, "have");
		printf("    %s %s%s%s", candidates ? "tried" : explain(sl_json_str(one, "decision")), workflow ? workflow : "?",
			instance ? " instance " : "", instance ? instance : "");
		if (candidates && attribute && !have)
			printf(": attribute %s is missing%s%s", attribute, wanted ? ", wanted " : "", wanted ? wanted : "");
		else if (candidates && attribute)
			printf(": %s is %s%s%s", attribute, have, wanted ? ", wanted " : "", wanted ? wanted : "");
		putchar('\n');
		jv_free(one);
	}
	jv_free(list);
}

static void print_why(jv why)
{
	const char *decision = sl_json_str(why, "decision"), *at = sl_json_str(why, "at"), *note = sl_json_str(why, "note");
	printf("%s%s%s at %s%s%s\n", sl_cli_color("bold"), explain(decision), sl_cli_color("off"), at ? at : "?", note ? ": " : "",
		note ? note : "");
	print_list(why, "results", false);
	print_list(why, "candidates", true);
	if (sl_json_int(why, "more", 0))
		printf("    ... and %d more\n", (int)sl_json_int(why, "more", 0));
}

static int run_why(int argc, char **argv)
{
	const char *output = NULL, *ns = NULL, *source = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL},
		{"source", &source, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	jv found = jv_array();
	int count, rest_count, code;
	if (!sl_cli_parse(&sl_cmd_why, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || count != 1)
		code = sl_cli_usage(&sl_cmd_why, "the id of which event?");
	else if ((code = sl_remote_open(&remote, &sl_cmd_why, SL_REMOTE_KAFKA | SL_REMOTE_REDIS, ns, rest, rest_count)) == SL_EXIT_OK) {
		code = collect(&remote, words[0], source, &found);
		sl_remote_close(&remote);
		sort_by_time(&found);
		int n = jv_array_length(jv_copy(found));
		if (code == SL_EXIT_OK && sl_cli_json())
			sl_cli_print_json(jv_copy(found));
		for (int i = 0; i < n && code == SL_EXIT_OK && !sl_cli_json(); i++) {
			jv one = jv_array_get(jv_copy(found), i);
			print_why(one);
			jv_free(one);
		}
		if (code == SL_EXIT_OK && !n) {
			if (!sl_cli_json())
				fprintf(stderr, "sluice why: nothing is known of an event '%s': not published here, not routed yet, a dead letter "
						"(sluice dead-letters list), or too long ago\n", words[0]);
			code = SL_EXIT_WRONG;
		}
	}
	jv_free(found);
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_why = {
	.name = "why",
	.usage = "[--source SOURCE] EVENT-ID",
	.summary = "what became of an event, and why",
	.help = "  --source S      only the event of that source\n\n"
		"Tells which workflows and instances were tried, what did not match, and where the event went. Each partition\n"
		"remembers its last 400 batches of decisions.\n",
	.run = run_why,
};
