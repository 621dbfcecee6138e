/* Definitions: bytes -> document with positions -> all diagnostics at once -> plan. One front end per dialect. */
#ifndef SL_DSL_DSL_H
#define SL_DSL_DSL_H

#include "common/model/plan.h"

enum sl_dialect { SL_DIALECT_AUTO, SL_DIALECT_SW08, SL_DIALECT_SW09, SL_DIALECT_DIREKTIV, SL_DIALECT_CNCF01,
	SL_DIALECT_SW10 };
const char *sl_dialect_text(enum sl_dialect dialect);                   /* "sw08" */
int sl_dialect_of(const char *text, enum sl_dialect *ret);              /* SL_EINVAL */

/* Gives the content of a resource that a definition refers to. Synchronous; the deployer collects what is missing first
 * (SL_EAGAIN: remembered as wanted), then calls again. `uri` as written. *ret is malloc'ed. SL_ENOTFOUND, SL_EREFUSED. */
struct sl_resources {
	int (*get)(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags);
	void *arg;
};

struct sl_compile_options {
	enum sl_dialect dialect;        /* AUTO: A70 */
	bool lenient;                   /* forgive what the rulings call lenient, with a warning */
	bool deploy;                    /* what is not supported yet is an error (SL_EUNSUPPORTED), else a warning */
	const struct sl_resources *resources;   /* NULL: reference checks that need one are deferred (A120) */
	const char *file;               /* name for messages */
	bool trusted;                   /* was checked when it was deployed: libjq's own check of each expression (13 ms) is left out */
	bool mocked;                    /* functions are answered by mocks: a service document that cannot be had or used is a warning */
};

/* Compiles. Every violation goes to diags. Returns 0 and a plan (may come with warnings); SL_EPARSE, SL_ESCHEMA, SL_EUNSUPPORTED, SL_EAGAIN
 * (resources wanted) without one. Without `deploy`, an unsupported construct is a warning and no plan is made (*ret_plan NULL, 0). */
SL_MUST_CHECK int sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan, struct sl_diags *diags);

/* --- documents with positions (libfyaml): YAML 1.2 core schema or JSON --- */
struct sl_doc;
/* SL_EPARSE with position; aliases are expanded within limits (a billion laughs is SL_ETOOBIG), duplicate keys are errors. */
SL_MUST_CHECK int sl_doc_parse(const char *text, size_t len, const char *file, struct sl_doc **ret, struct sl_diags *diags);
void sl_doc_free(struct sl_doc *doc);
/* The whole as jv; a copy. */
jv sl_doc_value(const struct sl_doc *doc);
/* Position of the value at a JSON Pointer (of its key with `key`); unknown pointers give the nearest parent's. */
struct sl_loc sl_doc_loc(const struct sl_doc *doc, const char *pointer, bool key);

#endif
