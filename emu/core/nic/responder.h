/* The receiving half of a queue pair: checks requests and executes them. */
#ifndef EMU_NIC_RESPONDER_H
#define EMU_NIC_RESPONDER_H

#include "nic/qp.h"

/* Set-up only. */
void responder_init(struct qp *qp);

/* A request has arrived in `frame`. Whether the frame is kept; otherwise it is still the
 * caller's. */
bool responder_receive(struct qp *qp, const struct packet *packet, struct frame *frame,
                       picoseconds now);

/* The message that is coming in begins again with its first packet, which is expected now. */
void responder_begin_again(struct qp *qp);

#endif
