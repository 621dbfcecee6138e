/* What must be true at the end. Apart from the code under test: it reads only topics, the service's log and the store. */
#include "common/base/text.h"
#include "common/codec/codec.h"
#include "tests/sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inst {
	const char *id;
	int flow; /* -1: not known */
	int started, ended, faulted;
	bool completed;
	const char *key;
	int64_t started_ms, ended_ms;
};
struct check {
	struct sim *sim;
	struct sl_arena arena;
	struct sl_map ids;   /* "topic id" -> record text: one id, one content */
	struct sl_map insts; /* id -> struct inst */
	struct sl_map seen;  /* "workflow event" -> struct inst */
	struct sl_map told;  /* event id -> decisions, from the why streams */
	struct sl_map plans; /* hash -> struct sim_flow, from the definitions */
	bool cancelled[SIM_FLOWS_MAX];
};

static int flow_of(const struct sim *sim, const char *name)
{
	for (int i = 0; name && i < sim->flow_count; i++)
		if (strcmp(sim->flows[i].name, name) == 0)
			return i;
	return -1;
}

static struct sim_event *event_of(struct sim *sim, const char *id)
{
	for (int i = 0; i < sim->event_count; i++)
		if (strcmp(sim->events[i].id, id) == 0)
			return &sim->events[i];
	return NULL;
}

static struct inst *inst_of(struct check *ck, const char *id)
{
	struct inst *inst = sl_map_get(&ck->insts, id);
	if (!inst) {
		inst = SL_NEW(&ck->arena, struct inst);
		*inst = (struct inst){.id = sl_arena_str(&ck->arena, id), .flow = -1};
		sl_map_set(&ck->insts, id, inst);
	}
	return inst;
}

/* --- one id, one content --- */

static bool equal(struct sl_bytes a, struct sl_bytes b)
{
	return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* False: another record of this id came before, which is given then. */
static bool first_content(struct check *ck, const char *topic, const char *id, struct sl_bytes value, struct sl_bytes *ret_old)
{
	char *key = sl_arena_printf(&ck->arena, "%s %s", topic, id);
	struct sl_bytes *old = sl_map_get(&ck->ids, key);
	if (!old) {
		old = SL_NEW(&ck->arena, struct sl_bytes);
		*old = value; /* records live as long as the world */
		sl_map_set(&ck->ids, key, old);
		return true;
	}
	*ret_old = *old;
	return equal(*old, value);
}

/* --- R11: a step is the same again under the same definitions. Done once more under a newer revision, which is possible when an event
 * is routed again, and for every step after a restore, it names that one, and must be the same otherwise. */

static void read_plans(struct check *ck)
{
	const char *topic = ck->sim->topics.definitions;
	struct sl_record rec;
	for (int64_t o = 0; o < sl_memory_high(ck->sim->world, topic, 0); o++) {
		if (!sl_memory_record(ck->sim->world, topic, 0, o, &rec))
			continue;
		char *key = sl_arena_strn(&ck->arena, rec.key.ptr, rec.key.len); /* NS/ID/VERSION/HASH, or of a wait @P~NS~TYPE */
		if (*key == '@')
			continue;
		char *id = strchr(key, '/'), *hash = strrchr(key, '/') + 1;
		int flow = flow_of(ck->sim, sl_arena_strn(&ck->arena, id + 1, strcspn(id + 1, "/")));
		if (flow >= 0)
			sl_map_set(&ck->plans, hash, &ck->sim->flows[flow]);
	}
}

static bool replayed(const struct check *ck, const struct sim_flow *flow)
{
	return flow && flow->revised && ck->sim->restored;
}

/* Takes both. */
static bool same_but_plan(struct check *ck, struct sl_msg *a, struct sl_msg *b)
{
	const struct sim_flow *flow = a->plan && b->plan ? sl_map_get(&ck->plans, a->plan) : NULL;
	bool routed = flow && flow->revised && a->kind == SL_MSG_START && !a->from, same = false;
	if ((routed || replayed(ck, flow)) && flow == sl_map_get(&ck->plans, b->plan)) {
		struct sl_buf x, y;
		sl_buf_init(&x);
		sl_buf_init(&y);
		a->plan = b->plan = a->version = b->version = NULL;
		same = !sl_msg_encode(a, &x) && !sl_msg_encode(b, &y) && equal(sl_buf_bytes(&x), sl_buf_bytes(&y));
		sl_buf_release(&x);
		sl_buf_release(&y);
	}
	sl_msg_clear(a);
	sl_msg_clear(b);
	return same;
}

static bool newer_revision(struct check *ck, struct sl_bytes old, struct sl_bytes new)
{
	struct sl_msg a, b;
	uint64_t fp;
	if (sl_msg_decode(old, &ck->arena, &a, &fp, NULL))
		return false;
	if (sl_msg_decode(new, &ck->arena, &b, &fp, NULL)) {
		sl_msg_clear(&a);
		return false;
	}
	return same_but_plan(ck, &a, &b);
}

static jv without_version(jv ev)
{
	jv data = sl_json_get(ev, "data");
	return sl_json_set(ev, "data", jv_object_delete(data, jv_string("version")));
}

static bool told_of_newer(struct check *ck, struct sl_bytes old, jv ev)
{
	jv before, data = sl_json_get(ev, "data");
	int flow = flow_of(ck->sim, sl_json_str(data, "workflow"));
	jv_free(data);
	if (flow < 0 || !replayed(ck, &ck->sim->flows[flow]) || sl_json_parse(old.ptr, old.len, &sl_json_default, &before, NULL))
		return false;
	jv a = without_version(before), b = without_version(jv_copy(ev));
	bool same = sl_json_equal(a, b);
	jv_free(a);
	jv_free(b);
	return same;
}

static const char *header(const struct sl_record *rec, const char *name, struct sl_arena *arena)
{
	for (int i = 0; i < rec->header_count; i++)
		if (strcmp(rec->headers[i].name, name) == 0)
			return sl_arena_strn(arena, rec->headers[i].value.ptr, rec->headers[i].value.len);
	return "";
}

/* Tells both as text. */
static void two_contents(struct check *ck, const char *topic, const char *id, const struct sl_record *rec)
{
	const struct sl_bytes *old = sl_map_get(&ck->ids, sl_arena_printf(&ck->arena, "%s %s", topic, id));
	struct sl_bytes both[2] = {*old, rec->value};
	sim_wrong(ck->sim, "%s/%d@%lld: id %s with two contents:", topic, (int)rec->partition, (long long)rec->offset, id);
	for (int i = 0; i < 2; i++) {
		struct sl_msg msg;
		uint64_t fp;
		if (sl_msg_decode(both[i], &ck->arena, &msg, &fp, NULL))
			continue;
		char *ev = jv_is_valid(msg.event) ? sl_json_text(msg.event) : NULL;
		sim_wrong(ck->sim, "    %s to %s from %s time %lld due %lld token %lld attempt %lld deadline %lld origin %d@%lld %s",
			sl_msg_kind_text(msg.kind), msg.to ? msg.to : "", msg.from ? msg.from : "",
			(long long)msg.time_ms - SIM_START_MS, (long long)msg.due_ms - SIM_START_MS, (long long)msg.token,
			(long long)msg.attempt, (long long)msg.deadline_ms, (int)msg.origin_partition,
			(long long)msg.origin_offset, ev ? ev : "");
		free(ev);
		sl_msg_clear(&msg);
	}
}

static void check_internal(struct check *ck, const char *topic)
{
	struct sl_record rec;
	int64_t high;
	for (int32_t p = 0; (high = sl_memory_high(ck->sim->world, topic, p)) >= 0; p++) {
		for (int64_t o = 0; o < high; o++) {
			if (!sl_memory_record(ck->sim->world, topic, p, o, &rec))
				continue;
			const char *id = header(&rec, "ce_id", &ck->arena), *type = header(&rec, "ce_type", &ck->arena);
			struct sl_bytes old;
			/* an answer tells what came of one call, and a call may be made again */
			if (*id && !strstr(type, "result") && !first_content(ck, topic, id, rec.value, &old) &&
				!newer_revision(ck, old, rec.value))
				two_contents(ck, topic, id, &rec);
		}
	}
}

/* --- public events --- */

static void each_event(struct check *ck, const char *topic, void (*visit)(struct check *, jv ev, struct sl_bytes value))
{
	struct sl_record rec;
	int64_t high;
	for (int32_t p = 0; (high = sl_memory_high(ck->sim->world, topic, p)) >= 0; p++) {
		for (int64_t o = 0; o < high; o++) {
			jv ev;
			if (!sl_memory_record(ck->sim->world, topic, p, o, &rec))
				continue;
			if (sl_event_decode(&rec, &sl_json_default, &ev, NULL)) {
				sim_wrong(ck->sim, "%s/%d@%lld is no event", topic, (int)p, (long long)o);
				continue;
			}
			visit(ck, ev, rec.value);
			jv_free(ev);
		}
	}
}

static void visit_public(struct check *ck, jv ev, struct sl_bytes value)
{
	const char *source = sl_json_str(ev, "source"), *id = sl_json_str(ev, "id");
	struct sl_bytes old;
	if (strcmp(source, "sim") != 0 && !first_content(ck, "events", id, value, &old))
		sim_wrong(ck->sim, "published event %s has two contents", id);
}

static void check_dead(struct check *ck)
{
	const char *topic = ck->sim->topics.dead_letter;
	struct sl_record rec;
	for (int64_t o = 0; o < sl_memory_high(ck->sim->world, topic, 0); o++)
		if (!sl_memory_record(ck->sim->world, topic, 0, o, &rec))
			continue;
		else if (*ck->sim->poison.instance && strcmp(header(&rec, "sluice-instance", &ck->arena), ck->sim->poison.instance) == 0)
			ck->sim->poison.told++;
		else if (strstr(header(&rec, "sluice-reason", &ck->arena), "ended the process three times"))
			ck->sim->given_up = true;
		else
			sim_wrong(ck->sim, "dead letter of %s@%s: %s: %.*s", header(&rec, "sluice-origin-partition", &ck->arena),
				header(&rec, "sluice-origin-offset", &ck->arena), header(&rec, "sluice-reason", &ck->arena),
				rec.value.len > 300 ? 300 : (int)rec.value.len,
				rec.value.ptr ? (const char *)rec.value.ptr : "");
}

static int64_t time_of(jv data, const char *name)
{
	int64_t ms = 0;
	const char *text = sl_json_str(data, name);
	return text && sl_time_parse(text, &ms) == 0 ? ms : 0;
}

/* Outputs are exact: what was taken, and what the answers to the calls made of it. */
static void check_unc(struct check *ck, const struct inst *inst, jv output)
{
	jv list = sl_json_get(output, "list"), res = sl_json_get(output, "res"), two = sl_json_get(output, "two");
	jv seen = sl_json_at(output, "/seen/0");
	if (!sl_json_equal(list, res) || !sl_json_equal(two, seen))
		sim_wrong(ck->sim, "%s: wrong output", inst->id);
	jv_free(list);
	jv_free(res);
	jv_free(two);
	jv_free(seen);
}

static void take_seen(struct check *ck, struct inst *inst, const char *n)
{
	struct sim *sim = ck->sim;
	const struct sim_flow *flow = &sim->flows[inst->flow];
	struct sim_event *event = event_of(sim, n);
	char *key = sl_arena_printf(&ck->arena, "%s %s", flow->name, n);
	bool fed = event && sim->flows[event->flow].feeds && strcmp(sim->flows[event->flow].feeds, flow->name) == 0;
	if (!event || (event->flow != inst->flow && !fed)) {
		sim_wrong(sim, "%s of %s took %s, which is not its event", inst->id, flow->name, n);
		return;
	}
	struct inst *other = sl_map_set(&ck->seen, key, inst);
	if (other)
		sim_wrong(sim, "event %s was taken twice: by %s and %s", n, other->id, inst->id);
	if (*event->key && event->key[0] != 'r' && inst->key && strcmp(inst->key, event->key) != 0)
		sim_wrong(sim, "%s took events of two keys: %s and %s", inst->id, inst->key, event->key);
	if (!inst->key)
		inst->key = event->key;
}

static void take_output(struct check *ck, struct inst *inst, jv output)
{
	const struct sim_flow *flow = &ck->sim->flows[inst->flow];
	jv seen = sl_json_get(output, "seen");
	int n = jv_get_kind(seen) == JV_KIND_ARRAY ? jv_array_length(jv_copy(seen)) : -1;
	if (n < flow->seen_min || n > flow->seen_max) {
		char *text = jv_is_valid(output) ? sl_json_text(output) : strdup("none");
		sim_wrong(ck->sim, "%s of %s: wrong output %s", inst->id, flow->name, text);
		free(text);
	}
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(seen), i);
		if (jv_get_kind(one) == JV_KIND_STRING)
			take_seen(ck, inst, jv_string_value(one));
		else
			sim_wrong(ck->sim, "%s of %s: an event that is none in its output", inst->id, flow->name);
		jv_free(one);
	}
	jv_free(seen);
	if (strcmp(flow->name, "unc") == 0)
		check_unc(ck, inst, output);
}

static void ended(struct check *ck, struct inst *inst, const char *type, jv data)
{
	const struct sim_flow *flow = inst->flow >= 0 ? &ck->sim->flows[inst->flow] : NULL;
	bool faulted = strstr(type, "faulted") != NULL;
	if (faulted && flow && (flow->frail || strcmp(inst->id, ck->sim->poison.instance) == 0)) {
		inst->faulted++; /* as it should */
		return;
	}
	jv output = sl_json_get(data, "output");
	inst->ended++;
	inst->started_ms = time_of(data, "startedAt");
	inst->ended_ms = time_of(data, "endedAt");
	inst->completed = strstr(type, "completed") != NULL;
	if (inst->ended > 1)
		sim_wrong(ck->sim, "%s ended twice", inst->id);
	if (inst->ended_ms < inst->started_ms + (flow && inst->completed ? flow->rest_ms : 0))
		sim_wrong(ck->sim, "%s of %s lasted %lld ms, but rests for %lld", inst->id, flow ? flow->name : "?",
			(long long)(inst->ended_ms - inst->started_ms), flow ? (long long)flow->rest_ms : 0);
	if (inst->completed) {
		take_output(ck, inst, output);
	} else if (!sl_map_get(&ck->sim->cancelled, inst->id)) {
		char *text = sl_json_text(data);
		sim_wrong(ck->sim, "%s: %s %s", inst->id, type, text);
		free(text);
	}
	jv_free(output);
}

static void visit_lifecycle(struct check *ck, jv ev, struct sl_bytes value)
{
	const char *type = sl_json_str(ev, "type"), *id = sl_json_str(ev, "id"), *subject = sl_json_str(ev, "subject");
	bool again = sl_map_get(&ck->ids, sl_arena_printf(&ck->arena, "lifecycle %s", id));
	const char *command = sl_json_str(ev, "commandid");
	bool deploy = command && strncmp(command, "deploy", 6) == 0; /* done again, it says "unchanged" */
	struct sl_bytes old;
	if (!first_content(ck, "lifecycle", id, value, &old) && !deploy && !told_of_newer(ck, old, ev))
		sim_wrong(ck->sim, "lifecycle event %s (%s) has two contents: %.*s", id, type, (int)value.len, (const char *)value.ptr);
	if (again || !subject)
		return;
	jv data = sl_json_get(ev, "data");
	if (strcmp(type, "io.sluice.answer") == 0) {
		if (!sl_json_bool(data, "ok", false) && strncmp(sl_json_str(ev, "commandid"), "deploy", 6) == 0)
			sim_wrong(ck->sim, "%s was refused: %s", sl_json_str(ev, "commandid"), sl_json_str(data, "reason"));
	} else {
		struct inst *inst = inst_of(ck, subject);
		inst->flow = flow_of(ck->sim, sl_json_str(data, "workflow"));
		if (inst->flow < 0)
			sim_wrong(ck->sim, "%s is of no workflow of ours", subject);
		else if (strstr(type, "workflow.started") && ++inst->started > 1)
			sim_wrong(ck->sim, "%s started twice", subject);
		else if (strstr(type, "workflow.completed") || strstr(type, "workflow.faulted") ||
			 strstr(type, "workflow.cancelled"))
			ended(ck, inst, type, data);
	}
	jv_free(data);
}

/* --- why --- */

/* One decision. */
static void read_decision(struct check *ck, int32_t partition, const char *text, size_t len)
{
	jv why;
	if (ck->sim->cut.story == SIM_STORY_ALL)
		printf("why {%d} %.*s\n", (int)partition, (int)len, text);
	if (sl_json_parse(text, len, &sl_json_default, &why, NULL))
		return;
	jv event = sl_json_get(why, "event");
	const char *id = sl_json_str(event, "id");
	if (id) {
		const char *before = sl_map_get(&ck->told, id), *decision = sl_json_str(why, "decision");
		jv inst = sl_json_at(why, "/results/0/instance");
		sl_map_set(&ck->told, id, sl_arena_printf(&ck->arena, "%s %s%s%s", before ? before : "",
			decision ? decision : "?", jv_get_kind(inst) == JV_KIND_STRING ? "@" : "",
			jv_get_kind(inst) == JV_KIND_STRING ? jv_string_value(inst) : ""));
		jv_free(inst);
	}
	jv_free(event);
	jv_free(why);
}

/* An entry holds the decisions of a batch, one a line. */
static void read_why(struct check *ck, int32_t partition)
{
	struct sl_hash *hash = sl_memory_peek(ck->sim->world, partition, "why");
	for (int i = 0; i < hash->count; i++) {
		const char *at = hash->fields[i].value, *end = at + hash->fields[i].len;
		while (at < end) {
			const char *line = memchr(at, '\n', (size_t)(end - at));
			line = line ? line : end;
			read_decision(ck, partition, at, (size_t)(line - at));
			at = line + 1;
		}
	}
	sl_memory_hash_free(hash);
}

static const char *told(struct check *ck, const char *id)
{
	const char *text = sl_map_get(&ck->told, id);
	return text ? text : " nothing";
}

/* --- instances and events together --- */

static void check_instances(struct check *ck)
{
	sl_map_each(&ck->insts, e)
	{
		struct inst *inst = e->value;
		const char *name = inst->flow >= 0 ? ck->sim->flows[inst->flow].name : "?";
		if (strcmp(inst->id, ck->sim->poison.instance) == 0)
			continue;
		if (!inst->ended)
			sim_wrong(ck->sim, "%s of %s is stuck%s", inst->id, name, inst->faulted ? " after a fault" : "");
		if (!inst->started)
			sim_wrong(ck->sim, "%s of %s ended and never started", inst->id, name);
		sl_map_each(&ck->insts, f)
		{
			struct inst *other = f->value;
			if (ck->sim->skewed || inst->faulted || other->faulted || other == inst ||
				other->flow != inst->flow || inst->flow < 0 || !inst->key || !other->key ||
				!ck->sim->flows[inst->flow].keyed || strcmp(inst->key, other->key) != 0)
				continue;
			if (other->started_ms >= inst->started_ms && other->started_ms < inst->ended_ms &&
				inst->started_ms < other->ended_ms)
				sim_wrong(ck->sim, "%s (%lld to %lld) and %s (from %lld) lived at the same time under the key %s",
					inst->id, (long long)(inst->started_ms - SIM_START_MS),
					(long long)(inst->ended_ms - SIM_START_MS), other->id,
					(long long)(other->started_ms - SIM_START_MS), inst->key);
		}
	}
}

/* --- cancelled instances --- */

/* The workflows of which an instance was cancelled, and those that they feed. */
static void note_cancelled(struct check *ck)
{
	struct sim *sim = ck->sim;
	sl_map_each(&sim->cancelled, e)
	{
		const struct inst *inst = sl_map_get(&ck->insts, e->key);
		const struct sim_event *event = event_of(sim, e->key); /* of a start by command */
		int flow = inst ? inst->flow : event ? event->flow : -1;
		if (flow < 0)
			continue;
		ck->cancelled[flow] = true;
		int fed = sim->flows[flow].feeds ? flow_of(sim, sim->flows[flow].feeds) : -1;
		if (fed >= 0)
			ck->cancelled[fed] = true;
	}
}

/* What a cancelled instance took is gone with it, and so is what it would have made of it. */
static bool went_with_cancelled(struct check *ck, int flow, const char *why)
{
	if (!ck->cancelled[flow])
		return false;
	sl_map_each(&ck->sim->cancelled, e)
		if (strstr(why, e->key))
			return true;
	/* early: nobody is there any more to want it; joined: only the last member's decision names the instance; nothing:
	 * an uncorrelated start has no mailbox that could tell */
	return strstr(why, "expired") || strstr(why, "early") || strstr(why, "joined") || strstr(why, "ended") ||
	       strstr(why, "nobody") || strcmp(why, " nothing") == 0;
}

static void check_event(struct check *ck, const struct sim_event *event, int flow, bool optional)
{
	const char *workflow = ck->sim->flows[flow].name;
	char *key = sl_arena_printf(&ck->arena, "%s %s", workflow, event->id);
	if (sl_map_get(&ck->seen, key))
		return;
	const char *why = told(ck, event->id);
	if (went_with_cancelled(ck, flow, why))
		return;
	if (!optional)
		sim_wrong(ck->sim, "event %s (%s, key %s) is lost for %s; the why stream says:%s", event->id, event->type,
			event->key, workflow, why);
	else if (!strstr(why, "expired") && !strstr(why, "nobody") && !strstr(why, "early"))
		sim_wrong(ck->sim, "event %s (%s, key %s) was not taken and not explained; the why stream says:%s",
			event->id, event->type, event->key, why);
}

/* R7: its start was given up, in a dead letter, and it stands there as faulted. */
static void check_poison(struct check *ck)
{
	const struct sim *sim = ck->sim;
	const struct inst *inst = sl_map_get(&ck->insts, sim->poison.instance);
	if (!sim->poison.told)
		sim_wrong(ck->sim, "the start of %s was not given up", sim->poison.instance);
	else if (!inst || !inst->faulted)
		sim_wrong(ck->sim, "%s has not faulted, though its start was given up", sim->poison.instance);
}

static void check_events(struct check *ck)
{
	struct sim *sim = ck->sim;
	note_cancelled(ck);
	for (int i = 0; i < sim->event_count; i++) {
		const struct sim_event *event = &sim->events[i];
		const struct sim_flow *flow = &sim->flows[event->flow];
		if (!event->published && ck->cancelled[event->flow])
			continue;
		if (!event->published) {
			sim_wrong(sim, "the call that sets off %s (%s) was never made", event->id, event->type);
			continue;
		}
		if (strcmp(event->id, sim->poison.instance) == 0) {
			check_poison(ck);
			continue;
		}
		check_event(ck, event, event->flow, flow->optional && strcmp(flow->optional, event->type) == 0);
		if (flow->feeds)
			check_event(ck, event, flow_of(sim, flow->feeds), false);
	}
}

static void read_all(struct check *ck)
{
	struct sim *sim = ck->sim;
	sl_arena_init(&ck->arena);
	read_plans(ck);
	check_internal(ck, sim->topics.instances);
	check_internal(ck, sim->topics.actions);
	check_internal(ck, sim->topics.timers);
	each_event(ck, "sluice.events", visit_public);
	each_event(ck, sim->topics.lifecycle, visit_lifecycle);
	check_dead(ck);
	for (int32_t p = -1; p < sim->partitions; p++)
		read_why(ck, p);
}

static void check_release(struct check *ck)
{
	sl_map_release(&ck->ids, NULL);
	sl_map_release(&ck->insts, NULL);
	sl_map_release(&ck->seen, NULL);
	sl_map_release(&ck->told, NULL);
	sl_map_release(&ck->plans, NULL);
	sl_arena_release(&ck->arena);
}

void sim_check_cancel_rest(struct sim *sim)
{
	struct check ck = {.sim = sim};
	read_all(&ck);
	sl_map_each(&ck.insts, e)
	{
		const struct inst *inst = e->value;
		if (!inst->ended)
			sim_cancel(sim, inst->id);
	}
	check_release(&ck);
}

void sim_check_outputs(struct sim *sim)
{
	struct check ck = {.sim = sim};
	read_all(&ck);
	if (!sim->given_up || sim->wrong.len) {
		check_instances(&ck);
		check_events(&ck);
	}
	check_release(&ck);
}

/* --- what is left in the store after retention --- */

static void check_key(void *arg, int32_t partition, const char *key)
{
	struct sim *sim = arg;
	static const char *const kept[] = {"p", "tp", "why", "defs", "routed"};
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strcmp(key, kept[i]) == 0)
			return;
	if (strncmp(key, "schema:", 7) == 0)
		return;
	struct sl_hash *hash = sl_memory_peek(sim->world, partition, key);
	sim_wrong(sim, "left in the store: {%d} %s: %s=%.200s", (int)partition, key,
		hash->count ? hash->fields[0].name : "", hash->count ? hash->fields[0].value : "");
	sl_memory_hash_free(hash);
}

void sim_check_left(struct sim *sim)
{
	sl_memory_keys(sim->world, check_key, sim);
	for (int32_t p = 0; p < sim->partitions; p++) {
		struct sl_hash *hash = sl_memory_peek(sim->world, p, "p");
		for (int i = 0; i < hash->count; i++) {
			const struct sl_kv *kv = &hash->fields[i];
			if (strncmp(kv->name, "n:", 2) == 0)
				sim_wrong(sim, "partition %d still counts %s live instances of plan %s", (int)p, kv->value,
					kv->name + 2);
			if ((strcmp(kv->name, "todo") == 0 || strcmp(kv->name, "outbox") == 0) && kv->len > 4)
				sim_wrong(sim, "partition %d still has a %s of %zu bytes", (int)p, kv->name, kv->len);
		}
		sl_memory_hash_free(hash);
	}
}
