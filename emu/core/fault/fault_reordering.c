/* Reordering: the chosen packets arrive later, behind those that follow them. */
#include "fault/held_frames.h"
#include "fault/packet_choice.h"

struct reordering {
    struct holding_fault holding;
    struct packet_choice choice;
    picoseconds by_ps; /* how much later */
};

static uint32_t blocks_held(const struct frame_list *held, uint8_t vl)
{
    uint32_t blocks = 0;
    for (const struct frame *frame = held->first; frame; frame = frame->next)
        if (frame->tc == vl)
            blocks += credit_blocks(frame->length);
    return blocks;
}

/* A credit update says how much its sender has sent. Packets that are held are taken off that
 * number: the update overtakes them, and its receiver would give more credit than it has room. */
static void leave_out_held(const struct frame_list *held, struct frame *frame)
{
    struct flow_control packet;
    if (!held->first || !flow_control_parse(&packet, frame->bytes, frame->stored))
        return;
    uint32_t passed = packet.fctbs - blocks_held(held, packet.vl);
    packet.fctbs = (uint16_t)(passed % CREDIT_MODULUS);
    flow_control_build(&packet, frame->bytes);
}

static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct reordering *own = container_of(fault, struct reordering, holding.line.fault);
    if (frame->kind == FRAME_IB_LINK)
        leave_out_held(&own->holding.held, frame);
    if (!choice_takes_packet(&own->choice, fault, frame)) {
        line_fault_pass(fault, frame, now);
        return;
    }
    fault->counts.hits++;
    holding_fault_hold(fault, frame, now + own->by_ps, now);
}

static const struct fault_field parameters[] = {
    CHOICE_FIELDS(reordering), FAULT_FIELD(reordering, by_ps), {0}};

static const struct fault_ops reordering = {
    .name = "reordering",
    .bytes = sizeof(struct reordering),
    .parameters = parameters,
    .inject = holding_fault_inject,
    .clear = holding_fault_clear,
    .packet = packet,
    .link_lost = holding_fault_lose,
};

REGISTER(fault_kinds, reordering)
