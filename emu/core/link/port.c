#include "link/port.h"

#include <string.h>

#include "link/tap.h"
#include "sim/part.h"

/* A paced line sends delayed frames at this multiple of its rate. */
enum { CATCH_UP_SPEED = 8 };

static bool lanes_init(struct port *port, struct arena *arena, const struct port_config *config)
{
    struct lanes *lanes = arena_take(arena, 1, sizeof *lanes);
    if (!lanes)
        return false;
    memcpy(lanes->sl2vl, config->sl2vl, sizeof lanes->sl2vl);
    lanes->tables = config->vlarb;
    vlarb_init(&lanes->arbiter, &lanes->tables);
    port->lanes = lanes;
    return true;
}

bool port_init(struct port *port, struct arena *arena, struct clock *clock, struct frame_pool *pool,
               const struct port_handler *handler, void *owner, const struct port_config *config)
{
    *port = (struct port){.clock = clock,
                          .pool = pool,
                          .handler = handler,
                          .owner = owner,
                          .framing = config->framing,
                          .flow_control = config->flow_control,
                          .vls = config->credit.vls,
                          .arbitrates_lanes = config->credit.vls > 1 &&
                                              config->vlarb.high.count + config->vlarb.low.count,
                          .gauges = &port->own_gauges,
                          .counters = arena_take(arena, 1, sizeof *port->counters)};
    memcpy(port->mac, config->mac, sizeof port->mac);
    timer_init(&port->line.arrival, line_arrival);
    timer_init(&port->done, transmission_done);
    return port->counters &&
           (config->framing != FRAMING_INFINIBAND || lanes_init(port, arena, config)) &&
           port_flow_control(port)->init(port, arena, config);
}

static picoseconds whole_byte_time(uint64_t rate_bps)
{
    const uint64_t bits = 8 * (uint64_t)PS_PER_S;
    return bits % rate_bps ? 0 : (picoseconds)(bits / rate_bps);
}

void port_connect(struct port *port, struct port *far, uint64_t rate_bps, picoseconds delay,
                  enum delivery delivery)
{
    port->line.far = far;
    port->line.far_index = far->index;
    port->line.far_clock = far->clock;
    port->line.rate_bps = rate_bps;
    port->line.byte_time = whole_byte_time(rate_bps);
    port->line.delay = delay;
    port->line.delivery = (uint8_t)delivery;
    port->line.header_bytes = port_framing(port)->header_bytes;
}

/* ---- the line ---------------------------------------------------------- */

/* The delivery time of a frame at a far end that does not wait for the tail. */
SELDOM static picoseconds early_delivery(const struct line *line, const struct frame *frame,
                                         uint32_t wire, picoseconds start)
{
    if (line->delivery == DELIVER_START)
        return start;
    uint32_t header = wire < line->header_bytes ? wire : line->header_bytes;
    picoseconds head_at = start + line->delay + line_time(line, header);
    return head_at < frame->tail_at ? head_at : frame->tail_at;
}

/* The frame is at the far end at its due_at. */
static inline void put_in_flight(struct line *line, struct frame *frame)
{
    if (!line->in_flight_count++)
        timer_set_arrival(line->far_clock, &line->arrival, frame->due_at, line->far_index);
    list_push(&line->in_flight, frame);
    __builtin_prefetch(frame->bytes); /* the far end will read the headers */
}

static void enter_part(const struct mail *mail)
{
    put_in_flight(mail->to, mail->what);
}

/* A frame on a cable, as bytes; those that it stores follow. */
struct sent_frame {
    picoseconds tail_at, due_at;
    uint64_t id;
    uint32_t port; /* index of the sender's */
    uint32_t length;
    uint16_t stored;
    uint8_t kind, tc, ip;
    bool corrupt;
};

static uint32_t frame_size(const struct mail *mail)
{
    const struct frame *frame = mail->what;
    return sizeof(struct sent_frame) + frame->stored;
}

static void write_frame(const struct mail *mail, struct part *from, uint8_t *bytes)
{
    struct frame *frame = mail->what;
    struct sent_frame sent;
    memset(&sent, 0, sizeof sent);
    sent.tail_at = frame->tail_at;
    sent.due_at = frame->due_at;
    sent.id = frame->id;
    sent.port = container_of((struct line *)mail->to, struct port, line)->index;
    sent.length = frame->length;
    sent.stored = frame->stored;
    sent.kind = frame->kind;
    sent.tc = frame->tc;
    sent.ip = frame->ip;
    sent.corrupt = frame->corrupt;
    memcpy(bytes, &sent, sizeof sent);
    memcpy(bytes + sizeof sent, frame->bytes, frame->stored);
    frame_free(&from->pool, frame);
}

static bool read_frame(struct mail *mail, struct part *to, const void *places, const uint8_t *bytes)
{
    struct port *const *ports = places;
    struct sent_frame sent;
    memcpy(&sent, bytes, sizeof sent);
    struct frame *frame = frame_new_stored(&to->pool, sent.kind, sent.length, sent.stored);
    if (!frame)
        return false;
    memcpy(frame->bytes, bytes + sizeof sent, sent.stored);
    frame->tail_at = sent.tail_at;
    frame->due_at = sent.due_at;
    frame->id = sent.id;
    frame->tc = sent.tc;
    frame->ip = sent.ip;
    frame->corrupt = sent.corrupt;
    mail->to = &ports[sent.port]->line;
    mail->what = frame;
    mail->at = frame->due_at;
    return true;
}

const struct mail_kind mail_with_frame = {
    .open = enter_part, .size = frame_size, .write = write_frame, .read = read_frame};

SELDOM static void leave_part(struct port *port, struct frame *frame)
{
    struct line *line = &port->line;
    part_post(
        part_of_clock(port->clock), part_of_clock(line->far_clock),
        (struct mail){.kind = &mail_with_frame, .to = line, .what = frame, .at = frame->due_at});
}

/* Puts a frame of `wire` bytes on the line, from `start` until its last bit is out at `end`. */
static inline void line_send(struct port *port, struct frame *frame, uint32_t wire,
                             picoseconds start, picoseconds end)
{
    struct line *line = &port->line;
    line->free_at = end;
    frame->tail_at = line->free_at + line->delay;
    frame->due_at =
        line->delivery == DELIVER_TAIL ? frame->tail_at : early_delivery(line, frame, wire, start);
    port->gauges->tx_wire += wire;
    if (line->leaves) {
        frame->cuts = line->cuts;
        line->far->handler->departed(line->far, frame, start);
    }
    if (port_is_cut(port))
        leave_part(port, frame);
    else
        put_in_flight(line, frame);
}

/* The time at which the last bit of a frame injected now leaves. A paced line catches up with
 * delayed frames, but no frame leaves earlier than on an idle line. */
static picoseconds injection_end(const struct line *line, uint32_t wire, picoseconds start,
                                 picoseconds now)
{
    picoseconds whole = line_time(line, wire);
    if (!line_backlog(line, now))
        return start + whole;
    picoseconds caught_up = start + whole / CATCH_UP_SPEED;
    return caught_up > now + whole ? caught_up : now + whole;
}

void line_arrival(struct timer *timer, picoseconds now)
{
    struct line *line = container_of(timer, struct line, arrival);
    struct frame *frame = list_pop(&line->in_flight);
    if (--line->in_flight_count)
        timer_set_arrival(line->far_clock, &line->arrival, line->in_flight.first->due_at,
                          line->far_index);
    port_deliver(line->far, frame, now);
}

void port_skip(struct port *port, picoseconds span)
{
    struct line *line = &port->line;
    if (line->free_at > port->clock->now)
        line->free_at += span;
    for (struct frame *frame = line->in_flight.first; frame; frame = frame->next) {
        frame->due_at += span;
        frame->tail_at += span;
    }
    if (port_upkeep_period(port))
        port_flow_control(port)->count_upkeep(port, span);
}

picoseconds port_lookahead(const struct port *port)
{
    const struct line *line = &port->line;
    uint32_t least = port_framing(port)->least_wire_bytes;
    if (line->delivery == DELIVER_HEAD && line->header_bytes < least)
        least = line->header_bytes;
    return line->delay + (line->delivery == DELIVER_START ? 0 : line_time(line, least));
}

/* ---- arriving --------------------------------------------------------- */

/* The port that counts a frame lost at `port`. The end of a cable to another process has no visible
 * counters and no classes: there the port that the frame was on its way to counts. */
static struct port *counting_port(struct port *port, struct frame *frame)
{
    if (!port->outside || port->stands_in)
        return port;
    while (port->outside)
        port = port->line.far;
    port_framing(port)->classify(port, frame);
    return port;
}

void port_count_drop(struct port *port, struct frame *frame)
{
    struct port *by = counting_port(port, frame);
    by->counters->dropped[frame->tc] += is_packet(frame);
}

void port_count_oversize(struct port *port, struct frame *frame)
{
    counting_port(port, frame)->counters->rx_oversize++;
    port_count_drop(port, frame);
}

/* Drops a frame at this port. */
static void drop(struct port *port, struct frame *frame)
{
    port_count_drop(port, frame);
    frame_free(port->pool, frame);
}

static void drop_malformed(struct port *port, struct frame *frame)
{
    port->counters->rx_malformed++;
    drop(port, frame);
}

static void control_arrived(struct port *port, struct frame *frame, picoseconds now)
{
    port_flow_control(port)->arrived(port, frame, now);
    frame_free(port->pool, frame);
}

static void packet_arrived(struct port *port, struct frame *frame, picoseconds now)
{
    if (frame->corrupt)
        port->counters->rx_crc_errors++;
    struct class_counters *counters = &port->traffic[frame->tc];
    counters->rx_packets++;
    counters->rx_bytes += frame->length;
    const struct flow_control_ops *flow_control = port_flow_control(port);
    if (flow_control->received && !flow_control->received(port, frame)) {
        drop(port, frame);
        return;
    }
    port->handler->receive(port, frame, now);
}

void port_deliver(struct port *port, struct frame *frame, picoseconds now)
{
    if (port->tap)
        tap_frame(port->tap, port->index, frame, TAP_IN, frame->tail_at);
    if (port->outside) {
        port->handler->receive(port, frame, now);
        return;
    }
    enum arrival arrival = port_framing(port)->inspect(port, frame);
    if (arrival == ARRIVAL_PACKET)
        packet_arrived(port, frame, now);
    else if (arrival == ARRIVAL_CONTROL)
        control_arrived(port, frame, now);
    else
        drop_malformed(port, frame);
}

/* ---- sending ------------------------------------------------------------ */

static struct frame *next_frame(struct port *port, picoseconds now)
{
    const struct flow_control_ops *flow_control = port_flow_control(port);
    struct frame *frame = port->control_to_send ? flow_control->next_frame(port) : NULL;
    if (frame)
        return frame;
    frame = port->handler->pull ? port->handler->pull(port, now) : NULL;
    if (!frame)
        return NULL;
    struct class_counters *counters = &port->traffic[frame->tc];
    counters->tx_packets++;
    counters->tx_bytes += frame->length;
    if (flow_control->sent)
        flow_control->sent(port, frame, now);
    return frame;
}

static void transmit(struct port *port, struct frame *frame, picoseconds now)
{
    port->busy = true;
    port->sending = frame->charge;
    frame->charge = (struct charge){0};
    if (port->tap)
        tap_frame(port->tap, port->index, frame, TAP_OUT, now);
    uint32_t wire = wire_bytes(frame->kind, frame->length);
    line_send(port, frame, wire, now, now + line_time(&port->line, wire));
    timer_set_upkeep(port->clock, &port->done, port->line.free_at);
}

/* An injected frame occupies the line. The port is busy until the line is free. */
SELDOM static void wait_for_line(struct port *port)
{
    port->busy = true;
    port->sending = (struct charge){0};
    timer_set_upkeep(port->clock, &port->done, port->line.free_at);
}

/* A port without a link takes packets at the rate of its line, and discards them: a NIC's queue
 * pairs then wait for an acknowledgement, as after any loss. */
SELDOM static void send_into_nothing(struct port *port, picoseconds now)
{
    struct frame *frame = port->handler->pull ? port->handler->pull(port, now) : NULL;
    if (!frame)
        return;
    uint32_t wire = wire_bytes(frame->kind, frame->length);
    port->busy = true;
    port->sending = (struct charge){0};
    port_lose(port, frame);
    timer_set(port->clock, &port->done, now + line_time(&port->line, wire));
}

void port_kick(struct port *port, picoseconds now)
{
    if (port->busy)
        return;
    if (!port->up) {
        if (port->cuts)
            send_into_nothing(port, now);
        return;
    }
    if (now < port->line.free_at) {
        wait_for_line(port);
        return;
    }
    struct frame *frame = next_frame(port, now);
    if (frame)
        transmit(port, frame, now);
}

void transmission_done(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, done);
    port->busy = false;
    if (port->sending.bytes && port->handler->sent)
        port->handler->sent(port, &port->sending, now);
    port_kick(port, now);
}

void port_lose(struct port *port, struct frame *frame)
{
    counting_port(port, frame)->counters->link_down_discard += is_packet(frame);
    port_count_drop(port, frame);
    frame_free(port->pool, frame);
}

void port_inject(struct port *port, struct frame *frame, picoseconds now)
{
    picoseconds start = now > port->line.free_at ? now : port->line.free_at;
    if (!port->up) {
        port_lose(port, frame);
        return;
    }
    if (port->tap)
        tap_frame(port->tap, port->index, frame, TAP_OUT, start);
    uint32_t wire = wire_bytes(frame->kind, frame->length);
    line_send(port, frame, wire, start, injection_end(&port->line, wire, start, now));
}

/* ---- link up and down ---------------------------------------------- */

void port_start(struct port *port, picoseconds now)
{
    port->up = true;
    if (port_flow_control(port)->start)
        port_flow_control(port)->start(port, now);
    port_kick(port, now);
}

/* Whether the link was lost after the frame had left. Times do not tell: a frame may leave at the
 * very moment of a loss, before it. */
static bool is_cut_off(const struct line *line, const struct frame *frame)
{
    return (int16_t)(frame->cuts - line->cuts) < 0;
}

void port_on_the_way(struct port *port, struct frame *frame)
{
    if (is_cut_off(&port->line, frame))
        frame_free(port->pool, frame);
    else
        put_in_flight(&port->line, frame);
}

void port_forget_cuts(struct port *port)
{
    struct line *line = &port->line;
    line->cuts = port->cuts > 0;
    for (struct frame *frame = line->in_flight.first; frame; frame = frame->next)
        frame->cuts = line->cuts;
}

/* The same for a port that stands in for another: that port counts the frames. Frames that left
 * earlier and have not come in yet are lost then (port_on_the_way). Those that left later, when the
 * link is back, may be there already. */
static void lose_frames_of_other(struct port *port)
{
    struct line *line = &port->line;
    for (; line->in_flight_count && is_cut_off(line, line->in_flight.first);
         line->in_flight_count--)
        frame_free(port->pool, list_pop(&line->in_flight));
    if (line->in_flight_count)
        timer_set_arrival(port->clock, &line->arrival, line->in_flight.first->due_at,
                          line->far_index);
    else
        timer_cancel(&line->arrival);
}

static void lose_frames(struct port *port)
{
    struct line *line = &port->line;
    for (; line->in_flight_count; line->in_flight_count--)
        port_lose(port, list_pop(&line->in_flight));
    timer_cancel(&line->arrival);
}

void port_link_down(struct port *port, picoseconds now)
{
    if (port->cuts++)
        return;
    port->up = false;
    port->line.cuts++;
    if (port->stands_in) {
        lose_frames_of_other(port);
    } else {
        port->counters->link_downed++;
        lose_frames(port);
    }
    port_flow_control(port)->reset(port, now);
    if (port->handler->link_down)
        port->handler->link_down(port, now);
    port_kick(port, now);
}

void port_link_up(struct port *port, picoseconds now)
{
    if (--port->cuts)
        return;
    port_start(port, now);
    if (port->handler->link_up)
        port->handler->link_up(port, now);
}

/* ---- gauges that grow with time ---------------------------------------------- */

void port_stops(struct port *port)
{
    if (port->is_on_stopped_ports || !port->stopped_ports)
        return;
    port->next_stopped = port->stopped_ports->first;
    port->stopped_ports->first = port;
    port->is_on_stopped_ports = true;
}

void stopped_ports_settle(struct stopped_ports *stopped, picoseconds now)
{
    for (struct port **place = &stopped->first, *port; (port = *place);) {
        port_settle(port, now);
        if (port->stopped) {
            place = &port->next_stopped;
        } else {
            *place = port->next_stopped;
            port->is_on_stopped_ports = false;
        }
    }
}
