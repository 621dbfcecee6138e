/* Expressions so simple that they need no libjq: constants, `.`, paths such as `.a.b[0]` or `$CONST.x`, and one
 * comparison of two of those. They use libjq's own jv_get, jv_equal and jv_cmp, as its instructions do, and whatever
 * is not an ordinary success is left to libjq, so results and messages are exactly its own. */
#ifndef SL_EXPR_FAST_H
#define SL_EXPR_FAST_H

#include "common/expr/lex.h"
#include "common/model/value.h"

enum sl_fast_kind { SL_FAST_NONE, SL_FAST_CONST, SL_FAST_PATH, SL_FAST_COMPARE };

struct sl_fast_operand {
	bool is_const;
	const char *var; /* PATH from a variable; NULL: from the input. In the arena */
	jv value;	 /* the constant, or an array of keys */
};
struct sl_fast {
	enum sl_fast_kind kind;
	enum sl_tok op; /* COMPARE */
	struct sl_fast_operand left, right;
};

/* Understands the tokens of a finished lex, or gives SL_FAST_NONE. */
void sl_fast_init(struct sl_fast *fast, const struct sl_lex *lex, struct sl_arena *arena);
void sl_fast_release(struct sl_fast *fast);
/* The value, or invalid: ask libjq. Borrows input and vars. */
jv sl_fast_eval(const struct sl_fast *fast, jv input, jv vars);
/* True if it denotes a path from the input. */
bool sl_fast_is_path(const struct sl_fast *fast);

#endif
