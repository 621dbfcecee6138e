/* Groups of expressions compiled into one jq program each, and running them. */
#include "common/expr/vm.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/expr/budget.h"
#include "common/expr/lex.h"
#include <ctype.h>
#include <jq.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_UNITS 128
#define SHARD_BYTES (48u << 10) /* of text: keeps libjq's 16-bit jumps and a compilation's time small */
#define CHECKED_MAX 20000	/* texts remembered; then all are forgotten */
#define COUNTED_MAX 1000	/* outputs counted for the message of A67 */
#define MESSAGE_MAX 400

struct unit {
	char *source; /* variables bound, definitions, the text in parentheses */
	size_t len;
	int shard, index; /* index: within the shard */
	char *bad;	  /* libjq refused it after all: the message */
};

struct shard {
	jq_state *jq; /* NULL: not compiled yet */
	int first, count;
	size_t bytes;
};

struct sl_vm {
	struct unit *units;
	int unit_count, unit_cap;
	struct shard *shards;
	int shard_count, shard_cap;
	struct sl_map by_source; /* unit number + 1 */
};

struct sl_expr_limits sl_vm_limits = {.soft_ms = 100, .bytes_max = 4u << 20, .depth_max = 200};

static void (*watch_enter)(void *), (*watch_leave)(void *);
static void *watch_arg;
static struct sl_map checked; /* source -> "" or the message; for the process */

void sl_expr_watch(void (*enter)(void *arg), void (*leave)(void *arg), void *arg)
{
	watch_enter = enter;
	watch_leave = leave;
	watch_arg = arg;
}

static void enter(void)
{
	if (watch_enter)
		watch_enter(watch_arg);
}

static void leave(void)
{
	if (watch_leave)
		watch_leave(watch_arg);
}

static void *grow(void *array, int *cap, int count, size_t size)
{
	if (count < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 8;
	array = realloc(array, size * (size_t)*cap);
	if (!array)
		sl_bug(__FILE__, __LINE__, "out of memory");
	return array;
}

struct sl_vm *sl_vm_new(void)
{
	struct sl_vm *vm = calloc(1, sizeof(*vm));
	if (!vm)
		sl_bug(__FILE__, __LINE__, "out of memory");
	sl_map_init(&vm->by_source);
	return vm;
}

void sl_vm_free(struct sl_vm *vm)
{
	if (!vm)
		return;
	for (int i = 0; i < vm->shard_count; i++) {
		if (vm->shards[i].jq)
			jq_teardown(&vm->shards[i].jq);
	}
	for (int i = 0; i < vm->unit_count; i++) {
		free(vm->units[i].source);
		free(vm->units[i].bad);
	}
	sl_map_release(&vm->by_source, NULL);
	free(vm->units);
	free(vm->shards);
	free(vm);
}

/* Definitions of ours that stand in for builtins which versions of jq disagree on (A69) or which take the process
 * down. In each the names that begin with `__` still see the builtin. */
static const struct {
	enum sl_use use;
	const char *text;
} stand_ins[] = {
	/* the step's time (R11) */
	{SL_USE_NOW, "$__v.now as $__now | def now: $__now; "},
	/* jq 1.6 and 1.7 assert on what is no code point */
	{SL_USE_IMPLODE,
		"def __implode: implode; def implode: if type == \"array\" and all(.[]; type == \"number\" and "
		". >= 0 and . <= 1114111) then __implode else error(\"implode needs an array of code points\") end; "},
	/* jq 1.6 searches for "" for ever, in one instruction */
	{SL_USE_INDEX,
		"def __indices(i): indices(i); def indices($i): if type == \"string\" and $i == \"\" then [] else "
		"__indices($i) end; def index($i): indices($i) | .[0]; def rindex($i): indices($i) | .[-1:][0]; "},
	/* limit(0; f) gives an output in jq 1.6 */
	{SL_USE_LIMIT,
		"def __limit(n; f): limit(n; f); def limit($n; f): if $n == 0 then empty else __limit($n; f) end; "},
	/* matching nothing with the flag g: jq 1.6 reads wild memory on text beyond ASCII, its gsub never ends, and
	 * versions count the matches differently */
	{SL_USE_REGEX,
		"def __rx($re; $f): if type == \"string\" and ($re | type) == \"string\" and ($f | type) == \"string\" "
		"and "
		"($f | contains(\"g\")) then ($f | explode | map(select(. != 103)) | implode) as $p | if (\"\" | "
		"test($re; $p)) "
		"or [match($re; $p) | .length] == [0] then error(\"a regular expression that matches the empty text "
		"cannot be "
		"used for all matches: \" + $re) else . end else . end; "
		"def __match(v): match(v); def __match(r; f): match(r; f); def __capture(v): capture(v); "
		"def __capture(r; f): capture(r; f); def __scan(r): scan(r); def __split(r; f): split(r; f); "
		"def __splits(r; f): splits(r; f); def __sub(r; s; f): sub(r; s; f); def __sub(r; s): sub(r; s); "
		"def __gsub(r; s; f): gsub(r; s; f); def __gsub(r; s): gsub(r; s); def __split(s): split(s); "
		"def match($v): (if ($v | type) == \"array\" then __rx($v[0]; $v[1]) else . end) | __match($v); "
		"def match($r; $f): __rx($r; $f) | __match($r; $f); "
		"def capture($v): (if ($v | type) == \"array\" then __rx($v[0]; $v[1]) else . end) | __capture($v); "
		"def capture($r; $f): __rx($r; $f) | __capture($r; $f); def scan($r): __rx($r; \"g\") | __scan($r); "
		"def split($s): __split($s); def split($r; $f): __rx($r; \"g\") | __split($r; $f); "
		"def splits($r; $f): __rx($r; \"g\") | __splits($r; $f); def splits($r): splits($r; null); "
		"def sub($r; s): __sub($r; s); def sub($r; s; $f): __rx($r; $f) | __sub($r; s; $f); "
		"def gsub($r; s): __rx($r; \"g\") | __gsub($r; s); def gsub($r; s; $f): __rx($r; \"g\") | __gsub($r; "
		"s; $f); "},
	/* jq 1.6 asserts on times that gmtime refuses and on formats that are no strings, and leaks where a part of a
	 * broken-down time is no number */
	{SL_USE_DATE, "def __strftime(f): strftime(f); def strftime($f): if ($f | type) != \"string\" then "
		      "error(\"strftime/1 requires a string format\") elif type == \"number\" then gmtime | "
		      "__strftime($f) elif type == \"array\" and any(.[]; type != \"number\") then "
		      "error(\"strftime/1 requires parsed datetime inputs\") else "
		      "__strftime($f) end; def todate: strftime(\"%Y-%m-%dT%H:%M:%SZ\"); def todateiso8601: todate; "},
	/* the smallest integer by -1 is a division trap; `%` is the function _mod, its right side the outer loop */
	{SL_USE_MODULO,
		"def __mod(a; b): _mod(a; b); def _mod(a; b): b as $b | a as $a | if ($b | type) == \"number\" and "
		"($a | type) == \"number\" and $b > -2 and $b <= -1 then 0 else __mod($a; $b) end; "},
};

static void write_source(struct sl_buf *out, const struct sl_unit *unit, bool parens)
{
	for (const char *const *name = unit->vars; name && *name; name++)
		sl_buf_printf(out, "$__v.%s as $%s | ", *name, *name);
	for (size_t i = 0; i < sizeof(stand_ins) / sizeof(stand_ins[0]); i++) {
		if (unit->uses & stand_ins[i].use)
			sl_buf_adds(out, stand_ins[i].text);
	}
	if (unit->path)
		sl_buf_adds(out, "[path");
	sl_buf_adds(out, parens || unit->path ? "(" : "");
	sl_buf_adds(out, unit->text);
	sl_buf_adds(out, parens || unit->path ? "\n)" : "\n");
	if (unit->path)
		sl_buf_adds(out, "]");
}

/* --- compiling --- */

static void keep_first(void *arg, jv message)
{
	struct sl_buf *out = arg;
	if (out->len == 0) {
		jv text =
			jv_get_kind(message) == JV_KIND_STRING ? jv_copy(message) : jv_dump_string(jv_copy(message), 0);
		sl_buf_adds(out, jv_string_value(text));
		jv_free(text);
	}
	jv_free(message);
}

/* libjq's parser loses a few bytes with each syntax error; they are not ours to report. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define PARSER_LEAKS(on) ((on) ? __lsan_disable() : __lsan_enable())
#else
#define PARSER_LEAKS(on) ((void)0)
#endif

/* A compiled program, or NULL with libjq's first message in `raw`. */
static jq_state *compile(const char *source, struct sl_buf *raw)
{
	jq_state *jq = jq_init();
	if (!jq)
		sl_bug(__FILE__, __LINE__, "out of memory");
	jq_set_error_cb(jq, keep_first, raw);
	enter();
	PARSER_LEAKS(true);
	int fine = jq_compile(jq, source);
	PARSER_LEAKS(false);
	leave();
	if (!fine)
		jq_teardown(&jq);
	else
		jq_set_error_cb(jq, NULL, NULL);
	return jq;
}

/* Replaces the parser's token names by what people typed. */
static void add_readable(struct sl_buf *out, const char *text, size_t len)
{
	static const struct {
		const char *from, *to;
	} names[] = {
		{"$end", "the end"},
		{"end of file", "the end"},
		{"INVALID_CHARACTER", "a character that is not jq"},
		{"QQSTRING_START", "a string"},
		{"QQSTRING_TEXT", "text"},
		{"QQSTRING_INTERP_START", "\\("},
		{"QQSTRING_INTERP_END", ")"},
		{"QQSTRING_END", "the end of a string"},
		{"IDENT", "a name"},
		{"FIELD", "a field"},
		{"LITERAL", "a number"},
		{"FORMAT", "a format"},
		{"BINDING", "a variable"},
	};
	for (size_t i = 0; i < len;) {
		bool word = i == 0 || !isalnum((unsigned char)text[i - 1]);
		size_t n = 0;
		for (size_t k = 0; word && !n && k < sizeof(names) / sizeof(names[0]); k++) {
			size_t from = strlen(names[k].from);
			if (from <= len - i && !memcmp(text + i, names[k].from, from) &&
				!isalnum((unsigned char)text[i + from])) {
				sl_buf_adds(out, names[k].to);
				n = from;
			}
		}
		if (!n)
			sl_buf_addc(out, text[i]);
		i += n ? n : 1;
	}
}

/* "jq: error: syntax error, unexpected ')' (Unix shell quoting issues?) at <top-level>, line 2:\n..." for people. */
static void clean_message(struct sl_buf *out, const char *raw)
{
	static const char noise[] = " (Unix shell quoting issues?)", at[] = " at <top-level>";
	if (!strncmp(raw, "jq: error: ", 11))
		raw += 11;
	const char *end = strstr(raw, at), *quoting = strstr(raw, noise);
	int line = 0;
	if (end) {
		const char *number = strstr(end, ", line ");
		line = number ? (int)strtol(number + 7, NULL, 10) : 0;
	} else {
		end = raw + strcspn(raw, "\n");
	}
	add_readable(out, raw, (size_t)((quoting && quoting < end ? quoting : end) - raw));
	if (line > 1)
		sl_buf_printf(out, " (line %d)", line);
}

/* The message for a unit that does not compile: without our parentheses the parser speaks of the author's text. */
static void explain(struct sl_buf *out, const struct sl_unit *unit, const char *raw)
{
	struct sl_buf source, again;
	sl_buf_init(&source);
	sl_buf_init(&again);
	struct sl_unit plain = *unit;
	plain.path = false;
	sl_buf_adds(&source, "null as $__v | ");
	write_source(&source, &plain, false);
	jq_state *jq = compile(source.data, &again);
	size_t len = strlen(unit->text);
	while (len && strchr(" \n", unit->text[len - 1]))
		len--;
	if (len && unit->text[len - 1] == ';')
		sl_buf_adds(out, "definitions without an expression behind them");
	else
		clean_message(out, jq ? raw : again.data ? again.data : "");
	if (jq)
		jq_teardown(&jq);
	sl_buf_release(&source);
	sl_buf_release(&again);
}

bool sl_vm_check(const struct sl_unit *unit, struct sl_buf *err)
{
	struct sl_buf source, raw, message;
	sl_buf_init(&source);
	sl_buf_init(&raw);
	sl_buf_init(&message);
	sl_buf_adds(&source, "null as $__v | ");
	write_source(&source, unit, true);
	const char *known = sl_map_get(&checked, source.data);
	if (!known) {
		jq_state *jq = compile(source.data, &raw);
		if (jq)
			jq_teardown(&jq);
		else
			explain(&message, unit, raw.data ? raw.data : "");
		if (checked.count >= CHECKED_MAX)
			sl_map_release(&checked, free);
		known = sl_buf_steal(&message);
		sl_map_set(&checked, source.data, (void *)known);
	}
	sl_buf_adds(err, known);
	bool fine = !known[0];
	sl_buf_release(&source);
	sl_buf_release(&raw);
	sl_buf_release(&message);
	return fine;
}

int sl_vm_add(struct sl_vm *vm, const struct sl_unit *unit)
{
	struct sl_buf source;
	sl_buf_init(&source);
	write_source(&source, unit, true);
	size_t known = (size_t)(uintptr_t)sl_map_get(&vm->by_source, source.data);
	if (known) {
		sl_buf_release(&source);
		return (int)known - 1;
	}
	struct shard *shard = vm->shard_count ? &vm->shards[vm->shard_count - 1] : NULL;
	if (!shard || shard->jq || shard->count == SHARD_UNITS || shard->bytes + source.len > SHARD_BYTES) {
		vm->shards = grow(vm->shards, &vm->shard_cap, vm->shard_count, sizeof(*shard));
		shard = &vm->shards[vm->shard_count++];
		*shard = (struct shard){.first = vm->unit_count};
	}
	vm->units = grow(vm->units, &vm->unit_cap, vm->unit_count, sizeof(*vm->units));
	int number = vm->unit_count++;
	sl_map_set(&vm->by_source, source.data, (void *)(uintptr_t)(number + 1));
	struct unit *u = &vm->units[number];
	*u = (struct unit){.shard = vm->shard_count - 1, .index = shard->count++, .len = source.len};
	shard->bytes += source.len;
	u->source = sl_buf_steal(&source);
	return number;
}

static void write_dispatch(struct sl_buf *out, int from, int to)
{
	if (to - from == 1) {
		sl_buf_printf(out, "__u%d", from);
		return;
	}
	int middle = from + (to - from) / 2;
	sl_buf_printf(out, "if $__i < %d then ", middle);
	write_dispatch(out, from, middle);
	sl_buf_adds(out, " else ");
	write_dispatch(out, middle, to);
	sl_buf_adds(out, " end");
}

/* The input is [unit, variables, data]. Each unit is a function of its own: its code cannot outgrow libjq's jumps
 * because of its neighbours. */
static jq_state *compile_shard(const struct sl_vm *vm, const struct shard *shard, struct sl_buf *raw)
{
	struct sl_buf source;
	sl_buf_init(&source);
	sl_buf_adds(&source, ".[0] as $__i | .[1] as $__v | .[2] | ");
	for (int i = 0; i < shard->count; i++) {
		const struct unit *unit = &vm->units[shard->first + i];
		sl_buf_printf(&source, "def __u%d: %s;\n", i, unit->bad ? "null" : unit->source);
	}
	write_dispatch(&source, 0, shard->count);
	jq_state *jq = compile(source.data, raw);
	sl_buf_release(&source);
	return jq;
}

/* Compiles the shard. Should a unit not compile that was added unchecked, only that unit is lost. */
static void ready(struct sl_vm *vm, struct shard *shard)
{
	struct sl_buf raw;
	sl_buf_init(&raw);
	shard->jq = compile_shard(vm, shard, &raw);
	for (int i = 0; !shard->jq && i < shard->count; i++) {
		struct unit *unit = &vm->units[shard->first + i];
		struct sl_buf alone;
		sl_buf_init(&alone);
		sl_buf_adds(&alone, "null as $__v | ");
		sl_buf_adds(&alone, unit->source);
		sl_buf_clear(&raw);
		jq_state *jq = compile(alone.data, &raw);
		sl_buf_clear(&alone);
		if (jq) {
			jq_teardown(&jq);
			sl_buf_release(&alone);
		} else {
			clean_message(&alone, raw.data ? raw.data : "");
			unit->bad = sl_buf_steal(&alone);
		}
	}
	sl_buf_clear(&raw);
	if (!shard->jq)
		shard->jq = compile_shard(vm, shard, &raw);
	if (!shard->jq)
		sl_bug(__FILE__, __LINE__, "expressions compile alone but not together: %s", raw.data);
	sl_buf_release(&raw);
}

/* --- limits of values --- */

struct measure {
	size_t bytes;
	long nodes, nodes_max;
	int err;
};

/* Estimated JSON text; gives up at the first limit, so shared parts cannot make it endless. Borrows. */
static void measure(jv value, int depth, struct measure *m)
{
	m->nodes++;
	switch (jv_get_kind(value)) {
	case JV_KIND_STRING:
		m->bytes += (size_t)jv_string_length_bytes(jv_copy(value)) + 2;
		break;
	case JV_KIND_ARRAY: {
		int count = jv_array_length(jv_copy(value));
		m->bytes += 2;
		if (depth >= sl_vm_limits.depth_max)
			m->err = SL_EDEPTH;
		for (int i = 0; i < count && !m->err; i++) {
			if (m->nodes_max && m->nodes >= m->nodes_max)
				return;
			jv item = jv_array_get(jv_copy(value), i);
			m->bytes++;
			measure(item, depth + 1, m);
			jv_free(item);
		}
		break;
	}
	case JV_KIND_OBJECT:
		m->bytes += 2;
		if (depth >= sl_vm_limits.depth_max)
			m->err = SL_EDEPTH;
		for (int i = jv_object_iter(value); jv_object_iter_valid(value, i) && !m->err;
			i = jv_object_iter_next(value, i)) {
			if (m->nodes_max && m->nodes >= m->nodes_max)
				return;
			jv item = jv_object_iter_value(value, i);
			m->bytes += (size_t)jv_string_length_bytes(jv_object_iter_key(value, i)) + 4;
			measure(item, depth + 1, m);
			jv_free(item);
		}
		break;
	default:
		m->bytes += 4;
	}
	if (!m->err && m->bytes > sl_vm_limits.bytes_max)
		m->err = SL_EBUDGET;
}

static int measured(const struct measure *m, const char *what, struct sl_buf *err)
{
	if (m->err == SL_EDEPTH)
		sl_buf_printf(err, "%s is nested deeper than %d", what, sl_vm_limits.depth_max);
	else if (m->err)
		sl_buf_printf(err, "%s is larger than %zu bytes", what, sl_vm_limits.bytes_max);
	return m->err;
}

int sl_vm_measure(jv value, long nodes_max, const char *what, struct sl_buf *err)
{
	struct measure m = {.nodes_max = nodes_max};
	measure(value, 0, &m);
	return measured(&m, what, err);
}

/* --- running --- */

/* What jq raised. Takes the invalid value. */
static int raised(jv invalid, struct sl_buf *err)
{
	jv message = jv_invalid_get_msg(invalid);
	char cut[MESSAGE_MAX];
	if (jv_get_kind(message) == JV_KIND_STRING)
		sl_buf_printf(err, "%.*s", MESSAGE_MAX, jv_string_value(message));
	else
		sl_buf_printf(err, "error: %s", jv_dump_string_trunc(jv_copy(message), cut, sizeof(cut)));
	jv_free(message);
	return SL_EEXPR;
}

/* Takes all outputs. Every path leaves the state fit for the next start. */
static int outputs(jq_state *jq, enum sl_expr_mode mode, jv *ret, struct sl_buf *err)
{
	struct measure m = {0};
	jv first = jv_invalid(), all = jv_invalid();
	int count = 0, failed = 0;
	for (;;) {
		jv value = sl_budget_next(jq);
		if (!jv_is_valid(value)) {
			if (jv_invalid_has_msg(jv_copy(value)))
				failed = raised(value, err);
			else
				jv_free(value);
			break;
		}
		count++;
		measure(value, mode == SL_EXPR_COLLECT ? 1 : 0, &m);
		failed = measured(&m, "the result", err);
		if (failed || (mode != SL_EXPR_COLLECT && count > 1)) {
			jv_free(value);
			if (failed || count == COUNTED_MAX)
				break;
		} else if (count == 1) {
			first = value;
		} else {
			all = count == 2 ? JV_ARRAY(first, value) : jv_array_append(all, value);
			first = jv_invalid();
		}
	}
	if (sl_budget_spent() && (!failed || failed == SL_EEXPR)) {
		sl_buf_clear(err);
		sl_buf_printf(err, "took longer than %lld ms", (long long)sl_vm_limits.soft_ms);
		failed = SL_EBUDGET;
	}
	if (!failed && count > 1 && mode != SL_EXPR_COLLECT) {
		sl_buf_printf(err, "gave %s%d results where one is needed; wrap it in [ ]",
			count == COUNTED_MAX ? "at least " : "", count);
		failed = SL_EEXPR;
	}
	if (failed) {
		jv_free(first);
		jv_free(all);
		return failed;
	}
	*ret = count > 1 ? all : count ? first : mode == SL_EXPR_COLLECT ? jv_array() : jv_null();
	return 0;
}

int sl_vm_run(struct sl_vm *vm, int number, enum sl_expr_mode mode, jv input, jv vars, jv *ret, struct sl_buf *err)
{
	const struct unit *unit = &vm->units[number];
	struct shard *shard = &vm->shards[unit->shard];
	if (!shard->jq) {
		/* compiling is not the expression's fault: its time starts again */
		sl_budget_end();
		ready(vm, shard);
		sl_budget_begin(sl_vm_limits.soft_ms);
	}
	if (unit->bad) {
		sl_buf_adds(err, unit->bad);
		return SL_EEXPR;
	}
	struct sl_buf why;
	sl_buf_init(&why);
	enter();
	jq_start(shard->jq, JV_ARRAY(jv_number(unit->index), jv_copy(vars), jv_copy(input)), 0);
	int failed = outputs(shard->jq, mode, ret, &why);
	if (failed)
		jq_start(shard->jq, jv_null(), 0); /* drops what a halted run still holds */
	leave();
	if (failed)
		sl_buf_add(err, why.data, why.len);
	sl_buf_release(&why);
	return failed;
}
