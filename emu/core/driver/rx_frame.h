/* A received frame, in the memory where the kernel put it. */
#ifndef EMU_DRIVER_RX_FRAME_H
#define EMU_DRIVER_RX_FRAME_H

#include <string.h>

#include "headers/vlan.h"

struct rx_frame {
    void *to;       /* the pointer attached to the interface */
    uint8_t *bytes; /* NULL: the frame is to be ignored */
    int64_t stamp_ns;
    uint32_t length; /* as sent; only the head of an oversize frame is there */
    uint32_t ifindex;
};

/* Puts a VLAN tag back into the frame, over the virtio_net_hdr before it: the kernel removes the
 * tag and reports it separately. */
static inline void rx_frame_restore_vlan_tag(struct rx_frame *rx, uint16_t tpid, uint16_t tci)
{
    if (rx->length < VLAN_TAG_OFFSET)
        return; /* too short for a tag; the port refuses it */
    const uint8_t tag[VLAN_TAG_BYTES] = {(uint8_t)(tpid >> 8), (uint8_t)tpid, (uint8_t)(tci >> 8),
                                         (uint8_t)tci};
    rx->bytes -= VLAN_TAG_BYTES;
    rx->length += VLAN_TAG_BYTES;
    memmove(rx->bytes, rx->bytes + VLAN_TAG_BYTES, VLAN_TAG_OFFSET);
    memcpy(rx->bytes + VLAN_TAG_OFFSET, tag, VLAN_TAG_BYTES);
}

#endif
