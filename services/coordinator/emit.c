/* Emit (design section 3, stage 7): effects become Kafka records. */
#include <stdio.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/text.h"
#include "services/coordinator/road.h"

static struct sl_bytes text_bytes(const char *text)
{
	return (struct sl_bytes){text, text ? strlen(text) : 0};
}

static void add_header(struct sl_arena *arena, struct sl_record *rec, const char *name, const char *value)
{
	if (!value)
		return;
	struct sl_header *grown = SL_NEWN(arena, struct sl_header, rec->header_count + 1);
	if (rec->header_count)
		memcpy(grown, rec->headers, (size_t)rec->header_count * sizeof(*grown));
	grown[rec->header_count] = (struct sl_header){name, text_bytes(sl_arena_str(arena, value))};
	rec->headers = grown;
	rec->header_count++;
}

static void add_number(struct sl_arena *arena, struct sl_record *rec, const char *name, int64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%lld", (long long)value);
	add_header(arena, rec, name, text);
}

static jv answer_event(const struct sl_msg *msg)
{
	char when[32];
	jv data = sl_json_set(jv_object(), "ok", jv_bool(msg->ok));
	if (msg->reason)
		data = sl_json_set(data, "reason", jv_string(msg->reason));
	if (jv_is_valid(msg->data))
		data = sl_json_merge(data, jv_copy(msg->data));
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", jv_string(msg->id ? msg->id : ""));
	ev = sl_json_set(ev, "source", jv_string("sluice"));
	ev = sl_json_set(ev, "type", jv_string("io.sluice.answer"));
	ev = sl_json_set(ev, "commandid", jv_string(msg->command_id ? msg->command_id : ""));
	if (msg->instance || msg->from)
		ev = sl_json_set(ev, "subject", jv_string(msg->instance ? msg->instance : msg->from));
	if (msg->time_ms) {
		sl_time_format(msg->time_ms, when);
		ev = sl_json_set(ev, "time", jv_string(when));
	}
	ev = sl_json_set(ev, "datacontenttype", jv_string("application/json"));
	return sl_json_set(ev, "data", data);
}

static int public_record(jv ev, enum sl_event_mode mode, const char *topic, const char *key, struct sl_arena *arena,
	struct sl_record *ret)
{
	ret->topic = topic;
	ret->key = text_bytes(sl_arena_str(arena, key));
	int err = sl_event_encode(ev, mode, arena, ret);
	jv_free(ev);
	return err;
}

static int lifecycle(struct sl_coordinator *co, struct sl_arena *arena, const struct sl_msg *msg, struct sl_record *ret)
{
	if (!msg->text)
		return SL_EINVAL;
	ret->topic = co->opt.topics->lifecycle;
	ret->key = text_bytes(sl_arena_str(arena, msg->instance ? msg->instance : msg->from));
	ret->value = text_bytes(sl_arena_str(arena, msg->text));
	add_header(arena, ret, "content-type", "application/cloudevents+json");
	return 0;
}

static int dead_letter(struct sl_coordinator *co, struct sl_arena *arena, const struct sl_msg *msg, struct sl_record *ret)
{
	const struct sl_topics *topics = co->opt.topics;
	int err = 0;
	ret->topic = topics->dead_letter;
	if (jv_is_valid(msg->event))
		err = public_record(jv_copy(msg->event), SL_EVENT_STRUCTURED, topics->dead_letter, msg->from, arena, ret);
	ret->key = text_bytes(sl_arena_str(arena, msg->from ? msg->from : msg->instance));
	add_header(arena, ret, "sluice-reason", msg->reason ? msg->reason : "unknown");
	add_header(arena, ret, "sluice-namespace", msg->ns);
	add_header(arena, ret, "sluice-instance", msg->instance ? msg->instance : msg->from);
	if (msg->origin_topic) {
		add_header(arena, ret, "sluice-origin-topic", msg->origin_topic);
		add_number(arena, ret, "sluice-origin-partition", msg->origin_partition);
		add_number(arena, ret, "sluice-origin-offset", msg->origin_offset);
	}
	add_number(arena, ret, "sluice-attempts", msg->attempt > 0 ? msg->attempt : 1);
	return err;
}

int emit_record(struct sl_coordinator *co, struct sl_arena *arena, const struct sl_msg *msg, struct sl_record *ret)
{
	const struct sl_topics *topics = co->opt.topics;
	*ret = (struct sl_record){.partition = -1};
	switch (sl_msg_route(msg->kind)) {
	case SL_TO_INST:
		ret->topic = topics->instances;
		ret->partition = sl_id_partition(msg->ns, msg->to, co->partitions);
		ret->key = text_bytes(sl_id_kafka_key(arena, msg->ns, msg->to));
		return sl_msg_record(msg, arena, ret);
	case SL_TO_ACTIONS:
		ret->topic = topics->actions;
		ret->key = text_bytes(sl_arena_str(arena, msg->action));
		return sl_msg_record(msg, arena, ret);
	case SL_TO_TIMERS:
		ret->topic = topics->timers;
		ret->key = text_bytes(sl_id_kafka_key(arena, msg->ns, msg->instance ? msg->instance : msg->from));
		return sl_msg_record(msg, arena, ret);
	case SL_TO_EVENTS:
		return public_record(jv_copy(msg->event), co->opt.event_mode, sl_topics_publish(topics, msg->ns),
			msg->from ? msg->from : msg->instance, arena, ret);
	case SL_TO_LIFECYCLE:
		if (msg->kind == SL_MSG_ANSWER)
			return public_record(answer_event(msg), SL_EVENT_STRUCTURED, topics->lifecycle,
				msg->instance ? msg->instance : msg->from, arena, ret);
		return lifecycle(co, arena, msg, ret);
	case SL_TO_DEAD:
		return dead_letter(co, arena, msg, ret);
	case SL_TO_WHY:
		break;
	}
	sl_bug(__FILE__, __LINE__, "no record for message %s", sl_msg_kind_text(msg->kind));
}
