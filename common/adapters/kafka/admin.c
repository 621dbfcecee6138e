/* Topic admin over a short-lived librdkafka handle. */
#include "common/adapters/kafka/admin.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_BATCH_MAX 1000000 /* librdkafka's batch.size */

struct admin {
	rd_kafka_t *rk;
	rd_kafka_queue_t *queue;
	const char *brokers;
	int timeout_ms;
};

static void silent(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
	(void)rk;
	(void)level;
	(void)fac;
	(void)text;
}

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, struct sl_diags *diags)
{
	char text[512] = "";
	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return true;
	sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "kafka.%s: %s", name, text);
	return false;
}

static int admin_open(struct admin *admin, const struct sl_kafka_options *opt, int timeout_ms, struct sl_diags *diags)
{
	char text[512] = "";
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	*admin = (struct admin){
		.brokers = opt->brokers ? opt->brokers : "",
		.timeout_ms = timeout_ms > 0 ? timeout_ms : 10000,
	};
	rd_kafka_conf_set_log_cb(conf, silent);
	bool ok = set(conf, "bootstrap.servers", opt->brokers ? opt->brokers : "", diags) &&
		  set(conf, "client.id", opt->client_id ? opt->client_id : "sluice", diags);
	for (int i = 0; ok && opt->settings && opt->settings[i] && opt->settings[i + 1]; i += 2)
		if (strncmp(opt->settings[i], "producer.", 9) != 0 && strncmp(opt->settings[i], "consumer.", 9) != 0)
			ok = set(conf, opt->settings[i], opt->settings[i + 1], diags);
	if (!ok) {
		rd_kafka_conf_destroy(conf);
		return SL_ECONFIG;
	}
	admin->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!admin->rk) {
		rd_kafka_conf_destroy(conf);
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "kafka: %s", text);
	}
	admin->queue = rd_kafka_queue_new(admin->rk);
	return 0;
}

static void admin_close(struct admin *admin)
{
	rd_kafka_queue_destroy(admin->queue);
	rd_kafka_destroy(admin->rk);
}

static int unreachable(const struct admin *admin, const char *why, struct sl_diags *diags)
{
	sl_diag_error(diags, SL_EUNREACHABLE, SL_NOWHERE, NULL, "cannot reach Kafka at %s: %s", admin->brokers, why);
	sl_diag_hint(diags, "is it running, and is the address right?");
	return SL_EUNREACHABLE;
}

static rd_kafka_event_t *await(struct admin *admin, struct sl_diags *diags)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(admin->queue, admin->timeout_ms + 1000);
	if (!event) {
		unreachable(admin, "no answer in time", diags);
		return NULL;
	}
	if (rd_kafka_event_error(event)) {
		unreachable(admin, rd_kafka_event_error_string(event), diags);
		rd_kafka_event_destroy(event);
		return NULL;
	}
	return event;
}

static rd_kafka_AdminOptions_t *options_new(const struct admin *admin, rd_kafka_admin_op_t op)
{
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(admin->rk, op);
	(void)!rd_kafka_AdminOptions_set_request_timeout(options, admin->timeout_ms, NULL, 0);
	return options;
}

/* --- metadata --- */

static int partitions_of(
	struct admin *admin, const char *const *names, int count, int32_t *ret_partitions, struct sl_diags *diags)
{
	const struct rd_kafka_metadata *md;
	rd_kafka_resp_err_t err = rd_kafka_metadata(admin->rk, 1, NULL, &md, admin->timeout_ms);
	if (err)
		return unreachable(admin, rd_kafka_err2str(err), diags);
	memset(ret_partitions, 0, sizeof(*ret_partitions) * (size_t)count);
	for (int i = 0; i < count; i++)
		for (int t = 0; t < md->topic_cnt; t++)
			if (strcmp(md->topics[t].topic, names[i]) == 0)
				ret_partitions[i] = md->topics[t].partition_cnt;
	rd_kafka_metadata_destroy(md);
	return 0;
}

int sl_kafka_topics_partitions(const struct sl_kafka_options *opt, const char *const *names, int count, int timeout_ms,
	int32_t *ret_partitions, struct sl_diags *diags)
{
	struct admin admin;
	int err = admin_open(&admin, opt, timeout_ms, diags);
	if (err)
		return err;
	err = partitions_of(&admin, names, count, ret_partitions, diags);
	admin_close(&admin);
	return err;
}

/* --- create --- */

static rd_kafka_NewTopic_t *new_topic(const struct sl_kafka_topic *topic, struct sl_diags *diags)
{
	char text[512] = "";
	rd_kafka_NewTopic_t *nt = rd_kafka_NewTopic_new(
		topic->name, topic->partitions, topic->replication > 0 ? topic->replication : -1, text, sizeof(text));
	if (!nt) {
		sl_diag_error(diags, SL_EINVAL, SL_NOWHERE, NULL, "topic %s: %s", topic->name, text);
		return NULL;
	}
	for (int i = 0; topic->settings && topic->settings[i]; i += 2)
		(void)!rd_kafka_NewTopic_set_config(nt, topic->settings[i], topic->settings[i + 1]);
	return nt;
}

static int created(rd_kafka_event_t *event, int *ret_existing, struct sl_diags *diags)
{
	size_t count;
	int err = 0;
	const rd_kafka_topic_result_t **results =
		rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
	for (size_t i = 0; i < count; i++) {
		rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[i]);
		const char *text = rd_kafka_topic_result_error_string(results[i]);
		if (code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
			*ret_existing += 1;
		else if (code)
			err = sl_diag_error(diags, SL_EREFUSED, SL_NOWHERE, NULL, "topic %s: %s",
				rd_kafka_topic_result_name(results[i]), text ? text : rd_kafka_err2str(code));
	}
	return err;
}

int sl_kafka_topics_create(const struct sl_kafka_options *opt, const struct sl_kafka_topic *topics, int count,
	int timeout_ms, int *ret_existing, struct sl_diags *diags)
{
	struct admin admin;
	int existing = 0, made = 0, err = admin_open(&admin, opt, timeout_ms, diags);
	if (err)
		return err;
	rd_kafka_NewTopic_t **list = calloc((size_t)count + 1, sizeof(void *));
	sl_assert(list);
	for (int i = 0; i < count && !err; i++) {
		list[made] = new_topic(&topics[i], diags);
		err = list[made] ? 0 : SL_EINVAL;
		made += list[made] ? 1 : 0;
	}
	if (!err) {
		rd_kafka_AdminOptions_t *options = options_new(&admin, RD_KAFKA_ADMIN_OP_CREATETOPICS);
		rd_kafka_CreateTopics(admin.rk, list, (size_t)made, options, admin.queue);
		rd_kafka_AdminOptions_destroy(options);
		rd_kafka_event_t *event = await(&admin, diags);
		err = event ? created(event, &existing, diags) : SL_EUNREACHABLE;
		if (event)
			rd_kafka_event_destroy(event);
	}
	rd_kafka_NewTopic_destroy_array(list, (size_t)made);
	free(list);
	admin_close(&admin);
	if (!err && ret_existing)
		*ret_existing = existing;
	return err;
}

/* --- check --- */

static const char *entry_value(const rd_kafka_ConfigResource_t *res, const char *name)
{
	size_t count;
	const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(res, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0)
			return rd_kafka_ConfigEntry_value(entries[i]);
	return NULL;
}

static bool at_least(const char *name)
{
	return strcmp(name, "max.message.bytes") == 0 || strcmp(name, "retention.ms") == 0 ||
	       strcmp(name, "retention.bytes") == 0 || strcmp(name, "min.insync.replicas") == 0;
}

static bool setting_holds(const char *name, const char *want, const char *have)
{
	int64_t w, h;
	if (!at_least(name) || sl_int_parse(want, &w) || sl_int_parse(have, &h))
		return strcmp(want, have) == 0;
	return h == -1 || (w != -1 && h >= w);
}

static int check_settings(
	const struct sl_kafka_topic *topic, const rd_kafka_ConfigResource_t *res, struct sl_diags *diags)
{
	int err = 0;
	for (int i = 0; topic->settings && topic->settings[i]; i += 2) {
		const char *name = topic->settings[i], *want = topic->settings[i + 1], *have = entry_value(res, name);
		if (have && setting_holds(name, want, have))
			continue;
		const char *fmt = "topic %s has %s=%s and needs %s%s";
		const char *bound = at_least(name) ? "at least " : "";
		if (!topic->create_only)
			err = sl_diag_error(diags, SL_EINVAL, SL_NOWHERE, NULL, fmt, topic->name, name,
				have ? have : "(unknown)", bound, want);
		else if (have)
			sl_diag_warn(diags, SL_NOWHERE, NULL, fmt, topic->name, name, have, bound, want);
		else
			continue;
		sl_diag_hint(diags, "kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=%s",
			topic->name, name, want);
	}
	return err;
}

/* What librdkafka puts into one batch; a topic refuses a larger batch than its own limit, however small the records
 * are. */
static int64_t batch_bytes(const struct sl_kafka_options *opt)
{
	int64_t bytes = opt->batch_bytes_max ? (int64_t)opt->batch_bytes_max : INT64_MAX, set;
	bytes = bytes < LIBRARY_BATCH_MAX ? bytes : LIBRARY_BATCH_MAX;
	for (int i = 0; opt->settings && opt->settings[i] && opt->settings[i + 1]; i += 2)
		if ((strcmp(opt->settings[i], "batch.size") == 0 ||
			    strcmp(opt->settings[i], "producer.batch.size") == 0) &&
			sl_int_parse(opt->settings[i + 1], &set) == 0)
			bytes = set;
	return bytes;
}

static void check_batch(const struct sl_kafka_topic *topic, const rd_kafka_ConfigResource_t *res,
	const struct sl_kafka_options *opt, struct sl_diags *diags)
{
	const char *have = entry_value(res, "max.message.bytes");
	int64_t bytes;
	if (!have || sl_int_parse(have, &bytes) || bytes >= batch_bytes(opt))
		return;
	sl_diag_warn(diags, SL_NOWHERE, NULL,
		"topic %s takes batches of %s bytes (max.message.bytes) and Sluice sends up to %lld (kafka.batch.size)",
		topic->name, have, (long long)batch_bytes(opt));
	sl_diag_hint(diags,
		"set kafka.batch.size to %s, or kafka-configs.sh --alter --entity-type topics --entity-name %s "
		"--add-config max.message.bytes=%lld",
		have, topic->name, (long long)batch_bytes(opt));
}

/* One answer for all topics and the broker. */
static int check_described(rd_kafka_event_t *event, const struct sl_kafka_topic *topics, int count,
	const struct sl_kafka_options *opt, struct sl_diags *diags)
{
	size_t found;
	int err = 0;
	const rd_kafka_ConfigResource_t **list =
		rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &found);
	for (size_t r = 0; r < found; r++) {
		const char *name = rd_kafka_ConfigResource_name(list[r]);
		if (rd_kafka_ConfigResource_error(list[r])) {
			sl_diag_warn(diags, SL_NOWHERE, NULL, "cannot read the settings of %s: %s", name,
				rd_kafka_ConfigResource_error_string(list[r]));
			continue;
		}
		for (int i = 0; i < count; i++) {
			if (rd_kafka_ConfigResource_type(list[r]) != RD_KAFKA_RESOURCE_TOPIC ||
				strcmp(topics[i].name, name) != 0)
				continue;
			int e = check_settings(&topics[i], list[r], diags);
			if (!e)
				check_batch(&topics[i], list[r], opt, diags);
			err = e ? e : err;
		}
	}
	return err;
}

static int describe(struct admin *admin, const struct sl_kafka_topic *topics, int count,
	const struct sl_kafka_options *opt, struct sl_diags *diags)
{
	rd_kafka_ConfigResource_t **list = calloc((size_t)count + 1, sizeof(void *));
	sl_assert(list);
	for (int i = 0; i < count; i++)
		list[i] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topics[i].name);
	rd_kafka_AdminOptions_t *options = options_new(admin, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	rd_kafka_DescribeConfigs(admin->rk, list, (size_t)count, options, admin->queue);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_event_t *event = await(admin, diags);
	int err = event ? check_described(event, topics, count, opt, diags) : SL_EUNREACHABLE;
	if (event)
		rd_kafka_event_destroy(event);
	rd_kafka_ConfigResource_destroy_array(list, (size_t)count);
	free(list);
	return err;
}

/* Brokers take one resource of their own kind a request. */
static void describe_broker(struct admin *admin, struct sl_diags *diags)
{
	const struct rd_kafka_metadata *md;
	if (rd_kafka_metadata(admin->rk, 0, NULL, &md, admin->timeout_ms))
		return;
	char id[16];
	snprintf(id, sizeof(id), "%d", md->broker_cnt ? md->brokers[0].id : 0);
	rd_kafka_metadata_destroy(md);
	rd_kafka_ConfigResource_t *res = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, id);
	rd_kafka_AdminOptions_t *options = options_new(admin, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	rd_kafka_DescribeConfigs(admin->rk, &res, 1, options, admin->queue);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_ConfigResource_destroy(res);
	rd_kafka_event_t *event = rd_kafka_queue_poll(admin->queue, admin->timeout_ms + 1000);
	if (event && !rd_kafka_event_error(event)) {
		size_t found;
		const rd_kafka_ConfigResource_t **list =
			rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &found);
		const char *value = found == 1 ? entry_value(list[0], "auto.create.topics.enable") : NULL;
		if (value && strcmp(value, "true") == 0) {
			sl_diag_warn(diags, SL_NOWHERE, NULL,
				"the brokers create unknown topics by themselves (auto.create.topics.enable)");
			sl_diag_hint(diags, "a mistyped topic name would go unnoticed; set it to false");
		}
	}
	if (event)
		rd_kafka_event_destroy(event);
}

static int check_partitions(const struct sl_kafka_topic *topic, int32_t have, struct sl_diags *diags)
{
	if (have == 0) {
		sl_diag_error(diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "topic %s does not exist", topic->name);
		sl_diag_hint(diags, "create it with: sluice topics create");
		return SL_ENOTFOUND;
	}
	if (have == topic->partitions || topic->partitions == 0 ||
		(!topic->partitions_exact && have > topic->partitions))
		return 0;
	sl_diag_error(diags, SL_EINVAL, SL_NOWHERE, NULL, "topic %s has %d partitions and needs %s%d", topic->name,
		have, topic->partitions_exact ? "" : "at least ", topic->partitions);
	if (topic->partitions_exact)
		sl_diag_hint(diags,
			"their number is fixed when the topic is created: it decides where every instance lives");
	return SL_EINVAL;
}

int sl_kafka_topics_check(const struct sl_kafka_options *opt, const struct sl_kafka_topic *topics, int count,
	int timeout_ms, struct sl_diags *diags)
{
	struct admin admin;
	int err = admin_open(&admin, opt, timeout_ms, diags);
	if (err)
		return err;
	const char **names = calloc((size_t)count + 1, sizeof(*names));
	int32_t *have = calloc((size_t)count + 1, sizeof(*have));
	struct sl_kafka_topic *there = calloc((size_t)count + 1, sizeof(*there));
	sl_assert(names && have && there);
	for (int i = 0; i < count; i++)
		names[i] = topics[i].name;
	int there_count = 0, missing = 0, wrong = 0;
	err = partitions_of(&admin, names, count, have, diags);
	for (int i = 0; !err && i < count; i++) {
		int e = check_partitions(&topics[i], have[i], diags);
		missing += e == SL_ENOTFOUND;
		wrong += e == SL_EINVAL;
		if (have[i] > 0)
			there[there_count++] = topics[i];
	}
	if (!err && there_count > 0)
		err = describe(&admin, there, there_count, opt, diags);
	if (err != SL_EUNREACHABLE)
		describe_broker(&admin, diags);
	if (!err || err == SL_EINVAL)
		err = missing ? SL_ENOTFOUND : wrong ? SL_EINVAL : err;
	free(names);
	free(have);
	free(there);
	admin_close(&admin);
	return err;
}

int sl_kafka_test_setting(const struct sl_kafka_options *opt, const char *topic, const char *name, const char *value)
{
	struct admin admin;
	int err = admin_open(&admin, opt, 0, NULL);
	if (err)
		return err;
	rd_kafka_ConfigResource_t *res = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
	rd_kafka_ConfigResource_set_config(res, name, value);
	rd_kafka_AdminOptions_t *options = options_new(&admin, RD_KAFKA_ADMIN_OP_ALTERCONFIGS);
	rd_kafka_AlterConfigs(admin.rk, &res, 1, options, admin.queue);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_ConfigResource_destroy(res);
	rd_kafka_event_t *event = await(&admin, NULL);
	if (event)
		rd_kafka_event_destroy(event);
	admin_close(&admin);
	return event ? 0 : SL_EUNREACHABLE;
}
