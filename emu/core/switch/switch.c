#include "switch/switch.h"

#include <assert.h>
#include <string.h>

#include "switch/cpu_port.h"
#include "switch/egress.h"
#include "switch/egress_queue.h"
#include "switch/hoq.h"
#include "switch/ingress.h"
#include "switch/pfc_watchdog.h"
#include "switch/pipeline.h"
#include "switch/port_disciplines.h"
#include "switch/transit.h"

/* ---- ingress ---------------------------------------------------------------- */

/* Drops a frame at its ingress port. It does not occupy the buffer of the switch, but the port may
 * have charged its own buffer. */
static void refuse(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                   uint64_t *reason, picoseconds now)
{
    (*reason)++;
    port_count_drop(&in->port, frame);
    port_released(&in->port, frame->tc, frame->length, now);
    frame_free(sw->pool, frame);
}

/* A frame that a router cannot forward: it is for the switch itself, or for nobody. */
SELDOM static void receive_not_ip(struct fabric_switch *sw, struct switch_port *in,
                                  struct frame *frame, picoseconds now)
{
    if (frame->corrupt)
        refuse(sw, in, frame, &in->counters->corrupt, now);
    else if (!cpu_port_takes(sw, frame))
        refuse(sw, in, frame, &in->counters->not_ip, now);
    else {
        in->counters->to_cpu++;
        sw->to_cpu(sw->control_plane, in, frame, now);
    }
}

static void receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct fabric_switch *sw = switch_of(port);
    struct switch_port *in = switch_port_of(port);
    const struct forwarding_ops *forwarding = forwardings[sw->config.forwarding];
    if (frame->corrupt && !sw->config.cut_through)
        refuse(sw, in, frame, &in->counters->corrupt, now);
    else if (forwarding->needs_ip && !frame->ip)
        receive_not_ip(sw, in, frame, now);
    else if (in->dropping & 1u << frame->tc)
        refuse(sw, in, frame, &in->counters->watchdog.rx_dropped[frame->tc], now);
    else if (ingress_charge(sw, in, frame, now))
        forwarding->forward(sw, in, frame, now);
    else {
        port_count_drop(port, frame);
        frame_free(sw->pool, frame);
    }
}

/* ---- other events of a port ------------------------------------------ */

static void sent(struct port *port, const struct charge *charge, picoseconds now)
{
    ingress_release(switch_of(port), charge, now);
}

/* Drops the frames that wait for a link that has gone down. */
static void link_down(struct port *port, picoseconds now)
{
    for (uint8_t tc = 0; tc < CLASSES; tc++)
        port->counters->link_down_discard += egress_queue_flush(switch_port_of(port), tc, now);
}

static const struct port_handler handler = {
    .receive = receive, .pull = egress_pull, .sent = sent, .link_down = link_down};

const struct switch_port *port_of_switch(const struct port *port)
{
    return port->handler == &handler ? container_of(port, struct switch_port, port) : NULL;
}

/* ---- routes ------------------------------------------------------------------ */

static void change_routes(struct fabric_switch *sw, picoseconds now)
{
    picoseconds next = routes_change(&sw->routes, now);
    if (next != NEVER)
        timer_set(sw->clock, &sw->reroute, next);
}

static void reroute(struct timer *timer, picoseconds now)
{
    struct fabric_switch *sw = container_of(timer, struct fabric_switch, reroute);
    change_routes(sw, now);
    load_balance_forget(&sw->load_balancer);
}

bool switch_add_routes(struct fabric_switch *sw, const uint16_t *destinations,
                       uint32_t destination_count, const uint16_t *ports, uint16_t port_count)
{
    return routes_add(&sw->routes, destinations, destination_count, ports, port_count);
}

bool switch_add_routes_later(struct fabric_switch *sw, int64_t at_ps, const uint16_t *destinations,
                             uint32_t destination_count, const uint16_t *ports, uint16_t port_count)
{
    return routes_add_later(&sw->routes, at_ps, destinations, destination_count, ports, port_count);
}

void switch_routes_added(struct fabric_switch *sw)
{
    uint32_t before = sw->routes.changes_done;
    change_routes(sw, sw->clock->now);
    if (sw->routes.changes_done != before)
        load_balance_forget(&sw->load_balancer);
}

bool switch_pin_flow(struct fabric_switch *sw, uint16_t source, uint16_t destination,
                     uint16_t udp_source, uint16_t port)
{
    struct pin pin = {
        .source = source, .destination = destination, .udp_source = udp_source, .port = port};
    return load_balance_pin(&sw->load_balancer, pin);
}

bool switch_add_vlan(struct fabric_switch *sw, uint16_t vid, const uint16_t *members,
                     uint32_t count)
{
    return vlans_add(&sw->vlans, vid, members, count);
}

bool switch_join_vlan(struct fabric_switch *sw, uint32_t number, uint16_t vid)
{
    sw->config.forwarding = FORWARDING_VLAN;
    return vlans_join(&sw->vlans, sw->config.ports, number, vid);
}

void switch_set_hints(struct fabric_switch *sw, bool hints)
{
    sw->config.hints = hints;
}

uint32_t switch_routes_kept(const struct fabric_switch *sw)
{
    return sw->routes.used + sw->routes.change_count;
}

/* ---- set-up ------------------------------------------------------------------ */

static uint64_t queued(const void *owner, uint16_t number)
{
    const struct fabric_switch *sw = owner;
    return (uint64_t)sw->ports[number - 1].port.gauges->queued;
}

/* A copy of `map`, which ports of the switch with equal maps share; NULL when there is no memory.
 */
static const struct qos_map *shared_qos_map(const struct fabric_switch *sw, struct arena *arena,
                                            const struct qos_map *map)
{
    for (const struct switch_port *port = sw->ports; port->port.qos_map; port++)
        if (memcmp(port->port.qos_map, map, sizeof *map) == 0)
            return port->port.qos_map;
    struct qos_map *copy = arena_take(arena, 1, sizeof *copy);
    if (copy)
        *copy = *map;
    return copy;
}

/* False when there is no memory. */
static bool pkeys_init(struct switch_port *own, struct arena *arena,
                       const struct pkey_filter *pkeys)
{
    if (!pkeys->inbound && !pkeys->outbound)
        return true;
    own->pkeys = arena_take(arena, 1, sizeof *own->pkeys);
    if (own->pkeys)
        *own->pkeys = *pkeys;
    return own->pkeys;
}

static bool port_setup(struct fabric_switch *sw, uint32_t number, struct arena *arena,
                       const struct switch_port_config *config)
{
    struct switch_port *own = switch_port(sw, number);
    const struct qos_map *qos_map = shared_qos_map(sw, arena, &config->qos_map);
    own->counters = arena_take(arena, 1, sizeof *own->counters);
    if (!qos_map || !own->counters ||
        !port_init(&own->port, arena, sw->clock, sw->pool, &handler, sw, &config->port))
        return false;
    own->port.number = (uint16_t)number;
    own->port.qos_map = qos_map;
    memcpy(own->queue_of, config->queue_of, sizeof own->queue_of);
    own->pfc = config->pfc;
    memcpy(sw->addresses[number - 1].mac, config->port.mac, 6);
    memcpy(sw->addresses[number - 1].far_mac, config->far_mac, 6);
    timer_init(&own->pipeline_due, pipeline_due);
    return hoq_init(own, arena, &config->hoq) && pkeys_init(own, arena, &config->pkeys) &&
           disciplines_init(own, arena, config->disciplines, config->discipline_count);
}

bool switch_init(struct fabric_switch *sw, struct arena *arena, struct clock *clock,
                 struct frame_pool *pool, const struct switch_config *config,
                 const struct switch_port_config *ports)
{
    assert(config->ports <= TRANSIT_PORTS);
    *sw = (struct fabric_switch){.config = *config,
                                 .clock = clock,
                                 .pool = pool,
                                 .buffer = {.shared_size = config->buffer.shared_bytes,
                                            .reserved_bytes = config->buffer.reserved_bytes}};
    sw->ports = arena_take(arena, config->ports, sizeof *sw->ports);
    sw->addresses = arena_take(arena, config->ports, sizeof *sw->addresses);
    if (!sw->ports || !sw->addresses ||
        !load_balance_init(&sw->load_balancer, arena, &config->load_balance, config->ports, queued,
                           sw))
        return false;
    for (uint32_t number = 1; number <= config->ports; number++)
        if (!port_setup(sw, number, arena, &ports[number - 1]))
            return false;
    transit_init(sw);
    timer_init(&sw->reroute, reroute);
    return pfc_watchdog_init(sw, arena);
}

void switch_free(struct fabric_switch *sw)
{
    routes_free(&sw->routes);
    vlans_free(&sw->vlans);
    load_balance_free(&sw->load_balancer);
}

void switch_start(struct fabric_switch *sw, picoseconds now)
{
    for (uint32_t number = 1; number <= sw->config.ports; number++)
        port_start(&switch_port(sw, number)->port, now);
    change_routes(sw, now);
    pfc_watchdog_start(sw, now);
}
