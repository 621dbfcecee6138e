/* Configuration: one table (config.def) read from a YAML file, the environment and the command line.
 * Precedence: command line, environment, file, default. Owner: the process's main; read-only afterwards, so any
 * thread may read it. Strings live in the config's own arena. */
#ifndef SL_APP_CONFIG_H
#define SL_APP_CONFIG_H

#include "common/base/arena.h"
#include "common/base/diag.h"
#include <stdbool.h>
#include <stdint.h>

struct sl_config_pair {
	const char *name, *value;
};
struct sl_config_list {
	const char **items;
	int count;
};
struct sl_config_map {
	struct sl_config_pair *items;
	int count;
};

struct sl_config {
	struct sl_arena arena;
	/* One member per line of config.def. STR: never NULL, "" when empty. ENUM: the word; sl_config_is compares. */
#define SL_CONFIG_C_STR const char *
#define SL_CONFIG_C_ENUM const char *
#define SL_CONFIG_C_INT int64_t
#define SL_CONFIG_C_BYTES int64_t
#define SL_CONFIG_C_MS int64_t
#define SL_CONFIG_C_BOOL bool
#define SL_CONFIG_C_LIST struct sl_config_list
#define SL_CONFIG_C_MAP struct sl_config_map
#define C(type, field, name, fallback, min, max, text) SL_CONFIG_C_##type field;
#include "common/app/config.def"
#undef C
	const char *const *args; /* what the command line held beside options, NULL-terminated */
	int arg_count;
	bool help, version; /* --help, --version were given */
};

/* All defaults. */
void sl_config_init(struct sl_config *cfg);
void sl_config_release(struct sl_config *cfg);

/* The whole way: defaults; file named by --config FILE or SLUICE_CONFIG; environment; options. argv[0] is skipped.
 * Unknown keys and options are errors with a suggestion, unknown SLUICE_ variables warnings. SL_ECONFIG when there was
 * an error. With `keep_unknown` (the CLI has options of its own), an unknown option stays in args and so do all words.
 */
SL_MUST_CHECK int sl_config_load(struct sl_config *cfg, int argc, char *const *argv, char *const *env,
	bool keep_unknown, struct sl_diags *diags);
/* The parts, for tests. text: YAML; file: its name for messages. */
SL_MUST_CHECK int sl_config_file(
	struct sl_config *cfg, const char *text, size_t len, const char *file, struct sl_diags *diags);
SL_MUST_CHECK int sl_config_env(struct sl_config *cfg, char *const *env, struct sl_diags *diags);
/* One setting by its name ("kafka.brokers", "kafka.security.protocol"); where: for messages. SL_ECONFIG. */
SL_MUST_CHECK int sl_config_set(
	struct sl_config *cfg, const char *name, const char *value, struct sl_loc where, struct sl_diags *diags);

/* Name of one of Sluice's own topics: topic.prefix + "instances", "actions", ... Arena memory. */
const char *sl_config_topic(const struct sl_config *cfg, struct sl_arena *arena, const char *name);
/* Entry i of topics.events taken apart; memory in arena. */
void sl_config_event_topic(
	const struct sl_config *cfg, int i, struct sl_arena *arena, const char **ret_topic, const char **ret_ns);
/* Topic that the workflows of namespace ns publish to: the first of that namespace, else the first of all; NULL if
 * none. */
const char *sl_config_publish_topic(const struct sl_config *cfg, const char *ns, struct sl_arena *arena);
/* group.instance_id, or HOST-SERVICE-ORDINAL when service.ordinal is given; NULL: none. Arena memory. */
const char *sl_config_group_instance(const struct sl_config *cfg, const char *service, struct sl_arena *arena);
/* redis.url taken apart; user and password may be NULL. SL_ECONFIG. */
struct sl_redis_url {
	const char *host, *user, *password;
	int port, db;
};
SL_MUST_CHECK int sl_config_redis(
	const struct sl_config *cfg, struct sl_arena *arena, struct sl_redis_url *ret, struct sl_diags *diags);
/* R8: the value of a secret, read anew at each call: secrets.dir/NAME (one trailing newline dropped), else the variable
 * SLUICE_SECRET_NAME (NAME as it is, else upper case with '_' for what is no letter or digit). NULL: no value.
 * malloc'ed: wipe and free it. */
char *sl_config_secret(const struct sl_config *cfg, const char *name);
static inline bool sl_config_is(const char *word, const char *other)
{
	return __builtin_strcmp(word, other) == 0;
}

/* --help's list and docs/operations' table. */
void sl_config_help(struct sl_buf *out);
void sl_config_markdown(struct sl_buf *out);

#endif
