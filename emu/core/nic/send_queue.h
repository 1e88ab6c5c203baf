/* The send queue: messages from posting to completion. They complete in the order of posting. */
#ifndef EMU_NIC_SEND_QUEUE_H
#define EMU_NIC_SEND_QUEUE_H

#include "nic/qp.h"

/* STATUS_SUCCESS if the message would be sent, or else the status of its immediate failure. */
enum status send_queue_admit(const struct qp *qp, const struct message *message);

/* Appends a message; completes it at once when it cannot be sent. */
void send_queue_post(struct qp *qp, struct message *message, picoseconds now);

/* Appends a message that was not admitted, in a state that accepts messages. It fails with
 * `refusal` when its turn comes to be sent, and the queue pair with it. */
void send_queue_post_refused(struct qp *qp, struct message *message, enum status refusal,
                             picoseconds now);

/* Notes NIC_SQ_DRAINED, if that is wanted and all sends that were begun are over. */
void send_queue_note_drained(struct qp *qp);

/* Completes every message whose packets are all acknowledged. */
void send_queue_complete(struct qp *qp, picoseconds now);

/* Completes the oldest message with `status` and flushes the others, or cancels them as well. */
void send_queue_flush(struct qp *qp, enum status status, picoseconds now);

#endif
