/* Private to the coordinator: the lanes of the road. A *route lane* is a partition of a public topic, an *own lane* a partition
 * of sluice.instances. Both advance by stages; a stage that must wait for Kafka or Redis leaves the lane where it is
 * and other lanes go on. */
#ifndef SL_COORDINATOR_ROAD_H
#define SL_COORDINATOR_ROAD_H

#include "services/common/schemas.h"
#include "services/coordinator/coordinator.h"

/* Records in hand of one partition, oldest first. */
struct pending { struct sl_record rec; void *handle; };
struct inbox { struct pending *items; int head, count, cap; };

/* --- route lanes --- */
struct route_lane;
struct route_batch {                    /* records whose offset moves together (R1) */
	struct route_lane *lane;
	struct sl_arena arena;
	struct sl_record *records;      /* what they caused */
	int count, cap, sent, waiting;  /* waiting: deliveries still out */
	int64_t next_offset;            /* behind its last record */
	bool closed;                    /* nothing more will be added */
	struct route_batch *next;
};
enum route_stage { ROUTE_TAKE, ROUTE_TAKING, ROUTE_RUN, ROUTE_DEPLOY, ROUTE_STOPPED };
struct route_lane {
	struct sl_coordinator *co;
	const char *topic, *ns;         /* ns NULL: the command topic */
	int32_t partition;
	enum route_stage stage;
	struct inbox inbox;
	struct route_batch *first, *last;       /* in order of offset */
	int batch_count;
	int64_t acked;                  /* next offset of the last commit asked for, -1 none */
	int64_t done;                   /* next offset behind all finished batches */
	bool acking;
	uint64_t defs_ticket;           /* 0: none asked */
	struct deploy *deploy;          /* ROUTE_DEPLOY */
	bool paused, gone;              /* gone: revoked, freed when nothing is out */
	bool late;                      /* reads further behind than the early window */
	bool waiting;                   /* for an answer */
	int out;                        /* callbacks that will still come */
	struct route_lane *next_gone;
};

/* --- own lanes --- */
#define SWEEP_MAX 1000                  /* actors that one sweep looks at */
#define SWEEP_ROUNDS_MAX 100            /* sweeps that one asks for when there are more */

struct work {                           /* one input to step; kind NONE: not decodable, msg.reason says why */
	struct sl_msg msg;
	const char *path;               /* of effect indexes, "" for a record */
	int64_t offset, time_ms;
};
struct todo { struct work *items; int count, cap; };    /* a stack: the last is next */

enum own_stage {
	OWN_PROVE,              /* a mirror commit must show that the group counts us in (R4) */
	OWN_TAKE,               /* raise the epoch, read the header */
	OWN_RUN,                /* idle, or between the stages of a batch */
	OWN_DEFS,               /* definitions as of the intake */
	OWN_LOAD,               /* read what is missing */
	OWN_NOTE,               /* careful mode: note what is stepped next (R7) */
	OWN_STEP,
	OWN_WAITS,              /* tell the routers of local mailboxes that somebody waits at now */
	OWN_COMMIT,             /* waits for the last outbox (R2) */
	OWN_BACKOFF, OWN_STOPPED
};
struct own_lane {
	struct sl_coordinator *co;
	int32_t partition;
	enum own_stage stage;
	bool waiting;                   /* for an answer of the store or the broker */
	bool started, paused, gone;
	int out;                        /* callbacks that will still come */
	uint64_t session;               /* of the store, when the partition was taken */
	int64_t epoch, applied;         /* applied: offset of the last record that is in the store; -1 none */
	int64_t mirrored, mirror_at_ms; /* Kafka's committed offset merely mirrors `applied` */
	struct inbox inbox;
	struct sl_map actors;           /* "NS~ID" -> struct sl_actor: exact under our epoch */
	size_t actor_bytes;
	struct sl_timer *timer;         /* backoff */
	int backoff_ms;

	/* the batch in hand */
	struct sl_arena arena;
	struct sl_effects fx;           /* scratch of one step */
	struct todo stack;
	struct work *records;           /* decoded */
	int taken;                      /* records that the pass has begun */
	int limit;                      /* records of the batch */
	int64_t offset;                 /* of the record being worked on */
	int steps;
	int64_t bytes;                  /* changed state and outbox so far, estimated */
	bool cut;
	bool gave_up;                   /* a step of this batch: committed before anything else is risked (R7) */
	struct sl_map touched;          /* "NS~ID" -> actor stepped in this batch */
	struct sl_map missing;          /* "NS~ID" -> store key: to be read before the pass goes on */
	struct sl_effects outbox;       /* copies in order */
	struct sl_buf *why;             /* decisions of this batch: stream entries of several lines */
	int why_count, why_cap, why_lines;
	bool dirty;                     /* there is something to commit */
	uint64_t defs_ticket;
	struct sl_map told;             /* "NS~TYPE" -> self: the routers know that somebody here waits for it */
	struct sl_map telling;          /* to be told before this batch is committed; value NULL: the record is written */
	struct sl_map broken;           /* "NS~ID" -> text: stored state that could not be read */
	uint64_t schema_wanted;         /* fingerprint of a writer's schema that is being read, 0 none */
	bool sweep_wanted, sweep_read;
	jv sweep;                       /* expired members, read for a SWEEP */
	/* R7, careful.c. A place is "OFFSET:PATH" of what is read or stepped. */
	bool careful;                   /* one record at a time, a note before each step */
	bool note_read;                 /* the note to write is that of reading the first record */
	int64_t careful_until, high;    /* high: one behind the last record when the partition was taken */
	char *noted, *found;            /* places: of our note, and of the note that was there; NULL: none */
	int64_t found_count;            /* so many processes have ended there */
	int64_t note_epoch;             /* of the last note that this lane wrote */
	struct sl_map doomed;           /* place -> reason: to be given up */

	/* the outbox on its way (R2): the next commit waits for it */
	struct sl_arena emit_arena;
	struct sl_record *emit_first, *emit_later;      /* sluice.instances before the others */
	int emit_first_count, emit_later_count, emit_sent;
	int emit_out;                   /* deliveries still out */
	bool emitting;
	bool outbox_stored;             /* the store still holds one: a clean stop takes it away */
	int64_t commit_us, batch_us;    /* for metrics */
	struct own_lane *next_gone;
};

struct sl_coordinator {
	struct sl_coordinator_options opt;
	struct sl_arena arena;
	struct sl_engine engine;
	struct sl_consumer *routed, *owned;
	struct sl_schemas *schemas;
	int32_t partitions;             /* of sluice.instances */
	int lane_count;                 /* own lanes that we have */
	size_t actor_bytes;             /* of all caches */
	struct sl_map routes;           /* "topic/partition" -> struct route_lane */
	struct own_lane **lanes;        /* by partition; NULL: not ours */
	struct own_lane *gone_own;      /* revoked, answers still out */
	struct own_lane *noting;        /* the one lane whose note may stand (R7); NULL: none */
	struct route_lane *gone_routes;
	bool draining, closed, again;
	/* sluice:defs: one read in flight serves every lane that asked before it started */
	uint64_t defs_asked, defs_started, defs_finished;
	bool defs_reading;
	int64_t defs_offset;            /* highest definitions offset that counts */
	uint64_t defs_session;          /* of the store that named it */
	struct sl_timer *defs_timer;    /* tries again; NULL: none */
};

/* pipeline.c */
void co_wake(struct sl_coordinator *co);
void co_fatal(struct sl_coordinator *co, int err, const char *text);
/* Records of one batch now: the more lanes overlap, the smaller their batches, so that memory stays bounded. */
int co_batch_max(const struct sl_coordinator *co);
/* A ticket for "definitions as of now"; current() when a read that started after the ticket was drawn has come back and the
 * definitions are read that far (design section 5, Deploy and route). */
uint64_t co_defs_ticket(struct sl_coordinator *co);
bool co_defs_current(const struct sl_coordinator *co, uint64_t ticket);

/* inbox.c */
void inbox_add(struct inbox *inbox, const struct sl_record *rec, void *handle);
struct pending *inbox_at(struct inbox *inbox, int i);
/* Gives the n oldest back to the consumer. */
void inbox_drop(struct inbox *inbox, struct sl_coordinator *co, struct sl_consumer *con, int n);
void inbox_release(struct inbox *inbox, struct sl_coordinator *co, struct sl_consumer *con);

/* route.c */
struct route_lane *route_lane_new(struct sl_coordinator *co, const char *topic, int32_t partition);
void route_lane_turn(struct route_lane *lane);
void route_lane_free(struct route_lane *lane);
/* Adds to what the batch will send. */
void route_add(struct route_batch *batch, const struct sl_record *rec);
void route_add_msg(struct route_batch *batch, struct sl_msg *msg);      /* encodes; clears msg */

/* command.c: io.sluice.* events -> messages. Takes ev. True: it is a deployment, which must be alone in its batch. */
bool command_is_deployment(jv ev);
void command_route(struct route_batch *batch, jv ev, const struct sl_record *rec);
struct answer {                         /* data: owned, or invalid; time_ms: of the command's record */
	const char *ns, *command_id, *subject;
	bool ok;
	const char *reason;
	jv data;
	int64_t time_ms;
};
void command_answer(struct route_batch *batch, const struct answer *answer);
/* deploy.c: resources, compile, definition and pointer records, sluice:defs, answer. Takes ev. */
struct deploy *deploy_new(struct route_lane *lane, struct route_batch *batch, jv ev, int64_t time_ms);
bool deploy_turn(struct deploy *deploy);        /* true: finished, the answer is in the batch */
void deploy_free(struct deploy *deploy);        /* also while answers are out: they are then ignored */

/* own.c: stages of an own lane */
struct own_lane *own_lane_new(struct sl_coordinator *co, int32_t partition);
void own_lane_turn(struct own_lane *lane);
void own_lane_free(struct own_lane *lane);
bool own_lane_quiet(const struct own_lane *lane);
/* A question is on its way: the lane waits. When its answer has come, true: the lane is gone and nothing may be done with it. */
void own_ask(struct own_lane *lane);
bool own_answered(struct own_lane *lane);
/* Forgets what is in memory and takes the partition again (R4), at once or after a while. */
void own_retake(struct own_lane *lane, bool at_once);
/* own_take.c: the stages PROVE and TAKE */
void own_prove(struct own_lane *lane);
void own_take(struct own_lane *lane);
/* own_emit.c: sends what the producer takes; the records for sluice.instances are delivered before the others are sent. begin:
 * these; the last ones are delivered. */
void own_emit_begin(struct own_lane *lane, const struct sl_msg *msgs, int count);
void own_emit_turn(struct own_lane *lane);
/* own_ops.c: the commit of the batch in hand, in the lane's arena; outbox and todo are the caller's empty buffers. */
void own_ops(struct own_lane *lane, struct sl_commit *ret, struct sl_buf *outbox, struct sl_buf *todo);
/* own_cache.c: exact under our epoch. count() follows a change of the actor's size; trim() keeps all lanes' caches within
 * cache_bytes_max. */
void own_cache_add(struct own_lane *lane, const char *key, struct sl_actor *actor);
void own_cache_count(struct own_lane *lane, struct sl_actor *actor);
void own_cache_remove(struct own_lane *lane, const char *key, struct sl_actor *actor);
void own_cache_drop(struct own_lane *lane);
void own_cache_trim(struct sl_coordinator *co);
/* pass.c: steps until the batch is done, cut, or an actor is missing. */
enum pass_result { PASS_DONE, PASS_MISSING, PASS_NOTE };        /* NOTE: what is next must be noted first (R7) */
enum pass_result pass_run(struct own_lane *lane);
char *pass_key(struct sl_arena *arena, const char *ns, const char *id);         /* "NS~ID" */
/* Begins a batch: decodes and finds what must be read first. False: a writer's schema is missing. */
bool pass_begin(struct own_lane *lane);
/* Wants the actor to be read unless it is there. */
void pass_want(struct own_lane *lane, const char *ns, const char *id);
void pass_why_op(const struct own_lane *lane, int i, struct sl_op *ret);
/* Forgets the batch in hand (not the cache). */
void pass_reset(struct own_lane *lane);
void pass_dead_letter(struct own_lane *lane, const struct work *work, const char *reason);
void todo_push(struct todo *todo, const struct work *work);
void todo_clear(struct todo *todo);

/* careful.c (R7) */
/* Reads takes, note and proved notes out of the header of a partition that was just taken. */
void careful_taken(struct own_lane *lane, const struct sl_hash *header);
/* Why the place is to be given up; NULL: it is not. path "-": reading the record. */
const char *careful_doomed(struct own_lane *lane, int64_t offset, const char *path);
/* Gives up what is on top of the stack if it is doomed: true. */
bool careful_give_up(struct own_lane *lane);
bool careful_wants_note(struct own_lane *lane, int64_t offset, const char *path);
/* The note for what is next; it counts as written. */
struct sl_op careful_note(struct own_lane *lane);
/* Fields of the header that a commit up to `applied` removes. */
int careful_passed(struct own_lane *lane, struct sl_arena *arena, int64_t applied, const char ***ret);
void careful_committed(struct own_lane *lane);
/* Only one lane of a process may have a note in the store: what ends the process in another lane is not its fault. False: another
 * has one. careful_end: ours is gone, or no longer ours. */
bool careful_begin(struct own_lane *lane);
void careful_end(struct own_lane *lane);
void careful_release(struct own_lane *lane);

/* emit.c: a record for one effect; memory in arena. Returns an error when it can't be encoded. */
SL_MUST_CHECK int emit_record(struct sl_coordinator *co, struct sl_arena *arena, const struct sl_msg *msg, struct sl_record *ret);
#endif
