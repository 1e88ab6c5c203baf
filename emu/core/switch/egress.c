#include "switch/egress.h"

#include <assert.h>
#include <string.h>

#include "link/sl2vl.h"

enum { VL15_QUEUE_PACKETS = 16 };

/* ---- what waits, for a marker outside ------------------------------------- */

/* Bytes that the line takes out of a queue while a frame waits out the latency: of
 * as many queues as wait, each its part. */
static uint64_t leaving(const struct switch_port *out, uint8_t queue)
{
    enum { SAMPLE = 4096 };
    const struct frame *first = out->queue[queue].frames.first;
    if (first && port_is_paused(&out->port, first->tc))
        return 0;
    picoseconds latency = switch_of(&out->port)->config.latency;
    uint64_t bytes = (uint64_t)(latency * SAMPLE / line_time(&out->port.line, SAMPLE));
    return bytes / (unsigned)__builtin_popcount(out->waiting | 1u << queue);
}

/* Whether a marker outside asks for the queue's depth. */
static bool is_watched(const struct switch_port *out, uint8_t queue)
{
    return out->depth && queue < PRIORITIES;
}

/* For a marker outside, which sees a frame one latency before it joins the queue: the
 * depth that it will find. Those ahead of it will have joined, and others will have left. */
SELDOM static void post_depth(struct switch_port *out, uint8_t queue)
{
    uint64_t ahead = out->queue[queue].bytes + out->coming[queue], gone = leaving(out, queue);
    uint32_t depth = ahead > gone ? (uint32_t)(ahead - gone) : 0;
    __atomic_store_n(&out->depth[queue], depth, __ATOMIC_RELAXED);
}

/* `bytes` more or less wait in the queue. */
static void depth_changed(struct switch_port *out, uint8_t queue, int64_t bytes)
{
    out->port.gauges->queued += bytes;
    if (is_watched(out, queue))
        post_depth(out, queue);
}

/* Nobody outside asks in the switch's own datapath. */
void egress_coming(struct fabric_switch *sw, const struct frame *frame, int64_t bytes)
{
    if (sw->config.datapath == DATAPATH_OWN)
        return;
    struct switch_port *out = switch_port(sw, frame->out_port);
    uint8_t queue = out->queue_of[frame->tc];
    out->coming[queue] = (uint32_t)(out->coming[queue] + bytes);
    if (is_watched(out, queue))
        post_depth(out, queue);
}

/* ---- marking ---------------------------------------------------------------- */

static uint32_t draw(const struct wred *wred, const uint8_t *header, uint32_t length)
{
    uint32_t words[WRED_DRAW_WORDS] = {0};
    if (length >= WRED_DRAW_OFFSET + sizeof words)
        memcpy(words, header + WRED_DRAW_OFFSET, sizeof words);
    return wred_draw(wred, words);
}

static bool marks(const struct switch_port *out, uint8_t queue)
{
    return out->marking & 1u << queue;
}

/* By the depth of what is in the queue beside the frame. */
SELDOM static void mark(struct switch_port *out, uint8_t queue, struct frame *frame)
{
    const struct wred *wred = &out->wred[queue];
    uint8_t *header = frame->bytes + frame->ip;
    if (!frame->ip || ipv4_ecn(header) == ECN_NOT_ECT || ipv4_ecn(header) == ECN_CE)
        return;
    uint32_t depth = (uint32_t)out->queue[queue].bytes;
    if (wred_marks(wred, depth, draw(wred, header, frame->stored - frame->ip))) {
        ipv4_set_ce(header);
        out->counters.ecn_marked[frame->tc]++;
    }
}

/* ---- into the queues ---------------------------------------------------------- */

static bool over_threshold(const struct fabric_switch *sw, const struct frame_queue *queue,
                           const struct frame *frame)
{
    return queue->bytes + frame->length > threshold_now(&sw->config.lossy, &sw->buffer);
}

/* False, with the reason counted, when a lane takes no packet now: it is stalled,
 * or it is the management lane, which has no credits and little room. */
static bool lane_takes(struct switch_port *out, uint8_t vl)
{
    if (vl == VL_MANAGEMENT && out->queue[vl].count >= VL15_QUEUE_PACKETS) {
        out->counters.vl15_dropped++;
        return false;
    }
    if (!(out->hoq.stalled & 1u << vl))
        return true;
    out->counters.hoq_discard++;
    return false;
}

void egress_push(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    struct switch_port *out = switch_port(sw, frame->out_port);
    uint8_t number = out->queue_of[frame->tc];
    struct frame_queue *queue = &out->queue[number];
    bool lossy = !frame->charge.lossless;
    if (!out->port.up) {
        out->port.counters.link_down_discard++;
        switch_discard(sw, frame, now);
        return;
    }
    if (out->dropping & 1u << frame->tc) {
        out->counters.watchdog.tx_dropped[frame->tc]++;
        switch_discard(sw, frame, now);
        return;
    }
    if (switch_is_infiniband(sw) && !lane_takes(out, frame->tc)) {
        switch_discard(sw, frame, now);
        return;
    }
    if (lossy && over_threshold(sw, queue, frame)) {
        out->counters.tx_queue_discard[frame->tc]++;
        switch_discard(sw, frame, now);
        return;
    }
    if (marks(out, number) && !out->marks_at_dequeue)
        mark(out, number, frame);
    if (switch_is_infiniband(sw) && out->fecn.threshold[frame->tc])
        fecn_see(&out->fecn, &out->port, frame, queue->bytes);
    queue_push(queue, frame);
    out->waiting |= (uint16_t)(1u << number);
    depth_changed(out, number, frame->length);
    if (queue->bytes > out->queue_peak_bytes)
        out->queue_peak_bytes = queue->bytes;
    port_kick(&out->port, now);
}

/* ---- out of them ---------------------------------------------------------------- */

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
    if (port_arbitrates_lanes(&out->port))
        return vlarb_pick(&out->port.vlarb, out->port.vlarb_tables, sendable);
    return arbiter_pick(&out->arbiter, &sw->config.arbiter, out->queue, sendable);
}

struct frame *egress_pull(struct port *port, picoseconds now)
{
    struct fabric_switch *sw = switch_of(port);
    struct switch_port *out = switch_port_of(port);
    if (!out->waiting && !port_arbitrates_lanes(port)) /* which counts turns without packets */
        return NULL;
    uint16_t sendable = 0;
    for (unsigned left = out->waiting; left; left &= left - 1) {
        unsigned queue = (unsigned)__builtin_ctz(left);
        const struct frame *first = out->queue[queue].frames.first;
        if (port_may_send(port, first->tc, first->length, now))
            sendable |= (uint16_t)(1u << queue);
        else if (switch_is_infiniband(sw) && out->hoq.life)
            hoq_blocked(out, first->tc, now);
    }
    uint8_t queue = next_queue(sw, out, sendable);
    if (queue == ARBITER_NONE)
        return NULL;
    struct frame *frame = egress_take_head(out, queue);
    if (port_arbitrates_lanes(port))
        vlarb_sent(&port->vlarb, frame->length);
    if (switch_is_infiniband(sw) && out->hoq.life)
        hoq_moved(&out->hoq, queue);
    if (marks(out, queue) && out->marks_at_dequeue)
        mark(out, queue, frame);
    return frame;
}

/* One pass over the queue, in which the others keep their order. */
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
        switch_discard(switch_of(&out->port), frame, now);
        flushed++;
    }
    if (!queue->count)
        out->waiting &= (uint16_t) ~(1u << number);
    return flushed;
}
