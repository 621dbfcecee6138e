/* Known plans: pointers, versions, indexes by hash and event type, shapes. */
#include "tests/unit/engine/plans_builder.h"
#include <criterion/criterion.h>

static struct sl_plan *simple(const char *id, const char *version, const char *hash, const char *type)
{
	struct sl_plan *plan = build_plan(id, version, hash);
	build_start(plan, false, 0, build_event(plan, type, NULL, "k"), -1);
	return plan;
}

struct seen {
	char text[400];
};

static void see(void *arg, struct sl_plan *plan, bool listening)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);
	snprintf(seen->text + len, sizeof seen->text - len, "%s%s ", plan->hash, listening ? "*" : "");
}

static const char *each(const struct sl_plans *plans, const char *ns)
{
	static struct seen seen;
	seen.text[0] = 0;
	sl_plans_each(plans, ns, see, &seen);
	return seen.text;
}

static void see_ref(void *arg, const struct sl_event_ref *ref)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);
	snprintf(seen->text + len, sizeof seen->text - len, "%s/%s%s%s ", ref->plan->hash, ref->def->name,
		ref->start ? "!" : "", ref->listening ? "*" : "");
}

static const char *refs(const struct sl_plans *plans, const char *ns, const char *type)
{
	static struct seen seen;
	seen.text[0] = 0;
	sl_plans_refs(plans, ns, type, see_ref, &seen);
	return seen.text;
}

Test(plans, only_the_highest_active_version_listens)
{
	struct sl_plans *plans = sl_plans_new();
	build_deploy(plans, "a", simple("w", "1.2.0", "h1", "T"));
	cr_assert_str_eq(each(plans, "a"), "h1* ");
	build_deploy(plans, "a", simple("w", "1.10.0", "h2", "T"));
	cr_assert_str_eq(each(plans, "a"), "h1 h2* ", "1.10.0 is above 1.2.0 (A168)");
	build_deploy(plans, "a", simple("w", "1.10.0-rc1", "h3", "T"));
	cr_assert_str_eq(each(plans, "a"), "h1 h2* h3 ");
	build_deploy(plans, "a", simple("other", "0.1.0", "h4", "T"));
	cr_assert_str_eq(each(plans, "a"), "h1 h2* h3 h4* ");
	cr_assert_str_eq(refs(plans, "a", "T"), "h1/event0! h2/event0!* h3/event0! h4/event0!* ");
	sl_plans_point(plans, "a", "w", "1.10.0", "h2", false);
	cr_assert_str_eq(each(plans, "a"), "h1 h2 h3* h4* ");
	sl_plans_point(plans, "a", "w", "1.10.0-rc1", "h3", false);
	cr_assert_str_eq(each(plans, "a"), "h1* h2 h3 h4* ");
	sl_plans_point(plans, "a", "w", "1.2.0", "h1", false);
	cr_assert_str_eq(each(plans, "a"), "h1 h2 h3 h4* ");
	cr_assert_null(sl_plans_current(plans, "a", "w", NULL));
	cr_assert_not_null(sl_plans_by_hash(plans, "a", "h1"), "instances of older versions go on");
	cr_assert_str_eq(each(plans, "b"), "", "another namespace");
	cr_assert_null(sl_plans_by_hash(plans, "b", "h1"));
	sl_plans_free(plans);
}

Test(plans, pointers)
{
	struct sl_plans *plans = sl_plans_new();
	bool active = true;
	cr_assert_null(sl_plans_pointer(plans, "a", "w", "1.0.0", &active));
	/* the pointer may be read before its definition */
	sl_plans_point(plans, "a", "w", "1.0.0", "h1", true);
	cr_assert_null(sl_plans_current(plans, "a", "w", NULL));
	struct sl_plan *plan = simple("w", "1.0.0", "h1", "T");
	sl_plan_finish(plan);
	sl_plans_add(plans, "a", plan);
	sl_plans_add(plans, "a", plan);
	sl_plan_unref(plan);
	cr_assert_eq(sl_plans_current(plans, "a", "w", NULL), plan);
	cr_assert_eq(sl_plans_current(plans, "a", "w", "1.0.0"), plan);
	cr_assert_null(sl_plans_current(plans, "a", "w", "2.0.0"));
	cr_assert_str_eq(refs(plans, "a", "T"), "h1/event0!* ", "added once");
	cr_assert_str_eq(sl_plans_pointer(plans, "a", "w", "1.0.0", &active), "h1");
	cr_assert(active);
	sl_plans_point(plans, "a", "w", "1.0.0", "h1", false);
	cr_assert_str_eq(sl_plans_pointer(plans, "a", "w", "1.0.0", &active), "h1");
	cr_assert_not(active);
	cr_assert_null(sl_plans_current(plans, "a", "w", "1.0.0"));
	/* a revision without versions: the pointer moves */
	build_deploy(plans, "a", simple("d", "", "d1", "T"));
	build_deploy(plans, "a", simple("d", "", "d2", "T"));
	cr_assert_str_eq(sl_plans_current(plans, "a", "d", NULL)->hash, "d2");
	cr_assert_str_eq(sl_plans_pointer(plans, "a", "d", NULL, NULL), "d2");
	cr_assert_str_eq(refs(plans, "a", "T"), "h1/event0! d1/event0! d2/event0!* ");
	sl_plans_free(plans);
}

Test(plans, forgotten_shapes_are_gone)
{
	struct sl_plans *plans = sl_plans_new();
	build_deploy(plans, "a", simple("w", "1.0.0", "h1", "T"));
	build_deploy(plans, "a", simple("w", "2.0.0", "h2", "T"));
	sl_plans_forget(plans, "a", "h1");
	sl_plans_forget(plans, "a", "h1");
	sl_plans_forget(plans, "b", "h1");
	cr_assert_str_eq(refs(plans, "a", "T"), "h2/event0!* ");
	cr_assert_str_eq(each(plans, "a"), "h2* ");
	sl_plans_forget(plans, "a", "h2");
	cr_assert_str_eq(refs(plans, "a", "T"), "");
	cr_assert_null(sl_plans_current(plans, "a", "w", NULL));
	sl_plans_free(plans);
}

Test(plans, references_are_what_is_waited_for)
{
	struct sl_plans *plans = sl_plans_new();
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "Start", NULL, "k"), -1);
	build_wait(plan, build_event(plan, "Wait", NULL, "k"));
	build_event(plan, "Idle", NULL, "k"); /* defined, never waited for */
	plan->events[build_event(plan, "Out", NULL, NULL)].produced = true;
	build_wait(plan, build_event(plan, NULL, "/any", NULL)); /* any type */
	build_deploy(plans, "a", plan);
	cr_assert_str_eq(refs(plans, "a", "Start"), "h/event0!* ");
	cr_assert_str_eq(refs(plans, "a", "Wait"), "h/event1* ");
	cr_assert_str_eq(refs(plans, "a", "Idle"), "");
	cr_assert_str_eq(refs(plans, "a", "Out"), "");
	cr_assert_str_eq(refs(plans, "a", NULL), "h/event4* ");
	cr_assert_not(plan->events[0].waited);
	cr_assert(plan->events[1].waited);
	sl_plans_free(plans);
}

/* The flag costs one record per partition and event, so it must be off where the start binds the key. */
Test(plans, what_may_be_unbound)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "S1", NULL, "k"), build_event(plan, "S2", NULL, "k,x"), -1);
	build_wait(plan, build_event(plan, "bound by both starts", NULL, "k"));
	build_wait(plan, build_event(plan, "bound by one start only", NULL, "k,x"));
	build_wait(plan, build_event(plan, "own expression", NULL, "y="));
	build_wait(plan, build_event(plan, "nobody binds it", NULL, "z"));
	build_wait(plan, build_event(plan, "unkeyed", NULL, NULL));
	sl_plan_finish(plan);
	sl_plan_mark_events(plan);
	static const bool expected[] = {false, false, false, true, false, true, false};
	for (int i = 0; i < plan->event_count; i++)
		cr_assert_eq(plan->events[i].may_be_unbound, expected[i], "%s", plan->events[i].type);
	plan->start.all = true; /* now both came */
	sl_plan_mark_events(plan);
	cr_assert_not(plan->events[3].may_be_unbound);
	plan->start.count = 0; /* started by a command */
	sl_plan_mark_events(plan);
	cr_assert(plan->events[2].may_be_unbound);
	cr_assert_not(plan->events[4].may_be_unbound);
	sl_plan_unref(plan);
}

Test(plans, wants_of_a_key_set)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	int a = build_event(plan, "A", "/src", "k"), b = build_event(plan, "B", NULL, "k,x");
	build_start(plan, true, 0, a, b, -1);
	int c = build_event(plan, "C", NULL, "k");
	build_filter(plan, c, "color", "red");
	build_wait(plan, c);
	build_event(plan, "Unused", NULL, "k");
	sl_plan_finish(plan);
	sl_plan_mark_events(plan);
	static const char *k[] = {"k"}, *kx[] = {"k", "x"}, *x[] = {"x"};
	jv wants = sl_plan_wants(plan, k, 1);
	jv expected = build_json("[{'type':'A','source':'/src'},{'type':'B'},{'type':'C','filters':{'color':'red'}}]");
	cr_assert(sl_json_equal(wants, expected), "B joins here though its own key has more names");
	jv_free(wants);
	jv_free(expected);
	wants = sl_plan_wants(plan, kx, 2);
	expected = build_json("[{'type':'B'}]");
	cr_assert(sl_json_equal(wants, expected));
	jv_free(wants);
	jv_free(expected);
	wants = sl_plan_wants(plan, x, 1);
	cr_assert_eq(jv_array_length(wants), 0);
	sl_plan_unref(plan);
}

Test(plans, matching_names_the_first_attribute_that_failed)
{
	struct sl_attr_filter filters[] = {{"color", "red"}, {"size", "42"}};
	struct sl_mismatch miss = {NULL, NULL};
	jv ev = build_ev("1", "T", ",'color':'red','size':42,'ok':true");
	cr_assert(sl_event_matches("T", "/test", filters, 2, ev, &miss), "42 and \"42\" are the same");
	cr_assert(sl_event_matches(NULL, NULL, NULL, 0, ev, NULL));
	cr_assert_not(sl_event_matches("t", NULL, NULL, 0, ev, &miss), "A80: equality");
	cr_assert_str_eq(miss.attribute, "type");
	cr_assert_str_eq(miss.wanted, "t");
	cr_assert_not(sl_event_matches("T", "/other", filters, 2, ev, &miss));
	cr_assert_str_eq(miss.attribute, "source");
	filters[1].value = "4";
	cr_assert_not(sl_event_matches("T", NULL, filters, 2, ev, &miss));
	cr_assert_str_eq(miss.attribute, "size");
	filters[0].name = "absent";
	cr_assert_not(sl_event_matches("T", NULL, filters, 2, ev, &miss));
	cr_assert_str_eq(miss.attribute, "absent");
	jv_free(ev);
}
