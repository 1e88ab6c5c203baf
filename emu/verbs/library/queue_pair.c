/* Queue pairs: made, changed, destroyed. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "library.h"

/* ---- making ---------------------------------------------------------------------------------- */

static bool transport_of(enum ibv_qp_type type, uint32_t *transport)
{
    switch (type) {
    case IBV_QPT_RC:
        *transport = TRANSPORT_RC;
        return true;
    case IBV_QPT_UC:
        *transport = TRANSPORT_UC;
        return true;
    case IBV_QPT_UD:
        *transport = TRANSPORT_UD;
        return true;
    default:
        unsupported("a queue pair of this type (RC, UC and UD are)");
        return false;
    }
}

static bool is_possible(const struct ibv_qp_cap *cap, const struct uverbs_device *nic)
{
    return cap->max_send_wr <= nic->max_wr && cap->max_recv_wr <= nic->max_wr &&
           cap->max_send_sge <= MAX_SGE && cap->max_recv_sge <= MAX_SGE &&
           cap->max_inline_data <= nic->max_inline_data;
}

static uint32_t at_least_one(uint32_t count)
{
    return count ? count : 1;
}

static void free_qp(struct emu_qp *qp)
{
    ring_destroy(&qp->sends);
    ring_destroy(&qp->receives);
    free(qp);
}

static int end_qp(void *of, bool waits)
{
    struct emu_qp *own = of;
    const struct ibv_qp *qp = &own->qp.qp_base;
    int error = end_object(qp->handle, own);
    if (error)
        return error;
    drop_completions(own);
    if (waits)
        await_acknowledgements(&qp->events_completed, &own->async_events);
    remember_qp(qp->qp_num, NULL);
    free_qp(own);
    return 0;
}

/* The NIC makes its side. Returns 0 or errno. */
static int ask_for_qp(struct emu_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
                      uint32_t transport, struct uverbs_reply *reply)
{
    int files[2], count = 0;
    uint32_t inline_bytes = qp->most_copied ? qp->most_copied : attr->cap.max_inline_data;
    files[count++] = ring_create(&qp->sends, at_least_one(attr->cap.max_send_wr), inline_bytes);
    if (!attr->srq)
        files[count++] = ring_create(&qp->receives, at_least_one(attr->cap.max_recv_wr), 0);
    struct uverbs_request request = {.command = UVERBS_CREATE_QP,
                                     .qp = {.pd = pd->handle,
                                            .transport = transport,
                                            .send_cq = attr->send_cq->handle,
                                            .recv_cq = attr->recv_cq->handle,
                                            .srq = attr->srq ? attr->srq->handle : UVERBS_NONE,
                                            .max_send_wr = at_least_one(attr->cap.max_send_wr),
                                            .max_recv_wr = at_least_one(attr->cap.max_recv_wr),
                                            .max_inline_data = inline_bytes}};
    bool has_memory = files[0] >= 0 && files[count - 1] >= 0;
    int error = has_memory ? ask(&request, files, (unsigned)count, reply) : errno;
    for (int i = 0; i < count; i++)
        if (files[i] >= 0)
            close(files[i]);
    return error;
}

static struct ibv_qp *new_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    const struct connection *nics = connection();
    uint32_t transport;
    if (!nics || !transport_of(attr->qp_type, &transport))
        return NULL;
    if (!attr->send_cq || !attr->recv_cq || !is_possible(&attr->cap, &nics->device)) {
        debug("a queue pair with these capacities: see ibv_query_device, and %u inline bytes",
              nics->device.max_inline_data);
        errno = EINVAL;
        return NULL;
    }
    struct emu_qp *made = calloc(1, sizeof *made);
    struct uverbs_reply reply;
    if (made && transport == TRANSPORT_UD)
        made->most_copied = nics->device.max_inline_data;
    int error = made ? ask_for_qp(made, pd, attr, transport, &reply) : ENOMEM;
    if (error) {
        if (made)
            free_qp(made);
        errno = error;
        return NULL;
    }
    made->queried_ns = -1;
    made->sends.doorbell = 2 * reply.handle;
    made->receives.doorbell = 2 * reply.handle + 1;
    made->srq = (struct emu_srq *)attr->srq;
    made->max_inline_data = attr->cap.max_inline_data;
    made->max_send_sge = at_least_one(attr->cap.max_send_sge);
    made->max_recv_sge = at_least_one(attr->cap.max_recv_sge);
    made->signals_all = attr->sq_sig_all;
    made->is_datagram = transport == TRANSPORT_UD;
    made->init_attr = *attr;
    struct ibv_qp *qp = &made->qp.qp_base;
    *qp = (struct ibv_qp){.context = pd->context,
                          .qp_context = attr->qp_context,
                          .pd = pd,
                          .send_cq = attr->send_cq,
                          .recv_cq = attr->recv_cq,
                          .srq = attr->srq,
                          .handle = reply.handle,
                          .qp_num = reply.number,
                          .state = IBV_QPS_RESET,
                          .qp_type = attr->qp_type};
    pthread_mutex_init(&qp->mutex, NULL);
    pthread_cond_init(&qp->cond, NULL);
    set_wr_functions(made);
    remember(reply.handle, made, pd->context, end_qp);
    remember_qp(qp->qp_num, made);
    return qp;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return new_qp(pd, attr);
}

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    (void)context;
    if (attr->comp_mask & ~known ||
        (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)) {
        unsupported("this extended queue pair");
        return NULL;
    }
    struct ibv_qp_init_attr basic = {.qp_context = attr->qp_context,
                                     .send_cq = attr->send_cq,
                                     .recv_cq = attr->recv_cq,
                                     .srq = attr->srq,
                                     .cap = attr->cap,
                                     .qp_type = attr->qp_type,
                                     .sq_sig_all = attr->sq_sig_all};
    struct ibv_qp *qp = new_qp(attr->pd, &basic);
    if (qp)
        attr->cap = basic.cap;
    return qp;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return (struct ibv_qp_ex *)qp;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    return end_qp(qp, true);
}

/* ---- states --------------------------------------------------------------------------------- */

static const enum qp_state to_core[] = {
    [IBV_QPS_RESET] = QP_RESET, [IBV_QPS_INIT] = QP_INIT, [IBV_QPS_RTR] = QP_RTR,
    [IBV_QPS_RTS] = QP_RTS,     [IBV_QPS_SQD] = QP_SQD,   [IBV_QPS_SQE] = QP_SQE,
    [IBV_QPS_ERR] = QP_ERR};

static const enum ibv_qp_state from_core[QP_STATES] = {
    [QP_RESET] = IBV_QPS_RESET, [QP_INIT] = IBV_QPS_INIT, [QP_RTR] = IBV_QPS_RTR,
    [QP_RTS] = IBV_QPS_RTS,     [QP_SQD] = IBV_QPS_SQD,   [QP_SQE] = IBV_QPS_SQE,
    [QP_ERR] = IBV_QPS_ERR};

static const struct {
    int mask;
    uint32_t given;
} masks[] = {
    {IBV_QP_STATE, UVERBS_STATE},
    {IBV_QP_CUR_STATE, UVERBS_CUR_STATE},
    {IBV_QP_DEST_QPN, UVERBS_DEST},
    {IBV_QP_AV, UVERBS_AV},
    {IBV_QP_RQ_PSN, UVERBS_RQ_PSN},
    {IBV_QP_SQ_PSN, UVERBS_SQ_PSN},
    {IBV_QP_PATH_MTU, UVERBS_PATH_MTU},
    {IBV_QP_TIMEOUT, UVERBS_TIMEOUT},
    {IBV_QP_RETRY_CNT, UVERBS_RETRY_CNT},
    {IBV_QP_RNR_RETRY, UVERBS_RNR_RETRY},
    {IBV_QP_MIN_RNR_TIMER, UVERBS_MIN_RNR_TIMER},
    {IBV_QP_MAX_QP_RD_ATOMIC, UVERBS_MAX_RD_ATOMIC},
    {IBV_QP_MAX_DEST_RD_ATOMIC, UVERBS_MAX_DEST_RD_ATOMIC},
    {IBV_QP_QKEY, UVERBS_QKEY},
    {IBV_QP_PKEY_INDEX, UVERBS_PKEY_INDEX},
    {IBV_QP_ACCESS_FLAGS, UVERBS_ACCESS_FLAGS},
};

/* Of attributes that check_qp_attributes has passed. Returns 0 or EINVAL. */
static int translate(const struct ibv_qp_attr *attr, int mask, struct uverbs_qp_attr *to)
{
    *to = (struct uverbs_qp_attr){.dest_qp_num = attr->dest_qp_num,
                                  .rq_psn = attr->rq_psn,
                                  .sq_psn = attr->sq_psn,
                                  .qkey = attr->qkey,
                                  .access = access_of(attr->qp_access_flags),
                                  .pkey_index = attr->pkey_index,
                                  .sl = attr->ah_attr.sl,
                                  .traffic_class = attr->ah_attr.grh.traffic_class,
                                  .path_bits = attr->ah_attr.src_path_bits,
                                  .timeout = attr->timeout,
                                  .retry_cnt = attr->retry_cnt,
                                  .rnr_retry = attr->rnr_retry,
                                  .min_rnr_timer = attr->min_rnr_timer,
                                  .max_rd_atomic = attr->max_rd_atomic,
                                  .max_dest_rd_atomic = attr->max_dest_rd_atomic};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        to->given |= mask & masks[i].mask ? masks[i].given : 0;
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
        to->given |= UVERBS_EVENT_WHEN_DRAINED;
    if (mask & IBV_QP_STATE)
        to->state = to_core[attr->qp_state];
    if (mask & IBV_QP_CUR_STATE)
        to->cur_state = to_core[attr->cur_qp_state];
    if (mask & IBV_QP_PATH_MTU) {
        if (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096)
            return EINVAL;
        to->path_mtu = 128U << attr->path_mtu;
    }
    return mask & IBV_QP_AV ? address_of(&attr->ah_attr, &to->dest_address) : 0;
}

/* What ibv_query_qp shows later. */
static void note(struct ibv_qp_attr *own, const struct ibv_qp_attr *attr, int mask)
{
#define NOTE(flag, field)                                                                          \
    if (mask & (flag))                                                                             \
    own->field = attr->field
    NOTE(IBV_QP_DEST_QPN, dest_qp_num);
    NOTE(IBV_QP_AV, ah_attr);
    NOTE(IBV_QP_RQ_PSN, rq_psn);
    NOTE(IBV_QP_SQ_PSN, sq_psn);
    NOTE(IBV_QP_PATH_MTU, path_mtu);
    NOTE(IBV_QP_TIMEOUT, timeout);
    NOTE(IBV_QP_RETRY_CNT, retry_cnt);
    NOTE(IBV_QP_RNR_RETRY, rnr_retry);
    NOTE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    NOTE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    NOTE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    NOTE(IBV_QP_QKEY, qkey);
    NOTE(IBV_QP_PKEY_INDEX, pkey_index);
    NOTE(IBV_QP_PORT, port_num);
    NOTE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
#undef NOTE
}

static void empty_ring(struct emu_ring *ring)
{
    if (!ring->shared)
        return;
    pthread_mutex_lock(&ring->lock);
    ring->completed = ring->head;
    pthread_mutex_unlock(&ring->lock);
}

/* A queue pair that is reset forgets its requests, and completions that were not polled. They leave
 * their queue first: one that is polled later would free its place once more. */
static void empty(struct emu_qp *qp)
{
    drop_completions(qp);
    empty_ring(&qp->sends);
    empty_ring(&qp->receives);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct emu_qp *own = (struct emu_qp *)qp;
    struct uverbs_request request = {.command = UVERBS_MODIFY_QP, .handle = qp->handle};
    struct uverbs_reply reply;
    int error = check_qp_attributes(qp, attr, mask);
    if (!error)
        error = translate(attr, mask, &request.attr);
    if (!error)
        error = ask_for_object(own, &request, &reply);
    if (error) {
        errno = error;
        return error;
    }
    note(&own->attr, attr, mask);
    qp->state = from_core[reply.state % QP_STATES];
    own->sends_ready = qp->state >= IBV_QPS_RTS;
    if (qp->state == IBV_QPS_RESET)
        empty(own);
    return 0;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                        struct ibv_qp_init_attr *init_attr)
{
    struct emu_qp *own = (struct emu_qp *)qp;
    struct uverbs_request request = {.command = UVERBS_QUERY_QP, .handle = qp->handle};
    struct uverbs_reply reply;
    (void)mask;
    if (own->queried_ns == emulated_ns()) /* for the state that it waits for */
        wait_after_not_yet(own, qp->state);
    own->queried_ns = emulated_ns();
    int error = ask_for_object(own, &request, &reply);
    if (error)
        return error;
    qp->state = from_core[reply.state % QP_STATES];
    *attr = own->attr;
    attr->qp_state = attr->cur_qp_state = qp->state;
    attr->cap = own->init_attr.cap;
    if (init_attr)
        *init_attr = own->init_attr;
    return 0;
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    *ece = (struct ibv_ece){0};
    return 0;
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    return ece->vendor_id ? unsupported("enhanced connection establishment") : 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
    (void)qp, (void)opcode, (void)flags;
    return 0; /* not guaranteed */
}
