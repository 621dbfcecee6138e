/* What must be true all the time: never two live instances of one workflow and key in the store. And what the lifecycle topic
 * tells meanwhile: what is deployed, and what has faulted and is to be tried again. */
#include "common/codec/codec.h"
#include "tests/sim/sim.h"
#include <stdio.h>
#include <string.h>

static struct sim_flow *flow_of(struct sim *sim, const char *name)
{
	for (int i = 0; name && i < sim->flow_count; i++)
		if (strcmp(sim->flows[i].name, name) == 0)
			return &sim->flows[i];
	return NULL;
}

/* --- the lifecycle topic --- */

static void told(struct sim *sim, jv ev)
{
	const char *type = sl_json_str(ev, "type"), *subject = sl_json_str(ev, "subject"), *command = sl_json_str(ev, "commandid");
	jv data = sl_json_get(ev, "data");
	const struct sim_flow *flow = flow_of(sim, sl_json_str(data, "workflow"));
	if (strcmp(type, "io.sluice.answer") == 0 && command && strncmp(command, "deploy-", 7) == 0) {
		struct sim_flow *deployed = flow_of(sim, command + 7);
		if (deployed && sl_json_bool(data, "ok", false))
			deployed->deployed = true;
	} else if (subject && flow && flow->frail && strstr(type, "workflow.faulted")) {
		sl_map_set(&sim->faulted, subject, sim);
	} else if (subject && flow && flow->frail && (strstr(type, "workflow.completed") || strstr(type, "workflow.cancelled"))) {
		sl_map_del(&sim->faulted, subject);
	}
	jv_free(data);
}

/* True: it tells something new. */
static bool read_lifecycle(struct sim *sim)
{
	struct sl_record rec;
	bool news = false;
	for (int32_t p = 0; p < 2; p++) {
		while (sl_memory_record(sim->world, sim->topics.lifecycle, p, sim->watched[p], &rec)) {
			jv ev;
			sim->watched[p]++;
			news = true;
			if (sl_event_decode(&rec, &sl_json_default, &ev, NULL))
				continue;
			told(sim, ev);
			jv_free(ev);
		}
	}
	return news;
}

/* --- the listing in the store --- */

/* "STATUS|WORKFLOW|NS~HOME.SERIAL": instances of one key have one home. */
static void check_member(struct sim *sim, struct sl_map *live, const char *member)
{
	char key[200];
	const char *workflow = strchr(member, '|'), *id = workflow ? strchr(workflow + 1, '|') : NULL;
	bool lives = strncmp(member, "running|", 8) == 0 || strncmp(member, "waiting|", 8) == 0;
	if (!lives || !id)
		return;
	snprintf(key, sizeof(key), "%.*s", (int)(id - workflow - 1), workflow + 1);
	const struct sim_flow *flow = flow_of(sim, key);
	if (!flow || !flow->keyed)
		return;
	snprintf(key, sizeof(key), "%.*s", (int)(strcspn(id, ".") + (size_t)(id - workflow)), workflow);
	const char *other = sl_map_set(live, key, (void *)member);
	if (other)
		sim_wrong(sim, "two instances live at the same time: %s and %s", other, member);
}

static void check_live(struct sim *sim)
{
	for (int32_t p = 0; p < sim->partitions; p++) {
		struct sl_hash *hash = sl_memory_peek(sim->world, p, "x");
		struct sl_map live;
		sl_map_init(&live);
		for (int i = 0; i < hash->count; i++)
			check_member(sim, &live, hash->fields[i].name);
		sl_map_release(&live, NULL);
		sl_memory_hash_free(hash);
	}
}

void sim_watch(struct sim *sim)
{
	if (read_lifecycle(sim) && !sim->wrong.len)
		check_live(sim);
}
