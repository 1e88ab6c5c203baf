/* Pause frames: of single priorities (PFC: IEEE 802.1Qbb, 802.3 annex 31D), and of
 * the whole link (802.3x: annex 31B).
 *
 *     01:80:C2:00:00:01 | source | 8808 | 0101 | enable 16 | time[8] 16 each | pad to 60
 *     01:80:C2:00:00:01 | source | 8808 | 0001 | time 16                     | pad to 60
 *
 * A time is counted in quanta of 512 bit times of the link it is sent on;
 * 0 resumes at once. Never tagged, never forwarded. */
#ifndef EMU_LINK_PAUSE_H
#define EMU_LINK_PAUSE_H

#include "sim/frame.h"

enum {
    PRIORITIES = 8,
    PAUSE_FRAME_BYTES = 60,
    PAUSE_MAX_QUANTA = 0xFFFF,
    QUANTUM_BITS = 512,
};

struct pause {
    bool global;               /* 802.3x: all priorities, and the same time for each */
    uint8_t enable;            /* bit n: time[n] is valid */
    uint16_t time[PRIORITIES]; /* quanta */
};

static inline picoseconds quanta_time(uint32_t quanta, uint64_t rate_bps)
{
    return serialisation((uint64_t)quanta * (QUANTUM_BITS / 8), rate_bps);
}

void pause_build(const struct pause *pause, const uint8_t source[6],
                 uint8_t bytes[PAUSE_FRAME_BYTES]);

/* True for any MAC control frame: it ends at this port, understood or not. */
bool is_mac_control(const uint8_t *bytes, uint32_t length);

/* False when the frame is neither, or too short. */
bool pause_parse(struct pause *pause, const uint8_t *bytes, uint32_t length);

#endif
