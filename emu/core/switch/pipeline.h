/* A switch's latency: what came in by a port waits, in order, until it may join its queue. */
#ifndef EMU_SWITCH_PIPELINE_H
#define EMU_SWITCH_PIPELINE_H

#include "switch/switch.h"

/* When a frame that arrived then may join its egress queue. */
picoseconds pipeline_earliest(const struct fabric_switch *sw, const struct frame *frame,
                              picoseconds arrived);
/* It joins its queue when that is due, but not before those that are ahead of it. */
void pipeline_enter(struct switch_port *in, struct frame *frame, picoseconds due, picoseconds now);

/* The next frame of a pipeline goes to its egress queue. Known by name to prefetch.h. */
void pipeline_due(struct timer *timer, picoseconds now);

#endif
