/* Frames that a fault of a line holds and lets go later, each at its due_at, in that order. A
 * fault that is cleared still lets go what it holds; its box stays in the line until then. */
#ifndef EMU_FAULT_HELD_FRAMES_H
#define EMU_FAULT_HELD_FRAMES_H

#include "fault/line_fault.h"

/* The first member of the struct of such a kind. */
struct holding_fault {
    struct line_fault line;
    struct frame_list held;
    struct timer next_due;
};

static inline struct holding_fault *holding_fault_of(struct fault *fault)
{
    return container_of(fault, struct holding_fault, line.fault);
}

void holding_fault_inject(struct fault *fault, picoseconds now);
void holding_fault_clear(struct fault *fault, picoseconds now);
/* `until` is not before any held frame's. */
void holding_fault_hold(struct fault *fault, struct frame *frame, picoseconds until,
                        picoseconds now);
/* Sends a frame on before those that are held. */
void holding_fault_overtake(struct fault *fault, struct frame *frame, picoseconds now);
/* The kind's link_lost: what is held is on the cable, and is lost with the link. */
void holding_fault_lose(struct fault *fault);

#endif
