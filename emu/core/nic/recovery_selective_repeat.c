/* Selective repeat after IRN (Mittal et al., Revisiting Network Support for RDMA, SIGCOMM'18, 3):
 * only lost packets are sent again.
 *
 * Responder. Requests ahead of the expected one are kept, and each is answered by a NAK. The NAK
 * carries the expected PSN, and the run of kept packets around the one that arrived (packet.h). If
 * packets are sprayed over several paths, most missing packets are only late. A NAK is then sent
 * only for a packet that is further ahead than `reordering` allows. When the gap closes, the kept
 * requests are executed in order. IRN places them in memory at once, with a RETH in every packet.
 * Here the NIC holds them, which makes no difference to any other part.
 *
 * Requester. There is one bit for each packet in flight, which is set when the packet is known to
 * have arrived. A packet that is not marked, before the last marked one, was lost. It is sent again
 * once:
 *
 *        unacked      resent_end    lost_end        sent_end
 *           ▼              ▼            ▼               ▼
 *     ......1011011100000110010101010110................
 *                          next: repairing              next: new data
 *
 * Only the timer recovers a packet that is lost a second time. Responses of READs are kept and
 * marked in the same way. Only the missing part of a READ is requested again, when a response
 * arrives that is further ahead of it than `reordering` allows. A NAK cannot show whether a kept
 * READ request or its responses are missing, so a READ may be requested twice.
 *
 * The window is the BDP cap: no more packets are in flight than the path holds. Packets that have
 * arrived are not in flight, so that new data follows while a gap is repaired, but no more than one
 * further window. */
#include <string.h>

#include "nic/completer.h"
#include "nic/message.h"
#include "nic/nic.h"
#include "nic/psn.h"
#include "nic/recovery.h"
#include "nic/requester.h"
#include "nic/response_queue.h"

/* A READ requests no more responses at a time than there are marks. */
enum { WINDOW_MAX = 1 << 16, MARKS_MIN = 1 << 13 };

struct selective_sender {
    uint64_t marked_from;          /* no packet before this one is marked */
    uint64_t resent_end, lost_end; /* see above; lost_end is 0 while nothing was lost */
    uint32_t places;               /* how many marks; a power of two */
    uint64_t marks[];
};

struct kept {
    struct frame *frame; /* NULL: none */
    struct packet packet;
};

struct selective_receiver {
    uint32_t places;
    struct kept kept[];
};

static uint32_t power_of_two_from(uint32_t number)
{
    uint32_t power = 1;
    while (power < number)
        power *= 2;
    return power;
}

static size_t sender_bytes(uint32_t places)
{
    return sizeof(struct selective_sender) + places / 8;
}

static size_t receiver_bytes(uint32_t places)
{
    return sizeof(struct selective_receiver) + places * sizeof(struct kept);
}

static bool init(struct qp *qp)
{
    uint32_t window = qp->config.window;
    if (window == 0 || window > WINDOW_MAX)
        return false;
    uint32_t marks = power_of_two_from(2 * window < MARKS_MIN ? MARKS_MIN : 2 * window);
    uint32_t places = power_of_two_from(2 * window);
    struct selective_sender *sender = arena_take(qp->nic->arena, 1, sender_bytes(marks));
    struct selective_receiver *receiver = arena_take(qp->nic->arena, 1, receiver_bytes(places));
    qp->requester.recovery_priv = sender;
    qp->responder.recovery_priv = receiver;
    if (sender)
        sender->places = marks;
    if (receiver)
        receiver->places = places;
    return sender && receiver;
}

static void free_memory(struct qp *qp)
{
    struct selective_sender *sender = qp->requester.recovery_priv;
    struct selective_receiver *receiver = qp->responder.recovery_priv;
    if (sender)
        arena_give_back(qp->nic->arena, sender, 1, sender_bytes(sender->places));
    if (receiver)
        arena_give_back(qp->nic->arena, receiver, 1, receiver_bytes(receiver->places));
}

/* ---- requester: marks ------------------------------------------------------------ */

static bool is_marked(const struct selective_sender *sender, uint64_t psn)
{
    uint64_t place = psn % sender->places;
    return sender->marks[place / 64] >> place % 64 & 1;
}

static void mark(struct selective_sender *sender, uint64_t psn)
{
    uint64_t place = psn % sender->places;
    sender->marks[place / 64] |= UINT64_C(1) << place % 64;
}

/* Clears a mark. Returns whether it was set. */
static bool unmark(struct selective_sender *sender, uint64_t psn)
{
    bool marked = is_marked(sender, psn);
    uint64_t place = psn % sender->places;
    sender->marks[place / 64] &= ~(UINT64_C(1) << place % 64);
    return marked;
}

static void forget(struct qp *qp, struct kept *place)
{
    if (place->frame)
        frame_free(qp->nic->pool, place->frame);
    place->frame = NULL;
}

static void reset(struct qp *qp)
{
    struct selective_sender *sender = qp->requester.recovery_priv;
    struct selective_receiver *receiver = qp->responder.recovery_priv;
    memset(sender->marks, 0, sender->places / 8);
    for (uint32_t place = 0; place < receiver->places; place++)
        forget(qp, &receiver->kept[place]);
    sender->marked_from = qp->requester.unacked;
    sender->resent_end = sender->lost_end = 0;
    qp->requester.arrived = 0;
}

/* Marks requests that the responder keeps. The PSNs of READs and atomics are left out: they are
 * marked when their responses arrive. */
static void mark_requests(struct qp *qp, uint64_t first, uint64_t end)
{
    struct requester *requester = &qp->requester;
    const struct message *message = requester->oldest;
    for (uint64_t psn = first; psn < end; psn++) {
        while (message_end(message) <= psn)
            message = message->next;
        if (message_is_fetch(message) || is_marked(requester->recovery_priv, psn))
            continue;
        mark(requester->recovery_priv, psn);
        requester->arrived++;
    }
}

static bool has_response(const struct qp *qp, uint64_t psn)
{
    return is_marked(qp->requester.recovery_priv, psn);
}

static bool keep_response(struct qp *qp, uint64_t psn)
{
    struct selective_sender *sender = qp->requester.recovery_priv;
    if (psn - sender->marked_from >= sender->places)
        return false;
    mark(sender, psn);
    return true;
}

static bool is_response(const struct requester *requester, uint64_t psn)
{
    const struct message *message = requester->fetch;
    while (message && message_end(message) <= psn)
        message = message->next;
    return message && message_is_fetch(message) && message->first_psn <= psn;
}

/* Kept responses count as acknowledged as soon as everything before them is. Requests count only
 * when the responder acknowledges them. */
static uint64_t slide(struct qp *qp, uint64_t psn)
{
    struct requester *requester = &qp->requester;
    struct selective_sender *sender = requester->recovery_priv;
    for (; sender->marked_from < psn; sender->marked_from++)
        requester->arrived -= unmark(sender, sender->marked_from);
    while (is_marked(sender, psn) && is_response(requester, psn)) {
        unmark(sender, psn++);
        sender->marked_from = psn;
    }
    requester->arrived -= unmark(sender, psn);
    return psn;
}

/* ---- requester: repair ------------------------------------------------------------ */

static void skip(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    struct selective_sender *sender = requester->recovery_priv;
    uint64_t psn = requester->next;
    if (psn >= requester->sent_end)
        return;
    while (psn < sender->lost_end && is_marked(sender, psn))
        psn++;
    if (sender->resent_end < psn)
        sender->resent_end = psn;
    if (psn >= sender->lost_end)
        psn = requester->sent_end;
    if (psn != requester->next)
        requester_seek(requester, psn);
}

static void repair_from(struct qp *qp, uint64_t psn)
{
    requester_seek(&qp->requester, psn);
    skip(qp);
}

static uint64_t in_flight(const struct requester *requester, uint64_t psn)
{
    return psn < requester->sent_end ? psn : requester->sent_end;
}

static void missed(struct qp *qp, uint64_t first, uint64_t end)
{
    struct requester *requester = &qp->requester;
    struct selective_sender *sender = requester->recovery_priv;
    end = in_flight(requester, end);
    mark_requests(qp, in_flight(requester, first), end);
    if (sender->lost_end < end)
        sender->lost_end = end;
    bool repairing = requester->next < requester->sent_end;
    uint64_t from =
        sender->resent_end > requester->unacked ? sender->resent_end : requester->unacked;
    if (!repairing && from < sender->lost_end)
        repair_from(qp, from);
}

/* The first packet is sent even if it has arrived, since its ACK may have been lost. Packets that
 * have arrived still need an ACK, which alone completes them. */
static void resend_all(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    struct selective_sender *sender = requester->recovery_priv;
    completer_resend_from(qp, requester->unacked);
    requester->awaited_end = requester->sent_end;
    sender->resent_end = requester->unacked;
    sender->lost_end = requester->sent_end;
    requester->arrived -= unmark(sender, requester->unacked);
    skip(qp);
}

static uint64_t gap_end(const struct qp *qp, uint64_t psn, uint64_t end)
{
    const struct requester *requester = &qp->requester;
    const struct selective_sender *sender = requester->recovery_priv;
    uint64_t limit = requester->unacked + sender->places;
    if (psn < requester->sent_end && limit > requester->sent_end)
        limit = requester->sent_end;
    if (end > limit)
        end = limit;
    uint64_t gap = psn + 1;
    while (gap < end && !is_marked(sender, gap))
        gap++;
    return gap;
}

/* ---- responder ----------------------------------------------------------------------- */

static struct kept *place_of(const struct qp *qp, uint32_t psn)
{
    struct selective_receiver *receiver = qp->responder.recovery_priv;
    return &receiver->kept[psn % receiver->places];
}

static bool is_kept(const struct qp *qp, uint32_t psn)
{
    const struct kept *place = place_of(qp, psn);
    return place->frame && place->packet.bth.psn == psn;
}

/* Sends a NAK with the run of kept packets around `psn`. If `psn` continues the previous run, that
 * one's start is known already. */
static void nak_with_kept_run(struct qp *qp, uint32_t psn)
{
    struct response_queue *responses = &qp->responses;
    uint32_t first = psn, end = psn_next(psn);
    if (responses->sack_end == psn && is_kept(qp, responses->sack_first) &&
        is_kept(qp, (psn - 1) & PSN_MASK))
        first = responses->sack_first;
    while (is_kept(qp, (first - 1) & PSN_MASK))
        first = (first - 1) & PSN_MASK;
    while (is_kept(qp, end))
        end = psn_next(end);
    responses->sack_first = first;
    responses->sack_end = end;
    response_queue_owe(qp, AETH_NAK_PSN_SEQUENCE_ERROR);
}

static bool ahead(struct qp *qp, const struct packet *packet, struct frame *frame)
{
    const struct selective_receiver *receiver = qp->responder.recovery_priv;
    uint32_t psn = packet->bth.psn;
    uint32_t places_ahead = (uint32_t)psn_ahead(psn, qp->responder.expected);
    if (qp->responder.refused || places_ahead >= receiver->places)
        return false;
    bool is_new = !is_kept(qp, psn);
    if (is_new) {
        forget(qp, place_of(qp, psn));
        *place_of(qp, psn) = (struct kept){.frame = frame, .packet = *packet};
    }
    if (places_ahead > qp->config.reordering)
        nak_with_kept_run(qp, psn);
    return is_new;
}

static struct frame *take_kept(struct qp *qp, struct packet *packet)
{
    if (!is_kept(qp, qp->responder.expected))
        return NULL;
    struct kept *place = place_of(qp, qp->responder.expected);
    struct frame *frame = place->frame;
    *packet = place->packet;
    place->frame = NULL;
    return frame;
}

static const struct recovery selective_repeat = {
    .name = "selective-repeat",
    .resumes = true,
    .init = init,
    .reset = reset,
    .free = free_memory,
    .missed = missed,
    .resend_all = resend_all,
    .has_response = has_response,
    .keep_response = keep_response,
    .slide = slide,
    .skip = skip,
    .gap_end = gap_end,
    .ahead = ahead,
    .take_kept = take_kept,
};

REGISTER(recoveries, selective_repeat)
