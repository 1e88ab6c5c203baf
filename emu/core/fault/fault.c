/* The registry of kinds, and a fault's life: it is added, injected, and cleared. */
#include "fault/fault.h"

#include <string.h>

REGISTRY(struct fault_ops, fault_kinds);

static const struct fault_ops *kind_named(const char *name)
{
    for (size_t i = 0; i < REGISTRY_SIZE(fault_kinds); i++)
        if (strcmp(REGISTRY_AT(fault_kinds, i)->name, name) == 0)
            return REGISTRY_AT(fault_kinds, i);
    return NULL;
}

const char *fault_kind(uint32_t index)
{
    return index < REGISTRY_SIZE(fault_kinds) ? REGISTRY_AT(fault_kinds, index)->name : NULL;
}

const char *fault_parameter(uint32_t index, uint32_t place)
{
    const struct fault_field *field = REGISTRY_AT(fault_kinds, index)->parameters;
    while (place-- && field && field->name)
        field++;
    return field ? field->name : NULL;
}

/* ---- parameters ------------------------------------------------------------------- */

static const struct fault_field *field_named(const struct fault_ops *ops, const char *name)
{
    for (const struct fault_field *field = ops->parameters; field && field->name; field++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

static void store(void *to, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case sizeof(uint8_t):
        *(uint8_t *)to = (uint8_t)value;
        break;
    case sizeof(uint32_t):
        *(uint32_t *)to = (uint32_t)value;
        break;
    case sizeof(uint64_t):
        *(uint64_t *)to = value;
        break;
    default:
        __builtin_unreachable();
    }
}

static bool set_parameter(struct fault *fault, const struct fault_value *value)
{
    const struct fault_field *field = field_named(fault->ops, value->name);
    if (!field || value->count > field->elements)
        return false;
    for (uint32_t i = 0; i < value->count; i++)
        store((char *)fault + field->offset + i * field->bytes, field->bytes, value->values[i]);
    return true;
}

static bool set_parameters(struct fault *fault, const struct fault_config *config)
{
    for (uint32_t i = 0; i < config->parameter_count; i++)
        if (!set_parameter(fault, &config->parameters[i]))
            return false;
    return true;
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
        timer_set(fault->port->clock, &fault->window, now + fault->duration);
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
    const struct fault_ops *ops = kind_named(config->kind);
    struct fault *fault = ops ? arena_take(arena, 1, ops->bytes) : NULL;
    if (!fault)
        return NULL;
    *fault = (struct fault){.ops = ops, .all = faults, .port = port, .far = far};
    if (!set_parameters(fault, config))
        return NULL;
    fault->duration = config->for_ps;
    fault->rng.state = config->seed;
    fault->next = faults->first;
    faults->first = fault;
    timer_init(&fault->window, window);
    picoseconds now = port->clock->now;
    timer_set(port->clock, &fault->window, config->at_ps > now ? config->at_ps : now);
    return fault;
}

void fault_clear(struct fault *fault)
{
    timer_cancel(&fault->window);
    if (fault->active)
        clear(fault, fault->port->clock->now);
}

struct fault_counts fault_counted(struct fault *fault)
{
    if (fault->active && fault->ops->count)
        fault->ops->count(fault);
    return fault->counts;
}
