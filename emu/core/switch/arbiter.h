/* Which queue an egress port serves next: strict priorities first, the highest of them before the
 * others, then deficit round robin over the other queues (Shreedhar and Varghese, SIGCOMM'95).
 * Deficit round robin divides the bytes sent in fixed shares (802.1Qaz ETS).
 *
 * A queue takes part while it has a frame that flow control allows to leave. A blocked queue keeps
 * its deficit, an empty one loses it. */
#ifndef EMU_SWITCH_ARBITER_H
#define EMU_SWITCH_ARBITER_H

#include "sim/frame.h"
#include "switch/switch_config.h"

struct arbiter {
    uint32_t deficit[CLASSES]; /* bytes */
    uint8_t turn;
    bool granted; /* the queue whose turn it is has got its quantum of this round */
};

enum { ARBITER_NONE = CLASSES };

/* `sendable` has one bit for each queue whose first frame may leave now. Returns a queue, or
 * ARBITER_NONE when no bit is set. */
uint8_t arbiter_pick(struct arbiter *arbiter, const struct arbiter_config *config,
                     const struct frame_queue queues[CLASSES], uint16_t sendable);

#endif
