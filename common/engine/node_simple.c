/* The nodes that are done in one go, and sleep. */
#include "common/engine/instance.h"

/* --- sleep --- */

static enum sl_out sleep_enter(struct sl_run *run, struct sl_frame *frame)
{
	int64_t ms;
	if (!sl_data_span(run, frame, &frame->node->u.sleep.span, &ms))
		return SL_OUT_FAILED;
	if (ms <= 0)
		return sl_node_done(run, jv_invalid());
	sl_frame_timer_set(run, frame, run->now_ms + ms);
	return SL_OUT_WAIT;
}

static enum sl_out sleep_timer(struct sl_run *run, struct sl_frame *frame)
{
	(void)frame;
	return sl_node_done(run, jv_invalid());
}

const struct sl_node_ops sl_ops_sleep = {sleep_enter, NULL, sleep_timer, NULL};

/* --- assign: "Inject State" --- */

static enum sl_out assign_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_assign *assign = &frame->node->u.assign;
	jv value;
	if (!sl_data_eval(run, frame, assign->value, sl_frame_data(frame), &value))
		return SL_OUT_FAILED;
	if (!sl_data_apply(run, frame, &assign->filter, value, NULL))
		return SL_OUT_FAILED;
	return sl_node_done(run, jv_invalid());
}

const struct sl_node_ops sl_ops_assign = {assign_enter, NULL, NULL, NULL};

/* --- emit --- */

static enum sl_out emit_enter(struct sl_run *run, struct sl_frame *frame)
{
	jv input;
	if (!sl_action_input(run, frame, &input))
		return SL_OUT_FAILED;
	if (!sl_publish(run, frame, &frame->node->u.emit, input))
		return SL_OUT_FAILED;
	return sl_node_done(run, jv_invalid());
}

const struct sl_node_ops sl_ops_emit = {emit_enter, NULL, NULL, NULL};

/* --- choose: "Switch State", data conditions: the first that is true --- */

static bool truthy(jv value)
{
	jv_kind kind = jv_get_kind(value);
	switch (kind) {
	case JV_KIND_NULL:
	case JV_KIND_FALSE:
	case JV_KIND_INVALID:
		return false;
	case JV_KIND_NUMBER:
		return jv_number_value(value) != 0;
	case JV_KIND_STRING:
		return jv_string_length_bytes(jv_copy(value)) > 0;
	case JV_KIND_ARRAY:
		return jv_array_length(jv_copy(value)) > 0;
	case JV_KIND_OBJECT:
		return jv_object_length(jv_copy(value)) > 0;
	default:
		return true;
	}
}

/* "no match ends the workflow" where `otherwise` is missing (A114, lenient). */
static const struct sl_goto end_here = {
	.ptr = "", .transform = SL_NO_EXPR, .kind = SL_GOTO_END, .end = SL_END_COMPLETE, .continue_data = SL_NO_EXPR};

static enum sl_out choose_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_choose *choose = &frame->node->u.choose;
	run->next = choose->otherwise ? choose->otherwise : &end_here;
	for (int i = 0; i < choose->count; i++) {
		const struct sl_choice *choice = &choose->choices[i];
		bool yes;
		if (choice->truthy) {
			jv value;
			if (!sl_data_eval(run, frame, choice->cond, sl_frame_data(frame), &value))
				return SL_OUT_FAILED;
			yes = truthy(value);
			jv_free(value);
		} else if (!sl_data_test(run, frame, choice->cond, sl_frame_data(frame), &yes)) {
			return SL_OUT_FAILED;
		}
		if (yes) {
			run->next = choice->next;
			break;
		}
	}
	return sl_node_done(run, jv_invalid());
}

const struct sl_node_ops sl_ops_choose = {choose_enter, NULL, NULL, NULL};

/* --- raise --- */

static enum sl_out raise_enter(struct sl_run *run, struct sl_frame *frame)
{
	const struct sl_raise *raise = &frame->node->u.raise;
	struct sl_buf text;
	jv message = jv_null();
	if (raise->message != SL_NO_EXPR && !sl_data_eval(run, frame, raise->message, sl_frame_data(frame), &message))
		return SL_OUT_FAILED;
	sl_buf_init(&text);
	if (!sl_json_canonical(message, &text))
		sl_json_write(&text, message);
	jv_free(message);
	enum sl_out out = sl_node_fail(
		run, frame, raise->code ? raise->code : SL_CODE_INTERNAL, 0, NULL, "%s", text.len ? text.data : "");
	sl_buf_release(&text);
	return out;
}

const struct sl_node_ops sl_ops_raise = {raise_enter, NULL, NULL, NULL};
