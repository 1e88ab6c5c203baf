#include "pause.h"

#include <string.h>

enum {
    ETHERTYPE_MAC_CONTROL = 0x8808,
    OPCODE_PFC = 0x0101,
    OFFSET_ETHERTYPE = 12,
    OFFSET_OPCODE = 14,
    OFFSET_ENABLE = 16,
    OFFSET_TIME = 18,
    PFC_BYTES = OFFSET_TIME + 2 * PRIORITIES,
};

static const uint8_t mac_control_address[6] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};

static uint16_t read16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void write16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

void pause_build(const struct pause *pause, const uint8_t source[6],
                 uint8_t bytes[PAUSE_FRAME_BYTES])
{
    memset(bytes, 0, PAUSE_FRAME_BYTES);
    memcpy(bytes, mac_control_address, 6);
    memcpy(bytes + 6, source, 6);
    write16(bytes + OFFSET_ETHERTYPE, ETHERTYPE_MAC_CONTROL);
    write16(bytes + OFFSET_OPCODE, OPCODE_PFC);
    write16(bytes + OFFSET_ENABLE, pause->enable);
    for (int priority = 0; priority < PRIORITIES; priority++)
        if (pause->enable & 1 << priority)
            write16(bytes + OFFSET_TIME + 2 * priority, pause->time[priority]);
}

bool is_mac_control(const uint8_t *bytes, uint32_t length)
{
    return length >= OFFSET_OPCODE && read16(bytes + OFFSET_ETHERTYPE) == ETHERTYPE_MAC_CONTROL;
}

bool pause_parse(struct pause *pause, const uint8_t *bytes, uint32_t length)
{
    if (length < PFC_BYTES || !is_mac_control(bytes, length) ||
        read16(bytes + OFFSET_OPCODE) != OPCODE_PFC)
        return false;
    pause->enable = (uint8_t)read16(bytes + OFFSET_ENABLE);
    for (int priority = 0; priority < PRIORITIES; priority++)
        pause->time[priority] = read16(bytes + OFFSET_TIME + 2 * priority);
    return true;
}
