#include "switch/egress.h"

#include <assert.h>

#include "link/sl2vl.h"
#include "switch/egress_queue.h"
#include "switch/hoq.h"
#include "switch/ingress.h"

/* ---- enqueueing ---------------------------------------------------------- */

/* The discard counter of a frame that no queue accepts now, regardless of queue depths; NULL when
 * queues accept it. */
static uint64_t *closed_by(struct switch_port *out, const struct frame *frame)
{
    uint16_t bit = (uint16_t)(1u << frame->tc);
    if (!out->port.up)
        return &out->port.counters->link_down_discard;
    if (out->dropping & bit)
        return &out->counters->watchdog.tx_dropped[frame->tc];
    return out->stalled & bit ? &out->counters->hoq_discard : NULL;
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
    for (int moves = 0;; moves++) {
        assert(moves < CLASSES); /* disciplines send the frame in a circle */
        uint64_t *reason = closed_by(out, frame);
        if (reason) {
            ++*reason;
            return false;
        }
        enum queue_verdict verdict = apply_disciplines(out, out->queue_of[frame->tc], frame);
        if (verdict != QUEUE_MOVES)
            return verdict == QUEUE_TAKES;
    }
}

void egress_push(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    struct switch_port *out = switch_port(sw, frame->out_port);
    if (!is_taken(out, frame)) {
        ingress_discard(sw, frame, now);
        return;
    }
    egress_queue_push(out, frame);
    port_kick(&out->port, now);
}

/* ---- dequeueing ---------------------------------------------------------------- */

static uint8_t next_queue(const struct fabric_switch *sw, struct switch_port *out,
                          uint16_t sendable)
{
    static_assert((int)VL_NONE == (int)ARBITER_NONE, "both mean that nothing may go");
    if (out->port.arbitrates_lanes)
        return vlarb_pick(&out->port.lanes->arbiter, &out->port.lanes->tables, sendable);
    return arbiter_pick(&out->arbiter, &out->deficits, &sw->config.arbiter, out->queue, sendable);
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
        else if (out->hoq_is_limited)
            hoq_blocked(out, first->tc, now);
    }
    uint8_t queue = next_queue(sw, out, sendable);
    if (queue == ARBITER_NONE)
        return NULL;
    struct frame *frame = egress_queue_pop(out, queue);
    if (port->arbitrates_lanes)
        vlarb_sent(&port->lanes->arbiter, frame->length);
    if (out->hoq_is_limited)
        hoq_moved(out->hoq, queue);
    left_queue(out, queue, frame);
    return frame;
}
