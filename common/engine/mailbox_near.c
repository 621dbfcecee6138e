/* Who is near a mailbox: the instances that its next event will probably be delivered to. */
#include "common/engine/mailbox_int.h"

#define NEAR_MAX 64             /* a mailbox with more subscribers has them read as they are needed */

void sl_actor_neighbours(const struct sl_actor *actor, bool (*visit)(void *arg, const char *ns, const char *id), void *arg)
{
	int n = 0;
	if (actor->kind != SL_ACTOR_MAILBOX || !actor->box)
		return;
	box_each(&actor->box->lists[BOX_SUBS], it)
		if (n++ >= NEAR_MAX || !visit(arg, actor->box->ns, ((struct box_sub *)it)->inst))
			return;
}

bool sl_actor_idle(const struct sl_actor *actor)
{
	struct sl_summary summary;
	if (actor->kind == SL_ACTOR_MAILBOX) {
		if (!actor->box || !actor->box->exists)
			return true;
		for (int i = 0; i < BOX_LIST_COUNT; i++)
			if (actor->box->lists[i].count)
				return false;
		return !actor->box->claim_count;
	}
	sl_actor_summary(actor, &summary);
	return !summary.exists || summary.status >= SL_COMPLETED;
}
