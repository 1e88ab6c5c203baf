/* Completions and events. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

/* What NICs that are made for RoCE write in place of the service level of a received datagram: that
 * it has a UDP header, and an IPv4 header (IBTA Annex A17, 4.5.1, wants a flag for it; UCX reads
 * this one). */
enum { ROCE_HAS_UDP = 8, ROCE_HAS_IPV4 = 2 };

static const enum ibv_wc_status statuses[] = {
    [STATUS_SUCCESS] = IBV_WC_SUCCESS,
    [STATUS_LOC_LEN_ERR] = IBV_WC_LOC_LEN_ERR,
    [STATUS_LOC_QP_OP_ERR] = IBV_WC_LOC_QP_OP_ERR,
    [STATUS_LOC_PROT_ERR] = IBV_WC_LOC_PROT_ERR,
    [STATUS_WR_FLUSH_ERR] = IBV_WC_WR_FLUSH_ERR,
    [STATUS_REM_INV_REQ_ERR] = IBV_WC_REM_INV_REQ_ERR,
    [STATUS_REM_ACCESS_ERR] = IBV_WC_REM_ACCESS_ERR,
    [STATUS_REM_OP_ERR] = IBV_WC_REM_OP_ERR,
    [STATUS_RETRY_EXC_ERR] = IBV_WC_RETRY_EXC_ERR,
    [STATUS_RNR_RETRY_EXC_ERR] = IBV_WC_RNR_RETRY_EXC_ERR,
};

static const enum ibv_wc_opcode opcodes[] = {
    [VERB_SEND] = IBV_WC_SEND,
    [VERB_SEND_IMM] = IBV_WC_SEND,
    [VERB_SEND_INV] = IBV_WC_SEND,
    [VERB_WRITE] = IBV_WC_RDMA_WRITE,
    [VERB_WRITE_IMM] = IBV_WC_RDMA_WRITE,
    [VERB_READ] = IBV_WC_RDMA_READ,
    [VERB_CMP_SWAP] = IBV_WC_COMP_SWAP,
    [VERB_FETCH_ADD] = IBV_WC_FETCH_ADD,
};

static enum ibv_wc_status status_of(const struct uverbs_cqe *entry)
{
    size_t count = sizeof statuses / sizeof *statuses;
    return entry->status < count ? statuses[entry->status] : IBV_WC_GENERAL_ERR;
}

/* The syndrome of ConnectX NICs that programs print. */
static uint32_t vendor_err_of(const struct uverbs_cqe *entry)
{
    static const uint32_t syndromes[] = {
        [STATUS_LOC_LEN_ERR] = 0x6a,       [STATUS_LOC_QP_OP_ERR] = 0x68,
        [STATUS_LOC_PROT_ERR] = 0x51,      [STATUS_WR_FLUSH_ERR] = 0xf9,
        [STATUS_REM_INV_REQ_ERR] = 0x8a,   [STATUS_REM_ACCESS_ERR] = 0x88,
        [STATUS_REM_OP_ERR] = 0x89,        [STATUS_RETRY_EXC_ERR] = 0x81,
        [STATUS_RNR_RETRY_EXC_ERR] = 0x87,
    };
    size_t count = sizeof syndromes / sizeof *syndromes;
    return entry->status < count ? syndromes[entry->status] : 0;
}

static enum ibv_wc_opcode opcode_of(const struct uverbs_cqe *entry)
{
    if (entry->is_receive)
        return entry->verb == VERB_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    return opcodes[entry->verb % VERBS];
}

static unsigned flags_of(const struct uverbs_cqe *entry)
{
    return (entry->wc_flags & WC_WITH_IMM ? IBV_WC_WITH_IMM : 0U) |
           (entry->wc_flags & WC_WITH_INV ? IBV_WC_WITH_INV : 0U) |
           (entry->wc_flags & WC_GRH ? IBV_WC_GRH : 0U);
}

static __be32 immediate_of(const struct uverbs_cqe *entry)
{
    return entry->wc_flags & WC_WITH_INV ? entry->imm_data : htonl(entry->imm_data);
}

static uint8_t sl_of(const struct uverbs_cqe *entry)
{
    bool is_datagram = entry->is_receive && entry->wc_flags & WC_GRH;
    if (is_datagram && connection()->device.is_ethernet)
        return ROCE_HAS_UDP | ROCE_HAS_IPV4;
    return entry->sl;
}

/* ---- taking entries --------------------------------------------------------------------- */

/* The places of finished requests are free again. Sends without a completion end with a later one
 * that has one. */
static void free_places(struct emu_qp *qp, const struct uverbs_cqe *entry)
{
    if (!entry->is_receive)
        __atomic_store_n(&qp->sends.completed, entry->posted, __ATOMIC_RELEASE);
    else if (qp->srq)
        __atomic_add_fetch(&qp->srq->ring.completed, 1, __ATOMIC_RELEASE);
    else
        __atomic_add_fetch(&qp->receives.completed, 1, __ATOMIC_RELEASE);
}

/* The entries of a queue pair that is reset or destroyed leave the queue; the others keep their
 * order. The NICs have taken its own out of what they will add, and write at `head` only. The
 * receives' places in a shared queue are free again. */
static void drop_entries(struct emu_cq *cq, struct emu_qp *qp)
{
    pthread_mutex_lock(&cq->lock);
    uint32_t head = __atomic_load_n(&cq->shared->head, __ATOMIC_ACQUIRE), kept = head;
    for (uint32_t i = head; i-- != cq->tail;) {
        const struct uverbs_cqe *entry = &cq->shared->at[i % cq->entries];
        if (entry->qp_num != qp->qp.qp_base.qp_num)
            cq->shared->at[--kept % cq->entries] = *entry;
        else if (entry->is_receive && qp->srq)
            __atomic_add_fetch(&qp->srq->ring.completed, 1, __ATOMIC_RELEASE);
    }
    cq->tail = kept;
    __atomic_store_n(&cq->shared->tail, kept, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&cq->lock);
}

void drop_completions(struct emu_qp *qp)
{
    const struct ibv_qp *of = &qp->qp.qp_base;
    drop_entries((struct emu_cq *)of->send_cq, qp);
    if (of->recv_cq != of->send_cq)
        drop_entries((struct emu_cq *)of->recv_cq, qp);
}

/* The next entry; those of queue pairs that this process does not have are left out. */
static bool take(struct emu_cq *cq, struct uverbs_cqe *entry)
{
    while (__atomic_load_n(&cq->shared->head, __ATOMIC_ACQUIRE) != cq->tail) {
        *entry = cq->shared->at[cq->tail++ % cq->entries];
        __atomic_store_n(&cq->shared->tail, cq->tail, __ATOMIC_RELEASE);
        struct emu_qp *qp = qp_of(entry->qp_num);
        if (!qp)
            continue;
        free_places(qp, entry);
        looks_elsewhere = true;
        return true;
    }
    return false;
}

static struct ibv_wc as_wc(const struct uverbs_cqe *entry)
{
    return (struct ibv_wc){.wr_id = entry->wr_id,
                           .status = status_of(entry),
                           .vendor_err = vendor_err_of(entry),
                           .opcode = opcode_of(entry),
                           .byte_len = entry->byte_len,
                           .imm_data = immediate_of(entry),
                           .qp_num = entry->qp_num,
                           .src_qp = entry->src_qp,
                           .wc_flags = flags_of(entry),
                           .pkey_index = entry->pkey_index,
                           .slid = entry->slid,
                           .sl = sl_of(entry),
                           .dlid_path_bits = entry->path_bits};
}

static int take_several(struct emu_cq *cq, int entries, struct ibv_wc *wc)
{
    struct uverbs_cqe entry;
    int taken = 0;
    pthread_mutex_lock(&cq->lock);
    while (taken < entries && take(cq, &entry))
        wc[taken++] = as_wc(&entry);
    pthread_mutex_unlock(&cq->lock);
    return taken;
}

int poll_cq(struct ibv_cq *of, int entries, struct ibv_wc *wc)
{
    struct emu_cq *cq = (struct emu_cq *)of;
    is_active();
    if (cq->shared->overrun)
        return -1;
    int taken = take_several(cq, entries, wc);
    if (taken || entries < 1)
        return taken;
    wait_after_not_yet(cq, cq->tail);
    return take_several(cq, entries, wc);
}

/* ---- the extended way (ibv_start_poll to ibv_end_poll) -------------------------------------- */

static struct emu_cq *own(struct ibv_cq_ex *cq)
{
    return (struct emu_cq *)cq;
}

static int next_poll(struct ibv_cq_ex *of)
{
    struct emu_cq *cq = own(of);
    if (!take(cq, &cq->current))
        return ENOENT;
    of->wr_id = cq->current.wr_id;
    of->status = status_of(&cq->current);
    return 0;
}

static int start_poll(struct ibv_cq_ex *of, struct ibv_poll_cq_attr *attr)
{
    struct emu_cq *cq = own(of);
    if (attr->comp_mask)
        return EINVAL;
    is_active();
    pthread_mutex_lock(&cq->lock);
    if (next_poll(of) == 0)
        return 0;
    pthread_mutex_unlock(&cq->lock);
    wait_after_not_yet(cq, cq->tail);
    pthread_mutex_lock(&cq->lock);
    if (next_poll(of) == 0)
        return 0;
    pthread_mutex_unlock(&cq->lock);
    return ENOENT;
}

static void end_poll(struct ibv_cq_ex *of)
{
    pthread_mutex_unlock(&own(of)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
    return opcode_of(&own(cq)->current);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
    return vendor_err_of(&own(cq)->current);
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
    return own(cq)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
    return immediate_of(&own(cq)->current);
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
    return own(cq)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
    return own(cq)->current.src_qp;
}

static unsigned read_wc_flags(struct ibv_cq_ex *cq)
{
    return flags_of(&own(cq)->current);
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
    return own(cq)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
    return sl_of(&own(cq)->current);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
    return own(cq)->current.path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
    return own(cq)->current.at_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
    return (uint64_t)connection()->clock.realtime_ns + own(cq)->current.at_ns;
}

void set_poll_functions(struct emu_cq *made)
{
    struct ibv_cq_ex *cq = &made->cq;
    cq->start_poll = start_poll;
    cq->next_poll = next_poll;
    cq->end_poll = end_poll;
    cq->read_opcode = read_opcode;
    cq->read_vendor_err = read_vendor_err;
    cq->read_byte_len = read_byte_len;
    cq->read_imm_data = read_imm_data;
    cq->read_qp_num = read_qp_num;
    cq->read_src_qp = read_src_qp;
    cq->read_wc_flags = read_wc_flags;
    cq->read_slid = read_slid;
    cq->read_sl = read_sl;
    cq->read_dlid_path_bits = read_dlid_path_bits;
    cq->read_completion_ts = read_completion_ts;
    cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

/* ---- events
 * -------------------------------------------------------------------------------------- */

/* The NICs write an event at the next completion. If one is there already, so is its event, as IBTA
 * has it for a completion that came before the request: none. A program that requests it once more
 * waits for it. */
int req_notify_cq(struct ibv_cq *of, int solicited_only)
{
    struct emu_cq *cq = (struct emu_cq *)of;
    uint32_t armed = solicited_only ? UVERBS_ARMED_SOLICITED : UVERBS_ARMED;
    is_active();
    if (__atomic_exchange_n(&cq->shared->armed, armed, __ATOMIC_SEQ_CST) == armed)
        wait_after_not_yet(cq, cq->tail);
    return 0;
}

/* A signal's handler interrupts it (EINTR), unless that has SA_RESTART, as in rdma-core. */
static int read_event(int fd, struct uverbs_event *event)
{
    ssize_t got = read(fd, event, sizeof *event);
    if (got >= 0 && got != (ssize_t)sizeof *event)
        errno = EIO; /* the NICs have ended */
    looks_elsewhere |= got > 0;
    return got == (ssize_t)sizeof *event ? 0 : -1;
}

/* As read_event; a program that has made the file non-blocking may look again and again. */
static int next_event(int fd, struct uverbs_event *event, const void *of, uint32_t taken)
{
    if (read_event(fd, event) == 0)
        return 0;
    if (errno != EAGAIN)
        return -1;
    wait_after_not_yet(of, taken);
    return read_event(fd, event);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct emu_channel *own = (struct emu_channel *)channel;
    struct uverbs_event event;
    struct emu_cq *of;
    is_active();
    do { /* events of queues that have been destroyed are left out */
        if (next_event(channel->fd, &event, own, own->events) != 0)
            return -1;
        of = object_of(event.handle);
    } while (!of);
    count_event(&own->events);
    count_event(&of->events);
    *cq = ibv_cq_ex_to_cq(&of->cq);
    *cq_context = (*cq)->cq_context;
    return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    acknowledge(&cq->comp_events_completed, count);
}

static bool is_of_port(const struct ibv_async_event *event)
{
    return event->event_type == IBV_EVENT_PORT_ACTIVE || event->event_type == IBV_EVENT_PORT_ERR;
}

/* How many the program got of the same object. */
static uint32_t *events_of(const struct ibv_async_event *event)
{
    if (event->event_type == IBV_EVENT_CQ_ERR)
        return &((struct emu_cq *)event->element.cq)->async_events;
    if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
        return &((struct emu_srq *)event->element.srq)->async_events;
    return &((struct emu_qp *)event->element.qp)->async_events;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *to)
{
    static const enum ibv_event_type types[] = {
        [UVERBS_CQ_ERROR] = IBV_EVENT_CQ_ERR,
        [UVERBS_QP_FATAL] = IBV_EVENT_QP_FATAL,
        [UVERBS_QP_REQ_ERROR] = IBV_EVENT_QP_REQ_ERR,
        [UVERBS_QP_ACCESS_ERROR] = IBV_EVENT_QP_ACCESS_ERR,
        [UVERBS_COMM_EST] = IBV_EVENT_COMM_EST,
        [UVERBS_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
        [UVERBS_SRQ_LIMIT_REACHED] = IBV_EVENT_SRQ_LIMIT_REACHED,
        [UVERBS_PORT_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
        [UVERBS_PORT_ERROR] = IBV_EVENT_PORT_ERR,
        [UVERBS_LAST_WQE_REACHED] = IBV_EVENT_QP_LAST_WQE_REACHED,
    };
    static uint32_t taken;
    struct uverbs_event event;
    void *of;
    is_active();
    do { /* events of objects that have been destroyed are left out */
        if (next_event(context->async_fd, &event, context, taken) != 0)
            return -1;
        count_event(&taken);
        of = object_of(event.handle);
    } while (event.handle != UVERBS_NONE && !of);
    to->event_type = types[event.kind % (sizeof types / sizeof *types)];
    to->element.cq = of; /* a pointer of whatever kind */
    if (event.handle == UVERBS_NONE)
        to->element.port_num = PORT_NUMBER;
    else
        count_event(events_of(to));
    return 0;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    uint32_t *acknowledged = NULL;
    if (event->event_type == IBV_EVENT_CQ_ERR)
        acknowledged = &event->element.cq->async_events_completed;
    else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
        acknowledged = &event->element.srq->events_completed;
    else if (!is_of_port(event))
        acknowledged = &event->element.qp->events_completed;
    if (acknowledged)
        acknowledge(acknowledged, 1);
}
