/* Records in hand of one partition: a queue that keeps the consumer's handles until they are done. */
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "services/coordinator/road.h"

void inbox_add(struct inbox *inbox, const struct sl_record *rec, void *handle)
{
	if (inbox->head + inbox->count == inbox->cap) {
		if (inbox->head > inbox->cap / 2) {
			memmove(inbox->items, inbox->items + inbox->head, (size_t)inbox->count * sizeof(*inbox->items));
			inbox->head = 0;
		} else {
			inbox->cap = inbox->cap ? inbox->cap * 2 : 64;
			inbox->items = realloc(inbox->items, (size_t)inbox->cap * sizeof(*inbox->items));
			sl_assert(inbox->items);
		}
	}
	inbox->items[inbox->head + inbox->count++] = (struct pending){*rec, handle};
}

struct pending *inbox_at(struct inbox *inbox, int i)
{
	sl_assert(i < inbox->count);
	return &inbox->items[inbox->head + i];
}

void inbox_drop(struct inbox *inbox, struct sl_coordinator *co, struct sl_consumer *con, int n)
{
	sl_assert(n <= inbox->count);
	for (int i = 0; i < n; i++)
		co->opt.broker->ops->release(con, inbox_at(inbox, i)->handle);
	inbox->head += n;
	inbox->count -= n;
	if (!inbox->count)
		inbox->head = 0;
}

void inbox_release(struct inbox *inbox, struct sl_coordinator *co, struct sl_consumer *con)
{
	inbox_drop(inbox, co, con, inbox->count);
	free(inbox->items);
	memset(inbox, 0, sizeof(*inbox));
}
