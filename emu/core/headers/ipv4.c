#include "headers/ipv4.h"

#include "headers/vlan.h"

enum { ETHERNET_HEADER = 14, IPV4_MIN_HEADER = 20 };

static uint16_t read16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

uint32_t ipv4_offset(const uint8_t *frame, uint32_t length)
{
    if (length < ETHERNET_HEADER + IPV4_MIN_HEADER)
        return 0;
    uint32_t offset = vlan_header_bytes(frame);
    if (length < offset + IPV4_MIN_HEADER || read16(frame + offset - 2) != 0x0800)
        return 0;
    uint32_t header = (frame[offset] & 0x0F) * 4u;
    if (frame[offset] >> 4 != 4 || header < IPV4_MIN_HEADER || length < offset + header)
        return 0;
    return offset;
}

/* A word of the header became another: their difference, in one's complement, goes into the
 * checksum (RFC 1624, equation 3). */
static void adjust_checksum(uint8_t *header, uint32_t difference)
{
    uint32_t sum = (uint16_t)~read16(header + 10) + difference;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    header[10] = (uint8_t)(~sum >> 8);
    header[11] = (uint8_t)~sum;
}

void ipv4_set_ce(uint8_t *header)
{
    adjust_checksum(header, ECN_CE - ipv4_ecn(header));
    header[1] |= ECN_CE;
}

void ipv4_decrement_ttl(uint8_t *header)
{
    header[8]--;
    adjust_checksum(header, 0xFFFF - 0x0100);
}
