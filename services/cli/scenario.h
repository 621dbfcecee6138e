/* Scenario files: a workflow, what happens to it, what must come out (docs/scenarios.md). */
#ifndef SL_CLI_SCENARIO_H
#define SL_CLI_SCENARIO_H

#include "common/base/diag.h"
#include "common/model/value.h"

/* Result of one scenario. */
struct sl_scenario_result {
	char *name;
	bool passed;
	char *difference;               /* NULL when passed: text for people, lines */
};
void sl_scenario_result_clear(struct sl_scenario_result *result);

/* Runs the scenario in the file. Never fails: a file that is no scenario is a scenario that did not pass. */
void sl_scenario_run(const char *path, struct sl_scenario_result *ret);

/* --- scenario_expect.c --- */
struct sl_world;
/* Compares what happened with `expect` (borrowed); appends a line per difference. `main_id`: the main instance or NULL. */
void sl_scenario_expect(const struct sl_world *world, jv expect, const char *main_id, const char *main_workflow, struct sl_buf *diff);
/* Members that `expect` may have; appends a line per unknown one. */
void sl_scenario_check_expect(jv expect, struct sl_buf *diff);
/* Expected (with placeholders) against actual: exact, or with `part` objects recursively as subset. Borrows. */
bool sl_scenario_match(jv expected, jv actual, bool part);

#endif
