/* A consumer's life: librdkafka's consumer and its successors, the main queue, errors that stop a service, leaving. */
#include "common/adapters/kafka/consumer.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSE_MS 1500
#define HEARTBEAT_MAX_MS 1000
#define SETTLE_MS (3 * HEARTBEAT_MAX_MS) /* so long a member without partitions may still get some */
#define FENCED_AGAIN_MS 60000 /* within: somebody else really has our name */

static const uint64_t one = 1;

struct sl_consumer *sl_kafka_consumer_next(struct sl_consumer *con)
{
	return con->next;
}

struct source *sl_kafka_consumer_source(struct sl_consumer *con, const char *topic, int32_t partition)
{
	for (int i = 0; i < con->source_count; i++)
		if (con->sources[i]->partition == partition && strcmp(con->sources[i]->topic, topic) == 0)
			return con->sources[i];
	return NULL;
}

/* --- news for the service --- */

static void poke(struct sl_consumer *con)
{
	ssize_t n = write(sl_wake_fd(con->wake), &one, sizeof(one));
	(void)n; /* full means that it wakes anyway */
}

void sl_kafka_consumer_news(struct sl_consumer *con, enum news_kind kind, int32_t partition, int err, const char *text)
{
	struct news *news = sl_kafka_client_alloc(sizeof(*news));
	news->kind = kind;
	news->partition = partition;
	news->err = err;
	news->text = sl_kafka_client_str(text);
	*con->news_last = news;
	con->news_last = &news->next;
	poke(con);
}

static void tell(struct sl_consumer *con)
{
	while (con->news && !con->closed) {
		struct news *news = con->news;
		con->news = news->next;
		if (!con->news)
			con->news_last = &con->news;
		const struct sl_consumer_events *ev = &con->events;
		/* Meanwhile it may have been taken back: then the revocation waits behind this. */
		if (news->kind == NEWS_ASSIGNED)
			ev->assigned(ev->arg, news->text, news->partition);
		else if (news->kind == NEWS_HANDING)
			ev->handing(ev->arg, news->text, news->partition);
		else if (news->kind == NEWS_REVOKED)
			ev->revoked(ev->arg, news->text, news->partition);
		else
			ev->fatal(ev->arg, news->err, news->text);
		free(news->text);
		free(news);
	}
	while (con->finished && !con->closed) {
		struct offset_commit *commit = con->finished;
		con->finished = commit->next;
		if (!con->finished)
			con->finished_last = &con->finished;
		if (commit->done)
			commit->done(commit->arg, commit->err);
		free(commit);
	}
}

static void fatal(struct sl_consumer *con, int err, const char *text)
{
	if (con->failed)
		return;
	con->failed = true;
	sl_kafka_consumer_news(con, NEWS_FATAL, -1, err, text);
}

/* A static member whose session ended while Kafka was away is fenced by its own rejoin: librdkafka's consumer is dead
 * then, and a new one gets the partitions. If that one is fenced as well, another process really has our name. */
static void fenced(struct sl_consumer *con)
{
	uint64_t now = uv_now(con->kafka->loop);
	if (con->remake || con->failed)
		return; /* told in several ways */
	if (con->remade_at && now - con->remade_at < FENCED_AGAIN_MS) {
		fatal(con, SL_EFENCED,
			"another process has joined the group under the same instance id; give each process its own");
		return;
	}
	sl_kafka_client_log(con->kafka, 4,
		"group %s no longer knows this member under its instance id: its session ended while Kafka was away or "
		"this process stood still; joining anew",
		con->group ? con->group : "");
	con->remake = true;
}

static void out_of_range(struct sl_consumer *con, const rd_kafka_message_t *msg)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_buf_printf(&text,
		"%s/%d: the offset to go on from is not in the log (%s). Choose: restore the topic to where it holds "
		"that "
		"offset, or accept the gap and set the offset of %s%s by hand to one that it holds",
		msg->rkt ? rd_kafka_topic_name(msg->rkt) : "?", msg->partition, rd_kafka_message_errstr(msg),
		con->group ? "group " : "this reader", con->group ? con->group : "");
	fatal(con, SL_ECONFIG, text.data);
	sl_buf_release(&text);
}

void sl_kafka_consumer_error(struct sl_consumer *con, const rd_kafka_message_t *msg)
{
	char text[600];
	const char *topic = msg->rkt ? rd_kafka_topic_name(msg->rkt) : "Kafka";
	switch (msg->err) {
	case RD_KAFKA_RESP_ERR__PARTITION_EOF:
		return;
	case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
	case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
	case RD_KAFKA_RESP_ERR__NO_OFFSET:
		out_of_range(con, msg);
		return;
	case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
	case RD_KAFKA_RESP_ERR__FENCED:
		fenced(con);
		return;
	case RD_KAFKA_RESP_ERR__FATAL:
		if (rd_kafka_fatal_error(con->rk, text, sizeof(text)) == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
			fenced(con);
		else
			fatal(con, SL_ECONFIG, text);
		return;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
	case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
		snprintf(text, sizeof(text), "%s: %s", topic, rd_kafka_message_errstr(msg));
		fatal(con, SL_EREFUSED, text);
		return;
	default:
		sl_kafka_client_log(con->kafka, 4, "%s: %s", topic, rd_kafka_message_errstr(msg));
	}
}

/* --- librdkafka's consumer --- */

rd_kafka_conf_t *sl_kafka_consumer_conf(struct sl_consumer *con, const char *group, struct sl_diags *diags)
{
	struct kafka *kafka = con->kafka;
	char number[300];
	rd_kafka_conf_t *conf = sl_kafka_client_conf(kafka, "consumer", diags);
	if (!conf)
		return NULL;
	snprintf(number, sizeof(number), "%d", kafka->session_timeout_ms);
	sl_kafka_client_default(kafka, "consumer", conf, "session.timeout.ms", number);
	/* A member hears of a rebalance by its heartbeat's answer: until all have, moved partitions are nobody's. */
	int beat_ms = kafka->session_timeout_ms / 5;
	snprintf(number, sizeof(number), "%d", beat_ms < HEARTBEAT_MAX_MS ? beat_ms : HEARTBEAT_MAX_MS);
	sl_kafka_client_default(kafka, "consumer", conf, "heartbeat.interval.ms", number);
	sl_kafka_client_default(kafka, "consumer", conf, "partition.assignment.strategy", "cooperative-sticky");
	/* Each partition has its own queue, so these bound a partition: what a backlog may take of our memory. */
	sl_kafka_client_default(kafka, "consumer", conf, "queued.min.messages", "10000");
	sl_kafka_client_default(kafka, "consumer", conf, "queued.max.messages.kbytes", "1024");
	sl_kafka_client_default(kafka, "consumer", conf, "fetch.message.max.bytes", "262144");
	/* A fetch that waits for records delays the first one of a partition that starts. */
	sl_kafka_client_default(kafka, "consumer", conf, "fetch.wait.max.ms", "100");
	sl_kafka_client_default(kafka, "consumer", conf, "fetch.error.backoff.ms", "100");
	sl_kafka_client_default(kafka, "consumer", conf, "fetch.queue.backoff.ms", "50");
	snprintf(number, sizeof(number), "%zu", kafka->message_bytes_max);
	sl_kafka_client_default(kafka, "consumer", conf, "message.max.bytes", number);
	snprintf(number, sizeof(number), "sluice-reader-%s", kafka->client_id);
	bool ok = sl_kafka_client_force(conf, "group.id", group ? group : number, diags) &&
		  sl_kafka_client_force(conf, "enable.auto.commit", "false", diags) &&
		  sl_kafka_client_force(conf, "enable.auto.offset.store", "false", diags) &&
		  sl_kafka_client_force(conf, "auto.offset.reset", "error", diags) &&
		  sl_kafka_client_force(conf, "enable.partition.eof", "false", diags) &&
		  sl_kafka_client_force(conf, "allow.auto.create.topics", "false", diags);
	if (ok && group && kafka->instance_id)
		ok = sl_kafka_client_force(conf, "group.instance.id", kafka->instance_id, diags);
	if (!ok) {
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	rd_kafka_conf_set_rebalance_cb(conf, sl_kafka_consumer_on_rebalance);
	return conf;
}

int sl_kafka_consumer_join(struct sl_consumer *con)
{
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(con->topic_count);
	for (int i = 0; i < con->topic_count; i++)
		rd_kafka_topic_partition_list_add(topics, con->topics[i], RD_KAFKA_PARTITION_UA);
	rd_kafka_resp_err_t err = rd_kafka_subscribe(con->rk, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	if (err)
		sl_kafka_client_log(con->kafka, 3, "cannot subscribe: %s", rd_kafka_err2str(err));
	return err ? SL_ECONFIG : 0;
}

/* NULL, or why there is none. */
static const char *open_client(struct sl_consumer *con, struct sl_diags *diags, char *text, size_t size)
{
	rd_kafka_conf_t *conf = sl_kafka_consumer_conf(con, con->group, diags);
	if (!conf)
		return sl_diags_first(diags);
	struct joining *joining = sl_kafka_joining_new(conf);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, size);
	if (!rk) {
		rd_kafka_conf_destroy(conf);
		free(joining);
		return text;
	}
	con->rk = rk;
	con->joining = joining;
	rd_kafka_poll_set_consumer(con->rk);
	con->main = rd_kafka_queue_get_consumer(con->rk);
	rd_kafka_set_log_queue(con->rk, NULL);
	rd_kafka_queue_io_event_enable(con->main, sl_wake_fd(con->wake), &one, sizeof(one));
	return NULL;
}

/* Records in the service's hands point into the old consumer: it goes when the last one is released. */
static void retire(struct sl_consumer *con)
{
	struct retired *old = sl_kafka_client_alloc(sizeof(*old));
	old->rk = con->rk;
	old->joining = con->joining;
	for (struct handle *handle = con->used; handle; handle = handle->next) {
		if (handle->of)
			continue;
		handle->of = old;
		old->handles++;
	}
	old->next = con->retired;
	con->retired = old;
	rd_kafka_queue_io_event_enable(con->main, -1, NULL, 0);
	rd_kafka_queue_destroy(con->main);
	con->main = NULL;
	con->rk = NULL;
	con->joining = NULL;
}

static void reap(struct sl_consumer *con)
{
	for (struct retired **at = &con->retired; *at;) {
		struct retired *old = *at;
		if (old->handles) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		rd_kafka_destroy_flags(old->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
		free(old->joining);
		free(old);
	}
}

/* The service sees its partitions revoked and, when the group has us back, assigned again. Commits on their way are
 * refused. */
static void remake(struct sl_consumer *con)
{
	char text[512];
	struct sl_diags diags;
	con->remake = con->joined = con->rejoins = false;
	con->rejoin_until = 0;
	sl_kafka_consumer_forget_wanted(con, false);
	sl_kafka_aside_end(con);
	con->remade_at = uv_now(con->kafka->loop);
	for (int i = 0; i < con->source_count; i++)
		sl_kafka_consumer_news(con, NEWS_REVOKED, con->sources[i]->partition, 0, con->sources[i]->topic);
	sl_kafka_consumer_drop_sources(con);
	retire(con);
	sl_kafka_consumer_refuse_commits(con);
	sl_diags_init(&diags);
	if (open_client(con, &diags, text, sizeof(text)) || sl_kafka_consumer_join(con))
		sl_bug(__FILE__, __LINE__, "settings that were right are wrong now");
	sl_diags_release(&diags);
}

/* --- serving --- */

void sl_kafka_consumer_serve(void *arg)
{
	struct sl_consumer *con = arg;
	if (con->serving || con->closed)
		return;
	con->serving = true;
	rd_kafka_message_t *msg;
	while ((msg = rd_kafka_consumer_poll(con->rk, 0)) != NULL) {
		if (msg->err)
			sl_kafka_consumer_error(con, msg);
		else
			fatal(con, SL_EBUG, "a record came by the consumer's main queue; start again");
		rd_kafka_message_destroy(msg);
	}
	sl_kafka_aside_serve(con);
	if (con->remake)
		remake(con);
	reap(con);
	sl_kafka_consumer_serve_wanted(con);
	if (con->waiting && !sl_kafka_consumer_commits_wait(con))
		sl_kafka_consumer_commit_waiting(con);
	sl_kafka_consumer_seek_again(con);
	tell(con);
	bool readable = false;
	for (int i = 0; !con->closed && i < con->source_count; i++) {
		struct source *src = con->sources[i];
		src->ready = true;
		readable = readable || (src->started && !src->paused);
	}
	if (readable)
		con->events.readable(con->events.arg);
	con->serving = false;
}

void sl_kafka_consumer_tick(struct sl_consumer *con)
{
	if (con->assigning)
		sl_kafka_consumer_assign_all(con);
	sl_kafka_consumer_serve(con);
}

/* --- life --- */

static void consumer_freed(void *arg, bool cancelled)
{
	(void)cancelled;
	free(arg);
}

static void release_all(struct sl_consumer *con)
{
	sl_kafka_consumer_drop_sources(con);
	free(con->sources);
	con->sources = NULL;
	while (con->news) {
		struct news *news = con->news;
		con->news = news->next;
		free(news->text);
		free(news);
	}
	for (int i = 0; i < con->topic_count; i++)
		free(con->topics[i]);
	free(con->topics);
	free(con->group);
}

static void commits_free(struct offset_commit *commit)
{
	while (commit) {
		struct offset_commit *next = commit->next;
		free(commit);
		commit = next;
	}
}

/* Leaving takes one request; a broker that does not answer must not hold up the end of a service. */
static void leave(struct sl_consumer *con)
{
	rd_kafka_error_t *error = rd_kafka_consumer_close_queue(con->rk, con->main);
	if (error) {
		rd_kafka_error_destroy(error);
		return;
	}
	sl_kafka_consumer_forget_wanted(con, true); /* librdkafka waits for that answer */
	uint64_t end = uv_hrtime() + CLOSE_MS * 1000000ull;
	while (!rd_kafka_consumer_closed(con->rk) && uv_hrtime() < end) {
		rd_kafka_message_t *msg = rd_kafka_consume_queue(con->main, 20);
		if (msg)
			rd_kafka_message_destroy(msg);
	}
}

/* Cooperative rebalancing takes two rounds: in the first others give up what a new member gets in the second. They may take
 * their time over it, as long as we would. */
static bool settled(const struct sl_consumer *con)
{
	uint64_t most = SETTLE_MS + (uint64_t)con->hand_over_ms;
	return con->joined && (con->given || uv_now(con->kafka->loop) - con->joined_at >= most);
}

const char *sl_kafka_joining(const struct sl_broker *broker)
{
	const struct kafka *kafka = (const struct kafka *)broker;
	for (const struct sl_consumer *con = kafka->consumers; con; con = con->next)
		if (con->group && !settled(con))
			return con->group;
	return NULL;
}

/* librdkafka before 2.3.0 aborts the process when a consumer is destroyed whose group had just made it the leader (its
 * issue 4312). One that leaves before the group has let it in may be that: it is left behind, silent, until the process
 * ends. */
static bool may_destroy(const struct sl_consumer *con)
{
	return con->joined || !con->group || rd_kafka_version() >= 0x02030000;
}

void sl_kafka_consumer_close(struct sl_consumer *con)
{
	con->closed = true;
	struct sl_consumer **at = &con->kafka->consumers;
	while (*at && *at != con)
		at = &(*at)->next;
	if (*at)
		*at = con->next;
	sl_kafka_aside_end(con);
	sl_kafka_consumer_handles_free(con);
	sl_kafka_consumer_commit_waiting(con);
	release_all(con);
	leave(con);
	sl_kafka_consumer_forget_wanted(con, false);
	rd_kafka_queue_io_event_enable(con->main, -1, NULL, 0);
	rd_kafka_queue_destroy(con->main);
	if (may_destroy(con)) {
		rd_kafka_destroy_flags(con->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
		free(con->joining);
	}
	reap(con);
	commits_free(con->commits);
	commits_free(con->finished);
	sl_wake_free(con->wake);
	/* Its own callback may have closed it: the memory stays for the rest of this turn. */
	sl_later_add(con->kafka->later, consumer_freed, con);
}

int sl_kafka_consumer_new(struct sl_broker *base, const struct sl_consumer_options *opt, struct sl_consumer **ret)
{
	struct kafka *kafka = (struct kafka *)base;
	char text[512];
	struct sl_diags diags;
	sl_diags_init(&diags);
	struct sl_consumer *con = sl_kafka_client_alloc(sizeof(*con));
	con->kafka = kafka;
	con->events = opt->events;
	con->group = sl_kafka_client_str(opt->group);
	con->hand_over_ms = opt->events.handing ? opt->hand_over_ms : 0;
	con->waiting_last = &con->waiting;
	con->news_last = &con->news;
	con->finished_last = &con->finished;
	con->topics = sl_kafka_client_alloc(sizeof(char *) * (size_t)(opt->topic_count + 1));
	for (int i = 0; i < opt->topic_count; i++)
		con->topics[con->topic_count++] = sl_kafka_client_str(opt->topics[i]);
	con->wake = sl_wake_new(kafka->loop, sl_kafka_consumer_serve, con);
	const char *why = open_client(con, &diags, text, sizeof(text));
	if (why)
		sl_kafka_client_log(kafka, 3, "%s", why);
	sl_diags_release(&diags);
	if (why) {
		sl_wake_free(con->wake);
		release_all(con);
		free(con);
		return SL_ECONFIG;
	}
	con->next = kafka->consumers;
	kafka->consumers = con;
	if (opt->group) {
		int err = sl_kafka_consumer_join(con);
		if (err) {
			sl_kafka_consumer_close(con);
			return err;
		}
	} else {
		con->assigning = true;
		poke(con);
	}
	*ret = con;
	return 0;
}
