/* Partitions of mailboxes and fake instances, and everything between them that may be late, early or twice. */
#ifndef SL_TEST_MAILBOX_WORLD_H
#define SL_TEST_MAILBOX_WORLD_H

#include "common/engine/mailbox.h"
#include "common/engine/ring.h"
#include "tests/unit/engine/plans_builder.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define PARTITIONS 3
#define EVENTS_MAX 200
#define INSTANCES_MAX 300
#define BOXES_MAX 100
#define QUEUE_MAX 4000

/* --- what the fake instances do --- */

enum op { WAIT, CALL, CONTINUE, BIND, FAULT, END };
struct fake_op {
	enum op op;
	char type;
	int set;
}; /* set: 0 unkeyed, 1 key "k", 2 key "c" */
struct fake_plan {
	const char *id, *starts; /* event types */
	bool all;
	struct fake_op ops[6];
};
static const struct fake_plan fakes[] = {{"pair", "A", false, {{WAIT, 'B', 1}, {WAIT, 'B', 1}, {END, 0, 0}}},
	{"free", "C", false, {{WAIT, 'D', 0}, {END, 0, 0}}},
	{"callback", "E", false, {{CALL, 0, 0}, {BIND, 0, 2}, {CALL, 'F', 0}, {WAIT, 'F', 2}, {END, 0, 0}}},
	{"join", "GH", true, {{CALL, 0, 0}, {END, 0, 0}}},
	{"continue", "I", false, {{WAIT, 'J', 1}, {CONTINUE, 0, 0}, {WAIT, 'J', 1}, {END, 0, 0}}},
	{"fault", "S", false, {{WAIT, 'T', 1}, {FAULT, 0, 0}, {WAIT, 'T', 1}, {END, 0, 0}}},
	{"quick", "M", false, {{END, 0, 0}}}, {"ujoin", "XY", true, {{CALL, 0, 0}, {END, 0, 0}}}};
#define FAKES ((int)(sizeof fakes / sizeof *fakes))

static const char *keys_of(char type)
{
	return strchr("CDEXY", type) ? NULL : type == 'F' ? "c=" : "k";
}

struct inst {
	const char *id;
	int plan, pc, gen, status; /* 0 live, 1 ended, 2 faulted */
	bool claimed, command, retrying;
	char k[8], c[SL_UUID_TEXT];
	const char *boxes[2];
	int box_count;
	int inbox[EVENTS_MAX], inbox_count;
	bool multi[EVENTS_MAX];
	bool seen[EVENTS_MAX]; /* its ring */
	bool handed[EVENTS_MAX];
	int consumed[EVENTS_MAX], consumed_count;
	int64_t token, waits; /* waits: token of what is armed, 0 none */
	char wait_type;
	bool wait_free;
};

struct published {
	jv ev;
	char type;
	char k[8];
	bool explained, early, expired; /* the decisions about it */
};

struct box {
	char *id;
	struct sl_mailbox *box; /* NULL: not in memory */
	struct sl_map store;
};

struct world {
	uint64_t random;
	struct sl_plans *plans;
	struct sl_engine eng;
	struct sl_arena arena;
	int64_t now;
	struct published events[EVENTS_MAX];
	int event_count;
	struct inst *insts[INSTANCES_MAX];
	int inst_count;
	struct box boxes[BOXES_MAX];
	int box_count;
	struct sl_msg queues[PARTITIONS][QUEUE_MAX]; /* records of sluice.instances */
	int heads[PARTITIONS], tails[PARTITIONS];
	struct sl_msg later[QUEUE_MAX]; /* actions under way and copies of records that arrive again */
	int later_count;
	int64_t topic[2]; /* next offset of the event partitions */
	int seed;
	bool settling, windowed;
	bool overflow; /* the rings of the mailboxes are too short: publishers behave, routers do not */
};

static int rnd(struct world *w, int n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (int)((w->random >> 33) % (uint64_t)n);
}

#define fail(w, ...)                                                                                                   \
	do {                                                                                                           \
		fprintf(stderr, "seed %d: ", (w)->seed);                                                               \
		cr_assert_fail(__VA_ARGS__);                                                                           \
	} while (0)

/* --- moving messages --- */

static struct sl_msg *push(struct world *w, int32_t partition, const struct sl_msg *msg)
{
	cr_assert_lt(w->tails[partition], QUEUE_MAX);
	struct sl_msg *copy = &w->queues[partition][w->tails[partition]++];
	sl_msg_copy(&w->arena, copy, msg);
	return copy;
}

static void send_later(struct world *w, const struct sl_msg *msg)
{
	if (w->later_count < QUEUE_MAX)
		sl_msg_copy(&w->arena, &w->later[w->later_count++], msg);
}

/* To its partition; some of what travels arrives twice, the second time much later. */
static void send(struct world *w, const struct sl_msg *msg)
{
	push(w, sl_id_partition("default", msg->to, PARTITIONS), msg);
	if (!w->settling && rnd(w, 6) == 0)
		send_later(w, msg);
}

static void route(struct world *w, int number, int partition, int64_t offset)
{
	struct sl_origin origin = {partition ? "b" : "a", partition, offset};
	struct sl_effects fx;
	jv why;
	sl_effects_init(&fx, &w->arena);
	sl_route_event(&w->eng, "default", w->events[number].ev, &origin, &fx, &why);
	if (jv_is_valid(why))
		w->events[number].explained = true;
	jv_free(why);
	for (int i = 0; i < fx.count; i++)
		send(w, &fx.items[i]);
	sl_effects_release(&fx);
}

static void publish(struct world *w, int number)
{
	int partition = rnd(w, 2);
	int64_t offset = ++w->topic[partition];
	route(w, number, partition, offset);
	if (!w->settling && rnd(w, 8) == 0) /* the router died behind it: routed again, from where it stood */
		route(w, number, partition, offset);
}

static int new_event(struct world *w, char type, const char *k, const char *c)
{
	char id[16], name[2] = {type, 0}, more[100];
	int n = w->event_count++;
	cr_assert_lt(n, EVENTS_MAX);
	snprintf(id, sizeof id, "%d", n);
	snprintf(more, sizeof more, ",'k':'%s','c':'%s'", k, c);
	if (!keys_of(type))
		more[0] = 0;
	w->events[n] = (struct published){.ev = build_ev(id, name, more), .type = type};
	snprintf(w->events[n].k, sizeof w->events[n].k, "%.7s", k);
	return n;
}

/* --- mailboxes --- */

static struct box *box_of(struct world *w, const char *id)
{
	struct box *box = w->boxes;
	while (box < w->boxes + w->box_count && strcmp(box->id, id) != 0)
		box++;
	if (box == w->boxes + w->box_count) {
		cr_assert_lt(++w->box_count, BOXES_MAX);
		box->id = strdup(id);
		box->box = NULL;
		sl_map_init(&box->store);
	}
	if (!box->box) {
		struct sl_field *fields = SL_NEWN(&w->arena, struct sl_field, box->store.count + 1);
		int n = 0;
		sl_map_each(&box->store, e) fields[n++] = (struct sl_field){e->key, {e->value, strlen(e->value)}};
		box->box = sl_mailbox_new("default", id);
		cr_assert_eq(sl_mailbox_load(&w->eng, box->box, fields, n, NULL), 0);
	}
	return box;
}

static void commit(struct world *w)
{
	for (struct box *box = w->boxes; box < w->boxes + w->box_count; box++) {
		struct sl_field *fields;
		int n;
		bool gone;
		if (!box->box)
			continue;
		sl_mailbox_changes(box->box, &w->arena, &fields, &n, &gone);
		if (gone) {
			sl_map_release(&box->store, free);
			sl_map_init(&box->store);
		}
		for (int i = 0; i < n; i++)
			free(fields[i].value.ptr ? sl_map_set(&box->store, fields[i].name,
							   strndup(fields[i].value.ptr, fields[i].value.len))
						 : sl_map_del(&box->store, fields[i].name));
		sl_mailbox_committed(box->box);
		if (rnd(w, 10) == 0) { /* the cache is bounded */
			sl_mailbox_free(box->box);
			box->box = NULL;
		}
	}
}

/* --- fake instances --- */

static struct inst *inst_of(struct world *w, const char *id)
{
	for (int i = 0; i < w->inst_count; i++)
		if (strcmp(w->insts[i]->id, id) == 0)
			return w->insts[i];
	return NULL;
}

struct ctx {
	struct world *w;
	struct inst *inst;
	struct sl_effects *fx;
};

static struct sl_msg *effect(struct ctx *c, enum sl_msg_kind kind, const char *to)
{
	struct sl_msg *msg = sl_effects_add(c->fx, kind);
	msg->to = sl_arena_str(&c->w->arena, to);
	if (c->inst)
		msg->workflow = fakes[c->inst->plan].id;
	return msg;
}

static jv wants_of(struct world *w, const struct inst *inst, const char *name)
{
	return sl_plan_wants(sl_plans_current(w->plans, "default", fakes[inst->plan].id, NULL), &name, 1);
}

static void join_box(struct ctx *c, const char *name, const char *value, bool subscribe)
{
	char id[34] = "#";
	sl_home_of_key(&name, &value, 1, id + 1);
	c->inst->boxes[c->inst->box_count++] = sl_arena_str(&c->w->arena, id);
	if (subscribe)
		effect(c, SL_MSG_SUBSCRIBE, id)->wants = wants_of(c->w, c->inst, name);
}

static const char *local_box(struct ctx *c, char type)
{
	char name[2] = {type, 0};
	return sl_route_local_box(&c->w->arena, sl_id_partition("default", c->inst->id, PARTITIONS), "default", name);
}

static void disarm(struct ctx *c)
{
	if (c->inst->wait_free)
		effect(c, SL_MSG_UNSUBSCRIBE, local_box(c, c->inst->wait_type))->token = c->inst->waits;
	c->inst->waits = 0;
	c->inst->wait_type = 0;
	c->inst->wait_free = false;
}

/* Unsubscribes everywhere and hands back what was not taken. */
static void leave(struct ctx *c)
{
	struct inst *inst = c->inst;
	for (int b = 0; b < inst->box_count; b++) {
		jv back = jv_array();
		for (int i = 0; i < inst->inbox_count; i++) {
			int n = inst->inbox[i];
			if (inst->multi[n] ||
				(c->w->events[n].type == 'F') != (strcmp(inst->boxes[b], inst->boxes[0]) != 0 ||
									 fakes[inst->plan].starts[0] == 'E'))
				continue;
			inst->handed[n] = true;
			back = jv_array_append(back, jv_copy(c->w->events[n].ev));
		}
		effect(c, SL_MSG_UNSUBSCRIBE, inst->boxes[b])->events = back;
	}
	for (int i = 0; i < inst->inbox_count; i++)
		if (inst->multi[inst->inbox[i]])
			c->w->events[inst->inbox[i]].explained = true;
	inst->inbox_count = 0;
}

static void consume(struct ctx *c, int n)
{
	c->inst->consumed[c->inst->consumed_count++] = n;
}

static bool from_inbox(struct ctx *c, char type)
{
	struct inst *inst = c->inst;
	for (int i = 0; i < inst->inbox_count; i++) {
		int n = inst->inbox[i];
		if (c->w->events[n].type != type)
			continue;
		memmove(inst->inbox + i, inst->inbox + i + 1, sizeof(int) * (size_t)(inst->inbox_count - i - 1));
		inst->inbox_count--;
		consume(c, n);
		return true;
	}
	return false;
}

static void arm(struct ctx *c, const struct fake_op *op)
{
	struct inst *inst = c->inst;
	inst->waits = ++inst->token;
	inst->wait_type = op->type;
	if (op->set)
		return;
	inst->wait_free = true;
	struct sl_msg *msg = effect(c, SL_MSG_SUBSCRIBE, local_box(c, op->type));
	msg->token = inst->waits;
	msg->wants = build_json("[{'type':'%c'}]", op->type);
}

/* The result comes later, perhaps twice; the service may publish an event first. */
static void call(struct ctx *c, char publishes)
{
	struct sl_msg msg;
	struct inst *inst = c->inst;
	inst->waits = ++inst->token;
	sl_msg_init(&msg, SL_MSG_RESULT);
	msg.to = inst->id;
	msg.token = inst->waits;
	msg.attempt = publishes ? 1 + new_event(c->w, publishes, inst->k, inst->c) : 0;
	send_later(c->w, &msg);
	if (rnd(c->w, 6) == 0)
		send_later(c->w, &msg);
}

static struct inst *new_inst(struct world *w, const char *id, int plan)
{
	struct inst *inst = SL_NEW(&w->arena, struct inst);
	inst->id = sl_arena_str(&w->arena, id);
	inst->plan = plan;
	cr_assert_lt(w->inst_count, INSTANCES_MAX);
	w->insts[w->inst_count++] = inst;
	return inst;
}

/* Both change hands in one step: the START of the successor is local. */
static void continue_as(struct ctx *c)
{
	struct inst *inst = c->inst;
	size_t len;
	const char *home = sl_id_home(inst->id, &len);
	struct sl_msg *msg =
		effect(c, SL_MSG_START, sl_arena_printf(&c->w->arena, "%.*s.next%d", (int)len, home, c->w->inst_count));
	const char *next = msg->to;
	msg->extra = jv_number(1);
	msg->successor = inst->id;
	inst->status = 1;
	for (int b = 0; b < inst->box_count; b++) {
		msg = effect(c, SL_MSG_TRANSFER, inst->boxes[b]);
		msg->successor = next;
		msg->wants = wants_of(c->w, inst, "k");
	}
}

static void run(struct ctx *c)
{
	struct inst *inst = c->inst;
	while (inst->status == 0 && !inst->waits) {
		struct fake_op start = {WAIT, fakes[inst->plan].starts[0], 1};
		const struct fake_op *op = inst->pc < 0 ? &start : &fakes[inst->plan].ops[inst->pc];
		if (op->op == WAIT && op->set && from_inbox(c, op->type)) {
			inst->pc++;
		} else if (op->op == WAIT) {
			arm(c, op);
		} else if (op->op == CALL) {
			call(c, op->type);
		} else if (op->op == BIND) {
			snprintf(inst->c, sizeof inst->c, "%s", inst->id);
			join_box(c, "c", inst->c, true);
			inst->pc++;
		} else if (op->op == CONTINUE && inst->gen == 0) {
			inst->pc++;
			continue_as(c);
		} else if (op->op == FAULT && inst->gen == 0) {
			inst->gen = 1;
			inst->status = 2;
			leave(c);
		} else if (op->op == END) {
			inst->status = 1;
			leave(c);
		} else {
			inst->pc++;
		}
	}
}

static int number_of(jv ev)
{
	return atoi(sl_json_str(ev, "id"));
}

static void on_start(struct ctx *c, const struct sl_msg *in)
{
	struct world *w = c->w;
	int plan = 0;
	if (c->inst)
		return;
	while (strcmp(fakes[plan].id, in->workflow) != 0)
		plan++;
	struct inst *inst = c->inst = new_inst(w, in->to, plan);
	if (jv_is_valid(in->extra)) { /* a successor inherits */
		const struct inst *old = inst_of(w, in->successor);
		const char *id = inst->id;
		*inst = *old;
		inst->id = id;
		inst->status = 0;
		inst->gen = 1;
		inst->consumed_count = 0;
		((struct inst *)old)->inbox_count = 0;
		run(c);
		return;
	}
	const char *k = jv_get_kind(in->key) == JV_KIND_OBJECT ? sl_json_str(in->key, "k") : NULL;
	snprintf(inst->k, sizeof inst->k, "%s", k ? k : "");
	inst->claimed = in->ok;
	if (jv_is_valid(in->events)) {
		jv_array_foreach(in->events, i, ev)
		{
			consume(c, number_of(ev));
			inst->seen[number_of(ev)] = true;
			jv_free(ev);
		}
	} else {
		inst->command = true;
		inst->pc = -1;
	}
	if (k)
		join_box(c, "k", k, !in->ok);
	if (in->ok && strcmp(in->box, inst->boxes[0]) != 0)
		fail(w, "%s was started by another mailbox than its key's", inst->id);
	run(c);
}

static void give_back(struct ctx *c, const struct sl_msg *in)
{
	char id[SL_UUID_TEXT];
	sl_id_derive((const char *const[]){"return", in->id}, 2, id);
	struct sl_msg *msg = effect(c, SL_MSG_RETURN, in->box);
	msg->id = sl_arena_str(&c->w->arena, id);
	msg->workflow = sl_arena_str(&c->w->arena, in->workflow);
	msg->event = jv_copy(in->event);
	msg->token = in->token;
	msg->multi = in->multi;
}

static void on_deliver(struct ctx *c, const struct sl_msg *in)
{
	struct inst *inst = c->inst;
	int n = number_of(in->event);
	if (!inst || inst->status) {
		if (!inst || !inst->seen[n])
			give_back(c, in);
		return;
	}
	if (inst->seen[n] && !inst->handed[n])
		return;
	if (in->token && in->token != inst->waits)
		return;
	inst->seen[n] = true;
	inst->handed[n] = false;
	if (inst->waits && inst->wait_type == c->w->events[n].type) {
		consume(c, n);
		disarm(c);
		inst->pc++;
		run(c);
	} else if (!in->token) {
		inst->multi[n] = in->multi;
		inst->inbox[inst->inbox_count++] = n;
	}
}

static void on_retry(struct ctx *c)
{
	struct inst *inst = c->inst;
	if (!inst || inst->status != 2 || inst->retrying)
		return;
	inst->retrying = true;
	effect(c, SL_MSG_CLAIM, inst->boxes[0])->wants = wants_of(c->w, inst, "k");
}

static void step_inst(struct ctx *c, const struct sl_msg *in)
{
	struct inst *inst = c->inst = inst_of(c->w, in->to);
	switch (in->kind) {
	case SL_MSG_START:
		on_start(c, in);
		break;
	case SL_MSG_DELIVER:
		on_deliver(c, in);
		break;
	case SL_MSG_RESULT:
		if (inst && inst->status == 0 && inst->waits == in->token) {
			inst->waits = 0;
			inst->pc++;
			run(c);
		}
		break;
	case SL_MSG_CANCEL:
		if (inst && inst->status == 0) {
			disarm(c);
			inst->status = 1;
			leave(c);
		}
		break;
	case SL_MSG_RETRY:
		on_retry(c);
		break;
	case SL_MSG_CLAIM_ANSWER:
		if (!inst || !inst->retrying)
			break;
		inst->retrying = false;
		if (in->ok) {
			inst->status = 0;
			inst->claimed = true;
			inst->pc++;
			run(c);
		}
		break;
	default:
		cr_assert_fail("an instance got %s", sl_msg_kind_text(in->kind));
	}
}

/* --- a pass: local effects depth first, child before sibling --- */

static void note_why(struct world *w, jv data)
{
	jv ev = sl_json_get(data, "event");
	const char *decision = sl_json_str(data, "decision");
	int n = number_of(ev);
	static const char *const ends[] = {"nobody", "several", "full", "expired", "dead"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		w->events[n].explained |= strcmp(decision, ends[i]) == 0;
	w->events[n].early |= strcmp(decision, "early") == 0;
	jv_free(ev);
}

static void process(struct world *w, int32_t partition, int64_t offset, const char *path, const struct sl_msg *in)
{
	struct sl_effects fx;
	struct sl_pos pos = {partition, offset, path};
	sl_effects_init(&fx, &w->arena);
	if (sl_id_is_mailbox(in->to)) {
		struct box *box = box_of(w, in->to);
		cr_assert_eq(sl_mailbox_step(&w->eng, box->box, in, &pos, w->now, &fx), 0);
	} else {
		struct ctx c = {.w = w, .fx = &fx};
		step_inst(&c, in);
	}
	for (int i = 0; i < fx.count; i++) {
		struct sl_msg *msg = &fx.items[i];
		char id[SL_UUID_TEXT];
		sl_id_effect("default", &pos, i, id);
		msg->id = msg->id ? msg->id : sl_arena_str(&w->arena, id);
		msg->from = in->to;
		msg->ns = "default";
		if (msg->kind == SL_MSG_WHY)
			note_why(w, msg->data);
		else if (sl_id_partition("default", msg->to, PARTITIONS) == partition)
			process(w, partition, offset, sl_arena_printf(&w->arena, "%s%s%d", path, *path ? "." : "", i),
				msg);
		else
			send(w, msg);
	}
	sl_effects_release(&fx);
}

/* One claimed instance of a workflow lives under a key at a time. */
static void check_live(struct world *w)
{
	for (int i = 0; i < w->inst_count; i++) {
		const struct inst *a = w->insts[i];
		for (int k = 0; k < i && a->status == 0 && a->claimed; k++) {
			const struct inst *b = w->insts[k];
			if (b->status == 0 && b->claimed && b->plan == a->plan && strcmp(a->k, b->k) == 0)
				fail(w, "%s and %s live both", a->id, b->id);
		}
	}
}

static bool take_record(struct world *w, int partition)
{
	int at = w->heads[partition];
	if (at == w->tails[partition])
		return false;
	w->heads[partition]++;
	process(w, partition, at, "", &w->queues[partition][at]);
	commit(w);
	check_live(w);
	return true;
}

static bool take_later(struct world *w)
{
	if (!w->later_count)
		return false;
	int at = rnd(w, w->later_count);
	struct sl_msg msg = w->later[at];
	w->later[at] = w->later[--w->later_count];
	if (msg.kind == SL_MSG_RESULT && msg.attempt)
		publish(w, (int)msg.attempt - 1);
	push(w, sl_id_partition("default", msg.to, PARTITIONS), &msg);
	sl_msg_clear(&msg);
	return true;
}

static void command(struct world *w, enum sl_msg_kind kind, const char *to)
{
	struct sl_msg msg;
	sl_msg_init(&msg, kind);
	msg.to = to;
	msg.ns = "default";
	send(w, &msg);
}

static void random_command(struct world *w)
{
	struct inst *inst = w->inst_count ? w->insts[rnd(w, w->inst_count)] : NULL;
	int what = rnd(w, 10);
	if (inst && inst->status == 0 && what < 3) {
		command(w, SL_MSG_CANCEL, inst->id);
	} else if (inst && inst->status == 2) {
		command(w, SL_MSG_RETRY, inst->id);
	} else if (what == 9) {
		struct sl_msg msg;
		sl_msg_init(&msg, SL_MSG_START);
		msg.to = sl_arena_printf(&w->arena, "user-%d", w->later_count + w->tails[0]);
		msg.workflow = "pair";
		msg.key = build_json("{'k':'%d'}", 1 + rnd(w, 2));
		if (!inst_of(w, msg.to))
			send(w, &msg);
		sl_msg_clear(&msg);
	}
}

#endif
