/* Configuration: the table, one setting, environment, command line, the way of loading. */
#include "common/app/config.h"
#include "common/app/config_table.h"
#include "common/base/text.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sl_config_key sl_config_keys[] = {
#define C(type, field, name, fallback, min, max, text)                                                                 \
	{SL_CONFIG_##type, name, fallback, text, offsetof(struct sl_config, field), min, max},
#include "common/app/config.def"
#undef C
};
const int sl_config_key_count = sizeof(sl_config_keys) / sizeof(sl_config_keys[0]);

/* --- finding keys --- */
const struct sl_config_key *sl_config_key(const char *name)
{
	const struct sl_config_key *map = NULL;
	for (int i = 0; i < sl_config_key_count; i++) {
		const struct sl_config_key *key = &sl_config_keys[i];
		size_t n = strlen(key->name);
		if (key->type != SL_CONFIG_MAP && strcmp(key->name, name) == 0)
			return key;
		if (key->type == SL_CONFIG_MAP && strncmp(key->name, name, n) == 0 && name[n] == '.' && name[n + 1])
			map = key;
	}
	return map;
}

bool sl_config_is_group(const char *name)
{
	size_t n = strlen(name);
	for (int i = 0; i < sl_config_key_count; i++)
		if (strncmp(sl_config_keys[i].name, name, n) == 0 && sl_config_keys[i].name[n] == '.')
			return true;
	return false;
}

/* Levenshtein's distance, one row. */
static int distance(const char *a, const char *b)
{
	int row[64];
	int n = (int)strlen(b);
	if (n >= 64)
		return 64;
	for (int j = 0; j <= n; j++)
		row[j] = j;
	for (int i = 0; a[i]; i++) {
		int diagonal = row[0];
		row[0] = i + 1;
		for (int j = 1; j <= n; j++) {
			int change = diagonal + (a[i] != b[j - 1]);
			diagonal = row[j];
			int shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
			row[j] = change < shorter ? change : shorter;
		}
	}
	return row[n];
}

const char *sl_config_nearest(const char *name)
{
	const char *best = NULL;
	int least = (int)strlen(name) / 3 + 1;
	least = least > 5 ? 5 : least;
	for (int i = 0; i < sl_config_key_count; i++) {
		int d = distance(name, sl_config_keys[i].name);
		if (d <= least && sl_config_keys[i].type != SL_CONFIG_MAP) {
			least = d - 1;
			best = sl_config_keys[i].name;
		}
	}
	/* the right last word in the wrong group: "instance.early_window_ms" */
	const char *last = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
	for (int i = 0; !best && i < sl_config_key_count; i++) {
		const char *dot = strrchr(sl_config_keys[i].name, '.');
		if (dot && strcmp(dot + 1, last) == 0)
			best = sl_config_keys[i].name;
	}
	return best;
}

void sl_config_env_name(const char *name, char ret[static 128])
{
	snprintf(ret, 128, "SLUICE_%s", name);
	for (char *s = ret; *s; s++)
		*s = *s == '.' ? '_' : *s >= 'a' && *s <= 'z' ? (char)(*s - 32) : *s;
}

int sl_config_unknown(const char *name, const char *what, struct sl_loc where, struct sl_diags *diags)
{
	const char *nearest = sl_config_nearest(name);
	int err = sl_diag_error(diags, SL_ECONFIG, where, NULL, "unknown %s `%s`", what, name);
	if (nearest)
		sl_diag_hint(diags, "did you mean `%s`?", nearest);
	return err;
}

/* --- values --- */
struct unit {
	const char *name;
	int64_t factor;
};
static const struct unit byte_units[] = {{"", 1}, {"b", 1}, {"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {NULL, 0}};
static const struct unit time_units[] = {
	{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* "64MiB", "30s", "7": a whole number and perhaps a unit. */
static bool parse_number(const char *text, const struct unit *units, int64_t *ret)
{
	char number[32], unit[8];
	size_t n = strspn(text, "-0123456789");
	if (n == 0 || n >= sizeof(number) || strlen(text + n) >= sizeof(unit))
		return false;
	memcpy(number, text, n);
	number[n] = '\0';
	memcpy(unit, text + n, strlen(text + n) + 1);
	sl_lower(unit);
	int64_t v;
	if (sl_int_parse(number, &v))
		return false;
	for (; units->name; units++)
		if (strcmp(unit, units->name) == 0)
			return !__builtin_mul_overflow(v, units->factor, ret);
	return false;
}

static bool parse_bool(const char *text, bool *ret)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
	for (int i = 0; i < 8; i++)
		if (strcasecmp(text, words[i]) == 0) {
			*ret = i & 1;
			return true;
		}
	return false;
}

/* The words in front of an ENUM's text: "a|b|c: what it is". */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *s = text; n > 0 && *s && *s != ':'; s += *s == '|') {
		size_t len = strcspn(s, "|:");
		if (len == n && memcmp(s, word, n) == 0)
			return true;
		s += len;
		if (*s == ':')
			break;
	}
	return false;
}

static struct sl_config_list parse_list(struct sl_arena *arena, const char *text)
{
	struct sl_config_list list = {NULL, 0};
	list.items = SL_NEWN(arena, const char *, strlen(text) / 2 + 1);
	for (const char *s = text; *s;) {
		s += strspn(s, " ,\t");
		size_t n = strcspn(s, ",");
		size_t trimmed = n;
		while (trimmed > 0 && (s[trimmed - 1] == ' ' || s[trimmed - 1] == '\t'))
			trimmed--;
		if (trimmed > 0)
			list.items[list.count++] = sl_arena_strn(arena, s, trimmed);
		s += n;
	}
	return list;
}

static int set_map(struct sl_config *cfg, struct sl_config_map *map, const char *name, const char *value,
	struct sl_loc where, struct sl_diags *diags)
{
	if (strcmp(name, "bootstrap.servers") == 0 || strcmp(name, "metadata.broker.list") == 0)
		return sl_diag_error(diags, SL_ECONFIG, where, NULL, "`kafka.%s` is set by `kafka.brokers`", name);
	for (int i = 0; i < map->count; i++)
		if (strcmp(map->items[i].name, name) == 0) {
			map->items[i].value = sl_arena_str(&cfg->arena, value);
			return 0;
		}
	struct sl_config_pair *items = SL_NEWN(&cfg->arena, struct sl_config_pair, map->count + 1);
	if (map->count)
		memcpy(items, map->items, sizeof(*items) * (size_t)map->count);
	items[map->count] = (struct sl_config_pair){sl_arena_str(&cfg->arena, name), sl_arena_str(&cfg->arena, value)};
	map->items = items;
	map->count++;
	return 0;
}

static int bad(const struct sl_config_key *key, const char *value, struct sl_loc where, struct sl_diags *diags)
{
	static const char *const wanted[] = {[SL_CONFIG_INT] = "a whole number",
		[SL_CONFIG_BYTES] = "a size (1048576, 64KiB, 4MiB, 1GiB)",
		[SL_CONFIG_MS] = "a time (500, 500ms, 30s, 5m, 1h, 7d)",
		[SL_CONFIG_BOOL] = "true or false"};
	if (key->type == SL_CONFIG_ENUM)
		return sl_diag_error(diags, SL_ECONFIG, where, NULL, "`%s`: \"%s\" is not one of %.*s", key->name,
			value, (int)strcspn(key->text, ":"), key->text);
	return sl_diag_error(
		diags, SL_ECONFIG, where, NULL, "`%s`: \"%s\" is not %s", key->name, value, wanted[key->type]);
}

static int set_number(struct sl_config *cfg, const struct sl_config_key *key, const char *value, struct sl_loc where,
	struct sl_diags *diags)
{
	const struct unit *units = key->type == SL_CONFIG_BYTES ? byte_units
				   : key->type == SL_CONFIG_MS	? time_units
								: no_units;
	int64_t v;
	if (!parse_number(value, units, &v))
		return bad(key, value, where, diags);
	if (v < key->min || v > key->max) {
		int err = sl_diag_error(diags, SL_ECONFIG, where, NULL, "`%s`: %s is out of range", key->name, value);
		if (key->max == INT64_MAX)
			sl_diag_hint(diags, "at least %lld", (long long)key->min);
		else
			sl_diag_hint(diags, "%lld to %lld", (long long)key->min, (long long)key->max);
		return err;
	}
	*(int64_t *)((char *)cfg + key->offset) = v;
	return 0;
}

int sl_config_set(
	struct sl_config *cfg, const char *name, const char *value, struct sl_loc where, struct sl_diags *diags)
{
	const struct sl_config_key *key = sl_config_key(name);
	if (!key)
		return sl_config_unknown(name, "setting", where, diags);
	void *at = (char *)cfg + key->offset;
	switch (key->type) {
	case SL_CONFIG_STR:
		*(const char **)at = sl_arena_str(&cfg->arena, value);
		return 0;
	case SL_CONFIG_ENUM:
		if (!has_word(key->text, value))
			return bad(key, value, where, diags);
		*(const char **)at = sl_arena_str(&cfg->arena, value);
		return 0;
	case SL_CONFIG_BOOL:
		return parse_bool(value, at) ? 0 : bad(key, value, where, diags);
	case SL_CONFIG_LIST:
		*(struct sl_config_list *)at = parse_list(&cfg->arena, value);
		return 0;
	case SL_CONFIG_MAP:
		return set_map(cfg, at, name + strlen(key->name) + 1, value, where, diags);
	default:
		return set_number(cfg, key, value, where, diags);
	}
}

void sl_config_init(struct sl_config *cfg)
{
	static const char *const none[] = {NULL};
	memset(cfg, 0, sizeof(*cfg));
	sl_arena_init(&cfg->arena);
	cfg->args = none;
	for (int i = 0; i < sl_config_key_count; i++) {
		const struct sl_config_key *key = &sl_config_keys[i];
		if (key->type != SL_CONFIG_MAP && sl_config_set(cfg, key->name, key->fallback, SL_NOWHERE, NULL))
			abort(); /* the table is wrong; its test says where */
	}
}

void sl_config_release(struct sl_config *cfg)
{
	sl_arena_release(&cfg->arena);
}

/* --- environment --- */
/* "KAFKA_SASL_USERNAME" behind the prefix -> "kafka.sasl.username", for members of maps. */
static bool map_name(const char *env, char ret[static 128])
{
	if (strlen(env) >= 128)
		return false;
	for (size_t i = 0; i <= strlen(env); i++)
		ret[i] = env[i] == '_' ? '.' : env[i] >= 'A' && env[i] <= 'Z' ? (char)(env[i] + 32) : env[i];
	const struct sl_config_key *key = sl_config_key(ret);
	return key && key->type == SL_CONFIG_MAP;
}

static const char *env_key(const char *var)
{
	char name[128];
	for (int i = 0; i < sl_config_key_count; i++) {
		sl_config_env_name(sl_config_keys[i].name, name);
		if (sl_config_keys[i].type != SL_CONFIG_MAP && strcmp(name, var) == 0)
			return sl_config_keys[i].name;
	}
	return NULL;
}

int sl_config_env(struct sl_config *cfg, char *const *env, struct sl_diags *diags)
{
	int err = 0;
	for (; env && *env; env++) {
		char var[128], map[128];
		size_t n = strcspn(*env, "=");
		const char *value = *env + n + ((*env)[n] == '=');
		/* compose files pass VAR= for what is not set */
		if (strncmp(*env, "SLUICE_", 7) != 0 || n >= sizeof(var) || !*value)
			continue;
		memcpy(var, *env, n);
		var[n] = '\0';
		if (strncmp(var, "SLUICE_SECRET_", 14) == 0 || strcmp(var, "SLUICE_CONFIG") == 0)
			continue;
		const char *key = env_key(var);
		if (!key && map_name(var + 7, map))
			key = map;
		if (!key) {
			char lower[128];
			snprintf(lower, sizeof(lower), "%s", var + 7);
			sl_lower(lower);
			const char *near = sl_config_nearest(lower);
			sl_diag_warn(diags, SL_NOWHERE, NULL, "environment: no setting is named by %s", var);
			if (near) {
				sl_config_env_name(near, lower);
				sl_diag_hint(diags, "did you mean %s?", lower);
			}
			continue;
		}
		int one = sl_config_set(cfg, key, value, (struct sl_loc){.file = var}, diags);
		err = err ? err : one;
	}
	return err;
}

/* --- command line --- */
struct options {
	struct sl_config *cfg;
	struct sl_diags *diags;
	char *const *argv;
	int argc, at;
	bool keep_unknown;
	const char **args;
};

static int option(struct options *o, bool apply)
{
	char name[128];
	const char *arg = o->argv[o->at], *value = strchr(arg, '=');
	size_t n = value ? (size_t)(value - arg) - 2 : strlen(arg) - 2;
	if (n >= sizeof(name))
		return sl_diag_error(o->diags, SL_ECONFIG, SL_NOWHERE, NULL, "option of %zu bytes", n);
	memcpy(name, arg + 2, n);
	name[n] = '\0';
	const struct sl_config_key *key = sl_config_key(name);
	bool is_file = strcmp(name, "config") == 0, flag;
	if (!key && !is_file) {
		if (!o->keep_unknown)
			return apply ? sl_config_unknown(name, "option", SL_NOWHERE, o->diags) : 0;
		o->args[o->cfg->arg_count++] = arg;
		return 0;
	}
	const char *next = o->at + 1 < o->argc ? o->argv[o->at + 1] : NULL;
	if (value)
		value++;
	else if (key && key->type == SL_CONFIG_BOOL && !(next && parse_bool(next, &flag)))
		value = "true";
	else if (next)
		value = o->argv[++o->at];
	else
		return apply ? sl_diag_error(o->diags, SL_ECONFIG, SL_NOWHERE, NULL, "option --%s needs a value", name)
			     : 0;
	if (is_file || !apply)
		return 0;
	return sl_config_set(o->cfg, name, value, (struct sl_loc){.file = arg}, o->diags);
}

static int command_line(struct options *o, bool apply)
{
	int err = 0;
	o->cfg->arg_count = 0;
	for (o->at = 1; o->at < o->argc; o->at++) {
		const char *arg = o->argv[o->at];
		int one = 0;
		if (strcmp(arg, "--") == 0) {
			for (o->at += !o->keep_unknown; o->at < o->argc; o->at++)
				o->args[o->cfg->arg_count++] = o->argv[o->at];
			break;
		}
		if (!o->keep_unknown && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0))
			o->cfg->help = true;
		else if (!o->keep_unknown && strcmp(arg, "--version") == 0)
			o->cfg->version = true;
		else if (strncmp(arg, "--", 2) == 0)
			one = option(o, apply);
		else if (arg[0] == '-' && arg[1] && !o->keep_unknown)
			one = apply ? sl_config_unknown(arg, "option", SL_NOWHERE, o->diags) : 0;
		else
			o->args[o->cfg->arg_count++] = arg;
		err = err ? err : one;
	}
	return err;
}

/* --config FILE or --config=FILE before anything else: the last one counts, as for every option. */
static const char *config_file(int argc, char *const *argv, char *const *env)
{
	const char *file = NULL;
	for (; env && *env && !file; env++)
		if (strncmp(*env, "SLUICE_CONFIG=", 14) == 0 && (*env)[14])
			file = *env + 14;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
			file = argv[++i];
		else if (strncmp(argv[i], "--config=", 9) == 0)
			file = argv[i] + 9;
	}
	return file;
}

static int load_file(struct sl_config *cfg, const char *file, struct sl_diags *diags)
{
	struct sl_buf text;
	char part[4096];
	size_t n;
	FILE *f = fopen(file, "rb");
	if (!f)
		return sl_diag_error(
			diags, SL_ECONFIG, SL_NOWHERE, NULL, "configuration file %s: %s", file, strerror(errno));
	sl_buf_init(&text);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		sl_buf_add(&text, part, n);
	int failed = ferror(f);
	fclose(f);
	int err = failed ? sl_diag_error(
				   diags, SL_ECONFIG, SL_NOWHERE, NULL, "configuration file %s cannot be read", file)
			 : sl_config_file(cfg, text.data ? text.data : "", text.len, file, diags);
	sl_buf_release(&text);
	return err;
}

int sl_config_load(
	struct sl_config *cfg, int argc, char *const *argv, char *const *env, bool keep_unknown, struct sl_diags *diags)
{
	struct options o = {.cfg = cfg, .diags = diags, .argv = argv, .argc = argc, .keep_unknown = keep_unknown};
	const char *file = config_file(argc, argv, env);
	o.args = SL_NEWN(&cfg->arena, const char *, argc + 1);
	cfg->args = o.args;
	/* --help must help where the configuration is broken, too */
	int err = command_line(&o, false);
	if (err || cfg->help || cfg->version)
		return err;
	int first = file ? load_file(cfg, file, diags) : 0;
	int second = sl_config_env(cfg, env, diags);
	int third = command_line(&o, true);
	o.args[cfg->arg_count] = NULL;
	if (!first && !second && !third && cfg->expr_soft_ms > cfg->expr_hard_ms)
		return sl_diag_error(
			diags, SL_ECONFIG, SL_NOWHERE, NULL, "`expr.soft_ms` is larger than `expr.hard_ms`");
	if (!first && !second && !third && cfg->replication_min_insync > cfg->replication_factor)
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL,
			"`replication.min_insync` is larger than `replication.factor`");
	return first || second || third ? SL_ECONFIG : 0;
}
