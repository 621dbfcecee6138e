/* Own lanes take their partition: the group must count us in, then the epoch fences the last owner, whose outbox and todo are ours now
 * (R4, R2, R10). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/rules.h"
#include "services/coordinator/road.h"

static void proved(void *arg, int err)
{
	struct own_lane *lane = arg;
	if (own_answered(lane))
		return;
	if (err)
		own_retake(lane, false); /* a revoke is on its way, or the group will have us back */
	else
		lane->stage = OWN_TAKE;
}

void own_prove(struct own_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	own_ask(lane);
	if (co->opt.broker->ops->commit(co->owned, co->opt.topics->instances, lane->partition, lane->applied + 1, NULL, proved, lane))
		proved(lane, SL_EAGAIN);
}

static const char *field(const struct sl_hash *hash, const char *name, size_t *ret_len)
{
	for (int i = 0; i < hash->count; i++) {
		if (strcmp(hash->fields[i].name, name) == 0) {
			if (ret_len)
				*ret_len = hash->fields[i].len;
			return hash->fields[i].value;
		}
	}
	return NULL;
}

static int64_t number(const struct sl_hash *hash, const char *name, int64_t otherwise)
{
	const char *text = field(hash, name, NULL);
	return text ? strtoll(text, NULL, 10) : otherwise;
}

static void stop_lane(struct own_lane *lane, const char *text)
{
	lane->stage = OWN_STOPPED;
	co_fatal(lane->co, SL_ESTORE, text);
}

/* The log must still hold what comes behind the applied offset. */
static bool log_covers(struct own_lane *lane)
{
	struct sl_broker *broker = lane->co->opt.broker;
	const char *topic = lane->co->opt.topics->instances;
	int64_t low = 0, high = 0;
	char text[512];
	if (broker->ops->watermarks(broker, topic, lane->partition, &low, &high)) {
		own_retake(lane, false);
		return false;
	}
	lane->high = high;
	if (lane->applied + 1 >= low && lane->applied + 1 <= high)
		return true;
	snprintf(text, sizeof(text),
		"%s/%d: the store has applied offset %" PRId64 ", but the topic holds %" PRId64 " to %" PRId64
		". Either the topic was made anew or lost records, or the store is another one's. Restore the matching Redis, "
		"or give up what lies between: HSET sluice:p:{%d} applied %" PRId64,
		topic, (int)lane->partition, lane->applied, low, high - 1, (int)lane->partition,
		lane->applied + 1 < low ? low - 1 : high - 1);
	stop_lane(lane, text);
	return false;
}

/* The todo of the last owner goes on the stack before any record is taken. */
static bool read_todo(struct own_lane *lane, const struct sl_hash *hash, struct sl_diags *diags)
{
	size_t len;
	const char *todo = field(hash, "todo", &len);
	struct sl_list_item *items;
	int count;
	if (!todo || !len || !SL_RULE(todo))
		return true;
	if (sl_list_read((struct sl_bytes){todo, len}, &lane->arena, &items, &count, diags))
		return false;
	for (int i = count - 1; i >= 0; i--) {
		struct work work = {.msg = items[i].msg};
		char *rest;
		work.offset = strtoll(items[i].path, &rest, 10);
		work.time_ms = strtoll(*rest == ':' ? rest + 1 : rest, &rest, 10);
		work.path = sl_arena_str(&lane->arena, *rest == ':' ? rest + 1 : rest);
		todo_push(&lane->stack, &work);
	}
	lane->dirty = count > 0;
	return true;
}

static bool read_outbox(struct own_lane *lane, const struct sl_hash *hash, struct sl_diags *diags)
{
	size_t len;
	const char *outbox = field(hash, "outbox", &len);
	struct sl_list_item *items;
	struct sl_arena arena;
	int count = 0;
	lane->outbox_stored = outbox && len;
	if (!lane->outbox_stored || !SL_RULE(outbox_again))
		return true;
	sl_arena_init(&arena);
	int err = sl_list_read((struct sl_bytes){outbox, len}, &arena, &items, &count, diags);
	if (!err) {
		struct sl_msg *msgs = SL_NEWN(&arena, struct sl_msg, count + 1);
		for (int i = 0; i < count; i++)
			msgs[i] = items[i].msg;
		own_emit_begin(lane, msgs, count);
		for (int i = 0; i < count; i++)
			sl_msg_clear(&msgs[i]);
	}
	sl_arena_release(&arena);
	return !err;
}

/* What R10 forbids: after a restore Kafka's offset is ahead of the state. */
static void follow_kafka(struct own_lane *lane)
{
	struct sl_coordinator *co = lane->co;
	int64_t offset;
	if (!co->opt.broker->ops->committed(co->owned, co->opt.topics->instances, lane->partition, &offset, NULL) && offset > lane->applied)
		lane->applied = offset - 1;
}

static void taken(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct own_lane *lane = arg;
	struct sl_coordinator *co = lane->co;
	struct sl_diags diags;
	if (own_answered(lane))
		return;
	if (err || count < 1) {
		own_retake(lane, false);
		return;
	}
	lane->epoch = number(hashes, "epoch", 0);
	lane->applied = number(hashes, "applied", -1);
	if (!log_covers(lane))
		return;
	if (!SL_RULE(store_offset))
		follow_kafka(lane);
	careful_taken(lane, hashes);
	sl_diags_init(&diags);
	bool ok = read_outbox(lane, hashes, &diags) && read_todo(lane, hashes, &diags);
	if (!ok) {
		char text[512];
		snprintf(text, sizeof(text), "sluice:p:{%d} holds an outbox or todo that this release cannot read: %s",
			(int)lane->partition, sl_diags_first(&diags));
		stop_lane(lane, text);
	} else {
		lane->stage = OWN_RUN;
		lane->started = true;
		int64_t from = SL_RULE(applied) || lane->applied < 3 ? lane->applied + 1 : lane->applied - 2;
		co->opt.broker->ops->start(co->owned, co->opt.topics->instances, lane->partition, from);
	}
	sl_diags_release(&diags);
}

void own_take(struct own_lane *lane)
{
	lane->emitting = false;
	lane->session = lane->co->opt.store->ops->session(lane->co->opt.store);
	own_ask(lane);
	lane->co->opt.store->ops->take(lane->co->opt.store, "p", lane->partition, taken, lane);
}
