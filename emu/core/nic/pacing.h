/* When a queue pair may send data: at the rate that congestion control allows, and once requests
 * or READ responses are ready. */
#ifndef EMU_NIC_PACING_H
#define EMU_NIC_PACING_H

#include "nic/qp.h"

/* Set-up only. */
void pacing_init(struct qp *qp);

/* Queues what it has to send now, or wakes it when there will be something. */
void qp_wake(struct qp *qp, picoseconds now);

/* A data packet of so many bytes on the wire begins to leave: the next one waits for its turn. */
void qp_pace(struct qp *qp, uint32_t wire_bytes, picoseconds now);

#endif
