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
	int from_event;         /* CNCF correlation-token: expression over the event that gives its value; SL_NO_EXPR: the attribute */
};
struct sl_attr_filter {         /* literal contextAttributeValue: a filter, not part of the key */
	const char *name;       /* lower case */
	const char *value;      /* canonical; compared by equality */
	int pattern;            /* Direktiv: template of an unanchored regular expression (A44); SL_NO_EXPR: `value` holds */
};
struct sl_event_def {
	const char *name;       /* the author's name for it */
	const char *type, *source;      /* NULL: any (A80: equality) */
	const char *id_or_type;         /* CNCF eventID: equals the event's id or type (A54); NULL: any */
	bool produced;
	bool data_only;         /* 0.8 dataOnly, default true */
	struct sl_key_part *keys;       /* sorted by name */
	int key_count;          /* 0: unkeyed */
	struct sl_attr_filter *filters;
	int filter_count;
	int set;                /* index into plan->sets, -1 when unkeyed */
	/* Set by sl_plan_mark_events (engine/plans.h): */
	bool waited;            /* some await other than the start's refers to it */
	bool may_be_unbound;    /* waited and keyed, and a wait can be armed before the key's values are known */
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
struct sl_raise;
struct sl_rule {                /* first match in list order */
	struct sl_match *matches;
	int match_count;
	bool except;            /* matches every error but those (nonRetryableErrors) */
	const struct sl_retry *retry;   /* NULL: none */
	enum sl_then then;      /* after the retries */
	struct sl_goto *next;   /* THEN_GOTO */
	/* other languages; zero in 0.8 */
	struct sl_match *excepts;       /* 0.9 exceptWhen beside when: not those */
	int except_count;
	const struct sl_raise *raise;   /* THEN_RAISE: this error instead of the caught one (0.9 throw) */
	bool compensate;                /* compensate first (A91) */
	const char *error_key;          /* Direktiv: state data member that receives {code, msg} before anything else (A34) */
};

/* --- control flow --- */
struct sl_emit {                /* one produced event */
	const char *ptr;
	int event;              /* index into plan->events, -1: given by `type`/`source` below */
	const char *type, *source;
	int data;               /* template; SL_NO_EXPR: whole state data (A83) */
	int context;            /* template yielding an object of attributes, or SL_NO_EXPR */
	struct sl_span delay;   /* not before that (Direktiv) */
	const char *content_type;       /* Direktiv datacontenttype: other than JSON, base64 text is decoded; NULL: JSON */
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
	struct sl_timeouts *continue_timeouts;  /* continueAs.workflowExecTimeout: instead of the successor's own; NULL: none */
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
	/* other languages */
	struct sl_filter *result;       /* CNCF ResultPath: the body's data go through this into the state's; NULL: it works on them */
	struct sl_raise *log;           /* Direktiv `log`: only its message is used; NULL: none */
};
struct sl_actions {
	struct sl_node **items;
	int count;
	bool parallel;                  /* A76: arguments from the data at the start, results merged as they complete */
	bool collect;                   /* CNCF PARALLEL: the results make an array in list order (A52) instead of merging */
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
	bool async;                     /* invoke: async: start and go on; its result and its errors are nobody's */
	struct sl_node *body;           /* a CALL's answer, an AWAIT's event (see there), a SUBFLOW's output is the result */
	struct sl_filter *output;       /* CNCF OutputPath of an action: `select` on the data after the result; NULL: none */
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
	/* CNCF: an alternative's own time, counted from arming; then it leads there */
	struct sl_span timeout;
	struct sl_goto *timeout_next;
};
/* In a STATE each event's data are merged through its alternative's filter. As the body of an ACTION (0.8 eventRef, 0.9
 * subscribe) the event's data are the action's result: the one alternative's filter replaces everything (TARGET_SET
 * without a path) and the action's own result filter merges that. */
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
	/* Direktiv, CNCF */
	struct sl_filter *result;       /* where the array goes; NULL: it becomes the data */
	bool tolerant;                  /* failing branches count only when `need` can no longer be reached (mode or, A40) */
	const char *failed_code;        /* code of the error then; NULL: the last branch's */
};
struct sl_each {
	int collection;                 /* must yield an array */
	const char *param;              /* variable and overlay (A15), never NULL except `whole` */
	bool whole;                     /* the element is the whole input (Direktiv) */
	bool sequential;
	int64_t batch;                  /* whole batches (A74); 0 = all */
	int output;                     /* path expression; SL_NO_EXPR: results are discarded (A73) */
	bool replace;                   /* collect by replacing instead of extending */
	struct sl_node *body;           /* ACTIONS; what an iteration contributes: A72 */
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
struct sl_raise {
	const char *code;
	int message;
	bool go_on;
	int error;                      /* 0.9 throw: template of {type, status, title, detail}; SL_NO_EXPR: code and message */
};
struct sl_schema { int schema; bool fail; };            /* a constant of the program; fail: an error, else a warning */
struct sl_validate { int subject; struct sl_schema schema; };   /* Direktiv validate */
enum sl_variable_scope { SL_VARIABLE_INSTANCE, SL_VARIABLE_WORKFLOW, SL_VARIABLE_NAMESPACE };
struct sl_variable_item {
	const char *key;
	enum sl_variable_scope scope;
	const char *as;                 /* getter: member of `.var`; NULL: key */
	int value;                      /* setter; SL_NO_EXPR: getter. null deletes (A41) */
	const char *mime;               /* setter: NULL: application/json */
};
struct sl_variable { struct sl_variable_item *items; int count; };

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
		struct sl_validate validate;
		struct sl_variable variable;
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
/* Arguments -> request. An argument whose name is a parameter's goes there. Of the rest:
 * - rest_query: each becomes a query parameter (style form, exploded);
 * - has_body: they make up the body as one object; a parameter of SL_IN_BODY names a member of it (required, default).
 *   If the only one left is called `body` and no SL_IN_BODY parameter has that name, its value alone is the body (for bodies that
 *   are no objects). With nothing left there is no body unless body_required (then {}).
 * - neither: they are not sent.
 * body_type says how the body is written: application/json (and ...+json), application/x-www-form-urlencoded (members as in
 * style form), text/plain (a string as it is, anything else as JSON). */
struct sl_http_call {
	const char *method;             /* upper case */
	const char *url;                /* server URL + path template with {name}; NULL: the document was not read (compiled without
	                                 * resources, or mocked) and the function cannot be called */
	struct sl_http_param *params;
	int param_count;
	bool has_body;
	const char *body_type;          /* media type of the request body */
	const char *accept;             /* Accept header */
	bool body_required;
	bool rest_query;
	bool reserved_args;             /* 0.9 http: arguments `body`, `headers`, `cookies` are these themselves */
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
	/* Direktiv: starts are no state (await NULL, count > 0) */
	struct sl_filter *filters;      /* one per event: how it enters the data; NULL: await's alternatives say */
	bool window_each;               /* window_ms is the life of each waiting event (A140), not of the group */
};
struct sl_timeouts {
	struct sl_span workflow;        /* workflowExecTimeout */
	bool interrupt;
	int run_before;                 /* state index, -1 none */
	struct sl_span kill;            /* Direktiv: hard end */
};
enum sl_schedule_kind { SL_SCHEDULE_CRON, SL_SCHEDULE_INTERVAL };
struct sl_schedule {
	enum sl_schedule_kind kind;
	const char *text;               /* cron (A24), or R/... (A101) */
	const char *timezone;           /* IANA name; NULL: UTC */
	int64_t valid_until_ms;         /* 0: for ever */
};
/* What a language calls the errors that Sluice raises itself. */
struct sl_error_name { const char *code, *type; int status; };
struct sl_error_names {
	struct sl_error_name timeout, expression, data, collection, schema;
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
	/* what 0.8's core does not need yet; zero or NULL: absent */
	struct sl_schedule *schedules;
	int schedule_count;
	struct sl_schema *input_schema, *output_schema;
	int *instance_key;              /* 0.9 `key`: expression over the input that gives the instance's id */
	bool singular;                  /* Direktiv: refuse to start while one runs (A146) */
	bool started_only;              /* Direktiv: no start by command or as a subflow (A142) */
	bool object_data;               /* Direktiv: data must stay an object (A39) */
	const char *input_key;          /* Direktiv: input that is no object goes there (A43) */
	const struct sl_error_names *error_names;       /* NULL: model/error.h */
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
