/* A fault's life: it is added, begins, ends, or is cleared before its time. */
#include "fault/fault.h"

#include <stdlib.h>

static const struct fault_ops *const kinds[] = {
    [FAULT_LINK_DOWN] = &fault_link_down,
    [FAULT_LINK_FLAP] = &fault_link_flap,
    [FAULT_LOSS] = &fault_loss,
    [FAULT_CORRUPTION] = &fault_corruption,
    [FAULT_DUPLICATION] = &fault_duplication,
    [FAULT_REORDERING] = &fault_reordering,
    [FAULT_DELAY] = &fault_delay,
    [FAULT_FLOW_CONTROL] = &fault_flow_control,
    [FAULT_PAUSE_STORM] = &fault_pause_storm,
    [FAULT_SLOW_RECEIVER] = &fault_slow_receiver,
    [FAULT_WRONG_MAP] = &fault_wrong_map,
    [FAULT_SMALL_HEADROOM] = &fault_small_headroom,
    [FAULT_WRONG_ECN] = &fault_wrong_ecn,
    [FAULT_IGNORED_CNPS] = &fault_ignored_cnps,
};

static void end(struct fault *fault, picoseconds now)
{
    if (fault->ops->count)
        fault->ops->count(fault);
    fault->active = false;
    fault->ops->end(fault, now);
}

/* Each puts back what it found, so what it finds must be nobody else's. */
static void end_others(struct fault *fault, picoseconds now)
{
    for (struct fault *other = fault->all->first; other; other = other->next)
        if (other->active && other->ops == fault->ops && other->port == fault->port) {
            timer_cancel(&other->window);
            end(other, now);
        }
}

static void begin(struct fault *fault, picoseconds now)
{
    if (fault->ops->sets)
        end_others(fault, now);
    fault->active = true;
    if (fault->config.for_ps)
        timer_set(fault->port->clock, &fault->window, now + fault->config.for_ps);
    fault->ops->begin(fault, now);
}

static void window(struct timer *timer, picoseconds now)
{
    struct fault *fault = container_of(timer, struct fault, window);
    if (fault->active)
        end(fault, now);
    else
        begin(fault, now);
}

static void next_step(struct timer *timer, picoseconds now)
{
    struct fault *fault = container_of(timer, struct fault, next_step);
    fault->ops->due(fault, now);
}

struct fault *fault_add(struct faults *faults, struct port *port, struct port *far,
                        const struct fault_config *config)
{
    /* calloc does not align it as the port within it must be. */
    struct fault *fault = aligned_alloc(_Alignof(struct fault), sizeof *fault);
    if (!fault)
        return NULL;
    *fault = (struct fault){.config = *config, .ops = kinds[config->kind]};
    fault->all = faults;
    fault->port = port;
    fault->far = far;
    fault->rng.state = config->seed;
    timer_init(&fault->window, window);
    timer_init(&fault->next_step, next_step);
    fault->next = faults->first;
    faults->first = fault;
    picoseconds now = port->clock->now;
    timer_set(port->clock, &fault->window, config->at_ps > now ? config->at_ps : now);
    return fault;
}

void fault_clear(struct fault *fault)
{
    timer_cancel(&fault->window);
    if (fault->active)
        end(fault, fault->port->clock->now);
}

struct fault_counts fault_counted(struct fault *fault)
{
    if (fault->active && fault->ops->count)
        fault->ops->count(fault);
    return fault->counts;
}

void faults_free(struct faults *faults)
{
    while (faults->first) {
        struct fault *fault = faults->first;
        faults->first = fault->next;
        free(fault);
    }
}
