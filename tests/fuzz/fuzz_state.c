/* Stored state of instances and mailboxes (state.h tells the form): loaded, stepped with the messages, and what is to
 * be stored then must be readable again. Limits are tiny, so that every bound is reached. */
#include "common/dsl/dsl.h"
#include "common/engine/engine.h"
#include "common/expr/expr.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/state.h"
#include <glob.h>

#define SIZE_MAX_BYTES (16u << 10)
#define FIELDS_MAX 100
#define STEPS_MAX 6
#define NOW_MS INT64_C(1704067200000)

static struct sl_engine engine;

static char *read_file(const char *path, size_t *ret_len)
{
	struct sl_buf buf;
	char part[4096];
	size_t n;
	FILE *file = fopen(path, "rb");
	FUZZ_HOLDS(file, "%s cannot be read", path);
	sl_buf_init(&buf);
	while ((n = fread(part, 1, sizeof(part), file)) > 0)
		sl_buf_add(&buf, part, n);
	fclose(file);
	*ret_len = buf.len;
	return sl_buf_steal(&buf);
}

static void deploy(struct sl_plans *plans, const char *path)
{
	const struct sl_compile_options opt = {.deploy = true, .mocked = true, .file = path};
	struct sl_doc *doc;
	struct sl_diags diags;
	struct sl_plan *plan;
	size_t len;
	char *text = read_file(path, &len);
	sl_diags_init(&diags);
	int err = sl_doc_parse(text, len, path, &doc, &diags);
	FUZZ_HOLDS(!err, "%s: %s", path, sl_diags_first(&diags));
	jv root = sl_doc_value(doc), def = sl_json_get(root, "definition");
	char *json = sl_json_text(def);
	err = sl_compile(json, strlen(json), &opt, &plan, &diags);
	FUZZ_HOLDS(!err, "%s: %s", path, sl_diags_first(&diags));
	snprintf(plan->hash, sizeof(plan->hash), "%s", plan->id);
	sl_plans_add(plans, "default", plan);
	sl_plans_point(plans, "default", plan->id, plan->version, plan->hash, true);
	sl_plan_unref(plan);
	jv_free(root);
	jv_free(def);
	free(json);
	free(text);
	sl_doc_free(doc);
	sl_diags_release(&diags);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct sl_expr_limits limits = {.soft_ms = 50, .bytes_max = 1 << 16, .depth_max = 200};
	struct sl_plans *plans = sl_plans_new();
	glob_t found;
	(void)argc;
	(void)argv;
	FUZZ_HOLDS(glob(SL_SOURCE_DIR "/tests/fuzz/flows/*.yaml", 0, NULL, &found) == 0, "no flows");
	for (size_t i = 0; i < found.gl_pathc; i++)
		deploy(plans, found.gl_pathv[i]);
	globfree(&found);
	sl_expr_init(&limits);
	engine = (struct sl_engine){.plans = plans, .partitions = 1, .seed = 1, .single = true};
	sl_limits_default(&engine.limits);
	engine.limits.state_bytes_max = 4096;
	engine.limits.inbox_max = 3;
	engine.limits.inbox_bytes_max = 2048;
	engine.limits.steps_max = 200;
	engine.limits.in_flight_max = 3;
	engine.limits.early_max = engine.limits.join_max = engine.limits.fan_out_max = 3;
	engine.limits.hops_max = 3;
	engine.limits.transitions_max = 5;
	engine.limits.ring_max = engine.limits.effect_ring_max = 4;
	engine.limits.lifecycle_level = 3;
	return 0;
}

/* What the changes make of the stored fields; a deleted one has no value. Memory in arena. */
static int apply(struct sl_actor *actor, struct sl_arena *arena, struct sl_map *fields)
{
	struct sl_field *changed;
	int count;
	bool gone;
	sl_actor_changes(actor, arena, &changed, &count, &gone);
	if (gone) {
		sl_map_release(fields, NULL);
		sl_map_init(fields);
	}
	for (int i = 0; i < count; i++) {
		if (changed[i].value.ptr)
			sl_map_set(fields, changed[i].name,
				sl_arena_strn(arena, changed[i].value.ptr, changed[i].value.len));
		else
			sl_map_del(fields, changed[i].name);
	}
	sl_actor_committed(actor);
	return count;
}

static int load(struct sl_actor *actor, const struct sl_map *fields, struct sl_diags *diags)
{
	struct sl_field list[FIELDS_MAX * 10];
	int count = 0;
	sl_map_each(fields, e)
	{
		FUZZ_HOLDS(count < FIELDS_MAX * 10, "%zu fields", fields->count);
		list[count++] = (struct sl_field){e->key, {e->value, strlen(e->value)}};
	}
	return sl_actor_load(&engine, actor, list, count, diags);
}

/* A new owner reads what this one wrote, and finds nothing to write. */
static void reload(const struct sl_actor *actor, struct sl_arena *arena, struct sl_map *fields)
{
	struct sl_actor *again = sl_actor_new(actor->ns, actor->id);
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = load(again, fields, &diags);
	FUZZ_HOLDS(!err, "what was stored is not read: %s: %s", sl_err_name(err), sl_diags_first(&diags));
	int count = apply(again, arena, fields);
	FUZZ_HOLDS(count == 0, "%d fields to write right after reading", count);
	sl_diags_release(&diags);
	sl_actor_free(again);
}

static void step(struct sl_actor *actor, jv text, int64_t offset, struct sl_arena *arena)
{
	struct sl_effects fx;
	struct sl_msg msg;
	struct sl_pos pos = {0, offset, ""};
	if (!state_msg_read(text, arena, &msg))
		return;
	msg.ns = "default";
	msg.to = actor->id;
	sl_effects_init(&fx, arena);
	int err = sl_step(&engine, actor, &msg, &pos, msg.time_ms ? msg.time_ms : NOW_MS, &fx);
	FUZZ_HOLDS(!err || err == SL_ENOTFOUND, "step: %s", sl_err_name(err));
	for (int i = 0; !err && i < fx.count; i++)
		FUZZ_HOLDS(fx.items[i].id && fx.items[i].ns && fx.items[i].from, "effect %d has no id", i);
	sl_effects_release(&fx);
	sl_msg_clear(&msg);
}

static void run(struct fuzz_in *in, const char *id, struct sl_arena *arena)
{
	struct sl_actor *actor = sl_actor_new("default", id);
	struct sl_map fields;
	struct sl_diags diags;
	const char *line;
	jv msg;
	sl_map_init(&fields);
	sl_diags_init(&diags);
	while ((line = fuzz_line(in, arena)) && *line) {
		char *space = strchr(line, ' ');
		if (!space || fields.count >= FIELDS_MAX)
			continue;
		*space = '\0';
		sl_map_set(&fields, line, space + 1);
	}
	int err = load(actor, &fields, &diags);
	FUZZ_HOLDS(!err == !diags.error_count, "load: %s", sl_err_name(err));
	for (int64_t n = 1; !err && n <= STEPS_MAX && (line = fuzz_line(in, arena)); n++) {
		if (sl_json_parse(line, strlen(line), &sl_json_default, &msg, NULL) != 0)
			continue;
		step(actor, msg, n, arena);
		apply(actor, arena, &fields);
		reload(actor, arena, &fields);
		jv_free(msg);
	}
	sl_map_release(&fields, NULL);
	sl_diags_release(&diags);
	sl_actor_free(actor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_arena arena;
	if (size > SIZE_MAX_BYTES || memchr(data, 0, size))
		return -1;
	sl_arena_init(&arena);
	const char *id = fuzz_line(&in, &arena);
	if (id && *id)
		run(&in, id, &arena);
	sl_arena_release(&arena);
	return 0;
}
