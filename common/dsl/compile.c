/* The road of a definition: parse, detect, check, lower; then its names and its content hash. */
#include "common/dsl/doc.h"
#include "common/dsl/lower.h"
#include "common/dsl/sw08_check.h"
#include "common/expr/expr.h"
#include "common/model/id.h"
#include <stdlib.h>
#include <string.h>

/* --- resources are remembered: the hash covers them, and none is fetched twice --- */

struct recorder {
	const struct sl_resources *inner;
	struct sl_map contents; /* uri -> struct sl_buf */
};

static int recorder_get(void *arg, const char *uri, char **ret, size_t *ret_len, struct sl_diags *diags)
{
	struct recorder *rec = arg;
	struct sl_buf *kept = sl_map_get(&rec->contents, uri);
	if (!kept) {
		char *text = NULL;
		size_t len = 0;
		int err = rec->inner->get(rec->inner->arg, uri, &text, &len, diags);
		if (err)
			return err;
		kept = calloc(1, sizeof(*kept));
		if (!kept)
			abort();
		sl_buf_add(kept, text, len);
		free(text);
		sl_map_set(&rec->contents, uri, kept);
	}
	struct sl_buf copy;
	sl_buf_init(&copy);
	sl_buf_add(&copy, kept->data ? kept->data : "", kept->len);
	*ret_len = copy.len;
	*ret = sl_buf_steal(&copy);
	return 0;
}

static void free_kept(void *value)
{
	sl_buf_release(value);
	free(value);
}

/* --- content hash --- */

/* Compact JSON with the members of objects in code point order; borrows. */
static void write_canonical(struct sl_buf *out, jv value)
{
	if (jv_get_kind(value) == JV_KIND_ARRAY) {
		sl_buf_addc(out, '[');
		jv_array_foreach(value, i, item)
		{
			if (i)
				sl_buf_addc(out, ',');
			write_canonical(out, item);
			jv_free(item);
		}
		sl_buf_addc(out, ']');
	} else if (jv_get_kind(value) == JV_KIND_OBJECT) {
		jv keys = jv_keys(jv_copy(value));
		sl_buf_addc(out, '{');
		jv_array_foreach(keys, i, key)
		{
			if (i)
				sl_buf_addc(out, ',');
			sl_json_write(out, key);
			sl_buf_addc(out, ':');
			jv item = jv_object_get(jv_copy(value), key);
			write_canonical(out, item);
			jv_free(item);
		}
		sl_buf_addc(out, '}');
		jv_free(keys);
	} else {
		sl_json_write(out, value);
	}
}

static int by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* SHA-256 over the resolved definition and, sorted by name, all that was fetched for it: the same text with another
 * OpenAPI document is another plan. */
static void hash_of(jv resolved, struct recorder *rec, char ret[static 65])
{
	struct sl_buf out;
	sl_buf_init(&out);
	write_canonical(&out, resolved);
	const char **keys = calloc(rec->contents.count + 1, sizeof(*keys));
	if (!keys)
		abort();
	size_t n = 0;
	sl_map_each(&rec->contents, e) keys[n++] = e->key;
	qsort(keys, n, sizeof(*keys), by_key);
	for (size_t i = 0; i < n; i++) {
		const struct sl_buf *kept = sl_map_get(&rec->contents, keys[i]);
		sl_buf_printf(&out, "\n%zu %s %zu\n", strlen(keys[i]), keys[i], kept->len);
		sl_buf_add(&out, kept->data ? kept->data : "", kept->len);
	}
	sl_hash_hex(out.data, out.len, ret);
	free(keys);
	sl_buf_release(&out);
}

/* --- the plan's names --- */

/* Text of a member, in plan memory; numbers (A128, lenient) by their digits; "" when absent. */
static const char *text_of(struct sl_plan *plan, jv resolved, const char *name)
{
	jv value = sl_json_get(resolved, name);
	struct sl_buf out;
	sl_buf_init(&out);
	sl_buf_adds(&out, "");
	if (jv_get_kind(value) == JV_KIND_STRING)
		sl_buf_adds(&out, jv_string_value(value));
	else if (jv_get_kind(value) == JV_KIND_NUMBER)
		sl_json_write(&out, value);
	const char *text = sl_arena_str(&plan->arena, out.data);
	sl_buf_release(&out);
	jv_free(value);
	return text;
}

static void name_plan(struct sl_plan *plan, jv resolved, struct recorder *rec)
{
	plan->dialect = sl_dialect_text(SL_DIALECT_SW08);
	plan->id = text_of(plan, resolved, "id");
	if (!*plan->id)
		plan->id = text_of(plan, resolved, "key");
	plan->name = text_of(plan, resolved, "name");
	if (!*plan->name)
		plan->name = plan->id;
	plan->version = text_of(plan, resolved, "version");
	hash_of(resolved, rec, plan->hash);
	jv_free(plan->source);
	plan->source = jv_copy(resolved);
}

/* --- Serverless Workflow 0.8 --- */

static int lower(const struct sl_doc *doc, jv resolved, const struct sl_compile_options *opt, struct recorder *rec,
	struct sl_plan **ret, struct sl_diags *diags)
{
	struct sl_plan *plan = sl_plan_new();
	int errors = diags->error_count;
	name_plan(plan, resolved, rec);
	int err = sl_sw08_lower(doc, resolved, opt, plan, diags);
	if (!err && diags->error_count > errors)
		err = SL_ESCHEMA;
	if (err) {
		sl_plan_unref(plan);
		return err == SL_EUNSUPPORTED || err == SL_EAGAIN ? err : SL_ESCHEMA;
	}
	hash_of(resolved, rec, plan->hash); /* once more, with the documents that lowering fetched */
	*ret = plan;
	return 0;
}

static int compile_sw08(struct sl_doc *doc, const struct sl_compile_options *opt, struct recorder *rec,
	struct sl_plan **ret, struct sl_diags *diags)
{
	struct sl_sw08_checked checked;
	int err = sl_sw08_check(doc, opt, &checked, diags);
	if (err || checked.unsupported || checked.deferred) {
		int errors = diags->error_count;
		sl_sw08_check_expressions(doc, &checked, diags);
		/* a wrong expression weighs more than an unsupported part; what is wrong now stays wrong with its
		 * resources */
		if (diags->error_count > errors)
			err = SL_ESCHEMA;
		else if (!err && checked.wanted)
			err = SL_EAGAIN;
	} else {
		err = lower(doc, checked.resolved, opt, rec, ret, diags);
		if (err == SL_EUNSUPPORTED && !opt->deploy)
			err = 0; /* judged by the language it is valid: the warning says so, and there is no plan */
	}
	jv_free(checked.resolved);
	return err;
}

int sl_compile(const char *text, size_t len, const struct sl_compile_options *opt, struct sl_plan **ret_plan,
	struct sl_diags *diags)
{
	struct sl_doc *doc = NULL;
	*ret_plan = NULL;
	if (sl_doc_parse(text, len, opt->file, &doc, diags)) {
		sl_diags_sort(diags);
		return SL_EPARSE; /* the diagnostic holds the finer code */
	}
	struct recorder rec = {.inner = opt->resources};
	sl_map_init(&rec.contents);
	struct sl_resources recorded = {.get = recorder_get, .arg = &rec};
	struct sl_compile_options own = *opt;
	own.resources = opt->resources ? &recorded : NULL;
	struct sl_loc loc = sl_doc_loc(doc, "", false);
	jv value = sl_doc_value(doc);
	enum sl_dialect dialect = opt->dialect == SL_DIALECT_AUTO ? sl_dialect_detect(value) : opt->dialect;
	int err;
	if (jv_get_kind(value) != JV_KIND_OBJECT)
		err = sl_diag_error(diags, SL_ESCHEMA, loc, "", "a workflow definition must be an object");
	else if (dialect != SL_DIALECT_SW08)
		err = sl_diag_error(
			diags, SL_EUNSUPPORTED, loc, "", "not supported yet: dialect %s", sl_dialect_text(dialect));
	else
		err = compile_sw08(doc, &own, &rec, ret_plan, diags);
	jv_free(value);
	sl_map_release(&rec.contents, free_kept);
	sl_doc_free(doc);
	sl_diags_sort(diags);
	return err;
}
