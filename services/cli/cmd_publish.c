/* sluice publish: CloudEvents to an event topic. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/text.h"
#include "common/codec/codec.h"
#include "services/cli/cli.h"
#include "services/cli/files.h"
#include "services/cli/remote.h"

struct event {
	const char *type, *source, *id, *subject, *data, *file, *topic, *mode;
};

static jv fill(jv ev, const char *name, const char *value)
{
	jv has = sl_json_get(ev, name);
	if (!jv_is_valid(has) && value)
		ev = sl_json_set(ev, name, jv_string(value));
	jv_free(has);
	return ev;
}

/* From --file or from the options; words are further attributes NAME=VALUE. False: a message was printed. */
static bool make_event(const struct event *e, const char *const *words, jv *ret)
{
	struct sl_diags diags;
	char *text = NULL, when[32], id[SL_UUID_TEXT], now[40];
	size_t len = 0;
	jv ev = jv_object(), data;
	int err = 0;
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(now, sizeof(now), "%lld.%09ld", (long long)ts.tv_sec, ts.tv_nsec);
	sl_id_derive((const char *const[]){"publish", now}, 2, id);
	sl_time_format((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000, when);
	sl_diags_init(&diags);
	if (e->file) {
		jv_free(ev);
		ev = jv_null();
		err = sl_file_read(e->file, 64 * 1024 * 1024, &text, &len, &diags);
		if (!err)
			err = sl_json_parse(text, len, NULL, &ev, &diags);
		if (!err && jv_get_kind(ev) != JV_KIND_OBJECT)
			err = sl_diag_error(&diags, SL_ESCHEMA, SL_NOWHERE, NULL, "an event is a JSON object");
	} else if (e->data) {
		err = sl_json_parse(e->data, strlen(e->data), NULL, &data, &diags);
		if (!err)
			ev = sl_json_set(sl_json_set(ev, "data", data), "datacontenttype", jv_string("application/json"));
	}
	for (int i = 0; !err && words[i]; i++) {
		const char *equals = strchr(words[i], '=');
		if (!equals)
			err = sl_diag_error(&diags, SL_EINVAL, SL_NOWHERE, NULL, "'%s' is no NAME=VALUE", words[i]);
		else
			ev = jv_object_set(ev, jv_string_sized(words[i], (int)(equals - words[i])), jv_string(equals + 1));
	}
	if (!err) {
		ev = fill(ev, "specversion", "1.0");
		ev = fill(ev, "type", e->type);
		ev = fill(ev, "source", e->source ? e->source : "sluice-cli");
		ev = fill(ev, "id", e->id ? e->id : id);
		ev = fill(ev, "subject", e->subject);
		ev = fill(ev, "time", when);
		err = sl_event_check(ev, ret, &diags);
	} else {
		jv_free(ev);
	}
	if (err)
		sl_cli_usage(&sl_cmd_publish, "%s", sl_diags_first(&diags));
	sl_diags_release(&diags);
	free(text);
	return !err;
}

static const char *topic_of(const struct sl_remote *remote, const struct event *e)
{
	return e->topic ? e->topic : sl_topics_publish(&remote->topics, remote->ns);
}

static int publish(struct sl_remote *remote, const struct event *e, jv ev)
{
	enum sl_event_mode mode = !e->mode || strcmp(e->mode, "structured") == 0 ? SL_EVENT_STRUCTURED
				  : strcmp(e->mode, "binary") == 0		 ? SL_EVENT_BINARY
										 : SL_EVENT_AVRO;
	const char *id = sl_event_attr(ev, "id");
	struct sl_record rec = {.topic = topic_of(remote, e), .partition = -1, .key = {id, strlen(id)}};
	int32_t partitions;
	int code = sl_remote_partitions(remote, rec.topic, &partitions);
	if (code == SL_EXIT_OK && sl_event_encode(ev, mode, &remote->arena, &rec) == 0)
		code = sl_remote_produce(remote, &rec);
	if (code == SL_EXIT_OK && sl_cli_json())
		sl_cli_print_json(jv_copy(ev));
	else if (code == SL_EXIT_OK)
		printf("published %s id %s to %s\n", sl_event_attr(ev, "type"), id, rec.topic);
	return code;
}

static int run_publish(int argc, char **argv)
{
	const char *output = NULL, *ns = NULL;
	struct event e = {0};
	const struct sl_cli_option options[] = {{"output", &output, NULL, NULL}, {"namespace", &ns, NULL, NULL},
		{"type", &e.type, NULL, NULL}, {"source", &e.source, NULL, NULL}, {"id", &e.id, NULL, NULL},
		{"subject", &e.subject, NULL, NULL}, {"data", &e.data, NULL, NULL}, {"file", &e.file, NULL, NULL},
		{"topic", &e.topic, NULL, NULL}, {"mode", &e.mode, NULL, NULL}, {NULL, NULL, NULL, NULL}};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct sl_remote remote;
	int count, rest_count, code;
	jv ev;
	if (!sl_cli_parse(&sl_cmd_publish, argc, argv, options, words, &count, rest, &rest_count))
		code = SL_EXIT_USAGE;
	else if (!sl_cli_output(output))
		code = sl_cli_usage(&sl_cmd_publish, "--output is text or json");
	else if (!e.type && !e.file)
		code = sl_cli_usage(&sl_cmd_publish, "--type or --file is needed");
	else if (e.mode && strcmp(e.mode, "structured") != 0 && strcmp(e.mode, "binary") != 0 && strcmp(e.mode, "avro") != 0)
		code = sl_cli_usage(&sl_cmd_publish, "--mode is structured, binary or avro");
	else if (!make_event(&e, words, &ev))
		code = SL_EXIT_USAGE;
	else {
		code = sl_remote_open(&remote, &sl_cmd_publish, SL_REMOTE_KAFKA, ns, rest, rest_count);
		if (code == SL_EXIT_OK) {
			code = publish(&remote, &e, ev);
			sl_remote_close(&remote);
		}
		jv_free(ev);
	}
	free(rest);
	free(words);
	return code;
}

const struct sl_cli_command sl_cmd_publish = {
	.name = "publish",
	.usage = "--type TYPE [--source S] [--id ID] [--data JSON] [NAME=VALUE...] | --file EVENT.json",
	.summary = "publish a CloudEvent",
	.help = "  --type, --source, --id, --subject   attributes; id and time are made, source is sluice-cli\n"
		"  --data JSON     the payload\n"
		"  NAME=VALUE      further attributes, such as orderid=7\n"
		"  --file FILE     a whole event in JSON format (- is standard input); the rest fills in what it lacks\n"
		"  --mode M        structured (default), binary or avro\n"
		"  --topic T       default: the first topic of the namespace\n"
		"  --namespace NS  default: default\n",
	.run = run_publish,
};
