/* What must come out of a scenario: each member of `expect` that is given must hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/model/event.h"
#include "services/cli/scenario.h"
#include "services/cli/world.h"

static void differ(struct sl_buf *diff, const char *what, jv expected, jv actual)
{
	char *a = jv_is_valid(expected) ? sl_json_text(expected) : strdup("nothing");
	char *b = jv_is_valid(actual) ? sl_json_text(actual) : strdup("nothing");
	sl_buf_printf(diff, "  %s: expected %s\n  %*s  but was  %s\n", what, a, (int)strlen(what), "", b);
	free(a);
	free(b);
}

/* {"$nonempty": true}, {"$present": true} */
static bool placeholder(jv expected, jv actual, bool *ret_same)
{
	if (jv_get_kind(expected) != JV_KIND_OBJECT || jv_object_length(jv_copy(expected)) != 1)
		return false;
	if (sl_json_bool(expected, "$present", false)) {
		*ret_same = jv_is_valid(actual);
		return true;
	}
	if (!sl_json_bool(expected, "$nonempty", false))
		return false;
	switch (jv_get_kind(actual)) {
	case JV_KIND_STRING:
		*ret_same = jv_string_length_bytes(jv_copy(actual)) > 0;
		break;
	case JV_KIND_ARRAY:
		*ret_same = jv_array_length(jv_copy(actual)) > 0;
		break;
	case JV_KIND_OBJECT:
		*ret_same = jv_object_length(jv_copy(actual)) > 0;
		break;
	default:
		*ret_same = jv_is_valid(actual) && jv_get_kind(actual) != JV_KIND_NULL;
	}
	return true;
}

static bool match_arrays(jv expected, jv actual, bool part)
{
	int n = jv_array_length(jv_copy(expected));
	if (n != jv_array_length(jv_copy(actual)))
		return false;
	bool same = true;
	for (int i = 0; i < n && same; i++) {
		jv a = jv_array_get(jv_copy(expected), i), b = jv_array_get(jv_copy(actual), i);
		same = sl_scenario_match(a, b, part);
		jv_free(a);
		jv_free(b);
	}
	return same;
}

bool sl_scenario_match(jv expected, jv actual, bool part)
{
	bool same;
	if (placeholder(expected, actual, &same))
		return same;
	if (!jv_is_valid(actual) || jv_get_kind(expected) != jv_get_kind(actual))
		return false;
	if (jv_get_kind(expected) == JV_KIND_ARRAY)
		return match_arrays(expected, actual, part);
	if (jv_get_kind(expected) != JV_KIND_OBJECT)
		return sl_json_equal(expected, actual);
	same = part || jv_object_length(jv_copy(expected)) == jv_object_length(jv_copy(actual));
	jv_object_foreach(expected, name, member)
	{
		jv other = jv_object_get(jv_copy(actual), jv_copy(name));
		same = same && sl_scenario_match(member, other, part);
		jv_free(other);
		jv_free(name);
		jv_free(member);
	}
	return same;
}

/* Error: a subset; codes and statuses compare as strings. */
static bool match_error(jv expected, jv actual)
{
	bool same = jv_get_kind(expected) == JV_KIND_OBJECT && jv_get_kind(actual) == JV_KIND_OBJECT;
	if (!same)
		return false;
	jv_object_foreach(expected, name, member)
	{
		jv other = jv_object_get(jv_copy(actual), jv_copy(name));
		struct sl_buf a, b;
		sl_buf_init(&a);
		sl_buf_init(&b);
		bool scalar = sl_json_canonical(member, &a) && sl_json_canonical(other, &b);
		same = same && (scalar ? strcmp(a.data ? a.data : "", b.data ? b.data : "") == 0
				       : sl_scenario_match(member, other, true));
		sl_buf_release(&a);
		sl_buf_release(&b);
		jv_free(other);
		jv_free(name);
		jv_free(member);
	}
	return same;
}

/* --- one instance --- */

struct seen {
	const struct sl_world *world;
	const struct sl_world_instance *all, *inst;     /* inst: the one spoken of, or NULL */
	int count;
	struct sl_buf *diff;
};

static bool match_status(const struct seen *seen, const char *status)
{
	int n;
	char rest;
	if (sscanf(status, "%d instance%c", &n, &rest) == 2 && rest == 's')
		return seen->count == n;
	if (strcmp(status, "no-instance") == 0)
		return seen->count == 0;
	return seen->inst && strcmp(seen->inst->status, status) == 0;
}

static jv status_now(const struct seen *seen)
{
	return seen->inst ? jv_string(seen->inst->status) : jv_string_fmt("%d instances", seen->count);
}

static void expect_status(const struct seen *seen, jv value)
{
	if (match_status(seen, jv_string_value(value)))
		return;
	jv now = status_now(seen);
	differ(seen->diff, "status", value, now);
	jv_free(now);
	if (seen->inst && jv_is_valid(seen->inst->error))
		differ(seen->diff, "error", jv_invalid(), seen->inst->error);
}

/* Does one of the list hold? */
static bool one_of(jv list, bool (*holds)(const struct seen *, jv), const struct seen *seen)
{
	bool any = false;
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;
	for (int i = 0; i < n && !any; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		any = holds(seen, item);
		jv_free(item);
	}
	return any;
}

static bool holds_status(const struct seen *seen, jv item)
{
	return jv_get_kind(item) == JV_KIND_STRING && match_status(seen, jv_string_value(item));
}

static bool holds_output(const struct seen *seen, jv item)
{
	return seen->inst && sl_scenario_match(item, seen->inst->output, false);
}

static void expect_duration(const struct seen *seen, jv range)
{
	if (!seen->inst || seen->inst->ended_ms < 0) {
		sl_buf_adds(seen->diff, "  duration_ms: the instance has not ended\n");
		return;
	}
	int64_t ms = seen->inst->ended_ms - seen->inst->started_ms;
	if (ms < sl_json_int(range, "min", INT64_MIN) || ms > sl_json_int(range, "max", INT64_MAX)) {
		jv was = jv_number((double)ms);
		differ(seen->diff, "duration_ms", range, was);
		jv_free(was);
	}
}

/* --- lists: calls and published events --- */

static bool match_call(jv expected, const struct sl_world_call *call)
{
	jv args = sl_json_get(expected, "arguments");
	const char *function = sl_json_str(expected, "function");
	bool same = (!function || strcmp(function, call->function) == 0) &&
		    (!jv_is_valid(args) || sl_scenario_match(args, call->arguments, false)) &&
		    sl_json_int(expected, "at_ms", call->at_ms) == call->at_ms;
	jv_free(args);
	return same;
}

static jv call_value(const struct sl_world_call *call)
{
	jv v = sl_json_set(jv_object(), "function", jv_string(call->function));
	v = sl_json_set(v, "arguments", jv_copy(call->arguments));
	return sl_json_set(v, "at_ms", jv_number((double)call->at_ms));
}

static bool match_published(jv expected, const struct sl_world_published *pub)
{
	bool same = sl_json_int(expected, "at_ms", pub->at_ms) == pub->at_ms;
	jv_object_foreach(expected, name, member)
	{
		char lower[256];
		snprintf(lower, sizeof(lower), "%s", jv_string_value(name));
		for (char *c = lower; *c; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c + 32);
		if (strcmp(lower, "at_ms") != 0) {
			jv other = sl_json_get(pub->event, lower);
			struct sl_buf a, b;
			sl_buf_init(&a);
			sl_buf_init(&b);
			bool attribute = strcmp(lower, "data") != 0 && sl_json_canonical(member, &a) && sl_json_canonical(other, &b);
			same = same && (attribute ? strcmp(a.data ? a.data : "", b.data ? b.data : "") == 0
						  : sl_scenario_match(member, other, false));
			sl_buf_release(&a);
			sl_buf_release(&b);
			jv_free(other);
		}
		jv_free(name);
		jv_free(member);
	}
	return same;
}

static bool match_item(jv expected, const void *items, int i, bool calls)
{
	return calls ? match_call(expected, (const struct sl_world_call *)items + i)
		     : match_published(expected, (const struct sl_world_published *)items + i);
}

/* Each expected item matches a different actual one (depth-first, lists are short). */
static bool assign_items(jv list, int at, const void *items, int n, bool *used, bool calls)
{
	if (at == jv_array_length(jv_copy(list)))
		return true;
	jv expected = jv_array_get(jv_copy(list), at);
	bool found = false;
	for (int i = 0; i < n && !found; i++) {
		if (used[i] || !match_item(expected, items, i, calls))
			continue;
		used[i] = true;
		found = assign_items(list, at + 1, items, n, used, calls);
		used[i] = found;
	}
	jv_free(expected);
	return found;
}

static bool match_list(jv list, const void *items, int n, bool unordered, bool complete, bool calls)
{
	int want = jv_array_length(jv_copy(list));
	if (complete ? want != n : want > n)
		return false;
	if (!unordered) {
		bool same = true;
		for (int i = 0; i < want && same; i++) {
			jv expected = jv_array_get(jv_copy(list), i);
			same = match_item(expected, items, i, calls);
			jv_free(expected);
		}
		return same;
	}
	bool *used = calloc((size_t)n + 1, sizeof(*used));
	bool same = assign_items(list, 0, items, n, used, calls);
	free(used);
	return same;
}

static void expect_list(const struct seen *seen, jv expect, const char *name, bool calls, bool complete)
{
	const struct sl_world_call *call;
	const struct sl_world_published *pub;
	int n = calls ? sl_world_calls(seen->world, &call) : sl_world_published(seen->world, &pub);
	jv list = sl_json_get(expect, name);
	bool unordered = !complete || sl_json_bool(expect, calls ? "calls_unordered" : "published_unordered", false);
	if (jv_get_kind(list) == JV_KIND_ARRAY &&
		!match_list(list, calls ? (const void *)call : (const void *)pub, n, unordered, complete, calls)) {
		jv actual = jv_array();
		for (int i = 0; i < n; i++)
			actual = jv_array_append(actual, calls ? call_value(&call[i]) : jv_copy(pub[i].event));
		differ(seen->diff, name, list, actual);
		jv_free(actual);
	}
	jv_free(list);
}

static int count_calls(const struct seen *seen, const char *function)
{
	const struct sl_world_call *calls;
	int n = sl_world_calls(seen->world, &calls), count = 0;
	for (int i = 0; i < n; i++)
		count += strcmp(calls[i].function, function) == 0;
	return count;
}

static void expect_counts(const struct seen *seen, jv counts, bool alternatives)
{
	jv_object_foreach(counts, name, value)
	{
		int count = count_calls(seen, jv_string_value(name));
		jv now = jv_number(count);
		bool same = sl_json_equal(value, now);
		if (alternatives && jv_get_kind(value) == JV_KIND_ARRAY) {
			same = false;
			int n = jv_array_length(jv_copy(value));
			for (int i = 0; i < n; i++) {
				jv item = jv_array_get(jv_copy(value), i);
				same = same || sl_json_equal(item, now);
				jv_free(item);
			}
		}
		if (!same) {
			char what[300];
			snprintf(what, sizeof(what), "call_count of %s", jv_string_value(name));
			differ(seen->diff, what, value, now);
		}
		jv_free(now);
		jv_free(name);
		jv_free(value);
	}
}

/* --- several instances --- */

static bool assign_instances(const struct seen *seen, jv list, int at, bool *used)
{
	if (at == jv_array_length(jv_copy(list)))
		return true;
	jv expect = jv_array_get(jv_copy(list), at);
	bool found = false;
	for (int i = 0; i < seen->count && !found; i++) {
		struct sl_buf diff;
		if (used[i])
			continue;
		sl_buf_init(&diff);
		sl_scenario_expect(seen->world, expect, seen->all[i].id, NULL, &diff);
		if (!diff.len) {
			used[i] = true;
			found = assign_instances(seen, list, at + 1, used);
			used[i] = found;
		}
		sl_buf_release(&diff);
	}
	jv_free(expect);
	return found;
}

static void expect_instances(const struct seen *seen, jv list)
{
	bool *used = calloc((size_t)seen->count + 1, sizeof(*used));
	if (!assign_instances(seen, list, 0, used)) {
		jv actual = jv_array();
		for (int i = 0; i < seen->count; i++) {
			jv one = sl_json_set(jv_object(), "id", jv_string(seen->all[i].id));
			one = sl_json_set(one, "status", jv_string(seen->all[i].status));
			if (jv_is_valid(seen->all[i].output))
				one = sl_json_set(one, "output", jv_copy(seen->all[i].output));
			actual = jv_array_append(actual, one);
		}
		differ(seen->diff, "instances", list, actual);
		jv_free(actual);
	}
	free(used);
}

static const char *const known[] = {"status", "status_one_of", "output", "output_contains", "output_one_of", "error", "calls",
	"calls_unordered", "calls_contain", "not_called", "call_count", "call_count_one_of", "published", "published_unordered",
	"instances", "main_instances", "duration_ms", "log", "order", "rejected", NULL};

void sl_scenario_check_expect(jv expect, struct sl_buf *diff)
{
	if (jv_get_kind(expect) != JV_KIND_OBJECT) {
		sl_buf_adds(diff, "  expect must be an object\n");
		return;
	}
	jv_object_foreach(expect, name, value)
	{
		const char *const *k = known;
		while (*k && strcmp(*k, jv_string_value(name)) != 0)
			k++;
		if (!*k)
			sl_buf_printf(diff, "  unknown member expect.%s\n", jv_string_value(name));
		if (strcmp(jv_string_value(name), "instances") == 0 && jv_get_kind(value) == JV_KIND_ARRAY) {
			for (int i = 0; i < jv_array_length(jv_copy(value)); i++) {
				jv one = jv_array_get(jv_copy(value), i);
				sl_scenario_check_expect(one, diff);
				jv_free(one);
			}
		}
		jv_free(name);
		jv_free(value);
	}
}

static void expect_value(const struct seen *seen, const char *name, jv value, const char *main_workflow)
{
	static const jv none = {0};
	jv output = seen->inst ? seen->inst->output : none, error = seen->inst ? seen->inst->error : none;
	if (strcmp(name, "status") == 0 && jv_get_kind(value) == JV_KIND_STRING) {
		expect_status(seen, value);
	} else if (strcmp(name, "status_one_of") == 0 && !one_of(value, holds_status, seen)) {
		jv now = status_now(seen);
		differ(seen->diff, name, value, now);
		jv_free(now);
	} else if (strcmp(name, "output") == 0 && !sl_scenario_match(value, output, false)) {
		differ(seen->diff, name, value, output);
	} else if (strcmp(name, "output_contains") == 0 && !sl_scenario_match(value, output, true)) {
		differ(seen->diff, name, value, output);
	} else if (strcmp(name, "output_one_of") == 0 && !one_of(value, holds_output, seen)) {
		differ(seen->diff, name, value, output);
	} else if (strcmp(name, "error") == 0 && !match_error(value, error)) {
		differ(seen->diff, name, value, error);
	} else if (strcmp(name, "duration_ms") == 0) {
		expect_duration(seen, value);
	} else if (strcmp(name, "order") == 0 && !(seen->inst && sl_json_equal(value, seen->inst->states))) {
		differ(seen->diff, name, value, seen->inst ? seen->inst->states : none);
	} else if (strcmp(name, "call_count") == 0 && jv_get_kind(value) == JV_KIND_OBJECT) {
		expect_counts(seen, value, false);
	} else if (strcmp(name, "call_count_one_of") == 0 && jv_get_kind(value) == JV_KIND_OBJECT) {
		expect_counts(seen, value, true);
	} else if (strcmp(name, "not_called") == 0 && jv_get_kind(value) == JV_KIND_ARRAY) {
		for (int i = 0; i < jv_array_length(jv_copy(value)); i++) {
			jv function = jv_array_get(jv_copy(value), i);
			if (jv_get_kind(function) == JV_KIND_STRING && count_calls(seen, jv_string_value(function)))
				sl_buf_printf(seen->diff, "  not_called: %s was called\n", jv_string_value(function));
			jv_free(function);
		}
	} else if (strcmp(name, "instances") == 0 && jv_get_kind(value) == JV_KIND_ARRAY) {
		expect_instances(seen, value);
	} else if (strcmp(name, "main_instances") == 0) {
		int n = 0;
		for (int i = 0; i < seen->count; i++)
			n += main_workflow && strcmp(seen->all[i].workflow, main_workflow) == 0;
		jv now = jv_number(n);
		if (!sl_json_equal(value, now))
			differ(seen->diff, name, value, now);
		jv_free(now);
	} else if (strcmp(name, "log") == 0) {
		jv now = jv_array();
		if (!sl_json_equal(value, now))
			differ(seen->diff, name, value, now);
		jv_free(now);
	} else if (strcmp(name, "rejected") == 0 && jv_get_kind(value) != JV_KIND_FALSE) {
		sl_buf_adds(seen->diff, "  rejected: the definition was accepted\n");
	}
}

void sl_scenario_expect(const struct sl_world *world, jv expect, const char *main_id, const char *main_workflow, struct sl_buf *diff)
{
	struct seen seen = {.world = world, .diff = diff};
	seen.count = sl_world_instances(world, &seen.all);
	for (int i = 0; i < seen.count; i++)
		if (main_id && strcmp(seen.all[i].id, main_id) == 0)
			seen.inst = &seen.all[i];
	jv_object_foreach(expect, name, value)
	{
		expect_value(&seen, jv_string_value(name), value, main_workflow);
		jv_free(name);
		jv_free(value);
	}
	expect_list(&seen, expect, "calls", true, true);
	expect_list(&seen, expect, "calls_contain", true, false);
	expect_list(&seen, expect, "published", false, true);
}
