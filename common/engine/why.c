/* Decision records for `sluice why`. */
#include "common/engine/why.h"

#include "common/model/event.h"
#include <string.h>

/* Strongest first; the last one is what no result is. */
static const char *const ranks[] = {
	SL_WHY_STARTED, SL_WHY_DELIVERED, SL_WHY_JOINED, SL_WHY_FULL, SL_WHY_DUPLICATE, SL_WHY_NOBODY};
#define RANK_NONE ((int)(sizeof ranks / sizeof *ranks) - 1)

void sl_why_init(struct sl_why *why)
{
	*why = (struct sl_why){.results = jv_invalid(), .candidates = jv_invalid(), .rank = RANK_NONE};
}

void sl_why_release(struct sl_why *why)
{
	jv_free(why->results);
	jv_free(why->candidates);
	sl_why_init(why);
}

static jv bounded(const char *text)
{
	size_t len = strlen(text), max = SL_WHY_TEXT_MAX;
	while (max && len > max && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--; /* not inside a character */
	return len > max ? jv_string_concat(jv_string_sized(text, (int)max), jv_string("..."))
			 : jv_string_sized(text, (int)len);
}

static jv with_text(jv obj, const char *name, const char *text)
{
	return text ? sl_json_set(obj, name, bounded(text)) : obj;
}

/* False: the list is full and the entry only counted. */
static bool room(struct sl_why *why, jv *list)
{
	if (!jv_is_valid(*list)) {
		jv_free(*list);
		*list = jv_array();
	}
	if (jv_array_length(jv_copy(*list)) < SL_WHY_LIST_MAX)
		return true;
	why->more++;
	return false;
}

void sl_why_candidate(struct sl_why *why, const char *workflow, const char *instance, const char *plan,
	const struct sl_mismatch *miss, jv ev)
{
	if (!room(why, &why->candidates))
		return;
	struct sl_buf have;
	sl_buf_init(&have);
	jv entry = with_text(jv_object(), "workflow", workflow);
	entry = with_text(entry, "instance", instance);
	entry = with_text(entry, "plan", plan);
	entry = with_text(entry, "attribute", miss->attribute);
	entry = with_text(entry, "wanted", miss->wanted);
	if (sl_event_canonical(ev, miss->attribute, &have))
		entry = with_text(entry, "have", have.len ? have.data : "");
	sl_buf_release(&have);
	why->candidates = jv_array_append(why->candidates, entry);
}

void sl_why_result(
	struct sl_why *why, const char *decision, const char *workflow, const char *plan, const char *instance)
{
	int rank = 0;
	while (rank < RANK_NONE && strcmp(ranks[rank], decision) != 0)
		rank++;
	why->rank = rank < why->rank ? rank : why->rank;
	if (!room(why, &why->results))
		return;
	jv entry = with_text(jv_object(), "decision", decision);
	entry = with_text(entry, "workflow", workflow);
	entry = with_text(entry, "plan", plan);
	entry = with_text(entry, "instance", instance);
	why->results = jv_array_append(why->results, entry);
}

const char *sl_why_strongest(const struct sl_why *why)
{
	return ranks[why->rank];
}

jv sl_why_take(struct sl_why *why, const char *at, jv ev, const char *decision)
{
	jv event = with_text(jv_object(), "id", sl_event_attr(ev, "id"));
	event = with_text(event, "source", sl_event_attr(ev, "source"));
	event = with_text(event, "type", sl_event_attr(ev, "type"));
	jv record = sl_json_set(jv_object(), "event", event);
	record = with_text(record, "at", at);
	record = with_text(record, "decision", decision);
	if (jv_is_valid(why->results))
		record = sl_json_set(record, "results", jv_copy(why->results));
	if (jv_is_valid(why->candidates))
		record = sl_json_set(record, "candidates", jv_copy(why->candidates));
	if (why->more)
		record = sl_json_set(record, "more", jv_number(why->more));
	record = with_text(record, "note", why->note);
	sl_why_release(why);
	return record;
}
