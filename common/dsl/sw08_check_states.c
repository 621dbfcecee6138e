/* Rules of 0.8 about states, actions, transitions and ends. */
#include "common/base/text.h"
#include "common/dsl/sw08_check.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- the list of states --- */

static void one_state(struct sl_sw08_context *c, jv state, const char *ptr)
{
	static const char section[] = "0.8 Workflow States";
	if (jv_get_kind(state) != JV_KIND_OBJECT) {
		sl_sw08_error(c, ptr, false, section, "each element of \"states\" must be an object");
		return;
	}
	const char *type = sl_json_str(state, "type"), *name = sl_json_str(state, "name");
	const struct sl_sw08_shape *shape = type ? sl_sw08_state_shape(type) : NULL;
	if (shape) {
		sl_sw08_object(c, state, ptr, shape);
		return;
	}
	if (!sl_sw08_has(state, "type")) {
		sl_sw08_error(c, ptr, false, section, "state \"%s\": \"type\" is missing", name ? name : "");
	} else if (!type) {
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "type"), false, section, "\"type\" must be a string");
	} else {
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "type"), false, section, "\"%s\" is no type of state", type);
		const char *near = sl_sw08_nearest(type, sl_sw08_state_types);
		if (near)
			sl_diag_hint(c->diags, "did you mean \"%s\"?", near);
		else
			sl_diag_hint(
				c->diags, "event, operation, switch, sleep, parallel, inject, foreach or callback");
	}
}

void sl_sw08_rule_states(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (!c->state_count)
		sl_sw08_error(c, ptr, true, "0.8 End Definition", "a workflow needs at least one state");
	jv_array_foreach(value, i, state)
	{
		one_state(c, state, sl_sw08_item(c, ptr, i));
		jv_free(state);
	}
}

/* --- one state --- */

/* Every type but switch: one of transition and end, which a compensating state may lack. */
void sl_sw08_rule_state(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	bool compensates = sl_json_bool(obj, "usedForCompensation", false);
	sl_sw08_either(c, obj, ptr, "state", "transition", "end", !compensates, "0.8 Workflow States");
}

void sl_sw08_rule_switch(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	static const char section[] = "0.8 Switch State";
	sl_sw08_either(c, obj, ptr, "state", "dataConditions", "eventConditions", true, section);
	if (!sl_sw08_has(obj, "defaultCondition")) {
		const char *name = sl_json_str(obj, "name");
		sl_sw08_forgive(
			c, ptr, false, "A114", "state \"%s\": \"defaultCondition\" is missing", name ? name : "");
		if (c->opt->lenient)
			sl_diag_hint(c->diags, "no match ends the workflow");
	}
	jv timeouts = sl_json_get(obj, "timeouts");
	if (sl_sw08_has(obj, "dataConditions") && sl_sw08_has(timeouts, "eventTimeout"))
		sl_sw08_error(c, sl_sw08_ptr(c, sl_sw08_ptr(c, ptr, "timeouts"), "eventTimeout"), true, section,
			"eventTimeout is for event conditions; this state has data conditions");
	jv_free(timeouts);
}

void sl_sw08_rule_condition(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	bool of_switch = !strcmp(ptr + strlen(ptr) - 9, "Condition");
	sl_sw08_either(c, obj, ptr, of_switch ? "defaultCondition" : "condition", "transition", "end", true,
		"0.8 Switch State");
}

static int64_t count_of(jv obj, const char *name)
{
	int64_t n = sl_json_int(obj, name, 0);
	const char *text = sl_json_str(obj, name);
	if (text && sl_int_parse(text, &n))
		n = 0;
	return n;
}

void sl_sw08_rule_parallel(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	static const char section[] = "0.8 Parallel State";
	sl_sw08_rule_state(c, obj, ptr);
	const char *type = sl_json_str(obj, "completionType"), *name = sl_json_str(obj, "name");
	bool at_least = type && !strcmp(type, "atLeast"), given = sl_sw08_has(obj, "numCompleted");
	jv branches = sl_json_get(obj, "branches");
	int count = jv_get_kind(branches) == JV_KIND_ARRAY ? jv_array_length(jv_copy(branches)) : -1;
	jv_free(branches);
	const char *at = sl_sw08_ptr(c, ptr, "numCompleted");
	if (at_least && !given)
		sl_sw08_error(c, ptr, false, section, "state \"%s\": completionType atLeast needs \"numCompleted\"",
			name ? name : "");
	else if (!at_least && given)
		sl_sw08_warn(c, at, true, section, "\"numCompleted\" has no effect without completionType atLeast");
	else if (at_least && count >= 0 && count_of(obj, "numCompleted") > count)
		sl_sw08_error(c, at, false, section, "numCompleted %d is more than the %d branches of the state",
			(int)count_of(obj, "numCompleted"), count);
	if (!count)
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "branches"), true, section,
			"a parallel state without branches does nothing");
}

void sl_sw08_rule_foreach(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	static const char section[] = "0.8 ForEach State";
	static const char *const taken[] = {"CONST", "SECRETS", "WORKFLOW", "ENV", "__loc__", NULL};
	sl_sw08_rule_state(c, obj, ptr);
	const char *mode = sl_json_str(obj, "mode"), *param = sl_json_str(obj, "iterationParam");
	if (mode && !strcmp(mode, "sequential") && sl_sw08_has(obj, "batchSize"))
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "batchSize"), true, section,
			"\"batchSize\" has no effect in sequential mode");
	if (!param || !*param)
		return;
	bool good = !isdigit((unsigned char)*param);
	for (const char *s = param; *s; s++)
		good = good && (isalnum((unsigned char)*s) || *s == '_');
	for (int i = 0; taken[i]; i++)
		good = good && strcmp(taken[i], param);
	if (!good) { /* A15: it is a variable of jq and a member of the data */
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "iterationParam"), false, "A15",
			"\"%s\" cannot be the name of a variable", param);
		sl_diag_hint(c->diags, "letters, digits and _, not one of $CONST, $SECRETS, $WORKFLOW, $ENV");
	}
}

void sl_sw08_rule_on_error(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	sl_sw08_either(c, obj, ptr, "onErrors entry", "errorRef", "errorRefs", true, "0.8 Error Definition");
	sl_sw08_either(c, obj, ptr, "onErrors entry", "transition", "end", true, "0.8 Error Definition");
}

/* --- where to --- */

void sl_sw08_rule_transition(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	bool object = jv_get_kind(value) == JV_KIND_OBJECT;
	const char *name = object ? sl_json_str(value, "nextState") : jv_string_value(value);
	const char *at = object ? sl_sw08_ptr(c, ptr, "nextState") : ptr;
	if (!name || !*name)
		return;
	struct sl_sw08_named *state = sl_sw08_ref(c, SL_SW08_STATE, name, at);
	if (state)
		sl_sw08_edge_add(c, SL_SW08_GOES, state->index, at);
}

void sl_sw08_rule_end(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	int state = sl_sw08_state_of(ptr);
	if (state >= 0)
		c->ends[state] = true;
	if (jv_get_kind(value) == JV_KIND_FALSE) {
		sl_sw08_error(c, ptr, false, "A115", "\"end\" must be true or an object");
		sl_diag_hint(c->diags, "leave it out where the workflow goes on");
	}
	if (jv_get_kind(value) == JV_KIND_OBJECT && sl_sw08_has(value, "continueAs") &&
		!sl_json_bool(value, "terminate", true))
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "terminate"), false, "0.8 End Definition",
			"continueAs terminates: terminate cannot be false");
}

void sl_sw08_rule_compensated_by(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	struct sl_sw08_named *state = sl_sw08_ref(c, SL_SW08_STATE, jv_string_value(value), ptr);
	if (state)
		sl_sw08_edge_add(c, SL_SW08_COMPENSATES, state->index, ptr);
}

/* --- actions --- */

/* 0.8 Action retries: which members have an effect depends on autoRetries. */
static void retry_members(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	static const char section[] = "0.8 Action retries";
	bool automatic = sl_json_bool(c->def, "autoRetries", false);
	bool retry = sl_sw08_has(obj, "retryRef"), only = sl_sw08_has(obj, "retryableErrors");
	if (sl_sw08_has(obj, "nonRetryableErrors") && !automatic)
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "nonRetryableErrors"), true, section,
			"\"nonRetryableErrors\" has no effect unless autoRetries is true");
	if (only && automatic)
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "retryableErrors"), true, section,
			"\"retryableErrors\" has no effect when autoRetries is true");
	else if (only && !retry)
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "retryableErrors"), true, section,
			"\"retryableErrors\" has no effect without \"retryRef\"");
	else if (retry && !only && !automatic)
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "retryRef"), true, section,
			"\"retryRef\" has no effect without \"retryableErrors\" unless autoRetries is true");
}

void sl_sw08_rule_action(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	static const char section[] = "0.8 Action Definition";
	static const char *const refs[] = {"functionRef", "eventRef", "subFlowRef"};
	const char *first = NULL;
	for (int i = 0; i < 3; i++) {
		if (!sl_sw08_has(obj, refs[i]))
			continue;
		if (first)
			sl_sw08_error(c, sl_sw08_ptr(c, ptr, refs[i]), true, section,
				"action: \"%s\" and \"%s\" exclude each other", first, refs[i]);
		else
			first = refs[i];
	}
	if (!first)
		sl_sw08_error(c, ptr, false, section,
			"an action needs one of \"functionRef\", \"eventRef\" and \"subFlowRef\"");
	retry_members(c, obj, ptr);
}

void sl_sw08_rule_function_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	bool object = jv_get_kind(value) == JV_KIND_OBJECT;
	const char *name = object ? sl_json_str(value, "refName") : jv_string_value(value);
	if (!name || !*name)
		return;
	struct sl_sw08_named *named =
		sl_sw08_ref(c, SL_SW08_FUNCTION, name, object ? sl_sw08_ptr(c, ptr, "refName") : ptr);
	if (!named)
		return;
	jv def = sl_sw08_def(c, SL_SW08_FUNCTION, named->index);
	const char *type = sl_json_str(def, "type");
	bool graphql = type && !strcmp(type, "graphql");
	if (graphql && (!sl_sw08_has(value, "arguments") || !sl_sw08_has(value, "selectionSet")))
		sl_sw08_error(c, ptr, false, "0.8 FunctionRef Definition",
			"a graphql function needs \"arguments\" and \"selectionSet\"");
	else if (!graphql && sl_sw08_has(value, "selectionSet"))
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "selectionSet"), true, "0.8 FunctionRef Definition",
			"\"selectionSet\" has no effect: function \"%s\" is not of type graphql", name);
	jv_free(def);
}

void sl_sw08_rule_subflow(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	bool object = jv_get_kind(value) == JV_KIND_OBJECT;
	const char *id = object ? sl_json_str(value, "workflowId") : jv_string_value(value);
	const char *own = sl_json_str(c->def, "id");
	if (id && own && !strcmp(id, own))
		sl_sw08_warn(c, object ? sl_sw08_ptr(c, ptr, "workflowId") : ptr, false, "0.8 SubFlowRef Definition",
			"the workflow invokes itself");
}

/* --- events in actions and transitions --- */

void sl_sw08_rule_event_action(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	if (sl_sw08_has(obj, "consumeEventTimeout") && !sl_sw08_has(obj, "consumeEventRef"))
		sl_sw08_warn(c, sl_sw08_ptr(c, ptr, "consumeEventTimeout"), true, "0.8 EventRef Definition",
			"\"consumeEventTimeout\" has no effect without \"consumeEventRef\"");
}

/* A118: only a kind that is written out contradicts. */
static struct sl_sw08_named *event_ref(
	struct sl_sw08_context *c, jv value, const char *ptr, const char *wrong_kind, const char *text)
{
	const char *name = jv_string_value(value);
	struct sl_sw08_named *event = sl_sw08_ref(c, SL_SW08_EVENT, name, ptr);
	if (!event)
		return NULL;
	jv def = sl_sw08_def(c, SL_SW08_EVENT, event->index);
	const char *kind = sl_json_str(def, "kind");
	if (kind && !strcmp(kind, wrong_kind)) {
		struct sl_loc loc =
			sl_doc_loc(c->doc, sl_sw08_ptr(c, sl_sw08_item(c, "/events", event->index), "kind"), true);
		sl_sw08_error(c, ptr, false, "A118", text, name);
		sl_diag_hint(c->diags, "kind: %s at %d:%d", wrong_kind, loc.line, loc.col);
	}
	jv_free(def);
	return event;
}

void sl_sw08_rule_produce(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	struct sl_sw08_named *event =
		event_ref(c, value, ptr, "consumed", "event \"%s\" is consumed, it cannot be produced");
	if (event)
		event->produced = true;
}

void sl_sw08_rule_consume(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	struct sl_sw08_named *event =
		event_ref(c, value, ptr, "produced", "event \"%s\" is produced, it cannot be awaited");
	if (!event)
		return;
	event->consumed = true;
	struct sl_sw08_wait *wait = SL_NEW(&c->arena, struct sl_sw08_wait);
	wait->state = sl_sw08_state_of(ptr);
	wait->event = event->index;
	wait->ptr = ptr;
	*c->waits_end = wait;
	c->waits_end = &wait->next;
}

void sl_sw08_rule_not_empty(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (!jv_array_length(jv_copy(value)))
		sl_sw08_error(
			c, ptr, true, "0.8 Workflow States", "a state that waits for no event would wait for ever");
}

void sl_sw08_rule_consume_all(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	static const char section[] = "0.8 OnEvents Definition";
	if (!jv_array_length(jv_copy(value)))
		sl_sw08_error(c, ptr, true, section, "\"eventRefs\" must name at least one event");
	struct sl_map seen;
	sl_map_init(&seen);
	jv_array_foreach(value, i, name)
	{
		const char *at = sl_sw08_item(c, ptr, i);
		if (sl_map_set(&seen, jv_string_value(name), c))
			sl_sw08_error(c, at, false, section, "event \"%s\" stands here twice", jv_string_value(name));
		else
			sl_sw08_rule_consume(c, holder, name, at);
		jv_free(name);
	}
	sl_map_release(&seen, NULL);
}

void sl_sw08_rule_retry_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	sl_sw08_ref(c, SL_SW08_RETRY, jv_string_value(value), ptr);
}

static void error_ref(struct sl_sw08_context *c, const char *name, const char *ptr)
{
	if (!strcmp(name, "*")) {
		sl_sw08_error(c, ptr, false, "A87", "0.8 has no error \"*\" that matches all");
		sl_diag_hint(c->diags, "name the errors");
	} else {
		sl_sw08_ref(c, SL_SW08_ERROR, name, ptr);
	}
}

void sl_sw08_rule_error_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (jv_get_kind(value) == JV_KIND_STRING) {
		error_ref(c, jv_string_value(value), ptr);
		return;
	}
	if (!jv_array_length(jv_copy(value)))
		sl_sw08_warn(c, ptr, true, "A124", "this list names no error");
	jv_array_foreach(value, i, name)
	{
		error_ref(c, jv_string_value(name), sl_sw08_item(c, ptr, i));
		jv_free(name);
	}
}

void sl_sw08_rule_sleep(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	if (!sl_sw08_has(obj, "before") && !sl_sw08_has(obj, "after"))
		sl_sw08_error(c, ptr, false, "0.8 Action Definition", "\"sleep\" needs \"before\" or \"after\"");
}
