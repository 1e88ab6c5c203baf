/* Go-back-0: after a loss the whole message is sent again, as early RoCE NICs did
 * (Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM'16, 4.1).
 *
 * The responder discards what it has of the message, and its NAK carries the PSN of the message's
 * first packet. The requester begins the message again. It does the same for a READ with a missing
 * response, and when the timer expires.
 *
 * If one packet in k is lost, a message of k packets never arrives: the link is busy without any
 * progress. The bytes of a message therefore count as delivered only when the whole message is. */
#include "nic/completer.h"
#include "nic/message.h"
#include "nic/recovery.h"
#include "nic/responder.h"
#include "nic/response_queue.h"

static void begin_again(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    const struct message *message = requester->oldest;
    while (message && message_end(message) <= requester->unacked)
        message = message->next;
    if (message && message->first_psn < requester->unacked)
        requester->unacked = message->first_psn;
    completer_resend_from(qp, requester->unacked);
}

static void missed(struct qp *qp, uint64_t first, uint64_t end)
{
    (void)first;
    (void)end;
    begin_again(qp);
}

static bool ahead(struct qp *qp, const struct packet *packet, struct frame *frame)
{
    (void)packet;
    (void)frame;
    if (qp->responder.refused)
        return false;
    responder_begin_again(qp);
    response_queue_owe(qp, AETH_NAK_PSN_SEQUENCE_ERROR);
    qp->responder.refused = true;
    return false;
}

static const struct recovery go_back_0 = {
    .name = "go-back-0",
    .counts_retries = true,
    .missed = missed,
    .resend_all = begin_again,
    .ahead = ahead,
};

REGISTER(recoveries, go_back_0)
