/* Corruption: the chosen packets arrive with a check sequence that is wrong. */
#include "fault/line_fault.h"
#include "fault/packet_choice.h"

struct corruption {
    struct line_fault line;
    struct packet_choice choice;
};

static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct corruption *corruption = container_of(fault, struct corruption, line.fault);
    if (!choice_takes_packet(&corruption->choice, fault, frame)) {
        line_fault_pass(fault, frame, now);
        return;
    }
    fault->counts.hits++;
    line_fault_corrupt(fault, frame, now);
}

static const struct parameter_field parameters[] = {CHOICE_FIELDS(corruption), {0}};

static const struct fault_ops corruption = {
    .name = "corruption",
    .bytes = sizeof(struct corruption),
    .parameters = parameters,
    .inject = line_fault_inject,
    .clear = line_fault_clear,
    .packet = packet,
};

REGISTER(fault_kinds, corruption)
