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
	rd_kafka_queue_t *aside; /* NULL, or where it is read meanwhile */
	bool started, paused;
	bool handing, handed; /* the group wants it for another; the service has done with it */
	bool ready;    /* may have records */
	bool starting; /* seek not done yet: start_at */
	int64_t start_at, next; /* next: offset behind the last record that was polled */
	int64_t time_ms; /* last stamp at intake */
};

struct retired { /* a librdkafka consumer besides the present one: lives until the service has released its records */
	struct retired *next;
	rd_kafka_t *rk;
	struct joining *joining;
	int handles;
};

struct handle { /* a record in the service's hands */
	struct handle *prev, *next;
	struct retired *of; /* NULL: of the present consumer */
	rd_kafka_message_t *msg;
	int header_cap;
	struct sl_header *headers;
};

enum news_kind { NEWS_ASSIGNED, NEWS_HANDING, NEWS_REVOKED, NEWS_FATAL };
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
	rd_kafka_topic_partition_list_t *parts; /* while it waits */
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
	struct joining *joining;
	bool rejoins;		/* librdkafka joins again when it has the rest of this assignment */
	uint64_t rejoin_until;	/* loop time until which its request for that is awaited; 0: it is not */
	int hand_over_ms;
	rd_kafka_topic_partition_list_t *wanted; /* NULL, or a revocation that is not answered yet */
	uint64_t wanted_until;
	struct retired *aside; /* a second consumer, meanwhile */
	rd_kafka_queue_t *aside_main;
	bool remake;	    /* fenced by its own name: a new librdkafka consumer is due */
	uint64_t remade_at; /* loop time; 0: never */
	struct retired *retired;
	struct news *news, **news_last;
	struct handle *used, *spare;
	struct offset_commit *waiting, **waiting_last;	 /* for the group's new generation */
	struct offset_commit *commits;			 /* on the way */
	struct offset_commit *finished, **finished_last; /* answered, to be told */
};

/* --- consumer.c --- */
struct source *sl_kafka_consumer_source(struct sl_consumer *con, const char *topic, int32_t partition);
void sl_kafka_consumer_news(struct sl_consumer *con, enum news_kind kind, int32_t partition, int err, const char *text);
/* A message that carries an error; true: it stops the consumer. */
void sl_kafka_consumer_error(struct sl_consumer *con, const rd_kafka_message_t *msg);
/* Asks the group to be let in; from within a rebalance: once more after it. */
int sl_kafka_consumer_join(struct sl_consumer *con);
/* librdkafka's settings; group NULL: it belongs to none. */
rd_kafka_conf_t *sl_kafka_consumer_conf(struct sl_consumer *con, const char *group, struct sl_diags *diags);
/* Main queue and wake-ups. */
void sl_kafka_consumer_serve(void *con);

/* --- rebalance.c --- */
void sl_kafka_consumer_on_rebalance(
	rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts, void *kafka);
/* A reader without group gets all partitions, once their number is known. */
void sl_kafka_consumer_assign_all(struct sl_consumer *con);
void sl_kafka_consumer_drop_sources(struct sl_consumer *con);
/* Answers a revocation when all is handed over or the time is up. */
void sl_kafka_consumer_serve_wanted(struct sl_consumer *con);
/* A revocation that is not answered yet is none of ours any more; answer: librdkafka still waits for it. */
void sl_kafka_consumer_forget_wanted(struct sl_consumer *con, bool answer);
/* Notes when a librdkafka consumer made of conf joins its group; free it when that is destroyed. */
struct joining *sl_kafka_joining_new(rd_kafka_conf_t *conf);
/* librdkafka is joining its group again, or about to. */
bool sl_kafka_consumer_rejoins(const struct sl_consumer *con);
/* Commits must wait: it is, or may learn any moment that it must. Looks again in time. */
bool sl_kafka_consumer_commits_wait(const struct sl_consumer *con);

/* --- aside.c --- */
/* While a revocation waits: what stays is read aside, if that takes longer. */
void sl_kafka_aside_begin(struct sl_consumer *con);
void sl_kafka_aside_end(struct sl_consumer *con);
void sl_kafka_aside_serve(struct sl_consumer *con);
void sl_kafka_aside_leave(struct source *src);

/* --- fetch.c --- */
/* Seeks of started sources that librdkafka was not ready for. */
void sl_kafka_consumer_seek_again(struct sl_consumer *con);
void sl_kafka_consumer_handles_free(struct sl_consumer *con);

/* --- offsets.c --- */
/* Sends the commits that have waited. */
void sl_kafka_consumer_commit_waiting(struct sl_consumer *con);
/* Those on their way, and those that wait, end with SL_EFENCED. */
void sl_kafka_consumer_refuse_commits(struct sl_consumer *con);

#endif
