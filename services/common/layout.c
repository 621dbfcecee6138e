/* The number of partitions that the store's actors are spread over. */
#include "services/common/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/text.h"

#define KEY "layout"
#define FIELD "instances"
#define AGAIN_TURNS 10 /* a second */

struct sl_layout {
	struct sl_layout_options opt;
	bool asking, read, known;
	int pause;          /* turns until it is asked again */
	int32_t stored;     /* 0: nobody has written it */
	char number[16], trouble[512];
};

static bool answered(struct sl_layout *layout, int err)
{
	layout->asking = false;
	layout->pause = err ? AGAIN_TURNS : 0;
	layout->opt.wake(layout->opt.arg);
	return !err;
}

static void loaded(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct sl_layout *layout = arg;
	int64_t stored = 0;
	if (!answered(layout, err))
		return;
	for (int i = 0; count > 0 && i < hashes[0].count; i++)
		if (strcmp(hashes[0].fields[i].name, FIELD) == 0)
			(void)!sl_int_parse(hashes[0].fields[i].value, &stored);
	layout->stored = stored > 0 && stored <= INT32_MAX ? (int32_t)stored : 0;
	layout->read = true;
}

static void written(void *arg, int err, const char *text)
{
	struct sl_layout *layout = arg;
	(void)text;
	answered(layout, err);
	layout->read = false; /* what is there counts: somebody else may have been first */
}

static void ask(struct sl_layout *layout)
{
	static const char *const key = KEY;
	layout->asking = true;
	layout->opt.store->ops->load(layout->opt.store, -1, &key, 1, loaded, layout);
}

static void tell(struct sl_layout *layout, int32_t count)
{
	snprintf(layout->number, sizeof(layout->number), "%d", (int)count);
	struct sl_op op = {.kind = SL_OP_HSET, .key = KEY, .field = FIELD, .value = {layout->number, strlen(layout->number)}};
	layout->asking = true;
	layout->opt.store->ops->write(layout->opt.store, &op, 1, written, layout);
}

static const char *too_few(struct sl_layout *layout, int32_t have)
{
	char text[sizeof(layout->trouble)];
	snprintf(text, sizeof(text),
		"topic %s has %d partitions, but the instances in Redis are spread over %d and would not be found. Restore the topic, or "
		"make it anew with partitions.instances=%d; for a fresh start give Sluice another redis.prefix",
		layout->opt.topic, (int)have, (int)layout->stored, (int)layout->stored);
	if (strcmp(text, layout->trouble) != 0)
		sl_log(SL_ERROR, "%s", text);
	memcpy(layout->trouble, text, sizeof(text));
	layout->pause = AGAIN_TURNS;
	layout->opt.fix(layout->opt.arg, 0);
	return layout->trouble;
}

const char *sl_layout_turn(struct sl_layout *layout)
{
	const char *waiting = *layout->trouble ? layout->trouble : "the layout of the instances is being read";
	int32_t have;
	if (layout->known)
		return NULL;
	if (layout->asking || (layout->pause && --layout->pause))
		return waiting;
	if (!layout->read) {
		ask(layout);
		return waiting;
	}
	if (layout->opt.broker->ops->partitions(layout->opt.broker, layout->opt.topic, &have)) {
		layout->pause = AGAIN_TURNS;
		return waiting;
	}
	if (!layout->stored) {
		tell(layout, have);
		return waiting;
	}
	if (have < layout->stored)
		return too_few(layout, have);
	if (have > layout->stored)
		sl_log(SL_WARN,
			"topic %s has %d partitions, and the instances in Redis are spread over %d: those are used, the others stay empty. To "
			"use more, start with new topics and another redis.prefix",
			layout->opt.topic, (int)have, (int)layout->stored);
	layout->opt.fix(layout->opt.arg, layout->stored);
	layout->known = true;
	return NULL;
}

struct sl_layout *sl_layout_new(const struct sl_layout_options *opt)
{
	struct sl_layout *layout = calloc(1, sizeof(*layout));
	sl_assert(layout);
	layout->opt = *opt;
	return layout;
}

void sl_layout_free(struct sl_layout *layout)
{
	free(layout);
}
