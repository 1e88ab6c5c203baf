/* The VLAN tag of an Ethernet frame (IEEE 802.1Q, 9.6), behind its addresses:
 *
 *     destination MAC 6 | source MAC 6 | 8100 | PCP 3, DEI 1, VID 12 | ethertype 2 ...
 *
 * PCP is a priority. With VID 0 the tag carries nothing else (a priority tag). */
#ifndef EMU_HEADERS_VLAN_H
#define EMU_HEADERS_VLAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PCPS = 8,
    VID_MAX = 4094,
    ETHERTYPE_VLAN_TAG = 0x8100,
    VLAN_TAG_OFFSET = 12,
    VLAN_TAG_BYTES = 4,
    VLAN_PCP_OFFSET = VLAN_TAG_OFFSET + 2,
    VLAN_PCP_SHIFT = 5,
};

/* For a frame with at least 14 bytes, as all functions here. */
static inline bool vlan_is_tagged(const uint8_t *frame)
{
    const uint8_t *tag = frame + VLAN_TAG_OFFSET;
    return (tag[0] << 8 | tag[1]) == ETHERTYPE_VLAN_TAG;
}

/* The VID of the frame's tag; 0: it has no tag, or one that names no VLAN. */
static inline uint16_t vlan_vid(const uint8_t *frame)
{
    const uint8_t *tag = frame + VLAN_TAG_OFFSET;
    return vlan_is_tagged(frame) ? (uint16_t)((tag[2] & 0xF) << 8 | tag[3]) : 0;
}

/* The bytes before the payload: addresses, VLAN tag, ethertype. */
static inline uint32_t vlan_header_bytes(const uint8_t *frame)
{
    return VLAN_TAG_OFFSET + 2 + (vlan_is_tagged(frame) ? VLAN_TAG_BYTES : 0);
}

/* Whether the frame is long enough for addresses, ethertype and a VLAN tag, if it has one. */
static inline bool ethernet_header_is_whole(const uint8_t *frame, uint32_t length)
{
    return length >= VLAN_TAG_OFFSET + 2 && length >= vlan_header_bytes(frame);
}

#endif
