#include "nic/verbs_api.h"

#include <stdlib.h>
#include <string.h>

#include "nic/completion_queue.h"
#include "nic/datagram.h"
#include "nic/host_path.h"
#include "nic/nic.h"
#include "nic/qp_state.h"
#include "nic/receive_queue.h"
#include "nic/send_queue.h"
#include "nic/sge.h"

struct send_slot {
    struct message message;
    struct message_record record;
    struct address to;
    struct verbs_qp *owner;
    uint64_t wr_id;
    int verb; /* enum verb */
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
    struct sge *sges; /* MAX_SGE for each slot */
};

struct verbs_srq {
    struct srq srq;
    struct receive_pool pool;
    receive_dropped *dropped; /* or NULL */
};

struct verbs_qp {
    struct qp *qp;
    uint32_t qp_num;
    struct cq *send_cq, *recv_cq;
    struct verbs_srq *srq; /* or NULL */
    struct send_slot *slots, *free;
    struct sge *sges; /* MAX_SGE for each slot */
    uint8_t *inlined; /* `max_inline_data` bytes for each slot */
    uint32_t max_inline_data;
    struct receive_pool receives;
};

static void sent(struct message *message, picoseconds now);
static void received(struct receive *receive, picoseconds now);

/* ---- set-up ------------------------------------------------------------------------ */

/* Room for at least one, so that NULL always means that there is no memory. */
static void *array(uint32_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static bool pool_init(struct receive_pool *pool, uint32_t count)
{
    pool->slots = array(count, sizeof *pool->slots);
    pool->sges = array(count, MAX_SGE * sizeof *pool->sges);
    for (uint32_t i = 0; pool->slots && i < count; i++) {
        pool->slots[i] = (struct receive_slot){.pool = pool, .next_free = pool->free};
        pool->free = &pool->slots[i];
    }
    return pool->slots && pool->sges;
}

static void pool_free(const struct receive_pool *pool)
{
    free(pool->slots);
    free(pool->sges);
}

struct verbs_srq *verbs_srq_new(struct nic *nic, uint32_t pd, uint32_t max_wr)
{
    struct verbs_srq *srq = calloc(1, sizeof *srq);
    if (!srq)
        return NULL;
    srq->srq = (struct srq){.nic = nic, .pd = pd};
    if (pool_init(&srq->pool, max_wr))
        return srq;
    verbs_srq_free(srq);
    return NULL;
}

void verbs_srq_free(struct verbs_srq *srq)
{
    pool_free(&srq->pool);
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
    qp->slots = array(count, sizeof *qp->slots);
    qp->sges = array(count, MAX_SGE * sizeof *qp->sges);
    qp->inlined = malloc((size_t)count * max_inline_data + 1);
    qp->max_inline_data = max_inline_data;
    for (uint32_t i = 0; qp->slots && i < count; i++) {
        qp->slots[i] = (struct send_slot){.owner = qp, .next_free = qp->free};
        qp->free = &qp->slots[i];
    }
    return qp->slots && qp->sges && qp->inlined;
}

struct verbs_qp *verbs_qp_new(struct qp *qp, struct cq *send_cq, struct cq *recv_cq,
                              uint32_t max_send_wr, uint32_t max_recv_wr, uint32_t max_inline_data)
{
    struct verbs_qp *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct verbs_qp){.qp = qp, .qp_num = qp->qpn, .send_cq = send_cq, .recv_cq = recv_cq};
    if (qp->config.srq)
        made->srq = container_of(qp->config.srq, struct verbs_srq, srq);
    if (slots_init(made, max_send_wr, max_inline_data) && pool_init(&made->receives, max_recv_wr)) {
        qp->owner = made;
        return made;
    }
    verbs_qp_free(made);
    return NULL;
}

static void drop_receive(const struct verbs_qp *qp, uint64_t wr_id)
{
    if (qp->srq && qp->srq->dropped)
        qp->srq->dropped(wr_id);
}

static void drop(const struct work_completion *completion, void *of)
{
    if (completion->is_receive)
        drop_receive(of, completion->wr_id);
}

static void forget_completions(struct verbs_qp *qp)
{
    cq_forget(qp->send_cq, qp->qp_num, drop, qp);
    cq_forget(qp->recv_cq, qp->qp_num, drop, qp);
}

void verbs_qp_free(struct verbs_qp *qp)
{
    forget_completions(qp);
    free(qp->slots);
    free(qp->sges);
    free(qp->inlined);
    pool_free(&qp->receives);
    free(qp);
}

/* ---- events -------------------------------------------------------------------------- */

void verbs_watch(struct verbs_qp *qp, struct event_watch *watch)
{
    qp->qp->watch = watch;
}

void verbs_note_when_drained(struct verbs_qp *qp)
{
    qp_note_when_drained(qp->qp);
}

void verbs_srq_watch(struct verbs_srq *srq, struct event_watch *watch)
{
    srq->srq.watch = watch;
}

void verbs_srq_on_dropped(struct verbs_srq *srq, receive_dropped *dropped)
{
    srq->dropped = dropped;
}

void verbs_srq_arm(struct verbs_srq *srq, uint32_t limit)
{
    srq_arm(&srq->srq, limit);
}

uint32_t verbs_srq_limit(const struct verbs_srq *srq)
{
    return srq->srq.limit;
}

/* ---- states -------------------------------------------------------------------------- */

bool verbs_modify(struct verbs_qp *qp, enum qp_state to, picoseconds now)
{
    if (!qp_modify(qp->qp, to, now))
        return false;
    if (to == QP_RESET)
        forget_completions(qp);
    return true;
}

bool verbs_fail_user(struct verbs_qp *qp, const struct cq *cq)
{
    bool uses = qp->send_cq == cq || qp->recv_cq == cq;
    if (!uses || qp->qp->state == QP_RESET || qp->qp->state == QP_ERR)
        return false;
    return qp_modify(qp->qp, QP_ERR, qp->qp->nic->clock->now);
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
    memcpy(copy, request->inlined, request->inlined_bytes);
    return copy;
}

/* Where to keep a list; NULL for one in a single piece. */
static const struct sge *copy_list(struct sge *room, const struct sge *sges, uint32_t count)
{
    return count > 1 ? memcpy(room, sges, count * sizeof *sges) : NULL;
}

static uint32_t at_most_32_bits(uint64_t length)
{
    return length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
}

/* The memory of a message that has no inline data. */
static void fill_memory(struct send_slot *slot, const struct send_request *request)
{
    struct message *message = &slot->message;
    struct sge *room = slot->owner->sges + (size_t)(slot - slot->owner->slots) * MAX_SGE;
    message->length = at_most_32_bits(sges_length(request->sges, request->sge_count));
    message->sges = copy_list(room, request->sges, request->sge_count);
    message->sge_count = (uint8_t)request->sge_count;
    if (request->sge_count != 1)
        return;
    message->local_va = request->sges->addr;
    message->lkey = request->sges->lkey;
}

static void fill(struct send_slot *slot, const struct send_request *request)
{
    struct qp *qp = slot->owner->qp;
    slot->wr_id = request->wr_id;
    slot->verb = request->verb;
    slot->unsignaled = request->unsignaled;
    slot->message = (struct message){
        .handler = &handler,
        .record = &slot->record,
        .to = request->is_datagram ? &slot->to : NULL,
        .inlined = copy_inlined(slot, request),
        .copied = request->copied,
        .verb = (uint8_t)request->verb,
        .solicited = request->solicited && verb_takes_receive(request->verb),
        .rkey = request->rkey,
        .remote_va = request->remote_addr,
        .length = request->inlined_bytes,
        .immediate = request->imm_data,
        .compare = request->compare_add,
        .swap_add = request->verb == VERB_FETCH_ADD ? request->compare_add : request->swap};
    if (!request->inlined)
        fill_memory(slot, request);
    struct qp_remote remote = {.qpn = request->remote_qpn, .address = request->remote_address};
    if (request->is_datagram)
        address_init(&slot->to, qp, &remote, request->remote_qkey, request->sl);
}

/* Fills the next slot. Returns 0, or an enum refusal. */
static int prepare(struct verbs_qp *qp, const struct send_request *request)
{
    if (!qp->free)
        return REFUSED_QUEUE_FULL;
    if (request->inlined &&
        (request->inlined_bytes > qp->max_inline_data || request->verb >= VERB_READ))
        return REFUSED_INLINE;
    if (request->sge_count > MAX_SGE)
        return REFUSED_SGE_COUNT;
    fill(qp->free, request);
    return 0;
}

static bool is_accepted(enum status status)
{
    return status == STATUS_SUCCESS || status == STATUS_WR_FLUSH_ERR;
}

int verbs_post_send(struct verbs_qp *qp, const struct send_request *request, picoseconds now)
{
    int refused = prepare(qp, request);
    if (refused)
        return refused;
    struct send_slot *slot = qp->free;
    enum status status = send_queue_admit(qp->qp, &slot->message);
    if (!is_accepted(status))
        return (int)status;
    qp->free = slot->next_free;
    send_queue_post(qp->qp, &slot->message, now);
    return 0;
}

bool verbs_submit_send(struct verbs_qp *qp, const struct send_request *request, picoseconds now)
{
    if ((!qp_can(qp->qp, CAN_POST) && !qp_can(qp->qp, POSTS_FLUSH)) || prepare(qp, request))
        return false;
    struct send_slot *slot = qp->free;
    enum status status = send_queue_admit(qp->qp, &slot->message);
    qp->free = slot->next_free;
    if (is_accepted(status))
        send_queue_post(qp->qp, &slot->message, now);
    else
        send_queue_post_refused(qp->qp, &slot->message, status, now);
    return true;
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
                                         .verb = slot->verb,
                                         .byte_len = message->length,
                                         .qp_num = slot->owner->qp->qpn};
    cq_put(slot->owner->send_cq, &completion);
}

/* ---- receiving ----------------------------------------------------------------------- */

/* Fills the next slot of a pool; NULL when there is none, or the list is too long. */
static struct receive_slot *next_slot(struct receive_pool *pool, uint64_t wr_id,
                                      const struct sge *sges, uint32_t count)
{
    struct receive_slot *slot = pool->free;
    if (!slot || count > MAX_SGE)
        return NULL;
    struct sge *room = pool->sges + (size_t)(slot - pool->slots) * MAX_SGE;
    slot->wr_id = wr_id;
    slot->receive = (struct receive){.completed = received,
                                     .length = at_most_32_bits(sges_length(sges, count)),
                                     .sges = copy_list(room, sges, count),
                                     .sge_count = count};
    if (count != 1)
        return slot;
    slot->receive.va = sges->addr;
    slot->receive.lkey = sges->lkey;
    return slot;
}

static void take_slot(struct receive_slot *slot)
{
    slot->pool->free = slot->next_free;
}

/* Why there is no slot. */
static int refusal_of(const struct receive_pool *pool)
{
    return pool->free ? REFUSED_SGE_COUNT : REFUSED_QUEUE_FULL;
}

int verbs_post_recv(struct verbs_qp *qp, uint64_t wr_id, const struct sge *sges, uint32_t sge_count,
                    picoseconds now)
{
    if (qp->qp->config.srq)
        return STATUS_LOC_QP_OP_ERR;
    struct receive_slot *slot = next_slot(&qp->receives, wr_id, sges, sge_count);
    if (!slot)
        return refusal_of(&qp->receives);
    enum status status = receive_queue_admit(qp->qp, &slot->receive);
    if (!is_accepted(status))
        return (int)status;
    take_slot(slot);
    receive_queue_post(qp->qp, &slot->receive, now);
    return 0;
}

int verbs_post_srq_recv(struct verbs_srq *srq, uint64_t wr_id, const struct sge *sges,
                        uint32_t sge_count, picoseconds now)
{
    struct receive_slot *slot = next_slot(&srq->pool, wr_id, sges, sge_count);
    if (!slot)
        return refusal_of(&srq->pool);
    enum status status = srq_admit(&srq->srq, &slot->receive);
    if (status != STATUS_SUCCESS)
        return (int)status;
    take_slot(slot);
    srq_post(&srq->srq, &slot->receive, now);
    return 0;
}

bool verbs_submit_recv(struct verbs_qp *qp, uint64_t wr_id, const struct sge *sges,
                       uint32_t sge_count, picoseconds now)
{
    struct receive_slot *slot = next_slot(&qp->receives, wr_id, sges, sge_count);
    if (!slot || !is_accepted(receive_queue_state(qp->qp)))
        return false;
    take_slot(slot);
    receive_queue_post_unchecked(qp->qp, &slot->receive, now);
    return true;
}

bool verbs_submit_srq_recv(struct verbs_srq *srq, uint64_t wr_id, const struct sge *sges,
                           uint32_t sge_count)
{
    struct receive_slot *slot = next_slot(&srq->pool, wr_id, sges, sge_count);
    if (!slot)
        return false;
    take_slot(slot);
    srq_post_unchecked(&srq->srq, &slot->receive);
    return true;
}

static uint8_t flags_of(const struct receive *receive)
{
    return (uint8_t)((receive->has_immediate ? WC_WITH_IMM : 0) |
                     (receive->has_invalidated ? WC_WITH_INV : 0) |
                     (receive->has_grh ? WC_GRH : 0));
}

static void received(struct receive *receive, picoseconds now)
{
    struct receive_slot *slot = container_of(receive, struct receive_slot, receive);
    const struct verbs_qp *owner = receive->qp->owner;
    slot->next_free = slot->pool->free;
    slot->pool->free = slot;
    if (receive->status == STATUS_CANCELLED) {
        drop_receive(owner, slot->wr_id);
        return;
    }
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
                                         .src_qp = receive->src_qp,
                                         .solicited = receive->solicited,
                                         .slid = receive->slid,
                                         .sl = receive->sl,
                                         .dlid_path_bits = receive->dlid_path_bits};
    cq_put(owner->recv_cq, &completion);
}
