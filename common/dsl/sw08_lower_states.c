/* Lowering 0.8: the body of each kind of state. */
#include "common/dsl/sw08_lower.h"
#include <string.h>

static const char *body_ptr(struct sl_lower *lo, const char *ptr)
{
	return sl_lower_ptr(lo, "%s:body", ptr);
}

/* --- event (0.8 "Event State", "OnEvents Definition") --- */
/* exclusive: any of the entry's events; else all of them (A77). */
static struct sl_cond lower_refs(struct sl_lower *lo, const char *ptr, bool exclusive)
{
	int count = sl_lower_count(lo, ptr, "eventRefs");
	struct sl_cond cond = {.kind = exclusive ? SL_COND_OR : SL_COND_AND, .event = -1, .count = count};
	cond.items = SL_NEWN(lo->arena, struct sl_cond, count + 1);
	for (int i = 0; i < count; i++)
		cond.items[i] = (struct sl_cond){.kind = SL_COND_EVENT,
			.event = sl_lower_find_event(lo, sl_lower_ptr(lo, "%s/eventRefs/%d", ptr, i), NULL)};
	if (count == 0)
		sl_lower_error(lo, ptr, "eventRefs must name an event");
	return count == 1 ? cond.items[0] : cond;
}

static struct sl_node *lower_event(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_AWAIT, body_ptr(lo, ptr));
	struct sl_await *await = &node->u.await;
	bool exclusive = sl_lower_bool(lo, ptr, "exclusive", true);
	await->all = !exclusive; /* all events first, then the entries in order (A20) */
	await->alt_count = sl_lower_count(lo, ptr, "onEvents");
	await->alts = SL_NEWN(lo->arena, struct sl_alt, await->alt_count + 1);
	for (int i = 0; i < await->alt_count; i++) {
		struct sl_alt *alt = &await->alts[i];
		alt->ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "%s/onEvents/%d", ptr, i));
		alt->timeout.expr = SL_NO_EXPR;
		alt->cond = lower_refs(lo, alt->ptr, exclusive);
		alt->filter = sl_lower_event_filter(lo, alt->ptr);
		alt->body = sl_lower_actions(lo, alt->ptr);
	}
	await->timeout = sl_lower_timeout(lo, "eventTimeout"); /* leaves without any action (A19) */
	return node;
}

/* --- switch (0.8 "Switch State") --- */
static struct sl_node *lower_data_switch(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_CHOOSE, body_ptr(lo, ptr));
	struct sl_choose *choose = &node->u.choose;
	choose->count = sl_lower_count(lo, ptr, "dataConditions");
	choose->choices = SL_NEWN(lo->arena, struct sl_choice, choose->count + 1);
	for (int i = 0; i < choose->count; i++) {
		struct sl_choice *choice = &choose->choices[i];
		choice->ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "%s/dataConditions/%d", ptr, i));
		choice->name = sl_lower_name(lo, choice->ptr, "name");
		choice->cond = sl_lower_expr(lo, choice->ptr, "condition", SL_EXPR_ONE);
		choice->next = sl_lower_goto(lo, choice->ptr);
		if (choice->cond == SL_NO_EXPR && !lo->failed)
			sl_lower_error(lo, choice->ptr, "a data condition needs a condition");
		if (!choice->next)
			sl_lower_error(lo, choice->ptr, "a data condition needs a transition or an end");
	}
	choose->otherwise = sl_lower_goto(lo, sl_lower_ptr(lo, "%s/defaultCondition", ptr)); /* none: A114 lenient */
	return node;
}

static struct sl_node *lower_event_switch(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_AWAIT, body_ptr(lo, ptr));
	struct sl_await *await = &node->u.await;
	await->alt_count = sl_lower_count(lo, ptr, "eventConditions");
	await->alts = SL_NEWN(lo->arena, struct sl_alt, await->alt_count + 1);
	for (int i = 0; i < await->alt_count; i++) {
		struct sl_alt *alt = &await->alts[i];
		alt->ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "%s/eventConditions/%d", ptr, i));
		alt->timeout.expr = SL_NO_EXPR;
		alt->cond =
			(struct sl_cond){.kind = SL_COND_EVENT, .event = sl_lower_find_event(lo, alt->ptr, "eventRef")};
		alt->filter = sl_lower_event_filter(lo, alt->ptr);
		alt->next = sl_lower_goto(lo, alt->ptr);
		if (!alt->next)
			sl_lower_error(lo, alt->ptr, "an event condition needs a transition or an end");
	}
	await->timeout = sl_lower_timeout(lo, "eventTimeout");
	await->timeout_next = sl_lower_goto(lo, sl_lower_ptr(lo, "%s/defaultCondition", ptr));
	if (!await->timeout_next) /* A114 lenient: ends the workflow */
		await->timeout_next = sl_lower_end(lo, sl_lower_ptr(lo, "%s:default", ptr));
	return node;
}

/* --- parallel (0.8 "Parallel State", "Parallel State Branch") --- */
static struct sl_node *lower_parallel(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_FORK, body_ptr(lo, ptr));
	struct sl_fork *fork = &node->u.fork;
	const char *completion = sl_lower_text(lo, ptr, "completionType");
	fork->count = sl_lower_count(lo, ptr, "branches");
	fork->branches = SL_NEWN(lo->arena, struct sl_branch, fork->count + 1);
	for (int i = 0; i < fork->count; i++) {
		struct sl_branch *branch = &fork->branches[i];
		branch->ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "%s/branches/%d", ptr, i));
		branch->name = sl_lower_name(lo, branch->ptr, "name");
		lo->branch = branch->ptr;
		branch->timeout = sl_lower_timeout(lo, "branchExecTimeout");
		branch->body = sl_lower_actions(lo, branch->ptr);
		lo->branch = NULL;
	}
	fork->need = fork->count;
	if (completion && strcmp(completion, "atLeast") == 0) {
		int64_t need = sl_lower_int(lo, ptr, "numCompleted", 0);
		if (need < 1 || need > fork->count)
			sl_lower_error(lo, sl_lower_ptr(lo, "%s/numCompleted", ptr),
				"numCompleted must be between 1 and the %d branches", fork->count);
		else
			fork->need = (int)need;
	}
	return node;
}

/* --- foreach (0.8 "ForEach State") --- */
static struct sl_node *lower_foreach(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_EACH, body_ptr(lo, ptr));
	struct sl_each *each = &node->u.each;
	const char *mode = sl_lower_text(lo, ptr, "mode");
	each->collection = sl_lower_expr(lo, ptr, "inputCollection", SL_EXPR_ONE);
	each->output = sl_lower_expr(lo, ptr, "outputCollection", SL_EXPR_PATH); /* none: results are discarded (A73) */
	each->param = sl_lower_name(lo, ptr, "iterationParam");
	if (!each->param)
		each->param = "item"; /* A71 */
	each->sequential = mode && strcmp(mode, "sequential") == 0;
	each->batch = sl_lower_int(lo, ptr, "batchSize", 0);
	const char **vars = SL_NEWN(lo->arena, const char *, 2);
	vars[0] = each->param;
	lo->vars = vars;
	each->body = sl_lower_actions(lo, ptr);
	lo->vars = NULL;
	return node;
}

/* --- callback (0.8 "Callback State") --- */
static struct sl_node *lower_callback(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_AWAIT, body_ptr(lo, ptr));
	struct sl_await *await = &node->u.await;
	struct sl_alt *alt = SL_NEW(lo->arena, struct sl_alt);
	*alt = (struct sl_alt){
		.ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "%s/eventRef", ptr)), .timeout = {.expr = SL_NO_EXPR}};
	alt->cond = (struct sl_cond){.kind = SL_COND_EVENT, .event = sl_lower_find_event(lo, ptr, "eventRef")};
	alt->filter = sl_lower_event_filter(lo, ptr);
	await->alts = alt;
	await->alt_count = 1;
	if (sl_lower_has(lo, ptr, "action"))
		await->before = sl_lower_action(lo, sl_lower_ptr(lo, "%s/action", ptr));
	await->timeout = sl_lower_timeout(lo, "eventTimeout");
	return node;
}

/* --- sleep, inject --- */
static struct sl_node *lower_sleep(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_SLEEP, body_ptr(lo, ptr));
	node->u.sleep.span = sl_lower_span(lo, ptr, "duration");
	return node;
}

/* "data allows you to statically define a JSON object": a constant, never evaluated. */
static struct sl_node *lower_inject(struct sl_lower *lo, const char *ptr)
{
	jv data = sl_lower_at(lo, ptr, "data");
	if (!jv_is_valid(data))
		return NULL;
	struct sl_node *node = sl_lower_node(lo, SL_NODE_ASSIGN, body_ptr(lo, ptr));
	node->u.assign.value = sl_program_add_const(lo->plan->program, data);
	node->u.assign.filter.target = SL_TARGET_MERGE;
	return node;
}

struct sl_node *sl_lower_body(struct sl_lower *lo, const char *ptr, struct sl_state *state)
{
	static const struct {
		const char *type;
		struct sl_node *(*lower)(struct sl_lower *lo, const char *ptr);
	} kinds[] = {
		{"event", lower_event},
		{"operation", sl_lower_actions},
		{"sleep", lower_sleep},
		{"parallel", lower_parallel},
		{"inject", lower_inject},
		{"foreach", lower_foreach},
		{"callback", lower_callback},
	};
	const char *type = sl_lower_text(lo, ptr, "type");
	if (type && strcmp(type, "switch") == 0) {
		state->next = NULL; /* its conditions decide */
		return sl_lower_has(lo, ptr, "eventConditions") ? lower_event_switch(lo, ptr)
								: lower_data_switch(lo, ptr);
	}
	for (size_t i = 0; type && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(type, kinds[i].type) == 0)
			return kinds[i].lower(lo, ptr);
	sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/type", ptr), "states of type %s", type ? type : "?");
	return NULL;
}
