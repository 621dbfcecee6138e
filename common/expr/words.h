/* Which names of jq an expression may use: tables only. */
#ifndef SL_EXPR_WORDS_H
#define SL_EXPR_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Why a word is refused before libjq sees it (design section 6), or NULL. Never NULL for module directives. */
const char *sl_words_refused(const char *name, size_t len);
/* True if jq 1.6 and 1.7 both have the function NAME/ARITY (A69). */
bool sl_words_common(const char *name, size_t len, int arity);
/* True if some jq has a function of that name, whatever its arity. */
bool sl_words_known(const char *name, size_t len);
/* True for a function that only some versions of jq have (A69); *ret_instead: what to write instead, or NULL. */
bool sl_words_later(const char *name, size_t len, int arity, const char **ret_instead);
/* True for `@NAME` that all versions have. */
bool sl_words_format(const char *name, size_t len);
/* True for the words of jq's grammar ("if", "reduce"). */
bool sl_words_keyword(const char *name, size_t len);

#endif
