/* Forwarding: how a switch finds the egress port of a packet.
 *
 *     by IPv4 address   routers: RoCE             forwarding_ipv4.c
 *     the same          ... with VLANs            forwarding_vlan.c
 *     by LID            linear forwarding table:  forwarding_lid.c
 *                       InfiniBand
 *
 * Forwarding is a setting of the switch, as framing and flow control are settings of its ports. */
#ifndef EMU_SWITCH_FORWARDING_H
#define EMU_SWITCH_FORWARDING_H

#include "sim/frame.h"

enum forwarding { FORWARDING_IPV4, FORWARDING_VLAN, FORWARDING_LID, FORWARDINGS };

struct fabric_switch;
struct switch_port;

struct forwarding_ops {
    bool needs_ip; /* packets without an IPv4 header are dropped at ingress */
    /* Chooses the egress port of a packet that is charged to the ingress buffer, and starts its
     * latency; or drops the packet and counts the reason. */
    void (*forward)(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now);
};

extern const struct forwarding_ops forwarding_ipv4, forwarding_vlan, forwarding_lid;

/* Indexed by enum forwarding. */
extern const struct forwarding_ops *const forwardings[FORWARDINGS];

#endif
