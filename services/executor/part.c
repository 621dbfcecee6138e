/* Partitions of sluice.actions: taking them (R12), the offsets that are finished, committing those, and handing over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "services/executor/work.h"

#define METADATA_MAX 4000 /* bytes; Kafka takes 4 096 */
#define RETRY_MS 1000

struct part *part_new(struct sl_executor *ex, const char *topic, int32_t partition)
{
	struct part *part = calloc(1, sizeof(*part));
	sl_assert(part);
	part->ex = ex;
	part->topic = strdup(topic);
	part->partition = partition;
	sl_tracker_init(&part->tracker, 0);
	sl_map_init(&part->actions);
	sl_map_init(&part->recent);
	sl_map_init(&part->older);
	sl_metric_add(SL_METRIC_partitions_owned, 1);
	return part;
}

static void name_of(const struct part *part, char buf[static 320])
{
	snprintf(buf, 320, "%s/%d", part->topic, (int)part->partition);
}

static void drop_unfinished(struct act *act)
{
	ex_drop(act, false);
}

/* --- taking --- */

static void again_later(struct part *part)
{
	part->stage = PART_TAKE;
	part->retry_at_ms = ex_now(part->ex) + RETRY_MS;
}

static void run_from(struct part *part, int64_t offset, const char *runs)
{
	struct sl_executor *ex = part->ex;
	sl_tracker_release(&part->tracker);
	sl_tracker_init(&part->tracker, offset);
	if (sl_tracker_read(&part->tracker, runs))
		sl_log(SL_WARN, "%s/%d: the offset's metadata is not ours, calls beyond it are repeated", part->topic,
			(int)part->partition);
	part->seen = part->tracker.next;
	part->stage = PART_RUN;
	ex->opt.broker->ops->start(ex->con, part->topic, part->partition, part->seen);
	if (ex->paused)
		ex->opt.broker->ops->pause(ex->con, part->topic, part->partition, true);
}

static bool answered(struct part *part)
{
	part->out--;
	ex_wake(part->ex);
	return part->gone;
}

/* It goes before it was taken. */
static bool given_up(struct part *part)
{
	bool gone = answered(part);
	return gone || part->handing;
}

static void remembered(void *arg, int err, const char *text)
{
	struct part *part = arg;
	(void)text;
	if (given_up(part))
		return;
	if (err)
		again_later(part);
	else
		run_from(part, part->tracker.next, NULL);
}

/* The group has its first offset; the store must know before anything is read (R12). */
static void beginning_committed(void *arg, int err)
{
	struct part *part = arg;
	char name[320];
	if (given_up(part))
		return;
	if (err) {
		again_later(part);
		return;
	}
	name_of(part, name);
	struct sl_op op = {.kind = SL_OP_HSET, .key = "routed", .field = name, .value = {"1", 1}};
	part->out++;
	part->ex->opt.store->ops->write(part->ex->opt.store, &op, 1, remembered, part);
}

static void commit_beginning(struct part *part, int64_t low)
{
	struct sl_executor *ex = part->ex;
	sl_tracker_init(&part->tracker, low);
	part->out++;
	if (ex->opt.broker->ops->commit(ex->con, part->topic, part->partition, low, NULL, beginning_committed, part))
		beginning_committed(part, SL_EAGAIN);
}

static void stop(struct part *part, int64_t offset, int64_t low, int64_t high)
{
	struct sl_executor *ex = part->ex;
	struct sl_buf text;
	sl_buf_init(&text);
	sl_buf_printf(&text, "%s/%d: group %s ", part->topic, (int)part->partition, ex->opt.group);
	if (offset < 0)
		sl_buf_adds(&text, "has lost its offset");
	else
		sl_buf_printf(&text, "stands at offset %" PRId64, offset);
	sl_buf_printf(&text,
		", the topic holds %" PRId64 " to %" PRId64
		". Calls may be missing, or would be made again. Restore the topic, or "
		"choose where to go on: kafka-consumer-groups --group %s --topic %s --reset-offsets --to-earliest "
		"(repeats calls) or "
		"--to-latest (skips calls) --execute",
		low, high - 1, ex->opt.group, part->topic);
	part->stage = PART_STOPPED;
	ex->opt.fatal(ex->opt.arg, SL_ECONFIG, text.data);
	sl_buf_release(&text);
}

static void routed_loaded(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct part *part = arg;
	struct sl_executor *ex = part->ex;
	char name[320], *runs = NULL;
	int64_t low, high, offset = -1;
	bool known = false;
	if (given_up(part))
		return;
	name_of(part, name);
	for (int i = 0; !err && count > 0 && i < hashes[0].count; i++)
		known = known || strcmp(hashes[0].fields[i].name, name) == 0;
	if (err || ex->opt.broker->ops->watermarks(ex->opt.broker, part->topic, part->partition, &low, &high) ||
		ex->opt.broker->ops->committed(ex->con, part->topic, part->partition, &offset, &runs)) {
		again_later(part);
		return;
	}
	if (offset < 0 && !known)
		commit_beginning(part, low);
	else if (offset >= low && offset <= high)
		run_from(part, offset, runs);
	else
		stop(part, offset, low, high);
	free(runs);
}

static void take(struct part *part)
{
	static const char *const key = "routed";
	part->stage = PART_TAKING;
	part->out++;
	part->ex->opt.store->ops->load(part->ex->opt.store, -1, &key, 1, routed_loaded, part);
}

/* --- committing --- */

static void committed(void *arg, int err)
{
	struct part *part = arg;
	part->committing = false;
	if (answered(part))
		return;
	/* SL_EFENCED: the group no longer counts us in, the revocation is on its way */
	if (err && err != SL_EFENCED) {
		part->dirty = true;
		part->retry_at_ms = ex_now(part->ex) + part->ex->opt.commit_ms;
	}
}

static void commit(struct part *part)
{
	struct sl_executor *ex = part->ex;
	struct sl_buf runs;
	sl_buf_init(&runs);
	sl_tracker_write(&part->tracker, METADATA_MAX, &runs);
	part->dirty = false;
	part->committing = true;
	part->commit_at_ms = ex_now(ex) + ex->opt.commit_ms;
	part->out++;
	if (ex->opt.broker->ops->commit(ex->con, part->topic, part->partition, part->tracker.next,
		    runs.len ? runs.data : NULL, committed, part))
		committed(part, SL_EAGAIN);
	sl_buf_release(&runs);
}

/* --- handing over --- */

static bool begun(const struct act *act)
{
	return act->stage == CALLING || act->stage == SENDING || act->stage == DELIVERING || act->stage == LANDED;
}

static void drop_not_begun(struct act *act)
{
	if (!begun(act))
		ex_drop(act, false);
}

static void keep_waiting(struct act *act)
{
	if (!act->gone)
		act->part->handed = false;
}

void part_hand(struct part *part)
{
	part->handing = true;
	sl_log(SL_INFO, "%s/%d: another member is to have it; finishing its calls", part->topic, (int)part->partition);
	ex_each(part->ex, part, drop_not_begun);
}

/* When nothing of it is in hand and the group knows what is finished. */
static void hand_over(struct part *part)
{
	if (part->dirty || part->committing)
		return;
	part->handed = true;
	ex_each(part->ex, part, keep_waiting);
	if (part->handed)
		part->ex->opt.broker->ops->hand_over(part->ex->con, part->topic, part->partition);
}

void part_turn(struct part *part)
{
	int64_t now = ex_now(part->ex);
	bool hurry = part->handing || part->ex->draining;
	if (part->gone || part->handed)
		return;
	if (part->stage == PART_TAKE && !part->handing && now >= part->retry_at_ms)
		take(part);
	if (part->stage == PART_RUN && part->dirty && !part->committing &&
		(now >= part->commit_at_ms || (hurry && now >= part->retry_at_ms)))
		commit(part);
	if (part->handing)
		hand_over(part);
}

/* What finished is said to the group while it still may listen; the rest is the next owner's. */
void part_revoke(struct part *part)
{
	if (part->stage == PART_RUN && part->dirty)
		commit(part);
	part->gone = true;
	ex_each(part->ex, part, drop_unfinished);
	sl_metric_add(SL_METRIC_partitions_owned, -1);
}

void part_free(struct part *part)
{
	sl_tracker_release(&part->tracker);
	sl_map_release(&part->actions, NULL);
	sl_map_release(&part->recent, NULL);
	sl_map_release(&part->older, NULL);
	free(part->topic);
	free(part);
}
