/* Avro schemas of other releases, in the store. */
#include "services/common/schemas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/codec/codec.h"

struct sl_schemas {
	struct sl_store *store;
	void (*wake)(void *arg);
	void *arg;
	bool published, publishing;
	uint64_t session;    /* of the store that we wrote to: a restored one may not have it (R10) */
	struct ask *asks;    /* on their way */
	struct sl_map known; /* fingerprint in hex -> one of the marks below */
};

static char coming, there, missing;

struct ask {
	struct ask *next;
	struct sl_schemas *schemas;
	uint64_t fp;
	char key[32];
};

static void written(void *arg, int err, const char *text)
{
	struct sl_schemas *schemas = arg;
	(void)text;
	schemas->publishing = false;
	schemas->published = err == 0;
	if (!err) /* else the next turn tries again; not at once */
		schemas->wake(schemas->arg);
}

static void publish(struct sl_schemas *schemas)
{
	uint64_t fp;
	const char *text = sl_codec_schema(&fp);
	char key[32];
	snprintf(key, sizeof(key), "schema:%016" PRIx64, fp);
	struct sl_op op = {.kind = SL_OP_HSET, .key = key, .field = "text", .value = {text, strlen(text)}};
	schemas->publishing = true;
	schemas->session = schemas->store->ops->session(schemas->store);
	schemas->store->ops->write(schemas->store, &op, 1, written, schemas);
}

struct sl_schemas *sl_schemas_new(struct sl_store *store, void (*wake)(void *arg), void *arg)
{
	struct sl_schemas *schemas = calloc(1, sizeof(*schemas));
	if (!schemas)
		abort();
	schemas->store = store;
	schemas->wake = wake;
	schemas->arg = arg;
	sl_map_init(&schemas->known);
	publish(schemas);
	return schemas;
}

bool sl_schemas_published(struct sl_schemas *schemas)
{
	if (schemas->session != schemas->store->ops->session(schemas->store))
		schemas->published = false;
	if (!schemas->published && !schemas->publishing)
		publish(schemas);
	return schemas->published;
}

static void loaded(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct ask *ask = arg;
	struct sl_schemas *schemas = ask->schemas;
	const char *text = NULL;
	for (int i = 0; !err && count > 0 && i < hashes[0].count; i++)
		if (strcmp(hashes[0].fields[i].name, "text") == 0)
			text = hashes[0].fields[i].value;
	if (err)
		sl_map_del(&schemas->known, ask->key); /* asked again */
	else
		sl_map_set(&schemas->known, ask->key, text && !sl_codec_learn(ask->fp, text) ? &there : &missing);
	struct ask **at = &schemas->asks;
	while (*at != ask)
		at = &(*at)->next;
	*at = ask->next;
	free(ask);
	if (!err)
		schemas->wake(schemas->arg);
}

enum sl_schema_state sl_schemas_ask(struct sl_schemas *schemas, uint64_t fp)
{
	struct ask *ask = calloc(1, sizeof(*ask));
	if (!ask)
		abort();
	ask->schemas = schemas;
	ask->fp = fp;
	snprintf(ask->key, sizeof(ask->key), "schema:%016" PRIx64, fp);
	const void *mark = sl_map_get(&schemas->known, ask->key);
	if (mark) {
		free(ask);
		return mark == &there ? SL_SCHEMA_KNOWN : mark == &missing ? SL_SCHEMA_MISSING : SL_SCHEMA_COMING;
	}
	sl_map_set(&schemas->known, ask->key, &coming);
	ask->next = schemas->asks;
	schemas->asks = ask;
	const char *key = ask->key;
	schemas->store->ops->load(schemas->store, -1, &key, 1, loaded, ask);
	return SL_SCHEMA_COMING;
}

void sl_schemas_free(struct sl_schemas *schemas)
{
	if (!schemas)
		return;
	for (struct ask *ask = schemas->asks, *next; ask; ask = next) {
		next = ask->next;
		free(ask);
	}
	sl_map_release(&schemas->known, NULL);
	free(schemas);
}
