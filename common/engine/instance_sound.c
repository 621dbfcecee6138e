/* Does a stored tree of frames fit its plan? What a step relies on is checked once, when the state is read: a state
 * that was damaged, or written against another plan, is told as such (the instance faults) instead of ending the
 * process.
 *
 * The rules are those by which node_*.c make frames: which node stands under which, with which number, and how far the
 * counters n and m may go. */
#include "common/engine/instance.h"

#include "common/base/log.h"

/* The node that a child of this number must have; NULL: there is none. *ret_part: and what it must be. */
static const struct sl_node *child_node(const struct sl_frame *parent, int index, enum sl_frame_part *ret_part)
{
	const struct sl_node *node = parent->node;
	*ret_part = SL_PART_NODE;
	if (parent->part == SL_PART_BRANCH)
		return index == 0 ? node->u.fork.branches[parent->index].body : NULL;
	if (parent->part == SL_PART_ITERATION)
		return index == 0 ? node->u.each.body : NULL;
	switch (node->kind) {
	case SL_NODE_SCOPE:
		return index < node->u.scope.state_count ? node->u.scope.states[index] : NULL;
	case SL_NODE_STATE:
		return index == 0 ? node->u.state.body : NULL;
	case SL_NODE_ACTIONS:
		return index < node->u.actions.count ? node->u.actions.items[index] : NULL;
	case SL_NODE_ACTION:
		return index == 0 ? node->u.action.body : NULL;
	case SL_NODE_AWAIT:
		return index < node->u.await.alt_count	  ? node->u.await.alts[index].body
		       : index == node->u.await.alt_count ? node->u.await.before
							  : NULL;
	case SL_NODE_FORK:
		*ret_part = SL_PART_BRANCH;
		return index < node->u.fork.count ? node : NULL;
	case SL_NODE_EACH:
		*ret_part = SL_PART_ITERATION;
		return index < parent->n ? node : NULL;
	default:
		return NULL;
	}
}

/* Has the node kind something to do when its timer fires? */
static bool has_timer(const struct sl_frame *frame)
{
	if (frame->part != SL_PART_NODE)
		return frame->part == SL_PART_BRANCH;
	sl_assert(frame->node);
	return frame->node->kind == SL_NODE_STATE || frame->node->kind == SL_NODE_ACTION ||
	       frame->node->kind == SL_NODE_AWAIT || frame->node->kind == SL_NODE_SLEEP;
}

static int64_t length(jv list)
{
	return jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : -1;
}

/* What an await collected: objects that name an event definition and hold an event. */
static bool collected(jv list)
{
	bool sound = true;
	for (int64_t i = 0, n = length(list); i < n && sound; i++) {
		jv item = jv_array_get(jv_copy(list), (int)i), ev = sl_json_get(item, "event");
		sound = sl_json_str(item, "name") && jv_get_kind(ev) == JV_KIND_OBJECT;
		jv_free(ev);
		jv_free(item);
	}
	return sound && (!jv_is_valid(list) || length(list) >= 0);
}

static const char *counters(const struct sl_frame *frame)
{
	const struct sl_node *node = frame->node;
	if (frame->part != SL_PART_NODE)
		return NULL;
	sl_assert(node);
	switch (node->kind) {
	case SL_NODE_ACTIONS:
		return frame->n > node->u.actions.count ? "more actions than the plan has" : NULL;
	case SL_NODE_FORK:
		return frame->n > node->u.fork.count ? "more branches than the plan has" : NULL;
	case SL_NODE_EACH:
		if (frame->n > frame->m || (frame->m > 0 && frame->m > length(frame->own)))
			return "more iterations than its collection has";
		return frame->phase && length(frame->own) < 0 ? "a loop without its collection" : NULL;
	case SL_NODE_AWAIT:
		if (frame->n >= node->u.await.alt_count && frame->n > 0)
			return "an alternative that the plan lacks";
		if (jv_is_valid(frame->info) && jv_get_kind(frame->info) != JV_KIND_OBJECT)
			return "a wait without its keys";
		return collected(frame->own) ? NULL : "a wait whose events are none";
	default:
		return NULL;
	}
}

const char *sl_frame_unsound(const struct sl_instance *inst, const struct sl_frame *frame)
{
	const struct sl_frame *parent = frame->parent;
	enum sl_frame_part part = SL_PART_NODE;
	const struct sl_node *node = parent ? child_node(parent, frame->index, &part) : inst->plan->root;
	if (frame->node != node || frame->part != part || (!parent && frame->index != 0))
		return "a frame that does not belong there";
	if (parent && parent->part == SL_PART_NODE && parent->node->kind == SL_NODE_SCOPE && frame->next)
		return "two states at a time";
	if (frame->n < 0 || frame->m < 0 || frame->attempt < 0 || frame->token < 0 || frame->timer < 0)
		return "a negative counter";
	if (frame->timer && !has_timer(frame))
		return "a timer where none can be";
	sl_assert(frame->node);
	if (frame->slots.count && (frame->part != SL_PART_NODE || frame->node->kind != SL_NODE_EACH))
		return "results where none are collected";
	return counters(frame);
}
