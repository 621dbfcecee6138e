/* Diagnostics: collecting, sorting, printing with the source line quoted. */
#include "common/base/diag.h"
#include <stdlib.h>
#include <string.h>

void sl_diags_init(struct sl_diags *diags)
{
	memset(diags, 0, sizeof(*diags));
	sl_arena_init(&diags->arena);
	diags->count_max = 200;
}

void sl_diags_release(struct sl_diags *diags)
{
	if (!diags)
		return;
	sl_arena_release(&diags->arena);
	sl_diags_init(diags);
}

void sl_diags_clear(struct sl_diags *diags)
{
	int count_max = diags->count_max;
	sl_arena_clear(&diags->arena);
	diags->first = diags->last = NULL;
	diags->error_count = diags->warning_count = 0;
	diags->count_max = count_max;
}

static void add(struct sl_diags *diags, enum sl_severity severity, int err, struct sl_loc loc, const char *pointer,
	const char *fmt, va_list ap)
{
	int *count = severity == SL_SEVERITY_ERROR ? &diags->error_count : &diags->warning_count;
	if (++*count > diags->count_max)
		return;
	struct sl_buf text;
	sl_buf_init(&text);
	sl_buf_vprintf(&text, fmt, ap);
	struct sl_diag *d = SL_NEW(&diags->arena, struct sl_diag);
	d->severity = severity;
	d->err = err;
	d->loc = loc;
	d->loc.file = sl_arena_str(&diags->arena, loc.file);
	d->pointer = sl_arena_str(&diags->arena, pointer);
	d->text = sl_arena_str(&diags->arena, text.data ? text.data : "");
	sl_buf_release(&text);
	if (diags->last)
		diags->last->next = d;
	else
		diags->first = d;
	diags->last = d;
}

int sl_diag_error(struct sl_diags *diags, int err, struct sl_loc loc, const char *pointer, const char *fmt, ...)
{
	if (!diags)
		return err;
	va_list ap;
	va_start(ap, fmt);
	add(diags, SL_SEVERITY_ERROR, err, loc, pointer, fmt, ap);
	va_end(ap);
	return err;
}

void sl_diag_warn(struct sl_diags *diags, struct sl_loc loc, const char *pointer, const char *fmt, ...)
{
	if (!diags)
		return;
	va_list ap;
	va_start(ap, fmt);
	add(diags, SL_SEVERITY_WARNING, 0, loc, pointer, fmt, ap);
	va_end(ap);
}

void sl_diag_hint(struct sl_diags *diags, const char *fmt, ...)
{
	if (!diags || !diags->last)
		return;
	struct sl_buf text;
	sl_buf_init(&text);
	va_list ap;
	va_start(ap, fmt);
	sl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	diags->last->hint = sl_arena_str(&diags->arena, text.data ? text.data : "");
	sl_buf_release(&text);
}

void sl_diag_rule(struct sl_diags *diags, const char *rule)
{
	if (diags && diags->last)
		diags->last->rule = sl_arena_str(&diags->arena, rule);
}

static int cmp(const struct sl_diag *a, const struct sl_diag *b)
{
	int c = strcmp(a->loc.file ? a->loc.file : "", b->loc.file ? b->loc.file : "");
	if (c)
		return c;
	return a->loc.line != b->loc.line ? a->loc.line - b->loc.line : a->loc.col - b->loc.col;
}

void sl_diags_sort(struct sl_diags *diags)
{
	struct sl_diag *sorted = NULL, *next;
	/* insertion sort: at most count_max entries */
	for (struct sl_diag *d = diags->first; d; d = next) {
		next = d->next;
		struct sl_diag **at = &sorted;
		while (*at && cmp(*at, d) <= 0)
			at = &(*at)->next;
		d->next = *at;
		*at = d;
	}
	diags->first = sorted;
	for (diags->last = sorted; diags->last && diags->last->next;)
		diags->last = diags->last->next;
}

/* Quotes the line and marks the span; tabs stay tabs, so that the mark stands under the text. */
static void quote(const struct sl_diag *d, struct sl_buf *out, const char *source)
{
	const char *line = source;
	for (int i = 1; i < d->loc.line && line; i++) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return;
	size_t len = strcspn(line, "\r\n");
	if (len > 160)
		return;
	sl_buf_printf(out, "    %.*s\n    ", (int)len, line);
	int col = 1;
	for (size_t i = 0; i < len && col < d->loc.col; i++) {
		if (((unsigned char)line[i] & 0xc0) == 0x80)
			continue;
		sl_buf_addc(out, line[i] == '\t' ? '\t' : ' ');
		col++;
	}
	for (int i = 0; i < (d->loc.len > 0 && d->loc.len < 80 ? d->loc.len : 1); i++)
		sl_buf_addc(out, '^');
	sl_buf_addc(out, '\n');
}

void sl_diags_print(const struct sl_diags *diags, struct sl_buf *out, const char *source)
{
	for (const struct sl_diag *d = diags->first; d; d = d->next) {
		if (d->loc.file)
			sl_buf_printf(out, "%s:", d->loc.file);
		if (d->loc.line)
			sl_buf_printf(out, "%d:%d:", d->loc.line, d->loc.col);
		if (d->loc.file || d->loc.line)
			sl_buf_addc(out, ' ');
		sl_buf_printf(out, "%s: %s", d->severity == SL_SEVERITY_ERROR ? "error" : "warning", d->text);
		if (d->hint)
			sl_buf_printf(out, " (%s)", d->hint);
		if (d->rule)
			sl_buf_printf(out, " [%s]", d->rule);
		sl_buf_addc(out, '\n');
		if (source && d->loc.line)
			quote(d, out, source);
	}
	int more = diags->error_count + diags->warning_count;
	for (const struct sl_diag *d = diags->first; d; d = d->next)
		more--;
	if (more > 0)
		sl_buf_printf(out, "... and %d more\n", more);
}

const char *sl_diags_first(const struct sl_diags *diags)
{
	for (const struct sl_diag *d = diags->first; d; d = d->next)
		if (d->severity == SL_SEVERITY_ERROR)
			return d->text;
	return "";
}
