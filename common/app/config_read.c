/* Configuration: what services derive from it, and its printed forms. */
#include "common/app/config_table.h"
#include "common/base/text.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *sl_config_topic(const struct sl_config *cfg, struct sl_arena *arena, const char *name)
{
	return sl_arena_printf(arena, "%s%s", cfg->topic_prefix, name);
}

void sl_config_event_topic(
	const struct sl_config *cfg, int i, struct sl_arena *arena, const char **ret_topic, const char **ret_ns)
{
	const char *item = cfg->topics_events.items[i];
	size_t n = strcspn(item, "=");
	*ret_topic = sl_arena_strn(arena, item, n);
	*ret_ns = sl_arena_str(arena, item[n] && item[n + 1] ? item + n + 1 : "default");
}

const char *sl_config_publish_topic(const struct sl_config *cfg, const char *ns, struct sl_arena *arena)
{
	const char *topic, *of, *first = NULL;
	for (int i = 0; i < cfg->topics_events.count; i++) {
		sl_config_event_topic(cfg, i, arena, &topic, &of);
		if (strcmp(of, ns) == 0)
			return topic;
		first = first ? first : topic;
	}
	return first;
}

const char *sl_config_group_instance(const struct sl_config *cfg, const char *service, struct sl_arena *arena)
{
	char host[256] = "localhost";
	if (*cfg->group_instance_id)
		return sl_arena_str(arena, cfg->group_instance_id);
	if (!*cfg->service_ordinal)
		return NULL;
	gethostname(host, sizeof(host) - 1);
	return sl_arena_printf(arena, "%s-%s-%s", host, service, cfg->service_ordinal);
}

int sl_config_redis(
	const struct sl_config *cfg, struct sl_arena *arena, struct sl_redis_url *ret, struct sl_diags *diags)
{
	struct sl_redis_url url = {.port = 6379};
	const char *at = cfg->redis_url, *wrong = NULL;
	int64_t number;
	if (strncmp(at, "redis://", 8) != 0) {
		/* never quote the URL: it may hold a password */
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL,
			"`redis.url` must look like redis://host:port/db%s",
			strncmp(at, "rediss://", 9) == 0 ? "; TLS to Redis is not supported yet" : "");
	}
	at += 8;
	char *rest = sl_arena_str(arena, at), *slash = strchr(rest, '/'), *user = NULL;
	if (slash) {
		*slash++ = '\0';
		if (*slash && (sl_int_parse(slash, &number) || number < 0 || number > 1000))
			wrong = "its database is not a number";
		else
			url.db = *slash ? (int)number : 0;
	}
	char *host = strrchr(rest, '@');
	if (host) {
		*host++ = '\0';
		user = rest;
		char *colon = strchr(user, ':');
		if (colon)
			*colon++ = '\0';
		url.password = colon ? colon : user; /* redis://:password@ and redis://password@ */
		url.user = colon && *user ? user : NULL;
	} else {
		host = rest;
	}
	char *port = NULL;
	if (*host == '[') { /* [::1]:6379 */
		char *close = strchr(++host, ']');
		if (!close)
			wrong = "its address has no closing bracket";
		else
			port = close[1] == ':' ? close + 2 : NULL;
		if (close)
			*close = '\0';
	} else {
		port = strchr(host, ':');
		if (port)
			*port++ = '\0';
	}
	if (!wrong && port && (sl_int_parse(port, &number) || number < 1 || number > 65535))
		wrong = "its port is not a number from 1 to 65535";
	else if (!wrong && port)
		url.port = (int)number;
	if (!wrong && !*host)
		wrong = "it names no host";
	if (wrong)
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL, "`redis.url`: %s", wrong);
	url.host = host;
	*ret = url;
	return 0;
}

/* --- secrets (R8) --- */
static char *secret_file(const char *dir, const char *name)
{
	char path[4096];
	if (!*name || strchr(name, '/') || name[0] == '.' ||
		(size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return NULL;
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	char *value = calloc(1, 65537);
	if (!value)
		abort();
	size_t n = fread(value, 1, 65536, f);
	bool whole = !ferror(f) && feof(f);
	fclose(f);
	if (n > 0 && value[n - 1] == '\n')
		value[--n] = '\0';
	if (n > 0 && value[n - 1] == '\r')
		value[--n] = '\0';
	if (whole && !memchr(value, 0, n))
		return value;
	explicit_bzero(value, 65537);
	free(value);
	return NULL;
}

char *sl_config_secret(const struct sl_config *cfg, const char *name)
{
	char var[300];
	if (*cfg->secrets_dir) {
		char *value = secret_file(cfg->secrets_dir, name);
		if (value)
			return value;
	}
	if ((size_t)snprintf(var, sizeof(var), "SLUICE_SECRET_%s", name) >= sizeof(var))
		return NULL;
	const char *value = getenv(var);
	for (char *s = var + 14; !value && *s; s++)
		*s = isalnum((unsigned char)*s) ? (char)toupper((unsigned char)*s) : '_';
	if (!value)
		value = getenv(var);
	char *copy = value ? strdup(value) : NULL;
	if (value && !copy)
		abort();
	return copy;
}

/* --- printed forms --- */
static const char *type_text(const struct sl_config_key *key, char buf[static 80])
{
	static const char *const names[] = {[SL_CONFIG_STR] = "text",
		[SL_CONFIG_INT] = "number",
		[SL_CONFIG_BYTES] = "size",
		[SL_CONFIG_MS] = "time",
		[SL_CONFIG_BOOL] = "true, false",
		[SL_CONFIG_LIST] = "list",
		[SL_CONFIG_MAP] = "map"};
	if (key->type != SL_CONFIG_ENUM)
		return names[key->type];
	size_t out = 0;
	for (const char *s = key->text; *s && *s != ':' && out + 3 < 80; s++) {
		buf[out++] = *s == '|' ? ',' : *s;
		if (*s == '|')
			buf[out++] = ' ';
	}
	buf[out] = '\0';
	return buf;
}

static const char *explanation(const struct sl_config_key *key)
{
	const char *colon = key->type == SL_CONFIG_ENUM ? strchr(key->text, ':') : NULL;
	return colon ? colon + 2 : key->text;
}

void sl_config_help(struct sl_buf *out)
{
	char words[80];
	sl_buf_adds(out, "Settings (--NAME VALUE; in the environment SLUICE_ and NAME in capitals with _ for the dots; "
			 "in the file as NAME: VALUE):\n");
	for (int i = 0; i < sl_config_key_count; i++) {
		const struct sl_config_key *key = &sl_config_keys[i];
		sl_buf_printf(out, "  --%s%s\n      %s [%s%s%s]\n", key->name,
			key->type == SL_CONFIG_MAP ? ".NAME" : "", explanation(key), type_text(key, words),
			*key->fallback ? "; default " : "", key->fallback);
	}
}

static void cell(struct sl_buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '|')
			sl_buf_adds(out, "\\|");
		else
			sl_buf_addc(out, *text);
}

void sl_config_markdown(struct sl_buf *out)
{
	char words[80], env[128];
	sl_buf_adds(out, "| setting | environment | type | default | meaning |\n|---|---|---|---|---|\n");
	for (int i = 0; i < sl_config_key_count; i++) {
		const struct sl_config_key *key = &sl_config_keys[i];
		sl_config_env_name(key->name, env);
		const char *more = key->type == SL_CONFIG_MAP ? ".NAME" : "",
			   *env_more = key->type == SL_CONFIG_MAP ? "_NAME" : "";
		sl_buf_printf(out, "| `%s%s` | `%s%s` | %s | ", key->name, more, env, env_more, type_text(key, words));
		if (*key->fallback)
			sl_buf_printf(out, "`%s`", key->fallback);
		sl_buf_adds(out, " | ");
		cell(out, explanation(key));
		sl_buf_adds(out, " |\n");
	}
}
