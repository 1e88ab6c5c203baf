#include "ipv4.h"

enum {
    ETHERNET_HEADER = 14,
    VLAN_TAG = 4,
    IPV4_MIN_HEADER = 20,
};

static uint16_t read16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

uint32_t ipv4_offset(const uint8_t *frame, uint32_t length)
{
    uint32_t offset = ETHERNET_HEADER;
    if (length < offset + IPV4_MIN_HEADER)
        return 0;
    if (read16(frame + 12) == 0x8100)
        offset += VLAN_TAG;
    if (length < offset + IPV4_MIN_HEADER || read16(frame + offset - 2) != 0x0800)
        return 0;
    uint32_t header = (frame[offset] & 0x0F) * 4u;
    if (frame[offset] >> 4 != 4 || header < IPV4_MIN_HEADER || length < offset + header)
        return 0;
    return offset;
}

/* The 16-bit word at `word` becomes `value`; the checksum follows. */
static void update(uint8_t *header, uint8_t *word, uint16_t value)
{
    uint32_t sum = (uint16_t)~read16(header + 10) + (uint32_t)(uint16_t)~read16(word) + value;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    word[0] = (uint8_t)(value >> 8);
    word[1] = (uint8_t)value;
    header[10] = (uint8_t)(~sum >> 8);
    header[11] = (uint8_t)~sum;
}

void ipv4_set_ce(uint8_t *header)
{
    update(header, header, (uint16_t)(read16(header) | ECN_CE));
}

void ipv4_decrement_ttl(uint8_t *header)
{
    update(header, header + 8, (uint16_t)(read16(header + 8) - 0x0100));
}
