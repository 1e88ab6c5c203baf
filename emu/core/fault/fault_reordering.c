/* Reordering: the chosen packets arrive later, behind those that follow them. */
#include "fault/held_frames.h"
#include "fault/packet_choice.h"

struct reordering {
    struct holding_fault holding;
    struct packet_choice choice;
    picoseconds by_ps; /* how much later */
};

static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct reordering *own = container_of(fault, struct reordering, holding.line.fault);
    if (!choice_takes_packet(&own->choice, fault, frame)) {
        holding_fault_overtake(fault, frame, now);
        return;
    }
    fault->counts.hits++;
    holding_fault_hold(fault, frame, now + own->by_ps, now);
}

static const struct parameter_field parameters[] = {
    CHOICE_FIELDS(reordering), PARAMETER_FIELD(reordering, by_ps), {0}};

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
