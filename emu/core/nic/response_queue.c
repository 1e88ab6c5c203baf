/* Answers leave in the order of the requests:
 *
 *     | READ response, .. | answer to an atomic | READ response, .. | ACK or NAK |
 *      ──────────────────── a ring of the last ────────────────────     at most one
 *
 * The other end may have max_dest_rd_atomic READs and atomics outstanding. The ring has at
 * least as many places.
 *
 * The execution of a READ or atomic cancels a waiting ACK, since the response acknowledges as much.
 * A later ACK waits for all responses before it, and replaces an ACK that still waits. An ACK for a
 * duplicate does not replace a NAK.
 *
 * READs and atomics stay in the ring after their answers, so that duplicates can be answered: an
 * atomic with its first result, a READ from memory as it is now. READ responses are sent as data of
 * the queue pair, under its congestion control. All other answers are small, and leave before data.
 */
#include "nic/response_queue.h"

#include <string.h>

#include "nic/credits.h"
#include "nic/nic.h"
#include "nic/psn.h"
#include "nic/qp_frame.h"
#include "nic/receive_queue.h"
#include "nic/recovery.h"
#include "nic/turns.h"

bool response_queue_init(struct qp *qp)
{
    struct response_queue *responses = &qp->responses;
    responses->places = responses->capacity = qp->config.max_dest_rd_atomic;
    if (responses->places)
        responses->ring = arena_take(qp->nic->arena, responses->places, sizeof *responses->ring);
    return !responses->places || responses->ring;
}

void response_queue_free(struct qp *qp)
{
    struct response_queue *responses = &qp->responses;
    arena_give_back(qp->nic->arena, responses->ring, responses->places, sizeof *responses->ring);
}

void response_queue_reset(struct qp *qp)
{
    struct response_queue *responses = &qp->responses;
    for (uint32_t i = 0; i < responses->places; i++)
        responses->ring[i] = (struct resource){.answered = true};
    responses->pending = 0;
    responses->first = NULL;
    responses->ack_owed = responses->becn_owed = false;
}

void response_queue_forget(struct qp *qp)
{
    struct response_queue *responses = &qp->responses;
    for (uint32_t i = 0; i < responses->places; i++)
        responses->ring[i].stream = responses->ring[i].repair = (struct run){0};
    responses->pending = 0;
    responses->first = NULL;
}

bool response_queue_limit(struct qp *qp, uint32_t outstanding)
{
    if (outstanding > qp->responses.places)
        return false;
    qp->responses.capacity = outstanding;
    return true;
}

/* ---- adding ------------------------------------------------------------------------ */

static bool has_more(const struct run *run)
{
    return run->next < run->end;
}

static bool is_pending(const struct resource *resource)
{
    return has_more(&resource->stream) || has_more(&resource->repair);
}

/* The run of a pending resource that is sent next. */
static struct run *next_run(struct resource *resource)
{
    return has_more(&resource->repair) ? &resource->repair : &resource->stream;
}

/* Finds the oldest resource with something to send. */
static void find_first(struct response_queue *responses)
{
    uint32_t place = responses->newest;
    responses->first = NULL;
    if (responses->pending == 0)
        return;
    do
        place = (place + 1) % responses->places;
    while (!is_pending(&responses->ring[place]));
    responses->first = &responses->ring[place];
}

bool response_queue_has_data(const struct qp *qp)
{
    const struct response_queue *responses = &qp->responses;
    return responses->first && !responses->first->is_atomic;
}

picoseconds response_queue_ready_at(const struct qp *qp)
{
    return response_queue_has_data(qp) ? qp->responses.first->ready_at : NEVER;
}

bool response_queue_has_acknowledgement(const struct qp *qp)
{
    const struct response_queue *responses = &qp->responses;
    return responses->first ? responses->first->is_atomic : responses->ack_owed;
}

void response_queue_owe_nak(struct qp *qp, uint32_t psn, uint8_t syndrome)
{
    qp->responses.ack_owed = true;
    qp->responses.syndrome = syndrome;
    qp->responses.nak_psn = psn;
    turns_join(qp, TRAFFIC_ACKNOWLEDGE);
}

void response_queue_owe(struct qp *qp, uint8_t syndrome)
{
    response_queue_owe_nak(qp, qp->responder.expected, syndrome);
}

bool response_queue_has_nak(const struct qp *qp)
{
    return qp->responses.ack_owed && (qp->responses.syndrome & AETH_TYPE) != 0;
}

struct resource *response_queue_add(struct qp *qp)
{
    struct response_queue *responses = &qp->responses;
    if (responses->capacity == 0)
        return NULL;
    uint32_t oldest = responses->newest + 1 + responses->places - responses->capacity;
    if (!responses->ring[oldest % responses->places].answered)
        return NULL;
    uint32_t place = (responses->newest + 1) % responses->places;
    struct resource *resource = &responses->ring[place];
    /* The oldest may be repeating its answer to a duplicate request: it gives that up. */
    responses->pending -= is_pending(resource);
    responses->newest = place;
    responses->ack_owed = false;
    *resource = (struct resource){.first_psn = qp->responder.expected};
    find_first(responses);
    return resource;
}

/* Extends a run by another. The part already sent is left out. */
static void extend_run(struct run *run, const struct run *other)
{
    if (!has_more(run)) {
        *run = *other;
        return;
    }
    run->from = run->next = run->next < other->next ? run->next : other->next;
    run->end = run->end > other->end ? run->end : other->end;
}

void response_queue_begin(struct qp *qp, struct resource *resource, uint32_t from, uint32_t packets)
{
    struct run *stream = &resource->stream;
    struct run run = {.from = from, .next = from, .end = from + packets};
    qp->responses.pending += !is_pending(resource);
    bool apart = run.end <= stream->next || run.from >= stream->end;
    extend_run(has_more(stream) && apart ? &resource->repair : stream, &run);
    find_first(&qp->responses);
    turns_join(qp, resource->is_atomic ? TRAFFIC_ACKNOWLEDGE : TRAFFIC_DATA);
}

struct resource *response_queue_find(struct qp *qp, uint32_t psn, bool is_atomic)
{
    struct response_queue *responses = &qp->responses;
    for (uint32_t i = 0; i < responses->places; i++) {
        struct resource *resource = &responses->ring[i];
        if (resource->is_atomic == is_atomic &&
            ((psn - resource->first_psn) & PSN_MASK) < resource->packets)
            return resource;
    }
    return NULL;
}

/* ---- sending ------------------------------------------------------------------------ */

static struct packet headers(const struct qp *qp, uint8_t opcode, uint32_t psn)
{
    return (struct packet){.bth = {.opcode = opcode,
                                   .mig_req = true,
                                   .becn = qp->responses.becn_owed,
                                   .pkey = qp->config.pkey,
                                   .dest_qp = qp->remote.qpn,
                                   .psn = psn & PSN_MASK},
                           .aeth = {.syndrome = AETH_ACK, .msn = qp->responder.msn}};
}

/* A frame with these headers. If they carry BECN, no other answer has to. */
static struct frame *answer(struct qp *qp, const struct packet *packet, uint32_t payload)
{
    struct frame *frame = qp_frame(qp, packet, payload);
    if (frame && packet->bth.becn) {
        qp->responses.becn_owed = false;
        qp->nic->counters.np_becn_sent++;
    }
    return frame;
}

static uint32_t response_payload(const struct qp *qp, const struct resource *resource,
                                 const struct run *run)
{
    uint32_t left = resource->length - run->next * qp->config.mtu;
    return left < qp->config.mtu ? left : qp->config.mtu;
}

static uint8_t response_opcode(const struct run *run)
{
    static const uint8_t opcodes[] = {OPCODE_READ_RESPONSE_MIDDLE, OPCODE_READ_RESPONSE_LAST,
                                      OPCODE_READ_RESPONSE_FIRST, OPCODE_READ_RESPONSE_ONLY};
    bool first = run->next == run->from, last = run->next + 1 == run->end;
    return opcodes[first << 1 | last];
}

uint32_t response_queue_data_bytes(const struct qp *qp)
{
    struct resource *resource = qp->responses.first;
    const struct run *run = next_run(resource);
    uint32_t payload = response_payload(qp, resource, run);
    return packet_header_bytes(response_opcode(run)) + payload + (-payload & 3);
}

/* Counts one response of the resource as sent. The answers after it may follow. */
static void answered_one(struct qp *qp, struct resource *resource)
{
    struct response_queue *responses = &qp->responses;
    next_run(resource)->next++;
    if (is_pending(resource))
        return;
    resource->answered = true;
    responses->pending--;
    find_first(responses);
    if (response_queue_has_acknowledgement(qp))
        turns_join(qp, TRAFFIC_ACKNOWLEDGE);
}

/* Finds the bytes of a response in the host; NULL: they are elided. False when their region is
 * gone. */
static bool find_payload(const struct qp *qp, const struct resource *resource,
                         const struct run *run, uint32_t payload, uint8_t **bytes)
{
    uint64_t va = resource->va + (uint64_t)run->next * qp->config.mtu;
    return mr_find(&qp->nic->mrs, qp->config.pd, resource->rkey, va, payload, ACCESS_REMOTE_READ,
                   bytes) ||
           resource->length == 0;
}

/* The response with that PSN cannot be sent, because its region was invalidated; a NAK is sent
 * instead. The queue pair fails in the next event of the clock, since nothing may complete while a
 * packet is handed to the port. */
static void refuse_read(struct qp *qp, uint32_t psn, picoseconds now)
{
    response_queue_forget(qp);
    response_queue_owe_nak(qp, psn, AETH_NAK_REMOTE_ACCESS_ERROR);
    qp->nic->counters.resp_remote_access_errors++;
    timer_set(qp->nic->clock, &qp->responder.failing, now);
}

struct frame *response_queue_send_data(struct qp *qp, picoseconds now)
{
    struct resource *resource = qp->responses.first;
    const struct run *run = next_run(resource);
    uint32_t payload = response_payload(qp, resource, run), pad = -payload & 3;
    uint8_t *bytes;
    if (!find_payload(qp, resource, run, payload, &bytes)) {
        refuse_read(qp, (resource->first_psn + run->next) & PSN_MASK, now);
        return NULL;
    }
    struct packet packet = headers(qp, response_opcode(run), resource->first_psn + run->next);
    packet.bth.pad = (uint8_t)pad;
    packet.aeth.msn = resource->msn;
    struct frame *frame = answer(qp, &packet, payload + pad);
    if (!frame)
        return NULL;
    if (frame_is_whole(frame)) {
        uint8_t *body = nic_frame_body(qp->nic, frame) + packet_header_bytes(packet.bth.opcode);
        if (payload)
            memcpy(body, bytes, payload);
        memset(body + payload, 0, pad);
    }
    qp->nic->framing->seal(&qp->path, TRAFFIC_DATA, frame);
    answered_one(qp, resource);
    return frame;
}

static bool has_sack(const struct qp *qp)
{
    return qp->recovery->take_kept && qp->responses.syndrome == AETH_NAK_PSN_SEQUENCE_ERROR;
}

uint32_t response_queue_acknowledgement_bytes(const struct qp *qp)
{
    const struct response_queue *responses = &qp->responses;
    if (responses->pending)
        return BTH_BYTES + AETH_BYTES + ATOMIC_ACK_ETH_BYTES;
    return BTH_BYTES + AETH_BYTES + (has_sack(qp) ? SACK_BYTES : 0);
}

static struct frame *acknowledge_atomic(struct qp *qp)
{
    struct resource *resource = qp->responses.first;
    struct packet packet = headers(qp, OPCODE_ATOMIC_ACKNOWLEDGE, resource->first_psn);
    packet.aeth.msn = resource->msn;
    packet.original = resource->original;
    struct frame *frame = answer(qp, &packet, 0);
    if (frame)
        answered_one(qp, resource);
    return frame;
}

static uint8_t syndrome_to_send(const struct qp *qp)
{
    const struct response_queue *responses = &qp->responses;
    bool tells_credits = responses->syndrome == AETH_ACK && qp->config.credits && !qp->config.srq;
    return tells_credits ? credits_code(receive_queue_count(qp)) : responses->syndrome;
}

static struct frame *acknowledge(struct qp *qp)
{
    struct response_queue *responses = &qp->responses;
    /* An ACK carries the PSN of the newest accepted packet, a NAK that of the expected one. */
    uint32_t psn =
        responses->syndrome == AETH_ACK ? qp->responder.expected - 1 : responses->nak_psn;
    struct packet packet = headers(qp, OPCODE_ACKNOWLEDGE, psn);
    packet.aeth.syndrome = syndrome_to_send(qp);
    packet.has_sack = has_sack(qp);
    packet.sack_first = responses->sack_first;
    packet.sack_end = responses->sack_end;
    struct frame *frame = answer(qp, &packet, 0);
    if (frame)
        responses->ack_owed = false;
    return frame;
}

struct frame *response_queue_acknowledge(struct qp *qp)
{
    struct frame *frame = qp->responses.pending ? acknowledge_atomic(qp) : acknowledge(qp);
    if (frame)
        qp->nic->framing->seal(&qp->path, TRAFFIC_ACKNOWLEDGE, frame);
    return frame;
}

struct frame *response_queue_notify(struct qp *qp)
{
    struct packet packet = {.bth = {.opcode = OPCODE_CNP,
                                    .pkey = qp->config.pkey,
                                    .becn = true,
                                    .dest_qp = qp->remote.qpn}};
    struct frame *frame = qp_frame(qp, &packet, 0);
    if (!frame)
        return NULL;
    qp->nic->framing->seal(&qp->path, TRAFFIC_CNP, frame);
    qp->nic->counters.np_cnp_sent++;
    return frame;
}
