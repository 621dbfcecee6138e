/* The CLI `sluice`: one file per command, this header in common.
 *
 * Exit codes (design section 10): 0 fine, 1 the thing asked about is wrong (an invalid definition, a failed scenario, a refused
 * command, an unknown instance), 2 usage or configuration, 3 Kafka or Redis cannot be reached. */
#ifndef SL_CLI_CLI_H
#define SL_CLI_CLI_H

#include <stdbool.h>
#include "common/base/diag.h"
#include "common/model/value.h"

enum { SL_EXIT_OK, SL_EXIT_WRONG, SL_EXIT_USAGE, SL_EXIT_UNREACHABLE };

struct sl_cli_command {
	const char *name, *usage;       /* usage: what stands behind the name */
	const char *summary;            /* one line */
	const char *help;               /* options and examples, lines */
	int (*run)(int argc, char **argv);      /* argv[0] is the command's name; returns an exit code */
};
extern const struct sl_cli_command sl_cmd_validate, sl_cmd_test, sl_cmd_run, sl_cmd_deploy, sl_cmd_undeploy, sl_cmd_start,
	sl_cmd_publish, sl_cmd_list, sl_cmd_show, sl_cmd_why, sl_cmd_cancel, sl_cmd_retry, sl_cmd_purge, sl_cmd_dead_letters,
	sl_cmd_topics;

/* --- options: a command's own --name value / --name=value / --flag --- */
struct sl_cli_option {
	const char *name;               /* without the dashes; NULL ends the list */
	const char **value;             /* takes a value */
	bool *flag;                     /* or is a flag */
	bool *config;                   /* reserved */
};
/* Parses argv; what is no option goes to words (room for argc, NULL-terminated). Options that begin with a name of the
 * configuration table stay in `rest` for sl_config_load (rest NULL: they are unknown). False: a message was printed, exit 2. */
bool sl_cli_parse(const struct sl_cli_command *cmd, int argc, char **argv, const struct sl_cli_option *options, const char **words,
	int *ret_word_count, char **rest, int *ret_rest_count);
/* Prints "sluice NAME: text" to stderr and where help is; returns SL_EXIT_USAGE. */
int sl_cli_usage(const struct sl_cli_command *cmd, const char *fmt, ...) SL_PRINTF(2, 3);

/* --- output --- */
/* `--output json`: scripts; else people. Sets what the functions below do; false: unknown word. */
bool sl_cli_output(const char *word);
bool sl_cli_json(void);
/* Colours only on a terminal (and not with NO_COLOR): "" elsewhere. */
const char *sl_cli_color(const char *name);     /* "red", "green", "yellow", "dim", "bold", "off" */
/* Aligned table: rows of `columns` cells; header first. Cells are copied. */
struct sl_table;
struct sl_table *sl_table_new(int columns, const char *const *header);
void sl_table_row(struct sl_table *table, const char *const *cells);
void sl_table_print(struct sl_table *table);    /* prints and frees */
/* Compact JSON and a newline; takes value. */
void sl_cli_print_json(jv value);

#endif
