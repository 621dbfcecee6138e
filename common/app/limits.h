/* The engine's limits out of the configuration. A header of its own because app does not know the engine. */
#ifndef SL_APP_LIMITS_H
#define SL_APP_LIMITS_H

#include "common/app/config.h"
#include "common/engine/engine.h"

static inline void sl_config_limits(const struct sl_config *cfg, struct sl_limits *ret)
{
	static const char *const levels[] = {"none", "instance", "state", "action"};
	sl_limits_default(ret);
	ret->state_bytes_max = cfg->instance_state_bytes_max;
	ret->inbox_max = (int)cfg->instance_inbox_max;
	ret->inbox_bytes_max = cfg->instance_inbox_bytes_max;
	ret->steps_max = (int)cfg->instance_steps_max;
	ret->in_flight_max = (int)cfg->instance_in_flight_max;
	ret->early_window_ms = cfg->correlation_early_window_ms;
	ret->early_max = (int)cfg->correlation_early_max;
	ret->join_max = (int)cfg->correlation_join_max;
	ret->fan_out_max = (int)cfg->correlation_fan_out_max;
	ret->hops_max = (int)cfg->correlation_hops_max;
	ret->retention_ms = cfg->instance_retention_ms;
	ret->idle_ms = cfg->correlation_idle_ms;
	ret->retry_delay_max_ms = cfg->retry_delay_max_ms;
	ret->transitions_max = (int)cfg->instance_transitions_max;
	ret->ring_max = (int)cfg->instance_ring_max;
	ret->effect_ring_max = (int)cfg->instance_effect_ring_max;
	for (int i = 0; i < 4; i++)
		if (sl_config_is(cfg->lifecycle_level, levels[i]))
			ret->lifecycle_level = i;
}

/* What decoders of public data allow. */
static inline struct sl_json_limits sl_config_json_limits(const struct sl_config *cfg)
{
	return (struct sl_json_limits){.bytes_max = (size_t)cfg->event_bytes_max,
		.depth_max = (int)cfg->data_depth_max,
		.round_integers = sl_config_is(cfg->data_big_integers, "round")};
}

#endif
