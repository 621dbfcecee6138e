/* Events that workflows publish (0.8 "ProducedEvent Definition"; rulings A11, A75, A82-A84 and "produceEvents"). */
#include "common/engine/instance.h"

#include "common/base/text.h"
#include <stdlib.h>
#include <string.h>

static bool fail_data(struct sl_run *run, struct sl_frame *frame, const char *text, const char *name)
{
	run->local = true;
	sl_node_fail(run, frame, SL_CODE_DATA, 400, "Data error", "%s: %s", text, name);
	return false;
}

/* Attributes that an author may not set: the envelope is ours. */
static bool is_reserved(const char *name)
{
	static const char *const names[] = {"specversion", "id", "type", "data", "data_base64", "originworkflowid",
		"origininstanceid", "sluicehops"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_attribute_name(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(name);
}

/* Takes value. */
static bool set_attribute(struct sl_run *run, struct sl_frame *frame, jv *ev, const char *name, jv value)
{
	struct sl_buf lower;
	bool ok = true;
	sl_buf_init(&lower);
	sl_buf_adds(&lower, name);
	if (lower.len)
		sl_lower(lower.data);
	jv_kind kind = jv_get_kind(value);
	if (!lower.len || !is_attribute_name(lower.data)) {
		ok = fail_data(run, frame, "not a CloudEvents attribute name", name);
	} else if (is_reserved(lower.data)) {
		ok = fail_data(run, frame, "this attribute is not the author's", name);
	} else if (kind == JV_KIND_STRING || kind == JV_KIND_TRUE || kind == JV_KIND_FALSE) {
		*ev = sl_json_set(*ev, lower.data, jv_copy(value));
	} else if (kind == JV_KIND_NUMBER) { /* CloudEvents has 32-bit integers only */
		double d = jv_number_value(value);
		struct sl_buf text;
		sl_buf_init(&text);
		sl_json_canonical(value, &text);
		bool small = d >= -2147483648.0 && d <= 2147483647.0 && d == (double)(int32_t)d;
		*ev = sl_json_set(*ev, lower.data, small ? jv_copy(value) : jv_string(text.data));
		sl_buf_release(&text);
	} else if (kind != JV_KIND_NULL) { /* null: the attribute is absent */
		ok = fail_data(run, frame, "a CloudEvents attribute must be a scalar", name);
	}
	sl_buf_release(&lower);
	jv_free(value);
	return ok;
}

static bool set_context(struct sl_run *run, struct sl_frame *frame, jv *ev, jv context)
{
	bool ok = true;
	if (jv_get_kind(context) == JV_KIND_ARRAY) { /* A11: an array of objects is accepted */
		jv_array_foreach(context, i, item) ok = ok ? set_context(run, frame, ev, item) : (jv_free(item), false);
	} else if (jv_get_kind(context) == JV_KIND_OBJECT) {
		jv_object_foreach(context, name, value)
		{
			ok = ok ? set_attribute(run, frame, ev, jv_string_value(name), value) : (jv_free(value), false);
			jv_free(name);
		}
	} else if (jv_get_kind(context) != JV_KIND_NULL) {
		ok = fail_data(run, frame, "contextAttributes is no object", frame->node->ptr);
	}
	jv_free(context);
	return ok;
}

/* Attributes of the event's own correlation, then all that is bound. */
static bool set_correlation(struct sl_run *run, struct sl_frame *frame, jv *ev, const struct sl_event_def *def, jv data)
{
	struct sl_buf value;
	bool ok = true;
	sl_buf_init(&value);
	for (int k = 0; def && ok && k < def->key_count; k++) {
		const struct sl_key_part *part = &def->keys[k];
		jv given = sl_json_get(*ev, part->name);
		bool has = jv_is_valid(given);
		jv_free(given);
		if (has)
			continue;
		sl_buf_clear(&value);
		sl_buf_adds(&value, "");
		bool known = false;
		if (part->value != SL_NO_EXPR) {
			jv result;
			ok = sl_data_eval(run, frame, part->value, jv_copy(data), &result);
			if (!ok)
				break;
			known = sl_json_canonical(result, &value);
			jv_free(result);
		}
		if (known || sl_corr_value(run->inst, part->name, data, &value))
			*ev = sl_json_set(*ev, part->name, jv_string(value.data));
	}
	sl_buf_release(&value);
	if (!ok)
		return false;
	jv_object_foreach(run->inst->bindings, name, bound)
	{
		jv given = jv_object_get(jv_copy(*ev), jv_copy(name));
		if (!jv_is_valid(given))
			*ev = jv_object_set(*ev, jv_copy(name), jv_copy(bound));
		jv_free(given);
		jv_free(name);
		jv_free(bound);
	}
	return true;
}

static jv envelope(struct sl_run *run, const struct sl_emit *emit, const struct sl_event_def *def, const char *id)
{
	const struct sl_plan *plan = run->inst->plan;
	const char *type = def && def->type   ? def->type
			   : emit->type	      ? emit->type
			   : def && def->name ? def->name
					      : plan->id;
	const char *source = def && def->source ? def->source : emit->source;
	char time[32];
	sl_time_format(run->now_ms, time);
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", jv_string(id));
	ev = sl_json_set(ev, "source",
		source ? jv_string(source) : jv_string_fmt("/sluice/%s/%s", run->actor->ns, plan->id)); /* A84 */
	ev = sl_json_set(ev, "type", jv_string(type));
	ev = sl_json_set(ev, "subject", jv_string(run->id));
	ev = sl_json_set(ev, "time", jv_string(time));
	ev = sl_json_set(ev, "originworkflowid", jv_string(plan->id));
	return sl_json_set(ev, "origininstanceid", jv_string(run->id));
}

/* Takes data: what the templates see, and the payload if none is given (A83). */
static bool build(
	struct sl_run *run, struct sl_frame *frame, const struct sl_emit *emit, const char *id, jv data, jv *ret)
{
	const struct sl_event_def *def = emit->event >= 0 ? &run->inst->plan->events[emit->event] : NULL;
	jv ev = envelope(run, emit, def, id), payload = jv_invalid(), context;
	bool ok = true;
	if (emit->data != SL_NO_EXPR)
		ok = sl_data_eval(run, frame, emit->data, jv_copy(data), &payload);
	else
		payload = jv_copy(data);
	if (ok && emit->context != SL_NO_EXPR) {
		ok = sl_data_eval(run, frame, emit->context, jv_copy(data), &context);
		ok = ok && set_context(run, frame, &ev, context);
	}
	ok = ok && set_correlation(run, frame, &ev, def, data);
	jv_free(data);
	if (!ok) {
		jv_free(payload);
		jv_free(ev);
		return false;
	}
	sl_corr_bind(run, ev);
	ev = sl_json_set(ev, "sluicehops", jv_number(run->inst->hops + 1));
	if (run->inst->traceparent)
		ev = sl_json_set(ev, "traceparent", jv_string(run->inst->traceparent));
	ev = sl_json_set(ev, "datacontenttype", jv_string("application/json"));
	*ret = sl_json_set(ev, "data", payload);
	return true;
}

bool sl_publish(struct sl_run *run, struct sl_frame *frame, const struct sl_emit *emit, jv data)
{
	int64_t delay_ms = 0;
	jv ev;
	if (run->inst->hops >= run->eng->limits.hops_max) {
		jv_free(data);
		run->local = true;
		sl_node_fail(run, frame, SL_CODE_TOO_BIG, 413, "Too many hops",
			"events and workflows triggered each other %d times", run->inst->hops);
		return false;
	}
	if (emit->delay.given && !sl_data_span(run, frame, &emit->delay, &delay_ms)) {
		jv_free(data);
		return false;
	}
	char id[SL_UUID_TEXT];
	sl_id_effect(run->actor->ns, run->pos, run->fx->count - run->fx_first, id);
	if (!build(run, frame, emit, id, data, &ev))
		return false;
	struct sl_msg *fx = sl_effects_add(run->fx, SL_MSG_PUBLISH);
	fx->id = sl_arena_str(run->fx->arena, id);
	fx->instance = run->id;
	fx->event = ev;
	fx->due_ms = delay_ms > 0 ? run->now_ms + delay_ms : 0;
	return true;
}
