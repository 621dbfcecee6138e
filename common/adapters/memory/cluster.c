/* Topics, partitions and produced records; the broker port's function table. */
#include "common/adapters/memory/world.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX_DEFAULT ((size_t)1 << 20)

struct send {
	struct task task;
	struct partition *part; /* NULL: refused */
	struct stored *rec;	/* NULL: appended already */
	struct stored *sent;	/* it, as it lies in the partition; the answer is on its way */
	sl_delivered_fn delivered;
	void *arg;
	int err;
};

static struct process *process_of(struct sl_broker *broker)
{
	return (struct process *)((char *)broker - offsetof(struct process, broker));
}

/* --- topics --- */

static struct topic *topic_find(struct sl_memory *world, const char *name)
{
	return sl_map_get(&world->topics, name);
}

void sl_memory_topic(struct sl_memory *world, const char *name, int32_t partitions, size_t bytes_max)
{
	struct topic *topic = topic_find(world, name);
	if (!topic) {
		topic = sl_mem_new(sizeof(*topic));
		topic->name = sl_mem_str(name);
		sl_map_set(&world->topics, name, topic);
	}
	topic->bytes_max = bytes_max ? bytes_max : BYTES_MAX_DEFAULT;
	if (partitions <= topic->count)
		return;
	topic->parts = realloc(topic->parts, (size_t)partitions * sizeof(struct partition *));
	sl_assert(topic->parts);
	while (topic->count < partitions) {
		struct partition *part = sl_mem_new(sizeof(*part));
		part->topic = topic;
		part->number = topic->count;
		part->gid = world->part_count++;
		topic->parts[topic->count++] = part;
	}
}

struct partition *sl_mem_partition_find(struct sl_memory *world, const char *name, int32_t number)
{
	struct topic *topic = topic_find(world, name);
	return topic && number >= 0 && number < topic->count ? topic->parts[number] : NULL;
}

void sl_memory_trim(struct sl_memory *world, const char *topic, int32_t partition, int64_t low)
{
	struct partition *part = sl_mem_partition_find(world, topic, partition);
	sl_assert(part);
	if (low > part->low)
		part->low = low < part->high ? low : part->high;
}

int64_t sl_memory_high(struct sl_memory *world, const char *topic, int32_t partition)
{
	const struct partition *part = sl_mem_partition_find(world, topic, partition);
	return part ? part->high : -1;
}

bool sl_memory_record(
	struct sl_memory *world, const char *topic, int32_t partition, int64_t offset, struct sl_record *ret)
{
	const struct partition *part = sl_mem_partition_find(world, topic, partition);
	if (!part || offset < part->low || offset >= part->high)
		return false;
	const struct stored *rec = part->records[offset];
	*ret = (struct sl_record){.topic = part->topic->name,
		.partition = part->number,
		.offset = rec->offset,
		.time_ms = rec->time_ms,
		.key = rec->key,
		.value = rec->value,
		.headers = rec->headers,
		.header_count = rec->header_count};
	return true;
}

static void topic_free(void *value)
{
	struct topic *topic = value;
	for (int32_t i = 0; i < topic->count; i++) {
		struct partition *part = topic->parts[i];
		for (int64_t o = 0; o < part->high; o++)
			free(part->records[o]);
		free(part->records);
		free(part);
	}
	free(topic->parts);
	free(topic->name);
	free(topic);
}

void sl_mem_cluster_free(struct sl_memory *world)
{
	sl_map_release(&world->topics, topic_free);
}

/* --- producing --- */

static struct sl_bytes put(char **at, struct sl_bytes src)
{
	if (!src.ptr)
		return (struct sl_bytes){0};
	struct sl_bytes dst = {.ptr = *at, .len = src.len};
	memcpy(*at, src.ptr, src.len);
	(*at)[src.len] = 0;
	*at += src.len + 1;
	return dst;
}

static size_t record_bytes(const struct sl_record *rec)
{
	size_t bytes = rec->key.len + rec->value.len;
	for (int i = 0; i < rec->header_count; i++)
		bytes += strlen(rec->headers[i].name) + rec->headers[i].value.len;
	return bytes;
}

/* One block: struct, headers, bytes. */
static struct stored *record_copy(const struct sl_record *rec, size_t bytes)
{
	size_t heads = (size_t)rec->header_count * sizeof(struct sl_header);
	struct stored *copy = sl_mem_new(sizeof(*copy) + heads + bytes + 2 + 2 * (size_t)rec->header_count);
	copy->headers = (struct sl_header *)(copy + 1);
	copy->header_count = rec->header_count;
	char *at = (char *)(copy + 1) + heads;
	copy->key = put(&at, rec->key);
	copy->value = put(&at, rec->value);
	for (int i = 0; i < rec->header_count; i++) {
		const char *name = rec->headers[i].name;
		copy->headers[i].name = put(&at, (struct sl_bytes){name, strlen(name)}).ptr;
		copy->headers[i].value = put(&at, rec->headers[i].value);
	}
	return copy;
}

static struct link *link_get(struct process *proc, struct partition *part)
{
	if (part->gid >= proc->link_count) {
		int count = proc->world->part_count;
		proc->links = realloc(proc->links, (size_t)count * sizeof(struct link *));
		sl_assert(proc->links);
		memset(proc->links + proc->link_count, 0, (size_t)(count - proc->link_count) * sizeof(struct link *));
		proc->link_count = count;
	}
	if (!proc->links[part->gid]) {
		struct link *link = sl_mem_new(sizeof(*link));
		sl_mem_lane_init(&link->out, proc->name, ">", part->topic->name, part->number);
		sl_mem_lane_init(&link->in, proc->name, "<", part->topic->name, part->number);
		proc->links[part->gid] = link;
	}
	return proc->links[part->gid];
}

static void append(struct sl_memory *world, struct partition *part, struct stored *rec)
{
	if (part->high == part->cap) {
		part->cap = part->cap ? part->cap * 2 : 16;
		part->records = realloc(part->records, (size_t)part->cap * sizeof(struct stored *));
		sl_assert(part->records);
	}
	rec->offset = part->high;
	rec->time_ms = world->now_ms;
	part->records[part->high++] = rec;
	sl_mem_consumer_fetch(world, part);
}

static void answer_run(struct sl_memory *world, struct task *task, bool dropped)
{
	(void)world;
	struct send *send = (struct send *)task;
	task->to->unanswered--;
	if (!dropped && send->delivered)
		send->delivered(send->arg, send->err);
	free(send);
}

/* The record reaches its partition; from there on the same task is the answer. */
static void send_run(struct sl_memory *world, struct task *task, bool dropped)
{
	struct send *send = (struct send *)task;
	struct process *proc = task->from;
	if (dropped) {
		proc->unanswered--;
		free(send->rec);
		free(send);
		return;
	}
	append(world, send->part, send->rec);
	send->sent = send->rec;
	send->rec = NULL;
	if (proc->dead) {
		free(send);
		return;
	}
	task->from = NULL;
	task->to = proc;
	task->run = answer_run;
	sl_mem_task_add(world, &link_get(proc, send->part)->in, task);
}

void sl_memory_producer_fatal(struct sl_memory *world, const char *process)
{
	struct process *proc = sl_mem_process_find(world, process);
	for (int i = 0; i < proc->link_count; i++) {
		struct link *link = proc->links[i];
		for (struct task *task = link ? link->in.first : NULL; task; task = task->lane_next) {
			const struct send *send = (struct send *)task;
			struct sl_record rec = {.key = send->sent->key,
				.value = send->sent->value,
				.headers = send->sent->headers,
				.header_count = send->sent->header_count};
			append(world, send->part, record_copy(&rec, record_bytes(&rec)));
		}
	}
}

static int produce(struct sl_broker *broker, const struct sl_record *rec, sl_delivered_fn delivered, void *arg)
{
	struct process *proc = process_of(broker);
	struct sl_memory *world = proc->world;
	if (proc->dead)
		return SL_EUNREACHABLE;
	if (proc->unanswered >= world->queue_max)
		return SL_EAGAIN;
	struct topic *topic = topic_find(world, rec->topic);
	size_t bytes = record_bytes(rec);
	struct send *send = sl_mem_new(sizeof(*send));
	send->delivered = delivered;
	send->arg = arg;
	send->task.port = PORT_BROKER;
	proc->unanswered++;
	if (!topic || rec->partition >= topic->count)
		send->err = SL_EREFUSED;
	else if (bytes > topic->bytes_max)
		send->err = SL_ETOOBIG;
	if (send->err) {
		send->task.to = proc;
		send->task.run = answer_run;
		sl_mem_task_add(world, &proc->refusals, &send->task);
		return 0;
	}
	int32_t number = rec->partition;
	if (number < 0) {
		uint32_t hash = rec->key.ptr ? sl_murmur2(rec->key.ptr, rec->key.len) & 0x7fffffff : proc->spread++;
		number = (int32_t)(hash % (uint32_t)topic->count);
	}
	send->part = topic->parts[number];
	send->rec = record_copy(rec, bytes);
	send->task.from = proc;
	send->task.run = send_run;
	sl_mem_task_add(world, &link_get(proc, send->part)->out, &send->task);
	return 0;
}

static void kick(struct sl_broker *broker)
{
	(void)broker; /* what was produced is on its way already */
}

static int partitions(struct sl_broker *broker, const char *name, int32_t *ret_count)
{
	const struct topic *topic = topic_find(process_of(broker)->world, name);
	if (!topic)
		return SL_ENOTFOUND;
	*ret_count = topic->count;
	return 0;
}

static int watermarks(
	struct sl_broker *broker, const char *topic, int32_t partition, int64_t *ret_low, int64_t *ret_high)
{
	const struct partition *part = sl_mem_partition_find(process_of(broker)->world, topic, partition);
	if (!part)
		return SL_ENOTFOUND;
	*ret_low = part->low;
	*ret_high = part->high;
	return 0;
}

static bool delivery_to(const struct task *task, const void *arg)
{
	return task->to == arg && task->port == PORT_BROKER;
}

/* What was produced still arrives; nobody is told. */
static void broker_close(struct sl_broker *broker, int timeout_ms)
{
	(void)timeout_ms;
	struct process *proc = process_of(broker);
	sl_mem_task_drop(proc->world, delivery_to, proc);
	for (struct task *task = proc->world->first; task; task = task->next)
		if (task->from == proc && task->run == send_run)
			((struct send *)task)->delivered = NULL;
}

const struct sl_broker_ops sl_mem_broker_ops = {
	.produce = produce,
	.kick = kick,
	.partitions = partitions,
	.consumer_new = sl_mem_consumer_new,
	.start = sl_mem_consumer_start,
	.poll = sl_mem_consumer_poll,
	.release = sl_mem_consumer_release,
	.pause = sl_mem_consumer_pause,
	.hand_over = sl_mem_consumer_hand_over,
	.commit = sl_mem_consumer_commit,
	.committed = sl_mem_consumer_committed,
	.watermarks = watermarks,
	.consumer_close = sl_mem_consumer_close,
	.close = broker_close,
};
