/* sluice dead-letters: list and show what could not be processed; redrive it. */
#include "common/base/text.h"
#include "services/cli/cli.h"
#include "services/cli/redrive.h"
#include "services/cli/remote.h"
#include "services/common/dead_letter.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define READ_MS 30000

struct letters {
	const char *reason, *topic; /* list: only these */
	struct sl_table *table;
	jv list;		/* --output json */
	struct sl_remote_at at; /* show */
	bool show;
	int count;
};

static jv text_of(struct sl_bytes bytes)
{
	return jv_string_sized(bytes.ptr ? bytes.ptr : "", (int)bytes.len);
}

static jv put(jv obj, const char *name, const char *text)
{
	return text ? sl_json_set(obj, name, jv_string(text)) : obj;
}

static jv put_number(jv obj, const char *name, int64_t number)
{
	return sl_json_set(obj, name, jv_string_fmt("%" PRId64, number));
}

static jv whole(jv one, const struct sl_record *rec, int header_count)
{
	jv headers = jv_object();
	for (int i = 0; i < header_count; i++)
		headers = sl_json_set(headers, rec->headers[i].name, text_of(rec->headers[i].value));
	one = sl_json_set(one, "headers", headers);
	if (rec->key.ptr)
		one = sl_json_set(one, "key", text_of(rec->key));
	return sl_json_set(one, "value", text_of(rec->value));
}

static jv letter_json(const struct sl_record *rec, bool all)
{
	struct sl_dead_letter letter;
	struct sl_arena arena;
	char when[32];
	int header_count = rec->header_count;
	jv one = sl_json_set(jv_object(), "letter", jv_string_fmt("%d/%" PRId64, (int)rec->partition, rec->offset));
	sl_time_format(rec->time_ms, when);
	one = sl_json_set(one, "time", jv_string(when));
	sl_arena_init(&arena);
	if (sl_dead_letter_parse(rec, &arena, &letter) == 0) {
		one = put(one, "reason", letter.reason);
		one = put(one, "origin-topic", letter.origin_topic);
		if (letter.origin_topic) {
			one = put_number(one, "origin-partition", letter.origin_partition);
			one = put_number(one, "origin-offset", letter.origin_offset);
		}
		one = put_number(one, "attempts", letter.attempts);
		one = put(one, "namespace", letter.ns);
		one = put(one, "instance", letter.instance);
		one = put(one, "redriven-from", letter.redriven);
		if (letter.cut_from)
			one = put_number(one, "cut-from-bytes", letter.cut_from);
		header_count = letter.header_count;
	}
	sl_arena_release(&arena);
	return all ? whole(one, rec, header_count) : one;
}

static void print_people(jv one)
{
	jv_object_foreach(one, name, value)
	{
		char *text =
			jv_get_kind(value) == JV_KIND_STRING ? strdup(jv_string_value(value)) : sl_json_text(value);
		printf("%-17s %s\n", jv_string_value(name), text);
		free(text);
		jv_free(name);
		jv_free(value);
	}
}

static void add_row(struct sl_table *table, jv one)
{
	const char *topic = sl_json_str(one, "origin-topic"), *partition = sl_json_str(one, "origin-partition");
	const char *offset = sl_json_str(one, "origin-offset");
	char from[400];
	snprintf(from, sizeof(from), "%s/%s@%s", topic ? topic : "?", partition ? partition : "?",
		offset ? offset : "?");
	sl_table_row(table, (const char *const[]){sl_json_str(one, "letter"), sl_json_str(one, "time"), from,
				    sl_json_str(one, "reason")});
}

static bool visit(void *arg, const struct sl_record *rec)
{
	struct letters *l = arg;
	if (!sl_letter_matches(rec, l->reason, l->topic))
		return true;
	jv one = letter_json(rec, l->show);
	l->count++;
	if (sl_cli_json()) {
		l->list = jv_array_append(l->list, one);
		return !l->show;
	}
	if (l->show)
		print_people(one);
	else
		add_row(l->table, one);
	jv_free(one);
	return !l->show;
}

static int read_letters(struct sl_remote *remote, struct letters *l)
{
	struct sl_remote_read read = {.topic = remote->topics.dead_letter,
		.at = l->show ? &l->at : NULL,
		.visit = visit,
		.arg = l,
		.timeout_ms = READ_MS};
	bool enough;
	if (!l->show && !sl_cli_json())
		l->table = sl_table_new(4, (const char *const[]){"LETTER", "TIME", "FROM", "REASON"});
	int code = sl_remote_read(remote, &read, &enough);
	if (l->table)
		sl_table_print(l->table);
	if (code == SL_EXIT_OK && sl_cli_json())
		sl_cli_print_json(jv_copy(l->list));
	if (code == SL_EXIT_OK && l->show && !l->count) {
		fprintf(stderr,
			"sluice dead-letters: no letter %d/%" PRId64 ": partition %d of %s holds %" PRId64
			" to %" PRId64 "\n",
			(int)l->at.partition, l->at.offset, (int)l->at.partition, remote->topics.dead_letter, l->at.low,
			l->at.high - 1);
		code = SL_EXIT_WRONG;
	}
	return code;
}

/* The letters that redrive is to take: names, or all of them, or what options leave; never all by an oversight. */
static const char *wrong_choice(const struct sl_redrive *what, bool all)
{
	int32_t partition;
	int64_t offset;
	bool options = what->reason || what->topic;
	for (int i = 0; i < what->letter_count; i++)
		if (!sl_letter_place(what->letters[i], &partition, &offset))
			return "a letter is PARTITION/OFFSET, as list prints it";
	if (what->letter_count && (all || options))
		return "either letters, or --all, --reason, --topic";
	return what->letter_count || all || options ? NULL
						    : "which letters? LETTER..., --all, --reason TEXT or --topic TOPIC";
}

static int run_dead_letters(int argc, char **argv)
{
	const char *output = NULL, *wrong = NULL;
	bool all = false;
	struct letters l = {.list = jv_array()};
	struct sl_redrive what = {0};
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"reason", &what.reason, NULL, NULL},
		{"topic", &what.topic, NULL, NULL}, {"all", NULL, &all, NULL}, {"dry-run", NULL, &what.dry_run, NULL},
		{"again", NULL, &what.again, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	if (!sl_cli_parse(&sl_cmd_dead_letters, argc, argv, options, words, &count, rest, &rest_count)) {
		code = SL_EXIT_USAGE;
		goto done;
	}
	bool redrive = count && strcmp(words[0], "redrive") == 0, list = count == 1 && strcmp(words[0], "list") == 0;
	l.show =
		count == 2 && strcmp(words[0], "show") == 0 && sl_letter_place(words[1], &l.at.partition, &l.at.offset);
	what.letters = words + 1;
	what.letter_count = redrive ? count - 1 : 0;
	l.reason = what.reason;
	l.topic = what.topic;
	if (!sl_cli_output(output))
		wrong = "--output is text or json";
	else if (!redrive && !list && !l.show)
		wrong = "list, show LETTER (as list prints it), or redrive?";
	else if (!redrive && (all || what.dry_run || what.again))
		wrong = "--all, --dry-run and --again belong to redrive";
	else if (l.show && (what.reason || what.topic))
		wrong = "--reason and --topic belong to list and redrive";
	else if (redrive)
		wrong = wrong_choice(&what, all);
	if (wrong)
		code = sl_cli_usage(&sl_cmd_dead_letters, "%s", wrong);
	else if ((code = sl_remote_open(&remote, &sl_cmd_dead_letters,
			  SL_REMOTE_KAFKA | (redrive ? SL_REMOTE_REDIS : 0), NULL, rest, rest_count)) == SL_EXIT_OK) {
		code = redrive ? sl_redrive(&remote, &what) : read_letters(&remote, &l);
		sl_remote_close(&remote);
	}
done:
	jv_free(l.list);
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_dead_letters = {
	.name = "dead-letters",
	.usage = "list | show LETTER | redrive [--dry-run] [--again] LETTER... | --all | --reason TEXT | --topic TOPIC",
	.summary = "what could not be processed, and why; and putting it back on its road",
	.help = "  list            every letter with time, origin and reason\n"
		"  show LETTER     one letter whole: headers, key, value; LETTER is PARTITION/OFFSET as list prints "
		"it\n"
		"  redrive         publishes letters to their topic of origin again, with key, headers and value as "
		"they came\n"
		"                  (read there once more where the letter was too small for it) and the header "
		"sluice-redriven.\n"
		"                  The same event is recognised by those who took it already. Mend the cause first: "
		"otherwise the\n"
		"                  record comes back as a new letter that counts its attempts. Internal records are "
		"refused\n"
		"  --all           all letters\n"
		"  --reason TEXT   those whose reason has TEXT in it; also for list\n"
		"  --topic TOPIC   those that come from this topic (* stands for anything); also for list\n"
		"  --dry-run       tell what would be done, do nothing\n"
		"  --again         also letters that were redriven before\n\n"
		"exit code 1: a letter was not redriven; the table says why\n",
	.run = run_dead_letters,
};
