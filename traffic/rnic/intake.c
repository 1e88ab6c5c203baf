#include "intake.h"

static bool is_lossless(const struct port *port, uint8_t klass)
{
    return port->framing == FRAMING_ETHERNET && port_obeys(port, klass);
}

static bool is_dropped(const struct intake *intake, const struct frame *frame)
{
    return intake->port->framing == FRAMING_ETHERNET && !is_lossless(intake->port, frame->klass) &&
           intake->held_bytes[frame->klass] + frame->length > intake->buffer_bytes;
}

static void pause_leaf(struct intake *intake, uint8_t klass, picoseconds now)
{
    struct port *port = intake->port;
    uint32_t held = intake->held_bytes[klass], full = intake->buffer_bytes;
    bool paused = port->xoff & 1u << klass;
    if (!is_lossless(port, klass))
        return;
    if (!paused && held >= full)
        port_pause_peer(port, klass, true, now);
    else if (paused && held <= full / 2)
        port_pause_peer(port, klass, false, now);
}

static void receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct intake *intake = container_of(port->handler, struct intake, handler);
    const struct frame *last = intake->held.last;
    intake->packets++;
    if (is_dropped(intake, frame)) {
        ++*intake->dropped;
        port_count_drop(port, frame);
        frame_free(port->pool, frame);
        return;
    }
    picoseconds from = last && last->due_at > now ? last->due_at : now;
    frame->due_at = from + serialisation(frame->length, intake->rate_bps);
    *intake->waited += from > now;
    intake->held_bytes[frame->klass] += frame->length;
    list_push(&intake->held, frame);
    if (!timer_is_set(&intake->next))
        timer_set(port->clock, &intake->next, frame->due_at);
    pause_leaf(intake, frame->klass, now);
}

static void take_in(struct intake *intake, picoseconds now)
{
    struct frame *frame = list_pop(&intake->held);
    uint8_t klass = frame->klass;
    intake->held_bytes[klass] -= frame->length;
    timer_cancel(&intake->next);
    if (intake->held.first)
        timer_set(intake->port->clock, &intake->next, intake->held.first->due_at);
    intake->quick->receive(intake->port, frame, now);
    pause_leaf(intake, klass, now);
}

static void is_due(struct timer *timer, picoseconds now)
{
    take_in(container_of(timer, struct intake, next), now);
}

void intake_init(struct intake *intake, struct port *port, struct classes classes, uint64_t *waited,
                 uint64_t *dropped)
{
    *intake = (struct intake){.port = port,
                              .quick = port->handler,
                              .handler = *port->handler,
                              .classes = classes,
                              .waited = waited,
                              .dropped = dropped};
    timer_init(&intake->next, is_due);
    intake->handler.receive = receive;
}

/* A quick NIC does not ask for the priority of what arrives; this one has to. */
void intake_set(struct intake *intake, uint64_t rate_bps, uint32_t buffer_bytes, picoseconds now)
{
    while (rate_bps == 0 && intake->held.first)
        take_in(intake, now);
    intake->rate_bps = rate_bps;
    intake->buffer_bytes = buffer_bytes;
    intake->port->handler = rate_bps ? &intake->handler : intake->quick;
    intake->port->classes = rate_bps ? &intake->classes : NULL;
}
