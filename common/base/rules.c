/* Which rule is broken: see rules.h. */
#include "common/base/rules.h"

#ifdef SLUICE_SIM_SWITCHES
enum sl_protocol_rule sl_rule_broken = SL_RULE_none;
#endif
