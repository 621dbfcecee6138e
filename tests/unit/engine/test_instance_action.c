/* Instances: actions in order and at once, conditions, sleeps, retries, timeouts, foreach, parallel. */
#include "tests/unit/engine/harness.h"

#define HEAD                                                                                                           \
	"id: w\nname: Test\nversion: '1.0.0'\nspecVersion: '0.8'\nstart: A\n"                                          \
	"functions:\n- name: f\n  type: custom\n  operation: POST http://x.test/f\n- name: g\n  type: custom\n  "      \
	"operation: POST http://x.test/g\n"                                                                            \
	"- name: expr\n  type: expression\n  operation: '{n: (.n + 1)}'\n- name: bad\n  type: expression\n  "          \
	"operation: '.a.b.c'\n"                                                                                        \
	"errors:\n- name: not found\n  code: '404'\n- name: down\n  code: '503'\n- name: late\n  code: timeout\n- "    \
	"name: expression\n"                                                                                           \
	"retries:\n- name: twice\n  delay: PT10S\n  increment: PT2S\n  maxAttempts: 3\n- name: once\n  maxAttempts: "  \
	"1\n- name: now\n  maxAttempts: 3\n"                                                                           \
	"states:\n"

ENGINE_TEST(actions_run_in_order_and_see_earlier_results)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n  - functionRef: {refName: "
			     "g, arguments: {a: '${ .a }'}}\n  - functionRef: expr\n  end: true\n");
	world_start(w, "i1", "w", "{\"n\":1}");
	cr_expect_eq(w->action_count, 1);
	world_result(w, 0, "{\"a\":5}", NULL);
	cr_expect_eq(w->action_count, 2);
	expect_json(world_args(w, 1), "{\"a\":5}");
	world_result(w, 1, "{\"b\":6}", NULL);
	expect_output(w, "i1", "{\"n\":2,\"a\":5,\"b\":6}");
}

ENGINE_TEST(late_result_and_result_of_another_attempt_change_nothing)
{
	world_deploy(w,
		HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n  - functionRef: g\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{\"a\":1}", NULL);
	world_result(w, 0, "{\"a\":2}", NULL);
	w->actions[1].attempt = 2;
	world_result(w, 1, "{\"b\":3}", NULL);
	expect_status(w, "i1", "running");
	w->actions[1].attempt = 1;
	world_result(w, 1, "{\"b\":4}", NULL);
	world_result(w, 1, "{\"b\":5}", NULL);
	expect_output(w, "i1", "{\"a\":1,\"b\":4}");
}

ENGINE_TEST(parallel_actions_take_arguments_from_the_start_and_merge_as_they_complete)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actionMode: parallel\n  actions:\n  - functionRef: f\n"
			     "  - functionRef: {refName: g, arguments: {x: '${ .x }'}}\n    sleep: {before: PT5S}\n  - "
			     "functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{\"x\":1}");
	cr_expect_eq(w->action_count, 2);
	world_result(w, 1, "{\"x\":2,\"l\":[\"second\"]}", NULL);
	world_advance(w, 5000);
	cr_assert_eq(w->action_count, 3);
	expect_json(world_args(w, 2), "{\"x\":1}");
	world_result(w, 2, "{\"l\":[\"slept\"]}", NULL);
	world_result(w, 0, "{\"l\":[\"first\"]}", NULL);
	expect_output(w, "i1", "{\"x\":2,\"l\":[\"second\",\"slept\",\"first\"]}");
}

ENGINE_TEST(condition_skips_an_action)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n    condition: '${ .go == "
			     "true }'\n  - functionRef: expr\n    condition: .n == 1\n  end: true\n");
	world_start(w, "i1", "w", "{\"n\":1}");
	expect_output(w, "i1", "{\"n\":2}");
	cr_expect_eq(w->action_count, 0);
}

ENGINE_TEST(condition_that_is_no_boolean_is_an_error)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n    condition: '${ .n }'\n "
			     " end: true\n");
	world_start(w, "i1", "w", "{\"n\":1}");
	expect_error(w, "i1", "expression");
}

ENGINE_TEST(sleeps_before_and_after)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n    sleep: {before: PT10S, "
			     "after: PT20S}\n  - functionRef: g\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_status(w, "i1", "waiting");
	cr_expect_eq(w->action_count, 0);
	world_advance(w, 10000);
	cr_expect_eq(w->action_count, 1);
	world_result(w, 0, "{\"a\":1}", NULL);
	cr_expect_eq(w->action_count, 1);
	world_advance(w, 19999);
	cr_expect_eq(w->action_count, 1);
	world_advance(w, 1);
	cr_expect_eq(w->action_count, 2);
	world_result(w, 1, "{}", NULL);
	expect_output(w, "i1", "{\"a\":1}");
}

#define RETRY                                                                                                          \
	"- name: A\n  type: operation\n  actions:\n  - name: act\n    functionRef: f\n    retryRef: twice\n    "       \
	"retryableErrors: [down]\n    sleep: {before: PT1S}\n"                                                         \
	"  onErrors:\n  - errorRef: down\n    transition: H\n  end: true\n- name: H\n  type: inject\n  data: "         \
	"{handled: true}\n"                                                                                            \
	"  stateDataFilter: {output: '${ . + {code: $WORKFLOW.error.code, detail: $WORKFLOW.error.detail} }'}\n  "     \
	"end: true\n"

ENGINE_TEST(retries_keep_the_action_and_count_attempts)
{
	world_deploy(w, HEAD RETRY);
	world_start(w, "i1", "w", "{\"x\":1}");
	world_advance(w, 1000);
	world_result(w, 0, NULL, "{\"code\":\"503\"}");
	cr_expect_eq(w->action_count, 1);
	world_advance(w, 9999);
	cr_expect_eq(w->action_count, 1);
	world_advance(w, 1);
	cr_assert_eq(w->action_count, 2);
	cr_expect_str_eq(w->actions[0].action, w->actions[1].action);
	cr_expect_eq(w->actions[1].attempt, 2);
	cr_expect_neq(w->actions[1].token, w->actions[0].token);
	world_result(w, 1, NULL, "{\"code\":\"503\"}");
	world_advance(w, 12000);
	cr_assert_eq(w->action_count, 3);
	world_result(w, 2, "{\"y\":2}", NULL);
	expect_output(w, "i1", "{\"x\":1,\"y\":2}");
}

ENGINE_TEST(exhausted_retries_go_to_the_state)
{
	world_deploy(w, HEAD RETRY);
	world_start(w, "i1", "w", "{\"x\":1}");
	world_advance(w, 1000);
	for (int i = 0; i < 3; i++) {
		world_result(w, i, NULL, "{\"code\":\"503\",\"detail\":\"no\"}");
		world_advance(w, 20000);
	}
	cr_expect_eq(w->action_count, 3);
	expect_output(w, "i1", "{\"x\":1,\"handled\":true,\"code\":\"503\",\"detail\":\"no\"}");
}

ENGINE_TEST(unlisted_errors_are_not_retried_and_fault)
{
	world_deploy(w, HEAD RETRY);
	world_start(w, "i1", "w", "{}");
	world_advance(w, 1000);
	world_result(w, 0, NULL, "{\"code\":\"other\",\"status\":500}");
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "other");
	cr_expect_eq(world_timers(w), 0);
}

ENGINE_TEST(max_attempts_one_means_no_retry)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n    retryRef: once\n    "
			     "retryableErrors: [down]\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, NULL, "{\"code\":\"x\",\"status\":503}");
	expect_status(w, "i1", "faulted");
}

ENGINE_TEST(retry_without_delay_comes_at_once)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n    retryRef: now\n    "
			     "retryableErrors: [down]\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, NULL, "{\"status\":503}");
	world_result(w, 1, NULL, "{\"status\":503}");
	cr_expect_eq(w->action_count, 3);
	world_result(w, 2, "{\"ok\":1}", NULL);
	expect_output(w, "i1", "{\"ok\":1}");
}

ENGINE_TEST(auto_retries_double_up_to_the_cap)
{
	world_deploy(w, "autoRetries: true\n" HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: f\n    "
						   "nonRetryableErrors: [not found]\n  end: true\n");
	w->eng.limits.retry_delay_max_ms = 3000;
	world_start(w, "i1", "w", "{}");
	int64_t delays[] = {1000, 2000, 3000, 3000};
	for (int i = 0; i < 4; i++) {
		world_result(w, i, NULL, "{\"code\":\"anything\"}");
		int t = world_next_timer(w);
		cr_assert(t >= 0);
		cr_expect_eq(w->timers[t].due_ms - w->now_ms, delays[i]);
		world_advance(w, delays[i]);
		cr_assert_eq(w->action_count, i + 2);
	}
	world_result(w, 4, NULL, "{\"status\":404}");
	expect_status(w, "i1", "faulted");
}

ENGINE_TEST(auto_retries_do_not_repeat_an_expression_error)
{
	world_deploy(w, "autoRetries: true\n" HEAD
			"- name: A\n  type: operation\n  actions:\n  - functionRef: bad\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":1}");
	expect_error(w, "i1", "expression");
}

ENGINE_TEST(expression_errors_are_caught_by_name)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: expr\n  - functionRef: bad\n  "
			     "onErrors:\n  - errorRef: expression\n    transition: H\n  end: true\n"
			     "- name: H\n  type: inject\n  data: {h: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":1,\"n\":1}");
	expect_output(w, "i1", "{\"a\":1,\"n\":2,\"h\":1}");
}

ENGINE_TEST(action_timeout_cancels_and_raises)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  timeouts: {actionExecTimeout: PT5S}\n  actions:\n  - "
			     "functionRef: f\n    sleep: {before: PT100S}\n"
			     "  onErrors:\n  - errorRef: late\n    end: true\n  end: true\n");
	world_start(w, "i1", "w", "{\"x\":1}");
	world_advance(w, 100000);
	cr_assert_eq(w->action_count, 1);
	cr_expect_eq(w->actions[0].deadline_ms, w->now_ms + 5000);
	world_advance(w, 5000);
	cr_expect(world_cancelled(w, 0));
	expect_output(w, "i1", "{\"x\":1}");
	world_result(w, 0, "{\"y\":1}", NULL);
	expect_output(w, "i1", "{\"x\":1}");
}

ENGINE_TEST(action_timeout_counts_each_attempt)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  timeouts: {actionExecTimeout: PT5S}\n  actions:\n  - "
			     "functionRef: f\n    retryRef: twice\n    retryableErrors: [late]\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_advance(w, 5000);
	cr_expect(world_cancelled(w, 0));
	world_advance(w, 10000);
	cr_assert_eq(w->action_count, 2);
	cr_expect_eq(w->actions[1].deadline_ms, w->now_ms + 5000);
	world_advance(w, 4000);
	world_result(w, 1, "{\"ok\":1}", NULL);
	expect_output(w, "i1", "{\"ok\":1}");
	cr_expect_eq(world_timers(w), 0);
}

ENGINE_TEST(async_call_is_started_and_forgotten)
{
	world_deploy(w, HEAD "- name: A\n  type: operation\n  actions:\n  - functionRef: {refName: f, invoke: async}\n "
			     " end: true\n");
	world_start(w, "i1", "w", "{\"x\":1}");
	cr_expect_eq(w->action_count, 1);
	cr_expect_eq(w->actions[0].token, 0);
	expect_output(w, "i1", "{\"x\":1}");
	cr_expect_not(world_cancelled(w, 0));
}

/* --- foreach --- */

#define EACH                                                                                                           \
	"- name: A\n  type: foreach\n  inputCollection: '${ .l }'\n  iterationParam: it\n  outputCollection: '${ "     \
	".out }'\n"

ENGINE_TEST(foreach_collects_in_input_order)
{
	world_deploy(w, HEAD EACH "  actions:\n  - functionRef: {refName: f, arguments: {v: '${ $it }', o: '${ .it }', "
				  "x: '${ .x }'}}\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[10,20,30],\"x\":1}");
	cr_assert_eq(w->action_count, 3);
	expect_json(world_args(w, 1), "{\"v\":20,\"o\":20,\"x\":1}");
	world_result(w, 2, "{\"r\":3}", NULL);
	world_result(w, 0, "{\"r\":1}", NULL);
	world_result(w, 1, "{\"r\":2}", NULL);
	expect_output(w, "i1", "{\"l\":[10,20,30],\"x\":1,\"out\":[{\"r\":1},{\"r\":2},{\"r\":3}]}");
}

ENGINE_TEST(foreach_merges_the_results_of_an_iteration_and_extends)
{
	world_deploy(w, HEAD EACH "  mode: sequential\n  actions:\n  - functionRef: f\n  - functionRef: {refName: g, "
				  "arguments: {a: '${ .a }'}}\n"
				  "  - functionRef: f\n    actionDataFilter: {useResults: false}\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1,2],\"out\":[\"old\"]}");
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(w->action_count, 3 * i + 1);
		world_result(w, 3 * i, "{\"a\":1}", NULL);
		expect_json(world_args(w, 3 * i + 1), "{\"a\":1}");
		world_result(w, 3 * i + 1, "{\"b\":2}", NULL);
		world_result(w, 3 * i + 2, "{\"c\":3}", NULL);
	}
	expect_output(w, "i1", "{\"l\":[1,2],\"out\":[\"old\",{\"a\":1,\"b\":2},{\"a\":1,\"b\":2}]}");
}

ENGINE_TEST(foreach_without_output_discards)
{
	world_deploy(w, HEAD "- name: A\n  type: foreach\n  inputCollection: '${ .l }'\n  actions:\n  - functionRef: "
			     "{refName: f, arguments: {i: '${ $item }'}}\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1]}");
	expect_json(world_args(w, 0), "{\"i\":1}");
	world_result(w, 0, "{\"a\":1}", NULL);
	expect_output(w, "i1", "{\"l\":[1]}");
}

ENGINE_TEST(foreach_runs_whole_batches)
{
	world_deploy(w, HEAD EACH "  batchSize: 2\n  actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1,2,3,4,5]}");
	cr_expect_eq(w->action_count, 2);
	world_result(w, 1, "{\"n\":2}", NULL);
	cr_expect_eq(w->action_count, 2);
	world_result(w, 0, "{\"n\":1}", NULL);
	cr_expect_eq(w->action_count, 4);
	world_result(w, 2, "{\"n\":3}", NULL);
	world_result(w, 3, "{\"n\":4}", NULL);
	cr_expect_eq(w->action_count, 5);
	world_result(w, 4, "{\"n\":5}", NULL);
	expect_output(w, "i1", "{\"l\":[1,2,3,4,5],\"out\":[{\"n\":1},{\"n\":2},{\"n\":3},{\"n\":4},{\"n\":5}]}");
}

ENGINE_TEST(foreach_bounds_iterations_in_flight)
{
	w->eng.limits.in_flight_max = 3;
	world_deploy(w, HEAD EACH "  actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1,2,3,4,5]}");
	cr_expect_eq(w->action_count, 3);
	world_result(w, 1, "1", NULL);
	cr_expect_eq(w->action_count, 4);
	for (int i = 0; i < 5; i++)
		if (i != 1)
			world_result(w, i, "1", NULL);
	expect_output(w, "i1", "{\"l\":[1,2,3,4,5],\"out\":[1,1,1,1,1]}");
}

ENGINE_TEST(foreach_of_expressions_needs_no_storage_of_results)
{
	world_deploy(w, HEAD EACH "  mode: sequential\n  actions:\n  - functionRef: {refName: expr, arguments: {n: '${ "
				  "$it }'}}\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1,2,3]}");
	expect_output(w, "i1", "{\"l\":[1,2,3],\"out\":[{\"n\":2},{\"n\":3},{\"n\":4}]}");
}

ENGINE_TEST(foreach_over_no_array_is_an_error)
{
	world_deploy(w, HEAD EACH "  actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_error(w, "i1", "data");
	world_start(w, "i2", "w", "{\"l\":[]}");
	expect_output(w, "i2", "{\"l\":[],\"out\":[]}");
}

ENGINE_TEST(failing_iteration_cancels_the_others)
{
	world_deploy(w, HEAD EACH
		"  actions:\n  - functionRef: f\n  onErrors:\n  - errorRef: not found\n    end: true\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1,2,3]}");
	world_result(w, 0, "{\"r\":1}", NULL);
	world_result(w, 1, NULL, "{\"status\":404}");
	cr_expect(world_cancelled(w, 2));
	expect_output(w, "i1", "{\"l\":[1,2,3]}");
}

/* One result may write its own slot and what the iteration has, but nothing that grows. */
ENGINE_TEST(foreach_result_writes_one_slot)
{
	struct sl_field *fields;
	int count;
	bool gone;
	world_deploy(w, HEAD EACH "  actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[0,1,2,3,4,5,6,7,8,9]}");
	for (int i = 0; i < 9; i++) {
		struct world_actor *a = world_actor(w, "i1");
		struct sl_effects fx;
		struct sl_msg msg;
		struct sl_pos pos = {0, ++w->input_offset, ""};
		size_t bytes = 0;
		sl_effects_init(&fx, &w->arena);
		sl_msg_init(&msg, SL_MSG_RESULT);
		msg.to = "i1";
		msg.token = w->actions[i].token;
		msg.attempt = 1;
		msg.data = json("{\"r\":1}");
		cr_assert_eq(sl_step(&w->eng, a->actor, &msg, &pos, w->now_ms, &fx), 0);
		sl_actor_changes(a->actor, &w->arena, &fields, &count, &gone);
		for (int k = 0; k < count; k++) {
			cr_expect_neq(fields[k].name[0], 'd', "%s is written", fields[k].name);
			bytes += fields[k].value.len;
		}
		cr_expect_leq(bytes, 700);
		world_commit(w, a);
		sl_msg_clear(&msg);
		sl_effects_release(&fx);
	}
	world_result(w, 9, "{\"r\":1}", NULL);
	expect_status(w, "i1", "completed");
}

Test(engine, foreach_over_ten_thousand_items_stays_bounded)
{
	struct world *w = world_new(false);
	struct sl_buf input;
	world_deploy(w, HEAD EACH
		"  actions:\n  - functionRef: f\n  - functionRef: {refName: expr, arguments: {n: 1}}\n  end: true\n");
	sl_buf_init(&input);
	sl_buf_adds(&input, "{\"l\":[0");
	for (int i = 1; i < 10000; i++)
		sl_buf_printf(&input, ",%d", i);
	sl_buf_adds(&input, "]}");
	world_start(w, "i1", "w", input.data);
	cr_expect_eq(w->action_count, 1000);
	for (int i = 0; i < 10000; i++) {
		world_result(w, i, "{\"r\":1}", NULL);
		if (i % 100 == 0)
			cr_assert_leq(w->action_count - i, 1001);
	}
	expect_status(w, "i1", "completed");
	jv out = sl_json_get(world_instance(w, "i1")->output, "out");
	cr_expect_eq(jv_array_length(out), 10000);
	struct world_actor *a = world_actor(w, "i1");
	sl_map_each(&a->fields, e) cr_assert(e->key[1] != ':' || e->key[0] == 't', "left behind: %s", e->key);
	sl_buf_release(&input);
	world_free(w);
}

/* --- parallel --- */

#define FORK "- name: A\n  type: parallel\n"
#define BRANCHES                                                                                                       \
	"  branches:\n  - name: B1\n    actions:\n    - functionRef: f\n  - name: B2\n    actions:\n    - "            \
	"functionRef: g\n    - functionRef: {refName: f, arguments: {seen: '${ .a }'}}\n"                              \
	"  - name: B3\n    actions:\n    - functionRef: f\n  end: true\n"

ENGINE_TEST(branches_work_on_copies_and_merge_changes_in_order)
{
	world_deploy(w, HEAD FORK BRANCHES);
	world_start(w, "i1", "w", "{\"a\":0,\"l\":[1]}");
	cr_assert_eq(w->action_count, 3);
	world_result(w, 2, "{\"a\":3,\"l\":[3]}", NULL);
	world_result(w, 0, "{\"a\":1,\"l\":[9]}", NULL);
	world_result(w, 1, "{\"b\":2}", NULL);
	cr_assert_eq(w->action_count, 4);
	expect_json(world_args(w, 3), "{\"seen\":0}");
	expect_status(w, "i1", "running");
	world_result(w, 3, "{\"c\":2}", NULL);
	expect_output(w, "i1", "{\"a\":3,\"b\":2,\"c\":2,\"l\":[1,9,3]}");
}

ENGINE_TEST(at_least_cancels_the_rest_and_drops_its_data)
{
	world_deploy(w, HEAD FORK "  completionType: atLeast\n  numCompleted: 2\n" BRANCHES);
	world_start(w, "i1", "w", "{}");
	world_result(w, 1, "{\"half\":1}", NULL);
	world_result(w, 2, "{\"c\":3}", NULL);
	world_result(w, 0, "{\"a\":1}", NULL);
	expect_output(w, "i1", "{\"a\":1,\"c\":3}");
	cr_expect(world_cancelled(w, 3));
}

ENGINE_TEST(at_least_survives_a_failing_branch_that_nobody_handles)
{
	world_deploy(w, HEAD FORK "  completionType: atLeast\n  numCompleted: 2\n  onErrors:\n  - errorRef: down\n    "
				  "end: true\n" BRANCHES);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, NULL, "{\"status\":404}");
	expect_status(w, "i1", "running");
	world_result(w, 2, "{\"c\":3}", NULL);
	world_result(w, 1, "{}", NULL);
	world_result(w, 3, "{\"d\":4}", NULL);
	expect_output(w, "i1", "{\"c\":3,\"d\":4}");
}

ENGINE_TEST(at_least_that_cannot_be_reached_fails)
{
	world_deploy(w, HEAD FORK "  completionType: atLeast\n  numCompleted: 2\n" BRANCHES);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, NULL, "{\"status\":404}");
	world_result(w, 1, NULL, "{\"status\":500,\"code\":\"boom\"}");
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "boom");
	cr_expect(world_cancelled(w, 2));
}

ENGINE_TEST(handled_error_of_a_branch_leaves_the_state_at_once)
{
	world_deploy(
		w, HEAD FORK "  completionType: atLeast\n  numCompleted: 1\n  onErrors:\n  - errorRef: down\n    "
			     "transition: H\n" BRANCHES "- name: H\n  type: inject\n  data: {h: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{\"x\":1}");
	world_result(w, 1, NULL, "{\"status\":503}");
	expect_output(w, "i1", "{\"x\":1,\"h\":1}");
	cr_expect(world_cancelled(w, 0) && world_cancelled(w, 2));
}

ENGINE_TEST(branch_timeout_is_an_error_of_the_state)
{
	world_deploy(w, HEAD FORK
		"  timeouts: {branchExecTimeout: PT5S}\n  onErrors:\n  - errorRef: late\n    end: true\n" BRANCHES);
	world_start(w, "i1", "w", "{\"x\":1}");
	world_result(w, 0, "{\"a\":1}", NULL);
	world_advance(w, 5000);
	cr_expect(world_cancelled(w, 1) && world_cancelled(w, 2));
	expect_output(w, "i1", "{\"x\":1}");
	cr_expect_eq(world_timers(w), 0);
}
