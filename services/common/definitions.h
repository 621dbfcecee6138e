/* What every coordinator and executor must know: reads sluice.definitions, the definitions that have been deployed into the plan
 * registry (design sections 2 and 5), and makes the records that are written there.
 *
 * Owner: the service; thread: the loop's. Compilation happens here, when a record is read, never on a hot path.
 *
 * Records are CloudEvents in binary mode with a JSON value. Nothing is ever deleted.
 *   key NS/ID/VERSION/HASH, type io.sluice.definition:
 *       {"ns", "id", "version", "hash", "dialect", "file", "lenient", "definition": text, "resources": {uri: text}}
 *   key NS/ID/VERSION, type io.sluice.definition.pointer:
 *       {"ns", "id", "version", "hash", "active"}
 *   key @P~NS~TYPE (a local mailbox), type io.sluice.wait: somebody has waited there beyond what the plans tell
 *       {"ns", "type": "*" for any, "partition"} */
#ifndef SL_SERVICES_DEFINITIONS_H
#define SL_SERVICES_DEFINITIONS_H

#include "common/dsl/dsl.h"
#include "common/engine/engine.h"
#include "common/engine/plans.h"
#include "common/ports/broker.h"

struct sl_definitions_options {
	struct sl_broker *broker; /* borrowed, as all of these */
	struct sl_plans *plans;	  /* filled */
	const char *topic;
	void (*wake)(void *arg); /* turn() should be called soon */
	void (*fatal)(void *arg, int err, const char *text);
	void *arg;
};
struct sl_definitions;

/* SL_ENOTFOUND: the topic is missing; SL_EUNREACHABLE. */
SL_MUST_CHECK int sl_definitions_new(
	const struct sl_definitions_options *opt, struct sl_definitions **ret, struct sl_diags *diags);
/* Reads and compiles what is there, a few records at a time; true: more is ready now. */
bool sl_definitions_turn(struct sl_definitions *defs);
/* All that was in the topic when it was first reached has been read. */
bool sl_definitions_complete(const struct sl_definitions *defs);
/* Offset of the last record read, -1: none. Rises. */
int64_t sl_definitions_offset(const struct sl_definitions *defs);
/* Why the definition of that hash could not be compiled here; NULL: no such trouble. Borrowed. */
const char *sl_definitions_broken(const struct sl_definitions *defs, const char *ns, const char *hash);
/* The value of the definition's record, for the helper that evaluates what uses secrets; kept only where the plan names
 * secrets, else NULL. Borrowed. */
const char *sl_definitions_stored(const struct sl_definitions *defs, const char *ns, const char *hash);
/* "NS~TYPE" -> struct sl_waits (sl_engine.waits). Borrowed, filled by turn(). */
const struct sl_map *sl_definitions_waits(const struct sl_definitions *defs);
bool sl_definitions_wait_known(const struct sl_definitions *defs, const char *name, int32_t partition);
void sl_definitions_free(struct sl_definitions *defs); /* NULL is allowed */

/* --- records --- */
struct sl_definition {
	const char *ns, *id, *version, *hash;
	const char *dialect; /* sl_dialect_text; NULL or "": told from the text (A70) */
	const char *file;    /* for messages; may be NULL */
	bool lenient;
	const char *text; /* as the author wrote it */
	size_t len;
	jv resources; /* uri -> text, all that sl_compile wanted; borrowed; invalid: none */
};
/* Fills key, value and headers; topic and partition 0 are the caller's. Memory in arena. SL_EENCODING: text is not
 * UTF-8. */
SL_MUST_CHECK int sl_definition_record(const struct sl_definition *def, struct sl_arena *arena, struct sl_record *ret);
void sl_pointer_record(const char *ns, const char *id, const char *version, const char *hash, bool active,
	struct sl_arena *arena, struct sl_record *ret);
/* name: "NS~TYPE". */
void sl_wait_record(const char *name, int32_t partition, struct sl_arena *arena, struct sl_record *ret);
/* Compiles the value of a definition record (as deployed: what is not supported is an error). The plan has the record's
 * hash. */
SL_MUST_CHECK int sl_definition_compile(
	const char *value, size_t len, char **ret_ns, struct sl_plan **ret_plan, struct sl_diags *diags);

#endif
