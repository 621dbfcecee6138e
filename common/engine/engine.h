/* The engine: (actor state, input, position, now) -> (actor state', effects). No clock, no I/O, no globals, no randomness
 * that is not derived (R3); libjq behind common/expr is its one outside call. An actor is stepped by one thread. */
#ifndef SL_ENGINE_ENGINE_H
#define SL_ENGINE_ENGINE_H

#include "common/engine/plans.h"
#include "common/model/msg.h"

struct sl_limits {                      /* R9; 0 in no field means "none" unless said */
	int64_t state_bytes_max;        /* data of one instance, estimated; default 1 MiB */
	int inbox_max;                  /* events; default 1000 */
	int64_t inbox_bytes_max;        /* default 1 MiB */
	int steps_max;                  /* node visits per input before the instance faults; default 100 000 */
	int in_flight_max;              /* iterations of one foreach at a time; default 1000 */
	int64_t early_window_ms;        /* default 10 000; 0: off */
	int early_max;                  /* early events per mailbox; default 1000 */
	int join_max;                   /* members waiting in one join; default 1000 */
	int fan_out_max;                /* deliveries of one event per effect chunk; default 1000 */
	int hops_max;                   /* extension `sluicehops`; default 100 */
	int64_t retention_ms;           /* ended instances stay readable; default 7 days */
	int64_t idle_ms;                /* an idle mailbox without contents goes after; default 1 h */
	int64_t retry_delay_max_ms;     /* autoRetries cap; default 1 h */
	int transitions_max;            /* kept per instance; default 50 */
	int ring_max, effect_ring_max;  /* R6: 256, 1024 */
	int lifecycle_level;            /* 0 none, 1 instance, 2 state, 3 action */
};
void sl_limits_default(struct sl_limits *limits);

/* Partitions in whose local mailbox of an event type somebody has waited, known to the router beyond what the plans tell: instances
 * that a command started and that wait for their start event (A169), keys whose value turned out to be unknown. */
struct sl_waits {
	int32_t *partitions;
	int count, cap;
};

struct sl_engine {
	const struct sl_plans *plans;   /* borrowed */
	struct sl_limits limits;
	int32_t partitions;             /* of sluice.instances */
	const struct sl_map *waits;     /* "NS~TYPE" ('*': any type) -> struct sl_waits; borrowed, NULL: none */
	uint64_t seed;                  /* jitter derives from (seed, instance id, node, attempt) */
	bool single;                    /* sluice test/run: serials are small numbers instead of hashes (readable ids) */
};

enum sl_status { SL_RUNNING, SL_WAITING, SL_SUSPENDED, SL_COMPLETED, SL_FAULTED, SL_CANCELLED };
const char *sl_status_text(enum sl_status status);

enum sl_actor_kind { SL_ACTOR_INSTANCE, SL_ACTOR_MAILBOX };
struct sl_instance;     /* engine/instance.h */
struct sl_mailbox;      /* engine/mailbox.h */

/* What the store's indexes need to know of an actor. */
struct sl_summary {
	bool exists;                    /* false: nothing is stored (never was, or gone) */
	enum sl_status status;          /* instances */
	char plan[65];                  /* instances: plan hash */
	char workflow[129];             /* instances */
	int64_t created_ms, updated_ms;
	int64_t expires_ms;             /* 0: does not expire */
};

struct sl_actor {
	enum sl_actor_kind kind;
	const char *ns, *id;            /* owned copies; id: address (model/id.h) */
	struct sl_summary committed;    /* as of the last load or sl_actor_committed: owner's bookkeeping */
	struct sl_instance *inst;       /* one of the two; NULL while it does not exist */
	struct sl_mailbox *box;
	size_t bytes;                   /* estimated memory, for the cache bound; as of the last load or sl_actor_committed */
	size_t counted;                 /* owner's bookkeeping: what the cache has counted for it */
};

/* An actor that does not exist yet (nothing stored). */
struct sl_actor *sl_actor_new(const char *ns, const char *id);
void sl_actor_free(struct sl_actor *actor);

/* Stored form: a Redis hash, field -> value. Values are JSON texts (redis-cli is a debugging tool); unknown fields and unknown
 * members are kept. */
struct sl_field { const char *name; struct sl_bytes value; };
/* SL_EPARSE with a diagnostic when the stored state is damaged; SL_ENOTFOUND when its plan is not known. */
SL_MUST_CHECK int sl_actor_load(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_field *fields, int count, struct sl_diags *diags);
/* Fields changed since load or the last sl_actor_committed: value.ptr NULL = delete. Memory in `arena`. *ret_gone: delete the whole key. */
void sl_actor_changes(struct sl_actor *actor, struct sl_arena *arena, struct sl_field **ret, int *ret_count, bool *ret_gone);
/* The changes were committed. */
void sl_actor_committed(struct sl_actor *actor);
void sl_actor_summary(const struct sl_actor *actor, struct sl_summary *ret);

/* One step. `now_ms`: the record's append time (R11 is applied inside). Effects are added to fx with ns, from, id and
 * time_ms set. Returns 0 (also when the input changed nothing: duplicate, late); SL_ENOTFOUND: the plan that the
 * input or the state names is not known here - nothing was changed, catch up with the definitions and step again.
 * Errors of the workflow are no errors of the step. */
SL_MUST_CHECK int sl_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in, const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx);

/* Sets ns, from, id, time_ms of all effects of a step (from `first` on). */
void sl_effects_stamp(struct sl_effects *fx, int first, const struct sl_actor *actor, const struct sl_pos *pos, int64_t now_ms);


/* Visits the instances that an event at this mailbox will probably be delivered to (its subscribers), until visit says false:
 * their states are read together with the mailbox's next batch. Nothing for instances. */
void sl_actor_neighbours(const struct sl_actor *actor, bool (*visit)(void *arg, const char *ns, const char *id), void *arg);

/* Nothing is going on: an instance has ended, or a mailbox holds neither subscriptions nor claims, joins or early events. It is hardly
 * asked for again soon. */
bool sl_actor_idle(const struct sl_actor *actor);

#endif
