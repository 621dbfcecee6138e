/* The mailbox inside: its state, shared by the mailbox*.c files only.
 *
 * Every stored thing is a `box_field`: its JSON object is the truth (so unknown members survive), the struct around it
 * holds what deciding needs, borrowed from that object. What changed stands in `dirty` under its field's name. */
#ifndef SL_ENGINE_MAILBOX_INT_H
#define SL_ENGINE_MAILBOX_INT_H

#include "common/base/map.h"
#include "common/engine/mailbox.h"
#include "common/engine/ring.h"
#include "common/engine/why.h"

struct box_field {
	jv obj;	     /* owned */
	bool stored; /* the store has this field */
	size_t size; /* estimated bytes */
};

enum box_list_kind { BOX_SUBS, BOX_JOINS, BOX_EARLY, BOX_LIST_COUNT };

struct box_item {		/* numbered field in a list: s:N, j:N, e:N */
	struct box_field field; /* first member */
	struct box_item *prev, *next;
	int64_t n;
};
struct box_list {
	struct box_item *head, *tail; /* by number: oldest first */
	int count;
	int64_t last_n;
};

struct box_wf { /* what is known of one workflow here */
	char *id;
	struct box_field claim; /* {instance}; invalid: no claim */
	int sub_count;
	/* of the event being decided: */
	int wanting;	      /* subscriptions that want it */
	struct box_sub *pick; /* the one that gets it when only one may */
	bool starts;	      /* the event matches its start: one instance gets it */
};

struct box_want {
	const char *type, *source;
	struct sl_attr_filter *filters; /* owned array, texts borrowed */
	int filter_count;
};
struct box_sub { /* {instance, workflow, token, wants} */
	struct box_item item;
	const char *inst;
	int64_t token; /* 0: keyed */
	struct box_wf *wf;
	struct box_want *wants;
	int want_count;
	struct box_sub *same; /* next subscription of the same instance */
	bool match;	      /* wants the event being decided */
};
struct box_join { /* {workflow, event, time, expires?} */
	struct box_item item;
	const char *workflow;
	jv event;
	uint64_t mark;
	int64_t expires_ms; /* 0: never */
	bool used;
};
struct box_early { /* {event, time, expires} */
	struct box_item item;
	jv event;
	int64_t expires_ms;
};

struct sl_mailbox {
	char *ns, *id;
	bool local; /* "@P~NS~TYPE" */
	bool exists, stored, gone;
	struct box_field header; /* {now, created, idle, key?, workflow?, serial?} */
	int64_t now_ms;
	char **key_names; /* of header.key, sorted; owned. NULL: not known */
	int key_count;
	const char *join_workflow; /* join mailbox of that workflow; borrowed from the header */
	struct box_list lists[BOX_LIST_COUNT];
	int claim_count;
	struct sl_map workflows;	/* id -> struct box_wf */
	struct sl_map by_inst;		/* instance -> its first struct box_sub */
	struct sl_map origins;		/* "TOPIC:P" -> struct box_field holding a number */
	struct sl_ring events, effects; /* R6 */
	struct sl_map dirty;		/* field name -> struct box_field, or &sl_box_deleted */
	int64_t expires_ms;
	size_t bytes;
};

extern struct box_field sl_box_deleted;

/* An event to decide again, for one workflow. */
struct box_again {
	jv event; /* owned */
	const char *only;
	struct box_again *next;
};

/* One step. */
struct box_step {
	const struct sl_engine *eng;
	struct sl_mailbox *box;
	const struct sl_msg *in;
	const struct sl_pos *pos;
	int64_t now_ms;
	struct sl_effects *fx;
	int first; /* fx->count at the beginning */
	struct box_again *again;
};

#define box_each(list, it)                                                                                             \
	for (struct box_item *it = (list)->head, *it##_next = it ? it->next : NULL; it;                                \
		it = it##_next, it##_next = it ? it->next : NULL)

/* --- mailbox_state.c --- */
#define BOX_ITEM_BYTES 400 /* estimate of what a field takes beside its text */
extern const char sl_box_prefix[BOX_LIST_COUNT];
void *sl_box_alloc(size_t n, size_t size); /* zeroed */
void sl_box_init(struct sl_mailbox *box);
void sl_box_release(struct sl_mailbox *box); /* all but the names */
/* After loading: fill in what is borrowed from an item's object, from the header; enter a subscription in by_inst. */
void sl_box_item_read(struct sl_mailbox *box, enum box_list_kind kind, struct box_item *item);
void sl_box_read_key(struct sl_mailbox *box);
void sl_box_sub_link(struct sl_mailbox *box, struct box_sub *sub);
struct box_wf *sl_box_wf(struct sl_mailbox *box, const char *workflow);
void sl_box_claim(struct sl_mailbox *box, struct box_wf *wf, const char *inst); /* NULL: release */
const char *sl_box_claim_of(const struct box_wf *wf);				/* NULL: none */
/* Adds, or replaces the wants of (inst, token); takes wants. NULL: it was there with the same wants. */
struct box_sub *sl_box_sub(struct sl_mailbox *box, const char *inst, const char *workflow, int64_t token, jv wants);
void sl_box_unsub(struct sl_mailbox *box, struct box_sub *sub);
bool sl_box_sub_wants(const struct box_sub *sub, jv ev, struct sl_mismatch *ret_miss);
/* The subscription goes to another instance, maybe of another workflow. Takes wants; invalid: as they were. */
void sl_box_sub_rename(struct sl_mailbox *box, struct box_sub *sub, const char *inst, const char *workflow, jv wants);
struct box_sub *sl_box_subs_of(const struct sl_mailbox *box, const char *inst); /* chained by `same` */
/* expires_ms 0: never. Borrow ev. */
void sl_box_join_add(struct sl_mailbox *box, const char *workflow, jv ev, int64_t now_ms, int64_t expires_ms);
void sl_box_early_add(struct sl_mailbox *box, jv ev, int64_t now_ms, int64_t expires_ms);
void sl_box_item_remove(struct sl_mailbox *box, enum box_list_kind kind, struct box_item *item);
/* R6: false when the offset is not above the highest seen. */
bool sl_box_origin(struct sl_mailbox *box, const char *topic, int64_t partition, int64_t offset);
/* Header members; `value` is taken. */
void sl_box_header(struct sl_mailbox *box, const char *name, jv value);
void sl_box_learn_key(struct sl_mailbox *box, jv key); /* takes */
void sl_box_join_of(struct sl_mailbox *box, const char *workflow);
void sl_box_reckon(struct sl_mailbox *box); /* expires_ms anew */
uint64_t sl_box_event_mark(jv ev);	    /* borrows */

/* --- mailbox_decide.c --- */
/* Gives ev to whom it belongs; `only`: for that workflow alone, NULL: everybody. Borrows ev. */
void sl_box_decide(struct box_step *st, jv ev, const char *only);
/* The next chunk of a fan-out: subscriptions numbered above `after` up to `until`. */
void sl_box_decide_rest(struct box_step *st, jv ev, const char *only, int64_t after, int64_t until);
/* Offers the early events to a new subscription. */
void sl_box_offer_early(struct box_step *st, struct box_sub *sub);
/* Drops what is past its time; `dead`: and joins that nothing completes any more. */
void sl_box_expire(struct box_step *st, bool dead);
/* Adds a WHY effect; `why` is as after init afterwards. Borrows ev. */
void sl_box_why(struct box_step *st, struct sl_why *why, jv ev, const char *decision);
struct sl_msg *sl_box_add(struct box_step *st, enum sl_msg_kind kind, const char *to, jv ev);

/* --- mailbox_join.c: all-of starts --- */
/* A new member for `plan`'s start, which may complete it. Borrows ev. */
void sl_box_join(struct box_step *st, struct sl_plan *plan, jv ev, struct sl_why *why);
/* Starts an instance of plan for these events (takes); it holds the claim and is subscribed. `serial` NULL: derived
 * from the effect. */
void sl_box_start(struct box_step *st, struct sl_plan *plan, jv events, const char *serial, struct sl_why *why);
void sl_box_join_expire(struct box_step *st, bool dead);

#endif
