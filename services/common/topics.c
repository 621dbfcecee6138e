/* Names of topics and store keys. */
#include "services/common/topics.h"
#include <string.h>

void sl_topics_init(struct sl_topics *topics, struct sl_arena *arena, const char *prefix)
{
	topics->commands = sl_arena_printf(arena, "%scommands", prefix);
	topics->instances = sl_arena_printf(arena, "%sinstances", prefix);
	topics->actions = sl_arena_printf(arena, "%sactions", prefix);
	topics->timers = sl_arena_printf(arena, "%stimers", prefix);
	topics->definitions = sl_arena_printf(arena, "%sdefinitions", prefix);
	topics->lifecycle = sl_arena_printf(arena, "%slifecycle", prefix);
	topics->dead_letter = sl_arena_printf(arena, "%sdead-letter", prefix);
}

const char *sl_topics_publish(const struct sl_topics *topics, const char *ns)
{
	for (int i = 0; i < topics->event_count; i++)
		if (strcmp(topics->events[i].ns, ns) == 0)
			return topics->events[i].topic;
	return topics->event_count ? topics->events[0].topic : NULL;
}

char *sl_store_key(struct sl_arena *arena, const char *ns, const char *id)
{
	if (*id == '#')
		return sl_arena_printf(arena, "m:%s~%s", ns, id + 1);
	return sl_arena_printf(arena, "%s:%s~%s", *id == '@' ? "m" : "i", ns, id);
}
