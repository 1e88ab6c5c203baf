/* The rules for the requester:
 *
 *  - A message is max(1, ceil(length / MTU)) packets with consecutive PSNs. A READ is one
 *    packet, but takes the PSNs of its responses; an atomic takes one.
 *  - The last packet of a message requests an ACK, and so does every `ack_every`-th packet, and one
 *    that fills the window.
 *  - No more than max_rd_atomic READs and atomics are unanswered at a time.
 *  - A recovery scheme may split a READ into several requests. The next part is requested when
 *    everything before it has arrived.
 *  - A repeated READ requests only the missing part.
 *  - With end-to-end credits, a message that takes a receive may be at most one beyond the receives
 *    of the other end. That one probes for new credits (9.7.7.2).
 *  - The timer runs while a requested ACK is outstanding, so that a slow sender does not time out
 *    between two of them, and while packets wait to be sent again.
 *  - A message of an unreliable transport is complete when its last packet begins to leave.
 *  - If the key of a message was invalidated, the message, or the rest of it, is not sent. It fails
 *    after all messages before it are complete. So does a message that was refused when it was
 *    posted.
 *  - A solicited event is requested in the last packet of a message that takes a receive.
 *
 * Left out: fences. */
#include "nic/requester.h"

#include <assert.h>
#include <string.h>

#include "nic/message.h"
#include "nic/nic.h"
#include "nic/psn.h"
#include "nic/qp_frame.h"
#include "nic/qp_state.h"
#include "nic/recovery.h"

#define ACK_TIMEOUT_UNIT (INT64_C(4096) * PS_PER_NS)

/* The part of a message in one packet. */
struct segment {
    uint8_t opcode;
    bool last, ack_req;
    uint32_t offset; /* in the message: of the payload, or of the requested part of a READ */
    uint32_t bytes;  /* of payload */
    uint32_t asked;  /* READ: bytes requested */
    uint32_t span;   /* PSNs */
    uint32_t pad;
};

void requester_init(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    uint64_t psn = qp->config.psn;
    *requester = (struct requester){.ack_timeout = requester->ack_timeout,
                                    .completion = requester->completion,
                                    .send_times = requester->send_times,
                                    .recovery_priv = requester->recovery_priv};
    requester->limited = qp->config.credits; /* to one message, until an ACK carries credits */
    requester->unacked = requester->next = psn;
    requester->sent_end = requester->posted_end = requester->awaited_end = psn;
}

/* ---- may something be sent? --------------------------------------------------- */

uint32_t requester_window(const struct qp *qp)
{
    uint32_t window = qp->config.window ? qp->config.window : PSN_WINDOW + 1;
    uint32_t arrived = qp->requester.arrived;
    if (qp->cc.window && qp->cc.window < window)
        window = qp->cc.window;
    return window + (arrived < window ? arrived : window);
}

static bool has_credit(const struct requester *requester)
{
    const struct message *message = requester->current;
    return !requester->limited || !verb_takes_receive(message->verb) ||
           (int32_t)(message->ssn - requester->ssn_limit) <= 1;
}

bool requester_has_begun(const struct requester *requester)
{
    return requester->next > requester->current->first_psn || requester->next < requester->sent_end;
}

static bool state_lets(const struct qp *qp)
{
    return qp->state == QP_RTS || (qp_can(qp, CAN_GO_ON) && requester_has_begun(&qp->requester));
}

static bool may_fetch(const struct qp *qp)
{
    const struct requester *requester = &qp->requester;
    bool next_part =
        requester->next > requester->current->first_psn && requester->next == requester->sent_end;
    return requester->fetches < qp->config.max_rd_atomic &&
           (!next_part || requester->unacked == requester->next);
}

bool requester_has_data(const struct qp *qp)
{
    const struct requester *requester = &qp->requester;
    const struct message *message = requester->current;
    if (!message || requester->next - requester->unacked >= requester_window(qp) ||
        requester->broken || !state_lets(qp) || !has_credit(requester))
        return false;
    return !message_is_fetch(message) || may_fetch(qp);
}

picoseconds requester_ready_at(const struct qp *qp)
{
    const struct requester *requester = &qp->requester;
    if (!requester_has_data(qp))
        return NEVER;
    picoseconds rnr_end = requester->not_before, data_at = requester->current->ready_at;
    return rnr_end > data_at ? rnr_end : data_at;
}

/* ---- the next packet ------------------------------------------------------------ */

static uint8_t opcode_of(const struct qp *qp, const struct message *message, bool first, bool last)
{
    static const uint8_t opcodes[VERBS][4] = {
        [VERB_SEND] = {OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST, OPCODE_SEND_FIRST, OPCODE_SEND_ONLY},
        [VERB_SEND_IMM] = {OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_IMM, OPCODE_SEND_FIRST,
                           OPCODE_SEND_ONLY_IMM},
        [VERB_SEND_INV] = {OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_INV, OPCODE_SEND_FIRST,
                           OPCODE_SEND_ONLY_INV},
        [VERB_WRITE] = {OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST, OPCODE_WRITE_FIRST,
                        OPCODE_WRITE_ONLY},
        [VERB_WRITE_IMM] = {OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST_IMM, OPCODE_WRITE_FIRST,
                            OPCODE_WRITE_ONLY_IMM},
    };
    static const uint8_t classes[] = {
        [TRANSPORT_RC] = CLASS_RC, [TRANSPORT_UC] = CLASS_UC, [TRANSPORT_UD] = CLASS_UD};
    return classes[qp->config.transport] | opcodes[message->verb][first << 1 | last];
}

static bool asks_for_ack(const struct qp *qp, uint32_t span, bool last)
{
    const struct requester *requester = &qp->requester;
    if (qp->config.transport != TRANSPORT_RC)
        return false;
    bool fills_window = requester->next + span - requester->unacked >= requester_window(qp);
    bool again = qp->recovery->skip && requester->next < requester->sent_end;
    return last || fills_window || again || requester->since_ack_req + 1 >= qp->config.ack_every;
}

static struct segment fetch_segment(const struct qp *qp, const struct message *message)
{
    const struct requester *requester = &qp->requester;
    uint64_t end = message_end(message);
    if (qp->recovery->gap_end)
        end = qp->recovery->gap_end(qp, requester->next, end);
    uint32_t offset = (uint32_t)(requester->next - message->first_psn) * qp->config.mtu;
    uint32_t span = (uint32_t)(end - requester->next);
    uint32_t left = message->length - offset;
    bool last = end == message_end(message);
    uint8_t opcode = message->verb == VERB_READ       ? OPCODE_READ_REQUEST
                     : message->verb == VERB_CMP_SWAP ? OPCODE_CMP_SWAP
                                                      : OPCODE_FETCH_ADD;
    return (struct segment){.opcode = opcode,
                            .last = last,
                            .ack_req = true,
                            .offset = offset,
                            .asked = last ? left : span * qp->config.mtu,
                            .span = span};
}

static struct segment next_segment(const struct qp *qp)
{
    const struct message *message = qp->requester.current;
    if (message_is_fetch(message))
        return fetch_segment(qp, message);
    uint32_t index = (uint32_t)(qp->requester.next - message->first_psn);
    uint32_t offset = index * qp->config.mtu;
    uint32_t left = message->length - offset;
    uint32_t bytes = left < qp->config.mtu ? left : qp->config.mtu;
    bool first = index == 0, last = index == message->packets - 1;
    return (struct segment){.opcode = opcode_of(qp, message, first, last),
                            .last = last,
                            .ack_req = asks_for_ack(qp, 1, last),
                            .offset = offset,
                            .bytes = bytes,
                            .span = 1,
                            .pad = -bytes & 3};
}

uint32_t requester_body_bytes(const struct qp *qp)
{
    struct segment segment = next_segment(qp);
    return packet_header_bytes(segment.opcode) + segment.bytes + segment.pad;
}

static struct packet headers_of(const struct qp *qp, const struct segment *segment)
{
    const struct message *message = qp->requester.current;
    struct packet packet = {.bth = {.opcode = segment->opcode,
                                    .mig_req = true,
                                    .pad = (uint8_t)segment->pad,
                                    .pkey = qp->config.pkey,
                                    .dest_qp = message->to ? message->to->qpn : qp->remote.qpn,
                                    .solicited = message->solicited && segment->last,
                                    .ack_req = segment->ack_req,
                                    .psn = (uint32_t)qp->requester.next & PSN_MASK},
                            .immediate = message->immediate};
    if (segment->opcode == OPCODE_CMP_SWAP || segment->opcode == OPCODE_FETCH_ADD)
        packet.atomic = (struct atomic_eth){.va = message->remote_va,
                                            .rkey = message->rkey,
                                            .swap_add = message->swap_add,
                                            .compare = message->compare};
    else
        packet.reth =
            (struct reth){.va = message->remote_va + segment->offset,
                          .rkey = message->rkey,
                          .dma_length = segment->asked ? segment->asked : message->length};
    if (message->to)
        packet.deth = (struct deth){.qkey = message->to->qkey, .src_qp = qp->qpn};
    return packet;
}

/* `memory`: that of the message, as it was found. */
static void write_payload(const struct qp *qp, const struct segment *segment, const uint8_t *memory,
                          uint8_t *payload)
{
    message_gather(qp, qp->requester.current, memory, segment->offset, payload, segment->bytes);
    memset(payload + segment->bytes, 0, segment->pad);
}

/* ---- timers; completer.c handles their expiry --------------------------------------- */

static picoseconds later(picoseconds one, picoseconds other)
{
    return one > other ? one : other;
}

void requester_start_ack_timeout(struct qp *qp, picoseconds now)
{
    const struct requester *requester = &qp->requester;
    picoseconds from = later(now, requester->not_before);
    if (requester->again)
        from = later(from, qp->not_before);
    if (qp->config.timeout)
        timer_set(qp->nic->clock, &qp->requester.ack_timeout,
                  from + (ACK_TIMEOUT_UNIT << qp->config.timeout));
}

static void ack_requested(struct qp *qp, bool ack_req, picoseconds now)
{
    struct requester *requester = &qp->requester;
    if (requester->again || (ack_req && !timer_is_set(&requester->ack_timeout)))
        requester_start_ack_timeout(qp, now);
    if (ack_req)
        requester->again = false;
}

/* Unreliable transports get no answer: takes everything sent as acknowledged. */
static void assume_acknowledged(struct qp *qp, picoseconds now)
{
    qp->requester.unacked = qp->requester.next;
    timer_set(qp->nic->clock, &qp->requester.completion, now);
}

bool requester_cannot_continue(const struct requester *requester)
{
    return requester->broken && requester->current->first_psn <= requester->unacked;
}

enum status requester_failure(const struct requester *requester)
{
    uint8_t refusal = requester->current->refusal;
    return refusal ? (enum status)refusal : STATUS_LOC_PROT_ERR;
}

/* The current message cannot be sent. It fails after those before it are complete. */
static void fail_current_message(struct qp *qp, picoseconds now)
{
    qp->requester.broken = true;
    struct timer *next =
        requester_cannot_continue(&qp->requester) ? &qp->requester.completion : &qp->wake;
    timer_set(qp->nic->clock, next, now); /* other queue pairs may have something to send */
}

/* ---- sending ---------------------------------------------------------------------- */

static void count_sent(struct qp *qp, const struct segment *segment, picoseconds now)
{
    struct requester *requester = &qp->requester;
    struct message *message = requester->current;
    bool again = requester->next < requester->sent_end;
    send_times_note(&requester->send_times, requester->next, again, now);
    if (again) {
        message->record->retransmitted_packets++;
        qp->nic->counters.retransmitted_packets++;
    } else if (requester->next == message->first_psn) {
        message->record->first_sent_ps = now;
    }
    requester->since_ack_req++;
    if (segment->ack_req)
        requester->since_ack_req = 0;
}

/* Counts the next packet as sent, and moves on to the one after it. */
static void advance(struct qp *qp, const struct segment *segment, picoseconds now)
{
    struct requester *requester = &qp->requester;
    struct message *message = requester->current;
    count_sent(qp, segment, now);
    requester->next += segment->span;
    if (requester->next > requester->sent_end)
        requester->sent_end = requester->next;
    if (segment->last) {
        requester->current = message->next;
        requester->fetches += message_is_fetch(message);
    }
    if (segment->ack_req && requester->awaited_end < requester->next)
        requester->awaited_end = requester->next;
    ack_requested(qp, segment->ack_req, now);
    if (qp->recovery->skip)
        qp->recovery->skip(qp);
}

struct frame *requester_send(struct qp *qp, picoseconds now)
{
    const struct message *message = qp->requester.current;
    uint8_t *memory;
    if (message->refusal || !message_find_memory(qp, message, &memory)) {
        fail_current_message(qp, now);
        return NULL;
    }
    struct segment segment = next_segment(qp);
    struct packet headers = headers_of(qp, &segment);
    struct frame *frame = qp_frame(qp, &headers, segment.bytes + segment.pad);
    if (!frame)
        return NULL;
    if (frame_is_whole(frame))
        write_payload(qp, &segment, memory,
                      nic_frame_body(qp->nic, frame) + packet_header_bytes(segment.opcode));
    qp->nic->framing->seal(message->to ? &message->to->path : &qp->path, TRAFFIC_DATA, frame);
    advance(qp, &segment, now);
    if (qp->config.transport != TRANSPORT_RC)
        assume_acknowledged(qp, now);
    return frame;
}

void requester_seek(struct requester *requester, uint64_t psn)
{
    struct message *message = requester->oldest;
    requester->next = psn;
    requester->fetches = 0;
    requester->broken = false;
    for (; message && message_end(message) <= psn; message = message->next)
        if (message_is_fetch(message) && message_end(message) > requester->unacked)
            requester->fetches++;
    requester->current = message;
}
