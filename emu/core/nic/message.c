#include "nic/message.h"

#include <string.h>

#include "nic/nic.h"
#include "nic/sge.h"

bool message_find_memory(const struct qp *qp, const struct message *message, uint8_t **bytes)
{
    const struct mr_table *table = &qp->nic->mrs;
    uint32_t pd = qp->config.pd, access = message_is_fetch(message) ? ACCESS_LOCAL_WRITE : 0;
    /* The usual case first: this is in the path of each packet. */
    if (!message->sges && !message->inlined &&
        mr_find(table, pd, message->lkey, message->local_va, message->length, access, bytes))
        return true;
    *bytes = NULL;
    return message->length == 0 || message->inlined ||
           (message->sges && sges_are_valid(table, pd, message->sges, message->sge_count, access));
}

void message_gather(const struct qp *qp, const struct message *message, const uint8_t *memory,
                    uint32_t offset, uint8_t *to, uint32_t bytes)
{
    const uint8_t *piece = message->inlined ? message->inlined : memory;
    if (piece && bytes)
        memcpy(to, piece + offset, bytes);
    else if (message->sges && bytes)
        sges_gather(&qp->nic->mrs, qp->config.pd, message->sges, offset, to, bytes);
}

void message_scatter(const struct qp *qp, const struct message *message, uint8_t *memory,
                     uint32_t offset, const uint8_t *from, uint32_t bytes)
{
    if (memory)
        memcpy(memory + offset, from, bytes);
    else if (message->sges)
        sges_scatter(&qp->nic->mrs, qp->config.pd, message->sges, offset, from, bytes);
}

void message_delivered(struct message *message, uint32_t bytes, bool all, picoseconds now)
{
    message->record->delivered_bytes += bytes;
    if (all)
        message->record->delivered_ps = now;
    if (message->handler)
        message->handler->delivered(message, bytes, all, now);
}
