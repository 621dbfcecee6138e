/* Deployments (design sections 4 and 5): a definition is resolved once, here; it is "deployed" when its records are delivered,
 * we have read them back, and sluice:defs is raised to their offset, so that every coordinator reads them before it
 * routes or steps anything that came later. Only this partition of sluice.commands waits meanwhile. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/text.h"
#include "services/coordinator/road.h"

enum deploy_stage { COMPILE, FETCHING, PRODUCE, PRODUCING, READ_BACK, RAISING, FINISHED };

struct deploy {
	struct route_lane *lane;
	struct route_batch *batch;
	struct sl_arena arena;
	enum deploy_stage stage;
	bool undeploy;
	const char *ns, *command_id;
	int64_t time_ms;                /* of the command's record */
	jv data, resources;             /* resources: uri -> text */
	jv wanted;                      /* uris to fetch */
	struct sl_http_handle *fetch;
	char *fetching;
	struct sl_plan *plan;
	const char *workflow, *version, *hash;
	struct sl_record records[2];
	int record_count, sent, waiting;
	bool ok;
	const char *reason;
};

/* The lane lives until what it waits for has come (out), or until the process of this coordinator ends. */
void deploy_free(struct deploy *d)
{
	if (d->fetch)
		d->lane->co->opt.caller->ops->cancel(d->lane->co->opt.caller, d->fetch);
	jv_free(d->data);
	jv_free(d->resources);
	jv_free(d->wanted);
	sl_plan_unref(d->plan);
	free(d->fetching);
	sl_arena_release(&d->arena);
	free(d);
}

static void answered(struct deploy *d)
{
	d->lane->out--;
	co_wake(d->lane->co);
}

static void finish(struct deploy *d, bool ok, const char *reason)
{
	d->ok = ok;
	d->reason = reason ? sl_arena_str(&d->arena, reason) : NULL;
	d->stage = FINISHED;
}

/* --- resources --- */

static int get_resource(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	struct deploy *d = arg;
	jv text = sl_json_get(d->resources, uri);
	if (jv_get_kind(text) == JV_KIND_STRING) {
		*ret_len = (size_t)jv_string_length_bytes(jv_copy(text));
		*ret = malloc(*ret_len + 1);
		sl_assert(*ret);
		memcpy(*ret, jv_string_value(text), *ret_len + 1);
		jv_free(text);
		return 0;
	}
	jv_free(text);
	if (strncmp(uri, "http://", 7) != 0 && strncmp(uri, "https://", 8) != 0)
		return sl_diag_error(diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "resource '%s' did not come with the deployment", uri);
	bool allowed = false;
	for (const char *const *glob = d->lane->co->opt.resources_allow; glob && *glob; glob++)
		allowed = allowed || sl_glob(*glob, uri);
	if (!allowed || !d->lane->co->opt.caller)
		return sl_diag_error(diags, SL_EREFUSED, SL_NOWHERE, NULL,
			"resource '%s' may not be fetched (deploy.resources_allow names what may)", uri);
	d->wanted = jv_array_append(d->wanted, jv_string(uri));
	return SL_EAGAIN;
}

static void fetched(void *arg, const struct sl_http_answer *answer)
{
	struct deploy *d = arg;
	d->fetch = NULL;
	if (answer->err || answer->status < 200 || answer->status > 299) {
		finish(d, false, sl_arena_printf(&d->arena, "resource '%s': %s", d->fetching,
			answer->err ? (answer->text ? answer->text : sl_err_text(answer->err))
				    : sl_arena_printf(&d->arena, "HTTP status %d", answer->status)));
	} else if (!sl_utf8_valid(answer->body.ptr ? answer->body.ptr : "", answer->body.len)) {
		finish(d, false, sl_arena_printf(&d->arena, "resource '%s' is not UTF-8 text", d->fetching));
	} else {
		jv text = jv_string_sized(answer->body.ptr ? answer->body.ptr : "", (int)answer->body.len);
		d->resources = sl_json_set(d->resources, d->fetching, text);
		d->stage = COMPILE;
	}
	answered(d);
}

static void fetch_next(struct deploy *d)
{
	struct sl_caller *caller = d->lane->co->opt.caller;
	jv uri = jv_array_get(jv_copy(d->wanted), 0);
	static const char *const headers[] = {"Accept: application/json, application/yaml, */*", NULL};
	free(d->fetching);
	d->fetching = strdup(jv_string_value(uri));
	sl_assert(d->fetching);
	jv_free(uri);
	jv_free(d->wanted);
	d->wanted = jv_array();
	struct sl_http_request req = {.method = "GET", .url = d->fetching, .headers = headers, .timeout_ms = 10000,
		.answer_bytes_max = 4 * 1024 * 1024};
	d->stage = FETCHING;
	d->lane->out++;
	d->fetch = caller->ops->call(caller, &req, fetched, d);
	if (!d->fetch) {
		d->lane->out--;
		finish(d, false, sl_arena_printf(&d->arena, "resource '%s' cannot be fetched", d->fetching));
	}
}

/* --- compile and check --- */

static const char *diags_text(struct deploy *d, struct sl_diags *diags, const char *source)
{
	struct sl_buf out;
	(void)source;
	sl_buf_init(&out);
	sl_diags_sort(diags);
	sl_diags_print(diags, &out, NULL);
	while (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	const char *text = sl_arena_str(&d->arena, out.data ? out.data : "");
	sl_buf_release(&out);
	return text;
}

/* The same version with other content is refused (design section 4). */
static bool may_deploy(struct deploy *d)
{
	const struct sl_plans *plans = d->lane->co->opt.plans;
	bool active = false;
	const char *known = sl_plans_pointer(plans, d->ns, d->workflow, d->version, &active);
	if (known && strcmp(known, d->hash) != 0) {
		finish(d, false, sl_arena_printf(&d->arena,
			"version %s of '%s' is deployed already with other content: give the new one another version", d->version,
			d->workflow));
		return false;
	}
	if (known && active) {
		finish(d, true, "unchanged");
		return false;
	}
	return true;
}

static void compile(struct deploy *d)
{
	const char *text = sl_json_str(d->data, "definition"), *dialect = sl_json_str(d->data, "dialect");
	struct sl_resources resources = {.get = get_resource, .arg = d};
	struct sl_compile_options opt = {.deploy = true, .resources = &resources, .file = sl_json_str(d->data, "file"),
		.lenient = sl_json_bool(d->data, "lenient", false)};
	struct sl_diags diags;
	if (!text) {
		finish(d, false, "data.definition is missing: the text of the definition");
		return;
	}
	if (dialect && sl_dialect_of(dialect, &opt.dialect)) {
		finish(d, false, sl_arena_printf(&d->arena, "unknown dialect '%s'", dialect));
		return;
	}
	sl_diags_init(&diags);
	int err = sl_compile(text, strlen(text), &opt, &d->plan, &diags);
	if (err == SL_EAGAIN && jv_array_length(jv_copy(d->wanted)) > 0)
		fetch_next(d);
	else if (err || !d->plan)
		finish(d, false, diags_text(d, &diags, text));
	sl_diags_release(&diags);
	if (d->stage != COMPILE)
		return;
	d->workflow = d->plan->id;
	d->version = d->plan->version;
	d->hash = d->plan->hash;
	if (may_deploy(d))
		d->stage = PRODUCE;
}

static void check_undeploy(struct deploy *d)
{
	const char *workflow = sl_json_str(d->data, "workflow"), *version = sl_json_str(d->data, "version");
	const struct sl_plan *plan = workflow ? sl_plans_current(d->lane->co->opt.plans, d->ns, workflow, version) : NULL;
	if (!plan) {
		finish(d, false, workflow ? sl_arena_printf(&d->arena, "no active version %s%sof '%s'", version ? version : "",
						    version ? " " : "", workflow)
					  : "data.workflow is missing");
		return;
	}
	d->workflow = sl_arena_str(&d->arena, plan->id);
	d->version = sl_arena_str(&d->arena, plan->version);
	d->hash = sl_arena_str(&d->arena, plan->hash);
	d->stage = PRODUCE;
}

/* --- records, read back, raise --- */

static void delivered(void *arg, int err)
{
	struct deploy *d = arg;
	d->waiting--;
	if (err && d->stage != FINISHED)
		finish(d, false, sl_arena_printf(&d->arena, "Kafka refused the definition: %s", sl_err_text(err)));
	answered(d);
}

static void make_records(struct deploy *d)
{
	const char *topic = d->lane->co->opt.topics->definitions;
	d->record_count = 0;
	if (!d->undeploy) {
		const char *text = sl_json_str(d->data, "definition");
		struct sl_definition def = {.ns = d->ns, .id = d->workflow, .version = d->version, .hash = d->hash,
			.dialect = d->plan->dialect, .file = sl_json_str(d->data, "file"),
			.lenient = sl_json_bool(d->data, "lenient", false), .text = text, .len = strlen(text),
			.resources = d->resources};
		if (sl_definition_record(&def, &d->arena, &d->records[d->record_count++])) {
			finish(d, false, "the definition is not UTF-8 text");
			return;
		}
	}
	sl_pointer_record(d->ns, d->workflow, d->version, d->hash, !d->undeploy, &d->arena, &d->records[d->record_count++]);
	for (int i = 0; i < d->record_count; i++) {
		d->records[i].topic = topic;
		d->records[i].partition = 0;
	}
	d->stage = PRODUCING;
}

static void produce(struct deploy *d)
{
	struct sl_broker *broker = d->lane->co->opt.broker;
	while (d->sent < d->record_count) {
		if (broker->ops->produce(broker, &d->records[d->sent], delivered, d))
			return;
		d->sent++;
		d->waiting++;
		d->lane->out++;
	}
	if (!d->waiting)
		d->stage = READ_BACK;
}

static void raised(void *arg, int err, const char *text)
{
	struct deploy *d = arg;
	if (d->stage == RAISING && err)
		d->stage = READ_BACK; /* again */
	else if (d->stage == RAISING)
		finish(d, true, NULL);
	(void)text;
	answered(d);
}

static void read_back(struct deploy *d)
{
	struct sl_coordinator *co = d->lane->co;
	bool active = d->undeploy;
	const char *hash = sl_plans_pointer(co->opt.plans, d->ns, d->workflow, d->version, &active);
	if (!hash || strcmp(hash, d->hash) != 0 || active == d->undeploy)
		return; /* not read yet */
	char name[16], value[24];
	snprintf(name, sizeof(name), "%d", (int)d->lane->partition);
	snprintf(value, sizeof(value), "%" PRId64, sl_definitions_offset(co->opt.definitions));
	/* one field per partition of sluice.commands: each has one writer and only rises; readers take the highest */
	struct sl_op op = {.kind = SL_OP_HSET, .key = "defs", .field = name, .value = {value, strlen(value)}};
	d->stage = RAISING;
	d->lane->out++;
	co->opt.store->ops->write(co->opt.store, &op, 1, raised, d);
}

struct deploy *deploy_new(struct route_lane *lane, struct route_batch *batch, jv ev, int64_t time_ms)
{
	struct deploy *d = calloc(1, sizeof(*d));
	sl_assert(d);
	d->lane = lane;
	d->batch = batch;
	d->time_ms = time_ms;
	sl_arena_init(&d->arena);
	d->undeploy = strcmp(sl_event_attr(ev, "type"), "io.sluice.undeploy") == 0;
	d->command_id = sl_arena_str(&d->arena, sl_event_attr(ev, "id"));
	d->data = sl_event_data(ev);
	jv_free(ev);
	const char *ns = sl_json_str(d->data, "namespace");
	d->ns = sl_arena_str(&d->arena, ns ? ns : "default");
	jv given = sl_json_get(d->data, "resources");
	d->resources = jv_get_kind(given) == JV_KIND_OBJECT ? jv_copy(given) : jv_object();
	jv_free(given);
	d->wanted = jv_array();
	d->stage = COMPILE;
	if (!sl_namespace_valid(d->ns))
		finish(d, false, "data.namespace must be 1 to 63 of a-z 0-9 -");
	co_wake(lane->co);
	return d;
}

static void answer(struct deploy *d)
{
	jv data = jv_object();
	if (d->workflow)
		data = sl_json_set(data, "workflow", jv_string(d->workflow));
	if (d->version)
		data = sl_json_set(data, "version", jv_string(d->version));
	if (d->hash)
		data = sl_json_set(data, "hash", jv_string(d->hash));
	command_answer(d->batch, &(struct answer){.ns = d->ns, .command_id = d->command_id, .subject = d->workflow, .ok = d->ok,
		.reason = d->reason, .data = data, .time_ms = d->time_ms});
	sl_log(d->ok ? SL_INFO : SL_WARN, "%s %s %s/%s: %s", d->undeploy ? "undeploy" : "deploy", d->ns,
		d->workflow ? d->workflow : "?", d->version ? d->version : "?", d->reason ? d->reason : "done");
}

bool deploy_turn(struct deploy *d)
{
	if (d->stage == COMPILE) {
		if (d->undeploy)
			check_undeploy(d);
		else
			compile(d);
	}
	if (d->stage == PRODUCE)
		make_records(d);
	if (d->stage == PRODUCING)
		produce(d);
	if (d->stage == READ_BACK)
		read_back(d);
	if (d->stage != FINISHED || d->waiting)
		return false;
	answer(d);
	return true;
}
