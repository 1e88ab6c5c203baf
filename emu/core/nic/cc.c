/* The registry of congestion controls, and the set-up of one from its configuration. Each
 * algorithm is in cc_NAME.c. */
#include "nic/cc.h"

REGISTRY(struct cc_algorithm, cc_algorithms);

const char *cc_name(uint32_t index)
{
    return index < REGISTRY_SIZE(cc_algorithms) ? REGISTRY_AT(cc_algorithms, index)->name : NULL;
}

const char *cc_parameter(uint32_t index, uint32_t place)
{
    return parameter_name(REGISTRY_AT(cc_algorithms, index)->parameters, place);
}

bool cc_init(struct cc *cc, struct arena *arena, struct clock *clock,
             const struct cc_config *config)
{
    const struct cc_algorithm *algorithm = REGISTRY_NAMED(cc_algorithms, config->algorithm);
    if (!algorithm)
        return false;
    *cc = (struct cc){.algorithm = algorithm,
                      .clock = clock,
                      .table = config->table,
                      .table_entries = config->table_entries};
    if (algorithm->priv_bytes)
        cc->priv = arena_take(arena, 1, algorithm->priv_bytes);
    return (cc->priv || !algorithm->priv_bytes) &&
           parameters_set(cc->priv, algorithm->parameters, config->parameters,
                          config->parameter_count) &&
           (!algorithm->init || algorithm->init(cc));
}

void cc_free(struct cc *cc, struct arena *arena)
{
    if (cc->priv)
        arena_give_back(arena, cc->priv, 1, cc->algorithm->priv_bytes);
}
