/* Publishing, commands, and the service that the workflows call. */
#include "common/codec/codec.h"
#include "tests/sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DRIVER_QUEUE 100000
#define TIGHT_QUEUE 3

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
	sl_memory_queue_max(sim->world, DRIVER_QUEUE);
	err = sim->driver->ops->produce(sim->driver, &rec, delivered, NULL);
	sl_assert(!err);
	sl_memory_queue_max(sim->world, sim->tight ? TIGHT_QUEUE : DRIVER_QUEUE);
	sl_arena_release(&arena);
}

struct sim_event *sim_load_next(struct sim *sim)
{
	for (int i = 0; i < sim->event_count; i++)
		if (!sim->events[i].published && !sim->events[i].held && sim->flows[sim->events[i].flow].deployed)
			return &sim->events[i];
	return NULL;
}

static void start_by_command(struct sim *sim, const struct sim_event *event)
{
	jv data = sl_json_set(jv_object(), "workflow", jv_string(sim->flows[event->flow].name));
	data = sl_json_set(data, "instance", jv_string(event->id));
	data = sl_json_set(data, "input", sl_json_set(jv_object(), "n", jv_string(event->id)));
	sim_command(sim, sl_arena_printf(&sim->arena, "start-%s", event->id), "io.sluice.start", data);
}

void sim_publish(struct sim *sim, struct sim_event *event)
{
	int32_t partition = sim_below(sim, SIM_EVENT_PARTITIONS);
	sim_tell(sim, "publish %s %s key %s to partition %d%s", event->id, event->type, event->key, (int)partition,
		event->published ? " again" : "");
	sim->published += !event->published;
	event->published = true;
	event->copies++;
	if (sim->flows[event->flow].command)
		start_by_command(sim, event);
	else
		send(sim, "sluice.events", partition, event->ev);
}

void sim_command(struct sim *sim, const char *id, const char *type, jv data)
{
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", id ? jv_string(id) : jv_string_fmt("command-%d", ++sim->commands));
	ev = sl_json_set(ev, "source", jv_string("sim"));
	ev = sl_json_set(ev, "type", jv_string(type));
	ev = sl_json_set(ev, "data", data);
	send(sim, sim->topics.commands, 0, ev);
	jv_free(ev);
}

static void deploy(struct sim *sim, const char *id, const char *text)
{
	sim_command(sim, id, "io.sluice.deploy", sl_json_set(jv_object(), "definition", jv_string(text)));
}

void sim_load_deploy(struct sim *sim)
{
	for (int i = 0; i < sim->flow_count; i++) {
		if (sim->flows[i].late)
			continue;
		sim->flows[i].deployed = true;
		deploy(sim, sl_arena_printf(&sim->arena, "deploy-%s", sim->flows[i].name), sim->flows[i].text);
	}
}

void sim_load_late(struct sim *sim)
{
	for (int i = 0; i < sim->flow_count; i++) {
		struct sim_flow *flow = &sim->flows[i];
		if (!flow->late || (sim->step < flow->late && !sim->calm))
			continue;
		sim_tell(sim, "deploy %s", flow->name);
		flow->late = 0; /* sim_watch sees the answer */
		deploy(sim, sl_arena_printf(&sim->arena, "deploy-%s", flow->name), flow->text);
	}
}

void sim_load_again(struct sim *sim)
{
	struct sim_flow *flow = &sim->flows[sim_below(sim, sim->flow_count)];
	const char *version = "version: '1.0.0'", *at = strstr(flow->text, version);
	int number = 1 + sim_below(sim, 2);
	if (!flow->deployed || !at)
		return;
	flow->revised = true;
	sim_tell(sim, "deploy %s 1.0.%d", flow->name, number);
	deploy(sim, sl_arena_printf(&sim->arena, "deploy-%s-%d", flow->name, ++sim->commands),
		sl_arena_printf(&sim->arena, "%.*sversion: '1.0.%d'%s", (int)(at - flow->text), flow->text, number,
			at + strlen(version)));
}

/* An instance of ours, started or not. */
static const char *any_by_command(struct sim *sim)
{
	const struct sim_event *event = &sim->events[sim_below(sim, sim->event_count)];
	bool ours = sim->flows[event->flow].command && strcmp(event->id, sim->poison.instance) != 0;
	return ours ? event->id : NULL;
}

void sim_cancel(struct sim *sim, const char *instance)
{
	struct sl_record rec;
	int32_t partition = sim_below(sim, 2);
	int64_t high = sl_memory_high(sim->world, sim->topics.lifecycle, partition);
	if (!instance && sim->event_count && sim_chance(sim, 30))
		instance = any_by_command(sim);
	if (instance) {
		sim_tell(sim, "cancel %s", instance);
		sim_command(sim, NULL, "io.sluice.cancel", sl_json_set(jv_object(), "instance", jv_string(instance)));
		sl_map_set(&sim->cancelled, instance, sim);
		return;
	}
	jv ev;
	if (high <= 0 || !sl_memory_record(sim->world, sim->topics.lifecycle, partition, sim_below(sim, (int)high), &rec) ||
		sl_event_decode(&rec, &sl_json_default, &ev, NULL))
		return;
	const char *subject = sl_json_str(ev, "subject");
	if (subject && strstr(sl_json_str(ev, "type"), "workflow.started") && strcmp(subject, sim->poison.instance) != 0)
		sim_cancel(sim, subject);
	jv_free(ev);
}

bool sim_retry(struct sim *sim)
{
	if (!sim->faulted.count)
		return false;
	int n = sim_below(sim, (int)sim->faulted.count);
	sl_map_each(&sim->faulted, e)
		if (n-- == 0) {
			sim_tell(sim, "retry %s", e->key);
			sim_command(sim, NULL, "io.sluice.retry", sl_json_set(jv_object(), "instance", jv_string(e->key)));
			return true;
		}
	return false;
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

static int calls_of(const struct sim *sim, const char *action)
{
	const struct sim_call *call = sl_map_get(&sim->calls, action);
	return call ? call->count : 0;
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
	if (strcmp(path, "/frail") == 0 && calls_of(sim, action) <= (int)(hash(n) % 3))
		ret->status = 500;
	ret->body = (struct sl_bytes){answer, strlen(answer)};
	if (strcmp(path, "/ref") == 0) {
		char key[24];
		snprintf(key, sizeof(key), "r-%.8s", n);
		for (int i = 0; i < sim->event_count; i++)
			if (sim->events[i].held && strcmp(sim->events[i].key, key) == 0) {
				sim->events[i].held = false;
				if (strcmp(sim->events[i].type, "direct.d") == 0)
					sim_event_attribute(&sim->events[i], "workflowinstanceid", header(req, "Sluice-Instance"));
			}
	}
	jv_free(body);
	return delay;
}
