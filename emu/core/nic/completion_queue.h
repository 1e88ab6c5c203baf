/* A completion queue: a ring of what is over, in the order in which it ended. */
#ifndef EMU_NIC_COMPLETION_QUEUE_H
#define EMU_NIC_COMPLETION_QUEUE_H

#include "nic/verbs_api.h"

/* Adds a completion, which can be polled from its time on. Where there is no room for it, it is
 * lost, and the queue says so. */
void cq_put(struct cq *cq, const struct work_completion *completion);

/* Drops what nobody has polled of that queue pair. */
void cq_forget(struct cq *cq, uint32_t qp_num);

#endif
