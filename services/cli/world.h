/* Sluice in one process: the coordinator's pipeline on the memory adapters in virtual time, with the executor and the timer
 * played by mocks and an agenda. `sluice test` and `sluice run` stand on it (design section 9).
 *
 * Order at one virtual instant: everything already caused runs to its end; then events in the order given, then mock answers in order
 * of their calls, then timers by due time and order of setting. One thread; the caller's. */
#ifndef SL_CLI_WORLD_H
#define SL_CLI_WORLD_H

#include "common/dsl/dsl.h"
#include "common/engine/engine.h"
#include "services/executor/request.h"

struct sl_world;

struct sl_world_options {
	int64_t clock_ms;               /* wall clock at virtual time 0 */
	uint64_t seed;
	jv mocks;                       /* function name -> list of mocks; borrowed, invalid: none */
	jv secrets;                     /* name -> value; borrowed, invalid: none */
	/* Told as it happens, for --trace; may be NULL. */
	void (*trace)(void *arg, int64_t at_ms, const char *text);
	/* Answers calls when there are no mocks; NULL: a call without a mock stops the run. Gives data or error and returns how many
	 * ms that took: so much later the answer comes. Borrows args; timeout_ms 0: none. */
	int64_t (*call)(void *arg, const struct sl_function *function, const struct sl_call_context *ctx, jv args, int64_t timeout_ms,
		jv *ret_data, jv *ret_error);
	/* Called before virtual time goes on to that wall clock; NULL: it goes at once. */
	void (*until)(void *arg, int64_t wall_ms);
	void *arg;
};

struct sl_world *sl_world_new(const struct sl_world_options *opt);
void sl_world_free(struct sl_world *world);

/* As a deploy command does it. Errors as sl_compile; *ret_id (may be NULL): the workflow's id, the world's. */
SL_MUST_CHECK int sl_world_deploy(struct sl_world *world, const char *text, size_t len, const struct sl_compile_options *opt,
	const char **ret_id, struct sl_diags *diags);
/* A start command. Takes input (invalid: none). *ret_instance: id, the world's. SL_ENOTFOUND: no such workflow. */
SL_MUST_CHECK int sl_world_start(struct sl_world *world, const char *workflow, jv input, const char **ret_instance);
/* Publishes an event `at_ms` after virtual time 0 (in the order of the calls at one instant). Takes ev. */
void sl_world_event(struct sl_world *world, int64_t at_ms, jv ev);
/* Publishes when the state first waits for events. Takes ev. */
void sl_world_event_at_state(struct sl_world *world, const char *state, jv ev);
/* Has a deployed definition a function, or a state, of that name? */
bool sl_world_has_function(const struct sl_world *world, const char *name);
bool sl_world_has_state(const struct sl_world *world, const char *name);
/* Runs until nothing can happen any more, or virtual time horizon_ms (-1: none) is reached. False: stopped at a call that no mock
 * answers; *ret_why tells which. */
bool sl_world_run(struct sl_world *world, int64_t horizon_ms, const char **ret_why);

/* --- what happened; borrowed, in order --- */
/* The state that an event still waits for; NULL: every event was published. */
const char *sl_world_unpublished(const struct sl_world *world);
struct sl_world_instance {
	const char *id, *workflow;
	const char *status;             /* completed, faulted, cancelled, active */
	jv output, error;               /* invalid: none */
	int64_t started_ms, ended_ms;   /* virtual time; ended -1 */
	jv states;                      /* names entered, in order */
};
int sl_world_instances(const struct sl_world *world, const struct sl_world_instance **ret);
struct sl_world_call { const char *function, *instance; jv arguments; int64_t at_ms; };
int sl_world_calls(const struct sl_world *world, const struct sl_world_call **ret);
struct sl_world_published { jv event; int64_t at_ms; };
int sl_world_published(const struct sl_world *world, const struct sl_world_published **ret);
int64_t sl_world_now(const struct sl_world *world);     /* virtual time, ms */
/* Reasons of the dead letters so far: an array of strings; a copy. */
jv sl_world_dead_letters(const struct sl_world *world);

#endif
