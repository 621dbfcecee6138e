/* What happens in a run: workflows and their events in random order. Every workflow tells in its output which events it took
 * (`seen`), and every call names its step and the event that it is made for. */
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
	"  - name: Between\n    type: sleep\n    duration: PT20S\n"};
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

/* Asks and waits for three answers under a key that is known before: nothing can be early. */
static const char answer_text[] =
	"id: answer\n" HEAD "events:\n"
	"  - {name: S, type: answer.s, source: sim, " BY_KEY "}\n"
	"  - {name: D, type: answer.d, source: sim, correlation: [{contextAttributeName: r}]}\n" FUNCTIONS "states:\n"
	"  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: Ask\n"
	"  - name: Ask\n    type: callback\n"
	"    action: {functionRef: {refName: ref, arguments: {step: ref, n: '${ .s }'}}, "
	"actionDataFilter: {useResults: false}}\n"
	"    eventRef: D\n    eventDataFilter: {data: '${ .n }', toStateData: '${ .d }'}\n"
	"    transition: Second\n"
	"  - name: Second\n    type: event\n    " TAKE("D", "e") "    transition: Third\n"
	"  - name: Third\n    type: event\n    " TAKE("D", "f")
	"    stateDataFilter: {output: '${ {seen: [.s, .d, .e, .f]} }'}\n    end: true\n";

/* Its key comes out unknown: it takes what comes to its type, of which no plan tells the routers. Each step waits already when the
 * call sets the event off. */
static const char blank_text[] =
	"id: blank\n" HEAD "events:\n"
	"  - {name: S, type: blank.s, source: sim, " BY_KEY "}\n"
	"  - {name: Q, type: blank.q, source: blank, kind: produced}\n"
	"  - {name: D, type: blank.d, source: sim, correlation: [{contextAttributeName: r, contextAttributeValue: "
	"'${ .none }'}]}\n" FUNCTIONS "states:\n"
	"  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: Both\n"
	"  - name: Both\n    type: parallel\n    branches:\n"
	"      - name: wait\n        actions: [{eventRef: {produceEventRef: Q, consumeEventRef: D}, "
	"actionDataFilter: {results: '${ .n }', toStateData: '${ .d }'}}]\n"
	"      - name: ask\n        actions: [{functionRef: {refName: ref, arguments: {step: ref, n: '${ .s }'}}, "
	"sleep: {before: PT1S}, actionDataFilter: {useResults: false}}]\n"
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

/* Its call fails at first and nothing is done about it: it faults, and a `retry` command gives it another life. */
static const char frail_text[] = "id: frail\n" HEAD "events: [{name: S, type: frail.s, source: sim, " BY_KEY "}]\n"
				 "functions: [{name: frail, type: custom, operation: POST http://svc.example/frail}]\n"
				 "states:\n"
				 "  - name: Take\n    type: event\n    " TAKE("S", "s") "    transition: Call\n"
				 "  - name: Call\n    type: operation\n    actions:\n"
				 "      - functionRef: {refName: frail, arguments: {step: frail, n: '${ .s }'}}\n"
				 "        actionDataFilter: {toStateData: '${ .r }'}\n"
				 "    stateDataFilter: {output: '${ {seen: [.r.echo]} }'}\n    end: true\n";

/* Started by command, under an id of ours. */
static const char manual_text[] = "id: %s\n" HEAD FUNCTIONS "states:\n"
				  "  - name: Take\n    type: operation\n    actions:\n"
				  "      - functionRef: {refName: svc, arguments: {step: %s, n: '${ .n }'}}\n"
				  "        actionDataFilter: {toStateData: '${ .r }'}\n"
				  "    stateDataFilter: {output: '${ {seen: [.r.echo]} }'}\n    end: true\n";

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
	snprintf(event->id, sizeof(event->id), "n%d", ++sim->event_serial);
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
	int take = 1 + sim_below(sim, 3), between = sim_below(sim, 5);
	between = between > 2 ? 2 : between; /* mostly one that sleeps: timers have little else to do */
	char *name = sl_arena_printf(&sim->arena, "loop%d%c", take, 'a' + between);
	char *text = sl_arena_printf(
		&sim->arena, loop_text, name, name, loop_between[between], loop_element[between], take);
	add_flow(sim, name, text, take, take)->rest_ms = between == 2 ? 20000 * take : 0;
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
	add_flow(sim, "join", join_text, 2, 2)->rest_ms = 500;
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

void sim_event_attribute(struct sim_event *event, const char *name, const char *value)
{
	event->ev = sl_json_set(event->ev, name, jv_string(value));
}

static void make_cross(struct sim *sim)
{
	add_flow(sim, "cross", cross_text, 1, 1)->rest_ms = 1000;
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		const char *key = sl_arena_printf(&sim->arena, "cross-%d", k);
		const char *r = sl_arena_printf(&sim->arena, "r-cross-%d", k);
		for (int n = sim_below(sim, 2); n >= 0; n--)
			sim_event_attribute(add_event(sim, "cross.s", "k", key), "r", r);
		for (int n = sim_below(sim, 3); n >= 0; n--)
			add_event(sim, "cross.d", "r", r);
	}
}

static void make_answer(struct sim *sim)
{
	char key[24];
	add_flow(sim, "answer", answer_text, 4, 4);
	for (int k = sim_below(sim, 3); k >= 0; k--) {
		struct sim_event *event =
			add_event(sim, "answer.s", "k", sl_arena_printf(&sim->arena, "answer-%d", k));
		snprintf(key, sizeof(key), "r-%.8s", event->id);
		sim_event_attribute(event, "r", key);
		for (int n = 0; n < 3; n++)
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

static void make_blank(struct sim *sim)
{
	char key[24];
	add_flow(sim, "blank", blank_text, 2, 2)->rest_ms = 1000;
	snprintf(key, sizeof(key), "r-%.8s", add_event(sim, "blank.s", "k", "blank-0")->id);
	add_event(sim, "blank.d", "r", key)->held = true;
}

static void make_frail(struct sim *sim)
{
	add_flow(sim, "frail", frail_text, 1, 1)->frail = true;
	for (int k = sim_below(sim, 2); k >= 0; k--)
		for (int n = sim_below(sim, 3); n >= 0; n--)
			add_event(sim, "frail.s", "k", sl_arena_printf(&sim->arena, "frail-%d", k));
}

static struct sim_flow *make_command(struct sim *sim, const char *name, int count)
{
	struct sim_flow *flow = add_flow(sim, name, sl_arena_printf(&sim->arena, manual_text, name, name), 1, 1);
	flow->keyed = false;
	flow->command = true;
	for (int n = 0; n < count; n++)
		add_event(sim, name, NULL, NULL);
	return flow;
}

static void make_manual(struct sim *sim)
{
	make_command(sim, "manual", 1 + sim_below(sim, 3));
}

/* R7: stepping its start ends the process. */
static void make_mine(struct sim *sim)
{
	make_command(sim, "mine", 1);
	snprintf(sim->poison.instance, sizeof(sim->poison.instance), "%.16s", sim->events[sim->event_count - 1].id);
	sim->poison.proved = sim_chance(sim, 50);
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

struct maker {
	void (*make)(struct sim *sim);
	bool early; /* needs early events: with a short window it is not sure to end */
};
static const struct maker makers[] = {{make_loop, false}, {make_join, false}, {make_unc, false}, {make_race, false},
	{make_cross, false}, {make_answer, false}, {make_direct, false}, {make_frail, false}, {make_manual, false},
	{make_mine, false}, {make_wait, true}, {make_back, true}, {make_blank, false}};
#define MAKERS ((int)(sizeof(makers) / sizeof(makers[0])))

/* One workflow and its events; those of a workflow that is left out go again. */
static void make_one(struct sim *sim, int number)
{
	int flow = sim->flow_count, event = sim->event_count;
	uint64_t old = sim_fork(sim, 2, (uint64_t)number);
	makers[number].make(sim);
	if (sim_chance(sim, 12))
		sim->flows[flow].late = 100 + sim_below(sim, 800);
	sim->random = old;
	snprintf(sim->result->flows[sim->result->flow_count++], sizeof(sim->result->flows[0]), "%.15s", sim->flows[flow].name);
	if (!sim->cut.flows || sim_listed(sim->cut.flows, sim->flows[flow].name))
		return;
	while (sim->event_count > event)
		jv_free(sim->events[--sim->event_count].ev);
	if (makers[number].make == make_mine)
		sim->poison.instance[0] = 0;
	sim->flow_count = flow;
}

void sim_load_make(struct sim *sim)
{
	bool long_window = sim->early_window_ms >= SIM_MINUTE_MS * 30;
	unsigned chosen = 0;
	for (int i = sim_below(sim, 3); i >= 0; i--)
		chosen |= 1u << sim_below(sim, MAKERS);
	bool answer = !sim->early_window_ms && sim_chance(sim, 40); /* a subscription that comes late is noticed by this one alone */
	for (int i = 0; i < MAKERS; i++)
		if ((chosen & 1u << i && (long_window || !makers[i].early)) || (answer && makers[i].make == make_answer))
			make_one(sim, i);
	if (!sim->result->flow_count)
		make_one(sim, 0);
	shuffle(sim);
}

void sim_load_free(struct sim *sim)
{
	for (int i = 0; i < sim->event_count; i++)
		jv_free(sim->events[i].ev);
	free(sim->events);
}
