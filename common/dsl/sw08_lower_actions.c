/* Lowering 0.8: actions: function calls, events as calls, their filters, conditions, sleeps and timeouts. */
#include "common/dsl/sw08_lower.h"
#include <string.h>

/* Where a result or an event goes (0.8 "Action data filters", "Event data filters"). `key`: A04. */
static struct sl_filter lower_filter(
	struct sl_lower *lo, const char *ptr, const char *use, const char *select, const char *key)
{
	struct sl_filter filter = {.select = SL_NO_EXPR, .path = SL_NO_EXPR, .target = SL_TARGET_MERGE, .key = key};
	if (!sl_lower_bool(lo, ptr, use, true)) { /* the other members "should be ignored" */
		filter.target = SL_TARGET_DISCARD;
		return filter;
	}
	filter.select = sl_lower_expr(lo, ptr, select, SL_EXPR_ONE);
	filter.path = sl_lower_expr(lo, ptr, "toStateData", SL_EXPR_PATH);
	if (filter.path != SL_NO_EXPR)
		filter.target = SL_TARGET_PATH;
	return filter;
}

struct sl_filter sl_lower_event_filter(struct sl_lower *lo, const char *ptr)
{
	return lower_filter(lo, sl_lower_ptr(lo, "%s/eventDataFilter", ptr), "useData", "data", "response");
}

/* --- functionRef (0.8 "FunctionRef Definition") --- */
static struct sl_node *lower_call(struct sl_lower *lo, const char *ptr)
{
	const char *at = sl_lower_ptr(lo, "%s/functionRef", ptr);
	struct sl_node *node = sl_lower_node(lo, SL_NODE_CALL, at);
	struct sl_call *call = &node->u.call;
	const struct sl_program *program = lo->plan->program;
	call->function = sl_lower_find_function(lo, at, sl_lower_text(lo, at, NULL) ? NULL : "refName");
	const char *args_at = sl_lower_ptr(lo, "%s/arguments", at);
	jv args = sl_lower_at(lo, args_at, NULL);
	if (jv_is_valid(args))
		call->args = sl_lower_template(lo, args_at, jv_copy(args), true);
	if (call->function < 0) {
		jv_free(args);
		return node;
	}
	const struct sl_function *function = &lo->plan->functions[call->function];
	sl_lower_check_arguments(lo, args_at, args, function);
	jv_free(args);
	call->uses_secrets = (call->args != SL_NO_EXPR && sl_program_uses_secrets(program, call->args)) ||
			     (function->expr != SL_NO_EXPR && sl_program_uses_secrets(program, function->expr));
	return node;
}

/* --- eventRef (0.8 "EventRef Definition") --- */
static struct sl_node *lower_trigger(struct sl_lower *lo, const char *at)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_EMIT, sl_lower_ptr(lo, "%s:emit", at));
	node->u.emit =
		sl_lower_emit(lo, at, sl_lower_has(lo, at, "produceEventRef") ? "produceEventRef" : "triggerEventRef");
	return node;
}

/* Produce, then wait for the answer. The wait has a time of its own: consumeEventTimeout, else actionExecTimeout;
 * running out raises an error (A12). */
static struct sl_node *lower_event_call(struct sl_lower *lo, const char *at, const char *consume)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_AWAIT, at);
	struct sl_await *await = &node->u.await;
	struct sl_alt *alt = SL_NEW(lo->arena, struct sl_alt);
	*alt = (struct sl_alt){
		.ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "%s/%s", at, consume)), .timeout = {.expr = SL_NO_EXPR}};
	alt->cond = (struct sl_cond){.kind = SL_COND_EVENT, .event = sl_lower_find_event(lo, at, consume)};
	/* the event is the action's result, which the action's own filter places */
	alt->filter = (struct sl_filter){.select = SL_NO_EXPR, .target = SL_TARGET_SET, .path = SL_NO_EXPR};
	await->alts = alt;
	await->alt_count = 1;
	await->before = lower_trigger(lo, at);
	await->timeout_raises = true;
	await->timeout = sl_lower_span(
		lo, at, sl_lower_has(lo, at, "consumeEventTimeout") ? "consumeEventTimeout" : "resultEventTimeout");
	if (!await->timeout.given)
		await->timeout = sl_lower_timeout(lo, "actionExecTimeout");
	return node;
}

static struct sl_node *lower_event_ref(struct sl_lower *lo, const char *ptr, bool async)
{
	const char *at = sl_lower_ptr(lo, "%s/eventRef", ptr);
	/* the schema calls them triggerEventRef and resultEventRef, the text wins (A61) but both are understood */
	const char *consume = sl_lower_has(lo, at, "consumeEventRef")  ? "consumeEventRef"
			      : sl_lower_has(lo, at, "resultEventRef") ? "resultEventRef"
								       : NULL;
	return consume && !async ? lower_event_call(lo, at, consume) : lower_trigger(lo, at);
}

/* --- actions (0.8 "Action Definition") --- */
static bool is_async(struct sl_lower *lo, const char *ptr)
{
	static const char *const refs[] = {"functionRef", "eventRef", "subFlowRef"};
	for (int i = 0; i < 3; i++) {
		const char *invoke = sl_lower_text(lo, sl_lower_ptr(lo, "%s/%s", ptr, refs[i]), "invoke");
		if (invoke && strcmp(invoke, "async") == 0)
			return true;
	}
	return false;
}

/* "In this case the action does not produce any results and the associated actions actionDataFilter as well as its
 * retry definition, if defined, should be ignored." */
static void lower_results(struct sl_lower *lo, const char *ptr, struct sl_action *action)
{
	const char *filter = sl_lower_ptr(lo, "%s/actionDataFilter", ptr);
	if (action->async) {
		action->result.target = SL_TARGET_DISCARD;
		if (sl_lower_has(lo, filter, NULL))
			sl_lower_warn(lo, filter, "actionDataFilter is ignored with invoke: async");
		return;
	}
	const char *key = action->name ? sl_arena_printf(lo->arena, "%s-output", action->name) : "response";
	action->from = sl_lower_expr(lo, filter, "fromStateData", SL_EXPR_ONE);
	action->result = lower_filter(lo, filter, "useResults", "results", key);
	sl_lower_retry_rules(lo, ptr, action);
}

struct sl_node *sl_lower_action(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_ACTION, ptr);
	struct sl_action *action = &node->u.action;
	const char *sleep = sl_lower_ptr(lo, "%s/sleep", ptr);
	action->name = sl_lower_name(lo, ptr, "name");
	action->async = is_async(lo, ptr);
	action->condition = sl_lower_expr(lo, ptr, "condition", SL_EXPR_ONE);
	action->sleep_before = sl_lower_span(lo, sleep, "before");
	action->sleep_after = sl_lower_span(lo, sleep, "after");
	lower_results(lo, ptr, action);
	if (sl_lower_has(lo, ptr, "functionRef"))
		action->body = lower_call(lo, ptr);
	else if (sl_lower_has(lo, ptr, "eventRef"))
		action->body = lower_event_ref(lo, ptr, action->async);
	else if (sl_lower_has(lo, ptr, "subFlowRef"))
		sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/subFlowRef", ptr), "subFlowRef");
	else
		sl_lower_error(lo, ptr, "an action needs a functionRef, an eventRef or a subFlowRef");
	/* A10: per action. An await has its own time, and producing an event takes none. */
	if (action->body && action->body->kind == SL_NODE_CALL)
		action->timeout = sl_lower_timeout(lo, "actionExecTimeout");
	return node;
}

struct sl_node *sl_lower_actions(struct sl_lower *lo, const char *ptr)
{
	const char *at = sl_lower_ptr(lo, "%s/actions", ptr), *mode = sl_lower_text(lo, ptr, "actionMode");
	if (!sl_lower_has(lo, at, NULL))
		return NULL;
	struct sl_node *node = sl_lower_node(lo, SL_NODE_ACTIONS, at);
	struct sl_actions *actions = &node->u.actions;
	actions->parallel = mode && strcmp(mode, "parallel") == 0;
	actions->count = sl_lower_count(lo, at, NULL);
	actions->items = SL_NEWN(lo->arena, struct sl_node *, actions->count + 1);
	for (int i = 0; i < actions->count; i++)
		actions->items[i] = sl_lower_action(lo, sl_lower_ptr(lo, "%s/%d", at, i));
	return node;
}
