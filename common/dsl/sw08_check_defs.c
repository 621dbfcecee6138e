/* Rules of 0.8 about the workflow itself and its definitions: functions, events, retries, auth, start, schedule. */
#include "common/base/text.h"
#include "common/dsl/sw08_check.h"
#include "common/expr/expr.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- workflow --- */

void sl_sw08_rule_workflow(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	sl_sw08_either(c, obj, ptr, "the workflow", "id", "key", true, "A110");
	if (!sl_sw08_has(obj, "specVersion")) {
		sl_sw08_forgive(c, ptr, false, "A111", "the workflow lacks \"specVersion\"");
		sl_diag_hint(c->diags, "add specVersion: \"0.8\"");
	}
}

void sl_sw08_rule_spec_version(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (jv_get_kind(value) == JV_KIND_NUMBER) {
		sl_sw08_forgive(c, ptr, false, "A128", "\"specVersion\" must be a string: an unquoted 0.8 is a number");
		sl_diag_hint(c->diags, "write \"0.8\" in quotes");
		if (jv_number_value(value) == 0.8)
			return;
	} else if (!strcmp(jv_string_value(value), "0.8")) {
		return;
	}
	char *json = sl_json_text(value);
	sl_sw08_forgive(c, ptr, false, "A111", "specVersion %s is not \"0.8\"", json);
	free(json);
}

void sl_sw08_rule_version(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (jv_get_kind(value) == JV_KIND_NUMBER) {
		sl_sw08_forgive(c, ptr, false, "A128", "\"version\" must be a string");
		sl_diag_hint(c->diags, "write it in quotes, like \"1.0.0\"");
	} else if (sl_expr_is_wrapped(jv_string_value(value))) { /* 0.8 Workflow Expressions shows one */
		sl_sw08_later(c, ptr, "version as an expression");
	} else if (!sl_semver_valid(jv_string_value(value))) {
		sl_sw08_forgive(
			c, ptr, false, "A111", "version \"%s\" is not a semantic version", jv_string_value(value));
		sl_diag_hint(c->diags, "like \"1.0.0\"");
	}
}

void sl_sw08_rule_id(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (sl_expr_is_template(jv_string_value(value)))
		sl_sw08_error(c, ptr, false, "0.8 Workflow Expressions",
			"the workflow's id must be constant, not an expression");
}

void sl_sw08_rule_lang(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (strcmp(jv_string_value(value), "jq"))
		sl_sw08_later(c, ptr, sl_arena_printf(&c->arena, "expressionLang \"%s\"", jv_string_value(value)));
}

static bool starts_with_events(struct sl_sw08_context *c)
{
	jv state = c->start >= 0 ? sl_sw08_def(c, SL_SW08_STATE, c->start) : jv_invalid();
	const char *type = sl_json_str(state, "type");
	bool event = type && !strcmp(type, "event");
	jv_free(state);
	return event;
}

/* A93: with an event state at the start the input schema is ignored, so nothing of it is missing. */
void sl_sw08_rule_data_schema(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	(void)value;
	if (starts_with_events(c))
		sl_sw08_warn(
			c, ptr, true, "A93", "dataInputSchema is ignored: the workflow starts with an event state");
	else
		sl_sw08_later(c, ptr, "dataInputSchema");
}

static void look_for_expressions(struct sl_sw08_context *c, jv value, const char *ptr)
{
	if (jv_get_kind(value) == JV_KIND_STRING && sl_expr_is_template(jv_string_value(value))) {
		sl_sw08_warn(
			c, ptr, false, "0.8 Workflow Constants", "constants are static: this expression stays text");
	} else if (jv_get_kind(value) == JV_KIND_OBJECT) {
		jv_object_foreach(value, key, item)
		{
			look_for_expressions(c, item, sl_sw08_ptr(c, ptr, jv_string_value(key)));
			jv_free(key);
			jv_free(item);
		}
	} else if (jv_get_kind(value) == JV_KIND_ARRAY) {
		jv_array_foreach(value, i, item)
		{
			look_for_expressions(c, item, sl_sw08_item(c, ptr, i));
			jv_free(item);
		}
	}
}

void sl_sw08_rule_constants(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (jv_get_kind(value) == JV_KIND_OBJECT)
		look_for_expressions(c, value, ptr);
}

/* Says which strings of a list stand there twice. */
static void unique(struct sl_sw08_context *c, jv list, const char *ptr, const char *rule, const char *what)
{
	struct sl_map seen;
	sl_map_init(&seen);
	jv_array_foreach(list, i, item)
	{
		if (jv_get_kind(item) == JV_KIND_STRING && sl_map_set(&seen, jv_string_value(item), c))
			sl_sw08_error(c, sl_sw08_item(c, ptr, i), false, rule, "%s \"%s\" stands here twice", what,
				jv_string_value(item));
		jv_free(item);
	}
	sl_map_release(&seen, NULL);
}

void sl_sw08_rule_secrets(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (jv_get_kind(value) == JV_KIND_ARRAY)
		unique(c, value, ptr, "0.8 Workflow Secrets", "secret");
}

/* --- start and schedule --- */

void sl_sw08_rule_start(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	bool object = jv_get_kind(value) == JV_KIND_OBJECT;
	const char *name = object ? sl_json_str(value, "stateName") : jv_string_value(value);
	if (name && *name)
		sl_sw08_ref(c, SL_SW08_STATE, name, object ? sl_sw08_ptr(c, ptr, "stateName") : ptr);
	if (object && sl_sw08_has(value, "schedule") && starts_with_events(c))
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "schedule"), true, "A103",
			"an event state cannot be started by a schedule");
}

static bool is_time(const char *text)
{
	int64_t ms;
	return sl_time_parse(text, &ms) == 0;
}

static bool is_duration(const char *text)
{
	int64_t ms;
	return sl_duration_parse(text, &ms) == 0 && ms > 0;
}

/* 0.8 Schedule Definition: R/<Start>/<Duration>, R/<Duration>/<End>, R/<Duration> */
void sl_sw08_rule_interval(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	char *text = sl_arena_str(&c->arena, jv_string_value(value));
	bool good = !strncmp(text, "R/", 2);
	if (good) {
		char *first = text + 2, *second = strchr(first, '/');
		if (second)
			*second++ = 0;
		good = second ? (is_time(first) && is_duration(second)) || (is_duration(first) && is_time(second))
			      : is_duration(first);
	}
	if (good)
		return;
	sl_sw08_error(
		c, ptr, false, "0.8 Schedule Definition", "\"%s\" is not a repeating interval", jv_string_value(value));
	sl_diag_hint(c->diags, "R/PT2H, R/2030-03-20T13:00:00Z/PT2H or R/PT2H/2030-05-11T15:30:00Z");
}

void sl_sw08_rule_schedule_text(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	if (jv_get_kind(value) == JV_KIND_STRING)
		sl_sw08_rule_interval(c, holder, value, ptr);
}

void sl_sw08_rule_schedule(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	sl_sw08_either(c, obj, ptr, "schedule", "interval", "cron", true, "0.8 Schedule Definition");
}

/* A24: five fields (unix), or six or seven (Quartz). What the fields say is the timer's business. */
void sl_sw08_rule_cron(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (jv_get_kind(value) != JV_KIND_STRING)
		return;
	int fields = 0;
	bool good = true;
	for (const char *s = jv_string_value(value); *s;) {
		size_t blank = strspn(s, " \t");
		s += blank;
		size_t n = strcspn(s, " \t");
		fields += n > 0;
		for (size_t i = 0; i < n; i++)
			good = good && (isalnum((unsigned char)s[i]) || strchr("*/,-?#", s[i]));
		s += n;
	}
	if (good && fields >= 5 && fields <= 7)
		return;
	sl_sw08_error(c, ptr, false, "A24", "\"%s\" is not a cron expression", jv_string_value(value));
	sl_diag_hint(c->diags, "five fields as in \"0 */2 * * *\", or six or seven with seconds first");
}

void sl_sw08_rule_until(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (!is_time(jv_string_value(value))) {
		sl_sw08_error(
			c, ptr, false, "0.8 Cron Definition", "\"%s\" is not a date and time", jv_string_value(value));
		sl_diag_hint(c->diags, "like \"2030-11-05T08:15:30-05:00\"");
	}
}

void sl_sw08_rule_run_before(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	struct sl_sw08_named *state = sl_sw08_ref(c, SL_SW08_STATE, jv_string_value(value), ptr);
	if (state)
		sl_sw08_edge_add(c, SL_SW08_RUN_BEFORE, state->index, ptr);
}

/* --- functions --- */

/* Parts between '#', all of them non-empty? */
static int parts_of(const char *operation)
{
	int parts = 0;
	for (const char *s = operation;; s++) {
		size_t n = strcspn(s, "#");
		if (!n)
			return -1;
		parts++;
		s += n;
		if (!*s)
			return parts;
	}
}

void sl_sw08_rule_function(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	static const struct {
		const char *type;
		int parts;
		const char *form;
		bool later;
	} types[] = {
		{"rest", 2, "<OpenAPI document>#<operationId>", false},
		{"asyncapi", 2, "<AsyncAPI document>#<operationId>", true},
		{"rpc", 3, "<proto file>#<service>#<method>", true},
		{"graphql", 3, "<endpoint>#<query or mutation>#<field>", true},
		{"odata", 2, "<service>#<entity set>", true},
	};
	const char *type = sl_json_str(obj, "type"), *operation = sl_json_str(obj, "operation");
	if (!type)
		type = "rest"; /* 0.8 Function Definition: the default */
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strcmp(type, types[i].type))
			continue;
		if (types[i].later)
			sl_sw08_later(
				c, sl_sw08_ptr(c, ptr, "type"), sl_arena_printf(&c->arena, "function type %s", type));
		const char *kind = operation ? strchr(operation, '#') : NULL;
		bool good = !operation || !*operation || parts_of(operation) == types[i].parts;
		if (good && kind && !strcmp(type, "graphql"))
			good = !strncmp(kind, "#query#", 7) || !strncmp(kind, "#mutation#", 10);
		if (!good) {
			sl_sw08_error(c, sl_sw08_ptr(c, ptr, "operation"), false, "0.8 Function Definition",
				"operation \"%s\" does not fit function type %s", operation, type);
			sl_diag_hint(c->diags, "%s", types[i].form);
		}
	}
}

void sl_sw08_rule_auth_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	static const char *const members[] = {"resource", "invocation"};
	if (jv_get_kind(value) == JV_KIND_STRING) {
		sl_sw08_ref(c, SL_SW08_AUTH, jv_string_value(value), ptr);
		return;
	}
	for (int i = 0; i < 2; i++) {
		const char *name = sl_json_str(value, members[i]);
		if (name && *name)
			sl_sw08_ref(c, SL_SW08_AUTH, name, sl_sw08_ptr(c, ptr, members[i]));
	}
}

/* --- auth: the properties depend on the scheme --- */

#define A(n, ...)                                                                                                      \
	{                                                                                                              \
		.name = (n), .types = SL_T_TEXT, ##__VA_ARGS__                                                         \
	}
#define META_END                                                                                                       \
	{.name = "metadata", .types = SL_T_OBJECT},                                                                    \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}
static const char *const grants[] = {"password", "clientCredentials", "tokenExchange", NULL};
static const struct sl_sw08_prop basic_props[] = {
	A("username", .required = true), A("password", .required = true), META_END};
static const struct sl_sw08_prop bearer_props[] = {A("token", .required = true), META_END};
static const struct sl_sw08_prop oauth2_props[] = {A("authority"),
	A("grantType", .required = true, .format = SL_F_WORD, .words = grants), A("clientId", .required = true),
	A("clientSecret"), {.name = "scopes", .types = SL_T_TEXTS}, A("username"), A("password"),
	{.name = "audiences", .types = SL_T_TEXTS}, A("subjectToken"), A("requestedSubject"), A("requestedIssuer"),
	META_END};
static const struct sl_sw08_shape basic = {"basic auth", "0.8 Basic Properties Definition", basic_props, false, NULL};
static const struct sl_sw08_shape bearer = {
	"bearer auth", "0.8 Bearer Properties Definition", bearer_props, false, NULL};
static const struct sl_sw08_shape oauth2 = {
	"oauth2 auth", "0.8 OAuth2 Properties Definition", oauth2_props, false, NULL};

void sl_sw08_rule_auth(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	const char *scheme = sl_json_str(obj, "scheme");
	jv props = sl_json_get(obj, "properties");
	if (jv_get_kind(props) == JV_KIND_OBJECT) {
		const struct sl_sw08_shape *shape = !scheme || !strcmp(scheme, "basic") ? &basic : NULL;
		if (scheme && !strcmp(scheme, "bearer"))
			shape = &bearer;
		else if (scheme && !strcmp(scheme, "oauth2"))
			shape = &oauth2;
		if (shape)
			sl_sw08_object(c, props, sl_sw08_ptr(c, ptr, "properties"), shape);
	}
	jv_free(props);
}

/* --- events --- */

static bool is(const char *text, const char *what)
{
	return text && !strcmp(text, what);
}

void sl_sw08_rule_event(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	/* whether `source` is needed depends on how the workflow uses the event: sw08_check_events.c */
	if (is(sl_json_str(obj, "kind"), "produced") && sl_sw08_has(obj, "correlation"))
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "correlation"), true, "0.8 Correlation Definition",
			"correlation is only for consumed events");
}

/* CloudEvents 1.0: letters and digits; capitals are folded (A75). */
static bool attribute_name(const char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name))
			return false;
	return true;
}

static void bad_attribute(struct sl_sw08_context *c, const char *name, const char *ptr, bool key)
{
	sl_sw08_error(c, ptr, key, "A75", "\"%s\" cannot be the name of a CloudEvents attribute", name);
	sl_diag_hint(c->diags, "letters and digits only");
}

void sl_sw08_rule_attribute(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	if (!attribute_name(jv_string_value(value)))
		bad_attribute(c, jv_string_value(value), ptr, false);
}

static const char *folded(struct sl_sw08_context *c, const char *name)
{
	char *copy = sl_arena_str(&c->arena, name);
	sl_lower(copy);
	return copy;
}

void sl_sw08_rule_correlation(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	struct sl_map seen;
	sl_map_init(&seen);
	jv_array_foreach(value, i, rule)
	{
		const char *name = sl_json_str(rule, "contextAttributeName");
		if (name && sl_map_set(&seen, folded(c, name), c))
			sl_sw08_error(c, sl_sw08_ptr(c, sl_sw08_item(c, ptr, i), "contextAttributeName"), false, "A75",
				"attribute \"%s\" is correlated twice", name);
		jv_free(rule);
	}
	sl_map_release(&seen, NULL);
}

static void context_member(struct sl_sw08_context *c, struct sl_map *seen, const char *name, jv value, const char *ptr)
{
	static const char *const core[] = {
		"specversion", "id", "source", "type", "datacontenttype", "dataschema", "data", NULL};
	const char *lower = folded(c, name);
	if (!attribute_name(name) || !*name)
		bad_attribute(c, name, ptr, true);
	for (int i = 0; core[i]; i++)
		if (!strcmp(core[i], lower))
			sl_sw08_error(c, ptr, true, "0.8 ProducedEvent Definition",
				"\"%s\" is not an extension context attribute", name);
	if (sl_map_set(seen, lower, c))
		sl_sw08_error(c, ptr, true, "A75", "attribute \"%s\" is given twice: names differ only in case", name);
	jv_kind kind = jv_get_kind(value);
	if (kind == JV_KIND_ARRAY || kind == JV_KIND_OBJECT || kind == JV_KIND_NULL)
		sl_sw08_error(c, ptr, false, "0.8 ProducedEvent Definition",
			"attribute \"%s\" must be a string, a number or a boolean", name);
	sl_map_set(&c->attributes, lower, c);
}

/* A11: an object, or a list of objects as the text's example has it. */
void sl_sw08_rule_context(struct sl_sw08_context *c, jv holder, jv value, const char *ptr)
{
	(void)holder;
	struct sl_map seen;
	sl_map_init(&seen);
	bool list = jv_get_kind(value) == JV_KIND_ARRAY;
	int n = list ? jv_array_length(jv_copy(value)) : 1;
	for (int i = 0; i < n; i++) {
		jv obj = list ? jv_array_get(jv_copy(value), i) : jv_copy(value);
		const char *at = list ? sl_sw08_item(c, ptr, i) : ptr;
		if (jv_get_kind(obj) == JV_KIND_OBJECT) {
			jv_object_foreach(obj, key, item)
			{
				context_member(
					c, &seen, jv_string_value(key), item, sl_sw08_ptr(c, at, jv_string_value(key)));
				jv_free(key);
				jv_free(item);
			}
		} else {
			sl_sw08_error(c, at, false, "A11", "\"contextAttributes\" must be an object of attributes");
		}
		jv_free(obj);
	}
	sl_map_release(&seen, NULL);
}

/* --- retries --- */

static bool number_of(jv value, double *ret)
{
	if (jv_get_kind(value) == JV_KIND_NUMBER) {
		*ret = jv_number_value(value);
		return true;
	}
	const char *text = jv_string_value(value);
	char *stop;
	*ret = strtod(text, &stop);
	return isdigit((unsigned char)*text) && !*stop && !strpbrk(text, "xXnN");
}

void sl_sw08_rule_retry(struct sl_sw08_context *c, jv obj, const char *ptr)
{
	double n;
	jv multiplier = sl_json_get(obj, "multiplier"), jitter = sl_json_get(obj, "jitter");
	jv_kind kind = jv_get_kind(multiplier);
	if ((kind == JV_KIND_NUMBER || kind == JV_KIND_STRING) && (!number_of(multiplier, &n) || n < 0))
		sl_sw08_error(c, sl_sw08_ptr(c, ptr, "multiplier"), false, "0.8 Retry Definition",
			"\"multiplier\" must be a number of at least 0");
	kind = jv_get_kind(jitter);
	const char *at = sl_sw08_ptr(c, ptr, "jitter");
	int64_t ms;
	if (kind == JV_KIND_NUMBER && (jv_number_value(jitter) < 0 || jv_number_value(jitter) > 1)) {
		sl_sw08_error(c, at, false, "0.8 Retry Definition", "\"jitter\" as a number must be between 0 and 1");
	} else if (kind == JV_KIND_STRING && sl_duration_parse(jv_string_value(jitter), &ms)) {
		sl_sw08_error(
			c, at, false, "0.8 Retry Definition", "\"jitter\" as a string must be an ISO 8601 duration");
		if (number_of(jitter, &n))
			sl_diag_hint(c->diags, "a part of the delay is a number: write it without quotes");
	}
	jv_free(multiplier);
	jv_free(jitter);
}
