/* Inside of the world: what its two files share. */
#ifndef SL_CLI_WORLD_INT_H
#define SL_CLI_WORLD_INT_H

#include "common/adapters/memory/memory.h"
#include "common/base/log.h"
#include "services/cli/world.h"
#include "services/coordinator/coordinator.h"

enum happening_class { HAPPENS_EVENT, HAPPENS_ANSWER, HAPPENS_TIMER };
struct happening {
	int64_t at_ms;                  /* wall clock of the world */
	enum happening_class class;
	int64_t seq;
	struct sl_msg msg;              /* RESULT or TIMER */
	jv event;
	char *state;                    /* event: waits until this state waits */
	bool done;
};

struct sl_world {
	struct sl_world_options opt;
	struct sl_memory *memory;
	struct sl_arena arena;
	struct sl_topics topics;
	struct sl_event_topic event_topic;
	struct sl_plans *plans;
	struct sl_definitions *definitions;
	struct sl_coordinator *co;
	struct sl_broker *driver;       /* our own producer */
	int64_t start_ms;
	struct happening *agenda;
	int agenda_count, agenda_cap;
	int64_t seq;
	int64_t read_actions, read_timers, read_events, read_lifecycle, read_dead;
	struct sl_map mock_uses;        /* "function/index" -> count */
	struct sl_map functions, states;        /* names in deployed definitions */
	struct sl_world_instance *instances;
	int instance_count, instance_cap;
	struct sl_world_call *calls;
	int call_count, call_cap;
	struct sl_world_published *published;
	int published_count, published_cap;
	struct sl_map injected;         /* source\0id of events that came from outside */
	jv dead;
	const char *stop;               /* why the run cannot go on */
	int serial;
};

#define NS "default"

#define GROW(list, count, cap)                                                                     \
	do {                                                                                       \
		if ((count) == (cap)) {                                                            \
			(cap) = (cap) ? (cap) * 2 : 16;                                            \
			(list) = realloc((list), (size_t)(cap) * sizeof(*(list)));                 \
			sl_assert(list);                                                           \
		}                                                                                  \
	} while (0)

int64_t world_wall(const struct sl_world *world);
void world_trace(struct sl_world *world, const char *fmt, ...) SL_PRINTF(2, 3);
/* A new entry of the agenda; valid until the next one. */
struct happening *world_schedule(struct sl_world *world, int64_t at_ms, enum happening_class class);
void world_clear(struct happening *h);

/* --- world_calls.c: the executor's and the timer's part --- */
void world_call(struct sl_world *world, const struct sl_msg *msg);
void world_drop_answers(struct sl_world *world, const char *action);
void world_set_timer(struct sl_world *world, const struct sl_msg *msg);
void world_cancel_timer(struct sl_world *world, const struct sl_msg *msg);

#endif
