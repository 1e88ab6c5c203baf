/* What a switch reads in an IPv6 header (RFC 8200, 3): its place in a frame, DSCP, and whether it
 * is for the next node alone. */
#ifndef EMU_HEADERS_IPV6_H
#define EMU_HEADERS_IPV6_H

#include <stdbool.h>
#include <stdint.h>

#include "headers/vlan.h"

enum {
    IPV6_ETHERTYPE = 0x86DD,
    IPV6_HEADER_BYTES = 40,
    IPV6_DESTINATION_OFFSET = 24,
};

/* Where the IPv6 header begins in an Ethernet frame (one VLAN tag allowed); 0 when the frame holds
 * no whole IPv6 header. */
static inline uint32_t ipv6_offset(const uint8_t *frame, uint32_t length)
{
    if (!ethernet_header_is_whole(frame, length))
        return 0;
    uint32_t offset = vlan_header_bytes(frame);
    const uint8_t *type = frame + offset - 2;
    bool is_ipv6 = (type[0] << 8 | type[1]) == IPV6_ETHERTYPE;
    return is_ipv6 && length >= offset + IPV6_HEADER_BYTES ? offset : 0;
}

static inline uint8_t ipv6_dscp(const uint8_t *header)
{
    return (uint8_t)((header[0] & 0xF) << 2 | header[1] >> 6);
}

/* Whether the destination is in fe80::/10, or in ff02::/16, the groups of a link. */
static inline bool ipv6_is_to_link_local(const uint8_t *header)
{
    const uint8_t *to = header + IPV6_DESTINATION_OFFSET;
    return (to[0] == 0xFE && (to[1] & 0xC0) == 0x80) || (to[0] == 0xFF && (to[1] & 0x0F) == 0x02);
}

#endif
