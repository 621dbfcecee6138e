/* Metrics: fixed series per metric, written with relaxed atomics, printed as Prometheus text (exposition format 0.0.4).
 */
#include "common/app/metrics.h"
#include "common/base/log.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind { COUNTER, GAUGE, HISTOGRAM };
static const struct info {
	enum kind kind;
	const char *name, *who, *label, *text;
} infos[] = {
#define METRIC(kind, name, who, label, text) {kind, #name, who, label, text},
#include "common/app/metrics.def"
#undef METRIC
};

/* Upper bounds of the buckets in microseconds; the last bucket has none. */
static const int64_t bounds_us[] = {100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
	1000000, 2500000, 5000000, 10000000, 30000000, 60000000};
#define BUCKETS (sizeof(bounds_us) / sizeof(bounds_us[0]) + 1)
#define SERIES_MAX 64 /* the last is "other" */

struct series {
	_Atomic(char *) label; /* set once; NULL: not in use */
	_Atomic int64_t value;
};
static struct metric {
	struct series *series; /* [SERIES_MAX] for metrics with a label */
	_Atomic int64_t value; /* counters and gauges without; histograms: sum in microseconds */
	_Atomic int64_t buckets[BUCKETS];
} metrics[SL_METRIC_COUNT_];
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER; /* a label's first use only */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct series all_series[SL_METRIC_COUNT_][SERIES_MAX];

static void prepare(void)
{
	for (int i = 0; i < SL_METRIC_COUNT_; i++)
		metrics[i].series = all_series[i];
}

#define ADD(where, n) atomic_fetch_add_explicit(&(where), (n), memory_order_relaxed)
#define GET(where) atomic_load_explicit(&(where), memory_order_relaxed)
#define SET(where, v) atomic_store_explicit(&(where), (v), memory_order_relaxed)

void sl_metric_add(enum sl_metric metric, int64_t n)
{
	ADD(metrics[metric].value, n);
}

void sl_metric_set(enum sl_metric metric, int64_t value)
{
	SET(metrics[metric].value, value);
}

void sl_metric_observe_us(enum sl_metric metric, int64_t us)
{
	size_t b = 0;
	us = us < 0 ? 0 : us;
	while (b + 1 < BUCKETS && us > bounds_us[b])
		b++;
	ADD(metrics[metric].buckets[b], 1);
	ADD(metrics[metric].value, us);
}

/* Finds or names the series; a list of at most 63 short words is scanned faster than hashed. */
static struct series *find(enum sl_metric metric, const char *value, bool make)
{
	pthread_once(&once, prepare);
	struct series *s = metrics[metric].series;
	int i = 0;
	for (; i < SERIES_MAX; i++) {
		const char *label = atomic_load_explicit(&s[i].label, memory_order_acquire);
		if (!label)
			break;
		if (strcmp(label, value) == 0)
			return &s[i];
	}
	if (!make)
		return NULL;
	if (i >= SERIES_MAX - 1 && strcmp(value, "other") != 0)
		return find(metric, "other", true);
	pthread_mutex_lock(&naming);
	struct series *found = NULL;
	for (i = 0; i < SERIES_MAX && !found; i++) {
		char *label = atomic_load_explicit(&s[i].label, memory_order_acquire);
		if (label && strcmp(label, value) == 0)
			found = &s[i];
		if (!label) {
			char *copy = strdup(i == SERIES_MAX - 1 ? "other" : value);
			if (!copy)
				sl_bug(__FILE__, __LINE__, "out of memory");
			atomic_store_explicit(&s[i].label, copy, memory_order_release);
			found = &s[i];
		}
	}
	pthread_mutex_unlock(&naming);
	return found ? found : &s[SERIES_MAX - 1];
}

void sl_metric_add_l(enum sl_metric metric, const char *value, int64_t n)
{
	ADD(find(metric, value, true)->value, n);
}

void sl_metric_set_l(enum sl_metric metric, const char *value, int64_t to)
{
	SET(find(metric, value, true)->value, to);
}

int64_t sl_metric_get(enum sl_metric metric, const char *value)
{
	if (!value && infos[metric].kind == HISTOGRAM) {
		int64_t count = 0;
		for (size_t b = 0; b < BUCKETS; b++)
			count += GET(metrics[metric].buckets[b]);
		return count;
	}
	if (!value)
		return GET(metrics[metric].value);
	struct series *s = find(metric, value, false);
	return s ? GET(s->value) : 0;
}

static void add_label(struct sl_buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			sl_buf_adds(out, "\\n");
		else if (*text == '"' || *text == '\\')
			sl_buf_printf(out, "\\%c", *text);
		else
			sl_buf_addc(out, *text);
}

static void print_histogram(int i, struct sl_buf *out)
{
	int64_t count = 0;
	for (size_t b = 0; b < BUCKETS; b++) {
		count += GET(metrics[i].buckets[b]);
		if (b + 1 < BUCKETS)
			sl_buf_printf(out, "sluice_%s_bucket{le=\"%g\"} %lld\n", infos[i].name,
				(double)bounds_us[b] / 1e6, (long long)count);
		else
			sl_buf_printf(out, "sluice_%s_bucket{le=\"+Inf\"} %lld\n", infos[i].name, (long long)count);
	}
	sl_buf_printf(out, "sluice_%s_sum %.6f\nsluice_%s_count %lld\n", infos[i].name,
		(double)GET(metrics[i].value) / 1e6, infos[i].name, (long long)count);
}

static void print_series(int i, struct sl_buf *out)
{
	for (int k = 0; k < SERIES_MAX; k++) {
		const char *label = atomic_load_explicit(&metrics[i].series[k].label, memory_order_acquire);
		if (!label)
			break;
		sl_buf_printf(out, "sluice_%s{%s=\"", infos[i].name, infos[i].label);
		add_label(out, label);
		sl_buf_printf(out, "\"} %lld\n", (long long)GET(metrics[i].series[k].value));
	}
}

static const char *const kind_text[] = {"counter", "gauge", "histogram"};

void sl_metrics_text(const char *who, struct sl_buf *out)
{
	pthread_once(&once, prepare);
	for (int i = 0; i < SL_METRIC_COUNT_; i++) {
		if (!strpbrk(infos[i].who, who))
			continue;
		sl_buf_printf(out, "# HELP sluice_%s %s\n# TYPE sluice_%s %s\n", infos[i].name, infos[i].text,
			infos[i].name, kind_text[infos[i].kind]);
		if (infos[i].kind == HISTOGRAM)
			print_histogram(i, out);
		else if (*infos[i].label)
			print_series(i, out);
		else
			sl_buf_printf(out, "sluice_%s %lld\n", infos[i].name, (long long)GET(metrics[i].value));
	}
}

void sl_metrics_markdown(struct sl_buf *out)
{
	static const struct {
		char letter;
		const char *name;
	} services[] = {{'C', "coordinator"}, {'E', "executor"}, {'T', "timer"}};
	sl_buf_adds(out, "| metric | type | label | services | meaning |\n|---|---|---|---|---|\n");
	for (int i = 0; i < SL_METRIC_COUNT_; i++) {
		bool first = true;
		sl_buf_printf(
			out, "| `sluice_%s` | %s | %s | ", infos[i].name, kind_text[infos[i].kind], infos[i].label);
		for (int k = 0; k < 3; k++)
			if (strchr(infos[i].who, services[k].letter)) {
				sl_buf_printf(out, "%s%s", first ? "" : ", ", services[k].name);
				first = false;
			}
		sl_buf_printf(out, " | %s |\n", infos[i].text);
	}
}

void sl_metrics_reset(void)
{
	pthread_once(&once, prepare);
	for (int i = 0; i < SL_METRIC_COUNT_; i++) {
		SET(metrics[i].value, 0);
		for (size_t b = 0; b < BUCKETS; b++)
			SET(metrics[i].buckets[b], 0);
		for (int k = 0; k < SERIES_MAX; k++) {
			free(atomic_exchange(&metrics[i].series[k].label, NULL));
			SET(metrics[i].series[k].value, 0);
		}
	}
}
