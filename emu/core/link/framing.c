#include "link/framing.h"

const struct link_framing_ops *const link_framings[FRAMINGS] = {
    [FRAMING_ETHERNET] = &link_framing_ethernet,
    [FRAMING_INFINIBAND] = &link_framing_infiniband,
};

bool is_packet(const struct frame *frame)
{
    return frame->kind == FRAME_IB || (frame->kind == FRAME_ETHERNET && !is_mac_control(frame));
}
