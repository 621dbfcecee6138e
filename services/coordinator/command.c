/* Commands: CloudEvents io.sluice.* on sluice.commands become inputs of instances; each is answered on sluice.lifecycle with
 * its `commandid`, the command's own id (design section 10; proto/README.md lists their data). What is refused here is
 * what the plans alone can tell; the rest the instance answers. */
#include <stdio.h>
#include <string.h>
#include "common/app/metrics.h"
#include "common/base/log.h"
#include "services/coordinator/road.h"

#define PREFIX "io.sluice."

bool command_is_deployment(jv ev)
{
	const char *type = sl_event_attr(ev, "type");
	return type && (strcmp(type, PREFIX "deploy") == 0 || strcmp(type, PREFIX "undeploy") == 0);
}

void command_answer(struct route_batch *batch, const struct answer *answer)
{
	struct sl_msg msg;
	char id[SL_UUID_TEXT];
	sl_id_derive((const char *const[]){"answer", answer->ns, answer->command_id}, 3, id);
	sl_msg_init(&msg, SL_MSG_ANSWER);
	msg.id = id;
	msg.ns = answer->ns;
	msg.command_id = answer->command_id;
	msg.instance = answer->subject;
	msg.ok = answer->ok;
	msg.reason = answer->reason;
	msg.data = answer->data;
	msg.time_ms = answer->time_ms; /* one id, one content: not our clock */
	sl_metric_add_l(SL_METRIC_commands_total, answer->ok ? "accepted" : "refused", 1);
	route_add_msg(batch, &msg);
}

struct command {
	struct route_batch *batch;
	const struct sl_record *rec;
	const char *id, *ns;
	jv data;
};

static void refuse(const struct command *cmd, const char *subject, const char *reason)
{
	command_answer(cmd->batch, &(struct answer){.ns = cmd->ns, .command_id = cmd->id, .subject = subject, .reason = reason,
		.data = jv_invalid(), .time_ms = cmd->rec->time_ms});
}

static void add_origin(const struct command *cmd, struct sl_msg *msg)
{
	msg->ns = cmd->ns;
	msg->command_id = cmd->id;
	msg->origin_topic = cmd->rec->topic;
	msg->origin_partition = cmd->rec->partition;
	msg->origin_offset = cmd->rec->offset;
	msg->time_ms = cmd->rec->time_ms;
}

/* The id of what a command does derives from the command's position (R3). */
static void derive(const struct command *cmd, char ret[static SL_UUID_TEXT])
{
	char partition[16], offset[24];
	snprintf(partition, sizeof(partition), "%d", (int)cmd->rec->partition);
	snprintf(offset, sizeof(offset), "%lld", (long long)cmd->rec->offset);
	sl_id_derive((const char *const[]){cmd->ns, cmd->rec->topic, partition, offset}, 4, ret);
}

static void start(const struct command *cmd)
{
	const struct sl_coordinator *co = cmd->batch->lane->co;
	struct sl_arena *arena = &cmd->batch->arena;
	const char *workflow = sl_json_str(cmd->data, "workflow"), *version = sl_json_str(cmd->data, "version");
	const char *chosen = sl_json_str(cmd->data, "instance");
	char derived[SL_UUID_TEXT];
	struct sl_msg msg;
	if (!workflow) {
		refuse(cmd, NULL, "data.workflow is missing");
		return;
	}
	if (chosen && !sl_user_id_valid(chosen)) {
		refuse(cmd, NULL, "data.instance must be 1 to 128 of A-Z a-z 0-9 _ -");
		return;
	}
	const struct sl_plan *plan = sl_plans_current(co->opt.plans, cmd->ns, workflow, version);
	if (!plan) {
		refuse(cmd, NULL, sl_arena_printf(arena, "unknown workflow: no active version %s%sof '%s' in namespace '%s'",
			version ? version : "", version ? " " : "", workflow, cmd->ns));
		return;
	}
	jv input = sl_json_get(cmd->data, "input");
	sl_msg_init(&msg, SL_MSG_START);
	add_origin(cmd, &msg);
	derive(cmd, derived);
	msg.id = sl_arena_str(arena, derived);
	msg.to = chosen ? chosen : msg.id;
	msg.workflow = plan->id;
	msg.version = plan->version;
	msg.plan = plan->hash;
	msg.data = input;
	route_add_msg(cmd->batch, &msg);
}

static void to_instance(const struct command *cmd, enum sl_msg_kind kind)
{
	const char *instance = sl_json_str(cmd->data, "instance");
	char derived[SL_UUID_TEXT];
	struct sl_msg msg;
	if (!instance || !*instance || strlen(instance) > SL_HOME_MAX || sl_id_is_mailbox(instance)) {
		refuse(cmd, NULL, "data.instance is missing or no instance id");
		return;
	}
	sl_msg_init(&msg, kind);
	add_origin(cmd, &msg);
	derive(cmd, derived);
	msg.id = sl_arena_str(&cmd->batch->arena, derived);
	msg.to = instance;
	msg.reason = sl_json_str(cmd->data, "reason");
	route_add_msg(cmd->batch, &msg);
}

void command_route(struct route_batch *batch, jv ev, const struct sl_record *rec)
{
	static const struct { const char *name; enum sl_msg_kind kind; } kinds[] = {
		{"cancel", SL_MSG_CANCEL}, {"retry", SL_MSG_RETRY}, {"purge", SL_MSG_PURGE}, {"suspend", SL_MSG_SUSPEND},
		{"resume", SL_MSG_RESUME}};
	const char *type = sl_event_attr(ev, "type"), *ns;
	struct command cmd = {.batch = batch, .rec = rec, .id = sl_event_attr(ev, "id"), .data = sl_event_data(ev)};
	ns = sl_json_str(cmd.data, "namespace");
	cmd.ns = ns ? ns : "default";
	if (!sl_namespace_valid(cmd.ns)) {
		cmd.ns = "default";
		refuse(&cmd, NULL, "data.namespace must be 1 to 63 of a-z 0-9 -");
	} else if (strncmp(type, PREFIX, strlen(PREFIX)) != 0) {
		refuse(&cmd, NULL, "not a command: its type does not begin with " PREFIX);
	} else if (strcmp(type, PREFIX "start") == 0) {
		start(&cmd);
	} else {
		size_t i = 0, n = sizeof(kinds) / sizeof(kinds[0]);
		while (i < n && strcmp(type + strlen(PREFIX), kinds[i].name) != 0)
			i++;
		if (i < 3)
			to_instance(&cmd, kinds[i].kind);
		else if (i < n)
			refuse(&cmd, sl_json_str(cmd.data, "instance"), "not supported yet: suspend and resume");
		else
			refuse(&cmd, NULL, sl_arena_printf(&batch->arena, "unknown command '%s'", type));
	}
	jv_free(cmd.data);
	jv_free(ev);
}
