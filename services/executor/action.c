/* One action from its record to its answer: decode, plan, arguments, request; result or error as a record. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "common/expr/expr.h"
#include "common/model/error.h"
#include "services/common/dead_letter.h"
#include "services/executor/request.h"
#include "services/executor/work.h"

struct act *act_new(struct part *part, const struct sl_record *rec)
{
	struct act *act = calloc(1, sizeof(*act));
	sl_assert(act);
	act->part = part;
	act->offset = rec->offset;
	act->data = act->error = jv_invalid();
	sl_arena_init(&act->arena);
	sl_msg_init(&act->msg, SL_MSG_NONE);
	struct sl_arena *arena = &act->arena;
	act->raw = *rec;
	act->raw.topic = part->topic;
	act->raw.key.ptr = rec->key.ptr ? sl_arena_strn(arena, rec->key.ptr, rec->key.len) : NULL;
	act->raw.value.ptr = rec->value.ptr ? sl_arena_strn(arena, rec->value.ptr, rec->value.len) : NULL;
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, rec->header_count + 1);
	for (int i = 0; i < rec->header_count; i++) {
		headers[i] = rec->headers[i];
		headers[i].name = sl_arena_str(arena, rec->headers[i].name);
		if (headers[i].value.ptr)
			headers[i].value.ptr = sl_arena_strn(arena, headers[i].value.ptr, headers[i].value.len);
	}
	act->raw.headers = headers;
	act->bytes =
		rec->value.len * 2 + 12 * 1024; /* the text, what it is decoded to, two blocks of the arena; roughly */
	part->ex->hand++;
	part->ex->hand_bytes += (int64_t)act->bytes;
	return act;
}

static void forget_id(struct act *act)
{
	struct sl_map *map = &act->part->actions;
	struct act *newest =
		act->msg.action && act->msg.kind == SL_MSG_ACTION ? sl_map_get(map, act->msg.action) : NULL;
	if (newest == act) {
		if (act->older)
			sl_map_set(map, act->msg.action, act->older);
		else
			sl_map_del(map, act->msg.action);
		return;
	}
	for (; newest; newest = newest->older)
		if (newest->older == act)
			newest->older = act->older;
}

void act_free(struct act *act)
{
	ex_move(act, NULL, act->stage);
	forget_id(act);
	act->part->ex->hand--;
	act->part->ex->hand_bytes -= (int64_t)act->bytes;
	sl_plan_unref(act->plan);
	sl_msg_clear(&act->msg);
	jv_free(act->data);
	jv_free(act->error);
	sl_arena_release(&act->arena);
	free(act);
}

/* --- decode --- */

static void dead_letter(struct act *act, const char *reason)
{
	struct sl_executor *ex = act->part->ex;
	sl_log(SL_WARN, "%s/%d@%" PRId64 ": dead letter: %s", act->part->topic, (int)act->part->partition, act->offset,
		reason);
	sl_metric_add_l(SL_METRIC_dead_letters_total, "undecodable", 1);
	sl_dead_letter_record(ex->opt.topics->dead_letter, &act->raw, reason, 900 * 1024, &act->arena, &act->out);
	act->letter = true;
	ex_move(act, &ex->sending, SENDING);
}

bool act_decode(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	struct sl_diags diags;
	uint64_t fp = 0;
	sl_diags_init(&diags);
	int err = sl_msg_decode(act->raw.value, &act->arena, &act->msg, &fp, &diags);
	enum sl_schema_state schema = SL_SCHEMA_MISSING;
	if (err == SL_ENOSCHEMA)
		schema = sl_schemas_ask(ex->schemas, fp);
	if (err == SL_ENOSCHEMA && schema == SL_SCHEMA_KNOWN)
		err = sl_msg_decode(act->raw.value, &act->arena, &act->msg, &fp, &diags);
	if (err == SL_ENOSCHEMA && schema == SL_SCHEMA_COMING) {
		sl_diags_release(&diags);
		return false;
	}
	const struct sl_msg *msg = &act->msg;
	if (err)
		dead_letter(act, diags.first ? sl_diags_first(&diags) : sl_err_text(err));
	else if (msg->kind != SL_MSG_ACTION && msg->kind != SL_MSG_ACTION_CANCEL)
		dead_letter(act, "neither an action nor a cancellation");
	else if (msg->kind == SL_MSG_ACTION && (!msg->ns || !msg->instance || !msg->plan))
		dead_letter(act, "an action without namespace, instance or plan");
	sl_diags_release(&diags);
	return true;
}

/* --- the answer --- */

/* The result's id derives from the action record's position (R3), so a repeated call answers under the same id. */
static const char *result_id(struct act *act)
{
	char partition[24], offset[24], *id = sl_arena_alloc(&act->arena, SL_UUID_TEXT);
	snprintf(partition, sizeof(partition), "%d", (int)act->part->partition);
	snprintf(offset, sizeof(offset), "%" PRId64, act->offset);
	const char *parts[] = {act->msg.ns, act->part->topic, partition, offset, "result"};
	sl_id_derive(parts, 5, id);
	return id;
}

static int make_result(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	struct sl_msg result;
	sl_msg_init(&result, SL_MSG_RESULT);
	result.ns = act->msg.ns;
	result.to = result.instance = act->msg.instance;
	result.id = result_id(act);
	result.action = act->msg.action;
	result.node = act->msg.node;
	result.function = act->msg.function;
	result.token = act->msg.token;
	result.attempt = act->msg.attempt;
	result.traceparent = act->msg.traceparent;
	result.time_ms = ex_now(ex);
	result.data = jv_copy(act->data);
	result.error = jv_copy(act->error);
	act->out = (struct sl_record){.partition = -1};
	int err = sl_msg_record(&result, &act->arena, &act->out);
	act->out.topic = ex->opt.topics->instances;
	const char *key = sl_id_kafka_key(&act->arena, result.ns, result.to);
	act->out.key = (struct sl_bytes){key, strlen(key)};
	sl_msg_clear(&result);
	if (!err && act->out.value.len > ex->opt.result_bytes_max)
		err = SL_ETOOBIG;
	return err;
}

void act_answer(struct act *act, jv data, jv error)
{
	struct sl_executor *ex = act->part->ex;
	const struct sl_plan *plan = act->plan;
	if (!act->msg.token) { /* invoke: async - its result and its errors are nobody's */
		jv_free(data);
		jv_free(error);
		ex_finish(act);
		return;
	}
	jv_free(act->data);
	jv_free(act->error);
	if (plan && plan->secret_count) {
		data = sl_redact(data, plan->secrets, plan->secret_count, ex->opt.secret, ex->opt.secret_arg);
		error = sl_redact(error, plan->secrets, plan->secret_count, ex->opt.secret, ex->opt.secret_arg);
	}
	act->data = data;
	act->error = error;
	int err = make_result(act);
	if (err) {
		jv_free(act->data);
		jv_free(act->error);
		act->data = jv_invalid();
		act->error = err == SL_ETOOBIG ? sl_error_new(SL_CODE_TOO_BIG, 413, "The result is too big",
							 "as a record it would be larger than the configured limit")
					       : sl_error_new(SL_CODE_INTERNAL, 500, "The result cannot be stored",
							 sl_err_text(err));
		err = make_result(act);
		sl_assert(!err);
	}
	ex_move(act, &ex->sending, SENDING);
}

static void fail(struct act *act, const char *code, int status, const char *title, const char *detail)
{
	act_answer(act, jv_invalid(), sl_error_new(code, status, title, detail));
}

void act_timeout(struct act *act)
{
	sl_metric_add_l(SL_METRIC_calls_total, "timeout", 1);
	fail(act, SL_CODE_TIMEOUT, 408, "The action's time is over",
		"its deadline passed before the service was called");
}

bool act_expired(const struct act *act, int64_t now_ms)
{
	return act->msg.deadline_ms && now_ms >= act->msg.deadline_ms;
}

/* --- prepare --- */

/* Arguments -> request -> the host's queue. */
static void queue_call(struct act *act, jv args)
{
	struct sl_buf why;
	sl_buf_init(&why);
	struct sl_call_context ctx = {.action = act->msg.action,
		.attempt = act->msg.attempt,
		.instance = act->msg.instance,
		.traceparent = act->msg.traceparent};
	if (sl_request_build(&act->function->http, args, &ctx, &act->arena, &act->req, &why))
		fail(act, "400", 400, "The request cannot be made", why.data);
	else
		calls_queue(act);
	sl_buf_release(&why);
}

static const struct sl_call *find_call(const struct sl_plan *plan, const char *ptr)
{
	const struct sl_node *node = ptr ? sl_plan_find(plan, ptr) : NULL;
	if (node && node->kind == SL_NODE_ACTION)
		node = node->u.action.body;
	return node && node->kind == SL_NODE_CALL ? &node->u.call : NULL;
}

static const struct sl_function *find_function(const struct sl_plan *plan, const struct sl_call *call, const char *name)
{
	if (call && call->function >= 0 && call->function < plan->function_count)
		return &plan->functions[call->function];
	for (int i = 0; name && i < plan->function_count; i++)
		if (strcmp(plan->functions[i].name, name) == 0)
			return &plan->functions[i];
	return NULL;
}

bool act_prepare(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	const struct sl_msg *msg = &act->msg;
	struct sl_plan *plan = sl_plans_by_hash(ex->opt.plans, msg->ns, msg->plan);
	const char *broken =
		!plan && ex->opt.definitions ? sl_definitions_broken(ex->opt.definitions, msg->ns, msg->plan) : NULL;
	if (broken) {
		fail(act, SL_CODE_INTERNAL, 500, "The definition does not compile in this executor", broken);
		return true;
	}
	if (!plan)
		return false; /* its definition is still on the way */
	act->plan = sl_plan_ref(plan);
	const struct sl_call *call = find_call(plan, msg->node);
	act->function = find_function(plan, call, msg->function);
	if (!act->function) {
		fail(act, SL_CODE_INTERNAL, 500, "Internal error", "the plan has no such function");
	} else if (call && call->uses_secrets) {
		ex_move(act, &ex->asking, EVALUATING);
	} else if (act->function->kind != SL_FUNCTION_HTTP) {
		fail(act, SL_CODE_INTERNAL, 500, "Internal error",
			"an expression function without secrets is no action for the executor");
	} else {
		queue_call(act, msg->data);
	}
	return true;
}

/* --- expressions with secrets (R8) --- */

void act_helped(struct act *act, int err, const char *line, size_t len)
{
	struct sl_executor *ex = act->part->ex;
	struct sl_json_limits limits = {.depth_max = 400, .round_integers = true};
	jv answer;
	if (err || sl_json_parse(line, len, &limits, &answer, NULL)) {
		const char *detail = err == SL_ETIMEOUT	      ? "the expression took too long and its process was ended"
				     : err == SL_EUNREACHABLE ? "the helper process could not be started"
							      : "the expression ended its process";
		fail(act, SL_CODE_EXPRESSION, err == SL_EUNREACHABLE ? 500 : 400,
			"An expression that uses secrets failed", detail);
		return;
	}
	jv error = sl_json_get(answer, "error"), value = sl_json_get(answer, "value");
	if (jv_is_valid(error)) {
		act_answer(act, jv_invalid(), jv_copy(error));
	} else if (sl_json_bool(answer, "need", false) && !act->told_definition) {
		act->told_definition = true;
		ex_move(act, &ex->asking, EVALUATING);
	} else if (!jv_is_valid(value)) {
		fail(act, SL_CODE_INTERNAL, 500, "Internal error", "the helper's answer has no value");
	} else if (act->function->kind == SL_FUNCTION_HTTP) {
		queue_call(act, value);
	} else {
		act_answer(act, jv_copy(value), jv_invalid());
	}
	jv_free(error);
	jv_free(value);
	jv_free(answer);
}

static void on_helped(void *arg, int err, const char *line, size_t len)
{
	struct act *act = arg;
	struct sl_executor *ex = act->part->ex;
	act->part->out--;
	if (act->gone || act->part->gone)
		act_free(act);
	else
		act_helped(act, err, line, len);
	ex_wake(ex);
}

void act_ask(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	struct sl_buf question, answer;
	const char *definition = NULL;
	sl_buf_init(&question);
	sl_buf_init(&answer);
	if (act->told_definition && ex->opt.definitions)
		definition = sl_definitions_stored(ex->opt.definitions, act->msg.ns, act->msg.plan);
	sl_evaluator_question(&act->msg, definition, &question);
	if (ex->opt.helper) {
		ex_move(act, &ex->evaluating, EVALUATING);
		act->part->out++;
		ex->opt.helper->ops->ask(ex->opt.helper, question.data, question.len, on_helped, act);
	} else {
		ex_move(act, NULL, EVALUATING);
		sl_evaluator_know(ex->inline_helper, act->msg.ns, act->plan);
		sl_evaluator_answer(ex->inline_helper, question.data, question.len, &answer);
		act_helped(act, 0, answer.data, answer.len);
	}
	sl_buf_release(&question);
	sl_buf_release(&answer);
}
