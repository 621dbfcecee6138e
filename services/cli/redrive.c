/* sluice dead-letters redrive: letters go through the road again. */
#include "services/cli/redrive.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/codec/codec.h"
#include "services/common/dead_letter.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_MAX 256
#define BATCH_BYTES_MAX ((size_t)8 << 20)
#define READ_MS 30000
#define REMEMBERED "redriven"

enum outcome { WOULD, SENT, BEFORE, REFUSED, FAILED, OUTCOMES };
static const char *const outcome_words[OUTCOMES] = {
	"would be redriven", "redriven", "redriven before", "refused", "failed"};
static const char *const outcome_codes[OUTCOMES] = {
	"would-redrive", "redriven", "redriven-before", "refused", "failed"};

struct one {
	char name[40]; /* PARTITION/OFFSET */
	int64_t time_ms;
	enum outcome outcome;
	const char *text;     /* why not, or what else is to be known */
	struct sl_record rec; /* WOULD, SENT */
};

struct run {
	struct sl_remote *remote;
	const struct sl_redrive *what;
	struct sl_arena arena; /* of a batch, like all that its letters point to */
	struct one batch[BATCH_MAX];
	int count;
	size_t bytes;
	jv remembered; /* {letter: {"letter": time, "state": "sending" | "sent", "time": time}} */
	jv topics;     /* {topic: partitions; -1: there is none} */
	jv list;
	struct sl_table *table;
	int outcomes[OUTCOMES], seen;
	int code;
};

bool sl_letter_place(const char *text, int32_t *ret_partition, int64_t *ret_offset)
{
	char partition[16];
	const char *slash = strchr(text, '/');
	int64_t p, o;
	if (!slash || (size_t)(slash - text) >= sizeof(partition))
		return false;
	snprintf(partition, sizeof(partition), "%.*s", (int)(slash - text), text);
	if (sl_int_parse(partition, &p) || p < 0 || p > INT32_MAX || sl_int_parse(slash + 1, &o) || o < 0)
		return false;
	*ret_partition = (int32_t)p;
	*ret_offset = o;
	return true;
}

bool sl_letter_matches(const struct sl_record *rec, const char *reason, const char *topic)
{
	struct sl_dead_letter letter;
	struct sl_arena arena;
	if (!reason && !topic)
		return true;
	sl_arena_init(&arena);
	bool fits = sl_dead_letter_parse(rec, &arena, &letter) == 0 && (!reason || strstr(letter.reason, reason)) &&
		    (!topic || (letter.origin_topic && sl_glob(topic, letter.origin_topic)));
	sl_arena_release(&arena);
	return fits;
}

static void SL_PRINTF(3, 4) refuse(struct run *run, struct one *one, const char *fmt, ...)
{
	char text[800];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	one->outcome = REFUSED;
	one->text = sl_arena_str(&run->arena, text);
}

/* --- what was redriven before --- */

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static jv note_of(const struct one *one, const char *state)
{
	jv note = sl_json_set(jv_object(), "letter", jv_number((double)one->time_ms));
	note = sl_json_set(note, "state", jv_string(state));
	return sl_json_set(note, "time", jv_number((double)now_ms()));
}

/* Reads the notes; those of letters that the topic no longer has go. */
static int recall(struct run *run)
{
	struct sl_remote *remote = run->remote;
	jv fields;
	int32_t partitions;
	int gone = 0, code = sl_remote_partitions(remote, remote->topics.dead_letter, &partitions);
	if (code == SL_EXIT_OK)
		code = sl_remote_load(remote, -1, REMEMBERED, &fields);
	if (code != SL_EXIT_OK)
		return code;
	int64_t *lows = SL_NEWN(&remote->arena, int64_t, partitions), high;
	for (int32_t p = 0; p < partitions; p++)
		if (remote->broker->ops->watermarks(remote->broker, remote->topics.dead_letter, p, &lows[p], &high))
			lows[p] = 0;
	struct sl_op *ops = SL_NEWN(&remote->arena, struct sl_op, jv_object_length(jv_copy(fields)) + 1);
	jv_object_foreach(fields, name, text)
	{
		int32_t p;
		int64_t o;
		jv note = jv_invalid();
		bool there = sl_letter_place(jv_string_value(name), &p, &o) && p < partitions && o >= lows[p];
		if (there &&
			sl_json_parse(jv_string_value(text), strlen(jv_string_value(text)), NULL, &note, NULL) == 0)
			run->remembered = sl_json_set(run->remembered, jv_string_value(name), note);
		else if (!there)
			ops[gone++] = (struct sl_op){.kind = SL_OP_HDEL,
				.key = REMEMBERED,
				.field = sl_arena_str(&remote->arena, jv_string_value(name))};
		jv_free(name);
		jv_free(text);
	}
	jv_free(fields);
	return gone && !run->what->dry_run ? sl_remote_write(remote, ops, gone) : SL_EXIT_OK;
}

/* A command that is carried out twice does its work twice; an event is recognised by its id. */
static bool done_before(struct run *run, struct one *one, const struct sl_dead_letter *letter)
{
	jv note = sl_json_get(run->remembered, one->name);
	const char *state = jv_get_kind(note) == JV_KIND_OBJECT ? sl_json_str(note, "state") : NULL;
	bool same = state && sl_json_int(note, "letter", -1) == one->time_ms && !run->what->again;
	bool command = letter->origin_topic && strcmp(letter->origin_topic, run->remote->topics.commands) == 0;
	char when[32];
	if (same && strcmp(state, "sent") == 0) {
		sl_time_format(sl_json_int(note, "time", 0), when);
		one->outcome = BEFORE;
		one->text = sl_arena_printf(&run->arena, "on %s; --again does it once more", when);
	} else if (same && command) {
		refuse(run, one,
			"an earlier redrive got no answer from Kafka: look whether the command was carried "
			"out; if not, --again");
	} else {
		same = false;
	}
	jv_free(note);
	return same;
}

/* --- where it goes --- */

/* Number of partitions; -1: no such topic. Sets run->code when Kafka does not answer. */
static int32_t partitions_of(struct run *run, const char *topic)
{
	int32_t count = (int32_t)sl_json_int(run->topics, topic, 0);
	if (count)
		return count;
	int err = sl_remote_topic(run->remote, topic, &count);
	if (err == SL_ENOTFOUND)
		count = -1;
	else if (err)
		run->code = sl_remote_unreachable(run->remote, "Kafka");
	run->topics = sl_json_set(run->topics, topic, jv_number(count));
	return count;
}

static bool is_internal(const struct sl_topics *topics, const char *topic)
{
	const char *const names[] = {topics->instances, topics->actions, topics->timers, topics->definitions,
		topics->lifecycle, topics->dead_letter};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], topic) == 0)
			return true;
	return false;
}

static const char *topic_of_namespace(const struct sl_topics *topics, const char *ns)
{
	for (int i = 0; i < topics->event_count; i++)
		if (strcmp(topics->events[i].ns, ns) == 0)
			return topics->events[i].topic;
	return NULL;
}

/* --- a record as it came --- */

struct original {
	struct run *run;
	int64_t offset;
	struct sl_bytes value;
	bool found;
};

static bool take_original(void *arg, const struct sl_record *rec)
{
	struct original *o = arg;
	o->found = rec->offset == o->offset;
	if (o->found)
		o->value = (struct sl_bytes){
			sl_arena_strn(&o->run->arena, rec->value.ptr ? rec->value.ptr : "", rec->value.len),
			rec->value.len};
	return false;
}

/* R9: what was too big for the letter is read again where it came from. */
static bool read_original(struct run *run, const struct sl_record *rec, const struct sl_dead_letter *letter,
	struct one *one, struct sl_bytes *ret)
{
	struct original o = {.run = run, .offset = letter->origin_offset};
	struct sl_remote_at at = {.partition = letter->origin_partition, .offset = letter->origin_offset};
	struct sl_remote_read read = {
		.topic = letter->origin_topic, .at = &at, .timeout_ms = READ_MS, .visit = take_original, .arg = &o};
	bool enough;
	if (partitions_of(run, letter->origin_topic) < 0) {
		refuse(run, one, "topic %s does not exist", letter->origin_topic);
		return false;
	}
	if (run->code == SL_EXIT_OK)
		run->code = sl_remote_read(run->remote, &read, &enough);
	if (run->code != SL_EXIT_OK)
		return false;
	if (!o.found) {
		refuse(run, one,
			"the original record %s/%d@%" PRId64 " is gone: that partition holds %" PRId64 " to %" PRId64
			" now, and the letter has only the first %zu of %" PRId64
			" bytes. Publish the event anew from its source",
			letter->origin_topic, (int)at.partition, at.offset, at.low, at.high - 1, rec->value.len,
			letter->cut_from);
		return false;
	}
	if ((int64_t)o.value.len != letter->cut_from || o.value.len < rec->value.len ||
		memcmp(o.value.ptr, rec->value.ptr, rec->value.len) != 0) {
		refuse(run, one,
			"at %s/%d@%" PRId64
			" there is another record now: the topic was made anew. Publish the event anew from its source",
			letter->origin_topic, (int)at.partition, at.offset);
		return false;
	}
	*ret = o.value;
	return true;
}

static void as_it_came(
	struct run *run, const struct sl_record *rec, const struct sl_dead_letter *letter, struct one *one)
{
	int64_t max = run->remote->cfg.event_bytes_max;
	struct sl_bytes value = rec->value;
	if (letter->cut_from > max || (!letter->cut_from && (int64_t)value.len > max)) {
		refuse(run, one,
			"its %" PRId64 " bytes are more than event.bytes_max (%" PRId64
			"): raise that for the services and for this command",
			letter->cut_from ? letter->cut_from : (int64_t)value.len, max);
		return;
	}
	if (letter->cut_from && !read_original(run, rec, letter, one, &value))
		return;
	sl_dead_letter_redrive(rec, letter, one->name, value, &run->arena, &one->rec);
}

/* --- an event that the engine gave up --- */

/* May the instance still take something? Refuses otherwise. */
static bool lives(struct run *run, const struct sl_dead_letter *letter, struct one *one)
{
	struct sl_remote *remote = run->remote;
	const char *id = letter->instance, *status = NULL;
	int32_t partitions;
	jv fields, header = jv_invalid();
	run->code = sl_remote_partitions(remote, remote->topics.instances, &partitions);
	if (run->code != SL_EXIT_OK)
		return false;
	run->code = sl_remote_load(remote, sl_id_partition(letter->ns, id, partitions),
		sl_store_key(&run->arena, letter->ns, id), &fields);
	if (run->code != SL_EXIT_OK)
		return false;
	const char *text = sl_json_str(fields, "h");
	if (text && sl_json_parse(text, strlen(text), NULL, &header, NULL) == 0)
		status = sl_json_str(header, "status");
	bool faulted = status && strcmp(status, "faulted") == 0,
	     ended = status && (strcmp(status, "completed") == 0 || strcmp(status, "cancelled") == 0);
	if (!status)
		refuse(run, one, "instance %s, which was to take the event, is not known any more", id);
	else if (faulted)
		refuse(run, one,
			"instance %s, which was to take the event, has faulted: mend the cause, `sluice retry %s`, "
			"then redrive",
			id, id);
	else if (ended)
		refuse(run, one, "instance %s, which was to take the event, has ended (%s)", id, status);
	jv_free(header);
	jv_free(fields);
	return status && !faulted && !ended;
}

/* To the instance alone: whoever else took the event must not take it twice, however long ago that was. */
static void given_up(struct run *run, const struct sl_record *rec, struct sl_dead_letter *letter, struct one *one)
{
	const struct sl_topics *topics = &run->remote->topics;
	struct sl_record plain = {.key = rec->key};
	jv ev;
	bool known = letter->origin_topic && !is_internal(topics, letter->origin_topic);
	if (strcmp(letter->reason, "join-full") == 0) {
		refuse(run, one,
			"the mailbox of the join counts the event as seen (its other workflows took it): publish it "
			"under an id of its own");
		return;
	}
	if (!known) {
		letter->origin_topic = topic_of_namespace(topics, letter->ns);
		letter->origin_partition = -1;
	}
	if (!rec->value.len || sl_event_decode(rec, &sl_json_default, &ev, NULL)) {
		refuse(run, one,
			"an input of an actor, no event: it stood in an order that is gone (`sluice show` and `retry` "
			"%s)",
			letter->instance && !sl_id_is_mailbox(letter->instance) ? letter->instance : "what it was for");
		return;
	}
	if (!letter->origin_topic)
		refuse(run, one, "no topic of namespace '%s' is configured here (topics.events)", letter->ns);
	else if (letter->instance && !sl_id_is_mailbox(letter->instance) && lives(run, letter, one))
		ev = sl_json_set(ev, "workflowinstanceid", jv_string(letter->instance));
	if (one->outcome == WOULD && run->code == SL_EXIT_OK) {
		int err = sl_event_encode(ev, SL_EVENT_STRUCTURED, &run->arena, &plain);
		sl_assert(!err);
		letter->header_count = plain.header_count;
		sl_dead_letter_redrive(&plain, letter, one->name, plain.value, &run->arena, &one->rec);
	}
	jv_free(ev);
}

/* --- batches --- */

static void report(struct run *run, const struct one *one)
{
	run->outcomes[one->outcome]++;
	if (run->table) {
		const char *to = one->rec.topic ? one->rec.topic : "";
		sl_table_row(run->table, (const char *const[]){one->name, outcome_words[one->outcome], to, one->text});
		return;
	}
	jv row = sl_json_set(jv_object(), "letter", jv_string(one->name));
	row = sl_json_set(row, "result", jv_string(outcome_codes[one->outcome]));
	if (one->rec.topic)
		row = sl_json_set(row, "to", jv_string(one->rec.topic));
	if (one->text)
		row = sl_json_set(row, "text", jv_string(one->text));
	run->list = jv_array_append(run->list, row);
}

/* Notes of those that stand at `outcome`; state NULL: they are taken away. */
static int remember(struct run *run, enum outcome outcome, const char *state)
{
	struct sl_op *ops = SL_NEWN(&run->arena, struct sl_op, run->count + 1);
	int n = 0;
	for (int i = 0; i < run->count; i++) {
		const struct one *one = &run->batch[i];
		if (one->outcome != outcome)
			continue;
		ops[n] = (struct sl_op){.kind = state ? SL_OP_HSET : SL_OP_HDEL, .key = REMEMBERED, .field = one->name};
		if (state) {
			jv note = note_of(one, state);
			char *text = sl_json_text(note);
			const char *kept = sl_arena_str(&run->arena, text);
			ops[n].value = (struct sl_bytes){kept, strlen(kept)};
			free(text);
			jv_free(note);
		}
		n++;
	}
	return n ? sl_remote_write(run->remote, ops, n) : SL_EXIT_OK;
}

static void publish(struct run *run)
{
	const struct sl_record **recs = SL_NEWN(&run->arena, const struct sl_record *, run->count + 1);
	int *errs = SL_NEWN(&run->arena, int, run->count + 1), n = 0;
	for (int i = 0; i < run->count; i++)
		if (run->batch[i].outcome == WOULD)
			recs[n++] = &run->batch[i].rec;
	if (!n || (run->code = remember(run, WOULD, "sending")) != SL_EXIT_OK)
		return;
	run->code = sl_remote_produce_all(run->remote, recs, n, errs);
	for (int i = 0, k = 0; i < run->count; i++) {
		struct one *one = &run->batch[i];
		if (one->outcome != WOULD)
			continue;
		int err = errs[k++];
		one->outcome = err ? FAILED : SENT;
		if (err)
			one->text = err == SL_EUNREACHABLE ? "no answer from Kafka: it may come yet" : sl_err_text(err);
	}
	int noted = remember(run, SENT, "sent");
	if (run->code == SL_EXIT_OK && noted == SL_EXIT_OK)
		noted = remember(run, FAILED, NULL); /* refused for good */
	run->code = run->code == SL_EXIT_OK ? noted : run->code;
}

static bool flush(struct run *run)
{
	if (!run->what->dry_run && run->code == SL_EXIT_OK)
		publish(run);
	for (int i = 0; i < run->count; i++)
		report(run, &run->batch[i]);
	run->count = 0;
	run->bytes = 0;
	sl_arena_clear(&run->arena);
	return run->code == SL_EXIT_OK;
}

static struct sl_bytes kept(struct run *run, struct sl_bytes bytes)
{
	return bytes.ptr ? (struct sl_bytes){sl_arena_strn(&run->arena, bytes.ptr, bytes.len), bytes.len} : bytes;
}

/* The record is given back before the batch is sent. */
static void keep(struct run *run, struct sl_record *rec)
{
	struct sl_header *headers = SL_NEWN(&run->arena, struct sl_header, rec->header_count + 1);
	for (int i = 0; i < rec->header_count; i++)
		headers[i] = (struct sl_header){
			sl_arena_str(&run->arena, rec->headers[i].name), kept(run, rec->headers[i].value)};
	rec->topic = sl_arena_str(&run->arena, rec->topic);
	rec->key = kept(run, rec->key);
	rec->value = kept(run, rec->value);
	rec->headers = headers;
	run->bytes += rec->value.len;
}

static void consider(struct run *run, const struct sl_record *rec, struct one *one)
{
	struct sl_dead_letter letter;
	if (sl_dead_letter_parse(rec, &run->arena, &letter)) {
		refuse(run, one, "not written by Sluice: its headers do not tell where it came from");
		return;
	}
	if (done_before(run, one, &letter))
		return;
	if (!letter.raw)
		given_up(run, rec, &letter, one);
	else if (!letter.origin_topic || is_internal(&run->remote->topics, letter.origin_topic))
		refuse(run, one,
			"an internal record of %s: it stood in an order that is gone, and what it asked for may have "
			"been overtaken",
			letter.origin_topic ? letter.origin_topic : "an unknown topic");
	else
		as_it_came(run, rec, &letter, one);
	if (one->outcome != WOULD || run->code != SL_EXIT_OK)
		return;
	int32_t partitions = partitions_of(run, one->rec.topic);
	if (partitions < 0)
		refuse(run, one, "topic %s does not exist", one->rec.topic);
	if (one->rec.partition >= partitions)
		one->rec.partition = -1;
}

static bool visit(void *arg, const struct sl_record *rec)
{
	struct run *run = arg;
	if (!sl_letter_matches(rec, run->what->reason, run->what->topic))
		return !run->what->letter_count;
	struct one *one = &run->batch[run->count];
	*one = (struct one){.time_ms = rec->time_ms};
	snprintf(one->name, sizeof(one->name), "%d/%" PRId64, (int)rec->partition, rec->offset);
	consider(run, rec, one);
	if (run->code != SL_EXIT_OK)
		return false;
	run->count++;
	run->seen++;
	if (one->outcome == WOULD) { /* named twice on one command line, it goes once */
		keep(run, &one->rec);
		run->remembered = sl_json_set(run->remembered, one->name, note_of(one, "sent"));
	}
	if ((run->count == BATCH_MAX || run->bytes > BATCH_BYTES_MAX) && !flush(run))
		return false;
	return !run->what->letter_count;
}

/* --- all of it --- */

static int read_one(struct run *run, const char *name)
{
	struct sl_remote_at at = {0};
	struct sl_remote_read read = {
		.topic = run->remote->topics.dead_letter, .at = &at, .timeout_ms = READ_MS, .visit = visit, .arg = run};
	bool enough;
	int seen = run->seen;
	if (!sl_letter_place(name, &at.partition, &at.offset))
		return SL_EXIT_USAGE;
	int code = sl_remote_read(run->remote, &read, &enough);
	if (code != SL_EXIT_OK || run->code != SL_EXIT_OK || run->seen != seen)
		return code;
	struct one *one = &run->batch[run->count++];
	*one = (struct one){0};
	snprintf(one->name, sizeof(one->name), "%s", name);
	refuse(run, one, "no such letter: partition %d of %s holds %" PRId64 " to %" PRId64, (int)at.partition,
		run->remote->topics.dead_letter, at.low, at.high - 1);
	if (run->count == BATCH_MAX)
		(void)flush(run);
	return code;
}

static void print_end(struct run *run)
{
	if (!run->table) {
		sl_cli_print_json(jv_copy(run->list));
		return;
	}
	sl_table_print(run->table);
	int said = 0;
	for (int i = 0; i < OUTCOMES; i++)
		if (run->outcomes[i] || (i == (run->what->dry_run ? WOULD : SENT)))
			printf("%s%d %s", said++ ? ", " : "", run->outcomes[i], outcome_words[i]);
	printf("\n");
}

int sl_redrive(struct sl_remote *remote, const struct sl_redrive *what)
{
	struct run *run = calloc(1, sizeof(*run));
	sl_assert(run);
	*run = (struct run){
		.remote = remote, .what = what, .remembered = jv_object(), .topics = jv_object(), .list = jv_array()};
	sl_arena_init(&run->arena);
	if (!sl_cli_json())
		run->table = sl_table_new(4, (const char *const[]){"LETTER", "RESULT", "TO", ""});
	struct sl_remote_read read = {
		.topic = remote->topics.dead_letter, .timeout_ms = READ_MS, .visit = visit, .arg = run};
	bool enough;
	int code = recall(run);
	for (int i = 0; code == SL_EXIT_OK && run->code == SL_EXIT_OK && i < what->letter_count; i++)
		code = read_one(run, what->letters[i]);
	if (code == SL_EXIT_OK && !what->letter_count)
		code = sl_remote_read(remote, &read, &enough);
	(void)flush(run); /* also what was read before Kafka went away */
	print_end(run);
	code = run->code != SL_EXIT_OK ? run->code : code;
	if (code == SL_EXIT_OK && (run->outcomes[REFUSED] || run->outcomes[FAILED]))
		code = SL_EXIT_WRONG;
	sl_arena_release(&run->arena);
	jv_free(run->remembered);
	jv_free(run->topics);
	jv_free(run->list);
	free(run);
	return code;
}
