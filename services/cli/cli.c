/* What the commands have in common: options, tables, colours, JSON. */
#include "services/cli/cli.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/log.h"

static bool json;

int sl_cli_usage(const struct sl_cli_command *cmd, const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "sluice %s: ", cmd->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nusage: sluice %s %s\n", cmd->name, cmd->usage);
	return SL_EXIT_USAGE;
}

static const struct sl_cli_option *find(const struct sl_cli_option *options, const char *name, size_t len)
{
	for (; options->name; options++)
		if (strlen(options->name) == len && strncmp(options->name, name, len) == 0)
			return options;
	return NULL;
}

/* One option; *i moves over its value. False: a message was printed. */
static bool parse_one(const struct sl_cli_command *cmd, int argc, char **argv, int *i, const struct sl_cli_option *options, char **rest,
	int *rest_count)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '='), *value = equals ? equals + 1 : NULL;
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct sl_cli_option *o = find(options, name, len);
	if (!o && rest && (memchr(name, '.', len) || strncmp(name, "config", len) == 0)) {
		rest[(*rest_count)++] = argv[*i];
		if (!value && *i + 1 < argc)
			rest[(*rest_count)++] = argv[++*i];
		return true;
	}
	if (!o) {
		sl_cli_usage(cmd, "unknown option --%.*s", (int)len, name);
		return false;
	}
	if (o->flag) {
		if (value) {
			sl_cli_usage(cmd, "--%s takes no value", o->name);
			return false;
		}
		*o->flag = true;
		return true;
	}
	if (!value && *i + 1 >= argc) {
		sl_cli_usage(cmd, "--%s needs a value", o->name);
		return false;
	}
	*o->value = value ? value : argv[++*i];
	return true;
}

bool sl_cli_parse(const struct sl_cli_command *cmd, int argc, char **argv, const struct sl_cli_option *options, const char **words,
	int *ret_word_count, char **rest, int *ret_rest_count)
{
	int n = 0, r = 0;
	bool only_words = false;
	for (int i = 1; i < argc; i++) {
		if (!only_words && strcmp(argv[i], "--") == 0) {
			only_words = true;
		} else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
			if (!parse_one(cmd, argc, argv, &i, options, rest, &r))
				return false;
		} else {
			words[n++] = argv[i];
		}
	}
	words[n] = NULL;
	*ret_word_count = n;
	if (ret_rest_count)
		*ret_rest_count = r;
	return true;
}

bool sl_cli_output(const char *word)
{
	json = word && strcmp(word, "json") == 0;
	return !word || json || strcmp(word, "text") == 0;
}

bool sl_cli_json(void)
{
	return json;
}

const char *sl_cli_color(const char *name)
{
	static const struct { const char *name, *code; } codes[] = {{"red", "\033[31m"}, {"green", "\033[32m"}, {"yellow", "\033[33m"},
		{"dim", "\033[2m"}, {"bold", "\033[1m"}, {"off", "\033[0m"}};
	static int on = -1;
	if (on < 0)
		on = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	for (size_t i = 0; on && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(codes[i].name, name) == 0)
			return codes[i].code;
	return "";
}

void sl_cli_print_json(jv value)
{
	char *text = sl_json_text(value);
	puts(text);
	free(text);
	jv_free(value);
}

/* --- tables --- */

struct sl_table {
	int columns, rows, cap;
	char **cells;
};

struct sl_table *sl_table_new(int columns, const char *const *header)
{
	struct sl_table *table = calloc(1, sizeof(*table));
	sl_assert(table);
	table->columns = columns;
	sl_table_row(table, header);
	return table;
}

void sl_table_row(struct sl_table *table, const char *const *cells)
{
	if (table->rows == table->cap) {
		table->cap = table->cap ? table->cap * 2 : 16;
		table->cells = realloc(table->cells, (size_t)(table->cap * table->columns) * sizeof(*table->cells));
		sl_assert(table->cells);
	}
	for (int c = 0; c < table->columns; c++)
		table->cells[table->rows * table->columns + c] = strdup(cells[c] ? cells[c] : "");
	table->rows++;
}

/* Characters, not bytes. */
static int width(const char *text)
{
	int n = 0;
	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void sl_table_print(struct sl_table *table)
{
	int *widest = calloc((size_t)table->columns, sizeof(*widest));
	sl_assert(widest);
	for (int i = 0; i < table->rows * table->columns; i++) {
		int w = width(table->cells[i]), c = i % table->columns;
		widest[c] = w > widest[c] ? w : widest[c];
	}
	for (int r = 0; r < table->rows; r++) {
		if (r == 0)
			fputs(sl_cli_color("bold"), stdout);
		for (int c = 0; c < table->columns; c++) {
			const char *cell = table->cells[r * table->columns + c];
			printf("%s%*s", cell, c + 1 < table->columns ? widest[c] - width(cell) + 2 : 0, "");
		}
		if (r == 0)
			fputs(sl_cli_color("off"), stdout);
		putchar('\n');
	}
	for (int i = 0; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	free(widest);
	free(table->cells);
	free(table);
}
