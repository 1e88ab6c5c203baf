#include "nic/icrc.h"

#include <assert.h>
#include <libdeflate.h>
#include <string.h>

#include "headers/lrh.h"
#include "headers/transport.h"

enum {
    GRH_FLOW = 1, /* flow label and traffic class, whose first bits are in the byte before */
    GRH_HOP_LIMIT = 7,
    IPV4_MAX_BYTES = 60,
    UDP_BYTES = 8,
    IPV4_TOS = 1,
    IPV4_TTL = 8,
    IPV4_CHECKSUM = 10,
    UDP_CHECKSUM = 6,
    BTH_VARIANT = 4,
};

/* The CRC of masked copies of the headers and of the unchanged rest. */
static uint32_t crc_of(const uint8_t *masked, uint32_t masked_bytes, const uint8_t *rest,
                       uint32_t rest_bytes)
{
    uint32_t crc = libdeflate_crc32(0, masked, masked_bytes);
    return libdeflate_crc32(crc, rest, rest_bytes);
}

uint32_t icrc_roce_ipv4(const uint8_t *ip, uint32_t length)
{
    uint8_t masked[LRH_BYTES + IPV4_MAX_BYTES + UDP_BYTES + BTH_BYTES];
    uint32_t ip_bytes = (ip[0] & 0x0F) * 4u;
    uint32_t headers = ip_bytes + UDP_BYTES + BTH_BYTES;
    assert(length >= headers);

    memset(masked, 0xFF, LRH_BYTES);
    uint8_t *copy = memcpy(masked + LRH_BYTES, ip, headers);
    copy[IPV4_TOS] = 0xFF;
    copy[IPV4_TTL] = 0xFF;
    memset(copy + IPV4_CHECKSUM, 0xFF, 2);
    memset(copy + ip_bytes + UDP_CHECKSUM, 0xFF, 2);
    copy[ip_bytes + UDP_BYTES + BTH_VARIANT] = 0xFF;
    return crc_of(masked, LRH_BYTES + headers, ip + headers, length - headers);
}

uint32_t icrc_ib_local(const uint8_t *lrh, uint32_t length)
{
    uint8_t masked[LRH_BYTES + BTH_BYTES];
    assert(length >= sizeof masked);

    memcpy(masked, lrh, sizeof masked);
    masked[0] |= 0xF0;
    masked[LRH_BYTES + BTH_VARIANT] = 0xFF;
    return crc_of(masked, sizeof masked, lrh + sizeof masked, length - (uint32_t)sizeof masked);
}

uint32_t icrc_ib_global(const uint8_t *lrh, uint32_t length)
{
    uint8_t masked[LRH_BYTES + GRH_BYTES + BTH_BYTES];
    assert(length >= sizeof masked);

    memcpy(masked, lrh, sizeof masked);
    memset(masked, 0xFF, LRH_BYTES);
    uint8_t *grh = masked + LRH_BYTES;
    grh[0] |= 0x0F;
    memset(grh + GRH_FLOW, 0xFF, 3);
    grh[GRH_HOP_LIMIT] = 0xFF;
    grh[GRH_BYTES + BTH_VARIANT] = 0xFF;
    return crc_of(masked, sizeof masked, lrh + sizeof masked, length - (uint32_t)sizeof masked);
}
