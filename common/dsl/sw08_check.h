/* Serverless Workflow 0.8: everything that `sluice validate` reports. Tables say which members an object has
 * (sw08_check_tables.c), a walker applies them (sw08_check_shape.c), rules hang on members and objects
 * (sw08_check_defs.c, sw08_check_states.c), and what needs the whole graph comes last (sw08_check_flow.c).
 * Owner: the caller of sl_sw08_check. One thread. jv arguments are borrowed everywhere here. */
#ifndef SL_DSL_SW08_CHECK_H
#define SL_DSL_SW08_CHECK_H

#include "common/base/map.h"
#include "common/dsl/doc.h"

struct sl_sw08_checked {
	jv resolved;            /* the definition with its resources inlined; the caller frees it */
	bool unsupported;       /* uses what is not supported yet */
	bool deferred;          /* a resource was not there: not everything could be checked (A120) */
	bool wanted;            /* a resource is on its way (SL_EAGAIN) */
};
/* Checks the document and reports every violation. Returns 0, SL_ESCHEMA, or SL_EUNSUPPORTED when that is all that is
 * wrong. *ret is written in any case. Mounts resources into doc. */
SL_MUST_CHECK int sl_sw08_check(struct sl_doc *doc, const struct sl_compile_options *opt, struct sl_sw08_checked *ret,
	struct sl_diags *diags);

/* Syntax of all expressions of a checked definition that will not be lowered (errors elsewhere, or unsupported parts):
 * so that one run of validate shows them too. */
void sl_sw08_check_expressions(const struct sl_doc *doc, const struct sl_sw08_checked *checked, struct sl_diags *diags);

/* --- shared by sw08_check*.c only --- */

enum sl_sw08_kind { SL_SW08_STATE, SL_SW08_FUNCTION, SL_SW08_EVENT, SL_SW08_ERROR, SL_SW08_RETRY, SL_SW08_AUTH, SL_SW08_KINDS };

struct sl_sw08_named {          /* one definition with a name */
	int index;
	bool consumed, produced;        /* events: how the workflow uses it */
};
struct sl_sw08_names {
	struct sl_map map;              /* name -> struct sl_sw08_named */
	bool deferred;                  /* the list is not here: references cannot be judged */
};
enum sl_sw08_edge_kind { SL_SW08_GOES, SL_SW08_COMPENSATES, SL_SW08_RUN_BEFORE };
struct sl_sw08_edge {
	enum sl_sw08_edge_kind kind;
	int from, to;                   /* states; from -1: the workflow */
	const char *ptr;                /* where the target's name stands */
	struct sl_sw08_edge *next;
};
struct sl_sw08_wait {                   /* a reference to a consumed event */
	int state, event;
	const char *ptr;
	struct sl_sw08_wait *next;
};

struct sl_sw08_context {
	struct sl_doc *doc;
	const struct sl_compile_options *opt;
	struct sl_diags *diags;
	struct sl_arena arena;
	jv def;                                 /* resolved */
	struct sl_sw08_names names[SL_SW08_KINDS];
	int state_count, start;                 /* start -1: unknown */
	bool *ends;                             /* per state: some way ends the workflow there */
	struct sl_sw08_edge *edges, **edges_end;
	struct sl_sw08_wait *waits, **waits_end;
	struct sl_map attributes;               /* lower-case names of attributes that somebody gives (A172) */
	bool unsupported, deferred, wanted;
	int unsupported_count;                  /* errors among diags that only say so */
};

/* --- tables --- */
enum {
	SL_T_TEXT = 1, SL_T_OBJECT = 2, SL_T_LIST = 4, SL_T_BOOL = 8, SL_T_NUMBER = 16,
	SL_T_TEXTS = 32         /* a list of strings */
};
enum sl_sw08_format { SL_F_NONE, SL_F_DURATION, SL_F_FIXED /* duration without expression */, SL_F_POSITIVE, SL_F_COUNT, SL_F_WORD };
struct sl_sw08_shape;
struct sl_sw08_prop {
	const char *name;
	unsigned types;                         /* SL_T_...; 0: forbidden here, `note` says why */
	bool required, may_be_empty;
	enum sl_sw08_format format;
	int min;                                /* SL_F_COUNT */
	const char *const *words;               /* SL_F_WORD */
	const struct sl_sw08_shape *shape;      /* of an object, or of each element of a list; NULL: anything */
	const char *later;                      /* not supported yet: its name */
	const char *note, *ruling;
	/* After type, format and shape were found right. */
	void (*rule)(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
};
struct sl_sw08_shape {
	const char *what;                       /* "state" */
	const char *section;                    /* of the specification */
	const struct sl_sw08_prop *props;       /* ends with name NULL */
	bool open;                              /* additional properties are allowed */
	void (*rule)(struct sl_sw08_context *c, jv obj, const char *ptr);
};
extern const struct sl_sw08_shape sl_sw08_workflow;
/* NULL: no such type of state. */
const struct sl_sw08_shape *sl_sw08_state_shape(const char *type);
extern const char *const sl_sw08_state_types[];

/* --- walker and messages (sw08_check_shape.c) --- */
void sl_sw08_object(struct sl_sw08_context *c, jv obj, const char *ptr, const struct sl_sw08_shape *shape);
/* Arena text: ptr and one more member, escaped. */
const char *sl_sw08_ptr(struct sl_sw08_context *c, const char *ptr, const char *name);
const char *sl_sw08_item(struct sl_sw08_context *c, const char *ptr, int index);
void sl_sw08_error(struct sl_sw08_context *c, const char *ptr, bool key, const char *rule, const char *fmt, ...) SL_PRINTF(5, 6);
void sl_sw08_warn(struct sl_sw08_context *c, const char *ptr, bool key, const char *rule, const char *fmt, ...) SL_PRINTF(5, 6);
/* An error that --lenient makes a warning. */
void sl_sw08_forgive(struct sl_sw08_context *c, const char *ptr, bool key, const char *rule, const char *fmt, ...) SL_PRINTF(5, 6);
/* "not supported yet: WHAT (line:col)": an error for deploy, a warning for validate. */
void sl_sw08_later(struct sl_sw08_context *c, const char *ptr, const char *what);
/* The nearest of the words, or NULL. */
const char *sl_sw08_nearest(const char *word, const char *const *words);
/* Exactly one of the members a and b; says so otherwise. `needed`: none is wrong too. */
void sl_sw08_either(struct sl_sw08_context *c, jv obj, const char *ptr, const char *what, const char *a, const char *b, bool needed,
	const char *rule);
bool sl_sw08_has(jv obj, const char *name);

/* --- names (sw08_check.c) --- */
/* The definition that a reference means; NULL after saying that there is none (or when that can't be known). */
struct sl_sw08_named *sl_sw08_ref(struct sl_sw08_context *c, enum sl_sw08_kind kind, const char *name, const char *ptr);
/* Definition number `index` of that kind; a copy. */
jv sl_sw08_def(struct sl_sw08_context *c, enum sl_sw08_kind kind, int index);
const char *sl_sw08_kind_text(enum sl_sw08_kind kind);
/* Index of the state that a pointer stands in, -1: none. */
int sl_sw08_state_of(const char *ptr);
void sl_sw08_edge_add(struct sl_sw08_context *c, enum sl_sw08_edge_kind kind, int to, const char *ptr);

/* --- rules that tables name --- */
void sl_sw08_rule_workflow(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_spec_version(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_version(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_id(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_lang(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_data_schema(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_constants(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_secrets(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_start(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_interval(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_schedule_text(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_schedule(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_cron(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_until(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_function(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_auth_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_auth(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_event(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_attribute(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_correlation(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_retry(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_run_before(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_state(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_switch(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_parallel(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_foreach(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_condition(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_on_error(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_states(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_transition(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_end(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_compensated_by(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_action(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_function_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_subflow(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_event_action(struct sl_sw08_context *c, jv obj, const char *ptr);
void sl_sw08_rule_produce(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_consume(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_consume_all(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_not_empty(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_context(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_retry_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_error_ref(struct sl_sw08_context *c, jv holder, jv value, const char *ptr);
void sl_sw08_rule_sleep(struct sl_sw08_context *c, jv obj, const char *ptr);

/* --- the graph (sw08_check_flow.c, sw08_check_events.c) and resources (sw08_check_resource.c) --- */
void sl_sw08_check_flow(struct sl_sw08_context *c);
void sl_sw08_check_events(struct sl_sw08_context *c);
void sl_sw08_resolve(struct sl_sw08_context *c);

#endif
