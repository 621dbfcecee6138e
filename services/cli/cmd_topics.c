/* sluice topics: create, list, check. */
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "services/cli/cli.h"
#include "services/common/connect.h"

extern char **environ;

static int report(int err, const struct sl_diags *diags)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_diags_print(diags, &text, NULL);
	if (text.data)
		fputs(text.data, stderr);
	sl_buf_release(&text);
	if (err == SL_EUNREACHABLE)
		fputs("set SLUICE_KAFKA_BROKERS or --kafka.brokers\n", stderr);
	return !err ? SL_EXIT_OK : err == SL_EUNREACHABLE ? SL_EXIT_UNREACHABLE : SL_EXIT_WRONG;
}

static int create(const struct sl_config *cfg)
{
	struct sl_diags diags;
	int created = 0, existing = 0;
	sl_diags_init(&diags);
	int code = report(sl_connect_create_topics(cfg, &created, &existing, &diags), &diags);
	if (code == SL_EXIT_OK && sl_cli_json())
		sl_cli_print_json(sl_json_set(sl_json_set(jv_object(), "created", jv_number(created)), "existing", jv_number(existing)));
	else if (code == SL_EXIT_OK)
		printf("%d topics created, %d were there\n", created, existing);
	sl_diags_release(&diags);
	return code;
}

static int check(const struct sl_config *cfg)
{
	struct sl_diags diags;
	sl_diags_init(&diags);
	int code = report(sl_connect_check_topics(cfg, 0, &diags), &diags);
	if (code == SL_EXIT_OK && sl_cli_json())
		sl_cli_print_json(sl_json_set(jv_object(), "ok", jv_true()));
	else if (code == SL_EXIT_OK)
		puts("all topics are as they should be");
	sl_diags_release(&diags);
	return code;
}

static int list(const struct sl_config *cfg)
{
	struct sl_diags diags;
	struct sl_arena arena;
	const char **names;
	int32_t *partitions;
	int count = 0;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	int code = report(sl_connect_list_topics(cfg, &arena, &names, &partitions, &count, &diags), &diags);
	if (code == SL_EXIT_OK && sl_cli_json()) {
		jv all = jv_object();
		for (int i = 0; i < count; i++)
			all = sl_json_set(all, names[i], jv_number(partitions[i]));
		sl_cli_print_json(all);
	} else if (code == SL_EXIT_OK) {
		struct sl_table *table = sl_table_new(2, (const char *const[]){"TOPIC", "PARTITIONS"});
		for (int i = 0; i < count; i++)
			sl_table_row(table, (const char *const[]){names[i],
				partitions[i] ? sl_arena_printf(&arena, "%d", (int)partitions[i]) : "missing"});
		sl_table_print(table);
	}
	sl_diags_release(&diags);
	sl_arena_release(&arena);
	return code;
}

static int run_topics(int argc, char **argv)
{
	const char *output = NULL;
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 2, sizeof(*rest));
	struct sl_config cfg;
	struct sl_diags diags;
	int count, rest_count = 0, code;
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	sl_log_set_level(SL_ERROR);
	rest[0] = (char *)"sluice";
	if (!sl_cli_parse(&sl_cmd_topics, argc, argv, options, words, &count, rest + 1, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output) || count != 1)
		code = sl_cli_usage(&sl_cmd_topics, "create, check or list?");
	else if (sl_config_load(&cfg, rest_count + 1, rest, environ, false, &diags))
		(void)report(SL_ECONFIG, &diags), code = SL_EXIT_USAGE;
	else if (strcmp(words[0], "create") == 0)
		code = create(&cfg);
	else if (strcmp(words[0], "check") == 0)
		code = check(&cfg);
	else if (strcmp(words[0], "list") == 0)
		code = list(&cfg);
	else
		code = sl_cli_usage(&sl_cmd_topics, "create, check or list, not '%s'", words[0]);
	sl_diags_release(&diags);
	sl_config_release(&cfg);
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_topics = {
	.name = "topics",
	.usage = "create | check | list",
	.summary = "create Sluice's topics, check their settings, list them",
	.help = "  create   makes what is missing (partitions.*, replication.*, topic.retention_ms of the configuration)\n"
		"  check    what every start checks\n"
		"  list     names and numbers of partitions\n",
	.run = run_topics,
};
