/* No flow control: a port sends whenever its line is idle. Pause frames that arrive are counted and
 * not obeyed. The port itself never sends pause frames; a faulty NIC (fault_pause_storm.c) sends
 * PFC frames. */
#include "link/pauses.h"

static void arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    (void)now;
    struct pause pause;
    pause_received(port, frame, &pause);
}

const struct flow_control_ops flow_control_none = {
    .init = pauses_init,
    .reset = pauses_reset,
    .arrived = arrived,
    .next_frame = pfc_next_frame,
    .is_held_back = pauses_hold_back,
    .count_stops = pauses_count,
};
