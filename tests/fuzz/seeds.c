/* Makes seeds for the target "state": runs scenarios in the world of `sluice test` and writes down every step, the
 * actor's stored form before it and its message (state.h tells the form). fuzz_seeds OUT SCENARIO... sl_step,
 * sl_actor_changes and sl_compile are wrapped (-Wl,--wrap). */
#include "common/base/log.h"
#include "common/dsl/dsl.h"
#include "common/engine/engine.h"
#include "services/cli/scenario.h"
#include "tests/fuzz/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __real_sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags);
int __wrap_sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags);
int __real_sl_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx);
int __wrap_sl_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx);
void __real_sl_actor_committed(struct sl_actor *actor);
void __wrap_sl_actor_committed(struct sl_actor *actor);

static const char *out;
static int written;
static struct sl_map stored; /* address -> struct sl_map: what was committed */

static struct sl_map *fields_of(const char *id)
{
	struct sl_map *fields = sl_map_get(&stored, id);
	if (!fields) {
		fields = calloc(1, sizeof(*fields));
		sl_assert(fields);
		sl_map_init(fields);
		sl_map_set(&stored, id, fields);
	}
	return fields;
}

static void free_fields(void *value)
{
	sl_map_release(value, free);
	free(value);
}

/* Puts the changes of the actor since its last commit into the fields. */
static void apply(struct sl_actor *actor, struct sl_map *fields)
{
	struct sl_arena arena;
	struct sl_field *changed;
	int count;
	bool gone;
	sl_arena_init(&arena);
	sl_actor_changes(actor, &arena, &changed, &count, &gone);
	if (gone) {
		sl_map_release(fields, free);
		sl_map_init(fields);
	}
	for (int i = 0; i < count; i++)
		free(changed[i].value.ptr ? sl_map_set(fields, changed[i].name,
						    strndup(changed[i].value.ptr, changed[i].value.len))
					  : sl_map_del(fields, changed[i].name));
	sl_arena_release(&arena);
}

int __wrap_sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags)
{
	int err = __real_sl_compile(text, len, opt, ret_plan, diags);
	if (!err && *ret_plan)
		snprintf((*ret_plan)->hash, sizeof((*ret_plan)->hash), "%s", (*ret_plan)->id);
	return err;
}

void __wrap_sl_actor_committed(struct sl_actor *actor)
{
	apply(actor, fields_of(actor->id));
	__real_sl_actor_committed(actor);
}

int __wrap_sl_step(const struct sl_engine *eng, struct sl_actor *actor, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx)
{
	char path[4096];
	struct sl_map *fields = fields_of(actor->id);
	struct sl_buf buf;
	apply(actor, fields); /* steps of one batch before this one; the commit gives them again */
	sl_buf_init(&buf);
	sl_buf_printf(&buf, "%s\n", actor->id);
	sl_map_each(fields, e) sl_buf_printf(&buf, "%s %s\n", e->key, (const char *)e->value);
	sl_buf_addc(&buf, '\n');
	jv msg = sl_json_set(state_msg_write(in), "time_ms", jv_number((double)now_ms));
	sl_json_write(&buf, msg);
	sl_buf_addc(&buf, '\n');
	jv_free(msg);
	snprintf(path, sizeof(path), "%s/%04d", out, ++written);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(buf.data, buf.len, 1, file) != 1)
		sl_bug(__FILE__, __LINE__, "%s cannot be written", path);
	fclose(file);
	sl_buf_release(&buf);
	return __real_sl_step(eng, actor, in, pos, now_ms, fx);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "fuzz_seeds OUT SCENARIO...\n");
		return 2;
	}
	out = argv[1];
	for (int i = 2; i < argc; i++) {
		struct sl_scenario_result result;
		sl_map_init(&stored);
		sl_scenario_run(argv[i], &result);
		if (!result.passed)
			fprintf(stderr, "%s: %s", argv[i], result.difference);
		sl_scenario_result_clear(&result);
		sl_map_release(&stored, free_fields);
	}
	printf("%d seeds\n", written);
	return 0;
}
