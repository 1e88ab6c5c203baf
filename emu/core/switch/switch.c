#include "switch/switch.h"

#include <assert.h>

#include "switch/egress.h"
#include "switch/forward.h"
#include "switch/pipeline.h"
#include "switch/transit.h"

/* ---- the ingress buffer and its two rules -------------------------------- */

/* Most of the time the far end is not paused, and need not be. */
static void pfc_update(struct fabric_switch *sw, struct switch_port *in, uint8_t tc,
                       picoseconds now)
{
    const struct priority_group *ingress = &in->priority_group[tc];
    bool xoff = in->port.stopping & 1u << tc;
    bool changes = xoff ? priority_group_wants_xon(ingress, &in->pfc, &sw->buffer)
                        : priority_group_wants_xoff(ingress);
    if (changes)
        port_pause_peer(&in->port, tc, !xoff, now);
}

static bool charge(struct fabric_switch *sw, struct switch_port *in, const struct frame *frame,
                   bool lossless, picoseconds now)
{
    uint8_t tc = frame->tc;
    struct priority_group *ingress = &in->priority_group[tc];
    const struct pfc *pfc = lossless ? &in->pfc : NULL;
    bool fits = buffer_charge(&sw->buffer, ingress, pfc, frame->length);
    if (lossless)
        pfc_update(sw, in, tc, now);
    if (ingress->headroom && ingress->headroom > in->counters.headroom_peak_bytes[tc])
        in->counters.headroom_peak_bytes[tc] = ingress->headroom;
    if (fits)
        in->port.gauges->held += frame->length;
    else {
        in->counters.rx_buf_discard[tc]++;
        *sw->lossless_dropped += lossless;
    }
    return fits;
}

/* Where flow control keeps count of buffers, the port has charged the frame already. */
static bool take_in(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    bool has_room = port_has_buffers(&in->port);
    bool lossless = has_room || in->pfc.priorities & 1u << frame->tc;
    if (!has_room && !charge(sw, in, frame, lossless, now))
        return false;
    frame->charge = (struct charge){in->port.number, frame->tc, lossless, frame->length};
    return true;
}

static void give_back(struct fabric_switch *sw, const struct charge *charge, picoseconds now)
{
    struct switch_port *in = switch_port(sw, charge->in_port);
    if (port_has_buffers(&in->port)) {
        port_released(&in->port, charge->tc, charge->bytes, now);
        return;
    }
    buffer_release(&sw->buffer, &in->priority_group[charge->tc], charge->bytes);
    in->port.gauges->held -= charge->bytes;
    if (charge->lossless)
        pfc_update(sw, in, charge->tc, now);
}

void switch_forget(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    if (frame->charge.bytes)
        give_back(sw, &frame->charge, now);
    frame_free(sw->pool, frame);
}

void switch_discard(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    if (frame->charge.bytes)
        port_count_drop(&switch_port(sw, frame->charge.in_port)->port, frame);
    switch_forget(sw, frame, now);
}

/* ---- ingress ---------------------------------------------------------------- */

static void forward_lid(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                        picoseconds now)
{
    if (forward_by_lid(sw, in, frame, now))
        pipeline_enter(in, frame, pipeline_earliest(sw, frame, now), now);
    else
        switch_discard(sw, frame, now);
}

/* Whoever decides where a packet goes: what no router would pass on ends here. */
static void forward_ipv4(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                         picoseconds now)
{
    const struct route *route = forward_route(sw, in, frame->bytes + frame->ip);
    if (!route) {
        switch_discard(sw, frame, now);
    } else if (sw->config.datapath == DATAPATH_EXTERNAL) {
        transit_begin(sw, in, frame, sw->config.hints ? forward_next_hop(sw, frame, route, now) : 0,
                      now);
    } else {
        forward_rewrite(sw, frame, forward_next_hop(sw, frame, route, now));
        pipeline_enter(in, frame, pipeline_earliest(sw, frame, now), now);
    }
}

/* A frame that ends at its ingress port never held any of the switch's buffer,
 * but the port may have charged a buffer of its own. */
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
    bool infiniband = switch_is_infiniband(sw);
    if (frame->corrupt && !sw->config.cut_through) {
        refuse(sw, in, frame, &in->counters.corrupt, now);
        return;
    }
    if (!infiniband && !frame->ip)
        refuse(sw, in, frame, &in->counters.not_ip, now);
    else if (in->dropping & 1u << frame->tc)
        refuse(sw, in, frame, &in->counters.watchdog.rx_dropped[frame->tc], now);
    else if (!take_in(sw, in, frame, now)) {
        port_count_drop(port, frame);
        frame_free(sw->pool, frame);
    } else if (infiniband)
        forward_lid(sw, in, frame, now);
    else
        forward_ipv4(sw, in, frame, now);
}

/* ---- a port's other ways to its switch ------------------------------------------ */

static void sent(struct port *port, const struct charge *charge, picoseconds now)
{
    give_back(switch_of(port), charge, now);
}

/* What has been waiting for a link that is down. */
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

/* ---- routes change ------------------------------------------------------------- */

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
