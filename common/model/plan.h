/* A plan: a definition compiled to the one form that the engine runs. Immutable, shared, refcounted; everything in it
 * lives in its arena. Built by common/dsl, read by engine, router and executor. Nothing after dsl knows the dialect.
 *
 * A plan is a tree of nodes. A node's `ptr` (the JSON Pointer of its definition text, with ":part" behind it where one
 * text makes several nodes) is its name in stored frames, unique in the plan, and the same in every release.
 * common/model/README.md maps every construct of the four languages to these nodes. */
#ifndef SL_MODEL_PLAN_H
#define SL_MODEL_PLAN_H

#include "common/base/map.h"
#include "common/model/value.h"

struct sl_program;      /* common/expr */

#define SL_NO_EXPR (-1)
/* Expressions, templates and paths are numbers in plan->program; SL_NO_EXPR: not given. */

/* A time span: constant, or an expression that yields ISO 8601 text (direktiv, cncf: numbers are seconds). */
struct sl_span {
	bool given;
	int64_t ms;
	int expr;               /* SL_NO_EXPR: ms holds */
};

/* --- correlation (design section 5) --- */
struct sl_key_part {            /* one attribute of a correlation key */
	const char *name;       /* lower case */
	int value;              /* expression of contextAttributeValue, or SL_NO_EXPR */
};
struct sl_attr_filter {         /* literal contextAttributeValue: a filter, not part of the key */
	const char *name;       /* lower case */
	const char *value;      /* canonical; compared by equality */
};
struct sl_event_def {
	const char *name;       /* the author's name for it */
	const char *type, *source;      /* NULL: any (A80: equality) */
	bool produced;
	bool data_only;         /* 0.8 dataOnly, default true */
	struct sl_key_part *keys;       /* sorted by name */
	int key_count;          /* 0: unkeyed */
	struct sl_attr_filter *filters;
	int filter_count;
	int set;                /* index into plan->sets, -1 when unkeyed */
};
struct sl_key_set {             /* event definitions whose keys have the same names */
	const char **names;     /* sorted, lower case */
	int count;
};

/* --- data flow --- */
enum sl_target_kind {
	SL_TARGET_MERGE,        /* merge at the top level (A04: non-object results get the key `name-output` or `response`) */
	SL_TARGET_PATH,         /* merge at the path expression (A63) */
	SL_TARGET_SET,          /* replace at the path expression; without one: replace everything (Direktiv, CNCF `$`) */
	SL_TARGET_FRESH,        /* a new document with the value at the path (A50) */
	SL_TARGET_KEY,          /* top-level member `key` becomes the value (Direktiv .return, event type) */
	SL_TARGET_DISCARD       /* useResults / useData false */
};
struct sl_filter {              /* from an event's data or an action's result into the state data */
	int select;             /* filters the incoming value; a null result selects nothing: unfiltered (A03) */
	enum sl_target_kind target;
	int path;
	const char *key;        /* TARGET_KEY; for TARGET_MERGE: the key of a non-object value */
};

/* --- errors --- */
enum sl_match_kind { SL_MATCH_CODE, SL_MATCH_TYPE, SL_MATCH_GLOB, SL_MATCH_REGEX, SL_MATCH_ANY, SL_MATCH_RESULT };
struct sl_match {
	enum sl_match_kind kind;
	const char *text;       /* CODE: equals the error's code or status (A08) */
	const char *status, *instance;  /* 0.9: further conditions, NULL = any */
};
struct sl_retry {
	const char *name;
	int attempts_max;       /* total attempts (A01); 0 = unlimited */
	int64_t delay_ms, increment_ms, delay_max_ms;   /* delay_max_ms 0 = none */
	double multiplier;      /* 0 = none */
	double jitter;          /* relative, 0..1 */
	int64_t jitter_ms;      /* absolute */
	const char *exceeded;   /* code of the error when attempts run out (Direktiv); NULL: the last error */
};
enum sl_then { SL_THEN_RAISE, SL_THEN_GOTO, SL_THEN_CONTINUE };
struct sl_goto;
struct sl_rule {                /* first match in list order */
	struct sl_match *matches;
	int match_count;
	bool except;            /* matches every error but those (nonRetryableErrors) */
	const struct sl_retry *retry;   /* NULL: none */
	enum sl_then then;      /* after the retries */
	struct sl_goto *next;   /* THEN_GOTO */
};

/* --- control flow --- */
struct sl_emit {                /* one produced event */
	const char *ptr;
	int event;              /* index into plan->events, -1: given by `type`/`source` below */
	const char *type, *source;
	int data;               /* template; SL_NO_EXPR: whole state data (A83) */
	int context;            /* template yielding an object of attributes, or SL_NO_EXPR */
	struct sl_span delay;   /* not before that (Direktiv) */
};
enum sl_goto_kind { SL_GOTO_STATE, SL_GOTO_END };
enum sl_end_kind { SL_END_COMPLETE, SL_END_TERMINATE, SL_END_FAIL, SL_END_CONTINUE };
struct sl_goto {                /* leaving a state: compensate, then transform, events, then go */
	const char *ptr;
	bool compensate;
	int transform;          /* SL_NO_EXPR: none */
	struct sl_emit *events;
	int event_count;
	enum sl_goto_kind kind;
	int target;             /* GOTO_STATE: index in the scope's states */
	enum sl_end_kind end;
	const char *error_code; /* END_FAIL */
	const char *continue_workflow, *continue_version;       /* END_CONTINUE */
	int continue_data;
};

enum sl_node_kind {
	SL_NODE_SCOPE,          /* named states with their own name space */
	SL_NODE_STATE,          /* filters, handlers, timeout around a body, then goto */
	SL_NODE_ACTIONS,        /* a list of ACTION nodes, in order or at once */
	SL_NODE_ACTION,         /* condition, sleeps, filters, rules, timeout around a body: CALL, AWAIT, EMIT, SUBFLOW */
	SL_NODE_CALL, SL_NODE_SUBFLOW,
	SL_NODE_AWAIT, SL_NODE_FORK, SL_NODE_EACH, SL_NODE_SLEEP, SL_NODE_ASSIGN, SL_NODE_EMIT,
	SL_NODE_CHOOSE, SL_NODE_RAISE, SL_NODE_VALIDATE, SL_NODE_VARIABLE
};

struct sl_node;

struct sl_scope {
	struct sl_node **states;        /* SL_NODE_STATE */
	int state_count, start;
};
struct sl_state {
	const char *name;
	int input, output;              /* stateDataFilter; null result: unfiltered (A03) */
	struct sl_node *body;           /* NULL: nothing to do */
	struct sl_rule *rules;          /* onErrors */
	int rule_count;
	struct sl_span timeout;         /* stateExecTimeout: error `timeout` in the state */
	struct sl_goto *next;           /* NULL: the body decides (CHOOSE, AWAIT alternatives) */
	int compensated_by;             /* index of the state, -1 none */
	bool for_compensation;
};
struct sl_actions {
	struct sl_node **items;
	int count;
	bool parallel;                  /* A76: arguments from the data at the start, results merged as they complete */
};
struct sl_action {
	const char *name;               /* NULL allowed */
	int condition;                  /* A66 */
	struct sl_span sleep_before, sleep_after;       /* A88 */
	int from;                       /* fromStateData: input of arguments and of expression functions */
	struct sl_filter result;
	struct sl_rule *rules;
	int rule_count;
	struct sl_span timeout;         /* actionExecTimeout (A10): each attempt, sleeps excluded */
	bool async;                     /* invoke: async: start and go on */
	struct sl_node *body;
};
struct sl_call {
	int function;                   /* index into plan->functions */
	int args;                       /* template; SL_NO_EXPR: no arguments ({} for HTTP) */
	bool uses_secrets;              /* R8: travels as expression plus data */
};
struct sl_subflow {
	const char *workflow, *version;
	int input;
	bool wait, cancel_with_parent;
};
enum sl_cond_kind { SL_COND_EVENT, SL_COND_AND, SL_COND_OR };
struct sl_cond {                        /* boolean tree over event references */
	enum sl_cond_kind kind;
	int event;                      /* COND_EVENT: index into plan->events */
	struct sl_cond *items;
	int count;
};
struct sl_alt {                         /* one alternative of an await */
	const char *ptr;
	struct sl_cond cond;
	struct sl_filter filter;        /* applied to each consumed event, in order of the cond's events */
	struct sl_node *body;           /* NULL: none */
	struct sl_goto *next;           /* switch: where this alternative leads; NULL: the state's own goto */
};
struct sl_await {
	struct sl_alt *alts;
	int alt_count;
	bool all;                       /* false: the first satisfied alternative; true: all, bodies then run in list order (A20) */
	struct sl_node *before;         /* runs after arming (callback's action); its result is merged before the event's data */
	struct sl_span timeout;         /* eventTimeout / consumeEventTimeout */
	bool timeout_raises;            /* true: error `timeout`; false: leave without any body (A19) */
	struct sl_goto *timeout_next;   /* switch default; NULL: the state's own goto */
};
struct sl_branch {
	const char *name, *ptr;
	struct sl_node *body;
	struct sl_span timeout;         /* branchExecTimeout */
};
struct sl_fork {
	struct sl_branch *branches;
	int count;
	int need;                       /* branches that must complete: count = all */
	bool collect;                   /* results: false = merge of changes in branch order (A18), true = array */
};
struct sl_each {
	int collection;                 /* must yield an array */
	const char *param;              /* variable and overlay (A15), never NULL except `whole` */
	bool whole;                     /* the element is the whole input (Direktiv) */
	bool sequential;
	int64_t batch;                  /* whole batches (A74); 0 = all */
	int output;                     /* path expression; SL_NO_EXPR: results are discarded (A73) */
	bool replace;                   /* collect by replacing instead of extending */
	struct sl_node *body;
};
struct sl_sleep { struct sl_span span; };
struct sl_assign { int value; struct sl_filter filter; };       /* inject: merge at the top */
struct sl_choice {
	const char *name, *ptr;
	int cond;
	bool truthy;                    /* Direktiv: anything but null, false, ... */
	struct sl_goto *next;
};
struct sl_choose {
	struct sl_choice *choices;
	int count;
	struct sl_goto *otherwise;      /* NULL: no match ends the workflow (A114 lenient) */
};
struct sl_raise { const char *code; int message; bool go_on; };

struct sl_node {
	enum sl_node_kind kind;
	const char *ptr;
	struct sl_loc loc;
	struct sl_node *parent;         /* NULL: root */
	union {
		struct sl_scope scope;
		struct sl_state state;
		struct sl_actions actions;
		struct sl_action action;
		struct sl_call call;
		struct sl_subflow subflow;
		struct sl_await await;
		struct sl_fork fork;
		struct sl_each each;
		struct sl_sleep sleep;
		struct sl_assign assign;
		struct sl_emit emit;
		struct sl_choose choose;
		struct sl_raise raise;
	} u;
};

/* --- functions --- */
enum sl_function_kind { SL_FUNCTION_EXPRESSION, SL_FUNCTION_HTTP };
enum sl_param_in { SL_IN_PATH, SL_IN_QUERY, SL_IN_HEADER, SL_IN_COOKIE, SL_IN_BODY };
struct sl_http_param {                  /* OpenAPI 3 Parameter Object */
	const char *name;
	enum sl_param_in in;
	bool required, explode, allow_reserved;
	const char *style;              /* OpenAPI 3.0.3 "Style Values"; never NULL */
	jv fallback;                    /* schema default, or invalid */
};
struct sl_http_call {
	const char *method;             /* upper case */
	const char *url;                /* server URL + path template with {name} */
	struct sl_http_param *params;
	int param_count;
	bool has_body;
	const char *body_type;          /* media type of the request body */
	const char *accept;             /* Accept header */
};
struct sl_function {
	const char *name, *ptr;
	enum sl_function_kind kind;
	int expr;                       /* FUNCTION_EXPRESSION */
	struct sl_http_call http;
};

/* --- the whole --- */
struct sl_start_events {                /* the start state waits for events: they create instances */
	const struct sl_node *await;    /* NULL: not started by events */
	bool all;                       /* all alternatives: join (window below) */
	int *events;                    /* indexes into plan->events */
	int count;
	int64_t window_ms;              /* time between the first and the last (eventTimeout); 0 = unlimited */
	/* Correlated: every start event has a key; the join happens at the mailbox of the names common to all.
	 * Names that the start events have in common, sorted; 0 = uncorrelated. */
	const char **common;
	int common_count;
};
struct sl_timeouts {
	struct sl_span workflow;        /* workflowExecTimeout */
	bool interrupt;
	int run_before;                 /* state index, -1 none */
};

struct sl_plan {
	int refs;
	struct sl_arena arena;
	const char *dialect;            /* "sw08": for people only */
	const char *id, *name, *version;
	char hash[65];                  /* content hash: hex SHA-256 of the resolved definition */
	struct sl_node *root;           /* SL_NODE_SCOPE */
	struct sl_start_events start;
	struct sl_event_def *events;
	int event_count;
	struct sl_key_set *sets;
	int set_count;
	struct sl_function *functions;
	int function_count;
	struct sl_timeouts timeouts;
	bool keep_active;
	jv constants;                   /* object */
	const char **secrets;
	int secret_count;
	struct sl_program *program;     /* owned */
	void (*program_free)(struct sl_program *program);       /* set beside it: model is below expr */
	struct sl_map nodes;            /* ptr -> struct sl_node */
	jv source;                      /* the resolved definition, for `show` and hashing */
};

/* An empty plan with one reference. The program is set by the front end. */
struct sl_plan *sl_plan_new(void);
struct sl_plan *sl_plan_ref(struct sl_plan *plan);
void sl_plan_unref(struct sl_plan *plan);       /* NULL allowed */
/* A node in the plan's arena, entered in plan->nodes; asserts that ptr is new. ptr is copied. */
struct sl_node *sl_plan_node(struct sl_plan *plan, enum sl_node_kind kind, const char *ptr, struct sl_loc loc);
/* NULL if the plan has no such node. */
const struct sl_node *sl_plan_find(const struct sl_plan *plan, const char *ptr);
/* After lowering: sets parents, fills key sets (event_def.set, plan->sets) and start.common. */
void sl_plan_finish(struct sl_plan *plan);

#endif
