/* WRED with ECN (wred.h) as a queue discipline. Marks by the queue depth before the packet joins
 * or, if the port marks at dequeue, by the depth after it has left. */
#ifndef EMU_SWITCH_QUEUE_WRED_H
#define EMU_SWITCH_QUEUE_WRED_H

#include "sim/frame.h"
#include "switch/wred.h"

#define QUEUE_WRED "wred"

/* Its parameters and state at a port. */
struct queue_wred {
    uint8_t at_dequeue;
    struct wred curve[CLASSES]; /* by queue */
};

#endif
