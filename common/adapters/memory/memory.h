/* All ports in memory: one world (broker cluster, store, time) and any number of processes in it.
 *
 * Nothing happens by itself: what a port call sets off becomes a pending task, and the driver decides when and in
 * which order tasks run. Tasks of one lane (one process to one partition, the answers on one connection, ...) keep
 * their order; lanes may overtake each other, as they do between machines. sl_memory_turn runs all in order of
 * creation; a simulator runs lanes by its seed instead and crashes, fences and cuts in between.
 *
 *     process A  --produce lane-->  cluster  --answer lane, fetch lanes-->  process A
 *     process B  --command lane-->  store    --answer lane-->               process B
 *
 * Owner: the driver. One thread. The world owns everything that it hands out unless said otherwise; a world is cheap
 * to make and to free. Handles may be used until the world is freed, also after a kill (they do nothing then). */
#ifndef SL_ADAPTERS_MEMORY_MEMORY_H
#define SL_ADAPTERS_MEMORY_MEMORY_H

#include "common/ports/broker.h"
#include "common/ports/caller.h"
#include "common/ports/clock.h"
#include "common/ports/store.h"
#include <stdbool.h>
#include <stdint.h>

struct sl_memory;

struct sl_memory *sl_memory_new(int64_t now_ms);
/* Frees the world with everything in it; ports need not be closed before. NULL is allowed. */
void sl_memory_free(struct sl_memory *world);

/* --- processes: ports of the living process of that name (made when there is none) --- */
struct sl_broker *sl_memory_broker(struct sl_memory *world, const char *process);
struct sl_store *sl_memory_store(struct sl_memory *world, const char *process);
struct sl_clock *sl_memory_clock(struct sl_memory *world, const char *process);
struct sl_caller *sl_memory_caller(struct sl_memory *world, const char *process);

/* The process is gone at once: no callback reaches it any more, its timers are dropped. What it had sent and what
 * was still on the way is either lost (lose_sent) or arrives, as of a zombie's last words. Its group membership
 * stays until sl_memory_expire, or until a process of the same name joins (group.instance.id) and takes it over.
 * The caller still closes consumers and ports that it owns, or leaves them to the world. */
void sl_memory_kill(struct sl_memory *world, const char *process, bool lose_sent);

/* --- scheduling --- */
/* Runs pending tasks, also those that come up meanwhile, in order of creation, at most max (0: no limit). Timers do
 * not fire. Returns how many ran. */
int64_t sl_memory_turn(struct sl_memory *world, int64_t max);
/* Lanes with something pending, and running the first task of lane number n < count (for a seed to choose). Numbers
 * are valid until the next task runs or any port is called. */
int sl_memory_lanes(const struct sl_memory *world);
void sl_memory_run(struct sl_memory *world, int lane);
/* What lane n is: "A>topic/3", "A<store", ... for failure reports. Valid until the next call. */
const char *sl_memory_lane_name(struct sl_memory *world, int lane);

/* --- time (virtual; also the broker's append time) --- */
int64_t sl_memory_now(const struct sl_memory *world);
/* A step of the cluster's clock, also backwards. Fires nothing. */
void sl_memory_set_now(struct sl_memory *world, int64_t now_ms);
/* Due time of the next timer or HTTP answer; INT64_MAX: none. */
int64_t sl_memory_due(const struct sl_memory *world);
/* Fires the next one that is due by until_ms, moving time to it (never back): true. Else time moves to until_ms
 * (unless that is INT64_MAX) and the result is false. At one instant HTTP answers come before timers, each in order
 * of setting. Tasks do not run: call sl_memory_turn between. */
bool sl_memory_fire(struct sl_memory *world, int64_t until_ms);
/* The process's clock shows the cluster's time plus skew_ms; its timers are set by what it shows. */
void sl_memory_skew(struct sl_memory *world, const char *process, int64_t skew_ms);

/* --- broker --- */
/* Creates a topic; more partitions of an existing one are added. bytes_max 0: 1 MiB a record. */
void sl_memory_topic(struct sl_memory *world, const char *topic, int32_t partitions, size_t bytes_max);
/* Forgets records before `low` (retention). */
void sl_memory_trim(struct sl_memory *world, const char *topic, int32_t partition, int64_t low);
/* Any record that is there, for checkers; false: no such. Borrows from the world. */
bool sl_memory_record(
	struct sl_memory *world, const char *topic, int32_t partition, int64_t offset, struct sl_record *ret);
/* One-behind-last offset, -1 if there is no such partition. */
int64_t sl_memory_high(struct sl_memory *world, const char *topic, int32_t partition);
/* At most `count` unanswered records a process before produce says SL_EAGAIN; default 100 000. */
void sl_memory_queue_max(struct sl_memory *world, int count);
/* The session of the process ends in all groups: its partitions go to others while it still believes it owns them (a
 * zombie). Its commits are refused with SL_EFENCED. sl_memory_rejoin: it notices, is told of the revocation, and
 * joins again. */
void sl_memory_expire(struct sl_memory *world, const char *process);
void sl_memory_rejoin(struct sl_memory *world, const char *process);
/* A fatal error of the process's producer: the new one sends every record again whose answer is not there yet, in order (R12), so
 * that those which had arrived are there twice. */
void sl_memory_producer_fatal(struct sl_memory *world, const char *process);
/* How often the process has taken one partition of the store since its session ended, at most; 0 for a member. */
int sl_memory_lapsed_takes(struct sl_memory *world, const char *process);
/* Group offset as the cluster knows it, -1 none. */
int64_t sl_memory_group_offset(struct sl_memory *world, const char *group, const char *topic, int32_t partition);

/* --- store --- */
/* The connection of the process breaks: the first `applied` commands on the way are executed, the others never are;
 * none of them, nor those whose answer was on its way, gets its answer: commits and writes end with SL_ELOST, reads
 * with SL_EUNREACHABLE. Commands given later work again, over another connection (session). */
void sl_memory_cut(struct sl_memory *world, const char *process, int applied);
/* The same, and there is no other connection before sl_memory_reconnect: commands given until then end with SL_EUNREACHABLE,
 * unapplied. With `answered` only the commands that were not executed miss their answers. reconnect hands over what has not arrived
 * yet, then the session is another one; nothing happens to a process that was not severed. */
void sl_memory_sever(struct sl_memory *world, const char *process, int applied, bool answered);
void sl_memory_reconnect(struct sl_memory *world, const char *process);
/* Commands on the way of the process (for a seed to choose `applied`). */
int sl_memory_store_pending(struct sl_memory *world, const char *process);
/* While up is false every command ends with SL_EUNREACHABLE, unapplied; with text, check and writes end with SL_ESTORE
 * and that text (disk full, ...). up true and text NULL: all well. */
void sl_memory_store_state(struct sl_memory *world, bool up, const char *text);
/* What a key holds, for checkers: partition -1 keys without tag. Caller frees with sl_memory_hash_free. */
struct sl_hash *sl_memory_peek(struct sl_memory *world, int32_t partition, const char *key);
void sl_memory_hash_free(struct sl_hash *hash);
/* Visits every key that is there, partition -1 for those without tag; visit may peek. */
void sl_memory_keys(
	struct sl_memory *world, void (*visit)(void *arg, int32_t partition, const char *key), void *arg);
/* Backup and restore (R10): a copy of the whole store, and going back to it. That breaks the connections of all processes that are not
 * severed, as sl_memory_cut with nothing executed; last words of the dead are lost. Free with sl_memory_backup_free. */
struct sl_memory_backup;
struct sl_memory_backup *sl_memory_backup(struct sl_memory *world);
void sl_memory_restore(struct sl_memory *world, const struct sl_memory_backup *backup);
/* The same, but the store that was there lives on for those who are connected: each has it until it is severed and reconnects. */
void sl_memory_restore_beside(struct sl_memory *world, const struct sl_memory_backup *backup);
void sl_memory_backup_free(struct sl_memory_backup *backup);

/* --- HTTP --- */
/* Decides the answer to a call when it is made: fill `ret` (borrowed until the next call; it is copied) and return the
 * delay in ms. Without a mock every call ends with SL_EUNREACHABLE. A delay beyond req->timeout_ms (if set) becomes
 * SL_ETIMEOUT at that time. */
typedef int64_t (*sl_memory_mock_fn)(void *arg, const struct sl_http_request *req, struct sl_http_answer *ret);
void sl_memory_mock(struct sl_memory *world, sl_memory_mock_fn mock, void *arg);

#endif
