#include "nic/nic_port.h"

#include <string.h>

#include "nic/completer.h"
#include "nic/datagram.h"
#include "nic/pacing.h"
#include "nic/qp_state.h"
#include "nic/qp_table.h"
#include "nic/requester.h"
#include "nic/responder.h"
#include "nic/response_queue.h"
#include "nic/turns.h"

static void receive(struct port *port, struct frame *frame, picoseconds now);
static struct frame *pull(struct port *port, picoseconds now);

static void data_is_ready(struct timer *timer, picoseconds now);

static void link_changed(struct port *port, picoseconds now);

static const struct port_handler handler = {
    .receive = receive, .pull = pull, .link_down = link_changed, .link_up = link_changed};

/* ---- set-up ------------------------------------------------------------------ */

static bool config_is_valid(const struct nic_config *config)
{
    const struct qos_map *map = &config->qos_map;
    for (int dscp = 0; dscp < DSCPS; dscp++)
        if (map->of_dscp[dscp] >= PRIORITIES)
            return false;
    for (int pcp = 0; pcp < PCPS; pcp++)
        if (map->of_pcp[pcp] >= PRIORITIES)
            return false;
    for (int sl = 0; sl < SLS; sl++)
        if (config->port.sl2vl[sl] >= CLASSES)
            return false;
    return map->default_priority < PRIORITIES && config->vid <= VID_MAX;
}

static const struct framing_ops *framing_of(const struct nic_config *config)
{
    if (config->port.framing == FRAMING_ETHERNET)
        return config->tagged ? &framing_roce_tagged : &framing_roce;
    return config->global_route ? &framing_ib_global : &framing_ib;
}

bool nic_init(struct nic *nic, struct arena *arena, struct clock *clock, struct frame_pool *pool,
              struct rng *rng, const struct nic_config *config)
{
    *nic =
        (struct nic){.config = *config, .arena = arena, .clock = clock, .pool = pool, .rng = rng};
    if (!config_is_valid(config))
        return false;
    nic->framing = framing_of(config);
    if (!port_init(&nic->port, arena, clock, pool, &handler, nic, &config->port))
        return false;
    timer_init(&nic->data_ready, data_is_ready);
    rx_throttle_init(&nic->rx_throttle, &nic->port, config->qos_map, &nic->counters.rx_memory_waits,
                     &nic->counters.rx_memory_discards);
    rx_throttle_set(&nic->rx_throttle, config->path.rate_bps, config->path.buffer_bytes,
                    clock->now);
    nic->qps = arena_take(arena, config->max_qps, sizeof *nic->qps);
    return nic->qps && mr_init(&nic->mrs, arena, config->max_regions);
}

uint32_t nic_add_region(struct nic *nic, uint32_t pd, uint64_t va, uint64_t length, uint32_t access,
                        uint8_t *bytes)
{
    if (!bytes && length && !nic->config.elides_payload)
        return 0;
    struct region region = {.pd = pd, .va = va, .length = length, .access = access, .bytes = bytes};
    return mr_register(&nic->mrs, &region, (uint8_t)rng_u32(nic->rng));
}

bool nic_link_is_up(const struct nic *nic)
{
    return nic->port.up;
}

void nic_watch_link(struct nic *nic, bool *changed)
{
    nic->link_changed = changed;
}

static void link_changed(struct port *port, picoseconds now)
{
    const struct nic *nic = port->owner;
    (void)now;
    if (nic->link_changed)
        *nic->link_changed = true;
}

uint64_t nic_writes(const struct nic *nic)
{
    return nic->writes;
}

void nic_watch_writes(struct nic *nic, bool *written)
{
    nic->written = written;
}

bool nic_invalidate(struct nic *nic, uint32_t pd, uint32_t key)
{
    return mr_invalidate(&nic->mrs, pd, key);
}

const struct nic_counters *nic_counters(const struct nic *nic)
{
    return &nic->counters;
}

/* ---- sending ----------------------------------------------------------------- */

/* Requests and READ responses that are ready alternate. */
static bool request_is_ready(const struct qp *qp, picoseconds now)
{
    return requester_ready_at(qp) <= now;
}

static bool response_is_ready(const struct qp *qp, picoseconds now)
{
    return response_queue_ready_at(qp) <= now;
}

static bool response_is_next(const struct qp *qp, picoseconds now)
{
    return response_is_ready(qp, now) && (!qp->response_was_last || !request_is_ready(qp, now));
}

static bool has_something(const struct qp *qp, enum traffic traffic, picoseconds now)
{
    switch (traffic) {
    case TRAFFIC_CNP:
        return true;
    case TRAFFIC_ACKNOWLEDGE:
        return response_queue_has_acknowledgement(qp);
    default:
        return now >= qp->not_before && (response_is_ready(qp, now) || request_is_ready(qp, now));
    }
}

static uint32_t length_of_next(const struct qp *qp, enum traffic traffic, picoseconds now)
{
    uint32_t body = CNP_BODY_BYTES;
    if (traffic == TRAFFIC_ACKNOWLEDGE)
        body = response_queue_acknowledgement_bytes(qp);
    else if (traffic == TRAFFIC_DATA)
        body = response_is_next(qp, now) ? response_queue_data_bytes(qp) : requester_body_bytes(qp);
    return framing_length(qp->nic->framing, body);
}

static bool may_send_next(struct nic *nic, const struct qp *qp, enum traffic traffic, uint8_t tc,
                          picoseconds now)
{
    bool minds = port_minds_length(&nic->port);
    return port_may_send(&nic->port, tc, minds ? length_of_next(qp, traffic, now) : 0, now);
}

/* Host memory delivers the data of all queue pairs at one rate. */
static void data_is_ready(struct timer *timer, picoseconds now)
{
    port_kick(&container_of(timer, struct nic, data_ready)->port, now);
}

static bool memory_lags(struct nic *nic, picoseconds now)
{
    if (now >= nic->data_from)
        return false;
    timer_set(nic->clock, &nic->data_ready, nic->data_from);
    return true;
}

static void read_memory(struct nic *nic, uint32_t bytes, picoseconds now)
{
    if (nic->config.path.rate_bps)
        nic->data_from = now + serialisation(bytes, nic->config.path.rate_bps);
}

/* Data is paced: congestion control is notified, and determines when the next packet may follow. */
static struct frame *send_data(struct qp *qp, picoseconds now)
{
    bool response = response_is_next(qp, now);
    bool from_memory = response || message_reads_memory(qp->requester.current);
    struct frame *frame = response ? response_queue_send_data(qp, now) : requester_send(qp, now);
    if (!frame)
        return NULL;
    uint32_t wire = wire_bytes(frame->kind, frame->length);
    qp->response_was_last = response;
    if (from_memory)
        read_memory(qp->nic, frame->length, now);
    cc_sent(&qp->cc, wire, now);
    qp_pace(qp, wire, now);
    return frame;
}

static struct frame *send_next(struct qp *qp, enum traffic traffic, picoseconds now)
{
    switch (traffic) {
    case TRAFFIC_CNP:
        return response_queue_notify(qp);
    case TRAFFIC_ACKNOWLEDGE:
        return response_queue_acknowledge(qp);
    default:
        return send_data(qp, now);
    }
}

static uint16_t waiting_classes(const struct nic *nic)
{
    return nic->waiting[TRAFFIC_CNP] | nic->waiting[TRAFFIC_ACKNOWLEDGE] |
           nic->waiting[TRAFFIC_DATA];
}

bool nic_waits_to_send(const struct nic *nic)
{
    return waiting_classes(nic) != 0;
}

/* The first queue pair of the class that may send now. Removes those before it, which have nothing
 * to send any more or must wait. */
static struct qp *first_with(struct nic *nic, enum traffic traffic, uint8_t tc, picoseconds now)
{
    struct turns *turns = &nic->turns[traffic][tc];
    while (turns->first) {
        struct qp *qp = turns->first;
        if (has_something(qp, traffic, now))
            return qp;
        turns_leave(nic, traffic, tc);
        if (traffic == TRAFFIC_DATA)
            qp_wake(qp, now);
    }
    return NULL;
}

static struct frame *next_of_class(struct nic *nic, enum traffic traffic, uint8_t tc,
                                   picoseconds now)
{
    if (traffic == TRAFFIC_DATA && memory_lags(nic, now))
        return NULL;
    struct qp *qp = first_with(nic, traffic, tc, now);
    if (!qp || !may_send_next(nic, qp, traffic, tc, now))
        return NULL;
    struct frame *frame = send_next(qp, traffic, now);
    if (!frame)
        return NULL;
    turns_leave(nic, traffic, tc);
    if (response_queue_has_acknowledgement(qp))
        turns_join(qp, TRAFFIC_ACKNOWLEDGE);
    qp_wake(qp, now);
    nic->counters.tx_packets++;
    return frame;
}

/* ---- sending over several lanes -------------------------------------------------- */

/* Whether a lane has a packet that may be sent now. */
static bool lane_is_ready(struct nic *nic, uint8_t vl, picoseconds now)
{
    for (enum traffic traffic = 0; traffic < TRAFFIC_KINDS; traffic++) {
        if (traffic == TRAFFIC_DATA && memory_lags(nic, now))
            continue;
        struct qp *qp = first_with(nic, traffic, vl, now);
        if (qp && port_may_send(&nic->port, vl, length_of_next(qp, traffic, now), now))
            return true;
    }
    return false;
}

static struct frame *next_of_lane(struct nic *nic, uint8_t vl, picoseconds now)
{
    struct frame *frame = NULL;
    for (enum traffic traffic = 0; traffic < TRAFFIC_KINDS && !frame; traffic++)
        frame = next_of_class(nic, traffic, vl, now);
    return frame;
}

/* VL arbitration chooses the lane. Within a lane the order is the usual one: CNPs,
 * acknowledgements, data. */
static struct frame *pull_lane(struct nic *nic, picoseconds now)
{
    struct port *port = &nic->port;
    uint16_t ready = 0;
    for (unsigned left = waiting_classes(nic); left; left &= left - 1) {
        uint8_t vl = (uint8_t)__builtin_ctz(left);
        if (lane_is_ready(nic, vl, now))
            ready |= (uint16_t)(1u << vl);
    }
    uint8_t vl = vlarb_pick(&port->lanes->arbiter, &port->lanes->tables, ready);
    struct frame *frame = vl == VL_NONE ? NULL : next_of_lane(nic, vl, now);
    if (frame)
        vlarb_sent(&port->lanes->arbiter, frame->length);
    return frame;
}

/* ---- sending by class --------------------------------------------------------------- */

/* The classes of `waiting` rotated, so that bit 0 is the class whose turn it is. */
static uint16_t in_turn(const struct nic *nic, uint16_t waiting)
{
    return (uint16_t)(waiting >> nic->first_class | waiting << (CLASSES - nic->first_class));
}

static struct frame *pull(struct port *port, picoseconds now)
{
    struct nic *nic = port->owner;
    if (port->arbitrates_lanes)
        return pull_lane(nic, now);
    if (!waiting_classes(nic))
        return NULL;
    for (enum traffic traffic = 0; traffic < TRAFFIC_KINDS; traffic++)
        for (unsigned left = in_turn(nic, nic->waiting[traffic]); left; left &= left - 1) {
            uint8_t tc = (uint8_t)((nic->first_class + __builtin_ctz(left)) % CLASSES);
            struct frame *frame = next_of_class(nic, traffic, tc, now);
            if (!frame)
                continue;
            if (traffic == TRAFFIC_DATA)
                nic->first_class = (uint8_t)((tc + 1) % CLASSES);
            return frame;
        }
    return NULL;
}

/* ---- receiving --------------------------------------------------------------- */

/* Counts a frame that is dropped here. */
static struct qp *dropped(uint64_t *counter)
{
    ++*counter;
    return NULL;
}

static bool in_partition(uint16_t own, uint16_t other)
{
    bool same = (own & PKEY_MASK) == (other & PKEY_MASK);
    return same && ((own | other) & PKEY_FULL_MEMBER);
}

/* Connected queue pairs accept packets only from their other end. */
static bool is_expected_from(const struct qp *qp, const struct packet *packet)
{
    return qp->config.transport == TRANSPORT_UD || packet->source == qp->remote.address;
}

static bool transport_fits(const struct qp *qp, const struct packet *packet)
{
    return packet->type == PACKET_CNP || packet->transport == qp->config.transport;
}

/* Whether the transport version is 0, and a CNP has the length of CNPs. */
static bool has_right_fields(const struct packet *packet)
{
    if (packet->type == PACKET_ALIEN)
        return true;
    return packet->bth.tver == 0 &&
           (packet->type != PACKET_CNP || packet->payload_bytes == CNP_PAYLOAD_BYTES);
}

SELDOM static void note_first(struct qp *qp)
{
    if (!qp->responder.is_reached)
        note_event(qp->watch, NIC_COMM_EST);
    qp->responder.is_reached = true;
}

/* The queue pair that a valid packet is for. If there is none, counts the reason and returns
 * NULL. */
static struct qp *find_qp(struct nic *nic, const struct packet *packet)
{
    struct nic_counters *counters = &nic->counters;
    if (packet->type == PACKET_ALIEN)
        return dropped(&counters->rx_other);
    struct qp *qp = qp_numbered(nic, packet->bth.dest_qp);
    if (!qp)
        return dropped(&counters->rx_unknown_qp);
    if (!in_partition(qp->config.pkey, packet->bth.pkey))
        return dropped(&counters->rx_pkey_violations);
    if (qp->state == QP_ERR)
        return dropped(&counters->rx_qp_error);
    if (!qp_can(qp, CAN_RECEIVE) || !is_expected_from(qp, packet))
        return dropped(&counters->rx_unknown_qp);
    if (!transport_fits(qp, packet))
        return dropped(&counters->rx_other);
    counters->rx_packets++;
    if (qp->state == QP_RTR)
        note_first(qp);
    return qp;
}

/* Drops a packet that was corrupted on its way or built wrong. The port counts drops by class,
 * which is read here because a NIC without a throttle has not read it before. */
SELDOM static struct qp *drop_invalid(struct nic *nic, struct frame *frame, uint64_t *counter)
{
    if (frame->kind == FRAME_ETHERNET) {
        frame->ip = (uint8_t)ipv4_offset(frame->bytes, frame->stored);
        frame->tc = class_of(&nic->rx_throttle.qos_map, frame);
    }
    port_count_drop(&nic->port, frame);
    return dropped(counter);
}

static struct qp *open_frame(struct nic *nic, struct frame *frame, struct packet *packet)
{
    struct nic_counters *counters = &nic->counters;
    if (frame->corrupt)
        return drop_invalid(nic, frame, &counters->rx_crc_errors);
    switch (nic->framing->open(&nic->config, frame, packet)) {
    case VERDICT_OTHER:
        return dropped(&counters->rx_other);
    case VERDICT_MALFORMED:
        return drop_invalid(nic, frame, &counters->rx_malformed);
    case VERDICT_VCRC:
        return drop_invalid(nic, frame, &counters->rx_crc_errors);
    case VERDICT_ICRC:
        return drop_invalid(nic, frame, &counters->rx_icrc_encapsulated);
    case VERDICT_OK:
    default:
        return has_right_fields(packet) ? find_qp(nic, packet)
                                        : drop_invalid(nic, frame, &counters->rx_malformed);
    }
}

static void receive_becn(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct nic_counters *counters = &qp->nic->counters;
    bool ignored = packet->type == PACKET_CNP && qp->nic->ignores_cnps;
    bool handled = !ignored && cc_on_becn(&qp->cc, now);
    if (packet->type != PACKET_CNP)
        counters->rp_becn_received++;
    else if (handled)
        counters->rp_cnp_handled++;
    else
        counters->rp_cnp_ignored++;
}

/* Handles a packet. Returns whether it keeps the frame. */
static bool dispatch(struct qp *qp, const struct packet *packet, struct frame *frame,
                     picoseconds now)
{
    if (packet->type == PACKET_CNP || packet->bth.becn)
        receive_becn(qp, packet, now);
    if (packet->type == PACKET_CNP)
        return false;
    if (packet->type == PACKET_ACKNOWLEDGE)
        completer_acknowledged(qp, packet, now);
    else if (packet->type == PACKET_READ_RESPONSE)
        completer_response(qp, packet, now);
    else if (packet->transport == TRANSPORT_UD)
        datagram_receive(qp, packet, now);
    else
        return responder_receive(qp, packet, frame, now);
    return false;
}

static void receive(struct port *port, struct frame *frame, picoseconds now)
{
    struct nic *nic = port->owner;
    struct packet packet;
    uint8_t tc = frame->tc;
    uint32_t length = frame->length;
    struct qp *qp = open_frame(nic, frame, &packet);
    if (!qp || !dispatch(qp, &packet, frame, now))
        frame_free(nic->pool, frame);
    port_released(port, tc, length, now);
    port_kick(port, now);
}

/* ---- inspection ---------------------------------------------------------------- */

const struct nic *port_of_nic(const struct port *port)
{
    return port->handler == &handler ? port->owner : NULL;
}

const struct qp *nic_addressee(const struct nic *nic, const struct frame *frame)
{
    uint32_t body = nic->framing->header_bytes;
    if (frame->stored < body + BTH_BYTES)
        return NULL;
    return qp_place(nic, bth_read(frame->bytes + body).dest_qp);
}
