/* Structured log lines to stderr. */
#include "common/base/log.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/text.h"

static const char *service = "sluice";
static enum sl_level threshold = SL_INFO;
static int as_json;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local const char *context;
static const char *const level_name[] = {"debug", "info", "warn", "error"};

void sl_log_init(const char *name, enum sl_level level, int json)
{
	service = name;
	threshold = level;
	as_json = json;
}

void sl_log_set_level(enum sl_level level)
{
	threshold = level;
}

void sl_log_context(const char *text)
{
	context = text;
}

static void write_line(enum sl_level level, const char *text, size_t len)
{
	struct timespec ts;
	char when[32];
	struct sl_buf line;
	sl_buf_init(&line);
	clock_gettime(CLOCK_REALTIME, &ts);
	sl_time_format((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000, when);
	if (as_json) {
		sl_buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"service\":\"%s\",\"message\":", when,
			level_name[level], service);
		sl_buf_add_json_str(&line, text, len);
		if (context) {
			sl_buf_adds(&line, ",\"context\":");
			sl_buf_add_json_str(&line, context, __builtin_strlen(context));
		}
		sl_buf_adds(&line, "}\n");
	} else {
		sl_buf_printf(&line, "%s %-5s %s%s%s: ", when, level_name[level], service, context ? " " : "",
			context ? context : "");
		sl_buf_add(&line, text, len);
		sl_buf_addc(&line, '\n');
	}
	pthread_mutex_lock(&lock);
	fwrite(line.data, 1, line.len, stderr);
	fflush(stderr);
	pthread_mutex_unlock(&lock);
	sl_buf_release(&line);
}

void sl_log(enum sl_level level, const char *fmt, ...)
{
	if (level < threshold)
		return;
	struct sl_buf text;
	va_list ap;
	sl_buf_init(&text);
	va_start(ap, fmt);
	sl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	write_line(level, text.data ? text.data : "", text.len);
	sl_buf_release(&text);
}

/* Out of memory may be the reason: no allocation here. */
_Noreturn void sl_bug(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "%s: BUG at %s:%d%s%s: ", service, file, line, context ? " while " : "", context ? context : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	fflush(stderr);
	abort();
}
