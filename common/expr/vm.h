/* Groups of expressions compiled into one jq program each, and running them. A unit is one expression for libjq;
 * units are compiled in shards of neighbours when one of them is first run, because compiling costs 13 ms however
 * little it is. */
#ifndef SL_EXPR_VM_H
#define SL_EXPR_VM_H

#include "common/expr/expr.h"

struct sl_vm;

struct sl_unit {
	const char *text;	 /* as the tokenizer wrote it */
	const char *const *vars; /* NULL-terminated names that it takes from the variables object */
	bool path;		 /* gives one array of all paths that the text denotes */
	unsigned uses;		 /* enum sl_use: functions that need our definition */
};

extern struct sl_expr_limits sl_vm_limits;

struct sl_vm *sl_vm_new(void);
void sl_vm_free(struct sl_vm *vm);
/* Copies the unit and gives its number; the same unit again gives the same number. */
int sl_vm_add(struct sl_vm *vm, const struct sl_unit *unit);
/* Compiles it alone, once per process and text: true if libjq takes it, else `err` has its message for people. It
 * stands in parentheses as in the shard, so what passes cannot close anything around it. */
bool sl_vm_check(const struct sl_unit *unit, struct sl_buf *err);
/* Runs it. SL_EXPR_ONE / SL_EXPR_COLLECT say what becomes of several outputs. The budget must have begun. Borrows
 * input and vars. SL_EEXPR, SL_EBUDGET, SL_EDEPTH with `err`. */
SL_MUST_CHECK int sl_vm_run(
	struct sl_vm *vm, int unit, enum sl_expr_mode mode, jv input, jv vars, jv *ret, struct sl_buf *err);

/* Size and depth of a value within the limits? Counts until nodes_max (0: all). SL_EBUDGET, SL_EDEPTH. Borrows. */
SL_MUST_CHECK int sl_vm_measure(jv value, long nodes_max, const char *what, struct sl_buf *err);

#endif
