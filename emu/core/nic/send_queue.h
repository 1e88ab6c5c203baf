/* The send queue: messages from their posting to their completion, both in the
 * same order. */
#ifndef EMU_NIC_SEND_QUEUE_H
#define EMU_NIC_SEND_QUEUE_H

#include "nic/qp.h"

/* Whether a message would be sent (STATUS_SUCCESS), or what it would complete with at once. */
enum status send_queue_admit(const struct qp *qp, struct message *message);

/* Appends a message; completes it at once when it cannot be sent. */
void send_queue_post(struct qp *qp, struct message *message, picoseconds now);

/* Completes every message whose packets are all acknowledged. */
void send_queue_complete(struct qp *qp, picoseconds now);

/* Completes the oldest message with `status` and flushes the others, or cancels them as well. */
void send_queue_flush(struct qp *qp, enum status status, picoseconds now);

/* Bytes of a message, which is not a fetch, came into the memory of the receiver in this
 * process: it is the oldest that was not there yet. */
void send_queue_delivered(struct qp *qp, uint32_t bytes, bool all, picoseconds now);

/* All bytes of that message of an unreliable pair did, whose last packet had this PSN; those
 * before it are lost, or came already. */
void send_queue_delivered_late(struct qp *qp, uint32_t psn, uint32_t bytes, picoseconds now);

#endif
