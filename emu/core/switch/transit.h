/* Packets in transit: handed to the external datapath (Open vSwitch), which chooses their egress
 * port.
 *
 *     transit tag    06 : KP PP : HH : SS SS    priority, ingress port, hint, sequence number
 *
 * The tag is the source MAC, which the external datapath does not change. It identifies the packet
 * that comes back. The time in transit then counts as part of the latency of the switch, and a
 * packet that never comes back, or has another length, is noticed. The machine has lost such a
 * packet; it is no drop of a port in the fabric.
 *
 * If time waits for the datapath (`await`), a packet joins the pipeline of the switch at once,
 * before its egress port is known. Only at the end of its latency must it be back, so that many
 * packets can be in the datapath together. Where the latency depends on the egress port, because a
 * cut-through switch has ports of several rates, time stands still when the packet is handed over.
 *
 * The hint is the egress port of packets whose next hop is still chosen here, by fields that the
 * external datapath cannot see (load_balance.h). With hint 0 the external datapath chooses. */
#ifndef EMU_SWITCH_TRANSIT_H
#define EMU_SWITCH_TRANSIT_H

#include "switch/switch_state.h"

void transit_init(struct fabric_switch *sw);

/* Hands the frame over. The switch keeps ownership of it. */
void transit_begin(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                   uint16_t hint, picoseconds now);

/* How long the external datapath kept a packet, and by how much that exceeded the latency of the
 * switch. */
struct transit_time {
    picoseconds kept, late;
};

/* `length` bytes came back from the external datapath at port `number`. */
struct transit_time transit_returned(struct fabric_switch *sw, uint32_t number,
                                     const uint8_t *bytes, uint32_t length, picoseconds now);

/* The same if time waits for the datapath. Returns the packet; NULL: none is in transit that could
 * be this one. */
const struct frame *transit_resolved(struct fabric_switch *sw, uint32_t number,
                                     const uint8_t *bytes, uint32_t length);

#endif
