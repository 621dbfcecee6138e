/* Documents, the part that only common/dsl sees: a resource's document mounted into the definition that refers to
 * it, so that one JSON Pointer leads to one place, whichever file it stands in. Owner: who parsed. One thread. */
#ifndef SL_DSL_DOC_H
#define SL_DSL_DOC_H

#include "common/dsl/dsl.h"

#define SL_DOC_BYTES_MAX (4u << 20)     /* of a definition or a resource */
#define SL_DOC_DEPTH_MAX 200            /* R9: libjq dumps deeper data wrongly */
#define SL_DOC_ALIASED_MAX 100000       /* nodes that aliases may add; a billion laughs ends here */

/* What stands below `pointer` in `doc` comes from `inner` of `sub` ("" for its root). The value at `pointer` itself
 * keeps its place in doc: there stands the reference. Takes sub. */
void sl_doc_mount(struct sl_doc *doc, const char *pointer, struct sl_doc *sub, const char *inner);

/* A70 without the caller's word. Borrows value. */
enum sl_dialect sl_dialect_detect(jv value);

#endif
