/* A posted message: its memory, its delivery, its last packet. */
#ifndef EMU_NIC_MESSAGE_H
#define EMU_NIC_MESSAGE_H

#include "nic/qp.h"

/* Whether the NIC may use its memory now. Then `bytes` is where that begins in the host; NULL: it
 * is inline, in several pieces, or elided. */
bool message_find_memory(const struct qp *qp, const struct message *message, uint8_t **bytes);

/* Copy a part of that memory, to or from a packet. `memory`: as it was found. */
void message_gather(const struct qp *qp, const struct message *message, const uint8_t *memory,
                    uint32_t offset, uint8_t *to, uint32_t bytes);
void message_scatter(const struct qp *qp, const struct message *message, uint8_t *memory,
                     uint32_t offset, const uint8_t *from, uint32_t bytes);

/* Bytes of a message have been written to the memory that they are for. */
void message_delivered(struct message *message, uint32_t bytes, bool all, picoseconds now);

static inline uint64_t message_end(const struct message *message)
{
    return message->first_psn + message->packets;
}

#endif
