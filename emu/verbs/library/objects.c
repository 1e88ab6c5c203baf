/* Protection domains, memory regions, completion queues and their channels, shared receive
 * queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

/* ---- events that the program must acknowledge before it destroys their object --------------- */

void count_event(uint32_t *events)
{
    __atomic_add_fetch(events, 1, __ATOMIC_SEQ_CST);
}

static pthread_mutex_t acknowledging = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_acknowledged = PTHREAD_COND_INITIALIZER;

void acknowledge(uint32_t *acknowledged, uint32_t events)
{
    pthread_mutex_lock(&acknowledging);
    __atomic_add_fetch(acknowledged, events, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&was_acknowledged);
    pthread_mutex_unlock(&acknowledging);
}

static void unlock(void *mutex)
{
    pthread_mutex_unlock(mutex);
}

/* The wait is a point at which the thread can be cancelled. */
void await_acknowledgements(const uint32_t *acknowledged, const uint32_t *events)
{
    pthread_mutex_lock(&acknowledging);
    pthread_cleanup_push(unlock, &acknowledging);
    while (__atomic_load_n(acknowledged, __ATOMIC_SEQ_CST) !=
           __atomic_load_n(events, __ATOMIC_SEQ_CST))
        pthread_cond_wait(&was_acknowledged, &acknowledging);
    pthread_cleanup_pop(1);
}

/* ---- protection domains --------------------------------------------------------------------- */

static int end_pd(void *of, bool waits)
{
    struct ibv_pd *pd = of;
    int error = end_object(pd->handle, pd);
    (void)waits;
    if (!error)
        free(pd);
    return error;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct uverbs_request request = {.command = UVERBS_ALLOC_PD};
    struct uverbs_reply reply;
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    int error = pd ? ask(&request, NULL, 0, &reply) : ENOMEM;
    if (error) {
        free(pd);
        errno = error;
        return NULL;
    }
    *pd = (struct ibv_pd){.context = context, .handle = reply.handle};
    remember(reply.handle, pd, context, end_pd);
    return pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return end_pd(pd, true);
}

/* ---- memory regions ------------------------------------------------------------------------- */

uint32_t access_of(unsigned access)
{
    return (access & IBV_ACCESS_LOCAL_WRITE ? ACCESS_LOCAL_WRITE : 0) |
           (access & IBV_ACCESS_REMOTE_WRITE ? ACCESS_REMOTE_WRITE : 0) |
           (access & IBV_ACCESS_REMOTE_READ ? ACCESS_REMOTE_READ : 0) |
           (access & IBV_ACCESS_REMOTE_ATOMIC ? ACCESS_REMOTE_ATOMIC : 0);
}

static bool is_known(unsigned access)
{
    const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                           IBV_ACCESS_OPTIONAL_RANGE;
    if (access & ~known)
        unsupported("memory bound to windows, on demand, or at zero-based addresses");
    return !(access & ~known);
}

static bool is_written(unsigned access)
{
    return access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

/* NULL: with errno. */
static struct shared_range *new_range(const void *addr, size_t length, unsigned access)
{
    struct shared_range *range = calloc(1, sizeof *range);
    if (!range)
        return NULL;
    *range = (struct shared_range){.addr = (uintptr_t)addr, .length = length};
    int error = share_pages(range, is_written(access));
    if (!error)
        return range;
    free(range);
    errno = error;
    return NULL;
}

static void free_range(struct shared_range *range)
{
    unshare_pages(range);
    free(range);
}

static int end_mr(void *of, bool waits)
{
    struct emu_mr *own = of;
    int error = end_object(own->mr.handle, own);
    (void)waits;
    if (error)
        return error;
    forget_mr(own);
    free_range(own->range);
    free(own);
    return 0;
}

static struct ibv_mr *region(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                             unsigned access)
{
    if (!is_known(access))
        return NULL;
    struct emu_mr *made = calloc(1, sizeof *made);
    struct shared_range *range = made ? new_range(addr, length, access) : NULL;
    if (!range) {
        free(made);
        return NULL;
    }
    struct uverbs_request request = {.command = UVERBS_REG_MR,
                                     .mr = {.addr = range->addr,
                                            .length = length,
                                            .iova = iova,
                                            .pd = pd->handle,
                                            .access = access_of(access)}};
    struct uverbs_reply reply;
    int error = ask(&request, NULL, 0, &reply);
    if (error) {
        free_range(range);
        free(made);
        errno = error;
        return NULL;
    }
    range->handle = reply.handle;
    made->range = range;
    made->access = access;
    made->mr = (struct ibv_mr){.context = pd->context,
                               .pd = pd,
                               .addr = addr,
                               .length = length,
                               .handle = reply.handle,
                               .lkey = reply.number,
                               .rkey = reply.number};
    remember(reply.handle, made, pd->context, end_mr);
    if (iova == range->addr)
        remember_mr(made);
    return &made->mr;
}

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return region(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                      int access)
{
    return region(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       unsigned access)
{
    return region(pd, addr, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    unsupported("memory of other devices (dma-buf)");
    return NULL;
}

/* The region as it is to become. */
static struct uverbs_request rereg_request(const struct ibv_mr *mr, int flags,
                                           const struct ibv_pd *pd, const void *addr, size_t length,
                                           unsigned access)
{
    return (struct uverbs_request){
        .command = UVERBS_REREG_MR,
        .handle = mr->handle,
        .mr = {.given = (flags & IBV_REREG_MR_CHANGE_TRANSLATION ? UVERBS_NEW_MEMORY : 0U) |
                        (flags & IBV_REREG_MR_CHANGE_PD ? UVERBS_NEW_PD : 0U) |
                        (flags & IBV_REREG_MR_CHANGE_ACCESS ? UVERBS_NEW_ACCESS : 0U),
               .addr = (uintptr_t)addr,
               .length = length,
               .iova = (uintptr_t)addr,
               .pd = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : mr->pd->handle,
               .access = access_of(access)}};
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                        int access)
{
    struct emu_mr *own = (struct emu_mr *)mr;
    const int known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    unsigned wanted = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : own->access;
    bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    if (!flags || flags & ~known || !is_known(wanted))
        return IBV_REREG_MR_ERR_INPUT;
    struct shared_range *range =
        new_range(moves ? addr : mr->addr, moves ? length : mr->length, wanted);
    if (!range)
        return IBV_REREG_MR_ERR_CMD;
    struct uverbs_request request =
        rereg_request(mr, flags, pd, (void *)(uintptr_t)range->addr, range->length, // NOLINT
                      wanted);
    struct uverbs_reply reply;
    int error = ask_for_object(mr, &request, &reply);
    if (error) {
        free_range(range);
        errno = error;
        return IBV_REREG_MR_ERR_CMD;
    }
    forget_mr(own);
    free_range(own->range);
    own->range = range;
    own->access = wanted;
    range->handle = mr->handle;
    mr->addr = (void *)(uintptr_t)range->addr; // NOLINT
    mr->length = range->length;
    mr->pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd;
    mr->lkey = mr->rkey = reply.number;
    remember_mr(own);
    return 0;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    return end_mr(mr, true);
}

/* ---- completion channels
 * -------------------------------------------------------------------------- */

static int end_channel(void *of, bool waits)
{
    struct emu_channel *own = of;
    (void)waits;
    if (own->channel.refcnt)
        return EBUSY;
    int error = end_object(own->handle, own);
    if (error)
        return error;
    close(own->channel.fd);
    free(own);
    return 0;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct emu_channel *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    struct uverbs_request request = {.command = UVERBS_CREATE_CHANNEL};
    struct uverbs_reply reply;
    int events;
    int error = ask_for_file(&request, &reply, &events);
    if (error) {
        free(made);
        errno = error;
        return NULL;
    }
    made->channel = (struct ibv_comp_channel){.context = context, .fd = events};
    made->handle = reply.handle;
    remember(reply.handle, made, context, end_channel);
    return &made->channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    return end_channel(channel, true);
}

/* ---- completion queues
 * ------------------------------------------------------------------------------- */

static int end_cq(void *of, bool waits)
{
    struct emu_cq *own = of;
    struct ibv_cq *cq = ibv_cq_ex_to_cq(&own->cq);
    int error = end_object(cq->handle, own);
    if (error)
        return error;
    if (waits) {
        await_acknowledgements(&cq->comp_events_completed, &own->events);
        await_acknowledgements(&cq->async_events_completed, &own->async_events);
    }
    if (cq->channel)
        cq->channel->refcnt--;
    free_queue_memory(own->shared);
    free(own);
    return 0;
}

static struct emu_cq *new_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel)
{
    const struct connection *nics = connection();
    if (cqe < 1 || !nics || (uint32_t)cqe > nics->device.max_cqe) {
        errno = EINVAL;
        return NULL;
    }
    struct emu_cq *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    void *memory;
    int file = new_queue_memory("emu-cq", uverbs_cq_bytes((uint32_t)cqe), &memory);
    if (file < 0) {
        free(made);
        return NULL;
    }
    made->shared = memory;
    made->entries = (uint32_t)cqe;
    struct uverbs_request request = {
        .command = UVERBS_CREATE_CQ,
        .cq = {.cqe = (uint32_t)cqe,
               .channel = channel ? ((struct emu_channel *)channel)->handle : UVERBS_NONE}};
    struct uverbs_reply reply;
    int error = ask(&request, &file, 1, &reply);
    close(file);
    if (error) {
        free_queue_memory(memory);
        free(made);
        errno = error;
        return NULL;
    }
    struct ibv_cq *cq = ibv_cq_ex_to_cq(&made->cq);
    *cq = (struct ibv_cq){.context = context,
                          .channel = channel,
                          .cq_context = cq_context,
                          .handle = reply.handle,
                          .cqe = cqe};
    pthread_mutex_init(&cq->mutex, NULL);
    pthread_cond_init(&cq->cond, NULL);
    pthread_mutex_init(&made->lock, NULL);
    if (channel)
        channel->refcnt++;
    remember(reply.handle, made, context, end_cq);
    return made;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector)
{
    if (vector != 0) {
        errno = EINVAL;
        return NULL;
    }
    struct emu_cq *made = new_cq(context, cqe, cq_context, channel);
    return made ? ibv_cq_ex_to_cq(&made->cq) : NULL;
}

struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    if (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) {
        unsupported("this extended completion");
        return NULL;
    }
    struct emu_cq *made = new_cq(context, (int)attr->cqe, attr->cq_context, attr->channel);
    if (!made)
        return NULL;
    set_poll_functions(made);
    return &made->cq;
}

/* Returns 0 or errno. The caller has the queue's lock. */
static int grow(struct emu_cq *own, uint32_t entries)
{
    void *memory;
    int file = new_queue_memory("emu-cq", uverbs_cq_bytes(entries), &memory);
    if (file < 0)
        return errno;
    struct uverbs_request request = {.command = UVERBS_RESIZE_CQ,
                                     .handle = ibv_cq_ex_to_cq(&own->cq)->handle,
                                     .cq = {.cqe = entries}};
    struct uverbs_reply reply;
    int error = ask(&request, &file, 1, &reply);
    close(file);
    if (error) {
        free_queue_memory(memory);
        return error;
    }
    free_queue_memory(own->shared);
    own->shared = memory;
    own->entries = entries;
    return 0;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    struct emu_cq *own = (struct emu_cq *)cq;
    const struct connection *nics = connection();
    if (cqe < 1 || !nics || (uint32_t)cqe > nics->device.max_cqe || !is_own_object(cq->handle, cq))
        return EINVAL;
    pthread_mutex_lock(&own->lock);
    uint32_t waiting = __atomic_load_n(&own->shared->head, __ATOMIC_ACQUIRE) - own->tail;
    int error = waiting > (uint32_t)cqe         ? EINVAL
                : own->entries >= (uint32_t)cqe ? 0 /* it has room for more */
                                                : grow(own, (uint32_t)cqe);
    if (!error)
        cq->cqe = (int)own->entries;
    pthread_mutex_unlock(&own->lock);
    return error;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    return end_cq(cq, true);
}

/* ---- shared receive queues
 * ----------------------------------------------------------------------------- */

static int end_srq(void *of, bool waits)
{
    struct emu_srq *own = of;
    int error = end_object(own->srq.handle, own);
    if (error)
        return error;
    if (waits)
        await_acknowledgements(&own->srq.events_completed, &own->async_events);
    ring_destroy(&own->ring);
    free(own);
    return 0;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    const struct connection *nics = connection();
    if (!nics || attr->attr.max_wr < 1 || attr->attr.max_wr > nics->device.max_wr ||
        attr->attr.max_sge > MAX_SGE) {
        errno = EINVAL;
        return NULL;
    }
    struct emu_srq *made = calloc(1, sizeof *made);
    int file = made ? ring_create(&made->ring, attr->attr.max_wr, 0) : -1;
    if (file < 0) {
        free(made);
        return NULL;
    }
    struct uverbs_request request = {.command = UVERBS_CREATE_SRQ,
                                     .srq = {.pd = pd->handle, .max_wr = attr->attr.max_wr}};
    struct uverbs_reply reply;
    int error = ask(&request, &file, 1, &reply);
    close(file);
    if (error) {
        ring_destroy(&made->ring);
        free(made);
        errno = error;
        return NULL;
    }
    made->ring.doorbell = 2 * reply.handle + 1;
    made->max_sge = attr->attr.max_sge;
    made->srq = (struct ibv_srq){
        .context = pd->context, .srq_context = attr->srq_context, .pd = pd, .handle = reply.handle};
    remember(reply.handle, made, pd->context, end_srq);
    return &made->srq;
}

struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    (void)context;
    if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC) {
        unsupported("a shared receive queue for XRC or tag matching");
        return NULL;
    }
    struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};
    return ibv_create_srq(attr->pd, &basic);
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    const struct emu_srq *own = (struct emu_srq *)srq;
    struct uverbs_request request = {.command = UVERBS_QUERY_SRQ, .handle = srq->handle};
    struct uverbs_reply reply;
    int error = ask_for_object(own, &request, &reply);
    if (!error)
        *attr = (struct ibv_srq_attr){
            .max_wr = own->ring.slots, .max_sge = own->max_sge, .srq_limit = reply.number};
    return error;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    struct emu_srq *own = (struct emu_srq *)srq;
    if (mask & IBV_SRQ_MAX_WR)
        return unsupported("a shared receive queue that grows");
    if (!(mask & IBV_SRQ_LIMIT))
        return 0;
    if (attr->srq_limit > own->ring.slots)
        return EINVAL;
    struct uverbs_request request = {
        .command = UVERBS_MODIFY_SRQ, .handle = srq->handle, .limit = {.limit = attr->srq_limit}};
    struct uverbs_reply reply;
    return ask_for_object(own, &request, &reply);
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    return end_srq(srq, true);
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return unsupported("multicast");
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return unsupported("multicast");
}
