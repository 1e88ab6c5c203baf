/* Which queue an egress port serves next: strict priorities first, highest
 * first, then deficit round robin over the others (Shreedhar and Varghese,
 * SIGCOMM'95), which gives them shares of the bytes sent (802.1Qaz ETS).
 *
 * A queue takes part while it has a frame that flow control lets go; a blocked
 * queue keeps its deficit, an empty one loses it. */
#ifndef EMU_SWITCH_ARBITER_H
#define EMU_SWITCH_ARBITER_H

#include "sim/frame.h"

struct arbiter_config {
    uint16_t strict;           /* bit per queue with strict priority */
    uint32_t quantum[CLASSES]; /* of the others: bytes in a round, at least 1 */
};

struct arbiter {
    uint32_t deficit[CLASSES]; /* bytes */
    uint8_t turn;
    bool granted; /* the queue whose turn it is has had this round's quantum */
};

enum { ARBITER_QUANTUM = 4376, ARBITER_NONE = CLASSES };

/* `sendable`: bit per queue with a frame that may go now. `queues[q].frames.first`
 * is that frame. Returns a queue, or ARBITER_NONE when no bit is set. */
uint8_t arbiter_pick(struct arbiter *arbiter, const struct arbiter_config *config,
                     const struct frame_queue queues[CLASSES], uint16_t sendable);

#endif
