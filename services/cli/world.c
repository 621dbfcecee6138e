/* Sluice in one process: see world.h. */
#include "services/cli/world_int.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/text.h"

int64_t world_wall(const struct sl_world *world)
{
	return sl_memory_now(world->memory);
}

int64_t sl_world_now(const struct sl_world *world)
{
	return world_wall(world) - world->start_ms;
}

void world_trace(struct sl_world *world, const char *fmt, ...)
{
	struct sl_buf text;
	va_list ap;
	if (!world->opt.trace)
		return;
	sl_buf_init(&text);
	va_start(ap, fmt);
	sl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	world->opt.trace(world->opt.arg, sl_world_now(world), text.data ? text.data : "");
	sl_buf_release(&text);
}

struct happening *world_schedule(struct sl_world *world, int64_t at_ms, enum happening_class class)
{
	GROW(world->agenda, world->agenda_count, world->agenda_cap);
	struct happening *h = &world->agenda[world->agenda_count++];
	*h = (struct happening){.at_ms = at_ms, .class = class, .seq = ++world->seq, .event = jv_invalid()};
	sl_msg_init(&h->msg, SL_MSG_NONE);
	return h;
}

void world_clear(struct happening *h)
{
	sl_msg_clear(&h->msg);
	jv_free(h->event);
	free(h->state);
	h->event = jv_invalid();
	h->state = NULL;
	h->done = true;
}

/* --- life --- */

static void fatal(void *arg, int err, const char *text)
{
	struct sl_world *world = arg;
	(void)err;
	if (!world->stop)
		world->stop = sl_arena_str(&world->arena, text);
}

/* settle() turns everything until nothing moves any more: nobody needs to be woken. */
static void wake(void *arg)
{
	(void)arg;
}

struct sl_world *sl_world_new(const struct sl_world_options *opt)
{
	struct sl_world *world = calloc(1, sizeof(*world));
	struct sl_diags diags;
	sl_assert(world);
	world->opt = *opt;
	world->start_ms = opt->clock_ms;
	world->dead = jv_array();
	sl_arena_init(&world->arena);
	world->memory = sl_memory_new(opt->clock_ms);
	sl_topics_init(&world->topics, &world->arena, "sluice.");
	world->event_topic = (struct sl_event_topic){"sluice.events", NS};
	world->topics.events = &world->event_topic;
	world->topics.event_count = 1;
	const char *names[] = {"sluice.events", world->topics.commands, world->topics.instances, world->topics.actions,
		world->topics.timers, world->topics.definitions, world->topics.lifecycle, world->topics.dead_letter};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		sl_memory_topic(world->memory, names[i], 1, 64 * 1024 * 1024);
	world->plans = sl_plans_new();
	world->driver = sl_memory_broker(world->memory, "driver");
	struct sl_definitions_options dopt = {.broker = sl_memory_broker(world->memory, "coordinator"), .plans = world->plans,
		.topic = world->topics.definitions, .wake = wake, .fatal = fatal, .arg = world};
	struct sl_coordinator_options copt = {.broker = dopt.broker, .store = sl_memory_store(world->memory, "coordinator"),
		.clock = sl_memory_clock(world->memory, "coordinator"), .plans = world->plans, .topics = &world->topics,
		.json = sl_json_default, .group = "sluice", .seed = opt->seed, .single = true, .wake = wake, .fatal = fatal, .arg = world};
	sl_limits_default(&copt.limits);
	copt.limits.early_window_ms = 0; /* events come in the order given: nothing overtakes (design section 5) */
	copt.limits.lifecycle_level = 2;
	sl_diags_init(&diags);
	int err = sl_definitions_new(&dopt, &world->definitions, &diags);
	copt.definitions = world->definitions;
	if (!err)
		err = sl_coordinator_new(&copt, &world->co, &diags);
	if (err)
		sl_bug(__FILE__, __LINE__, "the memory world does not start: %s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	return world;
}

void sl_world_free(struct sl_world *world)
{
	if (!world)
		return;
	sl_coordinator_free(world->co);
	sl_definitions_free(world->definitions);
	sl_memory_free(world->memory);
	sl_plans_free(world->plans);
	for (int i = 0; i < world->agenda_count; i++)
		world_clear(&world->agenda[i]);
	for (int i = 0; i < world->instance_count; i++) {
		jv_free(world->instances[i].output);
		jv_free(world->instances[i].error);
		jv_free(world->instances[i].states);
	}
	for (int i = 0; i < world->call_count; i++)
		jv_free(world->calls[i].arguments);
	for (int i = 0; i < world->published_count; i++)
		jv_free(world->published[i].event);
	free(world->agenda);
	free(world->instances);
	free(world->calls);
	free(world->published);
	sl_map_release(&world->mock_uses, NULL);
	sl_map_release(&world->functions, NULL);
	sl_map_release(&world->states, NULL);
	sl_map_release(&world->injected, NULL);
	jv_free(world->dead);
	sl_arena_release(&world->arena);
	free(world);
}

int sl_world_deploy(struct sl_world *world, const char *text, size_t len, const struct sl_compile_options *opt,
	const char **ret_id, struct sl_diags *diags)
{
	struct sl_compile_options deploy = *opt;
	struct sl_plan *plan = NULL;
	deploy.deploy = true;
	int err = sl_compile(text, len, &deploy, &plan, diags);
	if (err)
		return err;
	sl_plans_add(world->plans, NS, plan);
	sl_plans_point(world->plans, NS, plan->id, plan->version, plan->hash, true);
	if (ret_id)
		*ret_id = sl_arena_str(&world->arena, plan->id);
	for (int i = 0; i < plan->function_count; i++)
		sl_map_set(&world->functions, plan->functions[i].name, world);
	sl_map_each(&plan->nodes, e)
	{
		const struct sl_node *node = e->value;
		if (node->kind == SL_NODE_STATE && node->u.state.name)
			sl_map_set(&world->states, node->u.state.name, world);
	}
	sl_plan_unref(plan);
	return 0;
}

bool sl_world_has_function(const struct sl_world *world, const char *name)
{
	return sl_map_get(&world->functions, name);
}

bool sl_world_has_state(const struct sl_world *world, const char *name)
{
	return sl_map_get(&world->states, name);
}

const char *sl_world_unpublished(const struct sl_world *world)
{
	for (int i = 0; i < world->agenda_count; i++)
		if (!world->agenda[i].done && world->agenda[i].state)
			return world->agenda[i].state;
	return NULL;
}

/* --- sending --- */

static void delivered(void *arg, int err)
{
	(void)arg;
	sl_assert(!err);
}

static void send(struct sl_world *world, const char *topic, struct sl_record *rec)
{
	rec->topic = topic;
	rec->partition = 0;
	int err = world->driver->ops->produce(world->driver, rec, delivered, NULL);
	sl_assert(!err);
}

static void send_msg(struct sl_world *world, const struct sl_msg *msg)
{
	struct sl_arena arena;
	struct sl_record rec = {0};
	sl_arena_init(&arena);
	int err = sl_msg_record(msg, &arena, &rec);
	sl_assert(!err);
	char *key = sl_id_kafka_key(&arena, msg->ns, msg->to);
	rec.key = (struct sl_bytes){key, strlen(key)};
	send(world, world->topics.instances, &rec);
	sl_arena_release(&arena);
}

static void send_event(struct sl_world *world, const char *topic, jv ev)
{
	struct sl_arena arena;
	struct sl_record rec = {0};
	sl_arena_init(&arena);
	int err = sl_event_encode(ev, SL_EVENT_STRUCTURED, &arena, &rec);
	sl_assert(!err);
	send(world, topic, &rec);
	sl_arena_release(&arena);
}

int sl_world_start(struct sl_world *world, const char *workflow, jv input, const char **ret_instance)
{
	if (!sl_plans_current(world->plans, NS, workflow, NULL)) {
		jv_free(input);
		return SL_ENOTFOUND;
	}
	char *id = sl_arena_printf(&world->arena, "run-%d", ++world->serial);
	jv data = sl_json_set(jv_object(), "workflow", jv_string(workflow));
	data = sl_json_set(data, "instance", jv_string(id));
	if (jv_is_valid(input))
		data = sl_json_set(data, "input", input);
	else
		jv_free(input);
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "type", jv_string("io.sluice.start"));
	ev = sl_json_set(ev, "source", jv_string("sluice-cli"));
	ev = sl_json_set(ev, "id", jv_string(id));
	ev = sl_json_set(ev, "data", data);
	send_event(world, world->topics.commands, ev);
	jv_free(ev);
	if (ret_instance)
		*ret_instance = id;
	return 0;
}

void sl_world_event(struct sl_world *world, int64_t at_ms, jv ev)
{
	world_schedule(world, world->start_ms + at_ms, HAPPENS_EVENT)->event = ev;
}

void sl_world_event_at_state(struct sl_world *world, const char *state, jv ev)
{
	struct happening *h = world_schedule(world, INT64_MAX, HAPPENS_EVENT);
	h->event = ev;
	h->state = strdup(state);
}

/* --- reading what the coordinator wrote --- */

static bool next_record(struct sl_world *world, const char *topic, int64_t *offset, struct sl_record *ret)
{
	if (!sl_memory_record(world->memory, topic, 0, *offset, ret))
		return false;
	(*offset)++;
	return true;
}

static bool read_internal(struct sl_world *world, const char *topic, int64_t *offset)
{
	struct sl_record rec;
	struct sl_arena arena;
	struct sl_msg msg;
	uint64_t fp;
	if (!next_record(world, topic, offset, &rec))
		return false;
	sl_arena_init(&arena);
	int err = sl_msg_decode(rec.value, &arena, &msg, &fp, NULL);
	sl_assert(!err);
	switch (msg.kind) {
	case SL_MSG_ACTION:
		world_call(world, &msg);
		break;
	case SL_MSG_ACTION_CANCEL:
		world_drop_answers(world, msg.action);
		break;
	case SL_MSG_TIMER_SET:
		world_set_timer(world, &msg);
		break;
	case SL_MSG_TIMER_CANCEL:
		world_cancel_timer(world, &msg);
		break;
	default:
		sl_bug(__FILE__, __LINE__, "unexpected %s", sl_msg_kind_text(msg.kind));
	}
	sl_msg_clear(&msg);
	sl_arena_release(&arena);
	return true;
}

static struct sl_world_instance *instance_of(struct sl_world *world, const char *id)
{
	for (int i = 0; i < world->instance_count; i++)
		if (strcmp(world->instances[i].id, id) == 0)
			return &world->instances[i];
	GROW(world->instances, world->instance_count, world->instance_cap);
	struct sl_world_instance *inst = &world->instances[world->instance_count++];
	*inst = (struct sl_world_instance){.id = sl_arena_str(&world->arena, id), .workflow = "", .status = "active",
		.output = jv_invalid(), .error = jv_invalid(), .states = jv_array(), .started_ms = sl_world_now(world),
		.ended_ms = -1};
	return inst;
}

static void ended(struct sl_world *world, struct sl_world_instance *inst, const char *status, jv data)
{
	inst->status = status;
	inst->ended_ms = sl_world_now(world);
	jv_free(inst->output);
	inst->output = sl_json_get(data, "output");
	jv_free(inst->error);
	inst->error = sl_json_get(data, "error");
}

static bool read_lifecycle(struct sl_world *world)
{
	static const char prefix[] = "io.serverlessworkflow.";
	struct sl_record rec;
	jv ev;
	if (!next_record(world, world->topics.lifecycle, &world->read_lifecycle, &rec))
		return false;
	int err = sl_event_decode(&rec, &sl_json_default, &ev, NULL);
	sl_assert(!err);
	const char *type = sl_event_attr(ev, "type"), *subject = sl_event_attr(ev, "subject");
	jv data = sl_event_data(ev);
	if (strcmp(type, "io.sluice.answer") == 0) {
		if (!sl_json_bool(data, "ok", false) && sl_json_str(data, "reason"))
			world_trace(world, "refused: %s", sl_json_str(data, "reason"));
	} else if (strncmp(type, prefix, sizeof(prefix) - 1) == 0 && subject) {
		const char *what = type + sizeof(prefix) - 1;
		struct sl_world_instance *inst = instance_of(world, subject);
		char *text = sl_json_text(data);
		world_trace(world, "%s %.*s %s", subject, (int)(strlen(what) > 3 ? strlen(what) - 3 : 0), what, text);
		free(text);
		if (strcmp(what, "workflow.started.v1") == 0)
			inst->workflow = sl_arena_str(&world->arena, sl_json_str(data, "workflow"));
		else if (strcmp(what, "workflow.completed.v1") == 0)
			ended(world, inst, "completed", data);
		else if (strcmp(what, "workflow.faulted.v1") == 0)
			ended(world, inst, "faulted", data);
		else if (strcmp(what, "workflow.cancelled.v1") == 0)
			ended(world, inst, "cancelled", data);
		else if (strcmp(what, "state.entered.v1") == 0 && sl_json_str(data, "state"))
			inst->states = jv_array_append(inst->states, jv_string(sl_json_str(data, "state")));
	}
	jv_free(data);
	jv_free(ev);
	return true;
}

static void identity(jv ev, struct sl_buf *buf)
{
	sl_buf_clear(buf);
	sl_event_identity(ev, buf);
}

static bool read_published(struct sl_world *world)
{
	struct sl_record rec;
	struct sl_buf key;
	jv ev;
	if (!next_record(world, world->topics.events[0].topic, &world->read_events, &rec))
		return false;
	if (sl_event_decode(&rec, &sl_json_default, &ev, NULL))
		return true; /* an event that the scenario made badly */
	sl_buf_init(&key);
	identity(ev, &key);
	if (!sl_map_getn(&world->injected, key.data, key.len)) {
		GROW(world->published, world->published_count, world->published_cap);
		world->published[world->published_count++] = (struct sl_world_published){jv_copy(ev), sl_world_now(world)};
		char *text = sl_json_text(ev);
		world_trace(world, "published %s", text);
		free(text);
	}
	sl_buf_release(&key);
	jv_free(ev);
	return true;
}

static bool read_dead(struct sl_world *world)
{
	struct sl_record rec;
	if (!next_record(world, world->topics.dead_letter, &world->read_dead, &rec))
		return false;
	for (int i = 0; i < rec.header_count; i++) {
		if (strcmp(rec.headers[i].name, "sluice-reason") != 0)
			continue;
		jv reason = jv_string_sized(rec.headers[i].value.ptr, (int)rec.headers[i].value.len);
		world_trace(world, "dead letter: %s", jv_string_value(reason));
		world->dead = jv_array_append(world->dead, reason);
	}
	return true;
}

jv sl_world_dead_letters(const struct sl_world *world)
{
	return jv_copy(world->dead);
}

/* --- running --- */

/* Everything already caused runs to its end. */
static void settle(struct sl_world *world)
{
	for (bool more = true; more && !world->stop;) {
		more = sl_definitions_turn(world->definitions);
		more = sl_coordinator_turn(world->co) || more;
		more = sl_memory_turn(world->memory, 0) > 0 || more;
		while (!world->stop && read_internal(world, world->topics.timers, &world->read_timers))
			more = true;
		while (!world->stop && read_internal(world, world->topics.actions, &world->read_actions))
			more = true;
		while (read_lifecycle(world))
			more = true;
		while (read_published(world))
			more = true;
		while (read_dead(world))
			more = true;
	}
}

/* Does a stored frame wait for events in that state? (engine's stored form: f:PATH with `waits`) */
static bool frame_waits(const struct sl_kv *field, const char *state)
{
	jv frame;
	if (strncmp(field->name, "f:", 2) != 0 || sl_json_parse(field->value, field->len, &sl_json_default, &frame, NULL))
		return false;
	jv waits = sl_json_get(frame, "waits");
	const char *name = sl_json_str(frame, "state");
	bool found = jv_is_valid(waits) && name && strcmp(name, state) == 0;
	jv_free(waits);
	jv_free(frame);
	return found;
}

static bool state_waits(struct sl_world *world, const char *state)
{
	bool waits = false;
	for (int i = 0; i < world->instance_count && !waits; i++) {
		char key[SL_HOME_MAX + 32];
		if (world->instances[i].ended_ms >= 0)
			continue;
		snprintf(key, sizeof(key), "i:" NS "~%s", world->instances[i].id);
		struct sl_hash *hash = sl_memory_peek(world->memory, 0, key);
		for (int k = 0; k < hash->count && !waits; k++)
			waits = frame_waits(&hash->fields[k], state);
		sl_memory_hash_free(hash);
	}
	return waits;
}

static void release_states(struct sl_world *world)
{
	for (int i = 0; i < world->agenda_count; i++) {
		struct happening *h = &world->agenda[i];
		if (h->done || !h->state || h->at_ms != INT64_MAX)
			continue;
		if (state_waits(world, h->state))
			h->at_ms = world_wall(world);
	}
}

static struct happening *next_happening(struct sl_world *world)
{
	struct happening *best = NULL;
	for (int i = 0; i < world->agenda_count; i++) {
		struct happening *h = &world->agenda[i];
		if (h->done || h->at_ms == INT64_MAX)
			continue;
		if (!best || h->at_ms < best->at_ms ||
			(h->at_ms == best->at_ms &&
				(h->class < best->class || (h->class == best->class && h->seq < best->seq))))
			best = h;
	}
	return best;
}

static void compact(struct sl_world *world)
{
	int n = 0;
	for (int i = 0; i < world->agenda_count; i++)
		if (!world->agenda[i].done)
			world->agenda[n++] = world->agenda[i];
	world->agenda_count = n;
}

static void happen(struct sl_world *world, struct happening *h)
{
	if (h->class == HAPPENS_EVENT) {
		struct sl_buf key;
		sl_buf_init(&key);
		identity(h->event, &key);
		sl_map_setn(&world->injected, key.data, key.len, world);
		sl_buf_release(&key);
		char *text = sl_json_text(h->event);
		world_trace(world, "event %s", text);
		free(text);
		send_event(world, world->topics.events[0].topic, h->event);
	} else {
		if (h->class == HAPPENS_TIMER)
			world_trace(world, "timer of %s", h->msg.to);
		send_msg(world, &h->msg);
	}
	world_clear(h);
}

bool sl_world_run(struct sl_world *world, int64_t horizon_ms, const char **ret_why)
{
	for (int64_t rounds = 0;; rounds++) {
		settle(world);
		if (world->stop) {
			*ret_why = world->stop;
			return false;
		}
		release_states(world);
		if (rounds % 64 == 0)
			compact(world);
		struct happening *h = next_happening(world);
		if (!h || (horizon_ms >= 0 && h->at_ms > world->start_ms + horizon_ms))
			break;
		if (h->at_ms > world_wall(world)) {
			if (world->opt.until)
				world->opt.until(world->opt.arg, h->at_ms);
			sl_memory_set_now(world->memory, h->at_ms);
		}
		happen(world, h);
	}
	if (horizon_ms >= 0 && world_wall(world) < world->start_ms + horizon_ms)
		sl_memory_set_now(world->memory, world->start_ms + horizon_ms);
	return true;
}

int sl_world_instances(const struct sl_world *world, const struct sl_world_instance **ret)
{
	*ret = world->instances;
	return world->instance_count;
}

int sl_world_calls(const struct sl_world *world, const struct sl_world_call **ret)
{
	*ret = world->calls;
	return world->call_count;
}

int sl_world_published(const struct sl_world *world, const struct sl_world_published **ret)
{
	*ret = world->published;
	return world->published_count;
}
