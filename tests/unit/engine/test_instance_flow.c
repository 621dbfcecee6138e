/* Instances: transitions, switch, sleep, errors, timeouts of states and workflows, ends, limits. */
#include "tests/unit/engine/harness.h"

#define HEAD                                                                                                           \
	"id: w\nname: Test\nversion: '1.0.0'\nspecVersion: '0.8'\nstart: A\n"                                          \
	"functions:\n- name: f\n  type: custom\n  operation: POST http://x.test/f\n- name: inc\n  type: expression\n " \
	" operation: '{n: (.n + 1)}'\n"                                                                                \
	"errors:\n- name: late\n  code: timeout\n- name: bad\n  code: '500'\n"                                         \
	"events:\n- name: Out\n  type: t.out\n  source: /out\n  kind: produced\n- name: Out2\n  type: t.out2\n  "      \
	"source: /out\n  kind: produced\n"

ENGINE_TEST(switch_takes_the_first_condition_that_holds)
{
	world_deploy(w, HEAD "states:\n- name: A\n  type: switch\n  dataConditions:\n  - condition: '${ .n > 10 }'\n   "
			     " transition: Big\n  - condition: .n > 5\n    end: true\n"
			     "  defaultCondition: {transition: Small}\n"
			     "- name: Big\n  type: inject\n  data: {r: big}\n  end: true\n- name: Small\n  type: "
			     "inject\n  data: {r: small}\n  end: true\n");
	world_start(w, "i1", "w", "{\"n\":11}");
	world_start(w, "i2", "w", "{\"n\":6}");
	world_start(w, "i3", "w", "{\"n\":1}");
	expect_output(w, "i1", "{\"n\":11,\"r\":\"big\"}");
	expect_output(w, "i2", "{\"n\":6}");
	expect_output(w, "i3", "{\"n\":1,\"r\":\"small\"}");
}

ENGINE_TEST(sleep_waits_and_goes_on)
{
	world_deploy(w, HEAD "states:\n- name: A\n  type: sleep\n  duration: PT1H\n  transition: B\n- name: B\n  type: "
			     "inject\n  data: {b: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_status(w, "i1", "waiting");
	world_advance(w, 3599999);
	expect_status(w, "i1", "waiting");
	world_advance(w, 1);
	expect_output(w, "i1", "{\"b\":1}");
	struct sl_summary summary;
	sl_actor_summary(world_actor(w, "i1")->actor, &summary);
	cr_expect_eq(summary.created_ms, START_MS);
	cr_expect_eq(summary.updated_ms, START_MS + 3600000);
	cr_expect_eq(summary.expires_ms, summary.updated_ms + w->eng.limits.retention_ms);
}

#define LOOP                                                                                                           \
	"states:\n- name: A\n  type: operation\n  actions:\n  - functionRef: inc\n  transition: B\n- name: B\n  "      \
	"type: switch\n  dataConditions:\n"                                                                            \
	"  - condition: .n < 300\n    transition: A\n  defaultCondition: {end: true}\n"

ENGINE_TEST(loops_run_and_the_last_transitions_are_kept)
{
	world_deploy(w, HEAD LOOP);
	world_start(w, "i1", "w", "{\"n\":0}");
	expect_output(w, "i1", "{\"n\":300}");
	struct world_actor *a = world_actor(w, "i1");
	int kept = 0;
	sl_map_each(&a->fields, e) kept += strncmp(e->key, "t:", 2) == 0;
	cr_expect_eq(kept, 50);
}

ENGINE_TEST(endless_loop_is_bounded)
{
	w->eng.limits.steps_max = 500;
	world_deploy(w, HEAD "states:\n- name: A\n  type: inject\n  data: {}\n  transition: A\n");
	world_start(w, "i1", "w", "{}");
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "too-big");
}

ENGINE_TEST(endless_loop_of_an_error_handler_is_bounded)
{
	w->eng.limits.steps_max = 500;
	world_deploy(w, "id: w\nversion: '1.0.0'\nspecVersion: '0.8'\nname: T\nstart: A\nerrors:\n- name: expression\n"
			"states:\n- name: A\n  type: foreach\n  inputCollection: '${ error(\"x\") }'\n  actions: []\n"
			"  onErrors:\n  - errorRef: expression\n    transition: A\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "too-big");
}

ENGINE_TEST(handled_error_keeps_the_data_and_tells_the_error)
{
	world_deploy(w, HEAD "states:\n- name: A\n  type: operation\n  stateDataFilter: {output: '${ {lost: 1} }'}\n  "
			     "actions:\n  - functionRef: inc\n  - functionRef: f\n  onErrors:\n  - errorRef: bad\n    "
			     "transition:\n      nextState: H\n"
			     "      produceEvents:\n      - eventRef: Out\n        data: '${ {n: .n, code: "
			     "$WORKFLOW.error.status} }'\n  end: true\n"
			     "- name: H\n  type: inject\n  data: {h: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{\"n\":1}");
	world_result(w, 0, NULL, "{\"status\":500,\"code\":\"e\"}");
	expect_output(w, "i1", "{\"n\":2,\"h\":1}");
	jv ev = world_published(w, 0);
	expect_json(sl_json_get(ev, "data"), "{\"n\":2,\"code\":500}");
	jv_free(ev);
}

ENGINE_TEST(produced_events_carry_what_the_rulings_say)
{
	world_deploy(w, HEAD
		"states:\n- name: A\n  type: inject\n  data: {a: 1}\n  end:\n    produceEvents:\n    - eventRef: Out\n "
		"     data: '${ .a }'\n      contextAttributes: {BuyerId: '${ .b }', n: '7'}\n    - eventRef: Out2\n");
	world_start(w, "i1", "w", "{\"b\":\"me\"}");
	expect_output(w, "i1", "{\"a\":1,\"b\":\"me\"}");
	cr_assert_eq(w->published_count, 2);
	jv ev = world_published(w, 0), other = world_published(w, 1);
	cr_expect_str_eq(sl_json_str(ev, "type"), "t.out");
	cr_expect_str_eq(sl_json_str(ev, "source"), "/out");
	cr_expect_str_eq(sl_json_str(ev, "subject"), "i1");
	cr_expect_str_eq(sl_json_str(ev, "buyerid"), "me");
	cr_expect_str_eq(sl_json_str(ev, "n"), "7");
	cr_expect_str_eq(sl_json_str(ev, "originworkflowid"), "w");
	cr_expect_str_eq(sl_json_str(ev, "origininstanceid"), "i1");
	cr_expect_str_eq(sl_json_str(ev, "time"), "2024-01-01T00:00:00Z");
	cr_expect_eq(sl_json_int(ev, "sluicehops", 0), 1);
	cr_expect_null(sl_json_str(ev, "workflowinstanceid"));
	expect_json(sl_json_get(ev, "data"), "1");
	cr_expect_str_eq(sl_json_str(other, "type"), "t.out2");
	expect_json(sl_json_get(other, "data"), "{\"a\":1,\"b\":\"me\"}");
	cr_expect(strcmp(sl_json_str(ev, "id"), sl_json_str(other, "id")) != 0);
	cr_expect_str_eq(sl_json_str(ev, "id"), w->published[0].id);
	jv_free(ev);
	jv_free(other);
}

ENGINE_TEST(state_timeout_stops_the_state)
{
	world_deploy(w, HEAD
		"states:\n- name: A\n  type: operation\n  timeouts: {stateExecTimeout: PT10S}\n  actions:\n  - "
		"functionRef: f\n  - functionRef: f\n  onErrors:\n  - errorRef: late\n    transition: H\n  end: true\n"
		"- name: H\n  type: inject\n  data: {h: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_advance(w, 9000);
	world_result(w, 0, "{\"a\":1}", NULL);
	world_advance(w, 1000);
	cr_expect(world_cancelled(w, 1));
	expect_output(w, "i1", "{\"a\":1,\"h\":1}");
}

ENGINE_TEST(state_timeout_unhandled_faults)
{
	world_deploy(w, HEAD "states:\n- name: A\n  type: operation\n  timeouts: {stateExecTimeout: PT10S}\n  "
			     "actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_advance(w, 10000);
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "timeout");
	cr_expect_eq(sl_json_int(world_instance(w, "i1")->error, "status", 0), 408);
	cr_expect(world_cancelled(w, 0));
}

ENGINE_TEST(workflow_timeout_lets_the_running_state_finish)
{
	world_deploy(
		w, HEAD "timeouts: {workflowExecTimeout: PT10S}\nstates:\n- name: A\n  type: operation\n  actions:\n  "
			"- functionRef: f\n  transition: B\n- name: B\n  type: inject\n  data: {b: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_advance(w, 10000);
	expect_status(w, "i1", "running");
	world_result(w, 0, "{}", NULL);
	expect_status(w, "i1", "cancelled");
	expect_error(w, "i1", "timeout");
}

ENGINE_TEST(workflow_timeout_ends_a_waiting_state)
{
	world_deploy(w, HEAD "timeouts: {workflowExecTimeout: PT10S}\nstates:\n- name: A\n  type: sleep\n  duration: "
			     "PT1H\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_advance(w, 10000);
	expect_status(w, "i1", "cancelled");
	cr_expect_eq(world_timers(w), 0);
}

/* runBefore is not lowered yet; the engine knows it already. */
ENGINE_TEST(workflow_timeout_interrupts_and_runs_before)
{
	struct sl_plan *plan = world_compile(w,
		HEAD "timeouts:\n  workflowExecTimeout: {duration: PT10S, interrupt: true}\nstates:\n- name: A\n  "
		     "type: operation\n  actions:\n  - functionRef: f\n  end: true\n"
		     "- name: R\n  type: operation\n  actions:\n  - functionRef: f\n  transition: S\n- name: S\n  "
		     "type: inject\n  data: {}\n  end: true\n");
	plan->timeouts.run_before = 1;
	world_deploy_plan(w, plan);
	world_start(w, "i1", "w", "{}");
	world_advance(w, 10000);
	cr_expect(world_cancelled(w, 0));
	cr_assert_eq(w->action_count, 2);
	expect_status(w, "i1", "running");
	world_result(w, 1, "{}", NULL);
	expect_status(w, "i1", "cancelled");
	expect_error(w, "i1", "timeout");
}

ENGINE_TEST(workflow_that_ends_in_time_cancels_its_timer)
{
	world_deploy(w, HEAD "timeouts: {workflowExecTimeout: PT10S}\nstates:\n- name: A\n  type: operation\n  "
			     "actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	cr_expect_eq(world_timers(w), 1);
	world_result(w, 0, "{}", NULL);
	expect_status(w, "i1", "completed");
	cr_expect_eq(world_timers(w), 0);
}

ENGINE_TEST(data_over_the_limit_fault_the_instance_and_go)
{
	w->eng.limits.state_bytes_max = 200;
	world_deploy(w, HEAD "states:\n- name: A\n  type: operation\n  actions:\n  - functionRef: f\n  - functionRef: "
			     "f\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_result(w, 0,
		"{\"a\":"
		"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxx\"}",
		NULL);
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "too-big");
	cr_expect(world_cancelled(w, 1));
	cr_expect_null(sl_map_get(&world_actor(w, "i1")->fields, "d:0"));
	world_command(w, SL_MSG_RETRY, "i1");
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "no-data");
}
