/* Delay: every frame of the line arrives later, in order, as if the cable were longer. Pause frames
 * and credit updates are delayed as well. */
#include "fault/held_frames.h"

struct delay {
    struct holding_fault holding;
    picoseconds by_ps; /* how much later */
};

/* While a cleared fault holds frames, those that arrive wait behind them, so that the order is
 * kept. */
static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct delay *delay = container_of(fault, struct delay, holding.line.fault);
    const struct frame *last = delay->holding.held.last;
    picoseconds until = fault->active ? now + delay->by_ps : now;
    if (fault->active && is_packet(frame)) {
        fault->counts.packets_seen++;
        fault->counts.hits++;
    }
    if (last && until < last->due_at)
        until = last->due_at;
    holding_fault_hold(fault, frame, until, now);
}

static const struct parameter_field parameters[] = {PARAMETER_FIELD(delay, by_ps), {0}};

static const struct fault_ops delay = {
    .name = "delay",
    .bytes = sizeof(struct delay),
    .parameters = parameters,
    .inject = holding_fault_inject,
    .clear = holding_fault_clear,
    .packet = packet,
    .link_lost = holding_fault_lose,
};

REGISTER(fault_kinds, delay)
