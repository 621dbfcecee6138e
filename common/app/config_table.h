/* The table of config.def as data. Private to app. */
#ifndef SL_APP_CONFIG_TABLE_H
#define SL_APP_CONFIG_TABLE_H

#include "common/app/config.h"

enum sl_config_type {
	SL_CONFIG_STR,
	SL_CONFIG_INT,
	SL_CONFIG_BYTES,
	SL_CONFIG_MS,
	SL_CONFIG_BOOL,
	SL_CONFIG_LIST,
	SL_CONFIG_ENUM,
	SL_CONFIG_MAP
};
struct sl_config_key {
	enum sl_config_type type;
	const char *name, *fallback, *text;
	size_t offset;
	int64_t min, max;
};
extern const struct sl_config_key sl_config_keys[];
extern const int sl_config_key_count;

/* The key of that name; "kafka.sasl.username" finds the map "kafka". NULL: unknown. */
const struct sl_config_key *sl_config_key(const char *name);
/* Some key begins with `name` and a dot. */
bool sl_config_is_group(const char *name);
/* The key whose name is nearest to a wrong one, NULL if none is near. */
const char *sl_config_nearest(const char *name);
/* "SLUICE_KAFKA_BROKERS"; ret holds 128 bytes. */
void sl_config_env_name(const char *name, char ret[static 128]);
int sl_config_unknown(const char *name, const char *what, struct sl_loc where, struct sl_diags *diags);

#endif
