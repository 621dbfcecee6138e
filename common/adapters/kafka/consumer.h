/* Private to kafka/: a consumer. Each partition that is ours has a queue of its own, so that pausing is simply not
 * reading it (no refetch; librdkafka 2.0 loses or repeats around its own pause), and the consumer's main queue
 * carries only rebalances, commits and errors, which are served whether the service polls or not.
 *
 *     partition queues --poll()--> service          main queue --serve()--> assigned / revoked / fatal */
#ifndef SL_ADAPTERS_KAFKA_CONSUMER_H
#define SL_ADAPTERS_KAFKA_CONSUMER_H

#include "common/adapters/kafka/client.h"

struct source { /* a partition that is ours */
	char *topic;
	int32_t partition;
	rd_kafka_queue_t *queue;
	bool started, paused;
	bool ready;    /* may have records */
	bool starting; /* seek not done yet: start_at */
	int64_t start_at;
	int64_t time_ms; /* last stamp at intake */
};

struct retired { /* a librdkafka consumer that was replaced: lives until the service has released its records */
	struct retired *next;
	rd_kafka_t *rk;
	int handles;
};

struct handle { /* a record in the service's hands */
	struct handle *prev, *next;
	struct retired *of; /* NULL: of the present consumer */
	rd_kafka_message_t *msg;
	int header_cap;
	struct sl_header *headers;
};

enum news_kind { NEWS_ASSIGNED, NEWS_REVOKED, NEWS_FATAL };
struct news { /* to be told when librdkafka has returned */
	struct news *next;
	enum news_kind kind;
	int32_t partition;
	int err;
	char *text; /* topic, or the message */
};

struct offset_commit {
	struct offset_commit *prev, *next;
	struct sl_consumer *con;
	void (*done)(void *arg, int err);
	void *arg;
	int err;
};

struct sl_consumer {
	struct sl_consumer *next; /* of the broker */
	struct kafka *kafka;
	rd_kafka_t *rk;
	rd_kafka_queue_t *main;
	struct sl_wake *wake;
	struct sl_consumer_events events;
	char *group;
	char **topics;
	int topic_count;
	struct source **sources;
	int source_count, turn, run; /* poll: whose turn, how many records in a row */
	bool assigning;		     /* no group: partitions are not known yet */
	bool closed, serving, failed;
	bool joined, given;  /* the group has told its partitions, be it none; has given some */
	uint64_t joined_at;  /* loop time */
	bool remake;	    /* fenced by its own name: a new librdkafka consumer is due */
	uint64_t remade_at; /* loop time; 0: never */
	struct retired *retired;
	struct news *news, **news_last;
	struct handle *used, *spare;
	struct offset_commit *commits;			 /* on the way */
	struct offset_commit *finished, **finished_last; /* answered, to be told */
};

struct source *sl_kafka_consumer_source(struct sl_consumer *con, const char *topic, int32_t partition);
void sl_kafka_consumer_news(struct sl_consumer *con, enum news_kind kind, int32_t partition, int err, const char *text);
/* Seeks of started sources that librdkafka was not ready for. */
void sl_kafka_consumer_seek_again(struct sl_consumer *con);
void sl_kafka_consumer_handles_free(struct sl_consumer *con);
/* A message that carries an error; true: it stops the consumer. */
void sl_kafka_consumer_error(struct sl_consumer *con, const rd_kafka_message_t *msg);
/* Main queue and wake-ups. */
void sl_kafka_consumer_serve(void *con);

#endif
