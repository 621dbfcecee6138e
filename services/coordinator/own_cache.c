/* The cache of an own lane: actors as the store has them, exact under our epoch (R4), bounded over all lanes together. */
#include "common/app/metrics.h"
#include "services/coordinator/road.h"

void own_cache_drop(struct own_lane *lane)
{
	sl_metric_add(SL_METRIC_cache_actors, -(int64_t)lane->actors.count);
	sl_metric_add(SL_METRIC_cache_bytes, -(int64_t)lane->actor_bytes);
	sl_map_each(&lane->actors, e)
		sl_actor_free(e->value);
	sl_map_release(&lane->actors, NULL);
	lane->co->actor_bytes -= lane->actor_bytes;
	lane->actor_bytes = 0;
}

void own_cache_add(struct own_lane *lane, const char *key, struct sl_actor *actor)
{
	sl_map_set(&lane->actors, key, actor);
	sl_metric_add(SL_METRIC_cache_actors, 1);
	own_cache_count(lane, actor);
}

void own_cache_count(struct own_lane *lane, struct sl_actor *actor)
{
	lane->actor_bytes += actor->bytes - actor->counted;
	lane->co->actor_bytes += actor->bytes - actor->counted;
	sl_metric_add(SL_METRIC_cache_bytes, (int64_t)actor->bytes - (int64_t)actor->counted);
	actor->counted = actor->bytes;
}

void own_cache_remove(struct own_lane *lane, const char *key, struct sl_actor *actor)
{
	actor->bytes = 0;
	own_cache_count(lane, actor);
	sl_metric_add(SL_METRIC_cache_actors, -1);
	sl_map_del(&lane->actors, key);
	sl_actor_free(actor);
}

/* When all caches together are full, the oldest actors of partitions with more than their share go. A batch in hand needs its own. */
void own_cache_trim(struct sl_coordinator *co)
{
	size_t max = (size_t)co->opt.cache_bytes_max, share = max / (size_t)co->partitions;
	if (co->actor_bytes <= max)
		return;
	for (int32_t p = 0; p < co->partitions; p++) {
		struct own_lane *lane = co->lanes[p];
		if (!lane || lane->stage != OWN_RUN || lane->actor_bytes <= share)
			continue;
		sl_map_each(&lane->actors, e) {
			if (lane->actor_bytes <= share / 2)
				break;
			own_cache_remove(lane, e->key, e->value);
		}
	}
}
