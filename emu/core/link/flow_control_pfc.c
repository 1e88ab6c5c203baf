/* Priority-based flow control (IEEE 802.1Qbb, 802.3 annex 31D): the far end pauses each priority by
 * itself. */
#include "link/port.h"

static void arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    struct pause pause;
    if (pause_received(port, frame, &pause))
        pauses_obey(port, &pause, pause.global ? 0 : port->pause.obeyed, now);
}

SELDOM struct frame *pfc_next_frame(struct port *port)
{
    struct pause pause = {.enable = port->pause.to_send};
    for (int priority = 0; priority < PRIORITIES; priority++)
        if (port->stopping & 1u << priority)
            pause.time[priority] = PAUSE_MAX_QUANTA;
    return pause_frame(port, &pause);
}

const struct flow_control_ops flow_control_pfc = {
    .init = pauses_init,
    .reset = pauses_reset,
    .arrived = arrived,
    .next_frame = pfc_next_frame,
    .is_held_back = pauses_hold_back,
    .count_stops = pauses_count,
};
