#include "nic/receive_queue.h"

#include "nic/nic.h"
#include "nic/qp_state.h"

static void finish(struct nic *nic, struct qp *qp, struct receive *receive, enum status status,
                   picoseconds now)
{
    struct nic_counters *counters = &nic->counters;
    if (status == STATUS_WR_FLUSH_ERR)
        counters->resp_cqe_flush_error++;
    else if (status != STATUS_SUCCESS && status != STATUS_CANCELLED)
        counters->resp_cqe_error++;
    receive->status = status;
    receive->qp = qp;
    if (receive->completed)
        receive->completed(receive, now);
}

static bool may_be_written(const struct nic *nic, uint32_t pd, const struct receive *receive)
{
    uint8_t *bytes;
    return receive->length == 0 || mr_find(&nic->mrs, pd, receive->lkey, receive->va,
                                           receive->length, ACCESS_LOCAL_WRITE, &bytes);
}

static void append(struct receive_queue *queue, struct receive *receive)
{
    receive->status = STATUS_PENDING;
    receive->next = NULL;
    if (queue->first)
        queue->last->next = receive;
    else
        queue->first = receive;
    queue->last = receive;
    queue->count++;
}

enum status receive_queue_admit(const struct qp *qp, const struct receive *receive)
{
    if (qp_can(qp, POSTS_FLUSH) && !qp_can(qp, CAN_POST_RECEIVE))
        return STATUS_WR_FLUSH_ERR;
    if (!qp_can(qp, CAN_POST_RECEIVE) || qp->config.srq)
        return STATUS_LOC_QP_OP_ERR;
    return may_be_written(qp->nic, qp->config.pd, receive) ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR;
}

enum status srq_admit(const struct srq *srq, const struct receive *receive)
{
    return may_be_written(srq->nic, srq->pd, receive) ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR;
}

void receive_queue_post(struct qp *qp, struct receive *receive, picoseconds now)
{
    enum status status = receive_queue_admit(qp, receive);
    if (status == STATUS_SUCCESS)
        append(&qp->responder.own, receive);
    else
        finish(qp->nic, qp, receive, status, now);
}

void srq_post(struct srq *srq, struct receive *receive, picoseconds now)
{
    enum status status = srq_admit(srq, receive);
    if (status == STATUS_SUCCESS)
        append(&srq->queue, receive);
    else
        finish(srq->nic, NULL, receive, status, now);
}

static struct receive *take(struct receive_queue *queue)
{
    struct receive *receive = queue->first;
    if (receive) {
        queue->first = receive->next;
        queue->count--;
    }
    return receive;
}

struct receive *receive_queue_take(struct qp *qp)
{
    return take(qp->config.srq ? &qp->config.srq->queue : &qp->responder.own);
}

bool receive_queue_is_empty(const struct qp *qp)
{
    return !(qp->config.srq ? qp->config.srq->queue.first : qp->responder.own.first);
}

uint32_t receive_queue_count(const struct qp *qp)
{
    return qp->responder.own.count;
}

void receive_complete(struct qp *qp, struct receive *receive, enum status status, picoseconds now)
{
    finish(qp->nic, qp, receive, status, now);
}

void receive_queue_flush(struct qp *qp, enum status status, picoseconds now)
{
    struct responder *responder = &qp->responder;
    struct receive *receive = responder->receive;
    responder->receive = NULL;
    if (receive)
        finish(qp->nic, qp, receive, status, now);
    while ((receive = take(&responder->own)))
        finish(qp->nic, qp, receive, status, now);
}
