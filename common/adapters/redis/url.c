/* redis:// addresses. */
#include "common/adapters/redis/conn.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *sl_redis_alloc(size_t size)
{
	void *ptr = calloc(1, size);
	sl_assert(ptr);
	return ptr;
}

void sl_redis_url_release(struct redis_url *url)
{
	free(url->host);
	free(url->user);
	free(url->password);
	memset(url, 0, sizeof(*url));
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoded copy (RFC 3986 2.1). */
static char *part(const char *text, size_t len)
{
	char *copy = sl_redis_alloc(len + 1);
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '%' && i + 2 < len && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
			copy[n++] = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
			i += 2;
		} else {
			copy[n++] = text[i];
		}
	}
	return copy;
}

static bool number(const char *text, size_t len, int max, int *ret)
{
	char digits[16];
	int64_t value;
	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = 0;
	if (sl_int_parse(digits, &value) || value < 0 || value > max)
		return false;
	*ret = (int)value;
	return true;
}

static bool query(const char *text, struct redis_url *ret)
{
	while (*text) {
		size_t len = strcspn(text, "&");
		const char *eq = memchr(text, '=', len);
		if (!eq)
			return false;
		size_t name = (size_t)(eq - text), rest = len - name - 1;
		bool ok = false;
		if (name == 8 && memcmp(text, "replicas", 8) == 0)
			ok = number(eq + 1, rest, 100, &ret->replicas);
		else if (name == 7 && memcmp(text, "wait_ms", 7) == 0)
			ok = number(eq + 1, rest, 600000, &ret->wait_ms);
		else if (name == 10 && memcmp(text, "timeout_ms", 10) == 0)
			ok = number(eq + 1, rest, 3600000, &ret->timeout_ms);
		if (!ok)
			return false;
		text += len + (text[len] == '&');
	}
	return true;
}

static void credentials(const char *text, size_t len, struct redis_url *ret)
{
	const char *colon = memchr(text, ':', len);
	if (!colon) {
		ret->password = part(text, len); /* as redis-cli reads it */
		return;
	}
	if (colon > text)
		ret->user = part(text, (size_t)(colon - text));
	ret->password = part(colon + 1, len - (size_t)(colon - text) - 1);
}

static bool address(const char *text, size_t len, struct redis_url *ret)
{
	const char *end = text + len, *host_end, *colon;
	if (len && *text == '[') { /* IPv6 */
		host_end = memchr(text, ']', len);
		if (!host_end)
			return false;
		ret->host = part(text + 1, (size_t)(host_end - text) - 1);
		colon = host_end + 1 < end ? host_end + 1 : NULL;
		if (colon && *colon != ':')
			return false;
	} else {
		colon = memchr(text, ':', len);
		host_end = colon ? colon : end;
		ret->host = part(text, (size_t)(host_end - text));
	}
	if (!*ret->host)
		return false;
	return !colon || (number(colon + 1, (size_t)(end - colon) - 1, 65535, &ret->port) && ret->port > 0);
}

int sl_redis_url_parse(const char *url, struct redis_url *ret, struct sl_diags *diags)
{
	*ret = (struct redis_url){.port = 6379, .replicas = -1, .wait_ms = 5000, .timeout_ms = 10000};
	if (url && strncmp(url, "rediss://", 9) == 0)
		return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL,
			"rediss:// (TLS) is not supported; use redis:// through a TLS tunnel");
	if (!url || strncmp(url, "redis://", 8) != 0)
		return sl_diag_error(
			diags, SL_ECONFIG, SL_NOWHERE, NULL, "the address of Redis must begin with redis://");
	const char *rest = url + 8;
	size_t len = strcspn(rest, "?"), authority = strcspn(rest, "/?");
	const char *at = NULL;
	for (size_t i = 0; i < authority; i++)
		if (rest[i] == '@')
			at = rest + i;
	if (at)
		credentials(rest, (size_t)(at - rest), ret);
	const char *host = at ? at + 1 : rest;
	bool ok = address(host, authority - (size_t)(host - rest), ret);
	if (ok && authority < len && authority + 1 < len)
		ok = number(rest + authority + 1, len - authority - 1, 1000000, &ret->db);
	if (ok && rest[len] == '?')
		ok = query(rest + len + 1, ret);
	if (ok)
		return 0;
	sl_redis_url_release(ret);
	return sl_diag_error(diags, SL_ECONFIG, SL_NOWHERE, NULL,
		"the address of Redis must read "
		"redis://[user:password@]host[:port][/db][?replicas=N&wait_ms=N&timeout_ms=N]");
}

int sl_redis_url_check(const char *url, struct sl_diags *diags)
{
	struct redis_url parsed;
	int err = sl_redis_url_parse(url, &parsed, diags);
	if (!err)
		sl_redis_url_release(&parsed);
	return err;
}
