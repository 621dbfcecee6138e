/* Programs: the expressions and templates of one plan, checked when added, evaluated by number. */
#include "common/expr/program.h"
#include "common/base/log.h"
#include "common/expr/budget.h"
#include <oniguruma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Freeing or comparing a value takes libjq a few hundred bytes of stack for each level, and `reduce range(1e9) as $i
 * (0; [.])` makes some 300 000 levels within the soft budget. The kernel lets the main thread's stack grow that far. */
#define STACK_BYTES (1024ul << 20)
/* Oniguruma counts a regular expression's backtracking; 2 million steps are some 50 ms, and libjq cannot be halted
 * inside. */
#define REGEX_STEPS 2000000
#define CHECKED_NODES 512 /* of an input before each evaluation: it was measured where it came from */

static bool initialised;

void sl_expr_init(const struct sl_expr_limits *limits)
{
	initialised = true;
	if (limits)
		sl_vm_limits = *limits;
	if (sl_vm_limits.soft_ms <= 0)
		sl_vm_limits.soft_ms = 100;
	if (!sl_vm_limits.bytes_max)
		sl_vm_limits.bytes_max = 4u << 20;
	if (sl_vm_limits.depth_max <= 0)
		sl_vm_limits.depth_max = 200;
	struct rlimit stack;
	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_BYTES) {
		stack.rlim_cur = stack.rlim_max < STACK_BYTES ? stack.rlim_max : STACK_BYTES;
		setrlimit(RLIMIT_STACK, &stack);
	}
	onig_set_retry_limit_in_match(REGEX_STEPS);
	onig_set_retry_limit_in_search(REGEX_STEPS);
}

struct sl_program *sl_program_new(void)
{
	if (!initialised)
		sl_expr_init(NULL);
	struct sl_program *prog = calloc(1, sizeof(*prog));
	if (!prog)
		sl_bug(__FILE__, __LINE__, "out of memory");
	sl_arena_init(&prog->arena);
	sl_map_init(&prog->functions);
	prog->vm = sl_vm_new();
	return prog;
}

void sl_program_free(struct sl_program *prog)
{
	if (!prog)
		return;
	for (int i = 0; i < prog->expr_count; i++) {
		sl_node_release(prog->exprs[i].node);
		free(prog->exprs[i].portable);
	}
	free(prog->exprs);
	sl_vm_free(prog->vm);
	sl_map_release(&prog->functions, NULL);
	sl_arena_release(&prog->arena);
	free(prog);
}

void sl_program_set_trusted(struct sl_program *prog, bool trusted)
{
	prog->trusted = trusted;
}

static int append(struct sl_program *prog, enum sl_expr_mode mode, struct sl_node *node, const char *text, bool secrets)
{
	if (prog->expr_count == prog->expr_cap) {
		prog->expr_cap = prog->expr_cap ? prog->expr_cap * 2 : 16;
		prog->exprs = realloc(prog->exprs, sizeof(*prog->exprs) * (size_t)prog->expr_cap);
		if (!prog->exprs)
			sl_bug(__FILE__, __LINE__, "out of memory");
	}
	prog->exprs[prog->expr_count] = (struct sl_program_expr){
		.mode = mode, .node = node, .secrets = secrets, .text = sl_arena_str(&prog->arena, text)};
	return prog->expr_count++;
}

static const struct sl_program_expr *expr_of(const struct sl_program *prog, int id)
{
	sl_assert(prog && id >= 0 && id < prog->expr_count);
	return &prog->exprs[id];
}

int sl_program_add_function(struct sl_program *prog, const char *name, const char *text,
	const struct sl_expr_site *site, struct sl_diags *diags)
{
	size_t len;
	bool wrapped;
	const char *inside = sl_lex_unwrap(text, &len, &wrapped);
	struct sl_lex_fn *fn = SL_NEW(&prog->arena, struct sl_lex_fn);
	fn->name = sl_arena_str(&prog->arena, name);
	fn->text = sl_arena_strn(&prog->arena, inside, len);
	sl_map_set(&prog->functions, name, fn);
	int err = sl_node_check_function(prog, fn, site, diags);
	if (err)
		fn->text = "null"; /* said once; who uses it need not hear it again */
	return err;
}

int sl_program_check_function(
	struct sl_program *prog, const char *name, const struct sl_expr_site *site, struct sl_diags *diags)
{
	const struct sl_lex_fn *fn = sl_map_get(&prog->functions, name);
	return fn ? sl_node_check_used(prog, fn, site, diags) : SL_ENOTFOUND;
}

int sl_program_add(struct sl_program *prog, const char *text, enum sl_expr_mode mode, const struct sl_expr_site *site,
	struct sl_diags *diags)
{
	size_t len;
	bool wrapped, secrets = false;
	const char *inside = sl_lex_unwrap(text, &len, &wrapped);
	struct sl_node *node = NULL;
	int err = sl_node_expr(prog, inside, len, mode, site, diags, &node, &secrets);
	return err ? err : append(prog, mode, node, text, secrets);
}

int sl_program_add_template(struct sl_program *prog, jv tmpl, const struct sl_expr_site *site, struct sl_diags *diags)
{
	bool secrets = false;
	struct sl_node *node = NULL;
	int err = sl_node_template(prog, tmpl, site, diags, &node, &secrets);
	if (err)
		return err;
	jv text = jv_get_kind(tmpl) == JV_KIND_STRING ? jv_copy(tmpl) : jv_dump_string(jv_copy(tmpl), 0);
	int id = append(prog, SL_EXPR_ONE, node, jv_string_value(text), secrets);
	jv_free(text);
	return id;
}

int sl_program_add_const(struct sl_program *prog, jv value)
{
	jv text = jv_dump_string(jv_copy(value), 0);
	int id = append(prog, SL_EXPR_ONE, sl_node_const(prog, value), jv_string_value(text), false);
	jv_free(text);
	return id;
}

bool sl_program_uses_secrets(const struct sl_program *prog, int id)
{
	return expr_of(prog, id)->secrets;
}

const char *sl_program_text(const struct sl_program *prog, int id)
{
	return expr_of(prog, id)->text;
}

const char *sl_program_portable(struct sl_program *prog, int id)
{
	(void)expr_of(prog, id);
	struct sl_program_expr *expr = &prog->exprs[id];
	if (!expr->portable) {
		struct sl_buf out;
		sl_buf_init(&out);
		sl_node_portable(expr->node, true, &out);
		expr->portable = sl_buf_steal(&out);
	}
	return expr->portable;
}

/* --- evaluation --- */

/* Ends the budget and says which expression it was: "`.a | .b`: MESSAGE". Takes input. */
static int finish(const struct sl_program_expr *expr, struct sl_eval *eval, int failed, struct sl_buf *err)
{
	if (eval->begun)
		sl_budget_end();
	if (failed) {
		sl_buf_adds(err, "`");
		sl_expr_shorten(err, expr->text, strlen(expr->text));
		sl_buf_printf(err, "`: %s", eval->why.data ? eval->why.data : "");
	}
	sl_buf_release(&eval->why);
	jv_free(eval->input);
	jv_free(eval->vars);
	return failed;
}

static void start(struct sl_eval *eval, struct sl_program *prog, jv input, jv vars)
{
	*eval = (struct sl_eval){.prog = prog, .input = input};
	eval->vars = jv_get_kind(vars) == JV_KIND_OBJECT ? jv_copy(vars) : jv_object();
	sl_buf_init(&eval->why);
}

int sl_program_eval(struct sl_program *prog, int id, jv input, jv vars, jv *ret, struct sl_buf *err)
{
	const struct sl_program_expr *expr = expr_of(prog, id);
	if (expr->mode == SL_EXPR_PATH) {
		jv paths, value;
		int failed = sl_program_paths(prog, id, jv_copy(input), vars, &paths, err);
		if (!failed) {
			value = jv_getpath(input, jv_array_get(paths, 0));
			*ret = jv_is_valid(value) ? value : jv_null();
			if (!jv_is_valid(value))
				jv_free(value);
		} else {
			jv_free(input);
		}
		return failed;
	}
	struct sl_eval eval;
	start(&eval, prog, input, vars);
	jv value;
	int failed = sl_node_eval(expr->node, &eval, &value);
	if (!failed && expr->node->kind > SL_NODE_EXPR) {
		failed = sl_vm_measure(value, 0, "the result", &eval.why);
		if (failed)
			jv_free(value);
	}
	failed = finish(expr, &eval, failed, err);
	if (!failed)
		*ret = value;
	return failed;
}

int sl_program_test(struct sl_program *prog, int id, jv input, jv vars, bool *ret, struct sl_buf *err)
{
	jv value;
	int failed = sl_program_eval(prog, id, input, vars, &value, err);
	if (failed)
		return failed;
	jv_kind kind = jv_get_kind(value);
	jv_free(value);
	if (kind != JV_KIND_TRUE && kind != JV_KIND_FALSE && kind != JV_KIND_NULL) {
		sl_buf_adds(err, "`");
		sl_expr_shorten(err, expr_of(prog, id)->text, strlen(expr_of(prog, id)->text));
		sl_buf_printf(err, "`: a condition must give true or false, this one gave %s %s",
			kind == JV_KIND_ARRAY || kind == JV_KIND_OBJECT ? "an" : "a", jv_kind_name(kind));
		return SL_EEXPR;
	}
	*ret = kind == JV_KIND_TRUE;
	return 0;
}

/* A path that could be set: setting it must not take more memory than a result may have. Borrows. */
static int check_path(jv path, struct sl_buf *err)
{
	int count = jv_array_length(jv_copy(path)), failed = 0;
	if (count > sl_vm_limits.depth_max) {
		sl_buf_printf(err, "the path is deeper than %d", sl_vm_limits.depth_max);
		return SL_EDEPTH;
	}
	for (int i = 0; i < count && !failed; i++) {
		jv key = jv_array_get(jv_copy(path), i);
		if (jv_get_kind(key) == JV_KIND_NUMBER && jv_number_value(key) > (double)(sl_vm_limits.bytes_max / 5)) {
			sl_buf_printf(err, "the index %.17g is too large", jv_number_value(key));
			failed = SL_EBUDGET;
		}
		jv_free(key);
	}
	return failed;
}

int sl_program_paths(struct sl_program *prog, int id, jv input, jv vars, jv *ret, struct sl_buf *err)
{
	const struct sl_program_expr *expr = expr_of(prog, id);
	sl_assert(expr->mode == SL_EXPR_PATH);
	struct sl_eval eval;
	start(&eval, prog, input, vars);
	jv paths;
	int failed = sl_node_paths(expr->node, &eval, &paths);
	if (!failed) {
		int count = jv_array_length(jv_copy(paths));
		if (count == 0) {
			sl_buf_adds(&eval.why, "denotes no place in the data (A63)");
			failed = SL_EEXPR;
		}
		for (int i = 0; i < count && !failed; i++) {
			jv path = jv_array_get(jv_copy(paths), i);
			failed = check_path(path, &eval.why);
			jv_free(path);
		}
		if (failed)
			jv_free(paths);
	}
	failed = finish(expr, &eval, failed, err);
	if (!failed)
		*ret = paths;
	return failed;
}

int sl_expr_before(struct sl_eval *eval)
{
	if (eval->begun)
		return 0;
	int failed = sl_vm_measure(eval->input, CHECKED_NODES, "the input", &eval->why);
	if (failed)
		return failed;
	eval->begun = true;
	sl_budget_begin(sl_vm_limits.soft_ms);
	return 0;
}

/* --- one expression alone --- */

static int once(struct sl_program *prog, const char *text, const char *const *names, jv input, jv vars, jv *ret,
	struct sl_buf *err)
{
	struct sl_diags diags;
	sl_diags_init(&diags);
	struct sl_expr_site site = {.vars = names, .secrets_allowed = true};
	int id = sl_program_add(prog, text, SL_EXPR_ONE, &site, &diags);
	if (id < 0) {
		sl_buf_adds(err, sl_diags_first(&diags));
		jv_free(input);
	}
	int failed = id < 0 ? id : sl_program_eval(prog, id, input, vars, ret, err);
	sl_diags_release(&diags);
	return failed;
}

int sl_expr_once(const char *text, jv input, jv vars, jv *ret, struct sl_buf *err)
{
	struct sl_program *prog = sl_program_new();
	int count = 0, room = jv_get_kind(vars) == JV_KIND_OBJECT ? jv_object_length(jv_copy(vars)) : 0;
	const char **names = SL_NEWN(&prog->arena, const char *, room + 1);
	if (room) {
		jv_object_keys_foreach(vars, key)
		{
			names[count++] = sl_arena_str(&prog->arena, jv_string_value(key));
			jv_free(key);
		}
	}
	prog->trusted = true; /* compiled once only: what is wrong shows there */
	int failed = once(prog, text, names, input, vars, ret, err);
	sl_program_free(prog);
	return failed;
}
