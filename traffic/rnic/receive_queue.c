#include "receive_queue.h"

#include "nic.h"
#include "qp_state.h"

static void finish(struct nic_counters *counters, struct receive *receive, enum status status,
                   picoseconds now)
{
    if (status == STATUS_WR_FLUSH_ERR)
        counters->resp_cqe_flush_error++;
    else if (status != STATUS_SUCCESS)
        counters->resp_cqe_error++;
    receive->status = status;
    if (receive->completed)
        receive->completed(receive, now);
}

static bool may_be_written(const struct nic *nic, const struct receive *receive)
{
    uint8_t *bytes;
    return receive->length == 0 || memory_find(&nic->memory, receive->lkey, receive->va,
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

void receive_queue_post(struct qp *qp, struct receive *receive, picoseconds now)
{
    struct nic_counters *counters = &qp->nic->counters;
    if (qp_can(qp, POSTS_FLUSH) && !qp_can(qp, CAN_POST_RECEIVE))
        finish(counters, receive, STATUS_WR_FLUSH_ERR, now);
    else if (!qp_can(qp, CAN_POST_RECEIVE) || qp->config.srq)
        finish(counters, receive, STATUS_LOC_QP_OP_ERR, now);
    else if (!may_be_written(qp->nic, receive))
        finish(counters, receive, STATUS_LOC_PROT_ERR, now);
    else
        append(&qp->responder.own, receive);
}

void srq_post(struct srq *srq, struct receive *receive, picoseconds now)
{
    if (may_be_written(srq->nic, receive))
        append(&srq->queue, receive);
    else
        finish(&srq->nic->counters, receive, STATUS_LOC_PROT_ERR, now);
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
    finish(&qp->nic->counters, receive, status, now);
}

void receive_queue_flush(struct qp *qp, picoseconds now)
{
    struct responder *responder = &qp->responder;
    struct receive *receive = responder->receive;
    responder->receive = NULL;
    if (receive)
        finish(&qp->nic->counters, receive, STATUS_WR_FLUSH_ERR, now);
    while ((receive = take(&responder->own)))
        finish(&qp->nic->counters, receive, STATUS_WR_FLUSH_ERR, now);
}
