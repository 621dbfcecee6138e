/* The watchdog's note on real Redis (R7): fenced by the epoch, and soon over when Redis is not there. */
#include "common/adapters/redis/note.h"
#include "tests/contract/rig.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static redisContext *connected(void)
{
	const char *at = strstr(getenv("SLUICE_REDIS_URL"), "://") + 3;
	const char *host = strchr(at, '@') ? strchr(at, '@') + 1 : at;
	const char *colon = strchr(host, ':');
	char name[256];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":/?"), host);
	redisContext *ctx = redisConnect(name, colon ? atoi(colon + 1) : 6379);
	CHECK(ctx && !ctx->err);
	return ctx;
}

static void expect(redisContext *ctx, const char *prefix, const char *field, const char *value)
{
	redisReply *reply = redisCommand(ctx, "HGET %s:p:{3} %s", prefix, field);
	CHECK(reply);
	CHECK_STR(reply->type == REDIS_REPLY_STRING ? reply->str : "(nothing)", value);
	freeReplyObject(reply);
}

static void only_the_owner_of_the_epoch_may_note(struct rig *rig)
{
	const char *url = getenv("SLUICE_REDIS_URL"), *prefix = rig_name("note");
	redisContext *ctx = connected();
	(void)rig;
	CHECK_INT(sl_redis_note_proved(url, prefix, 3, 7, 42, "0.1", "default~i because of this", NULL), SL_EFENCED);
	freeReplyObject(redisCommand(ctx, "HSET %s:p:{3} epoch 7", prefix));
	CHECK_INT(sl_redis_note_proved(url, prefix, 3, 6, 42, "0.1", "default~i because of this", NULL), SL_EFENCED);
	expect(ctx, prefix, "proved:42:0.1", "(nothing)");
	CHECK_INT(sl_redis_note_proved(url, prefix, 3, 7, 42, "0.1", "default~i because of this", NULL), 0);
	expect(ctx, prefix, "proved:42:0.1", "default~i because of this");
	freeReplyObject(redisCommand(ctx, "DEL %s:p:{3}", prefix));
	redisFree(ctx);
}

static void trouble_is_told(struct rig *rig)
{
	const char *url = getenv("SLUICE_REDIS_URL"), *prefix = rig_name("note");
	redisContext *ctx = connected();
	struct sl_buf why;
	(void)rig;
	sl_buf_init(&why);
	freeReplyObject(redisCommand(ctx, "SET %s:p:{3} text", prefix));
	CHECK_INT(sl_redis_note_proved(url, prefix, 3, 7, 42, ".", "x", &why), SL_ESTORE);
	CHECK(strstr(why.data, "WRONGTYPE"));
	freeReplyObject(redisCommand(ctx, "DEL %s:p:{3}", prefix));
	redisFree(ctx);
	time_t from = time(NULL);
	CHECK_INT(sl_redis_note_proved("redis://127.0.0.1:1/0", prefix, 3, 7, 42, ".", "x", NULL), SL_EUNREACHABLE);
	CHECK_INT(sl_redis_note_proved("redis://192.0.2.1:6379/0", prefix, 3, 7, 42, ".", "x", NULL), SL_EUNREACHABLE);
	CHECK(time(NULL) - from <= 4);
	CHECK_INT(sl_redis_note_proved("http://x", prefix, 3, 7, 42, ".", "x", NULL), SL_ECONFIG);
	sl_buf_release(&why);
}

static const struct test tests[] = {
	{"only_the_owner_of_the_epoch_may_note", only_the_owner_of_the_epoch_may_note, "redis"},
	{"trouble_is_told", trouble_is_told, "redis"},
};

int main(int argc, char **argv)
{
	return rig_main(argc, argv, "redis", "SLUICE_REDIS_URL", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
