/* P_Keys at a switch port: which packets may enter or leave by it (IBTA vol 1, 14.2.5.6,
 * PartitionEnforcementInbound and -Outbound).
 *
 * The subnet manager gives the port the P_Keys of the host behind it. A packet passes if one of
 * them equals its own, apart from the membership bit. Whether two limited members may communicate
 * is checked at the hosts, where both keys are known. Other packets are dropped and counted; no
 * trap is sent. VL15 is not checked. Raw packets have no P_Key; their own filters
 * (FilterRawInbound, FilterRawOutbound) are left out. */
#ifndef EMU_SWITCH_PKEY_H
#define EMU_SWITCH_PKEY_H

#include "headers/lrh.h"
#include "link/vlarb.h"
#include "switch/switch_config.h"

enum { PKEY_BASE_MASK = 0x7FFF, BTH_PKEY = 2 };

static inline bool pkey_passes(const struct pkey_filter *filter, const struct frame *frame)
{
    if (frame->tc == VL_MANAGEMENT || !lrh_has_bth(frame->bytes))
        return true;
    uint32_t at = route_bytes(frame->bytes) + BTH_PKEY;
    uint32_t key = (uint32_t)frame->bytes[at] << 8 | frame->bytes[at + 1];
    for (uint8_t i = 0; i < filter->count; i++)
        if (!((filter->keys[i] ^ key) & PKEY_BASE_MASK))
            return true;
    return false;
}

#endif
