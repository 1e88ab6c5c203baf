#include "nic/verbs_api.h"

#include <stdlib.h>
#include <string.h>

#include "nic/completion_queue.h"
#include "nic/datagram.h"
#include "nic/host_path.h"
#include "nic/nic.h"
#include "nic/receive_queue.h"
#include "nic/send_queue.h"

struct send_slot {
    struct message message;
    struct message_record record;
    struct address to;
    struct verbs_qp *owner;
    uint64_t wr_id;
    bool unsignaled;
    struct send_slot *next_free;
};

struct receive_slot {
    struct receive receive;
    struct receive_pool *pool;
    uint64_t wr_id;
    struct receive_slot *next_free;
};

struct receive_pool {
    struct receive_slot *slots, *free;
};

struct verbs_srq {
    struct srq srq;
    struct receive_pool pool;
};

struct verbs_qp {
    struct qp *qp;
    struct cq *send_cq, *recv_cq;
    struct send_slot *slots, *free;
    uint8_t *inlined; /* `max_inline_data` bytes for each slot */
    uint32_t max_inline_data;
    struct receive_pool receives;
};

static void sent(struct message *message, picoseconds now);
static void received(struct receive *receive, picoseconds now);

/* ---- set-up ------------------------------------------------------------------------ */

static bool pool_init(struct receive_pool *pool, uint32_t count)
{
    pool->slots = calloc(count ? count : 1, sizeof *pool->slots);
    for (uint32_t i = 0; pool->slots && i < count; i++) {
        pool->slots[i] = (struct receive_slot){.pool = pool, .next_free = pool->free};
        pool->free = &pool->slots[i];
    }
    return pool->slots != NULL;
}

struct verbs_srq *verbs_srq_new(struct nic *nic, uint32_t pd, uint32_t max_wr)
{
    struct verbs_srq *srq = calloc(1, sizeof *srq);
    if (!srq)
        return NULL;
    srq->srq = (struct srq){.nic = nic, .pd = pd};
    if (pool_init(&srq->pool, max_wr))
        return srq;
    free(srq);
    return NULL;
}

void verbs_srq_free(struct verbs_srq *srq)
{
    free(srq->pool.slots);
    free(srq);
}

struct srq *verbs_srq_queue(struct verbs_srq *srq)
{
    return &srq->srq;
}

/* Ignored: a program sees a message only at its completion. */
static void delivered(struct message *message, uint32_t bytes, bool all, picoseconds now)
{
    (void)message, (void)bytes, (void)all, (void)now;
}

static const struct message_handler handler = {.delivered = delivered, .completed = sent};

static bool slots_init(struct verbs_qp *qp, uint32_t count, uint32_t max_inline_data)
{
    qp->slots = calloc(count ? count : 1, sizeof *qp->slots);
    qp->inlined = malloc((size_t)count * max_inline_data + 1);
    qp->max_inline_data = max_inline_data;
    for (uint32_t i = 0; qp->slots && i < count; i++) {
        qp->slots[i] = (struct send_slot){.owner = qp, .next_free = qp->free};
        qp->free = &qp->slots[i];
    }
    return qp->slots && qp->inlined;
}

struct verbs_qp *verbs_qp_new(struct qp *qp, struct cq *send_cq, struct cq *recv_cq,
                              uint32_t max_send_wr, uint32_t max_recv_wr, uint32_t max_inline_data)
{
    struct verbs_qp *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct verbs_qp){.qp = qp, .send_cq = send_cq, .recv_cq = recv_cq};
    if (slots_init(made, max_send_wr, max_inline_data) && pool_init(&made->receives, max_recv_wr)) {
        qp->owner = made;
        return made;
    }
    verbs_qp_free(made);
    return NULL;
}

void verbs_qp_free(struct verbs_qp *qp)
{
    free(qp->slots);
    free(qp->inlined);
    free(qp->receives.slots);
    free(qp);
}

/* ---- states -------------------------------------------------------------------------- */

bool verbs_modify(struct verbs_qp *qp, enum qp_state to, picoseconds now)
{
    if (!qp_modify(qp->qp, to, now))
        return false;
    if (to == QP_RESET) {
        cq_forget(qp->send_cq, qp->qp->qpn);
        cq_forget(qp->recv_cq, qp->qp->qpn);
    }
    return true;
}

/* ---- sending ------------------------------------------------------------------------- */

static void release(struct send_slot *slot)
{
    slot->next_free = slot->owner->free;
    slot->owner->free = slot;
}

/* The slot's copy of a request's inline data. */
static const uint8_t *copy_inlined(const struct send_slot *slot, const struct send_request *request)
{
    const struct verbs_qp *qp = slot->owner;
    if (!request->inlined)
        return NULL;
    uint8_t *copy = qp->inlined + (size_t)(slot - qp->slots) * qp->max_inline_data;
    memcpy(copy, request->inlined, request->length);
    return copy;
}

static void fill(struct send_slot *slot, const struct send_request *request)
{
    struct qp *qp = slot->owner->qp;
    slot->wr_id = request->wr_id;
    slot->unsignaled = request->unsignaled;
    slot->message = (struct message){
        .handler = &handler,
        .record = &slot->record,
        .to = request->is_datagram ? &slot->to : NULL,
        .inlined = copy_inlined(slot, request),
        .verb = (uint8_t)request->verb,
        .lkey = request->lkey,
        .local_va = request->addr,
        .rkey = request->rkey,
        .remote_va = request->remote_addr,
        .length = request->length,
        .immediate = request->imm_data,
        .compare = request->compare_add,
        .swap_add = request->verb == VERB_FETCH_ADD ? request->compare_add : request->swap};
    struct qp_remote remote = {.qpn = request->remote_qpn, .address = request->remote_address};
    if (request->is_datagram)
        address_init(&slot->to, qp, &remote, request->remote_qkey, request->sl);
}

int verbs_post_send(struct verbs_qp *qp, const struct send_request *request, picoseconds now)
{
    struct send_slot *slot = qp->free;
    if (!slot)
        return REFUSED_QUEUE_FULL;
    if (request->inlined && (request->length > qp->max_inline_data || request->verb >= VERB_READ))
        return REFUSED_INLINE;
    fill(slot, request);
    enum status status = send_queue_admit(qp->qp, &slot->message);
    if (status != STATUS_SUCCESS && status != STATUS_WR_FLUSH_ERR)
        return (int)status;
    qp->free = slot->next_free;
    send_queue_post(qp->qp, &slot->message, now);
    return 0;
}

static void sent(struct message *message, picoseconds now)
{
    struct send_slot *slot = container_of(message, struct send_slot, message);
    enum status status = (enum status)message->record->status;
    release(slot);
    if (status == STATUS_CANCELLED || (slot->unsignaled && status == STATUS_SUCCESS))
        return;
    const struct host_path *path = &slot->owner->qp->nic->config.path;
    picoseconds in_memory = message_is_fetch(message) ? host_path_after(path, message->length) : 0;
    struct work_completion completion = {.wr_id = slot->wr_id,
                                         .at_ps = now + in_memory + path->completion_ps,
                                         .status = (int32_t)status,
                                         .verb = message->verb,
                                         .byte_len = message->length,
                                         .qp_num = slot->owner->qp->qpn};
    cq_put(slot->owner->send_cq, &completion);
}

/* ---- receiving ----------------------------------------------------------------------- */

static struct receive *filled(struct receive_slot *slot, uint64_t wr_id, uint64_t addr,
                              uint32_t length, uint32_t lkey)
{
    slot->wr_id = wr_id;
    slot->receive =
        (struct receive){.completed = received, .lkey = lkey, .va = addr, .length = length};
    return &slot->receive;
}

int verbs_post_recv(struct verbs_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t length,
                    uint32_t lkey, picoseconds now)
{
    struct receive_slot *slot = qp->receives.free;
    if (!slot)
        return qp->qp->config.srq ? STATUS_LOC_QP_OP_ERR : REFUSED_QUEUE_FULL;
    struct receive *receive = filled(slot, wr_id, addr, length, lkey);
    enum status status = receive_queue_admit(qp->qp, receive);
    if (status != STATUS_SUCCESS && status != STATUS_WR_FLUSH_ERR)
        return (int)status;
    qp->receives.free = slot->next_free;
    receive_queue_post(qp->qp, receive, now);
    return 0;
}

int verbs_post_srq_recv(struct verbs_srq *srq, uint64_t wr_id, uint64_t addr, uint32_t length,
                        uint32_t lkey, picoseconds now)
{
    struct receive_slot *slot = srq->pool.free;
    if (!slot)
        return REFUSED_QUEUE_FULL;
    struct receive *receive = filled(slot, wr_id, addr, length, lkey);
    enum status status = srq_admit(&srq->srq, receive);
    if (status != STATUS_SUCCESS)
        return (int)status;
    srq->pool.free = slot->next_free;
    srq_post(&srq->srq, receive, now);
    return 0;
}

static uint8_t flags_of(const struct receive *receive)
{
    bool is_datagram = receive->qp->config.transport == TRANSPORT_UD;
    return (uint8_t)((receive->has_immediate ? WC_WITH_IMM : 0) |
                     (receive->has_invalidated ? WC_WITH_INV : 0) | (is_datagram ? WC_GRH : 0));
}

static void received(struct receive *receive, picoseconds now)
{
    struct receive_slot *slot = container_of(receive, struct receive_slot, receive);
    const struct verbs_qp *owner = receive->qp->owner;
    slot->next_free = slot->pool->free;
    slot->pool->free = slot;
    if (receive->status == STATUS_CANCELLED)
        return;
    const struct host_path *path = &receive->qp->nic->config.path;
    picoseconds in_memory = host_path_after(path, receive->received_bytes);
    struct work_completion completion = {.wr_id = slot->wr_id,
                                         .at_ps = now + in_memory + path->completion_ps,
                                         .status = receive->status,
                                         .verb = receive->by_write ? VERB_WRITE_IMM : VERB_SEND,
                                         .is_receive = true,
                                         .wc_flags = flags_of(receive),
                                         .byte_len = receive->received_bytes,
                                         .imm_data = receive->immediate,
                                         .qp_num = receive->qp->qpn,
                                         .src_qp = receive->src_qp};
    cq_put(owner->recv_cq, &completion);
}
