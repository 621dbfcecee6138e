/* The executor: takes actions, calls services, answers the instances (design section 8). A pipeline object over the
 * ports: main.c runs it on Kafka, Redis and libcurl, the simulator and the tests on the memory adapters.
 *
 * One thread. Callbacks of the ports only note what came and call `wake`; turn() does the work. */
#ifndef SL_EXECUTOR_H
#define SL_EXECUTOR_H

#include "common/codec/codec.h"
#include "common/engine/plans.h"
#include "common/ports/broker.h"
#include "common/ports/caller.h"
#include "common/ports/clock.h"
#include "common/ports/helper.h"
#include "common/ports/store.h"
#include "services/common/definitions.h"
#include "services/common/topics.h"
#include "services/executor/evaluate.h"

struct sl_executor_options {
	struct sl_broker *broker; /* borrowed, as all of these */
	struct sl_store *store;
	struct sl_clock *clock;
	struct sl_caller *caller;
	struct sl_helper *helper;	    /* evaluates what uses secrets (R8); NULL: in this process */
	struct sl_definitions *definitions; /* the owner turns it; NULL: `plans` is filled by others */
	const struct sl_plans *plans;
	const struct sl_topics *topics;
	const char *group;   /* consumer group */
	sl_secret_fn secret; /* NULL: no secret has a value */
	void *secret_arg;
	struct sl_json_limits json; /* for answers */
	int hand_over_ms; /* calls under way may take so long when another executor is to have their partition; 0: dropped at once */
	/* 0 in these: the default behind */
	int in_flight_max;	/* calls at a time; 512 */
	int host_in_flight_max; /* of them to one host, so that a slow one holds up nobody; a quarter, at least 8 */
	int hand_max;		/* actions read and not finished, cancellations are looked for that far ahead; 10 000 */
	int64_t hand_bytes_max; /* the same in bytes; 32 MiB */
	int64_t timeout_ms;	/* of a call when the action has no deadline; 30 s */
	size_t answer_bytes_max; /* 1 MiB */
	size_t result_bytes_max; /* record for sluice.instances; 3 MiB */
	int64_t commit_ms;	 /* offsets are committed that often; 100 */
	void (*wake)(void *arg); /* turn() should be called soon */
	/* Cannot go on; text names what to do. */
	void (*fatal)(void *arg, int err, const char *text);
	void *arg;
};

struct sl_executor;

/* Joins the group. SL_ENOTFOUND: a topic is missing; SL_EUNREACHABLE. */
SL_MUST_CHECK int sl_executor_new(
	const struct sl_executor_options *opt, struct sl_executor **ret, struct sl_diags *diags);
/* One turn of everything that can go on; true: more is ready now. */
bool sl_executor_turn(struct sl_executor *ex);
/* Takes and starts nothing new; idle() tells when what was running is answered, delivered and committed. */
void sl_executor_drain(struct sl_executor *ex);
bool sl_executor_idle(const struct sl_executor *ex);
/* NULL: every partition that we have is at work; else why not. */
const char *sl_executor_ready(const struct sl_executor *ex);
/* Leaves the group and ends the calls. Callbacks may still come. Idempotent. */
void sl_executor_close(struct sl_executor *ex);
/* Closes, then frees everything: the ports must not call back any more (closed, or the process was killed in the memory
 * world). NULL is allowed. */
void sl_executor_free(struct sl_executor *ex);

#endif
