/* A frame that came in from outside, where the kernel put it. */
#ifndef EMU_ARRIVAL_H
#define EMU_ARRIVAL_H

#include <stdint.h>
#include <string.h>

enum { VLAN_TAG = 4, MAC_ADDRESSES = 12 };

struct arrival {
    void *to;       /* what was attached to the interface */
    uint8_t *bytes; /* NULL: not to be looked at */
    int64_t stamp_ns;
    uint32_t length;
    uint32_t ifindex;
};

/* The kernel takes a VLAN tag out of the frame and tells it beside; here it goes
 * back, over the virtio_net_hdr before the frame. */
static inline void arrival_restore_vlan_tag(struct arrival *arrival, uint16_t tpid, uint16_t tci)
{
    const uint8_t tag[VLAN_TAG] = {(uint8_t)(tpid >> 8), (uint8_t)tpid, (uint8_t)(tci >> 8),
                                   (uint8_t)tci};
    arrival->bytes -= VLAN_TAG;
    arrival->length += VLAN_TAG;
    memmove(arrival->bytes, arrival->bytes + VLAN_TAG, MAC_ADDRESSES);
    memcpy(arrival->bytes + MAC_ADDRESSES, tag, VLAN_TAG);
}

#endif
