#include "switch/egress.h"

#include <assert.h>

#include "link/sl2vl.h"
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
    return out->depth && queue < PRIORITIES;
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

/* Only the external datapath has an external marker. */
void egress_coming(struct fabric_switch *sw, const struct frame *frame, int64_t bytes)
{
    if (sw->datapath == DATAPATH_OWN)
        return;
    struct switch_port *out = switch_port(sw, frame->out_port);
    uint8_t queue = out->queue_of[frame->tc];
    out->coming[queue] = (uint32_t)(out->coming[queue] + bytes);
    if (is_watched(out, queue))
        post_depth(out, queue);
}

/* ---- enqueueing ---------------------------------------------------------- */

/* The discard counter of a frame that no queue accepts now, regardless of queue depths; NULL when
 * queues accept it. */
static uint64_t *closed_by(struct switch_port *out, const struct frame *frame)
{
    uint16_t bit = (uint16_t)(1u << frame->tc);
    if (!out->port.up)
        return &out->port.counters.link_down_discard;
    if (out->dropping & bit)
        return &out->counters.watchdog.tx_dropped[frame->tc];
    return out->hoq.stalled & bit ? &out->counters.hoq_discard : NULL;
}

/* The disciplines of a queue that may do something to the frame, one bit for each. */
static inline unsigned disciplines_for(const struct switch_port *out, uint8_t queue,
                                       const struct frame *frame)
{
    unsigned all = out->disciplines_of[queue];
    return frame->charge.lossless ? all & ~(unsigned)out->only_lossy : all;
}

/* Applies the disciplines of a queue in order, until one does not accept the frame. */
static inline enum queue_verdict apply_disciplines(struct switch_port *out, uint8_t queue,
                                                   struct frame *frame)
{
    enum queue_verdict verdict = QUEUE_TAKES;
    for (unsigned left = disciplines_for(out, queue, frame); left && verdict == QUEUE_TAKES;
         left &= left - 1) {
        const struct port_discipline *discipline = &out->discipline[__builtin_ctz(left)];
        verdict = discipline->kind->join(discipline->state, out, queue, frame);
    }
    return verdict;
}

/* False when the frame must be dropped; the reason has been counted. */
static bool is_taken(struct switch_port *out, struct frame *frame)
{
    enum queue_verdict verdict;
    do {
        uint64_t *reason = closed_by(out, frame);
        if (reason) {
            ++*reason;
            return false;
        }
        verdict = apply_disciplines(out, out->queue_of[frame->tc], frame);
    } while (verdict == QUEUE_MOVES);
    return verdict == QUEUE_TAKES;
}

void egress_push(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    struct switch_port *out = switch_port(sw, frame->out_port);
    if (!is_taken(out, frame)) {
        ingress_discard(sw, frame, now);
        return;
    }
    uint8_t number = out->queue_of[frame->tc];
    struct frame_queue *queue = &out->queue[number];
    queue_push(queue, frame);
    out->waiting |= (uint16_t)(1u << number);
    depth_changed(out, number, frame->length);
    if (queue->bytes > queue->peak_bytes)
        queue->peak_bytes = (uint32_t)queue->bytes;
    port_kick(&out->port, now);
}

void egress_note_peak(struct switch_port *out)
{
    for (int queue = 0; queue < CLASSES; queue++)
        if (out->queue[queue].peak_bytes > out->queue_peak_bytes)
            out->queue_peak_bytes = out->queue[queue].peak_bytes;
}

/* ---- dequeueing ---------------------------------------------------------------- */

struct frame *egress_take_head(struct switch_port *out, uint8_t queue)
{
    struct frame *frame = queue_pop(&out->queue[queue]);
    if (!out->queue[queue].count)
        out->waiting &= (uint16_t) ~(1u << queue);
    depth_changed(out, queue, -(int64_t)frame->length);
    return frame;
}

static uint8_t next_queue(const struct fabric_switch *sw, struct switch_port *out,
                          uint16_t sendable)
{
    static_assert((int)VL_NONE == (int)ARBITER_NONE, "both mean that nothing may go");
    if (out->port.arbitrates_lanes)
        return vlarb_pick(&out->port.vlarb, &out->port.vlarb_tables, sendable);
    return arbiter_pick(&out->arbiter, &sw->config.arbiter, out->queue, sendable);
}

static inline void left_queue(struct switch_port *out, uint8_t queue, struct frame *frame)
{
    for (unsigned left = out->disciplines_of[queue]; left; left &= left - 1) {
        const struct port_discipline *discipline = &out->discipline[__builtin_ctz(left)];
        if (discipline->kind->leave)
            discipline->kind->leave(discipline->state, out, queue, frame);
    }
}

struct frame *egress_pull(struct port *port, picoseconds now)
{
    struct fabric_switch *sw = switch_of(port);
    struct switch_port *out = switch_port_of(port);
    if (!out->waiting &&
        !port->arbitrates_lanes) /* VL arbitration also counts turns without packets */
        return NULL;
    uint16_t sendable = 0;
    for (unsigned left = out->waiting; left; left &= left - 1) {
        unsigned queue = (unsigned)__builtin_ctz(left);
        const struct frame *first = out->queue[queue].frames.first;
        if (port_may_send(port, first->tc, first->length, now))
            sendable |= (uint16_t)(1u << queue);
        else if (hoq_is_limited(&out->hoq))
            hoq_blocked(out, first->tc, now);
    }
    uint8_t queue = next_queue(sw, out, sendable);
    if (queue == ARBITER_NONE)
        return NULL;
    struct frame *frame = egress_take_head(out, queue);
    if (port->arbitrates_lanes)
        vlarb_sent(&port->vlarb, frame->length);
    if (hoq_is_limited(&out->hoq))
        hoq_moved(&out->hoq, queue);
    left_queue(out, queue, frame);
    return frame;
}

/* One pass over the queue, in which frames of other classes keep their order. */
uint32_t egress_flush(struct switch_port *out, uint8_t tc, picoseconds now)
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
