/* Actors: the one shape that owners see of instances and mailboxes. */
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/engine/instance.h"
#include "common/engine/mailbox.h"

static char *copy_text(const char *text)
{
	char *copy = strdup(text);
	sl_assert(copy);
	return copy;
}

struct sl_actor *sl_actor_new(const char *ns, const char *id)
{
	struct sl_actor *actor = calloc(1, sizeof(*actor));
	sl_assert(actor);
	actor->kind = sl_id_is_mailbox(id) ? SL_ACTOR_MAILBOX : SL_ACTOR_INSTANCE;
	actor->ns = copy_text(ns);
	actor->id = copy_text(id);
	actor->bytes = sizeof(*actor);
	return actor;
}

void sl_actor_free(struct sl_actor *actor)
{
	if (!actor)
		return;
	sl_instance_free(actor->inst);
	sl_mailbox_free(actor->box);
	free((void *)(uintptr_t)actor->ns);
	free((void *)(uintptr_t)actor->id);
	free(actor);
}

#define OVERHEAD 3 /* jv objects and the allocator take about three times what they hold (measured) */

static void measure(struct sl_actor *actor)
{
	actor->bytes = sizeof(*actor);
	if (actor->inst)
		actor->bytes += sl_instance_bytes(actor->inst);
	if (actor->box)
		actor->bytes += sl_mailbox_bytes(actor->box);
	actor->bytes *= OVERHEAD;
}

int sl_actor_load(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_field *fields, int count,
	struct sl_diags *diags)
{
	int err = 0;
	sl_assert(!actor->inst && !actor->box);
	if (count > 0 && actor->kind == SL_ACTOR_INSTANCE) {
		err = sl_instance_load(eng, actor->ns, fields, count, &actor->inst, diags);
	} else if (count > 0) {
		actor->box = sl_mailbox_new(actor->ns, actor->id);
		err = sl_mailbox_load(eng, actor->box, fields, count, diags);
		if (err) {
			sl_mailbox_free(actor->box);
			actor->box = NULL;
		}
	}
	sl_actor_summary(actor, &actor->committed);
	measure(actor);
	return err;
}

void sl_actor_changes(
	struct sl_actor *actor, struct sl_arena *arena, struct sl_field **ret, int *ret_count, bool *ret_gone)
{
	*ret = NULL;
	*ret_count = 0;
	*ret_gone = false;
	if (actor->inst)
		sl_instance_changes(actor, actor->inst, arena, ret, ret_count, ret_gone);
	else if (actor->box)
		sl_mailbox_changes(actor->box, arena, ret, ret_count, ret_gone);
	measure(actor);
}

void sl_actor_committed(struct sl_actor *actor)
{
	if (actor->inst && actor->inst->gone) {
		sl_instance_free(actor->inst);
		actor->inst = NULL;
	} else if (actor->inst) {
		sl_instance_committed(actor->inst);
	} else if (actor->box) {
		sl_mailbox_committed(actor->box);
	}
	sl_actor_summary(actor, &actor->committed);
	measure(actor);
}

static void put_text(char *ret, size_t size, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	if (len >= size) {
		len = size - 1;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) /* not inside a character */
			len--;
	}
	if (len)
		memcpy(ret, text, len);
	ret[len] = '\0';
}

void sl_actor_summary(const struct sl_actor *actor, struct sl_summary *ret)
{
	const struct sl_instance *inst = actor->inst;
	memset(ret, 0, sizeof(*ret));
	if (actor->box) {
		sl_mailbox_summary(actor->box, ret);
		return;
	}
	if (!inst || inst->gone)
		return;
	ret->exists = true;
	ret->status = inst->status;
	put_text(ret->plan, sizeof(ret->plan), inst->plan->hash);
	put_text(ret->workflow, sizeof(ret->workflow), inst->plan->id);
	ret->created_ms = inst->created_ms;
	ret->updated_ms = inst->now_ms;
	ret->expires_ms = inst->expires_ms;
}
