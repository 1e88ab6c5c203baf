#include "nic/delivery.h"

#include "nic/message.h"
#include "nic/psn.h"

void delivery_expect(struct qp *qp, struct message *message)
{
    struct responder *responder = &qp->responder;
    message->next_expected = NULL;
    if (responder->next_expected)
        responder->last_expected->next_expected = message;
    else
        responder->next_expected = message;
    responder->last_expected = message;
}

void delivery_record(struct qp *qp, uint32_t bytes, bool all, picoseconds now)
{
    struct message *message = qp->responder.next_expected;
    if (!message)
        return;
    if (all)
        qp->responder.next_expected = message->next_expected;
    message_delivered(message, bytes, all, now);
}

static uint32_t last_psn(const struct message *message)
{
    return (uint32_t)(message_end(message) - 1) & PSN_MASK;
}

void delivery_record_late(struct qp *qp, uint32_t psn, uint32_t bytes, picoseconds now)
{
    struct message *message = qp->responder.next_expected;
    while (message && last_psn(message) != psn)
        message = message->next_expected;
    if (!message)
        return;
    qp->responder.next_expected = message->next_expected;
    message_delivered(message, bytes, true, now);
}
