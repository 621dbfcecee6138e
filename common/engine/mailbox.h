/* Mailbox: where events with one correlation key and the instances that want them meet (design section 5). Three sorts,
 * told by the id:
 *
 *   #HOME         keyed: HOME hashes names and values of a correlation key. It learns the key from the `key` member of
 * any input. #HOME         join mailbox of a workflow (HOME: sl_home_of_workflow), when its all-of start has no common
 * names. It learns which from the routed EVENT: `workflow` set, `key` absent. Neither claims nor subscriptions.
 *   @P~NS~TYPE    local mailbox of an event type in partition P (sl_route_local_box): waits that have no key (yet).
 * Delivers to whoever subscribes at that moment, by token; nothing is ever early here.
 *
 * Inputs, by kind (`from`: the sender; beside the members that msg.def calls common):
 *   EVENT         event, key | workflow, origin_*                 routed
 *   SUBSCRIBE     workflow, wants, token (0: keyed), key          again with other wants: replaces them
 *   UNSUBSCRIBE   workflow, token (0: all of the sender), events  events: inbox handed back, in order; also gives up
 * the claim RETURN        workflow, event, token, multi, id               id derives from the delivery's id:
 * sl_id_derive("return", id) TRANSFER      workflow, wants, successor, key                 workflow, wants: the
 * successor's. Another workflow than the subscription's: the old claim ends, the new one is taken if free CLAIM
 * workflow, wants, key                            asks: may I live again? Granted: claim and subscription are its own
 *   SWEEP         -                                               drops what is past its time
 * `key` lets a mailbox that was forgotten in the meantime start instances again; send it where it is known.
 *
 * Effects: DELIVER (to, box, workflow, event, token, multi), START (to, box = this mailbox and ok = true when it holds
 * a claim and a subscription, key, workflow, version, plan, events), CLAIM_ANSWER (ok), WHY (data: decision),
 * DEAD_LETTER (reason, event), EVENT to itself (`extra`: the next chunk of a fan-out). The ids of START effects name
 * the effect that instance ids derive from. sl_effects_stamp sets ns, from, id, time_ms, and keeps what is set already.
 *
 * An instance that START names with ok is subscribed here for sl_plan_wants(plan, names of key): it does not subscribe
 * again.
 *
 * Owner: an actor. One thread. */
#ifndef SL_ENGINE_MAILBOX_H
#define SL_ENGINE_MAILBOX_H

#include "common/engine/engine.h"

/* Nothing stored yet. The mailbox keeps copies of ns and id. */
struct sl_mailbox *sl_mailbox_new(const char *ns, const char *id);
void sl_mailbox_free(struct sl_mailbox *box);

/* Stored form, one field each, JSON values: `h` header, `s:N` subscription, `c:WORKFLOW` claim, `j:N` member of a join,
 * `e:N` early event (N grows with age), `o:TOPIC:P` highest offset of an origin, `r:N` ring of event identities, `i:N`
 * ring of effect ids. What else is there is left alone. Into a new mailbox; SL_EPARSE with a diagnostic. */
SL_MUST_CHECK int sl_mailbox_load(const struct sl_engine *eng, struct sl_mailbox *box, const struct sl_field *fields,
	int count, struct sl_diags *diags);
/* As sl_actor_changes. *ret_gone: the mailbox is forgotten, no fields are given. */
void sl_mailbox_changes(
	struct sl_mailbox *box, struct sl_arena *arena, struct sl_field **ret, int *ret_count, bool *ret_gone);
void sl_mailbox_committed(struct sl_mailbox *box);
/* exists, created_ms, updated_ms, expires_ms; the rest is empty. */
void sl_mailbox_summary(const struct sl_mailbox *box, struct sl_summary *ret);

/* One step; always 0 for now. `now_ms`: the record's append time; R11 is applied inside: sl_mailbox_now afterwards is
 * the time of the step. An input that changes nothing leaves everything as it was, the time too. */
SL_MUST_CHECK int sl_mailbox_step(const struct sl_engine *eng, struct sl_mailbox *box, const struct sl_msg *in,
	const struct sl_pos *pos, int64_t now_ms, struct sl_effects *fx);
int64_t sl_mailbox_now(const struct sl_mailbox *box);

/* Estimated memory. */
size_t sl_mailbox_bytes(const struct sl_mailbox *box);

#endif
