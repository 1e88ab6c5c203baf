/* A switch: one model for both kinds of fabric.
 *
 *   port ─▶ ingress buffer ─▶ own tables ──────────▶ latency ─▶ egress queue ─▶ port
 *           PFC or credits    or Open vSwitch                   drop, mark, arbiter
 *           ingress.h         forwarding.h,          pipeline.h egress.h, queue_discipline.h
 *                             transit.h
 *
 * Forwarding has two datapaths. In its own datapath the switch looks the packet up and rewrites it
 * as a router does. In the external datapath it hands the packet over to Open vSwitch, which
 * decides, and takes it back.
 *
 * A frame is charged and paused by its priority (`qos_map.h`, of the ingress port). The egress port
 * serves, marks and drops by queue; its `queue_of` maps priorities to queues.
 *
 * Left out: cell granularity of the buffer, several pools, multicast. */
#ifndef EMU_SWITCH_SWITCH_H
#define EMU_SWITCH_SWITCH_H

#include "sim/arena.h"
#include "switch/switch_api.h"
#include "switch/switch_state.h"

/* Set-up only. `ports` has the settings of config->ports ports. False when there is no memory, or
 * when disciplines_init refuses the queue disciplines of a port. */
bool switch_init(struct fabric_switch *sw, struct arena *arena, struct clock *clock,
                 struct frame_pool *pool, const struct switch_config *config,
                 const struct switch_port_config *ports);
void switch_free(struct fabric_switch *sw);
void switch_start(struct fabric_switch *sw, picoseconds now);

/* The switch port that a port is part of; NULL for a port of a NIC or of another process. */
const struct switch_port *port_of_switch(const struct port *port);

#endif
