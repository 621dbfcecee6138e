/* Identity: where an actor lives and what it is called (design section 3, Ids; R3). */
#ifndef SL_MODEL_ID_H
#define SL_MODEL_ID_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/arena.h"
#include "common/base/buf.h"

#define SL_UUID_TEXT 37         /* with NUL */
#define SL_HOME_MAX 300

/* Addresses. An instance is its id: "HOME.SERIAL", or HOME alone when a user chose it. A mailbox is "#HOME" (HOME: the hash of its
 * key) or "@P~NS~TYPE" (the local mailbox of an event type in partition P); "@P" alone is the partition itself
 * (sweeps). The Kafka key drops the '#'. */
static inline bool sl_id_is_mailbox(const char *id)
{
	return id[0] == '#' || id[0] == '@';
}

/* Position of an input: (partition, offset) in sluice.instances plus the path of effect indexes of local effects. */
struct sl_pos {
	int32_t partition;
	int64_t offset;
	const char *path;       /* "" for the record itself, else "3.0.1"; borrowed */
};

/* UUIDv5 over a length-prefixed list of n strings (R3). */
void sl_id_derive(const char *const *parts, int n, char ret[static SL_UUID_TEXT]);
/* Id of effect number `index` of the input at pos, in namespace ns. */
void sl_id_effect(const char *ns, const struct sl_pos *pos, int index, char ret[static SL_UUID_TEXT]);

/* Home of a correlation key: first 128 bits, hex, of SHA-256 over the length-prefixed names (lower case, sorted)
 * and canonical values. names[i] belongs to values[i]; the caller has sorted them. Without the '#'. */
void sl_home_of_key(const char *const *names, const char *const *values, int n, char ret[static 33]);
/* Home of a workflow's join mailbox: hash of namespace and workflow id. */
void sl_home_of_workflow(const char *ns, const char *workflow, char ret[static 33]);

/* The home inside an address: "HOME.SERIAL" -> HOME, "#HOME" -> HOME, "@7~ns~t" whole. *ret_len bytes at the result. */
const char *sl_id_home(const char *id, size_t *ret_len);
/* Kafka key of an actor: "NS~HOME". Arena memory. */
char *sl_id_kafka_key(struct sl_arena *arena, const char *ns, const char *id);
/* Partition of (ns, id) among `partitions`: murmur2 of the Kafka key, or the number that a home "@7~..." names. */
int32_t sl_id_partition(const char *ns, const char *id, int32_t partitions);
/* [a-z0-9-]{1,63} */
bool sl_namespace_valid(const char *ns);
/* [A-Za-z0-9_-]{1,128}: an id that a user chose */
bool sl_user_id_valid(const char *id);
/* Hex SHA-256. ret holds 65 bytes. */
void sl_hash_hex(const void *bytes, size_t len, char ret[static 65]);

#endif
