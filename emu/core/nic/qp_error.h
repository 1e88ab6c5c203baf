/* How a queue pair fails: what is posted completes, and nothing is sent any more. */
#ifndef EMU_NIC_QP_ERROR_H
#define EMU_NIC_QP_ERROR_H

#include "nic/qp.h"

/* Stops its timers and its congestion control. Its oldest message completes with `status`, all
 * else is flushed; with STATUS_CANCELLED everything is cancelled. */
void qp_stop(struct qp *qp, enum status status, picoseconds now);

/* The queue pair fails, and its oldest message with `status`. */
void qp_fail(struct qp *qp, enum status status, picoseconds now);

/* The queue pair fails because it refused a request: earlier requests are still answered. */
void qp_fail_answering(struct qp *qp, picoseconds now);

#endif
