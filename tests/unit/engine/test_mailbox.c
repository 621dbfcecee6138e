/* Mailboxes, one sentence of the protocol at a time. After every step what changed is written to a small store, and the
 * mailbox of the next step is loaded from there: so each of these tests is one of the stored form, too. */
#include "tests/unit/engine/mailbox_fixture.h"

/* --- starting and delivering --- */

Test(mailbox, a_start_takes_the_claim_and_subscribes)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	expect("start w(1)", "started 1");
	const struct sl_msg *start = first(SL_MSG_START);
	char home[80], effect[SL_UUID_TEXT], expected[160];
	snprintf(home, sizeof home, "%s.", id + 1);
	cr_assert(strncmp(start->to, home, strlen(home)) == 0, "the instance lives where its key does: %s", start->to);
	sl_id_effect("default", &(struct sl_pos){1, 1, ""}, 0, effect);
	cr_assert_str_eq(start->id, effect);
	snprintf(expected, sizeof expected, "%s%.8s%s", home, effect, effect + 28);
	cr_assert_str_eq(start->to, expected, "its serial derives from the effect");
	cr_assert_str_eq(start->box, id);
	cr_assert(start->ok);
	cr_assert_str_eq(start->plan, "hash-w");
	cr_assert_str_eq(start->version, "1.0.0");
	cr_assert(sl_json_equal(start->key, key));
	const char *inst = started();
	event("2", "W");
	expect(to("deliver 2 to $", inst), "delivered 2");
	cr_assert_str_eq(first(SL_MSG_DELIVER)->box, id);
	cr_assert_str_eq(first(SL_MSG_DELIVER)->workflow, "w");
}

Test(mailbox, ids_are_small_numbers_in_a_single_process)
{
	eng.single = true;
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	cr_assert_str_eq(started() + strlen(id), "1");
	unsubscribe(started(), "w", 0, NULL);
	event("2", "S");
	cr_assert_str_eq(started() + strlen(id), "2");
}

Test(mailbox, a_living_instance_takes_what_would_start_another_one) /* A78, A173 */
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	event("2", "S");
	expect(to("deliver 2 to $", inst), "delivered 2");
	cr_assert_not(first(SL_MSG_DELIVER)->multi);
}

Test(mailbox, the_claims_holder_takes_it_before_older_subscriptions)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	subscribe("user-1", "w", 0, "[{'type':'S'},{'type':'W'}]");
	subscribe("user-2", "w", 0, "[{'type':'S'},{'type':'W'}]");
	event("1", "S");
	expect("deliver 1 to user-1", "delivered 1");
	event("2", "W");
	expect("deliver 2 to user-1 multi, deliver 2 to user-2 multi", "delivered 2");
	/* user-2 becomes the holder by asking when it is alone */
	unsubscribe("user-1", "w", 0, NULL);
	struct sl_msg claim = from(SL_MSG_CLAIM, "user-2", "w");
	claim.wants = build_json("[{'type':'S'},{'type':'W'}]");
	step(&claim);
	expect("claim-answer to user-2 yes", "");
	subscribe("user-0", "w", 0, "[{'type':'S'},{'type':'W'}]");
	subscribe("user-2", "w", 0, "[{'type':'S'}]");
	event("3", "S");
	expect("deliver 3 to user-2", "delivered 3");
}

Test(mailbox, each_workflow_decides_for_itself)
{
	deploy_ordinary("w1", "1.0.0", "hash-1");
	deploy_ordinary("w2", "1.0.0", "hash-2");
	subscribe("user-1", "w2", 0, "[{'type':'S'}]");
	subscribe("user-9", "other", 0, "[{'type':'S'}]");
	event("1", "S");
	expect("deliver 1 to user-9, start w1(1), deliver 1 to user-1", "started 1");
}

Test(mailbox, only_the_listening_version_starts)
{
	deploy_ordinary("w", "1.0.0", "hash-1");
	deploy_ordinary("w", "2.0.0", "hash-2");
	event("1", "S");
	cr_assert_str_eq(first(SL_MSG_START)->plan, "hash-2");
	sl_plans_point(plans, "default", "w", "1.0.0", "hash-1", false);
	sl_plans_point(plans, "default", "w", "2.0.0", "hash-2", false);
	const char *inst = started();
	event("2", "S");
	expect(to("deliver 2 to $", inst), "delivered 2");
	unsubscribe(inst, "w", 0, NULL);
	event("3", "S");
	expect("", "early 3");
}

Test(mailbox, a_start_needs_the_right_key_source_and_filter)
{
	struct sl_plan *plan = build_plan("w", "1.0.0", "hash-w");
	int s = build_event(plan, "S", "/test", "k");
	build_filter(plan, s, "color", "red");
	build_start(plan, false, 0, s, build_event(plan, "S2", NULL, "k,x"), build_event(plan, "S3", NULL, NULL), -1);
	build_deploy(plans, "default", plan);
	event_at(build_ev("1", "S", ",'k':55,'color':'blue'"), 1, 1);
	expect("", "early 1");
	jv candidates = sl_json_get(first(SL_MSG_WHY)->data, "candidates");
	jv expected = build_json("[{'workflow':'w','plan':'hash-w','attribute':'color','wanted':'red','have':'blue'}]");
	cr_assert(sl_json_equal(candidates, expected));
	jv_free(candidates);
	jv_free(expected);
	event("2", "S2");
	expect("", "early 2");
	event("3", "S3");
	expect("", "early 3");
	event_at(build_ev("4", "S", ",'k':55,'color':'red'"), 1, 2);
	expect("start w(4)", "started 4");
}

Test(mailbox, wants_test_type_source_and_filters)
{
	subscribe("i1", "w", 0, "[{'type':'T','source':'/other'},{'type':'T','filters':{'n':'42'}}]");
	subscribe("i2", "w2", 0, "[{'source':'/test'}]");
	event_at(build_ev("1", "T", ",'n':42"), 0, 1);
	expect("deliver 1 to i1, deliver 1 to i2", "delivered 1");
	event_at(build_ev("2", "T", ",'n':43"), 0, 2);
	expect("deliver 2 to i2", "delivered 2");
	unsubscribe("i2", "w2", 0, NULL);
	event_at(build_ev("3", "T", ",'n':43"), 0, 3);
	expect("", "early 3");
	jv candidates = sl_json_get(first(SL_MSG_WHY)->data, "candidates");
	jv expected = build_json("[{'workflow':'w','instance':'i1','attribute':'n','wanted':'42','have':'43'}]");
	cr_assert(sl_json_equal(candidates, expected));
	jv_free(candidates);
	jv_free(expected);
}

/* --- R6: duplicates --- */

Test(mailbox, a_public_event_counts_once)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event_at(build_ev("1", "S", ",'k':55"), 0, 10);
	event_at(build_ev("1", "S", ",'k':55"), 1, 4);
	expect("", "duplicate 1");
	jv ev = sl_json_set(build_ev("1", "S", ",'k':55"), "source", jv_string("/elsewhere"));
	event_at(ev, 1, 5);
	cr_assert(strncmp(effects(), "deliver 1", 9) == 0, "another source: another event");
}

/* When the ring has overflowed, the origin still tells: at or below the highest offset seen. */
Test(mailbox, a_routed_record_counts_once_even_when_the_ring_forgot_it)
{
	eng.limits.ring_max = 2;
	deploy_ordinary("w", "1.0.0", "hash-w");
	event_at(build_ev("1", "S", ",'k':55"), 0, 10);
	const char *inst = started();
	for (int i = 2; i < 6; i++) {
		char ev_id[16];
		snprintf(ev_id, sizeof ev_id, "%d", i);
		event_at(build_ev(ev_id, "W", ",'k':55"), 0, 10 + i);
	}
	event_at(build_ev("1", "S", ",'k':55"), 0, 10);
	expect("", "duplicate 1");
	event_at(build_ev("1", "S", ",'k':55"), 3, 10);
	expect(to("deliver 1 to $", inst), "delivered 1"); /* another partition: the instance's own ring has to know */
	cr_assert_str_eq(stored("o:sluice.events:0"), "15");
	cr_assert_str_eq(stored("o:sluice.events:3"), "10");
}

Test(mailbox, an_effect_counts_once)
{
	subscribe("i1", "w", 0, "[{'type':'T'}]");
	for (int i = 0; i < 2; i++) {
		struct sl_msg in = from(SL_MSG_UNSUBSCRIBE, "i1", "w");
		in.id = "the same";
		step(&in);
		cr_assert_eq(written == 0, i == 1);
		if (!i)
			subscribe("i1", "w", 0, "[{'type':'T'}]");
	}
	event("1", "T");
	expect("deliver 1 to i1", "delivered 1");
}

Test(mailbox, what_is_handed_back_passes_the_ring)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	event("2", "S");
	unsubscribe(inst, "w", 0, "[{'id':'2','source':'/test','type':'S','k':55}]");
	expect("start w(2)", "started 2");
	cr_assert_str_neq(started(), inst);
}

/* --- ending, returns, hand-backs --- */

Test(mailbox, an_inbox_that_comes_back_is_decided_in_order)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	unsubscribe(inst, "w", 0,
		"[{'id':'2','source':'/test','type':'W','k':55},{'id':'3','source':'/test','type':'S','k':55},"
		"{'id':'4','source':'/test','type':'S','k':55}]");
	const char *next = started();
	expect(to("start w(3), deliver 2 to $, deliver 4 to $", next), "early 2, delivered 2, started 3, delivered 4");
	event("5", "W");
	expect(to("deliver 5 to $", next), "delivered 5");
}

Test(mailbox, a_hand_back_concerns_its_workflow_only)
{
	deploy_ordinary("w1", "1.0.0", "hash-1");
	deploy_ordinary("w2", "1.0.0", "hash-2");
	event("1", "S");
	const char *w1 = sl_arena_str(&arena, fx.items[0].to);
	const char *w2 = sl_arena_str(&arena, fx.items[1].to);
	cr_assert_str_eq(fx.items[0].workflow, "w1");
	cr_assert_str_eq(fx.items[1].workflow, "w2");
	unsubscribe(w1, "w1", 0,
		"[{'id':'2','source':'/test','type':'S','k':55},{'id':'3','source':'/test','type':'W','k':55}]");
	const char *next = started();
	expect(to("start w1(2), deliver 3 to $", next), "started 2, delivered 3");
	/* nor does it start one of a workflow that took the event in its time */
	struct sl_msg in = from(SL_MSG_UNSUBSCRIBE, to("$", w2), "w2");
	step(&in);
	unsubscribe(next, "w1", 0, "[{'id':'2','source':'/test','type':'S','k':55}]");
	expect("start w1(2)", "started 2");
}

Test(mailbox, a_return_forgets_claim_and_subscription_and_decides_again)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	event("2", "S");
	give_back(inst, "w", "2", "S", false);
	expect("start w(2)", "started 2");
	const char *next = started();
	cr_assert_str_neq(next, inst);
	give_back(inst, "w", "9", "W", false);
	expect(to("deliver 9 to $", next), "delivered 9");
	give_back(inst, "w", "10", "W", true);
	expect("", "several 10");
}

Test(mailbox, a_claim_is_granted_only_while_nobody_else_lives)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *faulted = started();
	unsubscribe(faulted, "w", 0, NULL);
	struct sl_msg claim = from(SL_MSG_CLAIM, faulted, "w");
	event("2", "W");
	expect("", "early 2");
	claim.wants = build_json("[{'type':'S'},{'type':'W'}]");
	claim.command_id = "c1";
	step(&claim);
	expect(to("claim-answer to $ yes, deliver 2 to $", faulted), "delivered 2");
	cr_assert_str_eq(first(SL_MSG_CLAIM_ANSWER)->command_id, "c1");
	event("3", "S");
	expect(to("deliver 3 to $", faulted), "delivered 3");
	unsubscribe(faulted, "w", 0, NULL);
	event("4", "S");
	expect("start w(4)", "started 4");
	claim = from(SL_MSG_CLAIM, faulted, "w");
	claim.wants = build_json("[{'type':'S'}]");
	step(&claim);
	expect(to("claim-answer to $ no", faulted), "");
	event("5", "S");
	cr_assert_not_null(strstr(effects(), "deliver 5"));
	cr_assert_null(strstr(effects(), to("to $", faulted)));
}

Test(mailbox, a_subscription_refuses_a_claim_too)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	subscribe("user-1", "w", 0, "[{'type':'S'}]");
	subscribe("user-2", "other", 0, "[{'type':'S'}]");
	struct sl_msg claim = from(SL_MSG_CLAIM, "user-3", "w");
	step(&claim);
	expect("claim-answer to user-3 no", "");
	claim = from(SL_MSG_CLAIM, "user-1", "w");
	step(&claim);
	expect("claim-answer to user-1 yes", "");
}

Test(mailbox, a_successor_takes_claim_and_subscriptions)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	struct sl_msg in = from(SL_MSG_TRANSFER, inst, "w");
	in.successor = "next.1";
	in.wants = build_json("[{'type':'S'},{'type':'W'},{'type':'V'}]");
	step(&in);
	expect("", "");
	cr_assert_str_eq(stored("c:w"), "{\"instance\":\"next.1\"}");
	event("2", "S");
	expect("deliver 2 to next.1", "delivered 2");
	event("3", "V");
	expect("deliver 3 to next.1", "delivered 3");
	unsubscribe(inst, "w", 0, NULL);
	event("4", "S");
	expect("deliver 4 to next.1", "delivered 4");
	unsubscribe("next.1", "w", 0, NULL);
	event("5", "S");
	expect("start w(5)", "started 5");
}

Test(mailbox, a_successor_of_another_workflow_frees_the_old_one)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	deploy_ordinary("w2", "1.0.0", "hash-2");
	sl_plans_point(plans, "default", "w2", "1.0.0", "hash-2", false);
	event("1", "S");
	struct sl_msg in = from(SL_MSG_TRANSFER, started(), "w2");
	in.successor = "next.1";
	in.wants = build_json("[{'type':'S'},{'type':'W'}]");
	step(&in);
	sl_plans_point(plans, "default", "w2", "1.0.0", "hash-2", true);
	event("2", "S");
	expect("start w(2), deliver 2 to next.1", "started 2");
}

/* --- early events --- */

Test(mailbox, an_early_event_waits_for_who_subscribes_later)
{
	event("1", "W");
	event("2", "X");
	event("3", "W");
	expect("", "early 3");
	subscribe("i1", "w", 0, "[{'type':'W'}]");
	expect("deliver 1 to i1, deliver 3 to i1", "delivered 1, delivered 3");
	subscribe("i2", "w", 0, "[{'type':'W'},{'type':'X'}]");
	expect("deliver 2 to i2", "delivered 2");
}

Test(mailbox, a_start_offers_the_early_events)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "W");
	event("2", "S");
	expect(to("start w(2), deliver 1 to $", started()), "delivered 1, started 2");
}

Test(mailbox, the_early_window_passes)
{
	event("1", "W");
	cr_assert_eq(summary().expires_ms, now_ms + 10001);
	now_ms += 10000;
	sweep();
	expect("", "");
	now_ms += 1;
	sweep();
	expect("", "expired 1");
	subscribe("i1", "w", 0, "[{'type':'W'}]");
	expect("", "");
	eng.limits.early_window_ms = 0;
	unsubscribe("i1", "w", 0, NULL);
	event("2", "W");
	expect("", "nobody 2");
	subscribe("i1", "w", 0, "[{'type':'W'}]");
	expect("", "");
}

Test(mailbox, an_early_event_is_not_offered_after_its_window)
{
	event("1", "W");
	now_ms += 5000;
	event("2", "W");
	now_ms += 5001;
	subscribe("i1", "w", 0, "[{'type':'W'}]");
	expect("deliver 2 to i1", "expired 1, delivered 2");
}

Test(mailbox, early_events_are_bounded)
{
	eng.limits.early_max = 2;
	event("1", "W");
	event("2", "W");
	event("3", "W");
	expect("", "full 1, early 3");
	subscribe("i1", "w", 0, "[{'type':'W'}]");
	expect("deliver 2 to i1, deliver 3 to i1", "delivered 2, delivered 3");
}

/* --- all-of starts --- */

Test(mailbox, an_all_of_start_waits_for_all)
{
	deploy_join(0);
	event("1", "H");
	expect("", "joined 1");
	event("2", "H");
	event("3", "G");
	const char *inst = started();
	expect(to("start j(3,1), deliver 2 to $", inst), "started 3, delivered 2");
	cr_assert(first(SL_MSG_START)->ok);
	/* derived from the members: the same wherever and whenever it is computed */
	char derived[SL_UUID_TEXT];
	sl_id_derive((const char *const[]){"join", "default", "j", "/test", "3", "/test", "1"}, 7, derived);
	cr_assert(strncmp(strchr(inst, '.') + 1, derived, 8) == 0);
	event("4", "G");
	expect(to("deliver 4 to $", inst), "delivered 4");
	unsubscribe(inst, "j", 0,
		"[{'id':'2','source':'/test','type':'H','k':55},{'id':'4','source':'/test','type':'G','k':55}]");
	expect("start j(4,2)", "joined 2, started 4");
}

Test(mailbox, members_of_a_join_have_a_window)
{
	deploy_join(1000);
	event("1", "G");
	cr_assert_eq(summary().expires_ms, now_ms + 1001);
	now_ms += 600;
	event("2", "G");
	now_ms += 600;
	event("3", "H");
	expect("start j(2,3)", "expired 1, started 3");
	unsubscribe(started(), "j", 0, NULL);
	event("4", "G");
	now_ms += 1001;
	sweep();
	expect("", "expired 4");
	event("5", "H");
	expect("", "joined 5");
}

Test(mailbox, members_die_with_their_plan)
{
	deploy_join(0);
	event("1", "G");
	sweep();
	expect("", "");
	sl_plans_point(plans, "default", "j", "1.0.0", "hash-j", false);
	cr_assert_gt(summary().expires_ms, 0, "somebody must look");
	sweep();
	expect("", "dead 1");
}

Test(mailbox, joins_are_bounded)
{
	eng.limits.join_max = 2;
	deploy_join(0);
	event("1", "G");
	event("2", "G");
	event("3", "G");
	expect("dead-letter 3", "full 3");
	cr_assert_str_eq(first(SL_MSG_DEAD_LETTER)->reason, "join-full");
	event("4", "H");
	cr_assert_str_eq(whys(), "started 4, delivered 2", "what is missing gets in");
}

Test(mailbox, two_starts_of_one_type_need_two_events)
{
	struct sl_plan *plan = build_plan("j", "1.0.0", "hash-j");
	build_start(plan, true, 0, build_event(plan, "G", NULL, "k"), build_event(plan, "G", "/test", "k"), -1);
	build_deploy(plans, "default", plan);
	event("1", "G");
	expect("", "joined 1");
	event("2", "G");
	expect("start j(1,2)", "started 2");
}

Test(mailbox, several_workflows_may_complete_with_one_event)
{
	deploy_join(0);
	struct sl_plan *plan = build_plan("j2", "1.0.0", "hash-j2");
	build_start(plan, true, 0, build_event(plan, "H", NULL, "k"), build_event(plan, "G", NULL, "k"), -1);
	build_deploy(plans, "default", plan);
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "G");
	event("2", "G");
	event("3", "H");
	cr_assert_str_eq(whys(), "started 3, delivered 2, delivered 2");
	cr_assert_eq(fx.count, 7);
	event("4", "S");
	expect("start w(4)", "started 4");
}

Test(mailbox, the_join_mailbox_of_a_workflow_has_no_claims)
{
	struct sl_plan *plan = build_plan("u", "1.0.0", "hash-u");
	build_start(plan, true, 0, build_event(plan, "X", NULL, NULL), build_event(plan, "Y", NULL, "z"), -1);
	build_deploy(plans, "default", plan);
	sl_mailbox_free(box);
	sl_home_of_workflow("default", "u", id + 1);
	box = sl_mailbox_new("default", id);
	jv_free(key);
	key = jv_invalid();
	static const char *const types[] = {"X", "X", "Y", "Y", "Y"};
	static const char *const expected[] = {"", "", "start u(0,2)", "start u(1,3)", ""};
	for (int i = 0; i < 5; i++) {
		char ev_id[16], derived[SL_UUID_TEXT];
		struct sl_msg in;
		snprintf(ev_id, sizeof ev_id, "%d", i);
		sl_msg_init(&in, SL_MSG_EVENT);
		in.event = build_ev(ev_id, types[i], "");
		in.workflow = "u";
		in.origin_topic = "sluice.events";
		in.origin_partition = 0;
		in.origin_offset = i;
		step(&in);
		cr_assert_str_eq(effects(), expected[i]);
		if (i != 2)
			continue;
		sl_id_derive((const char *const[]){"join", "default", "u", "/test", "0", "/test", "2"}, 7, derived);
		cr_assert_str_eq(started(), derived, "instances of one workflow spread over the partitions");
		cr_assert_not(first(SL_MSG_START)->ok);
		cr_assert_null(first(SL_MSG_START)->box);
	}
}

/* --- local mailboxes --- */

Test(mailbox, a_local_mailbox_delivers_to_who_waits_now)
{
	at_local_box();
	event("1", "T");
	cr_assert_eq(store.count, 0, "without anybody waiting an event leaves no trace");
	expect("", "");
	subscribe("i1.1", "w", 7, "[{'type':'T'}]");
	expect("", "");
	subscribe("i2.1", "w", 3, "[{'type':'T','source':'/other'}]");
	subscribe("i1.1", "w", 8, "[{'type':'T','filters':{'n':'1'}}]");
	event("2", "T");
	expect("deliver 2 to i1.1 token 7", "delivered 2");
	event_at(build_ev("3", "T", ",'n':1"), 0, 100);
	expect("deliver 3 to i1.1 token 7 multi, deliver 3 to i1.1 token 8 multi", "delivered 3");
	event_at(build_ev("3", "T", ",'n':1"), 0, 101);
	expect("", "duplicate 3");
	unsubscribe("i1.1", "w", 7, NULL);
	event_at(build_ev("4", "T", ",'n':1"), 0, 102);
	expect("deliver 4 to i1.1 token 8", "delivered 4");
	struct sl_msg in = from(SL_MSG_RETURN, "i1.1", "w");
	in.token = 8;
	in.event = build_ev("4", "T", "");
	step(&in);
	expect("", "");
	event_at(build_ev("5", "T", ""), 0, 103);
	expect("", "nobody 5");
	unsubscribe("i2.1", "w", 0, NULL);
	cr_assert_null(stored("s:1"));
	cr_assert_null(stored("s:2"));
	cr_assert_null(stored("s:3"));
}

Test(mailbox, a_local_mailbox_never_starts)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	at_local_box();
	subscribe("i1.1", "x", 1, "[{'type':'W'}]");
	event("1", "S");
	expect("", "nobody 1");
}

/* --- fan-out --- */

Test(mailbox, many_deliveries_go_in_chunks)
{
	eng.limits.fan_out_max = 3;
	for (int i = 0; i < 8; i++)
		subscribe(sl_arena_printf(&arena, "i%d", i), "w", 0, "[{'type':'T'}]");
	subscribe("single", "w2", 0, "[{'type':'T'}]");
	event("1", "T");
	expect(to("deliver 1 to i0 multi, deliver 1 to i1 multi, deliver 1 to i2 multi, event 1 to $", id),
		"delivered 1");
	struct sl_msg more;
	sl_msg_copy(&arena, &more, first(SL_MSG_EVENT));
	unsubscribe("i4", "w", 0, NULL);
	subscribe("late", "w", 0, "[{'type':'T'}]");
	step(&more);
	expect(to("deliver 1 to i3 multi, deliver 1 to i5 multi, deliver 1 to i6 multi, event 1 to $", id),
		"delivered 1");
	sl_msg_copy(&arena, &more, first(SL_MSG_EVENT));
	step(&more);
	expect("deliver 1 to i7 multi, deliver 1 to single multi", "delivered 1");
}

/* --- time, memory, stored form --- */

Test(mailbox, time_never_goes_back)
{
	event("1", "W");
	int64_t then = now_ms;
	now_ms -= 5000;
	event("2", "W");
	cr_assert_eq(sl_mailbox_now(box), then);
	cr_assert_eq(summary().updated_ms, then);
	cr_assert_eq(summary().created_ms, then);
}

Test(mailbox, an_idle_mailbox_goes)
{
	cr_assert_not(summary().exists);
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	cr_assert(summary().exists);
	cr_assert_eq(summary().expires_ms, 0, "it holds a claim");
	now_ms += 10000000;
	sweep();
	cr_assert_eq(written, 0);
	unsubscribe(inst, "w", 0, NULL);
	cr_assert_eq(summary().expires_ms, now_ms + 3600000);
	now_ms += 3599999;
	sweep();
	cr_assert(summary().exists);
	now_ms += 1;
	sweep();
	cr_assert_not(summary().exists);
	cr_assert_eq(store.count, 0);
	/* its key comes back with the event that comes back */
	unsubscribe("x.1", "w", 0, "[{'id':'7','source':'/test','type':'S','k':55}]");
	expect("start w(7)", "started 7");
	cr_assert(sl_json_equal(first(SL_MSG_START)->key, key));
}

Test(mailbox, a_forgotten_mailbox_that_gets_an_event_before_the_commit_lives)
{
	event("1", "W");
	now_ms += 10000;
	subscribe("i1", "w", 0, "[{'type':'W'}]");
	unsubscribe("i1", "w", 0, NULL);
	now_ms += 3600000;
	struct sl_msg in;
	struct sl_pos pos = {1, 99, ""};
	sl_msg_init(&in, SL_MSG_SWEEP);
	cr_assert_eq(sl_mailbox_step(&eng, box, &in, &pos, now_ms, &fx), 0);
	cr_assert_not(summary().exists);
	event("2", "W");
	cr_assert(summary().exists);
	expect("", "early 2");
	event("1", "W");
	expect("", "duplicate 1");
}

Test(mailbox, a_step_writes_what_changed)
{
	reload = false;
	deploy_ordinary("w", "1.0.0", "hash-w");
	for (int i = 0; i < 50; i++)
		subscribe(sl_arena_printf(&arena, "i%d", i), "x", 0, "[{'type':'X'}]");
	event("1", "S");
	const char *inst = started();
	event("2", "W");
	/* header, origin, ring slot */
	struct sl_field *fields;
	struct sl_msg in;
	struct sl_pos pos = {1, 99, ""};
	int n;
	bool is_gone;
	sl_msg_init(&in, SL_MSG_EVENT);
	in.event = build_ev("3", "W", "");
	in.origin_topic = "sluice.events";
	in.origin_partition = 0;
	in.origin_offset = 77;
	cr_assert_eq(sl_mailbox_step(&eng, box, &in, &pos, now_ms, &fx), 0);
	sl_msg_clear(&in);
	sl_mailbox_changes(box, &arena, &fields, &n, &is_gone);
	cr_assert_eq(n, 3, "%d", n);
	(void)inst;
}

Test(mailbox, what_is_unknown_in_the_store_stays)
{
	deploy_ordinary("w", "1.0.0", "hash-w");
	event("1", "S");
	const char *inst = started();
	free(sl_map_set(&store, "zz", strdup("{\"from\":\"the future\"}")));
	free(sl_map_set(&store, "q:1", strdup("not json")));
	jv sub;
	cr_assert_eq(sl_json_parse(stored("s:1"), strlen(stored("s:1")), &sl_json_default, &sub, NULL), 0);
	free(sl_map_set(&store, "s:1", sl_json_text(sub = sl_json_set(sub, "future", jv_number(7)))));
	jv_free(sub);
	load();
	struct sl_msg in = from(SL_MSG_TRANSFER, inst, "w");
	in.successor = "next.1";
	step(&in);
	cr_assert_str_eq(stored("zz"), "{\"from\":\"the future\"}");
	cr_assert_not_null(strstr(stored("s:1"), "\"future\":7"));
	cr_assert_not_null(strstr(stored("s:1"), "next.1"));
	event("2", "W");
	expect("deliver 2 to next.1", "delivered 2");
}

Test(mailbox, damaged_state_is_refused)
{
	static const char *const bad[][2] = {{"s:1", "{}"}, {"s:x", "{\"instance\":\"a\",\"workflow\":\"b\"}"},
		{"h", "[]"}, {"e:1", "{\"event\":5}"}, {"j:1", "{\"event\":{}}"}, {"o:t:1", "\"x\""}, {"c:w", "{}"},
		{"r:1", "\"zz\""}, {"h", "{"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct sl_field field = {bad[i][0], {bad[i][1], strlen(bad[i][1])}};
		struct sl_mailbox *other = sl_mailbox_new("default", id);
		struct sl_diags diags;
		sl_diags_init(&diags);
		cr_assert_eq(sl_mailbox_load(&eng, other, &field, 1, &diags), SL_EPARSE, "%s %s", bad[i][0], bad[i][1]);
		cr_assert_not_null(strstr(sl_diags_first(&diags), bad[i][0]));
		sl_diags_release(&diags);
		sl_mailbox_free(other);
	}
}

Test(mailbox, decision_records_are_bounded)
{
	for (int i = 0; i < 50; i++)
		subscribe(sl_arena_printf(&arena, "i%d", i), "x", 0, i < 25 ? "[{'type':'X'}]" : "[{'type':'T'}]");
	char *long_id = malloc(10001);
	memset(long_id, 'x', 10000);
	long_id[10000] = 0;
	event(long_id, "T");
	free(long_id);
	const struct sl_msg *why = first(SL_MSG_WHY);
	char *text = sl_json_text(why->data);
	cr_assert_lt(strlen(text), 6000);
	cr_assert_eq(sl_json_int(why->data, "more", 0), 5 + 5);
	free(text);
}

Test(mailbox, other_inputs_change_nothing)
{
	for (int kind = SL_MSG_NONE; kind < SL_MSG_KIND_COUNT_; kind++) {
		struct sl_msg in;
		sl_msg_init(&in, (enum sl_msg_kind)kind); /* none has what its kind needs */
		step(&in);
		cr_assert_eq(store.count, 0);
		cr_assert_eq(fx.count, 0);
	}
	cr_assert_gt(sl_mailbox_bytes(box), 0);
}
