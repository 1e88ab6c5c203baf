#include "switch/transit.h"

#include <string.h>

#include "switch/ingress.h"
#include "switch/pipeline.h"

enum { TRANSIT_MARK = 0x06, TRANSIT_SEQUENCES = 1 << 16, MAC_BYTES = 6 };

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
                  (*transit_slot(sw, sw->transit_oldest))->due_at + sw->transit_timeout);
}

/* Counts a packet that did not come back, or came back with another length. */
static void lost_in_transit(struct fabric_switch *sw, struct frame *frame, picoseconds now)
{
    switch_port(sw, frame->charge.in_port)->counters->transit_lost++;
    sw->lost_in_datapath(sw->external_datapath, frame->due_at);
    ingress_forget(sw, frame, now);
}

static void transit_check(struct timer *timer, picoseconds now)
{
    struct fabric_switch *sw = container_of(timer, struct fabric_switch, transit_check);
    struct frame **slot = transit_slot(sw, sw->transit_oldest);
    struct frame *lost = *slot;
    *slot = NULL;
    lost_in_transit(sw, lost, now);
    transit_advance(sw);
}

/* The end of the latency, if that is the same for all egress ports. */
static picoseconds same_for_all_ports(const struct fabric_switch *sw, const struct frame *frame,
                                      picoseconds now)
{
    return (sw->config.cut_through ? now : frame->tail_at) + sw->config.latency_ps;
}

/* The packet has been handed over, and time waits for it. */
static void enter_pipeline(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                           picoseconds now)
{
    if (!sw->awaits_each) {
        pipeline_enter(in, frame, same_for_all_ports(sw, frame, now), now);
        return;
    }
    sw->await(sw->external_datapath, sw, frame);
    if (frame->out_port)
        pipeline_enter(in, frame, pipeline_earliest(sw, frame, now), now);
    else
        ingress_forget(sw, frame, now);
}

void transit_begin(struct fabric_switch *sw, struct switch_port *in, struct frame *frame,
                   uint16_t hint, picoseconds now)
{
    uint32_t sequence = sw->transit_next;
    struct frame **slot = transit_slot(sw, sequence);
    if (*slot && sw->await)
        sw->await(sw->external_datapath, sw, *slot);
    if (*slot) {
        in->counters->transit_overflow++;
        sw->lost_in_datapath(sw->external_datapath, now);
        ingress_forget(sw, frame, now);
        return;
    }
    uint8_t tag[MAC_BYTES] = {TRANSIT_MARK,
                              (uint8_t)(frame->tc << 4 | in->port.number >> 8),
                              (uint8_t)in->port.number,
                              (uint8_t)hint,
                              (uint8_t)(sequence >> 8),
                              (uint8_t)sequence};
    memcpy(frame->bytes + MAC_BYTES, tag, MAC_BYTES);
    frame->due_at = now;
    *slot = frame;
    sw->transit_next = (sequence + 1) % TRANSIT_SEQUENCES;
    frame->out_port = 0;
    if (!sw->await && !timer_is_set(&sw->transit_check))
        transit_advance(sw);
    sw->hand_over(sw->external_datapath, in, frame, now);
    if (sw->await)
        enter_pipeline(sw, in, frame, now);
}

/* Removes the frame with the tag in `bytes` from transit; NULL when there is none. */
static struct frame *transit_end(struct fabric_switch *sw, const uint8_t *bytes)
{
    const uint8_t *tag = bytes + MAC_BYTES;
    uint32_t sequence = (uint32_t)tag[4] << 8 | tag[5];
    struct frame **slot = transit_slot(sw, sequence);
    struct frame *frame = *slot;
    if (tag[0] != TRANSIT_MARK || !frame || memcmp(frame->bytes + MAC_BYTES, tag, MAC_BYTES) != 0)
        return NULL;
    *slot = NULL;
    if (sequence == sw->transit_oldest && !sw->await)
        transit_advance(sw);
    return frame;
}

/* Counts a CE mark that was set in the external datapath. */
static void note_mark(struct switch_port *out, const struct frame *frame, const uint8_t *bytes)
{
    uint32_t ip = ipv4_offset(bytes, frame->stored);
    if (ip && ipv4_ecn(bytes + ip) == ECN_CE && ipv4_ecn(frame->bytes + ip) != ECN_CE)
        out->counters->ecn_marked[frame->tc]++;
}

/* The frame takes the bytes that came back, and the egress port at which they did. */
static void change_bytes(struct frame *frame, const struct switch_port *out, const uint8_t *bytes)
{
    memcpy(frame->bytes, bytes, frame->stored);
    frame->ip = (uint8_t)ipv4_offset(bytes, frame->stored);
    memcpy(frame->bytes + MAC_BYTES, out->port.mac, MAC_BYTES);
    frame->out_port = out->port.number;
}

const struct frame *transit_resolved(struct fabric_switch *sw, uint32_t number,
                                     const uint8_t *bytes, uint32_t length)
{
    struct frame *frame = length >= 2 * MAC_BYTES ? transit_end(sw, bytes) : NULL;
    if (!frame || length != frame->stored)
        return NULL;
    change_bytes(frame, switch_port(sw, number), bytes);
    return frame;
}

struct transit_time transit_returned(struct fabric_switch *sw, uint32_t number,
                                     const uint8_t *bytes, uint32_t length, picoseconds now)
{
    struct switch_port *out = switch_port(sw, number);
    struct frame *frame = length >= 2 * MAC_BYTES ? transit_end(sw, bytes) : NULL;
    if (!frame || length != frame->stored) {
        out->counters->transit_unknown++;
        if (frame)
            lost_in_transit(sw, frame, now);
        return (struct transit_time){0};
    }
    note_mark(out, frame, bytes);
    change_bytes(frame, out, bytes);
    picoseconds due = pipeline_earliest(sw, frame, frame->due_at);
    struct transit_time time = {.kept = now - frame->due_at, .late = now > due ? now - due : 0};
    pipeline_enter(switch_port(sw, frame->charge.in_port), frame, due, now);
    return time;
}

void transit_init(struct fabric_switch *sw)
{
    timer_init(&sw->transit_check, transit_check);
}
