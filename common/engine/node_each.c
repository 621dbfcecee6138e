/* Each: iterations over the elements of an array (0.8 "ForEach State", A15, A16, A71-A74). */
#include "common/engine/instance.h"

#include <stdlib.h>

/* phases */
enum { EACH_RUNS = 1, EACH_OUTPUT };

bool sl_each_collects(const struct sl_frame *frame)
{
	const struct sl_frame *parent = frame->parent;
	return parent && parent->part == SL_PART_ITERATION && parent->node->u.each.output != SL_NO_EXPR;
}

/* --- the loop --- */

/* A16: in the order of the input. Takes data; the results of one path. */
static jv add_results(const struct sl_frame *frame, jv data, jv path)
{
	jv list = frame->node->u.each.replace ? jv_invalid() : jv_getpath(jv_copy(data), jv_copy(path));
	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		jv_free(list);
		list = jv_array();
	}
	for (int i = 0; i < frame->slots.count; i++)
		if (jv_is_valid(frame->slots.items[i].value))
			list = jv_array_append(list, jv_copy(frame->slots.items[i].value));
	return jv_setpath(data, path, list);
}

static enum sl_out each_output(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_each *each = &frame->node->u.each;
	struct sl_buf text;
	jv paths, data = sl_frame_data(frame);
	frame->phase = EACH_OUTPUT;
	if (each->output == SL_NO_EXPR) {
		jv_free(data);
		return sl_node_done(run, jv_invalid());
	}
	sl_buf_init(&text);
	jv vars = sl_data_vars(run, frame);
	int err = sl_program_paths(run->inst->plan->program, each->output, jv_copy(data), vars, &paths, &text);
	jv_free(vars);
	if (err) {
		run->local = true;
		sl_node_fail(run, frame, SL_CODE_EXPRESSION, 400, "Expression error", "outputCollection: %s",
			text.len ? text.data : sl_err_text(err));
		sl_buf_release(&text);
		jv_free(data);
		return SL_OUT_FAILED;
	}
	sl_buf_release(&text);
	jv_array_foreach(paths, i, path) data =
		jv_is_valid(data) ? add_results(frame, data, path) : (jv_free(path), data);
	jv_free(paths);
	if (!jv_is_valid(data)) {
		jv_free(data);
		run->local = true;
		return sl_node_fail(
			run, frame, SL_CODE_DATA, 400, "Data error", "outputCollection does not lead into the data");
	}
	sl_frame_set_data(frame, data);
	return sl_node_done(run, jv_invalid());
}

/* Takes the iteration's result, if it is to be collected. */
static void collect(struct sl_run *run, struct sl_frame *frame, struct sl_frame *iteration)
{
	jv value = run->value;
	run->value = jv_invalid();
	run->next = NULL;
	if (frame->node->u.each.output != SL_NO_EXPR && jv_is_valid(value))
		sl_frame_slot_set(frame, iteration->index, value);
	else
		jv_free(value);
	sl_frame_drop(run, iteration);
}

/* n: how many iterations were started; m: where the running batch ends. */
static enum sl_out each_advance(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_each *each = &frame->node->u.each;
	int64_t count = jv_array_length(jv_copy(frame->own));
	int64_t bound = each->sequential ? 1 : run->eng->limits.in_flight_max;
	for (;;) {
		if (!frame->first && frame->n == frame->m && frame->n < count) /* A74: whole batches */
			frame->m = each->batch > 0 && each->batch < count - frame->n ? frame->n + each->batch : count;
		if (frame->n >= frame->m || frame->child_count >= bound)
			break;
		struct sl_frame *iteration;
		int index = (int)frame->n++;
		enum sl_out out = sl_node_start(run, frame, frame->node, SL_PART_ITERATION, index, &iteration);
		if (out == SL_OUT_WAIT)
			continue;
		if (out != SL_OUT_DONE)
			return out;
		collect(run, frame, iteration);
	}
	return frame->first ? SL_OUT_WAIT : each_output(run, frame);
}

static enum sl_out each_enter(struct sl_run *run, struct sl_frame *frame)
{
	jv list;
	frame->n = frame->m = 0;
	if (!sl_data_eval(run, frame, frame->node->u.each.collection, sl_frame_data(frame), &list))
		return SL_OUT_FAILED;
	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		const char *kind = jv_kind_name(jv_get_kind(list));
		jv_free(list);
		run->local = true;
		return sl_node_fail(
			run, frame, SL_CODE_DATA, 400, "Data error", "inputCollection is no array but %s", kind);
	}
	frame->phase = EACH_RUNS;
	sl_frame_set_own(frame, list);
	return each_advance(run, frame);
}

static enum sl_out each_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *iteration, enum sl_out out)
{
	if (out != SL_OUT_DONE)
		return out;
	collect(run, frame, iteration);
	return each_advance(run, frame);
}

static enum sl_out each_resume(struct sl_run *run, struct sl_frame *frame)
{
	if (frame->first)
		return SL_OUT_WAIT;
	if (frame->phase == EACH_OUTPUT)
		return each_output(run, frame);
	return frame->phase == EACH_RUNS ? each_advance(run, frame) : each_enter(run, frame);
}

const struct sl_node_ops sl_ops_each = {each_enter, each_child, NULL, each_resume};

/* --- an iteration --- */

static enum sl_out iteration_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_node *body = frame->node->u.each.body;
	struct sl_frame *child;
	if (!body)
		return sl_node_done(run, jv_invalid());
	return sl_node_start(run, frame, body, SL_PART_NODE, 0, &child);
}

static enum sl_out iteration_child(struct sl_run *run, struct sl_frame *frame, struct sl_frame *child, enum sl_out out)
{
	(void)run;
	(void)frame;
	(void)child;
	return out; /* the loop takes the value and drops all of it */
}

static enum sl_out iteration_resume(struct sl_run *run, struct sl_frame *frame)
{
	return frame->first ? SL_OUT_WAIT : iteration_enter(run, frame);
}

const struct sl_node_ops sl_ops_iteration = {iteration_enter, iteration_child, NULL, iteration_resume};
