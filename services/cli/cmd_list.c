/* sluice list: instances from the listing index of every partition. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/text.h"
#include "services/cli/cli.h"
#include "services/cli/remote.h"

#define PER_PARTITION_MAX 100000

struct row { char status[16], workflow[129], *id; int64_t created_ms; };
struct rows { struct row *items; int count, cap; };

/* "STATUS|WORKFLOW|NS~ID"; false: another namespace or damaged. */
static bool parse(const char *member, const char *ns, struct row *ret)
{
	const char *bar = strchr(member, '|'), *bar2 = bar ? strrchr(bar + 1, '|') : NULL;
	const char *tilde = bar2 ? strchr(bar2, '~') : NULL;
	if (!tilde || (size_t)(bar - member) >= sizeof(ret->status) || (size_t)(bar2 - bar - 1) >= sizeof(ret->workflow))
		return false;
	if (strlen(ns) != (size_t)(tilde - bar2 - 1) || strncmp(bar2 + 1, ns, strlen(ns)) != 0)
		return false;
	snprintf(ret->status, sizeof(ret->status), "%.*s", (int)(bar - member), member);
	snprintf(ret->workflow, sizeof(ret->workflow), "%.*s", (int)(bar2 - bar - 1), bar + 1);
	ret->id = strdup(tilde + 1);
	return true;
}

static int newest_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms ? 1 : -1;
	return strcmp(x->id, y->id);
}

static void add(struct rows *rows, const struct row *row)
{
	if (rows->count == rows->cap) {
		rows->cap = rows->cap ? rows->cap * 2 : 64;
		rows->items = realloc(rows->items, (size_t)rows->cap * sizeof(*rows->items));
		if (!rows->items)
			abort();
	}
	rows->items[rows->count++] = *row;
}

static int collect(struct sl_remote *remote, const char *workflow, const char *status, struct rows *rows)
{
	int32_t partitions;
	int code = sl_remote_partitions(remote, remote->topics.instances, &partitions);
	for (int32_t p = 0; code == SL_EXIT_OK && p < partitions; p++) {
		jv list;
		code = sl_remote_range(remote, p, "x", PER_PARTITION_MAX, &list);
		if (code != SL_EXIT_OK)
			break;
		int n = jv_array_length(jv_copy(list));
		for (int i = 0; i < n; i++) {
			jv item = jv_array_get(jv_copy(list), i), member = jv_array_get(jv_copy(item), 0), score = jv_array_get(item, 1);
			struct row row;
			if (parse(jv_string_value(member), remote->ns, &row)) {
				row.created_ms = (int64_t)jv_number_value(score);
				if ((workflow && strcmp(workflow, row.workflow) != 0) || (status && strcmp(status, row.status) != 0))
					free(row.id);
				else
					add(rows, &row);
			}
			jv_free(member);
			jv_free(score);
		}
		jv_free(list);
	}
	return code;
}

static void print_rows(const struct rows *rows, int limit)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	int64_t now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	struct sl_table *table = sl_table_new(4, (const char *const[]){"INSTANCE", "WORKFLOW", "STATUS", "AGE"});
	for (int i = 0; i < rows->count && i < limit; i++) {
		char age[32];
		sl_duration_human(now - rows->items[i].created_ms, age);
		sl_table_row(table, (const char *const[]){rows->items[i].id, rows->items[i].workflow, rows->items[i].status, age});
	}
	sl_table_print(table);
	if (rows->count > limit)
		printf("... and %d more (--limit)\n", rows->count - limit);
}

static void print_json(const struct rows *rows, int limit)
{
	jv list = jv_array();
	for (int i = 0; i < rows->count && i < limit; i++) {
		char when[32];
		sl_time_format(rows->items[i].created_ms, when);
		jv one = sl_json_set(jv_object(), "id", jv_string(rows->items[i].id));
		one = sl_json_set(one, "workflow", jv_string(rows->items[i].workflow));
		one = sl_json_set(one, "status", jv_string(rows->items[i].status));
		list = jv_array_append(list, sl_json_set(one, "created", jv_string(when)));
	}
	sl_cli_print_json(list);
}

static int run_list(int argc, char **argv)
{
	const char *output = NULL, *ns = NULL, *workflow = NULL, *status = NULL, *limit_text = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL},
		{"workflow", &workflow, NULL, NULL}, {"status", &status, NULL, NULL}, {"limit", &limit_text, NULL, NULL},
		{NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	struct rows rows = {0};
	int count, rest_count, code;
	int64_t limit = 100;
	if (!sl_cli_parse(&sl_cmd_list, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || count)
		code = sl_cli_usage(&sl_cmd_list, "takes options only");
	else if (limit_text && (sl_int_parse(limit_text, &limit) || limit < 1 || limit > 10000000))
		code = sl_cli_usage(&sl_cmd_list, "--limit is a number from 1");
	else if ((code = sl_remote_open(&remote, &sl_cmd_list, SL_REMOTE_KAFKA | SL_REMOTE_REDIS, ns, rest, rest_count)) == SL_EXIT_OK) {
		code = collect(&remote, workflow, status, &rows);
		if (rows.count)
			qsort(rows.items, (size_t)rows.count, sizeof(*rows.items), newest_first);
		if (code == SL_EXIT_OK && sl_cli_json())
			print_json(&rows, (int)limit);
		else if (code == SL_EXIT_OK)
			print_rows(&rows, (int)limit);
		sl_remote_close(&remote);
	}
	for (int i = 0; i < rows.count; i++)
		free(rows.items[i].id);
	free(rows.items);
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_list = {
	.name = "list",
	.usage = "[--workflow ID] [--status S] [--limit N] [--namespace NS]",
	.summary = "list instances, newest first",
	.help = "  --workflow ID   only of that workflow\n"
		"  --status S      running, waiting, suspended, completed, faulted or cancelled\n"
		"  --limit N       default 100\n"
		"  --namespace NS  default: default\n",
	.run = run_list,
};
