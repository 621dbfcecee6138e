/* What one commit of an own lane writes: changed parts of its actors, the indexes that follow them, applied offset, todo and outbox
 * (design sections 3 and 7). */
#include "services/coordinator/road.h"
#include <inttypes.h>
#include <string.h>

struct op_list { struct sl_op *items; int count, cap; };
/* Operations of one kind on one key stand together, since the store groups neighbours: the fields of an actor in `main`, the
 * changes of the indexes of all actors in a list each. */
enum { LIST_MAIN, LIST_X_REMOVE, LIST_X_ADD, LIST_E_REMOVE, LIST_E_ADD, LIST_COUNT };
struct ops {
	struct op_list lists[LIST_COUNT];
	struct sl_map live;             /* plan hash -> change of its live instances, as a pointer */
	struct sl_arena *arena;
};

static struct sl_op *op_in(struct ops *ops, int list, enum sl_op_kind kind, const char *key, const char *name)
{
	struct op_list *l = &ops->lists[list];
	if (l->count == l->cap) {
		int cap = l->cap ? l->cap * 2 : 64;
		struct sl_op *grown = SL_NEWN(ops->arena, struct sl_op, cap);
		if (l->count)
			memcpy(grown, l->items, (size_t)l->count * sizeof(*grown));
		l->items = grown;
		l->cap = cap;
	}
	struct sl_op *o = &l->items[l->count++];
	*o = (struct sl_op){.kind = kind, .key = key, .field = name};
	return o;
}

static struct sl_op *op(struct ops *ops, enum sl_op_kind kind, const char *key, const char *name)
{
	return op_in(ops, LIST_MAIN, kind, key, name);
}

static void set_text(struct ops *ops, const char *key, const char *name, const char *text)
{
	op(ops, SL_OP_HSET, key, name)->value = (struct sl_bytes){text, strlen(text)};
}

static void count_live(struct ops *ops, const char *plan, intptr_t change)
{
	intptr_t now = (intptr_t)sl_map_get(&ops->live, plan);
	sl_map_set(&ops->live, plan, (void *)(now + change));
}

/* All lists in one, in the arena. */
static void join_lists(struct ops *ops, struct sl_commit *commit)
{
	int n = 0;
	sl_map_each(&ops->live, e)
		if (e->value)
			op(ops, SL_OP_HINCR, "p", sl_arena_printf(ops->arena, "n:%s", e->key))->number = (intptr_t)e->value;
	sl_map_release(&ops->live, NULL);
	for (int i = 0; i < LIST_COUNT; i++)
		n += ops->lists[i].count;
	struct sl_op *all = SL_NEWN(ops->arena, struct sl_op, n + 1);
	n = 0;
	for (int i = 0; i < LIST_COUNT; i++) {
		if (ops->lists[i].count)
			memcpy(all + n, ops->lists[i].items, (size_t)ops->lists[i].count * sizeof(*all));
		n += ops->lists[i].count;
	}
	commit->ops = all;
	commit->count = n;
}

static bool is_live(const struct sl_summary *s)
{
	return s->exists && *s->plan && s->status < SL_COMPLETED;
}

/* Listing, expiry and live counts follow the actor in the same script (design section 7). */
static void index_ops(struct ops *ops, const char *key, const struct sl_summary *old, const struct sl_summary *new)
{
	struct sl_arena *arena = ops->arena;
	bool listed_old = old->exists && *old->workflow, listed_new = new->exists && *new->workflow;
	if (listed_old && (!listed_new || old->status != new->status))
		op_in(ops, LIST_X_REMOVE, SL_OP_ZREM, "x",
			sl_arena_printf(arena, "%s|%s|%s", sl_status_text(old->status), old->workflow, key));
	if (listed_new && (!listed_old || old->status != new->status))
		op_in(ops, LIST_X_ADD, SL_OP_ZADD, "x",
			sl_arena_printf(arena, "%s|%s|%s", sl_status_text(new->status), new->workflow, key))
			->number = new->created_ms;
	if (old->exists && old->expires_ms && (!new->exists || !new->expires_ms))
		op_in(ops, LIST_E_REMOVE, SL_OP_ZREM, "e", key);
	if (new->exists && new->expires_ms && (!old->exists || old->expires_ms != new->expires_ms))
		op_in(ops, LIST_E_ADD, SL_OP_ZADD, "e", key)->number = new->expires_ms;
	if (is_live(old) && !is_live(new))
		count_live(ops, old->plan, -1);
	if (is_live(new) && !is_live(old))
		count_live(ops, new->plan, 1);
}

static void actor_ops(struct ops *ops, const char *key, struct sl_actor *actor)
{
	struct sl_field *fields;
	struct sl_summary now;
	int count;
	bool gone;
	const char *store_key = sl_store_key(ops->arena, actor->ns, actor->id);
	sl_actor_changes(actor, ops->arena, &fields, &count, &gone);
	if (gone)
		op(ops, SL_OP_DEL, store_key, NULL);
	for (int i = 0; i < count && !gone; i++) {
		struct sl_op *o = op(ops, fields[i].value.ptr ? SL_OP_HSET : SL_OP_HDEL, store_key, fields[i].name);
		o->value = fields[i].value;
	}
	sl_actor_summary(actor, &now);
	index_ops(ops, key, &actor->committed, &now);
}

/* What the bound left over, next first, with the position of each (design section 3, stage 5). */
static void todo_ops(struct ops *ops, struct own_lane *lane, struct sl_buf *buf)
{
	for (int i = lane->stack.count - 1; i >= 0; i--) {
		const struct work *w = &lane->stack.items[i];
		sl_list_add(buf, &w->msg,
			sl_arena_printf(ops->arena, "%" PRId64 ":%" PRId64 ":%s", w->offset, w->time_ms, w->path));
	}
	op(ops, SL_OP_HSET, "p", "todo")->value = sl_buf_bytes(buf);
}

void own_ops(struct own_lane *lane, struct sl_commit *ret, struct sl_buf *outbox, struct sl_buf *todo)
{
	struct ops ops = {.arena = &lane->arena};
	int64_t applied = lane->taken ? lane->records[lane->taken - 1].offset : lane->applied;
	const char **passed;
	sl_map_each(&lane->touched, e)
		actor_ops(&ops, e->key, e->value);
	for (int i = 0; i < lane->why_count; i++)
		pass_why_op(lane, i, op(&ops, SL_OP_XADD, "why", "d"));
	for (int i = 0; i < lane->outbox.count; i++)
		sl_list_add(outbox, &lane->outbox.items[i], "");
	set_text(&ops, "p", "applied", sl_arena_printf(&lane->arena, "%" PRId64, applied));
	set_text(&ops, "p", "takes", "0");
	op(&ops, SL_OP_HSET, "p", "outbox")->value = sl_buf_bytes(outbox);
	todo_ops(&ops, lane, todo);
	for (int i = careful_passed(lane, &lane->arena, applied, &passed); i > 0; i--)
		op(&ops, SL_OP_HDEL, "p", passed[i - 1]);
	*ret = (struct sl_commit){.header = "p", .partition = lane->partition, .epoch = lane->epoch};
	join_lists(&ops, ret);
}
