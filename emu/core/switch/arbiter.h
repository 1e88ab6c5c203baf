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
    uint8_t turn;
    bool granted; /* the queue whose turn it is has got its quantum of this round */
    bool shares;  /* queues have shared the port, so that some may have a deficit */
};

/* By queue, in bytes. They are apart, because only queues that share a port need them. */
struct deficits {
    uint32_t of[CLASSES];
};

enum { ARBITER_NONE = CLASSES };

/* `sendable` has one bit for each queue whose first frame may leave now. Returns a queue, or
 * ARBITER_NONE when no bit is set. */
uint8_t arbiter_pick(struct arbiter *arbiter, struct deficits *deficits,
                     const struct arbiter_config *config, const struct frame_queue queues[CLASSES],
                     uint16_t sendable);

#endif
