/* The queues of an egress port, and how deep they are. For an external marker (eBPF) the depth of
 * each queue is posted in shared memory. */
#ifndef EMU_SWITCH_EGRESS_QUEUE_H
#define EMU_SWITCH_EGRESS_QUEUE_H

#include "switch/switch_state.h"

/* Puts a frame into the queue of its class. */
void egress_queue_push(struct switch_port *out, struct frame *frame);
/* Removes the first frame of a queue, which must not be empty. */
struct frame *egress_queue_pop(struct switch_port *out, uint8_t queue);
/* Drops all frames of a priority or lane that wait at a port; returns how many. */
uint32_t egress_queue_flush(struct switch_port *out, uint8_t tc, picoseconds now);

/* Updates queue_peak_bytes of the port. */
void egress_queue_note_peak(struct switch_port *out);

/* Adds `bytes` to those that wait for the end of the latency before they join the frame's queue;
 * negative when the frame's latency has ended. */
void egress_queue_coming(struct fabric_switch *sw, const struct frame *frame, int64_t bytes);

#endif
