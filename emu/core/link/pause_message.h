/* Pauses as flow control messages: for single priorities (PFC: IEEE 802.1Qbb, 802.3 annex 31D), or
 * for the whole link (802.3x: annex 31B).
 *
 *     CONTROL_PFC      enable 16 | time[8] 16 each
 *     CONTROL_PAUSE    time 16
 *
 * Times are counted in quanta of 512 bit times of the link. Time 0 ends the pause at once. The
 * framing puts a message into a frame (framing.h). */
#ifndef EMU_LINK_PAUSE_MESSAGE_H
#define EMU_LINK_PAUSE_MESSAGE_H

#include "link/framing.h"

enum {
    PRIORITIES = 8,
    PAUSE_MAX_QUANTA = 0xFFFF,
    QUANTUM_BITS = 512,
};

struct pause {
    bool global;               /* 802.3x: all priorities, with one time */
    uint8_t enable;            /* bit n: time[n] is valid */
    uint16_t time[PRIORITIES]; /* quanta */
};

static inline picoseconds quanta_time(uint32_t quanta, uint64_t rate_bps)
{
    return serialisation((uint64_t)quanta * (QUANTUM_BITS / 8), rate_bps);
}

/* A frame with this pause for a port of this framing; NULL when there is no memory. */
struct frame *pause_build(const struct link_framing_ops *framing, const struct port *port,
                          const struct pause *pause);

/* False when the frame has no pause message. */
bool pause_parse(const struct link_framing_ops *framing, struct pause *pause,
                 const struct frame *frame);

#endif
