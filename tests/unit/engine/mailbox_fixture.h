/* One mailbox for tests of its clauses. After every step what changed is written to a small store, and the mailbox of
 * the next step is loaded from there. */
#ifndef SL_TEST_MAILBOX_FIXTURE_H
#define SL_TEST_MAILBOX_FIXTURE_H

#include "common/engine/mailbox.h"
#include "tests/unit/engine/plans_builder.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct sl_plans *plans;
static struct sl_engine eng;
static struct sl_arena arena;
static struct sl_effects fx;
static struct sl_map store; /* field -> text */
static struct sl_mailbox *box;
static char id[64];
static jv key;
static int64_t now_ms, offset, origin_offset;
static int written; /* fields written by the last step */
static bool reload, gone;

static void setup(void)
{
	plans = sl_plans_new();
	eng = (struct sl_engine){.plans = plans, .partitions = 4};
	eng.limits = (struct sl_limits){.early_window_ms = 10000,
		.early_max = 1000,
		.join_max = 1000,
		.fan_out_max = 1000,
		.idle_ms = 3600000,
		.ring_max = 256,
		.effect_ring_max = 1024};
	sl_arena_init(&arena);
	sl_effects_init(&fx, &arena);
	sl_map_init(&store);
	key = build_json("{'k':'55'}");
	id[0] = '#';
	sl_home_of_key((const char *const[]){"k"}, (const char *const[]){"55"}, 1, id + 1);
	box = sl_mailbox_new("default", id);
	now_ms = 1000000;
	offset = origin_offset = 0;
	reload = true;
}

static void teardown(void)
{
	jv_free(key);
	sl_mailbox_free(box);
	sl_map_release(&store, free);
	sl_effects_release(&fx);
	sl_arena_release(&arena);
	sl_plans_free(plans);
}

TestSuite(mailbox, .init = setup, .fini = teardown);

static void at_local_box(void)
{
	sl_mailbox_free(box);
	snprintf(id, sizeof id, "@1~default~T");
	box = sl_mailbox_new("default", id);
	jv_free(key);
	key = jv_invalid();
}

static void load(void)
{
	struct sl_field *fields = SL_NEWN(&arena, struct sl_field, store.count + 1);
	struct sl_diags diags;
	int n = 0;
	sl_diags_init(&diags);
	sl_map_each(&store, e) fields[n++] = (struct sl_field){e->key, {e->value, strlen(e->value)}};
	sl_mailbox_free(box);
	box = sl_mailbox_new("default", id);
	cr_assert_eq(sl_mailbox_load(&eng, box, fields, n, &diags), 0, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
}

static void commit(void)
{
	struct sl_field *fields;
	sl_mailbox_changes(box, &arena, &fields, &written, &gone);
	if (gone) {
		sl_map_release(&store, free);
		sl_map_init(&store);
	}
	for (int i = 0; i < written; i++) {
		const struct sl_field *field = &fields[i];
		free(field->value.ptr ? sl_map_set(&store, field->name, strndup(field->value.ptr, field->value.len))
				      : sl_map_del(&store, field->name));
	}
	sl_mailbox_committed(box);
	int again;
	bool gone_again;
	sl_mailbox_changes(box, &arena, &fields, &again, &gone_again);
	cr_assert_eq(again, 0);
	cr_assert_not(gone_again);
	if (reload)
		load();
}

/* Steps and clears the message. */
static void step(struct sl_msg *in)
{
	struct sl_pos pos = {.partition = 1, .offset = ++offset, .path = ""};
	char effect[SL_UUID_TEXT];
	sl_effects_clear(&fx);
	cr_assert_eq(sl_mailbox_step(&eng, box, in, &pos, now_ms, &fx), 0);
	for (int i = 0; i < fx.count; i++) {
		if (!fx.items[i].id) {
			sl_id_effect("default", &pos, i, effect);
			fx.items[i].id = sl_arena_str(&arena, effect);
		}
		fx.items[i].from = sl_arena_str(&arena, id);
	}
	sl_msg_clear(in);
	commit();
}

/* Takes ev. */
static void event_at(jv ev, int64_t partition, int64_t at)
{
	struct sl_msg in;
	sl_msg_init(&in, SL_MSG_EVENT);
	in.event = ev;
	in.key = jv_copy(key);
	in.origin_topic = "sluice.events";
	in.origin_partition = partition;
	in.origin_offset = at;
	step(&in);
}

static void event(const char *ev_id, const char *type)
{
	event_at(build_ev(ev_id, type, ",'k':55"), 0, ++origin_offset);
}

static struct sl_msg from(enum sl_msg_kind kind, const char *inst, const char *workflow)
{
	static int effects;
	struct sl_msg in;
	sl_msg_init(&in, kind);
	in.from = inst;
	in.workflow = workflow;
	in.id = sl_arena_printf(&arena, "effect-%d", ++effects);
	return in;
}

static void subscribe(const char *inst, const char *workflow, int64_t token, const char *wants)
{
	struct sl_msg in = from(SL_MSG_SUBSCRIBE, inst, workflow);
	in.token = token;
	in.wants = build_json("%s", wants);
	in.key = jv_copy(key);
	step(&in);
}

/* events: array text or NULL. */
static void unsubscribe(const char *inst, const char *workflow, int64_t token, const char *events)
{
	struct sl_msg in = from(SL_MSG_UNSUBSCRIBE, inst, workflow);
	in.token = token;
	in.events = events ? build_json("%s", events) : jv_invalid();
	step(&in);
}

static void give_back(const char *inst, const char *workflow, const char *ev_id, const char *type, bool multi)
{
	struct sl_msg in = from(SL_MSG_RETURN, inst, workflow);
	in.event = build_ev(ev_id, type, ",'k':55");
	in.multi = multi;
	step(&in);
}

static void sweep(void)
{
	struct sl_msg in;
	sl_msg_init(&in, SL_MSG_SWEEP);
	step(&in);
}

/* The effects of the last step but WHY, as text: "deliver 1 to x.1 [token] [multi]", "start w(1,2)". START ids are
 * written "NEW". */
static const char *effects(void)
{
	static char text[4000];
	size_t len = 0;
	text[0] = 0;
	for (int i = 0; i < fx.count; i++) {
		const struct sl_msg *m = &fx.items[i];
		if (m->kind == SL_MSG_WHY)
			continue;
		len += (size_t)snprintf(
			text + len, sizeof text - len, "%s%s", len ? ", " : "", sl_msg_kind_text(m->kind));
		if (jv_is_valid(m->event))
			len += (size_t)snprintf(text + len, sizeof text - len, " %s", sl_json_str(m->event, "id"));
		if (m->kind == SL_MSG_START) {
			len += (size_t)snprintf(text + len, sizeof text - len, " %s(", m->workflow);
			jv_array_foreach(m->events, k, ev)
			{
				len += (size_t)snprintf(
					text + len, sizeof text - len, "%s%s", k ? "," : "", sl_json_str(ev, "id"));
				jv_free(ev);
			}
			len += (size_t)snprintf(text + len, sizeof text - len, ")");
		} else if (m->to) {
			len += (size_t)snprintf(text + len, sizeof text - len, " to %s", m->to);
		}
		if (m->token)
			len += (size_t)snprintf(text + len, sizeof text - len, " token %d", (int)m->token);
		if (m->kind == SL_MSG_CLAIM_ANSWER)
			len += (size_t)snprintf(text + len, sizeof text - len, m->ok ? " yes" : " no");
		if (m->multi)
			len += (size_t)snprintf(text + len, sizeof text - len, " multi");
	}
	return text;
}

/* The decisions of the last step: "started 1, early 2". */
static const char *whys(void)
{
	static char text[2000];
	size_t len = 0;
	text[0] = 0;
	for (int i = 0; i < fx.count; i++) {
		if (fx.items[i].kind != SL_MSG_WHY)
			continue;
		jv ev = sl_json_get(fx.items[i].data, "event");
		cr_assert_str_eq(sl_json_str(fx.items[i].data, "at"), id);
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", len ? ", " : "",
			sl_json_str(fx.items[i].data, "decision"), sl_json_str(ev, "id"));
		jv_free(ev);
	}
	return text;
}

static const struct sl_msg *first(enum sl_msg_kind kind)
{
	for (int i = 0; i < fx.count; i++)
		if (fx.items[i].kind == kind)
			return &fx.items[i];
	cr_assert_fail("no effect %s", sl_msg_kind_text(kind));
	return NULL;
}

/* The instance that the last step started; valid until the teardown. */
static const char *started(void)
{
	return sl_arena_str(&arena, first(SL_MSG_START)->to);
}

#define expect(what, did)                                                                                              \
	do {                                                                                                           \
		cr_assert_str_eq(effects(), what);                                                                     \
		cr_assert_str_eq(whys(), did);                                                                         \
	} while (0)

static const char *to(const char *fmt, const char *inst)
{
	char *text = sl_arena_str(&arena, "");
	struct sl_buf buf;
	sl_buf_init(&buf);
	for (const char *p = fmt; *p; p++)
		*p == '$' ? sl_buf_adds(&buf, inst) : sl_buf_addc(&buf, *p);
	text = sl_arena_strn(&arena, buf.data, buf.len);
	sl_buf_release(&buf);
	return text;
}

static struct sl_summary summary(void)
{
	struct sl_summary sum;
	sl_mailbox_summary(box, &sum);
	return sum;
}

static const char *stored(const char *field)
{
	return sl_map_get(&store, field);
}

/* Start S(k), then W(k). */
static void deploy_ordinary(const char *workflow, const char *version, const char *hash)
{
	struct sl_plan *plan = build_plan(workflow, version, hash);
	build_start(plan, false, 0, build_event(plan, "S", NULL, "k"), -1);
	build_wait(plan, build_event(plan, "W", NULL, "k"));
	build_deploy(plans, "default", plan);
}

static void deploy_join(int64_t window_ms)
{
	struct sl_plan *plan = build_plan("j", "1.0.0", "hash-j");
	build_start(plan, true, window_ms, build_event(plan, "G", NULL, "k"), build_event(plan, "H", NULL, "k"), -1);
	build_deploy(plans, "default", plan);
}

#endif
