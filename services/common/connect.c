/* Configuration -> the real ports. */
#include "services/common/connect.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/adapters/kafka/admin.h"
#include "common/adapters/kafka/kafka.h"
#include "common/adapters/redis/redis.h"
#include "common/base/log.h"

#define CHECK_TIMEOUT_MS 5000
#define VISIBLE_TRIES 50

void sl_connect_topics(const struct sl_config *cfg, struct sl_arena *arena, struct sl_topics *ret)
{
	sl_topics_init(ret, arena, cfg->topic_prefix);
	ret->event_count = cfg->topics_events.count;
	ret->events = SL_NEWN(arena, struct sl_event_topic, ret->event_count + 1);
	for (int i = 0; i < ret->event_count; i++)
		sl_config_event_topic(cfg, i, arena, &ret->events[i].topic, &ret->events[i].ns);
}

static void kafka_log(void *arg, int level, const char *text)
{
	(void)arg;
	sl_log(level <= 3 ? SL_ERROR : level == 4 ? SL_WARN : level <= 6 ? SL_INFO : SL_DEBUG, "Kafka: %s", text);
}

/* A batch that is larger than its topic's max.message.bytes is refused, however small its records are. */
static size_t batch_bytes(const struct sl_config *cfg)
{
	size_t internal = (size_t)cfg->event_bytes_max * 4, public = (size_t)cfg->event_bytes_max + 65536;
	return internal < public ? internal : public;
}

static void kafka_options(const struct sl_config *cfg, const char *service, struct sl_arena *arena, struct sl_kafka_options *ret)
{
	const char **settings = SL_NEWN(arena, const char *, cfg->kafka.count * 2 + 1);
	for (int i = 0; i < cfg->kafka.count; i++) {
		settings[2 * i] = cfg->kafka.items[i].name;
		settings[2 * i + 1] = cfg->kafka.items[i].value;
	}
	*ret = (struct sl_kafka_options){.brokers = cfg->kafka_brokers, .settings = settings,
		.message_bytes_max = (size_t)cfg->event_bytes_max * 4 + 65536, .batch_bytes_max = batch_bytes(cfg),
		.keep_refused = service != NULL, .session_timeout_ms = (int)cfg->group_session_timeout_ms,
		.client_id = service ? sl_arena_printf(arena, "sluice-%s", service) : "sluice-cli",
		.instance_id = service ? sl_config_group_instance(cfg, service, arena) : NULL, .log = service ? kafka_log : NULL};
}

struct sl_broker *sl_connect_kafka(const struct sl_config *cfg, uv_loop_t *loop, const char *service, struct sl_diags *diags)
{
	struct sl_arena arena;
	struct sl_kafka_options opt;
	sl_arena_init(&arena);
	kafka_options(cfg, service, &arena, &opt);
	opt.diags = diags;
	struct sl_broker *broker = sl_broker_kafka_new(loop, &opt);
	sl_arena_release(&arena);
	return broker;
}

static void redis_state(void *arg, bool up, const char *text)
{
	(void)arg;
	if (up)
		sl_log(SL_INFO, "Redis: connected");
	else
		sl_log(SL_WARN, "Redis: not connected: %s", text ? text : "unknown reason");
}

struct sl_store *sl_connect_redis(const struct sl_config *cfg, uv_loop_t *loop, const char *service, struct sl_diags *diags)
{
	if (sl_redis_url_check(cfg->redis_url, diags))
		return NULL;
	return sl_store_redis_new(loop, cfg->redis_url, cfg->redis_prefix, service ? redis_state : NULL, NULL);
}

bool sl_connect_redis_up(const struct sl_store *store)
{
	return sl_redis_up(store);
}

const char *sl_connect_redis_trouble(const struct sl_store *store)
{
	return sl_redis_trouble(store);
}

/* --- topics: what we create and what we check --- */

#define TOPICS_MAX 64

static int topic_list(const struct sl_config *cfg, struct sl_arena *arena, struct sl_kafka_topic *list)
{
	struct sl_topics names;
	int n = 0;
	sl_connect_topics(cfg, arena, &names);
	const char *insync = sl_arena_printf(arena, "%lld", (long long)cfg->replication_min_insync);
	const char *retention = sl_arena_printf(arena, "%lld", (long long)cfg->topic_retention_ms);
	/* internal topics carry what public ones brought plus our own: four times the public limit (design section 2) */
	const char *bytes = sl_arena_printf(arena, "%lld", (long long)cfg->event_bytes_max * 4);
	const char *public_bytes = sl_arena_printf(arena, "%lld", (long long)cfg->event_bytes_max + 65536);
	struct { const char *name; int64_t partitions; const char *more, *value; } internal[] = {
		{names.instances, cfg->partitions_instances, "message.timestamp.type", "LogAppendTime"},
		{names.actions, cfg->partitions_actions, NULL, NULL}, {names.timers, cfg->partitions_timers, NULL, NULL},
		{names.commands, cfg->partitions_commands, NULL, NULL}, {names.lifecycle, cfg->partitions_lifecycle, NULL, NULL},
		{names.dead_letter, cfg->partitions_dead_letter, NULL, NULL}, {names.definitions, 1, "cleanup.policy", "compact"}};
	for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++) {
		const char **settings = SL_NEWN(arena, const char *, 13);
		int s = 0;
		settings[s++] = "max.message.bytes";
		settings[s++] = bytes;
		settings[s++] = "min.insync.replicas";
		settings[s++] = insync;
		if (internal[i].more) {
			settings[s++] = internal[i].more;
			settings[s++] = internal[i].value;
		}
		if (strcmp(internal[i].name, names.definitions) != 0) {
			settings[s++] = "retention.ms";
			settings[s++] = retention;
			settings[s++] = "retention.bytes"; /* a log that forgets early loses what waits in it */
			settings[s++] = "-1";
			settings[s++] = "cleanup.policy"; /* compaction would keep one record of a key */
			settings[s++] = "delete";
		}
		list[n++] = (struct sl_kafka_topic){.name = internal[i].name, .partitions = (int32_t)internal[i].partitions,
			.replication = (int)cfg->replication_factor, .settings = settings,
			.partitions_exact = strcmp(internal[i].name, names.definitions) == 0};
	}
	for (int i = 0; i < names.event_count && n < TOPICS_MAX; i++) {
		const char **settings = SL_NEWN(arena, const char *, 7);
		settings[0] = "max.message.bytes";
		settings[1] = public_bytes;
		settings[2] = "min.insync.replicas";
		settings[3] = insync;
		settings[4] = "cleanup.policy";
		settings[5] = "delete";
		list[n++] = (struct sl_kafka_topic){.name = names.events[i].topic, .partitions = (int32_t)cfg->partitions_events,
			.replication = (int)cfg->replication_factor, .settings = settings, .create_only = true};
	}
	return n;
}

int sl_connect_create_topics(const struct sl_config *cfg, int *ret_created, int *ret_existing, struct sl_diags *diags)
{
	struct sl_arena arena;
	struct sl_kafka_topic list[TOPICS_MAX];
	struct sl_kafka_options opt;
	sl_arena_init(&arena);
	kafka_options(cfg, NULL, &arena, &opt);
	int n = topic_list(cfg, &arena, list);
	int err = sl_kafka_topics_create(&opt, list, n, 2 * CHECK_TIMEOUT_MS, ret_existing, diags);
	*ret_created = n - *ret_existing;
	/* created is not yet visible: who starts services next must find them */
	for (int i = 0; !err && i < VISIBLE_TRIES; i++) {
		struct sl_diags ignored;
		sl_diags_init(&ignored);
		int seen = sl_connect_check_topics(cfg, CHECK_TIMEOUT_MS, &ignored);
		sl_diags_release(&ignored);
		if (seen != SL_ENOTFOUND)
			break;
		usleep(100000);
	}
	sl_arena_release(&arena);
	return err;
}

int sl_connect_check_topics(const struct sl_config *cfg, int timeout_ms, struct sl_diags *diags)
{
	struct sl_arena arena;
	struct sl_kafka_topic list[TOPICS_MAX];
	struct sl_kafka_options opt;
	sl_arena_init(&arena);
	kafka_options(cfg, NULL, &arena, &opt);
	int n = topic_list(cfg, &arena, list);
	/* the number of partitions is fixed at creation, whatever the configuration says later */
	for (int i = 0; i < n; i++)
		if (!list[i].partitions_exact)
			list[i].partitions = 1;
	int err = sl_kafka_topics_check(&opt, list, n, timeout_ms > 0 ? timeout_ms : CHECK_TIMEOUT_MS, diags);
	sl_arena_release(&arena);
	return err;
}

int sl_connect_list_topics(const struct sl_config *cfg, struct sl_arena *arena, const char ***ret_names, int32_t **ret_partitions,
	int *ret_count, struct sl_diags *diags)
{
	struct sl_kafka_topic list[TOPICS_MAX];
	struct sl_kafka_options opt;
	kafka_options(cfg, NULL, arena, &opt);
	int n = topic_list(cfg, arena, list);
	*ret_names = SL_NEWN(arena, const char *, n);
	*ret_partitions = SL_NEWN(arena, int32_t, n);
	for (int i = 0; i < n; i++)
		(*ret_names)[i] = list[i].name;
	*ret_count = n;
	return sl_kafka_topics_partitions(&opt, *ret_names, n, CHECK_TIMEOUT_MS, *ret_partitions, diags);
}
