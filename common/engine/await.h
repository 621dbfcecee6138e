/* Await: what its files share. Private to common/engine.
 *
 * A frame's info: {keys: {EVENT: {attribute: value} | null (waits for the action's result)}, local: [type, "*" for
 * any]} its own data:   [{name: EVENT, event, box?, multi?}] in order of arrival; EVENT is the name of the definition.
 */
#ifndef SL_ENGINE_AWAIT_H
#define SL_ENGINE_AWAIT_H

#include "common/engine/instance.h"

/* phases; m is 1 while `before` is not done, n is the alternative whose body runs */
enum { AWAIT_WAITS = 1, AWAIT_BODIES };

/* --- await_arm.c: which events, their keys, subscriptions --- */
const char *sl_await_name(const struct sl_plan *plan, int event, char text[static 16]);
/* Numbers of the events of a condition, in order, behind the `count` that are in ret; returns the new count. */
int sl_await_events(const struct sl_cond *cond, int *ret, int count);
int sl_await_size(const struct sl_cond *cond);
/* All events that the await refers to, each once, in order; arena memory. */
int *sl_await_all_events(struct sl_run *run, const struct sl_await *await, int *ret_count);
/* What was collected for an event definition; a copy or invalid. */
jv sl_await_collected(const struct sl_frame *frame, const char *name);
bool sl_await_has(struct sl_run *run, const struct sl_frame *frame, int event);
/* The alternative that is satisfied: its number, or for `all` 0 once every one is; -1: not yet. */
int sl_await_satisfied(struct sl_run *run, const struct sl_frame *frame);
/* The values that are known of an event's key; a copy, null or invalid. */
jv sl_await_keys(const struct sl_frame *frame, const char *name);
/* Keys and their mailboxes. Values known so far are kept; what was null is asked again. False: run->error. */
bool sl_await_arm_keys(struct sl_run *run, struct sl_frame *frame);
/* Unkeyed or unbound: at the partition's local mailbox of the type, by token, while the wait lasts. */
void sl_await_subscribe_local(struct sl_run *run, struct sl_frame *frame);

/* --- await_take.c: events --- */
/* Gives ev to the first reference that has no event yet and matches; false: none. `start`: it made the instance.
 * Borrows ev. */
bool sl_await_collect(struct sl_run *run, struct sl_frame *frame, jv ev, const char *box, bool multi, bool start);
/* Keys, then the inbox, then the local mailboxes if that was not enough. */
bool sl_await_arm(struct sl_run *run, struct sl_frame *frame);
/* Keyed events go back to the inbox, but not those that alternative `used` consumes (-1: all). */
void sl_await_put_back_but(struct sl_run *run, struct sl_frame *frame, int used);

#endif
