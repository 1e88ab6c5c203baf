/* Receives: memory that SENDs are put into and immediates are reported with, in
 * the order of posting. A queue pair has its own, or shares one with others. */
#ifndef EMU_NIC_RECEIVE_QUEUE_H
#define EMU_NIC_RECEIVE_QUEUE_H

#include "nic/qp.h"

/* Posts a receive. It completes at once when the queue pair may not take it. */
void receive_queue_post(struct qp *qp, struct receive *receive, picoseconds now);
void srq_post(struct srq *srq, struct receive *receive, picoseconds now);

/* STATUS_SUCCESS if the receive would be posted, or else the status of its immediate failure. */
enum status receive_queue_admit(const struct qp *qp, const struct receive *receive);
enum status srq_admit(const struct srq *srq, const struct receive *receive);
/* The same for any receive whose memory is valid. */
enum status receive_queue_state(const struct qp *qp);

/* Posts a receive whose memory is checked only when a message takes it. */
void receive_queue_post_unchecked(struct qp *qp, struct receive *receive, picoseconds now);
void srq_post_unchecked(struct srq *srq, struct receive *receive);

/* An event as soon as fewer receives are posted; 0: none. */
void srq_arm(struct srq *srq, uint32_t limit);

/* Whether the queue pair may use its memory now. Then `bytes` is where that begins in the host;
 * NULL: it is in several pieces, or elided. */
bool receive_find_memory(const struct qp *qp, const struct receive *receive, uint8_t **bytes);

/* Copies a part of a packet there. `memory`: as it was found. */
void receive_scatter(const struct qp *qp, const struct receive *receive, uint8_t *memory,
                     uint32_t offset, const uint8_t *from, uint32_t bytes);

/* The oldest receive, which is the caller's now; NULL when there is none. */
struct receive *receive_queue_take(struct qp *qp);
bool receive_queue_is_empty(const struct qp *qp);

/* How many are posted. Not for a shared queue: its receives are not reserved for one queue pair. */
uint32_t receive_queue_count(const struct qp *qp);

/* Completes a receive that was taken. */
void receive_complete(struct qp *qp, struct receive *receive, enum status status, picoseconds now);

/* Completes all of the queue pair's own receives as flushed or cancelled. */
void receive_queue_flush(struct qp *qp, enum status status, picoseconds now);

#endif
