#include "switch/hoq.h"

#include "switch/egress_queue.h"
#include "switch/ingress.h"

static void arm(struct switch_port *out)
{
    struct hoq *hoq = out->hoq;
    picoseconds next = NEVER;
    for (unsigned left = hoq->blocked | out->stalled; left; left &= left - 1)
        if (hoq->due[__builtin_ctz(left)] < next)
            next = hoq->due[__builtin_ctz(left)];
    if (next == NEVER)
        timer_cancel(&hoq->timer);
    else
        timer_set(out->port.clock, &hoq->timer, next);
}

void hoq_blocked(struct switch_port *out, uint8_t vl, picoseconds now)
{
    struct hoq *hoq = out->hoq;
    if ((hoq->blocked | out->stalled) & 1u << vl)
        return;
    hoq->blocked |= (uint16_t)(1u << vl);
    hoq->due[vl] = now + hoq->config.life_ps;
    if (!timer_is_set(&hoq->timer) || out->stalled)
        arm(out); /* otherwise it is set for a lane that has waited longer */
}

void hoq_moved(struct hoq *hoq, uint8_t vl)
{
    hoq->blocked &= (uint16_t) ~(1u << vl);
    hoq->discarded[vl] = 0;
}

static void discard_head(struct switch_port *out, uint8_t vl, picoseconds now)
{
    struct frame *frame = egress_queue_pop(out, vl);
    out->counters->hoq_discard++;
    if (!out->queue[vl].count)
        port_emptied(&out->port, vl, now);
    ingress_discard(out->port.owner, frame, now);
}

static void stall(struct switch_port *out, uint8_t vl, picoseconds now)
{
    struct hoq *hoq = out->hoq;
    out->stalled |= (uint16_t)(1u << vl);
    hoq->due[vl] = now + HOQ_STALL_LIVES * hoq->config.life_ps;
    hoq->discarded[vl] = 0;
    while (out->queue[vl].count)
        discard_head(out, vl, now);
}

/* Discards the first packet of a lane. The port_kick after it looks at the next packet. */
static void lifetime_over(struct switch_port *out, uint8_t vl, picoseconds now)
{
    struct hoq *hoq = out->hoq;
    hoq->blocked &= (uint16_t) ~(1u << vl);
    if (!out->queue[vl].count)
        return; /* its link went down meanwhile */
    discard_head(out, vl, now);
    if (hoq->config.stall_count && ++hoq->discarded[vl] == hoq->config.stall_count)
        stall(out, vl, now);
}

static void timer_due(struct timer *timer, picoseconds now)
{
    struct hoq *hoq = container_of(timer, struct hoq, timer);
    struct switch_port *out = hoq->port;
    for (uint8_t vl = 0; vl < CLASSES; vl++) {
        if (!((hoq->blocked | out->stalled) & 1u << vl) || hoq->due[vl] > now)
            continue;
        if (out->stalled & 1u << vl)
            out->stalled &= (uint16_t) ~(1u << vl);
        else
            lifetime_over(out, vl, now);
    }
    arm(out);
    port_kick(&out->port, now);
}

bool hoq_init(struct switch_port *out, struct arena *arena, const struct hoq_config *config)
{
    if (!config->life_ps)
        return true;
    struct hoq *hoq = arena_take(arena, 1, sizeof *hoq);
    if (!hoq)
        return false;
    hoq->port = out;
    hoq->config = *config;
    timer_init(&hoq->timer, timer_due);
    out->hoq = hoq;
    out->hoq_is_limited = true;
    return true;
}
