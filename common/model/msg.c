/* Messages: construction, copying, names; effect lists. */
#include "common/model/msg.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"

static const struct {
	const char *text;
	enum sl_route route;
} kinds[SL_MSG_KIND_COUNT_] = {
	[SL_MSG_NONE] = {"none", SL_TO_INST},
#define K(name, label, where) [SL_MSG_##name] = {label, SL_TO_##where},
	SL_MSG_KINDS(K)
#undef K
};

void sl_msg_init(struct sl_msg *msg, enum sl_msg_kind kind)
{
	memset(msg, 0, sizeof(*msg));
	msg->kind = kind;
	msg->origin_partition = msg->origin_offset = -1;
#define INIT_STR(name)
#define INIT_I64(name)
#define INIT_BOOL(name)
#define INIT_JSON(name) msg->name = jv_invalid();
#define M(type, name, meaning) INIT_##type(name)
#include "common/model/msg.def"
#undef M
}

void sl_msg_clear(struct sl_msg *msg)
{
#define FREE_STR(name)
#define FREE_I64(name)
#define FREE_BOOL(name)
#define FREE_JSON(name) jv_free(msg->name);
#define M(type, name, meaning) FREE_##type(name)
#include "common/model/msg.def"
#undef M
	sl_msg_init(msg, SL_MSG_NONE);
}

void sl_msg_copy(struct sl_arena *arena, struct sl_msg *ret, const struct sl_msg *msg)
{
	sl_msg_init(ret, msg->kind);
#define COPY_STR(name) ret->name = sl_arena_str(arena, msg->name);
#define COPY_I64(name) ret->name = msg->name;
#define COPY_BOOL(name) ret->name = msg->name;
#define COPY_JSON(name) ret->name = jv_copy(msg->name);
#define M(type, name, meaning) COPY_##type(name)
#include "common/model/msg.def"
#undef M
}

const char *sl_msg_kind_text(enum sl_msg_kind kind)
{
	return (unsigned)kind < SL_MSG_KIND_COUNT_ ? kinds[kind].text : "unknown";
}

enum sl_msg_kind sl_msg_kind_of(const char *text)
{
	for (int k = 1; k < SL_MSG_KIND_COUNT_; k++)
		if (strcmp(kinds[k].text, text) == 0)
			return (enum sl_msg_kind)k;
	return SL_MSG_NONE;
}

enum sl_route sl_msg_route(enum sl_msg_kind kind)
{
	sl_assert((unsigned)kind < SL_MSG_KIND_COUNT_);
	return kinds[kind].route;
}

void sl_effects_init(struct sl_effects *fx, struct sl_arena *arena)
{
	*fx = (struct sl_effects){.arena = arena};
}

void sl_effects_clear(struct sl_effects *fx)
{
	for (int i = 0; i < fx->count; i++)
		sl_msg_clear(&fx->items[i]);
	fx->count = 0;
}

void sl_effects_release(struct sl_effects *fx)
{
	sl_effects_clear(fx);
	free(fx->items);
	fx->items = NULL;
	fx->cap = 0;
}

struct sl_msg *sl_effects_add(struct sl_effects *fx, enum sl_msg_kind kind)
{
	if (fx->count == fx->cap) {
		int cap = fx->cap ? fx->cap * 2 : 16;
		struct sl_msg *items = realloc(fx->items, (size_t)cap * sizeof(*items));
		if (!items)
			sl_bug(__FILE__, __LINE__, "out of memory");
		fx->items = items;
		fx->cap = cap;
	}
	struct sl_msg *msg = &fx->items[fx->count++];
	sl_msg_init(msg, kind);
	return msg;
}
