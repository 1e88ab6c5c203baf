#include "deadlock.h"

#include <stdlib.h>
#include <string.h>

#include "fabric.h"

static struct fabric *fabric_of(struct timer *timer)
{
    return container_of(timer, struct fabric, deadlocks.look);
}

/* The switch's side of a port's far end; NULL when that is no switch. */
static const struct switch_port *far_end(const struct switch_port *own)
{
    return own->port.line.far ? port_of_switch(own->port.line.far) : NULL;
}

/* Bytes of the priority that wait at `out` and came in by `in`. */
static uint64_t waiting_from(const struct switch_port *out, const struct switch_port *in,
                             uint8_t priority)
{
    uint64_t bytes = 0;
    const struct frame *frame = out->queue[out->queue_of[priority]].frames.first;
    for (; frame; frame = frame->next)
        if (frame->charge.in_port == in->port.number && frame->charge.klass == priority)
            bytes += frame->charge.bytes;
    return bytes;
}

static bool is_candidate(const struct port *port, uint8_t priority)
{
    const struct switch_port *own = port_of_switch(port);
    if (!own || !port_is_paused(port, priority) || !own->queue[own->queue_of[priority]].count)
        return false;
    const struct switch_port *far = far_end(own);
    return far && far->port.xoff & 1u << priority;
}

/* The next port of the set for which `own` waits; NULL when there is none. `bytes`: of
 * what its far end holds, how much waits at ports of the set. */
static const struct switch_port *waits_for(const struct fabric *fabric,
                                           const struct switch_port *own, uint8_t priority,
                                           uint64_t *bytes)
{
    const struct switch_port *far = far_end(own), *next = NULL;
    const struct fabric_switch *sw = far->port.owner;
    *bytes = 0;
    for (uint32_t number = 1; number <= sw->config.ports; number++) {
        const struct switch_port *out = &sw->ports[number - 1];
        uint64_t waiting =
            fabric->deadlocks.in_set[out->port.index] ? waiting_from(out, far, priority) : 0;
        *bytes += waiting;
        if (waiting && !next)
            next = out;
    }
    return next;
}

static bool all_is_stuck(const struct fabric *fabric, const struct switch_port *own,
                         uint8_t priority)
{
    uint64_t bytes;
    const struct switch_port *next = waits_for(fabric, own, priority, &bytes);
    return next && bytes == ingress_held(&far_end(own)->ingress[priority]);
}

/* Strikes out what could still move; returns a port that is left, or NULL. */
static const struct switch_port *settle_set(struct fabric *fabric, uint8_t priority)
{
    const struct switch_port *left = NULL;
    for (bool struck = true; struck;) {
        struck = false;
        left = NULL;
        for (uint32_t index = 0; index < fabric->port_count; index++) {
            if (!fabric->deadlocks.in_set[index])
                continue;
            left = port_of_switch(fabric->ports[index]);
            if (!all_is_stuck(fabric, left, priority)) {
                fabric->deadlocks.in_set[index] = 0;
                struck = true;
            }
        }
    }
    return left;
}

static bool is_known(const struct deadlock_watch *watch, const struct deadlock *deadlock)
{
    for (uint32_t i = 0; i < watch->count; i++)
        if (watch->found[i].priority == deadlock->priority &&
            watch->found[i].length == deadlock->length &&
            memcmp(watch->found[i].ports, deadlock->ports,
                   deadlock->length * sizeof *deadlock->ports) == 0)
            return true;
    return false;
}

/* The circle that `from` is on, beginning with its lowest index. */
static void walk_round(const struct fabric *fabric, const struct switch_port *from,
                       struct deadlock *deadlock)
{
    uint64_t bytes;
    const struct switch_port *lowest = from, *own = from;
    do {
        own = waits_for(fabric, own, deadlock->priority, &bytes);
        lowest = own->port.index < lowest->port.index ? own : lowest;
    } while (own != from);
    own = lowest;
    do {
        deadlock->ports[deadlock->length++] = own->port.index;
        own = waits_for(fabric, own, deadlock->priority, &bytes);
    } while (own != lowest && deadlock->length < DEADLOCK_PORTS);
}

/* Following the ports leads onto the circle after at most as many steps as there are. */
static const struct switch_port *on_circle(const struct fabric *fabric,
                                           const struct switch_port *from, uint8_t priority)
{
    uint64_t bytes;
    for (uint32_t step = 0; step < fabric->port_count; step++)
        from = waits_for(fabric, from, priority, &bytes);
    return from;
}

static void look_at(struct fabric *fabric, uint8_t priority, picoseconds now)
{
    struct deadlock_watch *watch = &fabric->deadlocks;
    bool any = false;
    for (uint32_t index = 0; index < fabric->port_count; index++) {
        const struct port *port = fabric->ports[index];
        watch->in_set[index] = port && is_candidate(port, priority);
        any |= watch->in_set[index];
    }
    const struct switch_port *left = any ? settle_set(fabric, priority) : NULL;
    if (!left || watch->count == DEADLOCKS)
        return;
    struct deadlock deadlock = {.found_at = now, .priority = priority};
    walk_round(fabric, on_circle(fabric, left, priority), &deadlock);
    if (!is_known(watch, &deadlock))
        watch->found[watch->count++] = deadlock;
}

static uint8_t paused_anywhere(const struct fabric *fabric)
{
    uint8_t paused = 0;
    for (uint32_t index = 0; index < fabric->port_count; index++)
        paused |= fabric->ports[index] ? fabric->ports[index]->paused : 0;
    return paused;
}

static void look_due(struct timer *timer, picoseconds now)
{
    struct fabric *fabric = fabric_of(timer);
    for (unsigned left = paused_anywhere(fabric); left; left &= left - 1)
        look_at(fabric, (uint8_t)__builtin_ctz(left), now);
    timer_set(&fabric->clock, timer, now + fabric->deadlocks.interval);
}

bool deadlock_watch_init(struct fabric *fabric, picoseconds interval)
{
    struct deadlock_watch *watch = &fabric->deadlocks;
    watch->interval = interval;
    timer_init(&watch->look, look_due);
    watch->in_set = calloc(fabric->port_count, sizeof *watch->in_set);
    return watch->in_set;
}

void deadlock_watch_free(struct fabric *fabric)
{
    free(fabric->deadlocks.in_set);
}

void deadlock_watch_start(struct fabric *fabric, picoseconds now)
{
    if (fabric->deadlocks.in_set)
        timer_set(&fabric->clock, &fabric->deadlocks.look, now + fabric->deadlocks.interval);
}
