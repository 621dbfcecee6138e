/* Trees of expressions: checking one against its site, templates (A64), evaluation leaf by leaf. */
#include "common/base/log.h"
#include "common/expr/program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_TEXT 80
#define TEMPLATE_DEPTH 200

/* Variables that every expression may use. */
static const char *const globals[] = {"CONST", "WORKFLOW", "SECRETS"};

void sl_expr_shorten(struct sl_buf *out, const char *text, size_t len)
{
	size_t cut = len > SHORT_TEXT ? SHORT_TEXT - 3 : len;
	while (cut < len && cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	for (size_t i = 0; i < cut; i++)
		sl_buf_addc(out, text[i] == '\n' || text[i] == '\r' || text[i] == '\t' ? ' ' : text[i]);
	if (cut < len)
		sl_buf_adds(out, "...");
}

/* One diagnostic that quotes the expression. */
static int refuse(struct sl_diags *diags, const struct sl_expr_site *site, const char *text, size_t len,
	const char *rule, const char *message)
{
	struct sl_buf shown;
	sl_buf_init(&shown);
	for (; len && strchr(" \n\t", *text); len--)
		text++;
	while (len && strchr(" \n\t", text[len - 1]))
		len--;
	sl_expr_shorten(&shown, text, len);
	sl_diag_error(diags, SL_EEXPR, site ? site->loc : SL_NOWHERE, site ? site->pointer : NULL,
		"expression `%s`: %s", shown.data ? shown.data : "", message);
	if (rule && diags)
		sl_diag_rule(diags, rule);
	sl_buf_release(&shown);
	return SL_EEXPR;
}

static bool declared(const struct sl_expr_site *site, const char *name)
{
	for (size_t i = 0; i < sizeof(globals) / sizeof(globals[0]); i++) {
		if (!strcmp(globals[i], name))
			return true;
	}
	for (const char *const *var = site ? site->vars : NULL; var && *var; var++) {
		if (!strcmp(*var, name))
			return true;
	}
	return false;
}

static struct sl_node *node_new(struct sl_program *prog, enum sl_node_kind kind)
{
	struct sl_node *node = SL_NEW(&prog->arena, struct sl_node);
	node->kind = kind;
	node->value = jv_invalid();
	node->fast.left.value = node->fast.right.value = jv_invalid();
	node->unit_id = -1;
	return node;
}

struct sl_node *sl_node_const(struct sl_program *prog, jv value)
{
	struct sl_node *node = node_new(prog, SL_NODE_CONST);
	node->value = value;
	return node;
}

/* What libjq is to compile. `all`: bind every variable that is named (a function's text alone); else those of the site.
 */
static struct sl_unit unit_of(
	struct sl_program *prog, const struct sl_lex *lex, const struct sl_expr_site *site, bool all)
{
	const char **vars = SL_NEWN(&prog->arena, const char *, lex->vars.count + 1);
	int count = 0;
	sl_map_each(&lex->vars, e)
	{
		if (all || declared(site, e->key))
			vars[count++] = sl_arena_str(&prog->arena, e->key);
	}
	return (struct sl_unit){
		.text = sl_arena_strn(&prog->arena, lex->out.data, lex->out.len), .vars = vars, .uses = lex->uses};
}

/* A simple expression binds no variables of its own: all must be in scope. */
static int check_fast_vars(const struct sl_lex *lex, const struct sl_expr_site *site, struct sl_buf *message)
{
	sl_map_each(&lex->vars, e)
	{
		if (!declared(site, e->key)) {
			sl_buf_printf(message, "$%s is not defined", e->key);
			return SL_EEXPR;
		}
	}
	return 0;
}

/* R8, A174: a secret's value must not get into what is stored. */
static int check_secrets(
	const struct sl_lex *lex, const struct sl_expr_site *site, struct sl_buf *message, bool *ret_secrets)
{
	if (!sl_map_get(&lex->vars, "SECRETS"))
		return 0;
	if (!site || !site->secrets_allowed) {
		sl_buf_adds(message,
			"$SECRETS may be used in action arguments, auth properties and expression functions only: "
			"here its value would be stored");
		return SL_EEXPR;
	}
	*ret_secrets = true;
	return 0;
}

int sl_node_expr(struct sl_program *prog, const char *text, size_t len, enum sl_expr_mode mode,
	const struct sl_expr_site *site, struct sl_diags *diags, struct sl_node **ret, bool *ret_secrets)
{
	struct sl_lex lex;
	struct sl_buf message;
	const char *rule = NULL;
	bool secrets = false;
	sl_lex_init(&lex, &prog->functions);
	sl_buf_init(&message);
	struct sl_node *node = node_new(prog, SL_NODE_EXPR);
	int err = sl_lex_run(&lex, text, len);
	if (err) {
		rule = lex.err_rule;
		sl_buf_add(&message, lex.err.data, lex.err.len);
		goto done;
	}
	err = check_secrets(&lex, site, &message, &secrets);
	if (err) {
		rule = "A174";
		goto done;
	}
	node->mode = mode;
	node->unit = unit_of(prog, &lex, site, false);
	node->unit.path = mode == SL_EXPR_PATH;
	sl_fast_init(&node->fast, &lex, &prog->arena);
	if (mode == SL_EXPR_PATH && node->fast.kind != SL_FAST_NONE && !sl_fast_is_path(&node->fast)) {
		rule = "A63";
		sl_buf_adds(&message, "is not a path to a place in the data such as .a.b");
		err = SL_EEXPR;
	} else if (node->fast.kind != SL_FAST_NONE) {
		err = check_fast_vars(&lex, site, &message);
	} else if (!prog->trusted && !sl_vm_check(&node->unit, &message)) {
		err = SL_EEXPR;
	}
done:
	if (err) {
		refuse(diags, site, text, len, rule, message.data ? message.data : "");
		sl_node_release(node);
	} else {
		/* simple ones too: all of a program are compiled together when the first needs libjq */
		node->unit_id = sl_vm_add(prog->vm, &node->unit);
		*ret = node;
		*ret_secrets |= secrets;
	}
	sl_buf_release(&message);
	sl_lex_release(&lex);
	return err;
}

/* `deferred`: functions that it names may still come. */
static int check_function(struct sl_program *prog, const struct sl_lex_fn *fn, const struct sl_expr_site *site,
	struct sl_diags *diags, bool deferred)
{
	struct sl_lex lex;
	struct sl_buf message;
	const char *rule = NULL;
	sl_lex_init(&lex, &prog->functions);
	sl_buf_init(&message);
	lex.ignore_unknown_fn = deferred;
	lex.function_stack[lex.function_depth++] = fn->name;
	int err = sl_lex_run(&lex, fn->text, strlen(fn->text));
	if (err) {
		rule = lex.err_rule;
		sl_buf_add(&message, lex.err.data, lex.err.len);
	} else if (!lex.unknown_fn && !prog->trusted) {
		struct sl_fast fast;
		struct sl_unit unit = unit_of(prog, &lex, site, true);
		sl_fast_init(&fast, &lex, &prog->arena);
		if (fast.kind == SL_FAST_NONE && !sl_vm_check(&unit, &message))
			err = SL_EEXPR;
		sl_fast_release(&fast);
	}
	if (err)
		refuse(diags, site, fn->text, strlen(fn->text), rule, message.data ? message.data : "");
	sl_buf_release(&message);
	sl_lex_release(&lex);
	return err;
}

int sl_node_check_function(
	struct sl_program *prog, const struct sl_lex_fn *fn, const struct sl_expr_site *site, struct sl_diags *diags)
{
	return check_function(prog, fn, site, diags, true);
}

int sl_node_check_used(
	struct sl_program *prog, const struct sl_lex_fn *fn, const struct sl_expr_site *site, struct sl_diags *diags)
{
	return check_function(prog, fn, site, diags, false);
}

/* --- templates --- */

struct builder {
	struct sl_program *prog;
	struct sl_expr_site site; /* its pointer grows with the depth */
	struct sl_diags *diags;
	struct sl_buf pointer;
	bool secrets;
	int err; /* the first; all are reported */
	int depth;
};

static struct sl_node *build(struct builder *b, jv tmpl);

static void fail(struct builder *b, int err)
{
	if (!b->err)
		b->err = err;
}

static struct sl_node *leaf(struct builder *b, const char *text, size_t len)
{
	struct sl_node *node = NULL;
	b->site.pointer = b->pointer.data;
	int err = sl_node_expr(b->prog, text, len, SL_EXPR_ONE, &b->site, b->diags, &node, &b->secrets);
	if (err)
		fail(b, err);
	return node ? node : sl_node_const(b->prog, jv_null());
}

static void add_child(struct sl_program *prog, struct sl_node *node, struct sl_node *child)
{
	if ((node->child_count & (node->child_count - 1)) == 0) { /* full at powers of two */
		struct sl_node **more =
			SL_NEWN(&prog->arena, struct sl_node *, node->child_count ? node->child_count * 2 : 1);
		if (node->child_count)
			memcpy(more, node->children, sizeof(*more) * (size_t)node->child_count);
		node->children = more;
	}
	node->children[node->child_count++] = child;
}

static void add_text(struct builder *b, struct sl_node *node, struct sl_buf *plain)
{
	if (plain->len)
		add_child(b->prog, node, sl_node_const(b->prog, jv_string_sized(plain->data, (int)plain->len)));
	sl_buf_clear(plain);
}

/* A64: `${ }` inside longer text; `$${` is a literal `${`. */
static struct sl_node *build_text(struct builder *b, const char *text)
{
	struct sl_node *node = node_new(b->prog, SL_NODE_TEXT);
	struct sl_buf plain;
	sl_buf_init(&plain);
	const char *end = text + strlen(text);
	for (const char *at = text; at < end;) {
		if (!strncmp(at, "$${", 3)) {
			sl_buf_adds(&plain, "${");
			at += 3;
		} else if (!strncmp(at, "${", 2)) {
			const char *close = sl_lex_close(at + 2, end);
			add_text(b, node, &plain);
			if (!close) {
				b->site.pointer = b->pointer.data;
				fail(b, refuse(b->diags, &b->site, at, (size_t)(end - at), "A64",
						"`${` without its `}`; write `$${` "
						"for the characters themselves"));
				break;
			}
			add_child(b->prog, node, leaf(b, at + 2, (size_t)(close - at) - 2));
			at = close + 1;
		} else {
			sl_buf_addc(&plain, *at++);
		}
	}
	bool is_const = node->child_count == 0;
	if (!is_const)
		add_text(b, node, &plain);
	else
		node = sl_node_const(b->prog, jv_string_sized(plain.data ? plain.data : "", (int)plain.len));
	sl_buf_release(&plain);
	return node;
}

/* JSON Pointer (RFC 6901) of a member. */
static size_t go_down(struct builder *b, const char *key)
{
	size_t len = b->pointer.len;
	sl_buf_addc(&b->pointer, '/');
	for (; *key; key++) {
		if (*key == '~' || *key == '/')
			sl_buf_adds(&b->pointer, *key == '~' ? "~0" : "~1");
		else
			sl_buf_addc(&b->pointer, *key);
	}
	b->depth++;
	return len;
}

static void go_up(struct builder *b, size_t len)
{
	b->pointer.len = len;
	b->pointer.data[len] = 0;
	b->depth--;
}

/* Borrows. True if no string in it holds an expression or an escape: the value can be taken as it is. */
static bool is_plain(jv value, int depth)
{
	bool plain = true;
	switch (jv_get_kind(value)) {
	case JV_KIND_STRING:
		return !strstr(jv_string_value(value), "${");
	case JV_KIND_ARRAY:
		if (depth == 0)
			return false;
		jv_array_foreach(value, i, item)
		{
			plain = plain && is_plain(item, depth - 1);
			jv_free(item);
		}
		return plain;
	case JV_KIND_OBJECT:
		if (depth == 0)
			return false;
		jv_object_foreach(value, key, item)
		{
			plain = plain && is_plain(item, depth - 1);
			jv_free(key);
			jv_free(item);
		}
		return plain;
	default:
		return true;
	}
}

static struct sl_node *build_members(struct builder *b, jv tmpl)
{
	bool object = jv_get_kind(tmpl) == JV_KIND_OBJECT;
	struct sl_node *node = node_new(b->prog, object ? SL_NODE_OBJECT : SL_NODE_ARRAY);
	if (object) {
		int count = 0;
		node->keys = SL_NEWN(&b->prog->arena, const char *, jv_object_length(jv_copy(tmpl)));
		jv_object_foreach(tmpl, key, item)
		{
			size_t len = go_down(b, jv_string_value(key));
			node->keys[count++] = sl_arena_str(&b->prog->arena, jv_string_value(key));
			add_child(b->prog, node, build(b, item));
			go_up(b, len);
			jv_free(key);
			jv_free(item);
		}
		return node;
	}
	jv_array_foreach(tmpl, i, item)
	{
		char number[16];
		snprintf(number, sizeof(number), "%d", i);
		size_t len = go_down(b, number);
		add_child(b->prog, node, build(b, item));
		go_up(b, len);
		jv_free(item);
	}
	return node;
}

/* Borrows. */
static struct sl_node *build(struct builder *b, jv tmpl)
{
	if (b->depth > TEMPLATE_DEPTH) {
		fail(b, sl_diag_error(b->diags, SL_EEXPR, b->site.loc, b->pointer.data, "nested deeper than %d",
				TEMPLATE_DEPTH));
		return sl_node_const(b->prog, jv_null());
	}
	if (is_plain(tmpl, TEMPLATE_DEPTH - b->depth))
		return sl_node_const(b->prog, jv_copy(tmpl));
	if (jv_get_kind(tmpl) != JV_KIND_STRING)
		return build_members(b, tmpl);
	bool wrapped;
	size_t len;
	const char *text = jv_string_value(tmpl), *inside = sl_lex_unwrap(text, &len, &wrapped);
	return wrapped ? leaf(b, inside, len) : build_text(b, text);
}

int sl_node_template(struct sl_program *prog, jv tmpl, const struct sl_expr_site *site, struct sl_diags *diags,
	struct sl_node **ret, bool *ret_secrets)
{
	struct builder b = {.prog = prog, .diags = diags};
	if (site)
		b.site = *site;
	sl_buf_init(&b.pointer);
	sl_buf_adds(&b.pointer, site && site->pointer ? site->pointer : "");
	struct sl_node *node = build(&b, tmpl);
	sl_buf_release(&b.pointer);
	if (b.err) {
		sl_node_release(node);
		return b.err;
	}
	*ret = node;
	*ret_secrets |= b.secrets;
	return 0;
}

void sl_node_release(struct sl_node *node)
{
	if (!node)
		return;
	for (int i = 0; i < node->child_count; i++)
		sl_node_release(node->children[i]);
	jv_free(node->value);
	node->value = jv_invalid();
	sl_fast_release(&node->fast);
}

/* --- evaluation --- */

/* Lets libjq run a leaf's unit, or for `path` the unit of its paths. */
static int run(struct sl_node *node, struct sl_eval *eval, jv *ret)
{
	int err = sl_expr_before(eval);
	if (err)
		return err;
	return sl_vm_run(eval->prog->vm, node->unit_id, node->mode == SL_EXPR_PATH ? SL_EXPR_ONE : node->mode,
		eval->input, eval->vars, ret, &eval->why);
}

static int eval_expr(struct sl_node *node, struct sl_eval *eval, jv *ret)
{
	jv value = sl_fast_eval(&node->fast, eval->input, eval->vars);
	if (jv_is_valid(value)) {
		*ret = value;
		return 0;
	}
	jv_free(value);
	return run(node, eval, ret);
}

/* Strings as they are, other values as compact JSON (A64). */
static int eval_text(struct sl_node *node, struct sl_eval *eval, jv *ret)
{
	jv text = jv_string("");
	for (int i = 0; i < node->child_count; i++) {
		jv value;
		int err = sl_node_eval(node->children[i], eval, &value);
		if (!err && (size_t)jv_string_length_bytes(jv_copy(text)) > sl_vm_limits.bytes_max) {
			jv_free(value);
			sl_buf_printf(&eval->why, "the result is larger than %zu bytes", sl_vm_limits.bytes_max);
			err = SL_EBUDGET;
		}
		if (err) {
			jv_free(text);
			return err;
		}
		if (jv_get_kind(value) != JV_KIND_STRING)
			value = jv_dump_string(value, 0);
		text = jv_string_concat(text, value);
	}
	*ret = text;
	return 0;
}

int sl_node_eval(struct sl_node *node, struct sl_eval *eval, jv *ret)
{
	if (node->kind == SL_NODE_CONST) {
		*ret = jv_copy(node->value);
		return 0;
	}
	if (node->kind == SL_NODE_EXPR)
		return eval_expr(node, eval, ret);
	if (node->kind == SL_NODE_TEXT)
		return eval_text(node, eval, ret);
	jv all = node->kind == SL_NODE_OBJECT ? jv_object() : jv_array();
	for (int i = 0; i < node->child_count; i++) {
		jv value;
		int err = sl_node_eval(node->children[i], eval, &value);
		if (err) {
			jv_free(all);
			return err;
		}
		all = node->kind == SL_NODE_OBJECT ? jv_object_set(all, jv_string(node->keys[i]), value)
						   : jv_array_append(all, value);
	}
	*ret = all;
	return 0;
}

int sl_node_paths(struct sl_node *node, struct sl_eval *eval, jv *ret)
{
	jv value = sl_fast_eval(&node->fast, eval->input, eval->vars);
	bool fast = jv_is_valid(value);
	jv_free(value);
	if (!fast)
		return run(node, eval, ret);
	*ret = JV_ARRAY(jv_copy(node->fast.left.value));
	return 0;
}

void sl_node_portable(const struct sl_node *node, bool outermost, struct sl_buf *out)
{
	jv text;
	switch (node->kind) {
	case SL_NODE_CONST:
		text = jv_dump_string(jv_copy(node->value), 0);
		sl_buf_adds(out, jv_string_value(text));
		jv_free(text);
		return;
	case SL_NODE_EXPR:
		if (outermost) {
			sl_buf_adds(out, node->unit.text);
			return;
		}
		if (node->fast.kind != SL_FAST_NONE) {
			sl_buf_printf(out, "(%s)", node->unit.text);
			return;
		}
		sl_buf_printf(out,
			"([(%s\n)] | if length == 1 then .[0] elif length == 0 then null else error(\"gave \\(length) "
			"results where one is needed; wrap it in [ ]\") end)",
			node->unit.text);
		return;
	case SL_NODE_TEXT:
		sl_buf_addc(out, '(');
		for (int i = 0; i < node->child_count; i++) {
			sl_buf_adds(out, i ? " + (" : "(");
			sl_node_portable(node->children[i], false, out);
			sl_buf_adds(out, " | tostring)");
		}
		sl_buf_addc(out, ')');
		return;
	case SL_NODE_ARRAY:
	case SL_NODE_OBJECT:
		sl_buf_addc(out, node->kind == SL_NODE_OBJECT ? '{' : '[');
		for (int i = 0; i < node->child_count; i++) {
			sl_buf_adds(out, i ? ", " : "");
			if (node->kind == SL_NODE_OBJECT) {
				sl_buf_add_json_str(out, node->keys[i], strlen(node->keys[i]));
				sl_buf_adds(out, ": ");
			}
			sl_buf_addc(out, '(');
			sl_node_portable(node->children[i], false, out);
			sl_buf_addc(out, ')');
		}
		sl_buf_addc(out, node->kind == SL_NODE_OBJECT ? '}' : ']');
	}
}
