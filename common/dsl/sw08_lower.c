/* Lowering 0.8: a checked, resolved definition becomes a plan. The parts: sw08_lower_parts.c (reading, expressions),
 * _defs.c and _functions.c (what definitions name), _states.c, _actions.c, _flow.c (what runs).
 *
 * Names of nodes: a state is its JSON Pointer (/states/3), its body /states/3:body, a list of actions
 * /states/3/actions, an action
 * .../actions/0 and its body .../actions/0/functionRef or .../eventRef (:emit for the event it produces). */
#include "common/dsl/sw08_lower.h"
#include <string.h>

/* --- the header (0.8 "Workflow Definition Structure") --- */
static void lower_names(struct sl_lower *lo)
{
	struct sl_plan *plan = lo->plan;
	plan->dialect = "sw08";
	plan->id = sl_lower_name(lo, "", sl_lower_has(lo, "", "id") ? "id" : "key");
	if (!plan->id)
		sl_lower_error(lo, "", "the workflow has no id");
	plan->name = sl_lower_name(lo, "", "name");
	if (!plan->name)
		plan->name = plan->id;
	struct sl_buf version;
	sl_buf_init(&version);
	jv given = sl_lower_at(lo, "", "version"); /* a number when lenient (A128) */
	/* Optional in 0.8: the lowest, so that any version that is given later is newer. */
	plan->version = sl_json_canonical(given, &version) ? sl_arena_str(lo->arena, version.data) : "0.0.0";
	jv_free(given);
	sl_buf_release(&version);
}

static void lower_data(struct sl_lower *lo)
{
	struct sl_plan *plan = lo->plan;
	jv constants = sl_lower_at(lo, "", "constants");
	if (jv_get_kind(constants) == JV_KIND_OBJECT) {
		jv_free(plan->constants);
		plan->constants = constants;
	} else {
		jv_free(constants);
	}
	plan->secret_count = sl_lower_count(lo, "", "secrets");
	plan->secrets = SL_NEWN(lo->arena, const char *, plan->secret_count + 1);
	for (int i = 0; i < plan->secret_count; i++) {
		plan->secrets[i] = sl_lower_name(lo, sl_lower_ptr(lo, "/secrets/%d", i), NULL);
		if (!plan->secrets[i])
			plan->secrets[i] = "";
	}
}

/* 0.8 "Workflow Timeout Definition". The text's default of interrupt is false, the schema's true: the text wins (A61).
 */
static void lower_workflow_timeout(struct sl_lower *lo)
{
	struct sl_timeouts *timeouts = &lo->plan->timeouts;
	const char *at = "/timeouts/workflowExecTimeout";
	timeouts->run_before = -1;
	timeouts->kill.expr = SL_NO_EXPR;
	if (sl_lower_text(lo, at, NULL)) {
		timeouts->workflow = sl_lower_span(lo, "/timeouts", "workflowExecTimeout");
		return;
	}
	timeouts->workflow = sl_lower_span(lo, at, "duration");
	timeouts->interrupt = sl_lower_bool(lo, at, "interrupt", false);
	if (sl_lower_has(lo, at, "runBefore"))
		sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/runBefore", at), "runBefore");
}

/* --- states --- */
static struct sl_node *lower_state(struct sl_lower *lo, const char *ptr)
{
	struct sl_node *node = sl_lower_node(lo, SL_NODE_STATE, ptr);
	struct sl_state *state = &node->u.state;
	const char *filter = sl_lower_ptr(lo, "%s/stateDataFilter", ptr);
	lo->state = ptr;
	state->name = sl_lower_name(lo, ptr, "name");
	state->input = sl_lower_expr(lo, filter, "input", SL_EXPR_ONE);
	state->output = sl_lower_expr(lo, filter, "output", SL_EXPR_ONE);
	state->timeout = sl_lower_timeout(lo, "stateExecTimeout");
	state->next = sl_lower_goto(lo, ptr);
	const char *type = sl_lower_text(lo, ptr, "type");
	if (!state->next && (!type || strcmp(type, "switch") != 0))
		sl_lower_error(lo, ptr, "a state needs a transition or an end");
	state->body = sl_lower_body(lo, ptr, state);
	sl_lower_on_errors(lo, ptr, state);
	if (sl_lower_has(lo, ptr, "compensatedBy"))
		sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/compensatedBy", ptr), "compensation");
	if (sl_lower_bool(lo, ptr, "usedForCompensation", false))
		sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/usedForCompensation", ptr), "compensation");
	lo->state = NULL;
	return node;
}

/* 0.8 "Start Definition"; without one the first state (A113). */
static int find_start(struct sl_lower *lo)
{
	if (sl_lower_text(lo, "/start", NULL))
		return sl_lower_find_state(lo, "/start", NULL);
	if (sl_lower_has(lo, "/start", "stateName"))
		return sl_lower_find_state(lo, "/start", "stateName");
	return 0;
}

static void collect_events(const struct sl_cond *cond, struct sl_start_events *start)
{
	for (int i = 0; i < cond->count; i++)
		collect_events(&cond->items[i], start);
	if (cond->kind != SL_COND_EVENT || cond->event < 0)
		return;
	for (int i = 0; i < start->count; i++)
		if (start->events[i] == cond->event)
			return;
	start->events[start->count++] = cond->event;
}

/* A start event state creates instances. Its eventTimeout is ignored when exclusive, else the time between the events
 * (0.8 "Event Timeout Definition"), so the wait itself has none. */
static void lower_start(struct sl_lower *lo, struct sl_node *state, const char *type)
{
	struct sl_start_events *start = &lo->plan->start;
	struct sl_node *body = state->u.state.body;
	if (!type || strcmp(type, "event") != 0 || !body)
		return;
	struct sl_await *await = &body->u.await;
	start->await = body;
	start->all = await->all;
	start->events = SL_NEWN(lo->arena, int, lo->plan->event_count + 1);
	for (int i = 0; i < await->alt_count; i++)
		collect_events(&await->alts[i].cond, start);
	if (await->all && await->timeout.given && await->timeout.expr != SL_NO_EXPR)
		sl_lower_error(
			lo, state->ptr, "eventTimeout of a start state cannot be an expression: there are no data yet");
	else if (await->all && await->timeout.given)
		start->window_ms = await->timeout.ms;
	await->timeout = (struct sl_span){.expr = SL_NO_EXPR};
}

static void lower_states(struct sl_lower *lo)
{
	struct sl_plan *plan = lo->plan;
	struct sl_scope *scope;
	plan->root = sl_lower_node(lo, SL_NODE_SCOPE, "/states");
	scope = &plan->root->u.scope;
	scope->state_count = sl_lower_count(lo, "", "states");
	scope->states = SL_NEWN(lo->arena, struct sl_node *, scope->state_count + 1);
	if (scope->state_count == 0) {
		sl_lower_error(lo, "/states", "the workflow has no states");
		return;
	}
	for (int i = 0; i < scope->state_count; i++)
		scope->states[i] = lower_state(lo, sl_lower_ptr(lo, "/states/%d", i));
	scope->start = find_start(lo);
	if (scope->start >= 0)
		lower_start(
			lo, scope->states[scope->start], sl_lower_text(lo, scope->states[scope->start]->ptr, "type"));
}

/* Names that iterations bind anywhere: expression functions may be used inside of them. */
static const char *const *collect_vars(struct sl_lower *lo)
{
	int states = sl_lower_count(lo, "", "states"), count = 0;
	const char **vars = SL_NEWN(lo->arena, const char *, states + 1);
	for (int i = 0; i < states; i++) {
		const char *ptr = sl_lower_ptr(lo, "/states/%d", i), *type = sl_lower_text(lo, ptr, "type");
		if (!type || strcmp(type, "foreach") != 0)
			continue;
		const char *param = sl_lower_name(lo, ptr, "iterationParam");
		bool known = false;
		for (int k = 0; k < count; k++)
			known = known || strcmp(vars[k], param ? param : "item") == 0;
		if (!known)
			vars[count++] = param ? param : "item";
	}
	return vars;
}

/* What this release cannot do and what would change how the workflow runs. */
static void refuse(struct sl_lower *lo)
{
	/* "In case of a start Event state the input schema is ignored" (A93) */
	if (sl_lower_has(lo, "", "dataInputSchema") && !lo->plan->start.await)
		sl_lower_unsupported(lo, "/dataInputSchema", "dataInputSchema");
	if (sl_lower_has(lo, "", "dataOutputSchema"))
		sl_lower_unsupported(lo, "/dataOutputSchema", "dataOutputSchema");
	if (sl_lower_bool(lo, "", "keepActive", false))
		sl_lower_unsupported(lo, "/keepActive", "keepActive");
	const char *lang = sl_lower_text(lo, "", "expressionLang");
	if (lang && strcmp(lang, "jq") != 0)
		sl_lower_unsupported(lo, "/expressionLang", "expression language %s", lang);
	if (sl_lower_has(lo, "/start", "schedule"))
		sl_lower_unsupported(lo, "/start/schedule", "schedule");
}

static void lower_all(struct sl_lower *lo)
{
	lo->all_vars = collect_vars(lo);
	lower_names(lo);
	lower_data(lo);
	sl_lower_functions(lo); /* first: expressions may use them */
	sl_lower_events(lo);
	sl_lower_retries(lo);
	lower_workflow_timeout(lo);
	lower_states(lo);
	refuse(lo);
}

int sl_sw08_lower(const struct sl_doc *doc, jv resolved, const struct sl_compile_options *opt, struct sl_plan *plan,
	struct sl_diags *diags)
{
	struct sl_lower lo = {
		.doc = doc, .opt = opt, .plan = plan, .arena = &plan->arena, .diags = diags, .root = resolved};
	sl_arena_init(&lo.scratch);
	plan->program = sl_program_new();
	plan->program_free = sl_program_free;
	sl_program_set_trusted(plan->program, opt->trusted);
	lower_all(&lo);
	sl_arena_release(&lo.scratch);
	if (lo.failed)
		return SL_ESCHEMA;
	if (lo.unsupported)
		return SL_EUNSUPPORTED;
	if (lo.again)
		return SL_EAGAIN;
	sl_plan_finish(plan);
	return 0;
}
