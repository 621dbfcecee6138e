/* What the files of the 0.8 lowering share; private to sw08_lower*.c. Everything is addressed by JSON Pointer into the
 * resolved document, because positions, node names and values all hang on it. One lowering at a time, caller's memory.
 */
#ifndef SL_DSL_SW08_LOWER_H
#define SL_DSL_SW08_LOWER_H

#include "common/dsl/lower.h"
#include "common/expr/expr.h"

struct sl_lower {
	const struct sl_doc *doc;
	const struct sl_compile_options *opt;
	struct sl_plan *plan;
	struct sl_arena *arena;	 /* the plan's */
	struct sl_arena scratch; /* what only the lowering needs */
	struct sl_diags *diags;
	jv root;		     /* borrowed */
	const char *const *vars;     /* iteration variables in scope, NULL-terminated */
	const char *const *all_vars; /* those of the whole definition, for expression functions */
	const char *state, *branch;  /* pointers of what is being lowered, for inherited timeouts; NULL: none */
	struct sl_retry *retries;
	int retry_count;
	bool auto_retries;
	bool failed, unsupported, again;
};

/* --- sw08_lower_parts.c: reading, expressions, spans, diagnostics --- */
#define sl_lower_ptr(lo, ...) sl_arena_printf(&(lo)->scratch, __VA_ARGS__) /* a pointer, in scratch */
#define sl_lower_keep(lo, text) sl_arena_str((lo)->arena, (text))	   /* for the plan */
/* A copy of the member, or invalid; `member` NULL: the value at ptr itself. */
jv sl_lower_at(const struct sl_lower *lo, const char *ptr, const char *member);
bool sl_lower_has(const struct sl_lower *lo, const char *ptr, const char *member);
/* Text in scratch; NULL unless a string. */
const char *sl_lower_text(struct sl_lower *lo, const char *ptr, const char *member);
/* The same, kept for the plan. */
const char *sl_lower_name(struct sl_lower *lo, const char *ptr, const char *member);
bool sl_lower_bool(const struct sl_lower *lo, const char *ptr, const char *member, bool otherwise);
/* Length of the list, 0 if it is none. */
int sl_lower_count(const struct sl_lower *lo, const char *ptr, const char *member);
/* A number, also as digits in a string (A125). */
int64_t sl_lower_int(struct sl_lower *lo, const char *ptr, const char *member, int64_t otherwise);
/* An error at ptr. */
void sl_lower_error(struct sl_lower *lo, const char *ptr, const char *fmt, ...) SL_PRINTF(3, 4);
void sl_lower_warn(struct sl_lower *lo, const char *ptr, const char *fmt, ...) SL_PRINTF(3, 4);
/* "not supported yet: WHAT (line:col)": an error at deploy, else a warning. */
void sl_lower_unsupported(struct sl_lower *lo, const char *ptr, const char *fmt, ...) SL_PRINTF(3, 4);
/* Number of the expression in the member, SL_NO_EXPR if there is none (or it is wrong). */
int sl_lower_expr(struct sl_lower *lo, const char *ptr, const char *member, enum sl_expr_mode mode);
/* Template of `value` (taken), which stands at ptr. */
int sl_lower_template(struct sl_lower *lo, const char *ptr, jv value, bool secrets);
/* "If string type, an expression which selects parts of the data; if object type, a custom object": produced events'
 * data. */
int sl_lower_data(struct sl_lower *lo, const char *ptr, const char *member);
/* A duration, constant or expression. */
struct sl_span sl_lower_span(struct sl_lower *lo, const char *ptr, const char *member);
/* A constant duration in milliseconds, 0 if absent. */
int64_t sl_lower_ms(struct sl_lower *lo, const char *ptr, const char *member);
/* The timeout of that name from branch, state or workflow, innermost first (0.8 "Workflow Timeouts"). */
struct sl_span sl_lower_timeout(struct sl_lower *lo, const char *name);
/* A new node at ptr, every expression of it SL_NO_EXPR. */
struct sl_node *sl_lower_node(struct sl_lower *lo, enum sl_node_kind kind, const char *ptr);

/* --- sw08_lower_defs.c: functions, events, retries --- */
void sl_lower_functions(struct sl_lower *lo);
void sl_lower_events(struct sl_lower *lo);
void sl_lower_retries(struct sl_lower *lo);
/* Index of a definition by the name in the member, -1 with an error if there is none. */
int sl_lower_find_function(struct sl_lower *lo, const char *ptr, const char *member);
int sl_lower_find_event(struct sl_lower *lo, const char *ptr, const char *member);
int sl_lower_find_state(struct sl_lower *lo, const char *ptr, const char *member);

/* --- sw08_lower_functions.c: service functions --- */
void sl_lower_service(struct sl_lower *lo, struct sl_function *function, struct sl_map *documents);
void sl_lower_documents_free(struct sl_map *documents);
void sl_lower_custom(struct sl_lower *lo, struct sl_function *function);
/* Warns of arguments (an object at ptr, borrowed) that the call does not send, and of required ones that are missing.
 */
void sl_lower_check_arguments(struct sl_lower *lo, const char *ptr, jv args, const struct sl_function *function);

/* --- sw08_lower_flow.c: where states lead, events on the way, rules --- */
/* The `transition` or `end` at ptr; NULL if it has neither. */
struct sl_goto *sl_lower_goto(struct sl_lower *lo, const char *ptr);
/* A goto that ends the workflow. */
struct sl_goto *sl_lower_end(struct sl_lower *lo, const char *ptr);
/* The produced event at ptr; `ref`: the member that names its definition. */
struct sl_emit sl_lower_emit(struct sl_lower *lo, const char *ptr, const char *ref);
void sl_lower_on_errors(struct sl_lower *lo, const char *ptr, struct sl_state *state);
void sl_lower_retry_rules(struct sl_lower *lo, const char *ptr, struct sl_action *action);

/* --- sw08_lower_actions.c --- */
/* ACTIONS node of the list in the member `actions` at ptr; NULL if there is no such list. */
struct sl_node *sl_lower_actions(struct sl_lower *lo, const char *ptr);
struct sl_node *sl_lower_action(struct sl_lower *lo, const char *ptr);
struct sl_filter sl_lower_event_filter(struct sl_lower *lo, const char *ptr);

/* --- sw08_lower_states.c --- */
/* The body of the state; NULL: nothing to do. */
struct sl_node *sl_lower_body(struct sl_lower *lo, const char *ptr, struct sl_state *state);

#endif
