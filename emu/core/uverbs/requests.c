/* Work requests, from shared memory to queue pairs. A program that writes nonsense gets an error as
 * its completion, or loses its own requests. */
#include <string.h>

#include "headers/lrh.h"
#include "uverbs/server_state.h"

/* A request as it was when it was read; the program may change the memory at any time. */
struct request {
    struct uverbs_wqe wqe;
    union {
        uint8_t inlined[1024];
        struct sge sges[MAX_SGE];
    };
};

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static const uint8_t *slot_of(const struct uverbs_ring *ring, uint32_t number)
{
    return ring->shared->bytes + (size_t)(number % ring->slots) * ring->slot_bytes;
}

/* Whether the program has posted one more, which is `*request` then. A program that posts more than
 * the queue holds has written over the oldest. Callers take no more than a queue holds at a time:
 * what is posted meanwhile rings again. */
static bool take(struct uverbs_ring *ring, struct request *request)
{
    uint32_t head = load(&ring->shared->head);
    if (head == ring->taken)
        return false;
    if (head - ring->taken > ring->slots)
        ring->taken = head - ring->slots;
    memcpy(request, slot_of(ring, ring->taken),
           ring->slot_bytes < sizeof *request ? ring->slot_bytes : sizeof *request);
    ring->taken++;
    __atomic_store_n(&ring->shared->tail, ring->taken, __ATOMIC_RELEASE);
    if (request->wqe.sge_count > MAX_SGE)
        request->wqe.sge_count = 0;
    return true;
}

/* ---- sends ------------------------------------------------------------------------------- */

static void submit_send(struct uverbs_send_queue *queue, const struct request *request,
                        picoseconds now)
{
    const struct uverbs_wqe *wqe = &request->wqe;
    struct uverbs_ticket *ticket = &queue->tickets[(queue->ring.taken - 1) % queue->ring.slots];
    *ticket = (struct uverbs_ticket){.wr_id = wqe->wr_id, .posted = queue->ring.taken};
    bool is_inline = wqe->flags & UVERBS_INLINE && wqe->inline_bytes <= queue->inline_bytes;
    struct send_request send = {
        .wr_id = (uintptr_t)ticket,
        .verb = wqe->verb,
        .unsignaled = !(wqe->flags & UVERBS_SIGNALED),
        .solicited = wqe->flags & UVERBS_SOLICITED,
        .sges = request->sges,
        .sge_count = is_inline ? 0 : wqe->sge_count,
        .inlined = is_inline ? request->inlined : NULL,
        .inlined_bytes = is_inline ? wqe->inline_bytes : 0,
        .copied = is_inline && wqe->flags & UVERBS_COPIED,
        .remote_addr = wqe->remote_addr,
        .rkey = wqe->rkey,
        .imm_data = wqe->imm_data,
        .compare_add = wqe->compare_add,
        .swap = wqe->swap,
        .is_datagram = queue->is_datagram,
        .remote_address = wqe->address,
        .remote_qpn = wqe->qpn,
        .remote_qkey = wqe->qkey,
        .sl = (wqe->sl ? wqe->sl : queue->client->default_sl) % SLS,
    };
    verbs_submit_send(queue->qp, &send, now);
}

static void take_sends(struct uverbs_send_queue *queue, picoseconds now)
{
    struct request request;
    __atomic_store_n(&queue->ring.shared->rung, 0, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < queue->ring.slots && take(&queue->ring, &request); i++)
        submit_send(queue, &request, now);
}

/* ---- receives ---------------------------------------------------------------------------- */

static void submit_receive(struct uverbs_receive_queue *queue, const struct request *request,
                           picoseconds now)
{
    struct uverbs_ticket *ticket = queue->free;
    if (!ticket)
        return;
    queue->free = ticket->next_free;
    ticket->wr_id = request->wqe.wr_id;
    uint64_t id = (uintptr_t)ticket;
    bool is_posted =
        queue->qp ? verbs_submit_recv(queue->qp, id, request->sges, request->wqe.sge_count, now)
                  : verbs_submit_srq_recv(queue->srq, id, request->sges, request->wqe.sge_count);
    if (!is_posted)
        uverbs_free_ticket(ticket);
}

void uverbs_drop_receive(uint64_t wr_id)
{
    struct uverbs_ticket *ticket = (struct uverbs_ticket *)(uintptr_t)wr_id; // NOLINT
    struct uverbs_receive_queue *queue = ticket->receives;
    uverbs_free_ticket(ticket);
    __atomic_store_n(&queue->ring.shared->dropped, ++queue->dropped, __ATOMIC_RELEASE);
}

static void take_receives(struct uverbs_receive_queue *queue, picoseconds now)
{
    struct request request;
    __atomic_store_n(&queue->ring.shared->rung, 0, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < queue->ring.slots && take(&queue->ring, &request); i++)
        submit_receive(queue, &request, now);
}

/* ---- doorbells ------------------------------------------------------------------------------ */

static void answer_doorbell(struct uverbs_client *client, uint32_t doorbell, picoseconds now)
{
    uint32_t handle = doorbell / 2 % UVERBS_HANDLES;
    if (doorbell % 2 && client->receives[handle])
        take_receives(client->receives[handle], now);
    else if (doorbell % 2 == 0 && client->sends[handle])
        take_sends(client->sends[handle], now);
}

void uverbs_take_requests_of(struct uverbs_client *client, picoseconds now)
{
    const struct uverbs_session *session = client->session;
    uint32_t rings = load(&session->rings);
    if (rings - client->rings_taken > UVERBS_DOORBELLS) /* nonsense */
        client->rings_taken = rings - UVERBS_DOORBELLS;
    for (; client->rings_taken != rings; client->rings_taken++) {
        uint32_t place = client->rings_taken % UVERBS_DOORBELLS;
        answer_doorbell(client, load(&session->doorbells[place]), now);
    }
}

void uverbs_take_requests(struct uverbs_server *server, picoseconds now)
{
    for (struct uverbs_client *client = server->clients; client; client = client->next)
        if (now >= client->busy_until)
            uverbs_take_requests_of(client, now);
}
