/* What executor and timer do in the world: mocks answer calls, an agenda keeps answers and timers. */
#include "services/cli/world_int.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "services/executor/evaluate.h"

/* --- the executor's part: mocks --- */

/* `part` is contained in `whole`: objects by member, arrays by element and length, else equality. Borrows. */
static bool subset(jv part, jv whole)
{
	if (jv_get_kind(part) != jv_get_kind(whole) || (jv_get_kind(part) != JV_KIND_OBJECT && jv_get_kind(part) != JV_KIND_ARRAY))
		return sl_json_equal(part, whole);
	bool same = true;
	if (jv_get_kind(part) == JV_KIND_ARRAY) {
		int n = jv_array_length(jv_copy(part));
		if (n != jv_array_length(jv_copy(whole)))
			return false;
		for (int i = 0; i < n && same; i++) {
			jv a = jv_array_get(jv_copy(part), i), b = jv_array_get(jv_copy(whole), i);
			same = subset(a, b);
			jv_free(a);
			jv_free(b);
		}
		return same;
	}
	jv_object_foreach(part, name, member)
	{
		jv other = jv_object_get(jv_copy(whole), jv_copy(name));
		same = same && jv_is_valid(other) && subset(member, other);
		jv_free(other);
		jv_free(name);
		jv_free(member);
	}
	return same;
}

/* The first mock of the list that matches and is not used up; invalid: none. */
static jv pick_mock(struct sl_world *world, const char *function, jv args)
{
	jv list = jv_is_valid(world->opt.mocks) ? sl_json_get(world->opt.mocks, function) : jv_invalid();
	jv found = jv_invalid();
	if (jv_get_kind(list) == JV_KIND_OBJECT)
		list = jv_array_append(jv_array(), list);
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;
	for (int i = 0; i < n && !jv_is_valid(found); i++) {
		char key[300];
		jv mock = jv_array_get(jv_copy(list), i), when = sl_json_get(mock, "when");
		snprintf(key, sizeof(key), "%s/%d", function, i);
		intptr_t used = (intptr_t)sl_map_get(&world->mock_uses, key);
		if (used < sl_json_int(mock, "times", INT64_MAX) && (!jv_is_valid(when) || subset(when, args))) {
			sl_map_set(&world->mock_uses, key, (void *)(used + 1));
			jv_free(found);
			found = jv_copy(mock);
		}
		jv_free(when);
		jv_free(mock);
	}
	jv_free(list);
	return found;
}

/* --- secrets (R8): the executor's own evaluator and redaction --- */

static char *secret(void *arg, const char *name)
{
	struct sl_world *world = arg;
	jv value = jv_is_valid(world->opt.secrets) ? sl_json_get(world->opt.secrets, name) : jv_invalid();
	char *text = !jv_is_valid(value) ? NULL : jv_get_kind(value) == JV_KIND_STRING ? strdup(jv_string_value(value)) : sl_json_text(value);
	jv_free(value);
	return text;
}

static jv redact(struct sl_world *world, const struct sl_plan *plan, jv value)
{
	return plan && plan->secret_count ? sl_redact(value, plan->secrets, plan->secret_count, secret, world) : value;
}

/* The arguments of a call that comes as expression plus data, or what an expression function gives; false: *ret is the error. */
static bool evaluate(struct sl_world *world, struct sl_plan *plan, const struct sl_msg *msg, jv *ret)
{
	struct sl_evaluator *ev = sl_evaluator_new(secret, world);
	struct sl_buf question, text;
	jv answer;
	sl_buf_init(&question);
	sl_buf_init(&text);
	sl_evaluator_know(ev, msg->ns, plan);
	sl_evaluator_question(msg, NULL, &question);
	sl_evaluator_answer(ev, question.data, question.len, &text);
	int err = sl_json_parse(text.data, text.len, &sl_json_default, &answer, NULL);
	sl_assert(!err);
	*ret = sl_json_get(answer, "error");
	bool good = !jv_is_valid(*ret);
	if (good) {
		jv_free(*ret);
		*ret = sl_json_get(answer, "value");
	}
	jv_free(answer);
	sl_buf_release(&question);
	sl_buf_release(&text);
	sl_evaluator_free(ev);
	return good;
}

static void answer_later(struct sl_world *world, const struct sl_msg *action, int64_t delay_ms, jv data, jv error)
{
	struct happening *h = world_schedule(world, world_wall(world) + delay_ms, HAPPENS_ANSWER);
	sl_msg_init(&h->msg, SL_MSG_RESULT);
	h->msg.ns = sl_arena_str(&world->arena, action->ns);
	h->msg.to = sl_arena_str(&world->arena, action->instance ? action->instance : action->from);
	h->msg.id = sl_arena_printf(&world->arena, "result-%s-%lld", action->action ? action->action : "", (long long)action->attempt);
	h->msg.action = sl_arena_str(&world->arena, action->action);
	h->msg.token = action->token;
	h->msg.attempt = action->attempt;
	h->msg.data = data;
	h->msg.error = error;
}

/* Nobody has said what the service answers: it is called. */
static void call_service(struct sl_world *world, const struct sl_msg *msg, const struct sl_plan *plan, const struct sl_function *function, jv args)
{
	const struct sl_call_context ctx = {.action = msg->action, .attempt = msg->attempt, .instance = msg->instance,
		.traceparent = msg->traceparent};
	int64_t left = msg->deadline_ms ? msg->deadline_ms - world_wall(world) : 0;
	jv data, error;
	int64_t ms = world->opt.call(world->opt.arg, function, &ctx, args, left > 0 ? left : msg->deadline_ms ? 1 : 0, &data, &error);
	answer_later(world, msg, ms, redact(world, plan, data), redact(world, plan, error));
}

void world_call(struct sl_world *world, const struct sl_msg *msg)
{
	struct sl_plan *plan = sl_plans_by_hash(world->plans, msg->ns, msg->plan);
	const struct sl_node *node = plan && msg->node ? sl_plan_find(plan, msg->node) : NULL;
	jv args = jv_is_valid(msg->data) ? jv_copy(msg->data) : jv_object();
	if (node && node->kind == SL_NODE_CALL && node->u.call.uses_secrets) {
		jv_free(args);
		bool good = evaluate(world, plan, msg, &args);
		bool expression = plan->functions[node->u.call.function].kind == SL_FUNCTION_EXPRESSION;
		if (!good || expression) { /* expression functions run for real */
			args = redact(world, plan, args);
			answer_later(world, msg, 0, good ? args : jv_invalid(), good ? jv_invalid() : args);
			return;
		}
	}
	GROW(world->calls, world->call_count, world->call_cap);
	world->calls[world->call_count++] = (struct sl_world_call){sl_arena_str(&world->arena, msg->function),
		sl_arena_str(&world->arena, msg->instance ? msg->instance : msg->from), jv_copy(args), sl_world_now(world)};
	char *text = sl_json_text(args);
	world_trace(world, "call %s %s", msg->function, text);
	free(text);
	if (world->opt.call && !jv_is_valid(world->opt.mocks) && node && node->kind == SL_NODE_CALL) {
		call_service(world, msg, plan, &plan->functions[node->u.call.function], args);
		jv_free(args);
		return;
	}
	jv mock = pick_mock(world, msg->function, args);
	jv_free(args);
	if (!jv_is_valid(mock)) {
		jv_free(mock);
		if (!world->stop)
			world->stop = sl_arena_printf(&world->arena, "no mock answers this call of '%s'", msg->function);
		return;
	}
	jv value = redact(world, plan, sl_json_get(mock, "return")), error = redact(world, plan, sl_json_get(mock, "error"));
	if (!jv_is_valid(value) && !jv_is_valid(error)) {
		jv_free(value);
		value = jv_null();
	}
	answer_later(world, msg, sl_json_int(mock, "delay_ms", 0), value, error);
	jv_free(mock);
}

void world_drop_answers(struct sl_world *world, const char *action)
{
	for (int i = 0; i < world->agenda_count; i++) {
		struct happening *h = &world->agenda[i];
		if (!h->done && h->class == HAPPENS_ANSWER && action && h->msg.action && strcmp(h->msg.action, action) == 0)
			world_clear(h);
	}
}

/* --- the timer's part --- */

void world_set_timer(struct sl_world *world, const struct sl_msg *msg)
{
	struct happening *h = world_schedule(world, msg->due_ms > world_wall(world) ? msg->due_ms : world_wall(world), HAPPENS_TIMER);
	sl_msg_init(&h->msg, SL_MSG_TIMER);
	h->msg.ns = sl_arena_str(&world->arena, msg->ns);
	h->msg.to = sl_arena_str(&world->arena, msg->instance ? msg->instance : msg->from);
	h->msg.id = sl_arena_printf(&world->arena, "timer-%s", msg->id ? msg->id : "");
	h->msg.token = msg->token;
	h->msg.due_ms = msg->due_ms;
}

void world_cancel_timer(struct sl_world *world, const struct sl_msg *msg)
{
	const char *instance = msg->instance ? msg->instance : msg->from;
	for (int i = 0; i < world->agenda_count; i++) {
		struct happening *h = &world->agenda[i];
		if (!h->done && h->class == HAPPENS_TIMER && h->msg.token == msg->token && strcmp(h->msg.to, instance) == 0)
			world_clear(h);
	}
}
