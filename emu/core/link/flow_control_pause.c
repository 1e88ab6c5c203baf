/* Pause of the whole link (IEEE 802.3 annex 31B, "802.3x"): all priorities stop and resume
 * together. A port that must stop one priority pauses the link, until it has to stop none. */
#include "link/pauses.h"

static bool init(struct port *port, struct arena *arena, const struct port_config *config)
{
    bool done = pauses_init(port, arena, config);
    port->pause.of_link = true;
    port->pause.obeyed = 0xFF;
    return done;
}

static void arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    struct pause pause;
    if (pause_received(port, frame, &pause))
        pauses_obey(port, &pause, pause.global ? port->pause.obeyed : 0, now);
}

SELDOM static struct frame *next_frame(struct port *port)
{
    struct pause pause = {.global = true};
    if (port->stopping)
        pause.time[0] = PAUSE_MAX_QUANTA;
    return pause_frame(port, &pause);
}

const struct flow_control_ops flow_control_pause = {
    .init = init,
    .reset = pauses_reset,
    .arrived = arrived,
    .next_frame = next_frame,
    .is_held_back = pauses_hold_back,
    .count_stops = pauses_count,
};
