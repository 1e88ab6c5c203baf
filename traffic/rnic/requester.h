/* The sending half of a queue pair: segmentation, acknowledgements, go-back-N. */
#ifndef RNIC_REQUESTER_H
#define RNIC_REQUESTER_H

#include "qp.h"

/* Set-up only. */
void requester_init(struct qp *qp);

/* Appends a message, which may complete at once when it cannot be sent. */
void requester_post(struct qp *qp, struct message *message, picoseconds now);

/* Whether there is a packet that the window lets go. */
bool requester_has_data(const struct qp *qp);

/* BTH .. pad of the next packet, in bytes. There must be one. */
uint32_t requester_body_bytes(const struct qp *qp);

/* Builds it and moves on. NULL, and nothing changed, when the pool is empty. */
struct frame *requester_send(struct qp *qp, picoseconds now);

/* An acknowledgement has arrived. */
void requester_receive(struct qp *qp, const struct packet *packet, picoseconds now);

/* The receiver, in this process, has `bytes` more of the oldest undelivered message. */
void requester_delivered(struct qp *qp, uint32_t bytes, bool all, picoseconds now);

/* Completes the oldest message with `status` and flushes the others. */
void requester_flush(struct qp *qp, enum status status, picoseconds now);

#endif
