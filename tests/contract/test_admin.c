/* What the Kafka adapter offers beyond the port: topics created and checked, settings passed through. */
#include "common/adapters/kafka/admin.h"
#include "tests/contract/rig.h"
#include <stdlib.h>
#include <string.h>

static void topics_are_checked(struct rig *rig)
{
	(void)rig;
	const char *topic = rig_name("check"), *missing = rig_name("missing");
	static const char *const made[] = {
		"message.timestamp.type", "LogAppendTime", "max.message.bytes", "2000000", NULL};
	static const char *const more[] = {
		"message.timestamp.type", "CreateTime", "max.message.bytes", "3000000", "retention.ms", "1000", NULL};
	struct sl_kafka_options opt = {.brokers = getenv("SLUICE_KAFKA_BROKERS")};
	struct sl_kafka_topic spec = {.name = topic, .partitions = 3, .partitions_exact = true, .settings = made};
	struct sl_diags diags;
	int existing = 0;
	sl_diags_init(&diags);
	CHECK_INT(sl_kafka_topics_create(&opt, &spec, 1, 10000, &existing, &diags), 0);
	CHECK_INT(existing, 0);
	CHECK_INT(sl_kafka_topics_create(&opt, &spec, 1, 10000, &existing, &diags), 0);
	CHECK_INT(existing, 1);
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	CHECK_INT(diags.error_count + diags.warning_count, 0);
	spec.settings = more;
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), SL_EINVAL);
	CHECK_INT(diags.error_count, 2);
	sl_diags_clear(&diags);
	spec.create_only = true; /* somebody else's topic: what we want of it warns */
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	CHECK_INT(diags.error_count, 0);
	CHECK_INT(diags.warning_count, 2);
	sl_diags_clear(&diags);
	spec.create_only = false;
	spec.settings = made;
	spec.partitions = 2;
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), SL_EINVAL);
	spec.partitions_exact = false;
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	spec.name = missing;
	sl_diags_clear(&diags);
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), SL_ENOTFOUND);
	CHECK(strstr(sl_diags_first(&diags), missing) != NULL);
	int32_t counts[2];
	CHECK_INT(sl_kafka_topics_partitions(&opt, (const char *const[]){topic, missing}, 2, 10000, counts, &diags), 0);
	CHECK_INT(counts[0], 3);
	CHECK_INT(counts[1], 0);
	opt.brokers = "127.0.0.1:1";
	sl_diags_clear(&diags);
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 500, &diags), SL_EUNREACHABLE);
	CHECK(strstr(sl_diags_first(&diags), "127.0.0.1:1") != NULL);
	sl_diags_release(&diags);
}

/* A batch of small records that is larger than the topic's limit would be refused. */
static void batches_that_a_topic_refuses_are_told(struct rig *rig)
{
	(void)rig;
	static const char *const small[] = {"max.message.bytes", "50000", NULL};
	const char *by_user[] = {"producer.batch.size", "40000", NULL};
	struct sl_kafka_options opt = {.brokers = getenv("SLUICE_KAFKA_BROKERS")};
	struct sl_kafka_topic spec = {.name = rig_name("batch"), .partitions = 1, .settings = small};
	struct sl_diags diags;
	sl_diags_init(&diags);
	CHECK_INT(sl_kafka_topics_create(&opt, &spec, 1, 10000, NULL, &diags), 0);
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	CHECK_INT(diags.warning_count, 1);
	CHECK(strstr(diags.first->text, "batch.size") && strstr(diags.first->hint, "50000"));
	sl_diags_clear(&diags);
	opt.batch_bytes_max = 50000;
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	CHECK_INT(diags.warning_count, 0);
	opt.batch_bytes_max = 60000;
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	CHECK_INT(diags.warning_count, 1);
	opt.settings = by_user;
	CHECK_INT(sl_kafka_topics_check(&opt, &spec, 1, 10000, &diags), 0);
	CHECK_INT(diags.warning_count, 1);
	sl_diags_release(&diags);
}

static void settings_are_passed_through(struct rig *rig)
{
	struct sl_diags diags;
	sl_diags_init(&diags);
	const char *bad[] = {"no.such.setting", "1", NULL},
		   *good[] = {"socket.timeout.ms", "5000", "consumer.fetch.min.bytes", "2", NULL};
	struct sl_kafka_options opt = {.brokers = "127.0.0.1:1", .settings = bad, .diags = &diags};
	CHECK(sl_broker_kafka_new(&rig->loop, &opt) == NULL);
	CHECK(strstr(sl_diags_first(&diags), "no.such.setting") != NULL);
	opt.settings = good;
	struct sl_broker *b = sl_broker_kafka_new(&rig->loop, &opt);
	CHECK(b != NULL);
	int32_t count;
	int err = b->ops->partitions(b, "t", &count);
	CHECK(err == SL_EUNREACHABLE || err == SL_EAGAIN);
	b->ops->close(b, 100);
	sl_diags_release(&diags);
}

static const struct test tests[] = {
	{"topics are checked", topics_are_checked, "kafka"},
	{"batches that a topic refuses are told", batches_that_a_topic_refuses_are_told, "kafka"},
	{"settings are passed through", settings_are_passed_through, "kafka"},
};

int main(int argc, char **argv)
{
	return rig_main(argc, argv, "kafka", "SLUICE_KAFKA_BROKERS", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
