/* Go-back-N, as in InfiniBand.
 *
 * The responder takes requests in order and drops those ahead of the expected one. It answers the
 * first of them with a NAK that carries the expected PSN, and sends no other NAK until that request
 * arrives. The requester sends everything again from that PSN on. */
#include "nic/completer.h"
#include "nic/recovery.h"
#include "nic/response_queue.h"

static void go_back(struct qp *qp)
{
    completer_resend_from(qp, qp->requester.unacked);
}

static void missed(struct qp *qp, uint64_t first, uint64_t end)
{
    (void)first;
    (void)end;
    go_back(qp);
}

static bool ahead(struct qp *qp, const struct packet *packet, struct frame *frame)
{
    (void)packet;
    (void)frame;
    if (!qp->responder.refused)
        response_queue_owe(qp, AETH_NAK_PSN_SEQUENCE_ERROR);
    qp->responder.refused = true;
    return false;
}

static const struct recovery go_back_n = {
    .name = "go-back-n",
    .resumes = true,
    .counts_retries = true,
    .missed = missed,
    .resend_all = go_back,
    .ahead = ahead,
};

REGISTER(recoveries, go_back_n)
