#include "switch/ingress.h"

#include "switch/pfc.h"

static bool charge_buffer(struct fabric_switch *sw, struct switch_port *in,
                          const struct frame *frame, bool lossless, picoseconds now)
{
    uint8_t tc = frame->tc;
    struct priority_group *ingress = &in->priority_group[tc];
    const struct pfc_config *pfc = lossless ? &in->pfc : NULL;
    bool fits = buffer_charge(&sw->buffer, ingress, pfc, frame->length);
    if (lossless)
        pfc_update(sw, in, tc, now);
    if (ingress->headroom && ingress->headroom > in->counters->headroom_peak_bytes[tc])
        in->counters->headroom_peak_bytes[tc] = ingress->headroom;
    if (fits)
        in->port.gauges->held += frame->length;
    else {
        in->counters->rx_buf_discard[tc]++;
        *sw->lossless_dropped += lossless;
    }
    return fits;
}

bool ingress_charge(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                    picoseconds now)
{
    bool has_room = port_has_buffers(&in->port);
    bool lossless = has_room || in->pfc.priorities & 1u << frame->tc;
    if (!has_room && !charge_buffer(sw, in, frame, lossless, now))
        return false;
    frame->charge = (struct charge){in->port.number, frame->tc, lossless, frame->length};
    return true;
}

void ingress_release(struct fabric_switch *sw, const struct charge *charge, picoseconds now)
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

void ingress_forget(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    if (frame->charge.bytes)
        ingress_release(sw, &frame->charge, now);
    frame_free(sw->pool, frame);
}

void ingress_discard(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    if (frame->charge.bytes)
        port_count_drop(&switch_port(sw, frame->charge.in_port)->port, frame);
    ingress_forget(sw, frame, now);
}
