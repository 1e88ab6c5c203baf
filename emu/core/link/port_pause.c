#include "link/port_pause.h"

/* ---- towards us ------------------------------------------------------------- */

static void pause_begins(struct port *port, uint8_t priority, picoseconds now)
{
    pauses_count_received(port, now);
    port_stops(port);
    port->pause_near &= (uint8_t) ~(1u << priority);
    port->paused |= (uint8_t)(1u << priority);
    port->paused_since[priority] = now;
}

static void pause_ends(struct port *port, uint8_t priority, picoseconds now)
{
    pauses_count_received(port, now);
    port->paused &= (uint8_t) ~(1u << priority);
    port->counters.rx_pause_transition[priority]++;
}

static void pause_arm(struct port *port)
{
    picoseconds next = NEVER;
    for (unsigned left = port->paused | port->pause_near; left; left &= left - 1) {
        int priority = __builtin_ctz(left);
        picoseconds due = port->pause_near & 1u << priority ? port->paused_since[priority]
                                                            : port->paused_until[priority];
        next = due < next ? due : next;
    }
    if (next == NEVER)
        timer_cancel(&port->pause_due);
    else
        timer_set(port->clock, &port->pause_due, next);
}

static void pause_due(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, pause_due);
    for (uint8_t priority = 0; priority < PRIORITIES; priority++) {
        if (port->pause_near & 1u << priority && port->paused_since[priority] <= now)
            pause_begins(port, priority, now);
        if (port->paused & 1u << priority && port->paused_until[priority] <= now)
            pause_ends(port, priority, now);
    }
    pause_arm(port);
    port_kick(port, now);
}

/* Quanta count from the frame's arrival, obeyed or not by then. */
static void priority_paused(struct port *port, uint8_t priority, uint16_t quanta, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    port->paused_until[priority] = now + quanta_time(quanta, port->line.rate_bps);
    if ((port->paused | port->pause_near) & bit)
        return;
    if (port->pause_response) {
        port->pause_near |= bit;
        port->paused_since[priority] = now + port->pause_response;
    } else {
        pause_begins(port, priority, now);
    }
}

static void priority_resumed(struct port *port, uint8_t priority, picoseconds now)
{
    port->pause_near &= (uint8_t) ~(1u << priority);
    if (port->paused & 1u << priority)
        pause_ends(port, priority, now);
}

void pauses_arrived(struct port *port, const struct pause *pause, picoseconds now)
{
    port->counters.rx_pause_frames++;
    port->counters.rx_global_pause += pause->global;
    uint8_t honoured = pause->global ? (port->global_honoured ? 0xFF : 0) : port->pfc_honoured;
    honoured &= (uint8_t)~port->pause_ignored;
    for (uint8_t priority = 0; priority < PRIORITIES; priority++) {
        uint8_t bit = (uint8_t)(1u << priority);
        if (!(pause->enable & bit))
            continue;
        port->counters.rx_pause[priority] += !pause->global;
        if (!(honoured & bit))
            continue;
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
        port->pause_ignored &= (uint8_t)~bit;
        return;
    }
    port->pause_ignored |= bit;
    priority_resumed(port, priority, now);
    pause_arm(port);
    port_kick(port, now);
}

/* ---- from us ---------------------------------------------------------------- */

static void count_pause_sent(struct port *port, const struct pause *pause)
{
    port->counters.tx_pause_frames++;
    port->counters.tx_global_pause += pause->global;
    for (unsigned left = pause->global ? 0 : pause->enable; left; left &= left - 1)
        port->counters.tx_pause[__builtin_ctz(left)]++;
}

SELDOM struct frame *pauses_next_frame(struct port *port)
{
    struct frame *frame = frame_new(port->pool, FRAME_ETHERNET, PAUSE_FRAME_BYTES);
    if (!frame)
        return NULL;
    struct pause pause = {.global = port->sends_global, .enable = port->pause_to_send};
    for (int priority = 0; priority < PRIORITIES; priority++)
        if (port->xoff & (port->sends_global ? 0xFF : 1u << priority))
            pause.time[priority] = PAUSE_MAX_QUANTA;
    count_pause_sent(port, &pause);
    pause_build(&pause, port->mac, frame->bytes);
    port->pause_to_send = 0;
    return frame;
}

static void count_pausing(struct port *port, int priority, picoseconds now)
{
    port->counters.tx_pause_duration[priority] += now - port->pausing_since[priority];
    port->pausing_since[priority] = now;
}

void port_pause_peer(struct port *port, uint8_t priority, bool xoff, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if (port->xoff & bit)
        count_pausing(port, priority, now);
    port->pausing_since[priority] = now;
    if (xoff)
        port->xoff |= bit;
    else
        port->xoff &= (uint8_t)~bit;
    port->pause_to_send |= bit;
    if (!port->xoff)
        timer_cancel(&port->pause_refresh);
    else if (!timer_is_set(&port->pause_refresh))
        timer_set(port->clock, &port->pause_refresh,
                  now + quanta_time(PAUSE_MAX_QUANTA / 2, port->line.rate_bps));
    port_kick(port, now);
}

/* A pause lasts 65535 quanta; while it shall last longer it is told again at half time. */
static void pause_refresh(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, pause_refresh);
    port->pause_to_send |= port->xoff;
    timer_set(port->clock, timer, now + quanta_time(PAUSE_MAX_QUANTA / 2, port->line.rate_bps));
    port_kick(port, now);
}

/* ---- both ------------------------------------------------------------------- */

void pauses_init(struct port *port)
{
    timer_init(&port->pause_due, pause_due);
    timer_init(&port->pause_refresh, pause_refresh);
}

/* All that are paused have been counted up to the same moment, so that under 802.3x, which stops
 * the link as one, each has waited as long as the link. */
void pauses_count_received(struct port *port, picoseconds now)
{
    picoseconds longest = 0, together = 0;
    for (unsigned left = port->paused; left; left &= left - 1) {
        int priority = __builtin_ctz(left);
        picoseconds duration = now - port->paused_since[priority];
        port->paused_since[priority] = now;
        port->counters.rx_pause_duration[priority] += duration;
        longest = duration > longest ? duration : longest;
        together += duration;
    }
    port->gauges->paused += port->global_honoured ? longest : together;
}

void pauses_count_sent(struct port *port, picoseconds now)
{
    for (unsigned left = port->xoff; left; left &= left - 1)
        count_pausing(port, __builtin_ctz(left), now);
}

void pfc_reset(struct port *port, picoseconds now)
{
    for (uint8_t priority = 0; priority < PRIORITIES; priority++)
        if (port->paused & 1u << priority)
            pause_ends(port, priority, now);
    pauses_count_sent(port, now);
    port->xoff = port->pause_to_send = port->pause_near = 0;
    timer_cancel(&port->pause_due);
    timer_cancel(&port->pause_refresh);
}
