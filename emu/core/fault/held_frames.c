#include "fault/held_frames.h"

static struct frame *take_next_held(struct holding_fault *holding)
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
    line_fault_pass(&holding->line.fault, take_next_held(holding), now);
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

static uint32_t blocks_held(const struct frame_list *held, uint8_t tc)
{
    uint32_t blocks = 0;
    for (const struct frame *frame = held->first; frame; frame = frame->next)
        if (frame->tc == tc)
            blocks += credit_blocks(frame->length);
    return blocks;
}

/* A credit update says how much its sender has sent. Packets that are held are subtracted, because
 * the update overtakes them: its receiver would advertise more credit than it has room. */
static void leave_out_held(const struct holding_fault *holding, const struct frame *frame)
{
    struct flow_control update;
    uint8_t *message = port_credit_update(holding->line.fault.port, frame);
    if (!message || !flow_control_parse(&update, message, FLOW_CONTROL_BYTES))
        return;
    uint32_t passed = update.fctbs - blocks_held(&holding->held, update.vl);
    update.fctbs = (uint16_t)(passed % CREDIT_MODULUS);
    flow_control_build(&update, message);
}

void holding_fault_overtake(struct fault *fault, struct frame *frame, picoseconds now)
{
    const struct holding_fault *holding = holding_fault_of(fault);
    if (holding->held.first)
        leave_out_held(holding, frame);
    line_fault_pass(fault, frame, now);
}

void holding_fault_lose(struct fault *fault)
{
    struct holding_fault *holding = holding_fault_of(fault);
    if (!holding->held.first)
        return;
    while (holding->held.first)
        port_lose(fault->port, take_next_held(holding));
    timer_cancel(&holding->next_due);
}
