/* Lowering 0.8: reading the document by pointer, expressions, templates, durations, diagnostics. */
#include "common/base/text.h"
#include "common/dsl/sw08_lower.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

jv sl_lower_at(const struct sl_lower *lo, const char *ptr, const char *member)
{
	jv v = sl_json_at(lo->root, ptr);
	if (!member)
		return v;
	jv m = sl_json_get(v, member);
	jv_free(v);
	return m;
}

bool sl_lower_has(const struct sl_lower *lo, const char *ptr, const char *member)
{
	jv v = sl_lower_at(lo, ptr, member);
	bool has = jv_is_valid(v);
	jv_free(v);
	return has;
}

const char *sl_lower_text(struct sl_lower *lo, const char *ptr, const char *member)
{
	jv v = sl_lower_at(lo, ptr, member);
	const char *text = jv_get_kind(v) == JV_KIND_STRING ? sl_arena_str(&lo->scratch, jv_string_value(v)) : NULL;
	jv_free(v);
	return text;
}

const char *sl_lower_name(struct sl_lower *lo, const char *ptr, const char *member)
{
	return sl_lower_keep(lo, sl_lower_text(lo, ptr, member));
}

bool sl_lower_bool(const struct sl_lower *lo, const char *ptr, const char *member, bool otherwise)
{
	jv v = sl_lower_at(lo, ptr, member);
	jv_kind kind = jv_get_kind(v);
	jv_free(v);
	return kind == JV_KIND_TRUE ? true : kind == JV_KIND_FALSE ? false : otherwise;
}

int sl_lower_count(const struct sl_lower *lo, const char *ptr, const char *member)
{
	jv v = sl_lower_at(lo, ptr, member);
	if (jv_get_kind(v) == JV_KIND_ARRAY)
		return jv_array_length(v);
	jv_free(v);
	return 0;
}

int64_t sl_lower_int(struct sl_lower *lo, const char *ptr, const char *member, int64_t otherwise)
{
	jv v = sl_lower_at(lo, ptr, member);
	int64_t n = otherwise;
	if (jv_get_kind(v) == JV_KIND_NUMBER && jv_is_integer(v) && fabs(jv_number_value(v)) < 1e15)
		n = (int64_t)jv_number_value(v);
	else if (jv_is_valid(v) && (jv_get_kind(v) != JV_KIND_STRING || sl_int_parse(jv_string_value(v), &n) < 0))
		sl_lower_error(lo, sl_lower_ptr(lo, "%s/%s", ptr, member), "%s must be a whole number", member);
	jv_free(v);
	return n;
}

/* --- diagnostics --- */
static char *format(struct sl_lower *lo, const char *fmt, va_list ap)
{
	struct sl_buf buf;
	sl_buf_init(&buf);
	sl_buf_vprintf(&buf, fmt, ap);
	char *text = sl_arena_str(&lo->scratch, buf.data);
	sl_buf_release(&buf);
	return text;
}

void sl_lower_error(struct sl_lower *lo, const char *ptr, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	sl_diag_error(lo->diags, SL_ESCHEMA, sl_doc_loc(lo->doc, ptr, false), ptr, "%s", format(lo, fmt, ap));
	va_end(ap);
	lo->failed = true;
}

void sl_lower_warn(struct sl_lower *lo, const char *ptr, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	sl_diag_warn(lo->diags, sl_doc_loc(lo->doc, ptr, false), ptr, "%s", format(lo, fmt, ap));
	va_end(ap);
}

void sl_lower_unsupported(struct sl_lower *lo, const char *ptr, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *what = format(lo, fmt, ap);
	va_end(ap);
	struct sl_loc loc = sl_doc_loc(lo->doc, ptr, true);
	if (lo->opt->deploy)
		sl_diag_error(
			lo->diags, SL_EUNSUPPORTED, loc, ptr, "not supported yet: %s (%d:%d)", what, loc.line, loc.col);
	else
		sl_diag_warn(lo->diags, loc, ptr, "not supported yet: %s (%d:%d)", what, loc.line, loc.col);
	lo->unsupported = true;
}

/* --- expressions --- */
static struct sl_expr_site site_at(const struct sl_lower *lo, const char *ptr, bool secrets)
{
	return (struct sl_expr_site){
		.loc = sl_doc_loc(lo->doc, ptr, false), .pointer = ptr, .vars = lo->vars, .secrets_allowed = secrets};
}

static int add_expr(struct sl_lower *lo, const char *ptr, const char *text, enum sl_expr_mode mode)
{
	struct sl_expr_site site = site_at(lo, ptr, false);
	int id = sl_program_add(lo->plan->program, text, mode, &site, lo->diags);
	if (id >= 0)
		return id;
	lo->failed = true;
	return SL_NO_EXPR;
}

int sl_lower_expr(struct sl_lower *lo, const char *ptr, const char *member, enum sl_expr_mode mode)
{
	const char *at = sl_lower_ptr(lo, "%s/%s", ptr, member);
	const char *text = sl_lower_text(lo, at, NULL);
	if (text)
		return add_expr(lo, at, text, mode);
	if (sl_lower_has(lo, at, NULL))
		sl_lower_error(lo, at, "%s must be an expression in a string", member);
	return SL_NO_EXPR;
}

/* A wrong template: says it again leaf by leaf, so that each message stands at its own string. Borrows v. */
static void blame(struct sl_lower *lo, const char *ptr, jv v, bool secrets, struct sl_diags *diags)
{
	if (jv_get_kind(v) == JV_KIND_ARRAY) {
		jv_array_foreach(v, i, item)
		{
			blame(lo, sl_lower_ptr(lo, "%s/%d", ptr, i), item, secrets, diags);
			jv_free(item);
		}
	} else if (jv_get_kind(v) == JV_KIND_OBJECT) {
		jv_object_foreach(v, key, item)
		{
			struct sl_buf at;
			sl_buf_init(&at);
			sl_buf_printf(&at, "%s/", ptr);
			for (const char *c = jv_string_value(key); *c; c++) {
				if (*c == '~' || *c == '/')
					sl_buf_adds(&at, *c == '~' ? "~0" : "~1");
				else
					sl_buf_addc(&at, *c);
			}
			blame(lo, sl_arena_str(&lo->scratch, at.data), item, secrets, diags);
			sl_buf_release(&at);
			jv_free(key);
			jv_free(item);
		}
	} else if (jv_get_kind(v) == JV_KIND_STRING && sl_expr_is_template(jv_string_value(v))) {
		struct sl_expr_site site = site_at(lo, ptr, secrets);
		int id = sl_program_add_template(lo->plan->program, v, &site, diags);
		(void)id; /* only the diagnostic is wanted */
	}
}

int sl_lower_template(struct sl_lower *lo, const char *ptr, jv value, bool secrets)
{
	struct sl_expr_site site = site_at(lo, ptr, secrets);
	struct sl_diags whole;
	sl_diags_init(&whole);
	int id = sl_program_add_template(lo->plan->program, value, &site, &whole);
	if (id < 0) {
		int before = lo->diags->error_count;
		blame(lo, ptr, value, secrets, lo->diags);
		if (lo->diags->error_count == before)
			sl_diag_error(lo->diags, id, site.loc, ptr, "%s", sl_diags_first(&whole));
		lo->failed = true;
		id = SL_NO_EXPR;
	}
	sl_diags_release(&whole);
	jv_free(value);
	return id;
}

int sl_lower_data(struct sl_lower *lo, const char *ptr, const char *member)
{
	jv v = sl_lower_at(lo, ptr, member);
	if (!jv_is_valid(v))
		return SL_NO_EXPR;
	const char *at = sl_lower_ptr(lo, "%s/%s", ptr, member);
	/* A bare string is an expression too (A65), unless it is text with expressions in it (A64). */
	if (jv_get_kind(v) == JV_KIND_STRING &&
		(sl_expr_is_wrapped(jv_string_value(v)) || !sl_expr_is_template(jv_string_value(v)))) {
		int id = add_expr(lo, at, jv_string_value(v), SL_EXPR_ONE);
		jv_free(v);
		return id;
	}
	return sl_lower_template(lo, at, v, false);
}

/* --- durations --- */
static int64_t parse_ms(struct sl_lower *lo, const char *ptr, const char *text)
{
	int64_t ms = 0;
	int rc = sl_duration_parse(text, &ms);
	if (rc < 0)
		sl_lower_error(lo, ptr,
			rc == SL_ETOOBIG ? "duration '%s' is too long" : "'%s' is no ISO 8601 duration such as PT15M",
			text);
	return ms;
}

struct sl_span sl_lower_span(struct sl_lower *lo, const char *ptr, const char *member)
{
	struct sl_span span = {.expr = SL_NO_EXPR};
	const char *at = sl_lower_ptr(lo, "%s/%s", ptr, member);
	/* the schema's {single, total} form of stateExecTimeout: only the total is a limit of the state */
	if (sl_lower_has(lo, at, "total"))
		at = sl_lower_ptr(lo, "%s/total", at);
	const char *text = sl_lower_text(lo, at, NULL);
	if (!text)
		return span;
	span.given = true;
	if (sl_expr_is_template(text))
		span.expr = sl_lower_template(lo, at, jv_string(text), false);
	else
		span.ms = parse_ms(lo, at, text);
	return span;
}

int64_t sl_lower_ms(struct sl_lower *lo, const char *ptr, const char *member)
{
	const char *text = sl_lower_text(lo, ptr, member);
	return text ? parse_ms(lo, sl_lower_ptr(lo, "%s/%s", ptr, member), text) : 0;
}

struct sl_span sl_lower_timeout(struct sl_lower *lo, const char *name)
{
	const char *const outward[] = {lo->branch, lo->state, ""};
	for (int i = 0; i < 3; i++) {
		if (!outward[i])
			continue;
		const char *timeouts = sl_lower_ptr(lo, "%s/timeouts", outward[i]);
		if (sl_lower_has(lo, timeouts, name))
			return sl_lower_span(lo, timeouts, name);
	}
	return (struct sl_span){.expr = SL_NO_EXPR};
}

/* --- nodes --- */
struct sl_node *sl_lower_node(struct sl_lower *lo, enum sl_node_kind kind, const char *ptr)
{
	const struct sl_span never = {.expr = SL_NO_EXPR};
	const struct sl_filter plain = {.select = SL_NO_EXPR, .path = SL_NO_EXPR};
	char text[256];
	snprintf(text, sizeof(text), "%s", ptr);
	text[strcspn(text, ":")] = 0;
	struct sl_node *node = sl_plan_node(lo->plan, kind, ptr, sl_doc_loc(lo->doc, text, false));
	switch (kind) {
	case SL_NODE_STATE:
		node->u.state = (struct sl_state){
			.input = SL_NO_EXPR, .output = SL_NO_EXPR, .timeout = never, .compensated_by = -1};
		break;
	case SL_NODE_ACTION:
		node->u.action = (struct sl_action){.condition = SL_NO_EXPR,
			.from = SL_NO_EXPR,
			.sleep_before = never,
			.sleep_after = never,
			.timeout = never,
			.result = plain};
		break;
	case SL_NODE_CALL:
		node->u.call = (struct sl_call){.args = SL_NO_EXPR};
		break;
	case SL_NODE_AWAIT:
		node->u.await = (struct sl_await){.timeout = never};
		break;
	case SL_NODE_EACH:
		node->u.each = (struct sl_each){.collection = SL_NO_EXPR, .output = SL_NO_EXPR};
		break;
	case SL_NODE_SLEEP:
		node->u.sleep = (struct sl_sleep){.span = never};
		break;
	case SL_NODE_ASSIGN:
		node->u.assign = (struct sl_assign){.value = SL_NO_EXPR, .filter = plain};
		break;
	case SL_NODE_EMIT:
		node->u.emit = (struct sl_emit){.event = -1, .data = SL_NO_EXPR, .context = SL_NO_EXPR, .delay = never};
		break;
	default:
		break;
	}
	return node;
}
