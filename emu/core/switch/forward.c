#include "switch/forward.h"

#include <string.h>

#include "link/sl2vl.h"

/* ---- routers ------------------------------------------------------------------- */

const struct route *forward_route(const struct fabric_switch *sw, struct switch_port *in,
                                  const uint8_t *header)
{
    uint32_t destination = ipv4_destination(header);
    const struct route *route = routes_find(&sw->routes, (uint16_t)destination);
    if (destination >> 16 != HOST_NETWORK || !route->count) {
        in->counters.no_route++;
        return NULL;
    }
    if (ipv4_ttl(header) <= 1) {
        in->counters.ttl_expired++;
        return NULL;
    }
    return route;
}

uint16_t forward_next_hop(struct fabric_switch *sw, const struct frame *frame,
                          const struct route *route, picoseconds now)
{
    const uint16_t *ports = sw->routes.ports + route->first;
    return route->count == 1
               ? ports[0]
               : load_balance_choose(&sw->load_balancer, frame, ports, route->count, now);
}

void forward_rewrite(struct fabric_switch *sw, struct frame *frame, uint16_t number)
{
    ipv4_decrement_ttl(frame->bytes + frame->ip);
    memcpy(frame->bytes, &sw->addresses[number - 1], sizeof *sw->addresses);
    frame->out_port = number;
}

/* ---- InfiniBand switches --------------------------------------------------------- */

/* The LFT's port comes first, then those among which packets of some service levels choose. */
static uint16_t lid_next_hop(struct fabric_switch *sw, const struct frame *frame,
                             const struct route *route, picoseconds now)
{
    const uint16_t *ports = sw->routes.ports + route->first;
    bool balanced = sw->balanced_sls & 1u << lrh_sl(frame->bytes);
    return balanced && route->count > 1
               ? load_balance_choose(&sw->load_balancer, frame, ports + 1, route->count - 1, now)
               : ports[0];
}

/* Whether a packet's P_Key may go this way; counted where it may not. */
static bool may_pass(struct switch_port *in, struct switch_port *out, const struct frame *frame)
{
    if (in->pkeys.inbound && !pkey_passes(&in->pkeys, frame)) {
        in->counters.rcv_constraint_errors++;
        return false;
    }
    if (out->pkeys.outbound && !pkey_passes(&out->pkeys, frame)) {
        out->counters.xmit_constraint_errors++;
        return false;
    }
    return true;
}

bool forward_by_lid(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    const struct route *route = routes_find(&sw->routes, lrh_dlid(frame->bytes));
    if (!route->count) {
        in->counters.no_route++;
        return false;
    }
    frame->out_port = lid_next_hop(sw, frame, route, now);
    struct switch_port *out = switch_port(sw, frame->out_port);
    if (!may_pass(in, out, frame))
        return false;
    if (lane_chosen(frame, &out->port))
        return true;
    in->counters.no_lane++;
    return false;
}
