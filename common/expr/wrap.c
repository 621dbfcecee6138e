/* `${ }` around and inside texts (A07, A64). */
#include "common/expr/expr.h"
#include "common/expr/lex.h"
#include <ctype.h>
#include <string.h>

/* Behind the string that begins at `at`, or NULL. */
static const char *skip_string(const char *at, const char *end, int nesting)
{
	for (at++; at < end; at++) {
		if (*at == '"')
			return at + 1;
		if (*at != '\\' || at + 1 == end)
			continue;
		at++;
		if (*at != '(')
			continue;
		int parens = 1;
		for (at++; at < end && parens; at++) {
			if (*at == '"') {
				if (nesting == 0 || !(at = skip_string(at, end, nesting - 1)))
					return NULL;
				at--;
			} else {
				parens += *at == '(' ? 1 : *at == ')' ? -1 : 0;
			}
		}
		if (parens)
			return NULL;
		at--;
	}
	return NULL;
}

const char *sl_lex_close(const char *text, const char *end)
{
	char stack[SL_LEX_STACK];
	int depth = 0;
	for (const char *at = text; at < end; at++) {
		char c = *at;
		if (c == '"') {
			at = skip_string(at, end, 32);
			if (!at)
				return NULL;
			at--;
		} else if (c == '#') {
			while (at < end && *at != '\n')
				at++;
		} else if (c == '(' || c == '[' || c == '{') {
			if (depth == SL_LEX_STACK)
				return NULL;
			stack[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
		} else if (c == ')' || c == ']' || c == '}') {
			if (depth == 0)
				return c == '}' ? at : NULL;
			if (stack[--depth] != c)
				return NULL;
		}
	}
	return NULL;
}

const char *sl_lex_unwrap(const char *text, size_t *ret_len, bool *ret_wrapped)
{
	const char *end = text + strlen(text);
	while (text < end && isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*ret_wrapped = false;
	if (end - text >= 3 && text[0] == '$' && text[1] == '{' && end[-1] == '}') {
		/* without a partner for the brace it is broken, and meant as an expression all the same */
		const char *close = sl_lex_close(text + 2, end);
		if (!close || close == end - 1) {
			*ret_wrapped = true;
			text += 2;
			end--;
		}
	}
	*ret_len = (size_t)(end - text);
	return text;
}

bool sl_expr_is_wrapped(const char *text)
{
	bool wrapped;
	size_t len;
	sl_lex_unwrap(text, &len, &wrapped);
	return wrapped;
}

bool sl_expr_is_template(const char *text)
{
	for (const char *at = strchr(text, '$'); at; at = strchr(at, '$')) {
		if (!strncmp(at, "${", 2))
			return true;
		at += !strncmp(at, "$${", 3) ? 3 : 1;
	}
	return false;
}
