/* Expressions: the only user of libjq (design section 6). A program holds every expression of one plan; it is
 * compiled on first use (tens of milliseconds), never on a hot path afterwards. One thread evaluates.
 *
 * Variables come with each evaluation as one object: {"CONST":..., "WORKFLOW":..., "SECRETS":..., "now": seconds,
 * "item":...}. An expression may use only the variables that it was added with; `now` is the step's time.
 *
 * Errors at run time: SL_EEXPR (message of jq; several results where one is needed, A67), SL_EBUDGET (time or size),
 * SL_EDEPTH. The message goes to `err`, a buffer of the caller, and never contains data beyond what jq itself quotes.
 */
#ifndef SL_EXPR_EXPR_H
#define SL_EXPR_EXPR_H

#include "common/model/value.h"

struct sl_program;

struct sl_expr_limits {
	int64_t soft_ms;  /* an evaluation is halted after that; default 100 */
	size_t bytes_max; /* of a result's JSON text (estimated cheaply); default 4 MiB */
	int depth_max;	  /* default 200 */
};
/* Process-wide, set before the first program; NULL = defaults. */
void sl_expr_init(const struct sl_expr_limits *limits);
/* Called right before and after each entry into libjq with the budget, for R7's watchdog; NULL: none. */
void sl_expr_watch(void (*enter)(void *arg), void (*leave)(void *arg), void *arg);

struct sl_program *sl_program_new(void);
void sl_program_free(struct sl_program *prog); /* NULL allowed */

/* How an expression's results become one value. */
enum sl_expr_mode {
	SL_EXPR_ONE,	 /* none = null, several = error (A67) */
	SL_EXPR_COLLECT, /* several outputs become an array; one stays as it is (A48) */
	SL_EXPR_PATH	 /* must be a path expression (A63); evaluated by get/set_path below */
};
struct sl_expr_site { /* where it stands, for messages */
	struct sl_loc loc;
	const char *pointer;
	const char *const
		*vars; /* iteration variables in scope ("item"), NULL-terminated; CONST, WORKFLOW, SECRETS always are */
	bool secrets_allowed; /* R8/A174: elsewhere $SECRETS is an error at deploy */
};

/* Expression functions for `fn:NAME` (A68: textual substitution in parentheses). Add them before the expressions that
 * use them; cycles are an error. SL_EEXPR with a diagnostic. */
SL_MUST_CHECK int sl_program_add_function(struct sl_program *prog, const char *name, const char *text,
	const struct sl_expr_site *site, struct sl_diags *diags);

/* After all functions are there: one of them once more, now an error for `fn:` names that nobody defined (when it was
 * added they might still have come). Only needed for functions that no expression uses. SL_ENOTFOUND without
 * diagnostic. */
SL_MUST_CHECK int sl_program_check_function(
	struct sl_program *prog, const char *name, const struct sl_expr_site *site, struct sl_diags *diags);
/* Definitions that were checked when they were deployed: leave out libjq's own check, 13 ms for each expression that is
 * not simple. Everything else is checked as always, and what libjq then refuses fails when it is evaluated. */
void sl_program_set_trusted(struct sl_program *prog, bool trusted);

/* Add and check one. They return its number (>= 0), or an error with a diagnostic: refused words (module
 * directives, input, env, ...: design section 6), unknown `fn:`, what libjq itself says, unknown variables.
 * `text` may have `${ }` around it (A07, A65) or not. */
SL_MUST_CHECK int sl_program_add(struct sl_program *prog, const char *text, enum sl_expr_mode mode,
	const struct sl_expr_site *site, struct sl_diags *diags);
/* A template: a JSON value whose strings may be `${ }` or hold it inside longer text (A64). Becomes one expression, or
 * a constant. Borrows `tmpl`. */
SL_MUST_CHECK int sl_program_add_template(
	struct sl_program *prog, jv tmpl, const struct sl_expr_site *site, struct sl_diags *diags);
/* A constant. Takes `value`. */
int sl_program_add_const(struct sl_program *prog, jv value);

/* True if expression `id` mentions $SECRETS. */
bool sl_program_uses_secrets(const struct sl_program *prog, int id);
/* The source text for messages. */
const char *sl_program_text(const struct sl_program *prog, int id);
/* One jq expression that gives the same, for sl_expr_once in another process (R8): `fn:` substituted, templates written
 * out. Valid as long as the program. */
const char *sl_program_portable(struct sl_program *prog, int id);

/* Evaluate: takes `input`, borrows `vars`. On success *ret is a new reference. */
SL_MUST_CHECK int sl_program_eval(struct sl_program *prog, int id, jv input, jv vars, jv *ret, struct sl_buf *err);
/* Boolean condition (A66): only true is true, null is false, anything else is an error. */
SL_MUST_CHECK int sl_program_test(struct sl_program *prog, int id, jv input, jv vars, bool *ret, struct sl_buf *err);
/* The paths that a PATH expression denotes in `input` (takes it): an array of jq path arrays, at least one. */
SL_MUST_CHECK int sl_program_paths(struct sl_program *prog, int id, jv input, jv vars, jv *ret, struct sl_buf *err);

/* True if `text` as a whole is `${ ... }` (trimmed, A07). */
bool sl_expr_is_wrapped(const char *text);
/* True if `${` stands anywhere in it unescaped. */
bool sl_expr_is_template(const char *text);

/* One expression outside any plan (helper process for secrets, CLI): compiles, evaluates, frees. Takes input, borrows
 * vars. */
SL_MUST_CHECK int sl_expr_once(const char *text, jv input, jv vars, jv *ret, struct sl_buf *err);

#endif
