/* Avro schemas of other releases (design section 2): our own is written to the store before our first record, a foreign
 * one is read when its fingerprint is met. Owner: the pipeline; thread: the loop's. */
#ifndef SL_SERVICES_SCHEMAS_H
#define SL_SERVICES_SCHEMAS_H

#include "common/ports/store.h"

struct sl_schemas;
enum sl_schema_state {
	SL_SCHEMA_COMING, /* being read; wake is called */
	SL_SCHEMA_KNOWN,  /* decode again */
	SL_SCHEMA_MISSING /* the store does not have it, or it is no schema: nobody can read that record */
};

/* The store is borrowed. Begins to write our own. */
struct sl_schemas *sl_schemas_new(struct sl_store *store, void (*wake)(void *arg), void *arg);
/* Our own is in the store: records may be produced. Tries again by itself after a failure. */
bool sl_schemas_published(struct sl_schemas *schemas);
enum sl_schema_state sl_schemas_ask(struct sl_schemas *schemas, uint64_t fp);
/* The store must not call back any more. NULL is allowed. */
void sl_schemas_free(struct sl_schemas *schemas);

#endif
