/* Flow control: the chosen credit updates of InfiniBand vanish, or arrive damaged; nothing else is
 * hit. */
#include "fault/line_fault.h"
#include "fault/packet_choice.h"

struct flow_control_fault {
    struct line_fault line;
    struct packet_choice choice;
    bool damages; /* instead of losing */
};

static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct flow_control_fault *own = container_of(fault, struct flow_control_fault, line.fault);
    if (!choice_takes_update(&own->choice, fault, frame)) {
        line_fault_pass(fault, frame, now);
        return;
    }
    fault->counts.hits++;
    if (own->damages)
        line_fault_corrupt(fault, frame, now);
    else
        line_fault_drop(fault, frame);
}

static const struct parameter_field parameters[] = {
    CHOICE_FIELDS(flow_control_fault), PARAMETER_FIELD(flow_control_fault, damages), {0}};

static const struct fault_ops flow_control = {
    .name = "flow-control",
    .bytes = sizeof(struct flow_control_fault),
    .parameters = parameters,
    .inject = line_fault_inject,
    .clear = line_fault_clear,
    .packet = packet,
};

REGISTER(fault_kinds, flow_control)
