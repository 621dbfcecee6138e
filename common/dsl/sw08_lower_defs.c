/* Lowering 0.8: function, event and retry definitions, and finding definitions by name. */
#include "common/base/text.h"
#include "common/dsl/sw08_lower.h"
#include <stdlib.h>
#include <string.h>

/* --- functions (0.8 "Function Definition") --- */
static bool is_expression(struct sl_lower *lo, const struct sl_function *function)
{
	const char *type = sl_lower_text(lo, function->ptr, "type");
	return type && strcmp(type, "expression") == 0;
}

/* Expression functions may use each other through fn: in any order of the list, so all are known before one is
 * compiled. */
static void add_expressions(struct sl_lower *lo)
{
	for (int compile = 0; compile <= 1; compile++) {
		for (int i = 0; i < lo->plan->function_count; i++) {
			struct sl_function *function = &lo->plan->functions[i];
			const char *at = sl_lower_ptr(lo, "%s/operation", function->ptr),
				   *text = sl_lower_text(lo, at, NULL);
			if (!text || !is_expression(lo, function) ||
				(compile && function->kind != SL_FUNCTION_EXPRESSION))
				continue;
			struct sl_expr_site site = {.loc = sl_doc_loc(lo->doc, at, false),
				.pointer = at,
				.vars = lo->all_vars,
				.secrets_allowed = true};
			int rc = compile ? sl_program_add(lo->plan->program, text, SL_EXPR_ONE, &site, lo->diags)
					 : sl_program_add_function(
						   lo->plan->program, function->name, text, &site, lo->diags);
			if (rc < 0)
				lo->failed = true;
			else if (compile)
				function->expr = rc;
			else
				function->kind = SL_FUNCTION_EXPRESSION;
		}
	}
}

void sl_lower_functions(struct sl_lower *lo)
{
	struct sl_plan *plan = lo->plan;
	plan->function_count = sl_lower_count(lo, "", "functions");
	plan->functions = SL_NEWN(lo->arena, struct sl_function, plan->function_count + 1);
	for (int i = 0; i < plan->function_count; i++) {
		struct sl_function *function = &plan->functions[i];
		function->ptr = sl_lower_keep(lo, sl_lower_ptr(lo, "/functions/%d", i));
		function->name = sl_lower_name(lo, function->ptr, "name");
		if (!function->name)
			function->name = "";
		function->kind = SL_FUNCTION_HTTP;
		function->expr = SL_NO_EXPR;
	}
	add_expressions(lo);
	struct sl_map documents;
	sl_map_init(&documents);
	for (int i = 0; i < plan->function_count; i++) {
		struct sl_function *function = &plan->functions[i];
		const char *type = sl_lower_text(lo, function->ptr, "type");
		if (sl_lower_has(lo, function->ptr, "authRef"))
			sl_lower_unsupported(lo, sl_lower_ptr(lo, "%s/authRef", function->ptr), "authRef");
		if (!type || strcmp(type, "rest") == 0)
			sl_lower_service(lo, function, &documents);
		else if (strcmp(type, "custom") == 0)
			sl_lower_custom(lo, function);
		else if (strcmp(type, "expression") != 0)
			sl_lower_unsupported(
				lo, sl_lower_ptr(lo, "%s/type", function->ptr), "functions of type %s", type);
	}
	sl_lower_documents_free(&documents);
}

/* --- events (0.8 "Event Definition", "Correlation Definition") --- */
static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sl_key_part *)a)->name, ((const struct sl_key_part *)b)->name);
}

/* A rule without a value and one whose value is an expression are parts of the key; a literal is a filter (design
 * section 5). Names fold to lower case (A75). */
static void lower_correlation(struct sl_lower *lo, struct sl_event_def *event, const char *ptr)
{
	int count = sl_lower_count(lo, ptr, "correlation");
	event->keys = SL_NEWN(lo->arena, struct sl_key_part, count + 1);
	event->filters = SL_NEWN(lo->arena, struct sl_attr_filter, count + 1);
	for (int i = 0; i < count; i++) {
		const char *at = sl_lower_ptr(lo, "%s/correlation/%d", ptr, i);
		const char *given = sl_lower_text(lo, at, "contextAttributeName");
		if (!given)
			continue;
		char *name = sl_lower_keep(lo, given);
		sl_lower(name);
		const char *value_at = sl_lower_ptr(lo, "%s/contextAttributeValue", at);
		jv value = sl_lower_at(lo, value_at, NULL);
		bool template = jv_get_kind(value) == JV_KIND_STRING && sl_expr_is_template(jv_string_value(value));
		if (!jv_is_valid(value) || template) {
			struct sl_key_part *part = &event->keys[event->key_count++];
			part->name = name;
			part->from_event = SL_NO_EXPR;
			part->value = template ? sl_lower_template(lo, value_at, jv_copy(value), false) : SL_NO_EXPR;
		} else {
			struct sl_attr_filter *filter = &event->filters[event->filter_count++];
			struct sl_buf text;
			sl_buf_init(&text);
			sl_buf_adds(&text, "");
			if (!sl_json_canonical(value, &text))
				sl_lower_error(
					lo, value_at, "contextAttributeValue must be text, a number or a boolean");
			filter->name = name;
			filter->value = sl_arena_str(lo->arena, text.data);
			filter->pattern = SL_NO_EXPR;
			sl_buf_release(&text);
		}
		jv_free(value);
	}
	qsort(event->keys, (size_t)event->key_count, sizeof(*event->keys), by_name);
	int kept = event->key_count > 0;
	for (int i = 1; i < event->key_count; i++)
		if (strcmp(event->keys[i].name, event->keys[kept - 1].name) != 0)
			event->keys[kept++] = event->keys[i];
	event->key_count = kept;
}

void sl_lower_events(struct sl_lower *lo)
{
	struct sl_plan *plan = lo->plan;
	plan->event_count = sl_lower_count(lo, "", "events");
	plan->events = SL_NEWN(lo->arena, struct sl_event_def, plan->event_count + 1);
	for (int i = 0; i < plan->event_count; i++) {
		struct sl_event_def *event = &plan->events[i];
		const char *ptr = sl_lower_ptr(lo, "/events/%d", i);
		const char *kind = sl_lower_text(lo, ptr, "kind");
		event->name = sl_lower_name(lo, ptr, "name");
		if (!event->name)
			event->name = "";
		event->type = sl_lower_name(lo, ptr, "type");
		event->source = sl_lower_name(lo, ptr, "source");
		event->produced = kind && strcmp(kind, "produced") == 0;
		event->data_only = sl_lower_bool(lo, ptr, "dataOnly", true);
		event->set = -1;
		if (!event->produced) /* "Only used for consumed events" */
			lower_correlation(lo, event, ptr);
	}
}

/* --- retries (0.8 "Retry Definition") --- */
static double number_of(struct sl_lower *lo, const char *ptr, const char *member)
{
	jv v = sl_lower_at(lo, ptr, member);
	double n = 0;
	if (jv_get_kind(v) == JV_KIND_NUMBER) {
		n = jv_number_value(v);
	} else if (jv_get_kind(v) == JV_KIND_STRING) {
		char *end;
		n = strtod(jv_string_value(v), &end);
		if (*end || end == jv_string_value(v))
			sl_lower_error(lo, sl_lower_ptr(lo, "%s/%s", ptr, member), "%s must be a number", member);
	}
	jv_free(v);
	return n;
}

/* "If float type, ... relative to total delay (between 0.0 and 1.0). If string type, absolute ... (ISO 8601 duration)";
 * a string of digits is taken as a number. */
static void lower_jitter(struct sl_lower *lo, const char *ptr, struct sl_retry *retry)
{
	const char *text = sl_lower_text(lo, ptr, "jitter");
	if (text && (*text == 'P' || *text == 'p'))
		retry->jitter_ms = sl_lower_ms(lo, ptr, "jitter");
	else
		retry->jitter = number_of(lo, ptr, "jitter");
	if (retry->jitter < 0 || retry->jitter > 1)
		sl_lower_error(
			lo, sl_lower_ptr(lo, "%s/jitter", ptr), "jitter must be between 0.0 and 1.0, or a duration");
}

void sl_lower_retries(struct sl_lower *lo)
{
	lo->auto_retries = sl_lower_bool(lo, "", "autoRetries", false);
	lo->retry_count = sl_lower_count(lo, "", "retries");
	lo->retries = SL_NEWN(lo->arena, struct sl_retry, lo->retry_count + 1);
	for (int i = 0; i < lo->retry_count; i++) {
		struct sl_retry *retry = &lo->retries[i];
		const char *ptr = sl_lower_ptr(lo, "/retries/%d", i);
		int64_t attempts = sl_lower_int(lo, ptr, "maxAttempts", 1);
		retry->name = sl_lower_name(lo, ptr, "name");
		if (attempts < 1 || attempts > 1000000)
			sl_lower_error(lo, sl_lower_ptr(lo, "%s/maxAttempts", ptr),
				"maxAttempts must be between 1 and 1000000");
		else
			retry->attempts_max = (int)attempts; /* total attempts (A01) */
		retry->delay_ms = sl_lower_ms(lo, ptr, "delay");
		retry->increment_ms = sl_lower_ms(lo, ptr, "increment");
		retry->delay_max_ms = sl_lower_ms(lo, ptr, "maxDelay");
		retry->multiplier = number_of(lo, ptr, "multiplier");
		if (retry->multiplier < 0)
			sl_lower_error(lo, sl_lower_ptr(lo, "%s/multiplier", ptr), "multiplier must not be negative");
		lower_jitter(lo, ptr, retry);
	}
}

/* --- names --- */
int sl_lower_find_function(struct sl_lower *lo, const char *ptr, const char *member)
{
	const char *name = sl_lower_text(lo, ptr, member);
	for (int i = 0; name && i < lo->plan->function_count; i++)
		if (strcmp(lo->plan->functions[i].name, name) == 0)
			return i;
	sl_lower_error(lo, member ? sl_lower_ptr(lo, "%s/%s", ptr, member) : ptr, "there is no function '%s'",
		name ? name : "");
	return -1;
}

int sl_lower_find_event(struct sl_lower *lo, const char *ptr, const char *member)
{
	const char *name = sl_lower_text(lo, ptr, member);
	for (int i = 0; name && i < lo->plan->event_count; i++)
		if (strcmp(lo->plan->events[i].name, name) == 0)
			return i;
	sl_lower_error(
		lo, member ? sl_lower_ptr(lo, "%s/%s", ptr, member) : ptr, "there is no event '%s'", name ? name : "");
	return -1;
}

int sl_lower_find_state(struct sl_lower *lo, const char *ptr, const char *member)
{
	const char *name = sl_lower_text(lo, ptr, member);
	int count = sl_lower_count(lo, "", "states");
	for (int i = 0; name && i < count; i++) {
		const char *other = sl_lower_text(lo, sl_lower_ptr(lo, "/states/%d", i), "name");
		if (other && strcmp(other, name) == 0)
			return i;
	}
	sl_lower_error(
		lo, member ? sl_lower_ptr(lo, "%s/%s", ptr, member) : ptr, "there is no state '%s'", name ? name : "");
	return -1;
}
