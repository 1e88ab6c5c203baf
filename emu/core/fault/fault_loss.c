/* Loss: the chosen packets vanish on the cable. */
#include "fault/line_fault.h"
#include "fault/packet_choice.h"

struct loss {
    struct line_fault line;
    struct packet_choice choice;
};

static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct loss *loss = container_of(fault, struct loss, line.fault);
    if (!choice_takes_packet(&loss->choice, fault, frame)) {
        line_fault_pass(fault, frame, now);
        return;
    }
    fault->counts.hits++;
    line_fault_drop(fault, frame);
}

static const struct parameter_field parameters[] = {CHOICE_FIELDS(loss), {0}};

static const struct fault_ops loss = {
    .name = "loss",
    .bytes = sizeof(struct loss),
    .parameters = parameters,
    .inject = line_fault_inject,
    .clear = line_fault_clear,
    .packet = packet,
};

REGISTER(fault_kinds, loss)
