/* Instances whose input was given up because stepping it ends the process (R7). */
#include "tests/unit/engine/harness.h"

#define TOP "version: '1.0.0'\nspecVersion: '0.8'\nname: Test\n"
#define FUNCTIONS "functions:\n- name: f\n  type: custom\n  operation: POST http://x.test/f\n"
#define CALL                                                                                                           \
	"id: w\n" TOP "start: A\n" FUNCTIONS                                                                           \
	"states:\n- name: A\n  type: operation\n  timeouts: {actionExecTimeout: PT1H}\n"                               \
	"  onErrors:\n  - errorRef: any\n    end: true\n  actions:\n  - functionRef: f\n  end: true\n"                 \
	"errors:\n- name: any\n  code: '*'\n"
#define EVENTS                                                                                                         \
	"id: k\n" TOP "start: Begin\nevents:\n"                                                                        \
	"- name: Start\n  type: start\n  source: s\n  correlation:\n  - contextAttributeName: orderid\n"               \
	"states:\n- name: Begin\n  type: event\n  onEvents:\n  - eventRefs: [Start]\n  end: true\n"

static void give_up(struct world *w, const char *id, enum sl_msg_kind kind, struct sl_msg *msg)
{
	msg->kind = SL_MSG_FAULT;
	msg->to = id;
	msg->error = sl_error_new(SL_CODE_INTERNAL, 500, "expression exceeded its hard budget", "why");
	msg->extra = sl_json_set(jv_object(), "kind", jv_string(sl_msg_kind_text(kind)));
	world_send(w, msg);
}

ENGINE_TEST(fault_ends_a_running_instance_whatever_it_handles)
{
	struct sl_msg msg;
	world_deploy(w, CALL);
	world_start(w, "i1", "w", "{}");
	sl_msg_init(&msg, SL_MSG_FAULT);
	give_up(w, "i1", SL_MSG_RESULT, &msg);
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", SL_CODE_INTERNAL);
	cr_expect_eq(world_timers(w), 0);
	cr_expect(world_cancelled(w, 0));
	world_result(w, 0, "{}", NULL);
	expect_status(w, "i1", "faulted");
}

ENGINE_TEST(a_start_that_is_given_up_leaves_a_faulted_instance)
{
	struct sl_msg msg;
	world_deploy(w, CALL);
	sl_msg_init(&msg, SL_MSG_FAULT);
	msg.workflow = "w";
	msg.command_id = "c1";
	msg.data = json("{\"a\":1}");
	give_up(w, "i1", SL_MSG_START, &msg);
	expect_status(w, "i1", "faulted");
	expect_error(w, "i1", SL_CODE_INTERNAL);
	cr_expect_eq(w->action_count, 0, "nothing of it ran");
	cr_expect(world_last(w, SL_MSG_ANSWER)->ok);
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->command_id, "c1");
	/* its input is kept: a second life begins from the start */
	world_command(w, SL_MSG_RETRY, "i1");
	expect_status(w, "i1", "running");
	cr_expect_eq(w->action_count, 1);
}

ENGINE_TEST(a_faulted_start_gives_its_claim_up)
{
	struct sl_msg msg;
	world_deploy(w, EVENTS);
	sl_msg_init(&msg, SL_MSG_FAULT);
	msg.workflow = "k";
	msg.ok = true;
	msg.box = msg.from = "m-abc";
	msg.key = json("{\"orderid\":\"7\"}");
	msg.events = json("[{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"start\",\"orderid\":\"7\"}]");
	give_up(w, "i1", SL_MSG_START, &msg);
	expect_status(w, "i1", "faulted");
	cr_expect(strstr(w->trace.data, "unsubscribe to=m-abc "));
	cr_expect_eq(world_instance(w, "i1")->inbox_count, 0);
}

/* The event is in the dead letter; after `retry` the instance waits for it, and it is no duplicate. */
ENGINE_TEST(a_given_up_start_event_may_come_again_after_retry)
{
	struct sl_msg msg;
	world_deploy(w, EVENTS);
	sl_msg_init(&msg, SL_MSG_FAULT);
	msg.workflow = "k";
	msg.ok = true;
	msg.box = msg.from = "m-abc";
	msg.key = json("{\"orderid\":\"7\"}");
	msg.events = json("[{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"start\",\"orderid\":\"7\"}]");
	give_up(w, "i1", SL_MSG_START, &msg);
	expect_status(w, "i1", "faulted");
	world_command(w, SL_MSG_RETRY, "i1");
	sl_msg_init(&msg, SL_MSG_CLAIM_ANSWER);
	msg.to = "i1";
	msg.from = msg.box = "m-abc";
	msg.ok = true;
	world_send(w, &msg);
	expect_status(w, "i1", "waiting");
	sl_msg_init(&msg, SL_MSG_EVENT);
	msg.to = "i1";
	msg.event = json("{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"start\",\"orderid\":\"7\",\"data\":{\"a\":1}}");
	world_send(w, &msg);
	expect_output(w, "i1", "{\"a\":1}");
}

ENGINE_TEST(fault_of_nobody_and_of_the_ended_changes_nothing)
{
	struct sl_msg msg;
	world_deploy(w, CALL);
	sl_msg_init(&msg, SL_MSG_FAULT);
	msg.command_id = "c1";
	give_up(w, "nobody", SL_MSG_CANCEL, &msg);
	cr_expect_not(world_last(w, SL_MSG_ANSWER)->ok);
	world_start(w, "i1", "w", "{}");
	world_result(w, 0, "{}", NULL);
	expect_status(w, "i1", "completed");
	sl_msg_init(&msg, SL_MSG_FAULT);
	msg.command_id = "c2";
	give_up(w, "i1", SL_MSG_RETRY, &msg);
	expect_status(w, "i1", "completed");
	cr_expect_str_eq(world_last(w, SL_MSG_ANSWER)->reason, "internal");
}
