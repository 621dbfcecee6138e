/* An instance: one execution of a plan, as an actor. Private to common/engine.
 *
 * How a step runs: the input finds the frame that waits for it; the frame's node does what is next, entering children
 * as deep as it can, until it waits, is done or has failed. What is done or failed climbs to the parent's `child`
 * function. Only the scope loops over states and only lists loop over their items, so the native stack is as deep as
 * the definition.
 *
 * Who handles an error drops the frames below; nobody else does. An error that nobody handles leaves the whole tree as
 * it stands: the instance is faulted, and `retry` resumes every frame that has no child.
 *
 * Stored form (a Redis hash, JSON values): `h` header; `f:PATH` frame; `d:PATH` data of a frame; `c:PATH:N` collected
 * result; `b:N` inbox entry; `t:SLOT` transition; `r:SLOT` ring of event identities; `i:SLOT` ring of effect ids; `out`
 * the final data. What else is there is left alone. */
#ifndef SL_ENGINE_INSTANCE_H
#define SL_ENGINE_INSTANCE_H

#include "common/engine/frame.h"
#include "common/engine/ring.h"
#include "common/expr/expr.h"
#include "common/model/event.h"

/* What became of a frame. */
enum sl_out {
	SL_OUT_WAIT,   /* it waits, or has children that do */
	SL_OUT_DONE,   /* run->value, run->next */
	SL_OUT_FAILED, /* run->error */
	SL_OUT_ENDED   /* the whole instance ends now (0.8 `terminate`, A99) */
};

struct sl_inbox_item {
	int64_t n;
	jv ev;
	char *box;  /* mailbox that delivered it; NULL: addressed to the instance, or a start event */
	bool multi; /* other instances of the workflow got it too */
	bool start; /* made this instance: matches without its key; never stored */
	bool dirty, stored;
	int64_t bytes;
	struct sl_inbox_item *next;
};

struct sl_transition {
	int64_t n, time_ms;
	char *state, *cause;
	bool dirty, stored;
};

/* A mailbox that holds our subscription; set: index into plan->sets, -1: none (a join's). key: {attribute: value} or
 * invalid. */
struct sl_subscription {
	char *box;
	int set;
	jv key;
};

struct sl_instance {
	struct sl_plan *plan; /* a reference of its own; NULL only when gone */
	bool gone;	      /* purged or expired; what is stored is deleted by the next commit */
	enum sl_status status;
	int64_t created_ms, now_ms, ended_ms, expires_ms;
	int64_t next_token;
	int64_t timer;	/* of workflowExecTimeout, 0: none */
	bool stopping;	/* A21: the running state is the last */
	bool timed_out; /* A94: the runBefore chain runs, then the instance is cancelled */
	bool retrying;	/* the mailbox was asked for the claim */
	int hops;	/* highest sluicehops of the events that were consumed */
	char *traceparent, *command_id, *retry_command, *parent, *claim_box;
	int64_t parent_token;
	jv bindings; /* {attribute: canonical value} */
	jv handed;   /* marks of events that were handed back: a second life may take them again */
	jv handled;  /* last handled error: $WORKFLOW.error; invalid: none */
	jv error;    /* that the instance ended with */
	jv output;   /* final data */
	jv rest;     /* header members that this release does not know */
	struct sl_subscription *subs;
	int sub_count;
	struct sl_frame *root; /* NULL: nothing to run any more */
	struct sl_inbox_item *inbox, **inbox_end;
	int inbox_count;
	int64_t inbox_bytes, inbox_next;
	struct sl_transition *transitions; /* slot = n mod max */
	int transition_cap;
	int64_t transition_next;
	struct sl_ring events, effects;
	bool dirty, output_dirty, output_stored;
	struct sl_map deleted; /* stored fields that are no more */
	unsigned next_serial;
	int frame_count, call_count; /* frames; calls that are out */
	int64_t data_bytes;	     /* of all frames, estimated */
};

/* One step of an instance. */
struct sl_run {
	const struct sl_engine *eng;
	struct sl_actor *actor;
	const char *id; /* the actor's, in the effects' arena */
	struct sl_instance *inst;
	const struct sl_msg *in;
	const struct sl_pos *pos;
	int64_t now_ms;
	struct sl_effects *fx;
	int fx_first;
	int steps;  /* nodes entered by this input */
	bool fatal; /* the error is for no handler */
	bool local; /* the error arose here (filter, expression, data), not in a service */
	bool changed;
	jv value;		    /* of SL_OUT_DONE; invalid: none */
	jv error;		    /* of SL_OUT_FAILED */
	const struct sl_goto *next; /* chosen by a state's body; NULL: the state's own */
	jv vars;		    /* cache of variables, without iteration parameters */
	const struct sl_node *vars_state;
	char *cause; /* of the transitions of this step */
};

/* --- instance.c --- */
struct sl_instance *sl_instance_new(struct sl_plan *plan, const struct sl_limits *limits);
void sl_instance_free(struct sl_instance *inst);
SL_MUST_CHECK int sl_instance_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx);
bool sl_instance_ended(const struct sl_instance *inst);
int64_t sl_instance_token(struct sl_instance *inst);
/* A field of that name is stored and shall be no more. */
void sl_instance_delete(struct sl_instance *inst, const char *name);
size_t sl_instance_bytes(const struct sl_instance *inst);

/* --- instance_end.c --- */
/* The root's outcome, or that of the instance as a whole. */
void sl_instance_over(struct sl_run *run, enum sl_out out);
void sl_instance_cancel(struct sl_run *run, jv error);
/* Faulted at once, whatever runs: an error that no handler sees. Takes error. */
void sl_instance_fault(struct sl_run *run, jv error);
void sl_instance_timeout(struct sl_run *run);
/* Bytes of all data, estimated. */
int64_t sl_instance_measure(struct sl_instance *inst);
/* After a step: sizes within limits, status. */
void sl_instance_settle(struct sl_run *run);
void sl_instance_answer(struct sl_run *run, const char *command_id, bool ok, const char *reason);

/* --- instance_retry.c --- */
void sl_instance_retry(struct sl_run *run);
void sl_instance_claim_answer(struct sl_run *run);

/* --- instance_store.c, instance_load.c --- */
SL_MUST_CHECK int sl_instance_load(const struct sl_engine *eng, const char *ns, const struct sl_field *fields,
	int count, struct sl_instance **ret, struct sl_diags *diags);
void sl_instance_changes(const struct sl_actor *actor, struct sl_instance *inst, struct sl_arena *arena,
	struct sl_field **ret, int *ret_count, bool *ret_gone);
void sl_instance_committed(struct sl_instance *inst);
/* instance_sound.c: what of a frame does not fit the plan, NULL if all does; its parents fit. */
const char *sl_frame_unsound(const struct sl_instance *inst, const struct sl_frame *frame);
/* All stored fields are to be deleted: the shell that is left of a forgotten instance. */
void sl_instance_forget(struct sl_instance *inst);

/* --- instance_corr.c: correlation, inbox --- */
/* Which value has attribute `name` of a key, without its expression: binding, else scalar member of `data` (borrowed).
 */
bool sl_corr_value(const struct sl_instance *inst, const char *name, jv data, struct sl_buf *out);
void sl_corr_bind(struct sl_run *run, jv ev);
void sl_corr_bind_value(struct sl_run *run, const char *name, const char *value);
/* Subscribes at the mailbox of that key unless it is subscribed there. */
void sl_corr_subscribe(struct sl_run *run, int set, const char *const *values);
/* Sets whose values are known by now and that have no subscription yet. */
void sl_corr_eager(struct sl_run *run);
void sl_corr_started(struct sl_run *run);
/* Which set has exactly the names of `key` (borrowed); -1: none. */
int sl_corr_set_of(const struct sl_plan *plan, jv key);
/* Remembers a subscription; takes key. */
void sl_corr_add(struct sl_instance *inst, const char *box, jv key);
/* Subscribes again at every mailbox but `except` (NULL: at all). */
void sl_corr_resubscribe(struct sl_run *run, const char *except);
bool sl_corr_seen(struct sl_run *run, jv ev);
void sl_corr_remember(struct sl_run *run, jv ev);
/* Takes ev. False: full, the event went to the dead letter. */
bool sl_inbox_add(struct sl_run *run, jv ev, const char *box, bool multi, bool start);
void sl_inbox_put_back(struct sl_run *run, jv ev, const char *box, bool multi);
/* Takes the item out; the caller frees it. */
void sl_inbox_remove(struct sl_run *run, struct sl_inbox_item *item);
void sl_inbox_item_free(struct sl_inbox_item *item);
void sl_inbox_drop_starts(struct sl_run *run);
/* Ended: unsubscribes everywhere and hands the keyed inbox back. */
void sl_corr_leave(struct sl_run *run);
void sl_corr_why(struct sl_run *run, jv ev, const char *decision);

/* An armed await that its events have not satisfied yet. */
bool sl_await_waits(const struct sl_frame *frame);

/* --- node.c: dispatch --- */
enum sl_out sl_node_enter(struct sl_run *run, struct sl_frame *frame);
/* New frame for `node` under `parent`, entered. *ret_child: the frame. */
enum sl_out sl_node_start(struct sl_run *run, struct sl_frame *parent, const struct sl_node *node,
	enum sl_frame_part part, int index, struct sl_frame **ret_child);
enum sl_out sl_node_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out);
enum sl_out sl_node_timer(struct sl_run *run, struct sl_frame *frame);
/* A second life: a frame without children goes on where it stood, one with children sets its timer again. */
enum sl_out sl_node_resume(struct sl_run *run, struct sl_frame *frame);
/* The outcome of a frame goes up as far as it goes. */
void sl_node_climb(struct sl_run *run, struct sl_frame *frame, enum sl_out out);
/* Sets run->error; returns SL_OUT_FAILED. */
enum sl_out sl_node_fail(struct sl_run *run, const struct sl_frame *frame, const char *code, int status,
	const char *title, const char *fmt, ...) SL_PRINTF(6, 7);
enum sl_out sl_node_timeout(struct sl_run *run, const struct sl_frame *frame, const char *what);
/* Takes value. */
enum sl_out sl_node_done(struct sl_run *run, jv value);
void sl_node_touch(struct sl_frame *frame);

/* node kinds */
struct sl_node_ops {
	enum sl_out (*enter)(struct sl_run *run, struct sl_frame *frame);
	enum sl_out (*child)(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out);
	enum sl_out (*timer)(struct sl_run *run, struct sl_frame *frame);
	enum sl_out (*resume)(struct sl_run *run, struct sl_frame *frame); /* NULL: enter, if it has no child */
};
extern const struct sl_node_ops sl_ops_scope, sl_ops_state, sl_ops_actions, sl_ops_action, sl_ops_call, sl_ops_await,
	sl_ops_fork, sl_ops_branch, sl_ops_each, sl_ops_iteration, sl_ops_sleep, sl_ops_assign, sl_ops_emit,
	sl_ops_choose, sl_ops_raise;

/* node_state.c */
const struct sl_rule *sl_state_rule(struct sl_run *run, struct sl_frame *frame);
enum sl_out sl_scope_from(struct sl_run *run, struct sl_frame *frame, int state);

/* node_action.c: input of an action's body: fromStateData on the data. */
bool sl_action_input(struct sl_run *run, struct sl_frame *body, jv *ret);
int64_t sl_action_deadline(const struct sl_frame *body);
/* Iterations collect what these frames contribute. */
bool sl_each_collects(const struct sl_frame *frame);
void sl_call_result(struct sl_run *run);
void sl_call_cancel(struct sl_run *run, struct sl_frame *frame);
void sl_call_action_id(struct sl_run *run, const struct sl_frame *frame, char ret[static SL_UUID_TEXT]);

/* node_await.c */
/* Does a wait take the event? True: it did (and went on, if it was the last). Borrows ev. `token`: of an unkeyed
 * delivery. */
bool sl_await_offer(struct sl_run *run, jv ev, const char *box, bool multi, int64_t token);
void sl_await_disarm(struct sl_run *run, struct sl_frame *frame);
/* Keyed events that a wait collected and does not use go back to the inbox. */
void sl_await_put_back(struct sl_run *run, struct sl_frame *frame);

/* --- data.c: expressions, filters --- */
jv sl_data_vars(struct sl_run *run, struct sl_frame *frame);
/* Take input; false: run->error is set. */
bool sl_data_eval(struct sl_run *run, struct sl_frame *frame, int expr, jv input, jv *ret);
bool sl_data_test(struct sl_run *run, struct sl_frame *frame, int expr, jv input, bool *ret);
/* stateDataFilter and the like: null selects nothing (A03). Replaces the frame's document. */
bool sl_data_select(struct sl_run *run, struct sl_frame *frame, int expr);
/* Applies a filter to an incoming value (taken) and puts it into the frame's document. *ret_value (may be NULL): what
 * was selected, invalid if nothing is to be used. */
bool sl_data_apply(struct sl_run *run, struct sl_frame *frame, const struct sl_filter *filter, jv value, jv *ret_value);
/* Only the selecting. */
bool sl_data_filter(struct sl_run *run, struct sl_frame *frame, int select, jv value, jv *ret);
bool sl_data_span(struct sl_run *run, struct sl_frame *frame, const struct sl_span *span, int64_t *ret_ms);

/* --- publish.c --- */
bool sl_publish(struct sl_run *run, struct sl_frame *frame, const struct sl_emit *emit, jv data);

/* --- life.c --- */
void sl_life_started(struct sl_run *run);
void sl_life_ended(struct sl_run *run);
void sl_life_state(struct sl_run *run, const struct sl_frame *state, bool entered);
void sl_life_action(struct sl_run *run, const struct sl_frame *action, const char *what);
/* Remembers a transition into `state` with the cause of this step. */
void sl_life_transition(struct sl_run *run, const char *state, const char *cause);
/* Adds an effect that will carry the id *ret_id; derived, R3. */
struct sl_msg *sl_effect_with_id(struct sl_run *run, enum sl_msg_kind kind);

/* --- retry.c: pure --- */
/* Milliseconds before the attempt after number `attempt` (from 1); unit: a number in [-1, 1] for the jitter (A85, A86).
 */
int64_t sl_retry_delay_ms(const struct sl_retry *retry, int attempt, double unit, int64_t cap_ms);
bool sl_retry_again(const struct sl_retry *retry, int attempt);
/* In [-1, 1], from what a retry is: the same whenever it is computed. */
double sl_retry_unit(uint64_t seed, const char *instance, const char *node, int attempt);
/* Does the rule match? `plain`: the error is no service's, so catch-all retries leave it alone. Borrows error. */
bool sl_rule_matches(const struct sl_rule *rule, jv error, bool plain);

#endif
