/* Topics: creating them and checking that they are as Sluice needs them. For the command line and a service's start,
 * before its loop runs: these calls block, up to their timeout. */
#ifndef SL_ADAPTERS_KAFKA_ADMIN_H
#define SL_ADAPTERS_KAFKA_ADMIN_H

#include "common/adapters/kafka/kafka.h"

struct sl_kafka_topic {
	const char *name;
	int32_t partitions;
	bool partitions_exact; /* check: another number is an error; else only fewer are */
	int replication;       /* create: 0 = the cluster's default */
	/* Topic settings, name and value in turn, NULL at the end; may be NULL. check: max.message.bytes, retention.ms,
	 * retention.bytes and min.insync.replicas must be at least that (-1 = unlimited), others equal. */
	const char *const *settings;
	bool create_only; /* check: settings warn at most (public topics belong to their owners) */
};

/* Creates what is missing; one that exists already is left alone and counted in *ret_existing (may be NULL). Returns
 * 0, SL_EUNREACHABLE or SL_EREFUSED; diags says which and why. */
SL_MUST_CHECK int sl_kafka_topics_create(const struct sl_kafka_options *opt, const struct sl_kafka_topic *topics,
	int count, int timeout_ms, int *ret_existing, struct sl_diags *diags);

/* Errors: missing topics, wrong partitions or settings, each with what to do. Warnings: topics that would be created by
 * themselves (auto.create.topics.enable), batches that a topic would refuse, public topics below a number of ours.
 * Returns 0, SL_EUNREACHABLE, SL_ENOTFOUND (a topic is missing), SL_EINVAL (a topic is not as it must be: for people
 * who keep the topics) or SL_ECONFIG (opt). */
SL_MUST_CHECK int sl_kafka_topics_check(const struct sl_kafka_options *opt, const struct sl_kafka_topic *topics,
	int count, int timeout_ms, struct sl_diags *diags);

/* Partitions of topics that exist, for listing; 0 where there is none. ret_partitions holds count numbers. */
SL_MUST_CHECK int sl_kafka_topics_partitions(const struct sl_kafka_options *opt, const char *const *names, int count,
	int timeout_ms, int32_t *ret_partitions, struct sl_diags *diags);

/* For tests: gives the topic this setting, and no other. */
SL_MUST_CHECK int sl_kafka_test_setting(
	const struct sl_kafka_options *opt, const char *topic, const char *name, const char *value);

#endif
