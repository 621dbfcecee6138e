/* What the programs of the bench share: clients of Kafka, the clock, percentiles, events. */
#ifndef BENCH_H
#define BENCH_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

double now_ms(void);
/* Ends the program. */
void die(const char *what, const char *why) __attribute__((noreturn));
const char *brokers(void); /* SLUICE_KAFKA_BROKERS */
/* settings: name, value, ..., NULL */
rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings);
rd_kafka_t *producer(void);
int partition_count(rd_kafka_t *rk, const char *topic);
/* Reads all partitions of the topic, from `back` records before their ends. */
rd_kafka_t *reader(const char *topic, int64_t back);

/* An event in structured mode: type, id RUN-I-PART, attribute benchid RUN-I, data {number, name, sent, items}. */
struct event { const char *type, *run; long i, items; int part; };
void publish(rd_kafka_t *rk, const char *topic, const struct event *ev);

/* Of a lifecycle event: false if it is no `what` ("completed", "started"); ret_sent: ms, 0 if it holds none. */
bool lifecycle_is(const rd_kafka_message_t *msg, const char *what, double *ret_sent);

struct samples { double *items; long count, cap; };
void samples_add(struct samples *s, double value);
double samples_at(struct samples *s, int per_cent); /* sorts; -1: none */

#endif
