/* Ids, homes and partitions. */
#define OPENSSL_SUPPRESS_DEPRECATED /* SHA1_Init and its kin: what replaces them costs more than the hash */
#include "common/model/id.h"
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/rules.h"

/* Name space of all ids that Sluice derives: a constant of ours, never to change. */
static const uuid_t name_space = {0x5c, 0x1f, 0x1c, 0xe0, 0x1d, 0x5a, 0x4b, 0x7e, 0x9a, 0x51, 0x0c, 0x5e, 0x3d, 0x8f, 0x2b, 0x64};

/* Length-prefixed, so that ("ab","c") and ("a","bc") differ. */
static void put_length(unsigned char prefix[static 4], size_t len)
{
	for (int i = 0; i < 4; i++)
		prefix[i] = (unsigned char)(len >> (24 - 8 * i));
}

static void add_part(struct sl_buf *buf, const char *part)
{
	size_t len = strlen(part);
	unsigned char prefix[4];
	put_length(prefix, len);
	sl_buf_add(buf, prefix, sizeof(prefix));
	sl_buf_add(buf, part, len);
}

static void to_hex(const unsigned char *bytes, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < len; i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[2 * len] = '\0';
}

void sl_id_derive(const char *const *parts, int n, char ret[static SL_UUID_TEXT])
{
	unsigned char sha[SHA_DIGEST_LENGTH], prefix[4];
	SHA_CTX ctx;
	SHA1_Init(&ctx); /* RFC 9562 section 5.5, UUIDv5 */
	SHA1_Update(&ctx, name_space, sizeof(name_space));
	for (int i = 0; i < n; i++) {
		size_t len = strlen(parts[i]);
		put_length(prefix, len);
		SHA1_Update(&ctx, prefix, sizeof(prefix));
		SHA1_Update(&ctx, parts[i], len);
	}
	SHA1_Final(sha, &ctx);
	sha[6] = (unsigned char)((sha[6] & 0x0f) | 0x50);
	sha[8] = (unsigned char)((sha[8] & 0x3f) | 0x80);
	uuid_unparse_lower(sha, ret);
}

void sl_id_effect(const char *ns, const struct sl_pos *pos, int index, char ret[static SL_UUID_TEXT])
{
	char partition[16], offset[24], number[16];
	snprintf(partition, sizeof(partition), "%d", (int)pos->partition);
	snprintf(offset, sizeof(offset), "%lld", (long long)pos->offset);
	static int random_number;
	snprintf(number, sizeof(number), "%d", SL_RULE(derived_ids) ? index : --random_number);
	sl_id_derive((const char *const[]){ns, "instances", partition, offset, pos->path ? pos->path : "", number}, 6, ret);
}

static void home_of(const struct sl_buf *buf, char ret[static 33])
{
	unsigned char sha[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)buf->data, buf->len, sha);
	to_hex(sha, 16, ret);
}

void sl_home_of_key(const char *const *names, const char *const *values, int n, char ret[static 33])
{
	struct sl_buf buf;
	sl_buf_init(&buf);
	for (int i = 0; i < n; i++) {
		add_part(&buf, names[i]);
		add_part(&buf, values[i]);
	}
	home_of(&buf, ret);
	sl_buf_release(&buf);
}

void sl_home_of_workflow(const char *ns, const char *workflow, char ret[static 33])
{
	struct sl_buf buf;
	sl_buf_init(&buf);
	add_part(&buf, "workflow");
	add_part(&buf, ns);
	add_part(&buf, workflow);
	home_of(&buf, ret);
	sl_buf_release(&buf);
}

const char *sl_id_home(const char *id, size_t *ret_len)
{
	if (*id == '#')
		id++;
	const char *dot = *id == '@' ? NULL : strrchr(id, '.');
	*ret_len = dot ? (size_t)(dot - id) : strlen(id);
	return id;
}

char *sl_id_kafka_key(struct sl_arena *arena, const char *ns, const char *id)
{
	size_t len;
	const char *home = sl_id_home(id, &len);
	return sl_arena_printf(arena, "%s~%.*s", ns, (int)len, home);
}

int32_t sl_id_partition(const char *ns, const char *id, int32_t partitions)
{
	char text[SL_HOME_MAX + 80], *key = text;
	size_t len;
	const char *home = sl_id_home(id, &len);
	if (*home == '@') {
		long p = strtol(home + 1, NULL, 10);
		return p >= 0 && p < partitions ? (int32_t)p : 0;
	}
	int n = snprintf(text, sizeof(text), "%s~%.*s", ns, (int)len, home);
	if (n >= (int)sizeof(text)) /* whoever receives it refuses it; here it must only not end the process */
		n = asprintf(&key, "%s~%.*s", ns, (int)len, home);
	sl_assert(n > 0);
	uint32_t hash = sl_murmur2(key, (size_t)n);
	if (key != text)
		free(key);
	return (int32_t)((hash & 0x7fffffff) % (uint32_t)partitions);
}

static bool all_of(const char *text, size_t max, const char *allowed)
{
	size_t len = strlen(text);
	return len >= 1 && len <= max && strspn(text, allowed) == len;
}

bool sl_namespace_valid(const char *ns)
{
	return all_of(ns, 63, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

bool sl_user_id_valid(const char *id)
{
	return all_of(id, 128, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

void sl_hash_hex(const void *bytes, size_t len, char ret[static 65])
{
	unsigned char sha[SHA256_DIGEST_LENGTH];
	SHA256(bytes, len, sha);
	to_hex(sha, sizeof(sha), ret);
}
