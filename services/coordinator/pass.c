/* The step stage of one partition's batch (design section 3, stages 4 and 5): inputs in order, effects for actors of the same
 * partition depth first, child before sibling. An actor that is not in memory suspends the pass; it goes on where it stopped.
 *
 * The stack holds what is still to be stepped of the record in hand; its top is next. What is left on it when the
 * bound on local steps cuts the pass becomes the partition's todo. */
#include <stdlib.h>
#include <string.h>
#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/engine/mailbox.h"
#include "services/coordinator/road.h"

char *pass_key(struct sl_arena *arena, const char *ns, const char *id)
{
	return sl_arena_printf(arena, "%s~%s", ns ? ns : "default", id);
}

void todo_push(struct todo *todo, const struct work *work)
{
	if (todo->count == todo->cap) {
		todo->cap = todo->cap ? todo->cap * 2 : 32;
		todo->items = realloc(todo->items, (size_t)todo->cap * sizeof(*todo->items));
		sl_assert(todo->items);
	}
	todo->items[todo->count++] = *work;
}

void todo_clear(struct todo *todo)
{
	for (int i = 0; i < todo->count; i++)
		sl_msg_clear(&todo->items[i].msg);
	todo->count = 0;
}

void pass_reset(struct own_lane *lane)
{
	for (int i = lane->taken; i < lane->limit && lane->records; i++)
		sl_msg_clear(&lane->records[i].msg);
	todo_clear(&lane->stack);
	sl_effects_clear(&lane->outbox);
	sl_effects_clear(&lane->fx);
	sl_map_release(&lane->touched, NULL);
	sl_map_release(&lane->missing, NULL);
	sl_map_release(&lane->broken, NULL);
	sl_map_release(&lane->telling, NULL);
	for (int i = 0; i < lane->why_count; i++)
		sl_buf_release(&lane->why[i]);
	lane->why_count = lane->why_lines = 0;
	jv_free(lane->sweep);
	lane->sweep = jv_invalid();
	lane->sweep_wanted = lane->sweep_read = false;
	lane->records = NULL;
	lane->taken = lane->limit = lane->steps = 0;
	lane->bytes = 0;
	lane->dirty = lane->gave_up = lane->cut = false;
	if (lane->inbox.count) {
		sl_arena_clear(&lane->arena);
	} else { /* idle lanes keep no scratch memory */
		sl_arena_release(&lane->arena);
		sl_effects_release(&lane->outbox);
		sl_effects_release(&lane->fx);
		sl_effects_init(&lane->outbox, &lane->arena);
		sl_effects_init(&lane->fx, &lane->arena);
	}
}

static bool is_sweep(const struct sl_msg *msg)
{
	return msg->kind == SL_MSG_SWEEP && msg->to && msg->to[0] == '@' && !strchr(msg->to, '~');
}

void pass_want(struct own_lane *lane, const char *ns, const char *id)
{
	char *key = pass_key(&lane->arena, ns, id);
	if (!sl_map_get(&lane->actors, key) && !sl_map_get(&lane->broken, key))
		sl_map_set(&lane->missing, key, sl_store_key(&lane->arena, ns, id));
}

static void want(struct own_lane *lane, const struct sl_msg *msg)
{
	if (is_sweep(msg))
		lane->sweep_wanted = true;
	else if (msg->kind != SL_MSG_NONE)
		pass_want(lane, msg->ns, msg->to);
}

/* An input whose content makes no sense here is a dead letter, as one that cannot be decoded. */
static const char *misaddressed(const struct own_lane *lane, const struct sl_msg *msg)
{
	if (sl_msg_route(msg->kind) != SL_TO_INST)
		return "not an input of an actor";
	if (!msg->ns || !sl_namespace_valid(msg->ns) || !msg->to || !*msg->to || strlen(msg->to) > SL_HOME_MAX)
		return "no valid receiver";
	if (sl_id_partition(msg->ns, msg->to, lane->co->partitions) != lane->partition)
		return "in a partition that is not its home's (was the number of partitions changed?)";
	return NULL;
}

bool pass_begin(struct own_lane *lane)
{
	struct sl_diags diags;
	int max = lane->careful ? 1 : co_batch_max(lane->co);
	lane->limit = lane->inbox.count < max ? lane->inbox.count : max;
	lane->records = SL_NEWN(&lane->arena, struct work, lane->limit ? lane->limit : 1);
	lane->taken = 0;
	sl_diags_init(&diags);
	for (int i = 0; i < lane->limit; i++) {
		struct work *work = &lane->records[i];
		const struct sl_record *rec = &inbox_at(&lane->inbox, i)->rec;
		uint64_t fp = 0;
		const char *doom = careful_doomed(lane, rec->offset, "-");
		int err = doom ? SL_EPARSE : sl_msg_decode(rec->value, &lane->arena, &work->msg, &fp, &diags);
		if (err == SL_ENOSCHEMA && !sl_map_get(&lane->broken, "schema")) {
			lane->limit = i;
			if (i > 0)
				break; /* what comes before it first */
			lane->schema_wanted = fp;
			sl_diags_release(&diags);
			return false;
		}
		const char *why = doom ? doom : err ? sl_diags_first(&diags) : misaddressed(lane, &work->msg);
		if (why) {
			if (!err)
				sl_msg_clear(&work->msg);
			sl_msg_init(&work->msg, SL_MSG_NONE);
			work->msg.reason = sl_arena_printf(&lane->arena, "internal record: %s", *why ? why : sl_err_text(err));
			sl_diags_clear(&diags);
		}
		work->path = "";
		work->offset = rec->offset;
		work->time_ms = rec->time_ms;
		want(lane, &work->msg);
	}
	for (int i = 0; i < lane->stack.count; i++)
		want(lane, &lane->stack.items[i].msg);
	sl_diags_release(&diags);
	return true;
}

#define WHY_PER_ENTRY 32         /* decisions in one stream entry, a line each */
#define WHY_ENTRIES_MAX 400

/* Decisions of one pass share stream entries: an entry each would cost more than the step. */
static void add_why(struct own_lane *lane, const struct sl_msg *msg)
{
	if (lane->why_lines % WHY_PER_ENTRY == 0) {
		if (lane->why_count == lane->why_cap) {
			lane->why_cap = lane->why_cap ? lane->why_cap * 2 : 8;
			lane->why = realloc(lane->why, (size_t)lane->why_cap * sizeof(*lane->why));
			sl_assert(lane->why);
		}
		sl_buf_init(&lane->why[lane->why_count++]);
	}
	struct sl_buf *entry = &lane->why[lane->why_count - 1];
	if (entry->len)
		sl_buf_addc(entry, '\n');
	sl_json_write(entry, msg->data);
	lane->why_lines++;
}

/* The stream entries of this batch. */
void pass_why_op(const struct own_lane *lane, int i, struct sl_op *ret)
{
	*ret = (struct sl_op){.kind = SL_OP_XADD, .key = "why", .field = "d", .value = sl_buf_bytes(&lane->why[i]),
		.number = WHY_ENTRIES_MAX};
}

/* Where one effect of the step goes: local ones are collected for the stack, the rest into the outbox. */
static void place(struct own_lane *lane, const struct work *parent, int index, struct sl_msg *msg, struct todo *locals)
{
	struct sl_coordinator *co = lane->co;
	enum sl_route to = sl_msg_route(msg->kind);
	if (to == SL_TO_WHY) {
		add_why(lane, msg);
		sl_msg_clear(msg);
		return;
	}
	if (to == SL_TO_INST && sl_id_partition(msg->ns, msg->to, co->partitions) == lane->partition) {
		struct work child = {.msg = *msg, .offset = parent->offset, .time_ms = parent->time_ms};
		child.path = *parent->path ? sl_arena_printf(&lane->arena, "%s.%d", parent->path, index)
					   : sl_arena_printf(&lane->arena, "%d", index);
		todo_push(locals, &child);
		sl_msg_init(msg, SL_MSG_NONE);
		return;
	}
	lane->bytes += 300;
	*sl_effects_add(&lane->outbox, SL_MSG_NONE) = *msg;
	sl_msg_init(msg, SL_MSG_NONE);
}

/* Takes ev. */
static void dead_letter_of(struct own_lane *lane, const struct work *work, const char *reason, int index, jv ev)
{
	struct sl_msg *msg = sl_effects_add(&lane->outbox, SL_MSG_DEAD_LETTER);
	struct sl_pos pos = {lane->partition, work->offset, work->path};
	char id[SL_UUID_TEXT];
	sl_id_effect("dead-letter", &pos, index, id);
	msg->id = sl_arena_str(&lane->arena, id);
	msg->ns = work->msg.ns;
	msg->reason = reason;
	msg->instance = work->msg.to;
	msg->event = ev;
	msg->origin_topic = lane->co->opt.topics->instances;
	msg->origin_partition = lane->partition;
	msg->origin_offset = work->offset;
}

void pass_dead_letter(struct own_lane *lane, const struct work *work, const char *reason)
{
	int count = jv_get_kind(work->msg.events) == JV_KIND_ARRAY ? jv_array_length(jv_copy(work->msg.events)) : 0;
	for (int i = 0; i < count; i++)
		dead_letter_of(lane, work, reason, i, jv_array_get(jv_copy(work->msg.events), i));
	if (!count)
		dead_letter_of(lane, work, reason, 0, jv_copy(work->msg.event));
	sl_log(SL_WARN, "%s/%d@%lld: dead letter: %s", lane->co->opt.topics->instances, (int)lane->partition,
		(long long)work->offset, reason);
}

/* Expired actors get one local input each (design section 7). */
static void sweep(struct own_lane *lane, const struct work *work)
{
	jv_array_foreach(lane->sweep, i, member)
	{
		const char *key = jv_string_value(member), *tilde = strchr(key, '~');
		if (tilde) {
			struct work child = {.offset = work->offset, .time_ms = work->time_ms};
			sl_msg_init(&child.msg, SL_MSG_SWEEP);
			child.msg.ns = sl_arena_strn(&lane->arena, key, (size_t)(tilde - key));
			child.msg.to = sl_arena_str(&lane->arena, tilde + 1);
			child.path = sl_arena_printf(&lane->arena, "s%d", i);
			pass_want(lane, child.msg.ns, child.msg.to);
			todo_push(&lane->stack, &child);
		}
		jv_free(member);
	}
	/* There may be more: the next sweep comes by the log, behind this batch. */
	if (jv_array_length(jv_copy(lane->sweep)) < SWEEP_MAX || work->msg.attempt >= SWEEP_ROUNDS_MAX)
		return;
	struct sl_pos pos = {lane->partition, work->offset, work->path};
	char id[SL_UUID_TEXT];
	struct sl_msg *next = sl_effects_add(&lane->outbox, SL_MSG_SWEEP);
	sl_id_effect("sweep", &pos, 0, id);
	next->ns = work->msg.ns;
	next->to = work->msg.to;
	next->id = sl_arena_str(&lane->arena, id);
	next->attempt = work->msg.attempt + 1;
}

/* The actor, or NULL: it must be read first. */
static struct sl_actor *find(struct own_lane *lane, const struct sl_msg *msg, const char *key)
{
	struct sl_actor *actor = sl_map_get(&lane->actors, key);
	if (actor) {
		sl_metric_add(SL_METRIC_cache_hits_total, 1);
		return actor;
	}
	/* What a mailbox starts has an id derived from this very position: it cannot be in the store. */
	if (msg->kind == SL_MSG_START && msg->from && sl_id_is_mailbox(msg->from)) {
		actor = sl_actor_new(msg->ns, msg->to);
		own_cache_add(lane, key, actor);
		return actor;
	}
	return NULL;
}

static void want_stack(struct own_lane *lane)
{
	for (int i = 0; i < lane->stack.count; i++) /* all such reads go together */
		want(lane, &lane->stack.items[i].msg);
}

static void stepping(struct sl_coordinator *co, const struct sl_stepping *what)
{
	if (co->opt.stepping)
		co->opt.stepping(co->opt.stepping_arg, what);
}

/* Somebody waits at a local mailbox "@P~NS~TYPE": the routers must know before it counts as waiting. */
static void tell_waits(struct own_lane *lane, const struct sl_msg *msg)
{
	const char *type = msg->to[0] == '@' && msg->kind == SL_MSG_SUBSCRIBE ? strchr(msg->to, '~') : NULL;
	if (type && !sl_map_get(&lane->told, type + 1))
		sl_map_set(&lane->telling, type + 1, lane);
}

static void step(struct own_lane *lane, struct sl_actor *actor, const char *key, struct work *work)
{
	struct sl_pos pos = {lane->partition, work->offset, work->path};
	struct todo locals = {0};
	lane->fx.arena = &lane->arena;
	struct sl_stepping what = {lane->partition, lane->epoch, work->offset, *work->path ? work->path : ".", work->msg.ns,
		work->msg.to};
	stepping(lane->co, &what);
	int64_t now_ms = work->time_ms;
	if (!SL_RULE(log_time))
		now_ms = lane->co->opt.clock->ops->now_ms(lane->co->opt.clock);
	int err = sl_step(&lane->co->engine, actor, &work->msg, &pos, now_ms, &lane->fx);
	stepping(lane->co, NULL);
	if (err) {
		pass_dead_letter(lane, work, err == SL_ENOTFOUND
			? sl_arena_printf(&lane->arena, "plan %s is not known", work->msg.plan ? work->msg.plan : "of the instance")
			: sl_err_text(err));
		sl_effects_clear(&lane->fx);
		return;
	}
	tell_waits(lane, &work->msg);
	sl_metric_add_l(SL_METRIC_steps_total, sl_msg_kind_text(work->msg.kind), 1);
	sl_map_set(&lane->touched, key, actor);
	lane->bytes += 200;
	for (int i = 0; i < lane->fx.count; i++)
		place(lane, work, i, &lane->fx.items[i], &locals);
	sl_effects_clear(&lane->fx);
	for (int i = locals.count - 1; i >= 0; i--) /* the first effect is next */
		todo_push(&lane->stack, &locals.items[i]);
	free(locals.items);
}

enum pass_result pass_run(struct own_lane *lane)
{
	const struct sl_coordinator_options *opt = &lane->co->opt;
	for (;;) {
		if (lane->gave_up && (!lane->stack.count || lane->stack.items[lane->stack.count - 1].msg.kind != SL_MSG_FAULT)) {
			lane->cut = true;
			return PASS_DONE;
		}
		if (!lane->stack.count) {
			if (lane->taken == lane->limit || lane->bytes > opt->batch_bytes_max || lane->cut)
				return PASS_DONE;
			struct work *record = &lane->records[lane->taken++];
			lane->dirty = true;
			lane->offset = record->offset;
			if (record->offset <= lane->applied && SL_RULE(applied))
				sl_msg_clear(&record->msg);
			else
				todo_push(&lane->stack, record);
			continue;
		}
		if (lane->steps >= opt->local_steps_max) {
			lane->cut = true;
			return PASS_DONE;
		}
		struct work work = lane->stack.items[lane->stack.count - 1];
		if (work.msg.kind == SL_MSG_NONE) {
			lane->stack.count--;
			pass_dead_letter(lane, &work, work.msg.reason);
			continue;
		}
		if (careful_give_up(lane)) {
			lane->gave_up = true;
			continue;
		}
		if (is_sweep(&work.msg)) {
			if (!lane->sweep_read) {
				lane->sweep_wanted = true;
				return PASS_MISSING;
			}
			lane->stack.count--;
			sweep(lane, &work);
			sl_msg_clear(&work.msg);
			continue;
		}
		char *key = pass_key(&lane->arena, work.msg.ns, work.msg.to);
		const char *broken = sl_map_get(&lane->broken, key);
		struct sl_actor *actor = broken ? NULL : find(lane, &work.msg, key);
		if (!actor && !broken) {
			want_stack(lane);
			return PASS_MISSING;
		}
		if (careful_wants_note(lane, work.offset, work.path))
			return PASS_NOTE;
		lane->stack.count--;
		lane->steps++;
		if (broken)
			pass_dead_letter(lane, &work, broken);
		else
			step(lane, actor, key, &work);
		sl_msg_clear(&work.msg);
	}
}
