/* A document as libfyaml's events tell it: a tree with positions, aliases still aliases. Everything lives in the arena
 * that the caller gives; `loc.file` is the caller's `file`. One thread. */
#ifndef SL_DSL_DOC_TREE_H
#define SL_DSL_DOC_TREE_H

#include "common/base/diag.h"

enum sl_doc_node_kind { SL_DOC_SCALAR, SL_DOC_LIST, SL_DOC_MAP };
struct sl_doc_node {
	enum sl_doc_node_kind kind;
	struct sl_loc loc;
	const char *text, *tag;         /* scalars: text; tag NULL: none */
	size_t len;
	bool plain;                     /* not quoted, no block: the core schema gives it its type */
	bool open;                      /* its end was not seen yet */
	struct sl_doc_node *first, *last, *next;        /* members; of a map: key, value, key, value */
	struct sl_doc_node *target;     /* an alias: the anchored node, complete */
};

/* Exactly one document. SL_EPARSE, SL_EDEPTH with a diagnostic. */
SL_MUST_CHECK int sl_doc_tree(const char *text, size_t len, const char *file, bool json, struct sl_arena *arena,
	struct sl_doc_node **ret, struct sl_diags *diags);

#endif
