/* Configuration: precedence, units, and the errors a user sees. */
#include "common/app/config.h"
#include "common/app/config_table.h"
#include "common/app/metrics.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENV(...)                                                                                                       \
	(char *const[])                                                                                                \
	{                                                                                                              \
		__VA_ARGS__, NULL                                                                                      \
	}
#define ARGS(...)                                                                                                      \
	(char *const[])                                                                                                \
	{                                                                                                              \
		"prog", __VA_ARGS__, NULL                                                                              \
	}

static int count(char *const *argv)
{
	int n = 0;
	while (argv[n])
		n++;
	return n;
}

static int load(struct sl_config *cfg, char *const *argv, char *const *env, struct sl_diags *diags)
{
	sl_config_init(cfg);
	sl_diags_init(diags);
	return sl_config_load(cfg, count(argv), argv, env, false, diags);
}

static void done(struct sl_config *cfg, struct sl_diags *diags)
{
	sl_config_release(cfg);
	sl_diags_release(diags);
}

/* Everything that was wrong, as it is printed. */
static void printed(struct sl_diags *diags, const char *want)
{
	struct sl_buf out;
	sl_buf_init(&out);
	sl_buf_add(&out, "", 0);
	sl_diags_print(diags, &out, NULL);
	cr_assert_str_eq(out.data, want, "\n got %s\nwant %s", out.data, want);
	sl_buf_release(&out);
}

Test(app_config, every_default_is_valid_and_names_are_unique)
{
	struct sl_config cfg;
	struct sl_diags diags;
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	for (int i = 0; i < sl_config_key_count; i++) {
		const struct sl_config_key *key = &sl_config_keys[i];
		char env[128], other[128];
		if (key->type != SL_CONFIG_MAP)
			cr_assert_eq(sl_config_set(&cfg, key->name, key->fallback, SL_NOWHERE, &diags), 0, "%s: %s",
				key->name, sl_diags_first(&diags));
		cr_assert(key->type != SL_CONFIG_ENUM || strchr(key->text, ':'), "%s has no words", key->name);
		sl_config_env_name(key->name, env);
		for (int k = 0; k < i; k++) {
			sl_config_env_name(sl_config_keys[k].name, other);
			cr_assert_str_neq(env, other);
		}
	}
	cr_assert_str_eq(cfg.kafka_brokers, "127.0.0.1:9092");
	cr_assert_eq(cfg.partitions_instances, 32);
	cr_assert_eq(cfg.batch_bytes_max, 4 << 20);
	cr_assert_eq(cfg.executor_timeout_ms, 30000);
	cr_assert_str_eq(cfg.event_mode, "structured");
	cr_assert_eq(cfg.topics_events.count, 1);
	done(&cfg, &diags);
}

Test(app_config, command_line_beats_environment_beats_file_beats_default)
{
	char path[] = "/tmp/sluice-config-XXXXXX";
	int fd = mkstemp(path);
	static const char text[] = "kafka:\n  brokers: file:1\n  security.protocol: ssl\n  ssl: {ca.location: "
				   "/ca}\nhttp.port: 1\nredis:\n  prefix: file\ntimer: {horizon_ms: 1m}\n"
				   "topics.events: [a=x, b]\nexecutor:\n  egress:\n    allow:\n      - "
				   "\"*.example.com\"\n      - 10.0.0.0/8\n    loopback: true\n";
	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	struct sl_config cfg;
	struct sl_diags diags;
	int err = load(&cfg, ARGS("--config", path, "--http.port=3", "--log.level", "debug"),
		ENV("SLUICE_HTTP_PORT=2", "SLUICE_REDIS_PREFIX=env", "SLUICE_KAFKA_SECURITY_PROTOCOL=sasl_ssl",
			"SLUICE_LOG_LEVEL=", "HOME=/x"),
		&diags);
	cr_assert_eq(err, 0, "%s", sl_diags_first(&diags));
	cr_assert_eq(cfg.http_port, 3);
	cr_assert_str_eq(cfg.redis_prefix, "env");
	cr_assert_str_eq(cfg.kafka_brokers, "file:1");
	cr_assert_str_eq(cfg.log_level, "debug");
	cr_assert_str_eq(cfg.topic_prefix, "sluice.");
	cr_assert_eq(cfg.timer_horizon_ms, 60000);
	cr_assert(cfg.executor_egress_loopback);
	cr_assert_eq(cfg.kafka.count, 2);
	cr_assert_str_eq(cfg.kafka.items[0].name, "security.protocol");
	cr_assert_str_eq(cfg.kafka.items[0].value, "sasl_ssl");
	cr_assert_str_eq(cfg.kafka.items[1].name, "ssl.ca.location");
	cr_assert_str_eq(cfg.kafka.items[1].value, "/ca");
	cr_assert_eq(cfg.executor_egress_allow.count, 2);
	cr_assert_str_eq(cfg.executor_egress_allow.items[0], "*.example.com");
	const char *topic, *ns;
	sl_config_event_topic(&cfg, 0, &cfg.arena, &topic, &ns);
	cr_assert_str_eq(topic, "a");
	cr_assert_str_eq(ns, "x");
	sl_config_event_topic(&cfg, 1, &cfg.arena, &topic, &ns);
	cr_assert_str_eq(ns, "default");
	cr_assert_str_eq(sl_config_publish_topic(&cfg, "default", &cfg.arena), "b");
	cr_assert_str_eq(sl_config_publish_topic(&cfg, "nobody", &cfg.arena), "a");
	cr_assert_str_eq(sl_config_topic(&cfg, &cfg.arena, "actions"), "sluice.actions");
	done(&cfg, &diags);
	unlink(path);
}

static void file_error(const char *text, const char *want)
{
	struct sl_config cfg;
	struct sl_diags diags;
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	cr_assert_eq(sl_config_file(&cfg, text, strlen(text), "s.yaml", &diags), SL_ECONFIG, "%s", text);
	printed(&diags, want);
	done(&cfg, &diags);
}

Test(app_config, file_errors_have_a_place_and_a_suggestion)
{
	file_error("kafka.brokers: a:1\nkafka_brokers: b\n",
		"s.yaml:2:1: error: unknown setting `kafka_brokers` (did you mean `kafka.brokers`?)\n");
	file_error("executor:\n  in_flight_mx: 3\n  timeout_ms: soon\n",
		"s.yaml:2:3: error: unknown setting `executor.in_flight_mx` (did you mean `executor.in_flight_max`?)\n"
		"s.yaml:3:15: error: `executor.timeout_ms`: \"soon\" is not a time (500, 500ms, 30s, 5m, 1h, 7d)\n");
	file_error("instance:\n  early_window_ms: 1\n", "s.yaml:2:3: error: unknown setting `instance.early_window_ms` "
							"(did you mean `correlation.early_window_ms`?)\n");
	file_error("http:\n  port: 70000\n", "s.yaml:2:9: error: `http.port`: 70000 is out of range (-1 to 65535)\n");
	file_error(
		"http: 8080\n", "s.yaml:1:1: error: `http` is a group of settings: name: value lines are expected\n");
	file_error("event.mode: xml\n",
		"s.yaml:1:13: error: `event.mode`: \"xml\" is not one of structured|binary|avro\n");
	file_error("redis.url:\n", "s.yaml:1:1: error: `redis.url`: a single value is expected\n");
	file_error("redis.url: [a]\n", "s.yaml:1:1: error: `redis.url`: a single value is expected\n");
	file_error("- a\n", "s.yaml:1:1: error: the file must hold name: value lines\n");
	file_error("kafka.bootstrap.servers: x\n",
		"s.yaml:1:26: error: `kafka.bootstrap.servers` is set by `kafka.brokers`\n");
	file_error("topics.events: [[a]]\n",
		"s.yaml:1:1: error: `topics.events`: a list of single values without commas is expected\n");
}

Test(app_config, broken_yaml_says_where)
{
	struct sl_config cfg;
	struct sl_diags diags;
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	static const char text[] = "kafka:\n  brokers: [a\nhttp.port: 1\n";
	cr_assert_eq(sl_config_file(&cfg, text, sizeof(text) - 1, "s.yaml", &diags), SL_ECONFIG);
	cr_assert_str_eq(diags.first->loc.file, "s.yaml");
	cr_assert_geq(diags.first->loc.line, 1);
	cr_assert_eq(strncmp(sl_diags_first(&diags), "not well-formed YAML: ", 22), 0);
	cr_assert_eq(sl_config_file(&cfg, "%s\x91", 3, "s.yaml", &diags), SL_ECONFIG, "libfyaml never ends");
	cr_assert_eq(sl_config_file(&cfg, "", 0, "empty.yaml", &diags), 0);
	cr_assert_eq(sl_config_file(&cfg, "# nothing\n", 10, "empty.yaml", &diags), 0);
	done(&cfg, &diags);
}

static void args_error(char *const *argv, char *const *env, const char *want)
{
	struct sl_config cfg;
	struct sl_diags diags;
	cr_assert_eq(load(&cfg, argv, env, &diags), SL_ECONFIG, "%s", want);
	printed(&diags, want);
	done(&cfg, &diags);
}

Test(app_config, option_and_environment_errors_are_named)
{
	args_error(
		ARGS("--htp.port", "1"), ENV("A=b"), "error: unknown option `htp.port` (did you mean `http.port`?)\n");
	args_error(ARGS("--http.port"), ENV("A=b"), "error: option --http.port needs a value\n");
	args_error(
		ARGS("--http.port", "x"), ENV("A=b"), "--http.port: error: `http.port`: \"x\" is not a whole number\n");
	args_error(ARGS("-x"), ENV("A=b"), "error: unknown option `-x`\n");
	args_error(ARGS("--config", "/nowhere/s.yaml"), ENV("A=b"),
		"error: configuration file /nowhere/s.yaml: No such file or directory\n");
	args_error(ARGS("w"), ENV("SLUICE_HTTP_PORT=x"),
		"SLUICE_HTTP_PORT: error: `http.port`: \"x\" is not a whole number\n");
	args_error(ARGS("w"), ENV("SLUICE_EXPR_SOFT_MS=3s"), "error: `expr.soft_ms` is larger than `expr.hard_ms`\n");
	struct sl_config cfg;
	struct sl_diags diags;
	cr_assert_eq(load(&cfg, ARGS("w"), ENV("SLUICE_HTTP_PRT=1", "SLUICE_SECRET_X=y"), &diags), 0);
	printed(&diags,
		"warning: environment: no setting is named by SLUICE_HTTP_PRT (did you mean SLUICE_HTTP_PORT?)\n");
	done(&cfg, &diags);
}

Test(app_config, options_words_and_unknown_options)
{
	struct sl_config cfg;
	struct sl_diags diags;
	cr_assert_eq(load(&cfg,
			     ARGS("a", "--executor.egress.loopback", "b", "--executor.egress.loopback", "false", "--",
				     "--c"),
			     NULL, &diags),
		0);
	cr_assert_eq(cfg.arg_count, 3);
	cr_assert_str_eq(cfg.args[0], "a");
	cr_assert_str_eq(cfg.args[1], "b");
	cr_assert_str_eq(cfg.args[2], "--c");
	cr_assert_null(cfg.args[3]);
	cr_assert(!cfg.executor_egress_loopback);
	done(&cfg, &diags);
	cr_assert_eq(load(&cfg, ARGS("--help", "--http.port"), NULL, &diags), 0);
	cr_assert(cfg.help);
	done(&cfg, &diags);
	sl_config_init(&cfg);
	sl_diags_init(&diags);
	cr_assert_eq(sl_config_load(&cfg, 7, ARGS("start", "--version", "1.0", "--redis.prefix", "p", "-w"), NULL, true,
			     &diags),
		0);
	cr_assert_eq(cfg.arg_count, 4);
	cr_assert_str_eq(cfg.args[1], "--version");
	cr_assert_str_eq(cfg.args[3], "-w");
	cr_assert_str_eq(cfg.redis_prefix, "p");
	done(&cfg, &diags);
}

Test(app_config, units_are_understood)
{
	static const struct {
		const char *name, *value;
		int64_t want;
	} table[] = {{"batch.bytes_max", "64KiB", 65536}, {"batch.bytes_max", "100000", 100000},
		{"cache.bytes_max", "1gib", 1 << 30}, {"retry.delay_max_ms", "90s", 90000},
		{"retry.delay_max_ms", "2h", 7200000}, {"retry.delay_max_ms", "7d", 604800000},
		{"retry.delay_max_ms", "250ms", 250}, {"http.port", "-1", -1}};
	static const struct {
		const char *name, *value;
	} refused[] = {{"batch.bytes_max", "64 KiB"}, {"batch.bytes_max", "1TiB"}, {"retry.delay_max_ms", "1.5h"},
		{"retry.delay_max_ms", "-1s"}, {"http.port", "80k"}, {"http.port", ""},
		{"cache.bytes_max", "99999999999GiB"}, {"executor.egress.loopback", "maybe"}, {"event.mode", ""},
		{"event.mode", "structured|binary"}, {"log.level", "inf"}};
	struct sl_config cfg;
	sl_config_init(&cfg);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		cr_assert_eq(
			sl_config_set(&cfg, table[i].name, table[i].value, SL_NOWHERE, NULL), 0, "%s", table[i].value);
		cr_assert_eq(*(int64_t *)((char *)&cfg + sl_config_key(table[i].name)->offset), table[i].want, "%s",
			table[i].value);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		cr_assert_eq(sl_config_set(&cfg, refused[i].name, refused[i].value, SL_NOWHERE, NULL), SL_ECONFIG,
			"%s %s", refused[i].name, refused[i].value);
	sl_config_release(&cfg);
}

Test(app_config, redis_url_is_taken_apart)
{
	static const struct {
		const char *url, *host, *user, *password;
		int port, db;
	} table[] = {{"redis://h:7/3", "h", NULL, NULL, 7, 3}, {"redis://h", "h", NULL, NULL, 6379, 0},
		{"redis://:pw@h/1", "h", NULL, "pw", 6379, 1}, {"redis://u:p@w@h:1/", "h", "u", "p@w", 1, 0},
		{"redis://[::1]:5/2", "::1", NULL, NULL, 5, 2}};
	static const char *const refused[][2] = {{"http://x", "`redis.url` must look like redis://host:port/db"},
		{"rediss://x", "`redis.url` must look like redis://host:port/db; TLS to Redis is not supported yet"},
		{"redis://:secret@h:x", "`redis.url`: its port is not a number from 1 to 65535"},
		{"redis://h/x", "`redis.url`: its database is not a number"},
		{"redis://", "`redis.url`: it names no host"}};
	struct sl_config cfg;
	struct sl_diags diags;
	sl_config_init(&cfg);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sl_redis_url url;
		cfg.redis_url = table[i].url;
		cr_assert_eq(sl_config_redis(&cfg, &cfg.arena, &url, NULL), 0, "%s", table[i].url);
		cr_assert_str_eq(url.host, table[i].host);
		cr_assert_eq(url.port, table[i].port);
		cr_assert_eq(url.db, table[i].db);
		cr_assert(table[i].user ? url.user && strcmp(url.user, table[i].user) == 0 : !url.user);
		cr_assert(table[i].password ? url.password && strcmp(url.password, table[i].password) == 0
					    : !url.password);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct sl_redis_url url;
		sl_diags_init(&diags);
		cfg.redis_url = refused[i][0];
		cr_assert_eq(sl_config_redis(&cfg, &cfg.arena, &url, &diags), SL_ECONFIG);
		cr_assert_str_eq(sl_diags_first(&diags), refused[i][1]);
		sl_diags_release(&diags);
	}
	sl_config_release(&cfg);
}

Test(app_config, secrets_come_from_folder_then_environment)
{
	char dir[] = "/tmp/sluice-secrets-XXXXXX", path[200];
	struct sl_config cfg;
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/token", dir);
	FILE *f = fopen(path, "w");
	fputs("from file\n", f);
	fclose(f);
	setenv("SLUICE_SECRET_token", "from environment", 1);
	setenv("SLUICE_SECRET_MY_KEY", "mine", 1);
	sl_config_init(&cfg);
	char *value = sl_config_secret(&cfg, "token");
	cr_assert_str_eq(value, "from environment");
	free(value);
	value = sl_config_secret(&cfg, "my-key");
	cr_assert_str_eq(value, "mine");
	free(value);
	cfg.secrets_dir = dir;
	value = sl_config_secret(&cfg, "token");
	cr_assert_str_eq(value, "from file");
	free(value);
	cr_assert_null(sl_config_secret(&cfg, "absent"));
	cr_assert_null(sl_config_secret(&cfg, "../token"));
	unlink(path);
	rmdir(dir);
	sl_config_release(&cfg);
}

Test(app_config, group_instance_needs_a_name_or_a_number)
{
	struct sl_config cfg;
	char host[256] = "", want[400];
	sl_config_init(&cfg);
	cr_assert_null(sl_config_group_instance(&cfg, "timer", &cfg.arena));
	cfg.service_ordinal = "2";
	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "%s-timer-2", host);
	cr_assert_str_eq(sl_config_group_instance(&cfg, "timer", &cfg.arena), want);
	cfg.group_instance_id = "mine";
	cr_assert_str_eq(sl_config_group_instance(&cfg, "timer", &cfg.arena), "mine");
	sl_config_release(&cfg);
}

Test(app_config, generated_page_is_not_stale)
{
	const char *path = SL_SOURCE_DIR "/common/app/SETTINGS.md";
	struct sl_buf want, got;
	char part[4096];
	size_t n;
	sl_buf_init(&want);
	sl_buf_init(&got);
	sl_buf_adds(&want,
		"# Settings\n\nGenerated from config.def. Precedence: command line, environment, file, default.\n\n");
	sl_config_markdown(&want);
	sl_buf_adds(&want, "\n# Metrics\n\nGenerated from metrics.def.\n\n");
	sl_metrics_markdown(&want);
	if (getenv("SL_WRITE_GENERATED")) {
		FILE *out = fopen(path, "w");
		cr_assert(out && fputs(want.data, out) >= 0 && fclose(out) == 0);
	}
	FILE *f = fopen(path, "r");
	cr_assert_not_null(f);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		sl_buf_add(&got, part, n);
	fclose(f);
	cr_assert_str_eq(
		got.data, want.data, "common/app/SETTINGS.md is stale: run this test with SL_WRITE_GENERATED=1");
	sl_buf_clear(&got);
	sl_config_help(&got);
	cr_assert_not_null(strstr(got.data, "  --kafka.brokers\n"));
	cr_assert_not_null(strstr(got.data, "  --kafka.NAME\n"));
	sl_buf_release(&want);
	sl_buf_release(&got);
}
