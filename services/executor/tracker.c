/* Finished offsets of one partition. */
#include "services/executor/tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sl_tracker_init(struct sl_tracker *tracker, int64_t next)
{
	memset(tracker, 0, sizeof(*tracker));
	tracker->next = next;
}

void sl_tracker_release(struct sl_tracker *tracker)
{
	free(tracker->runs);
	memset(tracker, 0, sizeof(*tracker));
}

/* First run that ends at or behind `offset` - 1, i.e. which a finished `offset` could touch. */
static int lower(const struct sl_tracker *tracker, int64_t offset)
{
	int lo = 0, hi = tracker->count;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (tracker->runs[mid].to < offset - 1)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void drop(struct sl_tracker *tracker, int at, int n)
{
	if (!n)
		return;
	memmove(tracker->runs + at, tracker->runs + at + n, (size_t)(tracker->count - at - n) * sizeof(*tracker->runs));
	tracker->count -= n;
}

void sl_tracker_finish(struct sl_tracker *tracker, int64_t from, int64_t to)
{
	if (from < tracker->next)
		from = tracker->next;
	if (to < from)
		return;
	int at = lower(tracker, from), n = 0;
	while (at + n < tracker->count && tracker->runs[at + n].from <= to + 1) {
		struct sl_run *run = &tracker->runs[at + n++];
		from = run->from < from ? run->from : from;
		to = run->to > to ? run->to : to;
	}
	drop(tracker, at, n);
	if (from == tracker->next) {
		tracker->next = to + 1;
		return;
	}
	if (tracker->count == tracker->cap) {
		tracker->cap = tracker->cap ? tracker->cap * 2 : 16;
		tracker->runs = realloc(tracker->runs, (size_t)tracker->cap * sizeof(*tracker->runs));
		if (!tracker->runs)
			abort();
	}
	memmove(tracker->runs + at + 1, tracker->runs + at, (size_t)(tracker->count - at) * sizeof(*tracker->runs));
	tracker->runs[at] = (struct sl_run){from, to};
	tracker->count++;
}

bool sl_tracker_finished(const struct sl_tracker *tracker, int64_t offset)
{
	if (offset < tracker->next)
		return true;
	int at = lower(tracker, offset);
	for (; at < tracker->count && tracker->runs[at].from <= offset; at++)
		if (tracker->runs[at].to >= offset)
			return true;
	return false;
}

void sl_tracker_write(const struct sl_tracker *tracker, size_t bytes_max, struct sl_buf *out)
{
	int64_t end = tracker->next;
	size_t start = out->len;
	for (int i = 0; i < tracker->count; i++) {
		const struct sl_run *run = &tracker->runs[i];
		size_t before = out->len;
		sl_buf_printf(out, "%s%lld+%lld", before == start ? "1;" : ",", (long long)(run->from - end),
			(long long)(run->to - run->from + 1));
		if (out->len - start > bytes_max) {
			out->len = before;
			out->data[before] = '\0';
			return;
		}
		end = run->to + 1;
	}
}

static bool read_number(const char **at, char stop, int64_t *ret)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	long long value = strtoll(*at, &end, 10);
	if (errno || value <= 0 || value > (int64_t)1 << 48 || (stop && *end != stop))
		return false;
	*ret = value;
	*at = end + (stop ? 1 : 0);
	return true;
}

int sl_tracker_read(struct sl_tracker *tracker, const char *text)
{
	if (!text || !*text)
		return 0;
	if (strncmp(text, "1;", 2) != 0)
		return SL_EPARSE;
	/* all of it first: half a text must not count */
	for (int pass = 0; pass < 2; pass++) {
		const char *at = text + 2;
		int64_t end = tracker->next, gap, len;
		for (;;) {
			if (!read_number(&at, '+', &gap) || !read_number(&at, 0, &len) || (*at && *at != ','))
				return SL_EPARSE;
			if (pass)
				sl_tracker_finish(tracker, end + gap, end + gap + len - 1);
			end += gap + len;
			if (!*at)
				break;
			at++;
		}
	}
	return 0;
}
