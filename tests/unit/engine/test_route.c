/* Route: where an event goes, from the shapes of the known plans. */
#include "tests/unit/engine/plans_builder.h"
#include <criterion/criterion.h>

static struct sl_plans *plans;
static struct sl_engine eng;
static struct sl_arena arena;
static struct sl_effects fx;
static jv why;

static void setup(void)
{
	plans = sl_plans_new();
	eng = (struct sl_engine){.plans = plans, .partitions = 3};
	eng.limits.hops_max = 100;
	sl_arena_init(&arena);
	sl_effects_init(&fx, &arena);
	why = jv_invalid();
}

static void teardown(void)
{
	jv_free(why);
	sl_effects_release(&fx);
	sl_arena_release(&arena);
	sl_plans_free(plans);
}

TestSuite(route, .init = setup, .fini = teardown);

/* Routes an event (takes it) and gives the targets as text: "kind to, ..." in order. */
static const char *route(jv ev)
{
	static const struct sl_origin origin = {"sluice.events", 2, 1234567890123};
	static char text[2000];
	size_t len = 0;
	sl_effects_clear(&fx);
	jv_free(why);
	int n = sl_route_event(&eng, "default", ev, &origin, &fx, &why);
	jv_free(ev);
	cr_assert_eq(n, fx.count);
	cr_assert_eq(jv_is_valid(why), n == 0);
	text[0] = 0;
	for (int i = 0; i < fx.count; i++) {
		const struct sl_msg *msg = &fx.items[i];
		cr_assert_str_eq(msg->ns, "default");
		cr_assert_str_eq(msg->origin_topic, "sluice.events");
		cr_assert_eq(msg->origin_partition, 2);
		cr_assert_eq(msg->origin_offset, 1234567890123);
		for (int k = 0; k < i; k++)
			cr_assert_str_neq(msg->id, fx.items[k].id);
		len += (size_t)snprintf(
			text + len, sizeof text - len, "%s%s %s", i ? ", " : "", sl_msg_kind_text(msg->kind), msg->to);
	}
	return text;
}

/* "event #HOME" of one or two names. */
static const char *at(const char *name, const char *value, const char *name2, const char *value2)
{
	static char text[4][50];
	static int turn;
	char home[33];
	turn = (turn + 1) % 4;
	sl_home_of_key((const char *const[]){name, name2}, (const char *const[]){value, value2}, name2 ? 2 : 1, home);
	snprintf(text[turn], sizeof text[turn], "event #%s", home);
	return text[turn];
}

static void expect_why(const char *expected)
{
	jv want = build_json("%s", expected);
	char *have = sl_json_text(why);
	cr_assert(sl_json_equal(why, want), "%s", have);
	free(have);
	jv_free(want);
}

Test(route, a_named_instance_gets_it_and_nobody_else)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "T", NULL, NULL), -1);
	build_deploy(plans, "default", plan);
	cr_assert_str_eq(
		route(build_ev("1", "T", ",'workflowinstanceid':'abc.12','traceparent':'00-1'")), "event abc.12");
	cr_assert_str_eq(fx.items[0].traceparent, "00-1");
	cr_assert_eq(jv_get_kind(fx.items[0].event), JV_KIND_OBJECT);
	cr_assert_not(jv_is_valid(fx.items[0].key));
	cr_assert_str_eq(route(build_ev("1", "T", ",'workflowinstanceid':'#abc'")), "", "no way into a mailbox");
	cr_assert_str_eq(route(build_ev("1", "T", ",'workflowinstanceid':'@1~default~T'")), "");
	cr_assert_str_eq(route(build_ev("1", "T", ",'workflowinstanceid':''")), "");
	expect_why(
		"{'event':{'id':'1','source':'/"
		"test','type':'T'},'at':'router','decision':'nobody','note':'workflowinstanceid is no instance id'}");
}

Test(route, nobody_wants_it)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	int e = build_event(plan, "T", "/shop", "k");
	build_filter(plan, e, "color", "red");
	build_start(plan, false, 0, e, -1);
	build_deploy(plans, "default", plan);
	cr_assert_str_eq(route(build_ev("1", "U", ",'k':'5'")), "");
	expect_why("{'event':{'id':'1','source':'/test','type':'U'},'at':'router','decision':'nobody'}");
	cr_assert_str_eq(route(build_ev("1", "T", ",'k':'5'")), "");
	expect_why("{'event':{'id':'1','source':'/test','type':'T'},'at':'router','decision':'nobody','candidates':"
		   "[{'workflow':'w','plan':'h','attribute':'source','wanted':'/shop','have':'/test'}]}");
	jv ev = sl_json_set(build_ev("1", "T", ",'color':'red'"), "source", jv_string("/shop"));
	cr_assert_str_eq(route(ev), "", "A81: the event lacks the key");
	expect_why("{'event':{'id':'1','source':'/shop','type':'T'},'at':'router','decision':'nobody','candidates':"
		   "[{'workflow':'w','plan':'h','attribute':'k'}]}");
	ev = sl_json_set(build_ev("1", "T", ",'color':'blue','k':'5'"), "source", jv_string("/shop"));
	cr_assert_str_eq(route(ev), "");
	expect_why("{'event':{'id':'1','source':'/shop','type':'T'},'at':'router','decision':'nobody','candidates':"
		   "[{'workflow':'w','plan':'h','attribute':'color','wanted':'red','have':'blue'}]}");
	ev = sl_json_set(build_ev("1", "T", ",'color':'red','k':'5'"), "source", jv_string("/shop"));
	cr_assert_str_eq(route(ev), at("k", "5", NULL, NULL));
}

Test(route, a_key_leads_to_one_mailbox_however_many_plans_name_it)
{
	for (int i = 0; i < 3; i++) {
		char id[16], hash[16];
		snprintf(id, sizeof id, "w%d", i);
		snprintf(hash, sizeof hash, "h%d", i);
		struct sl_plan *plan = build_plan(id, "1.0.0", hash);
		build_start(plan, false, 0, build_event(plan, "T", NULL, "patientid"), -1);
		int wait = build_event(plan, "T", NULL, "patientid");
		build_wait(plan, wait);
		build_deploy(plans, "default", plan);
	}
	cr_assert_str_eq(route(build_ev("1", "T", ",'patientid':55")), at("patientid", "55", NULL, NULL));
	jv key = build_json("{'patientid':'55'}");
	cr_assert(sl_json_equal(fx.items[0].key, key));
	jv_free(key);
	cr_assert_str_eq(route(build_ev("1", "T", ",'patientid':'55'")), at("patientid", "55", NULL, NULL),
		"55 and \"55\" are one");
}

Test(route, one_record_for_each_key_set_that_the_event_has)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "T", NULL, "a"), -1);
	build_wait(plan, build_event(plan, "T", NULL, "a,b="));
	build_wait(plan, build_event(plan, "T", NULL, "c="));
	build_deploy(plans, "default", plan);
	char expected[200];
	snprintf(expected, sizeof expected, "%s, %s", at("a", "1", NULL, NULL), at("a", "1", "b", "2"));
	cr_assert_str_eq(route(build_ev("1", "T", ",'a':1,'b':2")), expected);
	cr_assert_str_eq(route(build_ev("1", "T", ",'c':true")), at("c", "true", NULL, NULL));
}

/* A living instance of an undeployed version still gets its events; nothing starts. */
Test(route, shapes_of_inactive_versions_count_for_waiting_not_for_starting)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "Keyed", NULL, "k"), build_event(plan, "Free", NULL, NULL), -1);
	build_wait(plan, build_event(plan, "Wait", NULL, "k="));
	build_deploy(plans, "default", plan);
	cr_assert_neq(route(build_ev("1", "Free", ""))[0], 0);
	sl_plans_point(plans, "default", "w", "1.0.0", "h", false);
	cr_assert_str_eq(route(build_ev("1", "Keyed", ",'k':1")), at("k", "1", NULL, NULL));
	cr_assert_str_eq(route(build_ev("1", "Wait", ",'k':1")), at("k", "1", NULL, NULL));
	cr_assert_str_eq(route(build_ev("1", "Free", "")), "");
}

Test(route, an_uncorrelated_start_derives_its_id_from_the_event)
{
	for (int i = 0; i < 2; i++) {
		struct sl_plan *plan = build_plan(i ? "w2" : "w1", "1.0.0", i ? "h2" : "h1");
		build_start(
			plan, false, 0, build_event(plan, "T", NULL, NULL), build_event(plan, "T", "/test", NULL), -1);
		build_deploy(plans, "default", plan);
	}
	char first[2][SL_UUID_TEXT], id[SL_UUID_TEXT];
	route(build_ev("1", "T", ""));
	cr_assert_eq(fx.count, 2, "once per plan, though two of its events match");
	for (int i = 0; i < 2; i++) {
		const struct sl_msg *msg = &fx.items[i];
		sl_id_derive((const char *const[]){"default", i ? "w2" : "w1", "/test", "1"}, 4, id);
		cr_assert_eq(msg->kind, SL_MSG_START);
		cr_assert_str_eq(msg->to, id);
		cr_assert_str_eq(msg->plan, i ? "h2" : "h1");
		cr_assert_str_eq(msg->workflow, i ? "w2" : "w1");
		cr_assert_str_eq(msg->version, "1.0.0");
		cr_assert_not(msg->ok);
		cr_assert_null(msg->box);
		cr_assert_eq(jv_array_length(jv_copy(msg->events)), 1);
		snprintf(first[i], sizeof first[i], "%s", msg->to);
	}
	route(build_ev("1", "T", ",'data':{'other':'content'}"));
	cr_assert_str_eq(fx.items[0].to, first[0], "a duplicate starts nothing: same id (R3)");
	route(build_ev("2", "T", ""));
	cr_assert_str_neq(fx.items[0].to, first[0]);
	cr_assert_str_neq(fx.items[1].to, first[1]);
}

Test(route, an_unkeyed_wait_asks_every_partition)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_wait(plan, build_event(plan, "T", NULL, NULL));
	build_wait(plan, build_event(plan, NULL, "/test", NULL));
	build_deploy(plans, "default", plan);
	cr_assert_str_eq(route(build_ev("1", "U", "")), "event @0~default~*, event @1~default~*, event @2~default~*");
	cr_assert_str_eq(route(build_ev("1", "T", "")), "event @0~default~T, event @1~default~T, event @2~default~T, "
							"event @0~default~*, event @1~default~*, event @2~default~*");
}

Test(route, only_waits_that_may_be_unbound_ask_every_partition)
{
	struct sl_plan *plan = build_plan("ordinary", "1.0.0", "h1");
	build_start(plan, false, 0, build_event(plan, "S", NULL, "k"), -1);
	build_wait(plan, build_event(plan, "W", NULL, "k"));
	build_deploy(plans, "default", plan);
	cr_assert_str_eq(route(build_ev("1", "S", ",'k':1")), at("k", "1", NULL, NULL));
	cr_assert_str_eq(route(build_ev("1", "W", ",'k':1")), at("k", "1", NULL, NULL));
	plan = build_plan("unbound", "1.0.0", "h2");
	build_wait(plan, build_event(plan, "W", NULL, "k"));
	build_deploy(plans, "default", plan);
	char expected[300];
	snprintf(expected, sizeof expected, "%s, event @0~default~W, event @1~default~W, event @2~default~W",
		at("k", "1", NULL, NULL));
	cr_assert_str_eq(route(build_ev("1", "W", ",'k':1")), expected);
	cr_assert_str_eq(route(build_ev("1", "W", "")), "", "A81: it could bind nothing");
	/* an instance that a command started waits for its start event in partition 2, and has said so */
	struct sl_map known;
	struct sl_waits waits = {.partitions = (int32_t[]){2}, .count = 1};
	sl_map_init(&known);
	sl_map_set(&known, "default~S", &waits);
	eng.waits = &known;
	snprintf(expected, sizeof expected, "%s, event @2~default~S", at("k", "1", NULL, NULL));
	cr_assert_str_eq(route(build_ev("1", "S", ",'k':1")), expected);
	eng.waits = NULL;
	sl_map_release(&known, NULL);
}

Test(route, all_of_starts_meet_at_the_common_names)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	int a = build_event(plan, "A", NULL, "k,x"), b = build_event(plan, "B", NULL, "k");
	build_start(plan, true, 0, a, b, -1);
	build_deploy(plans, "default", plan);
	cr_assert_str_eq(route(build_ev("1", "A", ",'k':1,'x':2")), at("k", "1", NULL, NULL));
	cr_assert_str_eq(route(build_ev("1", "B", ",'k':1")), at("k", "1", NULL, NULL));
}

Test(route, all_of_starts_without_common_names_meet_at_the_workflow)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, true, 0, build_event(plan, "A", NULL, "x"), build_event(plan, "B", NULL, NULL), -1);
	build_deploy(plans, "default", plan);
	char home[33], expected[50];
	sl_home_of_workflow("default", "w", home);
	snprintf(expected, sizeof expected, "event #%s", home);
	cr_assert_str_eq(route(build_ev("1", "A", "")), expected);
	cr_assert_str_eq(fx.items[0].workflow, "w");
	cr_assert_not(jv_is_valid(fx.items[0].key));
	cr_assert_str_eq(route(build_ev("1", "B", "")), expected);
	sl_plans_point(plans, "default", "w", "1.0.0", "h", false);
	cr_assert_str_eq(route(build_ev("1", "A", "")), "");
}

Test(route, namespaces_do_not_meet)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "T", NULL, "k"), -1);
	build_deploy(plans, "other", plan);
	cr_assert_str_eq(route(build_ev("1", "T", ",'k':1")), "");
}

Test(route, loops_end)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "h");
	build_start(plan, false, 0, build_event(plan, "T", NULL, NULL), -1);
	build_deploy(plans, "default", plan);
	static const struct sl_origin origin = {"sluice.events", 0, 1};
	jv ev = build_ev("1", "T", ",'sluicehops':100");
	cr_assert_eq(sl_route_event(&eng, "default", ev, &origin, &fx, &why), 1);
	jv_free(ev);
	sl_effects_clear(&fx);
	ev = build_ev("1", "T", ",'sluicehops':101");
	cr_assert_eq(sl_route_event(&eng, "default", ev, &origin, &fx, &why), 0);
	jv_free(ev);
	cr_assert_eq(fx.count, 1);
	cr_assert_eq(fx.items[0].kind, SL_MSG_DEAD_LETTER);
	cr_assert(strncmp(fx.items[0].reason, "hops", 4) == 0);
	cr_assert_str_eq(sl_json_str(why, "decision"), "hops");
}
