/* The latency of a switch: frames from a port wait, in order, until they may join their queues. */
#ifndef EMU_SWITCH_PIPELINE_H
#define EMU_SWITCH_PIPELINE_H

#include "switch/switch_state.h"

/* The earliest time at which a frame that arrived at `arrived` may join its egress queue. */
picoseconds pipeline_earliest(const struct fabric_switch *sw, const struct frame *frame,
                              picoseconds arrived);
/* Makes a frame wait until `due`, and not less than the frames ahead of it. */
void pipeline_enter(struct switch_port *in, struct frame *frame, picoseconds due, picoseconds now);

/* Moves the next frame of a pipeline to its egress queue. prefetch.h refers to it by name. */
void pipeline_due(struct timer *timer, picoseconds now);

#endif
