/* Private to the executor: partitions, actions in hand, hosts.
 *
 *   record -> UNDECODED -> WAIT_PLAN -> (EVALUATING ->) QUEUED -> CALLING -> SENDING -> DELIVERING -> finished
 *               dead letter ----------------------------------------------------^
 *
 * An action is in the list that its stage names, always; in EVALUATING, CALLING and DELIVERING it waits for a callback.
 * Whoever drops one that waits for the helper or for a delivery sets `gone`; what comes back then is freed. */
#ifndef SL_EXECUTOR_WORK_H
#define SL_EXECUTOR_WORK_H

#include "services/common/schemas.h"
#include "services/executor/executor.h"
#include "services/executor/tracker.h"

enum stage { UNDECODED, WAIT_PLAN, EVALUATING, QUEUED, CALLING, SENDING, DELIVERING, LANDED };

struct act;
struct list {
	struct act *first, *last;
	int count;
};

/* A partition of sluice.actions. */
enum part_stage { PART_TAKE, PART_TAKING, PART_RUN, PART_STOPPED };
struct part {
	struct sl_executor *ex;
	struct part *next;
	char *topic;
	int32_t partition;
	enum part_stage stage;
	bool gone; /* revoked; freed when nothing is out */
	bool handing, handed; /* another executor is to have it: what is called is finished, nothing more begun; told so */
	int out;   /* callbacks that will still come, and what they brought and is not looked at */
	struct sl_tracker tracker;
	int64_t seen; /* next offset to be read */
	bool committing, dirty;
	int64_t commit_at_ms, retry_at_ms;
	struct sl_map actions; /* action id -> newest struct act of that action in hand */
	struct sl_map recent, older; /* marks of the last actions taken: what comes again is no second call (R6) */
};

struct host {
	char *name;
	int in_flight;
	struct list queue;
	struct host *next_ready; /* in ex->ready_hosts */
	bool ready;
};

struct act {
	struct act *prev, *next; /* in the list of its stage */
	struct list *list;
	struct part *part;
	int64_t offset;
	enum stage stage;
	bool gone;	      /* dropped while a callback was out */
	bool told_definition; /* the helper has been given the definition for this one */
	struct sl_arena arena;
	struct sl_record raw; /* copy, until decoded */
	size_t bytes;
	struct sl_msg msg;
	struct act *older;    /* same action id, still in hand */
	struct sl_plan *plan; /* own reference */
	const struct sl_function *function;
	struct sl_http_request req;
	struct host *host;
	struct sl_http_handle *handle;
	int64_t started_ms;
	jv data, error;	      /* the answer; owned */
	struct sl_record out; /* what is to be sent */
	int delivered;	      /* error of the delivery */
	bool letter;	      /* `out` is a dead letter */
};

struct sl_executor {
	struct sl_executor_options opt;
	struct sl_schemas *schemas;
	struct sl_evaluator *inline_helper;
	struct sl_consumer *con;
	struct part *parts;
	struct list undecoded, wait_plan, asking, evaluating, calling, sending, delivering, landed;
	/* asking: EVALUATING, but nobody has been asked yet; queued ones are with their hosts */
	struct sl_map hosts; /* name -> struct host */
	struct host *ready_hosts, *ready_last;
	int hand; /* all that are in hand */
	int64_t hand_bytes;
	int64_t defs_seen;
	bool paused, draining, again, closed;
	struct sl_timer *tick;
	int64_t tick_at_ms;
};

/* pipeline.c */
void ex_wake(struct sl_executor *ex);
int64_t ex_now(const struct sl_executor *ex);
void ex_move(struct act *act, struct list *list, enum stage stage); /* list NULL: in none */
typedef void (*ex_visit_fn)(struct act *act);
/* Visits all that are in hand; part NULL: of every partition. The visitor may free what it is given. */
void ex_each(struct sl_executor *ex, const struct part *part, ex_visit_fn visit);
/* The offset is finished and the action's memory goes. */
void ex_finish(struct act *act);
/* Drops an action whose answer nobody wants: cancels its call; its offset is finished if `finished`. */
void ex_drop(struct act *act, bool finished);

/* part.c: partitions come and go, offsets */
struct part *part_new(struct sl_executor *ex, const char *topic, int32_t partition);
void part_turn(struct part *part); /* take, commit, hand over */
void part_hand(struct part *part);
void part_revoke(struct part *part);
void part_free(struct part *part); /* nothing is out any more */

/* action.c: from the record to the call */
struct act *act_new(struct part *part, const struct sl_record *rec);
void act_free(struct act *act);
/* Decodes; false: not yet (schema on its way). */
bool act_decode(struct act *act);
/* Its plan is known, or never will be; false: not yet. */
bool act_prepare(struct act *act);
/* Asks the helper for one of `asking`, or evaluates it here when there is none. */
void act_ask(struct act *act);
/* The helper's answer (SENDING's or QUEUED's turn next), taken from `line`. */
void act_helped(struct act *act, int err, const char *line, size_t len);
/* Takes data or error, whichever is valid, as the answer and makes the record for it. */
void act_answer(struct act *act, jv data, jv error);
void act_timeout(struct act *act);
bool act_expired(const struct act *act, int64_t now_ms);

/* calls.c: hosts and calls */
void calls_queue(struct act *act);
void calls_start(struct sl_executor *ex);
void calls_ended(struct act *act); /* counts it out and takes it from the list; it is CALLING */
void calls_release(struct sl_executor *ex);

#endif
