/* Over how many partitions of sluice.instances the actors of this store are spread: field `instances` of `sluice:layout`, written by
 * whoever comes first and never changed. The number decides where every actor lives (design section 3), so a topic that has been given
 * more partitions goes on with the old number, and one that has fewer is waited for. Loop thread only. */
#ifndef SL_SERVICES_LAYOUT_H
#define SL_SERVICES_LAYOUT_H

#include "common/ports/broker.h"
#include "common/ports/store.h"

struct sl_layout_options {
	struct sl_broker *broker; /* borrowed, as all of these */
	struct sl_store *store;
	const char *topic; /* sluice.instances */
	/* The broker is to use so many partitions of the topic from now on; 0: as many as it has, to be asked again. */
	void (*fix)(void *arg, int32_t count);
	void (*wake)(void *arg);
	void *arg;
};
struct sl_layout;

struct sl_layout *sl_layout_new(const struct sl_layout_options *opt);
/* Goes on with what can go on; to be called ten times a second until it gives NULL: the number is known, and fixed. Else what is being
 * waited for (borrowed until the next call). */
const char *sl_layout_turn(struct sl_layout *layout);
/* After the store is closed. NULL is allowed. */
void sl_layout_free(struct sl_layout *layout);

#endif
