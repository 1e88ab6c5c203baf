/* Posting work requests: each is written into shared memory, then the doorbell is rung once. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "library.h"

/* Immediate data goes through in the program's byte order; a key is a number. */
static bool to_verb(const struct ibv_send_wr *wr, struct uverbs_wqe *wqe)
{
    wqe->imm_data = ntohl(wr->imm_data);
    switch (wr->opcode) {
    case IBV_WR_SEND:
        wqe->verb = VERB_SEND;
        return true;
    case IBV_WR_SEND_WITH_IMM:
        wqe->verb = VERB_SEND_IMM;
        return true;
    case IBV_WR_SEND_WITH_INV:
        wqe->verb = VERB_SEND_INV;
        wqe->imm_data = wr->invalidate_rkey;
        return true;
    case IBV_WR_RDMA_WRITE:
        wqe->verb = VERB_WRITE;
        break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        wqe->verb = VERB_WRITE_IMM;
        break;
    case IBV_WR_RDMA_READ:
        wqe->verb = VERB_READ;
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        wqe->verb = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? VERB_CMP_SWAP : VERB_FETCH_ADD;
        wqe->remote_addr = wr->wr.atomic.remote_addr;
        wqe->rkey = wr->wr.atomic.rkey;
        wqe->compare_add = wr->wr.atomic.compare_add;
        wqe->swap = wr->wr.atomic.swap;
        return true;
    default:
        unsupported("this opcode of a work request");
        return false;
    }
    wqe->remote_addr = wr->wr.rdma.remote_addr;
    wqe->rkey = wr->wr.rdma.rkey;
    return true;
}

static void set_destination(struct uverbs_wqe *wqe, const struct ibv_ah *ah, uint32_t qpn,
                            uint32_t qkey)
{
    const struct emu_ah *own = (const struct emu_ah *)ah;
    wqe->address = own->address;
    wqe->sl = own->attr.sl;
    wqe->path_bits = own->attr.src_path_bits;
    wqe->qpn = qpn;
    wqe->qkey = qkey;
}

static bool put_list(struct uverbs_wqe *wqe, const struct ibv_sge *list, int count, uint32_t most)
{
    if (count < 0 || (uint32_t)count > most)
        return false;
    struct sge *to = (struct sge *)(wqe + 1);
    for (int i = 0; i < count; i++)
        to[i] = (struct sge){list[i].addr, list[i].length, list[i].lkey};
    wqe->sge_count = (uint32_t)count;
    return true;
}

static bool put_inline(struct uverbs_wqe *wqe, const struct ibv_sge *list, int count, uint32_t most)
{
    uint8_t *to = (uint8_t *)(wqe + 1);
    for (int i = 0; i < count; i++) {
        if (list[i].length > most - wqe->inline_bytes)
            return false;
        memcpy(to + wqe->inline_bytes, (const void *)(uintptr_t)list[i].addr, // NOLINT
               list[i].length);
        wqe->inline_bytes += list[i].length;
    }
    return true;
}

/* ibv_post_send(3): inline data is "valid only for Send and RDMA Write". Devices differ in what
 * they do with the flag elsewhere; some end the queue pair. An error at once shows the mistake. */
static bool takes_inline(const struct uverbs_wqe *wqe)
{
    bool takes = wqe->verb < VERB_READ;
    if (!takes)
        debug("a READ or an atomic has no inline data: post it without IBV_SEND_INLINE");
    return takes;
}

static uint8_t flags_of(const struct emu_qp *qp, unsigned flags)
{
    bool is_signaled = qp->signals_all || flags & IBV_SEND_SIGNALED;
    return (uint8_t)((is_signaled ? UVERBS_SIGNALED : 0) |
                     (flags & IBV_SEND_INLINE ? UVERBS_INLINE : 0) |
                     (flags & IBV_SEND_SOLICITED ? UVERBS_SOLICITED : 0));
}

/* A NIC reads a short datagram within a microsecond of its doorbell. In emulated time a program
 * does any amount of work before that, and UCX fills the memory of a datagram anew as soon as it
 * sees an answer, which may be one to an earlier datagram. So the library reads it at once, unless
 * the NIC would refuse to. */
static bool may_copy(const struct emu_qp *qp, const struct ibv_sge *list, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        const struct emu_mr *mr = mr_of(list[i].lkey);
        uint64_t offset = mr ? list[i].addr - mr->range->addr : 0;
        if (!mr || mr->mr.pd != qp->qp.qp_base.pd || offset > mr->range->length ||
            list[i].length > mr->range->length - offset)
            return false;
        bytes += list[i].length;
    }
    return bytes <= qp->most_copied;
}

/* False: there are too many. */
static bool put_data(const struct emu_qp *qp, struct uverbs_wqe *wqe, const struct ibv_sge *list,
                     int count)
{
    bool is_possible = count >= 0 && (uint32_t)count <= qp->max_send_sge;
    if (!qp->is_datagram || !is_possible || !may_copy(qp, list, count))
        return put_list(wqe, list, count, qp->max_send_sge);
    wqe->flags |= UVERBS_INLINE | UVERBS_COPIED;
    return put_inline(wqe, list, count, qp->most_copied);
}

/* Returns 0 or EINVAL. */
static int may_send(const struct emu_qp *qp)
{
    return qp->sends_ready && is_own_object(qp->qp.qp_base.handle, qp) ? 0 : EINVAL;
}

/* Returns 0 or errno. */
static int put_send(struct emu_qp *qp, const struct ibv_send_wr *wr)
{
    struct uverbs_wqe *wqe = ring_next(&qp->sends);
    if (!wqe)
        return ENOMEM;
    *wqe = (struct uverbs_wqe){.wr_id = wr->wr_id, .flags = flags_of(qp, wr->send_flags)};
    if (!to_verb(wr, wqe))
        return errno;
    if (qp->is_datagram && !wr->wr.ud.ah)
        return EINVAL;
    if (qp->is_datagram)
        set_destination(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
    bool fits =
        wr->send_flags & IBV_SEND_INLINE
            ? takes_inline(wqe) && put_inline(wqe, wr->sg_list, wr->num_sge, qp->max_inline_data)
            : put_data(qp, wqe, wr->sg_list, wr->num_sge);
    if (!fits)
        return EINVAL;
    qp->sends.head++;
    return 0;
}

/* Returns the error. A program whose queue is full may try again and again. */
static int after_post(const struct emu_ring *ring, int error)
{
    if (error == ENOMEM)
        wait_after_not_yet(ring, ring_ended(ring));
    return error;
}

int post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct emu_qp *qp = (struct emu_qp *)of;
    int error = may_send(qp);
    is_active();
    pthread_mutex_lock(&qp->sends.lock);
    uint32_t before = qp->sends.head;
    for (; wr && !error; wr = error ? wr : wr->next)
        error = put_send(qp, wr);
    if (error)
        *bad = wr;
    if (qp->sends.head != before)
        ring_doorbell(&qp->sends);
    pthread_mutex_unlock(&qp->sends.lock);
    return after_post(&qp->sends, error);
}

static int put_receives(struct emu_ring *ring, uint32_t max_sge, struct ibv_recv_wr *wr,
                        struct ibv_recv_wr **bad)
{
    int error = 0;
    is_active();
    pthread_mutex_lock(&ring->lock);
    uint32_t before = ring->head;
    for (; wr && !error; wr = error ? wr : wr->next) {
        struct uverbs_wqe *wqe = ring_next(ring);
        if (wqe)
            *wqe = (struct uverbs_wqe){.wr_id = wr->wr_id};
        if (!wqe)
            error = ENOMEM;
        else if (!put_list(wqe, wr->sg_list, wr->num_sge, max_sge))
            error = EINVAL;
        else
            ring->head++;
    }
    if (error)
        *bad = wr;
    if (ring->head != before)
        ring_doorbell(ring);
    pthread_mutex_unlock(&ring->lock);
    return after_post(ring, error);
}

int post_recv(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct emu_qp *qp = (struct emu_qp *)of;
    if (!qp->receives.shared || of->state == IBV_QPS_RESET || !is_own_object(of->handle, qp)) {
        *bad = wr;
        return EINVAL;
    }
    return put_receives(&qp->receives, qp->max_recv_sge, wr, bad);
}

int post_srq_recv(struct ibv_srq *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct emu_srq *srq = (struct emu_srq *)of;
    if (!is_own_object(of->handle, srq)) {
        *bad = wr;
        return EINVAL;
    }
    return put_receives(&srq->ring, srq->max_sge, wr, bad);
}

/* ---- the extended way (ibv_wr_start to ibv_wr_complete)
 * ------------------------------------------ */

static struct emu_qp *own(struct ibv_qp_ex *qp)
{
    return (struct emu_qp *)qp;
}

static void wr_start(struct ibv_qp_ex *of)
{
    struct emu_qp *qp = own(of);
    is_active();
    pthread_mutex_lock(&qp->sends.lock);
    qp->first_built = qp->sends.head;
    qp->building = NULL;
    qp->building_error = may_send(qp);
}

/* Where a request is written that ends with the batch, if there is no place in the queue. */
static struct uverbs_wqe *next_built(struct emu_qp *qp, uint8_t verb)
{
    static __thread struct {
        struct uverbs_wqe wqe;
        uint8_t rest[1024];
    } lost;
    struct uverbs_wqe *wqe = ring_next(&qp->sends);
    if (!wqe)
        qp->building_error = ENOMEM;
    qp->building = wqe ? wqe : &lost.wqe;
    *qp->building = (struct uverbs_wqe){
        .wr_id = qp->qp.wr_id,
        .verb = verb,
        .flags = flags_of(qp, qp->qp.wr_flags & ~(unsigned)IBV_SEND_INLINE)}; /* a setter says so */
    qp->sends.head += wqe != NULL;
    return qp->building;
}

static void wr_send(struct ibv_qp_ex *qp)
{
    next_built(own(qp), VERB_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
    next_built(own(qp), VERB_SEND_IMM)->imm_data = ntohl(imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
    next_built(own(qp), VERB_SEND_INV)->imm_data = rkey;
}

static struct uverbs_wqe *remote(struct ibv_qp_ex *qp, uint8_t verb, uint32_t rkey, uint64_t addr)
{
    struct uverbs_wqe *wqe = next_built(own(qp), verb);
    wqe->rkey = rkey;
    wqe->remote_addr = addr;
    return wqe;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
    remote(qp, VERB_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
    remote(qp, VERB_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm_data)
{
    remote(qp, VERB_WRITE_IMM, rkey, addr)->imm_data = ntohl(imm_data);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare,
                              uint64_t swap)
{
    struct uverbs_wqe *wqe = remote(qp, VERB_CMP_SWAP, rkey, addr);
    wqe->compare_add = compare;
    wqe->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
    remote(qp, VERB_FETCH_ADD, rkey, addr)->compare_add = add;
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    set_destination(own(qp)->building, ah, qpn, qkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *list)
{
    if (!put_data(own(qp), own(qp)->building, list, (int)count))
        own(qp)->building_error = EINVAL;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
    wr_set_sge_list(qp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count,
                                    const struct ibv_data_buf *list)
{
    own(qp)->building->flags |= UVERBS_INLINE;
    if (!takes_inline(own(qp)->building))
        own(qp)->building_error = EINVAL;
    for (size_t i = 0; i < count; i++) {
        struct ibv_sge sge = {.addr = (uintptr_t)list[i].addr, .length = (uint32_t)list[i].length};
        if (!put_inline(own(qp)->building, &sge, 1, own(qp)->max_inline_data))
            own(qp)->building_error = EINVAL;
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
    struct ibv_data_buf buffer = {.addr = addr, .length = length};
    wr_set_inline_data_list(qp, 1, &buffer);
}

static int wr_complete(struct ibv_qp_ex *of)
{
    struct emu_qp *qp = own(of);
    if (qp->building_error)
        qp->sends.head = qp->first_built;
    else if (qp->sends.head != qp->first_built)
        ring_doorbell(&qp->sends);
    int error = qp->building_error;
    pthread_mutex_unlock(&qp->sends.lock);
    return after_post(&qp->sends, error);
}

static void wr_abort(struct ibv_qp_ex *of)
{
    own(of)->sends.head = own(of)->first_built;
    pthread_mutex_unlock(&own(of)->sends.lock);
}

void set_wr_functions(struct emu_qp *made)
{
    struct ibv_qp_ex *qp = &made->qp;
    qp->wr_start = wr_start;
    qp->wr_complete = wr_complete;
    qp->wr_abort = wr_abort;
    qp->wr_send = wr_send;
    qp->wr_send_imm = wr_send_imm;
    qp->wr_send_inv = wr_send_inv;
    qp->wr_rdma_read = wr_rdma_read;
    qp->wr_rdma_write = wr_rdma_write;
    qp->wr_rdma_write_imm = wr_rdma_write_imm;
    qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
    qp->wr_set_ud_addr = wr_set_ud_addr;
    qp->wr_set_sge = wr_set_sge;
    qp->wr_set_sge_list = wr_set_sge_list;
    qp->wr_set_inline_data = wr_set_inline_data;
    qp->wr_set_inline_data_list = wr_set_inline_data_list;
}
