/* Names of the topics and of the store's keys: the same in every service (design sections 2 and 7). */
#ifndef SL_SERVICES_TOPICS_H
#define SL_SERVICES_TOPICS_H

#include "common/base/arena.h"
#include "common/model/id.h"

struct sl_event_topic { const char *topic, *ns; };
struct sl_topics {
	struct sl_event_topic *events;  /* public events come from here; the first of a namespace takes what is published */
	int event_count;
	const char *commands, *instances, *actions, *timers, *definitions, *lifecycle, *dead_letter;
};

/* Names with a prefix ("sluice."); events are set by the caller. Arena memory. */
void sl_topics_init(struct sl_topics *topics, struct sl_arena *arena, const char *prefix);
/* Where the workflows of ns publish; the first topic if ns has none. */
const char *sl_topics_publish(const struct sl_topics *topics, const char *ns);

/* "i:NS~ID" or "m:NS~HOME" (design section 7). Arena memory. */
char *sl_store_key(struct sl_arena *arena, const char *ns, const char *id);

#endif
