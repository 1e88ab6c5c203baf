#include "switch/pipeline.h"

#include "switch/egress.h"
#include "switch/egress_queue.h"
#include "switch/ingress.h"

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

/* Waits until the external datapath has given the frame back. False: it has not. */
SELDOM static bool is_back(struct fabric_switch *sw, const struct frame *frame)
{
    sw->await(sw->external_datapath, sw, frame);
    return frame->out_port;
}

void pipeline_due(struct timer *timer, picoseconds now)
{
    struct switch_port *in = container_of(timer, struct switch_port, pipeline_due);
    struct frame *frame = list_pop(&in->pipeline);
    if (in->pipeline.first)
        timer_set(in->port.clock, timer, in->pipeline.first->due_at);
    if (!frame->out_port && !is_back(switch_of(&in->port), frame)) {
        ingress_forget(switch_of(&in->port), frame, now);
        return;
    }
    egress_queue_coming(switch_of(&in->port), frame, -(int64_t)frame->length);
    egress_push(switch_of(&in->port), frame, now);
}
