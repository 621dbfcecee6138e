/* The store port in memory: commands travel, are executed one after another, and their answers travel back. */
#include "common/adapters/memory/keys.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include <stdlib.h>
#include <string.h>

enum verb { TAKE, LOAD, COMMIT, RANGE, STREAM, WRITE, CHECK };

struct command {
	struct task task;
	enum verb verb;
	struct sl_arena arena; /* arguments and result */
	int32_t partition;
	int64_t epoch;
	const char **keys; /* LOAD; else keys[0] */
	int key_count;
	struct sl_op *ops;
	int op_count, max;
	double min, max_score;
	int err;
	const char *text;
	struct sl_hash *hashes;
	struct sl_scored *items;
	struct sl_store_entry *entries;
	int count; /* of hashes, items or entries */
	union {
		sl_store_done_fn done;
		sl_store_hashes_fn hashes;
		sl_store_range_fn range;
		sl_store_stream_fn stream;
	} call;
	void *arg;
};

static struct process *process_of(struct sl_store *store)
{
	return (struct process *)((char *)store - offsetof(struct process, store));
}

/* --- execution --- */

/* Whom the group no longer counts in should not push out who owns the partition now (R4). */
static void note_take(struct process *proc, struct command *cmd)
{
	bool member = false;
	for (struct sl_consumer *con = proc->consumers; con; con = con->next)
		member = member || (con->group && con->member);
	if (member)
		return;
	const char *key = sl_arena_printf(&cmd->arena, "%s/%d", cmd->keys[0], (int)cmd->partition);
	sl_map_set(&proc->lapsed, key, (char *)sl_map_get(&proc->lapsed, key) + 1);
}

int sl_memory_lapsed_takes(struct sl_memory *world, const char *process)
{
	intptr_t most = 0;
	sl_map_each(&sl_mem_process_find(world, process)->lapsed, e)
		most = (intptr_t)e->value > most ? (intptr_t)e->value : most;
	return (int)most;
}

static void swap_stores(struct sl_memory *world)
{
	struct sl_map keys = world->keys;
	world->keys = world->old_keys;
	world->old_keys = keys;
}

static void execute_now(struct sl_memory *world, struct command *cmd)
{
	bool writes = cmd->verb == COMMIT || cmd->verb == WRITE || cmd->verb == TAKE;
	if (world->store_down) {
		cmd->err = SL_EUNREACHABLE;
		cmd->text = "the store cannot be reached";
		return;
	}
	if (world->store_text && (writes || cmd->verb == CHECK)) {
		cmd->err = SL_ESTORE;
		cmd->text = sl_arena_str(&cmd->arena, world->store_text);
		return;
	}
	switch (cmd->verb) {
	case TAKE:
		cmd->hashes = SL_NEW(&cmd->arena, struct sl_hash);
		cmd->count = 1;
		sl_mem_keys_take(world, cmd->partition, cmd->keys[0], &cmd->arena, cmd->hashes);
		note_take(cmd->task.from, cmd);
		break;
	case LOAD:
		cmd->hashes = SL_NEWN(&cmd->arena, struct sl_hash, cmd->key_count + 1);
		cmd->count = cmd->key_count;
		for (int i = 0; i < cmd->key_count; i++)
			sl_mem_keys_hash(world, cmd->partition, cmd->keys[i], &cmd->arena, &cmd->hashes[i]);
		break;
	case COMMIT:
		if (sl_mem_keys_epoch(world, cmd->partition, cmd->keys[0]) != cmd->epoch && SL_RULE(epoch)) {
			cmd->err = SL_EFENCED;
			cmd->text = "the partition has another owner";
			break;
		}
		cmd->err = sl_mem_keys_apply(world, cmd->partition, cmd->ops, cmd->op_count, &cmd->arena, &cmd->text);
		break;
	case RANGE:
		cmd->count = sl_mem_keys_range(world, cmd->partition, cmd->keys[0], cmd->min, cmd->max_score, cmd->max,
			&cmd->arena, &cmd->items);
		break;
	case STREAM:
		cmd->count =
			sl_mem_keys_stream(world, cmd->partition, cmd->keys[0], cmd->max, &cmd->arena, &cmd->entries);
		break;
	case WRITE:
		cmd->err = sl_mem_keys_apply(world, -1, cmd->ops, cmd->op_count, &cmd->arena, &cmd->text);
		break;
	case CHECK:
		break;
	}
}

static void execute(struct sl_memory *world, struct command *cmd)
{
	bool behind = cmd->task.from->behind;
	if (behind)
		swap_stores(world);
	execute_now(world, cmd);
	if (behind)
		swap_stores(world);
}

static void answer_run(struct sl_memory *world, struct task *task, bool dropped)
{
	(void)world;
	struct command *cmd = (struct command *)task;
	int count = cmd->err ? 0 : cmd->count;
	if (!dropped) {
		switch (cmd->verb) {
		case TAKE:
		case LOAD:
			cmd->call.hashes(cmd->arg, cmd->err, cmd->err ? NULL : cmd->hashes, count);
			break;
		case RANGE:
			cmd->call.range(cmd->arg, cmd->err, cmd->items, count);
			break;
		case STREAM:
			cmd->call.stream(cmd->arg, cmd->err, cmd->entries, count);
			break;
		case COMMIT:
		case WRITE:
		case CHECK:
			if (cmd->call.done)
				cmd->call.done(cmd->arg, cmd->err, cmd->text);
			break;
		}
	}
	sl_arena_release(&cmd->arena);
	free(cmd);
}

static void answer_queue(struct sl_memory *world, struct command *cmd, struct process *proc)
{
	cmd->task.from = NULL;
	cmd->task.to = proc;
	cmd->task.run = answer_run;
	sl_mem_task_add(world, &proc->answers, &cmd->task);
}

static void command_run(struct sl_memory *world, struct task *task, bool dropped)
{
	struct command *cmd = (struct command *)task;
	if (dropped) {
		answer_run(world, task, true);
		return;
	}
	execute(world, cmd);
	if (task->from->dead)
		answer_run(world, task, true);
	else
		answer_queue(world, cmd, task->from);
}

/* --- faults --- */

static void lose(struct command *cmd)
{
	bool writes = cmd->verb == COMMIT || cmd->verb == WRITE;
	cmd->err = writes ? SL_ELOST : SL_EUNREACHABLE;
	cmd->text = "the connection broke";
}

static void sever(struct process *proc, int applied, bool answered)
{
	struct sl_memory *world = proc->world;
	for (struct task *task = answered ? NULL : proc->answers.first; task; task = task->lane_next)
		lose((struct command *)task);
	for (int i = 0; proc->commands.first; i++) {
		struct command *cmd = (struct command *)proc->commands.first;
		sl_mem_task_take(world, &cmd->task);
		if (i < applied)
			execute(world, cmd);
		if (i >= applied || !answered)
			lose(cmd);
		answer_queue(world, cmd, proc);
	}
}

void sl_memory_cut(struct sl_memory *world, const char *process, int applied)
{
	struct process *proc = sl_mem_process_find(world, process);
	sever(proc, applied, false);
	proc->behind = false;
	proc->session++;
}

void sl_memory_sever(struct sl_memory *world, const char *process, int applied, bool answered)
{
	struct process *proc = sl_mem_process_find(world, process);
	sever(proc, applied, answered);
	proc->away = true;
}

void sl_memory_reconnect(struct sl_memory *world, const char *process)
{
	struct process *proc = sl_mem_process_find(world, process);
	if (!proc->away)
		return;
	while (proc->answers.first) { /* who sees the new connection has seen the end of the old one */
		struct task *task = proc->answers.first;
		sl_mem_task_take(world, task);
		task->run(world, task, false);
	}
	proc->away = proc->behind = false;
	proc->session++;
}

static bool to_the_store(const struct task *task, const void *arg)
{
	(void)arg;
	return task->run == command_run;
}

void sl_mem_store_replaced(struct sl_memory *world, bool lives)
{
	for (struct process *proc = world->processes; proc; proc = proc->next) {
		proc->behind = lives;
		if (lives || proc->dead || proc->away)
			continue;
		sever(proc, 0, false);
		proc->session++;
	}
	if (!lives)
		sl_mem_task_drop(world, to_the_store, NULL); /* last words of the dead */
}

int sl_memory_store_pending(struct sl_memory *world, const char *process)
{
	int count = 0;
	for (const struct task *t = sl_mem_process_find(world, process)->commands.first; t; t = t->lane_next)
		count++;
	return count;
}

void sl_memory_store_state(struct sl_memory *world, bool up, const char *text)
{
	world->store_down = !up;
	free(world->store_text);
	world->store_text = sl_mem_str(text);
}

/* --- the port --- */

static struct command *command_new(enum verb verb, int32_t partition, const char *const *keys, int key_count, void *arg)
{
	struct command *cmd = sl_mem_new(sizeof(*cmd));
	sl_arena_init(&cmd->arena);
	cmd->verb = verb;
	cmd->partition = partition;
	cmd->key_count = key_count;
	cmd->arg = arg;
	cmd->keys = SL_NEWN(&cmd->arena, const char *, key_count + 1);
	for (int i = 0; i < key_count; i++)
		cmd->keys[i] = sl_arena_str(&cmd->arena, keys[i]);
	cmd->task.port = PORT_STORE;
	cmd->task.run = command_run;
	return cmd;
}

static void command_send(struct sl_store *store, struct command *cmd)
{
	struct process *proc = process_of(store);
	if (proc->dead) {
		answer_run(proc->world, &cmd->task, true);
		return;
	}
	if (proc->away) { /* not sent */
		cmd->err = SL_EUNREACHABLE;
		cmd->text = "the store is not connected";
		answer_queue(proc->world, cmd, proc);
		return;
	}
	cmd->task.from = proc;
	sl_mem_task_add(proc->world, &proc->commands, &cmd->task);
}

static void ops_copy(struct command *cmd, const struct sl_op *ops, int count)
{
	cmd->ops = SL_NEWN(&cmd->arena, struct sl_op, count + 1);
	cmd->op_count = count;
	for (int i = 0; i < count; i++) {
		struct sl_op *op = &cmd->ops[i];
		*op = ops[i];
		op->key = sl_arena_str(&cmd->arena, ops[i].key);
		op->field = sl_arena_str(&cmd->arena, ops[i].field);
		if (ops[i].value.ptr)
			op->value.ptr = sl_arena_strn(&cmd->arena, ops[i].value.ptr, ops[i].value.len);
	}
}

static void store_take(
	struct sl_store *store, const char *header, int32_t partition, sl_store_hashes_fn done, void *arg)
{
	struct command *cmd = command_new(TAKE, partition, &header, 1, arg);
	cmd->call.hashes = done;
	command_send(store, cmd);
}

static void store_load(struct sl_store *store, int32_t partition, const char *const *keys, int count,
	sl_store_hashes_fn done, void *arg)
{
	struct command *cmd = command_new(LOAD, partition, keys, count, arg);
	cmd->call.hashes = done;
	command_send(store, cmd);
}

static void store_commit(struct sl_store *store, const struct sl_commit *commit, sl_store_done_fn done, void *arg)
{
	struct command *cmd = command_new(COMMIT, commit->partition, &commit->header, 1, arg);
	cmd->epoch = commit->epoch;
	ops_copy(cmd, commit->ops, commit->count);
	cmd->call.done = done;
	command_send(store, cmd);
}

static void store_range(struct sl_store *store, int32_t partition, const char *key, double min, double max_score,
	int max, sl_store_range_fn done, void *arg)
{
	struct command *cmd = command_new(RANGE, partition, &key, 1, arg);
	cmd->min = min;
	cmd->max_score = max_score;
	cmd->max = max;
	cmd->call.range = done;
	command_send(store, cmd);
}

static void store_stream(
	struct sl_store *store, int32_t partition, const char *key, int max, sl_store_stream_fn done, void *arg)
{
	struct command *cmd = command_new(STREAM, partition, &key, 1, arg);
	cmd->max = max;
	cmd->call.stream = done;
	command_send(store, cmd);
}

static void store_write(struct sl_store *store, const struct sl_op *ops, int count, sl_store_done_fn done, void *arg)
{
	struct command *cmd = command_new(WRITE, -1, NULL, 0, arg);
	ops_copy(cmd, ops, count);
	cmd->call.done = done;
	command_send(store, cmd);
}

static void store_check(struct sl_store *store, sl_store_done_fn done, void *arg)
{
	struct command *cmd = command_new(CHECK, -1, NULL, 0, arg);
	cmd->call.done = done;
	command_send(store, cmd);
}

static bool answer_to(const struct task *task, const void *arg)
{
	return task->to == arg && task->port == PORT_STORE;
}

static void nobody(void *arg, int err, const char *text)
{
	(void)arg;
	(void)err;
	(void)text;
}

/* Commands on the way are still executed; nobody is told. */
static void store_close(struct sl_store *store)
{
	struct process *proc = process_of(store);
	if (proc->dead)
		return; /* its last words may still be on the way */
	sl_mem_task_drop(proc->world, answer_to, proc);
	for (struct task *task = proc->commands.first; task; task = task->lane_next) {
		struct command *cmd = (struct command *)task;
		cmd->verb = cmd->verb == COMMIT ? COMMIT : cmd->verb == WRITE ? WRITE : CHECK;
		cmd->call.done = nobody;
	}
}

static uint64_t store_session(const struct sl_store *store)
{
	const struct process *proc = (const struct process *)((const char *)store - offsetof(struct process, store));
	return proc->session;
}

const struct sl_store_ops sl_mem_store_ops = {
	.take = store_take,
	.load = store_load,
	.commit = store_commit,
	.range = store_range,
	.stream = store_stream,
	.write = store_write,
	.check = store_check,
	.session = store_session,
	.close = store_close,
};
