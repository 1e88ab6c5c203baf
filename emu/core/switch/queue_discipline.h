/* Queue disciplines: what becomes of a frame that would join an egress queue.
 *
 *     tail drop      a full queue drops, unless the frame is lossless       queue_tail_drop.c
 *     packet limit   a queue holds a few packets                            queue_packet_limit.c
 *     WRED           marks ECN-capable packets by the queue's depth (ECN)   queue_wred.c
 *     FECN           marks InfiniBand packets at the root of congestion     queue_fecn.c
 *
 * A queue has any of them, by its port's settings; a frame passes them in this order. A discipline
 * may mark the frame, drop it, or give it another class, and cut it short before: then it joins
 * that class's queue. The ingress buffer stays charged with the bytes that came in. */
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

enum queue_verdict {
    QUEUE_TAKES, /* the next discipline is asked, or the frame joins */
    QUEUE_DROPS, /* the reason is counted */
    QUEUE_MOVES, /* the frame has another class: the disciplines of its queue are asked */
};

struct fabric_switch;
struct switch_port;

struct queue_discipline {
    /* A frame would join a queue of `out`. Counts the reason where it drops. */
    enum queue_verdict (*join)(struct fabric_switch *sw, struct switch_port *out, uint8_t queue,
                               struct frame *frame);
    /* A frame has left a queue and will be sent. NULL: makes no difference. */
    void (*leave)(struct switch_port *out, uint8_t queue, struct frame *frame);
};

extern const struct queue_discipline queue_tail_drop, queue_packet_limit, queue_wred, queue_fecn;

/* By kind, in the order in which a frame passes them. */
extern const struct queue_discipline *const queue_disciplines[QUEUE_DISCIPLINES];

#endif
