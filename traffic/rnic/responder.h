/* The receiving half of a queue pair: checks, executes, acknowledges. */
#ifndef RNIC_RESPONDER_H
#define RNIC_RESPONDER_H

#include "qp.h"

enum {
    ACKNOWLEDGE_BODY_BYTES = BTH_BYTES + AETH_BYTES,
    CNP_BODY_BYTES = BTH_BYTES + CNP_PAYLOAD_BYTES,
};

/* Offers memory for one SEND; SENDs take receives in order. */
void responder_post_receive(struct qp *qp, struct receive *receive);

/* A request has arrived. */
void responder_receive(struct qp *qp, const struct packet *packet, picoseconds now);

/* Build what is due. NULL, and nothing changed, when the pool is empty. */
struct frame *responder_acknowledge(struct qp *qp);
struct frame *responder_notify(struct qp *qp);

#endif
