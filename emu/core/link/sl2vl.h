/* The lane on which a packet leaves a switch: SL2VL of the egress port (IBTA vol 1, 7.6.6).
 *
 *     SL of the packet ──SL2VL of the port it leaves by──▶ VL; 15: it may not leave there
 *
 * Management packets keep their lane, VL15, which carries no data packets. The VCRC of a packet is
 * renewed when its lane changes. */
#ifndef EMU_LINK_SL2VL_H
#define EMU_LINK_SL2VL_H

#include "link/port.h"

static inline void change_lane(struct frame *frame, uint8_t vl)
{
    frame->tc = vl;
    frame->bytes[0] = (uint8_t)(vl << 4 | (frame->bytes[0] & LVER_MASK));
    if (frame_is_whole(frame))
        vcrc_renew(frame->bytes, frame->length);
}

/* Moves a packet to its lane at egress port `out`; false when it has none there. */
static inline bool lane_chosen(struct frame *frame, const struct port *out)
{
    uint8_t vl = out->lanes->sl2vl[lrh_sl(frame->bytes)];
    if (vl == frame->tc || frame->tc == VL_MANAGEMENT)
        return true;
    if (vl == VL_MANAGEMENT)
        return false;
    change_lane(frame, vl);
    return true;
}

#endif
