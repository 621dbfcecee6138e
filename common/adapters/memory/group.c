/* Consumer groups: membership by process name (group.instance.id), cooperative and sticky assignment, offsets. */
#include "common/adapters/memory/world.h"
#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

struct group *sl_mem_group_get(struct sl_memory *world, const char *name)
{
	for (struct group *g = world->groups; g; g = g->next)
		if (strcmp(g->name, name) == 0)
			return g;
	struct group *group = sl_mem_new(sizeof(*group));
	group->name = sl_mem_str(name);
	sl_mem_lane_init(&group->lane, "group", " ", group->name, -1);
	group->next = world->groups;
	world->groups = group;
	return group;
}

struct claim *sl_mem_group_claim(struct group *group, int gid)
{
	if (gid >= group->claim_count) {
		group->claims = realloc(group->claims, (size_t)(gid + 1) * sizeof(struct claim));
		sl_assert(group->claims);
		for (int i = group->claim_count; i <= gid; i++)
			group->claims[i] = (struct claim){.offset = -1};
		group->claim_count = gid + 1;
	}
	return &group->claims[gid];
}

static struct partition *part_of(struct sl_memory *world, int gid)
{
	sl_map_each(&world->topics, e)
	{
		struct topic *topic = e->value;
		for (int32_t i = 0; i < topic->count; i++)
			if (topic->parts[i]->gid == gid)
				return topic->parts[i];
	}
	return NULL;
}

static bool wants(const struct member *member, const struct topic *topic)
{
	for (int i = 0; i < member->con->topic_count; i++)
		if (member->con->topics[i] == topic)
			return true;
	return false;
}

static void grant(struct claim *claim, struct partition *part)
{
	claim->owner = claim->target;
	if (claim->owner)
		sl_mem_consumer_call(claim->owner->con, part, CALL_ASSIGNED);
}

/* Who keeps, who gets: members keep up to their share, the rest goes to those with least. */
static void choose(struct sl_memory *world, struct group *group)
{
	int members = 0, parts = 0;
	for (struct member *m = group->members; m; m = m->next) {
		m->count = 0;
		members++;
	}
	sl_map_each(&world->topics, e)
	{
		struct topic *topic = e->value;
		bool wanted = false;
		for (struct member *m = group->members; m && !wanted; m = m->next)
			wanted = wants(m, topic);
		if (wanted)
			parts += topic->count;
		for (int32_t i = 0; i < topic->count; i++)
			sl_mem_group_claim(group, topic->parts[i]->gid)->target = NULL;
	}
	if (members == 0)
		return;
	int share = parts / members, extra = parts % members;
	sl_map_each(&world->topics, e)
	{
		struct topic *topic = e->value;
		for (int32_t i = 0; i < topic->count; i++) {
			struct claim *claim = sl_mem_group_claim(group, topic->parts[i]->gid);
			struct member *m = claim->owner;
			if (!m || !wants(m, topic) || m->count > share || (m->count == share && extra == 0))
				continue;
			if (m->count == share)
				extra--;
			m->count++;
			claim->target = m;
		}
	}
	sl_map_each(&world->topics, e)
	{
		struct topic *topic = e->value;
		for (int32_t i = 0; i < topic->count; i++) {
			struct claim *claim = sl_mem_group_claim(group, topic->parts[i]->gid);
			struct member *least = NULL;
			for (struct member *m = group->members; m && !claim->target; m = m->next)
				if (wants(m, topic) && (!least || m->count < least->count))
					least = m;
			if (least) {
				least->count++;
				claim->target = least;
			}
		}
	}
}

static void rebalance_run(struct sl_memory *world, struct task *task, bool dropped)
{
	struct group *group = NULL;
	for (struct group *g = world->groups; g; g = g->next)
		if (task->lane == &g->lane)
			group = g;
	free(task);
	sl_assert(group);
	group->queued = false;
	if (dropped)
		return;
	choose(world, group);
	sl_map_each(&world->topics, e)
	{
		struct topic *topic = e->value;
		for (int32_t i = 0; i < topic->count; i++) {
			struct partition *part = topic->parts[i];
			struct claim *claim = sl_mem_group_claim(group, part->gid);
			if (!claim->owner) {
				grant(claim, part);
			} else if (claim->owner != claim->target && !claim->revoking) {
				claim->revoking = true;
				if (claim->owner->con->proc->dead)
					continue; /* waits for its session to end, or for its return */
				sl_mem_consumer_call(claim->owner->con, part,
					claim->owner->con->hand_over_ms ? CALL_HANDING : CALL_REVOKED);
			}
		}
	}
}

static void rebalance(struct sl_memory *world, struct group *group)
{
	if (group->queued)
		return;
	struct task *task = sl_mem_new(sizeof(*task));
	task->run = rebalance_run;
	group->queued = true;
	sl_mem_task_add(world, &group->lane, task);
}

/* The service has been told; the next owner's turn. */
void sl_mem_group_revoked(struct sl_consumer *con, struct partition *part)
{
	if (!con->member)
		return;
	struct claim *claim = sl_mem_group_claim(con->group, part->gid);
	if (claim->owner != con->member)
		return;
	claim->revoking = false;
	claim->owner = NULL;
	if (claim->target)
		grant(claim, part);
}

/* A member with this process's name is replaced, and its partitions stay where they were. */
static bool take_over(struct sl_consumer *con)
{
	for (struct member *m = con->group->members; m; m = m->next) {
		if (strcmp(m->con->proc->name, con->proc->name) != 0 || m->con == con)
			continue;
		struct sl_consumer *old = m->con;
		old->member = NULL;
		sl_mem_consumer_fatal(
			old, SL_EFENCED, sl_mem_str("another process has joined the group under the same instance id"));
		m->con = con;
		con->member = m;
		for (int gid = 0; gid < con->group->claim_count; gid++) {
			struct claim *claim = &con->group->claims[gid];
			if (claim->owner != m)
				continue;
			struct partition *part = part_of(con->proc->world, gid);
			claim->revoking = false;
			if (claim->target != m)
				claim->owner = NULL;
			else
				sl_mem_consumer_call(con, part, CALL_ASSIGNED);
			if (!claim->owner && claim->target)
				grant(claim, part);
		}
		return true;
	}
	return false;
}

void sl_mem_group_join(struct sl_consumer *con)
{
	if (!take_over(con)) {
		struct member *m = sl_mem_new(sizeof(*m));
		m->group = con->group;
		m->con = con;
		con->member = m;
		struct member **at = &con->group->members;
		while (*at)
			at = &(*at)->next;
		*at = m;
	}
	rebalance(con->proc->world, con->group);
}

/* The group forgets the member; its partitions are free. */
static void dismiss(struct sl_memory *world, struct group *group, struct member *member)
{
	for (struct member **at = &group->members; *at; at = &(*at)->next) {
		if (*at != member)
			continue;
		*at = member->next;
		break;
	}
	for (int gid = 0; gid < group->claim_count; gid++) {
		struct claim *claim = &group->claims[gid];
		if (claim->target == member)
			claim->target = NULL;
		if (claim->owner != member)
			continue;
		claim->owner = NULL;
		claim->revoking = false;
		if (claim->target)
			grant(claim, part_of(world, gid));
	}
	member->con->member = NULL;
	free(member);
	rebalance(world, group);
}

void sl_mem_group_leave(struct sl_consumer *con)
{
	if (con->member)
		dismiss(con->proc->world, con->group, con->member);
}

void sl_memory_expire(struct sl_memory *world, const char *process)
{
	for (struct group *g = world->groups; g; g = g->next) {
		for (struct member *m = g->members, *next; m; m = next) {
			next = m->next;
			if (strcmp(m->con->proc->name, process) == 0)
				dismiss(world, g, m);
		}
	}
}

static bool in_lane(const struct task *task, const void *arg)
{
	return task->lane == arg;
}

void sl_memory_rejoin(struct sl_memory *world, const char *process)
{
	struct process *proc = sl_mem_process_find(world, process);
	sl_map_release(&proc->lapsed, NULL);
	sl_map_init(&proc->lapsed);
	for (struct sl_consumer *con = proc->consumers; con; con = con->next) {
		if (con->closed || !con->group || con->member)
			continue;
		sl_mem_task_drop(world, in_lane, &con->calls); /* news of the assignment that has lapsed */
		for (int i = 0; i < con->part_count; i++) {
			if (!con->parts[i] || !con->parts[i]->assigned)
				continue;
			sl_mem_consumer_unbind(con->parts[i]);
			sl_mem_consumer_call(con, con->parts[i]->part, CALL_REVOKED);
		}
		sl_mem_group_join(con);
	}
}

/* --- offsets --- */

struct commit {
	struct task task;
	int gid, err;
	int64_t offset;
	char *metadata;
	void (*done)(void *arg, int err);
	void *arg;
};

static void commit_answered(struct sl_memory *world, struct task *task, bool dropped)
{
	(void)world;
	struct commit *commit = (struct commit *)task;
	if (!dropped && commit->done)
		commit->done(commit->arg, commit->err);
	free(commit->metadata);
	free(commit);
}

static void commit_run(struct sl_memory *world, struct task *task, bool dropped)
{
	struct commit *commit = (struct commit *)task;
	struct sl_consumer *con = task->con;
	if (dropped) {
		commit_answered(world, task, true);
		return;
	}
	if (!con->member) {
		commit->err = SL_EFENCED;
	} else {
		struct claim *claim = sl_mem_group_claim(con->group, commit->gid);
		free(claim->metadata);
		claim->metadata = commit->metadata;
		claim->offset = commit->offset;
		commit->metadata = NULL;
	}
	if (con->proc->dead) {
		commit_answered(world, task, true);
		return;
	}
	task->from = NULL;
	task->to = con->proc;
	task->run = commit_answered;
	sl_mem_task_add(world, &con->answers, task);
}

int sl_mem_consumer_commit(struct sl_consumer *con, const char *topic, int32_t partition, int64_t offset,
	const char *metadata, void (*done)(void *arg, int err), void *arg)
{
	struct partition *part = sl_mem_partition_find(con->proc->world, topic, partition);
	if (!part || !con->group || offset < 0)
		return SL_EINVAL;
	if (con->proc->dead || con->closed)
		return SL_EUNREACHABLE;
	struct commit *commit = sl_mem_new(sizeof(*commit));
	commit->gid = part->gid;
	commit->offset = offset;
	commit->metadata = sl_mem_str(metadata);
	commit->done = done;
	commit->arg = arg;
	commit->task.from = con->proc;
	commit->task.port = PORT_CONSUMER;
	commit->task.con = con;
	commit->task.run = commit_run;
	sl_mem_task_add(con->proc->world, &con->commits, &commit->task);
	return 0;
}

int sl_mem_consumer_committed(
	struct sl_consumer *con, const char *topic, int32_t partition, int64_t *ret_offset, char **ret_metadata)
{
	struct partition *part = sl_mem_partition_find(con->proc->world, topic, partition);
	if (!part || !con->group)
		return SL_EINVAL;
	const struct claim *claim = sl_mem_group_claim(con->group, part->gid);
	*ret_offset = claim->offset;
	if (ret_metadata)
		*ret_metadata = sl_mem_str(claim->metadata);
	return 0;
}

int64_t sl_memory_group_offset(struct sl_memory *world, const char *group, const char *topic, int32_t partition)
{
	struct partition *part = sl_mem_partition_find(world, topic, partition);
	return part ? sl_mem_group_claim(sl_mem_group_get(world, group), part->gid)->offset : -1;
}

void sl_mem_groups_free(struct sl_memory *world)
{
	while (world->groups) {
		struct group *group = world->groups;
		world->groups = group->next;
		while (group->members) {
			struct member *m = group->members;
			group->members = m->next;
			free(m);
		}
		for (int i = 0; i < group->claim_count; i++)
			free(group->claims[i].metadata);
		free(group->claims);
		free(group->name);
		free(group);
	}
}
