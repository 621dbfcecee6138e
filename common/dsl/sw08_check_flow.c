/* What needs the graph of all transitions: compensation, runBefore, states that nothing reaches. */
#include "common/dsl/sw08_check.h"
#include <string.h>

/* Marks what can be reached from `state` by transitions. */
static void reach(struct sl_sw08_context *c, int state, bool *seen)
{
	int *todo = SL_NEWN(&c->arena, int, c->state_count + 1), n = 0;
	if (state < 0 || seen[state])
		return;
	seen[state] = true;
	todo[n++] = state;
	while (n) {
		int at = todo[--n];
		for (const struct sl_sw08_edge *e = c->edges; e; e = e->next) {
			if (e->kind == SL_SW08_GOES && e->from == at && !seen[e->to]) {
				seen[e->to] = true;
				todo[n++] = e->to;
			}
		}
	}
}

static const char *state_name(struct sl_sw08_context *c, int index)
{
	jv state = sl_sw08_def(c, SL_SW08_STATE, index);
	const char *name = sl_arena_str(&c->arena, sl_json_str(state, "name"));
	jv_free(state);
	return name ? name : "";
}

static bool compensates(struct sl_sw08_context *c, int index)
{
	jv state = sl_sw08_def(c, SL_SW08_STATE, index);
	bool marked = sl_json_bool(state, "usedForCompensation", false);
	jv_free(state);
	return marked;
}

static bool state_has(struct sl_sw08_context *c, int index, const char *name)
{
	jv state = sl_sw08_def(c, SL_SW08_STATE, index);
	bool found = sl_sw08_has(state, name);
	jv_free(state);
	return found;
}

/* --- 0.8 Defining Compensation --- */
static const char compensation[] = "0.8 Defining Compensation";

static void check_compensated_by(struct sl_sw08_context *c, const struct sl_sw08_edge *e)
{
	const char *name = state_name(c, e->to);
	jv state = sl_sw08_def(c, SL_SW08_STATE, e->to);
	const char *type = sl_json_str(state, "type");
	bool event = type && !strcmp(type, "event");
	jv_free(state);
	if (event) {
		sl_sw08_error(c, e->ptr, false, compensation, "event state \"%s\" cannot compensate", name);
	} else if (!compensates(c, e->to)) {
		sl_sw08_error(
			c, e->ptr, false, compensation, "state \"%s\" compensates but is not marked for it", name);
		sl_diag_hint(c->diags, "add usedForCompensation: true to it");
	}
}

static void check_marked(struct sl_sw08_context *c, int index)
{
	const char *ptr = sl_sw08_item(c, "/states", index), *name = state_name(c, index);
	if (index == c->start)
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "usedForCompensation"), true, compensation,
			"state \"%s\" compensates: the workflow cannot start with it", name);
	if (state_has(c, index, "compensatedBy"))
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "compensatedBy"), true, compensation,
			"state \"%s\" compensates and cannot itself be compensated", name);
	if (state_has(c, index, "end"))
		sl_sw08_warn(
			c, sl_sw08_ptr(c, ptr, "end"), true, "A96", "\"end\" is ignored in a state that compensates");
}

static void check_compensation(struct sl_sw08_context *c, bool *alive)
{
	for (const struct sl_sw08_edge *e = c->edges; e; e = e->next) {
		if (e->kind == SL_SW08_COMPENSATES) {
			check_compensated_by(c, e);
			reach(c, e->to, alive);
		} else if (e->kind == SL_SW08_GOES && e->from >= 0 &&
			   compensates(c, e->from) != compensates(c, e->to)) {
			if (compensates(c, e->to))
				sl_sw08_error(c, e->ptr, false, compensation,
					"state \"%s\" compensates: the main flow cannot lead to it",
					state_name(c, e->to));
			else
				sl_sw08_error(c, e->ptr, false, compensation,
					"a state that compensates may lead only to others marked for it, not to \"%s\"",
					state_name(c, e->to));
		}
	}
	for (int i = 0; i < c->state_count; i++)
		if (compensates(c, i))
			check_marked(c, i);
}

/* --- 0.8 Workflow Timeout Definition: runBefore --- */

static void check_run_before(struct sl_sw08_context *c, const struct sl_sw08_edge *e, const bool *flow, bool *alive)
{
	static const char section[] = "0.8 Workflow Timeout Definition";
	bool *chain = SL_NEWN(&c->arena, bool, c->state_count + 1), ends = false;
	const char *name = state_name(c, e->to);
	reach(c, e->to, chain);
	for (int i = 0; i < c->state_count; i++) {
		if (!chain[i])
			continue;
		alive[i] = true;
		ends = ends || c->ends[i];
		if (flow[i])
			sl_sw08_error(c, e->ptr, false, section, "runBefore: state \"%s\" is part of the main flow",
				state_name(c, i));
		if (compensates(c, i))
			sl_sw08_error(c, e->ptr, false, section, "runBefore: state \"%s\" is marked for compensation",
				state_name(c, i));
	}
	if (!ends)
		sl_sw08_error(c, e->ptr, false, section, "runBefore: no state from \"%s\" on defines an end", name);
}

void sl_sw08_check_flow(struct sl_sw08_context *c)
{
	bool *flow = SL_NEWN(&c->arena, bool, c->state_count + 1),
	     *alive = SL_NEWN(&c->arena, bool, c->state_count + 1);
	reach(c, c->start, flow);
	check_compensation(c, alive);
	for (const struct sl_sw08_edge *e = c->edges; e; e = e->next)
		if (e->kind == SL_SW08_RUN_BEFORE)
			check_run_before(c, e, flow, alive);
	if (c->start < 0)
		return; /* an unknown start was said already; everything would be out of reach */
	for (int i = 0; i < c->state_count; i++) {
		if (flow[i] || alive[i] || !*state_name(c, i))
			continue;
		const char *ptr = sl_sw08_ptr(c, sl_sw08_item(c, "/states", i), "name");
		if (compensates(c, i))
			sl_sw08_warn(c, ptr, false, compensation, "no \"compensatedBy\" leads to state \"%s\"",
				state_name(c, i));
		else
			sl_sw08_warn(
				c, ptr, false, "0.8 Transitions", "state \"%s\" is never reached", state_name(c, i));
	}
}
