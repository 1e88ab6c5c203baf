/* InfiniBand switches: the port and lane of a packet by DLID and service level, if the P_Key is
 * allowed there. */
#include "link/sl2vl.h"
#include "switch/forwarding.h"
#include "switch/ingress.h"
#include "switch/pipeline.h"
#include "switch/pkey.h"

/* The first port of a route is that of the LFT. Packets of the balanced service levels choose among
 * the ports after it. */
static uint16_t next_hop(struct fabric_switch *sw, const struct frame *frame,
                         const struct route *route, picoseconds now)
{
    const uint16_t *ports = sw->routes.ports + route->first;
    bool balanced = sw->config.balanced_sls & 1u << lrh_sl(frame->bytes);
    return balanced && route->count > 1
               ? load_balance_choose(&sw->load_balancer, frame, ports + 1, route->count - 1, now)
               : ports[0];
}

/* Whether both ports allow the P_Key of a packet. Counts a violation. */
static bool may_pass(struct switch_port *in, struct switch_port *out, const struct frame *frame)
{
    if (in->pkeys && in->pkeys->inbound && !pkey_passes(in->pkeys, frame)) {
        in->counters->rcv_constraint_errors++;
        return false;
    }
    if (out->pkeys && out->pkeys->outbound && !pkey_passes(out->pkeys, frame)) {
        out->counters->xmit_constraint_errors++;
        return false;
    }
    return true;
}

/* Sets the egress port and lane of a packet. False when there is none; the reason has been
 * counted. */
static bool find_way(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                     picoseconds now)
{
    const struct route *route = routes_find(&sw->routes, lrh_dlid(frame->bytes));
    if (!route->count) {
        in->counters->no_route++;
        return false;
    }
    frame->out_port = next_hop(sw, frame, route, now);
    struct switch_port *out = switch_port(sw, frame->out_port);
    if (!may_pass(in, out, frame))
        return false;
    if (lane_chosen(frame, &out->port))
        return true;
    in->counters->no_lane++;
    return false;
}

static void forward(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    if (find_way(sw, in, frame, now))
        pipeline_enter(in, frame, pipeline_earliest(sw, frame, now), now);
    else
        ingress_discard(sw, frame, now);
}

const struct forwarding_ops forwarding_lid = {.forward = forward};
