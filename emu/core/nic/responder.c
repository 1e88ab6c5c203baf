/* The responder's rules:
 *
 *  - PSN as expected: check, execute, and acknowledge when AckReq is set.
 *  - PSN ahead: the recovery scheme decides whether to keep the packet or to request it again.
 *  - PSN behind: a duplicate. A SEND or WRITE is not executed again, but acknowledged
 *    with the newest good PSN, since the sender has missed that ACK. A READ is answered again. An
 *    atomic is answered with its first result.
 *  - FIRST and ONLY begin a message, MIDDLE and LAST continue one. FIRST and
 *    MIDDLE carry exactly an MTU, LAST at least a byte, and the packets of a WRITE together the
 *    length in its RETH. Otherwise NAK invalid request.
 *  - Key, bounds and access are checked for the whole message at its first packet, before a
 *    byte is written. Otherwise NAK remote access error.
 *  - A key may be invalidated while a message arrives or a READ is answered. The next packet that
 *    needs it then gets NAK remote access error.
 *  - A SEND or immediate data without a posted receive: RNR NAK, and the packets are dropped until
 *    it is sent again. A receive whose memory is no longer registered: NAK remote operational
 *    error, and the receive completes with LOC_PROT_ERR.
 *  - Too many outstanding READs and atomics, or an atomic that is not aligned: NAK invalid request.
 *  - After any NAK but PSN sequence error and RNR the queue pair has failed. READs before the NAK
 *    are still answered, because the requester ignores the NAK while a response is missing.
 *
 * An unreliable connection has the same checks and no NAKs. If a check fails or a packet is lost,
 * the whole message is dropped. An error on the receiver's own side is different: a receive
 * without memory ends the queue pair as on a reliable connection (IBTA vol 1, 9.9.3, errors of
 * class A).
 *
 * Left out: FLUSH and ATOMIC WRITE. */
#include "nic/responder.h"

#include <string.h>

#include "nic/delivery.h"
#include "nic/nic.h"
#include "nic/notification_point.h"
#include "nic/psn.h"
#include "nic/qp_error.h"
#include "nic/receive_queue.h"
#include "nic/recovery.h"
#include "nic/response_queue.h"

/* ---- may this packet be executed? Each check returns AETH_ACK or why not. --- */

static bool length_fits_opcode(const struct qp *qp, const struct packet *packet)
{
    uint32_t mtu = qp->config.mtu, bytes = packet->payload_bytes;
    if (packet->type == PACKET_READ || packet->type == PACKET_ATOMIC)
        return bytes == 0;
    if (!packet->ends)
        return bytes == mtu;
    return bytes <= mtu && (packet->starts || bytes > 0);
}

/* A transfer of zero bytes needs no memory. */
static bool may_access(const struct qp *qp, uint32_t key, uint64_t va, uint32_t length,
                       enum access access, uint8_t **bytes)
{
    if (qp->config.denied & access)
        return false;
    return mr_find(&qp->nic->mrs, qp->config.pd, key, va, length, access, bytes) || length == 0;
}

static uint8_t begin_write(struct qp *qp, const struct reth *reth)
{
    struct responder *responder = &qp->responder;
    if (reth->dma_length > MESSAGE_MAX)
        return AETH_NAK_INVALID_REQUEST;
    responder->remaining = reth->dma_length;
    responder->key = reth->rkey;
    responder->va = reth->va;
    return AETH_ACK;
}

/* A message that begins again still has its receive. */
static uint8_t find_receive(struct qp *qp)
{
    struct responder *responder = &qp->responder;
    if (!responder->receive)
        responder->receive = receive_queue_take(qp);
    return responder->receive ? AETH_ACK : (uint8_t)(AETH_RNR_NAK | qp->config.min_rnr_timer);
}

static uint8_t begin_send(struct qp *qp)
{
    struct responder *responder = &qp->responder;
    uint8_t syndrome = find_receive(qp);
    if (syndrome != AETH_ACK)
        return syndrome;
    responder->remaining = responder->receive->length;
    return AETH_ACK;
}

static uint8_t begin(struct qp *qp, const struct packet *packet)
{
    qp->responder.received = 0;
    return packet->type == PACKET_WRITE ? begin_write(qp, &packet->reth) : begin_send(qp);
}

/* Finds where the message begins in the host. NULL: it goes into several pieces, or is elided. */
static uint8_t find_memory(const struct qp *qp, const struct packet *packet, uint8_t **memory)
{
    const struct responder *responder = &qp->responder;
    if (packet->type == PACKET_SEND)
        return receive_find_memory(qp, responder->receive, memory)
                   ? AETH_ACK
                   : AETH_NAK_REMOTE_OPERATIONAL_ERROR;
    uint32_t length = responder->received + responder->remaining;
    return may_access(qp, responder->key, responder->va, length, ACCESS_REMOTE_WRITE, memory)
               ? AETH_ACK
               : AETH_NAK_REMOTE_ACCESS_ERROR;
}

static uint8_t fits_message(const struct responder *responder, const struct packet *packet)
{
    bool exhausts = packet->payload_bytes == responder->remaining;
    bool fits = packet->payload_bytes <= responder->remaining &&
                (packet->type == PACKET_SEND || packet->ends == exhausts);
    return fits ? AETH_ACK : AETH_NAK_INVALID_REQUEST;
}

/* Checks for the last packet: the key to invalidate, and the receive for immediate data. */
static uint8_t admit_end(struct qp *qp, const struct packet *packet)
{
    if ((packet->headers & HEADER_IETH) && !mr_has(&qp->nic->mrs, qp->config.pd, packet->immediate))
        return AETH_NAK_REMOTE_ACCESS_ERROR;
    if (packet->type == PACKET_WRITE && packet_has_immediate(packet))
        return find_receive(qp);
    return AETH_ACK;
}

static uint8_t admit_payload(struct qp *qp, const struct packet *packet, uint8_t **memory)
{
    uint8_t syndrome = packet->starts ? begin(qp, packet) : AETH_ACK;
    if (syndrome == AETH_ACK)
        syndrome = find_memory(qp, packet, memory);
    if (syndrome == AETH_ACK)
        syndrome = fits_message(&qp->responder, packet);
    return syndrome == AETH_ACK && packet->ends ? admit_end(qp, packet) : syndrome;
}

static uint8_t admit_read(struct qp *qp, const struct packet *packet)
{
    const struct reth *reth = &packet->reth;
    uint8_t *bytes;
    if (reth->dma_length > MESSAGE_MAX || qp->responses.capacity == 0)
        return AETH_NAK_INVALID_REQUEST;
    return may_access(qp, reth->rkey, reth->va, reth->dma_length, ACCESS_REMOTE_READ, &bytes)
               ? AETH_ACK
               : AETH_NAK_REMOTE_ACCESS_ERROR;
}

static uint8_t admit_atomic(struct qp *qp, const struct packet *packet, uint8_t **bytes)
{
    const struct atomic_eth *atomic = &packet->atomic;
    if (atomic->va % ATOMIC_BYTES != 0 || qp->responses.capacity == 0)
        return AETH_NAK_INVALID_REQUEST;
    bool granted = mr_find(&qp->nic->mrs, qp->config.pd, atomic->rkey, atomic->va, ATOMIC_BYTES,
                           ACCESS_REMOTE_ATOMIC, bytes);
    return granted ? AETH_ACK : AETH_NAK_REMOTE_ACCESS_ERROR;
}

static bool is_in_turn(const struct qp *qp, const struct packet *packet)
{
    const struct responder *responder = &qp->responder;
    bool in_turn = packet->starts ? !responder->in_message
                                  : responder->in_message && responder->type == packet->type;
    return packet->type != PACKET_UNSUPPORTED && in_turn && length_fits_opcode(qp, packet);
}

/* ---- executing --------------------------------------------------------------- */

static void note_write(struct nic *nic)
{
    nic->writes++;
    if (nic->written)
        *nic->written = true;
}

/* Payload or memory may be elided; then only the length is counted. */
static void take_payload(struct qp *qp, const struct packet *packet, uint8_t *memory)
{
    struct responder *responder = &qp->responder;
    uint32_t offset = responder->received, bytes = packet->payload_bytes;
    responder->remaining -= bytes;
    responder->received += bytes;
    if (!packet->payload)
        return;
    if (packet->type == PACKET_SEND)
        receive_scatter(qp, responder->receive, memory, offset, packet->payload, bytes);
    else if (memory)
        memcpy(memory + offset, packet->payload, bytes);
    if (packet->type == PACKET_WRITE && packet->ends)
        note_write(qp->nic);
}

static void finish_receive(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct responder *responder = &qp->responder;
    struct receive *receive = responder->receive;
    responder->receive = NULL;
    receive->received_bytes = responder->received;
    receive->has_immediate = packet_has_immediate(packet);
    receive->has_invalidated = packet->headers & HEADER_IETH;
    receive->immediate = packet->immediate;
    receive->by_write = packet->type == PACKET_WRITE;
    receive->solicited = packet->bth.solicited;
    receive->has_grh = false;
    receive->src_qp = qp->remote.qpn;
    if (receive->has_invalidated)
        mr_invalidate(&qp->nic->mrs, qp->config.pd, packet->immediate);
    receive_complete(qp, receive, STATUS_SUCCESS, now);
}

static void record_delivery(struct qp *qp, const struct packet *packet, picoseconds now)
{
    if (qp->config.transport != TRANSPORT_RC) {
        if (packet->ends)
            delivery_record_late(qp, packet->bth.psn, qp->responder.received, now);
    } else if (qp->recovery->resumes)
        delivery_record(qp, packet->payload_bytes, packet->ends, now);
    else if (packet->ends)
        delivery_record(qp, qp->responder.received, true, now);
}

static void move_on(struct responder *responder, uint32_t packets)
{
    responder->expected = (responder->expected + packets) & PSN_MASK;
    responder->refused = false;
}

static void count_message(struct responder *responder)
{
    responder->msn = (responder->msn + 1) & PSN_MASK;
}

/* `memory`: as it was found for the packet. */
static void execute_payload(struct qp *qp, const struct packet *packet, uint8_t *memory,
                            picoseconds now)
{
    struct responder *responder = &qp->responder;
    if (packet->starts)
        responder->first_psn = responder->expected;
    if (packet->payload_bytes)
        take_payload(qp, packet, memory);
    move_on(responder, 1);
    responder->type = packet->type;
    responder->in_message = !packet->ends;
    if (packet->ends)
        count_message(responder);
    if (packet->ends && (packet->type == PACKET_SEND || packet_has_immediate(packet)))
        finish_receive(qp, packet, now);
    record_delivery(qp, packet, now);
}

static uint32_t packets_of(const struct qp *qp, uint32_t length)
{
    return length ? (length - 1) / qp->config.mtu + 1 : 1;
}

static void execute_read(struct qp *qp, const struct packet *packet, struct resource *resource)
{
    count_message(&qp->responder);
    resource->va = packet->reth.va;
    resource->length = packet->reth.dma_length;
    resource->rkey = packet->reth.rkey;
    resource->ready_at = qp->nic->clock->now + qp->nic->config.path.read_ps;
    resource->packets = packets_of(qp, resource->length);
    resource->msn = qp->responder.msn;
    move_on(&qp->responder, resource->packets);
    response_queue_begin(qp, resource, 0, resource->packets);
}

/* Executes an atomic. Values in memory have the host's byte order. Returns the original value. */
static uint64_t act(const struct packet *packet, uint8_t *bytes)
{
    const struct atomic_eth *atomic = &packet->atomic;
    uint64_t original = 0;
    if (!bytes)
        return original;
    memcpy(&original, bytes, sizeof original);
    uint64_t result = original;
    if (packet->bth.opcode == OPCODE_FETCH_ADD)
        result = original + atomic->swap_add;
    else if (original == atomic->compare)
        result = atomic->swap_add;
    memcpy(bytes, &result, sizeof result);
    return original;
}

static void execute_atomic(struct qp *qp, const struct packet *packet, uint8_t *bytes,
                           struct resource *resource)
{
    count_message(&qp->responder);
    resource->is_atomic = true;
    resource->original = act(packet, bytes);
    note_write(qp->nic);
    resource->packets = 1;
    resource->msn = qp->responder.msn;
    move_on(&qp->responder, 1);
    response_queue_begin(qp, resource, 0, 1);
}

/* ---- refusing -------------------------------------------------------------------- */

static enum status receive_status(const struct responder *responder, const struct packet *packet,
                                  uint8_t syndrome)
{
    if (syndrome == AETH_NAK_REMOTE_OPERATIONAL_ERROR)
        return STATUS_LOC_PROT_ERR;
    bool too_long = packet->type == PACKET_SEND && packet->payload_bytes > responder->remaining;
    return too_long ? STATUS_LOC_LEN_ERR : STATUS_WR_FLUSH_ERR;
}

static void fail_receive(struct qp *qp, const struct packet *packet, uint8_t syndrome,
                         picoseconds now)
{
    struct receive *receive = qp->responder.receive;
    if (!receive)
        return;
    enum status status = receive_status(&qp->responder, packet, syndrome);
    qp->nic->counters.resp_local_length_error += status == STATUS_LOC_LEN_ERR;
    qp->responder.receive = NULL;
    receive_complete(qp, receive, status, now);
}

static void count_refusal(struct nic_counters *counters, uint8_t syndrome)
{
    if (syndrome == AETH_NAK_REMOTE_ACCESS_ERROR)
        counters->resp_remote_access_errors++;
    else if (syndrome == AETH_NAK_REMOTE_OPERATIONAL_ERROR)
        counters->resp_remote_operation_errors++;
    else
        counters->resp_invalid_request++;
}

/* Completes the receive of the message with an error, and fails the queue pair. */
static void give_up(struct qp *qp, const struct packet *packet, uint8_t syndrome, picoseconds now)
{
    if (syndrome == AETH_NAK_REMOTE_ACCESS_ERROR)
        note_event(qp->watch, NIC_QP_ACCESS_ERROR);
    else if (!qp->responder.receive)
        note_event(qp->watch, NIC_QP_REQ_ERROR);
    count_refusal(&qp->nic->counters, syndrome);
    fail_receive(qp, packet, syndrome, now);
    qp_fail_answering(qp, now);
}

static void refuse(struct qp *qp, const struct packet *packet, uint8_t syndrome, picoseconds now)
{
    response_queue_owe(qp, syndrome);
    if ((syndrome & AETH_TYPE) == AETH_RNR_NAK) {
        qp->nic->counters.out_of_buffer++;
        qp->responder.refused = true;
        return;
    }
    give_up(qp, packet, syndrome, now);
}

static void fail(struct timer *timer, picoseconds now)
{
    struct responder *responder = container_of(timer, struct responder, failing);
    struct qp *qp = container_of(responder, struct qp, responder);
    qp_fail_answering(qp, now);
    port_kick(&qp->nic->port, now);
}

void responder_init(struct qp *qp)
{
    timer_init(&qp->responder.failing, fail);
}

/* ---- reliable connections ---------------------------------------------------------- */

static uint8_t execute_fetch(struct qp *qp, const struct packet *packet)
{
    uint8_t *bytes;
    bool is_read = packet->type == PACKET_READ;
    uint8_t syndrome = is_read ? admit_read(qp, packet) : admit_atomic(qp, packet, &bytes);
    if (syndrome != AETH_ACK)
        return syndrome;
    struct resource *resource = response_queue_add(qp);
    if (!resource)
        return AETH_NAK_INVALID_REQUEST;
    if (is_read)
        execute_read(qp, packet, resource);
    else
        execute_atomic(qp, packet, bytes, resource);
    return AETH_ACK;
}

static void receive_expected(struct qp *qp, const struct packet *packet, picoseconds now)
{
    uint8_t syndrome = AETH_NAK_INVALID_REQUEST, *memory;
    bool is_fetch = packet->type == PACKET_READ || packet->type == PACKET_ATOMIC;
    if (is_in_turn(qp, packet))
        syndrome = is_fetch ? execute_fetch(qp, packet) : admit_payload(qp, packet, &memory);
    if (syndrome != AETH_ACK) {
        refuse(qp, packet, syndrome, now);
        return;
    }
    if (is_fetch)
        return;
    if (packet->bth.ack_req || response_queue_has_nak(qp))
        response_queue_owe(qp, AETH_ACK);
    execute_payload(qp, packet, memory, now);
}

/* Executes packets that arrived too early and are expected now. */
static void receive_kept(struct qp *qp, picoseconds now)
{
    struct packet packet;
    struct frame *frame;
    while (qp->state != QP_ERR && !qp->responder.refused &&
           (frame = qp->recovery->take_kept(qp, &packet))) {
        receive_expected(qp, &packet, now);
        frame_free(qp->nic->pool, frame);
    }
}

/* Answers a duplicate of a READ, or of its last part. */
static void replay_read(struct qp *qp, const struct packet *packet)
{
    struct resource *resource = response_queue_find(qp, packet->bth.psn, false);
    if (!resource)
        return;
    uint32_t from = (packet->bth.psn - resource->first_psn) & PSN_MASK;
    uint64_t offset = (uint64_t)from * qp->config.mtu;
    const struct reth *reth = &packet->reth;
    if (reth->rkey == resource->rkey && reth->va == resource->va + offset &&
        reth->dma_length <= resource->length - offset)
        response_queue_begin(qp, resource, from, packets_of(qp, reth->dma_length));
}

static void replay_atomic(struct qp *qp, uint32_t psn)
{
    struct resource *resource = response_queue_find(qp, psn, true);
    if (resource)
        response_queue_begin(qp, resource, 0, 1);
}

static void receive_duplicate(struct qp *qp, const struct packet *packet)
{
    qp->nic->counters.duplicate_request++;
    if (packet->type == PACKET_READ)
        replay_read(qp, packet);
    else if (packet->type == PACKET_ATOMIC)
        replay_atomic(qp, packet->bth.psn);
    else if (!response_queue_has_nak(qp))
        response_queue_owe(qp, AETH_ACK);
}

static bool receive_reliable(struct qp *qp, const struct packet *packet, struct frame *frame,
                             picoseconds now)
{
    int32_t ahead = psn_ahead(packet->bth.psn, qp->responder.expected);
    if (ahead > 0) {
        qp->nic->counters.out_of_sequence++;
        return qp->recovery->ahead(qp, packet, frame);
    }
    if (ahead < 0) {
        receive_duplicate(qp, packet);
        return false;
    }
    receive_expected(qp, packet, now);
    if (qp->recovery->take_kept)
        receive_kept(qp, now);
    return false;
}

void responder_begin_again(struct qp *qp)
{
    struct responder *responder = &qp->responder;
    if (!responder->in_message)
        return;
    responder->expected = responder->first_psn;
    responder->in_message = false;
}

/* ---- unreliable connections ---------------------------------------------------------- */

/* Drops the current message. Its receive remains for the next one. */
static void drop_message(struct qp *qp)
{
    qp->responder.in_message = false;
}

static void receive_unreliable(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct responder *responder = &qp->responder;
    if (packet->bth.psn != responder->expected) {
        qp->nic->counters.out_of_sequence++;
        drop_message(qp);
    }
    if (packet->starts)
        drop_message(qp);
    responder->expected = packet->bth.psn;
    uint8_t syndrome = AETH_NAK_INVALID_REQUEST, *memory;
    if (is_in_turn(qp, packet))
        syndrome = admit_payload(qp, packet, &memory);
    if (syndrome == AETH_ACK) {
        execute_payload(qp, packet, memory, now);
        return;
    }
    if (syndrome == AETH_NAK_REMOTE_OPERATIONAL_ERROR) {
        give_up(qp, packet, syndrome, now);
        return;
    }
    qp->nic->counters.out_of_buffer += (syndrome & AETH_TYPE) == AETH_RNR_NAK;
    move_on(responder, 1);
    drop_message(qp);
}

/* ---- arriving -------------------------------------------------------------------------- */

bool responder_receive(struct qp *qp, const struct packet *packet, struct frame *frame,
                       picoseconds now)
{
    if (packet->ce)
        notification_point_see(qp, packet, now);
    if (timer_is_set(&qp->responder.failing))
        return false;
    if (qp->config.transport == TRANSPORT_RC)
        return receive_reliable(qp, packet, frame, now);
    receive_unreliable(qp, packet, now);
    return false;
}
