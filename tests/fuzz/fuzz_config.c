/* Configuration: a YAML file, then after a line "---env" lines NAME=VALUE as environment. What is read is taken apart
 * as the services do it. */
#include "common/app/config.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 50
#define SIZE_MAX_BYTES (16u << 10)

static void take_apart(const struct sl_config *cfg)
{
	struct sl_arena arena;
	struct sl_redis_url url;
	struct sl_diags diags;
	const char *topic, *ns;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	int err = sl_config_redis(cfg, &arena, &url, &diags);
	FUZZ_HOLDS(!err == !diags.error_count, "redis.url: %s", sl_err_name(err));
	FUZZ_HOLDS(
		err || (url.host && url.port > 0 && url.port < 65536 && url.db >= 0), "redis.url %s", cfg->redis_url);
	for (int i = 0; i < cfg->topics_events.count; i++) {
		sl_config_event_topic(cfg, i, &arena, &topic, &ns);
		FUZZ_HOLDS(topic && ns, "topic %d", i);
	}
	sl_config_topic(cfg, &arena, "instances");
	sl_config_publish_topic(cfg, "default", &arena);
	sl_config_group_instance(cfg, "timer", &arena);
	FUZZ_HOLDS(cfg->partitions_instances >= 1 && cfg->partitions_instances <= 10000, "a number beyond its bounds");
	sl_diags_release(&diags);
	sl_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char mark[] = "---env\n";
	struct fuzz_in in = fuzz_in(data, size), env_in = in;
	char *env[LINES_MAX + 1] = {NULL};
	struct sl_config cfg;
	struct sl_arena arena;
	struct sl_diags diags;
	int count = 0;
	if (size > SIZE_MAX_BYTES)
		return -1;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	const char *at = size ? memmem(in.at, size, mark, strlen(mark)) : NULL;
	env_in.at = at ? at + strlen(mark) : in.end;
	in.end = at ? at : in.end;
	while (count < LINES_MAX && (env[count] = fuzz_line(&env_in, &arena)))
		count++;
	sl_config_init(&cfg);
	char *text = fuzz_exact(in);
	int file = sl_config_file(&cfg, text, (size_t)(in.end - in.at), "sluice.yaml", &diags);
	int vars = sl_config_env(&cfg, env, &diags);
	FUZZ_HOLDS((file || vars) == (diags.error_count > 0), "%s, %s, %d errors", sl_err_name(file), sl_err_name(vars),
		diags.error_count);
	take_apart(&cfg);
	free(text);
	sl_config_release(&cfg);
	sl_diags_release(&diags);
	sl_arena_release(&arena);
	return 0;
}
