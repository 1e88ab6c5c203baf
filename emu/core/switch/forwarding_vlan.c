/* Routers whose hosts are in VLANs. */
#include "switch/forwarding.h"
#include "switch/ingress.h"
#include "switch/vlans.h"

static void forward(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    enum vlan_verdict verdict = vlans_check(&sw->vlans, in->port.number, frame);
    if (verdict == VLAN_PASSES) {
        forwarding_ipv4.forward(sw, in, frame, now);
        return;
    }
    in->counters->vlan_discard += verdict == VLAN_IS_WRONG;
    in->counters->vlan_no_route += verdict == VLAN_HAS_NO_ROUTE;
    ingress_discard(sw, frame, now);
}

const struct forwarding_ops forwarding_vlan = {.needs_ip = true, .forward = forward};
