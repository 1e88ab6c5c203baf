/* What a switch reads and changes in an IPv4 header, in place: DSCP and ECN, the
 * destination, TTL. */
#ifndef EMU_HEADERS_IPV4_H
#define EMU_HEADERS_IPV4_H

#include <stdbool.h>
#include <stdint.h>

enum ecn { ECN_NOT_ECT = 0, ECN_ECT1 = 1, ECN_ECT0 = 2, ECN_CE = 3 };

/* Where the IPv4 header begins in an Ethernet frame (one VLAN tag allowed);
 * 0 when the frame holds no whole IPv4 header with a right version and length. */
uint32_t ipv4_offset(const uint8_t *frame, uint32_t length);

static inline uint8_t ipv4_dscp(const uint8_t *header)
{
    return header[1] >> 2;
}

static inline enum ecn ipv4_ecn(const uint8_t *header)
{
    return (enum ecn)(header[1] & 3);
}

static inline uint32_t ipv4_destination(const uint8_t *header)
{
    return (uint32_t)header[16] << 24 | (uint32_t)header[17] << 16 | (uint32_t)header[18] << 8 |
           header[19];
}

static inline uint8_t ipv4_ttl(const uint8_t *header)
{
    return header[8];
}

/* Both keep the header checksum right (RFC 1624). */
void ipv4_set_ce(uint8_t *header);
void ipv4_decrement_ttl(uint8_t *header); /* of a TTL above 0 */

#endif
