/* The sending half of a queue pair: which packet goes next, and what is in it. */
#ifndef EMU_NIC_REQUESTER_H
#define EMU_NIC_REQUESTER_H

#include "nic/qp.h"

/* Set-up only. */
void requester_init(struct qp *qp);

/* Whether window, credits and limits allow the next packet, apart from its time. */
bool requester_has_data(const struct qp *qp);

/* The earliest time for that packet; NEVER when there is none. */
picoseconds requester_ready_at(const struct qp *qp);

/* BTH .. pad of the next packet, in bytes. There must be one. */
uint32_t requester_body_bytes(const struct qp *qp);

/* Builds it and moves on. NULL, and nothing changed, when the pool is empty. */
struct frame *requester_send(struct qp *qp, picoseconds now);

/* The next packet to send is `psn`, which was sent before, or would be sent next. */
void requester_seek(struct requester *requester, uint64_t psn);

/* How many packets there may be from the oldest unacknowledged one on. */
uint32_t requester_window(const struct qp *qp);

/* Awaits an answer from now on, or from when the queue pair may send. */
void requester_start_ack_timeout(struct qp *qp, picoseconds now);

/* Whether some of the current message was sent. There must be one. */
bool requester_has_begun(const struct requester *requester);

/* Whether the oldest message that is not over cannot be sent. */
bool requester_cannot_continue(const struct requester *requester);

/* Why the current message, which cannot be sent, fails. */
enum status requester_failure(const struct requester *requester);

#endif
