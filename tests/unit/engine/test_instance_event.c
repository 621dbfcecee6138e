/* Instances: event starts, waits, correlation, inbox, callbacks, eventRef. The mailboxes are real. */
#include "tests/unit/engine/harness.h"

#define TOP "version: '1.0.0'\nspecVersion: '0.8'\nname: Test\n"
#define FUNCTIONS "functions:\n- name: f\n  type: custom\n  operation: POST http://x.test/f\n"
#define CORR "  correlation:\n  - contextAttributeName: orderId\n"
#define ORDER(n) "\"orderid\":\"" n "\","

/* start with A, then wait for B of the same order */
#define CHAIN                                                                                                          \
	"id: chain\n" TOP "start: S\n" FUNCTIONS "events:\n- name: A\n  type: t.a\n  source: /t\n" CORR                \
	"- name: B\n  type: t.b\n  source: /t\n" CORR                                                                  \
	"states:\n- name: S\n  type: event\n  onEvents:\n  - eventRefs: [A]\n  transition: C\n"                        \
	"- name: C\n  type: operation\n  actions:\n  - functionRef: f\n  transition: W\n"                              \
	"- name: W\n  type: event\n  onEvents:\n  - eventRefs: [B]\n    eventDataFilter: {toStateData: '${ .b }'}\n  " \
	"end: true\n"

ENGINE_TEST(uncorrelated_event_starts_an_instance)
{
	world_deploy(w, "id: w\n" TOP "start: S\nevents:\n- name: A\n  type: t.a\n  source: /t\nstates:\n- name: S\n  "
				      "type: event\n  onEvents:\n  - eventRefs: [A]\n"
			"    eventDataFilter: {data: '${ .in }', toStateData: '${ .a }'}\n  end: true\n");
	world_event(w, "1", "t.a", "", "{\"in\":5}");
	world_event(w, "2", "t.x", "", "{}");
	world_event(w, "1", "t.a", "", "{\"in\":5}");
	cr_assert_eq(world_instances(w), 1);
	expect_output(w, world_nth(w, 0), "{\"a\":5}");
}

ENGINE_TEST(correlated_start_waits_and_wakes)
{
	world_deploy(w, CHAIN);
	world_event(w, "1", "t.a", ORDER("7"), "{\"x\":1}");
	cr_assert_eq(world_instances(w), 1);
	const char *id = world_nth(w, 0);
	world_event(w, "2", "t.b", ORDER("8"), "{\"other\":1}");
	world_result(w, 0, "{\"r\":1}", NULL);
	expect_status(w, id, "waiting");
	world_event(w, "3", "t.b", ORDER("7"), "{\"y\":2}");
	expect_output(w, id, "{\"x\":1,\"r\":1,\"b\":{\"y\":2}}");
	cr_expect_str_eq(sl_json_str(world_instance(w, id)->bindings, "orderid"), "7");
}

ENGINE_TEST(event_that_comes_early_waits_in_the_inbox)
{
	world_deploy(w, CHAIN);
	world_event(w, "1", "t.a", ORDER("7"), "{}");
	const char *id = world_nth(w, 0);
	world_event(w, "2", "t.b", ORDER("7"), "{\"n\":1}");
	world_event(w, "3", "t.b", ORDER("7"), "{\"n\":2}");
	cr_expect_eq(world_instance(w, id)->inbox_count, 2);
	cr_expect(sl_map_get(&world_actor(w, id)->fields, "b:1"));
	world_result(w, 0, "{}", NULL);
	expect_output(w, id, "{\"b\":{\"n\":1}}");
	cr_expect_null(sl_map_get(&world_actor(w, id)->fields, "b:1"));
	cr_expect_null(sl_map_get(&world_actor(w, id)->fields, "b:2"));
}

/* A173: the second order event goes to the living instance; when that ends, it starts the next one. */
ENGINE_TEST(start_event_that_was_not_taken_starts_the_next_instance)
{
	world_deploy(w, CHAIN);
	world_event(w, "1", "t.a", ORDER("7"), "{\"n\":1}");
	world_event(w, "2", "t.a", ORDER("7"), "{\"n\":2}");
	cr_assert_eq(world_instances(w), 1);
	world_result(w, 0, "{}", NULL);
	world_event(w, "3", "t.b", ORDER("7"), "{}");
	cr_assert_eq(world_instances(w), 2);
	expect_status(w, world_nth(w, 0), "completed");
	expect_status(w, world_nth(w, 1), "running");
	world_result(w, 1, "{}", NULL);
	world_event(w, "4", "t.b", ORDER("7"), "{\"m\":4}");
	expect_output(w, world_nth(w, 1), "{\"n\":2,\"b\":{\"m\":4}}");
}

ENGINE_TEST(redelivered_events_change_nothing)
{
	world_deploy(w, CHAIN);
	world_event(w, "1", "t.a", ORDER("7"), "{}");
	world_event(w, "1", "t.a", ORDER("7"), "{}");
	world_event(w, "2", "t.b", ORDER("7"), "{\"n\":1}");
	world_event(w, "2", "t.b", ORDER("7"), "{\"n\":1}");
	cr_expect_eq(world_instance(w, world_nth(w, 0))->inbox_count, 1);
	world_result(w, 0, "{}", NULL);
	world_event(w, "2", "t.b", ORDER("7"), "{\"n\":1}");
	world_event(w, "1", "t.a", ORDER("7"), "{}");
	cr_expect_eq(world_instances(w), 1);
	expect_status(w, world_nth(w, 0), "completed");
}

ENGINE_TEST(full_inbox_sends_to_the_dead_letter)
{
	w->eng.limits.inbox_max = 2;
	world_deploy(w, CHAIN);
	world_event(w, "1", "t.a", ORDER("7"), "{}");
	for (int i = 2; i < 5; i++)
		world_event(w, sl_arena_printf(&w->arena, "%d", i), "t.b", ORDER("7"), "{}");
	cr_expect_eq(world_count(w, SL_MSG_DEAD_LETTER), 1);
	cr_expect_str_eq(world_last(w, SL_MSG_DEAD_LETTER)->reason, "inbox-full");
	cr_expect_str_eq(sl_json_str(world_last(w, SL_MSG_DEAD_LETTER)->event, "id"), "4");
}

/* A full inbox did not take the event (R6), so redriven to the instance itself it is not a duplicate; the second time it is. */
ENGINE_TEST(what_a_full_inbox_refused_may_come_again)
{
	w->eng.limits.inbox_max = 1;
	world_deploy(w, CHAIN);
	world_event(w, "1", "t.a", ORDER("7"), "{}");
	const char *id = world_nth(w, 0), *to = sl_arena_printf(&w->arena, ORDER("7") "\"workflowinstanceid\":\"%s\",", id);
	world_event(w, "2", "t.b", ORDER("7"), "{\"n\":2}");
	world_event(w, "3", "t.b", ORDER("7"), "{\"n\":3}");
	cr_expect_str_eq(sl_json_str(world_last(w, SL_MSG_DEAD_LETTER)->event, "id"), "3");
	w->eng.limits.inbox_max = 10;
	world_event(w, "3", "t.b", to, "{\"n\":3}");
	cr_expect_eq(world_instance(w, id)->inbox_count, 2);
	world_event(w, "3", "t.b", to, "{\"n\":3}");
	cr_expect_eq(world_instance(w, id)->inbox_count, 2);
	cr_expect_eq(world_count(w, SL_MSG_DEAD_LETTER), 1);
}

/* --- event states --- */

#define WAIT(exclusive)                                                                                                \
	"id: w\n" TOP "start: C\n" FUNCTIONS "events:\n- name: A\n  type: t.a\n  source: /t\n- name: B\n  type: "      \
					     "t.b\n  source: /t\n- name: D\n  type: t.d\n  source: /t\n"               \
	"states:\n- name: C\n  type: inject\n  data: {i: 1}\n  transition: W\n"                                        \
	"- name: W\n  type: event\n  exclusive: " exclusive                                                            \
	"\n  timeouts: {eventTimeout: PT10S}\n  onEvents:\n  - eventRefs: [A, B]\n    actions:\n    - functionRef: "   \
	"{refName: f, arguments: {n: 1}}\n"                                                                            \
	"  - eventRefs: [D]\n    actions:\n    - functionRef: {refName: f, arguments: {n: 2}}\n  end: true\n"

ENGINE_TEST(exclusive_takes_any_event)
{
	world_deploy(w, WAIT("true"));
	world_start(w, "i1", "w", "{}");
	expect_status(w, "i1", "waiting");
	world_event(w, "1", "t.b", "", "{\"b\":1}");
	cr_assert_eq(w->action_count, 1);
	expect_json(world_args(w, 0), "{\"n\":1}");
	world_event(w, "2", "t.d", "", "{\"d\":1}");
	world_advance(w, 20000);
	world_result(w, 0, "{}", NULL);
	expect_output(w, "i1", "{\"i\":1,\"b\":1}");
}

ENGINE_TEST(not_exclusive_waits_for_all_and_runs_in_order)
{
	world_deploy(w, WAIT("false"));
	world_start(w, "i1", "w", "{}");
	world_event(w, "1", "t.d", "", "{\"d\":1}");
	world_event(w, "2", "t.b", "", "{\"b\":1}");
	cr_assert_eq(w->action_count, 0);
	world_event(w, "3", "t.a", "", "{\"a\":1}");
	cr_assert_eq(w->action_count, 1);
	expect_json(world_args(w, 0), "{\"n\":1}");
	world_result(w, 0, "{}", NULL);
	cr_assert_eq(w->action_count, 2);
	expect_json(world_args(w, 1), "{\"n\":2}");
	world_result(w, 1, "{}", NULL);
	expect_output(w, "i1", "{\"i\":1,\"a\":1,\"b\":1,\"d\":1}");
}

ENGINE_TEST(event_timeout_leaves_without_actions)
{
	world_deploy(w, WAIT("false"));
	world_start(w, "i1", "w", "{}");
	world_event(w, "1", "t.d", "", "{\"d\":1}");
	world_advance(w, 10000);
	expect_output(w, "i1", "{\"i\":1}");
	cr_expect_eq(w->action_count, 0);
	world_event(w, "2", "t.a", "", "{}");
}

ENGINE_TEST(unkeyed_events_go_to_every_waiting_instance_and_are_never_early)
{
	world_deploy(w, WAIT("true"));
	world_event(w, "0", "t.d", "", "{\"early\":1}");
	world_start(w, "i1", "w", "{}");
	world_start(w, "i2", "w", "{}");
	world_event(w, "1", "t.d", "", "{\"d\":1}");
	cr_expect_eq(w->action_count, 2);
	world_result(w, 0, "{}", NULL);
	world_result(w, 1, "{}", NULL);
	expect_output(w, "i1", "{\"i\":1,\"d\":1}");
	expect_output(w, "i2", "{\"i\":1,\"d\":1}");
}

#define JOIN(common)                                                                                                   \
	"id: w\n" TOP "start: S\nevents:\n- name: A\n  type: t.a\n  source: /t\n" common                               \
	"- name: B\n  type: t.b\n  source: /t\n" common                                                                \
	"states:\n- name: S\n  type: event\n  exclusive: false\n  onEvents:\n  - eventRefs: [A, B]\n  end: true\n"

ENGINE_TEST(all_of_start_joins_correlated_events)
{
	world_deploy(w, JOIN(CORR));
	world_event(w, "1", "t.a", ORDER("7"), "{\"a\":7}");
	world_event(w, "2", "t.b", ORDER("8"), "{\"b\":8}");
	cr_expect_eq(world_instances(w), 0);
	world_event(w, "3", "t.b", ORDER("7"), "{\"b\":7}");
	cr_assert_eq(world_instances(w), 1);
	expect_output(w, world_nth(w, 0), "{\"a\":7,\"b\":7}");
}

ENGINE_TEST(all_of_start_joins_without_correlation)
{
	world_deploy(w, JOIN(""));
	world_event(w, "1", "t.b", "", "{\"b\":7}");
	world_event(w, "2", "t.a", "", "{\"a\":7}");
	cr_assert_eq(world_instances(w), 1);
	expect_output(w, world_nth(w, 0), "{\"a\":7,\"b\":7}");
}

/* A169 */
ENGINE_TEST(command_start_waits_for_its_start_event)
{
	struct sl_map known; /* what the owner tells the routers before it waits */
	struct sl_waits waits = {.partitions = (int32_t[]){0}, .count = 1};
	sl_map_init(&known);
	sl_map_set(&known, "default~t.a", &waits);
	w->eng.waits = &known;
	world_deploy(w, CHAIN);
	world_start(w, "i1", "chain", "{\"given\":1}");
	expect_status(w, "i1", "waiting");
	world_event(w, "1", "t.a", ORDER("7"), "{\"x\":1}");
	expect_status(w, "i1", "running");
	for (int i = 0; i < w->action_count; i++)
		world_result(w, i, "{}", NULL);
	cr_expect_str_eq(sl_json_str(world_instance(w, "i1")->bindings, "orderid"), "7");
	world_event(w, "2", "t.b", ORDER("8"), "{}");
	expect_status(w, "i1", "waiting");
	world_event(w, "3", "t.b", ORDER("7"), "{}");
	expect_status(w, "i1", "completed");
	w->eng.waits = NULL;
	sl_map_release(&known, NULL);
}

/* The eventTimeout of a start state is the time between its events. */
ENGINE_TEST(start_state_waits_without_end_for_its_first_event)
{
	world_deploy(w,
		"id: w\n" TOP
		"start: S\nevents:\n- name: A\n  type: t.a\n  source: /t\n- name: B\n  type: t.b\n  source: /t\n"
		"states:\n- name: S\n  type: event\n  exclusive: false\n  timeouts: {eventTimeout: PT10S}\n  "
		"onEvents:\n  - eventRefs: [A, B]\n  end: true\n");
	struct sl_plan *plan = sl_plans_current(w->plans, "default", "w", NULL);
	const char *box = sl_route_local_box(&w->arena, 0, "default", "t.a"),
		   *other = sl_route_local_box(&w->arena, 0, "default", "t.b");
	const char *boxes[] = {box, other, box};
	cr_assert(plan->start.await);
	world_start(w, "i1", "w", "{}");
	world_advance(w, 100000);
	expect_status(w, "i1", "waiting");
	for (int i = 0; i < 3; i++) {
		struct sl_msg msg;
		sl_msg_init(&msg, SL_MSG_EVENT);
		msg.to = boxes[i];
		msg.event = json(sl_arena_printf(&w->arena,
			"{\"specversion\":\"1.0\",\"id\":\"%d\",\"source\":\"/"
			"t\",\"type\":\"%s\",\"data\":{\"n%d\":1}}",
			i, i == 1 ? "t.b" : "t.a", i));
		world_send(w, &msg);
		if (i == 0) {
			cr_expect_eq(world_timers(w), 1);
			world_advance(w, 10000);
		}
		expect_status(w, "i1", i == 2 ? "completed" : "waiting");
	}
	expect_output(w, "i1", "{\"n1\":1,\"n2\":1}");
}

ENGINE_TEST(scalar_member_of_the_data_gives_the_value)
{
	world_deploy(w, CHAIN);
	world_start(w, "i1", "chain", "{\"orderId\":7}");
	world_event(w, "1", "t.a", ORDER("8"), "{}");
	cr_expect_eq(world_instances(w), 2);
	expect_status(w, "i1", "waiting");
	world_event(w, "2", "t.a", "\"orderid\":7,", "{}");
	expect_status(w, "i1", "running");
}

/* --- event switch --- */

#define SWITCH                                                                                                         \
	"id: w\n" TOP                                                                                                  \
	"start: W\nevents:\n- name: A\n  type: t.a\n  source: /t\n- name: B\n  type: t.b\n  source: /t\n"              \
	"states:\n- name: W\n  type: switch\n  timeouts: {eventTimeout: PT1H}\n  eventConditions:\n  - eventRef: A\n " \
	"   transition: X\n  - eventRef: B\n    end: true\n  defaultCondition: {transition: Y}\n"                      \
	"- name: X\n  type: inject\n  data: {x: 1}\n  end: true\n- name: Y\n  type: inject\n  data: {y: 1}\n  end: "   \
	"true\n"

ENGINE_TEST(switch_goes_where_the_event_leads)
{
	world_deploy(w, SWITCH);
	world_start(w, "i1", "w", "{}");
	world_event(w, "1", "t.a", "", "{\"a\":1}");
	expect_output(w, "i1", "{\"a\":1,\"x\":1}");
	world_start(w, "i2", "w", "{}");
	world_event(w, "2", "t.b", "", "{}");
	expect_output(w, "i2", "{}");
	cr_expect_eq(world_timers(w), 0);
}

ENGINE_TEST(switch_takes_the_default_when_time_runs_out)
{
	world_deploy(w, SWITCH);
	world_start(w, "i1", "w", "{}");
	world_advance(w, 3600000);
	expect_output(w, "i1", "{\"y\":1}");
}

/* --- callback --- */

#define CALLBACK(value)                                                                                                \
	"id: w\n" TOP "start: C\n" FUNCTIONS                                                                           \
	"errors:\n- name: bad\n  code: '500'\nevents:\n- name: Done\n  type: t.done\n  source: /t\n" value             \
	"states:\n- name: C\n  type: callback\n  action:\n    functionRef: f\n  eventRef: Done\n  eventDataFilter: "   \
	"{toStateData: '${ .done }'}\n"                                                                                \
	"  timeouts: {eventTimeout: PT1M}\n  onErrors:\n  - errorRef: bad\n    transition: H\n  end: true\n- name: "   \
	"H\n  type: inject\n  data: {h: 1}\n  end: true\n"
#define CALLBACK_KEY "  correlation:\n  - contextAttributeName: ticket\n    contextAttributeValue: '${ .ticket }'\n"

ENGINE_TEST(callback_merges_result_then_event)
{
	world_deploy(w, CALLBACK(""));
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{\"r\":1}", NULL);
	expect_status(w, "i1", "waiting");
	world_event(w, "1", "t.done", "", "{\"d\":1}");
	expect_output(w, "i1", "{\"r\":1,\"done\":{\"d\":1}}");
}

ENGINE_TEST(callback_takes_an_event_that_comes_before_the_result)
{
	world_deploy(w, CALLBACK(""));
	world_start(w, "i1", "w", "{}");
	world_event(w, "1", "t.done", "", "{\"d\":1}");
	expect_status(w, "i1", "running");
	world_result(w, 0, "{\"done\":{\"d\":0,\"r\":1}}", NULL);
	expect_output(w, "i1", "{\"done\":{\"d\":1,\"r\":1}}");
}

ENGINE_TEST(callback_asks_the_value_again_after_the_result)
{
	world_deploy(w, CALLBACK(CALLBACK_KEY));
	world_start(w, "i1", "w", "{}");
	world_event(w, "0", "t.done", "\"ticket\":\"T1\",", "{\"early\":1}");
	world_result(w, 0, "{\"ticket\":\"T1\"}", NULL);
	world_event(w, "1", "t.done", "\"ticket\":\"T2\",", "{}");
	expect_status(w, "i1", "waiting");
	world_event(w, "2", "t.done", "\"ticket\":\"T1\",", "{\"d\":1}");
	expect_output(w, "i1", "{\"ticket\":\"T1\",\"done\":{\"d\":1}}");
}

ENGINE_TEST(callback_subscribes_before_the_action_when_the_value_is_known)
{
	world_deploy(w, CALLBACK(CALLBACK_KEY));
	world_start(w, "i1", "w", "{\"ticket\":\"T1\"}");
	world_event(w, "1", "t.done", "\"ticket\":\"T1\",", "{\"d\":1}");
	world_result(w, 0, "{\"r\":1}", NULL);
	expect_output(w, "i1", "{\"ticket\":\"T1\",\"r\":1,\"done\":{\"d\":1}}");
}

ENGINE_TEST(callback_timeout_leaves_and_cancels_the_action)
{
	world_deploy(w, CALLBACK(""));
	world_start(w, "i1", "w", "{}");
	world_advance(w, 60000);
	cr_expect(world_cancelled(w, 0));
	expect_output(w, "i1", "{}");
}

ENGINE_TEST(callback_whose_action_fails_is_handled)
{
	world_deploy(w, CALLBACK(""));
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, NULL, "{\"status\":500}");
	expect_output(w, "i1", "{\"h\":1}");
	cr_expect_eq(world_timers(w), 0);
	world_event(w, "1", "t.done", "", "{}");
}

/* --- eventRef --- */

#define REF(more)                                                                                                      \
	"id: w\n" TOP "start: O\n" FUNCTIONS                                                                           \
	"errors:\n- name: late\n  code: timeout\nevents:\n- name: Ask\n  type: t.ask\n  source: /w\n  kind: "          \
	"produced\n- name: Reply\n  type: t.reply\n  source: /t\n"                                                     \
	"states:\n- name: O\n  type: operation\n  actions:\n  - name: talk\n    eventRef:\n      produceEventRef: "    \
	"Ask\n      data: '${ .q }'\n" more "  end: true\n"

ENGINE_TEST(event_ref_produces_and_takes_the_reply_as_result)
{
	world_deploy(w, REF("      consumeEventRef: Reply\n      consumeEventTimeout: PT10S\n    actionDataFilter: "
			    "{results: '${ .answer }', toStateData: '${ .a }'}\n"));
	world_start(w, "i1", "w", "{\"q\":\"why\"}");
	jv ev = world_published(w, 0);
	expect_json(sl_json_get(ev, "data"), "\"why\"");
	jv_free(ev);
	expect_status(w, "i1", "waiting");
	world_event(w, "1", "t.reply", "", "{\"answer\":42,\"more\":1}");
	expect_output(w, "i1", "{\"q\":\"why\",\"a\":42}");
	cr_expect_eq(world_timers(w), 0);
}

ENGINE_TEST(event_ref_timeout_is_an_error)
{
	world_deploy(w, REF("      consumeEventRef: Reply\n      consumeEventTimeout: PT10S\n"));
	world_start(w, "i1", "w", "{\"q\":1}");
	world_advance(w, 10000);
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "timeout");
}

ENGINE_TEST(event_ref_without_reply_goes_on)
{
	world_deploy(w, REF("    actionDataFilter: {fromStateData: '${ {q: .z} }'}\n"));
	world_start(w, "i1", "w", "{\"z\":3}");
	jv ev = world_published(w, 0);
	expect_json(sl_json_get(ev, "data"), "3");
	jv_free(ev);
	expect_output(w, "i1", "{\"z\":3}");
}

/* --- other ways in --- */

ENGINE_TEST(event_by_workflowinstanceid_reaches_the_instance)
{
	world_deploy(w, CALLBACK(""));
	world_start(w, "i1", "w", "{}");
	world_start(w, "i2", "w", "{}");
	world_event(w, "1", "t.done", "\"workflowinstanceid\":\"i2\",", "{\"d\":1}");
	world_result(w, 1, "{}", NULL);
	expect_output(w, "i2", "{\"done\":{\"d\":1}}");
	world_result(w, 0, "{}", NULL);
	expect_status(w, "i1", "waiting");
}

ENGINE_TEST(workflows_talk_through_published_events)
{
	world_deploy(w, "id: ping\n" TOP "start: P\nevents:\n- name: Ping\n  type: t.ping\n  source: /w\n  kind: "
					 "produced\n- name: Pong\n  type: t.pong\n  source: /w\n" CORR
			"states:\n- name: P\n  type: inject\n  data: {}\n  transition: {nextState: W, produceEvents: "
			"[{eventRef: Ping, contextAttributes: {orderId: '${ .o }'}}]}\n"
			"- name: W\n  type: event\n  onEvents:\n  - eventRefs: [Pong]\n  end: true\n");
	world_deploy(w, "id: pong\n" TOP "start: S\nevents:\n- name: Ping\n  type: t.ping\n  source: /w\n" CORR
			"- name: Pong\n  type: t.pong\n  source: /w\n  kind: produced\n"
			"states:\n- name: S\n  type: event\n  onEvents:\n  - eventRefs: [Ping]\n  end: {produceEvents: "
			"[{eventRef: Pong, data: {pong: 1}}]}\n");
	world_start(w, "i1", "ping", "{\"o\":\"5\"}");
	expect_output(w, "i1", "{\"o\":\"5\",\"pong\":1}");
	jv ev = world_published(w, 1);
	cr_expect_str_eq(sl_json_str(ev, "orderid"), "5");
	cr_expect_eq(sl_json_int(ev, "sluicehops", 0), 2);
	jv_free(ev);
}

ENGINE_TEST(trigger_loops_are_bounded)
{
	w->eng.limits.hops_max = 5;
	world_deploy(w, "id: w\n" TOP "start: S\nevents:\n- name: A\n  type: t.a\n  source: /t\n- name: Out\n  type: "
				      "t.a\n  source: /t\n  kind: produced\n"
			"states:\n- name: S\n  type: event\n  onEvents:\n  - eventRefs: [A]\n  end: {produceEvents: "
			"[{eventRef: Out}]}\n");
	world_event(w, "1", "t.a", "", "{}");
	cr_expect_leq(w->published_count, 6);
	cr_expect_geq(w->published_count, 4);
}
