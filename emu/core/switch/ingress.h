/* Accounting for the ingress buffer: each packet occupies the buffer of its ingress port, until its
 * last bit has left by another port or it is dropped.
 *
 * If flow control accounts for the buffers of the port (credits), the port has charged the packet
 * already. Otherwise the packet is charged here (buffer.h), and PFC pauses the far end (pfc.h).
 */
#ifndef EMU_SWITCH_INGRESS_H
#define EMU_SWITCH_INGRESS_H

#include "switch/switch_state.h"

/* Charges a frame that has arrived. False when there is no room; the reason has been counted. */
bool ingress_charge(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now);
/* Releases the memory of a frame whose last bit has left. */
void ingress_release(struct fabric_switch *sw, const struct charge *charge, picoseconds now);

/* Frees a frame and its buffer memory without counting a drop: for frames that the machine lost,
 * not the fabric. */
void ingress_forget(struct fabric_switch *sw, struct frame *frame, picoseconds now);
/* Frees a frame and its buffer memory, and counts a drop. */
void ingress_discard(struct fabric_switch *sw, struct frame *frame, picoseconds now);

#endif
