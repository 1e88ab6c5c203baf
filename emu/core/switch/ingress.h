/* The ingress buffer's account of packets: each occupies the buffer of the port it came in by,
 * until its last bit has left by another or it is dropped.
 *
 * Where flow control keeps count of the port's buffers (credits), the port has charged the packet
 * already. Otherwise it is charged here (buffer.h), and PFC pauses the far end by that. */
#ifndef EMU_SWITCH_INGRESS_H
#define EMU_SWITCH_INGRESS_H

#include "switch/switch.h"

/* Charges a frame that came in; false, with the reason counted, when there is no room. */
bool ingress_charge(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now);
/* The last bit of a frame that was charged so has left. */
void ingress_release(struct fabric_switch *sw, const struct charge *charge, picoseconds now);

/* Frees a frame, and the buffer it occupied: what the machine lost, which the fabric would not. */
void ingress_forget(struct fabric_switch *sw, struct frame *frame, picoseconds now);
/* The same of one that the switch drops. */
void ingress_discard(struct fabric_switch *sw, struct frame *frame, picoseconds now);

#endif
