/* Checks a 0.8 definition: resources in, names known, tables applied, graph judged. */
#include "common/dsl/sw08_check.h"
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *section, *text;
} kinds[] = {
	[SL_SW08_STATE] = {"states", "state"},
	[SL_SW08_FUNCTION] = {"functions", "function"},
	[SL_SW08_EVENT] = {"events", "event"},
	[SL_SW08_ERROR] = {"errors", "error"},
	[SL_SW08_RETRY] = {"retries", "retry"},
	[SL_SW08_AUTH] = {"auth", "auth definition"},
};

const char *sl_sw08_kind_text(enum sl_sw08_kind kind)
{
	return kinds[kind].text;
}

jv sl_sw08_def(struct sl_sw08_context *c, enum sl_sw08_kind kind, int index)
{
	jv list = sl_json_get(c->def, kinds[kind].section);
	if (jv_get_kind(list) == JV_KIND_ARRAY && index < jv_array_length(jv_copy(list)))
		return jv_array_get(list, index);
	jv_free(list);
	return jv_invalid();
}

/* --- names --- */

/* Names of one list; the second owner of a name is an error, wherever the first one stands. */
static void collect(struct sl_sw08_context *c, enum sl_sw08_kind kind)
{
	struct sl_sw08_names *names = &c->names[kind];
	jv list = sl_json_get(c->def, kinds[kind].section);
	const char *ptr = sl_arena_printf(&c->arena, "/%s", kinds[kind].section);
	if (jv_get_kind(list) == JV_KIND_ARRAY) {
		jv_array_foreach(list, i, def)
		{
			const char *name = sl_json_str(def, "name");
			const struct sl_sw08_named *first = name ? sl_map_get(&names->map, name) : NULL;
			if (first) {
				struct sl_loc loc = sl_doc_loc(
					c->doc, sl_sw08_ptr(c, sl_sw08_item(c, ptr, first->index), "name"), false);
				sl_sw08_error(c, sl_sw08_ptr(c, sl_sw08_item(c, ptr, i), "name"), false,
					"0.8 Workflow Definition Structure", "duplicate %s name \"%s\"",
					kinds[kind].text, name);
				sl_diag_hint(c->diags, "first at %d:%d", loc.line, loc.col);
			} else if (name && *name) {
				struct sl_sw08_named *named = SL_NEW(&c->arena, struct sl_sw08_named);
				named->index = i;
				sl_map_set(&names->map, name, named);
			}
			jv_free(def);
		}
	}
	jv_free(list);
}

/* What people may have meant: the nearest name, else all of them if they are few. */
static void suggest(struct sl_sw08_context *c, enum sl_sw08_kind kind, const char *name)
{
	struct sl_map *map = &c->names[kind].map;
	const char **words = SL_NEWN(&c->arena, const char *, map->count + 1);
	struct sl_buf all;
	int n = 0;
	sl_buf_init(&all);
	sl_map_each(map, e)
	{
		words[n++] = e->key;
		sl_buf_printf(&all, "%s\"%s\"", all.len ? ", " : "", e->key);
	}
	const char *near = sl_sw08_nearest(name, words);
	if (near)
		sl_diag_hint(c->diags, "did you mean \"%s\"?", near);
	else if (!n)
		sl_diag_hint(c->diags, "the workflow defines no %s", kinds[kind].text);
	else if (all.len < 100)
		sl_diag_hint(c->diags, "there is %s", all.data);
	sl_buf_release(&all);
}

struct sl_sw08_named *sl_sw08_ref(struct sl_sw08_context *c, enum sl_sw08_kind kind, const char *name, const char *ptr)
{
	struct sl_sw08_names *names = &c->names[kind];
	struct sl_sw08_named *named = sl_map_get(&names->map, name);
	if (named || names->deferred)
		return named;
	sl_sw08_error(c, ptr, false, "0.8 Workflow Definition Structure", "unknown %s \"%s\"", kinds[kind].text, name);
	suggest(c, kind, name);
	return NULL;
}

/* --- graph --- */

int sl_sw08_state_of(const char *ptr)
{
	static const char prefix[] = "/states/";
	return strncmp(ptr, prefix, sizeof(prefix) - 1) ? -1 : (int)strtol(ptr + sizeof(prefix) - 1, NULL, 10);
}

void sl_sw08_edge_add(struct sl_sw08_context *c, enum sl_sw08_edge_kind kind, int to, const char *ptr)
{
	struct sl_sw08_edge *edge = SL_NEW(&c->arena, struct sl_sw08_edge);
	edge->kind = kind;
	edge->from = sl_sw08_state_of(ptr);
	edge->to = to;
	edge->ptr = ptr;
	*c->edges_end = edge;
	c->edges_end = &edge->next;
}

/* A113: without `start`, or with one that names no state, the first state. -1: named, but unknown. */
static int find_start(struct sl_sw08_context *c)
{
	jv start = sl_json_get(c->def, "start");
	const char *name =
		jv_get_kind(start) == JV_KIND_STRING ? jv_string_value(start) : sl_json_str(start, "stateName");
	int index = c->state_count ? 0 : -1;
	if (name) {
		struct sl_sw08_named *state = sl_map_get(&c->names[SL_SW08_STATE].map, name);
		index = state ? state->index : -1;
	}
	jv_free(start);
	return index;
}

int sl_sw08_check(
	struct sl_doc *doc, const struct sl_compile_options *opt, struct sl_sw08_checked *ret, struct sl_diags *diags)
{
	struct sl_sw08_context c = {.doc = doc, .opt = opt, .diags = diags, .def = sl_doc_value(doc)};
	int errors = diags->error_count;
	sl_arena_init(&c.arena);
	sl_map_init(&c.attributes);
	c.edges_end = &c.edges;
	c.waits_end = &c.waits;
	for (int i = 0; i < SL_SW08_KINDS; i++)
		sl_map_init(&c.names[i].map);
	sl_sw08_resolve(&c);
	for (int i = 0; i < SL_SW08_KINDS; i++)
		collect(&c, (enum sl_sw08_kind)i);
	jv states = sl_json_get(c.def, "states");
	c.state_count = jv_get_kind(states) == JV_KIND_ARRAY ? jv_array_length(jv_copy(states)) : 0;
	jv_free(states);
	c.ends = SL_NEWN(&c.arena, bool, c.state_count + 1);
	c.start = find_start(&c);
	sl_sw08_object(&c, c.def, "", &sl_sw08_workflow);
	sl_sw08_check_flow(&c);
	sl_sw08_check_events(&c);
	*ret = (struct sl_sw08_checked){
		.resolved = c.def, .unsupported = c.unsupported, .deferred = c.deferred, .wanted = c.wanted};
	for (int i = 0; i < SL_SW08_KINDS; i++)
		sl_map_release(&c.names[i].map, NULL);
	sl_map_release(&c.attributes, NULL);
	sl_arena_release(&c.arena);
	errors = diags->error_count - errors;
	return !errors ? 0 : errors == c.unsupported_count ? SL_EUNSUPPORTED : SL_ESCHEMA;
}
