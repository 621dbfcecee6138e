/* Expressions and templates as a definition holds them: tokenized, refused or accepted, written in their portable form,
 * without libjq (fuzz_evaluate runs it). The input is one line "o", "c" or "p" (one result, collect, path) with further
 * letters "s" (secrets allowed) and "f" (the second line is a function for `fn:f`), then the expression, or the
 * template as JSON. */
#include "common/expr/expr.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES (20u << 10)

static int add(struct sl_program *prog, const char *text, size_t len, const char *how, struct sl_diags *diags)
{
	static const char *const vars[] = {"item", NULL};
	struct sl_expr_site site = {.pointer = "/x", .vars = vars, .secrets_allowed = strchr(how, 's') != NULL};
	jv tmpl;
	if (sl_json_parse(text, len, &sl_json_default, &tmpl, NULL) == 0) {
		int id = sl_program_add_template(prog, tmpl, &site, diags);
		jv_free(tmpl);
		return id;
	}
	if (memchr(text, 0, len))
		return SL_EEXPR;
	char *copy = strndup(text, len);
	int id = sl_program_add(prog, copy,
		*how == 'p'   ? SL_EXPR_PATH
		: *how == 'c' ? SL_EXPR_COLLECT
			      : SL_EXPR_ONE,
		&site, diags);
	sl_expr_is_wrapped(copy);
	sl_expr_is_template(copy);
	free(copy);
	return id;
}

/* What is portable is taken again, alone and without functions. */
static void portable(struct sl_program *prog, int id)
{
	static const char *const vars[] = {"item", NULL};
	const struct sl_expr_site site = {.pointer = "/x", .vars = vars, .secrets_allowed = true};
	struct sl_program *other = sl_program_new();
	struct sl_diags diags;
	const char *text = sl_program_portable(prog, id);
	sl_diags_init(&diags);
	sl_program_set_trusted(other, true);
	(void)sl_program_add(other, text, SL_EXPR_COLLECT, &site, &diags);
	sl_diags_release(&diags);
	sl_program_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_arena arena;
	struct sl_diags diags;
	if (size > SIZE_MAX_BYTES)
		return -1;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	struct sl_program *prog = sl_program_new();
	sl_program_set_trusted(prog, true);
	const char *how = fuzz_line(&in, &arena), *fn = how && strchr(how, 'f') ? fuzz_line(&in, &arena) : NULL;
	const struct sl_expr_site site = {.pointer = "/f", .secrets_allowed = true};
	if (fn && sl_program_add_function(prog, "f", fn, &site, &diags) == 0)
		(void)sl_program_check_function(prog, "f", &site, &diags);
	sl_diags_clear(&diags);
	if (how) {
		char *text = fuzz_exact(in);
		int id = add(prog, text, (size_t)(in.end - in.at), how, &diags);
		if (id >= 0) {
			FUZZ_HOLDS(diags.error_count == 0, "accepted, but %s", sl_diags_first(&diags));
			(void)sl_program_uses_secrets(prog, id);
			(void)sl_program_text(prog, id);
			portable(prog, id);
		}
		free(text);
	}
	sl_program_free(prog);
	sl_diags_release(&diags);
	sl_arena_release(&arena);
	return 0;
}
