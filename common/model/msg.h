/* Inputs and effects. An effect of one step is an input of another actor, or asks the outside for something; both are
 * one struct, so that what is stepped locally and what travels through Kafka cannot differ.
 * Ownership: strings are borrowed from the arena of the batch; jv members are owned (sl_msg_clear). */
#ifndef SL_MODEL_MSG_H
#define SL_MODEL_MSG_H

#include "common/model/id.h"
#include "common/model/value.h"

/* K(NAME, text, where): where it goes. INST: sluice.instances (an actor); ACTIONS, TIMERS, EVENTS, LIFECYCLE,
 * DEAD: the topic; WHY: the partition's decision stream in Redis. Numbers travel: append only. */
#define SL_MSG_KINDS(K)                                                                             \
	K(START,         "start",         INST)     /* to instance: plan, data | events, box, ok, key, parent, command_id */ \
	K(EVENT,         "event",         INST)     /* routed: to a mailbox, or to an instance (workflowinstanceid) */ \
	K(DELIVER,       "deliver",       INST)     /* mailbox -> instance: event, box, workflow, token (unkeyed), multi */ \
	K(RETURN,        "return",        INST)     /* instance -> mailbox: the delivery could not be taken */ \
	K(RESULT,        "result",        INST)     /* executor -> instance: token, attempt, data | error */ \
	K(TIMER,         "timer",         INST)     /* timer -> instance: token, due_ms */ \
	K(SUBFLOW_RESULT,"subflow-result",INST)     /* child -> parent: token, data | error */ \
	K(VALUE,         "value",         INST)     /* variable scope -> instance */ \
	K(SUBSCRIBE,     "subscribe",     INST)     /* instance -> mailbox: workflow, wants, token */ \
	K(UNSUBSCRIBE,   "unsubscribe",   INST)     /* instance -> mailbox: workflow, token, events handed back */ \
	K(TRANSFER,      "transfer",      INST)     /* instance -> mailbox: successor takes over */ \
	K(CLAIM,         "claim",         INST)     /* faulted instance -> mailbox: may I live again? workflow, wants */ \
	K(CLAIM_ANSWER,  "claim-answer",  INST)     /* mailbox -> instance: ok */ \
	K(CANCEL,        "cancel",        INST)     /* command: command_id, reason */ \
	K(SUSPEND,       "suspend",       INST)                                                     \
	K(RESUME,        "resume",        INST)                                                     \
	K(RETRY,         "retry",         INST)     /* command: re-enter the failed node */          \
	K(SWEEP,         "sweep",         INST)     /* to home @P, then locally to each expired actor */ \
	K(ACTION,        "action",        ACTIONS)  /* action, instance, plan, node, function, token, attempt, data, deadline_ms */ \
	K(ACTION_CANCEL, "action-cancel", ACTIONS)  /* action */                                    \
	K(TIMER_SET,     "timer-set",     TIMERS)   /* instance, token, due_ms */                   \
	K(TIMER_CANCEL,  "timer-cancel",  TIMERS)   /* instance, token */                           \
	K(PUBLISH,       "publish",       EVENTS)   /* event; due_ms: not before */                 \
	K(LIFECYCLE,     "lifecycle",     LIFECYCLE)/* text */                                     \
	K(ANSWER,        "answer",        LIFECYCLE)/* command_id, ok, reason, data */              \
	K(DEAD_LETTER,   "dead-letter",   DEAD)     /* reason, event, origin_* */                   \
	K(WHY,           "why",           WHY)      /* data: a decision about an event */           \
	K(PURGE,         "purge",         INST)     /* command: forget an ended instance now */     \
	K(FAULT,         "fault",         INST)     /* owner -> instance (R7): error; extra.kind: the input that was given up */

enum sl_msg_kind {
	SL_MSG_NONE = 0,
#define K(name, text, where) SL_MSG_##name,
	SL_MSG_KINDS(K)
#undef K
	SL_MSG_KIND_COUNT_
};

/* Where a message of a kind goes. */
enum sl_route { SL_TO_INST, SL_TO_ACTIONS, SL_TO_TIMERS, SL_TO_EVENTS, SL_TO_LIFECYCLE, SL_TO_DEAD, SL_TO_WHY };

struct sl_msg {
	enum sl_msg_kind kind;
#define SL_MSG_C_STR const char *
#define SL_MSG_C_I64 int64_t
#define SL_MSG_C_BOOL bool
#define SL_MSG_C_JSON jv
#define M(type, name, meaning) SL_MSG_C_##type name;
#include "common/model/msg.def"
#undef M
};

/* All absent: NULL, 0, false, invalid; origin_* are -1. */
void sl_msg_init(struct sl_msg *msg, enum sl_msg_kind kind);
/* Frees the jv members; the struct is as after init with kind NONE. */
void sl_msg_clear(struct sl_msg *msg);
/* Deep copy: strings into arena, jv references shared. */
void sl_msg_copy(struct sl_arena *arena, struct sl_msg *ret, const struct sl_msg *msg);
const char *sl_msg_kind_text(enum sl_msg_kind kind);
enum sl_msg_kind sl_msg_kind_of(const char *text);      /* SL_MSG_NONE if unknown */
enum sl_route sl_msg_route(enum sl_msg_kind kind);

/* What a step asks for, in order. Strings of the messages live in `arena`. */
struct sl_effects {
	struct sl_arena *arena;         /* borrowed: the batch's */
	struct sl_msg *items;           /* heap, grows */
	int count, cap;
};
void sl_effects_init(struct sl_effects *fx, struct sl_arena *arena);
void sl_effects_release(struct sl_effects *fx);         /* clears the messages too */
void sl_effects_clear(struct sl_effects *fx);
/* A new message of that kind at the end; valid until the next add. `ns` and `from` are set by the caller. */
struct sl_msg *sl_effects_add(struct sl_effects *fx, enum sl_msg_kind kind);

#endif
