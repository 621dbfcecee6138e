/* libfyaml's events become a tree: one pass, depth bounded, aliases bound to their anchors but not yet expanded, so
 * that nothing can grow here beyond the text's own size. */
#include "common/dsl/doc_tree.h"
#include "common/base/map.h"
#include "common/dsl/doc.h"
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

struct tree {
	const char *file;
	bool json;
	struct sl_arena *arena;
	struct sl_diags *diags;
	struct sl_map anchors; /* name -> struct sl_doc_node */
	struct sl_doc_node *stack[SL_DOC_DEPTH_MAX + 1], *root;
	int depth;
	int err; /* first error */
};

static int fail(struct tree *t, int err, struct sl_loc loc, const char *text)
{
	sl_diag_error(t->diags, err, loc, NULL, "%s", text);
	if (!t->err)
		t->err = err;
	return err;
}

static struct sl_loc loc_of(struct tree *t, struct fy_event *fye, bool quoted)
{
	const struct fy_mark *start = fy_event_start_mark(fye), *end = fy_event_end_mark(fye);
	struct sl_loc loc = {.file = t->file};
	if (!start)
		return loc;
	loc.line = start->line + 1;
	loc.col = start->column + 1 - (quoted ? 1 : 0); /* the marks of quoted scalars stand inside the quotes */
	if (end && end->line == start->line && end->column > start->column)
		loc.len = end->column - start->column + (quoted ? 2 : 0);
	return loc;
}

static const char *token_text(struct sl_arena *arena, struct fy_token *token, size_t *ret_len)
{
	size_t len = 0;
	const char *text = token ? fy_token_get_text(token, &len) : NULL;
	if (ret_len)
		*ret_len = text ? len : 0;
	return token ? sl_arena_strn(arena, text ? text : "", text ? len : 0) : NULL;
}

/* Hangs a node into the open collection; the root if there is none. */
static void hang(struct tree *t, struct sl_doc_node *node)
{
	struct sl_doc_node *parent = t->depth ? t->stack[t->depth - 1] : NULL;
	if (!parent) {
		t->root = node;
		return;
	}
	if (!node->loc.line && parent->last) /* an empty value stands where its key stands */
		node->loc = parent->last->loc;
	if (parent->last)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
}

static void anchor(struct tree *t, struct fy_token *token, struct sl_doc_node *node)
{
	size_t len;
	const char *name = token_text(t->arena, token, &len);
	if (name)
		sl_map_setn(&t->anchors, name, len, node);
}

static int open_node(struct tree *t, struct sl_doc_node *node)
{
	if (t->depth == SL_DOC_DEPTH_MAX) {
		fail(t, SL_EDEPTH, node->loc, "nested deeper than 200 levels");
		return SL_EDEPTH;
	}
	hang(t, node);
	node->open = true;
	t->stack[t->depth++] = node;
	return 0;
}

static int alias(struct tree *t, struct fy_event *fye, struct sl_doc_node *node)
{
	size_t len;
	const char *name = token_text(t->arena, fye->alias.anchor, &len);
	node->target = sl_map_getn(&t->anchors, name, len);
	if (!node->target || node->target->open) {
		sl_diag_error(t->diags, SL_EPARSE, node->loc, NULL,
			node->target ? "alias *%s stands inside its own anchor" : "alias *%s has no anchor before it",
			name);
		t->err = t->err ? t->err : SL_EPARSE;
		node->target = NULL;
		node->text = "";
	}
	hang(t, node);
	return 0;
}

static int take(struct tree *t, struct fy_event *fye)
{
	struct sl_doc_node *node = SL_NEW(t->arena, struct sl_doc_node);
	struct fy_token *tag = NULL;
	switch (fye->type) {
	case FYET_SCALAR: {
		enum fy_scalar_style style = fye->scalar.value ? fy_token_scalar_style(fye->scalar.value) : FYSS_PLAIN;
		node->plain = style == FYSS_PLAIN;
		node->text = token_text(t->arena, fye->scalar.value, &node->len);
		if (!node->plain || node->len) /* libfyaml 0.8 gives an empty value a place, 0.7 none: hang() has the better one */
			node->loc = loc_of(t, fye, style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED);
		if (!node->text) /* an empty value has no token */
			node->text = "";
		tag = fye->scalar.tag;
		hang(t, node);
		anchor(t, fye->scalar.anchor, node);
		break;
	}
	case FYET_SEQUENCE_START:
	case FYET_MAPPING_START:
		node->kind = fye->type == FYET_MAPPING_START ? SL_DOC_MAP : SL_DOC_LIST;
		node->loc = loc_of(t, fye, false);
		tag = node->kind == SL_DOC_MAP ? fye->mapping_start.tag : fye->sequence_start.tag;
		anchor(t, node->kind == SL_DOC_MAP ? fye->mapping_start.anchor : fye->sequence_start.anchor, node);
		if (open_node(t, node))
			return SL_EDEPTH;
		break;
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		t->stack[--t->depth]->open = false;
		return 0;
	case FYET_ALIAS:
		node->loc = loc_of(t, fye, false);
		return alias(t, fye, node);
	default:
		return 0;
	}
	node->tag = token_text(t->arena, tag, NULL);
	return 0;
}

/* YAML forbids tabs in indentation (1.2, section 6.1) and libfyaml blames something nearby. */
static bool blame_tab(struct tree *t, const char *text, size_t len, int line_max)
{
	int line = 1;
	for (const char *s = text, *end = text + len; s < end && line <= line_max; line++) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t blank = 0; /* text is not NUL-terminated */
		while (s + blank < end && (s[blank] == ' ' || s[blank] == '\t'))
			blank++;
		const char *tab = memchr(s, '\t', blank);
		if (tab && s + blank < end && !strchr("\r\n#", s[blank])) {
			struct sl_loc loc = {.file = t->file, .line = line, .col = (int)(tab - s) + 1};
			fail(t, SL_EPARSE, loc, "a tab in the indentation: YAML indents with spaces only");
			return true;
		}
		if (!nl)
			break;
		s = nl + 1;
	}
	return false;
}

static void syntax_error(struct tree *t, struct fy_diag *fyd, const char *text, size_t len)
{
	void *prev = NULL;
	struct fy_diag_error *first = fy_diag_errors_iterate(fyd, &prev);
	struct sl_loc loc = {.file = t->file, .line = first ? first->line : 0, .col = first ? first->column : 0};
	if (!t->json && blame_tab(t, text, len, loc.line + 1))
		return;
	sl_diag_error(t->diags, SL_EPARSE, loc, NULL, "not well-formed %s: %s", t->json ? "JSON" : "YAML",
		first && first->msg ? first->msg : "syntax error");
	t->err = SL_EPARSE;
}

/* All events of the stream; exactly one document. */
static void read_events(struct tree *t, struct fy_parser *fyp, struct fy_diag *fyd, const char *text, size_t len)
{
	struct fy_event *fye;
	int documents = 0;
	bool stop = false;
	while (!stop && (fye = fy_parser_parse(fyp)) != NULL) {
		if (fye->type == FYET_DOCUMENT_START && ++documents > 1) {
			struct sl_loc loc = loc_of(t, fye, false);
			fail(t, SL_EPARSE, loc, "a second document: one file holds one");
			stop = true;
		} else {
			stop = take(t, fye) != 0;
		}
		fy_parser_event_free(fyp, fye);
	}
	if (!stop && fy_parser_get_stream_error(fyp))
		syntax_error(t, fyd, text, len);
	else if (!stop && !documents)
		fail(t, SL_EPARSE, (struct sl_loc){.file = t->file, .line = 1, .col = 1}, "the document is empty");
}

static int parse(struct tree *t, const char *text, size_t len)
{
	struct fy_diag_cfg diag_cfg;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.output_fn = NULL;
	diag_cfg.colorize = false;
	struct fy_diag *fyd = fy_diag_create(&diag_cfg);
	if (!fyd)
		abort();
	fy_diag_set_collect_errors(fyd, true);
	struct fy_parse_cfg cfg = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DISABLE_DEPTH_LIMIT | FYPCF_DEFAULT_VERSION_1_2 |
			 FYPCF_SLOPPY_FLOW_INDENTATION | (t->json ? FYPCF_JSON_FORCE : FYPCF_JSON_NONE),
		.diag = fyd,
	};
	struct fy_parser *fyp = fy_parser_create(&cfg);
	if (!fyp || fy_parser_set_string(fyp, text, len))
		abort();
	read_events(t, fyp, fyd, text, len);
	fy_parser_destroy(fyp);
	fy_diag_destroy(fyd);
	return t->err;
}

int sl_doc_tree(const char *text, size_t len, const char *file, bool json, struct sl_arena *arena,
	struct sl_doc_node **ret, struct sl_diags *diags)
{
	struct tree t = {.file = file, .json = json, .arena = arena, .diags = diags};
	sl_map_init(&t.anchors);
	int err = parse(&t, text, len);
	if (!err)
		*ret = t.root;
	sl_map_release(&t.anchors, NULL);
	return err;
}
