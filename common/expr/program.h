/* Inside of a program: expressions as trees whose leaves are units of the vm (private to common/expr). */
#ifndef SL_EXPR_PROGRAM_H
#define SL_EXPR_PROGRAM_H

#include "common/base/map.h"
#include "common/expr/expr.h"
#include "common/expr/fast.h"
#include "common/expr/vm.h"

enum sl_node_kind { SL_NODE_CONST, SL_NODE_EXPR, SL_NODE_TEXT, SL_NODE_ARRAY, SL_NODE_OBJECT };

/* A template is a tree; a plain expression is one leaf. Arena memory of the program. */
struct sl_node {
	enum sl_node_kind kind;
	enum sl_expr_mode mode;
	jv value;		   /* CONST */
	struct sl_fast fast;	   /* EXPR */
	struct sl_unit unit;	   /* EXPR: for libjq */
	int unit_id;		   /* EXPR */
	struct sl_node **children; /* TEXT, ARRAY, OBJECT */
	const char **keys;	   /* OBJECT */
	int child_count;
};

struct sl_program_expr {
	enum sl_expr_mode mode;
	struct sl_node *node;
	const char *text;
	char *portable; /* made when asked for */
	bool secrets;
};

struct sl_program {
	struct sl_arena arena;
	struct sl_map functions; /* name -> struct sl_lex_fn */
	struct sl_vm *vm;
	struct sl_program_expr *exprs;
	int expr_count, expr_cap;
	bool trusted;
};

/* One evaluation; the budget covers all leaves of a template together. */
struct sl_eval {
	struct sl_program *prog;
	jv input, vars;
	bool begun; /* the budget */
	struct sl_buf why;
};

/* All of these: SL_EEXPR with a diagnostic; *ret_secrets is only ever set to true. */
SL_MUST_CHECK int sl_node_expr(struct sl_program *prog, const char *text, size_t len, enum sl_expr_mode mode,
	const struct sl_expr_site *site, struct sl_diags *diags, struct sl_node **ret, bool *ret_secrets);
SL_MUST_CHECK int sl_node_template(struct sl_program *prog, jv tmpl, const struct sl_expr_site *site,
	struct sl_diags *diags, struct sl_node **ret, bool *ret_secrets);
struct sl_node *sl_node_const(struct sl_program *prog, jv value);
SL_MUST_CHECK int sl_node_check_function(
	struct sl_program *prog, const struct sl_lex_fn *fn, const struct sl_expr_site *site, struct sl_diags *diags);
SL_MUST_CHECK int sl_node_check_used(
	struct sl_program *prog, const struct sl_lex_fn *fn, const struct sl_expr_site *site, struct sl_diags *diags);
/* The jv values of a tree; its memory is the arena's. */
void sl_node_release(struct sl_node *node);
SL_MUST_CHECK int sl_node_eval(struct sl_node *node, struct sl_eval *eval, jv *ret);
SL_MUST_CHECK int sl_node_paths(struct sl_node *node, struct sl_eval *eval, jv *ret);
/* One jq expression that gives what the tree gives. */
void sl_node_portable(const struct sl_node *node, bool outermost, struct sl_buf *out);

/* Checks the input and starts the budget, once for an evaluation. */
SL_MUST_CHECK int sl_expr_before(struct sl_eval *eval);
/* Appends a text in one line, cut to what a message can hold. */
void sl_expr_shorten(struct sl_buf *out, const char *text, size_t len);

#endif
