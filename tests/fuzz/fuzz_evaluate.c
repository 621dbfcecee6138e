/* Expressions and templates through libjq, with a soft budget of 20 ms: the first line is the input as JSON, the rest
 * the expression or, if it is JSON, the template. Whatever the author writes, the answer is a value or a named error.
 *
 * Left out, because only R7's watchdog can stop it (it ends the process, and the next one gives up the step): one
 * instruction of libjq that takes seconds or gigabytes. run.sh therefore runs this target with -fork=1, whose parent
 * forgives an input of more than 20 s or 2 GiB and goes on; a crash or a leak still counts. */
#include "common/expr/expr.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES 2048

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct sl_expr_limits limits = {.soft_ms = 20, .bytes_max = 1 << 16, .depth_max = 200};
	(void)argc;
	(void)argv;
	sl_expr_init(&limits);
	return 0;
}

static int add(struct sl_program *prog, const char *text, size_t len, struct sl_diags *diags)
{
	static const char *const vars[] = {"item", NULL};
	const struct sl_expr_site site = {.pointer = "/x", .vars = vars, .secrets_allowed = true};
	jv tmpl;
	if (sl_json_parse(text, len, &sl_json_default, &tmpl, NULL) == 0) {
		int id = sl_program_add_template(prog, tmpl, &site, diags);
		jv_free(tmpl);
		return id;
	}
	if (memchr(text, 0, len))
		return SL_EEXPR;
	char *copy = strndup(text, len);
	int id = sl_program_add(prog, copy, SL_EXPR_COLLECT, &site, diags);
	free(copy);
	return id;
}

static void evaluate(struct sl_program *prog, int id, jv input)
{
	jv value, vars = jv_parse(
			  "{\"CONST\":{\"a\":1},\"WORKFLOW\":{},\"SECRETS\":{\"s\":\"x\"},\"now\":1e9,\"item\":[1]}");
	struct sl_buf err;
	sl_buf_init(&err);
	int code = sl_program_eval(prog, id, input, vars, &value, &err);
	if (code == 0) {
		char *json = sl_json_text(value);
		free(json);
		jv_free(value);
	} else {
		FUZZ_HOLDS(code == SL_EEXPR || code == SL_EBUDGET || code == SL_EDEPTH, "%s: %s", sl_err_name(code),
			err.len ? err.data : "");
		FUZZ_HOLDS(err.len, "%s without a word", sl_err_name(code));
	}
	jv_free(vars);
	sl_buf_release(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_arena arena;
	struct sl_diags diags;
	jv input;
	if (size > SIZE_MAX_BYTES)
		return -1;
	sl_arena_init(&arena);
	const char *line = fuzz_line(&in, &arena);
	if (line && sl_json_parse(line, strlen(line), &sl_json_default, &input, NULL) == 0) {
		struct sl_program *prog = sl_program_new();
		sl_diags_init(&diags);
		sl_program_set_trusted(prog, true); /* the same text is compiled below, once instead of twice */
		char *text = fuzz_exact(in);
		int id = add(prog, text, (size_t)(in.end - in.at), &diags);
		if (id >= 0)
			evaluate(prog, id, jv_copy(input));
		free(text);
		jv_free(input);
		sl_diags_release(&diags);
		sl_program_free(prog);
	}
	sl_arena_release(&arena);
	return 0;
}
