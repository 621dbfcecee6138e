/* What each object of 0.8 may hold: the JSON schema of 0.8, amended where the text says otherwise (A61). A member with
 * `later` is in the language but not in this release; one without types is named only to say why it cannot stand here.
 */
#include "common/dsl/sw08_check.h"
#include <string.h>

/* clang-format off */
#define P(n, t, ...) {.name = (n), .types = (t), ##__VA_ARGS__}
#define NO(n, why, by) {.name = (n), .note = (why), .ruling = (by)}
#define PROPS(...) (const struct sl_sw08_prop[]){__VA_ARGS__, {.name = NULL}}
/* clang-format on */
#define REQ .required = true
#define RULE(r) .rule = sl_sw08_rule_##r
#define SHAPE(s) .shape = &(s)
#define WORDS(w) .format = SL_F_WORD, .words = (w)
#define DURATION .format = SL_F_DURATION
#define LATER(what) .later = (what)

static const char *const modes[] = {"sequential", "parallel", NULL};
static const char *const invokes[] = {"sync", "async", NULL};

/* --- data filters --- */
static const struct sl_sw08_shape state_filter = {
	"stateDataFilter", "0.8 State Data Filters", PROPS(P("input", SL_T_TEXT), P("output", SL_T_TEXT)), false, NULL};
static const struct sl_sw08_shape event_filter = {"eventDataFilter", "0.8 Event Data Filters",
	PROPS(P("useData", SL_T_BOOL), P("data", SL_T_TEXT), P("toStateData", SL_T_TEXT)), false, NULL};
static const struct sl_sw08_shape action_filter = {"actionDataFilter", "0.8 Action Data Filters",
	PROPS(P("fromStateData", SL_T_TEXT), P("useResults", SL_T_BOOL), P("results", SL_T_TEXT),
		P("toStateData", SL_T_TEXT)),
	false, NULL};

/* --- timeouts: the schema's stateExecTimeout object and the text's string (A61) --- */
static const struct sl_sw08_shape state_exec = {"stateExecTimeout", "0.8 States Timeout Definition",
	PROPS(P("single", SL_T_TEXT, .format = SL_F_POSITIVE, LATER("stateExecTimeout.single")),
		P("total", SL_T_TEXT, REQ, .format = SL_F_POSITIVE)),
	false, NULL};
static const struct sl_sw08_shape workflow_exec = {"workflowExecTimeout", "0.8 Workflow Timeout Definition",
	PROPS(P("duration", SL_T_TEXT, REQ, DURATION), P("interrupt", SL_T_BOOL),
		P("runBefore", SL_T_TEXT, LATER("runBefore"), RULE(run_before))),
	false, NULL};
#define T_STATE P("stateExecTimeout", SL_T_TEXT | SL_T_OBJECT, .format = SL_F_POSITIVE, SHAPE(state_exec))
#define T_ACTION P("actionExecTimeout", SL_T_TEXT, DURATION)
#define T_BRANCH P("branchExecTimeout", SL_T_TEXT, DURATION)
#define T_EVENT P("eventTimeout", SL_T_TEXT, DURATION)
#define T_NO_WORKFLOW NO("workflowExecTimeout", "a state cannot set workflowExecTimeout", "0.8 Workflow Timeouts")
static const struct sl_sw08_shape workflow_timeouts = {"timeouts", "0.8 Workflow Timeouts",
	PROPS(P("workflowExecTimeout", SL_T_TEXT | SL_T_OBJECT, DURATION, SHAPE(workflow_exec)), T_STATE, T_ACTION,
		T_BRANCH, T_EVENT),
	false, NULL};
static const struct sl_sw08_shape event_timeouts = {"timeouts of an event or callback state", "0.8 Workflow Timeouts",
	PROPS(T_STATE, T_ACTION, T_EVENT, T_NO_WORKFLOW), false, NULL};
static const struct sl_sw08_shape action_timeouts = {"timeouts of an operation or foreach state",
	"0.8 Workflow Timeouts", PROPS(T_STATE, T_ACTION, T_NO_WORKFLOW), false, NULL};
static const struct sl_sw08_shape parallel_timeouts = {
	"timeouts of a parallel state", "0.8 Workflow Timeouts", PROPS(T_STATE, T_BRANCH, T_NO_WORKFLOW), false, NULL};
static const struct sl_sw08_shape branch_timeouts = {
	"timeouts of a branch", "0.8 Parallel State Branch", PROPS(T_ACTION, T_BRANCH, T_NO_WORKFLOW), false, NULL};
static const struct sl_sw08_shape switch_timeouts = {
	"timeouts of a switch state", "0.8 Workflow Timeouts", PROPS(T_STATE, T_EVENT, T_NO_WORKFLOW), false, NULL};

/* --- transitions and ends --- */
static const struct sl_sw08_shape produce = {"produced event", "0.8 ProducedEvent Definition",
	PROPS(P("eventRef", SL_T_TEXT, REQ, RULE(produce)), P("data", SL_T_TEXT | SL_T_OBJECT),
		P("contextAttributes", SL_T_OBJECT | SL_T_LIST, RULE(context))),
	false, NULL};
static const struct sl_sw08_shape transition = {"transition", "0.8 Transition Definition",
	PROPS(P("nextState", SL_T_TEXT, REQ), P("produceEvents", SL_T_LIST, SHAPE(produce)),
		P("compensate", SL_T_BOOL, LATER("compensate"))),
	false, NULL};
/* its runBefore names a state of the workflow that continues */
static const struct sl_sw08_shape next_exec = {"workflowExecTimeout", "0.8 Continuing as a new Execution",
	PROPS(P("duration", SL_T_TEXT, REQ, DURATION), P("interrupt", SL_T_BOOL), P("runBefore", SL_T_TEXT)), false,
	NULL};
static const struct sl_sw08_shape continue_as = {"continueAs", "0.8 Continuing as a new Execution",
	PROPS(P("workflowId", SL_T_TEXT, REQ), P("version", SL_T_TEXT), P("data", SL_T_TEXT | SL_T_OBJECT),
		P("workflowExecTimeout", SL_T_TEXT | SL_T_OBJECT, DURATION, SHAPE(next_exec))),
	false, NULL};
static const struct sl_sw08_shape end = {"end", "0.8 End Definition",
	PROPS(P("terminate", SL_T_BOOL), P("produceEvents", SL_T_LIST, SHAPE(produce)),
		P("compensate", SL_T_BOOL, LATER("compensate")),
		P("continueAs", SL_T_TEXT | SL_T_OBJECT, SHAPE(continue_as), LATER("continueAs"))),
	false, NULL};
#define LEAVE                                                                                                          \
	P("transition", SL_T_TEXT | SL_T_OBJECT, SHAPE(transition), RULE(transition)),                                 \
		P("end", SL_T_BOOL | SL_T_OBJECT, SHAPE(end), RULE(end))

/* --- actions --- */
static const struct sl_sw08_shape function_ref = {"functionRef", "0.8 FunctionRef Definition",
	PROPS(P("refName", SL_T_TEXT, REQ), P("arguments", SL_T_OBJECT), P("selectionSet", SL_T_TEXT),
		P("invoke", SL_T_TEXT, WORDS(invokes))),
	false, NULL};
static const struct sl_sw08_shape event_action = {"eventRef", "0.8 EventRef Definition",
	PROPS(P("produceEventRef", SL_T_TEXT, REQ, RULE(produce)), P("consumeEventRef", SL_T_TEXT, RULE(consume)),
		P("consumeEventTimeout", SL_T_TEXT, DURATION), P("data", SL_T_TEXT | SL_T_OBJECT),
		P("contextAttributes", SL_T_OBJECT | SL_T_LIST, RULE(context)), P("invoke", SL_T_TEXT, WORDS(invokes)),
		NO("triggerEventRef", "the text calls triggerEventRef \"produceEventRef\"", "A61"),
		NO("resultEventRef", "the text calls resultEventRef \"consumeEventRef\"", "A61"),
		NO("resultEventTimeout", "the text calls resultEventTimeout \"consumeEventTimeout\"", "A61")),
	false, sl_sw08_rule_event_action};
static const char *const on_completes[] = {"terminate", "continue", NULL};
static const struct sl_sw08_shape subflow = {"subFlowRef", "0.8 SubFlowRef Definition",
	PROPS(P("workflowId", SL_T_TEXT, REQ), P("version", SL_T_TEXT), P("invoke", SL_T_TEXT, WORDS(invokes)),
		P("onParentComplete", SL_T_TEXT, WORDS(on_completes))),
	false, NULL};
static const struct sl_sw08_shape action_sleep = {"sleep", "0.8 Action Definition",
	PROPS(P("before", SL_T_TEXT, DURATION), P("after", SL_T_TEXT, DURATION)), false, sl_sw08_rule_sleep};
static const struct sl_sw08_shape action = {"action", "0.8 Action Definition",
	PROPS(P("id", SL_T_TEXT), P("name", SL_T_TEXT),
		P("functionRef", SL_T_TEXT | SL_T_OBJECT, SHAPE(function_ref), RULE(function_ref)),
		P("eventRef", SL_T_OBJECT, SHAPE(event_action)),
		P("subFlowRef", SL_T_TEXT | SL_T_OBJECT, SHAPE(subflow), LATER("subFlowRef"), RULE(subflow)),
		P("sleep", SL_T_OBJECT, SHAPE(action_sleep)), P("retryRef", SL_T_TEXT, RULE(retry_ref)),
		P("retryableErrors", SL_T_TEXTS, RULE(error_ref)), P("nonRetryableErrors", SL_T_TEXTS, RULE(error_ref)),
		P("actionDataFilter", SL_T_OBJECT, SHAPE(action_filter)), P("condition", SL_T_TEXT)),
	false, sl_sw08_rule_action};

/* --- states --- */
static const struct sl_sw08_shape on_error = {"onErrors entry", "0.8 Error Definition",
	PROPS(P("errorRef", SL_T_TEXT, RULE(error_ref)), P("errorRefs", SL_T_TEXTS, RULE(error_ref)), LEAVE), false,
	sl_sw08_rule_on_error};
#define STATE_ANY                                                                                                      \
	P("id", SL_T_TEXT), P("name", SL_T_TEXT, REQ), P("type", SL_T_TEXT, REQ), P("metadata", SL_T_OBJECT),          \
		P("stateDataFilter", SL_T_OBJECT, SHAPE(state_filter)), P("onErrors", SL_T_LIST, SHAPE(on_error)),     \
		P("compensatedBy", SL_T_TEXT, LATER("compensatedBy"), RULE(compensated_by))
#define COMPENSATION P("usedForCompensation", SL_T_BOOL, LATER("usedForCompensation"))
#define NO_LEAVE(n) NO(n, "a switch state has no \"" n "\" of its own: its conditions lead on", "0.8 Switch State")
#define NO_TIMEOUTS NO("timeouts", "sleep and inject states have no timeouts", "A116")

static const struct sl_sw08_shape on_event = {"onEvents entry", "0.8 OnEvents Definition",
	PROPS(P("eventRefs", SL_T_TEXTS, REQ, RULE(consume_all)), P("actionMode", SL_T_TEXT, WORDS(modes)),
		P("actions", SL_T_LIST, SHAPE(action)), P("eventDataFilter", SL_T_OBJECT, SHAPE(event_filter))),
	false, NULL};
static const struct sl_sw08_shape event_state = {"event state", "0.8 Event State",
	PROPS(STATE_ANY, LEAVE, P("exclusive", SL_T_BOOL),
		P("onEvents", SL_T_LIST, REQ, SHAPE(on_event), RULE(not_empty)),
		P("timeouts", SL_T_OBJECT, SHAPE(event_timeouts)),
		NO("usedForCompensation", "an event state cannot compensate", "0.8 Defining Compensation")),
	false, sl_sw08_rule_state};
static const struct sl_sw08_shape operation_state = {"operation state", "0.8 Operation State",
	PROPS(STATE_ANY, COMPENSATION, LEAVE, P("actionMode", SL_T_TEXT, WORDS(modes)),
		P("actions", SL_T_LIST, REQ, SHAPE(action)), P("timeouts", SL_T_OBJECT, SHAPE(action_timeouts))),
	false, sl_sw08_rule_state};
static const struct sl_sw08_shape data_condition = {"data condition", "0.8 Switch State Data Conditions",
	PROPS(P("name", SL_T_TEXT), P("condition", SL_T_TEXT, REQ), LEAVE, P("metadata", SL_T_OBJECT)), false,
	sl_sw08_rule_condition};
static const struct sl_sw08_shape event_condition = {"event condition", "0.8 Switch State Event Conditions",
	PROPS(P("name", SL_T_TEXT), P("eventRef", SL_T_TEXT, REQ, RULE(consume)), LEAVE,
		P("eventDataFilter", SL_T_OBJECT, SHAPE(event_filter)), P("metadata", SL_T_OBJECT)),
	false, sl_sw08_rule_condition};
static const struct sl_sw08_shape default_condition = {
	"defaultCondition", "0.8 Switch State", PROPS(LEAVE), false, sl_sw08_rule_condition};
static const struct sl_sw08_shape switch_state = {"switch state", "0.8 Switch State",
	PROPS(STATE_ANY, COMPENSATION, P("dataConditions", SL_T_LIST, SHAPE(data_condition)),
		P("eventConditions", SL_T_LIST, SHAPE(event_condition), RULE(not_empty)),
		P("defaultCondition", SL_T_OBJECT, SHAPE(default_condition)),
		P("timeouts", SL_T_OBJECT, SHAPE(switch_timeouts)), NO_LEAVE("transition"), NO_LEAVE("end")),
	false, sl_sw08_rule_switch};
static const struct sl_sw08_shape sleep_state = {"sleep state", "0.8 Sleep State",
	PROPS(STATE_ANY, COMPENSATION, LEAVE, P("duration", SL_T_TEXT, REQ, DURATION), NO_TIMEOUTS), false,
	sl_sw08_rule_state};
static const char *const completions[] = {"allOf", "atLeast", NULL};
static const struct sl_sw08_shape branch = {"branch", "0.8 Parallel State Branch",
	PROPS(P("name", SL_T_TEXT, REQ), P("actions", SL_T_LIST, REQ, SHAPE(action)),
		P("timeouts", SL_T_OBJECT, SHAPE(branch_timeouts))),
	false, NULL};
static const struct sl_sw08_shape parallel_state = {"parallel state", "0.8 Parallel State",
	PROPS(STATE_ANY, COMPENSATION, LEAVE, P("branches", SL_T_LIST, REQ, SHAPE(branch)),
		P("completionType", SL_T_TEXT, WORDS(completions)),
		P("numCompleted", SL_T_NUMBER | SL_T_TEXT, .format = SL_F_COUNT, .min = 1, .ruling = "A125"),
		P("timeouts", SL_T_OBJECT, SHAPE(parallel_timeouts))),
	false, sl_sw08_rule_parallel};
static const struct sl_sw08_shape inject_state = {"inject state", "0.8 Inject State",
	PROPS(STATE_ANY, COMPENSATION, LEAVE, P("data", SL_T_OBJECT, REQ), NO_TIMEOUTS), false, sl_sw08_rule_state};
static const struct sl_sw08_shape foreach_state = {"foreach state", "0.8 ForEach State",
	PROPS(STATE_ANY, COMPENSATION, LEAVE, P("inputCollection", SL_T_TEXT, REQ), P("outputCollection", SL_T_TEXT),
		P("iterationParam", SL_T_TEXT),
		P("batchSize", SL_T_NUMBER | SL_T_TEXT, .format = SL_F_COUNT, .min = 2, .ruling = "A74"),
		P("mode", SL_T_TEXT, WORDS(modes)), P("actions", SL_T_LIST, REQ, SHAPE(action)),
		P("timeouts", SL_T_OBJECT, SHAPE(action_timeouts))),
	false, sl_sw08_rule_foreach};
static const struct sl_sw08_shape callback_state = {"callback state", "0.8 Callback State",
	PROPS(STATE_ANY, COMPENSATION, LEAVE, P("action", SL_T_OBJECT, REQ, SHAPE(action)),
		P("eventRef", SL_T_TEXT, REQ, RULE(consume)), P("eventDataFilter", SL_T_OBJECT, SHAPE(event_filter)),
		P("timeouts", SL_T_OBJECT, SHAPE(event_timeouts))),
	false, sl_sw08_rule_state};

const char *const sl_sw08_state_types[] = {
	"event", "operation", "switch", "sleep", "parallel", "inject", "foreach", "callback", NULL};
static const struct sl_sw08_shape *const state_shapes[] = {&event_state, &operation_state, &switch_state, &sleep_state,
	&parallel_state, &inject_state, &foreach_state, &callback_state};

const struct sl_sw08_shape *sl_sw08_state_shape(const char *type)
{
	for (int i = 0; sl_sw08_state_types[i]; i++)
		if (!strcmp(type, sl_sw08_state_types[i]))
			return state_shapes[i];
	return NULL;
}

/* --- definitions --- */
static const struct sl_sw08_shape auth_ref = {"authRef", "0.8 AuthRef Definition",
	PROPS(P("resource", SL_T_TEXT, REQ), P("invocation", SL_T_TEXT)), false, NULL};
static const char *const function_types[] = {
	"rest", "asyncapi", "rpc", "graphql", "odata", "expression", "custom", NULL};
static const struct sl_sw08_shape function = {"function", "0.8 Function Definition",
	PROPS(P("name", SL_T_TEXT, REQ), P("operation", SL_T_TEXT, REQ), P("type", SL_T_TEXT, WORDS(function_types)),
		P("authRef", SL_T_TEXT | SL_T_OBJECT, SHAPE(auth_ref), LATER("authRef"), RULE(auth_ref)),
		P("metadata", SL_T_OBJECT)),
	false, sl_sw08_rule_function};
static const struct sl_sw08_shape correlation = {"correlation rule", "0.8 Correlation Definition",
	PROPS(P("contextAttributeName", SL_T_TEXT, REQ, RULE(attribute)), P("contextAttributeValue", SL_T_TEXT)), false,
	NULL};
static const char *const event_kinds[] = {"consumed", "produced", NULL};
static const struct sl_sw08_shape event = {"event", "0.8 Event Definition",
	PROPS(P("name", SL_T_TEXT, REQ), P("type", SL_T_TEXT), P("source", SL_T_TEXT),
		P("kind", SL_T_TEXT, WORDS(event_kinds)),
		P("correlation", SL_T_LIST, SHAPE(correlation), RULE(correlation)), P("dataOnly", SL_T_BOOL),
		P("metadata", SL_T_OBJECT)),
	false, sl_sw08_rule_event};
static const struct sl_sw08_shape error = {"error", "0.8 Defining Errors",
	PROPS(P("name", SL_T_TEXT, REQ), P("code", SL_T_TEXT), P("description", SL_T_TEXT, .may_be_empty = true)),
	false, NULL};
static const struct sl_sw08_shape retry = {"retry", "0.8 Retry Definition",
	PROPS(P("name", SL_T_TEXT, REQ), P("delay", SL_T_TEXT, .format = SL_F_FIXED),
		P("maxDelay", SL_T_TEXT, .format = SL_F_FIXED), P("increment", SL_T_TEXT, .format = SL_F_FIXED),
		P("multiplier", SL_T_NUMBER | SL_T_TEXT),
		P("maxAttempts", SL_T_NUMBER | SL_T_TEXT, REQ, .format = SL_F_COUNT, .min = 1, .ruling = "A125"),
		P("jitter", SL_T_NUMBER | SL_T_TEXT)),
	false, sl_sw08_rule_retry};
static const char *const schemes[] = {"basic", "bearer", "oauth2", NULL};
static const struct sl_sw08_shape auth = {"auth", "0.8 Auth Definition",
	PROPS(P("name", SL_T_TEXT, REQ), P("scheme", SL_T_TEXT, WORDS(schemes)),
		P("properties", SL_T_TEXT | SL_T_OBJECT, REQ)),
	false, sl_sw08_rule_auth};
static const struct sl_sw08_shape extension = {"extension", "0.8 Extensions",
	PROPS(P("extensionId", SL_T_TEXT, REQ), P("path", SL_T_TEXT, REQ),
		NO("resource", "the text calls resource \"path\"", "A61")),
	false, NULL};
static const struct sl_sw08_shape cron = {"cron", "0.8 Cron Definition",
	PROPS(P("expression", SL_T_TEXT, REQ, RULE(cron)), P("validUntil", SL_T_TEXT, RULE(until))), false, NULL};
static const struct sl_sw08_shape schedule = {"schedule", "0.8 Schedule Definition",
	PROPS(P("interval", SL_T_TEXT, RULE(interval)), P("cron", SL_T_TEXT | SL_T_OBJECT, SHAPE(cron), RULE(cron)),
		P("timezone", SL_T_TEXT)),
	false, sl_sw08_rule_schedule};
static const struct sl_sw08_shape start = {"start", "0.8 Start Definition",
	PROPS(P("stateName", SL_T_TEXT), P("schedule", SL_T_TEXT | SL_T_OBJECT, REQ, SHAPE(schedule), LATER("schedule"),
						 RULE(schedule_text), .ruling = "A112")),
	false, NULL};
static const struct sl_sw08_shape data_schema = {"data schema", "0.8 Workflow Definition Structure",
	PROPS(P("schema", SL_T_TEXT | SL_T_OBJECT | SL_T_BOOL, REQ), P("failOnValidationErrors", SL_T_BOOL)), false,
	NULL};

/* The elements of `states` are walked by the rule: their shape depends on `type`. */
const struct sl_sw08_shape sl_sw08_workflow = {"workflow", "0.8 Workflow Definition Structure",
	PROPS(P("id", SL_T_TEXT, RULE(id)), P("key", SL_T_TEXT, RULE(id)), P("name", SL_T_TEXT),
		P("description", SL_T_TEXT, .may_be_empty = true), P("version", SL_T_TEXT | SL_T_NUMBER, RULE(version)),
		P("annotations", SL_T_TEXTS),
		P("dataInputSchema", SL_T_TEXT | SL_T_OBJECT, SHAPE(data_schema), RULE(data_schema)),
		P("dataOutputSchema", SL_T_TEXT | SL_T_OBJECT, SHAPE(data_schema), LATER("dataOutputSchema")),
		P("constants", SL_T_TEXT | SL_T_OBJECT, RULE(constants)),
		P("secrets", SL_T_TEXT | SL_T_TEXTS, RULE(secrets)),
		P("start", SL_T_TEXT | SL_T_OBJECT, SHAPE(start), RULE(start)),
		P("specVersion", SL_T_TEXT | SL_T_NUMBER, RULE(spec_version)),
		P("expressionLang", SL_T_TEXT, RULE(lang)),
		P("timeouts", SL_T_TEXT | SL_T_OBJECT, SHAPE(workflow_timeouts)),
		P("errors", SL_T_TEXT | SL_T_LIST, SHAPE(error)), P("keepActive", SL_T_BOOL, LATER("keepActive")),
		P("metadata", SL_T_OBJECT), P("events", SL_T_TEXT | SL_T_LIST, SHAPE(event)),
		P("functions", SL_T_TEXT | SL_T_LIST, SHAPE(function)), P("autoRetries", SL_T_BOOL),
		P("retries", SL_T_TEXT | SL_T_LIST, SHAPE(retry)),
		P("auth", SL_T_TEXT | SL_T_LIST, SHAPE(auth), LATER("auth")),
		P("extensions", SL_T_TEXT | SL_T_LIST, SHAPE(extension), LATER("extensions")),
		P("states", SL_T_LIST, REQ, RULE(states))),
	true, sl_sw08_rule_workflow};
