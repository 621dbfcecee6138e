/* The cluster inside the process. */
#include "common/adapters/kafka/mock.h"
#include "common/base/log.h"
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>

struct sl_kafka_mock {
	rd_kafka_t *rk;
	rd_kafka_mock_cluster_t *cluster;
};

struct sl_kafka_mock *sl_kafka_mock_new(void)
{
	char text[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set_log_cb(conf, NULL);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!rk) {
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
	if (!cluster) {
		rd_kafka_destroy(rk);
		return NULL;
	}
	struct sl_kafka_mock *mock = calloc(1, sizeof(*mock));
	sl_assert(mock);
	mock->rk = rk;
	mock->cluster = cluster;
	return mock;
}

const char *sl_kafka_mock_brokers(const struct sl_kafka_mock *mock)
{
	return rd_kafka_mock_cluster_bootstraps(mock->cluster);
}

int sl_kafka_mock_topic(struct sl_kafka_mock *mock, const char *topic, int32_t partitions)
{
	rd_kafka_resp_err_t err = rd_kafka_mock_topic_create(mock->cluster, topic, partitions, 1);
	if (err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
		return SL_EEXISTS;
	return err ? SL_EINVAL : 0;
}

void sl_kafka_mock_free(struct sl_kafka_mock *mock)
{
	if (!mock)
		return;
	rd_kafka_mock_cluster_destroy(mock->cluster);
	rd_kafka_destroy(mock->rk);
	free(mock);
}
