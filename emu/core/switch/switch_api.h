/* What Python changes in a switch besides its settings (switch_config.h): its routes, before and
 * while it runs. Plain prototypes, which the binding reads. Times are emulated picoseconds; ports
 * are numbered from 1. */
#ifndef EMU_SWITCH_SWITCH_API_H
#define EMU_SWITCH_SWITCH_API_H

#include <stdbool.h>
#include <stdint.h>

struct fabric_switch;

/* Whether the transit tag carries the next hop to the external datapath. */
void switch_set_hints(struct fabric_switch *sw, bool hints);
/* Pins a flow to an egress port. The low 16 bits of its addresses and its UDP source port identify
 * it. */
bool switch_pin_flow(struct fabric_switch *sw, uint16_t source, uint16_t destination,
                     uint16_t udp_source, uint16_t port);
/* Sets the egress ports of destinations. A destination is the low 16 bits of an IPv4 address, or a
 * LID. */
bool switch_add_routes(struct fabric_switch *sw, const uint16_t *destinations,
                       uint32_t destination_count, const uint16_t *ports, uint16_t port_count);

/* The same from `at_ps` on. No ports: unreachable. */
bool switch_add_routes_later(struct fabric_switch *sw, int64_t at_ps, const uint16_t *destinations,
                             uint32_t destination_count, const uint16_t *ports,
                             uint16_t port_count);
/* A switch that runs has been given routes for later: they come into force in their time. */
void switch_routes_added(struct fabric_switch *sw);
/* Set-up only. Adds a VLAN with its hosts, by the low 16 bits of their addresses, before ports join
 * it. VID 0: the hosts that are in no VLAN. False: no memory, or more than 64 VLANs. */
bool switch_add_vlan(struct fabric_switch *sw, uint16_t vid, const uint16_t *members,
                     uint32_t count);
/* Set-up only. The port to a host takes packets of this VLAN; of others no more. */
bool switch_join_vlan(struct fabric_switch *sw, uint32_t number, uint16_t vid);
/* Numbers and changes that the switch keeps for its routes, now. */
uint32_t switch_routes_kept(const struct fabric_switch *sw);

/* The queue disciplines there are, and the parameters of each; NULL after the last. */
const char *queue_discipline_name(uint32_t index);
const char *queue_discipline_parameter(uint32_t index, uint32_t place);

#endif
