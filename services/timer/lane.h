/* Private to the timer: one partition of sluice.timers.
 *
 *   assigned -> TAKE -> TAKING (epoch, applied offset) -> RUN: one store operation at a time, a commit or a page
 *   a commit refused or lost -> PROVE (a mirror commit shows that the group counts us in) -> TAKE (R4) */
#ifndef SL_TIMER_LANE_H
#define SL_TIMER_LANE_H

#include "services/common/schemas.h"
#include "services/timer/due.h"
#include "services/timer/timer.h"

enum lane_stage { LANE_PROVE, LANE_PROVING, LANE_TAKE, LANE_TAKING, LANE_RUN, LANE_STOPPED };
enum lane_op { OP_NONE, OP_COMMIT, OP_PAGE, OP_BODIES };

struct lane;
struct letter { /* a dead letter; its record is applied once it is delivered */
	struct sl_arena arena;
	struct sl_record rec;
	bool sent, delivered;
	bool orphan; /* the lane was taken anew; freed at delivery */
};
struct flight {			    /* a record on its way to Kafka: one of a timer, a dead letter, a sweep (neither) */
	struct flight *prev, *next; /* in tm->flights */
	struct lane *lane;
	struct sl_due_entry *entry;
	struct letter *letter;
};
struct item { /* a record in hand */
	int64_t offset;
	enum sl_msg_kind kind; /* TIMER_SET, TIMER_CANCEL; NONE: letter */
	char *member, *traceparent;
	int64_t due_ms;
	struct letter *letter;
};
struct entries {
	struct sl_due_entry **items;
	int count, cap;
};

struct lane {
	struct sl_timers *tm;
	struct lane *next;
	int32_t partition;
	enum lane_stage stage;
	bool gone; /* revoked; freed when nothing is out */
	int out;   /* callbacks that will still come */
	int64_t retry_at_ms;
	uint64_t session;	/* of the store, when the partition was taken */
	int64_t epoch, applied; /* applied: offset of the last record that is in the store, -1 none */
	int64_t mirrored, mirror_at_ms;
	int64_t seen;	    /* next offset to come */
	struct item *items; /* read and not applied, oldest first */
	int item_head, item_count, item_cap;

	struct sl_due due;
	int64_t loaded_until; /* all timers of the store due by then are in memory */
	int64_t page_until;   /* of the page that is being read */
	int page_size;
	char **page; /* its members, until their bodies are there */
	int64_t *page_due;
	int page_count;

	enum lane_op op, last_op; /* what the store is doing for us; what it did before: commits and pages take turns */
	int64_t op_started_ms;
	int committing; /* items of the commit on its way */
	int64_t committing_applied;
	struct entries fired;	 /* delivered, to be removed from the store */
	struct entries removing; /* those of the commit on its way */
	struct sl_arena arena;	 /* of the commit being made */
	int64_t sweep_at_ms;
};

struct sl_timers {
	struct sl_timers_options opt;
	struct sl_schemas *schemas;
	struct sl_consumer *con;
	int32_t timer_partitions, instance_partitions;
	struct lane *lanes;
	struct sl_record stuck; /* a record whose schema is on its way */
	void *stuck_handle;	/* NULL: none */
	int hand;		/* items in all lanes */
	struct flight *flights;
	int flight_count;
	bool paused, draining, closed, again, full; /* full: the producer's queue, until the next turn */
	struct sl_timer *alarm;
	int64_t alarm_at_ms;
};

/* pipeline.c */
void tm_wake(struct sl_timers *tm);
int64_t tm_now(const struct sl_timers *tm);

/* lane.c: taking, loading, committing */
struct lane *lane_new(struct sl_timers *tm, int32_t partition);
void lane_add(struct lane *lane, struct item item); /* takes it */
void lane_turn(struct lane *lane);
/* Forgets all that is in memory; the store has it. */
void lane_reset(struct lane *lane);
void lane_revoke(struct lane *lane);
void lane_free(struct lane *lane);
void entries_add(struct entries *entries, struct sl_due_entry *entry);

/* fire.c: what is due goes out */
bool may_fire(struct sl_timers *tm);
void flights_release(struct sl_timers *tm);
void letter_free(struct letter *letter);
void lane_fire(struct lane *lane);
void lane_sweep(struct lane *lane);
void lane_send_letters(struct lane *lane);
/* "NS~INSTANCE~TOKEN" taken apart; memory in arena. False: it is none. */
bool member_parse(
	struct sl_arena *arena, const char *member, const char **ret_ns, const char **ret_instance, int64_t *ret_token);

#endif
