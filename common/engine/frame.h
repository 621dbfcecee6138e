/* Frames: a running instance is a tree of them over the plan's tree of nodes. A frame names its node by pointer text
 * and its place by path ("0.2.1": the numbers of the children from the root down), so that it can be stored and read
 * again after any step, also by a newer release.
 *
 * Data: the root, each branch and each iteration own a document; every other frame works on that of the nearest owner
 * above it. A branch or iteration shares its parent's document (plus the overlay of the element) until it writes: only
 * then it has a part of its own in the store. While a fork or each runs, the document above it does not change.
 *
 * Owner: the instance. One thread. */
#ifndef SL_ENGINE_FRAME_H
#define SL_ENGINE_FRAME_H

#include "common/engine/engine.h"
#include "common/model/error.h"

struct sl_run;

/* One node makes one frame, but fork and each also make one per branch and iteration. */
enum sl_frame_part { SL_PART_NODE, SL_PART_BRANCH, SL_PART_ITERATION };

struct sl_slot {  /* a collected result: `c:PATH:N` */
	jv value; /* invalid: nothing yet, or nothing contributed */
	bool dirty, stored;
};
struct sl_slots {
	struct sl_slot *items;
	int count;
	int64_t bytes; /* estimated */
	int *changed;  /* which are dirty */
	int changed_count, changed_cap;
};

struct sl_frame {
	const struct sl_node *node;
	enum sl_frame_part part;
	int index;	 /* number among the parent's children */
	unsigned serial; /* of this process: finds a frame again that may be gone */
	struct sl_frame *parent, *first, *last, *prev, *next;
	int child_count;

	/* stored in f:PATH */
	int phase;	       /* of the node kind; 0: not begun */
	int64_t token;	       /* of the wait that goes on, 0: none */
	int64_t timer, due_ms; /* token of the timer that is set, 0: none */
	int attempt;
	int64_t n, m; /* counters of the node kind */
	jv acc;	      /* what a list of actions contributes to a collection, or what a sleep holds back */
	jv info;      /* await: keys and local mailboxes */
	jv rest;      /* members that this release does not know */

	/* stored in d:PATH */
	jv own;	      /* owner: the document; each: the collection; await: collected events; parallel
		       * actions: the data at the start, once they were changed. Invalid: none */
	bool written; /* own differs from what can be derived, so it is stored */
	struct sl_slots slots;

	bool dirty, stored;	    /* f:PATH */
	bool own_dirty, own_stored; /* d:PATH */
	bool below; /* this frame or one below it changed since the last commit: scans go nowhere else */
	bool sized;
	int64_t own_bytes;
	int64_t counted; /* its part of the instance's data_bytes */
};

/* --- the tree --- */
/* A new frame under `parent` (NULL: the root). Children stay sorted by index. */
struct sl_frame *sl_frame_new(struct sl_instance *inst, struct sl_frame *parent, const struct sl_node *node,
	enum sl_frame_part part, int index);
/* Releases frame and descendants; what they wait for is cancelled (effects), what is stored will be deleted. NULL
 * allowed. */
void sl_frame_drop(struct sl_run *run, struct sl_frame *frame);
/* Cancels what frame and descendants wait for and keeps them: a faulted instance. */
void sl_frame_release_waits(struct sl_run *run, struct sl_frame *frame);
/* Frees without effects. NULL allowed. */
void sl_frame_free(struct sl_instance *inst, struct sl_frame *frame);
/* Next in depth-first order inside `top`; NULL at the end. */
struct sl_frame *sl_frame_next(struct sl_frame *frame, const struct sl_frame *top);
/* The same, but without what is below frames that did not change. */
struct sl_frame *sl_frame_next_changed(struct sl_frame *frame, const struct sl_frame *top);
void sl_frame_touch(struct sl_frame *frame);
struct sl_frame *sl_frame_child(const struct sl_frame *frame, int index);
/* Path text, appended. */
void sl_frame_path(const struct sl_frame *frame, struct sl_buf *out);
struct sl_frame *sl_frame_by_token(struct sl_frame *root, int64_t token);
struct sl_frame *sl_frame_by_timer(struct sl_frame *root, int64_t timer);
struct sl_frame *sl_frame_by_serial(struct sl_frame *root, unsigned serial);
/* The nearest STATE frame at or above; NULL above all states. */
struct sl_frame *sl_frame_state(struct sl_frame *frame);

/* --- documents --- */
struct sl_frame *sl_frame_owner(struct sl_frame *frame);
/* The document that the frame works on; a copy. */
jv sl_frame_data(struct sl_frame *frame);
/* What actions take as their input: in parallel actions the data at their start (A76). A copy. */
jv sl_frame_input(struct sl_frame *frame);
/* Nothing of its own any more. */
void sl_frame_clear_own(struct sl_frame *frame);
/* Replaces the document that the frame works on; takes `data`. */
void sl_frame_set_data(struct sl_frame *frame, jv data);
/* The frame's own part; takes `own`. */
void sl_frame_set_own(struct sl_frame *frame, jv own);
void sl_frame_slot_set(struct sl_frame *frame, int index, jv value);
void sl_frame_slots_drop(struct sl_instance *inst, struct sl_frame *frame);
/* Bytes of a value as JSON text, roughly; borrows. */
int64_t sl_value_bytes(jv value);

/* --- timers --- */
void sl_frame_timer_set(struct sl_run *run, struct sl_frame *frame, int64_t due_ms);
void sl_frame_timer_clear(struct sl_run *run, struct sl_frame *frame);

#endif
