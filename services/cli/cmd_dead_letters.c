/* sluice dead-letters: list and show what could not be processed. */
#include <stdlib.h>
#include <string.h>
#include "common/base/text.h"
#include "services/cli/cli.h"
#include "services/cli/remote.h"

struct letters {
	struct sl_table *table;         /* list */
	jv list;                        /* --output json */
	int32_t partition;              /* show: -1 list */
	int64_t offset;
	int count;
	bool shown;
};

static jv header_value(const struct sl_record *rec, const char *name)
{
	for (int i = 0; i < rec->header_count; i++)
		if (strcmp(rec->headers[i].name, name) == 0)
			return jv_string_sized(rec->headers[i].value.ptr ? rec->headers[i].value.ptr : "", (int)rec->headers[i].value.len);
	return jv_invalid();
}

static jv letter_json(const struct sl_record *rec, bool whole)
{
	char when[32];
	jv one = sl_json_set(jv_object(), "letter", jv_string_fmt("%d/%lld", (int)rec->partition, (long long)rec->offset));
	sl_time_format(rec->time_ms, when);
	one = sl_json_set(one, "time", jv_string(when));
	static const char *const names[] = {"reason", "origin-topic", "origin-partition", "origin-offset", "attempts", "namespace", "instance", "cut-from-bytes"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[64];
		snprintf(name, sizeof(name), "sluice-%s", names[i]);
		jv value = header_value(rec, name);
		if (jv_is_valid(value))
			one = sl_json_set(one, names[i], value);
	}
	if (!whole)
		return one;
	jv headers = jv_object();
	for (int i = 0; i < rec->header_count; i++)
		if (strncmp(rec->headers[i].name, "sluice-", 7) != 0)
			headers = sl_json_set(headers, rec->headers[i].name, header_value(rec, rec->headers[i].name));
	one = sl_json_set(one, "headers", headers);
	if (rec->key.ptr)
		one = sl_json_set(one, "key", jv_string_sized(rec->key.ptr, (int)rec->key.len));
	return sl_json_set(one, "value", jv_string_sized(rec->value.ptr ? rec->value.ptr : "", (int)rec->value.len));
}

static bool visit(void *arg, const struct sl_record *rec)
{
	struct letters *l = arg;
	if (l->partition >= 0 && (rec->partition != l->partition || rec->offset != l->offset))
		return true;
	jv one = letter_json(rec, l->partition >= 0);
	l->count++;
	if (l->partition >= 0 && !sl_cli_json()) {
		jv_object_foreach(one, name, value)
		{
			char *text = jv_get_kind(value) == JV_KIND_STRING ? strdup(jv_string_value(value)) : sl_json_text(value);
			printf("%-17s %s\n", jv_string_value(name), text);
			free(text);
			jv_free(name);
			jv_free(value);
		}
		jv_free(one);
	} else if (sl_cli_json()) {
		l->list = jv_array_append(l->list, one);
	} else {
		const char *origin = sl_json_str(one, "origin-topic");
		char from[300];
		snprintf(from, sizeof(from), "%s/%s@%s", origin ? origin : "?",
			sl_json_str(one, "origin-partition") ? sl_json_str(one, "origin-partition") : "?",
			sl_json_str(one, "origin-offset") ? sl_json_str(one, "origin-offset") : "?");
		sl_table_row(l->table, (const char *const[]){sl_json_str(one, "letter"), sl_json_str(one, "time"), from, sl_json_str(one, "reason")});
		jv_free(one);
	}
	return l->partition < 0;
}

static int read_letters(struct sl_remote *remote, struct letters *l)
{
	struct sl_remote_read read = {.topic = remote->topics.dead_letter, .visit = visit, .arg = l, .timeout_ms = 60000};
	bool enough;
	if (l->partition < 0 && !sl_cli_json())
		l->table = sl_table_new(4, (const char *const[]){"LETTER", "TIME", "FROM", "REASON"});
	int code = sl_remote_read(remote, &read, &enough);
	if (l->table)
		sl_table_print(l->table);
	if (code == SL_EXIT_OK && sl_cli_json())
		sl_cli_print_json(jv_copy(l->list));
	if (code == SL_EXIT_OK && l->partition >= 0 && !l->count) {
		fprintf(stderr, "sluice dead-letters: no letter %d/%lld\n", (int)l->partition, (long long)l->offset);
		code = SL_EXIT_WRONG;
	}
	return code;
}

/* "PARTITION/OFFSET" */
static bool parse_letter(const char *text, struct letters *l)
{
	char partition[16];
	const char *slash = strchr(text, '/');
	int64_t p;
	if (!slash || (size_t)(slash - text) >= sizeof(partition))
		return false;
	snprintf(partition, sizeof(partition), "%.*s", (int)(slash - text), text);
	if (sl_int_parse(partition, &p) || p < 0 || p > INT32_MAX || sl_int_parse(slash + 1, &l->offset) || l->offset < 0)
		return false;
	l->partition = (int32_t)p;
	return true;
}

static int run_dead_letters(int argc, char **argv)
{
	const char *output = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	struct letters l = {.list = jv_array(), .partition = -1};
	int count, rest_count, code;
	if (!sl_cli_parse(&sl_cmd_dead_letters, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output))
		code = sl_cli_usage(&sl_cmd_dead_letters, "--output is text or json");
	else if (!(count == 1 && strcmp(words[0], "list") == 0) &&
		 !(count == 2 && strcmp(words[0], "show") == 0 && parse_letter(words[1], &l)))
		code = sl_cli_usage(&sl_cmd_dead_letters, "list, or show LETTER (as list prints it)?");
	else if ((code = sl_remote_open(&remote, &sl_cmd_dead_letters, SL_REMOTE_KAFKA, NULL, rest, rest_count)) == SL_EXIT_OK) {
		code = read_letters(&remote, &l);
		sl_remote_close(&remote);
	}
	jv_free(l.list);
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_dead_letters = {
	.name = "dead-letters",
	.usage = "list | show LETTER",
	.summary = "what could not be processed, and why",
	.help = "  list            every letter with time, origin and reason\n"
		"  show LETTER     one letter whole: headers, key, value; LETTER is PARTITION/OFFSET as list prints it\n",
	.run = run_dead_letters,
};
