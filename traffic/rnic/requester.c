/* The requester's rules (IBTA vol 1, 9.7; go-back-N as Linux' rdma_rxe has it):
 *
 *  - A message is max(1, ceil(length / MTU)) packets with PSNs in a row.
 *  - The last packet of a message asks for an ACK, so does every `ack_every`-th,
 *    and one that fills the window.
 *  - An ACK of a PSN acknowledges all before it too. NAKs and RNR NAKs
 *    acknowledge all before theirs.
 *  - PSN sequence error: go back to its PSN and send on from there.
 *  - RNR NAK: the same, after the time it asks for; at most rnr_retry times (7: for ever).
 *  - The timer runs while an ACK that was asked for is outstanding, so that a slow
 *    sender does not time out between two of them, and starts again with progress.
 *    When it expires: go back to the oldest unacknowledged packet.
 *  - Going back without progress is allowed retry_count times.
 *  - Other NAKs, and too many retries, end the queue pair.
 *
 * Left out: READ, atomics, immediate data, selective repeat, end-to-end credits. */
#include "requester.h"

#include <assert.h>
#include <string.h>

#include "nic.h"
#include "psn.h"

enum { RNR_RETRY_FOR_EVER = 7 };

#define ACK_TIMEOUT_UNIT (INT64_C(4096) * PS_PER_NS)
#define RNR_TIMER_UNIT (INT64_C(10) * PS_PER_US)

/* What an RNR NAK's timer code asks for, in units of 10 us. */
static const uint32_t rnr_timer[] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* One packet's part of a message. */
struct segment {
    uint8_t opcode;
    bool has_reth, last, ack_req;
    uint32_t offset, bytes, pad;
};

static void ack_timeout(struct timer *timer, picoseconds now);

void requester_init(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    uint64_t psn = qp->config.psn;
    requester->unacked = requester->next = psn;
    requester->sent_end = requester->posted_end = requester->awaited_end = psn;
    timer_init(&requester->ack_timeout, ack_timeout);
}

/* ---- posting and completing ----------------------------------------------- */

static void complete(struct qp *qp, struct message *message, enum status status, picoseconds now)
{
    if (status == STATUS_WR_FLUSH_ERR)
        qp->nic->counters.req_cqe_flush_error++;
    else if (status != STATUS_SUCCESS)
        qp->nic->counters.req_cqe_error++;
    message->record->status = status;
    message->record->completed_ps = now;
    if (message->handler)
        message->handler->completed(message, now);
}

static uint32_t packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (length - 1) / mtu + 1 : 1;
}

static void append(struct requester *requester, struct message *message)
{
    message->next = NULL;
    if (requester->newest)
        requester->newest->next = message;
    else
        requester->oldest = message;
    requester->newest = message;
    if (!requester->current)
        requester->current = message;
    if (!requester->undelivered)
        requester->undelivered = message;
}

void requester_post(struct qp *qp, struct message *message, picoseconds now)
{
    struct requester *requester = &qp->requester;
    *message->record = (struct message_record){.started_ps = now,
                                               .first_sent_ps = NEVER,
                                               .delivered_ps = NEVER,
                                               .completed_ps = NEVER,
                                               .status = STATUS_PENDING};
    if (qp->state != QP_READY) {
        complete(qp, message, STATUS_WR_FLUSH_ERR, now);
        return;
    }
    bool granted = memory_find(&qp->nic->memory, message->lkey, message->local_va, message->length,
                               0, &message->bytes);
    if ((!granted && message->length) || message->length > MESSAGE_MAX) {
        complete(qp, message, STATUS_LOC_PROT_ERR, now);
        return;
    }
    message->packets = packets_of(message->length, qp->config.mtu);
    message->first_psn = requester->posted_end;
    requester->posted_end += message->packets;
    append(requester, message);
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
}

static struct message *take_oldest(struct requester *requester)
{
    struct message *message = requester->oldest;
    requester->oldest = message->next;
    if (!requester->oldest)
        requester->newest = NULL;
    if (requester->undelivered == message)
        requester->undelivered = message->next;
    return message;
}

static uint64_t end_of(const struct message *message)
{
    return message->first_psn + message->packets;
}

static void complete_acknowledged(struct qp *qp, picoseconds now)
{
    struct requester *requester = &qp->requester;
    while (requester->oldest && end_of(requester->oldest) <= requester->unacked)
        complete(qp, take_oldest(requester), STATUS_SUCCESS, now);
}

void requester_flush(struct qp *qp, enum status status, picoseconds now)
{
    struct requester *requester = &qp->requester;
    timer_cancel(&requester->ack_timeout);
    requester->current = NULL;
    while (requester->oldest) {
        complete(qp, take_oldest(requester), status, now);
        status = STATUS_WR_FLUSH_ERR;
    }
}

void requester_delivered(struct qp *qp, uint32_t bytes, bool all, picoseconds now)
{
    struct message *message = qp->requester.undelivered;
    if (!message)
        return;
    message->record->delivered_bytes += bytes;
    if (all) {
        message->record->delivered_ps = now;
        qp->requester.undelivered = message->next;
    }
    if (message->handler)
        message->handler->delivered(message, bytes, all, now);
}

/* ---- sending -------------------------------------------------------------- */

static uint64_t window_of(const struct qp *qp)
{
    return qp->config.window ? qp->config.window : PSN_WINDOW;
}

bool requester_has_data(const struct qp *qp)
{
    const struct requester *requester = &qp->requester;
    return qp->state == QP_READY && requester->current &&
           requester->next - requester->unacked < window_of(qp);
}

static uint8_t opcode_of(const struct message *message, bool first, bool last)
{
    static const uint8_t opcodes[2][4] = {
        [VERB_SEND] = {OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST, OPCODE_SEND_FIRST, OPCODE_SEND_ONLY},
        [VERB_WRITE] = {OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST, OPCODE_WRITE_FIRST,
                        OPCODE_WRITE_ONLY},
    };
    return opcodes[message->verb][first << 1 | last];
}

static bool asks_for_ack(const struct qp *qp, bool last)
{
    const struct requester *requester = &qp->requester;
    bool fills_window = requester->next + 1 - requester->unacked == window_of(qp);
    return last || fills_window || requester->since_ack_req + 1 == qp->config.ack_every;
}

static struct segment next_segment(const struct qp *qp)
{
    const struct message *message = qp->requester.current;
    uint32_t index = (uint32_t)(qp->requester.next - message->first_psn);
    uint32_t offset = index * qp->config.mtu;
    uint32_t left = message->length - offset;
    uint32_t bytes = left < qp->config.mtu ? left : qp->config.mtu;
    bool first = index == 0, last = index == message->packets - 1;
    return (struct segment){.opcode = opcode_of(message, first, last),
                            .has_reth = first && message->verb == VERB_WRITE,
                            .last = last,
                            .ack_req = asks_for_ack(qp, last),
                            .offset = offset,
                            .bytes = bytes,
                            .pad = -bytes & 3};
}

static uint32_t header_bytes(const struct segment *segment)
{
    return segment->has_reth ? BTH_BYTES + RETH_BYTES : BTH_BYTES;
}

uint32_t requester_body_bytes(const struct qp *qp)
{
    struct segment segment = next_segment(qp);
    return header_bytes(&segment) + segment.bytes + segment.pad;
}

static void write_headers(const struct qp *qp, const struct segment *segment, uint8_t *body)
{
    const struct message *message = qp->requester.current;
    struct bth bth = {.opcode = segment->opcode,
                      .mig_req = true,
                      .pad = (uint8_t)segment->pad,
                      .pkey = PKEY_DEFAULT,
                      .dest_qp = qp->remote.qpn,
                      .ack_req = segment->ack_req,
                      .psn = (uint32_t)qp->requester.next & PSN_MASK};
    bth_write(body, &bth);
    body += BTH_BYTES;
    if (segment->has_reth) {
        struct reth reth = {
            .va = message->remote_va, .rkey = message->rkey, .dma_length = message->length};
        reth_write(body, &reth);
    }
}

static void write_payload(const struct message *message, const struct segment *segment,
                          uint8_t *payload)
{
    if (segment->bytes)
        memcpy(payload, message->bytes + segment->offset, segment->bytes);
    memset(payload + segment->bytes, 0, segment->pad);
}

static void start_timer(struct qp *qp, picoseconds now)
{
    if (qp->config.timeout)
        timer_set(qp->nic->clock, &qp->requester.ack_timeout,
                  now + (ACK_TIMEOUT_UNIT << qp->config.timeout));
}

/* The next packet is on its way: counts it, and moves on to the one after it. */
static void advance(struct qp *qp, const struct segment *segment, picoseconds now)
{
    struct requester *requester = &qp->requester;
    struct message *message = requester->current;
    if (requester->next < requester->sent_end) {
        message->record->retransmitted_packets++;
        qp->nic->counters.retransmitted_packets++;
    } else if (requester->next == message->first_psn) {
        message->record->first_sent_ps = now;
    }
    requester->next++;
    requester->since_ack_req++;
    if (segment->ack_req) {
        requester->since_ack_req = 0;
        requester->awaited_end = requester->next;
        if (!timer_is_set(&requester->ack_timeout))
            start_timer(qp, now);
    }
    if (requester->next > requester->sent_end)
        requester->sent_end = requester->next;
    if (segment->last)
        requester->current = message->next;
}

struct frame *requester_send(struct qp *qp, picoseconds now)
{
    struct segment segment = next_segment(qp);
    uint32_t headers = header_bytes(&segment);
    struct frame *frame = nic_frame(qp->nic, headers, segment.bytes + segment.pad);
    if (!frame)
        return NULL;
    uint8_t *body = nic_frame_body(qp->nic, frame);
    write_headers(qp, &segment, body);
    if (frame_is_whole(frame))
        write_payload(qp->requester.current, &segment, body + headers);
    advance(qp, &segment, now);

    uint32_t wire = wire_bytes(frame->kind, frame->length);
    cc_sent(&qp->cc, wire, now);
    qp->not_before = now + cc_gap(&qp->cc, wire);
    return frame;
}

/* ---- acknowledgements ------------------------------------------------------ */

/* The next packet to send is `psn`. */
static void go_to(struct requester *requester, uint64_t psn)
{
    requester->next = requester->awaited_end = psn;
    requester->since_ack_req = 0;
    requester->current = requester->oldest;
    while (requester->current && end_of(requester->current) <= psn)
        requester->current = requester->current->next;
}

/* All before `psn` is acknowledged. Returns whether that is news. */
static bool acknowledge_before(struct qp *qp, uint64_t psn, picoseconds now)
{
    struct requester *requester = &qp->requester;
    if (psn == requester->unacked)
        return false;
    requester->unacked = psn;
    requester->retries = requester->rnr_retries = 0;
    if (requester->next < psn)
        go_to(requester, psn);
    if (requester->unacked < requester->awaited_end)
        start_timer(qp, now);
    else
        timer_cancel(&requester->ack_timeout);
    return true;
}

/* Sends again from the oldest unacknowledged packet on. */
static void go_back(struct qp *qp, picoseconds now)
{
    go_to(&qp->requester, qp->requester.unacked);
    timer_cancel(&qp->requester.ack_timeout);
    qp_wake(qp, now);
}

/* False when there have been too many of them. */
static bool may_retry(struct qp *qp)
{
    return qp->requester.retries++ < qp->config.retry_count;
}

static bool may_retry_rnr(struct qp *qp)
{
    return qp->config.rnr_retry == RNR_RETRY_FOR_EVER ||
           qp->requester.rnr_retries++ < qp->config.rnr_retry;
}

static void ack_timeout(struct timer *timer, picoseconds now)
{
    struct requester *requester = container_of(timer, struct requester, ack_timeout);
    struct qp *qp = container_of(requester, struct qp, requester);
    qp->nic->counters.local_ack_timeout_err++;
    if (may_retry(qp))
        go_back(qp, now);
    else
        qp_fail(qp, STATUS_RETRY_EXC_ERR, now);
    port_kick(&qp->nic->port, now);
}

static void receive_ack(struct qp *qp, uint64_t psn, picoseconds now)
{
    acknowledge_before(qp, psn + 1, now);
    qp_wake(qp, now);
    complete_acknowledged(qp, now);
}

static void receive_rnr_nak(struct qp *qp, uint64_t psn, uint8_t code, picoseconds now)
{
    qp->nic->counters.rnr_nak_retry_err++;
    acknowledge_before(qp, psn, now);
    if (!may_retry_rnr(qp)) {
        complete_acknowledged(qp, now);
        qp_fail(qp, STATUS_RNR_RETRY_EXC_ERR, now);
        return;
    }
    picoseconds until = now + RNR_TIMER_UNIT * rnr_timer[code];
    if (qp->not_before < until)
        qp->not_before = until;
    go_back(qp, now);
    complete_acknowledged(qp, now);
}

static void receive_sequence_nak(struct qp *qp, uint64_t psn, picoseconds now)
{
    qp->nic->counters.packet_seq_err++;
    if (!acknowledge_before(qp, psn, now) && !may_retry(qp)) {
        qp_fail(qp, STATUS_RETRY_EXC_ERR, now);
        return;
    }
    go_back(qp, now);
    complete_acknowledged(qp, now);
}

static enum status status_of(struct nic_counters *counters, uint8_t syndrome)
{
    switch (syndrome) {
    case AETH_NAK_INVALID_REQUEST:
        counters->req_remote_invalid_request++;
        return STATUS_REM_INV_REQ_ERR;
    case AETH_NAK_REMOTE_ACCESS_ERROR:
        counters->req_remote_access_errors++;
        return STATUS_REM_ACCESS_ERR;
    default:
        counters->req_remote_operation_errors++;
        return STATUS_REM_OP_ERR;
    }
}

static void receive_fatal_nak(struct qp *qp, uint64_t psn, uint8_t syndrome, picoseconds now)
{
    acknowledge_before(qp, psn, now);
    complete_acknowledged(qp, now);
    qp_fail(qp, status_of(&qp->nic->counters, syndrome), now);
}

static bool is_reserved(uint8_t syndrome)
{
    uint8_t type = syndrome & AETH_TYPE;
    return (syndrome & 0x80) || (type != 0 && type != AETH_RNR_NAK && type != 0x60) ||
           (type == 0x60 && syndrome > AETH_NAK_REMOTE_OPERATIONAL_ERROR);
}

void requester_receive(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct requester *requester = &qp->requester;
    uint8_t syndrome = packet->aeth.syndrome;
    int32_t ahead = psn_ahead(packet->bth.psn, (uint32_t)requester->unacked & PSN_MASK);
    bool in_flight = ahead >= 0 && requester->unacked + (uint32_t)ahead < requester->sent_end;
    if (!in_flight || is_reserved(syndrome))
        return;
    uint64_t psn = requester->unacked + (uint32_t)ahead;
    if ((syndrome & AETH_TYPE) == 0)
        receive_ack(qp, psn, now);
    else if ((syndrome & AETH_TYPE) == AETH_RNR_NAK)
        receive_rnr_nak(qp, psn, syndrome & AETH_CODE, now);
    else if (syndrome == AETH_NAK_PSN_SEQUENCE_ERROR)
        receive_sequence_nak(qp, psn, now);
    else
        receive_fatal_nak(qp, psn, syndrome, now);
}
