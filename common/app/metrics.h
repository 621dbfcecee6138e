/* Metrics: counters, gauges and histograms of metrics.def, as Prometheus text. Written by any thread without a lock
 * (relaxed atomics), read by the HTTP thread. Live as long as the process. */
#ifndef SL_APP_METRICS_H
#define SL_APP_METRICS_H

#include "common/base/buf.h"
#include <stdint.h>

enum sl_metric {
#define METRIC(kind, name, who, label, text) SL_METRIC_##name,
#include "common/app/metrics.def"
#undef METRIC
	SL_METRIC_COUNT_
};

/* For metrics without a label. */
void sl_metric_add(enum sl_metric metric, int64_t n);	      /* counters and gauges */
void sl_metric_set(enum sl_metric metric, int64_t value);     /* gauges */
void sl_metric_observe_us(enum sl_metric metric, int64_t us); /* histograms; microseconds */
/* For metrics with a label. At most 63 values per metric; further ones count as "other". `value` is copied. */
void sl_metric_add_l(enum sl_metric metric, const char *value, int64_t n);
void sl_metric_set_l(enum sl_metric metric, const char *value, int64_t to);
int64_t sl_metric_get(enum sl_metric metric, const char *value); /* value NULL: without label; for tests */

/* Metrics of the services whose letters are in `who` ("C", "CET"). */
void sl_metrics_text(const char *who, struct sl_buf *out);
/* docs/operations' table. */
void sl_metrics_markdown(struct sl_buf *out);
void sl_metrics_reset(void); /* for tests */

#endif
