#include "nic/rx_throttle.h"

#include "link/pauses.h"

static bool is_lossless(const struct port *port, uint8_t tc)
{
    return port_has_buffers(port) || port_obeys(port, tc);
}

static bool is_dropped(const struct rx_throttle *throttle, const struct frame *frame)
{
    return !is_lossless(throttle->port, frame->tc) &&
           throttle->held_bytes[frame->tc] + frame->length > throttle->buffer_bytes;
}

static void pause_leaf(struct rx_throttle *throttle, uint8_t tc, picoseconds now)
{
    struct port *port = throttle->port;
    uint32_t held = throttle->held_bytes[tc], full = throttle->buffer_bytes;
    bool paused = port->stopping & 1u << tc;
    if (!port_obeys(port, tc))
        return;
    if (!paused && held >= full)
        port_pause_peer(port, tc, true, now);
    else if (paused && held <= full / 2)
        port_pause_peer(port, tc, false, now);
}

static void receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct rx_throttle *throttle = container_of(port->handler, struct rx_throttle, handler);
    const struct frame *last = throttle->held.last;
    throttle->packets++;
    if (is_dropped(throttle, frame)) {
        ++*throttle->dropped;
        port_count_drop(port, frame);
        frame_free(port->pool, frame);
        return;
    }
    picoseconds from = last && last->due_at > now ? last->due_at : now;
    frame->due_at = from + serialisation(frame->length, throttle->rate_bps);
    *throttle->waited += from > now;
    throttle->held_bytes[frame->tc] += frame->length;
    list_push(&throttle->held, frame);
    if (!timer_is_set(&throttle->next))
        timer_set(port->clock, &throttle->next, frame->due_at);
    pause_leaf(throttle, frame->tc, now);
}

static void take_in(struct rx_throttle *throttle, picoseconds now)
{
    struct frame *frame = list_pop(&throttle->held);
    uint8_t tc = frame->tc;
    throttle->held_bytes[tc] -= frame->length;
    timer_cancel(&throttle->next);
    if (throttle->held.first)
        timer_set(throttle->port->clock, &throttle->next, throttle->held.first->due_at);
    throttle->quick->receive(throttle->port, frame, now);
    pause_leaf(throttle, tc, now);
}

static void is_due(struct timer *timer, picoseconds now)
{
    take_in(container_of(timer, struct rx_throttle, next), now);
}

void rx_throttle_init(struct rx_throttle *throttle, struct port *port, struct qos_map map,
                      uint64_t *waited, uint64_t *dropped)
{
    *throttle = (struct rx_throttle){.port = port,
                                     .quick = port->handler,
                                     .handler = *port->handler,
                                     .qos_map = map,
                                     .waited = waited,
                                     .dropped = dropped};
    timer_init(&throttle->next, is_due);
    throttle->handler.receive = receive;
}

/* Only a throttled NIC needs the priority of arriving frames, which the port reads if it has a
 * map. */
void rx_throttle_set(struct rx_throttle *throttle, uint64_t rate_bps, uint32_t buffer_bytes,
                     picoseconds now)
{
    while (rate_bps == 0 && throttle->held.first)
        take_in(throttle, now);
    throttle->rate_bps = rate_bps;
    throttle->buffer_bytes = buffer_bytes;
    throttle->port->handler = rate_bps ? &throttle->handler : throttle->quick;
    throttle->port->qos_map = rate_bps ? &throttle->qos_map : NULL;
}
