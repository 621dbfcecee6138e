/* Lowering 0.8: transitions and ends, produced events, error handlers and retries. */
#include "common/dsl/sw08_lower.h"
#include <string.h>

/* --- produced events (0.8 "ProducedEvent Definition", "EventRef Definition") --- */
/* contextAttributes: an object; a list of objects is accepted and joined (A11). */
static int lower_context(struct sl_lower *lo, const char *ptr)
{
	const char *at = sl_lower_ptr(lo, "%s/contextAttributes", ptr);
	jv given = sl_lower_at(lo, at, NULL);
	if (!jv_is_valid(given))
		return SL_NO_EXPR;
	if (jv_get_kind(given) != JV_KIND_ARRAY)
		return sl_lower_template(lo, at, given, false);
	jv all = jv_object();
	jv_array_foreach(given, i, item)
	{
		if (jv_get_kind(item) == JV_KIND_OBJECT) {
			all = jv_object_merge(all, item);
		} else {
			sl_lower_error(lo, sl_lower_ptr(lo, "%s/%d", at, i), "contextAttributes must hold objects");
			jv_free(item);
		}
	}
	jv_free(given);
	return sl_lower_template(lo, at, all, false);
}

struct sl_emit sl_lower_emit(struct sl_lower *lo, const char *ptr, const char *ref)
{
	struct sl_emit emit = {.ptr = sl_lower_keep(lo, ptr), .delay = {.expr = SL_NO_EXPR}};
	emit.event = sl_lower_find_event(lo, ptr, ref);
	if (emit.event >= 0 && !lo->plan->events[emit.event].type)
		sl_lower_error(lo, sl_lower_ptr(lo, "%s/%s", ptr, ref), "event '%s' cannot be produced: it has no type",
			lo->plan->events[emit.event].name);
	emit.data = sl_lower_data(lo, ptr, "data");
	emit.context = lower_context(lo, ptr);
	return emit;
}

static void lower_emits(struct sl_lower *lo, const char *ptr, struct sl_goto *out)
{
	out->event_count = sl_lower_count(lo, ptr, "produceEvents");
	out->events = SL_NEWN(lo->arena, struct sl_emit, out->event_count + 1);
	for (int i = 0; i < out->event_count; i++)
		out->events[i] = sl_lower_emit(lo, sl_lower_ptr(lo, "%s/produceEvents/%d", ptr, i), "eventRef");
}

/* --- transitions and ends (0.8 "Transition Definition", "End Definition") --- */
static struct sl_goto *new_goto(struct sl_lower *lo, const char *ptr, enum sl_goto_kind kind)
{
	struct sl_goto *next = SL_NEW(lo->arena, struct sl_goto);
	*next = (struct sl_goto){.ptr = sl_lower_keep(lo, ptr),
		.kind = kind,
		.target = -1,
		.end = SL_END_COMPLETE,
		.transform = SL_NO_EXPR,
		.continue_data = SL_NO_EXPR};
	return next;
}

struct sl_goto *sl_lower_end(struct sl_lower *lo, const char *ptr)
{
	return new_goto(lo, ptr, SL_GOTO_END);
}

struct sl_goto *sl_lower_goto(struct sl_lower *lo, const char *ptr)
{
	bool transition = sl_lower_has(lo, ptr, "transition");
	if (!transition && !sl_lower_has(lo, ptr, "end"))
		return NULL;
	const char *at = sl_lower_ptr(lo, "%s/%s", ptr, transition ? "transition" : "end");
	struct sl_goto *next = new_goto(lo, at, transition ? SL_GOTO_STATE : SL_GOTO_END);
	if (transition)
		next->target = sl_lower_find_state(lo, at, sl_lower_text(lo, at, NULL) ? NULL : "nextState");
	else if (sl_lower_bool(lo, at, "terminate", false))
		next->end = SL_END_TERMINATE;
	if (sl_lower_bool(lo, at, "compensate", false))
		sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/compensate", at), "compensation");
	if (sl_lower_has(lo, at, "continueAs"))
		sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/continueAs", at), "continueAs");
	lower_emits(lo, at, next);
	return next;
}

/* --- errors (0.8 "Workflow Error Handling") --- */
/* A definition matches by its code, without one by its name (A08). */
static void lower_match(struct sl_lower *lo, const char *at, struct sl_match *ret)
{
	const char *name = sl_lower_text(lo, at, NULL);
	int count = sl_lower_count(lo, "", "errors");
	for (int i = 0; name && i < count; i++) {
		const char *error = sl_lower_ptr(lo, "/errors/%d", i), *other = sl_lower_text(lo, error, "name");
		if (!other || strcmp(other, name) != 0)
			continue;
		jv code = sl_lower_at(lo, error, "code");
		struct sl_buf text;
		sl_buf_init(&text);
		*ret = (struct sl_match){.kind = SL_MATCH_CODE};
		ret->text = sl_json_canonical(code, &text) ? sl_lower_keep(lo, text.data) : sl_lower_keep(lo, name);
		sl_buf_release(&text);
		jv_free(code);
		return;
	}
	sl_lower_error(lo, at, "there is no error definition '%s'", name ? name : "");
}

/* The error definitions that the list (or the one string) at `member` names. */
static void lower_matches(struct sl_lower *lo, const char *ptr, const char *member, struct sl_rule *rule)
{
	const char *at = sl_lower_ptr(lo, "%s/%s", ptr, member);
	bool single = sl_lower_text(lo, at, NULL);
	int count = single ? 1 : sl_lower_count(lo, ptr, member);
	rule->matches = SL_NEWN(lo->arena, struct sl_match, count + 1);
	rule->match_count = count;
	for (int i = 0; i < count; i++)
		lower_match(lo, single ? at : sl_lower_ptr(lo, "%s/%d", at, i), &rule->matches[i]);
}

/* 0.8 "Error Definition" in states: no catch-all (A87), first match in list order. */
void sl_lower_on_errors(struct sl_lower *lo, const char *ptr, struct sl_state *state)
{
	int count = sl_lower_count(lo, ptr, "onErrors");
	state->rules = SL_NEWN(lo->arena, struct sl_rule, count + 1);
	state->rule_count = count;
	for (int i = 0; i < count; i++) {
		const char *at = sl_lower_ptr(lo, "%s/onErrors/%d", ptr, i);
		struct sl_rule *rule = &state->rules[i];
		rule->then = SL_THEN_GOTO;
		rule->next = sl_lower_goto(lo, at);
		if (!rule->next)
			sl_lower_error(lo, at, "an error handler needs a transition or an end");
		lower_matches(lo, at, sl_lower_has(lo, at, "errorRef") ? "errorRef" : "errorRefs", rule);
	}
}

/* --- retries (0.8 "Action retries") --- */
/* What the text recommends: unlimited attempts after one second, doubled each time; the engine caps the delay. */
static const struct sl_retry default_policy = {.name = "default", .delay_ms = 1000, .multiplier = 2};

static const struct sl_retry *find_policy(struct sl_lower *lo, const char *ptr)
{
	const char *name = sl_lower_text(lo, ptr, "retryRef");
	if (!name)
		return NULL;
	for (int i = 0; i < lo->retry_count; i++)
		if (lo->retries[i].name && strcmp(lo->retries[i].name, name) == 0)
			return &lo->retries[i];
	sl_lower_error(lo, sl_lower_ptr(lo, "%s/retryRef", ptr), "there is no retry definition '%s'", name);
	return NULL;
}

/* autoRetries false: "retrying on specified known (checked) errors", so an action needs both a strategy ("if it does not define one,
 * the action is in this case not retried") and a list; the checker warns of one without the other. autoRetries true: every
 * error but nonRetryableErrors, by the default policy when there is no retryRef. */
void sl_lower_retry_rules(struct sl_lower *lo, const char *ptr, struct sl_action *action)
{
	const struct sl_retry *policy = find_policy(lo, ptr);
	if (!lo->auto_retries && (!policy || sl_lower_count(lo, ptr, "retryableErrors") == 0))
		return;
	struct sl_rule *rule = SL_NEW(lo->arena, struct sl_rule);
	rule->then = SL_THEN_RAISE;
	rule->retry = policy ? policy : &default_policy;
	if (!lo->auto_retries) {
		lower_matches(lo, ptr, "retryableErrors", rule);
	} else if (sl_lower_count(lo, ptr, "nonRetryableErrors") > 0) {
		lower_matches(lo, ptr, "nonRetryableErrors", rule);
		rule->except = true;
	} else {
		rule->matches = SL_NEW(lo->arena, struct sl_match);
		rule->matches->kind = SL_MATCH_ANY;
		rule->match_count = 1;
	}
	action->rules = rule;
	action->rule_count = 1;
}
