/* A frame that came in from outside, where the kernel put it. */
#ifndef EMU_DRIVER_RX_FRAME_H
#define EMU_DRIVER_RX_FRAME_H

#include <string.h>

#include "headers/vlan.h"

struct rx_frame {
    void *to;       /* what was attached to the interface */
    uint8_t *bytes; /* NULL: not to be looked at */
    int64_t stamp_ns;
    uint32_t length; /* as it was sent; of what is longer than any frame, only the head is there */
    uint32_t ifindex;
};

/* The kernel takes a VLAN tag out of the frame and tells it beside; here it goes
 * back, over the virtio_net_hdr before the frame. */
static inline void rx_frame_restore_vlan_tag(struct rx_frame *rx, uint16_t tpid, uint16_t tci)
{
    if (rx->length < VLAN_TAG_OFFSET)
        return; /* it has no place for a tag; the port refuses it */
    const uint8_t tag[VLAN_TAG_BYTES] = {(uint8_t)(tpid >> 8), (uint8_t)tpid, (uint8_t)(tci >> 8),
                                         (uint8_t)tci};
    rx->bytes -= VLAN_TAG_BYTES;
    rx->length += VLAN_TAG_BYTES;
    memmove(rx->bytes, rx->bytes + VLAN_TAG_BYTES, VLAN_TAG_OFFSET);
    memcpy(rx->bytes + VLAN_TAG_OFFSET, tag, VLAN_TAG_BYTES);
}

#endif
