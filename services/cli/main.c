/* The CLI `sluice`: finds the command. */
#include <stdio.h>
#include <string.h>
#include "services/cli/cli.h"

static const struct sl_cli_command *const commands[] = {&sl_cmd_validate, &sl_cmd_test, &sl_cmd_run, &sl_cmd_deploy,
	&sl_cmd_undeploy, &sl_cmd_start, &sl_cmd_publish, &sl_cmd_list, &sl_cmd_show, &sl_cmd_why, &sl_cmd_cancel, &sl_cmd_retry,
	&sl_cmd_purge, &sl_cmd_dead_letters, &sl_cmd_topics};
#define COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
	fputs("sluice - workflows on Kafka and Redis\n\nusage: sluice COMMAND [OPTIONS] [ARGUMENTS]\n\ncommands:\n", out);
	for (size_t i = 0; i < COUNT; i++)
		fprintf(out, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n`sluice COMMAND --help` tells more. Every command takes --output json.\n"
	      "exit codes: 0 fine, 1 the thing asked about is wrong, 2 usage, 3 cannot reach Kafka or Redis\n",
		out);
}

static void print_command_help(const struct sl_cli_command *cmd)
{
	printf("sluice %s %s\n\n%s\n\n%s", cmd->name, cmd->usage, cmd->summary, cmd->help);
}

/* The nearest command by common prefix and length: a typo's hint. */
static const char *nearest(const char *name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strncmp(commands[i]->name, name, 3) == 0)
			return commands[i]->name;
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return SL_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("sluice %s\n", SLUICE_VERSION);
		return SL_EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return SL_EXIT_OK;
	}
	for (size_t i = 0; i < COUNT; i++) {
		if (strcmp(argv[1], commands[i]->name) != 0)
			continue;
		for (int k = 2; k < argc; k++) {
			if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0) {
				print_command_help(commands[i]);
				return SL_EXIT_OK;
			}
		}
		return commands[i]->run(argc - 1, argv + 1);
	}
	const char *hint = nearest(argv[1]);
	fprintf(stderr, "sluice: unknown command '%s'%s%s%s\nsluice --help lists the commands\n", argv[1],
		hint ? "; did you mean '" : "", hint ? hint : "", hint ? "'?" : "");
	return SL_EXIT_USAGE;
}
