/* What a posted message is asked, and what becomes of it. */
#ifndef EMU_NIC_MESSAGE_H
#define EMU_NIC_MESSAGE_H

#include "nic/qp.h"

/* Whether its key still opens the memory that it was posted with. */
bool message_has_memory(const struct qp *qp, const struct message *message);

/* Bytes of a message have arrived where they belong. */
void message_delivered(struct message *message, uint32_t bytes, bool all, picoseconds now);

static inline uint64_t message_end(const struct message *message)
{
    return message->first_psn + message->packets;
}

#endif
