/* Expressions so simple that they need no libjq. */
#include "common/expr/fast.h"
#include <stdlib.h>
#include <string.h>

struct tokens {
	const struct sl_lex *lex;
	struct sl_arena *arena;
	int at, end;
};

static enum sl_tok kind(const struct tokens *t)
{
	return t->at < t->end ? t->lex->tokens[t->at].kind : SL_TOK_OTHER;
}

static enum sl_tok kind_behind(const struct tokens *t, int ahead)
{
	return t->at + ahead < t->end ? t->lex->tokens[t->at + ahead].kind : SL_TOK_OTHER;
}

/* The text of the token at `at`; moves on. */
static const char *take(struct tokens *t, size_t *ret_len)
{
	const struct sl_lex_token *token = &t->lex->tokens[t->at++];
	*ret_len = token->len;
	return t->lex->out.data + token->at;
}

/* Strings and numbers exactly as libjq's literals: tokens of these kinds have no escapes and at most 2^53. */
static jv literal(struct tokens *t)
{
	size_t len;
	enum sl_tok what = kind(t);
	const char *text = take(t, &len);
	if (what == SL_TOK_STRING)
		return jv_string_sized(text, (int)len);
	if (what == SL_TOK_INT)
		return jv_number(strtod(text, NULL));
	return text[0] == 't' ? jv_true() : text[0] == 'f' ? jv_false() : jv_null();
}

static bool is_literal(enum sl_tok what)
{
	return what == SL_TOK_STRING || what == SL_TOK_INT || what == SL_TOK_WORD;
}

static bool operand(struct tokens *t, struct sl_fast_operand *ret)
{
	size_t len;
	*ret = (struct sl_fast_operand){.value = jv_invalid()};
	if (is_literal(kind(t))) {
		ret->is_const = true;
		ret->value = literal(t);
		return true;
	}
	ret->value = jv_array();
	if (kind(t) == SL_TOK_VAR) {
		const char *name = take(t, &len);
		ret->var = sl_arena_strn(t->arena, name, len);
	} else if (kind(t) == SL_TOK_DOT) {
		t->at++;
		if (kind(t) == SL_TOK_STRING)
			ret->value = jv_array_append(ret->value, literal(t));
	} else if (kind(t) != SL_TOK_FIELD) {
		return false;
	}
	for (;;) {
		if (kind(t) == SL_TOK_FIELD) {
			const char *name = take(t, &len);
			ret->value = jv_array_append(ret->value, jv_string_sized(name, (int)len));
		} else if (kind(t) == SL_TOK_LBRACKET && kind_behind(t, 2) == SL_TOK_RBRACKET &&
			   (kind_behind(t, 1) == SL_TOK_INT || kind_behind(t, 1) == SL_TOK_STRING)) {
			t->at++;
			ret->value = jv_array_append(ret->value, literal(t));
			t->at++;
		} else {
			return true;
		}
	}
}

/* `(X)` is X; fn: substitution makes many of those. */
static void strip(struct tokens *t)
{
	while (t->end - t->at > 2 && kind(t) == SL_TOK_LPAREN && t->lex->tokens[t->end - 1].kind == SL_TOK_RPAREN) {
		int depth = 0;
		for (int i = t->at; i < t->end - 1; i++) {
			depth += t->lex->tokens[i].kind == SL_TOK_LPAREN   ? 1
				 : t->lex->tokens[i].kind == SL_TOK_RPAREN ? -1
									   : 0;
			if (depth == 0)
				return;
		}
		t->at++;
		t->end--;
	}
}

void sl_fast_init(struct sl_fast *fast, const struct sl_lex *lex, struct sl_arena *arena)
{
	*fast = (struct sl_fast){.left.value = jv_invalid(), .right.value = jv_invalid()};
	if (lex->token_count > SL_LEX_TOKENS)
		return;
	struct tokens t = {.lex = lex, .arena = arena, .end = lex->token_count};
	strip(&t);
	if (!operand(&t, &fast->left))
		goto none;
	if (t.at == t.end) {
		fast->kind = fast->left.is_const ? SL_FAST_CONST : SL_FAST_PATH;
		return;
	}
	fast->op = kind(&t);
	t.at++;
	if (fast->op < SL_TOK_EQ || fast->op > SL_TOK_GE || !operand(&t, &fast->right) || t.at != t.end)
		goto none;
	fast->kind = SL_FAST_COMPARE;
	return;
none:
	sl_fast_release(fast);
}

void sl_fast_release(struct sl_fast *fast)
{
	jv_free(fast->left.value);
	jv_free(fast->right.value);
	*fast = (struct sl_fast){.left.value = jv_invalid(), .right.value = jv_invalid()};
}

static jv value_of(const struct sl_fast_operand *from, jv input, jv vars)
{
	if (from->is_const)
		return jv_copy(from->value);
	jv value;
	if (from->var) {
		value = sl_json_get(vars, from->var);
		if (!jv_is_valid(value))
			value = jv_null();
	} else {
		value = jv_copy(input);
	}
	int count = jv_array_length(jv_copy(from->value));
	for (int i = 0; i < count && jv_is_valid(value); i++)
		value = jv_get(value, jv_array_get(jv_copy(from->value), i));
	return value;
}

jv sl_fast_eval(const struct sl_fast *fast, jv input, jv vars)
{
	if (fast->kind == SL_FAST_NONE)
		return jv_invalid();
	jv left = value_of(&fast->left, input, vars);
	if (fast->kind != SL_FAST_COMPARE || !jv_is_valid(left))
		return left;
	jv right = value_of(&fast->right, input, vars);
	if (!jv_is_valid(right)) {
		jv_free(left);
		return right;
	}
	if (fast->op == SL_TOK_EQ || fast->op == SL_TOK_NE) {
		int equal = jv_equal(left, right);
		return jv_bool(fast->op == SL_TOK_EQ ? equal : !equal);
	}
	int order = jv_cmp(left, right);
	switch (fast->op) {
	case SL_TOK_LT:
		return jv_bool(order < 0);
	case SL_TOK_LE:
		return jv_bool(order <= 0);
	case SL_TOK_GT:
		return jv_bool(order > 0);
	default:
		return jv_bool(order >= 0);
	}
}

bool sl_fast_is_path(const struct sl_fast *fast)
{
	return fast->kind == SL_FAST_PATH && !fast->left.var;
}
