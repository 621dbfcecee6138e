/* Data: expressions with their variables, filters, merging into the document of a frame (0.8 "State Data Filters",
 * "Data Merging"). */
#include "common/engine/instance.h"

#include "common/base/text.h"
#include <stdlib.h>
#include <string.h>

/* $WORKFLOW (rulings, A26). */
static jv workflow_vars(struct sl_run *run, const struct sl_node *state)
{
	const struct sl_instance *inst = run->inst;
	const struct sl_plan *plan = inst->plan;
	char time[32];
	sl_time_format(inst->created_ms, time);
	jv vars = jv_object();
	vars = sl_json_set(vars, "id", jv_string(plan->id));
	vars = sl_json_set(vars, "version", plan->version ? jv_string(plan->version) : jv_null());
	vars = sl_json_set(vars, "name", plan->name ? jv_string(plan->name) : jv_string(plan->id));
	vars = sl_json_set(vars, "instanceId", jv_string(run->actor->id));
	vars = sl_json_set(vars, "startTime", jv_string(time));
	vars = sl_json_set(vars, "state", state ? jv_string(state->u.state.name) : jv_null());
	if (jv_is_valid(inst->handled))
		vars = sl_json_set(vars, "error", jv_copy(inst->handled));
	return vars;
}

jv sl_data_vars(struct sl_run *run, struct sl_frame *frame)
{
	struct sl_frame *state = sl_frame_state(frame);
	const struct sl_node *node = state ? state->node : NULL;
	if (!jv_is_valid(run->vars) || run->vars_state != node) {
		jv_free(run->vars);
		run->vars_state = node;
		jv vars = sl_json_set(jv_object(), "CONST", jv_copy(run->inst->plan->constants));
		vars = sl_json_set(vars, "WORKFLOW", workflow_vars(run, node));
		vars = sl_json_set(vars, "SECRETS", jv_object());
		run->vars = sl_json_set(vars, "now", jv_number((double)run->now_ms / 1000));
	}
	jv vars = jv_copy(run->vars);
	for (; frame; frame = frame->parent) {
		const char *param = frame->part == SL_PART_ITERATION ? frame->node->u.each.param : NULL;
		if (!param)
			continue;
		jv inner = sl_json_get(vars, param); /* the innermost of a name wins */
		bool taken = jv_is_valid(inner);
		jv_free(inner);
		if (!taken)
			vars = sl_json_set(vars, param, jv_array_get(jv_copy(frame->parent->own), frame->index));
	}
	return vars;
}

/* Most expressions name no variable; making all of them would take longer than evaluating. */
static jv vars_for(struct sl_run *run, struct sl_frame *frame, int expr)
{
	const char *text = sl_program_text(run->inst->plan->program, expr);
	if (text && !strchr(text, '$') && !strstr(text, "fn:") && !strstr(text, "now"))
		return jv_object();
	return sl_data_vars(run, frame);
}

static bool eval_failed(struct sl_run *run, struct sl_frame *frame, int expr, int err, struct sl_buf *text)
{
	const char *source = sl_program_text(run->inst->plan->program, expr);
	const char *code = err == SL_ETOOBIG ? SL_CODE_TOO_BIG : SL_CODE_EXPRESSION;
	run->local = true;
	sl_node_fail(run, frame, code, 400, "Expression error", "%s: %s", text->len ? text->data : sl_err_text(err),
		source ? source : "");
	return false;
}

bool sl_data_eval(struct sl_run *run, struct sl_frame *frame, int expr, jv input, jv *ret)
{
	struct sl_buf text;
	sl_buf_init(&text);
	jv vars = vars_for(run, frame, expr);
	int err = sl_program_eval(run->inst->plan->program, expr, input, vars, ret, &text);
	jv_free(vars);
	bool ok = err == 0 || eval_failed(run, frame, expr, err, &text);
	sl_buf_release(&text);
	return ok;
}

bool sl_data_test(struct sl_run *run, struct sl_frame *frame, int expr, jv input, bool *ret)
{
	struct sl_buf text;
	sl_buf_init(&text);
	jv vars = vars_for(run, frame, expr);
	int err = sl_program_test(run->inst->plan->program, expr, input, vars, ret, &text);
	jv_free(vars);
	bool ok = err == 0 || eval_failed(run, frame, expr, err, &text);
	sl_buf_release(&text);
	return ok;
}

bool sl_data_filter(struct sl_run *run, struct sl_frame *frame, int select, jv value, jv *ret)
{
	if (select == SL_NO_EXPR) {
		*ret = value;
		return true;
	}
	jv selected;
	if (!sl_data_eval(run, frame, select, jv_copy(value), &selected)) {
		jv_free(value);
		return false;
	}
	if (jv_get_kind(selected) == JV_KIND_NULL) { /* A03: selects nothing, so not filtered */
		jv_free(selected);
		*ret = value;
		return true;
	}
	jv_free(value);
	*ret = selected;
	return true;
}

bool sl_data_select(struct sl_run *run, struct sl_frame *frame, int expr)
{
	jv data;
	if (expr == SL_NO_EXPR)
		return true;
	if (!sl_data_filter(run, frame, expr, sl_frame_data(frame), &data))
		return false;
	sl_frame_set_data(frame, data);
	return true;
}

/* A63: assigns through any path expression; `merge` false: replaces what is there. Takes data and value. */
static bool apply_path(struct sl_run *run, struct sl_frame *frame, int path, jv data, jv value, bool merge, jv *ret)
{
	struct sl_buf text;
	jv paths;
	sl_buf_init(&text);
	jv vars = vars_for(run, frame, path);
	int err = sl_program_paths(run->inst->plan->program, path, jv_copy(data), vars, &paths, &text);
	jv_free(vars);
	bool ok = err == 0 || eval_failed(run, frame, path, err, &text);
	sl_buf_release(&text);
	if (!ok) {
		jv_free(data);
		jv_free(value);
		return false;
	}
	jv_array_foreach(paths, i, at)
	{
		jv old = merge ? jv_getpath(jv_copy(data), jv_copy(at)) : jv_null();
		if (jv_is_valid(old) && jv_is_valid(data)) {
			data = jv_setpath(data, at, sl_json_merge(old, jv_copy(value)));
		} else {
			jv_free(old);
			jv_free(at);
			jv_free(data);
			data = jv_invalid();
		}
	}
	jv_free(paths);
	jv_free(value);
	if (!jv_is_valid(data)) {
		jv_free(data);
		run->local = true;
		sl_node_fail(run, frame, SL_CODE_DATA, 400, "Data error", "the path does not lead into the data: %s",
			sl_program_text(run->inst->plan->program, path));
		return false;
	}
	*ret = data;
	return true;
}

/* A04: a value that is no object gets a key. */
static jv keyed(const struct sl_filter *filter, jv value)
{
	if (!filter->key || jv_get_kind(value) == JV_KIND_OBJECT)
		return value;
	return sl_json_set(jv_object(), filter->key, value);
}

static bool put(struct sl_run *run, struct sl_frame *frame, const struct sl_filter *filter, jv value)
{
	jv data = jv_invalid();
	bool ok = true;
	switch (filter->target) {
	case SL_TARGET_MERGE:
		if (jv_get_kind(value) == JV_KIND_NULL) { /* nothing was answered: nothing to merge */
			jv_free(value);
			return true;
		}
		data = sl_json_merge(sl_frame_data(frame), keyed(filter, value));
		break;
	case SL_TARGET_PATH:
		ok = apply_path(run, frame, filter->path, sl_frame_data(frame), value, true, &data);
		break;
	case SL_TARGET_SET:
		if (filter->path == SL_NO_EXPR)
			data = value;
		else
			ok = apply_path(run, frame, filter->path, sl_frame_data(frame), value, false, &data);
		break;
	case SL_TARGET_FRESH:
		if (filter->path == SL_NO_EXPR)
			data = value;
		else
			ok = apply_path(run, frame, filter->path, jv_null(), value, false, &data);
		break;
	case SL_TARGET_KEY:
		data = sl_frame_data(frame);
		if (jv_get_kind(data) != JV_KIND_OBJECT) {
			jv_free(data);
			data = jv_object();
		}
		data = sl_json_set(data, filter->key, value);
		break;
	case SL_TARGET_DISCARD:
		jv_free(value);
		return true;
	}
	if (ok)
		sl_frame_set_data(frame, data);
	return ok;
}

bool sl_data_apply(struct sl_run *run, struct sl_frame *frame, const struct sl_filter *filter, jv value, jv *ret_value)
{
	jv selected;
	if (filter->target == SL_TARGET_DISCARD) {
		jv_free(value);
		if (ret_value)
			*ret_value = jv_invalid();
		return true;
	}
	if (!sl_data_filter(run, frame, filter->select, value, &selected))
		return false;
	jv used = jv_copy(selected);
	if (!put(run, frame, filter, selected)) {
		jv_free(used);
		return false;
	}
	if (ret_value)
		*ret_value = used;
	else
		jv_free(used);
	return true;
}

static bool span_failed(struct sl_run *run, struct sl_frame *frame, jv value)
{
	char *text = sl_json_text(value);
	run->local = true;
	sl_node_fail(run, frame, SL_CODE_EXPRESSION, 400, "Expression error", "not an ISO 8601 duration: %.200s", text);
	free(text);
	jv_free(value);
	return false;
}

bool sl_data_span(struct sl_run *run, struct sl_frame *frame, const struct sl_span *span, int64_t *ret_ms)
{
	jv value;
	if (span->expr == SL_NO_EXPR) {
		*ret_ms = span->ms;
		return true;
	}
	if (!sl_data_eval(run, frame, span->expr, sl_frame_data(frame), &value))
		return false;
	if (jv_get_kind(value) == JV_KIND_NUMBER && jv_number_value(value) >= 0 && jv_number_value(value) < 1e11)
		*ret_ms = (int64_t)(jv_number_value(value) * 1000);
	else if (jv_get_kind(value) != JV_KIND_STRING || sl_duration_parse(jv_string_value(value), ret_ms) != 0)
		return span_failed(run, frame, value);
	jv_free(value);
	return true;
}
