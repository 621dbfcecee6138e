/* A real tokenizer of jq text: finds refused words, variables and `fn:` references where jq would see them (not in
 * strings, comments, field names or object keys) and writes the expression out again in a form that every version
 * of libjq reads alike: comments and carriage returns dropped, functions substituted (A68), brackets balanced. */
#ifndef SL_EXPR_LEX_H
#define SL_EXPR_LEX_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/map.h"

/* What an expression uses that we define anew around it (vm.c says why). */
enum sl_use {
	SL_USE_NOW = 1,
	SL_USE_IMPLODE = 2,
	SL_USE_INDEX = 4,
	SL_USE_LIMIT = 8,
	SL_USE_REGEX = 16,
	SL_USE_DATE = 32,
	SL_USE_MODULO = 64
};

/* The first tokens, for expressions so simple that they need no libjq (fast.h). */
enum sl_tok {
	SL_TOK_OTHER,
	SL_TOK_DOT,
	SL_TOK_FIELD,
	SL_TOK_VAR,
	SL_TOK_INT,
	SL_TOK_STRING,
	SL_TOK_WORD,
	SL_TOK_EQ,
	SL_TOK_NE,
	SL_TOK_LT,
	SL_TOK_LE,
	SL_TOK_GT,
	SL_TOK_GE,
	SL_TOK_LBRACKET,
	SL_TOK_RBRACKET,
	SL_TOK_LPAREN,
	SL_TOK_RPAREN
};
#define SL_LEX_TOKENS 24
struct sl_lex_token {
	enum sl_tok kind;
	size_t at, len; /* in `out`; FIELD, VAR without dot and dollar, STRING without quotes */
};

/* Functions for `fn:`; `text` as the author wrote it, without `${ }`. */
struct sl_lex_fn {
	const char *name, *text;
};

#define SL_LEX_STACK 128	    /* nesting of brackets and `if` */
#define SL_LEX_TEXT_MAX (16u << 10) /* bytes that one author may write as one expression */
#define SL_LEX_OUT_MAX (64u << 10)  /* after substitution */
#define SL_LEX_COST_MAX 60000	    /* estimated code words: libjq takes 64 Ki, and a second to compile them */

struct sl_lex {
	/* results */
	struct sl_buf out;  /* the text for libjq */
	struct sl_map vars; /* names behind `$`, without it (values unused) */
	unsigned uses;	    /* enum sl_use */
	size_t cost;	    /* estimated code words */
	struct sl_lex_token tokens[SL_LEX_TOKENS];
	int token_count;      /* SL_LEX_TOKENS + 1: there are more */
	struct sl_buf err;    /* why it failed */
	const char *err_rule; /* ruling, or NULL */
	/* inner */
	const struct sl_map *functions; /* name -> struct sl_lex_fn, or NULL */
	const char *function_stack[32]; /* being substituted, for cycles */
	int function_depth;
	bool ignore_unknown_fn; /* leave unknown `fn:` alone (a function that may come later) */
	bool unknown_fn;	/* there was one */
	struct sl_map defs;	/* functions and parameters that the text defines itself */
	int depth;		/* brackets open in all texts together */
};

void sl_lex_init(struct sl_lex *lex, const struct sl_map *functions);
void sl_lex_release(struct sl_lex *lex);
/* Tokenizes one expression. SL_EEXPR with `err`. */
SL_MUST_CHECK int sl_lex_run(struct sl_lex *lex, const char *text, size_t len);

/* The `}` that closes the `${` whose inside begins at text, or NULL. */
const char *sl_lex_close(const char *text, const char *end);
/* The inside of `${ }` if the whole text is that (trimmed, A07), else the trimmed text. */
const char *sl_lex_unwrap(const char *text, size_t *ret_len, bool *ret_wrapped);

#endif
