#include "link/pause.h"

#include <string.h>

enum {
    ETHERTYPE_MAC_CONTROL = 0x8808,
    OPCODE_PAUSE = 0x0001,
    OPCODE_PFC = 0x0101,
    OFFSET_ETHERTYPE = 12,
    OFFSET_OPCODE = 14,
    OFFSET_ENABLE = 16,
    OFFSET_GLOBAL_TIME = 16,
    OFFSET_TIME = 18,
    GLOBAL_BYTES = OFFSET_GLOBAL_TIME + 2,
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
    if (pause->global) {
        write16(bytes + OFFSET_OPCODE, OPCODE_PAUSE);
        write16(bytes + OFFSET_GLOBAL_TIME, pause->time[0]);
        return;
    }
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

static void parse_global(struct pause *pause, const uint8_t *bytes)
{
    *pause = (struct pause){.global = true, .enable = 0xFF};
    for (int priority = 0; priority < PRIORITIES; priority++)
        pause->time[priority] = read16(bytes + OFFSET_GLOBAL_TIME);
}

static void parse_pfc(struct pause *pause, const uint8_t *bytes)
{
    *pause = (struct pause){.enable = (uint8_t)read16(bytes + OFFSET_ENABLE)};
    for (int priority = 0; priority < PRIORITIES; priority++)
        pause->time[priority] = read16(bytes + OFFSET_TIME + 2 * priority);
}

bool pause_parse(struct pause *pause, const uint8_t *bytes, uint32_t length)
{
    if (length < GLOBAL_BYTES || !is_mac_control(bytes, length))
        return false;
    uint16_t opcode = read16(bytes + OFFSET_OPCODE);
    if (opcode == OPCODE_PAUSE)
        parse_global(pause, bytes);
    else if (opcode == OPCODE_PFC && length >= PFC_BYTES)
        parse_pfc(pause, bytes);
    else
        return false;
    return true;
}
