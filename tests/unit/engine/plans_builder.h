/* Plans built by hand, for tests of what only looks at event references: router, mailboxes, plans. */
#ifndef SL_TEST_PLANS_BUILDER_H
#define SL_TEST_PLANS_BUILDER_H

#include "common/engine/engine.h"
#include "common/engine/route.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BUILD_EVENTS_MAX 16

/* `hash`: any text; the real one would be 64 hex digits. */
static inline struct sl_plan *build_plan(const char *id, const char *version, const char *hash)
{
	struct sl_plan *plan = sl_plan_new();
	plan->id = sl_arena_str(&plan->arena, id);
	plan->name = plan->id;
	plan->version = sl_arena_str(&plan->arena, version);
	snprintf(plan->hash, sizeof plan->hash, "%s", hash);
	plan->events = SL_NEWN(&plan->arena, struct sl_event_def, BUILD_EVENTS_MAX);
	plan->start.events = SL_NEWN(&plan->arena, int, BUILD_EVENTS_MAX);
	return plan;
}

/* keys: "a,b" sorted; NULL: unkeyed. A part "a=" has an expression of its own. Gives the index. */
static inline int build_event(struct sl_plan *plan, const char *type, const char *source, const char *keys)
{
	struct sl_event_def *def = &plan->events[plan->event_count];
	char name[32];
	snprintf(name, sizeof name, "event%d", plan->event_count);
	def->name = sl_arena_str(&plan->arena, name);
	def->type = sl_arena_str(&plan->arena, type);
	def->source = sl_arena_str(&plan->arena, source);
	def->keys = SL_NEWN(&plan->arena, struct sl_key_part, 4);
	def->filters = SL_NEWN(&plan->arena, struct sl_attr_filter, 4);
	while (keys && *keys) {
		size_t len = strcspn(keys, ",");
		bool own = len && keys[len - 1] == '=';
		def->keys[def->key_count++] = (struct sl_key_part){
			.name = sl_arena_strn(&plan->arena, keys, own ? len - 1 : len), .value = own ? 0 : SL_NO_EXPR};
		keys += len + (keys[len] == ',');
	}
	return plan->event_count++;
}

static inline void build_filter(struct sl_plan *plan, int event, const char *name, const char *value)
{
	struct sl_event_def *def = &plan->events[event];
	def->filters[def->filter_count++] =
		(struct sl_attr_filter){sl_arena_str(&plan->arena, name), sl_arena_str(&plan->arena, value)};
}

static inline struct sl_node *build_await(struct sl_plan *plan, int event)
{
	char ptr[32];
	snprintf(ptr, sizeof ptr, "/states/%d", (int)plan->nodes.count);
	struct sl_node *node = sl_plan_node(plan, SL_NODE_AWAIT, ptr, SL_NOWHERE);
	node->u.await.alts = SL_NEW(&plan->arena, struct sl_alt);
	node->u.await.alt_count = 1;
	node->u.await.alts[0].cond = (struct sl_cond){.kind = SL_COND_EVENT, .event = event};
	return node;
}

/* The start state waits for these events (end with -1). */
static inline void build_start(struct sl_plan *plan, bool all, int64_t window_ms, ...)
{
	va_list ap;
	va_start(ap, window_ms);
	for (int event; (event = va_arg(ap, int)) >= 0;)
		plan->start.events[plan->start.count++] = event;
	va_end(ap);
	plan->start.all = all;
	plan->start.window_ms = window_ms;
	plan->start.await = build_await(plan, plan->start.events[0]);
}

/* Some later state waits for it. */
static inline void build_wait(struct sl_plan *plan, int event)
{
	build_await(plan, event);
}

/* Finishes the plan, makes it known and active; the registry holds the only reference afterwards. */
static inline struct sl_plan *build_deploy(struct sl_plans *plans, const char *ns, struct sl_plan *plan)
{
	sl_plan_finish(plan);
	sl_plans_add(plans, ns, plan);
	sl_plans_point(plans, ns, plan->id, plan->version, plan->hash, true);
	sl_plan_unref(plan);
	return plan;
}

/* JSON text with single quotes. */
static inline jv build_json(const char *fmt, ...) SL_PRINTF(1, 2);
static inline jv build_json(const char *fmt, ...)
{
	struct sl_buf buf;
	va_list ap;
	jv value;
	sl_buf_init(&buf);
	va_start(ap, fmt);
	sl_buf_vprintf(&buf, fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < buf.len; i++)
		if (buf.data[i] == '\'')
			buf.data[i] = '"';
	int err = sl_json_parse(buf.data, buf.len, &sl_json_default, &value, NULL);
	if (err)
		value = jv_invalid();
	sl_buf_release(&buf);
	return value;
}

/* An event; `more`: further members with a leading comma, or "". */
static inline jv build_ev(const char *id, const char *type, const char *more)
{
	return build_json("{'specversion':'1.0','id':'%s','source':'/test','type':'%s'%s}", id, type, more);
}

#endif
