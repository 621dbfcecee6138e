/* Instances: commands, lifecycle, retry of what faulted, storage. */
#include "tests/unit/engine/harness.h"

#define TOP "version: '1.0.0'\nspecVersion: '0.8'\nname: Test\n"
#define FUNCTIONS "functions:\n- name: f\n  type: custom\n  operation: POST http://x.test/f\n"
#define CORR "  correlation:\n  - contextAttributeName: orderId\n"
#define ORDER "\"orderid\":\"7\","
#define CALLS                                                                                                          \
	"id: w\n" TOP "start: A\n" FUNCTIONS                                                                           \
	"states:\n- name: A\n  type: operation\n  timeouts: {actionExecTimeout: PT1H}\n  actions:\n  - functionRef: "  \
	"f\n  - functionRef: f\n  end: true\n"

ENGINE_TEST(cancel_stops_everything)
{
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_command(w, SL_MSG_CANCEL, "i1");
	expect_status(w, "i1", "cancelled");
	expect_error(w, "i1", "cancelled");
	cr_expect(world_cancelled(w, 0));
	cr_expect_eq(world_timers(w), 0);
	cr_expect(world_last(w, SL_MSG_ANSWER)->ok);
	world_result(w, 0, "{}", NULL);
	world_command(w, SL_MSG_CANCEL, "i1");
	cr_expect_not(world_last(w, SL_MSG_ANSWER)->ok);
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "ended");
	world_command(w, SL_MSG_CANCEL, "nobody");
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "unknown-instance");
}

static void command_with_id(struct world *w, enum sl_msg_kind kind, const char *id)
{
	struct sl_msg msg;
	sl_msg_init(&msg, kind);
	msg.to = "i1";
	msg.id = id;
	msg.command_id = id;
	world_send(w, &msg);
}

/* R6: a crash of who routes delivers the same record of sluice.commands again. */
ENGINE_TEST(command_that_is_routed_again_is_neither_done_nor_answered_again)
{
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, NULL, "{\"code\":\"500\"}");
	expect_status(w, "i1", "faulted");
	command_with_id(w, SL_MSG_RETRY, "r");
	expect_status(w, "i1", "running");
	world_result(w, 1, NULL, "{\"code\":\"500\"}");
	expect_status(w, "i1", "faulted");
	int answers = world_count(w, SL_MSG_ANSWER);
	command_with_id(w, SL_MSG_RETRY, "r");
	expect_status(w, "i1", "faulted");
	cr_expect_eq(world_count(w, SL_MSG_ANSWER), answers);
	command_with_id(w, SL_MSG_RETRY, "another");
	expect_status(w, "i1", "running");
	command_with_id(w, SL_MSG_CANCEL, "c");
	cr_expect(world_last(w, SL_MSG_ANSWER)->ok);
	answers = world_count(w, SL_MSG_ANSWER);
	command_with_id(w, SL_MSG_CANCEL, "c");
	cr_expect_eq(world_count(w, SL_MSG_ANSWER), answers, "\"ended\" would take back what was accepted");
	command_with_id(w, SL_MSG_CANCEL, "other");
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "ended");
}

ENGINE_TEST(second_start_of_an_id_is_refused)
{
	struct sl_msg msg;
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_start(w, "i1", "w", "{}");
	cr_expect_eq(world_count(w, SL_MSG_ANSWER), 1, "the same command again is answered once");
	sl_msg_init(&msg, SL_MSG_START);
	msg.to = "i1";
	msg.workflow = "w";
	msg.command_id = "other";
	world_send(w, &msg);
	cr_expect_not(world_last(w, SL_MSG_ANSWER)->ok);
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "exists");
	cr_expect_eq(w->action_count, 1);
}

ENGINE_TEST(start_of_an_unknown_workflow_is_refused)
{
	struct sl_msg msg;
	sl_msg_init(&msg, SL_MSG_START);
	msg.to = "i1";
	msg.workflow = "nothing";
	msg.command_id = "c";
	world_send(w, &msg);
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "unknown-workflow");
}

Test(engine, unknown_plan_changes_nothing)
{
	struct world *w = world_new(false);
	struct sl_effects fx;
	struct sl_msg msg;
	struct sl_pos pos = {0, 1, ""};
	sl_effects_init(&fx, &w->arena);
	sl_msg_init(&msg, SL_MSG_START);
	msg.to = "i1";
	msg.plan = "0123";
	cr_expect_eq(sl_step(&w->eng, world_actor(w, "i1")->actor, &msg, &pos, START_MS, &fx), SL_ENOTFOUND);
	cr_expect_eq(fx.count, 0);
	cr_expect_null(world_actor(w, "i1")->actor->inst);
	sl_effects_release(&fx);
	world_free(w);
}

ENGINE_TEST(purge_forgets_an_ended_instance)
{
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_command(w, SL_MSG_PURGE, "i1");
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "running");
	world_command(w, SL_MSG_CANCEL, "i1");
	world_command(w, SL_MSG_PURGE, "i1");
	cr_expect(world_last(w, SL_MSG_ANSWER)->ok);
	cr_expect_eq(world_actor(w, "i1")->fields.count, 0);
	cr_expect_null(world_actor(w, "i1")->actor->inst);
	w->input_offset += 10;
	world_start(w, "i1", "w", "{}");
	expect_status(w, "i1", "running");
}

/* Purged and started again before the commit: nothing of the old one may stay. */
Test(engine, purge_and_start_in_one_batch_leave_only_the_new_fields)
{
	struct world *w = world_new(false);
	struct sl_field *fields;
	struct sl_effects fx;
	struct sl_msg msg;
	struct sl_pos pos = {0, 100, ""};
	int count, deleted = 0;
	bool gone;
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{}", NULL);
	world_result(w, 1, "{\"x\":1}", NULL);
	expect_status(w, "i1", "completed");
	struct world_actor *a = world_actor(w, "i1");
	cr_assert(sl_map_get(&a->fields, "out") && sl_map_get(&a->fields, "t:1"));
	sl_effects_init(&fx, &w->arena);
	sl_msg_init(&msg, SL_MSG_PURGE);
	msg.to = "i1";
	cr_assert_eq(sl_step(&w->eng, a->actor, &msg, &pos, w->now_ms, &fx), 0);
	sl_msg_init(&msg, SL_MSG_START);
	msg.to = "i1";
	msg.workflow = "w";
	pos.offset++;
	cr_assert_eq(sl_step(&w->eng, a->actor, &msg, &pos, w->now_ms, &fx), 0);
	sl_actor_changes(a->actor, &w->arena, &fields, &count, &gone);
	cr_expect_not(gone);
	for (int i = 0; i < count; i++)
		deleted += !fields[i].value.ptr &&
			   (strcmp(fields[i].name, "out") == 0 || strcmp(fields[i].name, "t:1") == 0);
	cr_expect_eq(deleted, 2);
	sl_effects_release(&fx);
	world_free(w);
}

ENGINE_TEST(sweep_removes_what_has_expired)
{
	struct sl_msg msg;
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_command(w, SL_MSG_CANCEL, "i1");
	for (int i = 0; i < 2; i++) {
		sl_msg_init(&msg, SL_MSG_SWEEP);
		msg.to = "i1";
		world_send(w, &msg);
		cr_expect_eq(world_actor(w, "i1")->fields.count > 0, i == 0);
		w->now_ms += w->eng.limits.retention_ms;
	}
}

ENGINE_TEST(time_never_goes_back)
{
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	w->now_ms -= 5000;
	world_result(w, 0, "{}", NULL);
	cr_expect_eq(world_instance(w, "i1")->now_ms, START_MS);
	cr_expect_eq(w->actions[1].deadline_ms, START_MS + 3600000);
}

/* --- retry of what faulted --- */

ENGINE_TEST(retry_enters_the_failed_node_again)
{
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{\"a\":1}", NULL);
	world_result(w, 1, NULL, "{\"status\":500,\"code\":\"boom\"}");
	expect_status(w, "i1", "faulted");
	world_command(w, SL_MSG_RETRY, "i1");
	cr_expect(world_last(w, SL_MSG_ANSWER)->ok);
	expect_status(w, "i1", "running");
	cr_assert_eq(w->action_count, 3);
	cr_expect_str_eq(w->actions[2].action, w->actions[1].action);
	cr_expect_neq(w->actions[2].token, w->actions[1].token);
	cr_expect_eq(world_timers(w), 1);
	world_command(w, SL_MSG_RETRY, "i1");
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "not-faulted");
	world_result(w, 2, "{\"b\":2}", NULL);
	expect_output(w, "i1", "{\"a\":1,\"b\":2}");
}

ENGINE_TEST(retry_of_parallel_work_goes_on_everywhere)
{
	world_deploy(w,
		"id: w\n" TOP "start: A\n" FUNCTIONS
		"states:\n- name: A\n  type: parallel\n  timeouts: {stateExecTimeout: PT1H}\n  branches:\n"
		"  - name: B1\n    actions:\n    - functionRef: f\n  - name: B2\n    actions:\n    - functionRef: f\n  "
		"- name: B3\n    actions:\n    - functionRef: f\n      sleep: {after: PT10S}\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{\"a\":1}", NULL);
	world_result(w, 2, "{\"c\":3}", NULL);
	world_result(w, 1, NULL, "{\"status\":500}");
	expect_status(w, "i1", "faulted");
	cr_expect_eq(world_timers(w), 0);
	world_command(w, SL_MSG_RETRY, "i1");
	cr_assert_eq(w->action_count, 4);
	cr_expect_eq(world_timers(w), 1);
	world_result(w, 3, "{\"b\":2}", NULL);
	expect_output(w, "i1", "{\"a\":1,\"b\":2,\"c\":3}");
}

/* The way out fails: retry goes it again, and does not filter twice. */
ENGINE_TEST(retry_of_a_failing_way_out_does_not_repeat_the_state)
{
	world_deploy(w, "id: w\n" TOP "start: A\nevents:\n- name: Out\n  type: t.out\n  source: /o\n  kind: "
				      "produced\nstates:\n- name: A\n  type: inject\n  data: {n: 1}\n"
			"  stateDataFilter: {output: '${ {n: (.n + 1)} }'}\n  end: {produceEvents: [{eventRef: Out, "
			"contextAttributes: {bad: '${ [] }'}}]}\n");
	world_start(w, "i1", "w", "{}");
	expect_error(w, "i1", "data");
	for (int i = 0; i < 2; i++) {
		world_command(w, SL_MSG_RETRY, "i1");
		expect_status(w, "i1", "faulted");
		expect_json(jv_copy(world_instance(w, "i1")->root->own), "{\"n\":1}");
	}
}

#define ORDERS                                                                                                         \
	"id: orders\n" TOP "start: S\n" FUNCTIONS "events:\n- name: A\n  type: t.a\n  source: /t\n" CORR               \
	"- name: B\n  type: t.b\n  source: /t\n" CORR                                                                  \
	"states:\n- name: S\n  type: event\n  onEvents:\n  - eventRefs: [A]\n  transition: C\n"                        \
	"- name: C\n  type: operation\n  actions:\n  - functionRef: f\n  transition: W\n- name: W\n  type: event\n  "  \
	"onEvents:\n  - eventRefs: [B]\n  end: true\n"

ENGINE_TEST(retry_asks_for_the_claim_and_takes_it)
{
	world_deploy(w, ORDERS);
	world_event(w, "1", "t.a", ORDER, "{}");
	const char *id = world_nth(w, 0);
	world_event(w, "2", "t.b", ORDER, "{\"early\":1}");
	world_result(w, 0, NULL, "{\"status\":500}");
	expect_status(w, id, "faulted");
	world_command(w, SL_MSG_RETRY, id);
	cr_expect(world_last(w, SL_MSG_ANSWER)->ok);
	expect_status(w, id, "running");
	world_result(w, 1, "{}", NULL);
	expect_status(w, id, "waiting");
	world_event(w, "3", "t.b", ORDER, "{\"b\":3}");
	expect_output(w, id, "{\"b\":3}");
}

ENGINE_TEST(retry_is_refused_while_another_holds_the_claim)
{
	world_deploy(w, ORDERS);
	world_event(w, "1", "t.a", ORDER, "{}");
	const char *id = world_nth(w, 0);
	world_event(w, "2", "t.a", ORDER, "{\"second\":1}");
	world_result(w, 0, NULL, "{\"status\":500}");
	cr_assert_eq(world_instances(w), 2);
	expect_status(w, id, "faulted");
	world_command(w, SL_MSG_RETRY, id);
	cr_expect_not(world_last(w, SL_MSG_ANSWER)->ok);
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "claimed");
	expect_status(w, id, "faulted");
	world_command(w, SL_MSG_RETRY, id);
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "claimed");
}

/* An event handed back at the fault and kept as early comes again in the second life. */
ENGINE_TEST(handed_back_event_can_be_taken_in_the_second_life)
{
	w->eng.limits.early_window_ms = 100000;
	world_deploy(w, ORDERS);
	world_event(w, "1", "t.a", ORDER, "{}");
	const char *id = world_nth(w, 0);
	world_event(w, "2", "t.b", ORDER, "{\"early\":1}");
	world_result(w, 0, NULL, "{\"status\":500}");
	world_command(w, SL_MSG_RETRY, id);
	world_result(w, 1, "{}", NULL);
	expect_output(w, id, "{\"early\":1}");
}

ENGINE_TEST(delivery_to_an_unknown_instance_comes_back)
{
	struct sl_effects fx;
	struct sl_msg msg;
	struct sl_pos pos = {0, 1, ""};
	char ids[2][SL_UUID_TEXT];
	for (int i = 0; i < 2; i++) {
		sl_effects_init(&fx, &w->arena);
		sl_msg_init(&msg, SL_MSG_DELIVER);
		msg.to = "gone.1";
		msg.id = "delivery-id";
		msg.from = msg.box = "#abc";
		msg.workflow = "w";
		msg.event = json("{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/t\",\"type\":\"t\"}");
		pos.offset++;
		cr_assert_eq(sl_step(&w->eng, world_actor(w, "gone.1")->actor, &msg, &pos, START_MS, &fx), 0);
		cr_assert_eq(fx.count, 1);
		cr_expect_eq(fx.items[0].kind, SL_MSG_RETURN);
		cr_expect_str_eq(fx.items[0].to, "#abc");
		cr_expect_str_eq(fx.items[0].from, "gone.1");
		cr_expect_str_eq(fx.items[0].workflow, "w");
		snprintf(ids[i], sizeof(ids[i]), "%s", fx.items[0].id);
		sl_msg_clear(&msg);
		sl_effects_release(&fx);
	}
	cr_expect_str_eq(ids[0], ids[1], "the return's id derives from the delivery's");
}

/* One step beside the world; the kind of its first effect. */
static enum sl_msg_kind step_beside(struct world *w, const char *id, enum sl_msg_kind kind, const char *effect, const char *event)
{
	struct sl_effects fx;
	struct sl_msg msg;
	struct sl_pos pos = {0, ++w->offset, ""};
	sl_effects_init(&fx, &w->arena);
	sl_msg_init(&msg, kind);
	msg.to = id;
	msg.id = effect;
	msg.from = msg.box = kind == SL_MSG_DELIVER ? "#abc" : NULL;
	msg.event = event ? json(sl_arena_printf(&w->arena,
		"{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"/t\",\"type\":\"t.z\"}", event)) : jv_invalid();
	cr_assert_eq(sl_step(&w->eng, world_actor(w, id)->actor, &msg, &pos, START_MS, &fx), 0);
	enum sl_msg_kind first = fx.count ? fx.items[0].kind : SL_MSG_NONE;
	sl_msg_clear(&msg);
	sl_effects_release(&fx);
	return first;
}

/* R6: the ring of events may have forgotten an event that the ring of deliveries still knows. */
ENGINE_TEST(delivery_that_an_ended_instance_had_taken_does_not_come_back)
{
	w->eng.limits.ring_max = 1;
	world_deploy(w, "id: w\n" TOP "start: S\nstates:\n- name: S\n  type: sleep\n  duration: PT1H\n  end: true\n");
	world_start(w, "i1", "w", "{}");
	step_beside(w, "i1", SL_MSG_DELIVER, "first", "1");
	step_beside(w, "i1", SL_MSG_DELIVER, "second", "2");
	step_beside(w, "i1", SL_MSG_CANCEL, NULL, NULL);
	cr_expect_eq(step_beside(w, "i1", SL_MSG_DELIVER, "first", "1"), SL_MSG_NONE);
	cr_expect_eq(step_beside(w, "i1", SL_MSG_DELIVER, "third", "3"), SL_MSG_RETURN);
}

/* --- lifecycle --- */

/* The last lifecycle event: its text must be a CloudEvent. */
static jv lifecycle_event(struct world *w)
{
	const char *text = world_last(w, SL_MSG_LIFECYCLE)->text;
	jv raw, ev;
	cr_assert_eq(sl_json_parse(text, strlen(text), NULL, &raw, NULL), 0);
	cr_assert_eq(sl_event_check(raw, &ev, NULL), 0);
	return ev;
}

ENGINE_TEST(lifecycle_events_tell_start_and_end)
{
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{\"a\":1}", NULL);
	world_result(w, 1, "{}", NULL);
	cr_expect_eq(world_count(w, SL_MSG_LIFECYCLE), 2);
	jv ev = lifecycle_event(w);
	cr_expect_str_eq(sl_json_str(ev, "type"), "io.serverlessworkflow.workflow.completed.v1");
	cr_expect_str_eq(sl_json_str(ev, "subject"), "i1");
	jv data = sl_json_get(ev, "data");
	cr_expect_str_eq(sl_json_str(data, "workflow"), "w");
	expect_json(sl_json_get(data, "output"), "{\"a\":1}");
	jv_free(data);
	jv_free(ev);
	world_start(w, "i2", "w", "{}");
	world_result(w, 2, NULL, "{\"code\":\"x\"}");
	ev = lifecycle_event(w);
	cr_expect_str_eq(sl_json_str(ev, "type"), "io.serverlessworkflow.workflow.faulted.v1");
	jv_free(ev);
	world_start(w, "i3", "w", "{}");
	world_command(w, SL_MSG_CANCEL, "i3");
	cr_expect_eq(world_count(w, SL_MSG_LIFECYCLE), 6);
}

ENGINE_TEST(lifecycle_level_three_tells_states_and_actions)
{
	w->eng.limits.lifecycle_level = 3;
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{}", NULL);
	world_result(w, 1, "{}", NULL);
	cr_expect_eq(world_count(w, SL_MSG_LIFECYCLE), 8);
}

/* --- storage --- */

static int load_with(struct world *w, const char *field, const char *value)
{
	struct world_actor *a = world_actor(w, "i1");
	struct sl_field fields[100];
	struct sl_diags diags;
	int count = 0;
	sl_diags_init(&diags);
	sl_map_each(&a->fields, e) if (strcmp(e->key, field) != 0) fields[count++] =
		(struct sl_field){e->key, {e->value, strlen(e->value)}};
	if (value)
		fields[count++] = (struct sl_field){field, {value, strlen(value)}};
	struct sl_actor *actor = sl_actor_new("default", "i1");
	int err = sl_actor_load(&w->eng, actor, fields, count, &diags);
	cr_expect(err == 0 || diags.error_count > 0);
	sl_actor_free(actor);
	sl_diags_release(&diags);
	return err;
}

Test(engine, damaged_state_is_told)
{
	struct world *w = world_new(false);
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	cr_expect_eq(load_with(w, "none", NULL), 0);
	cr_expect_eq(load_with(w, "h", "{"), SL_EPARSE);
	cr_expect_eq(load_with(w, "h", NULL), SL_EPARSE);
	cr_expect_eq(load_with(w, "h", "{\"plan\":\"unknown\"}"), SL_ENOTFOUND);
	cr_expect_eq(load_with(w, "f:0", NULL), SL_EPARSE);
	cr_expect_eq(load_with(w, "f:0.0", "{\"node\":\"/nowhere\"}"), SL_EPARSE);
	cr_expect_eq(load_with(w, "d:0", "[1"), SL_EPARSE);
	cr_expect_eq(load_with(w, "d:0.7", "{}"), SL_EPARSE);
	cr_expect_eq(load_with(w, "r:0", "1"), SL_EPARSE);
	cr_expect_eq(load_with(w, "zz:later", "anything"), 0);
	world_free(w);
}

/* A tree of frames that its plan does not have would end the process at some later step. */
Test(engine, stored_frames_that_do_not_fit_the_plan_are_told)
{
	struct world *w = world_new(false);
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	struct world_actor *a = world_actor(w, "i1");
	const char *state = sl_map_get(&a->fields, "f:0.0"), *header = sl_map_get(&a->fields, "h");
	cr_assert(state && header);
	cr_expect_eq(load_with(w, "f:0.1", state), SL_EPARSE, "the same state under another number");
	cr_expect_eq(load_with(w, "f:00", state), SL_EPARSE, "a name that printing does not give");
	cr_expect_eq(load_with(w, "f:0x0", state), SL_EPARSE);
	cr_expect_eq(load_with(w, "f:0.", state), SL_EPARSE);
	cr_expect_eq(load_with(w, "f:0", "{\"node\":\"/states/0\"}"), SL_EPARSE, "another root");
	cr_expect_eq(load_with(w, "f:0", "{\"node\":\"/states\",\"timer\":3}"), SL_EPARSE, "scopes have no timer");
	cr_expect_eq(load_with(w, "f:0", "{\"node\":\"/states\",\"n\":-1}"), SL_EPARSE);
	cr_expect_eq(load_with(w, "c:0:0", "1"), SL_EPARSE, "a scope collects nothing");
	cr_expect_eq(load_with(w, "b:007", "{\"event\":{}}"), SL_EPARSE);
	cr_expect_eq(load_with(w, "t:01", "{}"), SL_EPARSE);
	cr_expect_eq(load_with(w, "r:00", "\"0123456789abcdef\""), SL_EPARSE);
	struct sl_buf big; /* numbers beyond 64 bits are no undefined conversion */
	sl_buf_init(&big);
	sl_buf_printf(&big, "%.*s,\"transitions\":1e300}", (int)strlen(header) - 1, header);
	cr_expect_eq(load_with(w, "h", big.data), 0);
	sl_buf_release(&big);
	world_free(w);
}

Test(engine, unknown_fields_and_members_are_kept)
{
	struct world *w = world_new(true);
	world_deploy(w, CALLS);
	world_start(w, "i1", "w", "{}");
	struct world_actor *a = world_actor(w, "i1");
	sl_actor_free(a->actor);
	a->actor = NULL;
	char *h = sl_map_get(&a->fields, "h"), *f = sl_map_get(&a->fields, "f:0.0");
	free(sl_map_set(&a->fields, "h", strdup(sl_arena_printf(&w->arena, "{\"future\":{\"x\":[1]},%s", h + 1))));
	free(sl_map_set(&a->fields, "f:0.0", strdup(sl_arena_printf(&w->arena, "{\"later\":true,%s", f + 1))));
	free(sl_map_set(&a->fields, "new:1", strdup("kept")));
	world_result(w, 0, "{}", NULL);
	cr_expect(strstr(sl_map_get(&a->fields, "h"), "\"future\":{\"x\":[1]}"));
	cr_expect(strstr(sl_map_get(&a->fields, "f:0.0"), "\"later\":true"));
	cr_expect_str_eq(sl_map_get(&a->fields, "new:1"), "kept");
	world_free(w);
}
