/* A switch's own tables: where a packet goes, and what a router changes in it. */
#ifndef EMU_SWITCH_FORWARD_H
#define EMU_SWITCH_FORWARD_H

#include "switch/switch.h"

/* The route of a packet that a router may pass on; NULL, with the reason
 * counted, when there is none or its TTL has run out. */
const struct route *forward_route(const struct fabric_switch *sw, struct switch_port *in,
                                  const uint8_t *header);
/* The port that a packet with that route leaves by. */
uint16_t forward_next_hop(struct fabric_switch *sw, const struct frame *frame,
                          const struct route *route, picoseconds now);
/* As a router does before a packet leaves by a port: its TTL, and the MAC addresses. */
void forward_rewrite(struct fabric_switch *sw, struct frame *frame, uint16_t number);

/* InfiniBand: port and lane by DLID and service level; false, with the reason counted, when the
 * packet has none or its P_Key may not go there. */
bool forward_by_lid(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now);

#endif
