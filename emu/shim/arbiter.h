/* Which class an egress port sends next: strict priorities first, highest
 * first, then deficit weighted round robin over the others (802.1Qaz ETS).
 *
 * A class takes part while it has a frame that flow control lets go; a blocked
 * class keeps its deficit, an empty one loses it. */
#ifndef EMU_ARBITER_H
#define EMU_ARBITER_H

#include "frame.h"

struct arbiter_config {
    uint16_t strict;         /* bit per class with strict priority */
    uint8_t weight[CLASSES]; /* share of the others, in quanta per round */
};

struct arbiter {
    uint32_t deficit[CLASSES]; /* bytes */
    uint8_t turn;
    bool granted; /* the class whose turn it is has had this round's quantum */
};

enum { ARBITER_QUANTUM = 16384, ARBITER_NONE = CLASSES };

/* `sendable`: bit per class with a frame that may go now. `queues[c].first` is
 * that frame. Returns a class, or ARBITER_NONE when no bit is set. */
uint8_t arbiter_pick(struct arbiter *arbiter, const struct arbiter_config *config,
                     const struct frame_queue queues[CLASSES], uint16_t sendable);

#endif
