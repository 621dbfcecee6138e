/* A plan as readable text: the header, then the tree, one node a line, indented. Golden tests and `validate --plan`
 * show it. */
#include "common/dsl/lower.h"
#include "common/expr/expr.h"
#include <stdlib.h>
#include <string.h>

struct dump {
	const struct sl_plan *plan;
	struct sl_buf out;
	int depth;
	const struct sl_scope *scope; /* the one that gotos speak of */
};

static void start_line(struct dump *d)
{
	for (int i = 0; i < d->depth; i++)
		sl_buf_adds(&d->out, "  ");
}

static void line(struct dump *d, const char *fmt, ...) SL_PRINTF(2, 3);
static void line(struct dump *d, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	start_line(d);
	sl_buf_vprintf(&d->out, fmt, ap);
	va_end(ap);
}

static void end_line(struct dump *d)
{
	sl_buf_addc(&d->out, '\n');
}

/* --- small parts: each appends " name=value" when there is something to say --- */
static void put_expr(struct dump *d, const char *name, int id)
{
	if (id == SL_NO_EXPR)
		return;
	const char *text = sl_program_text(d->plan->program, id);
	sl_buf_printf(&d->out, " %s=`%s`", name, text ? text : "?");
}

static void put_text(struct dump *d, const char *name, const char *text)
{
	if (text)
		sl_buf_printf(&d->out, " %s=\"%s\"", name, text);
}

static void put_ms(struct dump *d, const char *name, int64_t ms)
{
	if (ms)
		sl_buf_printf(&d->out, " %s=%lldms", name, (long long)ms);
}

static void put_span(struct dump *d, const char *name, const struct sl_span *span)
{
	if (span->given && span->expr == SL_NO_EXPR)
		sl_buf_printf(&d->out, " %s=%lldms", name, (long long)span->ms);
	else if (span->given)
		put_expr(d, name, span->expr);
}

static void put_flag(struct dump *d, const char *name, bool on)
{
	if (on)
		sl_buf_printf(&d->out, " %s", name);
}

static void put_filter(struct dump *d, const char *name, const struct sl_filter *filter)
{
	static const char *const targets[] = {"merge", "path", "set", "fresh", "key", "discard"};
	sl_buf_printf(&d->out, " %s=%s", name, targets[filter->target]);
	put_expr(d, "select", filter->select);
	put_expr(d, "to", filter->path);
	if (filter->target == SL_TARGET_KEY || filter->target == SL_TARGET_MERGE)
		put_text(d, "key", filter->key);
}

static const char *event_name(const struct dump *d, int event)
{
	return event >= 0 && event < d->plan->event_count ? d->plan->events[event].name : "?";
}

static void put_cond(struct dump *d, const struct sl_cond *cond)
{
	if (cond->kind == SL_COND_EVENT) {
		sl_buf_adds(&d->out, event_name(d, cond->event));
		return;
	}
	for (int i = 0; i < cond->count; i++) {
		sl_buf_adds(&d->out, i == 0 ? "(" : cond->kind == SL_COND_AND ? " and " : " or ");
		put_cond(d, &cond->items[i]);
	}
	sl_buf_addc(&d->out, ')');
}

/* --- gotos, events, rules: lines of their own --- */
static void dump_emit_parts(struct dump *d, const struct sl_emit *emit)
{
	if (emit->event >= 0)
		sl_buf_printf(&d->out, " event=%s", event_name(d, emit->event));
	put_text(d, "type", emit->type);
	put_text(d, "source", emit->source);
	put_expr(d, "data", emit->data);
	put_expr(d, "context", emit->context);
	put_span(d, "delay", &emit->delay);
	put_text(d, "content", emit->content_type);
}

static void dump_goto(struct dump *d, const char *label, const struct sl_goto *next)
{
	static const char *const ends[] = {"end", "terminate", "fail", "continue"};
	if (!next)
		return;
	line(d, "%s -> ", label);
	if (next->kind == SL_GOTO_STATE) {
		const struct sl_scope *scope = d->scope;
		bool known = next->target >= 0 && next->target < scope->state_count;
		sl_buf_printf(&d->out, "\"%s\"", known ? scope->states[next->target]->u.state.name : "?");
	} else {
		sl_buf_adds(&d->out, ends[next->end]);
		put_text(d, "code", next->error_code);
		put_text(d, "workflow", next->continue_workflow);
		put_text(d, "version", next->continue_version);
	}
	put_flag(d, "compensate", next->compensate);
	put_expr(d, "transform", next->transform);
	end_line(d);
	d->depth++;
	for (int i = 0; i < next->event_count; i++) {
		line(d, "emit");
		dump_emit_parts(d, &next->events[i]);
		end_line(d);
	}
	d->depth--;
}

static void dump_matches(struct dump *d, const struct sl_rule *rule)
{
	static const char *const kinds[] = {"code", "type", "glob", "regex", "any", "result"};
	for (int i = 0; i < rule->match_count; i++) {
		const struct sl_match *match = &rule->matches[i];
		sl_buf_printf(&d->out, "%s%s", i ? "," : " ", kinds[match->kind]);
		if (match->text)
			sl_buf_printf(&d->out, "=\"%s\"", match->text);
		put_text(d, "status", match->status);
		put_text(d, "instance", match->instance);
	}
}

static void dump_rules(struct dump *d, const struct sl_rule *rules, int count)
{
	static const char *const thens[] = {"raise", "goto", "continue"};
	for (int i = 0; i < count; i++) {
		const struct sl_rule *rule = &rules[i];
		line(d, "on error%s", rule->except ? " except" : "");
		dump_matches(d, rule);
		if (rule->retry) {
			const struct sl_retry *retry = rule->retry;
			sl_buf_printf(&d->out, " retry=\"%s\" attempts=%d", retry->name ? retry->name : "",
				retry->attempts_max);
			put_ms(d, "delay", retry->delay_ms);
			put_ms(d, "increment", retry->increment_ms);
			if (retry->multiplier != 0)
				sl_buf_printf(&d->out, " multiplier=%g", retry->multiplier);
			put_ms(d, "max", retry->delay_max_ms);
			if (retry->jitter != 0)
				sl_buf_printf(&d->out, " jitter=%g", retry->jitter);
			put_ms(d, "jitter", retry->jitter_ms);
			put_text(d, "exceeded", retry->exceeded);
		}
		sl_buf_printf(&d->out, " then=%s", thens[rule->then]);
		end_line(d);
		d->depth++;
		dump_goto(d, "next", rule->next);
		d->depth--;
	}
}

/* --- nodes --- */
static void dump_node(struct dump *d, const struct sl_node *node);

static void dump_scope(struct dump *d, const struct sl_node *node)
{
	const struct sl_scope *scope = &node->u.scope, *outer = d->scope;
	d->scope = scope;
	bool known = scope->start >= 0 && scope->start < scope->state_count;
	line(d, "%s scope start=\"%s\"", node->ptr, known ? scope->states[scope->start]->u.state.name : "?");
	end_line(d);
	d->depth++;
	for (int i = 0; i < scope->state_count; i++)
		dump_node(d, scope->states[i]);
	d->depth--;
	d->scope = outer;
}

static void dump_state(struct dump *d, const struct sl_node *node)
{
	const struct sl_state *state = &node->u.state;
	line(d, "%s state \"%s\"", node->ptr, state->name ? state->name : "");
	put_expr(d, "input", state->input);
	put_expr(d, "output", state->output);
	put_span(d, "timeout", &state->timeout);
	if (state->compensated_by >= 0)
		sl_buf_printf(&d->out, " compensated-by=%d", state->compensated_by);
	put_flag(d, "for-compensation", state->for_compensation);
	end_line(d);
	d->depth++;
	dump_node(d, state->body);
	dump_rules(d, state->rules, state->rule_count);
	dump_goto(d, "next", state->next);
	d->depth--;
}

static void dump_actions(struct dump *d, const struct sl_node *node)
{
	line(d, "%s actions%s", node->ptr, node->u.actions.parallel ? " parallel" : "");
	put_flag(d, "collect", node->u.actions.collect);
	end_line(d);
	d->depth++;
	for (int i = 0; i < node->u.actions.count; i++)
		dump_node(d, node->u.actions.items[i]);
	d->depth--;
}

static void dump_action(struct dump *d, const struct sl_node *node)
{
	const struct sl_action *action = &node->u.action;
	line(d, "%s action", node->ptr);
	if (action->name)
		sl_buf_printf(&d->out, " \"%s\"", action->name);
	put_flag(d, "async", action->async);
	put_expr(d, "if", action->condition);
	put_span(d, "before", &action->sleep_before);
	put_span(d, "after", &action->sleep_after);
	put_expr(d, "from", action->from);
	put_filter(d, "result", &action->result);
	put_span(d, "timeout", &action->timeout);
	end_line(d);
	d->depth++;
	dump_node(d, action->body);
	dump_rules(d, action->rules, action->rule_count);
	d->depth--;
}

static void dump_call(struct dump *d, const struct sl_node *node)
{
	const struct sl_call *call = &node->u.call;
	bool known = call->function >= 0 && call->function < d->plan->function_count;
	line(d, "%s call \"%s\"", node->ptr, known ? d->plan->functions[call->function].name : "?");
	put_expr(d, "args", call->args);
	put_flag(d, "secrets", call->uses_secrets);
	end_line(d);
}

static void dump_subflow(struct dump *d, const struct sl_node *node)
{
	const struct sl_subflow *sub = &node->u.subflow;
	line(d, "%s subflow \"%s\"", node->ptr, sub->workflow ? sub->workflow : "");
	put_text(d, "version", sub->version);
	put_expr(d, "input", sub->input);
	put_flag(d, "wait", sub->wait);
	put_flag(d, "cancel-with-parent", sub->cancel_with_parent);
	end_line(d);
}

static void dump_await(struct dump *d, const struct sl_node *node)
{
	const struct sl_await *await = &node->u.await;
	line(d, "%s await %s", node->ptr, await->all ? "all" : "any");
	put_span(d, "timeout", &await->timeout);
	put_flag(d, "raises", await->timeout_raises);
	end_line(d);
	d->depth++;
	if (await->before) {
		line(d, "before");
		end_line(d);
		d->depth++;
		dump_node(d, await->before);
		d->depth--;
	}
	for (int i = 0; i < await->alt_count; i++) {
		const struct sl_alt *alt = &await->alts[i];
		line(d, "%s on ", alt->ptr);
		put_cond(d, &alt->cond);
		put_filter(d, "data", &alt->filter);
		put_span(d, "timeout", &alt->timeout);
		end_line(d);
		d->depth++;
		dump_node(d, alt->body);
		dump_goto(d, "next", alt->next);
		dump_goto(d, "timeout", alt->timeout_next);
		d->depth--;
	}
	dump_goto(d, "timeout", await->timeout_next);
	d->depth--;
}

static void dump_fork(struct dump *d, const struct sl_node *node)
{
	const struct sl_fork *fork = &node->u.fork;
	line(d, "%s fork need=%d/%d", node->ptr, fork->need, fork->count);
	put_flag(d, "collect", fork->collect);
	put_flag(d, "tolerant", fork->tolerant);
	end_line(d);
	d->depth++;
	for (int i = 0; i < fork->count; i++) {
		const struct sl_branch *branch = &fork->branches[i];
		line(d, "%s branch \"%s\"", branch->ptr, branch->name ? branch->name : "");
		put_span(d, "timeout", &branch->timeout);
		end_line(d);
		d->depth++;
		dump_node(d, branch->body);
		d->depth--;
	}
	d->depth--;
}

static void dump_each(struct dump *d, const struct sl_node *node)
{
	const struct sl_each *each = &node->u.each;
	line(d, "%s each%s", node->ptr, each->sequential ? " sequential" : "");
	put_expr(d, "in", each->collection);
	if (each->param)
		sl_buf_printf(&d->out, " as=$%s", each->param);
	put_flag(d, "whole", each->whole);
	if (each->batch)
		sl_buf_printf(&d->out, " batch=%lld", (long long)each->batch);
	put_expr(d, "out", each->output);
	put_flag(d, "replace", each->replace);
	end_line(d);
	d->depth++;
	dump_node(d, each->body);
	d->depth--;
}

static void dump_choose(struct dump *d, const struct sl_node *node)
{
	const struct sl_choose *choose = &node->u.choose;
	line(d, "%s choose", node->ptr);
	end_line(d);
	d->depth++;
	for (int i = 0; i < choose->count; i++) {
		const struct sl_choice *choice = &choose->choices[i];
		line(d, "%s when", choice->ptr);
		if (choice->name)
			sl_buf_printf(&d->out, " \"%s\"", choice->name);
		put_expr(d, choice->truthy ? "truthy" : "cond", choice->cond);
		end_line(d);
		d->depth++;
		dump_goto(d, "next", choice->next);
		d->depth--;
	}
	if (choose->otherwise) {
		dump_goto(d, "otherwise", choose->otherwise);
	} else {
		line(d, "otherwise -> end");
		end_line(d);
	}
	d->depth--;
}

static void dump_leaf(struct dump *d, const struct sl_node *node)
{
	switch (node->kind) {
	case SL_NODE_SLEEP:
		line(d, "%s sleep", node->ptr);
		put_span(d, "for", &node->u.sleep.span);
		break;
	case SL_NODE_ASSIGN:
		line(d, "%s assign", node->ptr);
		put_expr(d, "value", node->u.assign.value);
		put_filter(d, "into", &node->u.assign.filter);
		break;
	case SL_NODE_EMIT:
		line(d, "%s emit", node->ptr);
		dump_emit_parts(d, &node->u.emit);
		break;
	case SL_NODE_RAISE:
		line(d, "%s raise", node->ptr);
		put_text(d, "code", node->u.raise.code);
		put_expr(d, "message", node->u.raise.message);
		put_flag(d, "go-on", node->u.raise.go_on);
		break;
	default:
		line(d, "%s %s", node->ptr, node->kind == SL_NODE_VALIDATE ? "validate" : "variable");
		break;
	}
	end_line(d);
}

static void dump_node(struct dump *d, const struct sl_node *node)
{
	static void (*const dumpers[])(struct dump *, const struct sl_node *) = {
		[SL_NODE_SCOPE] = dump_scope,
		[SL_NODE_STATE] = dump_state,
		[SL_NODE_ACTIONS] = dump_actions,
		[SL_NODE_ACTION] = dump_action,
		[SL_NODE_CALL] = dump_call,
		[SL_NODE_SUBFLOW] = dump_subflow,
		[SL_NODE_AWAIT] = dump_await,
		[SL_NODE_FORK] = dump_fork,
		[SL_NODE_EACH] = dump_each,
		[SL_NODE_CHOOSE] = dump_choose,
		[SL_NODE_SLEEP] = dump_leaf,
		[SL_NODE_ASSIGN] = dump_leaf,
		[SL_NODE_EMIT] = dump_leaf,
		[SL_NODE_RAISE] = dump_leaf,
		[SL_NODE_VALIDATE] = dump_leaf,
		[SL_NODE_VARIABLE] = dump_leaf,
	};
	if (node)
		dumpers[node->kind](d, node);
}

/* --- the header --- */
static void dump_event(struct dump *d, const struct sl_event_def *event)
{
	line(d, "event %s", event->name);
	put_text(d, "type", event->type);
	put_text(d, "source", event->source);
	put_flag(d, "produced", event->produced);
	put_flag(d, "whole", !event->data_only);
	for (int i = 0; i < event->key_count; i++) {
		sl_buf_printf(&d->out, " key:%s", event->keys[i].name);
		put_expr(d, "is", event->keys[i].value);
	}
	for (int i = 0; i < event->filter_count; i++)
		sl_buf_printf(&d->out, " filter:%s=\"%s\"", event->filters[i].name, event->filters[i].value);
	end_line(d);
}

static void dump_param(struct dump *d, const struct sl_http_param *param)
{
	static const char *const places[] = {"path", "query", "header", "cookie", "body"};
	line(d, "%s %s %s", places[param->in], param->name, param->style);
	put_flag(d, "explode", param->explode);
	put_flag(d, "required", param->required);
	put_flag(d, "reserved", param->allow_reserved);
	if (jv_is_valid(param->fallback)) {
		sl_buf_adds(&d->out, " default=");
		sl_json_write(&d->out, param->fallback);
	}
	end_line(d);
}

static void dump_function(struct dump *d, const struct sl_function *function)
{
	const struct sl_http_call *http = &function->http;
	line(d, "function \"%s\"", function->name);
	if (function->kind == SL_FUNCTION_EXPRESSION)
		put_expr(d, "expression", function->expr);
	else if (!http->url)
		sl_buf_adds(&d->out, " http, not resolved");
	else
		sl_buf_printf(&d->out, " %s %s", http->method, http->url);
	if (http->has_body)
		sl_buf_printf(&d->out, " body=%s%s", http->body_type, http->body_required ? " required" : "");
	put_flag(d, "rest-query", http->rest_query);
	put_text(d, "accept", http->accept);
	end_line(d);
	d->depth++;
	for (int i = 0; i < http->param_count; i++)
		dump_param(d, &http->params[i]);
	d->depth--;
}

static void dump_start(struct dump *d)
{
	const struct sl_start_events *start = &d->plan->start;
	if (!start->count)
		return;
	line(d, "start on %s of", start->all ? "all" : "any");
	for (int i = 0; i < start->count; i++)
		sl_buf_printf(&d->out, " %s", event_name(d, start->events[i]));
	put_ms(d, "window", start->window_ms);
	for (int i = 0; i < start->common_count; i++)
		sl_buf_printf(&d->out, " key:%s", start->common[i]);
	end_line(d);
}

char *sl_plan_text(const struct sl_plan *plan)
{
	struct dump d = {.plan = plan};
	sl_buf_init(&d.out);
	line(&d, "plan %s %s", plan->dialect ? plan->dialect : "?", plan->id ? plan->id : "?");
	put_text(&d, "version", plan->version);
	put_text(&d, "name", plan->name);
	put_span(&d, "timeout", &plan->timeouts.workflow);
	put_flag(&d, "interrupt", plan->timeouts.interrupt);
	put_flag(&d, "keep-active", plan->keep_active);
	for (int i = 0; i < plan->secret_count; i++)
		sl_buf_printf(&d.out, " secret:%s", plan->secrets[i]);
	if (jv_object_length(jv_copy(plan->constants)) > 0) {
		sl_buf_adds(&d.out, " constants=");
		sl_json_write(&d.out, plan->constants);
	}
	end_line(&d);
	for (int i = 0; i < plan->event_count; i++)
		dump_event(&d, &plan->events[i]);
	for (int i = 0; i < plan->function_count; i++)
		dump_function(&d, &plan->functions[i]);
	dump_start(&d);
	dump_node(&d, plan->root);
	return sl_buf_steal(&d.out);
}
