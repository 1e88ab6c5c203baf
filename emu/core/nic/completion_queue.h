/* A completion queue: a ring of completions, in the order in which the requests ended. */
#ifndef EMU_NIC_COMPLETION_QUEUE_H
#define EMU_NIC_COMPLETION_QUEUE_H

#include "nic/verbs_api.h"

/* Adds a completion, which can be polled from its time on. If the ring is full, the completion is
 * lost and the queue is overrun. */
void cq_put(struct cq *cq, const struct work_completion *completion);

typedef void cq_drop(const struct work_completion *completion, void *of);

/* Takes out the completions of that queue pair that have not been polled, and gives each to
 * `drop`. */
void cq_forget(struct cq *cq, uint32_t qp_num, cq_drop *drop, void *of);

#endif
