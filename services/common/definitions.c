/* Reads sluice.definitions and makes its records. */
#include "services/common/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/model/id.h"

#define TYPE_DEFINITION "io.sluice.definition"
#define TYPE_POINTER "io.sluice.definition.pointer"
#define TYPE_WAIT "io.sluice.wait"
#define RECORDS_PER_TURN 16 /* each may cost tens of milliseconds of compiling */

struct sl_definitions {
	struct sl_definitions_options opt;
	struct sl_consumer *con;
	int64_t end; /* one behind the last record when the partition was reached; -1: not known yet */
	int64_t offset;
	bool assigned;
	struct sl_map broken; /* "NS/HASH" -> text */
	struct sl_map stored; /* "NS/HASH" -> record value */
	struct sl_map waits;  /* "NS~TYPE" -> struct sl_waits */
};

/* --- records --- */

static void add_header(struct sl_arena *arena, struct sl_header *header, const char *name, const char *value)
{
	header->name = name;
	header->value.ptr = sl_arena_str(arena, value);
	header->value.len = strlen(value);
}

static void fill_record(struct sl_arena *arena, const char *type, const char *key, jv value, struct sl_record *ret)
{
	struct sl_buf text;
	sl_buf_init(&text);
	sl_json_write(&text, value);
	jv_free(value);
	/* the same content is the same event (R3) */
	char id[SL_UUID_TEXT];
	const char *parts[] = {"definition", type, key, text.data};
	sl_id_derive(parts, 4, id);
	struct sl_header *headers = SL_NEWN(arena, struct sl_header, 6);
	add_header(arena, &headers[0], "ce_specversion", "1.0");
	add_header(arena, &headers[1], "ce_id", id);
	add_header(arena, &headers[2], "ce_source", "/sluice/definitions");
	add_header(arena, &headers[3], "ce_type", type);
	add_header(arena, &headers[4], "ce_subject", key);
	add_header(arena, &headers[5], "content-type", "application/json");
	memset(ret, 0, sizeof(*ret));
	ret->key = (struct sl_bytes){sl_arena_str(arena, key), strlen(key)};
	ret->value = (struct sl_bytes){sl_arena_strn(arena, text.data, text.len), text.len};
	ret->headers = headers;
	ret->header_count = 6;
	sl_buf_release(&text);
}

static jv with_str(jv obj, const char *name, const char *text)
{
	return text ? sl_json_set(obj, name, jv_string(text)) : obj;
}

int sl_definition_record(const struct sl_definition *def, struct sl_arena *arena, struct sl_record *ret)
{
	if (!sl_utf8_valid(def->text, def->len))
		return SL_EENCODING;
	jv value = jv_object();
	value = with_str(value, "ns", def->ns);
	value = with_str(value, "id", def->id);
	value = with_str(value, "version", def->version);
	value = with_str(value, "hash", def->hash);
	value = with_str(value, "dialect", def->dialect);
	value = with_str(value, "file", def->file);
	value = sl_json_set(value, "lenient", jv_bool(def->lenient));
	value = sl_json_set(value, "definition", jv_string_sized(def->text, (int)def->len));
	value = sl_json_set(value, "resources",
		jv_get_kind(def->resources) == JV_KIND_OBJECT ? jv_copy(def->resources) : jv_object());
	fill_record(arena, TYPE_DEFINITION,
		sl_arena_printf(arena, "%s/%s/%s/%s", def->ns, def->id, def->version ? def->version : "", def->hash),
		value, ret);
	return 0;
}

void sl_pointer_record(const char *ns, const char *id, const char *version, const char *hash, bool active,
	struct sl_arena *arena, struct sl_record *ret)
{
	jv value = jv_object();
	value = with_str(value, "ns", ns);
	value = with_str(value, "id", id);
	value = with_str(value, "version", version ? version : "");
	value = with_str(value, "hash", hash);
	value = sl_json_set(value, "active", jv_bool(active));
	fill_record(
		arena, TYPE_POINTER, sl_arena_printf(arena, "%s/%s/%s", ns, id, version ? version : ""), value, ret);
}

void sl_wait_record(const char *name, int32_t partition, struct sl_arena *arena, struct sl_record *ret)
{
	const char *type = strchr(name, '~');
	sl_assert(type);
	jv value = sl_json_set(jv_object(), "ns", jv_string_sized(name, (int)(type - name)));
	value = with_str(value, "type", type + 1);
	value = sl_json_set(value, "partition", jv_number(partition));
	fill_record(arena, TYPE_WAIT, sl_arena_printf(arena, "@%d~%s", (int)partition, name), value, ret);
}

/* --- compiling --- */

static int get_resource(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	const jv *resources = arg;
	const char *text = sl_json_str(*resources, uri);
	if (!text)
		return sl_diag_error(
			diags, SL_ENOTFOUND, SL_NOWHERE, NULL, "resource %s is not stored with the definition", uri);
	*ret = strdup(text);
	*ret_len = strlen(text);
	return *ret ? 0 : SL_ENOMEM;
}

static int compile_stored(jv stored, struct sl_plan **ret_plan, struct sl_diags *diags)
{
	const char *text = sl_json_str(stored, "definition"), *dialect = sl_json_str(stored, "dialect");
	if (!text || !sl_json_str(stored, "ns") || !sl_json_str(stored, "hash"))
		return sl_diag_error(
			diags, SL_ESCHEMA, SL_NOWHERE, NULL, "a definition record lacks ns, hash or definition");
	jv resources = sl_json_get(stored, "resources");
	struct sl_resources source = {.get = get_resource, .arg = &resources};
	struct sl_compile_options opt = {.lenient = sl_json_bool(stored, "lenient", false),
		.deploy = true,
		.trusted = true, /* checked before it came here */
		.resources = &source,
		.file = sl_json_str(stored, "file")};
	int err = dialect && *dialect ? sl_dialect_of(dialect, &opt.dialect) : 0;
	if (err)
		sl_diag_error(diags, err, SL_NOWHERE, NULL, "unknown dialect %s", dialect);
	else
		err = sl_compile(text, strlen(text), &opt, ret_plan, diags);
	jv_free(resources);
	if (err)
		return err;
	/* What instances keep is the record's hash; another release may hash otherwise. */
	const char *hash = sl_json_str(stored, "hash");
	if (strlen(hash) < sizeof((*ret_plan)->hash))
		memcpy((*ret_plan)->hash, hash, strlen(hash) + 1);
	return 0;
}

int sl_definition_compile(
	const char *value, size_t len, char **ret_ns, struct sl_plan **ret_plan, struct sl_diags *diags)
{
	jv stored;
	int err = sl_json_parse(value, len, &sl_json_default, &stored, diags);
	if (err)
		return err;
	err = compile_stored(stored, ret_plan, diags);
	if (!err)
		*ret_ns = strdup(sl_json_str(stored, "ns"));
	jv_free(stored);
	return err;
}

/* --- reading --- */

static void keep(struct sl_map *map, const char *ns, const char *hash, const char *text)
{
	struct sl_buf key;
	sl_buf_init(&key);
	sl_buf_printf(&key, "%s/%s", ns, hash);
	if (text)
		free(sl_map_set(map, key.data, strdup(text)));
	else
		free(sl_map_del(map, key.data));
	sl_buf_release(&key);
}

static const char *find(const struct sl_map *map, const char *ns, const char *hash)
{
	struct sl_buf key;
	sl_buf_init(&key);
	sl_buf_printf(&key, "%s/%s", ns, hash);
	const char *text = sl_map_get(map, key.data);
	sl_buf_release(&key);
	return text;
}

static int read_definition(struct sl_definitions *defs, jv value, struct sl_diags *diags)
{
	const char *ns = sl_json_str(value, "ns"), *hash = sl_json_str(value, "hash");
	if (ns && hash && sl_plans_by_hash(defs->opt.plans, ns, hash))
		return 0; /* deployed again, word for word */
	struct sl_plan *plan = NULL;
	int err = compile_stored(value, &plan, diags);
	if (err) {
		if (ns && hash)
			keep(&defs->broken, ns, hash, sl_diags_first(diags));
		return err;
	}
	sl_assert(plan);
	sl_plans_add(defs->opt.plans, ns, plan);
	keep(&defs->broken, ns, hash, NULL);
	if (plan->secret_count) {
		char *text = sl_json_text(value);
		keep(&defs->stored, ns, hash, text);
		free(text);
	}
	sl_plan_unref(plan);
	return 0;
}

static int read_pointer(struct sl_definitions *defs, jv value, struct sl_diags *diags)
{
	const char *ns = sl_json_str(value, "ns"), *id = sl_json_str(value, "id");
	const char *version = sl_json_str(value, "version"), *hash = sl_json_str(value, "hash");
	if (!ns || !id || !hash)
		return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL, "a pointer record lacks ns, id or hash");
	sl_plans_point(defs->opt.plans, ns, id, version ? version : "", hash, sl_json_bool(value, "active", true));
	return 0;
}

static int read_wait(struct sl_definitions *defs, jv value, struct sl_diags *diags)
{
	const char *ns = sl_json_str(value, "ns"), *type = sl_json_str(value, "type");
	int64_t partition = sl_json_int(value, "partition", -1);
	if (!ns || !type || partition < 0 || partition > INT32_MAX)
		return sl_diag_error(diags, SL_ESCHEMA, SL_NOWHERE, NULL, "a wait record lacks ns, type or partition");
	struct sl_buf name;
	sl_buf_init(&name);
	sl_buf_printf(&name, "%s~%s", ns, type);
	struct sl_waits *waits = sl_map_get(&defs->waits, name.data);
	if (!waits) {
		waits = calloc(1, sizeof(*waits));
		sl_assert(waits);
		sl_map_set(&defs->waits, name.data, waits);
	}
	if (!sl_definitions_wait_known(defs, name.data, (int32_t)partition)) {
		if (waits->count == waits->cap) {
			waits->cap = waits->cap ? waits->cap * 2 : 4;
			waits->partitions = realloc(waits->partitions, (size_t)waits->cap * sizeof(*waits->partitions));
			sl_assert(waits->partitions);
		}
		waits->partitions[waits->count++] = (int32_t)partition;
	}
	sl_buf_release(&name);
	return 0;
}

static const char *header_of(const struct sl_record *rec, const char *name, size_t *ret_len)
{
	for (int i = 0; i < rec->header_count; i++)
		if (strcmp(rec->headers[i].name, name) == 0) {
			*ret_len = rec->headers[i].value.len;
			return rec->headers[i].value.ptr;
		}
	*ret_len = 0;
	return NULL;
}

static bool is_type(const struct sl_record *rec, const char *type)
{
	size_t len;
	const char *value = header_of(rec, "ce_type", &len);
	return value && len == strlen(type) && memcmp(value, type, len) == 0;
}

static void read_record(struct sl_definitions *defs, const struct sl_record *rec)
{
	struct sl_diags diags;
	sl_diags_init(&diags);
	jv value = jv_invalid();
	int err = 0;
	static const struct {
		const char *type;
		int (*read)(struct sl_definitions *defs, jv value, struct sl_diags *diags);
	} kinds[] = {{TYPE_DEFINITION, read_definition}, {TYPE_POINTER, read_pointer}, {TYPE_WAIT, read_wait}};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!rec->value.ptr || !is_type(rec, kinds[i].type))
			continue;
		err = sl_json_parse(rec->value.ptr, rec->value.len, &sl_json_default, &value, &diags);
		err = err ? err : kinds[i].read(defs, value, &diags);
		break;
	}
	if (err) {
		struct sl_buf text;
		sl_buf_init(&text);
		sl_diags_print(&diags, &text, NULL);
		sl_log(SL_ERROR, "definition at %s/%d@%lld cannot be used: %s", rec->topic, rec->partition,
			(long long)rec->offset, text.data ? text.data : sl_err_text(err));
		sl_buf_release(&text);
	}
	jv_free(value);
	sl_diags_release(&diags);
}

bool sl_definitions_turn(struct sl_definitions *defs)
{
	if (!defs->assigned)
		return false;
	if (defs->end < 0) {
		int64_t low, high;
		if (defs->opt.broker->ops->watermarks(defs->opt.broker, defs->opt.topic, 0, &low, &high) ||
			defs->opt.broker->ops->start(defs->con, defs->opt.topic, 0, low))
			return false; /* Kafka does not answer yet: asked again at the next turn */
		defs->end = high;
		if (high == low)
			defs->offset = high - 1;
	}
	struct sl_record rec;
	void *handle;
	int n = 0;
	while (n < RECORDS_PER_TURN && defs->con && defs->opt.broker->ops->poll(defs->con, &rec, &handle)) {
		if (rec.offset > defs->offset) {
			read_record(defs, &rec);
			defs->offset = rec.offset;
		}
		defs->opt.broker->ops->release(defs->con, handle);
		n++;
	}
	return n == RECORDS_PER_TURN;
}

bool sl_definitions_complete(const struct sl_definitions *defs)
{
	return defs->end >= 0 && defs->offset + 1 >= defs->end;
}

int64_t sl_definitions_offset(const struct sl_definitions *defs)
{
	return defs->offset;
}

const char *sl_definitions_broken(const struct sl_definitions *defs, const char *ns, const char *hash)
{
	return find(&defs->broken, ns, hash);
}

const char *sl_definitions_stored(const struct sl_definitions *defs, const char *ns, const char *hash)
{
	return find(&defs->stored, ns, hash);
}

const struct sl_map *sl_definitions_waits(const struct sl_definitions *defs)
{
	return &defs->waits;
}

bool sl_definitions_wait_known(const struct sl_definitions *defs, const char *name, int32_t partition)
{
	const struct sl_waits *waits = sl_map_get(&defs->waits, name);
	for (int i = 0; waits && i < waits->count; i++)
		if (waits->partitions[i] == partition)
			return true;
	return false;
}

/* --- the consumer's callbacks --- */

static void on_assigned(void *arg, const char *topic, int32_t partition)
{
	struct sl_definitions *defs = arg;
	(void)topic;
	if (partition == 0)
		defs->assigned = true;
	defs->opt.wake(defs->opt.arg);
}

static void on_revoked(void *arg, const char *topic, int32_t partition)
{
	(void)arg, (void)topic, (void)partition; /* there is no group to take it away */
}

static void on_readable(void *arg)
{
	struct sl_definitions *defs = arg;
	defs->opt.wake(defs->opt.arg);
}

static void on_fatal(void *arg, int err, const char *text)
{
	struct sl_definitions *defs = arg;
	defs->opt.fatal(defs->opt.arg, err, text);
}

int sl_definitions_new(const struct sl_definitions_options *opt, struct sl_definitions **ret, struct sl_diags *diags)
{
	struct sl_definitions *defs = calloc(1, sizeof(*defs));
	if (!defs)
		abort();
	defs->opt = *opt;
	defs->end = defs->offset = -1;
	sl_map_init(&defs->broken);
	sl_map_init(&defs->stored);
	sl_map_init(&defs->waits);
	struct sl_consumer_options con = {.topics = &defs->opt.topic,
		.topic_count = 1,
		.events = {.arg = defs,
			.assigned = on_assigned,
			.revoked = on_revoked,
			.readable = on_readable,
			.fatal = on_fatal}};
	int err = opt->broker->ops->consumer_new(opt->broker, &con, &defs->con);
	if (err) {
		sl_diag_error(diags, err, SL_NOWHERE, NULL, "cannot read topic %s: %s", opt->topic, sl_err_text(err));
		defs->con = NULL;
		sl_definitions_free(defs);
		return err;
	}
	*ret = defs;
	return 0;
}

static void waits_free(void *waits)
{
	free(((struct sl_waits *)waits)->partitions);
	free(waits);
}

void sl_definitions_free(struct sl_definitions *defs)
{
	if (!defs)
		return;
	if (defs->con)
		defs->opt.broker->ops->consumer_close(defs->con);
	sl_map_release(&defs->broken, free);
	sl_map_release(&defs->stored, free);
	sl_map_release(&defs->waits, waits_free);
	free(defs);
}
