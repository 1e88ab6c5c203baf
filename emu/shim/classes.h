/* Which priority a frame rides on: told by the port it comes in by, from its DSCP
 * or from the PCP of its VLAN tag (802.1Q), whichever the port trusts.
 *
 * Frames that tell nothing (no IPv4 where DSCP is trusted, no tag where PCP is)
 * ride on `untold`. */
#ifndef EMU_CLASSES_H
#define EMU_CLASSES_H

#include "frame.h"
#include "ipv4.h"
#include "vlan.h"

enum { DSCPS = 64 };

struct classes {
    bool trusts_pcp;
    uint8_t untold;
    uint8_t of_dscp[DSCPS];
    uint8_t of_pcp[PCPS];
};

static inline uint8_t class_by_tag(const struct classes *classes, const struct frame *frame)
{
    bool tagged = frame->stored > VLAN_PCP_OFFSET && vlan_is_tagged(frame->bytes);
    if (!tagged)
        return classes->untold;
    return classes->of_pcp[frame->bytes[VLAN_PCP_OFFSET] >> VLAN_PCP_SHIFT];
}

/* `frame->ip` is known by now. */
static inline uint8_t class_of(const struct classes *classes, const struct frame *frame)
{
    if (classes->trusts_pcp)
        return class_by_tag(classes, frame);
    return frame->ip ? classes->of_dscp[ipv4_dscp(frame->bytes + frame->ip)] : classes->untold;
}

#endif
