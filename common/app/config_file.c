/* Configuration: the YAML file. Keys may be nested or written with dots; errors carry file:line:col. */
#include "common/app/config_table.h"
#include "common/base/text.h"
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

struct walk {
	struct sl_config *cfg;
	const char *file;
	struct sl_diags *diags;
	struct sl_arena arena;
	int err;
};

static struct sl_loc loc_of(const struct walk *w, struct fy_node *node)
{
	struct sl_loc loc = {.file = w->file};
	struct fy_token *token = node && fy_node_is_scalar(node) ? fy_node_get_scalar_token(node) : NULL;
	const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
	if (mark) {
		loc.line = mark->line + 1;
		loc.col = mark->column + 1;
	}
	return loc;
}

static void note(struct walk *w, int err)
{
	if (err && !w->err)
		w->err = err;
}

/* Text of a scalar; NULL: it is none, or null. */
static const char *scalar(struct walk *w, struct fy_node *node)
{
	size_t len = 0;
	if (!node || !fy_node_is_scalar(node) || fy_node_is_alias(node))
		return NULL;
	const char *text = fy_node_get_scalar(node, &len);
	bool plain = fy_node_get_style(node) == FYNS_PLAIN;
	if (!text || memchr(text, 0, len))
		return NULL;
	if (plain && (len == 0 || (len == 1 && *text == '~') || (len == 4 && memcmp(text, "null", 4) == 0)))
		return NULL;
	return sl_arena_strn(&w->arena, text, len);
}

static void mapping(struct walk *w, const char *prefix, struct fy_node *node);

static void list(struct walk *w, const char *name, struct fy_node *key, struct fy_node *node)
{
	struct sl_buf joined;
	void *prev = NULL;
	struct fy_node *item;
	sl_buf_init(&joined);
	sl_buf_add(&joined, "", 0);
	while ((item = fy_node_sequence_iterate(node, &prev))) {
		const char *text = scalar(w, item);
		if (!text || strchr(text, ',')) {
			note(w, sl_diag_error(w->diags, SL_ECONFIG, loc_of(w, fy_node_is_scalar(item) ? item : key),
					NULL, "`%s`: a list of single values without commas is expected", name));
			break;
		}
		sl_buf_printf(&joined, "%s%s", joined.len ? "," : "", text);
	}
	if (!item)
		note(w, sl_config_set(w->cfg, name, joined.data, loc_of(w, key), w->diags));
	sl_buf_release(&joined);
}

static void member(struct walk *w, const char *prefix, struct fy_node *key, struct fy_node *value)
{
	const char *word = scalar(w, key);
	if (!word) {
		note(w, sl_diag_error(w->diags, SL_ECONFIG, loc_of(w, key), NULL,
				"the name of a setting must be plain text"));
		return;
	}
	const char *name = *prefix ? sl_arena_printf(&w->arena, "%s.%s", prefix, word) : word;
	const struct sl_config_key *known = sl_config_key(name);
	if (fy_node_is_mapping(value) &&
		((known && known->type == SL_CONFIG_MAP) || (!known && sl_config_is_group(name)))) {
		mapping(w, name, value);
		return;
	}
	if (!known) {
		note(w, sl_config_is_group(name)
				? sl_diag_error(w->diags, SL_ECONFIG, loc_of(w, key), NULL,
					  "`%s` is a group of settings: name: value lines are expected", name)
				: sl_config_unknown(name, "setting", loc_of(w, key), w->diags));
		return;
	}
	if (fy_node_is_sequence(value) && known->type == SL_CONFIG_LIST) {
		list(w, name, key, value);
		return;
	}
	const char *text = scalar(w, value);
	if (!text)
		note(w, sl_diag_error(
				w->diags, SL_ECONFIG, loc_of(w, key), NULL, "`%s`: a single value is expected", name));
	else
		note(w, sl_config_set(w->cfg, name, text, loc_of(w, value), w->diags));
}

static void mapping(struct walk *w, const char *prefix, struct fy_node *node)
{
	void *prev = NULL;
	struct fy_node_pair *pair;
	while ((pair = fy_node_mapping_iterate(node, &prev)))
		member(w, prefix, fy_node_pair_key(pair), fy_node_pair_value(pair));
}

static void syntax_error(struct walk *w, struct fy_diag *diag)
{
	void *prev = NULL;
	struct fy_diag_error *first = fy_diag_errors_iterate(diag, &prev);
	struct sl_loc loc = {.file = w->file};
	if (first && first->line > 0) {
		loc.line = first->line;
		loc.col = first->column;
	}
	w->err = sl_diag_error(w->diags, SL_ECONFIG, loc, NULL, "not well-formed YAML: %s",
		first && first->msg ? first->msg : "syntax error");
}

int sl_config_file(struct sl_config *cfg, const char *text, size_t len, const char *file, struct sl_diags *diags)
{
	struct walk w = {.cfg = cfg, .file = file, .diags = diags};
	struct fy_diag_cfg diag_cfg;
	if (!sl_utf8_valid(text, len)) /* libfyaml 0.7 reads some of it for ever */
		return sl_diag_error(
			diags, SL_ECONFIG, (struct sl_loc){.file = file}, NULL, "the file is not UTF-8 text");
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.output_fn = NULL;
	diag_cfg.colorize = false;
	struct fy_diag *diag = fy_diag_create(&diag_cfg);
	if (!diag)
		abort();
	fy_diag_set_collect_errors(diag, true);
	struct fy_parse_cfg parse = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2, .diag = diag};
	sl_arena_init(&w.arena);
	struct fy_document *doc = len ? fy_document_build_from_string(&parse, text, len) : NULL;
	struct fy_node *root = doc ? fy_document_root(doc) : NULL;
	void *prev = NULL;
	if (fy_diag_errors_iterate(diag, &prev))
		syntax_error(&w, diag);
	else if (root && fy_node_is_mapping(root))
		mapping(&w, "", root);
	else if (root && !(fy_node_is_scalar(root) && !scalar(&w, root)))
		w.err = sl_diag_error(diags, SL_ECONFIG, (struct sl_loc){.file = file, .line = 1, .col = 1}, NULL,
			"the file must hold name: value lines");
	fy_document_destroy(doc);
	fy_diag_destroy(diag);
	sl_arena_release(&w.arena);
	return w.err;
}
