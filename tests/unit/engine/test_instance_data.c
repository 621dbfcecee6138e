/* Instances: inject, filters, merging, expression functions, variables. */
#include "tests/unit/engine/harness.h"

#define HEAD "id: w\nname: Test\nversion: '1.0.0'\nspecVersion: '0.8'\n"

ENGINE_TEST(inject_merges_and_completes)
{
	world_deploy(w,
		HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {result: Hello, n: {a: 1}}\n  end: true\n");
	world_start(w, "i1", "w", "{\"n\":{\"b\":2},\"x\":1}");
	expect_output(w, "i1", "{\"n\":{\"a\":1,\"b\":2},\"x\":1,\"result\":\"Hello\"}");
	cr_expect_eq(w->timer_count, 0);
	const struct sl_msg *answer = world_last(w, SL_MSG_ANSWER);
	cr_assert(answer && answer->ok);
	cr_expect_str_eq(answer->command_id, "start-i1");
}

ENGINE_TEST(no_input_is_an_empty_object)
{
	world_deploy(w, HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {a: 1}\n  end: true\n");
	world_start(w, "i1", "w", NULL);
	world_start(w, "i2", "w", "null");
	expect_output(w, "i1", "{\"a\":1}");
	expect_output(w, "i2", "{\"a\":1}");
}

ENGINE_TEST(state_filters_apply_before_and_after)
{
	world_deploy(w, HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {z: 9}\n"
			     "  stateDataFilter: {input: '${ {a: .in.a} }', output: '${ {all: .} }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"in\":{\"a\":1,\"b\":2},\"other\":3}");
	expect_output(w, "i1", "{\"all\":{\"a\":1,\"z\":9}}");
}

ENGINE_TEST(filter_that_selects_nothing_filters_nothing)
{
	world_deploy(w, HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {z: 9}\n"
			     "  stateDataFilter: {input: '${ .missing }', output: '${ empty }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":1}");
	expect_output(w, "i1", "{\"a\":1,\"z\":9}");
}

ENGINE_TEST(output_may_be_a_scalar_and_meet_a_merge)
{
	world_deploy(w, HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {z: 9}\n"
			     "  stateDataFilter: {output: '${ \"text\" }'}\n  transition: B\n"
			     "- name: B\n  type: inject\n  data: {b: 1}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_output(w, "i1", "{\"b\":1}");
}

ENGINE_TEST(increment_function_of_the_text)
{
	world_deploy(w, HEAD "start: I\nfunctions:\n- name: Increment Count Function\n  type: expression\n  operation: "
			     "'.count += 1 | .count'\n"
			     "states:\n- name: I\n  type: inject\n  data: {count: 0}\n  transition: C\n"
			     "- name: C\n  type: operation\n  actions:\n  - functionRef: Increment Count Function\n"
			     "    actionDataFilter: {toStateData: '${ .count }'}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_output(w, "i1", "{\"count\":1}");
	cr_expect_eq(w->action_count, 0);
}

#define CALL_HEAD                                                                                                      \
	HEAD "functions:\n- name: f\n  type: custom\n  operation: POST http://x.test/f\n- name: g\n  type: custom\n  " \
	     "operation: POST http://x.test/g\n"

ENGINE_TEST(results_are_filtered_and_merged_as_in_the_text)
{
	world_deploy(w, CALL_HEAD "start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - functionRef: f\n"
				  "    actionDataFilter: {results: '${ [ .breads[0], .pasta[1] ] }', toStateData: '${ "
				  ".itemsToBuyAtStore }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"itemsToBuyAtStore\":[]}");
	expect_status(w, "i1", "running");
	world_result(w, 0,
		"{\"breads\":[\"baguette\",\"brioche\",\"rye\"],\"pasta\":[\"penne\",\"spaghetti\",\"ravioli\"]}",
		NULL);
	expect_output(w, "i1", "{\"itemsToBuyAtStore\":[\"baguette\",\"spaghetti\"]}");
}

ENGINE_TEST(arrays_keep_what_is_there_and_append_unseen)
{
	world_deploy(w, CALL_HEAD
		"start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{\"l\":[1,1,{\"a\":1}],\"s\":\"x\"}");
	world_result(w, 0, "{\"l\":[{\"a\":1.0},2,1],\"s\":{\"now\":\"object\"}}", NULL);
	expect_output(w, "i1", "{\"l\":[1,1,{\"a\":1},2],\"s\":{\"now\":\"object\"}}");
}

ENGINE_TEST(result_that_is_no_object_gets_a_key)
{
	world_deploy(w, CALL_HEAD
		"start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - name: Ask\n    functionRef: f\n"
		"  - functionRef: g\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "[1]", NULL);
	world_result(w, 1, "\"text\"", NULL);
	expect_output(w, "i1", "{\"Ask-output\":[1],\"response\":\"text\"}");
}

ENGINE_TEST(use_results_false_merges_nothing)
{
	world_deploy(w, CALL_HEAD "start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - functionRef: f\n"
				  "    actionDataFilter: {useResults: false, toStateData: '${ .x }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":1}");
	world_result(w, 0, "{\"b\":1}", NULL);
	expect_output(w, "i1", "{\"a\":1}");
}

ENGINE_TEST(arguments_see_from_state_data)
{
	world_deploy(w, CALL_HEAD
		"start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - functionRef: {refName: f, arguments: "
		"{who: '${ .name }', "
		"text: 'Hello ${ .name }!', n: 1, w: '${ $WORKFLOW.state }', id: '${ $WORKFLOW.instanceId }'}}\n"
		"    actionDataFilter: {fromStateData: '${ .customer }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"customer\":{\"name\":\"Ann\"}}");
	expect_json(world_args(w, 0), "{\"who\":\"Ann\",\"text\":\"Hello Ann!\",\"n\":1,\"w\":\"A\",\"id\":\"i1\"}");
	cr_expect_str_eq(w->actions[0].function, "f");
	cr_expect_eq(w->actions[0].attempt, 1);
}

ENGINE_TEST(no_arguments_are_an_empty_object)
{
	world_deploy(w, CALL_HEAD
		"start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - functionRef: f\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":1}");
	expect_json(world_args(w, 0), "{}");
}

ENGINE_TEST(to_state_data_takes_any_path)
{
	world_deploy(w, CALL_HEAD "start: A\nstates:\n- name: A\n  type: operation\n  actions:\n  - functionRef: f\n"
				  "    actionDataFilter: {toStateData: '${ .a[1] | .[\"x y\"] }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":[0]}");
	world_result(w, 0, "5", NULL);
	expect_output(w, "i1", "{\"a\":[0,{\"x y\":5}]}");
}

ENGINE_TEST(expression_error_faults_and_names_the_place)
{
	world_deploy(w, HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {}\n  stateDataFilter: {output: "
			     "'${ .a.b.c }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":1}");
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", "expression");
	jv error = world_instance(w, "i1")->error;
	cr_expect_eq(sl_json_int(error, "status", 0), 400);
	cr_expect_str_eq(sl_json_str(error, "instance"), "/states/0");
}

ENGINE_TEST(constants_and_workflow_variables)
{
	world_deploy(w, HEAD "start: A\nconstants: {Limit: 5}\nstates:\n- name: A\n  type: inject\n  data: {}\n"
			     "  stateDataFilter: {output: '${ {l: $CONST.Limit, w: $WORKFLOW.id, n: $WORKFLOW.name, v: "
			     "$WORKFLOW.version, t: $WORKFLOW.startTime} }'}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	expect_output(w, "i1", "{\"l\":5,\"w\":\"w\",\"n\":\"Test\",\"v\":\"1.0.0\",\"t\":\"2024-01-01T00:00:00Z\"}");
}

ENGINE_TEST(several_results_where_one_is_needed_are_an_error)
{
	world_deploy(w, HEAD "start: A\nstates:\n- name: A\n  type: inject\n  data: {}\n  stateDataFilter: {output: "
			     "'${ .a[] }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"a\":[1,2]}");
	expect_error(w, "i1", "expression");
}

ENGINE_TEST(secret_arguments_travel_as_data_and_variables)
{
	world_deploy(w, CALL_HEAD "start: A\nsecrets: [KEY]\nstates:\n- name: A\n  type: operation\n  actions:\n"
				  "  - functionRef: {refName: f, arguments: {key: '${ $SECRETS.KEY }', a: '${ .a }'}}\n"
				  "    actionDataFilter: {fromStateData: '${ {a: .b} }'}\n  end: true\n");
	world_start(w, "i1", "w", "{\"b\":7}");
	expect_json(world_args(w, 0), "{\"a\":7}");
	cr_assert(jv_is_valid(w->actions[0].vars));
	jv workflow = sl_json_get(w->actions[0].vars, "WORKFLOW");
	cr_expect_str_eq(sl_json_str(workflow, "state"), "A");
	jv_free(workflow);
	cr_expect(w->actions[0].node && sl_plan_find(world_instance(w, "i1")->plan, w->actions[0].node));
}
