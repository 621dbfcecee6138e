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
	if (code == SL_EXIT_OK && remote->store && !sl_connect_redis_up(remote->store)) {
		int32_t ignored;
		code = sl_remote_unreachable(remote, "Redis");
		err = remote->broker ? remote->broker->ops->partitions(remote->broker, remote->topics.instances, &ignored) : 0;
		if (err && err != SL_ENOTFOUND)
			(void)sl_remote_unreachable(remote, "Kafka"); /* both, said at once */
	}
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

int sl_remote_topic(struct sl_remote *remote, const char *topic, int32_t *ret)
{
	uint64_t until = now_ms() + KAFKA_MS; /* by the clock: one question may take a second */
	int err;
	while ((err = remote->broker->ops->partitions(remote->broker, topic, ret)) != 0 && err != SL_ENOTFOUND && now_ms() < until)
		sleep_a_little(remote);
	return err;
}

/* What the services go by (services/common/layout.h), whatever was added to the topic. */
static int spread_over(struct sl_remote *remote, int32_t *ret)
{
	jv fields = jv_null();
	int64_t count;
	int code = sl_remote_load(remote, -1, "layout", &fields);
	if (code != SL_EXIT_OK)
		return code;
	const char *text = sl_json_str(fields, "instances");
	if (text && !sl_int_parse(text, &count) && count > 0 && count < *ret)
		*ret = (int32_t)count;
	jv_free(fields);
	return SL_EXIT_OK;
}

int sl_remote_partitions(struct sl_remote *remote, const char *topic, int32_t *ret)
{
	int err = sl_remote_topic(remote, topic, ret);
	if (err == SL_ENOTFOUND) {
		fprintf(stderr, "sluice: topic %s does not exist (sluice topics create)\n", topic);
		return SL_EXIT_UNREACHABLE;
	}
	if (err)
		return sl_remote_unreachable(remote, "Kafka");
	return remote->store && strcmp(topic, remote->topics.instances) == 0 ? spread_over(remote, ret) : SL_EXIT_OK;
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

static bool all_delivered(const struct delivery *deliveries, int count)
{
	for (int i = 0; i < count; i++)
		if (!deliveries[i].done)
			return false;
	return true;
}

int sl_remote_produce_all(struct sl_remote *remote, const struct sl_record *const *recs, int count, int *ret_errs)
{
	struct delivery *deliveries = SL_NEWN(&remote->arena, struct delivery, count); /* outlive a time-out */
	uint64_t until = now_ms() + KAFKA_MS;
	memset(deliveries, 0, sizeof(*deliveries) * (size_t)count);
	for (int i = 0; i < count; i++) {
		int err;
		while ((err = remote->broker->ops->produce(remote->broker, recs[i], delivered, &deliveries[i])) == SL_EAGAIN &&
			now_ms() < until)
			sleep_a_little(remote);
		if (err)
			deliveries[i] = (struct delivery){true, err};
	}
	remote->broker->ops->kick(remote->broker);
	while (!all_delivered(deliveries, count) && now_ms() < until)
		sleep_a_little(remote);
	bool all = all_delivered(deliveries, count);
	for (int i = 0; i < count; i++)
		ret_errs[i] = deliveries[i].done ? deliveries[i].err : SL_EUNREACHABLE;
	return all ? SL_EXIT_OK : sl_remote_unreachable(remote, "Kafka");
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
	struct sl_remote_at *at = r->read->at;
	for (int32_t p = 0; p < r->count; p++) {
		int64_t low, high;
		r->next[p] = r->end[p] = 0;
		if (at && at->partition != p)
			continue;
		if (remote->broker->ops->watermarks(remote->broker, r->read->topic, p, &low, &high))
			return sl_remote_unreachable(remote, "Kafka");
		r->next[p] = at ? at->offset : r->read->from_end ? high : low;
		r->end[p] = high;
		if (at) {
			at->low = low;
			at->high = high;
			if (at->offset < low || at->offset >= high) {
				r->end[p] = r->next[p]; /* not there: nothing to read */
				continue;
			}
		}
		remote->broker->ops->start(con, r->read->topic, p, r->next[p]);
	}
	return SL_EXIT_OK;
}

/* Polls until enough, the end, or the time is over: all in all, or without a record where the topic is read to its end. */
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
			if (!r->read->follow && r->read->timeout_ms)
				until = now_ms() + (uint64_t)r->read->timeout_ms;
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
	if (read->at)
		read->at->low = read->at->high = 0;
	int code = sl_remote_partitions(remote, read->topic, &r.count);
	if (code != SL_EXIT_OK)
		return code;
	r.end = SL_NEWN(&remote->arena, int64_t, r.count);
	r.next = SL_NEWN(&remote->arena, int64_t, r.count);
	struct sl_consumer_options opt = {.topics = &read->topic, .topic_count = 1,
		.events = {.arg = &r, .assigned = read_assigned, .revoked = read_revoked, .readable = read_readable, .fatal = read_fatal}};
	if (remote->broker->ops->consumer_new(remote->broker, &opt, &con))
		return sl_remote_unreachable(remote, "Kafka");
	code = read_begin(&r, con);
	if (code == SL_EXIT_OK && read->begin)
		code = read->begin(read->arg);
	if (code == SL_EXIT_OK)
		read_on(&r, con, ret_enough);
	if (code == SL_EXIT_OK && !read->follow && !*ret_enough && !r.fatal && !at_end(&r))
		code = sl_remote_unreachable(remote, "Kafka"); /* a part is not an answer */
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

/* What an instance answers is a code, for programs; people get a sentence that says what to do. What routers refuse are
 * sentences already. */
static const struct { const char *code, *text; } refusals[] = {
	{"unknown-instance", "there is no such instance in this namespace: it never started, was purged, or is past its retention "
		"(`sluice list` shows those there are, --namespace looks elsewhere)"},
	{"unknown-workflow", "there is no active version of that workflow in this namespace: `sluice deploy` it first"},
	{"exists", "an instance with this id is there already: choose another --id, or `sluice purge` that one when it has ended"},
	{"ended", "the instance has ended: there is nothing to end any more (`sluice show` tells how)"},
	{"running", "the instance has not ended: `sluice cancel` it first, or wait for its end"},
	{"not-faulted", "only a faulted instance can be retried, and this one has not faulted (`sluice show` tells its status)"},
	{"retrying", "a retry is under way already: `sluice show` tells what comes of it"},
	{"no-data", "the instance keeps nothing that it could go on with: start a new one"},
	{"claimed", "another instance of this workflow lives for the same correlation key: let it end, or `sluice cancel` it, "
		"then retry"},
	{"internal", "the command itself ended a process of Sluice and was given up: the dead letter has the reason "
		"(`sluice dead-letters list`)"},
	{"not-supported", "the coordinator that owns this instance does not know this command: it is older than this CLI"}};

static const char *refusal_text(const char *code)
{
	for (size_t i = 0; code && i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (strcmp(refusals[i].code, code) == 0)
			return refusals[i].text;
	return NULL;
}

/* Prints why; with --output json the answer gets the text beside its code. */
static jv refused(jv answer)
{
	const char *reason = sl_json_str(answer, "reason"), *text = refusal_text(reason);
	if (!sl_cli_json())
		fprintf(stderr, "%srefused%s: %s%s%s%s\n", sl_cli_color("red"), sl_cli_color("off"), text ? text : reason ? reason : "",
			text ? " [" : "", text ? reason : "", text ? "]" : "");
	else if (text)
		answer = sl_json_set(answer, "text", jv_string(text));
	return answer;
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
		cmd.answer = refused(cmd.answer);
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

static void on_written(void *arg, int err, const char *text)
{
	struct answer *a = arg;
	a->done = true;
	a->err = err;
	if (err)
		fprintf(stderr, "sluice: Redis: %s\n", text ? text : sl_err_text(err));
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

int sl_remote_write(struct sl_remote *remote, const struct sl_op *ops, int count)
{
	struct answer *a = SL_NEW(&remote->arena, struct answer);
	jv ignored;
	a->value = jv_null();
	remote->store->ops->write(remote->store, ops, count, on_written, a);
	return answered(remote, a, &ignored);
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
