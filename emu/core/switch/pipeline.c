#include "switch/pipeline.h"

#include "switch/egress.h"
#include "switch/egress_queue.h"

/* A cut-through switch may start to send a frame before its tail has arrived, but not so early that
 * a faster egress port would run out of bytes. */
picoseconds pipeline_earliest(const struct fabric_switch *sw, const struct frame *frame,
                              picoseconds arrived)
{
    if (!sw->config.cut_through)
        return frame->tail_at + sw->config.latency_ps;
    const struct port *out = &sw->ports[frame->out_port - 1].port;
    picoseconds by_tail =
        frame->tail_at - line_time(&out->line, wire_bytes(frame->kind, frame->length));
    return (by_tail > arrived ? by_tail : arrived) + sw->config.latency_ps;
}

void pipeline_enter(struct switch_port *in, struct frame *frame, picoseconds due, picoseconds now)
{
    const struct frame *last = in->pipeline.last;
    if (due < now)
        due = now;
    if (last && due < last->due_at)
        due = last->due_at; /* the frames of a port stay in order */
    frame->due_at = due;
    if (!last)
        timer_set(in->port.clock, &in->pipeline_due, due);
    list_push(&in->pipeline, frame);
    egress_queue_coming(switch_of(&in->port), frame, frame->length);
}

void pipeline_due(struct timer *timer, picoseconds now)
{
    struct switch_port *in = container_of(timer, struct switch_port, pipeline_due);
    struct frame *frame = list_pop(&in->pipeline);
    if (in->pipeline.first)
        timer_set(in->port.clock, timer, in->pipeline.first->due_at);
    egress_queue_coming(switch_of(&in->port), frame, -(int64_t)frame->length);
    egress_push(switch_of(&in->port), frame, now);
}
