/* The broker port on librdkafka, driven by a libuv loop.
 *
 * Owner: the service. Loop thread only; librdkafka's own threads are not seen from outside. After close the memory of
 * loop handles goes when the loop has run its close callbacks. A consumer may be closed in its own callbacks; the
 * broker may not be closed in a delivery callback. Records that were polled are released before their consumer closes,
 * or die with it. */
#ifndef SL_ADAPTERS_KAFKA_KAFKA_H
#define SL_ADAPTERS_KAFKA_KAFKA_H

#include "common/base/diag.h"
#include "common/ports/broker.h"
#include <stdbool.h>
#include <uv.h>

/* Borrowed until sl_broker_kafka_new returns; what is kept is copied. Zero means the default. */
struct sl_kafka_options {
	const char *brokers;   /* "host:port,..." */
	const char *client_id; /* default "sluice" */
	/* group.instance.id: a restarted process has its partitions back at once (R7). A member with one does not leave
	 * when it closes: its partitions go to others when its session ends. NULL: an ordinary member, leaves at once.
	 */
	const char *instance_id;
	/* librdkafka settings, name and value in turn, NULL at the end; may be NULL. "producer.NAME" and
	 * "consumer.NAME" are for one side only. They win over ours, except those that keep data safe (acks,
	 * idempotence, offsets). */
	const char *const *settings;
	size_t message_bytes_max; /* largest record that is produced; default 5 MiB */
	size_t batch_bytes_max;	  /* largest batch, unless a single record is larger: below every topic's
				     max.message.bytes; default librdkafka's */
	/* What a broker refuses for a reason that people can mend (size, permission, a missing topic, a policy) stays
	 * and is sent again, in order, until it is taken. False: such a record is told as SL_ETOOBIG or SL_EREFUSED. */
	bool keep_refused;
	const char *compression; /* none, lz4, zstd, snappy, gzip; default lz4 */
	int linger_ms;		 /* default 2 */
	int session_timeout_ms;	 /* default 10 000 */
	int queue_max;		 /* unconfirmed records before SL_EAGAIN; default 100 000 */
	size_t queue_bytes_max;	 /* and their bytes; default 256 MiB */
	bool stamp_at_intake;	 /* time_ms is our clock at intake, never going back: for brokers without LogAppendTime
				    (mock) */
	/* What people should know: syslog levels (3 error, 4 warning, 6 information). NULL: silence. */
	void (*log)(void *arg, int level, const char *text);
	void *log_arg;
	struct sl_diags *diags; /* what is wrong with the settings; may be NULL */
};

/* NULL: a setting is wrong (see diags). Does not wait for brokers: while none answers, produce queues, and a line is
 * logged when that state begins and ends. */
struct sl_broker *sl_broker_kafka_new(uv_loop_t *loop, const struct sl_kafka_options *opt);

/* Whether a broker answered lately and takes what is produced; *ret_text (borrowed until the next call): what the
 * trouble is and what to do. For /readyz. */
bool sl_kafka_reachable(struct sl_broker *broker, const char **ret_text);
/* A group (borrowed) that has not told one of our consumers yet which partitions it gets, or NULL. Until it has, a
 * partition that another member gives up for us is still on the way. */
const char *sl_kafka_joining(const struct sl_broker *broker);
/* From now on the topic has `count` partitions for us, also for keys, whatever is added to it; 0: as many as it has,
 * asked anew. Before its consumer is made. */
void sl_kafka_fix_partitions(struct sl_broker *broker, const char *topic, int32_t count);
/* Unconfirmed records and their bytes. */
void sl_kafka_queued(struct sl_broker *broker, int *ret_count, size_t *ret_bytes);
/* For tests: the producer meets a fatal error now (R12). */
void sl_kafka_test_fatal(struct sl_broker *broker);

#endif
