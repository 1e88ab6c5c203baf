#include "link/pauses.h"

/* ---- pauses from the far end ------------------------------------------------------------- */

/* Every paused priority is counted up to `now`. Under 802.3x, which stops the whole link, all
 * priorities have the same pause, and the gauge counts it once. */
static void count_received(struct port *port, picoseconds now)
{
    picoseconds longest = 0, together = 0;
    for (unsigned left = port->stopped; left; left &= left - 1) {
        int priority = __builtin_ctz(left);
        picoseconds duration = now - port->pause.since[priority];
        port->pause.since[priority] = now;
        port->counters->rx_pause_duration[priority] += duration;
        longest = duration > longest ? duration : longest;
        together += duration;
    }
    port->gauges->paused += port->pause.of_link ? longest : together;
}

static void pause_begins(struct port *port, uint8_t priority, picoseconds now)
{
    count_received(port, now);
    port_stops(port);
    port->pause.near &= (uint8_t) ~(1u << priority);
    port->stopped |= (uint16_t)(1u << priority);
    port->pause.since[priority] = now;
}

static void pause_ends(struct port *port, uint8_t priority, picoseconds now)
{
    count_received(port, now);
    port->stopped &= (uint16_t) ~(1u << priority);
    port->counters->rx_pause_transition[priority]++;
}

static void pause_arm(struct port *port)
{
    picoseconds next = NEVER;
    for (unsigned left = port->stopped | port->pause.near; left; left &= left - 1) {
        int priority = __builtin_ctz(left);
        picoseconds due = port->pause.near & 1u << priority ? port->pause.since[priority]
                                                            : port->pause.until[priority];
        next = due < next ? due : next;
    }
    if (next == NEVER)
        timer_cancel(&port->pause.due);
    else
        timer_set_background(port->clock, &port->pause.due, next);
}

static void pause_due(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, pause.due);
    for (uint8_t priority = 0; priority < PRIORITIES; priority++) {
        if (port->pause.near & 1u << priority && port->pause.since[priority] <= now)
            pause_begins(port, priority, now);
        if (port->stopped & 1u << priority && port->pause.until[priority] <= now)
            pause_ends(port, priority, now);
    }
    pause_arm(port);
    port_kick(port, now);
}

/* Quanta count from the arrival of the frame, also if the port obeys later. */
static void priority_paused(struct port *port, uint8_t priority, uint16_t quanta, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    port->pause.until[priority] = now + quanta_time(quanta, port->line.rate_bps);
    if ((port->stopped | port->pause.near) & bit)
        return;
    if (port->pause.response) {
        port->pause.near |= bit;
        port->pause.since[priority] = now + port->pause.response;
    } else {
        pause_begins(port, priority, now);
    }
}

static void priority_resumed(struct port *port, uint8_t priority, picoseconds now)
{
    port->pause.near &= (uint8_t) ~(1u << priority);
    if (port->stopped & 1u << priority)
        pause_ends(port, priority, now);
}

bool pause_received(struct port *port, const struct frame *frame, struct pause *pause)
{
    if (frame->corrupt || !pause_parse(port_framing(port), pause, frame)) {
        port->counters->rx_mac_control_unknown++;
        return false;
    }
    port->counters->rx_pause_frames++;
    port->counters->rx_global_pause += pause->global;
    for (unsigned left = pause->global ? 0 : pause->enable; left; left &= left - 1)
        port->counters->rx_pause[__builtin_ctz(left)]++;
    return true;
}

void pauses_obey(struct port *port, const struct pause *pause, uint8_t obeyed, picoseconds now)
{
    unsigned priorities = pause->enable & obeyed & ~port->pause.ignored;
    for (unsigned left = priorities; left; left &= left - 1) {
        uint8_t priority = (uint8_t)__builtin_ctz(left);
        if (pause->time[priority])
            priority_paused(port, priority, pause->time[priority], now);
        else
            priority_resumed(port, priority, now);
    }
    pause_arm(port);
    port_kick(port, now);
}

void port_ignore_pauses(struct port *port, uint8_t priority, bool ignore, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if (!ignore) {
        port->pause.ignored &= (uint8_t)~bit;
        return;
    }
    port->pause.ignored |= bit;
    priority_resumed(port, priority, now);
    pause_arm(port);
    port_kick(port, now);
}

/* ---- pauses for the far end ---------------------------------------------------------------- */

static void count_pause_sent(struct port *port, const struct pause *pause)
{
    port->counters->tx_pause_frames++;
    port->counters->tx_global_pause += pause->global;
    for (unsigned left = pause->global ? 0 : pause->enable; left; left &= left - 1)
        port->counters->tx_pause[__builtin_ctz(left)]++;
}

struct frame *pause_frame(struct port *port, const struct pause *pause)
{
    struct frame *frame = pause_build(port_framing(port), port, pause);
    if (!frame)
        return NULL;
    count_pause_sent(port, pause);
    port->pause.to_send = 0;
    port->control_to_send = false;
    return frame;
}

SELDOM struct frame *pfc_next_frame(struct port *port)
{
    struct pause pause = {.enable = port->pause.to_send};
    for (int priority = 0; priority < PRIORITIES; priority++)
        if (port->stopping & 1u << priority)
            pause.time[priority] = PAUSE_MAX_QUANTA;
    return pause_frame(port, &pause);
}

static void count_pausing(struct port *port, int priority, picoseconds now)
{
    port->counters->tx_pause_duration[priority] += now - port->pause.stopping_since[priority];
    port->pause.stopping_since[priority] = now;
}

static void count_sent(struct port *port, picoseconds now)
{
    for (unsigned left = port->stopping; left; left &= left - 1)
        count_pausing(port, __builtin_ctz(left), now);
}

/* Marks the state of these priorities to be sent to the far end. */
static void schedule_pause_frame(struct port *port, unsigned priorities)
{
    port->pause.to_send |= (uint8_t)priorities;
    port->control_to_send = true;
}

void port_pause_peer(struct port *port, uint8_t priority, bool xoff, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if (port->stopping & bit)
        count_pausing(port, priority, now);
    port->pause.stopping_since[priority] = now;
    if (xoff)
        port->stopping |= bit;
    else
        port->stopping &= (uint16_t)~bit;
    schedule_pause_frame(port, bit);
    if (!port->stopping)
        timer_cancel(&port->pause.refresh);
    else if (!timer_is_set(&port->pause.refresh))
        timer_set_background(port->clock, &port->pause.refresh,
                             now + quanta_time(PAUSE_MAX_QUANTA / 2, port->line.rate_bps));
    port_kick(port, now);
}

/* A pause lasts 65535 quanta. A longer one is repeated after half that time. */
static void pause_refresh(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, pause.refresh);
    schedule_pause_frame(port, port->stopping);
    timer_set_background(port->clock, timer,
                         now + quanta_time(PAUSE_MAX_QUANTA / 2, port->line.rate_bps));
    port_kick(port, now);
}

/* ---- both directions ------------------------------------------------------------------- */

bool pauses_init(struct port *port, struct arena *arena, const struct port_config *config)
{
    (void)arena;
    port->pause.obeyed = config->pause.priorities;
    port->pause.response = config->pause.response_ps;
    timer_init(&port->pause.due, pause_due);
    timer_init(&port->pause.refresh, pause_refresh);
    return true;
}

void pauses_count(struct port *port, picoseconds now)
{
    count_received(port, now);
    count_sent(port, now);
}

bool pauses_hold_back(const struct port *port, uint8_t priority, uint32_t length)
{
    (void)length;
    return port->stopped & port->line.far->stopping & 1u << priority;
}

void pauses_reset(struct port *port, picoseconds now)
{
    for (uint8_t priority = 0; priority < PRIORITIES; priority++)
        if (port->stopped & 1u << priority)
            pause_ends(port, priority, now);
    count_sent(port, now);
    port->stopping = 0;
    port->control_to_send = false;
    port->pause.to_send = port->pause.near = 0;
    timer_cancel(&port->pause.due);
    timer_cancel(&port->pause.refresh);
}
