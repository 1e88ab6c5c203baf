/* An Ethernet device carries InfiniBand packets behind a 14-byte encapsulation header, whose
 * ethertype tells packets from link packets (flow control). */
#ifndef EMU_HEADERS_IB_ENCAP_H
#define EMU_HEADERS_IB_ENCAP_H

#include "sim/frame.h"

enum {
    IB_ENCAP_BYTES = 14,
    ETHERTYPE_IB_PACKET = 0x88B5, /* IEEE's first local experimental ethertype */
    ETHERTYPE_IB_LINK = 0x88B6,   /* and the second */
};

/* The encapsulation header for an InfiniBand frame. */
static inline const uint8_t *ib_encap_header(const struct frame *frame)
{
    static const uint8_t headers[2][IB_ENCAP_BYTES] = {
        {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ETHERTYPE_IB_PACKET >> 8, ETHERTYPE_IB_PACKET & 0xFF},
        {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ETHERTYPE_IB_LINK >> 8, ETHERTYPE_IB_LINK & 0xFF},
    };
    return headers[frame->kind == FRAME_IB_LINK];
}

/* The kind of frame that is carried; FRAME_ETHERNET: none is. */
static inline uint8_t ib_encap_kind(const uint8_t *bytes, uint32_t length)
{
    if (length < IB_ENCAP_BYTES)
        return FRAME_ETHERNET;
    uint16_t ethertype = (uint16_t)(bytes[12] << 8 | bytes[13]);
    if (ethertype == ETHERTYPE_IB_PACKET)
        return FRAME_IB;
    return ethertype == ETHERTYPE_IB_LINK ? FRAME_IB_LINK : FRAME_ETHERNET;
}

#endif
