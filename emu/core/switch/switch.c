#include "switch/switch.h"

#include <assert.h>

#include "switch/egress.h"
#include "switch/ingress.h"
#include "switch/pipeline.h"
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

static void receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct fabric_switch *sw = switch_of(port);
    struct switch_port *in = switch_port_of(port);
    const struct forwarding_ops *forwarding = forwardings[sw->config.forwarding];
    if (frame->corrupt && !sw->config.cut_through)
        refuse(sw, in, frame, &in->counters.corrupt, now);
    else if (forwarding->needs_ip && !frame->ip)
        refuse(sw, in, frame, &in->counters.not_ip, now);
    else if (in->dropping & 1u << frame->tc)
        refuse(sw, in, frame, &in->counters.watchdog.rx_dropped[frame->tc], now);
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
        port->counters.link_down_discard += egress_flush(switch_port_of(port), tc, now);
}

static const struct port_handler handler = {
    .receive = receive, .pull = egress_pull, .sent = sent, .link_down = link_down};

const struct switch_port *port_of_switch(const struct port *port)
{
    return port->handler == &handler ? container_of(port, struct switch_port, port) : NULL;
}

/* ---- changes of routes ------------------------------------------------------------- */

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

void switch_routes_added(struct fabric_switch *sw)
{
    reroute(&sw->reroute, sw->clock->now);
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

static void port_setup(struct fabric_switch *sw, struct switch_port *own, uint32_t number)
{
    port_init(&own->port, sw->clock, sw->pool, &handler, sw, sw->config.framing);
    timer_init(&own->pipeline_due, pipeline_due);
    hoq_init(&own->hoq);
    own->port.number = (uint16_t)number;
    own->port.qos_map = &own->qos_map;
    queues_use(own, QUEUE_TAIL_DROP, sw->config.tail_drop);
    queues_use(own, QUEUE_PACKET_LIMIT, sw->config.packet_limit);
    for (uint8_t tc = 0; tc < CLASSES; tc++)
        own->queue_of[tc] = tc;
}

bool switch_init(struct fabric_switch *sw, struct arena *arena, struct clock *clock,
                 struct frame_pool *pool, const struct switch_config *config)
{
    assert(config->ports <= TRANSIT_PORTS);
    *sw = (struct fabric_switch){.config = *config, .clock = clock, .pool = pool};
    sw->ports = arena_take(arena, config->ports, sizeof *sw->ports);
    sw->addresses = arena_take(arena, config->ports, sizeof *sw->addresses);
    if (!sw->ports || !sw->addresses ||
        !load_balance_init(&sw->load_balancer, arena, config->ports, queued, sw))
        return false;
    for (uint32_t number = 1; number <= config->ports; number++)
        port_setup(sw, switch_port(sw, number), number);
    transit_init(sw);
    timer_init(&sw->reroute, reroute);
    pfc_watchdog_init(sw);
    return true;
}

void switch_free(struct fabric_switch *sw)
{
    routes_free(&sw->routes);
    load_balance_free(&sw->load_balancer);
}

void switch_start(struct fabric_switch *sw, picoseconds now)
{
    for (uint32_t number = 1; number <= sw->config.ports; number++)
        port_start(&switch_port(sw, number)->port, now);
    change_routes(sw, now);
    pfc_watchdog_start(sw, now);
}
