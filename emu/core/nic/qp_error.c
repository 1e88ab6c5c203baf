#include "nic/qp_error.h"

#include "nic/nic.h"
#include "nic/pacing.h"
#include "nic/receive_queue.h"
#include "nic/recovery.h"
#include "nic/response_queue.h"
#include "nic/send_queue.h"

void qp_stop(struct qp *qp, enum status status, picoseconds now)
{
    timer_cancel(&qp->wake);
    timer_cancel(&qp->responder.failing);
    cc_stop(&qp->cc);
    if (qp->recovery->reset)
        qp->recovery->reset(qp);
    send_queue_flush(qp, status, now);
    enum status rest = status == STATUS_CANCELLED ? status : STATUS_WR_FLUSH_ERR;
    receive_queue_flush(qp, rest, now);
}

static void fail(struct qp *qp)
{
    if (qp->state != QP_ERR && qp->config.srq)
        note_event(qp->watch, NIC_LAST_WQE_REACHED);
    qp->state = QP_ERR;
}

void qp_fail(struct qp *qp, enum status status, picoseconds now)
{
    fail(qp);
    response_queue_forget(qp);
    qp_stop(qp, status, now);
}

void qp_fail_answering(struct qp *qp, picoseconds now)
{
    fail(qp);
    qp_stop(qp, STATUS_WR_FLUSH_ERR, now);
    qp_wake(qp, now);
}
