/* The CPU port of a switch: packets of its own control plane, which an operating system outside of
 * the fabric runs.
 *
 *     cable ─▶ port ─▶ addressed to the switch itself ─▶ to_cpu
 *     cable ◀─ port ◀─ egress queue ◀─────────────────── cpu_port_send
 *
 * Packets to an IPv6 link-local address are for the switch itself: no router forwards them (RFC
 * 4291, 2.5.6). BGP without addresses on the cables and its BFD use no others. Their class is one
 * that the control plane chooses; they wait in the queues of their port, and are lost, as all
 * others. They do not occupy the buffer of an ingress port. */
#ifndef EMU_SWITCH_CPU_PORT_H
#define EMU_SWITCH_CPU_PORT_H

#include "switch/switch_state.h"

/* Whether an Ethernet frame without an IPv4 header goes to the control plane. */
bool cpu_port_takes(const struct fabric_switch *sw, const struct frame *frame);
/* Sends a packet of the control plane by port `number`. It is lost if it is too long or no frame is
 * free. */
void cpu_port_send(struct fabric_switch *sw, uint32_t number, const uint8_t *bytes, uint32_t length,
                   picoseconds now);

#endif
