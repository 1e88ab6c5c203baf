#include "nic/receive_queue.h"

#include <string.h>

#include "nic/nic.h"
#include "nic/qp_state.h"
#include "nic/sge.h"

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

static bool find_memory(const struct nic *nic, uint32_t pd, const struct receive *receive,
                        uint8_t **bytes)
{
    *bytes = NULL;
    if (receive->length == 0)
        return true;
    if (receive->sges)
        return sges_are_valid(&nic->mrs, pd, receive->sges, receive->sge_count, ACCESS_LOCAL_WRITE);
    return mr_find(&nic->mrs, pd, receive->lkey, receive->va, receive->length, ACCESS_LOCAL_WRITE,
                   bytes);
}

bool receive_find_memory(const struct qp *qp, const struct receive *receive, uint8_t **bytes)
{
    return find_memory(qp->nic, qp->config.pd, receive, bytes);
}

void receive_scatter(const struct qp *qp, const struct receive *receive, uint8_t *memory,
                     uint32_t offset, const uint8_t *from, uint32_t bytes)
{
    if (memory)
        memcpy(memory + offset, from, bytes);
    else if (receive->sges)
        sges_scatter(&qp->nic->mrs, qp->config.pd, receive->sges, offset, from, bytes);
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

enum status receive_queue_state(const struct qp *qp)
{
    if (qp_can(qp, POSTS_FLUSH) && !qp_can(qp, CAN_POST_RECEIVE))
        return STATUS_WR_FLUSH_ERR;
    return qp_can(qp, CAN_POST_RECEIVE) && !qp->config.srq ? STATUS_SUCCESS : STATUS_LOC_QP_OP_ERR;
}

enum status receive_queue_admit(const struct qp *qp, const struct receive *receive)
{
    uint8_t *bytes;
    enum status status = receive_queue_state(qp);
    if (status != STATUS_SUCCESS)
        return status;
    return receive_find_memory(qp, receive, &bytes) ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR;
}

enum status srq_admit(const struct srq *srq, const struct receive *receive)
{
    uint8_t *bytes;
    return find_memory(srq->nic, srq->pd, receive, &bytes) ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR;
}

static void post(struct qp *qp, struct receive *receive, enum status status, picoseconds now)
{
    if (status == STATUS_SUCCESS)
        append(&qp->responder.own, receive);
    else
        finish(qp->nic, qp, receive, status, now);
}

void receive_queue_post(struct qp *qp, struct receive *receive, picoseconds now)
{
    post(qp, receive, receive_queue_admit(qp, receive), now);
}

void receive_queue_post_unchecked(struct qp *qp, struct receive *receive, picoseconds now)
{
    post(qp, receive, receive_queue_state(qp), now);
}

void srq_post_unchecked(struct srq *srq, struct receive *receive)
{
    append(&srq->queue, receive);
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

static void look_at_limit(struct srq *srq)
{
    if (srq->queue.count >= srq->limit)
        return;
    srq->limit = 0;
    note_event(srq->watch, NIC_SRQ_LIMIT_REACHED);
}

void srq_arm(struct srq *srq, uint32_t limit)
{
    srq->limit = limit;
    look_at_limit(srq);
}

struct receive *receive_queue_take(struct qp *qp)
{
    struct srq *srq = qp->config.srq;
    if (!srq)
        return take(&qp->responder.own);
    struct receive *receive = take(&srq->queue);
    look_at_limit(srq);
    return receive;
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
