/* The coordinator: routes public events and commands to sluice.instances, owns partitions of it and steps their actors
 * (design section 3). A pipeline object over the ports: main.c runs it on Kafka and Redis, `sluice test`, `sluice run` and
 * the simulator on the memory adapters.
 *
 * One thread. Callbacks of the ports only set flags and call `wake`; turn() does the work. */
#ifndef SL_COORDINATOR_H
#define SL_COORDINATOR_H

#include "common/codec/codec.h"
#include "common/engine/engine.h"
#include "common/ports/broker.h"
#include "common/ports/caller.h"
#include "common/ports/clock.h"
#include "common/ports/store.h"
#include "services/common/definitions.h"
#include "services/common/topics.h"

/* What is being stepped, for the watchdog (R7). Borrowed while the step lasts. */
struct sl_stepping {
	int32_t partition;
	int64_t epoch, offset;
	const char *path, *ns, *to; /* path: of the local effect, "." for the record itself */
};

struct sl_coordinator_options {
	struct sl_broker *broker;       /* borrowed, as all of these */
	struct sl_store *store;
	struct sl_clock *clock;
	struct sl_caller *caller;       /* fetches http(s) resources at deploy; NULL: refused */
	struct sl_definitions *definitions;     /* has been read to its end before start */
	struct sl_plans *plans;         /* filled by definitions */
	const struct sl_topics *topics;
	struct sl_limits limits;
	struct sl_json_limits json;
	enum sl_event_mode event_mode;
	const char *group;              /* prefix of the consumer groups: GROUP-route, GROUP-own */
	const char *const *resources_allow;     /* URL globs that a deployment may fetch, NULL-terminated */
	int batch_records_max;          /* 0 in these three: 1024, 4 MiB, 10 000 */
	int64_t batch_bytes_max;
	int local_steps_max;
	int64_t cache_bytes_max;        /* actors in memory, all partitions together; 0: 16 MiB */
	uint64_t seed;
	bool single;                    /* readable ids (sluice test, run) */
	void (*wake)(void *arg);        /* turn() should be called soon */
	/* Cannot go on; text names what to do. */
	void (*fatal)(void *arg, int err, const char *text);
	void *arg;
	/* Before each step, and with NULL after it. May be NULL. */
	void (*stepping)(void *arg, const struct sl_stepping *what);
	void *stepping_arg;
};

struct sl_coordinator;

/* Joins the groups. SL_ENOTFOUND: a topic is missing; SL_EUNREACHABLE. */
SL_MUST_CHECK int sl_coordinator_new(const struct sl_coordinator_options *opt, struct sl_coordinator **ret, struct sl_diags *diags);
/* One turn of everything that can go on; true: more is ready now. */
bool sl_coordinator_turn(struct sl_coordinator *co);
/* Takes nothing new; idle() tells when what was in hand is committed and delivered. */
void sl_coordinator_drain(struct sl_coordinator *co);
bool sl_coordinator_idle(const struct sl_coordinator *co);
/* NULL: every partition that we have is at work; else why not. */
const char *sl_coordinator_ready(const struct sl_coordinator *co);
/* Leaves the groups. Callbacks may still come. Idempotent. */
void sl_coordinator_close(struct sl_coordinator *co);
/* Closes, then frees everything: the ports must not call back any more. NULL is allowed. */
void sl_coordinator_free(struct sl_coordinator *co);

#endif
