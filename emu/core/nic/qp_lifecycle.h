/* A queue pair from its set-up over its connection to its last state. Most of it is called from
 * outside of the NIC and declared in nic_api.h. */
#ifndef EMU_NIC_QP_LIFECYCLE_H
#define EMU_NIC_QP_LIFECYCLE_H

#include "nic/qp.h"

/* Set-up only. False when the config is wrong or memory is short. */
bool qp_init(struct qp *qp, struct nic *nic, uint32_t qpn, const struct qp_config *config);

/* Cancels all that is posted. Neither clock, nor NIC, nor the other end refers to the queue pair
 * any more, and its memory is given back. */
void qp_end(struct qp *qp, picoseconds now);

#endif
