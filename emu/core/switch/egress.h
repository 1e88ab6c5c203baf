/* A switch port's egress: queues by traffic class or virtual lane, and who may leave next.
 *
 *   disciplines: drop, mark ─▶ queue ─▶ arbiter ─▶ disciplines: mark ─▶ port
 *   queue_discipline.h                             WRED, where it marks at dequeue
 *
 * A marker outside (eBPF) finds each queue's depth on a board that is kept here. */
#ifndef EMU_SWITCH_EGRESS_H
#define EMU_SWITCH_EGRESS_H

#include "switch/switch.h"

/* The frame, whose `out_port` is set, joins its queue, or is discarded with the reason counted. */
void egress_push(struct fabric_switch *sw, struct frame *frame, picoseconds now);
/* What the port sends next; NULL when nothing may go. See port.h. */
struct frame *egress_pull(struct port *port, picoseconds now);

/* Takes the first frame out of a queue that has one. */
struct frame *egress_take_head(struct switch_port *out, uint8_t queue);
/* Drops all that waits at a port on a priority or lane; returns how many frames. */
uint32_t egress_flush(struct switch_port *out, uint8_t tc, picoseconds now);

/* `bytes` more or less of a frame wait out the latency before they join their queue. */
void egress_coming(struct fabric_switch *sw, const struct frame *frame, int64_t bytes);

#endif
