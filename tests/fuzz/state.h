/* Stored state as text, for the target "state" and the program that makes its seeds: the actor's address in the first
 * line, then a line "FIELD VALUE" for each field of its hash, an empty line, then a line of JSON for each message to be
 * stepped. Plans are those of flows/, and each goes by its workflow's id instead of its hash, so that an input lives
 * as long as its flow. */
#ifndef TESTS_FUZZ_STATE_H
#define TESTS_FUZZ_STATE_H

#include "common/model/msg.h"
#include <stdio.h>
#include <string.h>

struct state_member {
	char type; /* S, I, B, J */
	const char *name;
	size_t offset;
};
static const struct state_member state_members[] = {
#define STATE_STR 'S'
#define STATE_I64 'I'
#define STATE_BOOL 'B'
#define STATE_JSON 'J'
#define M(type, name, meaning) {STATE_##type, #name, offsetof(struct sl_msg, name)},
#include "common/model/msg.def"
#undef M
};
#define STATE_MEMBERS (sizeof(state_members) / sizeof(state_members[0]))

/* Borrows obj; strings into arena. False: no message. */
static inline bool state_msg_read(jv obj, struct sl_arena *arena, struct sl_msg *ret)
{
	const char *kind = sl_json_str(obj, "kind");
	if (!kind || sl_msg_kind_of(kind) == SL_MSG_NONE)
		return false;
	sl_msg_init(ret, sl_msg_kind_of(kind));
	for (size_t i = 0; i < STATE_MEMBERS; i++) {
		const struct state_member *m = &state_members[i];
		void *at = (char *)ret + m->offset;
		if (m->type == 'S')
			*(const char **)at = sl_arena_str(arena, sl_json_str(obj, m->name));
		else if (m->type == 'I')
			*(int64_t *)at = sl_json_int(obj, m->name, *(int64_t *)at);
		else if (m->type == 'B')
			*(bool *)at = sl_json_bool(obj, m->name, false);
		else
			*(jv *)at = sl_json_get(obj, m->name);
	}
	return true;
}

static inline jv state_msg_write(const struct sl_msg *msg)
{
	jv obj = sl_json_set(jv_object(), "kind", jv_string(sl_msg_kind_text(msg->kind)));
	struct sl_msg none;
	sl_msg_init(&none, msg->kind);
	for (size_t i = 0; i < STATE_MEMBERS; i++) {
		const struct state_member *m = &state_members[i];
		const void *at = (const char *)msg + m->offset;
		int64_t otherwise =
			*(const int64_t *)(const void *)((const char *)&none + (m->type == 'I' ? m->offset : 0));
		if (m->type == 'S' && *(const char *const *)at)
			obj = sl_json_set(obj, m->name, jv_string(*(const char *const *)at));
		else if (m->type == 'I' && *(const int64_t *)at != otherwise)
			obj = sl_json_set(obj, m->name, jv_number((double)*(const int64_t *)at));
		else if (m->type == 'B' && *(const bool *)at)
			obj = sl_json_set(obj, m->name, jv_true());
		else if (m->type == 'J' && jv_is_valid(*(const jv *)at))
			obj = sl_json_set(obj, m->name, jv_copy(*(const jv *)at));
	}
	return obj;
}

#endif
