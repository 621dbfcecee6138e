/* A Kafka cluster inside the process (librdkafka's mock: real protocol on loopback, memory only) for `sluice dev`.
 * No topic admin, create time instead of append time, about 5 MB a partition. One thread. */
#ifndef SL_ADAPTERS_KAFKA_MOCK_H
#define SL_ADAPTERS_KAFKA_MOCK_H

#include "common/base/err.h"
#include <stdint.h>

struct sl_kafka_mock;
/* NULL: librdkafka could not open its sockets. */
struct sl_kafka_mock *sl_kafka_mock_new(void);
/* "127.0.0.1:PORT", lives as long as the mock. */
const char *sl_kafka_mock_brokers(const struct sl_kafka_mock *mock);
/* 0, or SL_EEXISTS, SL_EINVAL. */
SL_MUST_CHECK int sl_kafka_mock_topic(struct sl_kafka_mock *mock, const char *topic, int32_t partitions);
void sl_kafka_mock_free(struct sl_kafka_mock *mock);

#endif
