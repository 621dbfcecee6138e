/* Private parts of the world in memory: tasks and lanes, processes, the cluster's topics and groups, the store's keys.
 * Everything here belongs to the world and lives until it is freed; only tasks come and go. */
#ifndef SL_ADAPTERS_MEMORY_WORLD_H
#define SL_ADAPTERS_MEMORY_WORLD_H

#include "common/adapters/memory/memory.h"
#include "common/base/arena.h"
#include "common/base/map.h"

struct process;
struct lane;

enum port { PORT_BROKER, PORT_CONSUMER, PORT_STORE };

/* Something that will happen. Embedded first in what it needs; run frees it. */
struct task {
	struct task *prev, *next; /* all tasks, in order of creation */
	struct task *lane_next;
	struct lane *lane;
	struct process *to;   /* calls back into this process; NULL: happens in cluster or store */
	struct process *from; /* was sent by this process; NULL: by the cluster */
	enum port port;
	struct sl_consumer *con; /* PORT_CONSUMER: dropped when it closes */
	void (*run)(struct sl_memory *world, struct task *task, bool dropped);
};

/* Tasks that keep their order. */
struct lane {
	struct task *first, *last;
	int active;		      /* index + 1 in the world's list of lanes with tasks */
	const char *who, *sep, *what; /* name: who sep what [/number] */
	int number;		      /* -1: none */
};

/* A moment at which something fires: timers and HTTP answers, in one heap. */
struct due {
	int64_t at_ms;
	int rank; /* at one instant: 0 HTTP answers, 1 timers */
	uint64_t seq;
	size_t slot; /* heap index + 1 */
	struct process *proc;
	struct due *prev, *next; /* of the process */
	void (*fire)(struct sl_memory *world, struct due *due, bool dropped);
};

struct stored {
	int64_t offset, time_ms;
	struct sl_bytes key, value;
	int header_count;
	struct sl_header *headers;
};

struct partition {
	struct topic *topic;
	int32_t number;
	int gid;		 /* number among all partitions of the world */
	struct stored **records; /* by offset */
	int64_t high, cap, low;
	struct conpart *readers; /* started by a consumer */
};

struct topic {
	char *name;
	size_t bytes_max;
	int32_t count;
	struct partition **parts;
};

/* A partition as a consumer sees it. */
struct conpart {
	struct sl_consumer *con;
	struct partition *part;
	bool assigned, started, paused, fetching;
	bool handing;	     /* the group wants it for another */
	struct bound *bound; /* until then; NULL: it is handed over */
	int64_t position, visible; /* records below visible have arrived */
	struct lane lane;
	struct conpart *reader_next;
};

struct member {
	struct member *next;
	struct group *group;
	struct sl_consumer *con;
	int count; /* scratch of the assignment */
};

struct claim { /* a partition in a group */
	struct member *owner, *target;
	bool revoking;
	int64_t offset;
	char *metadata;
};

struct group {
	struct group *next;
	char *name;
	struct member *members;
	struct claim *claims; /* by gid */
	int claim_count;
	bool queued; /* a rebalance is pending */
	struct lane lane;
};

struct sl_consumer {
	struct sl_consumer *next; /* of the process */
	struct process *proc;
	struct group *group;
	struct member *member; /* NULL: no group, or the group no longer counts us in */
	bool closed;
	struct sl_consumer_events events;
	int hand_over_ms; /* 0: partitions go at once */
	struct topic **topics;
	int topic_count;
	struct conpart **parts; /* by gid; NULL: never was ours */
	int part_count, turn;
	bool unread; /* there may be something to poll */
	struct lane calls, commits, answers;
};

struct link { /* a process's connection to a partition */
	struct lane out, in;
};

struct process {
	struct process *next;
	struct sl_memory *world;
	char *name;
	bool dead;
	struct sl_broker broker;
	struct sl_store store;
	struct sl_clock clock;
	struct sl_caller caller;
	int64_t skew_ms;
	struct link **links; /* by gid */
	int link_count;
	struct lane refusals; /* answers to records that belong to no partition */
	int unanswered;
	uint32_t spread; /* records without key go round */
	struct sl_consumer *consumers;
	struct lane commands, answers; /* of the store */
	uint64_t session;	       /* connections to the store that have ended */
	bool away;		       /* its connection has ended, and there is no other yet */
	bool behind;		       /* it still has the store that was replaced */
	struct sl_map lapsed;	       /* "tp/3" -> takes since its session ended */
	struct due *dues;
};

struct sl_memory {
	int64_t now_ms;
	struct task *first, *last;
	struct lane **active;
	int active_count, active_cap;
	struct due **heap;
	size_t heap_count, heap_cap;
	uint64_t seq;
	struct process *processes;
	struct sl_map topics;
	int part_count, queue_max;
	struct group *groups;
	struct sl_map keys; /* store: "{7}i:ns~id" -> struct entry */
	struct sl_map old_keys; /* of the store that was replaced, for those who still have it */
	bool store_down;
	char *store_text;
	struct sl_buf scratch;
	sl_memory_mock_fn mock;
	void *mock_arg;
};

/* Zeroed memory; out of memory aborts. */
void *sl_mem_new(size_t size);
char *sl_mem_str(const char *text);

void sl_mem_lane_init(struct lane *lane, const char *who, const char *sep, const char *what, int number);
void sl_mem_task_add(struct sl_memory *world, struct lane *lane, struct task *task);
/* Takes it out of world and lane without running it. */
void sl_mem_task_take(struct sl_memory *world, struct task *task);
/* Drops every task that `match` finds. */
void sl_mem_task_drop(
	struct sl_memory *world, bool (*match)(const struct task *task, const void *arg), const void *arg);

void sl_mem_due_add(struct sl_memory *world, struct due *due);
void sl_mem_due_remove(struct sl_memory *world, struct due *due);

struct process *sl_mem_process_find(struct sl_memory *world, const char *name);

extern const struct sl_broker_ops sl_mem_broker_ops;
extern const struct sl_store_ops sl_mem_store_ops;
extern const struct sl_clock_ops sl_mem_clock_ops;
extern const struct sl_caller_ops sl_mem_caller_ops;

struct partition *sl_mem_partition_find(struct sl_memory *world, const char *topic, int32_t number);
void sl_mem_cluster_free(struct sl_memory *world);

/* consumer.c: the functions of the broker port that concern consumers. */
int sl_mem_consumer_new(struct sl_broker *broker, const struct sl_consumer_options *opt, struct sl_consumer **ret);
int sl_mem_consumer_start(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset);
bool sl_mem_consumer_poll(struct sl_consumer *con, struct sl_record *ret, void **ret_handle);
void sl_mem_consumer_release(struct sl_consumer *con, void *handle);
void sl_mem_consumer_pause(struct sl_consumer *con, const char *topic, int32_t partition, bool paused);
void sl_mem_consumer_close(struct sl_consumer *con);
/* Records arrived: readers fetch. */
void sl_mem_consumer_fetch(struct sl_memory *world, struct partition *part);
struct conpart *sl_mem_consumer_part(struct sl_consumer *con, struct partition *part);
void sl_mem_consumer_hand_over(struct sl_consumer *con, const char *topic, int32_t partition);
/* Queues the call. */
enum call_kind { CALL_ASSIGNED, CALL_HANDING, CALL_REVOKED };
void sl_mem_consumer_call(struct sl_consumer *con, struct partition *part, enum call_kind kind);
void sl_mem_consumer_fatal(struct sl_consumer *con, int err, char *text);
void sl_mem_consumer_forget(struct conpart *cp);
void sl_mem_consumer_unbind(struct conpart *cp);
void sl_mem_consumers_free(struct process *proc);

/* group.c */
struct group *sl_mem_group_get(struct sl_memory *world, const char *name);
void sl_mem_group_join(struct sl_consumer *con);
void sl_mem_group_leave(struct sl_consumer *con);
void sl_mem_group_revoked(struct sl_consumer *con, struct partition *part);
struct claim *sl_mem_group_claim(struct group *group, int gid);
int sl_mem_consumer_commit(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset,
	const char *metadata, void (*done)(void *arg, int err), void *arg);
int sl_mem_consumer_committed(
	struct sl_consumer *con, const char *topic, int32_t partition, int64_t *ret_offset, char **ret_metadata);
void sl_mem_groups_free(struct sl_memory *world);

/* store.c */
void sl_mem_store_free(struct sl_memory *world);
/* Another store stands in its place: what is on its way to the old one never comes to the new one. `lives`: who has the old one keeps
 * it for a while. */
void sl_mem_store_replaced(struct sl_memory *world, bool lives);

#endif
