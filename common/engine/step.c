/* The engine's only verb, and its defaults. */
#include "common/engine/instance.h"
#include "common/engine/mailbox.h"

#define MINUTE_MS (INT64_C(60) * 1000)

void sl_limits_default(struct sl_limits *limits)
{
	*limits = (struct sl_limits){.state_bytes_max = INT64_C(1) << 20,
		.inbox_max = 1000,
		.inbox_bytes_max = INT64_C(1) << 20,
		.steps_max = 100000,
		.in_flight_max = 1000,
		.early_window_ms = 10000,
		.early_max = 1000,
		.join_max = 1000,
		.fan_out_max = 1000,
		.hops_max = 100,
		.retention_ms = INT64_C(7) * 24 * 60 * MINUTE_MS,
		.idle_ms = 60 * MINUTE_MS,
		.retry_delay_max_ms = 60 * MINUTE_MS,
		.transitions_max = 50,
		.ring_max = 256,
		.effect_ring_max = 1024,
		.lifecycle_level = 1};
}

const char *sl_status_text(enum sl_status status)
{
	static const char *const texts[] = {"running", "waiting", "suspended", "completed", "faulted", "cancelled"};
	return (unsigned)status < sizeof(texts) / sizeof(*texts) ? texts[status] : "unknown";
}

void sl_effects_stamp(
	struct sl_effects *fx, int first, const struct sl_actor *actor, const struct sl_pos *pos, int64_t now_ms)
{
	if (first >= fx->count)
		return;
	const char *ns = sl_arena_str(fx->arena, actor->ns), *from = sl_arena_str(fx->arena, actor->id);
	for (int i = first; i < fx->count; i++) {
		struct sl_msg *msg = &fx->items[i];
		char id[SL_UUID_TEXT];
		msg->ns = ns;
		msg->from = from;
		if (!msg->time_ms)
			msg->time_ms = now_ms;
		if (msg->id) /* published events, answers and returns have theirs already */
			continue;
		sl_id_effect(ns, pos, i - first, id);
		msg->id = sl_arena_str(fx->arena, id);
	}
}

int sl_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in, const struct sl_pos *pos,
	int64_t now_ms, struct sl_effects *fx)
{
	int first = fx->count, err;
	if (actor->kind == SL_ACTOR_MAILBOX) {
		if (!actor->box)
			actor->box = sl_mailbox_new(actor->ns, actor->id);
		err = sl_mailbox_step(eng, actor->box, in, pos, now_ms, fx);
		now_ms = sl_mailbox_now(actor->box);
	} else {
		err = sl_instance_step(eng, actor, in, pos, now_ms, fx);
		if (actor->inst && actor->inst->now_ms > now_ms)
			now_ms = actor->inst->now_ms;
	}
	sl_effects_stamp(fx, first, actor, pos, now_ms);
	return err;
}
