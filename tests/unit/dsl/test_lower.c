/* Lowering of Serverless Workflow 0.8: definitions of the text and the plans they become, and what is said about wrong ones. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "common/dsl/lower.h"
#include "common/expr/expr.h"

#define HEAD "id: t\nversion: 1.0.0\nspecVersion: \"0.8\"\n"

static const char greetings_api[] =
	"openapi: 3.0.3\n"
	"paths:\n"
	"  /greet/{id}:\n"
	"    parameters: [{name: id, in: path, required: true, schema: {type: string, default: me}}]\n"
	"    get: {operationId: read}\n"
	"    post:\n"
	"      operationId: greeting\n"
	"      requestBody: {content: {application/json: {schema: {properties: {greeting: {default: Hi}}}}}}\n"
	"      responses: {200: {content: {application/json: {}}}}\n";

static int fetches;     /* of the document that is there */

static int get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	(void)arg;
	(void)diags;
	if (strstr(uri, "later"))
		return SL_EAGAIN;
	if (strcmp(uri, "http://my.api.org/myapi.json") != 0)
		return SL_ENOTFOUND;
	fetches++;
	*ret = strdup(greetings_api);
	*ret_len = strlen(greetings_api);
	return 0;
}

static const struct sl_resources resources = {.get = get};

struct lowered {
	struct sl_diags diags;
	struct sl_plan *plan;
	int rc;
};

static struct lowered lower_with(const char *text, struct sl_compile_options opt)
{
	struct lowered l = {.plan = sl_plan_new()};
	struct sl_doc *doc = NULL;
	sl_diags_init(&l.diags);
	int rc = sl_doc_parse(text, strlen(text), "wf.yaml", &doc, &l.diags);
	cr_assert_eq(rc, 0, "%s", sl_diags_first(&l.diags));
	jv value = sl_doc_value(doc);
	l.rc = sl_sw08_lower(doc, value, &opt, l.plan, &l.diags);
	jv_free(value);
	sl_doc_free(doc);
	return l;
}

static struct lowered lower(const char *text)
{
	return lower_with(text, (struct sl_compile_options){.deploy = true, .resources = &resources});
}

static void release(struct lowered *l)
{
	sl_plan_unref(l->plan);
	sl_diags_release(&l->diags);
}

static void expect_plan(const char *text, const char *want)
{
	struct lowered l = lower(text);
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	char *got = sl_plan_text(l.plan);
	cr_assert_str_eq(got, want);
	free(got);
	release(&l);
}

/* The n-th diagnostic (from 0). */
static const struct sl_diag *diag_at(const struct lowered *l, int n)
{
	const struct sl_diag *d = l->diags.first;
	while (d && n--)
		d = d->next;
	cr_assert(d, "only %d errors, %d warnings", l->diags.error_count, l->diags.warning_count);
	return d;
}

/* One diagnostic with that text at that place. */
static void expect_diag(const char *text, int rc, int line, int col, const char *want)
{
	struct lowered l = lower(text);
	cr_assert_eq(l.rc, rc, "%s: %s", sl_err_name(l.rc), sl_diags_first(&l.diags));
	const struct sl_diag *d = diag_at(&l, 0);
	cr_assert(strstr(d->text, want), "'%s' lacks '%s'", d->text, want);
	cr_assert(d->loc.line == line && d->loc.col == col, "%d:%d: %s", d->loc.line, d->loc.col, d->text);
	cr_assert_eq(l.diags.error_count + l.diags.warning_count, 1);
	release(&l);
}

/* 0.8 "Using multiple data filters", with the service document. */
Test(lower, greet_customers_keeps_every_filter)
{
	expect_plan(
		"id: GreetCustomersWorkflow\n"
		"name: Greet Customers when they arrive\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"start: WaitForCustomerToArrive\n"
		"states:\n"
		"- name: WaitForCustomerToArrive\n"
		"  type: event\n"
		"  onEvents:\n"
		"  - eventRefs: [CustomerArrivesEvent]\n"
		"    eventDataFilter:\n"
		"      data: \"${ .customer }\"\n"
		"      toStateData: \"${ .customerInfo }\"\n"
		"    actions:\n"
		"    - functionRef:\n"
		"        refName: greetingFunction\n"
		"        arguments:\n"
		"          greeting: \"${ .hello.spanish } \"\n"
		"          customerName: \"${ .customerInfo.name } \"\n"
		"      actionDataFilter:\n"
		"        fromStateData: \"${ { hello, customerInfo } }\"\n"
		"        results: \"${ .greetingMessageResult }\"\n"
		"        toStateData: \"${ .finalCustomerGreeting }\"\n"
		"  stateDataFilter:\n"
		"    input: \"${ .greetings } \"\n"
		"    output: \"${ { finalCustomerGreeting } }\"\n"
		"  end: true\n"
		"events:\n"
		"- name: CustomerArrivesEvent\n"
		"  type: customer-arrival-type\n"
		"  source: customer-arrival-event-source\n"
		"functions:\n"
		"- name: greetingFunction\n"
		"  operation: http://my.api.org/myapi.json#greeting\n",
		"plan sw08 GreetCustomersWorkflow version=\"1.0.0\" name=\"Greet Customers when they arrive\"\n"
		"event CustomerArrivesEvent type=\"customer-arrival-type\" source=\"customer-arrival-event-source\"\n"
		"function \"greetingFunction\" POST http://my.api.org/greet/{id} body=application/json accept=\"application/json\"\n"
		"  path id simple required default=\"me\"\n"
		"  body greeting form explode default=\"Hi\"\n"
		"start on any of CustomerArrivesEvent\n"
		"/states scope start=\"WaitForCustomerToArrive\"\n"
		"  /states/0 state \"WaitForCustomerToArrive\" input=`${ .greetings } ` output=`${ { finalCustomerGreeting } }`\n"
		"    /states/0:body await any\n"
		"      /states/0/onEvents/0 on CustomerArrivesEvent data=path select=`${ .customer }` to=`${ .customerInfo }`\n"
		"        /states/0/onEvents/0/actions actions\n"
		"          /states/0/onEvents/0/actions/0 action from=`${ { hello, customerInfo } }` result=path select=`${ .greetingMessageResult }` to=`${ .finalCustomerGreeting }`\n"
		"            /states/0/onEvents/0/actions/0/functionRef call \"greetingFunction\" args=`{\"greeting\":\"${ .hello.spanish } \",\"customerName\":\"${ .customerInfo.name } \"}`\n"
		"    next -> end\n");
}

/* 0.8 "Event State", MonitorVitals; two references in one entry: either (A77). */
Test(lower, exclusive_event_state_waits_for_any_of_its_entries)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"states:\n"
		"- name: MonitorVitals\n"
		"  type: event\n"
		"  exclusive: true\n"
		"  timeouts: {eventTimeout: PT1H}\n"
		"  onEvents:\n"
		"  - eventRefs: [HighBodyTemperature]\n"
		"    actions:\n"
		"    - functionRef: {refName: sendTylenolOrder, arguments: {patientid: \"${ .patientId }\"}}\n"
		"  - eventRefs: [HighBloodPressure, HighRespirationRate]\n"
		"    actionMode: parallel\n"
		"    actions:\n"
		"    - functionRef: {refName: callNurse, arguments: {nurse: one}}\n"
		"  end: {terminate: true}\n"
		"events:\n"
		"- {name: HighBodyTemperature, type: t, source: s}\n"
		"- {name: HighBloodPressure, type: p, source: s}\n"
		"- {name: HighRespirationRate, type: r, source: s, dataOnly: false}\n"
		"functions:\n"
		"- {name: sendTylenolOrder, type: custom, operation: \"https://h.example/tylenol\"}\n"
		"- {name: callNurse, type: custom, operation: \"PUT https://h.example/nurses/{nurse}/call\"}\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"event HighBodyTemperature type=\"t\" source=\"s\"\n"
		"event HighBloodPressure type=\"p\" source=\"s\"\n"
		"event HighRespirationRate type=\"r\" source=\"s\" whole\n"
		"function \"sendTylenolOrder\" POST https://h.example/tylenol body=application/json required accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"function \"callNurse\" PUT https://h.example/nurses/{nurse}/call body=application/json required accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"  path nurse simple required\n"
		"start on any of HighBodyTemperature HighBloodPressure HighRespirationRate\n"
		"/states scope start=\"MonitorVitals\"\n"
		"  /states/0 state \"MonitorVitals\"\n"
		"    /states/0:body await any\n"
		"      /states/0/onEvents/0 on HighBodyTemperature data=merge key=\"response\"\n"
		"        /states/0/onEvents/0/actions actions\n"
		"          /states/0/onEvents/0/actions/0 action result=merge key=\"response\"\n"
		"            /states/0/onEvents/0/actions/0/functionRef call \"sendTylenolOrder\" args=`{\"patientid\":\"${ .patientId }\"}`\n"
		"      /states/0/onEvents/1 on (HighBloodPressure or HighRespirationRate) data=merge key=\"response\"\n"
		"        /states/0/onEvents/1/actions actions parallel\n"
		"          /states/0/onEvents/1/actions/0 action result=merge key=\"response\"\n"
		"            /states/0/onEvents/1/actions/0/functionRef call \"callNurse\" args=`{\"nurse\":\"one\"}`\n"
		"    next -> terminate\n");
}

/* Correlation: no value or an expression make the key, a literal filters; eventTimeout is the window. */
Test(lower, start_state_for_all_events_joins_them)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"timeouts: {eventTimeout: PT2M}\n"
		"states:\n"
		"- name: Both\n"
		"  type: event\n"
		"  exclusive: false\n"
		"  onEvents:\n"
		"  - eventRefs: [A, B]\n"
		"  - eventRefs: [B]\n"
		"    eventDataFilter: {useData: false, data: .ignored}\n"
		"  transition: Later\n"
		"- name: Later\n"
		"  type: event\n"
		"  exclusive: false\n"
		"  onEvents:\n"
		"  - {eventRefs: [A], eventDataFilter: {data: .reading, toStateData: .latest}}\n"
		"  end: true\n"
		"events:\n"
		"- name: A\n"
		"  type: a\n"
		"  source: s\n"
		"  correlation:\n"
		"  - {contextAttributeName: patientId}\n"
		"  - {contextAttributeName: department, contextAttributeValue: UrgentCare}\n"
		"  - {contextAttributeName: Bed, contextAttributeValue: \"${ .bed }\"}\n"
		"- {name: B, type: b, source: s, correlation: [{contextAttributeName: patientId}]}\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"event A type=\"a\" source=\"s\" key:bed is=`${ .bed }` key:patientid filter:department=\"UrgentCare\"\n"
		"event B type=\"b\" source=\"s\" key:patientid\n"
		"start on all of A B window=120000ms key:patientid\n"
		"/states scope start=\"Both\"\n"
		"  /states/0 state \"Both\"\n"
		"    /states/0:body await all\n"
		"      /states/0/onEvents/0 on (A and B) data=merge key=\"response\"\n"
		"      /states/0/onEvents/1 on B data=discard\n"
		"    next -> \"Later\"\n"
		"  /states/1 state \"Later\"\n"
		"    /states/1:body await all timeout=120000ms\n"
		"      /states/1/onEvents/0 on A data=path select=`.reading` to=`.latest`\n"
		"    next -> end\n");
}

/* 0.8 "Switch State"; expression functions may stand in any order. */
Test(lower, data_switch_keeps_order_and_default)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"constants: {AGE: {MIN: 18}}\n"
		"functions:\n"
		"- {name: isAdult, type: expression, operation: \"fn:age >= $CONST.AGE.MIN\"}\n"
		"- {name: age, type: expression, operation: \".applicant.age\"}\n"
		"states:\n"
		"- name: CheckApplicant\n"
		"  type: switch\n"
		"  dataConditions:\n"
		"  - {name: Applicant is adult, condition: \"${ fn:isAdult }\", transition: Approve}\n"
		"  - {condition: \".applicant.guardian == true\", end: {terminate: true}}\n"
		"  defaultCondition: {end: true}\n"
		"- {name: Approve, type: sleep, duration: PT5S, end: true}\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\" constants={\"AGE\":{\"MIN\":18}}\n"
		"function \"isAdult\" expression=`fn:age >= $CONST.AGE.MIN`\n"
		"function \"age\" expression=`.applicant.age`\n"
		"/states scope start=\"CheckApplicant\"\n"
		"  /states/0 state \"CheckApplicant\"\n"
		"    /states/0:body choose\n"
		"      /states/0/dataConditions/0 when \"Applicant is adult\" cond=`${ fn:isAdult }`\n"
		"        next -> \"Approve\"\n"
		"      /states/0/dataConditions/1 when cond=`.applicant.guardian == true`\n"
		"        next -> terminate\n"
		"      otherwise -> end\n"
		"  /states/1 state \"Approve\"\n"
		"    /states/1:body sleep for=5000ms\n"
		"    next -> end\n");
}

/* A114 lenient, both kinds of switch. */
Test(lower, switch_without_default_ends_the_workflow)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"events: [{name: E, type: e, source: s}]\n"
		"states:\n"
		"- {name: Data, type: switch, dataConditions: [{condition: .x, transition: Event}]}\n"
		"- {name: Event, type: switch, eventConditions: [{eventRef: E, end: true}]}\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"event E type=\"e\" source=\"s\"\n"
		"/states scope start=\"Data\"\n"
		"  /states/0 state \"Data\"\n"
		"    /states/0:body choose\n"
		"      /states/0/dataConditions/0 when cond=`.x`\n"
		"        next -> \"Event\"\n"
		"      otherwise -> end\n"
		"  /states/1 state \"Event\"\n"
		"    /states/1:body await any\n"
		"      /states/1/eventConditions/0 on E data=merge key=\"response\"\n"
		"        next -> end\n"
		"      timeout -> end\n");
}

/* 0.8 "Switch State", CheckVisaStatus. */
Test(lower, event_switch_leads_to_its_default_when_time_is_out)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"start: CheckVisaStatus\n"
		"events:\n"
		"- {name: visaApprovedEvent, type: a, source: s}\n"
		"- {name: visaRejectedEvent, type: r, source: s}\n"
		"states:\n"
		"- {name: HandleNoVisaDecision, type: inject, data: {a: \"${ .notEvaluated }\"}, end: true}\n"
		"- name: CheckVisaStatus\n"
		"  type: switch\n"
		"  eventConditions:\n"
		"  - {eventRef: visaApprovedEvent, transition: HandleNoVisaDecision, eventDataFilter: {data: .visa}}\n"
		"  - {eventRef: visaRejectedEvent, end: {terminate: true}}\n"
		"  timeouts: {eventTimeout: PT1H}\n"
		"  defaultCondition: {transition: HandleNoVisaDecision}\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"event visaApprovedEvent type=\"a\" source=\"s\"\n"
		"event visaRejectedEvent type=\"r\" source=\"s\"\n"
		"/states scope start=\"CheckVisaStatus\"\n"
		"  /states/0 state \"HandleNoVisaDecision\"\n"
		"    /states/0:body assign value=`{\"a\":\"${ .notEvaluated }\"}` into=merge\n"
		"    next -> end\n"
		"  /states/1 state \"CheckVisaStatus\"\n"
		"    /states/1:body await any timeout=3600000ms\n"
		"      /states/1/eventConditions/0 on visaApprovedEvent data=merge select=`.visa` key=\"response\"\n"
		"        next -> \"HandleNoVisaDecision\"\n"
		"      /states/1/eventConditions/1 on visaRejectedEvent data=merge key=\"response\"\n"
		"        next -> terminate\n"
		"      timeout -> \"HandleNoVisaDecision\"\n");
}

/* 0.8 "Workflow Timeouts"; atLeast with digits in a string (A125). */
Test(lower, timeouts_are_inherited_from_the_innermost_that_is_given)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"timeouts:\n"
		"  workflowExecTimeout: {duration: P1D, interrupt: true}\n"
		"  stateExecTimeout: PT10M\n"
		"  actionExecTimeout: PT30S\n"
		"  branchExecTimeout: PT20S\n"
		"functions: [{name: f, type: expression, operation: \".\"}]\n"
		"states:\n"
		"- name: Branches\n"
		"  type: parallel\n"
		"  completionType: atLeast\n"
		"  numCompleted: '1'\n"
		"  timeouts: {branchExecTimeout: PT9S, stateExecTimeout: PT8S}\n"
		"  branches:\n"
		"  - {name: own, timeouts: {branchExecTimeout: PT3S, actionExecTimeout: PT1S}, actions: [{functionRef: f}]}\n"
		"  - {name: states, actions: [{functionRef: f}]}\n"
		"  transition: Other\n"
		"- name: Other\n"
		"  type: parallel\n"
		"  branches:\n"
		"  - {name: tops, actions: [{functionRef: f}]}\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\" timeout=86400000ms interrupt\n"
		"function \"f\" expression=`.`\n"
		"/states scope start=\"Branches\"\n"
		"  /states/0 state \"Branches\" timeout=8000ms\n"
		"    /states/0:body fork need=1/2\n"
		"      /states/0/branches/0 branch \"own\" timeout=3000ms\n"
		"        /states/0/branches/0/actions actions\n"
		"          /states/0/branches/0/actions/0 action result=merge key=\"response\" timeout=1000ms\n"
		"            /states/0/branches/0/actions/0/functionRef call \"f\"\n"
		"      /states/0/branches/1 branch \"states\" timeout=9000ms\n"
		"        /states/0/branches/1/actions actions\n"
		"          /states/0/branches/1/actions/0 action result=merge key=\"response\" timeout=30000ms\n"
		"            /states/0/branches/1/actions/0/functionRef call \"f\"\n"
		"    next -> \"Other\"\n"
		"  /states/1 state \"Other\" timeout=600000ms\n"
		"    /states/1:body fork need=1/1\n"
		"      /states/1/branches/0 branch \"tops\" timeout=20000ms\n"
		"        /states/1/branches/0/actions actions\n"
		"          /states/1/branches/0/actions/0 action result=merge key=\"response\" timeout=30000ms\n"
		"            /states/1/branches/0/actions/0/functionRef call \"f\"\n"
		"    next -> end\n");
}

/* 0.8 "ForEach State", SendConfirmState; and one with every default (A71, A73). */
Test(lower, foreach_names_its_parameter)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"functions: [{name: sendConfirmationFunction, type: custom, operation: \"POST https://h.example/confirm\"}]\n"
		"states:\n"
		"- name: SendConfirmState\n"
		"  type: foreach\n"
		"  inputCollection: \"${ [.orders[] | select(.completed == true)] }\"\n"
		"  iterationParam: completedorder\n"
		"  outputCollection: \"${ .confirmationresults }\"\n"
		"  mode: sequential\n"
		"  actions:\n"
		"  - functionRef:\n"
		"      refName: sendConfirmationFunction\n"
		"      arguments: {orderNumber: \"${ $completedorder.orderNumber }\", email: \"${ $completedorder.email }\"}\n"
		"  transition: Plain\n"
		"- name: Plain\n"
		"  type: foreach\n"
		"  inputCollection: .orders\n"
		"  batchSize: '10'\n"
		"  actions: [{functionRef: sendConfirmationFunction, condition: \"${ $item.ok }\"}]\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"function \"sendConfirmationFunction\" POST https://h.example/confirm body=application/json required accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"/states scope start=\"SendConfirmState\"\n"
		"  /states/0 state \"SendConfirmState\"\n"
		"    /states/0:body each sequential in=`${ [.orders[] | select(.completed == true)] }` as=$completedorder out=`${ .confirmationresults }`\n"
		"      /states/0/actions actions\n"
		"        /states/0/actions/0 action result=merge key=\"response\"\n"
		"          /states/0/actions/0/functionRef call \"sendConfirmationFunction\" args=`{\"orderNumber\":\"${ $completedorder.orderNumber }\",\"email\":\"${ $completedorder.email }\"}`\n"
		"    next -> \"Plain\"\n"
		"  /states/1 state \"Plain\"\n"
		"    /states/1:body each in=`.orders` as=$item batch=10\n"
		"      /states/1/actions actions\n"
		"        /states/1/actions/0 action if=`${ $item.ok }` result=merge key=\"response\"\n"
		"          /states/1/actions/0/functionRef call \"sendConfirmationFunction\"\n"
		"    next -> end\n");
}

/* 0.8 "Callback State", CheckCredit. */
Test(lower, callback_runs_its_action_after_arming)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"functions: [{name: callCreditCheckMicroservice, type: custom, operation: \"https://h.example/credit\"}]\n"
		"events: [{name: CreditCheckCompletedEvent, type: c, source: s, correlation: [{contextAttributeName: customer}]}]\n"
		"states:\n"
		"- name: CheckCredit\n"
		"  type: callback\n"
		"  action: {functionRef: {refName: callCreditCheckMicroservice, arguments: {customer: \"${ .customer }\"}}}\n"
		"  eventRef: CreditCheckCompletedEvent\n"
		"  eventDataFilter: {data: \"${ .score }\", toStateData: \"${ .credit }\"}\n"
		"  timeouts: {stateExecTimeout: PT15M, actionExecTimeout: PT1M, eventTimeout: PT10M}\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"event CreditCheckCompletedEvent type=\"c\" source=\"s\" key:customer\n"
		"function \"callCreditCheckMicroservice\" POST https://h.example/credit body=application/json required accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"/states scope start=\"CheckCredit\"\n"
		"  /states/0 state \"CheckCredit\" timeout=900000ms\n"
		"    /states/0:body await any timeout=600000ms\n"
		"      before\n"
		"        /states/0/action action result=merge key=\"response\" timeout=60000ms\n"
		"          /states/0/action/functionRef call \"callCreditCheckMicroservice\" args=`{\"customer\":\"${ .customer }\"}`\n"
		"      /states/0/eventRef on CreditCheckCompletedEvent data=path select=`${ .score }` to=`${ .credit }`\n"
		"    next -> end\n");
}

/* 0.8 "EventRef Definition": produce; produce and consume with its own time or actionExecTimeout (A12); async. */
Test(lower, event_references_in_actions)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"timeouts: {actionExecTimeout: PT30S}\n"
		"events:\n"
		"- {name: MakeVetAppointment, type: m, kind: produced}\n"
		"- {name: VetAppointmentInfo, type: i, source: s}\n"
		"states:\n"
		"- name: Vet\n"
		"  type: operation\n"
		"  actionMode: parallel\n"
		"  actions:\n"
		"  - eventRef: {produceEventRef: MakeVetAppointment, data: \"${ .patientInfo }\"}\n"
		"  - name: ask\n"
		"    condition: \"${ .sick }\"\n"
		"    sleep: {before: PT1S, after: PT2S}\n"
		"    eventRef: {produceEventRef: MakeVetAppointment, consumeEventRef: VetAppointmentInfo, contextAttributes: {clinic: \"${ .clinic }\"}}\n"
		"    actionDataFilter: {results: \"${ .time }\", toStateData: \"${ .appointment }\"}\n"
		"  - eventRef: {produceEventRef: MakeVetAppointment, consumeEventRef: VetAppointmentInfo, consumeEventTimeout: PT1H}\n"
		"    actionDataFilter: {useResults: false, results: .ignored}\n"
		"  - eventRef: {produceEventRef: MakeVetAppointment, consumeEventRef: VetAppointmentInfo, invoke: async}\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"event MakeVetAppointment type=\"m\" produced\n"
		"event VetAppointmentInfo type=\"i\" source=\"s\"\n"
		"/states scope start=\"Vet\"\n"
		"  /states/0 state \"Vet\"\n"
		"    /states/0/actions actions parallel\n"
		"      /states/0/actions/0 action result=merge key=\"response\"\n"
		"        /states/0/actions/0/eventRef:emit emit event=MakeVetAppointment data=`${ .patientInfo }`\n"
		"      /states/0/actions/1 action \"ask\" if=`${ .sick }` before=1000ms after=2000ms result=path select=`${ .time }` to=`${ .appointment }`\n"
		"        /states/0/actions/1/eventRef await any timeout=30000ms raises\n"
		"          before\n"
		"            /states/0/actions/1/eventRef:emit emit event=MakeVetAppointment context=`{\"clinic\":\"${ .clinic }\"}`\n"
		"          /states/0/actions/1/eventRef/consumeEventRef on VetAppointmentInfo data=set\n"
		"      /states/0/actions/2 action result=discard\n"
		"        /states/0/actions/2/eventRef await any timeout=3600000ms raises\n"
		"          before\n"
		"            /states/0/actions/2/eventRef:emit emit event=MakeVetAppointment\n"
		"          /states/0/actions/2/eventRef/consumeEventRef on VetAppointmentInfo data=set\n"
		"      /states/0/actions/3 action async result=discard\n"
		"        /states/0/actions/3/eventRef:emit emit event=MakeVetAppointment\n"
		"    next -> end\n");
}

/* 0.8 "Retry Definition"; error codes by code, else by name (A08). */
Test(lower, checked_errors_are_retried_by_policy)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"functions: [{name: f, type: expression, operation: \".\"}]\n"
		"errors: [{name: SomeErrorOne, code: '503'}, {name: SomeErrorTwo}]\n"
		"retries:\n"
		"- {name: First, delay: PT10S, increment: PT2S, maxAttempts: '4', multiplier: '1.5', maxDelay: PT100S, jitter: PT1S}\n"
		"- {name: Second, maxAttempts: 10, jitter: 0.3, multiplier: 2}\n"
		"states:\n"
		"- name: S\n"
		"  type: operation\n"
		"  actions:\n"
		"  - {functionRef: f, retryRef: First, retryableErrors: [SomeErrorOne, SomeErrorTwo]}\n"
		"  - {functionRef: f, retryableErrors: [SomeErrorTwo]}\n"
		"  - {functionRef: f, retryRef: Second}\n"
		"  - {functionRef: f, retryRef: Second, retryableErrors: [SomeErrorOne]}\n"
		"  onErrors:\n"
		"  - {errorRef: SomeErrorOne, transition: {nextState: S}}\n"
		"  - {errorRefs: [SomeErrorOne, SomeErrorTwo], end: {terminate: true}}\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"function \"f\" expression=`.`\n"
		"/states scope start=\"S\"\n"
		"  /states/0 state \"S\"\n"
		"    /states/0/actions actions\n"
		"      /states/0/actions/0 action result=merge key=\"response\"\n"
		"        /states/0/actions/0/functionRef call \"f\"\n"
		"        on error code=\"503\",code=\"SomeErrorTwo\" retry=\"First\" attempts=4 delay=10000ms increment=2000ms multiplier=1.5 max=100000ms jitter=1000ms then=raise\n"
		"      /states/0/actions/1 action result=merge key=\"response\"\n"
		"        /states/0/actions/1/functionRef call \"f\"\n"
		"      /states/0/actions/2 action result=merge key=\"response\"\n"
		"        /states/0/actions/2/functionRef call \"f\"\n"
		"      /states/0/actions/3 action result=merge key=\"response\"\n"
		"        /states/0/actions/3/functionRef call \"f\"\n"
		"        on error code=\"503\" retry=\"Second\" attempts=10 multiplier=2 jitter=0.3 then=raise\n"
		"    on error code=\"503\" then=goto\n"
		"      next -> \"S\"\n"
		"    on error code=\"503\",code=\"SomeErrorTwo\" then=goto\n"
		"      next -> terminate\n"
		"    next -> end\n");
}

/* 0.8 "Automatic retries": the recommended default policy. */
Test(lower, automatic_retries_spare_what_is_not_retryable)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"autoRetries: true\n"
		"functions: [{name: f, type: expression, operation: \".\"}]\n"
		"errors: [{name: SomeErrorOne}]\n"
		"retries: [{name: Once, maxAttempts: 1}]\n"
		"states:\n"
		"- name: S\n"
		"  type: operation\n"
		"  actions:\n"
		"  - {functionRef: f, nonRetryableErrors: [SomeErrorOne]}\n"
		"  - {functionRef: f, retryRef: Once}\n"
		"  - {functionRef: {refName: f, invoke: async}, retryRef: Once}\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\"\n"
		"function \"f\" expression=`.`\n"
		"/states scope start=\"S\"\n"
		"  /states/0 state \"S\"\n"
		"    /states/0/actions actions\n"
		"      /states/0/actions/0 action result=merge key=\"response\"\n"
		"        /states/0/actions/0/functionRef call \"f\"\n"
		"        on error except code=\"SomeErrorOne\" retry=\"default\" attempts=0 delay=1000ms multiplier=2 then=raise\n"
		"      /states/0/actions/1 action result=merge key=\"response\"\n"
		"        /states/0/actions/1/functionRef call \"f\"\n"
		"        on error any retry=\"Once\" attempts=1 then=raise\n"
		"      /states/0/actions/2 action async result=discard\n"
		"        /states/0/actions/2/functionRef call \"f\"\n"
		"    next -> end\n");
}

/* 0.8 "ProducedEvent Definition"; a list of attributes (A11), no data (A83), bare and mixed text. */
Test(lower, events_are_produced_on_transitions_and_ends)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"timeouts: {workflowExecTimeout: PT1H}\n"
		"events: [{name: provisioningComplete, type: p, kind: produced, source: us}]\n"
		"states:\n"
		"- name: A\n"
		"  type: inject\n"
		"  data: {count: 0}\n"
		"  stateDataFilter: {input: \"${ .in }\", output: \"${ .out }\"}\n"
		"  transition:\n"
		"    nextState: B\n"
		"    produceEvents:\n"
		"    - {eventRef: provisioningComplete, data: \"${ .provisionedOrders }\", contextAttributes: [{buyerId: \"${ .buyerId }\"}, {shop: one}]}\n"
		"    - {eventRef: provisioningComplete, data: .orders}\n"
		"- name: B\n"
		"  type: sleep\n"
		"  duration: \"${ .pause }\"\n"
		"  end:\n"
		"    produceEvents:\n"
		"    - {eventRef: provisioningComplete}\n"
		"    - {eventRef: provisioningComplete, data: {total: \"${ .total }\", text: fixed}}\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\" timeout=3600000ms\n"
		"event provisioningComplete type=\"p\" source=\"us\" produced\n"
		"/states scope start=\"A\"\n"
		"  /states/0 state \"A\" input=`${ .in }` output=`${ .out }`\n"
		"    /states/0:body assign value=`{\"count\":0}` into=merge\n"
		"    next -> \"B\"\n"
		"      emit event=provisioningComplete data=`${ .provisionedOrders }` context=`{\"buyerId\":\"${ .buyerId }\",\"shop\":\"one\"}`\n"
		"      emit event=provisioningComplete data=`.orders`\n"
		"  /states/1 state \"B\"\n"
		"    /states/1:body sleep for=`${ .pause }`\n"
		"    next -> end\n"
		"      emit event=provisioningComplete\n"
		"      emit event=provisioningComplete data=`{\"total\":\"${ .total }\",\"text\":\"fixed\"}`\n");
}

/* "METHOD URL", or a URL alone; names in the URL, static headers. */
Test(lower, custom_functions_are_plain_http)
{
	expect_plan(
		"id: t\n"
		"version: 1.0.0\n"
		"specVersion: \"0.8\"\n"
		"secrets: [TOKEN]\n"
		"functions:\n"
		"- name: get\n"
		"  type: custom\n"
		"  operation: GET https://h.example/customers/{customer}/orders/{order}?from={customer}\n"
		"  metadata: {headers: {X-Channel: workflow, X-Version: 2}}\n"
		"- {name: post, type: custom, operation: \"http://h.example\"}\n"
		"- {name: remove, type: custom, operation: \"DELETE http://h.example/x\"}\n"
		"states:\n"
		"- name: S\n"
		"  type: operation\n"
		"  actions:\n"
		"  - functionRef: {refName: get, arguments: {customer: 1, order: 2, token: \"${ $SECRETS.TOKEN }\"}}\n"
		"  - functionRef: post\n"
		"  - functionRef: remove\n"
		"  end: true\n",
		"plan sw08 t version=\"1.0.0\" name=\"t\" secret:TOKEN\n"
		"function \"get\" GET https://h.example/customers/{customer}/orders/{order}?from={customer} rest-query accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"  path customer simple required\n"
		"  path order simple required\n"
		"  header X-Channel simple default=\"workflow\"\n"
		"  header X-Version simple default=\"2\"\n"
		"function \"post\" POST http://h.example body=application/json required accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"function \"remove\" DELETE http://h.example/x rest-query accept=\"application/json, text/plain;q=0.9, */*;q=0.1\"\n"
		"/states scope start=\"S\"\n"
		"  /states/0 state \"S\"\n"
		"    /states/0/actions actions\n"
		"      /states/0/actions/0 action result=merge key=\"response\"\n"
		"        /states/0/actions/0/functionRef call \"get\" args=`{\"customer\":1,\"order\":2,\"token\":\"${ $SECRETS.TOKEN }\"}` secrets\n"
		"      /states/0/actions/1 action result=merge key=\"response\"\n"
		"        /states/0/actions/1/functionRef call \"post\"\n"
		"      /states/0/actions/2 action result=merge key=\"response\"\n"
		"        /states/0/actions/2/functionRef call \"remove\"\n"
		"    next -> end\n");
}

/* --- details that the text of a plan does not show --- */
Test(lower, secrets_mark_the_calls_that_use_them)
{
	struct lowered l = lower(HEAD "secrets: [K]\n"
		"functions:\n- {name: key, type: expression, operation: $SECRETS.K}\n- {name: plain, type: expression, operation: .a}\n"
		"- {name: http, type: custom, operation: 'http://h/x'}\n"
		"states:\n- name: S\n  type: operation\n  end: true\n  actions:\n  - functionRef: key\n  - functionRef: plain\n"
		"  - functionRef: {refName: http, arguments: {k: '${ $SECRETS.K }'}}\n  - functionRef: {refName: http, arguments: {k: '${ .K }'}}\n");
	static const bool want[] = {true, false, true, false};
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	for (int i = 0; i < 4; i++) {
		char ptr[64];
		snprintf(ptr, sizeof(ptr), "/states/0/actions/%d/functionRef", i);
		const struct sl_node *node = sl_plan_find(l.plan, ptr);
		cr_assert(node);
		cr_assert_eq(node->u.call.uses_secrets, want[i], "%s", ptr);
	}
	release(&l);
}

Test(lower, expressions_of_a_plan_evaluate)
{
	struct lowered l = lower(HEAD "functions: [{name: f, type: expression, operation: '.count += 1 | .count'}]\n"
		"states:\n- {name: S, type: operation, end: true, actions: [{functionRef: {refName: f, arguments: {a: '${ .n }', b: 'x${ .n }'}}}]}\n");
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	struct sl_buf err;
	sl_buf_init(&err);
	jv vars = jv_object(), ret;
	cr_assert_eq(sl_program_eval(l.plan->program, l.plan->functions[0].expr, jv_object_set(jv_object(), jv_string("count"), jv_number(4)),
			vars, &ret, &err), 0);
	cr_assert_eq(jv_number_value(ret), 5);
	jv_free(ret);
	const struct sl_node *node = sl_plan_find(l.plan, "/states/0/actions/0/functionRef");
	cr_assert_eq(sl_program_eval(l.plan->program, node->u.call.args, jv_object_set(jv_object(), jv_string("n"), jv_number(7)), vars, &ret,
			&err), 0);
	cr_assert_str_eq(sl_json_str(ret, "b"), "x7");
	cr_assert_eq(sl_json_int(ret, "a", 0), 7);
	jv_free(ret);
	jv_free(vars);
	sl_buf_release(&err);
	release(&l);
}

Test(lower, parents_and_lookups_are_set)
{
	struct lowered l = lower(HEAD "functions: [{name: f, type: expression, operation: .}]\n"
		"states:\n- {name: S, type: operation, end: true, actions: [{functionRef: f}]}\n");
	const struct sl_node *call = sl_plan_find(l.plan, "/states/0/actions/0/functionRef");
	cr_assert(call);
	cr_assert_str_eq(call->parent->ptr, "/states/0/actions/0");
	cr_assert_str_eq(call->parent->parent->parent->ptr, "/states/0");
	cr_assert_eq(call->parent->parent->parent->parent, l.plan->root);
	cr_assert_null(l.plan->root->parent);
	cr_assert_eq(sl_plan_find(l.plan, "/states/0")->loc.line, 6);
	release(&l);
}

Test(lower, missing_version_is_the_lowest)
{
	struct lowered l = lower("key: k\nstates:\n- {name: S, type: sleep, duration: PT1S, end: true}\n");
	cr_assert_eq(l.rc, 0);
	cr_assert_str_eq(l.plan->id, "k");
	cr_assert_str_eq(l.plan->version, "0.0.0");
	release(&l);
}

Test(lower, one_document_is_read_once)
{
	fetches = 0;
	struct lowered l = lower(HEAD "functions:\n- {name: a, operation: 'http://my.api.org/myapi.json#greeting'}\n"
		"- {name: b, type: rest, operation: 'http://my.api.org/myapi.json#greeting'}\n"
		"states:\n- {name: S, type: sleep, duration: PT1S, end: true}\n");
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	cr_assert_eq(fetches, 1);
	cr_assert_str_eq(l.plan->functions[1].http.url, "http://my.api.org/greet/{id}");
	release(&l);
}

/* --- what is wrong is said where it stands --- */
#define SLEEP "states:\n- {name: S, type: sleep, duration: PT1S, end: true}\n"

Test(lower, a_wrong_expression_stands_at_its_own_string)
{
	expect_diag(HEAD "states:\n- name: S\n  type: sleep\n  duration: PT1S\n  stateDataFilter:\n    output: '${ .a | }'\n  end: true\n",
		SL_ESCHEMA, 9, 13, "");
}

Test(lower, a_wrong_expression_inside_arguments_stands_at_its_own_string)
{
	expect_diag(HEAD "functions: [{name: f, type: custom, operation: 'http://h'}]\nstates:\n- name: S\n  type: operation\n  end: true\n"
		"  actions:\n  - functionRef:\n      refName: f\n      arguments:\n        good: '${ .a }'\n        deep:\n        - 1\n"
		"        - b/c: '${ .b | }'\n", SL_ESCHEMA, 16, 16, "");
}

Test(lower, all_wrong_expressions_are_reported_at_once)
{
	struct lowered l = lower(HEAD "functions: [{name: bad, type: expression, operation: '.a |'}]\nstates:\n- name: S\n  type: switch\n"
		"  dataConditions:\n  - {condition: '${ .x | }', end: true}\n  - {condition: '${ .y) }', end: true}\n  defaultCondition: {end: true}\n");
	cr_assert_eq(l.rc, SL_ESCHEMA);
	cr_assert_eq(l.diags.error_count, 3);
	release(&l);
}

Test(lower, secrets_outside_of_arguments_are_refused)
{
	expect_diag(HEAD "secrets: [K]\nstates:\n- name: S\n  type: sleep\n  duration: PT1S\n  stateDataFilter: {output: '${ $SECRETS.K }'}\n  end: true\n",
		SL_ESCHEMA, 9, 29, "SECRETS");
}

Test(lower, iteration_variables_end_with_their_state)
{
	expect_diag(HEAD "functions: [{name: f, type: expression, operation: .}]\nstates:\n"
		"- {name: A, type: foreach, inputCollection: .x, iterationParam: it, actions: [{functionRef: f, condition: $it.ok}], transition: B}\n"
		"- name: B\n  type: operation\n  actions:\n  - functionRef: f\n    condition: $it.ok\n  end: true\n", SL_ESCHEMA, 11, 16, "it");
}

Test(lower, expression_functions_may_use_iteration_variables)
{
	struct lowered l = lower(HEAD "functions: [{name: f, type: expression, operation: $it.price}]\nstates:\n"
		"- {name: A, type: foreach, inputCollection: .x, iterationParam: it, actions: [{functionRef: f}], end: true}\n");
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	release(&l);
}

Test(lower, unknown_names_are_errors)
{
	expect_diag(HEAD "states:\n- {name: S, type: sleep, duration: PT1S, transition: T}\n", SL_ESCHEMA, 5, 54, "no state 'T'");
	expect_diag(HEAD "start: T\n" SLEEP, SL_ESCHEMA, 4, 8, "no state 'T'");
	expect_diag(HEAD "states:\n- {name: S, type: operation, end: true, actions: [{functionRef: f}]}\n", SL_ESCHEMA, 5, 65, "no function 'f'");
	expect_diag(HEAD "states:\n- {name: S, type: event, end: true, onEvents: [{eventRefs: [e]}]}\n", SL_ESCHEMA, 5, 61, "no event 'e'");
	expect_diag(HEAD "states:\n- {name: S, type: sleep, duration: PT1S, end: true, onErrors: [{errorRef: e, end: true}]}\n", SL_ESCHEMA, 5, 75,
		"no error definition 'e'");
}

Test(lower, wrong_durations_are_errors)
{
	expect_diag(HEAD "states:\n- {name: S, type: sleep, duration: PT30D, end: true}\n", SL_ESCHEMA, 5, 36, "'PT30D' is no ISO 8601 duration");
}

Test(lower, the_window_of_a_start_state_is_constant)
{
	expect_diag(HEAD "events: [{name: e, type: e, source: s}]\nstates:\n- name: S\n  type: event\n  exclusive: false\n"
		"  timeouts: {eventTimeout: '${ .t }'}\n  onEvents: [{eventRefs: [e]}]\n  end: true\n", SL_ESCHEMA, 6, 3, "cannot be an expression");
}

/* --- what is not there yet --- */
static void expect_unsupported(const char *text, const char *want)
{
	struct lowered l = lower(text);
	cr_assert_eq(l.rc, SL_EUNSUPPORTED, "%s: %s", sl_err_name(l.rc), sl_diags_first(&l.diags));
	const struct sl_diag *d = diag_at(&l, 0);
	char place[200];
	snprintf(place, sizeof(place), "not supported yet: %s (%d:%d)", want, d->loc.line, d->loc.col);
	cr_assert_str_eq(d->text, place);
	release(&l);
	l = lower_with(text, (struct sl_compile_options){.resources = &resources});
	cr_assert_eq(l.rc, SL_EUNSUPPORTED);
	cr_assert_eq(l.diags.error_count, 0, "without deploy it is a warning");
	cr_assert_gt(l.diags.warning_count, 0);
	release(&l);
}

Test(lower, what_is_not_there_yet_is_refused_by_name)
{
	expect_unsupported(HEAD "keepActive: true\n" SLEEP, "keepActive");
	expect_unsupported(HEAD "expressionLang: jsonata\n" SLEEP, "expression language jsonata");
	expect_unsupported(HEAD "dataInputSchema: s.json\n" SLEEP, "dataInputSchema");
	expect_unsupported(HEAD "dataOutputSchema: s.json\n" SLEEP, "dataOutputSchema");
	expect_unsupported(HEAD "start: {stateName: S, schedule: R/PT2H}\n" SLEEP, "schedule");
	expect_unsupported(HEAD "timeouts: {workflowExecTimeout: {duration: PT1H, runBefore: S}}\n" SLEEP, "runBefore");
	expect_unsupported(HEAD "functions: [{name: f, type: graphql, operation: 'u#query#x'}]\n" SLEEP, "functions of type graphql");
	expect_unsupported(HEAD "functions: [{name: f, type: expression, operation: ., authRef: a}]\n" SLEEP, "authRef");
	expect_unsupported(HEAD "states:\n- {name: S, type: sleep, duration: PT1S, end: {compensate: true}}\n", "compensation");
	expect_unsupported(HEAD "states:\n- {name: S, type: sleep, duration: PT1S, end: {continueAs: x}}\n", "continueAs");
	expect_unsupported(HEAD "states:\n- {name: S, type: sleep, duration: PT1S, end: true, compensatedBy: S}\n", "compensation");
	expect_unsupported(HEAD "states:\n- {name: S, type: operation, end: true, actions: [{subFlowRef: x}]}\n", "subFlowRef");
}

Test(lower, input_schema_of_an_event_start_is_ignored)
{
	struct lowered l = lower(HEAD "dataInputSchema: s.json\nevents: [{name: e, type: e, source: s}]\n"
		"states:\n- {name: S, type: event, end: true, onEvents: [{eventRefs: [e]}]}\n");
	cr_assert_eq(l.rc, 0, "A93: %s", sl_diags_first(&l.diags));
	release(&l);
}

/* --- service documents --- */
#define REST(operation) HEAD "functions:\n- name: f\n  operation: " operation "\n" SLEEP

Test(lower, documents_that_are_missing_or_lack_the_operation)
{
	expect_diag(REST("file://none.json#x"), SL_ESCHEMA, 6, 14, "OpenAPI document 'file://none.json' cannot be had: not found");
	expect_diag(REST("http://my.api.org/myapi.json#x"), SL_ESCHEMA, 6, 14, "has no operation 'x'; it has read, greeting");
	expect_diag(REST("http://my.api.org/myapi.json"), SL_ESCHEMA, 6, 14, "<URI of an OpenAPI document>#<operationId>");
}

Test(lower, documents_on_their_way_are_all_asked_for)
{
	struct lowered l = lower(HEAD "functions:\n- {name: a, operation: 'later1#x'}\n- {name: b, operation: 'later2#x'}\n" SLEEP);
	cr_assert_eq(l.rc, SL_EAGAIN);
	cr_assert_eq(l.diags.error_count, 0);
	release(&l);
	l = lower(HEAD "functions:\n- {name: a, operation: 'later1#x'}\nstart: T\n" SLEEP);
	cr_assert_eq(l.rc, SL_ESCHEMA, "an error stays one, whatever is still to come");
	release(&l);
}

Test(lower, without_resources_documents_are_checked_at_deploy)
{
	struct lowered l = lower_with(REST("http://my.api.org/myapi.json#x"), (struct sl_compile_options){0});
	cr_assert_eq(l.rc, 0);
	cr_assert(strstr(diag_at(&l, 0)->text, "checked at deploy"));
	cr_assert_null(l.plan->functions[0].http.url);
	release(&l);
}

Test(lower, mocked_functions_need_no_document)
{
	static const char *const texts[] = {REST("file://none.json#x"), REST("http://my.api.org/myapi.json#x"),
		HEAD "functions: [{name: f, type: custom, operation: /path/to/my/script/order.ts#myFunction}]\n" SLEEP};
	for (int i = 0; i < 3; i++) {
		struct lowered l = lower_with(texts[i], (struct sl_compile_options){.deploy = true, .mocked = true, .resources = &resources});
		cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
		cr_assert_eq(l.diags.warning_count, 1);
		cr_assert_null(l.plan->functions[0].http.url);
		release(&l);
	}
}

Test(lower, custom_functions_need_a_url)
{
	expect_unsupported(HEAD "functions: [{name: f, type: custom, operation: /path/order.ts#myFunction}]\n" SLEEP,
		"custom function '/path/order.ts#myFunction'; the form is \"METHOD http(s)://...\"");
	expect_unsupported(HEAD "functions: [{name: f, type: custom, operation: get https://h}]\n" SLEEP,
		"custom function 'get https://h'; the form is \"METHOD http(s)://...\"");
	expect_diag(HEAD "functions:\n- name: f\n  type: custom\n  operation: GET http://h/{x\n" SLEEP, SL_ESCHEMA, 7, 14, "unclosed brace");
	expect_diag(HEAD "functions:\n- name: f\n  type: custom\n  operation: GET http://h\n  metadata:\n    headers:\n      A: \"b\\r\\nC: d\"\n" SLEEP,
		SL_ESCHEMA, 10, 10, "one line of text");
}

Test(lower, arguments_that_do_not_fit_the_call_are_warned_of)
{
	static const char api[] = HEAD "functions:\n- {name: f, type: custom, operation: 'GET http://h/{id}/{part}'}\n"
		"- {name: g, operation: 'http://my.api.org/myapi.json#greeting'}\n"
		"states:\n- {name: S, type: operation, end: true, actions: [{functionRef: {refName: f, arguments: {id: 1, q: 2}}}, {functionRef: g}]}\n";
	struct lowered l = lower(api);
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	cr_assert_eq(l.diags.warning_count, 1);
	cr_assert_str_eq(diag_at(&l, 0)->text, "function 'f' requires the argument 'part'");
	release(&l);
	l = lower(HEAD "functions: [{name: r, operation: 'http://my.api.org/myapi.json#read'}]\n"
		"states:\n- {name: S, type: operation, end: true, actions: [{functionRef: {refName: r, arguments: {id: 1, q: 2}}}]}\n");
	cr_assert_eq(l.rc, 0, "%s", sl_diags_first(&l.diags));
	cr_assert_eq(l.diags.warning_count, 1);
	cr_assert_str_eq(diag_at(&l, 0)->text, "argument 'q' is not sent: function 'r' has no such parameter and no body");
	release(&l);
}
