#include "switch/port_disciplines.h"

#include <assert.h>
#include <string.h>

#include "switch/switch_api.h"

REGISTRY(struct queue_discipline, queue_disciplines);

const char *queue_discipline_name(uint32_t index)
{
    return index < REGISTRY_SIZE(queue_disciplines) ? REGISTRY_AT(queue_disciplines, index)->name
                                                    : NULL;
}

const char *queue_discipline_parameter(uint32_t index, uint32_t place)
{
    return parameter_name(REGISTRY_AT(queue_disciplines, index)->parameters, place);
}

/* ---- set-up ------------------------------------------------------------------ */

static bool add(struct switch_port *out, unsigned place, const struct queue_discipline *kind,
                struct arena *arena, const struct queue_discipline_config *config)
{
    void *state = arena_take(arena, 1, kind->bytes);
    if (!state ||
        !parameters_set(state, kind->parameters, config->parameters, config->parameter_count))
        return false;
    if (kind->prepare)
        kind->prepare(state, config->seed);
    uint8_t bit = (uint8_t)(1u << place);
    out->discipline[place] = (struct port_discipline){kind, state};
    for (unsigned left = config->queues; left; left &= left - 1)
        out->disciplines_of[__builtin_ctz(left)] |= bit;
    if (kind->only_lossy)
        out->only_lossy |= bit;
    return true;
}

bool disciplines_init(struct switch_port *out, struct arena *arena,
                      const struct queue_discipline_config *configs, uint32_t count)
{
    assert(count <= PORT_DISCIPLINES);
    unsigned place = 0;
    for (enum queue_phase phase = QUEUE_INSTEAD_OF_DROPS; phase <= QUEUE_MARKS; phase++)
        for (uint32_t i = 0; i < count; i++) {
            const struct queue_discipline *kind =
                REGISTRY_NAMED(queue_disciplines, configs[i].name);
            if (!kind)
                return false;
            if (kind->phase == phase && !add(out, place++, kind, arena, &configs[i]))
                return false;
        }
    return true;
}

void *discipline_state(const struct switch_port *out, const char *name)
{
    for (unsigned place = 0; place < PORT_DISCIPLINES && out->discipline[place].kind; place++)
        if (strcmp(out->discipline[place].kind->name, name) == 0)
            return out->discipline[place].state;
    return NULL;
}
