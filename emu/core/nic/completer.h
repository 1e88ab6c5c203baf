/* What comes back to a requester, or does not: acknowledgements, NAKs, responses, the timer. */
#ifndef EMU_NIC_COMPLETER_H
#define EMU_NIC_COMPLETER_H

#include "nic/qp.h"

/* Set-up only. */
void completer_init(struct qp *qp);

/* An ACK, a NAK or the answer to an atomic has arrived. */
void completer_acknowledged(struct qp *qp, const struct packet *packet, picoseconds now);

/* A READ response has arrived. */
void completer_response(struct qp *qp, const struct packet *packet, picoseconds now);

/* Sends again from `psn` on. What was awaited is awaited anew, from now on. */
void completer_resend_from(struct qp *qp, uint64_t psn);

#endif
