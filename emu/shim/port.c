#include "port.h"

#include <string.h>

#include "tap.h"

/* Symbol times between two flow-control packets of a VL, at most (IBTA vol 1, 7.9.4). */
enum { FLOW_CONTROL_INTERVAL_SYMBOLS = 65536, BITS_PER_SYMBOL = 8, LANES = 4 };

/* Bytes of a frame that a cut-through switch must see before it can decide. */
enum { ETHERNET_HEADER_BYTES = 64, INFINIBAND_HEADER_BYTES = 20 };

static void pause_due(struct timer *timer, picoseconds now);
static void pause_refresh(struct timer *timer, picoseconds now);
static void credit_refresh(struct timer *timer, picoseconds now);

void port_init(struct port *port, struct clock *clock, struct frame_pool *pool,
               const struct port_handler *handler, void *owner, enum framing framing)
{
    *port = (struct port){.clock = clock,
                          .pool = pool,
                          .handler = handler,
                          .owner = owner,
                          .framing = (uint8_t)framing,
                          .pfc_honoured = 0xFF,
                          .gauges = &port->own_gauges};
    timer_init(&port->line.arrival, line_arrival);
    timer_init(&port->done, transmission_done);
    timer_init(&port->pause_due, pause_due);
    timer_init(&port->pause_refresh, pause_refresh);
    timer_init(&port->credit_refresh, credit_refresh);
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
    port->line.rate_bps = rate_bps;
    port->line.byte_time = whole_byte_time(rate_bps);
    port->line.delay = delay;
    port->line.delivery = delivery;
}

/* ---- the line ---------------------------------------------------------- */

/* When the far end gets it, if that is before its tail. */
SELDOM static picoseconds early_delivery(const struct line *line, const struct frame *frame,
                                         picoseconds start)
{
    uint32_t wire = wire_bytes(frame->kind, frame->length);
    uint32_t header =
        frame->kind == FRAME_ETHERNET ? ETHERNET_HEADER_BYTES : INFINIBAND_HEADER_BYTES;
    if (line->delivery == DELIVER_START)
        return start;
    return start + line->delay + line_time(line, wire < header ? wire : header);
}

/* Puts a frame on the line, from `start` on; returns when its last bit is out. */
static picoseconds line_send(struct port *port, struct frame *frame, picoseconds start)
{
    struct line *line = &port->line;
    uint32_t wire = wire_bytes(frame->kind, frame->length);
    line->free_at = start + line_time(line, wire);
    frame->tail_at = line->free_at + line->delay;
    frame->due_at =
        line->delivery == DELIVER_TAIL ? frame->tail_at : early_delivery(line, frame, start);
    port->gauges->tx_wire += wire;
    if (!line->in_flight_count++)
        timer_set(port->clock, &line->arrival, frame->due_at);
    list_push(&line->in_flight, frame);
    return line->free_at;
}

void line_arrival(struct timer *timer, picoseconds now)
{
    struct line *line = container_of(timer, struct line, arrival);
    struct port *port = container_of(line, struct port, line);
    struct frame *frame = list_pop(&line->in_flight);
    if (--line->in_flight_count)
        timer_set(port->clock, &line->arrival, line->in_flight.first->due_at);
    port_deliver(line->far, frame, now);
}

/* ---- flow control that arrives ------------------------------------------ */

static void count_pause(struct port *port, int priority, picoseconds now)
{
    picoseconds duration = now - port->paused_since[priority];
    port->paused_since[priority] = now;
    port->counters.rx_pause_duration[priority] += duration;
    port->gauges->paused += duration;
}

/* From now on its gauges grow with time. */
static void stops(struct port *port)
{
    if (port->is_on_stopped || !port->stopped)
        return;
    port->next_stopped = port->stopped->first;
    port->stopped->first = port;
    port->is_on_stopped = true;
}

static void pause_begins(struct port *port, uint8_t priority, picoseconds now)
{
    stops(port);
    port->pause_near &= (uint8_t) ~(1u << priority);
    port->paused |= (uint8_t)(1u << priority);
    port->paused_since[priority] = now;
}

static void pause_ends(struct port *port, uint8_t priority, picoseconds now)
{
    count_pause(port, priority, now);
    port->paused &= (uint8_t) ~(1u << priority);
    port->counters.rx_pause_transition[priority]++;
}

static void pause_arm(struct port *port)
{
    picoseconds next = NEVER;
    for (unsigned left = port->paused | port->pause_near; left; left &= left - 1) {
        int priority = __builtin_ctz(left);
        picoseconds due = port->pause_near & 1u << priority ? port->paused_since[priority]
                                                            : port->paused_until[priority];
        next = due < next ? due : next;
    }
    if (next == NEVER)
        timer_cancel(&port->pause_due);
    else
        timer_set(port->clock, &port->pause_due, next);
}

static void pause_due(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, pause_due);
    for (uint8_t priority = 0; priority < PRIORITIES; priority++) {
        if (port->pause_near & 1u << priority && port->paused_since[priority] <= now)
            pause_begins(port, priority, now);
        if (port->paused & 1u << priority && port->paused_until[priority] <= now)
            pause_ends(port, priority, now);
    }
    pause_arm(port);
    port_kick(port, now);
}

/* Quanta count from the frame's arrival, obeyed or not by then. */
static void priority_paused(struct port *port, uint8_t priority, uint16_t quanta, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    port->paused_until[priority] = now + quanta_time(quanta, port->line.rate_bps);
    if ((port->paused | port->pause_near) & bit)
        return;
    if (port->pause_response) {
        port->pause_near |= bit;
        port->paused_since[priority] = now + port->pause_response;
    } else {
        pause_begins(port, priority, now);
    }
}

static void priority_resumed(struct port *port, uint8_t priority, picoseconds now)
{
    port->pause_near &= (uint8_t) ~(1u << priority);
    if (port->paused & 1u << priority)
        pause_ends(port, priority, now);
}

static void pause_arrived(struct port *port, const struct pause *pause, picoseconds now)
{
    port->counters.rx_pause_frames++;
    port->counters.rx_global_pause += pause->global;
    uint8_t honoured = pause->global ? (port->global_honoured ? 0xFF : 0) : port->pfc_honoured;
    honoured &= (uint8_t)~port->pause_ignored;
    for (uint8_t priority = 0; priority < PRIORITIES; priority++) {
        uint8_t bit = (uint8_t)(1u << priority);
        if (!(pause->enable & bit))
            continue;
        port->counters.rx_pause[priority] += !pause->global;
        if (!(honoured & bit))
            continue;
        if (pause->time[priority])
            priority_paused(port, priority, pause->time[priority], now);
        else
            priority_resumed(port, priority, now);
    }
    pause_arm(port);
    port_kick(port, now);
}

void port_ignore_pauses(struct port *port, uint8_t priority, bool ignore, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if (!ignore) {
        port->pause_ignored &= (uint8_t)~bit;
        return;
    }
    port->pause_ignored |= bit;
    priority_resumed(port, priority, now);
    pause_arm(port);
    port_kick(port, now);
}

static void flow_control_arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    struct flow_control packet;
    if (frame->corrupt || !flow_control_parse(&packet, frame->bytes, frame->stored)) {
        port->counters.rx_flow_control_errors++;
        return;
    }
    port->counters.rx_flow_control++;
    if (packet.vl >= port->vls)
        return;
    credit_synchronised(&port->credit_given[packet.vl], packet.fctbs);
    credit_granted(&port->credit_to_send[packet.vl], packet.fccl);
    port_kick(port, now);
}

bool is_packet(const struct frame *frame)
{
    return frame->kind == FRAME_IB ||
           (frame->kind == FRAME_ETHERNET && !is_mac_control(frame->bytes, frame->stored));
}

SELDOM static void mac_control_arrived(struct port *port, const struct frame *frame,
                                       picoseconds now)
{
    struct pause pause;
    if (!frame->corrupt && pause_parse(&pause, frame->bytes, frame->stored))
        pause_arrived(port, &pause, now);
    else
        port->counters.rx_mac_control_unknown++;
}

/* True when the frame ended here. */
static bool port_consumes(struct port *port, const struct frame *frame, picoseconds now)
{
    if (is_packet(frame))
        return false;
    if (frame->kind == FRAME_IB_LINK)
        flow_control_arrived(port, frame, now);
    else
        mac_control_arrived(port, frame, now);
    return true;
}

static void classify(const struct port *port, struct frame *frame)
{
    if (!port->classes || frame->kind != FRAME_ETHERNET)
        return;
    frame->ip = (uint8_t)ipv4_offset(frame->bytes, frame->stored);
    frame->klass = class_of(port->classes, frame);
}

static bool port_take_credit(struct port *port, const struct frame *frame)
{
    if (!credit_received(&port->credit_given[frame->klass], frame->length))
        return false;
    port->gauges->held += credit_blocks(frame->length) * CREDIT_BLOCK;
    return true;
}

void port_deliver(struct port *port, struct frame *frame, picoseconds now)
{
    if (port->tap)
        tap_frame(port->tap, port->index, frame, TAP_IN, frame->tail_at);
    if (port->outside) {
        port->handler->receive(port, frame, now);
        return;
    }
    if (port_consumes(port, frame, now)) {
        frame_free(port->pool, frame);
        return;
    }
    if (frame->corrupt)
        port->counters.rx_crc_errors++;
    classify(port, frame);
    struct class_counters *counters = &port->counters.of_class[frame->klass];
    counters->rx_packets++;
    counters->rx_bytes += frame->length;
    if (frame->kind == FRAME_IB && frame->klass < port->vls && !port_take_credit(port, frame)) {
        port->counters.rx_credit_violations++;
        frame_free(port->pool, frame);
        return;
    }
    port->handler->receive(port, frame, now);
}

/* ---- flow control that we send ------------------------------------------ */

static void count_pause_sent(struct port *port, const struct pause *pause)
{
    port->counters.tx_pause_frames++;
    port->counters.tx_global_pause += pause->global;
    for (unsigned left = pause->global ? 0 : pause->enable; left; left &= left - 1)
        port->counters.tx_pause[__builtin_ctz(left)]++;
}

SELDOM static struct frame *next_pause(struct port *port)
{
    struct frame *frame = frame_new(port->pool, FRAME_ETHERNET, PAUSE_FRAME_BYTES);
    if (!frame)
        return NULL;
    struct pause pause = {.global = port->sends_global, .enable = port->pause_to_send};
    for (int priority = 0; priority < PRIORITIES; priority++)
        if (port->xoff & (port->sends_global ? 0xFF : 1u << priority))
            pause.time[priority] = PAUSE_MAX_QUANTA;
    count_pause_sent(port, &pause);
    pause_build(&pause, port->mac, frame->bytes);
    port->pause_to_send = 0;
    return frame;
}

static struct frame *next_update(struct port *port)
{
    struct frame *frame = frame_new(port->pool, FRAME_IB_LINK, FLOW_CONTROL_BYTES);
    if (!frame)
        return NULL;
    uint8_t vl = (uint8_t)__builtin_ctz(port->update_to_send);
    port->update_to_send &= (uint16_t) ~(1u << vl);
    struct flow_control packet = {.op = port->link_initialised ? FLOW_CONTROL_NORMAL
                                                               : FLOW_CONTROL_INIT,
                                  .vl = vl,
                                  .fctbs = port->credit_to_send[vl].fctbs,
                                  .fccl = credit_limit(&port->credit_given[vl])};
    flow_control_build(&packet, frame->bytes);
    frame->klass = vl;
    port->counters.tx_flow_control++;
    if (!port->update_to_send)
        port->link_initialised = true;
    return frame;
}

static void count_pausing(struct port *port, int priority, picoseconds now)
{
    port->counters.tx_pause_duration[priority] += now - port->pausing_since[priority];
    port->pausing_since[priority] = now;
}

void port_pause_peer(struct port *port, uint8_t priority, bool xoff, picoseconds now)
{
    uint8_t bit = (uint8_t)(1u << priority);
    if (port->xoff & bit)
        count_pausing(port, priority, now);
    port->pausing_since[priority] = now;
    if (xoff)
        port->xoff |= bit;
    else
        port->xoff &= (uint8_t)~bit;
    port->pause_to_send |= bit;
    if (!port->xoff)
        timer_cancel(&port->pause_refresh);
    else if (!timer_is_set(&port->pause_refresh))
        timer_set(port->clock, &port->pause_refresh,
                  now + quanta_time(PAUSE_MAX_QUANTA / 2, port->line.rate_bps));
    port_kick(port, now);
}

/* A pause lasts 65535 quanta; while it shall last longer it is told again at half time. */
static void pause_refresh(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, pause_refresh);
    port->pause_to_send |= port->xoff;
    timer_set(port->clock, timer, now + quanta_time(PAUSE_MAX_QUANTA / 2, port->line.rate_bps));
    port_kick(port, now);
}

void port_return_credit(struct port *port, uint8_t vl, uint32_t length, picoseconds now)
{
    if (vl >= port->vls)
        return;
    credit_released(&port->credit_given[vl], length);
    port->gauges->held -= credit_blocks(length) * CREDIT_BLOCK;
    port->update_to_send |= (uint16_t)(1u << vl);
    port_kick(port, now);
}

static void credit_refresh(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, credit_refresh);
    picoseconds symbol = serialisation(LANES * BITS_PER_SYMBOL / 8, port->line.rate_bps);
    port->update_to_send |= (uint16_t)((1u << port->vls) - 1);
    timer_set(port->clock, timer, now + FLOW_CONTROL_INTERVAL_SYMBOLS / 2 * symbol);
    port_kick(port, now);
}

void port_start(struct port *port, picoseconds now)
{
    port->up = true;
    if (port->framing == FRAMING_INFINIBAND && port->vls)
        credit_refresh(&port->credit_refresh, now);
    else
        port_kick(port, now);
}

/* ---- sending ------------------------------------------------------------ */

bool port_may_send(struct port *port, uint8_t klass, uint32_t length, picoseconds now)
{
    if (port->framing == FRAMING_ETHERNET)
        return !port_is_paused(port, klass);
    if (klass >= port->vls || credit_may_send(&port->credit_to_send[klass], length))
        return true;
    if (!(port->waiting & 1u << klass)) {
        port->waiting_since[klass] = now;
        port->waiting |= (uint16_t)(1u << klass);
        stops(port);
    }
    return false;
}

static void count_wait(struct port *port, int vl, picoseconds now)
{
    picoseconds duration = now - port->waiting_since[vl];
    port->waiting_since[vl] = now;
    port->counters.xmit_wait[vl] += duration;
    port->gauges->waited += duration;
}

void port_waits_no_more(struct port *port, uint8_t vl, picoseconds now)
{
    if (!(port->waiting & 1u << vl))
        return;
    count_wait(port, vl, now);
    port->waiting &= (uint16_t) ~(1u << vl);
}

static struct frame *next_frame(struct port *port, picoseconds now)
{
    struct frame *frame = NULL;
    if (port->pause_to_send)
        frame = next_pause(port);
    else if (port->update_to_send)
        frame = next_update(port);
    if (frame)
        return frame;
    frame = port->handler->pull ? port->handler->pull(port, now) : NULL;
    if (!frame)
        return NULL;
    struct class_counters *counters = &port->counters.of_class[frame->klass];
    counters->tx_packets++;
    counters->tx_bytes += frame->length;
    if (frame->kind == FRAME_IB && frame->klass < port->vls) {
        credit_sent(&port->credit_to_send[frame->klass], frame->length);
        port_waits_no_more(port, frame->klass, now);
    }
    return frame;
}

static void transmit(struct port *port, struct frame *frame, picoseconds now)
{
    port->busy = true;
    port->sending = frame->charge;
    frame->charge = (struct charge){0};
    if (port->tap)
        tap_frame(port->tap, port->index, frame, TAP_OUT, now);
    timer_set(port->clock, &port->done, line_send(port, frame, now));
}

void port_kick(struct port *port, picoseconds now)
{
    if (port->busy || !port->up || now < port->line.free_at)
        return;
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

static void lose(struct port *port, struct frame *frame)
{
    port->counters.link_down_discard += is_packet(frame);
    frame_free(port->pool, frame);
}

void port_inject(struct port *port, struct frame *frame, picoseconds now)
{
    picoseconds start = now > port->line.free_at ? now : port->line.free_at;
    if (!port->up) {
        lose(port, frame);
        return;
    }
    if (port->tap)
        tap_frame(port->tap, port->index, frame, TAP_OUT, start);
    line_send(port, frame, start);
}

/* ---- the link comes and goes ---------------------------------------------- */

static void lose_frames(struct port *port)
{
    struct line *line = &port->line;
    for (; line->in_flight_count; line->in_flight_count--)
        lose(port, list_pop(&line->in_flight));
    timer_cancel(&line->arrival);
}

static void forget_pauses(struct port *port, picoseconds now)
{
    for (uint8_t priority = 0; priority < PRIORITIES; priority++)
        if (port->paused & 1u << priority)
            pause_ends(port, priority, now);
    port_count_stops(port, now);
    port->xoff = port->pause_to_send = port->pause_near = 0;
    timer_cancel(&port->pause_due);
    timer_cancel(&port->pause_refresh);
}

/* What is in the buffers stays there; both ends count from 0 again (Op init). */
static void forget_credits(struct port *port, picoseconds now)
{
    for (uint8_t vl = 0; vl < port->vls; vl++) {
        port_waits_no_more(port, vl, now);
        port->credit_to_send[vl] = (struct credit_sender){0};
        port->credit_given[vl].abr = 0;
    }
    port->link_initialised = false;
    port->update_to_send = 0;
    timer_cancel(&port->credit_refresh);
}

void port_link_down(struct port *port, picoseconds now)
{
    if (port->cuts++)
        return;
    port->up = false;
    port->counters.link_downed++;
    lose_frames(port);
    forget_pauses(port, now);
    forget_credits(port, now);
    if (port->handler->link_down)
        port->handler->link_down(port, now);
}

void port_link_up(struct port *port, picoseconds now)
{
    if (!--port->cuts)
        port_start(port, now);
}

static void count_own_stops(struct port *port, picoseconds now)
{
    for (unsigned left = port->paused; left; left &= left - 1)
        count_pause(port, __builtin_ctz(left), now);
    for (unsigned left = port->waiting; left; left &= left - 1)
        count_wait(port, __builtin_ctz(left), now);
}

void port_count_stops(struct port *port, picoseconds now)
{
    count_own_stops(port, now);
    for (unsigned left = port->xoff; left; left &= left - 1)
        count_pausing(port, __builtin_ctz(left), now);
}

static bool is_stopped(const struct port *port)
{
    return port->paused || port->waiting;
}

void stopped_ports_settle(struct stopped_ports *stopped, picoseconds now)
{
    for (struct port **place = &stopped->first, *port; (port = *place);) {
        count_own_stops(port, now);
        if (is_stopped(port)) {
            place = &port->next_stopped;
        } else {
            *place = port->next_stopped;
            port->is_on_stopped = false;
        }
    }
}
