/* Packets in transit: handed to the external datapath (Open vSwitch), which decides where they go.
 *
 *     transit tag    06 : KP PP : HH : SS SS    priority, ingress port, hint, sequence number
 *
 * The tag is the source MAC, which the external datapath does not change. It tells which packet
 * came back, so that the time it took is part of the switch's latency and a packet that never comes
 * back, or not as long as it was, is noticed. It is the machine that loses it: no port of the
 * fabric has dropped it.
 *
 * The hint is the egress port for packets whose next hop is chosen here even so,
 * by more than the external datapath can see (load_balance.h); 0 leaves the choice to it. */
#ifndef EMU_SWITCH_TRANSIT_H
#define EMU_SWITCH_TRANSIT_H

#include "switch/switch.h"

void transit_init(struct fabric_switch *sw);

/* Hands the frame over. It stays the switch's. */
void transit_begin(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                   uint16_t hint, picoseconds now);

/* How long the external datapath kept a packet, and how much of that the switch's
 * latency could not hide. */
struct transit_time {
    picoseconds kept, late;
};

/* `length` bytes came out of the external datapath at port `number`. */
struct transit_time transit_returned(struct fabric_switch *sw, uint32_t number,
                                     const uint8_t *bytes, uint32_t length, picoseconds now);

#endif
