/* Rules of the protocol that the simulator may break one at a time, to show that it would notice (tests/sim/rules.sh). Only a
 * build with -DSLUICE_SIM_SWITCHES has the switches; everywhere else SL_RULE(x) is the constant true. */
#ifndef SL_BASE_RULES_H
#define SL_BASE_RULES_H

#include <stdbool.h>

#define SL_RULES(R)                                                                                                    \
	R(routed_ack)	/* R1: a routed offset moves after what the record caused is delivered */                       \
	R(outbox_gate)	/* R2: the next batch commits when the last outbox is delivered */                              \
	R(outbox_again) /* R2: who takes a partition sends its outbox again */                                          \
	R(todo)		/* section 3, 5: who takes a partition steps its todo */                                        \
	R(applied)	/* R2: a record at or before the applied offset is skipped */                                   \
	R(derived_ids)	/* R3: ids derive from the position */                                                          \
	R(epoch)	/* R4: the epoch fences */                                                                      \
	R(cache_drop)	/* R4: after a refused or lost commit the cache goes */                                         \
	R(prove)	/* R4: the group must count us in before a partition is taken again */                          \
	R(box_events)	/* R6: a mailbox remembers the events that it took */                                           \
	R(box_origin)	/* R6: a mailbox remembers the highest offset of each origin */                                 \
	R(box_effects)	/* R6: a mailbox remembers the ids of what actors sent it */                                    \
	R(inst_events)	/* R6: an instance remembers the events that it took */                                         \
	R(inst_effects) /* R6: an instance remembers the ids of deliveries */                                           \
	R(result_token) /* R6: a result names the call that it answers */                                               \
	R(timer_token)	/* R6: a timer names the wait that it ends */                                                   \
	R(note)		/* R7: what ended three processes is given up */                                                \
	R(proved)	/* R7: what the watchdog noted is given up at once */                                           \
	R(fault)	/* R7: the instance of what is given up faults */                                               \
	R(store_offset) /* R10: a partition goes on from the store's offset, not from Kafka's */                        \
	R(session)	/* R10: behind a new connection may be an older store: partitions are taken anew */             \
	R(timer_session) /* R10: and so are the timer's */                                                              \
	R(defs_session)	/* R10: and all that is deployed by then counts, whatever the store says */                     \
	R(topic_order)	/* emit: records for sluice.instances are delivered before others are sent */                   \
	R(log_time)	/* R11: the time of a step is its record's */                                                   \
	R(time_forward) /* R11: an instance's time never goes back */                                                   \
	R(timer_due)	/* R11: a fired timer's step is not before its due time */                                      \
	R(routed_begin) /* R12: a routed partition is read from its beginning the first time */                         \
	R(routed_first) /* R12: its first offset is committed before it is known */                                     \
	R(claim)	/* section 5: a living instance takes what would start another */                               \
	R(join)		/* section 5: members of an all-of start wait for each other */                                 \
	R(inbox)	/* section 5: what is not yet awaited is kept */                                                \
	R(early)	/* section 5: what nobody wants yet is kept for a while */                                      \
	R(wait_told)	/* section 5: routers know of a wait beyond the plans before it is committed */                 \
	R(give_back)	/* section 5: an ended instance returns a delivery */                                           \
	R(hand_back)	/* section 5: an ended instance hands its inbox back */                                         \
	R(retry_claim)	/* section 5: a second life asks the mailbox first */                                           \
	R(timer_after)	/* section 8: a fired timer goes after its record is delivered */

#ifdef SLUICE_SIM_SWITCHES
enum sl_protocol_rule {
	SL_RULE_none,
#define SL_RULE_ENUM(name) SL_RULE_##name,
	SL_RULES(SL_RULE_ENUM)
#undef SL_RULE_ENUM
};
extern enum sl_protocol_rule sl_rule_broken;
#define SL_RULE(name) (sl_rule_broken != SL_RULE_##name)
#else
#define SL_RULE(name) true
#endif

#endif
