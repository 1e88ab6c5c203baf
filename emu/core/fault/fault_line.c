/* Faults of one direction of a cable. Each is a box in the line:
 *
 *     port ══ line ══▶ box ═▶ (the next fault's box ═▶) far port
 *
 * Towards the line a box looks like a port outside of the process: it is handed
 * whatever arrives, as it arrives. Only packets are hit. Pause frames and credit
 * updates pass, but for a delay, which is the cable's and theirs as well, and for
 * the fault that is for credit updates alone. On InfiniBand reordering corrects what
 * updates say of packets that it holds, and duplication sends copies on credit.
 *
 * Which packets: each with a probability, or every n-th, or those whose PSN is on
 * a list, each the first time, so that its retransmission passes. */
#include <string.h>

#include "fault/fault.h"
#include "headers/ipv4.h"
#include "headers/lrh.h"

enum {
    UDP_BYTES = 8,
    PROTOCOL_UDP = 17,
    ROCE_UDP_PORT = 4791,
    BTH_BYTES = 12,
    BTH_PSN = 9, /* 3 bytes */
    NO_PSN = 1 << 24,
};

/* ---- the box ------------------------------------------------------------------ */

static void receive(struct port *box, struct frame *frame, picoseconds now)
{
    struct fault *fault = box->owner;
    fault->ops->packet(fault, frame, now);
}

static const struct port_handler box_handler = {.receive = receive};

static void put_behind(struct fault *fault, struct port *before)
{
    fault->box.handler = &box_handler;
    fault->box.owner = fault;
    fault->box.outside = true;
    fault->box.line.far = before->line.far;
    before->line.far = &fault->box;
}

static void begin(struct fault *fault, picoseconds now)
{
    (void)now;
    put_behind(fault, fault->port);
}

static void take_out(struct fault *fault)
{
    struct port *before = fault->port;
    while (before->line.far != &fault->box)
        before = before->line.far;
    before->line.far = fault->box.line.far;
}

static void pass(struct fault *fault, struct frame *frame, picoseconds now)
{
    port_deliver(fault->box.line.far, frame, now);
}

/* Packets that are held leave as if the fault went on; the box waits for them. */
static void end(struct fault *fault, picoseconds now)
{
    (void)now;
    if (!fault->held.first)
        take_out(fault);
}

/* ---- choosing ------------------------------------------------------------------- */

/* Where the BTH begins; 0: there is none. */
static uint32_t bth_offset(const struct frame *frame)
{
    const uint8_t *bytes = frame->bytes;
    if (frame->kind == FRAME_IB)
        return frame->stored >= LRH_BYTES && lrh_has_bth(bytes) ? route_bytes(bytes) : 0;
    uint32_t ip = ipv4_offset(bytes, frame->stored);
    if (!ip || bytes[ip + 9] != PROTOCOL_UDP)
        return 0;
    uint32_t udp = ip + (bytes[ip] & 0x0F) * 4u;
    bool is_roce =
        udp + UDP_BYTES <= frame->stored && (bytes[udp + 2] << 8 | bytes[udp + 3]) == ROCE_UDP_PORT;
    return is_roce ? udp + UDP_BYTES : 0;
}

static uint32_t psn_of(const struct frame *frame)
{
    uint32_t bth = bth_offset(frame);
    if (!bth || bth + BTH_BYTES > frame->stored)
        return NO_PSN;
    const uint8_t *psn = frame->bytes + bth + BTH_PSN;
    return (uint32_t)psn[0] << 16 | (uint32_t)psn[1] << 8 | psn[2];
}

/* True once for each PSN on the list, which is then taken off it. */
static bool is_listed(struct fault_config *config, uint32_t psn)
{
    for (uint32_t i = 0; i < config->psn_count; i++)
        if (config->psns[i] == psn) {
            config->psns[i] = config->psns[--config->psn_count];
            return true;
        }
    return false;
}

/* Whether the fault is about such frames. */
static bool concerns(const struct fault *fault, const struct frame *frame)
{
    return fault->ops == &fault_flow_control ? frame->kind == FRAME_IB_LINK : is_packet(frame);
}

static bool chosen(struct fault *fault, const struct frame *frame)
{
    struct fault_config *config = &fault->config;
    if (!fault->active || !concerns(fault, frame))
        return false;
    fault->counts.packets_seen++;
    if (config->every)
        return fault->counts.packets_seen % config->every == 0;
    if (config->by_psn)
        return is_listed(config, psn_of(frame));
    return rng_u32(&fault->rng) < config->probability_2_32;
}

static bool hits(struct fault *fault, const struct frame *frame)
{
    if (!chosen(fault, frame))
        return false;
    fault->counts.hits++;
    return true;
}

/* ---- loss and corruption ---------------------------------------------------------- */

static void lose(struct fault *fault, struct frame *frame, picoseconds now)
{
    if (!hits(fault, frame)) {
        pass(fault, frame, now);
        return;
    }
    fault->counts.packets_dropped += is_packet(frame);
    port_count_drop(fault->port, frame);
    frame_free(fault->port->pool, frame);
}

/* The last byte is one of a CRC, whatever the packet. */
static void corrupt(struct fault *fault, struct frame *frame, picoseconds now)
{
    if (hits(fault, frame)) {
        frame->corrupt = true;
        if (frame_is_whole(frame) && frame->stored)
            frame->bytes[frame->stored - 1] ^= 0xFF;
    }
    pass(fault, frame, now);
}

static void disturb(struct fault *fault, struct frame *frame, picoseconds now)
{
    if (fault->config.damages)
        corrupt(fault, frame, now);
    else
        lose(fault, frame, now);
}

/* ---- duplication ------------------------------------------------------------------ */

static struct credit_receiver *lane_of(const struct fault *fault, const struct frame *frame)
{
    bool has_lane = frame->kind == FRAME_IB && frame->tc < fault->far->vls;
    return has_lane ? &fault->far->credit.of_class[frame->tc].rx : NULL;
}

/* The receiver's count of blocks goes back by a packet that its sender has sent but once. */
static void uncount(struct credit_receiver *lane, uint32_t bytes)
{
    credit_synchronised(lane, (uint16_t)((lane->abr - credit_blocks(bytes)) % CREDIT_MODULUS));
}

static struct frame *copy_of(struct fault *fault, const struct frame *frame)
{
    struct frame *copy =
        frame_new_stored(fault->port->pool, frame->kind, frame->length, frame->stored);
    if (copy) {
        memcpy(copy->bytes, frame->bytes, frame->stored);
        copy->tail_at = frame->tail_at;
        copy->tc = frame->tc;
        copy->corrupt = frame->corrupt;
    }
    return copy;
}

/* A packet's room is kept from the sender from the first copy on that there should be. Copies
 * come as soon as it has used up what it was given before. */
static bool take_spare_room(struct credit_receiver *lane, uint32_t bytes)
{
    uint32_t blocks = credit_blocks(bytes);
    if (lane->spare_blocks < blocks && 2 * blocks <= lane->buffer_blocks)
        lane->spare_blocks = blocks;
    if (!credit_has_spare_room(lane, bytes))
        return false;
    uncount(lane, bytes);
    return true;
}

static bool take_credit(struct port *port, uint8_t vl, uint32_t bytes)
{
    if (!credit_may_send(&port->credit.of_class[vl].tx, bytes))
        return false;
    credit_sent(&port->credit.of_class[vl].tx, bytes);
    return true;
}

/* A copy takes credit as if its sender had sent it; without, there is none. Where the sender is in
 * another process, it takes room that the receiver has given to nobody. */
static bool copy_has_credit(struct fault *fault, const struct frame *frame)
{
    if (frame->kind != FRAME_IB)
        return true;
    if (!fault->port->outside)
        return frame->tc >= fault->port->vls || take_credit(fault->port, frame->tc, frame->length);
    struct credit_receiver *lane = lane_of(fault, frame);
    return !lane || take_spare_room(lane, frame->length);
}

static void duplicate(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct frame *copy = chosen(fault, frame) ? copy_of(fault, frame) : NULL;
    if (copy && !copy_has_credit(fault, frame)) {
        frame_free(fault->port->pool, copy);
        copy = NULL;
    }
    pass(fault, frame, now);
    if (!copy)
        return;
    fault->counts.hits++;
    pass(fault, copy, now);
}

/* Where copies take the receiver's room they are made last, so that nothing holds them up: a credit
 * update that came before a copy would give that room away. */
static void begin_copies(struct fault *fault, picoseconds now)
{
    (void)now;
    struct port *before = fault->port;
    while (before->outside && before->line.far->handler == &box_handler)
        before = before->line.far;
    put_behind(fault, before);
}

static void end_copies(struct fault *fault, picoseconds now)
{
    for (int vl = 0; vl < CLASSES; vl++)
        fault->far->credit.of_class[vl].rx.spare_blocks = 0;
    end(fault, now);
}

/* ---- reordering and delay ------------------------------------------------------------ */

static void hold(struct fault *fault, struct frame *frame, picoseconds until, picoseconds now)
{
    frame->tail_at += until - now;
    frame->due_at = until;
    list_push(&fault->held, frame);
    if (!timer_is_set(&fault->next_step))
        timer_set(fault->port->clock, &fault->next_step, until);
}

static struct frame *let_go(struct fault *fault)
{
    struct frame *frame = list_pop(&fault->held);
    if (fault->held.first)
        timer_set(fault->port->clock, &fault->next_step, fault->held.first->due_at);
    else if (!fault->active)
        take_out(fault);
    return frame;
}

static uint32_t blocks_held(const struct fault *fault, uint8_t vl)
{
    uint32_t blocks = 0;
    for (const struct frame *frame = fault->held.first; frame; frame = frame->next)
        if (frame->tc == vl)
            blocks += credit_blocks(frame->length);
    return blocks;
}

/* What the sender says it has sent is what has gone on from here: else a flow-control packet would
 * overtake a packet that is held, and its receiver would give more than it has room for. */
static void leave_out_held(const struct fault *fault, struct frame *frame)
{
    struct flow_control packet;
    if (!fault->held.first || !flow_control_parse(&packet, frame->bytes, frame->stored))
        return;
    uint32_t passed = packet.fctbs - blocks_held(fault, packet.vl);
    packet.fctbs = (uint16_t)(passed % CREDIT_MODULUS);
    flow_control_build(&packet, frame->bytes);
}

static void reorder(struct fault *fault, struct frame *frame, picoseconds now)
{
    if (frame->kind == FRAME_IB_LINK)
        leave_out_held(fault, frame);
    if (hits(fault, frame))
        hold(fault, frame, now + fault->config.by_ps, now);
    else
        pass(fault, frame, now);
}

/* All wait, and those behind them when the fault is over, so that order is kept. */
static void delay(struct fault *fault, struct frame *frame, picoseconds now)
{
    picoseconds until = fault->active ? now + fault->config.by_ps : now;
    if (fault->active && is_packet(frame)) {
        fault->counts.packets_seen++;
        fault->counts.hits++;
    }
    if (fault->held.last && until < fault->held.last->due_at)
        until = fault->held.last->due_at;
    hold(fault, frame, until, now);
}

static void arrive_late(struct fault *fault, picoseconds now)
{
    pass(fault, let_go(fault), now);
}

void fault_lose_held(struct fault *fault)
{
    while (fault->held.first)
        port_lose(fault->port, let_go(fault));
    timer_cancel(&fault->next_step);
}

/* ---- the kinds ------------------------------------------------------------------------- */

const struct fault_ops fault_loss = {.begin = begin, .end = end, .packet = lose};
const struct fault_ops fault_corruption = {.begin = begin, .end = end, .packet = corrupt};
const struct fault_ops fault_duplication = {
    .begin = begin_copies, .end = end_copies, .packet = duplicate};
const struct fault_ops fault_reordering = {
    .begin = begin, .end = end, .packet = reorder, .due = arrive_late};
const struct fault_ops fault_delay = {
    .begin = begin, .end = end, .packet = delay, .due = arrive_late};
const struct fault_ops fault_flow_control = {.begin = begin, .end = end, .packet = disturb};
