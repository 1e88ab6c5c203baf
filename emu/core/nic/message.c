#include "nic/message.h"

#include "nic/nic.h"

bool message_has_memory(const struct qp *qp, const struct message *message)
{
    return message->length == 0 || message->inlined ||
           mr_has(&qp->nic->mrs, qp->config.pd, message->lkey);
}

void message_delivered(struct message *message, uint32_t bytes, bool all, picoseconds now)
{
    message->record->delivered_bytes += bytes;
    if (all)
        message->record->delivered_ps = now;
    if (message->handler)
        message->handler->delivered(message, bytes, all, now);
}
