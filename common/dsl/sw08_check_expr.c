/* Syntax of expressions where no lowering follows. Lowering compiles them all with the same functions; a definition
 * that has other errors, or uses what is not supported yet, is not lowered, but its author wants to see everything at
 * once. */
#include "common/dsl/sw08_check.h"
#include "common/expr/expr.h"
#include <stdlib.h>
#include <string.h>

enum site_kind { SITE_NONE, SITE_ONE, SITE_PATH, SITE_TEMPLATE, SITE_SKIP };

/* What a member holds, by its name and its parent's ("" = any). A65: some are expressions even without ${ }. */
static const struct {
	const char *parent, *name;
	enum site_kind kind;
	bool secrets; /* R8, A174 */
} sites[] = {
	{"stateDataFilter", "input", SITE_ONE, false},
	{"stateDataFilter", "output", SITE_ONE, false},
	{"eventDataFilter", "data", SITE_ONE, false},
	{"", "toStateData", SITE_PATH, false},
	{"", "fromStateData", SITE_ONE, false},
	{"actionDataFilter", "results", SITE_ONE, false},
	{"", "condition", SITE_ONE, false},
	{"", "inputCollection", SITE_ONE, false},
	{"", "outputCollection", SITE_PATH, false},
	{"functionRef", "arguments", SITE_TEMPLATE, true},
	{"functionRef", "selectionSet", SITE_TEMPLATE, true},
	{"eventRef", "data", SITE_TEMPLATE, false},
	{"produceEvents", "data", SITE_TEMPLATE, false},
	{"continueAs", "data", SITE_TEMPLATE, false},
	{"", "contextAttributes", SITE_TEMPLATE, false},
	{"", "contextAttributeValue", SITE_TEMPLATE, false},
	{"auth", "properties", SITE_TEMPLATE, true},
	{"", "metadata", SITE_SKIP, false},
	{"", "data", SITE_SKIP, false}, /* of inject: static */
	{"", "constants", SITE_SKIP, false},
	{"", "dataInputSchema", SITE_SKIP, false},
	{"", "dataOutputSchema", SITE_SKIP, false},
	{"", "extensions", SITE_SKIP, false},
};

struct pass {
	const struct sl_doc *doc;
	struct sl_diags *diags;
	struct sl_program *program;
	bool functions_known;
	const char *vars[2];
	struct sl_buf pointer;
};

static struct sl_expr_site site_at(struct pass *p, bool secrets)
{
	return (struct sl_expr_site){
		.loc = sl_doc_loc(p->doc, p->pointer.data, false),
		.pointer = p->pointer.data,
		.vars = p->vars,
		.secrets_allowed = secrets,
	};
}

static int step_in(struct pass *p, const char *name)
{
	int len = (int)p->pointer.len;
	sl_buf_addc(&p->pointer, '/');
	for (; *name; name++) {
		if (*name == '~' || *name == '/')
			sl_buf_adds(&p->pointer, *name == '~' ? "~0" : "~1");
		else
			sl_buf_addc(&p->pointer, *name);
	}
	return len;
}

static void step_out(struct pass *p, int len)
{
	p->pointer.len = (size_t)len;
	p->pointer.data[len] = 0;
}

/* fn:NAME can't be judged while the functions are elsewhere (A120). */
static bool judgeable(struct pass *p, jv value)
{
	if (p->functions_known)
		return true;
	char *text = sl_json_text(value);
	bool free_of_functions = !strstr(text, "fn:");
	free(text);
	return free_of_functions;
}

static void add(struct pass *p, enum site_kind kind, bool secrets, jv value)
{
	struct sl_expr_site site = site_at(p, secrets);
	if (!judgeable(p, value))
		return;
	int id = 0; /* findings go to diags; the number is of no use here */
	if (kind == SITE_TEMPLATE)
		id = sl_program_add_template(p->program, value, &site, p->diags);
	else if (jv_get_kind(value) == JV_KIND_STRING)
		id = sl_program_add(p->program, jv_string_value(value), kind == SITE_PATH ? SL_EXPR_PATH : SL_EXPR_ONE,
			&site, p->diags);
	(void)id;
}

/* Each string of a template by itself, so that a finding stands at its string. */
static void add_template(struct pass *p, bool secrets, jv value)
{
	if (jv_get_kind(value) == JV_KIND_ARRAY) {
		jv_array_foreach(value, i, item)
		{
			char number[16];
			snprintf(number, sizeof(number), "%d", i);
			int len = step_in(p, number);
			add_template(p, secrets, item);
			step_out(p, len);
			jv_free(item);
		}
	} else if (jv_get_kind(value) == JV_KIND_OBJECT) {
		jv_object_foreach(value, key, item)
		{
			int len = step_in(p, jv_string_value(key));
			add_template(p, secrets, item);
			step_out(p, len);
			jv_free(key);
			jv_free(item);
		}
	} else if (jv_get_kind(value) == JV_KIND_STRING && sl_expr_is_template(jv_string_value(value))) {
		add(p, SITE_TEMPLATE, secrets, value);
	}
}

static void walk(struct pass *p, jv value, const char *parent, const char *name);

static void walk_member(struct pass *p, jv value, const char *parent, const char *name)
{
	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		if (strcmp(sites[i].name, name) || (*sites[i].parent && strcmp(sites[i].parent, parent)))
			continue;
		if (sites[i].kind == SITE_TEMPLATE)
			add_template(p, sites[i].secrets, value);
		else if (sites[i].kind != SITE_SKIP)
			add(p, sites[i].kind, sites[i].secrets, value);
		return;
	}
	walk(p, value, parent, name);
}

/* `name`: of the member that value is; elements of a list keep the list's. */
static void walk(struct pass *p, jv value, const char *parent, const char *name)
{
	if (jv_get_kind(value) == JV_KIND_ARRAY) {
		jv_array_foreach(value, i, item)
		{
			char number[16];
			snprintf(number, sizeof(number), "%d", i);
			int len = step_in(p, number);
			walk(p, item, parent, name);
			step_out(p, len);
			jv_free(item);
		}
	} else if (jv_get_kind(value) == JV_KIND_OBJECT) {
		jv_object_foreach(value, key, item)
		{
			int len = step_in(p, jv_string_value(key));
			walk_member(p, item, name, jv_string_value(key));
			step_out(p, len);
			jv_free(key);
			jv_free(item);
		}
	}
}

static void add_functions(struct pass *p, jv functions)
{
	jv_array_foreach(functions, i, function)
	{
		const char *type = sl_json_str(function, "type"), *name = sl_json_str(function, "name");
		const char *operation = sl_json_str(function, "operation");
		if (type && !strcmp(type, "expression") && name && operation) {
			sl_buf_clear(&p->pointer);
			sl_buf_printf(&p->pointer, "/functions/%d/operation", i);
			struct sl_expr_site site = site_at(p, true);
			int err = sl_program_add_function(p->program, name, operation, &site, p->diags);
			(void)err; /* said in diags */
		}
		jv_free(function);
	}
}

static void walk_states(struct pass *p, jv states)
{
	jv_array_foreach(states, i, state)
	{
		const char *type = sl_json_str(state, "type"), *param = sl_json_str(state, "iterationParam");
		p->vars[0] = type && !strcmp(type, "foreach") ? (param && *param ? param : "item") : NULL; /* A71 */
		sl_buf_clear(&p->pointer);
		sl_buf_printf(&p->pointer, "/states/%d", i);
		walk(p, state, "", "states");
		jv_free(state);
	}
	p->vars[0] = NULL;
}

void sl_sw08_check_expressions(const struct sl_doc *doc, const struct sl_sw08_checked *checked, struct sl_diags *diags)
{
	struct pass p = {.doc = doc, .diags = diags, .program = sl_program_new()};
	jv lang = sl_json_get(checked->resolved, "expressionLang");
	bool jq = jv_get_kind(lang) != JV_KIND_STRING || !strcmp(jv_string_value(lang), "jq");
	jv functions = sl_json_get(checked->resolved, "functions"), states = sl_json_get(checked->resolved, "states");
	jv events = sl_json_get(checked->resolved, "events"), auth = sl_json_get(checked->resolved, "auth");
	sl_buf_init(&p.pointer);
	p.functions_known = jv_get_kind(functions) != JV_KIND_STRING;
	if (jq) {
		if (jv_get_kind(functions) == JV_KIND_ARRAY)
			add_functions(&p, functions);
		if (jv_get_kind(states) == JV_KIND_ARRAY)
			walk_states(&p, states);
		sl_buf_clear(&p.pointer);
		sl_buf_adds(&p.pointer, "/events");
		walk(&p, events, "", "events");
		sl_buf_clear(&p.pointer);
		sl_buf_adds(&p.pointer, "/auth");
		walk(&p, auth, "", "auth");
	}
	sl_buf_release(&p.pointer);
	jv_free(lang);
	jv_free(functions);
	jv_free(states);
	jv_free(events);
	jv_free(auth);
	sl_program_free(p.program);
}
