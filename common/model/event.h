/* A CloudEvent (CloudEvents 1.0): one jv object in the JSON event format. Attribute names are lower case
 * (A75: folded on entry), `data` holds JSON, `data_base64` bytes that are not JSON. All borrow unless said. */
#ifndef SL_MODEL_EVENT_H
#define SL_MODEL_EVENT_H

#include "common/model/value.h"

/* Checks and folds an object that claims to be a CloudEvent; takes `raw`. SL_ESCHEMA with a diagnostic: required
 * attribute missing or empty, specversion not "1.0", attribute name illegal (after folding: [a-z0-9]{1,}), two attributes that
 * differ only in case, attribute value not scalar, both data and data_base64, bad time. */
SL_MUST_CHECK int sl_event_check(jv raw, jv *ret_ev, struct sl_diags *diags);

/* Attribute text or NULL; `name` in lower case. Only string attributes. */
const char *sl_event_attr(jv ev, const char *name);
/* Canonical value (numbers and booleans too) appended to out; false if absent. Name in any case. */
bool sl_event_canonical(jv ev, const char *name, struct sl_buf *out);
/* The payload: `data`, else data_base64 text as string, else null. A copy. */
jv sl_event_data(jv ev);
/* "source\0id": what duplicates share (R6); appended to out. */
void sl_event_identity(jv ev, struct sl_buf *out);

#endif
