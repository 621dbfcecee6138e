/* One partition of sluice.timers: taking it, loading the near horizon, committing what changed. */
#include "services/timer/lane.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/base/rules.h"

#define RETRY_MS 1000
#define MIRROR_MS 1000
#define SOON_MS 1000 /* what is due within is kept in memory even beyond near_max */

void entries_add(struct entries *entries, struct sl_due_entry *entry)
{
	if (entries->count == entries->cap) {
		entries->cap = entries->cap ? entries->cap * 2 : 64;
		entries->items = realloc(entries->items, (size_t)entries->cap * sizeof(*entries->items));
		sl_assert(entries->items);
	}
	entries->items[entries->count++] = entry;
}

struct lane *lane_new(struct sl_timers *tm, int32_t partition)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	sl_assert(lane);
	lane->tm = tm;
	lane->partition = partition;
	lane->stage = LANE_TAKE;
	lane->applied = lane->mirrored = -1;
	lane->loaded_until = INT64_MIN;
	sl_due_init(&lane->due);
	sl_arena_init(&lane->arena);
	sl_metric_add(SL_METRIC_partitions_owned, 1);
	sl_metric_add(SL_METRIC_partitions_taken_total, 1);
	return lane;
}

/* --- records in hand --- */

void lane_add(struct lane *lane, struct item item)
{
	if (lane->item_head + lane->item_count == lane->item_cap) {
		if (lane->item_head > lane->item_cap / 2) {
			memmove(lane->items, lane->items + lane->item_head,
				(size_t)lane->item_count * sizeof(*lane->items));
			lane->item_head = 0;
		} else {
			lane->item_cap = lane->item_cap ? lane->item_cap * 2 : 64;
			lane->items = realloc(lane->items, (size_t)lane->item_cap * sizeof(*lane->items));
			sl_assert(lane->items);
		}
	}
	lane->items[lane->item_head + lane->item_count++] = item;
	lane->tm->hand++;
}

static void drop_items(struct lane *lane, int n)
{
	for (int i = 0; i < n; i++) {
		struct item *item = &lane->items[lane->item_head + i];
		free(item->member);
		free(item->traceparent);
		if (item->letter && item->letter->sent && !item->letter->delivered)
			item->letter->orphan = true;
		else if (item->letter)
			letter_free(item->letter);
	}
	lane->item_head += n;
	lane->item_count -= n;
	lane->tm->hand -= n;
	if (!lane->item_count)
		lane->item_head = 0;
}

static void drop_page(struct lane *lane)
{
	for (int i = 0; i < lane->page_count; i++)
		free(lane->page[i]);
	free(lane->page);
	free(lane->page_due);
	lane->page = NULL;
	lane->page_due = NULL;
	lane->page_count = 0;
}

/* Orphans are in nobody's table; the others go with it. */
static void drop_orphans(struct entries *entries)
{
	for (int i = 0; i < entries->count; i++)
		if (entries->items[i]->orphan)
			sl_due_entry_free(entries->items[i]);
	entries->count = 0;
}

void lane_reset(struct lane *lane)
{
	drop_items(lane, lane->item_count);
	drop_page(lane);
	drop_orphans(&lane->fired);
	drop_orphans(&lane->removing);
	sl_due_release(&lane->due);
	sl_arena_release(&lane->arena);
	lane->loaded_until = INT64_MIN;
	lane->committing = 0;
	lane->page_size = 0;
	lane->last_op = OP_NONE;
}

void lane_revoke(struct lane *lane)
{
	lane->gone = true;
	lane_reset(lane);
	sl_metric_add(SL_METRIC_partitions_owned, -1);
}

void lane_free(struct lane *lane)
{
	lane_reset(lane);
	free(lane->items);
	free(lane->fired.items);
	free(lane->removing.items);
	free(lane);
}

/* --- trouble (R4) --- */

/* A commit that is refused, or whose answer is lost: forget, prove that the group counts us in, take again. */
static void retake(struct lane *lane)
{
	lane_reset(lane);
	lane->op = OP_NONE;
	lane->stage = LANE_PROVE;
	lane->retry_at_ms = 0;
}

static void stop(struct lane *lane, int err, const char *text)
{
	lane->stage = LANE_STOPPED;
	lane->tm->opt.fatal(lane->tm->opt.arg, err, text);
}

static bool answered(struct lane *lane)
{
	lane->out--;
	lane->last_op = lane->op;
	lane->op = OP_NONE;
	tm_wake(lane->tm);
	return lane->gone;
}

/* --- 1 take --- */

static void proved(void *arg, int err)
{
	struct lane *lane = arg;
	if (answered(lane))
		return;
	lane->stage = err ? LANE_PROVE : LANE_TAKE;
	lane->retry_at_ms = err ? tm_now(lane->tm) + RETRY_MS : 0;
}

static void prove(struct lane *lane)
{
	struct sl_timers *tm = lane->tm;
	lane->stage = LANE_PROVING;
	lane->out++;
	if (tm->opt.broker->ops->commit(
		    tm->con, tm->opt.topics->timers, lane->partition, lane->applied + 1, NULL, proved, lane))
		proved(lane, SL_EAGAIN);
}

static int64_t field_int(const struct sl_hash *hash, const char *name, int64_t otherwise)
{
	for (int i = 0; i < hash->count; i++)
		if (strcmp(hash->fields[i].name, name) == 0)
			return strtoll(hash->fields[i].value, NULL, 10);
	return otherwise;
}

/* The log must still hold what comes behind the applied offset (R12). */
static bool check_log(struct lane *lane, bool *ret_later)
{
	struct sl_timers *tm = lane->tm;
	int64_t low, high;
	struct sl_buf text;
	*ret_later = tm->opt.broker->ops->watermarks(
			     tm->opt.broker, tm->opt.topics->timers, lane->partition, &low, &high) != 0;
	if (*ret_later)
		return false;
	if (lane->applied + 1 >= low && lane->applied + 1 <= high)
		return true;
	sl_buf_init(&text);
	sl_buf_printf(&text,
		"%s/%d: the store has applied offset %" PRId64 ", but the topic holds %" PRId64 " to %" PRId64
		". Timers may be missing. Restore the store or the topic of the same time, or give up what lies "
		"between: HSET "
		"sluice:tp:{%d} applied %" PRId64,
		tm->opt.topics->timers, (int)lane->partition, lane->applied, low, high - 1, (int)lane->partition,
		lane->applied + 1 < low ? low - 1 : high - 1);
	stop(lane, SL_ECONFIG, text.data);
	sl_buf_release(&text);
	return false;
}

static void taken(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct lane *lane = arg;
	struct sl_timers *tm = lane->tm;
	bool later = false;
	if (answered(lane))
		return;
	lane->stage = LANE_TAKE;
	lane->retry_at_ms = tm_now(tm) + RETRY_MS;
	if (err == SL_ESTORE)
		sl_log(SL_ERROR, "timer partition %d: the store refuses to write; see its log", (int)lane->partition);
	if (err || count < 1)
		return;
	lane->epoch = field_int(&hashes[0], "epoch", 0);
	lane->applied = field_int(&hashes[0], "applied", -1);
	lane->mirrored = -1;
	if (!check_log(lane, &later))
		return;
	lane->stage = LANE_RUN;
	lane->retry_at_ms = 0;
	lane->seen = lane->applied + 1;
	tm->opt.broker->ops->start(tm->con, tm->opt.topics->timers, lane->partition, lane->seen);
	if (tm->paused)
		tm->opt.broker->ops->pause(tm->con, tm->opt.topics->timers, lane->partition, true);
}

/* --- 3 load --- */

static void bodies_loaded(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct lane *lane = arg;
	if (answered(lane))
		return;
	lane->last_op = OP_PAGE;
	if (err || count < lane->page_count) {
		drop_page(lane); /* read again */
		lane->retry_at_ms = tm_now(lane->tm) + RETRY_MS;
		return;
	}
	for (int i = 0; i < lane->page_count; i++) {
		const char *trace = NULL;
		for (int k = 0; k < hashes[i].count; k++)
			if (strcmp(hashes[i].fields[k].name, "traceparent") == 0)
				trace = hashes[i].fields[k].value;
		sl_due_set(&lane->due, lane->page[i], lane->page_due[i], trace);
	}
	drop_page(lane);
	lane->loaded_until = lane->page_until;
}

static void load_bodies(struct lane *lane)
{
	struct sl_timers *tm = lane->tm;
	sl_arena_clear(&lane->arena);
	const char **keys = SL_NEWN(&lane->arena, const char *, lane->page_count);
	for (int i = 0; i < lane->page_count; i++)
		keys[i] = sl_arena_printf(&lane->arena, "t:d:%s", lane->page[i]);
	lane->op = OP_BODIES;
	lane->out++;
	tm->opt.store->ops->load(tm->opt.store, lane->partition, keys, lane->page_count, bodies_loaded, lane);
}

static void page_loaded(void *arg, int err, const struct sl_scored *items, int count)
{
	struct lane *lane = arg;
	if (answered(lane))
		return;
	if (err) {
		lane->retry_at_ms = tm_now(lane->tm) + RETRY_MS;
		return;
	}
	if (count == lane->page_size) {
		/* more may have the last one's due time: they belong to the next page, with it */
		int64_t last = (int64_t)items[count - 1].score;
		int kept = count;
		while (kept && (int64_t)items[kept - 1].score == last)
			kept--;
		if (!kept) {
			lane->page_size *= 2; /* all at one instant */
			return;
		}
		count = kept;
		lane->page_until = last - 1;
	}
	if (!count) {
		lane->loaded_until = lane->page_until;
		return;
	}
	lane->page = calloc((size_t)count, sizeof(*lane->page));
	lane->page_due = calloc((size_t)count, sizeof(*lane->page_due));
	sl_assert(lane->page && lane->page_due);
	lane->page_count = count;
	for (int i = 0; i < count; i++) {
		lane->page[i] = strdup(items[i].member);
		lane->page_due[i] = (int64_t)items[i].score;
	}
	load_bodies(lane);
}

static bool page_wanted(const struct lane *lane, int64_t now)
{
	return lane->due.count < (size_t)lane->tm->opt.near_max && now >= lane->retry_at_ms &&
	       lane->loaded_until < now + lane->tm->opt.horizon_ms / 2;
}

static void load_page(struct lane *lane, int64_t now)
{
	struct sl_timers *tm = lane->tm;
	double from = lane->loaded_until == INT64_MIN ? -1e15 : (double)(lane->loaded_until + 1);
	if (!lane->page_size)
		lane->page_size = tm->opt.page_max;
	lane->page_until = now + tm->opt.horizon_ms;
	lane->op = OP_PAGE;
	lane->out++;
	tm->opt.store->ops->range(tm->opt.store, lane->partition, "t", from, (double)lane->page_until, lane->page_size,
		page_loaded, lane);
}

/* --- 5 commit --- */

struct ops {
	struct sl_op *items;
	int count, cap;
};

static struct sl_op *op(struct ops *ops, enum sl_op_kind kind, const char *key, const char *field)
{
	if (ops->count == ops->cap) {
		ops->cap = ops->cap ? ops->cap * 2 : 256;
		ops->items = realloc(ops->items, (size_t)ops->cap * sizeof(*ops->items));
		sl_assert(ops->items);
	}
	struct sl_op *o = &ops->items[ops->count++];
	*o = (struct sl_op){.kind = kind, .key = key, .field = field};
	return o;
}

/* First, so that a timer that is set anew under its old name is not removed with the old one. */
static void add_removals(struct lane *lane, struct ops *ops)
{
	struct entries empty = lane->removing;
	lane->removing = lane->fired;
	lane->fired = empty;
	for (int i = 0; i < lane->removing.count; i++) {
		struct sl_due_entry *entry = lane->removing.items[i];
		op(ops, SL_OP_ZREM, "t", entry->member);
		if (entry->traceparent)
			op(ops, SL_OP_DEL, sl_arena_printf(&lane->arena, "t:d:%s", entry->member), NULL);
	}
}

static void set_timer(struct lane *lane, struct ops *ops, const struct item *item, int64_t now)
{
	const struct sl_due_entry *known = sl_due_find(&lane->due, item->member);
	if (known && known->state == SL_DUE_FIRED && known->due_ms == item->due_ms)
		return; /* the record came twice: this commit removes what has fired, and it must not come back */
	op(ops, SL_OP_ZADD, "t", item->member)->number = item->due_ms;
	if (item->traceparent)
		op(ops, SL_OP_HSET, sl_arena_printf(&lane->arena, "t:d:%s", item->member), "traceparent")->value =
			(struct sl_bytes){item->traceparent, strlen(item->traceparent)};
	sl_metric_add(SL_METRIC_timers_set_total, 1);
	if (lane->due.count >= (size_t)lane->tm->opt.near_max && item->due_ms > now + SOON_MS &&
		item->due_ms <= lane->loaded_until)
		lane->loaded_until =
			item->due_ms - 1; /* memory is full: what is later is read again when there is room */
	if (item->due_ms <= lane->loaded_until)
		sl_due_set(&lane->due, item->member, item->due_ms, item->traceparent);
	else
		sl_due_cancel(&lane->due, item->member);
}

static void cancel_timer(struct lane *lane, struct ops *ops, const struct item *item)
{
	const struct sl_due_entry *entry = sl_due_find(&lane->due, item->member);
	op(ops, SL_OP_ZREM, "t", item->member);
	if (!entry || entry->traceparent)
		op(ops, SL_OP_DEL, sl_arena_printf(&lane->arena, "t:d:%s", item->member), NULL);
	sl_due_cancel(&lane->due, item->member);
	sl_metric_add(SL_METRIC_timers_cancelled_total, 1);
}

static void committed(void *arg, int err, const char *text)
{
	struct lane *lane = arg;
	if (answered(lane))
		return;
	sl_metric_observe_us(SL_METRIC_commit_seconds, (tm_now(lane->tm) - lane->op_started_ms) * 1000);
	if (err) {
		retake(lane);
		if (err == SL_ESTORE) { /* goes on by itself after the cure */
			sl_log(SL_ERROR, "timer partition %d: %s", (int)lane->partition,
				text ? text : "the store refuses to write");
			lane->retry_at_ms = tm_now(lane->tm) + RETRY_MS;
		}
		return;
	}
	lane->applied = lane->committing_applied;
	drop_items(lane, lane->committing);
	lane->committing = 0;
	for (int i = 0; i < lane->removing.count; i++) {
		struct sl_due_entry *entry = lane->removing.items[i];
		if (entry->orphan)
			sl_due_entry_free(entry);
		else
			sl_due_forget(&lane->due, entry);
	}
	lane->removing.count = 0;
}

static bool commit_wanted(const struct lane *lane)
{
	const struct item *first = lane->item_count ? &lane->items[lane->item_head] : NULL;
	return lane->fired.count || (first && (!first->letter || first->letter->delivered));
}

static void commit(struct lane *lane, int64_t now)
{
	struct sl_timers *tm = lane->tm;
	struct ops ops = {0};
	sl_arena_clear(&lane->arena);
	add_removals(lane, &ops);
	lane->committing_applied = lane->applied;
	for (lane->committing = 0; lane->committing < lane->item_count && lane->committing < tm->opt.batch_max;
		lane->committing++) {
		const struct item *item = &lane->items[lane->item_head + lane->committing];
		if (item->letter && !item->letter->delivered)
			break; /* R1 */
		if (item->kind == SL_MSG_TIMER_SET)
			set_timer(lane, &ops, item, now);
		else if (item->kind == SL_MSG_TIMER_CANCEL)
			cancel_timer(lane, &ops, item);
		lane->committing_applied = item->offset;
	}
	const char *applied = sl_arena_printf(&lane->arena, "%" PRId64, lane->committing_applied);
	op(&ops, SL_OP_HSET, "tp", "applied")->value = (struct sl_bytes){applied, strlen(applied)};
	op(&ops, SL_OP_HSET, "tp", "takes")->value = (struct sl_bytes){"0", 1};
	struct sl_commit what = {.header = "tp",
		.partition = lane->partition,
		.epoch = lane->epoch,
		.ops = ops.items,
		.count = ops.count};
	lane->op = OP_COMMIT;
	lane->op_started_ms = now;
	lane->out++;
	tm->opt.store->ops->commit(tm->opt.store, &what, committed, lane);
	free(ops.items);
}

/* --- 6 mirror --- */

static void mirrored(void *arg, int err)
{
	struct lane *lane = arg;
	lane->out--;
	if (err == SL_EFENCED && !lane->gone && lane->stage == LANE_RUN && lane->op == OP_NONE)
		retake(lane); /* the group no longer counts us in */
	tm_wake(lane->tm);
}

static void mirror(struct lane *lane, int64_t now)
{
	struct sl_timers *tm = lane->tm;
	if (lane->mirrored == lane->applied || (now < lane->mirror_at_ms && !tm->draining))
		return;
	lane->mirror_at_ms = now + MIRROR_MS;
	lane->out++;
	if (tm->opt.broker->ops->commit(
		    tm->con, tm->opt.topics->timers, lane->partition, lane->applied + 1, NULL, mirrored, lane))
		lane->out--;
	else
		lane->mirrored = lane->applied;
}

void lane_turn(struct lane *lane)
{
	const struct sl_store *store = lane->tm->opt.store;
	int64_t now = tm_now(lane->tm);
	if (lane->stage == LANE_RUN && lane->op == OP_NONE && lane->session != store->ops->session(store) && SL_RULE(timer_session))
		retake(lane); /* it may be an older one, whose epoch is ours (R10) */
	if (lane->stage == LANE_PROVE && now >= lane->retry_at_ms)
		prove(lane);
	if (lane->stage == LANE_TAKE && now >= lane->retry_at_ms) {
		lane->stage = LANE_TAKING;
		lane->out++;
		lane->session = store->ops->session(store);
		lane->tm->opt.store->ops->take(lane->tm->opt.store, "tp", lane->partition, taken, lane);
	}
	if (lane->stage != LANE_RUN || lane->op != OP_NONE)
		return;
	bool page = page_wanted(lane, now);
	if (page && (lane->last_op == OP_COMMIT || !commit_wanted(lane)))
		load_page(lane, now);
	else if (commit_wanted(lane))
		commit(lane, now);
	mirror(lane, now);
}
