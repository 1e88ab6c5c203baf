/* The responder's rules (IBTA vol 1, 9.7.4 and 9.7.5):
 *
 *  - PSN as expected: check, execute, and acknowledge when AckReq is set.
 *  - PSN ahead: drop. The first time, a NAK asks for the expected packet; no
 *    other NAK follows until it has come.
 *  - PSN behind: a duplicate. Not executed again; acknowledged with the newest
 *    good PSN, for the sender has missed that.
 *  - FIRST and ONLY begin a message, MIDDLE and LAST go on with one; FIRST and
 *    MIDDLE carry exactly an MTU, LAST at least a byte, and a WRITE's packets
 *    as much as its RETH says. Otherwise NAK invalid request.
 *  - A WRITE's key, bounds and access are checked for the whole message at its
 *    first packet, before a byte is written. Otherwise NAK remote access error.
 *  - A SEND that finds no receive: RNR NAK, and drop until it comes again.
 *  - After a NAK other than PSN sequence error the queue pair has failed.
 *
 * One acknowledgement is due at a time: a later one replaces it, as it
 * acknowledges more. Only a NAK is not replaced by an ACK for a duplicate.
 *
 * Left out: READ, atomics, immediate data, and what else packet.c does not know. */
#include "responder.h"

#include <string.h>

#include "nic.h"
#include "psn.h"
#include "requester.h"

void responder_post_receive(struct qp *qp, struct receive *receive)
{
    struct responder *responder = &qp->responder;
    receive->next = NULL;
    if (responder->receives)
        responder->last_receive->next = receive;
    else
        responder->receives = receive;
    responder->last_receive = receive;
}

static void answer(struct qp *qp, uint8_t syndrome)
{
    qp->responder.syndrome = syndrome;
    nic_queue(qp, TRAFFIC_ACKNOWLEDGE);
}

static bool nak_is_due(const struct qp *qp)
{
    return qp->turns[TRAFFIC_ACKNOWLEDGE].waiting && qp->responder.syndrome != AETH_ACK;
}

/* ---- may this packet be executed? Each check returns AETH_ACK or why not. --- */

static bool length_fits_opcode(const struct qp *qp, const struct packet *packet)
{
    uint32_t mtu = qp->config.mtu, bytes = packet->payload_bytes;
    if (!packet->ends)
        return bytes == mtu;
    return bytes <= mtu && (packet->starts || bytes > 0);
}

static uint8_t begin_write(struct qp *qp, const struct reth *reth)
{
    struct responder *responder = &qp->responder;
    if (reth->dma_length > MESSAGE_MAX)
        return AETH_NAK_INVALID_REQUEST;
    responder->remaining = reth->dma_length;
    bool granted = memory_find(&qp->nic->memory, reth->rkey, reth->va, reth->dma_length,
                               ACCESS_REMOTE_WRITE, &responder->into);
    /* A WRITE of nothing needs no memory. */
    return granted || reth->dma_length == 0 ? AETH_ACK : AETH_NAK_REMOTE_ACCESS_ERROR;
}

static uint8_t begin_send(struct qp *qp)
{
    struct responder *responder = &qp->responder;
    struct receive *receive = responder->receives;
    if (!receive)
        return (uint8_t)(AETH_RNR_NAK | qp->config.min_rnr_timer);
    responder->receives = receive->next;
    responder->into = receive->bytes;
    responder->remaining = receive->length;
    return AETH_ACK;
}

static bool fits_message(const struct responder *responder, const struct packet *packet)
{
    if (packet->payload_bytes > responder->remaining)
        return false;
    bool exhausts = packet->payload_bytes == responder->remaining;
    return packet->verb == VERB_SEND || packet->ends == exhausts;
}

static uint8_t admit(struct qp *qp, const struct packet *packet)
{
    struct responder *responder = &qp->responder;
    bool in_turn = packet->starts ? !responder->in_message
                                  : responder->in_message && responder->verb == packet->verb;
    if (packet->type != PACKET_REQUEST || !in_turn || !length_fits_opcode(qp, packet))
        return AETH_NAK_INVALID_REQUEST;
    uint8_t syndrome = AETH_ACK;
    if (packet->starts)
        syndrome = packet->verb == VERB_WRITE ? begin_write(qp, &packet->reth) : begin_send(qp);
    if (syndrome == AETH_ACK && !fits_message(responder, packet))
        return AETH_NAK_INVALID_REQUEST;
    return syndrome;
}

/* ---- executing, or not ------------------------------------------------------ */

/* Payload or memory may be elided; then only the length counts. */
static void take_payload(struct responder *responder, const struct packet *packet)
{
    responder->remaining -= packet->payload_bytes;
    if (!responder->into || !packet->payload)
        return;
    memcpy(responder->into, packet->payload, packet->payload_bytes);
    responder->into += packet->payload_bytes;
}

static void execute(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct responder *responder = &qp->responder;
    if (packet->payload_bytes)
        take_payload(responder, packet);
    responder->expected = psn_next(responder->expected);
    responder->refused = false;
    responder->verb = packet->verb;
    responder->in_message = !packet->ends;
    if (packet->ends)
        responder->msn = (responder->msn + 1) & PSN_MASK;
    if (packet->bth.ack_req || nak_is_due(qp))
        answer(qp, AETH_ACK);
    if (qp->peer)
        requester_delivered(qp->peer, packet->payload_bytes, packet->ends, now);
}

static void refuse(struct qp *qp, uint8_t syndrome, picoseconds now)
{
    struct nic_counters *counters = &qp->nic->counters;
    answer(qp, syndrome);
    if ((syndrome & AETH_TYPE) == AETH_RNR_NAK) {
        counters->out_of_buffer++;
        qp->responder.refused = true;
        return;
    }
    if (syndrome == AETH_NAK_REMOTE_ACCESS_ERROR)
        counters->resp_remote_access_errors++;
    else
        counters->resp_invalid_request++;
    qp_fail(qp, STATUS_WR_FLUSH_ERR, now);
}

static void receive_expected(struct qp *qp, const struct packet *packet, picoseconds now)
{
    uint8_t syndrome = admit(qp, packet);
    if (syndrome == AETH_ACK)
        execute(qp, packet, now);
    else
        refuse(qp, syndrome, now);
}

static void receive_ahead(struct qp *qp)
{
    qp->nic->counters.out_of_sequence++;
    if (qp->responder.refused)
        return;
    qp->responder.refused = true;
    answer(qp, AETH_NAK_PSN_SEQUENCE_ERROR);
}

static void receive_duplicate(struct qp *qp)
{
    qp->nic->counters.duplicate_request++;
    if (!nak_is_due(qp))
        answer(qp, AETH_ACK);
}

void responder_receive(struct qp *qp, const struct packet *packet, picoseconds now)
{
    if (packet->ce)
        notification_see(qp, now);
    int32_t ahead = psn_ahead(packet->bth.psn, qp->responder.expected);
    if (ahead == 0)
        receive_expected(qp, packet, now);
    else if (ahead > 0)
        receive_ahead(qp);
    else
        receive_duplicate(qp);
}

/* ---- what goes back ---------------------------------------------------------- */

struct frame *responder_acknowledge(struct qp *qp)
{
    const struct responder *responder = &qp->responder;
    struct frame *frame = nic_frame(qp->nic, ACKNOWLEDGE_BODY_BYTES, 0);
    if (!frame)
        return NULL;
    uint8_t *body = nic_frame_body(qp->nic, frame);
    /* An ACK names the newest good packet, a NAK the one that is wanted. */
    uint32_t psn = responder->expected - (responder->syndrome == AETH_ACK ? 1 : 0);
    struct bth bth = {.opcode = OPCODE_ACKNOWLEDGE,
                      .mig_req = true,
                      .pkey = PKEY_DEFAULT,
                      .dest_qp = qp->remote.qpn,
                      .psn = psn & PSN_MASK};
    struct aeth aeth = {.syndrome = responder->syndrome, .msn = responder->msn};
    bth_write(body, &bth);
    aeth_write(body + BTH_BYTES, &aeth);
    return frame;
}

struct frame *responder_notify(struct qp *qp)
{
    struct frame *frame = nic_frame(qp->nic, CNP_BODY_BYTES, 0);
    if (!frame)
        return NULL;
    uint8_t *body = nic_frame_body(qp->nic, frame);
    struct bth bth = {
        .opcode = OPCODE_CNP, .pkey = PKEY_DEFAULT, .becn = true, .dest_qp = qp->remote.qpn};
    bth_write(body, &bth);
    memset(body + BTH_BYTES, 0, CNP_PAYLOAD_BYTES);
    qp->nic->counters.np_cnp_sent++;
    return frame;
}
