/* Receives: memory that SENDs are put into and immediates are reported with, in
 * the order of posting. A queue pair has its own, or shares one with others. */
#ifndef EMU_NIC_RECEIVE_QUEUE_H
#define EMU_NIC_RECEIVE_QUEUE_H

#include "nic/qp.h"

/* Offers memory; completes at once when that may not be. */
void receive_queue_post(struct qp *qp, struct receive *receive, picoseconds now);
void srq_post(struct srq *srq, struct receive *receive, picoseconds now);

/* Whether it would be taken (STATUS_SUCCESS), or what it would complete with at once. */
enum status receive_queue_admit(const struct qp *qp, const struct receive *receive);
enum status srq_admit(const struct srq *srq, const struct receive *receive);

/* The oldest receive, which is the caller's now; NULL when there is none. */
struct receive *receive_queue_take(struct qp *qp);
bool receive_queue_is_empty(const struct qp *qp);

/* How many are posted; NEVER ask a shared one, whose receives are promised to nobody. */
uint32_t receive_queue_count(const struct qp *qp);

/* A receive that was taken is over. */
void receive_complete(struct qp *qp, struct receive *receive, enum status status, picoseconds now);

/* All of the queue pair's own are over, flushed or cancelled. */
void receive_queue_flush(struct qp *qp, enum status status, picoseconds now);

#endif
