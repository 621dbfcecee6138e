/* The timer: owns partitions of sluice.timers, keeps what is set in the store, sends TIMER records when they are due
 * (design section 8), and once a minute a SWEEP to each partition of sluice.instances. A pipeline object over the
 * ports.
 *
 * One thread. Callbacks of the ports only note what came and call `wake`; turn() does the work. */
#ifndef SL_TIMER_H
#define SL_TIMER_H

#include "common/codec/codec.h"
#include "common/ports/broker.h"
#include "common/ports/clock.h"
#include "common/ports/store.h"
#include "services/common/topics.h"

struct sl_timers_options {
	struct sl_broker *broker; /* borrowed, as all of these */
	struct sl_store *store;
	struct sl_clock *clock;
	const struct sl_topics *topics;
	const char *group; /* consumer group */
	/* 0 in these: the default behind */
	int64_t horizon_ms;	 /* what is due within is kept in memory; 60 s */
	int near_max;		 /* so many of them at most, per partition; 200 000 */
	int batch_max;		 /* records of one commit; 1 024 */
	int page_max;		 /* timers of one read; 1 000 */
	int64_t sweep_ms;	 /* between sweeps; 60 s; -1: none */
	void (*wake)(void *arg); /* turn() should be called soon */
	/* Cannot go on; text names what to do. */
	void (*fatal)(void *arg, int err, const char *text);
	void *arg;
};

struct sl_timers;

/* Joins the group. SL_ENOTFOUND: a topic is missing; SL_EUNREACHABLE, SL_EAGAIN: Kafka does not answer yet. */
SL_MUST_CHECK int sl_timers_new(const struct sl_timers_options *opt, struct sl_timers **ret, struct sl_diags *diags);
/* One turn of everything that can go on; true: more is ready now. */
bool sl_timers_turn(struct sl_timers *tm);
/* Takes and fires nothing new; idle() tells when what was in hand is delivered and committed. */
void sl_timers_drain(struct sl_timers *tm);
bool sl_timers_idle(const struct sl_timers *tm);
/* NULL: every partition that we have is at work; else why not. */
const char *sl_timers_ready(const struct sl_timers *tm);
/* Leaves the group. Callbacks may still come. Idempotent. */
void sl_timers_close(struct sl_timers *tm);
/* Closes, then frees everything: the ports must not call back any more. NULL is allowed. */
void sl_timers_free(struct sl_timers *tm);

#endif
