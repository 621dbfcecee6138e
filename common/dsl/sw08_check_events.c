/* What needs to know how the workflow uses its events: sources, types, and waits whose key nobody can have bound. */
#include "common/base/text.h"
#include "common/dsl/sw08_check.h"
#include <string.h>

/* A117, A118: a consumed event needs a source. An event without `kind` that is only produced is taken for produced. */
static void check_definition(struct sl_sw08_context *c, jv event, int index, const struct sl_sw08_named *use)
{
	static const char section[] = "0.8 Event Definition";
	const char *ptr = sl_sw08_item(c, "/events", index), *kind = sl_json_str(event, "kind"),
		   *name = sl_json_str(event, "name");
	bool produced = kind ? !strcmp(kind, "produced") : use && use->produced && !use->consumed;
	bool type = sl_sw08_has(event, "type"), source = sl_sw08_has(event, "source");
	if (!type && (produced || !source)) {
		sl_sw08_error(c, ptr, false, section, "event \"%s\": \"type\" is missing", name ? name : "");
	} else if (!type) { /* A61: the text allows a source alone, the schema does not */
		sl_sw08_later(c, ptr, "event without type");
	}
	if (!produced && !source && (type || kind)) {
		sl_sw08_forgive(
			c, ptr, false, "A117", "event \"%s\" is consumed and needs \"source\"", name ? name : "");
		if (!kind && use && use->produced)
			sl_diag_hint(c->diags, "it is both produced and consumed");
	}
}

/* --- A172: a wait whose key nobody can have bound --- */

static bool correlates(jv event, const char *lower)
{
	jv rules = sl_json_get(event, "correlation");
	bool found = false;
	if (jv_get_kind(rules) == JV_KIND_ARRAY) {
		jv_array_foreach(rules, i, rule)
		{
			const char *name = sl_json_str(rule, "contextAttributeName");
			found = found || (name && !strcasecmp(name, lower));
			jv_free(rule);
		}
	}
	jv_free(rules);
	return found;
}

static bool is_type(jv state, const char *type)
{
	const char *text = sl_json_str(state, "type");
	return text && !strcmp(text, type);
}

/* Do the events that start an instance give the attribute? Any of them when all must come, each of them when one is
 * enough. */
static bool started_with(struct sl_sw08_context *c, const char *lower)
{
	jv start = c->start >= 0 ? sl_sw08_def(c, SL_SW08_STATE, c->start) : jv_invalid();
	bool events = is_type(start, "event"), all = !sl_json_bool(start, "exclusive", true);
	jv_free(start);
	if (!events)
		return false;
	int have = 0, lack = 0;
	for (const struct sl_sw08_wait *w = c->waits; w; w = w->next) {
		if (w->state != c->start || !strstr(w->ptr, "/eventRefs/"))
			continue;
		jv event = sl_sw08_def(c, SL_SW08_EVENT, w->event);
		if (correlates(event, lower))
			have++;
		else
			lack++;
		jv_free(event);
	}
	return have && (all || !lack);
}

/* Members that inject states put into the state data: scalars of that name give values. */
static void collect_injected(struct sl_sw08_context *c)
{
	for (int i = 0; i < c->state_count; i++) {
		jv state = sl_sw08_def(c, SL_SW08_STATE, i),
		   data = is_type(state, "inject") ? sl_json_get(state, "data") : jv_invalid();
		if (jv_get_kind(data) == JV_KIND_OBJECT) {
			jv_object_foreach(data, key, value)
			{
				char *lower = sl_arena_str(&c->arena, jv_string_value(key));
				sl_lower(lower);
				if (jv_get_kind(value) != JV_KIND_ARRAY && jv_get_kind(value) != JV_KIND_OBJECT)
					sl_map_set(&c->attributes, lower, c);
				jv_free(key);
				jv_free(value);
			}
		}
		jv_free(data);
		jv_free(state);
	}
}

static void check_wait(struct sl_sw08_context *c, const struct sl_sw08_wait *w)
{
	jv event = sl_sw08_def(c, SL_SW08_EVENT, w->event), rules = sl_json_get(event, "correlation");
	const char *name = sl_json_str(event, "name");
	if (jv_get_kind(rules) == JV_KIND_ARRAY) {
		jv_array_foreach(rules, i, rule)
		{
			const char *attribute = sl_json_str(rule, "contextAttributeName");
			char *lower = sl_arena_str(&c->arena, attribute ? attribute : "");
			sl_lower(lower);
			if (*lower && !sl_sw08_has(rule, "contextAttributeValue") &&
				!sl_map_get(&c->attributes, lower) && !started_with(c, lower)) {
				sl_sw08_warn(c, w->ptr, false, "A172",
					"nothing in the workflow gives \"%s\" a value before it waits for event \"%s\"",
					attribute, name);
				sl_diag_hint(c->diags,
					"state data with a member \"%s\" does, or \"contextAttributeValue\"; otherwise "
					"any first event binds it",
					attribute);
				sl_map_set(&c->attributes, lower,
					c); /* the first one that matches binds it: later waits are fine */
			}
			jv_free(rule);
		}
	}
	jv_free(rules);
	jv_free(event);
}

/* 0.8 Callback State: "This event must be correlated to the workflow instance". */
static void check_callback(struct sl_sw08_context *c, const struct sl_sw08_wait *w)
{
	jv event = sl_sw08_def(c, SL_SW08_EVENT, w->event), rules = sl_json_get(event, "correlation");
	bool none = jv_get_kind(rules) != JV_KIND_ARRAY || !jv_array_length(jv_copy(rules));
	if (none) {
		sl_sw08_warn(c, w->ptr, false, "0.8 Callback State",
			"callback event \"%s\" has no correlation: any such event ends the wait",
			sl_json_str(event, "name"));
		sl_diag_hint(c->diags, "unless the caller sends workflowinstanceid back");
	}
	jv_free(rules);
	jv_free(event);
}

void sl_sw08_check_events(struct sl_sw08_context *c)
{
	jv events = sl_json_get(c->def, "events");
	if (jv_get_kind(events) == JV_KIND_ARRAY) {
		jv_array_foreach(events, i, event)
		{
			const char *name = sl_json_str(event, "name");
			const struct sl_sw08_named *use = name ? sl_map_get(&c->names[SL_SW08_EVENT].map, name) : NULL;
			if (jv_get_kind(event) == JV_KIND_OBJECT)
				check_definition(c, event, i, use);
			jv_free(event);
		}
	}
	jv_free(events);
	collect_injected(c);
	for (const struct sl_sw08_wait *w = c->waits; w; w = w->next) {
		jv state = w->state >= 0 ? sl_sw08_def(c, SL_SW08_STATE, w->state) : jv_invalid();
		bool starting = w->state == c->start && is_type(state, "event") && strstr(w->ptr, "/eventRefs/");
		const char *dot = strrchr(w->ptr, '/');
		if (is_type(state, "callback") && !strcmp(dot, "/eventRef"))
			check_callback(c, w);
		if (!starting)
			check_wait(c, w);
		jv_free(state);
	}
}
