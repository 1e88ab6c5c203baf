/* A host that takes packets in more slowly than they come (a busy PCIe bus, a
 * cold translation cache; Guo et al., SIGCOMM'16, 4.4). They wait in the NIC:
 *
 *     lossless priority   a full buffer pauses the leaf until half of it is free;
 *                         what is still on the way finds room
 *     lossy priority      a full buffer drops
 *     InfiniBand          credit goes back as late as a packet is taken in */
#include <string.h>

#include "fault.h"
#include "nic.h"

static bool is_lossless(const struct port *port, uint8_t klass)
{
    return port->framing == FRAMING_ETHERNET && port_obeys(port, klass);
}

static bool is_dropped(const struct fault *fault, const struct frame *frame)
{
    return fault->port->framing == FRAMING_ETHERNET && !is_lossless(fault->port, frame->klass) &&
           fault->held_bytes[frame->klass] + frame->length > fault->config.buffer_bytes;
}

static void pause_leaf(struct fault *fault, uint8_t klass, picoseconds now)
{
    struct port *port = fault->port;
    uint32_t held = fault->held_bytes[klass], full = fault->config.buffer_bytes;
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
    struct fault *fault = container_of(port->handler, struct fault, slow);
    const struct frame *last = fault->held.last;
    fault->counts.packets_seen++;
    if (is_dropped(fault, frame)) {
        fault->counts.packets_dropped++;
        frame_free(port->pool, frame);
        return;
    }
    picoseconds from = last && last->due_at > now ? last->due_at : now;
    frame->due_at = from + serialisation(frame->length, fault->config.rate_bps);
    fault->counts.hits += from > now;
    fault->held_bytes[frame->klass] += frame->length;
    queue_push(&fault->held, frame);
    if (!timer_is_set(&fault->next_step))
        timer_set(port->clock, &fault->next_step, frame->due_at);
    pause_leaf(fault, frame->klass, now);
}

static void take_in(struct fault *fault, picoseconds now)
{
    struct frame *frame = queue_pop(&fault->held);
    uint8_t klass = frame->klass;
    fault->held_bytes[klass] -= frame->length;
    if (fault->held.first)
        timer_set(fault->port->clock, &fault->next_step, fault->held.first->due_at);
    fault->healthy->receive(fault->port, frame, now);
    pause_leaf(fault, klass, now);
}

/* A healthy NIC does not ask for the priority of what arrives; this one has to. */
static void begin(struct fault *fault, picoseconds now)
{
    (void)now;
    struct nic *nic = fault->port->owner;
    fault->healthy = nic->port.handler;
    fault->slow = *fault->healthy;
    fault->slow.receive = receive;
    nic->port.handler = &fault->slow;
    memcpy(fault->classes.of_dscp, nic->config.priority_of_dscp, sizeof fault->classes.of_dscp);
    nic->port.classes = &fault->classes;
}

/* Cured: what waits is taken in at once. */
static void end(struct fault *fault, picoseconds now)
{
    while (fault->held.first)
        take_in(fault, now);
    timer_cancel(&fault->next_step);
    fault->port->handler = fault->healthy;
    fault->port->classes = NULL;
}

const struct fault_ops fault_slow_receiver = {.begin = begin, .end = end, .due = take_in};
