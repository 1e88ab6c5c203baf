/* The registry of kinds, and a fault's life: it is added, injected, and cleared. */
#include "fault/fault.h"

REGISTRY(struct fault_ops, fault_kinds);

const char *fault_kind(uint32_t index)
{
    return index < REGISTRY_SIZE(fault_kinds) ? REGISTRY_AT(fault_kinds, index)->name : NULL;
}

const char *fault_parameter(uint32_t index, uint32_t place)
{
    return parameter_name(REGISTRY_AT(fault_kinds, index)->parameters, place);
}

/* ---- life ------------------------------------------------------------------------- */

static void clear(struct fault *fault, picoseconds now)
{
    if (fault->ops->count)
        fault->ops->count(fault);
    fault->active = false;
    fault->ops->clear(fault, now);
}

/* Each fault restores the setting that it found, so it must not find another fault's. */
static void clear_others(struct fault *fault, picoseconds now)
{
    for (struct fault *other = fault->all->first; other; other = other->next)
        if (other->active && other->ops == fault->ops && other->port == fault->port) {
            timer_cancel(&other->window);
            clear(other, now);
        }
}

static void inject(struct fault *fault, picoseconds now)
{
    if (fault->ops->exclusive)
        clear_others(fault, now);
    fault->active = true;
    if (fault->duration)
        timer_set_common(fault->port->clock, &fault->window, now + fault->duration);
    fault->ops->inject(fault, now);
}

static void window(struct timer *timer, picoseconds now)
{
    struct fault *fault = container_of(timer, struct fault, window);
    if (fault->active)
        clear(fault, now);
    else
        inject(fault, now);
}

struct fault *fault_add(struct faults *faults, struct arena *arena, struct port *port,
                        struct port *far, const struct fault_config *config)
{
    const struct fault_ops *ops = REGISTRY_NAMED(fault_kinds, config->kind);
    struct fault *fault = ops ? arena_take(arena, 1, ops->bytes) : NULL;
    if (!fault)
        return NULL;
    *fault = (struct fault){.ops = ops, .all = faults, .port = port, .far = far};
    if (!parameters_set(fault, ops->parameters, config->parameters, config->parameter_count))
        return NULL;
    fault->duration = config->for_ps;
    fault->rng.state = config->seed;
    fault->next = faults->first;
    faults->first = fault;
    timer_init(&fault->window, window);
    picoseconds now = port->clock->now;
    timer_set_common(port->clock, &fault->window, config->at_ps > now ? config->at_ps : now);
    return fault;
}

/* A fault that is to begin now does so first: another process with the other end of the cable may
 * have begun it already, and both must count the same losses of the link. */
void fault_clear(struct fault *fault)
{
    picoseconds now = fault->port->clock->now;
    if (!fault->active && fault->window.at <= now)
        inject(fault, now);
    timer_cancel(&fault->window);
    if (fault->active)
        clear(fault, now);
}

struct fault_counts fault_counted(struct fault *fault)
{
    if (fault->active && fault->ops->count)
        fault->ops->count(fault);
    return fault->counts;
}
