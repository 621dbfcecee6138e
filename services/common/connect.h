/* Configuration -> the real ports: what the main.c of each service and the CLI have in common. */
#ifndef SL_SERVICES_CONNECT_H
#define SL_SERVICES_CONNECT_H

#include <uv.h>
#include "common/app/config.h"
#include "common/ports/broker.h"
#include "common/ports/store.h"
#include "services/common/topics.h"

/* Topic names as configured; memory in arena. */
void sl_connect_topics(const struct sl_config *cfg, struct sl_arena *arena, struct sl_topics *ret);
/* Neither waits: what is not there yet is waited for inside, with log lines. `service`: "coordinator", NULL for the CLI (no group
 * instance id, quiet). NULL with a diagnostic: a setting is wrong. */
struct sl_broker *sl_connect_kafka(const struct sl_config *cfg, uv_loop_t *loop, const char *service, struct sl_diags *diags);
struct sl_store *sl_connect_redis(const struct sl_config *cfg, uv_loop_t *loop, const char *service, struct sl_diags *diags);
/* The connection is up: commands do not end with SL_EUNREACHABLE at once. */
bool sl_connect_redis_up(const struct sl_store *store);
/* Why it is not; NULL: not tried yet. */
const char *sl_connect_redis_trouble(const struct sl_store *store);
/* Is Kafka there, and are the topics as they must be (design section 2)? SL_EUNREACHABLE, SL_ENOTFOUND, SL_EINVAL: a message that names
 * the cure; it may become better while we wait. SL_ECONFIG: a setting of ours is wrong. Warnings say what may go wrong later. Blocks, at
 * most for a few times timeout_ms (0: 5 s); any thread. */
SL_MUST_CHECK int sl_connect_check_topics(const struct sl_config *cfg, int timeout_ms, struct sl_diags *diags);
/* `sluice topics create`: makes what is missing. */
SL_MUST_CHECK int sl_connect_create_topics(const struct sl_config *cfg, int *ret_created, int *ret_existing, struct sl_diags *diags);
/* Names and numbers of partitions (0: missing) of all topics; memory in arena. */
SL_MUST_CHECK int sl_connect_list_topics(const struct sl_config *cfg, struct sl_arena *arena, const char ***ret_names,
	int32_t **ret_partitions, int *ret_count, struct sl_diags *diags);

#endif
