/* P_Keys at a switch's port: whose packets may come in by it, and leave (IBTA vol 1, 14.2.5.6,
 * PartitionEnforcementInbound and -Outbound).
 *
 * The subnet manager gives the port the keys of the host behind it. A packet passes
 * when one of them is the same without the membership bit: whether two limited members
 * talk to each other is looked at where both keys are known, at their ends. What does not
 * pass is dropped and counted; no trap tells of it. VL15 has no P_Keys to be looked at, and raw
 * packets have none: filters of their own (FilterRawInbound, FilterRawOutbound), which are left
 * out, would be for them. */
#ifndef EMU_SWITCH_PKEY_H
#define EMU_SWITCH_PKEY_H

#include "headers/lrh.h"
#include "link/vlarb.h"

enum { PKEYS = 128, PKEY_BASE_MASK = 0x7FFF, BTH_PKEY = 2 };

struct pkey_filter {
    bool inbound, outbound;
    uint8_t count;
    uint16_t keys[PKEYS];
};

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
