/* The registry of congestion controls, and the set-up of one from its configuration. Each
 * algorithm is in cc_NAME.c. */
#include "nic/cc.h"

#include <string.h>

REGISTRY(struct cc_algorithm, cc_algorithms);

const char *cc_name(uint32_t index)
{
    return index < REGISTRY_SIZE(cc_algorithms) ? REGISTRY_AT(cc_algorithms, index)->name : NULL;
}

const char *cc_parameter(uint32_t index, uint32_t place)
{
    const struct cc_field *field = REGISTRY_AT(cc_algorithms, index)->parameters;
    while (place-- && field && field->name)
        field++;
    return field ? field->name : NULL;
}

/* The configured value of that parameter; NULL when there is none. */
static const double *given(const struct cc_config *config, const char *name)
{
    for (uint32_t i = 0; i < config->parameter_count; i++)
        if (strcmp(config->parameters[i].name, name) == 0)
            return &config->parameters[i].value;
    return NULL;
}

/* Sets the parameters. False unless the configuration has exactly those of the algorithm. */
static bool set_parameters(struct cc *cc, const struct cc_config *config)
{
    const struct cc_field *field = cc->algorithm->parameters;
    uint32_t count = 0;
    for (; field && field->name; field++, count++) {
        const double *value = given(config, field->name);
        if (!value)
            return false;
        memcpy((char *)cc->priv + field->offset, value, sizeof *value);
    }
    return count == config->parameter_count;
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
    return (cc->priv || !algorithm->priv_bytes) && set_parameters(cc, config) &&
           (!algorithm->init || algorithm->init(cc));
}
