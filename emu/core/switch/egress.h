/* The egress side of a switch port: which frames join its queues, and which leaves next.
 *
 *   disciplines: drop, mark ─▶ queue ─────────▶ arbiter ─▶ disciplines: mark ─▶ port
 *   queue_discipline.h         egress_queue.h              WRED with marking at dequeue */
#ifndef EMU_SWITCH_EGRESS_H
#define EMU_SWITCH_EGRESS_H

#include "switch/switch_state.h"

/* Puts a frame into its queue at `out_port`, or discards the frame and counts the reason. */
void egress_push(struct fabric_switch *sw, struct frame *frame, picoseconds now);
/* The next frame of the port; NULL when none may leave. See `pull` in port.h. */
struct frame *egress_pull(struct port *port, picoseconds now);

#endif
