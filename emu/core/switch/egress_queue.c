#include "switch/egress_queue.h"

#include "switch/ingress.h"

/* ---- queue depths for an external marker ------------------------------------- */

/* The bytes that leave a queue during the latency of the switch. The line is shared equally by all
 * queues with frames. */
static uint64_t leaving(const struct switch_port *out, uint8_t queue)
{
    enum { SAMPLE = 4096 };
    const struct frame *first = out->queue[queue].frames.first;
    if (first && port_is_paused(&out->port, first->tc))
        return 0;
    picoseconds latency = switch_of(&out->port)->config.latency_ps;
    uint64_t bytes = (uint64_t)(latency * SAMPLE / line_time(&out->port.line, SAMPLE));
    return bytes / (unsigned)__builtin_popcount(out->waiting | 1u << queue);
}

/* Whether an external marker needs the depth of the queue. */
static bool is_watched(const struct switch_port *out, uint8_t queue)
{
    return out->depth_is_posted && queue < PRIORITIES;
}

/* Posts the depth for an external marker, which sees a frame one latency before the frame joins the
 * queue. The depth is an estimate for that moment: frames ahead have joined by then, and others
 * have left. */
SELDOM static void post_depth(struct switch_port *out, uint8_t queue)
{
    uint64_t ahead = out->queue[queue].bytes + out->coming[queue], gone = leaving(out, queue);
    uint32_t depth = ahead > gone ? (uint32_t)(ahead - gone) : 0;
    __atomic_store_n(&out->depth[queue], depth, __ATOMIC_RELAXED);
}

/* The queue has grown by `bytes`, which may be negative. */
static void depth_changed(struct switch_port *out, uint8_t queue, int64_t bytes)
{
    out->port.gauges->queued += bytes;
    if (is_watched(out, queue))
        post_depth(out, queue);
}

/* Only the external datapath has an external marker. Where time waits for that datapath, the marker
 * decides when a frame joins its queue. */
void egress_queue_coming(struct fabric_switch *sw, const struct frame *frame, int64_t bytes)
{
    if (sw->datapath == DATAPATH_OWN || sw->await)
        return;
    struct switch_port *out = switch_port(sw, frame->out_port);
    uint8_t queue = out->queue_of[frame->tc];
    out->coming[queue] = (uint32_t)(out->coming[queue] + bytes);
    if (is_watched(out, queue))
        post_depth(out, queue);
}

/* ---- the queues ---------------------------------------------------------------- */

void egress_queue_push(struct switch_port *out, struct frame *frame)
{
    uint8_t number = out->queue_of[frame->tc];
    struct frame_queue *queue = &out->queue[number];
    queue_push(queue, frame);
    out->waiting |= (uint16_t)(1u << number);
    depth_changed(out, number, frame->length);
    if (queue->bytes > queue->peak_bytes)
        queue->peak_bytes = (uint32_t)queue->bytes;
}

void egress_queue_note_peak(struct switch_port *out)
{
    for (int queue = 0; queue < CLASSES; queue++)
        if (out->queue[queue].peak_bytes > out->queue_peak_bytes)
            out->queue_peak_bytes = out->queue[queue].peak_bytes;
}

struct frame *egress_queue_pop(struct switch_port *out, uint8_t queue)
{
    struct frame *frame = queue_pop(&out->queue[queue]);
    __builtin_prefetch(frame->next); /* it leaves next, and has waited long */
    if (!out->queue[queue].count)
        out->waiting &= (uint16_t) ~(1u << queue);
    depth_changed(out, queue, -(int64_t)frame->length);
    return frame;
}

/* One pass over the queue, in which frames of other classes keep their order. */
uint32_t egress_queue_flush(struct switch_port *out, uint8_t tc, picoseconds now)
{
    uint8_t number = out->queue_of[tc];
    struct frame_queue *queue = &out->queue[number];
    uint32_t flushed = 0;
    for (uint32_t left = queue->count; left; left--) {
        struct frame *frame = queue_pop(queue);
        if (frame->tc != tc) {
            queue_push(queue, frame);
            continue;
        }
        depth_changed(out, number, -(int64_t)frame->length);
        ingress_discard(switch_of(&out->port), frame, now);
        flushed++;
    }
    if (!queue->count)
        out->waiting &= (uint16_t) ~(1u << number);
    return flushed;
}
