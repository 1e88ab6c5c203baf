#include "link/port_credit.h"

/* Symbol times between two flow-control packets of a VL, at most (IBTA vol 1, 7.9.4). A symbol
 * is a byte on one lane: in its time each of the others carries one, too. */
enum { FLOW_CONTROL_INTERVAL_SYMBOLS = 65536 };

/* ---- towards us ------------------------------------------------------------- */

void credits_arrived(struct port *port, const struct frame *frame, picoseconds now)
{
    struct flow_control packet;
    if (frame->corrupt || !flow_control_parse(&packet, frame->bytes, frame->stored)) {
        port->counters.rx_flow_control_errors++;
        return;
    }
    port->counters.rx_flow_control++;
    if (packet.vl >= port->vls)
        return;
    credit_synchronised(&port->rx_credit[packet.vl], packet.fctbs);
    credit_granted(&port->tx_credit[packet.vl], packet.fccl);
    port_kick(port, now);
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

/* ---- from us ---------------------------------------------------------------- */

bool credits_take(struct port *port, const struct frame *frame)
{
    if (!credit_received(&port->rx_credit[frame->tc], frame->length))
        return false;
    port->gauges->held += credit_blocks(frame->length) * CREDIT_BLOCK;
    return true;
}

void port_return_credit(struct port *port, uint8_t vl, uint32_t length, picoseconds now)
{
    if (vl >= port->vls)
        return;
    credit_released(&port->rx_credit[vl], length);
    port->gauges->held -= credit_blocks(length) * CREDIT_BLOCK;
    port->update_to_send |= (uint16_t)(1u << vl);
    port_kick(port, now);
}

struct frame *credits_next_frame(struct port *port)
{
    struct frame *frame = frame_new(port->pool, FRAME_IB_LINK, FLOW_CONTROL_BYTES);
    if (!frame)
        return NULL;
    uint8_t vl = (uint8_t)__builtin_ctz(port->update_to_send);
    port->update_to_send &= (uint16_t) ~(1u << vl);
    struct flow_control packet = {.op = port->link_initialised ? FLOW_CONTROL_NORMAL
                                                               : FLOW_CONTROL_INIT,
                                  .vl = vl,
                                  .fctbs = port->tx_credit[vl].fctbs,
                                  .fccl = credit_limit(&port->rx_credit[vl])};
    flow_control_build(&packet, frame->bytes);
    frame->tc = vl;
    port->counters.tx_flow_control++;
    if (!port->update_to_send)
        port->link_initialised = true;
    return frame;
}

static void credits_refresh(struct timer *timer, picoseconds now)
{
    struct port *port = container_of(timer, struct port, credit_refresh);
    picoseconds symbol = serialisation(port->width, port->line.rate_bps);
    port->update_to_send |= (uint16_t)((1u << port->vls) - 1);
    timer_set(port->clock, timer, now + FLOW_CONTROL_INTERVAL_SYMBOLS / 2 * symbol);
    port_kick(port, now);
}

/* ---- both ------------------------------------------------------------------- */

void credits_init(struct port *port)
{
    timer_init(&port->credit_refresh, credits_refresh);
}

void credits_start(struct port *port, picoseconds now)
{
    credits_refresh(&port->credit_refresh, now);
}

void credits_count_waits(struct port *port, picoseconds now)
{
    for (unsigned left = port->waiting; left; left &= left - 1)
        count_wait(port, __builtin_ctz(left), now);
}

void credits_forget(struct port *port, picoseconds now)
{
    for (uint8_t vl = 0; vl < port->vls; vl++) {
        port_waits_no_more(port, vl, now);
        port->tx_credit[vl] = (struct credit_sender){0};
        port->rx_credit[vl].abr = port->rx_credit[vl].promised = 0;
    }
    port->link_initialised = false;
    port->update_to_send = 0;
    timer_cancel(&port->credit_refresh);
}
