/* What happens in a run: workflows, their events in random order, and the service that they call. Every workflow tells in
 * its output which events it took (`seen`), and every call names its step and the event that it is made for. */
#include "common/codec/codec.h"
#include "tests/sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "version: '1.0.0'\nspecVersion: '0.8'\nstart: Take\n"
#define BY_KEY "correlation: [{contextAttributeName: k}]"
#define FUNCTIONS                                                                                                      \
	"functions:\n"                                                                                                 \
	"  - {name: svc, type: custom, operation: POST http://svc.example/svc}\n"                                      \
	"  - {name: ref, type: custom, operation: POST http://svc.example/ref}\n"                                      \
	"  - {name: flaky, type: custom, operation: POST http://svc.example/flaky}\n"                                  \
	"errors: [{name: down, code: '503'}]\n"                                                                        \
	"retries: [{name: again, delay: PT1S, maxAttempts: 6}]\n"
#define TAKE(event, place)                                                                                             \
	"onEvents: [{eventRefs: [" event "], eventDataFilter: {data: '${ .n }', toStateData: '${ ." place " }'}}]\n"

/* Takes one event after the other of one type, with something between that takes time or nothing. */
static const char loop_text[] = "id: %s\n" HEAD "events: [{name: E, type: %s.e, source: sim, " BY_KEY "}]\n" FUNCTIONS
				"states:\n"
				"  - name: Take\n    type: event\n    " TAKE("E", "last") "    transition: Between\n"
				"%s"
				"    stateDataFilter: {output: '${ {seen: ((.seen // []) + [%s])} }'}\n"
				"    transition: More\n"
				"  - name: More\n    type: switch\n"
				"    dataConditions: [{condition: '${ (.seen | length) >= %d }', end: true}]\n"
				"    defaultCondition: {transition: Take}\n";
static const char *const loop_between[] = {
	"  - name: Between\n    type: inject\n    data: {x: 1}\n",
	"  - name: Between\n    type: operation\n    actions:\n"
	"      - functionRef: {refName: svc, arguments: {step: loop, n: '${ .last }'}}\n"
	"        actionDataFilter: {toStateData: '${ .r }'}\n",
	"  - name: Between\n    type: sleep\n    duration: PT1S\n"};
static const char *const loop_element[] = {".last", ".r.echo", ".last"};

static const char wait_text[] = "id: wait\n" HEAD "events:\n"
				"  - {name: S, type: wait.s, source: sim, " BY_KEY "}\n"
				"  - {name: A, type: wait.a, source: sim, " BY_KEY "}\n"
				"  - {name: B, type: wait.b, source: sim, " BY_KEY "}\n"
				"states:\n"
				"  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: WaitA\n"
				"  - name: WaitA\n    type: event\n    " TAKE("A", "a") "    transition: WaitB\n"
				"  - name: WaitB\n    type: event\n    " TAKE("B", "b")
				"    stateDataFilter: {output: '${ {seen: [.s, .a, .b]} }'}\n    end: true\n";

static const char join_text[] = "id: join\n" HEAD "events:\n"
				"  - {name: X, type: join.x, source: sim, " BY_KEY "}\n"
				"  - {name: Y, type: join.y, source: sim, " BY_KEY "}\n"
				"states:\n"
				"  - name: Take\n    type: event\n    exclusive: false\n"
				"    onEvents:\n"
				"      - eventRefs: [X]\n"
				"        eventDataFilter: {data: '${ .n }', toStateData: '${ .x }'}\n"
				"      - eventRefs: [Y]\n"
				"        eventDataFilter: {data: '${ .n }', toStateData: '${ .y }'}\n"
				"    transition: Rest\n"
				"  - name: Rest\n    type: sleep\n    duration: PT0.5S\n"
				"    stateDataFilter: {output: '${ {seen: [.x, .y]} }'}\n    end: true\n";

static const char unc_text[] =
	"id: unc\n" HEAD "events:\n"
	"  - {name: G, type: unc.go, source: sim}\n"
	"  - {name: Out, type: unc.out, source: unc, kind: produced}\n" FUNCTIONS "states:\n"
	"  - name: Take\n    type: event\n    onEvents: [{eventRefs: [G]}]\n    transition: Each\n"
	"  - name: Each\n    type: foreach\n    inputCollection: '${ .list }'\n    outputCollection: '${ .res }'\n"
	"    iterationParam: i\n"
	"    actions: [{functionRef: {refName: svc, arguments: {step: each, n: '${ $i }'}}}]\n    transition: Both\n"
	"  - name: Both\n    type: parallel\n    branches:\n"
	"      - name: one\n        actions: [{functionRef: {refName: svc, arguments: {step: one, n: '${ .n }'}}, "
	"actionDataFilter: {toStateData: '${ .one }'}}]\n"
	"      - name: two\n        actions: [{functionRef: {refName: flaky, arguments: {step: two, n: '${ .n }'}}, "
	"retryRef: again, retryableErrors: [down], actionDataFilter: {toStateData: '${ .two }'}}]\n"
	"    stateDataFilter: {output: '${ {seen: [.one.echo], two: .two.echo, res: [.res[].echo], list, kk} }'}\n"
	"    end: {produceEvents: [{eventRef: Out, data: '${ {n: .seen[0]} }', contextAttributes: {k: '${ .kk }'}}]}\n";

static const char sink_text[] = "id: sink\n" HEAD "events: [{name: O, type: unc.out, source: unc, " BY_KEY "}]\n"
				"states:\n"
				"  - name: Take\n    type: event\n    " TAKE("O", "s")
				"    stateDataFilter: {output: '${ {seen: [.s]} }'}\n    end: true\n";

static const char back_text[] =
	"id: back\n" HEAD "events:\n"
	"  - {name: S, type: back.s, source: sim, " BY_KEY "}\n"
	"  - {name: D, type: back.d, source: sim, correlation: [{contextAttributeName: r, contextAttributeValue: "
	"'${ .ref }'}]}\n" FUNCTIONS "states:\n"
	"  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: Ask\n"
	"  - name: Ask\n    type: callback\n"
	"    action: {functionRef: {refName: ref, arguments: {step: ref, n: '${ .s }'}}, "
	"actionDataFilter: {results: '${ .ref }', toStateData: '${ .ref }'}}\n"
	"    eventRef: D\n    eventDataFilter: {data: '${ .n }', toStateData: '${ .d }'}\n"
	"    stateDataFilter: {output: '${ {seen: [.s, .d]} }'}\n    end: true\n";

static const char race_text[] = "id: race\n" HEAD "events:\n"
				"  - {name: S, type: race.s, source: sim, " BY_KEY "}\n"
				"  - {name: A, type: race.a, source: sim, " BY_KEY "}\n"
				"states:\n"
				"  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: Wait\n"
				"  - name: Wait\n    type: event\n    timeouts: {eventTimeout: PT2S}\n    " TAKE(
					"A", "a")
				"    stateDataFilter: {output: '${ {seen: [.s, .a | select(. != null)]} }'}\n"
				"    end: true\n";

/* Meets events under two keys that live in different partitions: what it does not take goes back there. */
static const char cross_text[] = "id: cross\n" HEAD "events:\n"
				 "  - {name: S, type: cross.s, source: sim, " BY_KEY "}\n"
				 "  - {name: D, type: cross.d, source: sim, correlation: [{contextAttributeName: r}]}\n"
				 "states:\n"
				 "  - name: Take\n    type: event\n    onEvents:\n"
				 "      - {eventRefs: [S], eventDataFilter: {data: '${ .n }', toStateData: '${ .a }'}}\n"
				 "      - {eventRefs: [D], eventDataFilter: {data: '${ .n }', toStateData: '${ .a }'}}\n"
				 "    transition: Rest\n"
				 "  - name: Rest\n    type: sleep\n    duration: PT1S\n"
				 "    stateDataFilter: {output: '${ {seen: [.a]} }'}\n    end: true\n";

/* Asks and waits for the answer under a key that is known before: nothing can be early. */
static const char answer_text[] =
	"id: answer\n" HEAD "events:\n"
	"  - {name: S, type: answer.s, source: sim, " BY_KEY "}\n"
	"  - {name: D, type: answer.d, source: sim, correlation: [{contextAttributeName: r}]}\n" FUNCTIONS "states:\n"
	"  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: Ask\n"
	"  - name: Ask\n    type: callback\n"
	"    action: {functionRef: {refName: ref, arguments: {step: ref, n: '${ .s }'}}, "
	"actionDataFilter: {useResults: false}}\n"
	"    eventRef: D\n    eventDataFilter: {data: '${ .n }', toStateData: '${ .d }'}\n"
	"    stateDataFilter: {output: '${ {seen: [.s, .d]} }'}\n    end: true\n";

/* Its events name the instance itself. */
static const char direct_text[] =
	"id: direct\n" HEAD "events:\n"
	"  - {name: G, type: direct.go, source: sim}\n"
	"  - {name: D, type: direct.d, source: sim}\n" FUNCTIONS "states:\n"
	"  - name: Take\n    type: event\n    " TAKE("G", "g") "    transition: Ask\n"
	"  - name: Ask\n    type: operation\n    actions:\n"
	"      - functionRef: {refName: ref, arguments: {step: ref, n: '${ .g }'}}\n"
	"        actionDataFilter: {useResults: false}\n    transition: WaitA\n"
	"  - name: WaitA\n    type: event\n    " TAKE("D", "a") "    transition: WaitB\n"
	"  - name: WaitB\n    type: event\n    " TAKE("D", "b")
	"    stateDataFilter: {output: '${ {seen: [.g, .a, .b]} }'}\n    end: true\n";

/* --- making --- */

static struct sim_flow *add_flow(struct sim *sim, const char *name, const char *text, int min, int max)
{
	struct sim_flow *flow = &sim->flows[sim->flow_count++];
	sl_assert(sim->flow_count <= SIM_FLOWS_MAX);
	*flow = (struct sim_flow){.name = name, .text = text, .seen_min = min, .seen_max = max, .keyed = true};
	return flow;
}

static struct sim_event *add_event(struct sim *sim, const char *type, const char *attribute, const char *key)
{
	if (sim->event_count == sim->event_cap) {
		sim->event_cap = sim->event_cap ? sim->event_cap * 2 : 32;
		sim->events = realloc(sim->events, (size_t)sim->event_cap * sizeof(*sim->events));
		sl_assert(sim->events);
	}
	struct sim_event *event = &sim->events[sim->event_count++];
	*event = (struct sim_event){.type = sl_arena_str(&sim->arena, type), .flow = sim->flow_count - 1};
	snprintf(event->id, sizeof(event->id), "n%d", sim->event_count);
	snprintf(event->key, sizeof(event->key), "%s", key ? key : "");
	jv data = sl_json_set(jv_object(), "n", jv_string(event->id));
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", jv_string(event->id));
	ev = sl_json_set(ev, "source", jv_string("sim"));
	ev = sl_json_set(ev, "type", jv_string(type));
	if (key)
		ev = sl_json_set(ev, attribute, jv_string(key));
	event->ev = sl_json_set(ev, "data", data);
	return event;
}

static void make_loop(struct sim *sim)
{
	int take = 1 + sim_below(sim, 3), between = sim_below(sim, 3);
	char *name = sl_arena_printf(&sim->arena, "loop%d%c", take, 'a' + between);
	char *text = sl_arena_printf(
		&sim->arena, loop_text, name, name, loop_between[between], loop_element[between], take);
	add_flow(sim, name, text, take, take);
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		const char *key = sl_arena_printf(&sim->arena, "%s-%d", name, k);
		const char *type = sl_arena_printf(&sim->arena, "%s.e", name);
		for (int n = take * (1 + sim_below(sim, 3)); n > 0; n--)
			add_event(sim, type, "k", key);
	}
}

static void make_wait(struct sim *sim)
{
	add_flow(sim, "wait", wait_text, 3, 3);
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		const char *key = sl_arena_printf(&sim->arena, "wait-%d", k);
		add_event(sim, "wait.s", "k", key);
		add_event(sim, "wait.a", "k", key);
		add_event(sim, "wait.b", "k", key);
	}
}

static void make_join(struct sim *sim)
{
	add_flow(sim, "join", join_text, 2, 2);
	for (int k = sim_below(sim, 2); k >= 0; k--) {
		const char *key = sl_arena_printf(&sim->arena, "join-%d", k);
		for (int n = sim_below(sim, 3); n >= 0; n--) {
			add_event(sim, "join.x", "k", key);
			add_event(sim, "join.y", "k", key);
		}
	}
}

static void make_unc(struct sim *sim)
{
	add_flow(sim, "unc", unc_text, 1, 1)->feeds = "sink";
	sim->flows[sim->flow_count - 1].keyed = false;
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		struct sim_event *event = add_event(sim, "unc.go", NULL, NULL);
		jv list = jv_array(), data = sl_json_get(event->ev, "data");
		for (int i = sim_below(sim, 4); i > 0; i--)
			list = jv_array_append(list, jv_string_fmt("%s-%d", event->id, i));
		data = sl_json_set(data, "list", list);
		data = sl_json_set(data, "kk", jv_string_fmt("sink-%d", k));
		event->ev = sl_json_set(event->ev, "data", data);
	}
	add_flow(sim, "sink", sink_text, 1, 1);
}

static void make_back(struct sim *sim)
{
	char key[24];
	add_flow(sim, "back", back_text, 2, 2);
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		const char *id =
			add_event(sim, "back.s", "k", sl_arena_printf(&sim->arena, "back-%d", k))->id;
		snprintf(key, sizeof(key), "r-%.8s", id);
		add_event(sim, "back.d", "r", key)->held = true;
	}
}

static void make_race(struct sim *sim)
{
	add_flow(sim, "race", race_text, 1, 2)->optional = "race.a";
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		const char *key = sl_arena_printf(&sim->arena, "race-%d", k);
		add_event(sim, "race.s", "k", key);
		add_event(sim, "race.a", "k", key);
	}
}

static void add_attribute(struct sim_event *event, const char *name, const char *value)
{
	event->ev = sl_json_set(event->ev, name, jv_string(value));
}

static void make_cross(struct sim *sim)
{
	add_flow(sim, "cross", cross_text, 1, 1);
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		const char *key = sl_arena_printf(&sim->arena, "cross-%d", k);
		const char *r = sl_arena_printf(&sim->arena, "r-cross-%d", k);
		for (int n = sim_below(sim, 2); n >= 0; n--)
			add_attribute(add_event(sim, "cross.s", "k", key), "r", r);
		for (int n = sim_below(sim, 3); n >= 0; n--)
			add_event(sim, "cross.d", "r", r);
	}
}

static void make_answer(struct sim *sim)
{
	char key[24];
	add_flow(sim, "answer", answer_text, 2, 2);
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		struct sim_event *event =
			add_event(sim, "answer.s", "k", sl_arena_printf(&sim->arena, "answer-%d", k));
		snprintf(key, sizeof(key), "r-%.8s", event->id);
		add_attribute(event, "r", key);
		add_event(sim, "answer.d", "r", key)->held = true;
	}
}

static void make_direct(struct sim *sim)
{
	char key[24];
	add_flow(sim, "direct", direct_text, 3, 3)->keyed = false;
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		struct sim_event *event = add_event(sim, "direct.go", NULL, NULL);
		snprintf(key, sizeof(key), "r-%.8s", event->id);
		add_event(sim, "direct.d", "r", key)->held = true;
		add_event(sim, "direct.d", "r", key)->held = true;
	}
}

static void shuffle(struct sim *sim)
{
	for (int i = sim->event_count - 1; i > 0; i--) {
		int j = sim_below(sim, i + 1);
		struct sim_event e = sim->events[i];
		sim->events[i] = sim->events[j];
		sim->events[j] = e;
	}
}

void sim_load_make(struct sim *sim)
{
	/* the last two need early events: with a short window they are not sure to end */
	static void (*const makers[])(struct sim *) = {make_loop, make_join, make_unc, make_race, make_cross,
		make_answer, make_direct, make_wait, make_back};
	int count = sim->early_window_ms >= SIM_MINUTE_MS * 30 ? 9 : 7;
	unsigned chosen = 0;
	for (int i = sim_below(sim, 3); i >= 0; i--)
		chosen |= 1u << sim_below(sim, count);
	for (int i = 0; i < count; i++)
		if (chosen & 1u << i)
			makers[i](sim);
	shuffle(sim);
}

void sim_load_free(struct sim *sim)
{
	for (int i = 0; i < sim->event_count; i++)
		jv_free(sim->events[i].ev);
	free(sim->events);
}

/* --- sending --- */

static void delivered(void *arg, int err)
{
	(void)arg;
	sl_assert(!err);
}

static void send(struct sim *sim, const char *topic, int32_t partition, jv ev)
{
	struct sl_arena arena;
	struct sl_record rec = {.topic = topic, .partition = partition};
	sl_arena_init(&arena);
	int err = sl_event_encode(ev, (enum sl_event_mode)(partition % 3), &arena, &rec);
	sl_assert(!err);
	err = sim->driver->ops->produce(sim->driver, &rec, delivered, NULL);
	sl_assert(!err);
	sl_arena_release(&arena);
}

struct sim_event *sim_load_next(struct sim *sim)
{
	for (int i = 0; i < sim->event_count; i++)
		if (!sim->events[i].published && !sim->events[i].held)
			return &sim->events[i];
	return NULL;
}

void sim_publish(struct sim *sim, struct sim_event *event)
{
	int32_t partition = sim_below(sim, SIM_EVENT_PARTITIONS);
	sim_tell(sim, "publish %s %s key %s to partition %d%s", event->id, event->type, event->key, (int)partition,
		event->published ? " again" : "");
	sim->published += !event->published;
	event->published = true;
	event->copies++;
	send(sim, "sluice.events", partition, event->ev);
}

void sim_command(struct sim *sim, const char *type, jv data)
{
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", jv_string_fmt("command-%d", ++sim->commands));
	ev = sl_json_set(ev, "source", jv_string("sim"));
	ev = sl_json_set(ev, "type", jv_string(type));
	ev = sl_json_set(ev, "data", data);
	send(sim, sim->topics.commands, 0, ev);
	jv_free(ev);
}

void sim_load_deploy(struct sim *sim)
{
	for (int i = 0; i < sim->flow_count; i++)
		sim_command(sim, "io.sluice.deploy",
			sl_json_set(jv_object(), "definition", jv_string(sim->flows[i].text)));
}

void sim_cancel(struct sim *sim, const char *instance)
{
	struct sl_record rec;
	int32_t partition = sim_below(sim, 2);
	int64_t high = sl_memory_high(sim->world, sim->topics.lifecycle, partition);
	if (instance) {
		sim_command(sim, "io.sluice.cancel", sl_json_set(jv_object(), "instance", jv_string(instance)));
		sl_map_set(&sim->cancelled, instance, sim);
		sim_tell(sim, "cancel %s", instance);
		return;
	}
	jv ev;
	if (high <= 0 || !sl_memory_record(sim->world, sim->topics.lifecycle, partition, sim_below(sim, (int)high), &rec) ||
		sl_event_decode(&rec, &sl_json_default, &ev, NULL))
		return;
	const char *subject = sl_json_str(ev, "subject");
	if (subject && strstr(sl_json_str(ev, "type"), "workflow.started"))
		sim_cancel(sim, subject);
	jv_free(ev);
}

/* --- the service --- */

static const char *header(const struct sl_http_request *req, const char *name)
{
	size_t len = strlen(name);
	for (const char *const *h = req->headers; h && *h; h++)
		if (strncasecmp(*h, name, len) == 0 && (*h)[len] == ':')
			return *h + len + 2;
	return "";
}

static void note_call(struct sim *sim, const char *action, const char *step, const char *n, const char *body)
{
	struct sim_call *call = sl_map_get(&sim->calls, action);
	char *tag = sl_arena_printf(&sim->arena, "%s|%s", step, n);
	if (!call) {
		call = SL_NEW(&sim->arena, struct sim_call);
		*call = (struct sim_call){sl_arena_str(&sim->arena, action), sl_arena_str(&sim->arena, body), 0};
		sl_map_set(&sim->calls, action, call);
	}
	call->count++;
	if (strcmp(call->body, body) != 0)
		sim_wrong(sim, "two calls under the key %s differ: %s and %s", action, call->body, body);
	struct sim_call *other = sl_map_get(&sim->tags, tag);
	if (other && other != call)
		sim_wrong(sim, "step %s of event %s was called under two keys: %s and %s", step, n, other->action, action);
	sl_map_set(&sim->tags, tag, call);
}

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h >> 8;
}

int64_t sim_mock(void *arg, const struct sl_http_request *req, struct sl_http_answer *ret)
{
	struct sim *sim = arg;
	const char *action = header(req, "Idempotency-Key"), *path = strrchr(req->url, '/');
	int64_t delay = sim_chance(sim, 20) ? sim_below(sim, 2000) : sim_below(sim, 50);
	char *text = sl_arena_strn(&sim->arena, req->body.ptr ? req->body.ptr : "", req->body.len);
	jv body;
	if (sl_json_parse(text, req->body.len, &sl_json_default, &body, NULL)) {
		sim_wrong(sim, "a call without JSON: %s", text);
		return 0;
	}
	const char *step = sl_json_str(body, "step"), *n = sl_json_str(body, "n");
	if (!*action || !step || !n) {
		sim_wrong(sim, "a call without key, step or event: %s", text);
		jv_free(body);
		return 0;
	}
	sim_tell(sim, "call %s of %s, key %s", step, n, action);
	note_call(sim, action, step, n, text);
	ret->status = 200;
	ret->content_type = "application/json";
	char *answer = sl_arena_printf(&sim->arena, "{\"echo\":\"%s\",\"ref\":\"r-%s\"}", n, n);
	if (strcmp(path, "/flaky") == 0 && atoi(header(req, "Sluice-Attempt")) < 1 + (int)(hash(n) % 3))
		ret->status = 503;
	ret->body = (struct sl_bytes){answer, strlen(answer)};
	if (strcmp(path, "/ref") == 0) {
		char key[24];
		snprintf(key, sizeof(key), "r-%.8s", n);
		for (int i = 0; i < sim->event_count; i++)
			if (sim->events[i].held && strcmp(sim->events[i].key, key) == 0) {
				sim->events[i].held = false;
				if (strcmp(sim->events[i].type, "direct.d") == 0)
					add_attribute(&sim->events[i], "workflowinstanceid", header(req, "Sluice-Instance"));
			}
	}
	jv_free(body);
	return delay;
}
