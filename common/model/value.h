/* JSON values. Workflow data is `jv` (libjq's refcounted value) from decode to encode; this header adds what
 * libjq lacks. jv rules hold: every function here *takes* (consumes) its jv arguments unless it says
 * "borrows", and gives a new reference. One thread per process touches jv. */
#ifndef SL_MODEL_VALUE_H
#define SL_MODEL_VALUE_H

#include <jv.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/diag.h"

struct sl_json_limits {
	size_t bytes_max;       /* of the text; 0 = no limit */
	int depth_max;          /* nesting; default 200 (R9: libjq dumps deeper data wrongly) */
	bool round_integers;    /* accept integers beyond 2^53 rounded (A167) */
};
extern const struct sl_json_limits sl_json_default;     /* 0 bytes, depth 200, refuse big integers */

/* Parses exactly one JSON text (RFC 8259): no NaN/nan/Infinity, no trailing bytes, duplicate names: last wins.
 * Errors with a diagnostic (line:col, and for numbers the JSON Pointer): SL_EPARSE, SL_EENCODING, SL_EDEPTH,
 * SL_ETOOBIG, SL_ENUMBER. */
SL_MUST_CHECK int sl_json_parse(const char *text, size_t len, const struct sl_json_limits *limits, jv *ret, struct sl_diags *diags);
/* Appends compact JSON; borrows. Numbers: integers up to 2^53 in digits alone, else the shortest
 * text that is read back as the same number, with a point or an exponent (A167). */
void sl_json_write(struct sl_buf *out, jv value);
/* The same as malloc'ed text (free it); borrows. */
char *sl_json_text(jv value);
/* Same value, numbers by value, member order irrelevant; borrows both. */
bool sl_json_equal(jv a, jv b);
/* Nesting depth (scalar = 0), stops counting beyond max; borrows. Not recursive beyond max. */
int sl_json_depth(jv value, int max);

/* "Data Merging" (0.8 Workflow Data; A05, A06, A62): objects recursively, arrays by appending unseen elements, else
 * `from` replaces. Takes both. */
jv sl_json_merge(jv into, jv from);
/* What must be merged into `before` to get `after`, for parallel branches (A18): an object holding the
 * members that were added or changed (recursively); arrays that changed are given whole; invalid if nothing changed.
 * Takes both. Members that disappeared are not represented. */
jv sl_json_changes(jv before, jv after);

/* --- readers: borrow `obj`, never fail --- */
/* A copy of the member, invalid if obj is no object or lacks it. */
jv sl_json_get(jv obj, const char *name);
/* The member's text, valid as long as obj; NULL unless it is a string. */
const char *sl_json_str(jv obj, const char *name);
int64_t sl_json_int(jv obj, const char *name, int64_t otherwise);
bool sl_json_bool(jv obj, const char *name, bool otherwise);
/* Resolves a JSON Pointer; a copy, or invalid. */
jv sl_json_at(jv value, const char *pointer);
/* Sets a member; takes obj and value, gives obj. */
jv sl_json_set(jv obj, const char *name, jv value);

/* The canonical string of a CloudEvents attribute value (CloudEvents 1.0, Type System): 42 -> "42", true -> "true",
 * strings as they are. Borrows. False for null, arrays, objects. */
bool sl_json_canonical(jv value, struct sl_buf *out);

#endif
