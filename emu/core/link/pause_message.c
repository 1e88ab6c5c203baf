#include "link/pause_message.h"

enum { GLOBAL_BYTES = 2, OFFSET_TIME = 2, PFC_BYTES = OFFSET_TIME + 2 * PRIORITIES };

static uint16_t read16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void write16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static void build_global(const struct pause *pause, uint8_t *bytes)
{
    write16(bytes, pause->time[0]);
}

static void build_pfc(const struct pause *pause, uint8_t *bytes)
{
    write16(bytes, pause->enable);
    for (int priority = 0; priority < PRIORITIES; priority++)
        write16(bytes + OFFSET_TIME + 2 * priority,
                pause->enable & 1 << priority ? pause->time[priority] : 0);
}

struct frame *pause_build(const struct link_framing_ops *framing, const struct port *port,
                          const struct pause *pause)
{
    uint8_t *message;
    struct frame *frame =
        framing->control_frame(port, pause->global ? CONTROL_PAUSE : CONTROL_PFC,
                               pause->global ? GLOBAL_BYTES : PFC_BYTES, &message);
    if (frame)
        (pause->global ? build_global : build_pfc)(pause, message);
    return frame;
}

static void parse_global(struct pause *pause, const uint8_t *bytes)
{
    *pause = (struct pause){.global = true, .enable = 0xFF};
    for (int priority = 0; priority < PRIORITIES; priority++)
        pause->time[priority] = read16(bytes);
}

static void parse_pfc(struct pause *pause, const uint8_t *bytes)
{
    *pause = (struct pause){.enable = (uint8_t)read16(bytes)};
    for (int priority = 0; priority < PRIORITIES; priority++)
        pause->time[priority] = read16(bytes + OFFSET_TIME + 2 * priority);
}

bool pause_parse(const struct link_framing_ops *framing, struct pause *pause,
                 const struct frame *frame)
{
    const uint8_t *global = framing->control_message(frame, CONTROL_PAUSE, GLOBAL_BYTES);
    const uint8_t *pfc = framing->control_message(frame, CONTROL_PFC, PFC_BYTES);
    if (global)
        parse_global(pause, global);
    else if (pfc)
        parse_pfc(pause, pfc);
    return global || pfc;
}
