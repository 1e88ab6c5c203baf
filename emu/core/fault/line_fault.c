#include "fault/line_fault.h"

static struct line_fault *line_of(struct fault *fault)
{
    return container_of(fault, struct line_fault, fault);
}

static void receive(struct port *box, struct frame *frame, picoseconds now)
{
    struct fault *fault = box->owner;
    fault->ops->packet(fault, frame, now);
}

static const struct port_handler box_handler = {.receive = receive};

static void put_behind(struct fault *fault, struct port *before)
{
    struct port *box = &line_of(fault)->box;
    box->handler = &box_handler;
    box->owner = fault;
    box->outside = true;
    box->line.far = before->line.far;
    before->line.far = box;
}

void line_fault_inject(struct fault *fault, picoseconds now)
{
    (void)now;
    put_behind(fault, fault->port);
}

void line_fault_inject_last(struct fault *fault)
{
    struct port *before = fault->port;
    while (before->outside && before->line.far->handler == &box_handler)
        before = before->line.far;
    put_behind(fault, before);
}

void line_fault_clear(struct fault *fault, picoseconds now)
{
    (void)now;
    const struct port *box = &line_of(fault)->box;
    struct port *before = fault->port;
    while (before->line.far != box)
        before = before->line.far;
    before->line.far = box->line.far;
}

void line_fault_pass(struct fault *fault, struct frame *frame, picoseconds now)
{
    port_deliver(line_of(fault)->box.line.far, frame, now);
}

void line_fault_drop(struct fault *fault, struct frame *frame)
{
    fault->counts.packets_dropped += is_packet(frame);
    port_count_drop(fault->port, frame);
    frame_free(fault->port->pool, frame);
}

/* The last byte belongs to a CRC in every kind of packet. */
void line_fault_corrupt(struct fault *fault, struct frame *frame, picoseconds now)
{
    frame->corrupt = true;
    if (frame_is_whole(frame) && frame->stored)
        frame->bytes[frame->stored - 1] ^= 0xFF;
    line_fault_pass(fault, frame, now);
}
