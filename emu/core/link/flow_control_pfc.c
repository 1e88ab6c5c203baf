/* Priority-based flow control (IEEE 802.1Qbb, 802.3 annex 31D): the far end pauses each priority by
 * itself. */
#include "link/pauses.h"

static void arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    struct pause pause;
    if (pause_received(port, frame, &pause))
        pauses_obey(port, &pause, pause.global ? 0 : port->pause.obeyed, now);
}

const struct flow_control_ops flow_control_pfc = {
    .init = pauses_init,
    .reset = pauses_reset,
    .arrived = arrived,
    .next_frame = pfc_next_frame,
    .is_held_back = pauses_hold_back,
    .count_stops = pauses_count,
};
