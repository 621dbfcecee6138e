/* Which names of jq an expression may use: tables only. */
#include "common/expr/words.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	const char *name, *why; /* or what to write instead */
};

/* Design section 6. What reads or writes the process instead of the data, or depends on where it runs. */
static const struct word refused[] = {
	{"import", "module directives are not allowed"},
	{"include", "module directives are not allowed"},
	{"module", "module directives are not allowed"},
	{"modulemeta", "module directives are not allowed"},
	{"env", "an expression sees only its data, not the environment"},
	{"input", "an expression sees only its data, there is no further input"},
	{"inputs", "an expression sees only its data, there is no further input"},
	{"input_filename", "an expression sees only its data, there is no input file"},
	{"input_line_number", "an expression sees only its data, there is no input file"},
	{"debug", "an expression has no side effects"},
	{"stderr", "an expression has no side effects"},
	{"halt", "an expression has no side effects; use `error`"},
	{"halt_error", "an expression has no side effects; use `error`"},
	{"get_search_list", "its result depends on where it runs"},
	{"get_jq_origin", "its result depends on where it runs"},
	{"get_prog_origin", "its result depends on where it runs"},
	{"builtins", "its result depends on the version of jq"},
	{"localtime", "its result depends on where it runs; use `gmtime`"},
	{"jn", "it can take hours"},
	{"yn", "it can take hours"},
	{"strflocaltime", "its result depends on where it runs; use `strftime`"},
};

/* A69: only some of 1.6, 1.7 and later have them. */
static const struct word versions[] = {
	{"abs", "if . < 0 then -. else . end"},
	{"add/1", "[EXPR] | add"},
	{"ascii", "[.] | implode"},
	{"have_decnum", NULL},
	{"have_literal_numbers", NULL},
	{"leaf_paths", "paths(scalars)"},
	{"ltrim", "sub(\"^\\\\s+\"; \"\")"},
	{"pick", NULL},
	{"recurse_down", "recurse"},
	{"rtrim", "sub(\"\\\\s+$\"; \"\")"},
	{"scalars_or_empty", "scalars"},
	{"scan/2", "match(REGEX; FLAGS)"},
	{"skip/2", "foreach or a slice"},
	{"toarray", "if type == \"array\" then . else [.] end"},
	{"trim", "sub(\"^\\\\s+\"; \"\") | sub(\"\\\\s+$\"; \"\")"},
	{"trimstr", "ltrimstr(X) | rtrimstr(X)"},
	{"date", "todate"},
	{"dateadd", ". + SECONDS"},
	{"datesub", ". - SECONDS"},
	{"isvalid", "try (EXPR | true) catch false"},
};

/* Functions that jq 1.6 and 1.7 both list, sorted by byte. */
static const char *const common[] = {
	"IN/1",
	"IN/2",
	"INDEX/1",
	"INDEX/2",
	"JOIN/2",
	"JOIN/3",
	"JOIN/4",
	"acos/0",
	"acosh/0",
	"add/0",
	"all/0",
	"all/1",
	"all/2",
	"any/0",
	"any/1",
	"any/2",
	"arrays/0",
	"ascii_downcase/0",
	"ascii_upcase/0",
	"asin/0",
	"asinh/0",
	"atan/0",
	"atan2/2",
	"atanh/0",
	"booleans/0",
	"bsearch/1",
	"capture/1",
	"capture/2",
	"cbrt/0",
	"ceil/0",
	"combinations/0",
	"combinations/1",
	"contains/1",
	"copysign/2",
	"cos/0",
	"cosh/0",
	"del/1",
	"delpaths/1",
	"drem/2",
	"empty/0",
	"endswith/1",
	"erf/0",
	"erfc/0",
	"error/0",
	"error/1",
	"exp/0",
	"exp10/0",
	"exp2/0",
	"explode/0",
	"expm1/0",
	"fabs/0",
	"fdim/2",
	"finites/0",
	"first/0",
	"first/1",
	"flatten/0",
	"flatten/1",
	"floor/0",
	"fma/3",
	"fmax/2",
	"fmin/2",
	"fmod/2",
	"format/1",
	"frexp/0",
	"from_entries/0",
	"fromdate/0",
	"fromdateiso8601/0",
	"fromjson/0",
	"fromstream/1",
	"gamma/0",
	"getpath/1",
	"gmtime/0",
	"group_by/1",
	"gsub/2",
	"gsub/3",
	"has/1",
	"hypot/2",
	"implode/0",
	"in/1",
	"index/1",
	"indices/1",
	"infinite/0",
	"inside/1",
	"isempty/1",
	"isfinite/0",
	"isinfinite/0",
	"isnan/0",
	"isnormal/0",
	"iterables/0",
	"j0/0",
	"j1/0",
	"join/1",
	"keys/0",
	"keys_unsorted/0",
	"last/0",
	"last/1",
	"ldexp/2",
	"length/0",
	"lgamma/0",
	"lgamma_r/0",
	"limit/2",
	"log/0",
	"log10/0",
	"log1p/0",
	"log2/0",
	"logb/0",
	"ltrimstr/1",
	"map/1",
	"map_values/1",
	"match/1",
	"match/2",
	"max/0",
	"max_by/1",
	"min/0",
	"min_by/1",
	"mktime/0",
	"modf/0",
	"nan/0",
	"nearbyint/0",
	"nextafter/2",
	"nexttoward/2",
	"normals/0",
	"not/0",
	"now/0",
	"nth/1",
	"nth/2",
	"nulls/0",
	"numbers/0",
	"objects/0",
	"path/1",
	"paths/0",
	"paths/1",
	"pow/2",
	"pow10/0",
	"range/1",
	"range/2",
	"range/3",
	"recurse/0",
	"recurse/1",
	"recurse/2",
	"remainder/2",
	"repeat/1",
	"reverse/0",
	"rindex/1",
	"rint/0",
	"round/0",
	"rtrimstr/1",
	"scalars/0",
	"scalb/2",
	"scalbln/2",
	"scan/1",
	"select/1",
	"setpath/2",
	"significand/0",
	"sin/0",
	"sinh/0",
	"sort/0",
	"sort_by/1",
	"split/1",
	"split/2",
	"splits/1",
	"splits/2",
	"sqrt/0",
	"startswith/1",
	"strftime/1",
	"strings/0",
	"strptime/1",
	"sub/2",
	"sub/3",
	"tan/0",
	"tanh/0",
	"test/1",
	"test/2",
	"tgamma/0",
	"to_entries/0",
	"todate/0",
	"todateiso8601/0",
	"tojson/0",
	"tonumber/0",
	"tostream/0",
	"tostring/0",
	"transpose/0",
	"trunc/0",
	"truncate_stream/1",
	"type/0",
	"unique/0",
	"unique_by/1",
	"until/2",
	"utf8bytelength/0",
	"values/0",
	"walk/1",
	"while/2",
	"with_entries/1",
	"y0/0",
	"y1/0",
};

static const char *const formats[] = {"text", "json", "html", "uri", "csv", "tsv", "sh", "base64", "base64d", "base32"};

static const char *const keywords[] = {"def", "if", "then", "elif", "else", "end", "and", "or", "as", "reduce",
	"foreach", "try", "catch", "label", "break", "import", "include", "module", "__loc__"};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool same(const char *word, const char *name, size_t len)
{
	return strncmp(word, name, len) == 0 && word[len] == 0;
}

const char *sl_words_refused(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		if (same(refused[i].name, name, len))
			return refused[i].why;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

bool sl_words_common(const char *name, size_t len, int arity)
{
	char key[64];
	if (len > 40)
		return false;
	snprintf(key, sizeof(key), "%.*s/%d", (int)len, name, arity);
	return bsearch(key, common, COUNT(common), sizeof(common[0]), compare) != NULL;
}

bool sl_words_known(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(common); i++) {
		if (strncmp(common[i], name, len) == 0 && common[i][len] == '/')
			return true;
	}
	return false;
}

bool sl_words_later(const char *name, size_t len, int arity, const char **ret_instead)
{
	char key[64];
	if (len > 40)
		return false;
	snprintf(key, sizeof(key), "%.*s/%d", (int)len, name, arity);
	for (size_t i = 0; i < COUNT(versions); i++) {
		if (same(versions[i].name, name, len) || strcmp(versions[i].name, key) == 0) {
			*ret_instead = versions[i].why;
			return true;
		}
	}
	return false;
}

bool sl_words_format(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(formats); i++) {
		if (same(formats[i], name, len))
			return true;
	}
	return false;
}

bool sl_words_keyword(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(keywords); i++) {
		if (same(keywords[i], name, len))
			return true;
	}
	return false;
}
