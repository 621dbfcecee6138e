/* Consumers: what is assigned, from where it is read, and what has arrived. */
#include "common/adapters/memory/world.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct process *process_of(struct sl_broker *broker)
{
	return (struct process *)((char *)broker - offsetof(struct process, broker));
}

struct conpart *sl_mem_consumer_part(struct sl_consumer *con, struct partition *part)
{
	if (part->gid >= con->part_count) {
		int count = con->proc->world->part_count;
		con->parts = realloc(con->parts, (size_t)count * sizeof(struct conpart *));
		sl_assert(con->parts);
		memset(con->parts + con->part_count, 0, (size_t)(count - con->part_count) * sizeof(struct conpart *));
		con->part_count = count;
	}
	if (!con->parts[part->gid]) {
		struct conpart *cp = sl_mem_new(sizeof(*cp));
		cp->con = con;
		cp->part = part;
		sl_mem_lane_init(&cp->lane, con->proc->name, "=", part->topic->name, part->number);
		con->parts[part->gid] = cp;
	}
	return con->parts[part->gid];
}

/* The partition if the consumer believes it owns it, else NULL. */
static struct conpart *owned(struct sl_consumer *con, const char *topic, int32_t partition)
{
	struct partition *part = sl_mem_partition_find(con->proc->world, topic, partition);
	if (!part || part->gid >= con->part_count || !con->parts[part->gid] || !con->parts[part->gid]->assigned)
		return NULL;
	return con->parts[part->gid];
}

/* --- calls to the service --- */

struct call {
	struct task task;
	struct partition *part;
	struct member *member; /* of the assignment that it tells of; NULL: one that has lapsed */
	enum call_kind kind;
	int err;
	char *text; /* of fatal */
};

struct bound { /* when handing a partition over ends by itself */
	struct due due;
	struct conpart *cp;
};

static void revoke(struct conpart *cp, struct member *member)
{
	struct sl_consumer *con = cp->con;
	sl_mem_consumer_forget(cp);
	con->events.revoked(con->events.arg, cp->part->topic->name, cp->part->number);
	if (member == con->member) /* else the group has given it out anew already */
		sl_mem_group_revoked(con, cp->part);
}

static void bound_fire(struct sl_memory *world, struct due *due, bool dropped)
{
	(void)world;
	struct conpart *cp = ((struct bound *)due)->cp;
	cp->bound = NULL;
	free(due);
	if (!dropped)
		sl_mem_consumer_call(cp->con, cp->part, CALL_REVOKED);
}

void sl_mem_consumer_unbind(struct conpart *cp)
{
	if (!cp->bound)
		return;
	sl_mem_due_remove(cp->con->proc->world, &cp->bound->due);
	free(cp->bound);
	cp->bound = NULL;
}

static void ask(struct conpart *cp)
{
	struct sl_consumer *con = cp->con;
	struct bound *bound = sl_mem_new(sizeof(*bound));
	bound->due.at_ms = con->proc->world->now_ms + con->hand_over_ms;
	bound->due.proc = con->proc;
	bound->due.rank = 1;
	bound->due.fire = bound_fire;
	bound->cp = cp;
	cp->handing = true;
	cp->bound = bound;
	sl_mem_due_add(con->proc->world, &bound->due);
	con->events.handing(con->events.arg, cp->part->topic->name, cp->part->number);
}

static void call_run(struct sl_memory *world, struct task *task, bool dropped)
{
	(void)world;
	struct call *call = (struct call *)task;
	struct sl_consumer *con = task->con;
	if (!dropped && call->text) {
		con->events.fatal(con->events.arg, call->err, call->text);
	} else if (!dropped) {
		struct conpart *cp = sl_mem_consumer_part(con, call->part);
		if (call->kind == CALL_ASSIGNED) {
			cp->assigned = true;
			con->events.assigned(con->events.arg, call->part->topic->name, call->part->number);
		} else if (cp->assigned && call->kind == CALL_HANDING) {
			ask(cp);
		} else if (cp->assigned) {
			revoke(cp, call->member);
		}
	}
	free(call->text);
	free(call);
}

static struct call *call_new(struct sl_consumer *con)
{
	struct call *call = sl_mem_new(sizeof(*call));
	call->task.to = con->proc;
	call->task.port = PORT_CONSUMER;
	call->task.con = con;
	call->task.run = call_run;
	return call;
}

void sl_mem_consumer_call(struct sl_consumer *con, struct partition *part, enum call_kind kind)
{
	if (con->closed || con->proc->dead)
		return;
	struct call *call = call_new(con);
	call->part = part;
	call->member = con->member;
	call->kind = kind;
	sl_mem_task_add(con->proc->world, &con->calls, &call->task);
}

/* Takes text. */
void sl_mem_consumer_fatal(struct sl_consumer *con, int err, char *text)
{
	if (con->closed || con->proc->dead) {
		free(text);
		return;
	}
	struct call *call = call_new(con);
	call->err = err;
	call->text = text;
	sl_mem_task_add(con->proc->world, &con->calls, &call->task);
}

/* --- fetching --- */

struct fetch {
	struct task task;
	struct conpart *cp;
};

static void fetch_run(struct sl_memory *world, struct task *task, bool dropped)
{
	(void)world;
	struct conpart *cp = ((struct fetch *)task)->cp;
	free(task);
	cp->fetching = false;
	if (dropped || !cp->started)
		return;
	cp->visible = cp->part->high;
	cp->con->unread = true;
	if (!cp->paused && !cp->handing && cp->position < cp->visible)
		cp->con->events.readable(cp->con->events.arg);
}

static void fetch_queue(struct conpart *cp)
{
	if (cp->fetching || cp->con->closed || cp->con->proc->dead)
		return;
	struct fetch *fetch = sl_mem_new(sizeof(*fetch));
	fetch->cp = cp;
	fetch->task.to = cp->con->proc;
	fetch->task.port = PORT_CONSUMER;
	fetch->task.con = cp->con;
	fetch->task.run = fetch_run;
	cp->fetching = true;
	sl_mem_task_add(cp->con->proc->world, &cp->lane, &fetch->task);
}

void sl_mem_consumer_fetch(struct sl_memory *world, struct partition *part)
{
	(void)world;
	for (struct conpart *cp = part->readers; cp; cp = cp->reader_next)
		fetch_queue(cp);
}

/* No longer read, no longer ours. */
void sl_mem_consumer_forget(struct conpart *cp)
{
	struct conpart **at = &cp->part->readers;
	while (*at && *at != cp)
		at = &(*at)->reader_next;
	if (*at)
		*at = cp->reader_next;
	cp->assigned = cp->started = cp->paused = cp->handing = false;
	sl_mem_consumer_unbind(cp);
}

void sl_mem_consumer_hand_over(struct sl_consumer *con, const char *topic, int32_t partition)
{
	struct conpart *cp = owned(con, topic, partition);
	if (!cp || !cp->bound)
		return;
	sl_mem_consumer_unbind(cp);
	sl_mem_consumer_call(con, cp->part, CALL_REVOKED);
}

/* --- the port --- */

int sl_mem_consumer_new(struct sl_broker *broker, const struct sl_consumer_options *opt, struct sl_consumer **ret)
{
	struct process *proc = process_of(broker);
	struct sl_memory *world = proc->world;
	for (int i = 0; i < opt->topic_count; i++)
		if (!sl_mem_partition_find(world, opt->topics[i], 0))
			return SL_ENOTFOUND;
	struct sl_consumer *con = sl_mem_new(sizeof(*con));
	con->proc = proc;
	con->events = opt->events;
	con->hand_over_ms = opt->events.handing ? opt->hand_over_ms : 0;
	con->topic_count = opt->topic_count;
	con->topics = sl_mem_new(sizeof(struct topic *) * (size_t)(opt->topic_count + 1));
	for (int i = 0; i < opt->topic_count; i++)
		con->topics[i] = sl_mem_partition_find(world, opt->topics[i], 0)->topic;
	con->group = opt->group ? sl_mem_group_get(world, opt->group) : NULL;
	const char *group = con->group ? con->group->name : "assign"; /* the lanes live longer than the caller's text */
	sl_mem_lane_init(&con->calls, proc->name, "<", group, -1);
	sl_mem_lane_init(&con->commits, proc->name, ">", group, -1);
	sl_mem_lane_init(&con->answers, proc->name, "<", "commit", -1);
	con->next = proc->consumers;
	proc->consumers = con;
	if (con->group) {
		sl_mem_group_join(con);
	} else {
		for (int i = 0; i < con->topic_count; i++)
			for (int32_t p = 0; p < con->topics[i]->count; p++)
				sl_mem_consumer_call(con, con->topics[i]->parts[p], CALL_ASSIGNED);
	}
	*ret = con;
	return 0;
}

static char *out_of_range(const struct conpart *cp, int64_t offset)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_buf_printf(&text, "%s/%d: ", cp->part->topic->name, cp->part->number);
	if (offset == SL_OFFSET_COMMITTED)
		sl_buf_printf(&text, "group %s has no offset here", cp->con->group ? cp->con->group->name : "(none)");
	else
		sl_buf_printf(&text, "offset %lld is not there", (long long)offset);
	sl_buf_printf(&text,
		"; the log holds %lld to %lld. Choose: restore the topic, or set the offset by hand to one that it "
		"holds",
		(long long)cp->part->low, (long long)cp->part->high);
	return sl_buf_steal(&text);
}

int sl_mem_consumer_start(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset)
{
	struct conpart *cp = owned(con, topic, partition);
	if (!cp)
		return SL_EFENCED;
	int64_t at = offset;
	if (offset == SL_OFFSET_BEGINNING) {
		at = cp->part->low;
	} else if (offset == SL_OFFSET_COMMITTED) {
		const struct claim *claim = con->group ? sl_mem_group_claim(con->group, cp->part->gid) : NULL;
		at = claim ? claim->offset : -1;
	}
	if (at < cp->part->low || at > cp->part->high) {
		sl_mem_consumer_fatal(con, SL_ECONFIG, out_of_range(cp, offset));
		return 0;
	}
	if (!cp->started) {
		cp->started = true;
		cp->reader_next = cp->part->readers;
		cp->part->readers = cp;
	}
	cp->paused = false;
	cp->position = cp->visible = at;
	if (at < cp->part->high)
		fetch_queue(cp);
	return 0;
}

bool sl_mem_consumer_poll(struct sl_consumer *con, struct sl_record *ret, void **ret_handle)
{
	for (int i = 0; i < con->part_count && con->unread; i++) {
		int gid = (con->turn + i) % con->part_count;
		struct conpart *cp = con->parts[gid];
		if (!cp || !cp->started || cp->paused || cp->handing || cp->position >= cp->visible)
			continue;
		con->turn = gid; /* as brokers do: a partition's batch, then the next partition's */
		sl_assert(
			sl_memory_record(con->proc->world, cp->part->topic->name, cp->part->number, cp->position, ret));
		cp->position++;
		*ret_handle = NULL;
		return true;
	}
	con->unread = false;
	return false;
}

void sl_mem_consumer_release(struct sl_consumer *con, void *handle)
{
	(void)con; /* records stay until the world goes */
	(void)handle;
}

void sl_mem_consumer_pause(struct sl_consumer *con, const char *topic, int32_t partition, bool paused)
{
	struct conpart *cp = owned(con, topic, partition);
	if (!cp)
		return;
	cp->paused = paused;
	con->unread = true;
	if (!paused && cp->started && cp->position < cp->part->high)
		fetch_queue(cp);
}

static bool of_consumer(const struct task *task, const void *arg)
{
	return task->con == arg;
}

/* A close in good order waits for its commits. */
static void finish_commits(struct sl_consumer *con)
{
	while (con->commits.first) {
		struct task *task = con->commits.first;
		sl_mem_task_take(con->proc->world, task);
		task->run(con->proc->world, task, false);
	}
}

void sl_mem_consumer_close(struct sl_consumer *con)
{
	if (con->closed)
		return;
	if (!con->proc->dead)
		finish_commits(con);
	con->closed = true;
	for (int i = 0; i < con->part_count; i++)
		if (con->parts[i])
			sl_mem_consumer_forget(con->parts[i]);
	if (con->proc->dead)
		return; /* its last words may still be on the way */
	sl_mem_task_drop(con->proc->world, of_consumer, con);
	sl_mem_group_leave(con);
}

void sl_mem_consumers_free(struct process *proc)
{
	while (proc->consumers) {
		struct sl_consumer *con = proc->consumers;
		proc->consumers = con->next;
		for (int i = 0; i < con->part_count; i++)
			free(con->parts[i]);
		free(con->parts);
		free(con->topics);
		free(con);
	}
}
