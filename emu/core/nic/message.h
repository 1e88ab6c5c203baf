/* A posted message: whether its memory may still be read, its delivery, its last packet. */
#ifndef EMU_NIC_MESSAGE_H
#define EMU_NIC_MESSAGE_H

#include "nic/qp.h"

/* Whether the key of the memory that it was posted with is still valid. */
bool message_has_memory(const struct qp *qp, const struct message *message);

/* Bytes of a message have been written to the memory that they are for. */
void message_delivered(struct message *message, uint32_t bytes, bool all, picoseconds now);

static inline uint64_t message_end(const struct message *message)
{
    return message->first_psn + message->packets;
}

#endif
