/* The helper that evaluates expressions with secrets: protocol, evaluation, loop. */
#include "services/executor/evaluate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/expr/expr.h"
#include "common/model/error.h"
#include "common/model/plan.h"
#include "services/common/definitions.h"

#define PLANS_MAX 256 /* kept compiled; then all are forgotten and asked for again */

struct sl_evaluator {
	sl_secret_fn secret;
	void *arg;
	struct sl_map plans; /* "NS/HASH" -> struct sl_plan */
};

static void unref_plan(void *plan)
{
	sl_plan_unref(plan);
}

struct sl_evaluator *sl_evaluator_new(sl_secret_fn secret, void *arg)
{
	struct sl_evaluator *ev = calloc(1, sizeof(*ev));
	if (!ev)
		abort();
	ev->secret = secret;
	ev->arg = arg;
	sl_map_init(&ev->plans);
	return ev;
}

void sl_evaluator_free(struct sl_evaluator *ev)
{
	if (!ev)
		return;
	sl_map_release(&ev->plans, unref_plan);
	free(ev);
}

void sl_evaluator_question(const struct sl_msg *action, const char *definition, struct sl_buf *out)
{
	jv q = jv_object();
	q = sl_json_set(q, "ns", jv_string(action->ns));
	q = sl_json_set(q, "hash", jv_string(action->plan));
	q = sl_json_set(q, "node", jv_string(action->node ? action->node : ""));
	q = sl_json_set(q, "input", jv_is_valid(action->data) ? jv_copy(action->data) : jv_null());
	q = sl_json_set(q, "vars", jv_is_valid(action->vars) ? jv_copy(action->vars) : jv_object());
	if (definition)
		q = sl_json_set(q, "definition", jv_string(definition));
	sl_json_write(out, q);
	jv_free(q);
}

static jv answer_error(const char *code, int status, const char *title, const char *detail)
{
	return sl_json_set(jv_object(), "error", sl_error_new(code, status, title, detail));
}

/* --- plans --- */

static void add_plan(struct sl_evaluator *ev, const char *key, struct sl_plan *plan)
{
	if (ev->plans.count >= PLANS_MAX) {
		sl_map_release(&ev->plans, unref_plan);
		sl_map_init(&ev->plans);
	}
	sl_plan_unref(sl_map_set(&ev->plans, key, plan));
}

void sl_evaluator_know(struct sl_evaluator *ev, const char *ns, struct sl_plan *plan)
{
	struct sl_buf key;
	sl_buf_init(&key);
	sl_buf_printf(&key, "%s/%s", ns, plan->hash);
	if (sl_map_get(&ev->plans, key.data) != plan)
		add_plan(ev, key.data, sl_plan_ref(plan));
	sl_buf_release(&key);
}

/* Borrowed; NULL with *ret_answer set when it is not there. */
static struct sl_plan *find_plan(struct sl_evaluator *ev, jv question, jv *ret_answer)
{
	struct sl_buf key;
	sl_buf_init(&key);
	const char *ns = sl_json_str(question, "ns"), *hash = sl_json_str(question, "hash");
	sl_buf_printf(&key, "%s/%s", ns ? ns : "", hash ? hash : "");
	struct sl_plan *plan = sl_map_get(&ev->plans, key.data);
	const char *text = sl_json_str(question, "definition");
	if (!plan && text) {
		struct sl_diags diags;
		sl_diags_init(&diags);
		char *stored_ns = NULL;
		if (sl_definition_compile(text, strlen(text), &stored_ns, &plan, &diags))
			*ret_answer = answer_error(
				SL_CODE_INTERNAL, 500, "The definition does not compile", sl_diags_first(&diags));
		else
			add_plan(ev, key.data, plan);
		free(stored_ns);
		sl_diags_release(&diags);
	} else if (!plan) {
		*ret_answer = sl_json_set(jv_object(), "need", jv_true());
	}
	sl_buf_release(&key);
	return plan;
}

/* --- evaluation --- */

/* $SECRETS: those that the definition lists (A105). False with *ret_answer set: one has no value. */
static bool add_secrets(struct sl_evaluator *ev, const struct sl_plan *plan, jv *vars, jv *ret_answer)
{
	jv secrets = jv_object();
	for (int i = 0; i < plan->secret_count; i++) {
		char *value = ev->secret(ev->arg, plan->secrets[i]);
		if (!value) {
			struct sl_buf text;
			sl_buf_init(&text);
			sl_buf_printf(&text,
				"secret %s has no value: provide it as a file in secrets.dir or as SLUICE_SECRET_%s",
				plan->secrets[i], plan->secrets[i]);
			*ret_answer = answer_error(SL_CODE_SECRET, 500, "A secret has no value", text.data);
			sl_buf_release(&text);
			jv_free(secrets);
			return false;
		}
		secrets = sl_json_set(secrets, plan->secrets[i], jv_string(value));
		explicit_bzero(value, strlen(value));
		free(value);
	}
	*vars = sl_json_set(*vars, "SECRETS", secrets);
	return true;
}

/* The arguments, and for an expression function its result on them, or on the input when it has no arguments. */
static jv run(
	struct sl_program *program, const struct sl_call *call, const struct sl_function *function, jv input, jv vars)
{
	struct sl_buf why;
	sl_buf_init(&why);
	jv value = input;
	int err = 0;
	if (call->args != SL_NO_EXPR) {
		err = sl_program_eval(program, call->args, input, vars, &value, &why);
	} else if (function->kind == SL_FUNCTION_HTTP) {
		jv_free(input);
		value = jv_object();
	}
	if (!err && function->kind == SL_FUNCTION_EXPRESSION)
		err = sl_program_eval(program, function->expr, value, vars, &value, &why);
	jv answer = err ? answer_error(err == SL_ETOOBIG ? SL_CODE_TOO_BIG : SL_CODE_EXPRESSION, 400,
				  "Expression error", why.len ? why.data : sl_err_text(err))
			: sl_json_set(jv_object(), "value", value);
	sl_buf_release(&why);
	return answer;
}

static jv evaluate(struct sl_evaluator *ev, jv question)
{
	jv answer = jv_invalid();
	struct sl_plan *plan = find_plan(ev, question, &answer);
	if (!plan)
		return answer;
	const char *ptr = sl_json_str(question, "node");
	const struct sl_node *node = ptr ? sl_plan_find(plan, ptr) : NULL;
	if (node && node->kind == SL_NODE_ACTION)
		node = node->u.action.body;
	if (!node || node->kind != SL_NODE_CALL || node->u.call.function < 0 ||
		node->u.call.function >= plan->function_count)
		return answer_error(SL_CODE_INTERNAL, 500, "Internal error", "the plan has no such call");
	const struct sl_call *call = &node->u.call;
	const struct sl_function *function = &plan->functions[call->function];
	jv vars = sl_json_get(question, "vars"), input = sl_json_get(question, "input");
	if (jv_get_kind(vars) != JV_KIND_OBJECT) {
		jv_free(vars);
		vars = jv_object();
	}
	if (add_secrets(ev, plan, &vars, &answer))
		answer = run(plan->program, call, function, input, vars);
	else
		jv_free(input);
	jv_free(vars);
	return answer;
}

void sl_evaluator_answer(struct sl_evaluator *ev, const char *line, size_t len, struct sl_buf *out)
{
	struct sl_json_limits limits = {.depth_max = 400, .round_integers = true};
	jv question, answer;
	if (sl_json_parse(line, len, &limits, &question, NULL)) {
		answer = answer_error(
			SL_CODE_INTERNAL, 500, "Internal error", "the helper was asked something that is not JSON");
	} else {
		answer = evaluate(ev, question);
		jv_free(question);
	}
	sl_json_write(out, answer);
	jv_free(answer);
}

static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

int sl_evaluator_serve(struct sl_evaluator *ev, int fd)
{
	struct sl_buf in, out;
	sl_buf_init(&in);
	sl_buf_init(&out);
	static char chunk[65536];
	bool fine = true;
	while (fine) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		sl_buf_add(&in, chunk, (size_t)n);
		if (!memchr(chunk, '\n', (size_t)n))
			continue;
		/* the executor sends the next question after this answer, so one line is all there is */
		sl_buf_clear(&out);
		sl_evaluator_answer(ev, in.data, (size_t)((char *)memchr(in.data, '\n', in.len) - in.data), &out);
		sl_buf_addc(&out, '\n');
		explicit_bzero(in.data, in.len);
		sl_buf_clear(&in);
		fine = write_all(fd, out.data, out.len);
		explicit_bzero(out.data, out.len);
	}
	sl_buf_release(&in);
	sl_buf_release(&out);
	return 0;
}
