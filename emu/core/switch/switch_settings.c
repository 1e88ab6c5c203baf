/* Settings of a switch and its ports, one call each: used before the fabric starts. */
#include <assert.h>
#include <string.h>

#include "switch/switch.h"

void switch_set_buffer(struct fabric_switch *sw, uint64_t shared_bytes, uint32_t reserved_bytes)
{
    sw->buffer = (struct buffer){.shared_size = shared_bytes, .reserved_bytes = reserved_bytes};
}

void switch_set_lossy(struct fabric_switch *sw, uint32_t bytes, uint32_t alpha_1024)
{
    sw->config.lossy = (struct threshold){bytes, alpha_1024};
}

void switch_set_pfc(struct fabric_switch *sw, uint32_t number, uint8_t priorities,
                    uint32_t headroom_bytes)
{
    struct pfc *pfc = &switch_port(sw, number)->pfc;
    pfc->priorities = priorities;
    pfc->headroom_bytes = headroom_bytes;
}

void switch_set_xoff(struct fabric_switch *sw, uint32_t number, uint32_t bytes, uint32_t alpha_1024,
                     uint32_t xon_below_xoff)
{
    struct pfc *pfc = &switch_port(sw, number)->pfc;
    pfc->xoff = (struct threshold){bytes, alpha_1024};
    pfc->xon_below_xoff = xon_below_xoff;
}

void switch_set_wred(struct fabric_switch *sw, uint32_t number, uint8_t queue, uint32_t kmin_bytes,
                     uint32_t kmax_bytes, uint32_t pmax_2_32, uint32_t seed)
{
    struct switch_port *out = switch_port(sw, number);
    out->wred[queue] = (struct wred){kmin_bytes, kmax_bytes, pmax_2_32, seed, 1};
    queues_use(out, QUEUE_WRED, (uint16_t)(1u << queue));
}

void switch_set_watchdog(struct fabric_switch *sw, uint8_t action, int64_t detection_ps,
                         int64_t restoration_ps, int64_t poll_ps)
{
    sw->pfc_watchdog.config = (struct watchdog_config){(enum watchdog_action)action, detection_ps,
                                                       restoration_ps, poll_ps};
}

void switch_set_dequeue_marking(struct fabric_switch *sw, uint32_t number, bool at_dequeue)
{
    switch_port(sw, number)->marks_at_dequeue = at_dequeue;
}

void switch_set_strict(struct fabric_switch *sw, uint8_t queue)
{
    sw->config.arbiter.strict |= (uint16_t)(1u << queue);
}

void switch_set_quantum(struct fabric_switch *sw, uint8_t queue, uint32_t bytes)
{
    sw->config.arbiter.quantum[queue] = bytes;
}

/* The first port's that are the same: ports that share them share their place in the cache. */
static const struct qos_map *find_same(const struct fabric_switch *sw, const struct qos_map *map)
{
    const struct switch_port *port = sw->ports;
    while (memcmp(&port->qos_map, map, sizeof *map) != 0)
        port++;
    return &port->qos_map;
}

void switch_set_qos_map(struct fabric_switch *sw, uint32_t number, bool trusts_pcp,
                        uint8_t default_priority, const uint8_t of_dscp[64],
                        const uint8_t of_pcp[8], const uint8_t queue_of[8])
{
    struct switch_port *own = switch_port(sw, number);
    own->qos_map = (struct qos_map){.trusts_pcp = trusts_pcp, .default_priority = default_priority};
    memcpy(own->qos_map.of_dscp, of_dscp, DSCPS);
    memcpy(own->qos_map.of_pcp, of_pcp, PCPS);
    own->port.qos_map = find_same(sw, &own->qos_map);
    memcpy(own->queue_of, queue_of, PRIORITIES);
}

bool switch_set_load_balance(struct fabric_switch *sw, int kind, uint64_t seed, int64_t gap_ps,
                             bool hints)
{
    sw->config.hints = hints;
    return load_balance_set(&sw->load_balancer, (enum load_balance_kind)kind, seed, gap_ps);
}

void switch_set_hints(struct fabric_switch *sw, bool hints)
{
    sw->config.hints = hints;
}

bool switch_pin_flow(struct fabric_switch *sw, uint16_t source, uint16_t destination,
                     uint16_t udp_source, uint16_t port)
{
    struct pin pin = {
        .source = source, .destination = destination, .udp_source = udp_source, .port = port};
    return load_balance_pin(&sw->load_balancer, pin);
}

void switch_set_mac(struct fabric_switch *sw, uint32_t number, const uint8_t mac[6],
                    const uint8_t far_mac[6])
{
    struct switch_port *own = switch_port(sw, number);
    memcpy(own->port.mac, mac, 6);
    memcpy(sw->addresses[number - 1].mac, mac, 6);
    memcpy(sw->addresses[number - 1].far_mac, far_mac, 6);
}

bool switch_add_routes(struct fabric_switch *sw, const uint16_t *destinations, uint32_t many,
                       const uint16_t *ports, uint16_t count)
{
    return routes_add(&sw->routes, destinations, many, ports, count);
}

bool switch_add_routes_later(struct fabric_switch *sw, int64_t at_ps, const uint16_t *destinations,
                             uint32_t many, const uint16_t *ports, uint16_t count)
{
    return routes_add_later(&sw->routes, at_ps, destinations, many, ports, count);
}

void switch_set_fecn(struct fabric_switch *sw, uint32_t number, const uint32_t threshold[CLASSES],
                     uint16_t marking_rate, uint16_t packet_size, bool marks_as_victim)
{
    struct fecn *fecn = &switch_port(sw, number)->fecn;
    *fecn = (struct fecn){.marking_rate = marking_rate,
                          .packet_size = packet_size,
                          .marks_as_victim = marks_as_victim};
    memcpy(fecn->threshold, threshold, sizeof fecn->threshold);
    for (unsigned queue = 0; queue < CLASSES; queue++)
        if (threshold[queue])
            queues_use(switch_port(sw, number), QUEUE_FECN, (uint16_t)(1u << queue));
}

void switch_set_balanced_sls(struct fabric_switch *sw, uint16_t sls)
{
    sw->balanced_sls = sls;
}

void switch_set_pkeys(struct fabric_switch *sw, uint32_t number, bool inbound, bool outbound,
                      const uint16_t *keys, uint8_t count)
{
    assert(count <= PKEYS);
    struct pkey_filter *filter = &switch_port(sw, number)->pkeys;
    *filter = (struct pkey_filter){.inbound = inbound, .outbound = outbound, .count = count};
    memcpy(filter->keys, keys, count * sizeof *keys);
}

void switch_set_hoq(struct fabric_switch *sw, uint32_t number, int64_t life_ps, uint8_t stall_count)
{
    struct hoq *hoq = &switch_port(sw, number)->hoq;
    hoq->life = life_ps;
    hoq->stall_count = stall_count;
}
