/* A fault of one direction of a cable. It is a box in the line:
 *
 *     port ══ line ══▶ box ═▶ (the next fault's box ═▶) far port
 *
 * Towards the line the box looks like a port of another process: it receives every frame that
 * arrives, as it arrives, and hands it to its kind's `packet`. Pause frames and credit updates
 * pass, but for the kinds that say otherwise. */
#ifndef EMU_FAULT_LINE_FAULT_H
#define EMU_FAULT_LINE_FAULT_H

#include "fault/fault.h"

/* The first member of the struct of such a kind. */
struct line_fault {
    struct fault fault;
    struct port box;
};

/* Most kinds' inject and clear: the box goes into the line, and comes out of it. */
void line_fault_inject(struct fault *fault, picoseconds now);
void line_fault_clear(struct fault *fault, picoseconds now);
/* Puts the box behind the boxes that the line has already. */
void line_fault_inject_last(struct fault *fault);

/* Sends a frame on to the next box or to the far port. */
void line_fault_pass(struct fault *fault, struct frame *frame, picoseconds now);
/* The frame vanishes. */
void line_fault_drop(struct fault *fault, struct frame *frame);
/* The frame goes on with a check sequence that is wrong. */
void line_fault_corrupt(struct fault *fault, struct frame *frame, picoseconds now);

#endif
