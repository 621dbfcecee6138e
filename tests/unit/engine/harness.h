/* A small world around the engine for tests: plays owner, router, timer and executor in one partition and in virtual
 * time.
 *
 * A test is a function that drives a world. ENGINE_TEST runs it three times: with actors kept in memory; with every
 * actor stored, freed and read again after every step; and so that the stored fields and all effects of both can be
 * compared. */
#ifndef TESTS_UNIT_ENGINE_HARNESS_H
#define TESTS_UNIT_ENGINE_HARNESS_H

#include "common/dsl/dsl.h"
#include "common/engine/instance.h"
#include "common/engine/mailbox.h"
#include "common/engine/route.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define START_MS INT64_C(1704067200000)

struct world_actor {
	struct sl_actor *actor; /* NULL: to be loaded */
	struct sl_map fields;	/* what the store has: name -> text */
};

struct world {
	bool reload;
	struct sl_plans *plans;
	struct sl_engine eng;
	struct sl_arena arena;
	struct sl_map actors; /* address -> struct world_actor */
	int64_t now_ms, offset, input_offset;
	int depth;
	struct sl_msg actions[20000], timers[20000], published[200], others[2000];
	int action_count, timer_count, published_count, other_count, routed;
	struct sl_buf trace;
};

static inline void world_send(struct world *w, struct sl_msg *msg);

static inline struct world *world_new(bool reload)
{
	struct world *w = calloc(1, sizeof(*w));
	w->reload = reload;
	w->plans = sl_plans_new();
	sl_arena_init(&w->arena);
	sl_map_init(&w->actors);
	sl_buf_init(&w->trace);
	sl_buf_adds(&w->trace, "");
	w->eng.plans = w->plans;
	w->eng.partitions = 1;
	w->eng.seed = 1;
	sl_limits_default(&w->eng.limits);
	w->eng.limits.early_window_ms = 0;
	w->now_ms = START_MS;
	return w;
}

static inline void world_actor_free(void *p)
{
	struct world_actor *a = p;
	sl_actor_free(a->actor);
	sl_map_release(&a->fields, free);
	free(a);
}

static inline void world_free(struct world *w)
{
	for (int i = 0; i < w->action_count; i++)
		sl_msg_clear(&w->actions[i]);
	for (int i = 0; i < w->timer_count; i++)
		sl_msg_clear(&w->timers[i]);
	for (int i = 0; i < w->published_count; i++)
		sl_msg_clear(&w->published[i]);
	for (int i = 0; i < w->other_count; i++)
		sl_msg_clear(&w->others[i]);
	sl_map_release(&w->actors, world_actor_free);
	sl_plans_free(w->plans);
	sl_buf_release(&w->trace);
	sl_arena_release(&w->arena);
	free(w);
}

/* --- JSON --- */

static inline jv json(const char *text)
{
	jv value;
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = sl_json_parse(text, strlen(text), NULL, &value, &diags);
	cr_assert(err == 0, "test JSON %s: %s", text, sl_diags_first(&diags));
	sl_diags_release(&diags);
	return value;
}

/* Takes `got`. */
static inline void expect_json(jv got, const char *want)
{
	jv wanted = json(want);
	char *text = sl_json_text(got);
	cr_expect(sl_json_equal(got, wanted), "got %s, want %s", text, want);
	free(text);
	jv_free(got);
	jv_free(wanted);
}

/* --- actors --- */

static inline struct world_actor *world_actor(struct world *w, const char *id)
{
	struct world_actor *a = sl_map_get(&w->actors, id);
	if (!a) {
		a = calloc(1, sizeof(*a));
		sl_map_init(&a->fields);
		sl_map_set(&w->actors, id, a);
	}
	if (a->actor)
		return a;
	a->actor = sl_actor_new("default", id);
	if (!a->fields.count)
		return a;
	struct sl_diags diags;
	struct sl_field *fields = calloc(a->fields.count, sizeof(*fields));
	int count = 0;
	sl_diags_init(&diags);
	sl_map_each(&a->fields, e) fields[count++] = (struct sl_field){e->key, {e->value, strlen(e->value)}};
	int err = sl_actor_load(&w->eng, a->actor, fields, count, &diags);
	cr_assert(err == 0, "load %s: %s", id, sl_diags_first(&diags));
	free(fields);
	sl_diags_release(&diags);
	return a;
}

static inline void world_commit(struct world *w, struct world_actor *a)
{
	struct sl_field *fields;
	int count;
	bool gone;
	sl_actor_changes(a->actor, &w->arena, &fields, &count, &gone);
	if (gone) {
		sl_map_release(&a->fields, free);
		sl_map_init(&a->fields);
	}
	for (int i = 0; i < count; i++) {
		if (fields[i].value.ptr)
			free(sl_map_set(&a->fields, fields[i].name, strndup(fields[i].value.ptr, fields[i].value.len)));
		else
			free(sl_map_del(&a->fields, fields[i].name));
	}
	sl_actor_committed(a->actor);
	sl_actor_changes(a->actor, &w->arena, &fields, &count, &gone);
	cr_assert(count == 0 && (!gone || !a->fields.count), "%s: %d changes right after the commit (%s)", a->actor->id,
		count, count ? fields[0].name : "gone");
	if (!w->reload)
		return;
	sl_actor_free(a->actor);
	a->actor = NULL;
	char *id = NULL;
	sl_map_each(&w->actors, e) if (e->value == a) id = e->key;
	a = world_actor(w, id);
	sl_actor_changes(a->actor, &w->arena, &fields, &count, &gone);
	cr_assert(count == 0, "%s: %d changes right after loading (%s)", id, count, fields[0].name);
}

/* --- what becomes of effects --- */

static inline void world_trace(struct world *w, const struct sl_msg *msg)
{
	static const char *const none = "-";
	sl_buf_printf(&w->trace, "%s to=%s token=%lld attempt=%lld due=%lld id=%s", sl_msg_kind_text(msg->kind),
		msg->to ? msg->to : none, (long long)msg->token, (long long)msg->attempt, (long long)msg->due_ms,
		msg->id ? msg->id : none);
	jv parts[] = {msg->data, msg->error, msg->event, msg->events, msg->wants, msg->key};
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		sl_buf_addc(&w->trace, ' ');
		if (jv_is_valid(parts[i]))
			sl_json_write(&w->trace, parts[i]);
	}
	sl_buf_addc(&w->trace, '\n');
}

static inline void world_effect(struct world *w, struct sl_msg *msg)
{
	switch (sl_msg_route(msg->kind)) {
	case SL_TO_ACTIONS:
		if (msg->kind == SL_MSG_ACTION) {
			sl_msg_copy(&w->arena, &w->actions[w->action_count++], msg);
			break;
		}
		for (int i = 0; i < w->action_count; i++)
			if (w->actions[i].kind == SL_MSG_ACTION && strcmp(w->actions[i].action, msg->action) == 0 &&
				w->actions[i].token == msg->token)
				w->actions[i].reason = "cancelled";
		break;
	case SL_TO_TIMERS:
		if (msg->kind == SL_MSG_TIMER_SET) {
			sl_msg_copy(&w->arena, &w->timers[w->timer_count++], msg);
			break;
		}
		for (int i = 0; i < w->timer_count; i++)
			if (w->timers[i].kind && strcmp(w->timers[i].to, msg->to) == 0 &&
				w->timers[i].token == msg->token)
				sl_msg_clear(&w->timers[i]);
		break;
	case SL_TO_EVENTS:
		sl_msg_copy(&w->arena, &w->published[w->published_count++], msg);
		break;
	default:
		sl_msg_copy(&w->arena, &w->others[w->other_count++], msg);
	}
}

static inline void world_step(struct world *w, const struct sl_msg *in, const char *path)
{
	struct sl_effects fx;
	struct sl_pos pos = {0, w->input_offset, path};
	struct world_actor *a = world_actor(w, in->to);
	sl_effects_init(&fx, &w->arena);
	cr_assert(++w->depth < 500, "effects without end");
	int err = sl_step(&w->eng, a->actor, in, &pos, w->now_ms, &fx);
	cr_assert(err == 0, "step %s: %s", sl_msg_kind_text(in->kind), sl_err_name(err));
	world_commit(w, a);
	for (int i = 0; i < fx.count; i++) {
		cr_assert(fx.items[i].id && fx.items[i].ns && fx.items[i].from);
		world_trace(w, &fx.items[i]);
		if (sl_msg_route(fx.items[i].kind) == SL_TO_INST) {
			const char *child = sl_arena_printf(&w->arena, *path ? "%s.%d" : "%s%d", path, i);
			world_step(w, &fx.items[i], child);
		} else {
			world_effect(w, &fx.items[i]);
		}
	}
	w->depth--;
	sl_effects_release(&fx);
}

static inline void world_route(struct world *w, jv ev)
{
	struct sl_effects fx;
	struct sl_origin origin = {"sluice.events", 0, w->offset++};
	jv why;
	sl_effects_init(&fx, &w->arena);
	sl_route_event(&w->eng, "default", ev, &origin, &fx, &why);
	jv_free(why);
	for (int i = 0; i < fx.count; i++) {
		if (sl_msg_route(fx.items[i].kind) != SL_TO_INST) {
			world_effect(w, &fx.items[i]);
			continue;
		}
		w->input_offset++;
		world_step(w, &fx.items[i], "");
	}
	sl_effects_release(&fx);
	jv_free(ev);
}

/* Published events come in again like any other (A82). */
static inline void world_settle(struct world *w)
{
	while (w->routed < w->published_count) {
		jv raw = jv_copy(w->published[w->routed++].event), ev;
		struct sl_diags diags;
		sl_diags_init(&diags);
		int err = sl_event_check(raw, &ev, &diags);
		cr_assert(err == 0, "published event: %s", sl_diags_first(&diags));
		sl_diags_release(&diags);
		world_route(w, ev);
	}
}

/* Takes msg's values. */
static inline void world_send(struct world *w, struct sl_msg *msg)
{
	msg->ns = "default";
	w->input_offset++;
	world_step(w, msg, "");
	sl_msg_clear(msg);
	world_settle(w);
}

/* --- what tests do --- */

static inline struct sl_plan *world_compile(struct world *w, const char *yaml)
{
	struct sl_compile_options opt = {
		.dialect = SL_DIALECT_SW08, .deploy = true, .lenient = true, .file = "test.yaml"};
	struct sl_plan *plan = NULL;
	struct sl_diags diags;
	struct sl_buf text;
	(void)w;
	sl_diags_init(&diags);
	sl_buf_init(&text);
	int err = sl_compile(yaml, strlen(yaml), &opt, &plan, &diags);
	sl_diags_print(&diags, &text, yaml);
	cr_assert(err == 0 && plan, "compile: %s", text.len ? text.data : "no plan");
	sl_buf_release(&text);
	sl_diags_release(&diags);
	return plan;
}

/* Takes plan. */
static inline void world_deploy_plan(struct world *w, struct sl_plan *plan)
{
	sl_plans_add(w->plans, "default", plan);
	sl_plans_point(w->plans, "default", plan->id, plan->version, plan->hash, true);
	sl_plan_unref(plan);
}

static inline void world_deploy(struct world *w, const char *yaml)
{
	world_deploy_plan(w, world_compile(w, yaml));
}

static inline void world_start(struct world *w, const char *id, const char *workflow, const char *input)
{
	struct sl_msg msg;
	struct sl_plan *plan = sl_plans_current(w->plans, "default", workflow, NULL);
	cr_assert(plan, "workflow %s is not deployed", workflow);
	sl_msg_init(&msg, SL_MSG_START);
	msg.to = id;
	msg.workflow = workflow;
	msg.plan = plan->hash;
	msg.command_id = sl_arena_printf(&w->arena, "start-%s", id);
	if (input)
		msg.data = json(input);
	world_send(w, &msg);
}

static inline void world_command(struct world *w, enum sl_msg_kind kind, const char *id)
{
	struct sl_msg msg;
	sl_msg_init(&msg, kind);
	msg.to = id;
	msg.command_id = sl_arena_printf(&w->arena, "%s-%d", sl_msg_kind_text(kind), (int)w->input_offset);
	world_send(w, &msg);
}

/* An event: `attributes` are further members of the object, "" or "\"orderid\":\"7\",". data JSON. */
static inline void world_event(
	struct world *w, const char *id, const char *type, const char *attributes, const char *data)
{
	struct sl_diags diags;
	jv ev;
	char *text = sl_arena_printf(&w->arena,
		"{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"/t\",\"type\":\"%s\",%s\"data\":%s}", id, type,
		attributes, data);
	sl_diags_init(&diags);
	int err = sl_event_check(json(text), &ev, &diags);
	cr_assert(err == 0, "event: %s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	world_route(w, ev);
	world_settle(w);
}

/* The n-th action that was asked for (from 0); `error`: JSON of the error instead. */
static inline void world_result(struct world *w, int n, const char *data, const char *error)
{
	struct sl_msg msg;
	cr_assert(n < w->action_count, "action %d of %d", n, w->action_count);
	sl_msg_init(&msg, SL_MSG_RESULT);
	msg.to = w->actions[n].instance;
	msg.token = w->actions[n].token;
	msg.attempt = w->actions[n].attempt;
	if (data)
		msg.data = json(data);
	if (error)
		msg.error = json(error);
	world_send(w, &msg);
}

static inline bool world_cancelled(const struct world *w, int n)
{
	return w->actions[n].reason != NULL;
}

/* The arguments of an action. */
static inline jv world_args(const struct world *w, int n)
{
	cr_assert(n < w->action_count, "action %d of %d", n, w->action_count);
	return jv_copy(w->actions[n].data);
}

static inline int world_next_timer(const struct world *w)
{
	int next = -1;
	for (int i = 0; i < w->timer_count; i++)
		if (w->timers[i].kind && (next < 0 || w->timers[i].due_ms < w->timers[next].due_ms))
			next = i;
	return next;
}

static inline int world_timers(const struct world *w)
{
	int count = 0;
	for (int i = 0; i < w->timer_count; i++)
		count += w->timers[i].kind != SL_MSG_NONE;
	return count;
}

static inline void world_advance(struct world *w, int64_t ms)
{
	int64_t until = w->now_ms + ms;
	int n;
	while ((n = world_next_timer(w)) >= 0 && w->timers[n].due_ms <= until) {
		struct sl_msg msg;
		sl_msg_init(&msg, SL_MSG_TIMER);
		msg.to = w->timers[n].to;
		msg.token = w->timers[n].token;
		msg.due_ms = w->timers[n].due_ms;
		w->now_ms = msg.due_ms > w->now_ms ? msg.due_ms : w->now_ms;
		sl_msg_clear(&w->timers[n]);
		world_send(w, &msg);
	}
	w->now_ms = until;
}

/* --- what tests see --- */

static inline struct sl_instance *world_instance(struct world *w, const char *id)
{
	struct world_actor *a = world_actor(w, id);
	cr_assert(a->actor->inst, "no instance %s", id);
	return a->actor->inst;
}

/* The n-th instance that exists, in order of creation. */
static inline const char *world_nth(struct world *w, int n)
{
	sl_map_each(&w->actors,
		e) if (!sl_id_is_mailbox(e->key) && world_actor(w, e->key)->actor->inst && n-- == 0) return e->key;
	return NULL;
}

static inline int world_instances(struct world *w)
{
	int n = 0;
	while (world_nth(w, n))
		n++;
	return n;
}

static inline void expect_status(struct world *w, const char *id, const char *status)
{
	struct sl_instance *inst = world_instance(w, id);
	char *error = sl_json_text(inst->error);
	cr_expect_str_eq(sl_status_text(inst->status), status, "%s is %s, not %s (error %s)", id,
		sl_status_text(inst->status), status, error);
	free(error);
}

static inline void expect_output(struct world *w, const char *id, const char *output)
{
	expect_status(w, id, "completed");
	expect_json(jv_copy(world_instance(w, id)->output), output);
}

static inline void expect_error(struct world *w, const char *id, const char *code)
{
	const char *its = sl_json_str(world_instance(w, id)->error, "code");
	cr_expect(its && strcmp(its, code) == 0, "error code %s, not %s", its ? its : "(none)", code);
}

static inline jv world_published(const struct world *w, int n)
{
	cr_assert(n < w->published_count, "published event %d of %d", n, w->published_count);
	return jv_copy(w->published[n].event);
}

/* The last effect of a kind among answers, lifecycle events, dead letters, decisions; NULL: none. */
static inline const struct sl_msg *world_last(const struct world *w, enum sl_msg_kind kind)
{
	for (int i = w->other_count - 1; i >= 0; i--)
		if (w->others[i].kind == kind)
			return &w->others[i];
	return NULL;
}

static inline int world_count(const struct world *w, enum sl_msg_kind kind)
{
	int count = 0;
	for (int i = 0; i < w->other_count; i++)
		count += w->others[i].kind == kind;
	return count;
}

/* --- both ways --- */

static inline void world_compare(struct world *a, struct world *b)
{
	cr_expect_str_eq(a->trace.data, b->trace.data,
		"effects differ when actors are stored and read again after each step:\n%s\n---\n%s", a->trace.data,
		b->trace.data);
	sl_map_each(&a->actors, e)
	{
		struct world_actor *x = e->value, *y = sl_map_get(&b->actors, e->key);
		cr_assert(y, "only in memory: %s", e->key);
		cr_expect_eq(x->fields.count, y->fields.count, "%s: %zu and %zu fields", e->key, x->fields.count,
			y->fields.count);
		sl_map_each(&x->fields, f)
		{
			const char *other = sl_map_get(&y->fields, f->key);
			cr_expect(other && strcmp(other, f->value) == 0, "%s %s:\n%s\n%s", e->key, f->key,
				(char *)f->value, other ? other : "-");
		}
	}
}

static inline void world_both_ways(void (*test)(struct world *w))
{
	struct world *kept = world_new(false), *stored = world_new(true);
	test(kept);
	test(stored);
	world_compare(kept, stored);
	world_free(kept);
	world_free(stored);
}

#define ENGINE_TEST(name)                                                                                              \
	static void name##_body(struct world *w);                                                                      \
	Test(engine, name)                                                                                             \
	{                                                                                                              \
		world_both_ways(name##_body);                                                                          \
	}                                                                                                              \
	static void name##_body(struct world *w)

#endif
