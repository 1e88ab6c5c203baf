/* InfiniBand's credits (credit.h) as a flow control. A frame leaves when the far end has advertised
 * room for it. A received frame occupies the buffer of its class at this port until the owner
 * releases it. */
#include "link/port.h"

/* The longest time between two flow-control packets of a VL, in symbol times (IBTA vol 1, 7.9.4).
 * In one symbol time each physical lane of the link carries one byte. */
enum { FLOW_CONTROL_INTERVAL_SYMBOLS = 65536 };

static struct credit_sender *tx_credit(struct port *port, uint8_t tc)
{
    return &port->credit->of_class[tc].tx;
}

static struct credit_receiver *rx_credit(struct port *port, uint8_t tc)
{
    return &port->credit->of_class[tc].rx;
}

/* ---- sending: credit from the far end ---------------------------------- */

static void count_wait(struct port *port, int tc, picoseconds now)
{
    picoseconds duration = now - port->credit->waiting_since[tc];
    port->credit->waiting_since[tc] = now;
    port->counters->xmit_wait[tc] += duration;
    port->gauges->waited += duration;
}

static void wait_begins(struct port *port, uint8_t tc, picoseconds now)
{
    port->credit->waiting_since[tc] = now;
    port->stopped |= (uint16_t)(1u << tc);
    port_stops(port);
}

static void wait_ends(struct port *port, uint8_t tc, picoseconds now)
{
    if (!(port->stopped & 1u << tc))
        return;
    count_wait(port, tc, now);
    port->stopped &= (uint16_t) ~(1u << tc);
}

static bool may_send(struct port *port, uint8_t tc, uint32_t length, picoseconds now)
{
    if (!port_needs_credit(port, tc) || credit_may_send(tx_credit(port, tc), length) || !port->up)
        return true;
    if (!(port->stopped & 1u << tc))
        wait_begins(port, tc, now);
    return false;
}

static void sent(struct port *port, const struct frame *frame, picoseconds now)
{
    if (!port_needs_credit(port, frame->tc))
        return;
    credit_sent(tx_credit(port, frame->tc), frame->length);
    wait_ends(port, frame->tc, now);
}

static void arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    struct flow_control packet;
    const uint8_t *message = port_credit_update(port, frame);
    if (frame->corrupt || !message || !flow_control_parse(&packet, message, FLOW_CONTROL_BYTES)) {
        port->counters->rx_flow_control_errors++;
        return;
    }
    port->counters->rx_flow_control++;
    if (!port_needs_credit(port, packet.vl))
        return;
    credit_synchronised(rx_credit(port, packet.vl), packet.fctbs);
    credit_granted(tx_credit(port, packet.vl), packet.fccl);
    port_kick(port, now);
}

/* The far end has no room for the packet, so that no update on its way can help either. */
static bool is_held_back(const struct port *port, uint8_t tc, uint32_t length)
{
    const struct credit_receiver *room = &port->line.far->credit->of_class[tc].rx;
    return port->stopped & 1u << tc &&
           room->used_blocks + room->spare_blocks + credit_blocks(length) > room->buffer_blocks;
}

/* ---- receiving: credit for the far end ---------------------------------------------- */

static uint32_t space(uint32_t length)
{
    return credit_blocks(length) * CREDIT_BLOCK;
}

static uint64_t held(const struct port *port, uint8_t tc)
{
    return (uint64_t)port->credit->of_class[tc].rx.used_blocks * CREDIT_BLOCK;
}

static bool received(struct port *port, const struct frame *frame)
{
    if (!port_needs_credit(port, frame->tc))
        return true;
    if (!credit_received(rx_credit(port, frame->tc), frame->length)) {
        port->counters->rx_credit_violations++;
        return false;
    }
    port->gauges->held += space(frame->length);
    return true;
}

static void advertise(struct port *port, unsigned classes)
{
    port->credit->to_send |= (uint16_t)classes;
    port->control_to_send = true;
}

static void released(struct port *port, uint8_t tc, uint32_t length, picoseconds now)
{
    if (!port_needs_credit(port, tc))
        return;
    credit_released(rx_credit(port, tc), length);
    port->gauges->held -= space(length);
    advertise(port, 1u << tc);
    port_kick(port, now);
}

static struct frame *next_frame(struct port *port)
{
    struct credit_state *credit = port->credit;
    uint8_t *message;
    struct frame *frame =
        port_framing(port)->control_frame(port, CONTROL_CREDITS, FLOW_CONTROL_BYTES, &message);
    if (!frame)
        return NULL;
    uint8_t vl = (uint8_t)__builtin_ctz(credit->to_send);
    struct flow_control packet = {.op = credit->link_initialised ? FLOW_CONTROL_NORMAL
                                                                 : FLOW_CONTROL_INIT,
                                  .vl = vl,
                                  .fctbs = tx_credit(port, vl)->fctbs,
                                  .fccl = credit_limit(rx_credit(port, vl))};
    flow_control_build(&packet, message);
    frame->tc = vl;
    port->counters->tx_flow_control++;
    credit->to_send &= (uint16_t) ~(1u << vl);
    port->control_to_send = credit->to_send;
    credit->link_initialised |= !credit->to_send;
    return frame;
}

/* ---- both directions --------------------------------------------------------------------------
 */

static picoseconds refresh_interval(const struct port *port)
{
    picoseconds symbol = serialisation(port->credit->width, port->line.rate_bps);
    return FLOW_CONTROL_INTERVAL_SYMBOLS / 2 * symbol;
}

static void start(struct port *port, picoseconds now)
{
    advertise(port, (1u << port->credit->classes) - 1);
    timer_set_upkeep(port->clock, &port->credit->refresh, now + refresh_interval(port));
}

static picoseconds upkeep_period(const struct port *port)
{
    return timer_is_set(&port->credit->refresh) ? refresh_interval(port) : 0;
}

static void count_upkeep(struct port *port, picoseconds span)
{
    uint64_t updates = (uint64_t)(span / refresh_interval(port)) * port->credit->classes;
    port->counters->tx_flow_control += updates;
    port->counters->rx_flow_control += updates;
}

static void refresh(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct credit_state, refresh)->port;
    start(port, now);
    port_kick(port, now);
}

static bool init(struct port *port, struct arena *arena, const struct port_config *config)
{
    port->credit = arena_take(arena, 1, sizeof *port->credit);
    if (!port->credit)
        return false;
    port->credit->port = port;
    port->credit->classes = config->credit.vls;
    port->credit->width = config->credit.width;
    for (uint8_t tc = 0; tc < config->credit.vls; tc++)
        rx_credit(port, tc)->buffer_blocks = config->credit.buffer_bytes[tc] / CREDIT_BLOCK;
    timer_init(&port->credit->refresh, refresh);
    return true;
}

static void count_stops(struct port *port, picoseconds now)
{
    for (unsigned left = port->stopped; left; left &= left - 1)
        count_wait(port, __builtin_ctz(left), now);
}

/* Frames in the buffers stay there. Both ends count from 0 again (Op init). */
static void reset(struct port *port, picoseconds now)
{
    for (uint8_t tc = 0; tc < port->credit->classes; tc++) {
        wait_ends(port, tc, now);
        *tx_credit(port, tc) = (struct credit_sender){0};
        rx_credit(port, tc)->abr = rx_credit(port, tc)->promised = 0;
    }
    port->credit->link_initialised = false;
    port->credit->to_send = 0;
    port->control_to_send = false;
    timer_cancel(&port->credit->refresh);
}

const struct flow_control_ops flow_control_credits = {
    .init = init,
    .start = start,
    .reset = reset,
    .may_send = may_send,
    .sent = sent,
    .emptied = wait_ends,
    .arrived = arrived,
    .next_frame = next_frame,
    .received = received,
    .released = released,
    .held = held,
    .space = space,
    .is_held_back = is_held_back,
    .upkeep_period = upkeep_period,
    .count_upkeep = count_upkeep,
    .count_stops = count_stops,
};
