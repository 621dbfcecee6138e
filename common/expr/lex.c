/* A real tokenizer of jq text: refused words, variables, `fn:` substitution, balanced brackets (A68, A69). */
#include "common/expr/lex.h"
#include "common/base/text.h"
#include "common/expr/words.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum open_kind { OPEN_PAREN, OPEN_BRACKET, OPEN_BRACE, OPEN_INTERP, OPEN_IF, OPEN_PARAMS };

struct open {
	enum open_kind kind;
	bool key;	  /* OPEN_BRACE: an object key may come here */
	bool has_else;	  /* OPEN_IF */
	int semicolons;	  /* OPEN_PAREN of a call: arguments so far, less one */
	int defs;	  /* OPEN_PAREN: definitions whose `;` is still to come */
	const char *call; /* its function, or NULL */
	size_t call_len;
};

/* One text: the expression itself or one function's. */
struct scan {
	struct sl_lex *lex;
	const char *at, *end;
	struct open stack[SL_LEX_STACK];
	int depth;
	bool after_def;	     /* the next name is being defined */
	bool after_def_name; /* parameters may come */
	bool after_term;     /* the last token ended a term (for `.a.[0]`) */
	bool after_dot;	     /* the last token was a lone dot behind a term */
};

#define COST_TOKEN 6   /* code words of an ordinary token, generously */
#define COST_ASSIGN 64 /* of `|=`, `+=`, ...: libjq expands them */

static int scan_text(struct sl_lex *lex, const char *text, size_t len);

void sl_lex_init(struct sl_lex *lex, const struct sl_map *functions)
{
	*lex = (struct sl_lex){.functions = functions};
	sl_buf_init(&lex->out);
	sl_buf_init(&lex->err);
	sl_map_init(&lex->vars);
	sl_map_init(&lex->defs);
}

void sl_lex_release(struct sl_lex *lex)
{
	sl_buf_release(&lex->out);
	sl_buf_release(&lex->err);
	sl_map_release(&lex->vars, NULL);
	sl_map_release(&lex->defs, NULL);
}

static int fail(struct sl_lex *lex, const char *rule, const char *fmt, ...) SL_PRINTF(3, 4);
static int fail(struct sl_lex *lex, const char *rule, const char *fmt, ...)
{
	if (lex->err.len)
		return SL_EEXPR;
	va_list ap;
	va_start(ap, fmt);
	sl_buf_vprintf(&lex->err, fmt, ap);
	va_end(ap);
	lex->err_rule = rule;
	return SL_EEXPR;
}

static bool name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool name_char(char c)
{
	return name_start(c) || (c >= '0' && c <= '9');
}

static char peek(const struct scan *s, int ahead)
{
	return s->at + ahead < s->end ? s->at[ahead] : 0;
}

static struct open *top(struct scan *s)
{
	return s->depth ? &s->stack[s->depth - 1] : NULL;
}

/* The token that was just written from `from` on. */
static void token(struct sl_lex *lex, enum sl_tok kind, size_t from, size_t len)
{
	lex->cost += COST_TOKEN;
	if (lex->token_count < SL_LEX_TOKENS)
		lex->tokens[lex->token_count] = (struct sl_lex_token){.kind = kind, .at = from, .len = len};
	if (lex->token_count <= SL_LEX_TOKENS)
		lex->token_count++;
}

static void emit(struct sl_lex *lex, enum sl_tok kind, const char *text, size_t len)
{
	size_t from = lex->out.len;
	sl_buf_add(&lex->out, text, len);
	token(lex, kind, from, len);
}

/* A comment ends at the line's end in every version only if neither a backslash nor a carriage return is in play. */
static int comment(struct scan *s)
{
	const char *from = s->at;
	while (s->at < s->end && *s->at != '\n')
		s->at++;
	const char *last = s->at;
	if (last > from && last[-1] == '\r')
		last--;
	if (memchr(from, '\r', (size_t)(last - from)) || last[-1] == '\\')
		return fail(s->lex, "A69",
			"a comment with a carriage return or a backslash before the line's end is not the "
			"same in all versions of jq");
	return 0;
}

/* Blanks and comments behind `at`, without moving. */
static const char *behind_blanks(const struct scan *s, const char *at)
{
	while (at < s->end) {
		if (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') {
			at++;
		} else if (*at == '#') {
			while (at < s->end && *at != '\n')
				at++;
		} else {
			break;
		}
	}
	return at;
}

static int push(struct scan *s, enum open_kind kind)
{
	if (s->depth == SL_LEX_STACK || s->lex->depth == SL_LEX_STACK)
		return fail(s->lex, NULL, "brackets are nested deeper than %d", SL_LEX_STACK);
	s->stack[s->depth++] = (struct open){.kind = kind, .key = kind == OPEN_BRACE};
	s->lex->depth++;
	return 0;
}

static const char *const open_texts[] = {"(", "[", "{", "\\(", "if", "("};
static const char *const close_texts[] = {")", "]", "}", ")", "end", ")"};

/* A function without or with arguments is called. */
static int check_call(struct sl_lex *lex, const char *name, size_t len, int arity)
{
	if (len > 128)
		return fail(lex, NULL, "a name of %zu characters", len);
	const char *why = sl_words_refused(name, len), *instead = NULL;
	if (why)
		return fail(lex, NULL, "`%.*s` is refused: %s", (int)len, name, why);
	if (sl_map_getn(&lex->defs, name, len))
		return 0;
	if (name[0] == '_')
		return fail(lex, NULL, "`%.*s` is refused: names that begin with _ are jq's own", (int)len, name);
	if (memchr(name, ':', len))
		return fail(lex, NULL, "`%.*s` is refused: module directives are not allowed", (int)len, name);
	if (sl_words_common(name, len, arity))
		return 0;
	if (sl_words_later(name, len, arity, &instead)) {
		if (instead)
			return fail(lex, "A69", "`%.*s` is not in every version of jq; write `%s` instead", (int)len,
				name, instead);
		return fail(lex, "A69", "`%.*s` is not in every version of jq", (int)len, name);
	}
	if (sl_words_known(name, len))
		return fail(lex, NULL, "`%.*s` is not defined with %d argument%s", (int)len, name, arity,
			arity == 1 ? "" : "s");
	return fail(lex, NULL, "`%.*s` is not defined", (int)len, name);
}

static int pop(struct scan *s, enum open_kind kind)
{
	struct open *open = top(s);
	if (!open)
		return fail(s->lex, NULL, "`%s` closes nothing", close_texts[kind]);
	if (strcmp(close_texts[open->kind], close_texts[kind]) != 0)
		return fail(s->lex, NULL, "`%s` meets an open `%s`", close_texts[kind], open_texts[open->kind]);
	s->depth--;
	s->lex->depth--;
	if (open->call)
		return check_call(s->lex, open->call, open->call_len, open->semicolons + 1);
	return 0;
}

static int escape(struct scan *s)
{
	char c = peek(s, 1);
	if (c && strchr("\"\\/bfnrt", c)) {
		s->at += 2;
		return 0;
	}
	if (c == 'u') {
		for (int i = 2; i < 6; i++) {
			if (!isxdigit((unsigned char)peek(s, i)))
				return fail(s->lex, NULL, "`\\u` in a string needs four hexadecimal digits");
		}
		s->at += 6;
		return 0;
	}
	return fail(s->lex, NULL, "invalid escape `\\%c` in a string", isprint((unsigned char)c) ? c : '?');
}

static int scan_until(struct scan *s, int depth);

/* A string from its opening quote on. Interpolations are scanned as expressions of their own. */
static int string(struct scan *s)
{
	struct sl_lex *lex = s->lex;
	size_t from = lex->out.len;
	bool plain = true;
	const char *start = s->at++;
	while (s->at < s->end && *s->at != '"') {
		if (*s->at != '\\') {
			s->at++;
			continue;
		}
		plain = false;
		if (peek(s, 1) != '(') {
			if (escape(s))
				return SL_EEXPR;
			continue;
		}
		s->at += 2;
		sl_buf_add(&lex->out, start, (size_t)(s->at - start));
		token(lex, SL_TOK_OTHER, 0, 0);
		token(lex, SL_TOK_OTHER, 0, 0);
		if (push(s, OPEN_INTERP) || scan_until(s, s->depth - 1))
			return SL_EEXPR;
		start = s->at;
	}
	if (s->at >= s->end)
		return fail(lex, NULL, "a string has no closing quote");
	s->at++;
	sl_buf_add(&lex->out, start, (size_t)(s->at - start));
	token(lex, plain ? SL_TOK_STRING : SL_TOK_OTHER, from + 1, lex->out.len - from - 2);
	s->after_term = true;
	return 0;
}

/* jq 1.7 keeps a literal as it was written, also in what tojson gives; a folded sum is a double in every version. */
static int number(struct scan *s)
{
	const char *from = s->at;
	bool integer = true;
	while (isdigit((unsigned char)peek(s, 0)))
		s->at++;
	if (peek(s, 0) == '.') {
		integer = false;
		s->at++;
		while (isdigit((unsigned char)peek(s, 0)))
			s->at++;
	}
	char c = peek(s, 0);
	if (c == '.')
		return fail(s->lex, NULL, "`%.*s.` is not a number", (int)(s->at - from), from);
	if ((c == 'e' || c == 'E') &&
		(isdigit((unsigned char)peek(s, 1)) ||
			((peek(s, 1) == '+' || peek(s, 1) == '-') && isdigit((unsigned char)peek(s, 2))))) {
		integer = false;
		s->at += 2;
		while (isdigit((unsigned char)peek(s, 0)))
			s->at++;
	}
	char text[72], shown[64];
	size_t len = (size_t)(s->at - from);
	if (len >= sizeof(text))
		return fail(s->lex, NULL, "a number of %zu characters", len);
	memcpy(text, from, len);
	text[len] = 0;
	double value = strtod(text, NULL);
	snprintf(shown, sizeof(shown), "%.0f", value);
	if (integer && (value > 9007199254740992.0 || (value >= 9007199254740992.0 && !strstr(text, shown))))
		return fail(s->lex, "A167", "the integer %s is beyond 2^53", text);
	if (!isfinite(value))
		return fail(s->lex, "A69", "the number %s is too large", text);
	if (integer) {
		emit(s->lex, SL_TOK_INT, text, len);
	} else {
		for (int digits = 1; digits <= 17; digits++) {
			snprintf(shown, sizeof(shown), "%.*g", digits, value);
			if (strtod(shown, NULL) == value)
				break;
		}
		snprintf(text, sizeof(text), "(%s+0)", shown);
		emit(s->lex, SL_TOK_OTHER, text, strlen(text));
	}
	s->after_term = true;
	return 0;
}

/* `$name`. Names that begin with `__` are jq's and ours; a lone `$` is a private door of jq's builtins. */
static int variable(struct scan *s)
{
	struct sl_lex *lex = s->lex;
	const char *name = s->at + 1;
	if (!name_start(peek(s, 1)))
		return fail(lex, NULL, "`$` without a name behind it");
	s->at++;
	while (name_char(peek(s, 0)))
		s->at++;
	size_t len = (size_t)(s->at - name);
	if (peek(s, 0) == ':' && peek(s, 1) == ':')
		return fail(lex, NULL, "`$%.*s::` is refused: module directives are not allowed", (int)len, name);
	if (len == 3 && !memcmp(name, "ENV", 3))
		return fail(lex, NULL, "`$ENV` is refused: an expression sees only its data, not the environment");
	if (len >= 2 && name[0] == '_' && name[1] == '_')
		return fail(lex, NULL, "`$%.*s` is refused: names that begin with __ are jq's own", (int)len, name);
	struct open *open = top(s);
	if (open && open->kind == OPEN_PARAMS)
		sl_map_setn(&lex->defs, name, len, lex); /* `def f($a)` defines `a` too */
	sl_map_setn(&lex->vars, name, len, lex);
	size_t from = lex->out.len;
	sl_buf_add(&lex->out, name - 1, len + 1);
	token(lex, SL_TOK_VAR, from + 1, len);
	s->after_term = true;
	return 0;
}

/* `fn:NAME` (A68): the longest function name that stands there; its text in parentheses takes its place. */
static int function(struct scan *s)
{
	struct sl_lex *lex = s->lex;
	const struct sl_lex_fn *fn = NULL;
	const char *name = s->at + 3;
	size_t left = (size_t)(s->end - name), best = 0;
	if (lex->functions) {
		sl_map_each(lex->functions, e)
		{
			if (e->len <= left && e->len > best && !memcmp(e->key, name, e->len) &&
				(e->len == left || !name_char(name[e->len]) || !name_char(name[e->len - 1]))) {
				fn = e->value;
				best = e->len;
			}
		}
	}
	if (!fn) {
		size_t len = 0;
		while (len < left && len < 100 && (name_char(name[len]) || name[len] == '-' || name[len] == '.'))
			len++;
		lex->unknown_fn = true;
		if (!len)
			return fail(lex, "A68", "`fn:` without a function name behind it");
		if (!lex->ignore_unknown_fn)
			return fail(
				lex, "A68", "`fn:%.*s`: there is no expression function of that name", (int)len, name);
		s->at = name + len;
		emit(lex, SL_TOK_OTHER, "null", 4);
		s->after_term = true;
		return 0;
	}
	s->at = name + best;
	for (int i = 0; i < lex->function_depth; i++) {
		if (lex->function_stack[i] == fn->name)
			return fail(lex, "A68", "the expression function `%s` uses itself%s", fn->name,
				i + 1 < lex->function_depth ? " through others" : "");
	}
	if (lex->function_depth == (int)(sizeof(lex->function_stack) / sizeof(lex->function_stack[0])))
		return fail(lex, "A68", "expression functions use each other deeper than %d", lex->function_depth);
	lex->function_stack[lex->function_depth++] = fn->name;
	emit(lex, SL_TOK_LPAREN, "(", 1);
	int err = scan_text(lex, fn->text, strlen(fn->text));
	if (err)
		return err;
	emit(lex, SL_TOK_RPAREN, ")", 1);
	lex->function_depth--;
	s->after_term = true;
	return 0;
}

/* The words of jq's grammar; `if` is kept on the stack because its branches may hold commas. */
static int keyword(struct scan *s, const char *name, size_t len)
{
	struct sl_lex *lex = s->lex;
	struct open *open = top(s);
	const char *why = sl_words_refused(name, len);
	if (why)
		return fail(lex, NULL, "`%.*s` is refused: %s", (int)len, name, why);
	emit(lex, SL_TOK_OTHER, name, len);
	s->after_term = false;
	if (len == 2 && !memcmp(name, "if", 2))
		return push(s, OPEN_IF);
	bool is_else = len == 4 && !memcmp(name, "else", 4), is_end = len == 3 && !memcmp(name, "end", 3);
	if (is_else || is_end || (len == 4 && (!memcmp(name, "then", 4) || !memcmp(name, "elif", 4)))) {
		if (!open || open->kind != OPEN_IF)
			return fail(lex, NULL, "`%.*s` without `if`", (int)len, name);
		if (is_end && !open->has_else)
			return fail(
				lex, "A69", "`if` without `else` is not in every version of jq; write `else . end`");
		open->has_else |= is_else;
	}
	if (is_end) {
		s->after_term = true;
		return pop(s, OPEN_IF);
	}
	if (len == 3 && !memcmp(name, "def", 3)) {
		s->after_def = true;
		if (open && open->kind == OPEN_PAREN)
			open->defs++;
	}
	return 0;
}

static void note_use(struct sl_lex *lex, const char *name, size_t len)
{
	static const struct {
		const char *name;
		enum sl_use use;
	} uses[] = {
		{"now", SL_USE_NOW},
		{"implode", SL_USE_IMPLODE},
		{"limit", SL_USE_LIMIT},
		{"index", SL_USE_INDEX},
		{"rindex", SL_USE_INDEX},
		{"indices", SL_USE_INDEX},
		{"match", SL_USE_REGEX},
		{"capture", SL_USE_REGEX},
		{"scan", SL_USE_REGEX},
		{"split", SL_USE_REGEX},
		{"splits", SL_USE_REGEX},
		{"sub", SL_USE_REGEX},
		{"gsub", SL_USE_REGEX},
		{"strftime", SL_USE_DATE},
		{"todate", SL_USE_DATE},
		{"todateiso8601", SL_USE_DATE},
	};
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		if (len == strlen(uses[i].name) && !memcmp(name, uses[i].name, len))
			lex->uses |= uses[i].use;
	}
}

/* A name: keyword, object key, definition, parameter, `fn:` or call. */
static int name(struct scan *s)
{
	struct sl_lex *lex = s->lex;
	struct open *open = top(s);
	const char *from = s->at, *to = s->at;
	bool key = open && open->kind == OPEN_BRACE && open->key;
	while (to < s->end && name_char(*to)) {
		to++;
		while (to + 2 < s->end && to[0] == ':' && to[1] == ':' && name_start(to[2]))
			to += 2;
	}
	size_t len = (size_t)(to - from);
	const char *next = behind_blanks(s, to);
	char follows = next < s->end ? *next : 0;
	if (key && (follows == ':' || follows == ',' || follows == '}')) {
		s->at = to;
		emit(lex, SL_TOK_OTHER, from, len);
		s->after_term = false;
		return 0;
	}
	if (s->after_def || (open && open->kind == OPEN_PARAMS)) {
		if (sl_words_keyword(from, len) || memchr(from, ':', len) || from[0] == '_')
			return fail(lex, NULL, "`%.*s` cannot be the name of a function", (int)len, from);
		s->after_def_name = s->after_def;
		s->after_def = false;
		s->at = to;
		sl_map_setn(&lex->defs, from, len, lex);
		emit(lex, SL_TOK_OTHER, from, len);
		return 0;
	}
	if (len == 2 && !memcmp(from, "fn", 2) && to < s->end && *to == ':')
		return function(s);
	s->at = to;
	if (sl_words_keyword(from, len))
		return keyword(s, from, len);
	if (memchr(from, ':', len))
		return fail(lex, NULL, "`%.*s` is refused: module directives are not allowed", (int)len, from);
	bool word = (len == 4 && (!memcmp(from, "true", 4) || !memcmp(from, "null", 4))) ||
		    (len == 5 && !memcmp(from, "false", 5));
	emit(lex, word && follows != '(' ? SL_TOK_WORD : SL_TOK_OTHER, from, len);
	s->after_term = true;
	if (word && follows != '(')
		return 0;
	note_use(lex, from, len);
	if (follows != '(')
		return check_call(lex, from, len, 0);
	while (s->at < next) { /* only blanks and comments: drop them */
		if (*s->at == '#') {
			if (comment(s))
				return SL_EEXPR;
			continue;
		}
		if (*s->at++ == '\n')
			sl_buf_addc(&lex->out, '\n');
	}
	s->at = next + 1;
	emit(lex, SL_TOK_OTHER, "(", 1);
	s->after_term = false;
	if (push(s, OPEN_PAREN))
		return SL_EEXPR;
	top(s)->call = from;
	top(s)->call_len = len;
	return 0;
}

static int format(struct scan *s)
{
	const char *from = s->at++;
	while (name_char(peek(s, 0)))
		s->at++;
	size_t len = (size_t)(s->at - from) - 1;
	if (!sl_words_format(from + 1, len))
		return fail(s->lex, "A69", "`@%.*s` is not a format that every version of jq has", (int)len, from + 1);
	emit(s->lex, SL_TOK_OTHER, from, len + 1);
	s->after_term = true;
	return 0;
}

/* `.`, `..`, `.name` or the beginning of a number. */
static int dot(struct scan *s)
{
	struct sl_lex *lex = s->lex;
	if (name_start(peek(s, 1))) {
		const char *from = ++s->at;
		while (name_char(peek(s, 0)))
			s->at++;
		size_t at = lex->out.len;
		sl_buf_add(&lex->out, from - 1, (size_t)(s->at - from) + 1);
		token(lex, SL_TOK_FIELD, at + 1, (size_t)(s->at - from));
		s->after_term = true;
		return 0;
	}
	if (isdigit((unsigned char)peek(s, 1)))
		return number(s);
	if (peek(s, 1) == '.') {
		if (peek(s, 2) == '.' || isdigit((unsigned char)peek(s, 2)))
			return fail(lex, NULL, "`...` is not jq");
		s->at += 2;
		emit(lex, SL_TOK_OTHER, "..", 2);
		s->after_term = true;
		return 0;
	}
	s->after_dot = s->after_term;
	s->at++;
	emit(lex, SL_TOK_DOT, ".", 1);
	s->after_term = true;
	return 0;
}

static int operator(struct scan *s)
{
	static const struct {
		const char *text;
		enum sl_tok kind;
		int cost;
	} operators[] = {
		/* longest first */
		{"?//", SL_TOK_OTHER, 0},
		{"//=", SL_TOK_OTHER, COST_ASSIGN},
		{"//", SL_TOK_OTHER, 8},
		{"|=", SL_TOK_OTHER, COST_ASSIGN},
		{"+=", SL_TOK_OTHER, COST_ASSIGN},
		{"-=", SL_TOK_OTHER, COST_ASSIGN},
		{"*=", SL_TOK_OTHER, COST_ASSIGN},
		{"/=", SL_TOK_OTHER, COST_ASSIGN},
		{"%=", SL_TOK_OTHER, COST_ASSIGN},
		{"==", SL_TOK_EQ, 0},
		{"!=", SL_TOK_NE, 0},
		{"<=", SL_TOK_LE, 0},
		{">=", SL_TOK_GE, 0},
		{"<", SL_TOK_LT, 0},
		{">", SL_TOK_GT, 0},
		{"=", SL_TOK_OTHER, COST_ASSIGN},
		{"?", SL_TOK_OTHER, 6},
		{";", SL_TOK_OTHER, 0},
		{",", SL_TOK_OTHER, 0},
		{":", SL_TOK_OTHER, 0},
		{"|", SL_TOK_OTHER, 0},
		{"+", SL_TOK_OTHER, 0},
		{"-", SL_TOK_OTHER, 0},
		{"*", SL_TOK_OTHER, 0},
		{"/", SL_TOK_OTHER, 0},
		{"%", SL_TOK_OTHER, 0},
	};
	size_t left = (size_t)(s->end - s->at);
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		size_t len = strlen(operators[i].text);
		if (len > left || memcmp(s->at, operators[i].text, len) != 0)
			continue;
		s->at += len;
		s->lex->cost += (size_t)operators[i].cost;
		if (operators[i].text[0] == '%')
			s->lex->uses |= SL_USE_MODULO;
		emit(s->lex, operators[i].kind, operators[i].text, len);
		struct open *open = top(s);
		if (operators[i].text[0] == ';' && open && open->kind == OPEN_PAREN) {
			if (open->defs)
				open->defs--;
			else
				open->semicolons++;
		}
		if (operators[i].text[0] == ',' && open && open->kind == OPEN_BRACE)
			open->key = true;
		s->after_term = operators[i].text[0] == '?' && len == 1;
		return 0;
	}
	unsigned char c = (unsigned char)*s->at;
	if (c >= 0x20 && c < 0x7f)
		return fail(s->lex, NULL, "`%c` is not jq", c);
	return fail(s->lex, NULL, "a character outside of strings that is not jq (byte 0x%02x)", c);
}

static int bracket(struct scan *s)
{
	struct sl_lex *lex = s->lex;
	char c = *s->at;
	enum sl_tok kind = c == '['   ? SL_TOK_LBRACKET
			   : c == ']' ? SL_TOK_RBRACKET
			   : c == '(' ? SL_TOK_LPAREN
			   : c == ')' ? SL_TOK_RPAREN
				      : SL_TOK_OTHER;
	bool after_dot = s->after_dot;
	s->at++;
	emit(lex, kind, &c, 1);
	if (c == '[' && after_dot)
		return fail(lex, "A69", "`.[` behind a term is not in every version of jq; leave the dot out");
	if (c == '(' || c == '[' || c == '{') {
		enum open_kind open = c == '['		  ? OPEN_BRACKET
				      : c == '{'	  ? OPEN_BRACE
				      : s->after_def_name ? OPEN_PARAMS
							  : OPEN_PAREN;
		s->after_term = false;
		return push(s, open);
	}
	s->after_term = true;
	return pop(s, c == ')' ? OPEN_PAREN : c == ']' ? OPEN_BRACKET : OPEN_BRACE);
}

static int one(struct scan *s)
{
	char c = *s->at;
	struct open *open = top(s);
	bool key = open && open->kind == OPEN_BRACE && open->key;
	bool def_name = s->after_def_name, after_dot = s->after_dot, def = s->after_def;
	int depth = s->depth;
	int err;
	if (s->after_def && !name_start(c))
		return fail(s->lex, NULL, "`def` without a name");
	if (c == '"')
		err = string(s);
	else if (name_start(c))
		err = name(s);
	else if (c == '$')
		err = variable(s);
	else if (c == '@')
		err = format(s);
	else if (c == '.')
		err = dot(s);
	else if (isdigit((unsigned char)c))
		err = number(s);
	else if (strchr("()[]{}", c))
		err = bracket(s);
	else
		err = operator(s);
	if (!err && key && s->depth >= depth && s->stack[depth - 1].kind == OPEN_BRACE && c != ',')
		s->stack[depth - 1].key = false;
	if (def_name)
		s->after_def_name = false;
	if (after_dot)
		s->after_dot = false;
	if (def)
		s->after_def = false; /* name() has taken it */
	return err;
}

/* Scans until the bracket at `depth` is closed (behind it), or to the end for depth -1. */
static int scan_until(struct scan *s, int depth)
{
	struct sl_lex *lex = s->lex;
	while (s->at < s->end) {
		char c = *s->at;
		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			sl_buf_addc(&lex->out, c == '\n' ? '\n' : ' ');
			s->at++;
			continue;
		}
		if (c == '#') {
			if (comment(s))
				return SL_EEXPR;
			continue;
		}
		if (one(s))
			return SL_EEXPR;
		if (lex->out.len > SL_LEX_OUT_MAX)
			return fail(lex, NULL,
				"the expression is longer than %u KiB after its functions are substituted",
				SL_LEX_OUT_MAX >> 10);
		if (s->depth == depth)
			return 0;
	}
	return 0;
}

static int scan_text(struct sl_lex *lex, const char *text, size_t len)
{
	if (len > SL_LEX_TEXT_MAX)
		return fail(
			lex, NULL, "an expression may have %u KiB, this one has %zu bytes", SL_LEX_TEXT_MAX >> 10, len);
	if (!sl_utf8_valid(text, len))
		return fail(lex, NULL, "the expression is not valid UTF-8");
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	*s = (struct scan){.lex = lex, .at = text, .end = text + len};
	int err = 0;
	if (behind_blanks(s, text) == s->end)
		err = fail(lex, NULL, "the expression is empty");
	if (!err)
		err = scan_until(s, -1);
	if (!err && s->depth) {
		const struct open *open = top(s);
		err = fail(lex, NULL, "`%s` is not closed%s", open_texts[open->kind],
			open->kind == OPEN_IF ? " with `end`" : "");
	}
	free(s);
	return err;
}

int sl_lex_run(struct sl_lex *lex, const char *text, size_t len)
{
	int err = scan_text(lex, text, len);
	if (err)
		return err;
	if (lex->cost > SL_LEX_COST_MAX)
		return fail(lex, NULL, "the expression is too long to be compiled; split it");
	return 0;
}
