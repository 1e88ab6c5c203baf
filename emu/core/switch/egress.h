/* The egress side of a switch port: queues by traffic class or virtual lane, and the choice of the
 * next frame.
 *
 *   disciplines: drop, mark ─▶ queue ─▶ arbiter ─▶ disciplines: mark ─▶ port
 *   queue_discipline.h                             WRED with marking at dequeue
 *
 * For an external marker (eBPF) the depth of each queue is posted in shared memory. */
#ifndef EMU_SWITCH_EGRESS_H
#define EMU_SWITCH_EGRESS_H

#include "switch/switch.h"

/* Puts a frame into its queue at `out_port`, or discards the frame and counts the reason. */
void egress_push(struct fabric_switch *sw, struct frame *frame, picoseconds now);
/* The next frame of the port; NULL when none may leave. See `pull` in port.h. */
struct frame *egress_pull(struct port *port, picoseconds now);

/* Removes the first frame of a queue, which must not be empty. */
struct frame *egress_take_head(struct switch_port *out, uint8_t queue);
/* Drops all frames of a priority or lane that wait at a port; returns how many. */
uint32_t egress_flush(struct switch_port *out, uint8_t tc, picoseconds now);

/* Brings queue_peak_bytes of the port up to now. */
void egress_note_peak(struct switch_port *out);

/* `bytes` of a frame begin to wait for the end of the latency before they join their queue; if
 * negative, they have ended. */
void egress_coming(struct fabric_switch *sw, const struct frame *frame, int64_t bytes);

#endif
