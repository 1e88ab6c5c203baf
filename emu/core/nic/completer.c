/* The rules for answers. Retries follow rdma_rxe of Linux.
 *
 *  - An ACK acknowledges its PSN and all before it, and so does a response. A NAK acknowledges
 *    all before its PSN.
 *  - Only its own responses acknowledge a READ or atomic. When an answer to a later request
 *    arrives and a response is missing, that response was lost. The requester requests it again
 *    once, until it comes or the ACK timeout expires.
 *  - After a NAK for a PSN sequence error the recovery scheme decides what is sent again.
 *  - After an RNR NAK the requester waits for the time that the NAK names and sends everything
 *    again that is not acknowledged, at most rnr_retry times (7: without limit).
 *  - Retries without progress are limited to retry_count. Each expiry of the ACK timeout is one,
 *    whether or not a packet left meanwhile: the requester gives up (retry_count + 1) timeouts
 *    after the last progress.
 *  - Every other NAK, and one retry too many, ends the queue pair. So does a message whose key
 *    was invalidated, once its turn comes to be sent or a response arrives for it.
 *
 * Two timers, one purpose each:
 *
 *  - `ack_timeout` runs for 4.096 us * 2^timeout while an answer is awaited, and starts again
 *    with progress. When it expires, everything is sent again that is not acknowledged. It does
 *    not back off: a retry has the same timeout as the first attempt.
 *    It also runs while flow control keeps a packet that is to be sent again from leaving, and
 *    starts again with each such packet up to one that requests an ACK; rdma_rxe does the same,
 *    since for its timer a packet has left once the device has queued it, paused or not. The time
 *    that the queue pair itself waits, for its rate or after an RNR NAK, does not count.
 *  - `completion` fires at once. It completes messages of unreliable transports that have left,
 *    and fails a message that cannot be sent. Both would happen in the middle of handing a packet
 *    to the port, where queue pairs must not change. */
#include "nic/completer.h"

#include "nic/credits.h"
#include "nic/message.h"
#include "nic/nic.h"
#include "nic/notification_point.h"
#include "nic/pacing.h"
#include "nic/psn.h"
#include "nic/qp_error.h"
#include "nic/recovery.h"
#include "nic/requester.h"
#include "nic/send_queue.h"

#define RNR_TIMER_UNIT (INT64_C(10) * PS_PER_US)

/* The waiting time for each timer code of an RNR NAK, in units of 10 us. */
static const uint32_t rnr_timer[] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void ack_timeout_expired(struct timer *timer, picoseconds now);
static void complete(struct timer *timer, picoseconds now);

void completer_init(struct qp *qp)
{
    timer_init(&qp->requester.ack_timeout, ack_timeout_expired);
    timer_init(&qp->requester.completion, complete);
}

/* ---- the ACK timeout --------------------------------------------------------------- */

/* Counts a retry. False when there have been retry_count already. */
static bool may_retry(struct qp *qp)
{
    return qp->requester.retries++ < qp->config.retry_count;
}

static void resend_all(struct qp *qp, picoseconds now)
{
    qp->requester.response_lost = false;
    qp->recovery->resend_all(qp);
    qp_wake(qp, now);
}

static void timed_out(struct qp *qp, picoseconds now)
{
    qp->nic->counters.local_ack_timeout_err++;
    cc_lost(&qp->cc, now);
    if (may_retry(qp))
        resend_all(qp, now);
    else
        qp_fail(qp, STATUS_RETRY_EXC_ERR, now);
}

/* Whether the queue pair must wait for its own rate before it may send the packets again. */
static bool waits_for_own_rate(const struct qp *qp, picoseconds now)
{
    return qp->requester.again && now < qp->not_before;
}

static void ack_timeout_expired(struct timer *timer, picoseconds now)
{
    struct qp *qp = container_of(timer, struct qp, requester.ack_timeout);
    if (waits_for_own_rate(qp, now))
        requester_start_ack_timeout(qp, now);
    else
        timed_out(qp, now);
    port_kick(&qp->nic->port, now);
}

void completer_resend_from(struct qp *qp, uint64_t psn)
{
    struct requester *requester = &qp->requester;
    requester->awaited_end = psn;
    requester->since_ack_req = 0;
    requester->again = psn < requester->sent_end;
    timer_cancel(&requester->ack_timeout);
    if (requester->again)
        requester_start_ack_timeout(qp, qp->nic->clock->now);
    requester_seek(requester, psn);
}

/* ---- completion ---------------------------------------------------------------------- */

/* Ends the queue pair, after the messages that were acknowledged. */
static void give_up(struct qp *qp, enum status status, picoseconds now)
{
    send_queue_complete(qp, now);
    qp_fail(qp, status, now);
}

static void complete_unreliable(struct qp *qp, picoseconds now)
{
    struct requester *requester = &qp->requester;
    send_queue_complete(qp, now);
    if (!requester->broken)
        return;
    qp->state = QP_SQE;
    send_queue_flush(qp, requester_failure(requester), now);
    requester->posted_end = requester->next; /* later messages have the PSNs of those flushed */
}

static void complete(struct timer *timer, picoseconds now)
{
    struct qp *qp = container_of(timer, struct qp, requester.completion);
    if (qp->config.transport != TRANSPORT_RC)
        complete_unreliable(qp, now);
    else if (requester_cannot_continue(&qp->requester))
        give_up(qp, requester_failure(&qp->requester), now);
    port_kick(&qp->nic->port, now);
}

/* ---- progress ---------------------------------------------------------------------- */

/* Delivers the READs and atomics whose responses have all arrived. */
static void pass_fetches(struct qp *qp, picoseconds now)
{
    struct requester *requester = &qp->requester;
    while (requester->fetch && message_end(requester->fetch) <= requester->unacked) {
        struct message *message = requester->fetch;
        requester->fetches -= message_end(message) <= requester->next;
        do
            requester->fetch = requester->fetch->next;
        while (requester->fetch && !message_is_fetch(requester->fetch));
        message_delivered(message, qp->recovery->resumes ? 0 : message->length, true, now);
    }
}

/* Takes all PSNs before `psn` as acknowledged, responses included. False when they were already. */
static bool acknowledge_before(struct qp *qp, uint64_t psn, picoseconds now)
{
    struct requester *requester = &qp->requester;
    if (psn <= requester->unacked)
        return false;
    requester->unacked = qp->recovery->slide ? qp->recovery->slide(qp, psn) : psn;
    requester->retries = requester->rnr_retries = 0;
    requester->response_lost = false;
    pass_fetches(qp, now);
    if (requester->next < requester->unacked)
        requester_seek(requester, requester->unacked);
    if (qp->recovery->skip)
        qp->recovery->skip(qp);
    requester->again = requester->again && requester->unacked < requester->sent_end;
    if (requester->again || requester->unacked < requester->awaited_end)
        requester_start_ack_timeout(qp, now);
    else
        timer_cancel(&requester->ack_timeout);
    return true;
}

/* The PSN of the first missing response; UINT64_MAX when no response is outstanding. */
static uint64_t missing_response(const struct requester *requester)
{
    const struct message *fetch = requester->fetch;
    if (!fetch)
        return UINT64_MAX;
    return fetch->first_psn > requester->unacked ? fetch->first_psn : requester->unacked;
}

/* Handles a missing response before `psn`. Within the reordering limit it may only be late. */
static void lost_response(struct qp *qp, uint64_t psn, picoseconds now)
{
    struct requester *requester = &qp->requester;
    if (requester->response_lost || psn - missing_response(requester) <= qp->config.reordering)
        return;
    qp->nic->counters.implied_nak_seq_err++;
    if (qp->recovery->counts_retries && !may_retry(qp)) {
        qp_fail(qp, STATUS_RETRY_EXC_ERR, now);
        return;
    }
    requester->response_lost = qp->recovery->counts_retries;
    qp->recovery->missed(qp, psn, psn);
}

/* The other end has received all before `psn`. False when some of its responses are missing. */
static bool arrived_before(struct qp *qp, uint64_t psn, picoseconds now)
{
    uint64_t missing = missing_response(&qp->requester);
    acknowledge_before(qp, psn < missing ? psn : missing, now);
    if (psn > missing_response(&qp->requester))
        lost_response(qp, psn, now);
    return psn <= missing;
}

/* Extends a PSN from the wire to 64 bits. False when no answer can have this PSN now. */
static bool in_flight(const struct qp *qp, uint32_t wire_psn, uint64_t *psn)
{
    const struct requester *requester = &qp->requester;
    uint64_t base = requester->unacked;
    if (!qp->recovery->resumes && requester->oldest && requester->oldest->first_psn < base)
        base = requester->oldest->first_psn;
    int32_t ahead = psn_ahead(wire_psn, (uint32_t)base & PSN_MASK);
    *psn = base + (uint64_t)(int64_t)ahead;
    return ahead >= 0 && *psn < requester->sent_end;
}

/* After every answer: wakes the queue pair, and completes what is acknowledged. */
static void settle(struct qp *qp, picoseconds now)
{
    if (qp->state == QP_ERR)
        return;
    if (requester_cannot_continue(&qp->requester)) {
        give_up(qp, requester_failure(&qp->requester), now);
        return;
    }
    qp_wake(qp, now);
    send_queue_complete(qp, now);
}

/* ---- acknowledgements ---------------------------------------------------------------- */

static bool may_retry_rnr(struct qp *qp)
{
    return qp->config.rnr_retry == RNR_RETRY_FOR_EVER ||
           qp->requester.rnr_retries++ < qp->config.rnr_retry;
}

static void receive_rnr_nak(struct qp *qp, uint64_t psn, uint8_t code, picoseconds now)
{
    qp->nic->counters.rnr_nak_retry_err++;
    if (!arrived_before(qp, psn, now))
        return;
    if (!may_retry_rnr(qp)) {
        give_up(qp, STATUS_RNR_RETRY_EXC_ERR, now);
        return;
    }
    picoseconds until = now + RNR_TIMER_UNIT * rnr_timer[code];
    if (qp->requester.not_before < until)
        qp->requester.not_before = until;
    resend_all(qp, now);
}

static void receive_sequence_nak(struct qp *qp, const struct packet *packet, uint64_t psn,
                                 picoseconds now)
{
    struct requester *requester = &qp->requester;
    qp->nic->counters.packet_seq_err++;
    uint64_t before = requester->unacked;
    if (!arrived_before(qp, psn, now))
        return;
    bool progress = requester->unacked > before;
    if (!progress && qp->recovery->counts_retries && !may_retry(qp)) {
        give_up(qp, STATUS_RETRY_EXC_ERR, now);
        return;
    }
    cc_lost(&qp->cc, now);
    uint32_t wire_psn = (uint32_t)psn & PSN_MASK;
    uint64_t first = psn + 1, end = psn + 1;
    if (packet->has_sack) {
        first = psn + ((packet->sack_first - wire_psn) & PSN_MASK);
        end = psn + ((packet->sack_end - wire_psn) & PSN_MASK);
    }
    qp->recovery->missed(qp, first, end);
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
    if (arrived_before(qp, psn, now))
        give_up(qp, status_of(&qp->nic->counters, syndrome), now);
}

static bool is_reserved(uint8_t syndrome)
{
    uint8_t type = syndrome & AETH_TYPE;
    return (syndrome & 0x80) || (type != 0 && type != AETH_RNR_NAK && type != 0x60) ||
           (type == 0x60 && syndrome > AETH_NAK_REMOTE_OPERATIONAL_ERROR);
}

/* ---- responses ------------------------------------------------------------------------- */

/* The READ or atomic whose response has that PSN; NULL when there is none. */
static struct message *fetch_of(const struct requester *requester, uint64_t psn)
{
    struct message *message = requester->fetch;
    while (message && message_end(message) <= psn)
        message = message->next;
    bool found = message && message_is_fetch(message) && message->first_psn <= psn;
    return found ? message : NULL;
}

/* Whether to accept this response now; `memory` is then that of its message, as it was found. A
 * response ahead of others shows that those were lost. */
static bool is_taken(struct qp *qp, const struct message *message, uint64_t psn, uint8_t **memory,
                     picoseconds now)
{
    const struct recovery *recovery = qp->recovery;
    if (psn < qp->requester.unacked || (recovery->has_response && recovery->has_response(qp, psn)))
        return false;
    bool in_turn = arrived_before(qp, psn, now);
    if (qp->state == QP_ERR)
        return false;
    if (message_find_memory(qp, message, memory))
        return in_turn || (recovery->keep_response && recovery->keep_response(qp, psn));
    if (in_turn)
        give_up(qp, STATUS_LOC_PROT_ERR, now);
    return false;
}

/* Records that the response at `psn` is in memory. */
static void taken(struct qp *qp, struct message *message, uint64_t psn, uint32_t bytes,
                  picoseconds now)
{
    if (qp->recovery->resumes)
        message_delivered(message, bytes, false, now);
    if (psn == qp->requester.unacked)
        acknowledge_before(qp, psn + 1, now);
}

void completer_response(struct qp *qp, const struct packet *packet, picoseconds now)
{
    uint64_t psn;
    if (packet->ce)
        notification_point_see(qp, packet, now);
    if (!in_flight(qp, packet->bth.psn, &psn))
        return;
    struct message *message = fetch_of(&qp->requester, psn);
    if (!message || message->verb != VERB_READ)
        return;
    uint32_t offset = (uint32_t)(psn - message->first_psn) * qp->config.mtu;
    uint32_t left = message->length - offset;
    uint32_t bytes = left < qp->config.mtu ? left : qp->config.mtu;
    uint8_t *memory;
    if (packet->payload_bytes == bytes && is_taken(qp, message, psn, &memory, now)) {
        if (packet->payload)
            message_scatter(qp, message, memory, offset, packet->payload, bytes);
        taken(qp, message, psn, bytes, now);
    }
    settle(qp, now);
}

static void receive_atomic_answer(struct qp *qp, const struct packet *packet, uint64_t psn,
                                  picoseconds now)
{
    uint8_t *memory;
    struct message *message = fetch_of(&qp->requester, psn);
    if (!message || message->verb == VERB_READ || !is_taken(qp, message, psn, &memory, now))
        return;
    message_scatter(qp, message, memory, 0, (const uint8_t *)&packet->original, ATOMIC_BYTES);
    taken(qp, message, psn, ATOMIC_BYTES, now);
}

/* ---- arriving answers --------------------------------------------------------------- */

static void take(struct qp *qp, const struct packet *packet, uint64_t psn, picoseconds now)
{
    uint8_t syndrome = packet->aeth.syndrome;
    if ((syndrome & AETH_TYPE) == 0)
        credits_received(&qp->requester, &packet->aeth);
    if (packet->headers & HEADER_ATOMIC_ACK)
        receive_atomic_answer(qp, packet, psn, now);
    else if ((syndrome & AETH_TYPE) == 0)
        arrived_before(qp, psn + 1, now);
    else if ((syndrome & AETH_TYPE) == AETH_RNR_NAK)
        receive_rnr_nak(qp, psn, syndrome & AETH_CODE, now);
    else if (syndrome == AETH_NAK_PSN_SEQUENCE_ERROR)
        receive_sequence_nak(qp, packet, psn, now);
    else
        receive_fatal_nak(qp, psn, syndrome, now);
}

void completer_acknowledged(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct requester *requester = &qp->requester;
    uint64_t before = requester->unacked, psn;
    if (is_reserved(packet->aeth.syndrome) || !in_flight(qp, packet->bth.psn, &psn))
        return;
    struct cc_ack ack = {.in_flight = (uint32_t)(requester->next - before),
                         .marked = packet->bth.becn,
                         .rtt = send_times_since(&requester->send_times, psn, now)};
    take(qp, packet, psn, now);
    ack.packets = (uint32_t)(requester->unacked - before);
    if (ack.packets && qp->state != QP_ERR)
        cc_acknowledged(&qp->cc, &ack, now);
    settle(qp, now);
}
