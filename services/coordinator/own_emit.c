/* The outbox of an own lane on its way to Kafka (design section 3, stage 7; R2). */
#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include "services/coordinator/road.h"

static void emit_delivered(void *arg, int err)
{
	struct own_lane *lane = arg;
	lane->out--;
	lane->emit_out--;
	if (err && !lane->gone)
		sl_log(SL_ERROR, "%s/%d: Kafka refused a record for good: %s", lane->co->opt.topics->instances, (int)lane->partition,
			sl_err_text(err));
	if (!lane->emit_out)
		co_wake(lane->co);
}

/* Sends what the producer takes; the records for sluice.instances are delivered before the others are sent. */
void own_emit_turn(struct own_lane *lane)
{
	struct sl_broker *broker = lane->co->opt.broker;
	if (!lane->emitting)
		return;
	for (;;) {
		while (lane->emit_sent < lane->emit_first_count) {
			if (broker->ops->produce(broker, &lane->emit_first[lane->emit_sent], emit_delivered, lane))
				return;
			lane->emit_sent++;
			lane->emit_out++;
			lane->out++;
		}
		if (lane->emit_out && (lane->emit_later_count ? SL_RULE(topic_order) : SL_RULE(outbox_gate)))
			return;
		for (int i = 0; i < lane->emit_first_count; i++)
			sl_metric_add_l(SL_METRIC_records_out_total, lane->emit_first[i].topic, 1);
		sl_metric_add(SL_METRIC_outbox_records, -lane->emit_first_count);
		if (!lane->emit_later_count)
			break;
		lane->emit_first = lane->emit_later;
		lane->emit_first_count = lane->emit_later_count;
		lane->emit_later_count = lane->emit_sent = 0;
	}
	lane->emitting = false;
	sl_arena_clear(&lane->emit_arena);
}

void own_emit_begin(struct own_lane *lane, const struct sl_msg *msgs, int count)
{
	sl_assert(!lane->emitting);
	sl_arena_clear(&lane->emit_arena);
	lane->emit_first = SL_NEWN(&lane->emit_arena, struct sl_record, count + 1);
	lane->emit_later = SL_NEWN(&lane->emit_arena, struct sl_record, count + 1);
	lane->emit_first_count = lane->emit_later_count = lane->emit_sent = 0;
	for (int i = 0; i < count; i++) {
		bool first = sl_msg_route(msgs[i].kind) == SL_TO_INST;
		struct sl_record *rec =
			first ? &lane->emit_first[lane->emit_first_count] : &lane->emit_later[lane->emit_later_count];
		int err = emit_record(lane->co, &lane->emit_arena, &msgs[i], rec);
		if (err) {
			sl_log(SL_ERROR, "%s/%d: effect %s cannot be encoded: %s", lane->co->opt.topics->instances,
				(int)lane->partition, sl_msg_kind_text(msgs[i].kind), sl_err_text(err));
			continue;
		}
		if (first)
			lane->emit_first_count++;
		else
			lane->emit_later_count++;
	}
	lane->emitting = true;
	sl_metric_add(SL_METRIC_outbox_records, lane->emit_first_count + lane->emit_later_count);
	own_emit_turn(lane);
}
