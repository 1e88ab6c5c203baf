#include "fault/held_frames.h"

static struct frame *let_go(struct holding_fault *holding)
{
    struct fault *fault = &holding->line.fault;
    struct frame *frame = list_pop(&holding->held);
    if (holding->held.first)
        timer_set(fault->port->clock, &holding->next_due, holding->held.first->due_at);
    else if (!fault->active)
        line_fault_clear(fault, fault->port->clock->now);
    return frame;
}

static void due(struct timer *timer, picoseconds now)
{
    struct holding_fault *holding = container_of(timer, struct holding_fault, next_due);
    line_fault_pass(&holding->line.fault, let_go(holding), now);
}

void holding_fault_inject(struct fault *fault, picoseconds now)
{
    timer_init(&holding_fault_of(fault)->next_due, due);
    line_fault_inject(fault, now);
}

void holding_fault_clear(struct fault *fault, picoseconds now)
{
    if (!holding_fault_of(fault)->held.first)
        line_fault_clear(fault, now);
}

void holding_fault_hold(struct fault *fault, struct frame *frame, picoseconds until,
                        picoseconds now)
{
    struct holding_fault *holding = holding_fault_of(fault);
    frame->tail_at += until - now;
    frame->due_at = until;
    list_push(&holding->held, frame);
    if (!timer_is_set(&holding->next_due))
        timer_set(fault->port->clock, &holding->next_due, until);
}

void holding_fault_lose(struct fault *fault)
{
    struct holding_fault *holding = holding_fault_of(fault);
    if (!holding->held.first)
        return;
    while (holding->held.first)
        port_lose(fault->port, let_go(holding));
    timer_cancel(&holding->next_due);
}
