/* The simulator: the pipeline objects of the three services in one world in memory, driven by one seed.
 *
 *   flows.c     what workflows there are and which events they get, from the seed
 *   load.c      publishing, commands, and the service that is called
 *   procs.c     processes: started, turned, stopped, killed
 *   faults.c    what breaks
 *   schedule.c  who moves next and when something breaks; then a quiet phase until nothing moves any more
 *   check.c     what must be true at the end; reads only what was published, called and stored
 *   watch.c     what must be true all the time: the store, the lifecycle topic
 *   shrink.c    makes a failing run smaller
 *   rules.c     which seeds notice that a rule is gone
 *
 * Owner: main.c. One thread. Everything of a run lives in struct sim; only compiled plans outlive it. */
#ifndef SLUICE_SIM_H
#define SLUICE_SIM_H

#include "common/adapters/memory/memory.h"
#include "common/base/arena.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "services/coordinator/coordinator.h"
#include "services/executor/executor.h"
#include "services/timer/timer.h"

#define SIM_START_MS INT64_C(1704067200000)
#define SIM_PARTITIONS_MAX 4
#define SIM_EVENT_PARTITIONS 2
#define SIM_PROCS_MAX 8
#define SIM_FLOWS_MAX 10
#define SIM_JOBS_MAX 64
#define SIM_MINUTE_MS INT64_C(60000)

enum sim_kind { SIM_COORDINATOR, SIM_EXECUTOR, SIM_TIMER };
enum sim_story { SIM_STORY_NONE, SIM_STORY_FAULTS, SIM_STORY_ALL };
/* What of a seed is run: a shrunk failure leaves the rest out. */
struct sim_cut {
	const char *faults, *flows; /* lists of numbers and names; NULL: all */
	int64_t steps;		    /* of the hostile phase; 0: as the seed has it */
	enum sim_story story;
	bool quiet;		    /* says nothing at all */
};
struct sim_result { /* kept up to date while it runs */
	int faults, flow_count;
	int64_t steps;
	bool given_up;
	char flows[SIM_FLOWS_MAX][16];
};

enum sim_state { SIM_DOWN, SIM_READING, SIM_UP, SIM_DRAINING };

struct sim;
struct sim_proc {
	struct sim *sim;
	enum sim_kind kind;
	char name[8];
	enum sim_state state;
	bool member;  /* the groups count a process of this name in */
	bool zombie;  /* its session has ended and it does not know */
	bool skewed;
	bool struck;  /* ended in the midst of a step (R7) */
	int64_t back; /* schedule step at which it is started again or notices that it is a zombie */
	int64_t store_lost;	      /* step at which it loses the store that was replaced; 0: it has no other than the rest */
	int64_t store_step, end_step; /* at which it finds the store again; at which it ends then, 0: it does not */
	uint64_t store_random;	      /* dice of that */
	struct sl_plans *plans;
	struct sl_definitions *defs;
	struct sl_coordinator *co;
	struct sl_executor *ex;
	struct sl_timers *tm;
};

/* One deployed workflow. */
struct sim_flow {
	const char *name, *text; /* definition */
	int seen_min, seen_max;	 /* events that one instance takes */
	const char *optional;	 /* type of an event that may come too late, or NULL */
	const char *feeds;	 /* workflow that its published event starts, or NULL */
	bool keyed;		 /* at most one instance per key lives */
	bool command;		 /* started by command, under an id of ours */
	bool frail;		 /* its instances fault and are tried again */
	int64_t rest_ms;	 /* an instance takes at least so long */
	int32_t late;		 /* deployed at this step; 0: at first */
	bool deployed;
	bool revised; /* a newer version came */
};

struct sim_event {
	char id[40], key[24];
	const char *type;
	int flow; /* index */
	bool held; /* not before a call has set it off */
	bool published;
	int copies;
	jv ev;
};
/* An input that ends the process which steps it (R7). */
struct sim_poison {
	char instance[24];
	bool proved;		 /* the watchdog says so */
	bool noted;		 /* it has said so at `offset` */
	int64_t offset, epoch;
	int struck, told;	 /* processes that it ended there; its dead letters */
};
struct sim_call { /* what the service saw */
	char *action, *body;
	int count;
};

struct sim {
	uint64_t seed, random;
	struct sim_cut cut;
	struct sim_result *result;
	bool in_fault;
	int fault_count;
	struct sl_memory *world;
	struct sl_arena arena;
	struct sl_topics topics;
	struct sl_event_topic event_topic;
	struct sl_broker *driver;
	int32_t partitions;
	int64_t step;
	struct sim_proc procs[SIM_PROCS_MAX];
	int proc_count;
	/* what this seed may do */
	int faults;		/* percent of the usual amount */
	bool may_cancel, small_ring; /* small_ring: nothing is published twice, but mailboxes forget at once */
	int64_t early_window_ms;
	/* load */
	struct sim_flow flows[SIM_FLOWS_MAX];
	int flow_count;
	struct sim_event *events;
	int event_count, event_cap, event_serial, published;
	struct sl_map calls;	   /* Idempotency-Key -> struct sim_call */
	struct sl_map tags;	   /* step~n -> Idempotency-Key */
	struct sl_map cancelled;   /* instance -> asked */
	bool given_up; /* R7: a record was given up after kills that all hit the same place; nothing else is sure then */
	int commands;
	bool skewed; /* a clock has been wrong: times of the log may stand in another order than what happened */
	bool restored, down, tight; /* tight: producers take few records at a time */
	int64_t up_step, wide_step;
	char held[48]; /* a lane that nothing moves on for a while */
	int64_t held_step;
	const char *refusing; /* a topic that takes no records; NULL: none */
	int64_t refusing_step;
	bool calm; /* all is well from here on */
	int64_t watched[2]; /* lifecycle records seen, by partition */
	struct sim_poison poison;
	struct sl_map faulted; /* instances to be tried again */
	struct sl_memory_backup *backup;
	struct sl_memory_backup *replica; /* takes over at replica_step; NULL: none */
	int64_t replica_step;
	uint64_t replica_random; /* dice of the take-over */
	struct sl_buf wrong; /* what was violated; empty: nothing */
};

/* --- sim: main.c --- */
/* False: violated; says so. */
bool sim_run(uint64_t seed, const struct sim_cut *cut, struct sim_result *ret);
uint64_t sim_random(struct sim *sim);
/* Until sim->random is set back to the result, chance comes from a stream of this part of the seed. */
uint64_t sim_fork(struct sim *sim, uint64_t part, uint64_t number);
int sim_below(struct sim *sim, int n); /* 0..n-1 */
bool sim_chance(struct sim *sim, int percent);
void sim_tell(struct sim *sim, const char *fmt, ...) SL_PRINTF(2, 3); /* a line of the story */
void sim_wrong(struct sim *sim, const char *fmt, ...) SL_PRINTF(2, 3);

/* --- shrink.c --- */
void sim_shrink(uint64_t seed, const struct sim_cut *cut);
bool sim_listed(const char *list, const char *name); /* in a list with commas */

/* --- rules.c --- */
/* Finds, among `count` seeds, one for each rule that notices when the rule is broken, and writes the table; or only checks
 * the seeds of the table. Returns an exit code. */
int sim_rules(const char *table, bool search, uint64_t count, int jobs);

/* --- procs.c --- */
void sim_proc_start(struct sim_proc *proc);
bool sim_proc_turn(struct sim_proc *proc); /* true: more is ready now */
/* Gone at once; lose_sent as sl_memory_kill. The group counts it in until its session ends or it returns. */
void sim_proc_kill(struct sim_proc *proc, bool lose_sent);
void sim_proc_drain(struct sim_proc *proc); /* its turns end it when it is idle */
bool sim_proc_alive(const struct sim_proc *proc);
/* The timers are started again, with a long horizon: hours pass faster. */
void sim_procs_calm(struct sim *sim);
void sim_procs_free(struct sim *sim);

/* --- flows.c --- */
void sim_load_make(struct sim *sim);
void sim_load_free(struct sim *sim);
void sim_event_attribute(struct sim_event *event, const char *name, const char *value);

/* --- load.c --- */
void sim_load_deploy(struct sim *sim); /* all but the late ones */
void sim_load_late(struct sim *sim);   /* those whose step has come */
/* A newer version of a workflow, which does the same. */
void sim_load_again(struct sim *sim);
/* Cancels an instance; NULL: one that the lifecycle topic tells of, at random. */
void sim_cancel(struct sim *sim, const char *instance);
/* Tries a faulted instance again; false: there is none. */
bool sim_retry(struct sim *sim);
struct sim_event *sim_load_next(struct sim *sim); /* to be published next, or NULL */
void sim_publish(struct sim *sim, struct sim_event *event);
void sim_command(struct sim *sim, const char *id, const char *type, jv data); /* id NULL: a new one */
int64_t sim_mock(void *arg, const struct sl_http_request *req, struct sl_http_answer *ret);

/* --- faults.c --- */
void sim_fault(struct sim *sim);
void sim_recover(struct sim *sim);  /* what was broken for a while comes back when its step has come */
void sim_mend(struct sim *sim);	    /* everything comes back now */
/* From the pipeline, before a step: the poisoned instance ends the process. */
void sim_stepping(void *arg, const struct sl_stepping *what);

/* --- schedule.c --- */
void sim_quiet(struct sim *sim, int64_t ms); /* lets everything run, for so much virtual time */
void sim_schedule(struct sim *sim);
void sim_heal(struct sim *sim); /* ends all that is broken, publishes the rest, waits until all is quiet */

/* --- watch.c --- */
void sim_watch(struct sim *sim);

/* --- check.c --- */
/* Instances that wait for what a cancelled one took are cancelled too. */
void sim_check_cancel_rest(struct sim *sim);
void sim_check_outputs(struct sim *sim);
void sim_check_left(struct sim *sim);

#endif
