/* Plans: construction, lookup, key sets. */
#include "common/model/plan.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"


struct sl_plan *sl_plan_new(void)
{
	struct sl_plan *plan = calloc(1, sizeof(*plan));
	if (!plan)
		sl_bug(__FILE__, __LINE__, "out of memory");
	plan->refs = 1;
	sl_arena_init(&plan->arena);
	sl_map_init(&plan->nodes);
	plan->constants = jv_object();
	plan->source = jv_null();
	plan->timeouts.run_before = -1;
	return plan;
}

struct sl_plan *sl_plan_ref(struct sl_plan *plan)
{
	plan->refs++;
	return plan;
}

void sl_plan_unref(struct sl_plan *plan)
{
	if (!plan || --plan->refs > 0)
		return;
	if (plan->program_free)
		plan->program_free(plan->program);
	for (int i = 0; i < plan->function_count; i++)
		for (int k = 0; k < plan->functions[i].http.param_count; k++)
			jv_free(plan->functions[i].http.params[k].fallback);
	jv_free(plan->constants);
	jv_free(plan->source);
	sl_map_release(&plan->nodes, NULL);
	sl_arena_release(&plan->arena);
	free(plan);
}

struct sl_node *sl_plan_node(struct sl_plan *plan, enum sl_node_kind kind, const char *ptr, struct sl_loc loc)
{
	struct sl_node *node = SL_NEW(&plan->arena, struct sl_node);
	node->kind = kind;
	node->ptr = sl_arena_str(&plan->arena, ptr);
	node->loc = loc;
	node->loc.file = NULL; /* positions outlive the file's name */
	void *old = sl_map_set(&plan->nodes, node->ptr, node);
	sl_assert(!old);
	return node;
}

const struct sl_node *sl_plan_find(const struct sl_plan *plan, const char *ptr)
{
	return sl_map_get(&plan->nodes, ptr);
}

static void set_parents(struct sl_node *node, struct sl_node *parent)
{
	if (!node)
		return;
	node->parent = parent;
	switch (node->kind) {
	case SL_NODE_SCOPE:
		for (int i = 0; i < node->u.scope.state_count; i++)
			set_parents(node->u.scope.states[i], node);
		break;
	case SL_NODE_STATE:
		set_parents(node->u.state.body, node);
		break;
	case SL_NODE_ACTIONS:
		for (int i = 0; i < node->u.actions.count; i++)
			set_parents(node->u.actions.items[i], node);
		break;
	case SL_NODE_ACTION:
		set_parents(node->u.action.body, node);
		break;
	case SL_NODE_AWAIT:
		set_parents(node->u.await.before, node);
		for (int i = 0; i < node->u.await.alt_count; i++)
			set_parents(node->u.await.alts[i].body, node);
		break;
	case SL_NODE_FORK:
		for (int i = 0; i < node->u.fork.count; i++)
			set_parents(node->u.fork.branches[i].body, node);
		break;
	case SL_NODE_EACH:
		set_parents(node->u.each.body, node);
		break;
	default:
		break;
	}
}

static bool same_names(const struct sl_key_set *set, const struct sl_event_def *ev)
{
	if (set->count != ev->key_count)
		return false;
	for (int i = 0; i < set->count; i++)
		if (strcmp(set->names[i], ev->keys[i].name) != 0)
			return false;
	return true;
}

static void make_sets(struct sl_plan *plan)
{
	plan->sets = SL_NEWN(&plan->arena, struct sl_key_set, plan->event_count ? plan->event_count : 1);
	for (int i = 0; i < plan->event_count; i++) {
		struct sl_event_def *ev = &plan->events[i];
		ev->set = -1;
		if (!ev->key_count || ev->produced)
			continue;
		int s = 0;
		while (s < plan->set_count && !same_names(&plan->sets[s], ev))
			s++;
		if (s == plan->set_count) {
			struct sl_key_set *set = &plan->sets[plan->set_count++];
			set->count = ev->key_count;
			set->names = SL_NEWN(&plan->arena, const char *, ev->key_count);
			for (int k = 0; k < ev->key_count; k++)
				set->names[k] = ev->keys[k].name;
		}
		ev->set = s;
	}
}

static bool has_key(const struct sl_event_def *ev, const char *name)
{
	for (int i = 0; i < ev->key_count; i++)
		if (strcmp(ev->keys[i].name, name) == 0)
			return true;
	return false;
}

/* Names that every start event has in its key. */
static void make_common(struct sl_plan *plan)
{
	struct sl_start_events *start = &plan->start;
	if (!start->count)
		return;
	const struct sl_event_def *first = &plan->events[start->events[0]];
	start->common = SL_NEWN(&plan->arena, const char *, first->key_count ? first->key_count : 1);
	start->common_count = 0;
	for (int k = 0; k < first->key_count; k++) {
		bool all = true;
		for (int i = 1; i < start->count; i++)
			all = all && has_key(&plan->events[start->events[i]], first->keys[k].name);
		if (all)
			start->common[start->common_count++] = first->keys[k].name;
	}
}

void sl_plan_finish(struct sl_plan *plan)
{
	set_parents(plan->root, NULL);
	make_sets(plan);
	make_common(plan);
}
