/* Runs one scenario file: reads it, deploys, lets happen what it lists, compares. */
#include "services/cli/scenario.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/text.h"
#include "services/cli/files.h"
#include "services/cli/world.h"

struct scenario {
	const char *path;
	jv doc;
	struct sl_buf diff;
	struct sl_world *world;
	const char *workflow;           /* id of the main definition */
	const char *main_id;
	bool rejected;                  /* the definition was refused */
};

static const char *const known[] = {"name", "dialect", "origin", "ambiguity", "note", "definition", "extra_definitions", "files",
	"clock", "horizon_ms", "input", "raw_input", "mocks", "events", "secrets", "variables", "runs", "seed", "expect", NULL};

void sl_scenario_result_clear(struct sl_scenario_result *result)
{
	free(result->name);
	free(result->difference);
	memset(result, 0, sizeof(*result));
}

static bool known_member(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

static void check_list(struct scenario *s, const char *where, jv list, const char *const *allowed)
{
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		if (jv_get_kind(item) == JV_KIND_OBJECT) {
			jv_object_foreach(item, name, value)
			{
				if (!known_member(allowed, jv_string_value(name)))
					sl_buf_printf(&s->diff, "  unknown member %s[%d].%s\n", where, i, jv_string_value(name));
				jv_free(name);
				jv_free(value);
			}
		} else {
			sl_buf_printf(&s->diff, "  %s[%d] must be an object\n", where, i);
		}
		jv_free(item);
	}
}

/* Unknown members are errors: a scenario with a typo must not pass. */
static void check_members(struct scenario *s)
{
	static const char *const event[] = {"after", "event", NULL}, *const run[] = {"workflow", "input", "expect", NULL},
				 *const mock[] = {"when", "times", "return", "error", "delay_ms", NULL};
	if (jv_get_kind(s->doc) != JV_KIND_OBJECT) {
		sl_buf_adds(&s->diff, "  a scenario is an object\n");
		return;
	}
	jv_object_foreach(s->doc, name, value)
	{
		if (!known_member(known, jv_string_value(name)))
			sl_buf_printf(&s->diff, "  unknown member %s\n", jv_string_value(name));
		jv_free(name);
		jv_free(value);
	}
	jv events = sl_json_get(s->doc, "events"), runs = sl_json_get(s->doc, "runs"), mocks = sl_json_get(s->doc, "mocks");
	jv expect = sl_json_get(s->doc, "expect");
	check_list(s, "events", events, event);
	check_list(s, "runs", runs, run);
	if (jv_get_kind(mocks) == JV_KIND_OBJECT) {
		jv_object_foreach(mocks, function, list)
		{
			check_list(s, "mocks", list, mock);
			jv_free(function);
			jv_free(list);
		}
	}
	if (!jv_is_valid(expect) && !jv_is_valid(runs))
		sl_buf_adds(&s->diff, "  expect is missing\n");
	if (jv_is_valid(expect))
		sl_scenario_check_expect(expect, &s->diff);
	for (int i = 0; jv_get_kind(runs) == JV_KIND_ARRAY && i < jv_array_length(jv_copy(runs)); i++) {
		jv one = jv_array_get(jv_copy(runs), i), e = sl_json_get(one, "expect");
		sl_scenario_check_expect(e, &s->diff);
		jv_free(e);
		jv_free(one);
	}
	jv_free(events);
	jv_free(runs);
	jv_free(mocks);
	jv_free(expect);
}

/* --- definitions --- */

static int get_file(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	struct scenario *s = arg;
	jv files = sl_json_get(s->doc, "files");
	jv content = sl_json_get(files, uri);
	jv_free(files);
	if (!jv_is_valid(content)) {
		jv_free(content);
		return sl_diag_error(diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "resource '%s' is not among the scenario's files", uri);
	}
	struct sl_buf text;
	sl_buf_init(&text);
	if (jv_get_kind(content) == JV_KIND_STRING)
		sl_json_canonical(content, &text);
	else
		sl_json_write(&text, content);
	jv_free(content);
	*ret_len = text.len;
	*ret = sl_buf_steal(&text);
	return 0;
}

/* A definition is an object, text, or {"file": path}. Malloc'ed text, or NULL with a difference. */
static char *definition_text(struct scenario *s, jv def)
{
	const char *file = sl_json_str(def, "file");
	if (jv_get_kind(def) == JV_KIND_STRING)
		return strdup(jv_string_value(def));
	if (jv_get_kind(def) != JV_KIND_OBJECT) {
		sl_buf_adds(&s->diff, "  definition must be an object or text\n");
		return NULL;
	}
	if (!file || jv_object_length(jv_copy(def)) != 1)
		return sl_json_text(def);
	char *copy = strdup(s->path), *path = NULL, *text = NULL;
	struct sl_diags diags;
	sl_assert(asprintf(&path, "%s/%s", dirname(copy), file) > 0);
	sl_diags_init(&diags);
	if (sl_file_read(path, 4 * 1024 * 1024, &text, NULL, &diags))
		sl_buf_printf(&s->diff, "  %s\n", sl_diags_first(&diags));
	sl_diags_release(&diags);
	free(path);
	free(copy);
	return text;
}

/* A refusal because something is not supported yet never satisfies `rejected`. */
static void refused(struct scenario *s, const struct sl_diags *diags, jv expected)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_diags_print(diags, &text, NULL);
	for (const struct sl_diag *d = diags->first; d; d = d->next) {
		if (d->severity == SL_SEVERITY_ERROR && d->err == SL_EUNSUPPORTED) {
			sl_buf_printf(&s->diff, "not supported yet: %s\n",
				strncmp(d->text, "not supported yet: ", 19) == 0 ? d->text + 19 : d->text);
			sl_buf_release(&text);
			return;
		}
	}
	s->rejected = true;
	if (jv_get_kind(expected) == JV_KIND_STRING && !strstr(text.data ? text.data : "", jv_string_value(expected)))
		sl_buf_printf(&s->diff, "  rejected: expected diagnostics with \"%s\", but they were\n%s", jv_string_value(expected),
			text.data);
	else if (!jv_is_valid(expected) || jv_get_kind(expected) == JV_KIND_FALSE)
		sl_buf_printf(&s->diff, "  the definition was refused:\n%s", text.data ? text.data : "");
	sl_buf_release(&text);
}

static void deploy(struct scenario *s, jv def, bool main)
{
	struct sl_resources resources = {get_file, s};
	const char *dialect = sl_json_str(s->doc, "dialect");
	struct sl_compile_options opt = {.resources = &resources, .file = "definition", .mocked = true};
	struct sl_diags diags;
	if (dialect && sl_dialect_of(dialect, &opt.dialect)) {
		sl_buf_printf(&s->diff, strcmp(dialect, "sw10") == 0 ? "not supported yet: dialect %s\n" : "  unknown dialect %s\n",
			dialect);
		return;
	}
	char *text = definition_text(s, def);
	if (!text)
		return;
	jv expect = sl_json_get(s->doc, "expect"), expected = main ? sl_json_get(expect, "rejected") : jv_invalid();
	sl_diags_init(&diags);
	if (sl_world_deploy(s->world, text, strlen(text), &opt, main ? &s->workflow : NULL, &diags))
		refused(s, &diags, expected);
	sl_diags_release(&diags);
	jv_free(expected);
	jv_free(expect);
	free(text);
}

static void deploy_all(struct scenario *s)
{
	jv extra = sl_json_get(s->doc, "extra_definitions"), def = sl_json_get(s->doc, "definition");
	int n = jv_get_kind(extra) == JV_KIND_ARRAY ? jv_array_length(jv_copy(extra)) : 0;
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(extra), i);
		jv inner = sl_json_str(one, "path") ? sl_json_get(one, "definition") : jv_invalid();
		deploy(s, jv_is_valid(inner) ? inner : one, false);
		jv_free(inner);
		jv_free(one);
	}
	if (jv_is_valid(def))
		deploy(s, def, true);
	else
		sl_buf_adds(&s->diff, "  definition is missing\n");
	jv_free(def);
	jv_free(extra);
}

/* --- events --- */

static jv complete_event(jv ev, int i)
{
	static const struct { const char *name, *value; } fill[] = {{"source", "scenario"}, {"specversion", "1.0"}};
	char id[32];
	snprintf(id, sizeof(id), "event-%d", i);
	jv has = sl_json_get(ev, "id");
	if (!jv_is_valid(has))
		ev = sl_json_set(ev, "id", jv_string(id));
	jv_free(has);
	for (int k = 0; k < 2; k++) {
		has = sl_json_get(ev, fill[k].name);
		if (!jv_is_valid(has))
			ev = sl_json_set(ev, fill[k].name, jv_string(fill[k].value));
		jv_free(has);
	}
	return ev;
}

static void add_events(struct scenario *s)
{
	jv events = sl_json_get(s->doc, "events");
	int n = jv_get_kind(events) == JV_KIND_ARRAY ? jv_array_length(jv_copy(events)) : 0;
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(events), i);
		const char *after = sl_json_str(one, "after");
		jv ev = sl_json_get(one, "event");
		int64_t ms = 0;
		if (jv_get_kind(ev) != JV_KIND_OBJECT) {
			sl_buf_printf(&s->diff, "  events[%d].event must be an object\n", i);
			jv_free(ev);
		} else if (after && strncmp(after, "state:", 6) == 0 && !sl_world_has_state(s->world, after + 6)) {
			sl_buf_printf(&s->diff, "  events[%d].after: there is no state '%s'\n", i, after + 6);
			jv_free(ev);
		} else if (after && strncmp(after, "state:", 6) == 0) {
			sl_world_event_at_state(s->world, after + 6, complete_event(ev, i));
		} else if (!after || strcmp(after, "start") == 0 ||
			   (strncmp(after, "ms:", 3) == 0 && sl_int_parse(after + 3, &ms) == 0)) {
			sl_world_event(s->world, ms, complete_event(ev, i));
		} else {
			sl_buf_printf(&s->diff, "  events[%d].after must be start, ms:N or state:NAME\n", i);
			jv_free(ev);
		}
		jv_free(one);
	}
	jv_free(events);
}

/* --- names of functions: a slip of the pen must not pass, least of all in `not_called` --- */

static void check_function(struct scenario *s, const char *where, jv name)
{
	if (jv_get_kind(name) == JV_KIND_STRING && !sl_world_has_function(s->world, jv_string_value(name)))
		sl_buf_printf(&s->diff, "  %s: there is no function '%s'\n", where, jv_string_value(name));
}

/* Members of an object are names, elements of a list are names or have a member `function`. */
static void check_functions(struct scenario *s, jv holder, const char *where)
{
	jv names = sl_json_get(holder, where);
	if (jv_get_kind(names) == JV_KIND_OBJECT) {
		jv_object_foreach(names, name, value)
		{
			check_function(s, where, name);
			jv_free(name);
			jv_free(value);
		}
	} else if (jv_get_kind(names) == JV_KIND_ARRAY) {
		jv_array_foreach(names, i, item)
		{
			jv name = jv_get_kind(item) == JV_KIND_OBJECT ? sl_json_get(item, "function") : jv_copy(item);
			check_function(s, where, name);
			jv_free(name);
			jv_free(item);
		}
	}
	jv_free(names);
}

static void check_expected_functions(struct scenario *s, jv expect)
{
	static const char *const members[] = {"calls", "calls_contain", "not_called", "call_count", "call_count_one_of"};
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		check_functions(s, expect, members[i]);
}

static void check_all_functions(struct scenario *s)
{
	jv expect = sl_json_get(s->doc, "expect"), runs = sl_json_get(s->doc, "runs");
	check_functions(s, s->doc, "mocks");
	check_expected_functions(s, expect);
	for (int i = 0; jv_get_kind(runs) == JV_KIND_ARRAY && i < jv_array_length(jv_copy(runs)); i++) {
		jv one = jv_array_get(jv_copy(runs), i), e = sl_json_get(one, "expect");
		check_expected_functions(s, e);
		jv_free(e);
		jv_free(one);
	}
	jv_free(expect);
	jv_free(runs);
}

/* --- running --- */

static bool run_world(struct scenario *s)
{
	const char *why = "", *state;
	if (sl_world_run(s->world, sl_json_int(s->doc, "horizon_ms", -1), &why)) {
		if ((state = sl_world_unpublished(s->world)))
			sl_buf_printf(&s->diff, "  an event was never published: state '%s' did not wait for events\n", state);
		return true;
	}
	sl_buf_printf(&s->diff, "  %s\n", why);
	return false;
}

static void start(struct scenario *s, const char *workflow, jv input)
{
	if (jv_get_kind(input) == JV_KIND_NULL) {
		jv_free(input);
		input = jv_invalid();
	}
	if (sl_world_start(s->world, workflow, input, &s->main_id))
		sl_buf_printf(&s->diff, "  no workflow '%s'\n", workflow);
}

static void run_several(struct scenario *s, jv runs)
{
	for (int i = 0; i < jv_array_length(jv_copy(runs)) && !s->diff.len; i++) {
		jv one = jv_array_get(jv_copy(runs), i), expect = sl_json_get(one, "expect"), input = sl_json_get(one, "input");
		const char *workflow = sl_json_str(one, "workflow");
		start(s, workflow ? workflow : s->workflow, input);
		if (!s->diff.len && run_world(s))
			sl_scenario_expect(s->world, expect, s->main_id, s->workflow, &s->diff);
		if (s->diff.len)
			sl_buf_printf(&s->diff, "  in runs[%d]\n", i);
		jv_free(expect);
		jv_free(one);
	}
}

static void run_once(struct scenario *s)
{
	const struct sl_world_instance *all;
	jv input = sl_json_get(s->doc, "input");
	if (jv_is_valid(input))
		start(s, s->workflow, jv_copy(input));
	jv_free(input);
	if (s->diff.len || !run_world(s))
		return;
	if (!s->main_id && sl_world_instances(s->world, &all) > 0)
		s->main_id = all[0].id;
	jv expect = sl_json_get(s->doc, "expect");
	sl_scenario_expect(s->world, expect, s->main_id, s->workflow, &s->diff);
	jv_free(expect);
}

/* Members that only languages of later need. */
static bool needs_later(struct scenario *s)
{
	static const char *const later[] = {"raw_input", "variables"};
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		jv value = sl_json_get(s->doc, later[i]);
		if (jv_is_valid(value))
			sl_buf_printf(&s->diff, "not supported yet: %s (Direktiv)\n", later[i]);
		jv_free(value);
	}
	return s->diff.len > 0;
}

static void run(struct scenario *s)
{
	if (needs_later(s))
		return;
	jv mocks = sl_json_get(s->doc, "mocks"), secrets = sl_json_get(s->doc, "secrets"), runs = sl_json_get(s->doc, "runs");
	const char *clock = sl_json_str(s->doc, "clock");
	struct sl_world_options opt = {.mocks = mocks, .secrets = secrets, .seed = (uint64_t)sl_json_int(s->doc, "seed", 1)};
	if (sl_time_parse(clock ? clock : "2024-01-01T00:00:00Z", &opt.clock_ms)) {
		sl_buf_adds(&s->diff, "  clock is no RFC 3339 time\n");
	} else {
		s->world = sl_world_new(&opt);
		deploy_all(s);
		if (!s->diff.len && !s->rejected) {
			add_events(s);
			check_all_functions(s);
			if (!s->diff.len && jv_get_kind(runs) == JV_KIND_ARRAY)
				run_several(s, runs);
			else if (!s->diff.len)
				run_once(s);
		}
	}
	sl_world_free(s->world);
	jv_free(runs);
	jv_free(mocks);
	jv_free(secrets);
}

static void read_scenario(struct scenario *s)
{
	struct sl_doc *doc = NULL;
	struct sl_diags diags;
	char *text = NULL;
	size_t len = 0;
	sl_diags_init(&diags);
	if (sl_file_read(s->path, 64 * 1024 * 1024, &text, &len, &diags) || sl_doc_parse(text, len, s->path, &doc, &diags)) {
		sl_diags_print(&diags, &s->diff, NULL);
	} else {
		jv_free(s->doc);
		s->doc = sl_doc_value(doc);
	}
	sl_doc_free(doc);
	sl_diags_release(&diags);
	free(text);
}

void sl_scenario_run(const char *path, struct sl_scenario_result *ret)
{
	struct scenario s = {.path = path, .doc = jv_null()};
	sl_buf_init(&s.diff);
	read_scenario(&s);
	if (!s.diff.len)
		check_members(&s);
	if (!s.diff.len)
		run(&s);
	const char *name = sl_json_str(s.doc, "name");
	*ret = (struct sl_scenario_result){.name = strdup(name ? name : path), .passed = !s.diff.len};
	if (s.diff.len)
		ret->difference = sl_buf_steal(&s.diff);
	sl_buf_release(&s.diff);
	jv_free(s.doc);
}
