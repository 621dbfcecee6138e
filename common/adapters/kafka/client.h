/* Private to kafka/: the broker object, shared by producer and consumers. */
#ifndef SL_ADAPTERS_KAFKA_CLIENT_H
#define SL_ADAPTERS_KAFKA_CLIENT_H

#include "common/adapters/kafka/kafka.h"
#include "common/adapters/uv/glue.h"
#include "common/base/map.h"
#include <librdkafka/rdkafka.h>

struct kafka;

/* A record that the cluster has not confirmed. One block with the bytes behind it; librdkafka points into it. */
struct pending {
	struct pending *prev, *next;
	struct kafka *kafka;
	struct ktopic *topic;
	int32_t partition;
	struct sl_bytes key, value;
	struct sl_header *headers;
	int header_count;
	size_t bytes;
	uint64_t since; /* loop time when it was produced */
	sl_delivered_fn delivered;
	void *arg;
	int err; /* refused before it was sent */
};

struct ktopic {
	char *name;
	rd_kafka_topic_t *rkt; /* of the present producer; NULL: not yet */
	int32_t partitions;    /* 0: not known yet */
	int32_t fixed;	       /* 0: as many as there are; else those from here on are not used */
	/* Refused by the broker: what there is for the topic waits here, in order, until held_until. */
	struct pending *held_first, *held_last;
	uint64_t held_until;
	char *refused; /* why, and what to do; NULL: it takes records */
};

struct kafka {
	struct sl_broker base;
	uv_loop_t *loop;
	/* options */
	char *brokers, *client_id, *instance_id, *compression;
	char **settings;
	int setting_count;
	size_t message_bytes_max, batch_bytes_max, queue_bytes_max;
	bool keep_refused;
	int linger_ms, session_timeout_ms, queue_max;
	bool stamp_at_intake;
	void (*log)(void *arg, int level, const char *text);
	void *log_arg;
	/* state */
	uv_timer_t tick; /* a second net under the wake-ups */
	struct sl_later *later;
	struct sl_wake *wake; /* producer's events */
	rd_kafka_t *producer;
	rd_kafka_queue_t *events;
	struct sl_map topics; /* name -> ktopic */
	/* pending: first ... unsent ... last; before `unsent` all are in librdkafka's hands */
	struct pending *first, *last, *unsent;
	int pending_count;
	size_t pending_bytes;
	struct pending *refused; /* to be told in the next turn (through next) */
	bool broken;		 /* fatal error: a new producer is due */
	bool stalled;		 /* trouble tells of records that are not confirmed */
	uint64_t down_at;	 /* loop time when it was last down */
	uint64_t broken_at;	 /* loop time of the last exchange */
	bool down, closing, serving;
	uint64_t probed_at; /* loop time of the last question while down */
	struct sl_buf trouble;
	struct sl_consumer *consumers;
};

/* --- client.c --- */
/* A configuration with everything that both sides share; side: "producer" or "consumer". NULL with a diagnostic. */
rd_kafka_conf_t *sl_kafka_client_conf(struct kafka *kafka, const char *side, struct sl_diags *diags);
/* Sets one of ours unless the user's settings name it. */
void sl_kafka_client_default(
	const struct kafka *kafka, const char *side, rd_kafka_conf_t *conf, const char *name, const char *value);
/* Sets what must hold, whatever the user says. False with a diagnostic. */
bool sl_kafka_client_force(rd_kafka_conf_t *conf, const char *name, const char *value, struct sl_diags *diags);
void sl_kafka_client_log(const struct kafka *kafka, int level, const char *fmt, ...) SL_PRINTF(3, 4);
/* A broker answered. */
void sl_kafka_client_up(struct kafka *kafka);
/* The next tick comes by then. */
void sl_kafka_client_tick_in(struct kafka *kafka, uint64_t ms);
void *sl_kafka_client_alloc(size_t size);
char *sl_kafka_client_str(const char *text);
struct ktopic *sl_kafka_client_topic(struct kafka *kafka, const char *name);
/* What an error of the cluster means for a record, an offset or a question. */
int sl_kafka_client_err(rd_kafka_resp_err_t err);

/* --- producer.c --- */
bool sl_kafka_producer_start(struct kafka *kafka, struct sl_diags *diags);
int sl_kafka_producer_produce(
	struct sl_broker *broker, const struct sl_record *rec, sl_delivered_fn delivered, void *arg);
void sl_kafka_producer_kick(struct sl_broker *broker);
void sl_kafka_producer_serve(void *kafka);
/* What waits for time alone. */
void sl_kafka_producer_tick(struct kafka *kafka);
/* NULL: every topic takes what is produced. */
const char *sl_kafka_producer_refused(struct kafka *kafka);
void sl_kafka_producer_stop(struct kafka *kafka, int timeout_ms);

/* --- consumer.c --- */
int sl_kafka_consumer_new(struct sl_broker *broker, const struct sl_consumer_options *opt, struct sl_consumer **ret);
void sl_kafka_consumer_close(struct sl_consumer *con);
void sl_kafka_consumer_tick(struct sl_consumer *con);
struct sl_consumer *sl_kafka_consumer_next(struct sl_consumer *con);

/* --- rebalance.c --- */
void sl_kafka_consumer_hand_over(struct sl_consumer *con, const char *topic, int32_t partition);

/* --- fetch.c --- */
int sl_kafka_consumer_start(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset);
bool sl_kafka_consumer_poll(struct sl_consumer *con, struct sl_record *ret, void **ret_handle);
void sl_kafka_consumer_release(struct sl_consumer *con, void *handle);
void sl_kafka_consumer_pause(struct sl_consumer *con, const char *topic, int32_t partition, bool paused);

/* --- offsets.c --- */
int sl_kafka_consumer_commit(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset,
	const char *metadata, void (*done)(void *arg, int err), void *arg);
int sl_kafka_consumer_committed(
	struct sl_consumer *con, const char *topic, int32_t partition, int64_t *ret_offset, char **ret_metadata);

#endif
