/* Route: from the shapes of the known plans to the actors that an event concerns (design section 5, "Route").
 *
 * One pass over the references to the event's type collects targets, each once; each target becomes one record. */
#include "common/engine/route.h"

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/engine/why.h"
#include "common/model/event.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct router {
	const struct sl_engine *eng;
	const char *ns;
	jv ev;
	const struct sl_origin *origin;
	struct sl_effects *fx;
	struct sl_map done; /* addresses and workflows served already */
	struct sl_why why;
	int count;
};

char *sl_route_local_box(struct sl_arena *arena, int32_t partition, const char *ns, const char *type)
{
	return sl_arena_printf(arena, "@%" PRId32 "~%s~%s", partition, ns, type ? type : "*");
}

/* One record; the caller adds what is special. The id derives from the public record's position (R3). */
static struct sl_msg *add(struct router *r, enum sl_msg_kind kind, const char *to)
{
	char partition[16], offset[24], index[16], id[SL_UUID_TEXT];
	snprintf(partition, sizeof partition, "%" PRId32, r->origin->partition);
	snprintf(offset, sizeof offset, "%" PRId64, r->origin->offset);
	snprintf(index, sizeof index, "%d", r->count);
	sl_id_derive((const char *const[]){r->ns, r->origin->topic, partition, offset, index}, 5, id);
	struct sl_msg *msg = sl_effects_add(r->fx, kind);
	msg->ns = sl_arena_str(r->fx->arena, r->ns);
	msg->to = sl_arena_str(r->fx->arena, to);
	msg->id = sl_arena_str(r->fx->arena, id);
	msg->origin_topic = sl_arena_str(r->fx->arena, r->origin->topic);
	msg->origin_partition = r->origin->partition;
	msg->origin_offset = r->origin->offset;
	msg->traceparent = sl_arena_str(r->fx->arena, sl_event_attr(r->ev, "traceparent"));
	r->count++;
	return msg;
}

/* True the first time. */
static bool first(struct router *r, const char *what)
{
	return !sl_map_set(&r->done, what, (void *)(uintptr_t)1);
}

static void to_box(struct router *r, const char *address, jv key, const char *workflow)
{
	if (!first(r, address)) {
		jv_free(key);
		return;
	}
	struct sl_msg *msg = add(r, SL_MSG_EVENT, address);
	msg->event = jv_copy(r->ev);
	msg->key = key;
	msg->workflow = sl_arena_str(r->fx->arena, workflow);
}

/* The mailbox of these names; false if the event lacks one of them (A81: no match). */
static bool to_key(struct router *r, const struct sl_event_ref *ref, const char *const *names, int count)
{
	const char **values = SL_NEWN(r->fx->arena, const char *, count);
	jv key = jv_object();
	char home[34] = "#";
	for (int i = 0; i < count; i++) {
		struct sl_buf value;
		sl_buf_init(&value);
		bool there = sl_event_canonical(r->ev, names[i], &value);
		if (there) {
			values[i] = sl_arena_strn(r->fx->arena, value.len ? value.data : "", value.len);
			key = sl_json_set(key, names[i], jv_string(values[i]));
		}
		sl_buf_release(&value);
		if (!there) {
			sl_why_candidate(&r->why, ref->plan->id, NULL, ref->plan->hash,
				&(struct sl_mismatch){names[i], NULL}, r->ev);
			jv_free(key);
			return false;
		}
	}
	sl_home_of_key(names, values, count, home + 1);
	to_box(r, home, key, NULL);
	return true;
}

static void to_local(struct router *r, const char *type)
{
	for (int32_t p = 0; p < r->eng->partitions; p++)
		to_box(r, sl_route_local_box(r->fx->arena, p, r->ns, type), jv_invalid(), NULL);
}

/* R3: the id of an uncorrelated start derives from workflow, source and event id, so a duplicate starts nothing. */
static void to_start(struct router *r, const struct sl_event_ref *ref)
{
	struct sl_plan *plan = ref->plan;
	const char *source = sl_event_attr(r->ev, "source"), *event_id = sl_event_attr(r->ev, "id");
	char id[SL_UUID_TEXT];
	sl_id_derive((const char *const[]){r->ns, plan->id, source ? source : "", event_id ? event_id : ""}, 4, id);
	if (!first(r, id))
		return;
	struct sl_msg *msg = add(r, SL_MSG_START, id);
	msg->workflow = sl_arena_str(r->fx->arena, plan->id);
	msg->version = sl_arena_str(r->fx->arena, plan->version);
	msg->plan = sl_arena_str(r->fx->arena, plan->hash);
	msg->events = jv_array_append(jv_array(), jv_copy(r->ev));
}

static void to_join(struct router *r, const struct sl_plan *plan)
{
	char home[34] = "#";
	sl_home_of_workflow(r->ns, plan->id, home + 1);
	to_box(r, home, jv_invalid(), plan->id);
}

/* Names of a keyed definition's set. */
static const char *const *names_of(const struct sl_event_ref *ref)
{
	return (const char *const *)ref->plan->sets[ref->def->set].names;
}

/* What the definition starts. A keyed one goes to its mailbox for the sake of living instances too, whoever listens. */
static void route_start(struct router *r, const struct sl_event_ref *ref)
{
	const char *const *join;
	int join_count;
	if (sl_plan_join(ref->plan, &join, &join_count)) {
		if (join_count)
			(void)to_key(r, ref, join, join_count);
		else if (ref->listening)
			to_join(r, ref->plan);
	} else if (ref->def->set >= 0) {
		(void)to_key(r, ref, names_of(ref), ref->def->key_count);
	} else if (ref->listening) {
		to_start(r, ref);
	}
}

/* An instance that a command started may wait for its start event with nothing bound, or with nothing to bind: then the event both
 * starts one and goes to those that wait (A169, A78). The plans cannot tell, and asking every partition for each start
 * event would be dear: who waits so says so (sl_engine.waits) before it does. */
static void to_waits(struct router *r, const char *type)
{
	const char *key = sl_arena_printf(r->fx->arena, "%s~%s", r->ns, type ? type : "*");
	const struct sl_waits *waits = r->eng->waits ? sl_map_get(r->eng->waits, key) : NULL;
	for (int i = 0; waits && i < waits->count; i++)
		if (waits->partitions[i] < r->eng->partitions)
			to_box(r, sl_route_local_box(r->fx->arena, waits->partitions[i], r->ns, type), jv_invalid(), NULL);
}

static void visit(void *arg, const struct sl_event_ref *ref)
{
	struct router *r = arg;
	struct sl_mismatch miss;
	if (!sl_event_def_matches(ref->def, r->ev, &miss)) {
		sl_why_candidate(&r->why, ref->plan->id, NULL, ref->plan->hash, &miss, r->ev);
		return;
	}
	if (ref->start)
		route_start(r, ref);
	if (!ref->def->waited)
		return;
	if (ref->def->set < 0)
		to_local(r, ref->def->type);
	else if (to_key(r, ref, names_of(ref), ref->def->key_count) && ref->def->may_be_unbound)
		to_local(r, ref->def->type);
}

/* An instance's id as an attribute value: only then is it an address. */
static bool instance_id_valid(const char *id)
{
	size_t len = strlen(id);
	return len && len < SL_HOME_MAX && !sl_id_is_mailbox(id) &&
	       strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

/* R9: a loop of publishing and starting ends. */
static bool too_many_hops(struct router *r)
{
	jv hops = sl_json_get(r->ev, "sluicehops");
	double n = jv_get_kind(hops) == JV_KIND_NUMBER ? jv_number_value(hops) : 0;
	jv_free(hops);
	if (r->eng->limits.hops_max <= 0 || n <= r->eng->limits.hops_max)
		return false;
	struct sl_msg *msg = add(r, SL_MSG_DEAD_LETTER, NULL);
	msg->event = jv_copy(r->ev);
	msg->reason = sl_arena_printf(
		r->fx->arena, "hops: workflows triggered one another more than %d times", r->eng->limits.hops_max);
	r->count = 0;
	return true;
}

int sl_route_event(const struct sl_engine *eng, const char *ns, jv ev, const struct sl_origin *origin,
	struct sl_effects *fx, jv *ret_why)
{
	struct router r = {.eng = eng, .ns = ns, .ev = ev, .origin = origin, .fx = fx};
	const char *type = sl_event_attr(ev, "type"), *instance = sl_event_attr(ev, "workflowinstanceid");
	const char *decision = SL_WHY_NOBODY;
	sl_map_init(&r.done);
	sl_why_init(&r.why);
	if (too_many_hops(&r)) {
		decision = SL_WHY_HOPS;
	} else if (instance) {
		if (instance_id_valid(instance))
			to_box(&r, instance, jv_invalid(), NULL);
		else
			r.why.note = "workflowinstanceid is no instance id";
	} else {
		if (type)
			sl_plans_refs(eng->plans, ns, type, visit, &r);
		sl_plans_refs(eng->plans, ns, NULL, visit, &r);
		if (type)
			to_waits(&r, type);
		to_waits(&r, NULL);
	}
	*ret_why = r.count ? jv_invalid() : sl_why_take(&r.why, "router", ev, decision);
	sl_why_release(&r.why);
	sl_map_release(&r.done, NULL);
	return r.count;
}
