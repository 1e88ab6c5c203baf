/* Forwarding: how a switch finds the way of a packet that has come in, one of these.
 *
 *     by IPv4 address   routers: RoCE             forwarding_ipv4.c
 *     by LID            linear forwarding table:  forwarding_lid.c
 *                       InfiniBand
 *
 * It is a setting of the switch, as framing and flow control are of its ports. */
#ifndef EMU_SWITCH_FORWARDING_H
#define EMU_SWITCH_FORWARDING_H

#include "sim/frame.h"

enum forwarding { FORWARDING_IPV4, FORWARDING_LID, FORWARDINGS };

struct fabric_switch;
struct switch_port;

struct forwarding_ops {
    bool needs_ip; /* packets without an IPv4 header end where they come in */
    /* Finds the way of a packet that the ingress buffer has taken in, and lets it begin to wait out
     * the latency; or drops it, with the reason counted. */
    void (*forward)(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now);
};

extern const struct forwarding_ops forwarding_ipv4, forwarding_lid;

/* By enum forwarding. */
extern const struct forwarding_ops *const forwardings[FORWARDINGS];

#endif
