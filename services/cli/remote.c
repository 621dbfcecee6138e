/* A connection of the CLI to a running Sluice. */
#include "services/cli/remote.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/codec/codec.h"
#include "services/common/connect.h"

#define ANSWER_MS 30000
#define REDIS_MS 5000
#define KAFKA_MS 8000

extern char **environ;

static void on_timer(uv_timer_t *handle)
{
	((struct sl_remote *)handle->data)->timed_out = true;
}

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static void sleep_a_little(struct sl_remote *remote)
{
	bool never = false;
	sl_remote_wait(remote, &never, 10);
}

int sl_remote_open(struct sl_remote *remote, const struct sl_cli_command *cmd, int what, const char *ns, char **rest, int rest_count)
{
	struct sl_diags diags;
	int code = SL_EXIT_OK;
	char **argv = calloc((size_t)rest_count + 2, sizeof(*argv));
	sl_assert(argv);
	argv[0] = (char *)"sluice";
	for (int i = 0; i < rest_count; i++)
		argv[i + 1] = rest[i];
	memset(remote, 0, sizeof(*remote));
	sl_diags_init(&diags);
	sl_config_init(&remote->cfg);
	sl_arena_init(&remote->arena);
	remote->ns = ns ? ns : "default";
	int err = sl_config_load(&remote->cfg, rest_count + 1, argv, environ, false, &diags);
	free(argv);
	sl_log_set_level(SL_ERROR);
	uv_loop_init(&remote->loop);
	uv_timer_init(&remote->loop, &remote->timer);
	remote->timer.data = remote;
	if (!err && !sl_namespace_valid(remote->ns)) {
		code = sl_cli_usage(cmd, "--namespace must be 1 to 63 of a-z 0-9 -");
	} else if (!err) {
		sl_connect_topics(&remote->cfg, &remote->arena, &remote->topics);
		if (what & SL_REMOTE_KAFKA && !(remote->broker = sl_connect_kafka(&remote->cfg, &remote->loop, NULL, &diags)))
			err = SL_ECONFIG;
		if (!err && what & SL_REMOTE_REDIS && !(remote->store = sl_connect_redis(&remote->cfg, &remote->loop, NULL, &diags)))
			err = SL_ECONFIG;
	}
	if (err) {
		struct sl_buf text;
		sl_buf_init(&text);
		sl_diags_print(&diags, &text, NULL);
		fprintf(stderr, "sluice %s: %s", cmd->name, text.data ? text.data : "configuration error\n");
		sl_buf_release(&text);
		code = SL_EXIT_USAGE;
	}
	sl_diags_release(&diags);
	for (int i = 0; remote->store && code == SL_EXIT_OK && i < REDIS_MS / 10 && !sl_connect_redis_up(remote->store); i++)
		sleep_a_little(remote);
	if (code == SL_EXIT_OK && remote->store && !sl_connect_redis_up(remote->store))
		code = sl_remote_unreachable(remote, "Redis");
	if (code != SL_EXIT_OK)
		sl_remote_close(remote);
	return code;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void sl_remote_close(struct sl_remote *remote)
{
	if (remote->broker)
		remote->broker->ops->close(remote->broker, 1000);
	if (remote->store)
		remote->store->ops->close(remote->store);
	uv_close((uv_handle_t *)&remote->timer, NULL);
	uv_run(&remote->loop, UV_RUN_NOWAIT);
	uv_walk(&remote->loop, close_handle, NULL);
	uv_run(&remote->loop, UV_RUN_DEFAULT);
	uv_loop_close(&remote->loop);
	sl_arena_release(&remote->arena);
	sl_config_release(&remote->cfg);
}

bool sl_remote_wait(struct sl_remote *remote, const bool *done, int64_t timeout_ms)
{
	remote->timed_out = false;
	uv_timer_start(&remote->timer, on_timer, (uint64_t)timeout_ms, 0);
	while (!*done && !remote->timed_out)
		uv_run(&remote->loop, UV_RUN_ONCE);
	uv_timer_stop(&remote->timer);
	return *done;
}

int sl_remote_unreachable(const struct sl_remote *remote, const char *what)
{
	bool kafka = strcmp(what, "Kafka") == 0;
	fprintf(stderr, "sluice: cannot reach %s at %s (set %s)\n", what, kafka ? remote->cfg.kafka_brokers : remote->cfg.redis_url,
		kafka ? "SLUICE_KAFKA_BROKERS or --kafka.brokers" : "SLUICE_REDIS_URL or --redis.url");
	return SL_EXIT_UNREACHABLE;
}

/* --- Kafka --- */

int sl_remote_partitions(struct sl_remote *remote, const char *topic, int32_t *ret)
{
	uint64_t until = now_ms() + KAFKA_MS; /* by the clock: one question may take a second */
	int err;
	while ((err = remote->broker->ops->partitions(remote->broker, topic, ret)) != 0 && now_ms() < until) {
		if (err == SL_ENOTFOUND) {
			fprintf(stderr, "sluice: topic %s does not exist (sluice topics create)\n", topic);
			return SL_EXIT_UNREACHABLE;
		}
		sleep_a_little(remote);
	}
	return err ? sl_remote_unreachable(remote, "Kafka") : SL_EXIT_OK;
}

struct delivery { bool done; int err; };
static void delivered(void *arg, int err)
{
	*(struct delivery *)arg = (struct delivery){true, err};
}

int sl_remote_produce(struct sl_remote *remote, const struct sl_record *rec)
{
	struct delivery *delivery = SL_NEW(&remote->arena, struct delivery); /* outlives a time-out */
	int err = remote->broker->ops->produce(remote->broker, rec, delivered, delivery);
	remote->broker->ops->kick(remote->broker);
	if (!err && !sl_remote_wait(remote, &delivery->done, KAFKA_MS))
		return sl_remote_unreachable(remote, "Kafka");
	if (err || delivery->err) {
		fprintf(stderr, "sluice: Kafka did not take the record: %s\n", sl_err_text(err ? err : delivery->err));
		return SL_EXIT_WRONG;
	}
	return SL_EXIT_OK;
}

struct reading {
	struct sl_remote *remote;
	const struct sl_remote_read *read;
	int32_t count;
	int64_t *end;                   /* per partition: stop there unless following */
	int64_t *next;
	int assigned;
	bool changed, fatal;
};

static void read_assigned(void *arg, const char *topic, int32_t partition)
{
	struct reading *r = arg;
	(void)topic, (void)partition;
	r->assigned++;
	r->changed = true;
}

static void read_revoked(void *arg, const char *topic, int32_t partition)
{
	(void)arg, (void)topic, (void)partition;
}

static void read_readable(void *arg)
{
	((struct reading *)arg)->changed = true;
}

static void read_fatal(void *arg, int err, const char *text)
{
	struct reading *r = arg;
	fprintf(stderr, "sluice: %s: %s\n", sl_err_name(err), text);
	r->fatal = r->changed = true;
}

static bool at_end(const struct reading *r)
{
	for (int32_t p = 0; p < r->count; p++)
		if (r->next[p] < r->end[p])
			return false;
	return true;
}

static int read_begin(struct reading *r, struct sl_consumer *con)
{
	struct sl_remote *remote = r->remote;
	for (uint64_t until = now_ms() + KAFKA_MS; now_ms() < until && r->assigned < r->count;)
		sleep_a_little(remote);
	for (int32_t p = 0; p < r->count; p++) {
		int64_t low, high;
		if (remote->broker->ops->watermarks(remote->broker, r->read->topic, p, &low, &high))
			return sl_remote_unreachable(remote, "Kafka");
		r->next[p] = r->read->from_end ? high : low;
		r->end[p] = high;
		remote->broker->ops->start(con, r->read->topic, p, r->next[p]);
	}
	return SL_EXIT_OK;
}

/* Polls until enough, the end, or the time is over. */
static void read_on(struct reading *r, struct sl_consumer *con, bool *ret_enough)
{
	struct sl_remote *remote = r->remote;
	uint64_t until = r->read->timeout_ms ? now_ms() + (uint64_t)r->read->timeout_ms : UINT64_MAX;
	while (!r->fatal && !*ret_enough && (r->read->follow || !at_end(r)) && now_ms() < until) {
		struct sl_record rec;
		void *handle;
		r->changed = false;
		while (!*ret_enough && remote->broker->ops->poll(con, &rec, &handle)) {
			r->next[rec.partition] = rec.offset + 1;
			if (r->read->follow || rec.offset < r->end[rec.partition])
				*ret_enough = !r->read->visit(r->read->arg, &rec);
			remote->broker->ops->release(con, handle);
		}
		if (!*ret_enough)
			sl_remote_wait(remote, &r->changed, 50);
	}
}

int sl_remote_read(struct sl_remote *remote, const struct sl_remote_read *read, bool *ret_enough)
{
	struct reading r = {.remote = remote, .read = read};
	struct sl_consumer *con;
	*ret_enough = false;
	int code = sl_remote_partitions(remote, read->topic, &r.count);
	if (code != SL_EXIT_OK)
		return code;
	r.end = SL_NEWN(&remote->arena, int64_t, r.count);
	r.next = SL_NEWN(&remote->arena, int64_t, r.count);
	struct sl_consumer_options opt = {.topics = &read->topic, .topic_count = 1,
		.events = {&r, read_assigned, read_revoked, read_readable, read_fatal}};
	if (remote->broker->ops->consumer_new(remote->broker, &opt, &con))
		return sl_remote_unreachable(remote, "Kafka");
	code = read_begin(&r, con);
	if (code == SL_EXIT_OK && read->begin)
		code = read->begin(read->arg);
	if (code == SL_EXIT_OK)
		read_on(&r, con, ret_enough);
	remote->broker->ops->consumer_close(con);
	return r.fatal ? SL_EXIT_UNREACHABLE : code;
}

/* --- commands --- */

struct command {
	struct sl_remote *remote;
	const char *id;
	struct sl_record rec;
	jv answer;                      /* data */
	const struct sl_remote_until *until;
};

static int command_begin(void *arg)
{
	struct command *cmd = arg;
	return sl_remote_produce(cmd->remote, &cmd->rec);
}

static bool command_visit(void *arg, const struct sl_record *rec)
{
	struct command *cmd = arg;
	bool enough = false;
	jv ev;
	if (sl_event_decode(rec, &sl_json_default, &ev, NULL))
		return true;
	const char *id = sl_event_attr(ev, "commandid"), *type = sl_event_attr(ev, "type");
	if (type && strcmp(type, "io.sluice.answer") == 0 && id && strcmp(id, cmd->id) == 0 && !jv_is_valid(cmd->answer)) {
		jv_free(cmd->answer);
		cmd->answer = sl_event_data(ev);
		enough = !cmd->until || !sl_json_bool(cmd->answer, "ok", false);
	}
	/* the end may overtake the answer: they are in different partitions */
	if (cmd->until && cmd->until->event(cmd->until->arg, ev))
		enough = true;
	jv_free(ev);
	return !enough;
}

static void make_id(char ret[static SL_UUID_TEXT])
{
	char host[256] = "", pid[16], time[32];
	gethostname(host, sizeof(host) - 1);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	snprintf(time, sizeof(time), "%" PRIu64, uv_hrtime());
	sl_id_derive((const char *const[]){"command", host, pid, time}, 4, ret);
}

int sl_remote_command(struct sl_remote *remote, const char *name, const char *key, jv data, const struct sl_remote_until *until,
	jv *ret_data)
{
	struct command cmd = {.remote = remote, .answer = jv_invalid(), .until = until};
	char id[SL_UUID_TEXT];
	bool enough;
	make_id(id);
	cmd.id = id;
	jv ev = sl_json_set(jv_object(), "specversion", jv_string("1.0"));
	ev = sl_json_set(ev, "id", jv_string(id));
	ev = sl_json_set(ev, "source", jv_string("sluice-cli"));
	ev = sl_json_set(ev, "type", jv_string_fmt("io.sluice.%s", name));
	ev = sl_json_set(ev, "datacontenttype", jv_string("application/json"));
	ev = sl_json_set(ev, "data", sl_json_set(data, "namespace", jv_string(remote->ns)));
	cmd.rec = (struct sl_record){.topic = remote->topics.commands, .partition = -1, .key = {key, strlen(key)}};
	int err = sl_event_encode(ev, SL_EVENT_STRUCTURED, &remote->arena, &cmd.rec);
	sl_assert(!err);
	jv_free(ev);
	struct sl_remote_read read = {.topic = remote->topics.lifecycle, .from_end = true, .follow = true,
		.timeout_ms = until && until->timeout_ms ? until->timeout_ms : ANSWER_MS, .begin = command_begin, .visit = command_visit,
		.arg = &cmd};
	int code = sl_remote_read(remote, &read, &enough);
	if (code == SL_EXIT_OK && !enough && !jv_is_valid(cmd.answer)) {
		fprintf(stderr, "sluice: no answer after %d s: does a coordinator run? The command stays in %s and will be carried out\n",
			(int)(read.timeout_ms / 1000), remote->topics.commands);
		code = SL_EXIT_UNREACHABLE;
	} else if (code == SL_EXIT_OK && jv_is_valid(cmd.answer) && !sl_json_bool(cmd.answer, "ok", false)) {
		const char *reason = sl_json_str(cmd.answer, "reason");
		if (!sl_cli_json())
			fprintf(stderr, "%srefused%s: %s\n", sl_cli_color("red"), sl_cli_color("off"), reason ? reason : "");
		code = SL_EXIT_WRONG;
	} else if (code == SL_EXIT_OK && !enough) {
		fprintf(stderr, "sluice: not ended after %d s\n", (int)(read.timeout_ms / 1000));
		code = SL_EXIT_WRONG;
	}
	if (ret_data)
		*ret_data = cmd.answer;
	else
		jv_free(cmd.answer);
	return code;
}

/* --- Redis --- */

struct answer { bool done; int err; jv value; };

static jv text_of(const struct sl_kv *kv)
{
	return jv_string_sized(kv->value, (int)kv->len);
}

static void on_load(void *arg, int err, const struct sl_hash *hashes, int count)
{
	struct answer *a = arg;
	a->done = true;
	a->err = err;
	jv fields = jv_object();
	for (int i = 0; count > 0 && i < hashes[0].count; i++)
		fields = sl_json_set(fields, hashes[0].fields[i].name, text_of(&hashes[0].fields[i]));
	jv_free(a->value);
	a->value = fields;
}

static void on_range(void *arg, int err, const struct sl_scored *items, int count)
{
	struct answer *a = arg;
	a->done = true;
	a->err = err;
	for (int i = 0; i < count; i++)
		a->value = jv_array_append(a->value,
			jv_array_append(jv_array_append(jv_array(), jv_string(items[i].member)), jv_number(items[i].score)));
}

static void on_stream(void *arg, int err, const struct sl_store_entry *items, int count)
{
	struct answer *a = arg;
	a->done = true;
	a->err = err;
	for (int i = 0; i < count; i++) {
		jv one = sl_json_set(jv_object(), "id", jv_string(items[i].id));
		for (int k = 0; k < items[i].fields->count; k++)
			one = sl_json_set(one, items[i].fields->fields[k].name, text_of(&items[i].fields->fields[k]));
		a->value = jv_array_append(a->value, one);
	}
}

static int answered(struct sl_remote *remote, struct answer *a, jv *ret)
{
	if (!sl_remote_wait(remote, &a->done, REDIS_MS) || a->err) {
		if (a->done)
			jv_free(a->value); /* else the late answer still writes into it */
		return sl_remote_unreachable(remote, "Redis");
	}
	*ret = a->value;
	return SL_EXIT_OK;
}

int sl_remote_load(struct sl_remote *remote, int32_t partition, const char *key, jv *ret)
{
	struct answer *a = SL_NEW(&remote->arena, struct answer);
	a->value = jv_null();
	remote->store->ops->load(remote->store, partition, &key, 1, on_load, a);
	return answered(remote, a, ret);
}

int sl_remote_range(struct sl_remote *remote, int32_t partition, const char *key, int max, jv *ret)
{
	struct answer *a = SL_NEW(&remote->arena, struct answer);
	a->value = jv_array();
	remote->store->ops->range(remote->store, partition, key, 0, 1e18, max, on_range, a);
	return answered(remote, a, ret);
}

int sl_remote_stream(struct sl_remote *remote, int32_t partition, const char *key, int max, jv *ret)
{
	struct answer *a = SL_NEW(&remote->arena, struct answer);
	a->value = jv_array();
	remote->store->ops->stream(remote->store, partition, key, max, on_stream, a);
	return answered(remote, a, ret);
}
