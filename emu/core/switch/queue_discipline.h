/* Queue disciplines: what happens to a frame that is about to join an egress queue.
 *
 *     tail drop      a full queue drops, unless the frame is lossless       queue_tail_drop.c
 *     packet limit   a queue holds a few packets                            queue_packet_limit.c
 *     WRED           marks ECN-capable packets by the queue's depth (ECN)   queue_wred.c
 *     FECN           marks InfiniBand packets at the root of congestion     queue_fecn.c
 *
 * The settings of a port choose the disciplines of each queue. A frame passes them in this order. A
 * discipline may mark the frame, drop it, or change its class and shorten it. With another class
 * the frame joins the queue of that class. The ingress buffer stays charged with the original
 * length. */
#ifndef EMU_SWITCH_QUEUE_DISCIPLINE_H
#define EMU_SWITCH_QUEUE_DISCIPLINE_H

#include "sim/frame.h"

enum queue_discipline_kind {
    QUEUE_TAIL_DROP,
    QUEUE_PACKET_LIMIT,
    QUEUE_WRED,
    QUEUE_FECN,
    QUEUE_DISCIPLINES,
};
static_assert(QUEUE_DISCIPLINES <= 8, "a port has one bit for each");

enum queue_verdict {
    QUEUE_TAKES, /* the next discipline decides, or the frame joins */
    QUEUE_DROPS, /* the reason has been counted */
    QUEUE_MOVES, /* the frame has another class: the disciplines of its new queue decide */
};

struct fabric_switch;
struct switch_port;

struct queue_discipline {
    /* A frame is about to join a queue of `out`. Counts the reason when it drops the frame. */
    enum queue_verdict (*join)(struct fabric_switch *sw, struct switch_port *out, uint8_t queue,
                               struct frame *frame);
    /* A frame has left a queue and will be sent. NULL: nothing to do. */
    void (*leave)(struct switch_port *out, uint8_t queue, struct frame *frame);
};

extern const struct queue_discipline queue_tail_drop, queue_packet_limit, queue_wred, queue_fecn;

/* Indexed by kind, in the order in which a frame passes them. */
extern const struct queue_discipline *const queue_disciplines[QUEUE_DISCIPLINES];

/* Set-up only: these queues of a port, one bit for each, have this discipline as well. */
void queues_use(struct switch_port *out, enum queue_discipline_kind kind, uint16_t queues);

#endif
