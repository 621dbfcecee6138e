/* R7's proved note: a synchronous connection for one script. */
#include "common/adapters/redis/note.h"
#include "common/adapters/redis/conn.h"
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#define TIMEOUT_MS 2000

static const char script[] = "if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end\n"
			     "redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])\n"
			     "return 1\n";

static int say(struct sl_buf *why, int err, const char *text)
{
	if (why)
		sl_buf_adds(why, text);
	return err;
}

/* Takes the reply. */
static int checked(redisContext *ctx, redisReply *reply, struct sl_buf *why)
{
	int err = 0;
	if (!reply)
		return say(why, SL_EUNREACHABLE, ctx->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		err = say(why, SL_ESTORE, reply->str);
	else if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0)
		err = say(why, SL_EFENCED, sl_err_text(SL_EFENCED));
	freeReplyObject(reply);
	return err;
}

static int greet(redisContext *ctx, const struct redis_url *url, struct sl_buf *why)
{
	int err = 0;
	if (url->password && url->user)
		err = checked(ctx, redisCommand(ctx, "AUTH %s %s", url->user, url->password), why);
	else if (url->password)
		err = checked(ctx, redisCommand(ctx, "AUTH %s", url->password), why);
	if (!err && url->db)
		err = checked(ctx, redisCommand(ctx, "SELECT %d", url->db), why);
	return err;
}

int sl_redis_note_proved(const char *url, const char *prefix, int32_t partition, int64_t epoch, int64_t offset, const char *path,
	const char *text, struct sl_buf *why)
{
	struct timeval timeout = {.tv_sec = TIMEOUT_MS / 1000, .tv_usec = TIMEOUT_MS % 1000 * 1000};
	struct redis_url parsed;
	struct sl_diags diags;
	struct sl_buf key, field;
	char number[24];
	sl_diags_init(&diags);
	int err = sl_redis_url_parse(url, &parsed, &diags);
	if (err) {
		say(why, err, sl_diags_first(&diags));
		sl_diags_release(&diags);
		return err;
	}
	sl_diags_release(&diags);
	sl_buf_init(&key);
	sl_buf_init(&field);
	sl_buf_printf(&key, "%s:p:{%d}", prefix ? prefix : "sluice", (int)partition);
	sl_buf_printf(&field, "proved:%lld:%s", (long long)offset, path);
	snprintf(number, sizeof(number), "%lld", (long long)epoch);
	redisContext *ctx = redisConnectWithTimeout(parsed.host, parsed.port, timeout);
	if (!ctx || ctx->err) {
		err = say(why, SL_EUNREACHABLE, ctx ? ctx->errstr : "out of memory");
	} else {
		redisSetTimeout(ctx, timeout);
		err = greet(ctx, &parsed, why);
		if (!err)
			err = checked(ctx,
				redisCommand(ctx, "EVAL %s 1 %s %s %s %s", script, key.data, number, field.data, text), why);
	}
	redisFree(ctx);
	sl_buf_release(&key);
	sl_buf_release(&field);
	sl_redis_url_release(&parsed);
	return err;
}
