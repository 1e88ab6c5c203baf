/* Routers: the next hop by IPv4 address, from the switch's own table or by the external datapath.
 */
#include <string.h>

#include "switch/forwarding.h"
#include "switch/ingress.h"
#include "switch/pipeline.h"
#include "switch/transit.h"

/* The route of a packet. NULL when there is none or the TTL has expired; the reason has been
 * counted. */
static const struct route *find_route(const struct fabric_switch *sw, struct switch_port *in,
                                      const uint8_t *header)
{
    uint32_t destination = ipv4_destination(header);
    const struct route *route = routes_find(&sw->routes, (uint16_t)destination);
    if (destination >> 16 != HOST_NETWORK || !route->count) {
        in->counters->no_route++;
        return NULL;
    }
    if (ipv4_ttl(header) <= 1) {
        in->counters->ttl_expired++;
        return NULL;
    }
    return route;
}

static uint16_t next_hop(struct fabric_switch *sw, const struct frame *frame,
                         const struct route *route, picoseconds now)
{
    const uint16_t *ports = sw->routes.ports + route->first;
    return route->count == 1
               ? ports[0]
               : load_balance_choose(&sw->load_balancer, frame, ports, route->count, now);
}

/* Rewrites the TTL and the MAC addresses of a packet for its egress port, as a router does. */
static void rewrite(struct fabric_switch *sw, struct frame *frame, uint16_t number)
{
    ipv4_decrement_ttl(frame->bytes + frame->ip);
    memcpy(frame->bytes, &sw->addresses[number - 1], sizeof *sw->addresses);
    frame->out_port = number;
}

/* Drops packets that no router would forward, for both datapaths. */
static void forward(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    const struct route *route = find_route(sw, in, frame->bytes + frame->ip);
    if (!route) {
        ingress_discard(sw, frame, now);
    } else if (sw->datapath == DATAPATH_EXTERNAL) {
        transit_begin(sw, in, frame, sw->config.hints ? next_hop(sw, frame, route, now) : 0, now);
    } else {
        rewrite(sw, frame, next_hop(sw, frame, route, now));
        pipeline_enter(in, frame, pipeline_earliest(sw, frame, now), now);
    }
}

const struct forwarding_ops forwarding_ipv4 = {.needs_ip = true, .forward = forward};
