#include "switch.h"

#include <assert.h>
#include <string.h>

#include "api.h"
#include "lane.h"

enum { VL15_QUEUE_PACKETS = 16 };

enum { TRANSIT_MARK = 0x06, TRANSIT_SEQUENCES = 1 << 16, TRANSIT_PORTS = 0xFFF, MAC_BYTES = 6 };

static struct switch_port *of_port(struct port *port)
{
    return container_of(port, struct switch_port, port);
}

static struct fabric_switch *of_switch(const struct port *port)
{
    return port->owner;
}

static bool is_infiniband(const struct fabric_switch *sw)
{
    return sw->config.framing == FRAMING_INFINIBAND;
}

/* ---- the ingress buffer and its two rules -------------------------------- */

/* Most of the time the far end is not paused, and need not be. */
static void pfc_update(struct fabric_switch *sw, struct switch_port *in, uint8_t klass,
                       picoseconds now)
{
    const struct ingress *ingress = &in->ingress[klass];
    bool xoff = in->port.xoff & 1u << klass;
    bool changes =
        xoff ? ingress_wants_xon(ingress, &in->pfc, &sw->buffer) : ingress_wants_xoff(ingress);
    if (changes)
        port_pause_peer(&in->port, klass, !xoff, now);
}

static bool charge(struct fabric_switch *sw, struct switch_port *in, const struct frame *frame,
                   bool lossless, picoseconds now)
{
    uint8_t klass = frame->klass;
    struct ingress *ingress = &in->ingress[klass];
    const struct pfc *pfc = lossless ? &in->pfc : NULL;
    bool fits = buffer_charge(&sw->buffer, ingress, pfc, frame->length);
    if (lossless)
        pfc_update(sw, in, klass, now);
    if (ingress->headroom && ingress->headroom > in->counters.headroom_peak_bytes[klass])
        in->counters.headroom_peak_bytes[klass] = ingress->headroom;
    if (fits)
        in->port.gauges->held += frame->length;
    else
        in->counters.rx_buf_discard[klass]++;
    return fits;
}

/* InfiniBand's lanes have buffers of their own, which the port has charged already. */
static bool take_in(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    bool ethernet = sw->config.framing == FRAMING_ETHERNET;
    bool lossless = ethernet && in->pfc.priorities & 1u << frame->klass;
    if (ethernet && !charge(sw, in, frame, lossless, now))
        return false;
    frame->charge = (struct charge){in->port.number, frame->klass, lossless, frame->length};
    return true;
}

static void give_back(struct fabric_switch *sw, const struct charge *charge, picoseconds now)
{
    struct switch_port *in = switch_port(sw, charge->in_port);
    if (is_infiniband(sw)) {
        port_return_credit(&in->port, charge->klass, charge->bytes, now);
        return;
    }
    buffer_release(&sw->buffer, &in->ingress[charge->klass], charge->bytes);
    in->port.gauges->held -= charge->bytes;
    if (charge->lossless)
        pfc_update(sw, in, charge->klass, now);
}

void switch_discard(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    if (frame->charge.bytes)
        give_back(sw, &frame->charge, now);
    frame_free(sw->pool, frame);
}

/* ---- egress --------------------------------------------------------------- */

/* Bytes that the line takes out of a queue while a frame waits out the latency: of
 * as many queues as wait, each its part. */
static uint64_t leaving(const struct switch_port *out, uint8_t queue)
{
    enum { SAMPLE = 4096 };
    const struct frame *first = out->queue[queue].frames.first;
    if (first && port_is_paused(&out->port, first->klass))
        return 0;
    picoseconds latency = of_switch(&out->port)->config.latency;
    uint64_t bytes = (uint64_t)(latency * SAMPLE / line_time(&out->port.line, SAMPLE));
    return bytes / (unsigned)__builtin_popcount(out->waiting | 1u << queue);
}

/* Whether a marker outside asks for the queue's depth. */
static bool is_watched(const struct switch_port *out, uint8_t queue)
{
    return out->depth && queue < PRIORITIES;
}

/* For a marker outside, which sees a frame one latency before it joins the queue: the
 * depth that it will find. Those ahead of it will have joined, and others will have left. */
SELDOM static void post_depth(struct switch_port *out, uint8_t queue)
{
    uint64_t ahead = out->queue[queue].bytes + out->coming[queue], gone = leaving(out, queue);
    uint32_t depth = ahead > gone ? (uint32_t)(ahead - gone) : 0;
    __atomic_store_n(&out->depth[queue], depth, __ATOMIC_RELAXED);
}

/* `bytes` more or less wait in the queue. */
static void depth_changed(struct switch_port *out, uint8_t queue, int64_t bytes)
{
    out->port.gauges->queued += bytes;
    if (is_watched(out, queue))
        post_depth(out, queue);
}

/* `bytes` more or less wait out the latency before they join the queue; nobody outside
 * asks in the switch's own plane. */
static void coming_changed(struct fabric_switch *sw, const struct frame *frame, int64_t bytes)
{
    if (sw->config.plane == PLANE_OWN)
        return;
    struct switch_port *out = switch_port(sw, frame->out_port);
    uint8_t queue = out->queue_of[frame->klass];
    out->coming[queue] = (uint32_t)(out->coming[queue] + bytes);
    if (is_watched(out, queue))
        post_depth(out, queue);
}

static uint32_t draw(const struct wred *wred, const uint8_t *header, uint32_t length)
{
    uint32_t words[WRED_DRAW_WORDS] = {0};
    if (length >= WRED_DRAW_OFFSET + sizeof words)
        memcpy(words, header + WRED_DRAW_OFFSET, sizeof words);
    return wred_draw(wred, words);
}

static bool marks(const struct switch_port *out, uint8_t queue)
{
    return out->marking & 1u << queue;
}

/* By the depth of what is in the queue beside the frame. */
SELDOM static void mark(struct switch_port *out, uint8_t queue, struct frame *frame)
{
    const struct wred *wred = &out->wred[queue];
    uint8_t *header = frame->bytes + frame->ip;
    if (!frame->ip || ipv4_ecn(header) == ECN_NOT_ECT || ipv4_ecn(header) == ECN_CE)
        return;
    uint32_t depth = (uint32_t)out->queue[queue].bytes;
    if (wred_marks(wred, depth, draw(wred, header, frame->stored - frame->ip))) {
        ipv4_set_ce(header);
        out->counters.ecn_marked[frame->klass]++;
    }
}

static bool over_threshold(const struct fabric_switch *sw, const struct frame_queue *queue,
                           const struct frame *frame)
{
    return queue->bytes + frame->length > threshold_now(&sw->config.lossy, &sw->buffer);
}

/* False, with the reason counted, when a lane takes no packet now: it is stalled,
 * or it is the management lane, which has no credits and little room. */
static bool lane_takes(struct switch_port *out, uint8_t vl)
{
    if (vl == VL_MANAGEMENT && out->queue[vl].count >= VL15_QUEUE_PACKETS) {
        out->counters.vl15_dropped++;
        return false;
    }
    if (!(out->hoq.stalled & 1u << vl))
        return true;
    out->counters.hoq_discard++;
    return false;
}

static void enqueue(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    struct switch_port *out = switch_port(sw, frame->out_port);
    uint8_t number = out->queue_of[frame->klass];
    struct frame_queue *queue = &out->queue[number];
    bool lossy = sw->config.framing == FRAMING_ETHERNET && !frame->charge.lossless;
    if (!out->port.up) {
        out->port.counters.link_down_discard++;
        switch_discard(sw, frame, now);
        return;
    }
    if (out->dropping & 1u << frame->klass) {
        out->counters.watchdog.tx_dropped[frame->klass]++;
        switch_discard(sw, frame, now);
        return;
    }
    if (is_infiniband(sw) && !lane_takes(out, frame->klass)) {
        switch_discard(sw, frame, now);
        return;
    }
    if (lossy && over_threshold(sw, queue, frame)) {
        out->counters.tx_queue_discard[frame->klass]++;
        switch_discard(sw, frame, now);
        return;
    }
    if (marks(out, number) && !out->marks_at_dequeue)
        mark(out, number, frame);
    if (is_infiniband(sw) && out->fecn.threshold)
        fecn_see(&out->fecn, &out->port, frame, queue->bytes);
    queue_push(queue, frame);
    out->waiting |= (uint16_t)(1u << number);
    depth_changed(out, number, frame->length);
    if (queue->bytes > out->queue_peak_bytes)
        out->queue_peak_bytes = queue->bytes;
    port_kick(&out->port, now);
}

/* One pass over the queue, in which the others keep their order. */
uint32_t switch_flush(struct switch_port *out, uint8_t klass, picoseconds now)
{
    uint8_t number = out->queue_of[klass];
    struct frame_queue *queue = &out->queue[number];
    uint32_t flushed = 0;
    for (uint32_t left = queue->count; left; left--) {
        struct frame *frame = queue_pop(queue);
        if (frame->klass != klass) {
            queue_push(queue, frame);
            continue;
        }
        depth_changed(out, number, -(int64_t)frame->length);
        switch_discard(of_switch(&out->port), frame, now);
        flushed++;
    }
    if (!queue->count)
        out->waiting &= (uint16_t) ~(1u << number);
    return flushed;
}

/* What has been waiting for a link that is down. */
static void link_down(struct port *port, picoseconds now)
{
    for (uint8_t klass = 0; klass < CLASSES; klass++)
        port->counters.link_down_discard += switch_flush(of_port(port), klass, now);
}

struct frame *switch_take_head(struct switch_port *out, uint8_t queue)
{
    struct frame *frame = queue_pop(&out->queue[queue]);
    if (!out->queue[queue].count)
        out->waiting &= (uint16_t) ~(1u << queue);
    depth_changed(out, queue, -(int64_t)frame->length);
    return frame;
}

static uint8_t next_queue(const struct fabric_switch *sw, struct switch_port *out,
                          uint16_t sendable)
{
    static_assert((int)VL_NONE == (int)ARBITER_NONE, "both mean that nothing may go");
    if (port_arbitrates_lanes(&out->port))
        return vlarb_pick(&out->port.vlarb, out->port.vlarb_tables, sendable);
    return arbiter_pick(&out->arbiter, &sw->config.arbiter, out->queue, sendable);
}

static struct frame *pull(struct port *port, picoseconds now)
{
    struct fabric_switch *sw = of_switch(port);
    struct switch_port *out = of_port(port);
    if (!out->waiting && !port_arbitrates_lanes(port)) /* which counts turns without packets */
        return NULL;
    uint16_t sendable = 0;
    for (unsigned left = out->waiting; left; left &= left - 1) {
        unsigned queue = (unsigned)__builtin_ctz(left);
        const struct frame *first = out->queue[queue].frames.first;
        if (port_may_send(port, first->klass, first->length, now))
            sendable |= (uint16_t)(1u << queue);
        else if (is_infiniband(sw) && out->hoq.life)
            hoq_blocked(out, first->klass, now);
    }
    uint8_t queue = next_queue(sw, out, sendable);
    if (queue == ARBITER_NONE)
        return NULL;
    struct frame *frame = switch_take_head(out, queue);
    if (port_arbitrates_lanes(port))
        vlarb_sent(&port->vlarb, frame->length);
    if (is_infiniband(sw) && out->hoq.life)
        hoq_moved(&out->hoq, queue);
    if (marks(out, queue) && out->marks_at_dequeue)
        mark(out, queue, frame);
    return frame;
}

static void sent(struct port *port, const struct charge *charge, picoseconds now)
{
    give_back(of_switch(port), charge, now);
}

/* ---- latency -------------------------------------------------------------- */

/* A cut-through frame may start leaving before its tail is in, but never so
 * early that a faster egress would run out of bytes. */
static picoseconds earliest_enqueue(const struct fabric_switch *sw, const struct frame *frame,
                                    picoseconds arrived)
{
    if (!sw->config.cut_through)
        return frame->tail_at + sw->config.latency;
    const struct port *out = &sw->ports[frame->out_port - 1].port;
    picoseconds by_tail =
        frame->tail_at - line_time(&out->line, wire_bytes(frame->kind, frame->length));
    return (by_tail > arrived ? by_tail : arrived) + sw->config.latency;
}

static void wait_latency(struct switch_port *in, struct frame *frame, picoseconds due,
                         picoseconds now)
{
    const struct frame *last = in->pipeline.last;
    if (due < now)
        due = now;
    if (last && due < last->due_at)
        due = last->due_at; /* a port's frames stay in order */
    frame->due_at = due;
    if (!last)
        timer_set(in->port.clock, &in->pipeline_due, due);
    list_push(&in->pipeline, frame);
    coming_changed(of_switch(&in->port), frame, frame->length);
}

void pipeline_due(struct timer *timer, picoseconds now)
{
    struct switch_port *in = container_of(timer, struct switch_port, pipeline_due);
    struct frame *frame = list_pop(&in->pipeline);
    if (in->pipeline.first)
        timer_set(in->port.clock, timer, in->pipeline.first->due_at);
    coming_changed(of_switch(&in->port), frame, -(int64_t)frame->length);
    enqueue(of_switch(&in->port), frame, now);
}

/* ---- forwarding, outer plane ---------------------------------------------- */

static struct frame **transit_slot(struct fabric_switch *sw, uint32_t sequence)
{
    return &sw->transit[sequence % TRANSIT_SLOTS];
}

static void transit_advance(struct fabric_switch *sw)
{
    while (sw->transit_oldest != sw->transit_next && !*transit_slot(sw, sw->transit_oldest))
        sw->transit_oldest = (sw->transit_oldest + 1) % TRANSIT_SEQUENCES;
    if (sw->transit_oldest == sw->transit_next)
        timer_cancel(&sw->transit_check);
    else
        timer_set(sw->clock, &sw->transit_check,
                  (*transit_slot(sw, sw->transit_oldest))->due_at + sw->config.transit_timeout);
}

static void transit_check(struct timer *timer, picoseconds now)
{
    struct fabric_switch *sw = container_of(timer, struct fabric_switch, transit_check);
    struct frame **slot = transit_slot(sw, sw->transit_oldest);
    struct frame *lost = *slot;
    *slot = NULL;
    switch_port(sw, lost->charge.in_port)->counters.transit_lost++;
    switch_discard(sw, lost, now);
    transit_advance(sw);
}

static void transit_begin(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                          uint16_t hint, picoseconds now)
{
    uint32_t sequence = sw->transit_next;
    struct frame **slot = transit_slot(sw, sequence);
    if (*slot) {
        in->counters.transit_overflow++;
        switch_discard(sw, frame, now);
        return;
    }
    uint8_t tag[MAC_BYTES] = {TRANSIT_MARK,
                              (uint8_t)(frame->klass << 4 | in->port.number >> 8),
                              (uint8_t)in->port.number,
                              (uint8_t)hint,
                              (uint8_t)(sequence >> 8),
                              (uint8_t)sequence};
    memcpy(frame->bytes + MAC_BYTES, tag, MAC_BYTES);
    frame->due_at = now;
    *slot = frame;
    sw->transit_next = (sequence + 1) % TRANSIT_SEQUENCES;
    if (!timer_is_set(&sw->transit_check))
        transit_advance(sw);
    sw->hand_over(sw->outer, in, frame, now);
}

/* The frame whose tag `bytes` carry, taken out of transit; NULL when there is none. */
static struct frame *transit_end(struct fabric_switch *sw, const uint8_t *bytes)
{
    const uint8_t *tag = bytes + MAC_BYTES;
    uint32_t sequence = (uint32_t)tag[4] << 8 | tag[5];
    struct frame **slot = transit_slot(sw, sequence);
    struct frame *frame = *slot;
    if (tag[0] != TRANSIT_MARK || !frame || memcmp(frame->bytes + MAC_BYTES, tag, MAC_BYTES) != 0)
        return NULL;
    *slot = NULL;
    if (sequence == sw->transit_oldest)
        transit_advance(sw);
    return frame;
}

/* A mark that somebody else set on the way shows in what came back. */
static void note_mark(struct switch_port *out, const struct frame *frame, const uint8_t *bytes)
{
    uint32_t ip = ipv4_offset(bytes, frame->stored);
    if (ip && ipv4_ecn(bytes + ip) == ECN_CE && ipv4_ecn(frame->bytes + ip) != ECN_CE)
        out->counters.ecn_marked[frame->klass]++;
}

struct transit_time switch_returned(struct fabric_switch *sw, uint32_t number, const uint8_t *bytes,
                                    uint32_t length, picoseconds now)
{
    struct switch_port *out = switch_port(sw, number);
    struct frame *frame = length >= 2 * MAC_BYTES ? transit_end(sw, bytes) : NULL;
    if (!frame || length != frame->stored) {
        out->counters.transit_unknown++;
        if (frame)
            switch_discard(sw, frame, now);
        return (struct transit_time){0};
    }
    note_mark(out, frame, bytes);
    memcpy(frame->bytes, bytes, length);
    frame->ip = (uint8_t)ipv4_offset(bytes, length);
    memcpy(frame->bytes + MAC_BYTES, out->port.mac, MAC_BYTES);
    frame->out_port = (uint16_t)number;
    picoseconds due = earliest_enqueue(sw, frame, frame->due_at);
    struct transit_time time = {.kept = now - frame->due_at, .late = now > due ? now - due : 0};
    wait_latency(switch_port(sw, frame->charge.in_port), frame, due, now);
    return time;
}

/* ---- forwarding, own plane ------------------------------------------------ */

/* The route of a packet that a router may pass on; NULL, with the reason
 * counted, when there is none or its TTL has run out. */
static const struct route *passable(const struct fabric_switch *sw, struct switch_port *in,
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

/* The port that a packet leaves by. */
static uint16_t next_hop(struct fabric_switch *sw, const struct frame *frame,
                         const struct route *route, picoseconds now)
{
    const uint16_t *ports = sw->routes.ports + route->first;
    return route->count == 1 ? ports[0]
                             : balance_choose(&sw->balancer, frame, ports, route->count, now);
}

static void route_ipv4(struct fabric_switch *sw, struct frame *frame, uint16_t number)
{
    ipv4_decrement_ttl(frame->bytes + frame->ip);
    memcpy(frame->bytes, &sw->addresses[number - 1], sizeof *sw->addresses);
    frame->out_port = number;
}

/* The LFT's port comes first, then those among which packets of some service levels choose. */
static uint16_t lid_next_hop(struct fabric_switch *sw, const struct frame *frame,
                             const struct route *route, picoseconds now)
{
    const uint16_t *ports = sw->routes.ports + route->first;
    bool balanced = sw->balanced_sls & 1u << lrh_sl(frame->bytes);
    return balanced && route->count > 1
               ? balance_choose(&sw->balancer, frame, ports + 1, route->count - 1, now)
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

static bool route_lid(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
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
    balance_forget(&sw->balancer);
}

void switch_routes_added(struct fabric_switch *sw)
{
    reroute(&sw->reroute, sw->clock->now);
}

/* ---- ingress ---------------------------------------------------------------- */

static void forward_lid(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                        picoseconds now)
{
    if (route_lid(sw, in, frame, now))
        wait_latency(in, frame, earliest_enqueue(sw, frame, now), now);
    else
        switch_discard(sw, frame, now);
}

/* Whoever decides where a packet goes: what no router would pass on ends here. */
static void forward_ipv4(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                         picoseconds now)
{
    const struct route *route = passable(sw, in, frame->bytes + frame->ip);
    if (!route) {
        switch_discard(sw, frame, now);
    } else if (sw->config.plane == PLANE_OUTER) {
        transit_begin(sw, in, frame, sw->config.hints ? next_hop(sw, frame, route, now) : 0, now);
    } else {
        route_ipv4(sw, frame, next_hop(sw, frame, route, now));
        wait_latency(in, frame, earliest_enqueue(sw, frame, now), now);
    }
}

/* A frame that ends at its ingress port never held any of the switch's buffer,
 * but an InfiniBand port has charged its lane. */
static void refuse(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                   uint64_t *reason, picoseconds now)
{
    (*reason)++;
    if (is_infiniband(sw))
        port_return_credit(&in->port, frame->klass, frame->length, now);
    frame_free(sw->pool, frame);
}

static void receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct fabric_switch *sw = of_switch(port);
    struct switch_port *in = of_port(port);
    bool infiniband = is_infiniband(sw);
    if (frame->corrupt && !sw->config.cut_through) {
        refuse(sw, in, frame, &in->counters.corrupt, now);
        return;
    }
    if (!infiniband && !frame->ip)
        refuse(sw, in, frame, &in->counters.not_ip, now);
    else if (in->dropping & 1u << frame->klass)
        refuse(sw, in, frame, &in->counters.watchdog.rx_dropped[frame->klass], now);
    else if (!take_in(sw, in, frame, now))
        frame_free(sw->pool, frame);
    else if (infiniband)
        forward_lid(sw, in, frame, now);
    else
        forward_ipv4(sw, in, frame, now);
}

static const struct port_handler handler = {
    .receive = receive, .pull = pull, .sent = sent, .link_down = link_down};

static uint64_t queued(const void *owner, uint16_t number)
{
    const struct fabric_switch *sw = owner;
    return (uint64_t)sw->ports[number - 1].port.gauges->queued;
}

/* ---- set-up ------------------------------------------------------------------ */

static void port_setup(struct fabric_switch *sw, struct switch_port *own, uint32_t number)
{
    port_init(&own->port, sw->clock, sw->pool, &handler, sw, sw->config.framing);
    timer_init(&own->pipeline_due, pipeline_due);
    hoq_init(&own->hoq);
    own->port.number = (uint16_t)number;
    own->port.classes = &own->classes;
    for (uint8_t klass = 0; klass < CLASSES; klass++)
        own->queue_of[klass] = klass;
}

bool switch_init(struct fabric_switch *sw, struct arena *arena, struct clock *clock,
                 struct frame_pool *pool, const struct switch_config *config)
{
    assert(config->ports <= TRANSIT_PORTS);
    *sw = (struct fabric_switch){.config = *config, .clock = clock, .pool = pool};
    sw->ports = arena_take(arena, config->ports, sizeof *sw->ports);
    sw->addresses = arena_take(arena, config->ports, sizeof *sw->addresses);
    if (!sw->ports || !sw->addresses || !routes_init(&sw->routes, arena) ||
        !balance_init(&sw->balancer, arena, config->ports, queued, sw))
        return false;
    for (uint32_t number = 1; number <= config->ports; number++)
        port_setup(sw, switch_port(sw, number), number);
    timer_init(&sw->transit_check, transit_check);
    timer_init(&sw->reroute, reroute);
    patrol_init(sw);
    return true;
}

void switch_free(struct fabric_switch *sw)
{
    routes_free(&sw->routes);
    balance_free(&sw->balancer);
}

void switch_start(struct fabric_switch *sw, picoseconds now)
{
    for (uint32_t number = 1; number <= sw->config.ports; number++)
        port_start(&switch_port(sw, number)->port, now);
    change_routes(sw, now);
    patrol_start(sw, now);
}

/* ---- looking in ---------------------------------------------------------------- */

const struct switch_port *port_of_switch(const struct port *port)
{
    return port->handler == &handler ? container_of(port, struct switch_port, port) : NULL;
}
