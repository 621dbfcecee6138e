/* Careful mode and what is given up, so that a crash of our own stops no partition for ever (R7).
 *
 * Two kinds of fields in the partition's header say what ended a process:
 *   note                    "OFFSET:PATH COUNT EPOCH RECEIVER": written before a record is read or a step is made, removed by the
 *                           commit. Who finds it of the same place for the third time gives that place up.
 *   proved:OFFSET:PATH      "RECEIVER REASON": the watchdog's last words. Given up at once.
 * PATH is "-" for reading the record and what it needs, "." for the record's own step, else that of a local effect.
 *
 * What is given up goes to the dead letter, and a fault takes its place: the instance ends with the reason, everything else of the
 * record goes on. A step's own outbox is delivered before its note is written: waiting for Kafka never looks like a crash. */
#include "services/coordinator/road.h"
#include "common/base/log.h"
#include "common/base/rules.h"
#include "common/model/error.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CAREFUL_TAKES 3 /* "from 2 on" counts the takes before this one */
#define NOTE_MAX 3
#define PROVED "proved:"
#define THRICE "processing ended the process three times"

static char *place_of(struct sl_arena *arena, int64_t offset, const char *path)
{
	return sl_arena_printf(arena, "%" PRId64 ":%s", offset, *path ? path : ".");
}

static void doom(struct own_lane *lane, const char *place, const char *reason)
{
	char *copy = strdup(reason);
	sl_assert(copy);
	free(sl_map_set(&lane->doomed, place, copy));
}

static void forget(struct own_lane *lane)
{
	careful_end(lane);
	sl_map_release(&lane->doomed, free);
	sl_map_init(&lane->doomed);
	free(lane->found);
	lane->found = NULL;
	lane->found_count = 0;
	free(lane->noted);
	lane->noted = NULL;
	lane->careful = false;
}

static void read_note(struct own_lane *lane, const char *text)
{
	const char *end = strchr(text, ' ');
	char *rest;
	if (!end)
		return;
	int64_t count = strtoll(end, &rest, 10), epoch = strtoll(rest, NULL, 10);
	lane->found = strndup(text, (size_t)(end - text));
	sl_assert(lane->found);
	lane->found_count = epoch == lane->note_epoch ? count - 1 : count; /* we wrote it and live: a lost answer */
	lane->careful = true;
	if (lane->found_count >= NOTE_MAX && SL_RULE(note))
		doom(lane, lane->found, THRICE);
}

void careful_taken(struct own_lane *lane, const struct sl_hash *header)
{
	int64_t takes = 1;
	bool todo = false;
	forget(lane);
	for (int i = 0; i < header->count; i++) {
		const struct sl_kv *field = &header->fields[i];
		const char *space = strchr(field->value, ' ');
		if (strcmp(field->name, "takes") == 0)
			takes = strtoll(field->value, NULL, 10);
		else if (strcmp(field->name, "todo") == 0)
			todo = field->len > 0;
		else if (strcmp(field->name, "note") == 0)
			read_note(lane, field->value);
		else if (strncmp(field->name, PROVED, strlen(PROVED)) == 0 && space && SL_RULE(proved))
			doom(lane, field->name + strlen(PROVED), space + 1);
	}
	/* Takes with nothing in hand tell nothing: a quiet partition is not slow after a few restarts. */
	if (takes >= CAREFUL_TAKES && (todo || lane->applied + 1 < lane->high))
		lane->careful = true;
	/* one of the records that the last owner can have had in its batch */
	lane->careful_until = lane->applied + 1 + lane->co->opt.batch_records_max;
	if (lane->careful_until > lane->high)
		lane->careful_until = lane->high;
	if (lane->careful)
		sl_log(SL_WARN, "%s/%d: taken %" PRId64 " times without a commit%s%s: going carefully, one record at a time",
			lane->co->opt.topics->instances, (int)lane->partition, takes, lane->found ? ", the last time in the midst of " : "",
			lane->found ? lane->found : "");
}

const char *careful_doomed(struct own_lane *lane, int64_t offset, const char *path)
{
	return lane->doomed.count ? sl_map_get(&lane->doomed, place_of(&lane->arena, offset, path)) : NULL;
}

bool careful_wants_note(struct own_lane *lane, int64_t offset, const char *path)
{
	return lane->careful && (!lane->noted || strcmp(lane->noted, place_of(&lane->arena, offset, path)) != 0);
}

/* Which place comes next: reading the first record, or the step on top of the stack. */
static const char *next_place(struct own_lane *lane, const char **ret_receiver)
{
	if (lane->note_read) {
		*ret_receiver = "-";
		return place_of(&lane->arena, inbox_at(&lane->inbox, 0)->rec.offset, "-");
	}
	const struct work *work = &lane->stack.items[lane->stack.count - 1];
	*ret_receiver = pass_key(&lane->arena, work->msg.ns, work->msg.to);
	return place_of(&lane->arena, work->offset, work->path);
}

struct sl_op careful_note(struct own_lane *lane)
{
	const char *receiver, *place = next_place(lane, &receiver);
	int64_t count = lane->found && strcmp(lane->found, place) == 0 ? lane->found_count + 1 : 1;
	const char *text = sl_arena_printf(&lane->arena, "%s %" PRId64 " %" PRId64 " %s", place, count, lane->epoch, receiver);
	free(lane->noted);
	lane->noted = strdup(place);
	sl_assert(lane->noted);
	lane->note_epoch = lane->epoch;
	return (struct sl_op){.kind = SL_OP_HSET, .key = "p", .field = "note", .value = {text, strlen(text)}};
}

/* The dead letter has the input, a fault its place. False: nothing is wrong with what comes next. */
bool careful_give_up(struct own_lane *lane)
{
	struct work *work = &lane->stack.items[lane->stack.count - 1];
	const char *reason = careful_doomed(lane, work->offset, work->path);
	if (!reason)
		return false;
	reason = sl_arena_str(&lane->arena, reason);
	pass_dead_letter(lane, work, reason);
	lane->dirty = true;
	if (work->msg.kind == SL_MSG_FAULT || sl_id_is_mailbox(work->msg.to) || !SL_RULE(fault)) {
		sl_msg_clear(&work->msg);
		lane->stack.count--;
		return true;
	}
	struct sl_msg *msg = &work->msg;
	const char *title = sl_arena_strn(&lane->arena, reason, strcspn(reason, ":"));
	jv_free(msg->error);
	jv_free(msg->extra);
	msg->error = sl_error_new(SL_CODE_INTERNAL, 500, title, reason);
	msg->extra = sl_json_set(jv_object(), "kind", jv_string(sl_msg_kind_text(msg->kind)));
	msg->kind = SL_MSG_FAULT;
	work->path = sl_arena_printf(&lane->arena, "%s!", work->path);
	return true;
}

static bool passed(const struct own_lane *lane, const char *place, int64_t applied)
{
	return !lane->stack.count && strtoll(place, NULL, 10) <= applied;
}

int careful_passed(struct own_lane *lane, struct sl_arena *arena, int64_t applied, const char ***ret)
{
	int count = 0;
	*ret = SL_NEWN(arena, const char *, lane->doomed.count + 1);
	if (lane->noted || lane->found)
		(*ret)[count++] = "note";
	sl_map_each(&lane->doomed, e)
		if (passed(lane, e->key, applied))
			(*ret)[count++] = sl_arena_printf(arena, PROVED "%s", e->key);
	return count;
}

bool careful_begin(struct own_lane *lane)
{
	if (lane->co->noting && lane->co->noting != lane)
		return false;
	lane->co->noting = lane;
	return true;
}

void careful_end(struct own_lane *lane)
{
	if (lane->co->noting != lane)
		return;
	lane->co->noting = NULL;
	co_wake(lane->co);
}

void careful_committed(struct own_lane *lane)
{
	careful_end(lane);
	sl_map_each(&lane->doomed, e)
		if (passed(lane, e->key, lane->applied))
			free(sl_map_del(&lane->doomed, e->key));
	free(lane->noted);
	free(lane->found);
	lane->noted = lane->found = NULL;
	lane->careful = lane->careful && (lane->stack.count || lane->applied + 1 < lane->careful_until);
}

void careful_release(struct own_lane *lane)
{
	forget(lane);
	sl_map_release(&lane->doomed, NULL);
}
