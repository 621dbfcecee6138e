/* Port: the broker. Function tables; adapters: kafka/ (librdkafka) and memory/. All calls and callbacks happen on the
 * process's loop thread; a call never blocks and never calls back before it has returned.
 *
 * Contract (tests/contract/test_broker.c, test_group.c): records of one producer to one partition arrive in order of produce, none
 * lost once delivered(0) was called, at most the undelivered ones lost or duplicated at a crash; a consumer group gives each
 * partition to one member at a time; offsets start at 0 and rise. */
#ifndef SL_PORTS_BROKER_H
#define SL_PORTS_BROKER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/buf.h"

struct sl_header { const char *name; struct sl_bytes value; };
struct sl_record {
	const char *topic;
	int32_t partition;      /* produce: -1 = murmur2 of the key */
	int64_t offset;
	int64_t time_ms;        /* append time of the broker (consume) */
	struct sl_bytes key, value;
	const struct sl_header *headers;
	int header_count;
};

/* err 0: acknowledged by all in-sync replicas. SL_ETOOBIG, SL_EREFUSED: this record will never be taken.
 * Transient failures are retried inside without limit (R12). */
typedef void (*sl_delivered_fn)(void *arg, int err);

struct sl_consumer_events {
	void *arg;
	/* The partition is ours; nothing is fetched before start(). */
	void (*assigned)(void *arg, const char *topic, int32_t partition);
	/* NULL: a partition that is to go is revoked at once. Else: the group wants it for another member. It is still ours and
	 * nobody else's, commits are taken, and no more of its records are polled; our other partitions go on. Begin nothing new
	 * with it, finish what is under way, commit, then call hand_over. `revoked` always follows: after hand_over (perhaps not
	 * before others that were asked for with it are handed over too), when hand_over_ms are over, or when it shows that the
	 * group no longer counts us in (a commit ends with SL_EFENCED, ...). Without `handing`, as if it were NULL: what is lost
	 * already, and where the group's protocol leaves no time. While closing neither comes. */
	void (*handing)(void *arg, const char *topic, int32_t partition);
	/* No longer ours: drop what is in hand; records not yet given to the producer are not sent (R12). */
	void (*revoked)(void *arg, const char *topic, int32_t partition);
	/* Something may be there to poll (edge). */
	void (*readable)(void *arg);
	/* Cannot go on: a message for people that names the choices. The service stops. */
	void (*fatal)(void *arg, int err, const char *text);
};
struct sl_consumer_options {
	const char *group;      /* NULL: no group; every partition of the topics is assigned at once */
	const char *const *topics;
	int topic_count;
	struct sl_consumer_events events;
	int hand_over_ms;       /* longest time from `handing` to `revoked`; 0: `handing` is never called */
};

struct sl_consumer;
struct sl_broker;
struct sl_broker_ops {
	/* Queues a copy. SL_EAGAIN: the queue is full, try after a delivery. */
	int (*produce)(struct sl_broker *broker, const struct sl_record *rec, sl_delivered_fn delivered, void *arg);
	/* Hands over what produce queued, soon (end of turn). */
	void (*kick)(struct sl_broker *broker);
	/* Partitions of a topic; SL_ENOTFOUND, SL_EUNREACHABLE, or SL_EAGAIN while metadata is on its way. */
	int (*partitions)(struct sl_broker *broker, const char *topic, int32_t *ret_count);

	int (*consumer_new)(struct sl_broker *broker, const struct sl_consumer_options *opt, struct sl_consumer **ret);
	/* Fetch from `offset` (first record to come). SL_OFFSET_COMMITTED: where the group stands. Also after a rewind. */
	int (*start)(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset);
	/* The next record of any started partition; false: none now. Valid until release(handle). */
	bool (*poll)(struct sl_consumer *con, struct sl_record *ret, void **ret_handle);
	void (*release)(struct sl_consumer *con, void *handle);
	void (*pause)(struct sl_consumer *con, const char *topic, int32_t partition, bool paused);
	/* A partition of which `handing` told may go. Others: nothing happens. Commits must be answered before. */
	void (*hand_over)(struct sl_consumer *con, const char *topic, int32_t partition);
	/* Group offset: next record to read. done may be NULL; err SL_EFENCED: the group no longer counts us in. metadata may be NULL. */
	int (*commit)(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset, const char *metadata, void (*done)(void *arg, int err), void *arg);
	/* Offset and metadata (malloc'ed, may be NULL) of the group; offset -1: none. Synchronous on memory; on Kafka up to a few seconds.
	 * SL_EAGAIN: not while the group rebalances. */
	int (*committed)(struct sl_consumer *con, const char *topic, int32_t partition, int64_t *ret_offset, char **ret_metadata);
	/* First and one-behind-last offset. */
	int (*watermarks)(struct sl_broker *broker, const char *topic, int32_t partition, int64_t *ret_low, int64_t *ret_high);
	/* Leaves the group, within a second or so; frees. */
	void (*consumer_close)(struct sl_consumer *con);
	/* Waits up to timeout_ms for queued records; frees the broker. */
	void (*close)(struct sl_broker *broker, int timeout_ms);
};
#define SL_OFFSET_COMMITTED (-1000)
#define SL_OFFSET_BEGINNING (-2)

struct sl_broker { const struct sl_broker_ops *ops; };

#endif
