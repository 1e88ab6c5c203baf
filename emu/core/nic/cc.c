#include "nic/cc.h"

#include <string.h>

/* The table. */
#define ALGORITHMS(entry)                                                                          \
    entry(cc_none), entry(cc_dcqcn), entry(cc_dcqcn_nvidia), entry(cc_cct), entry(cc_dctcp),       \
        entry(cc_swift)

#define DECLARED(algorithm) algorithm
#define ADDRESS(algorithm) &algorithm

extern const struct cc_algorithm ALGORITHMS(DECLARED);
static const struct cc_algorithm *const algorithms[] = {ALGORITHMS(ADDRESS)};

static const struct cc_algorithm *named(const char *name)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (name && strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return NULL;
}

/* The value given under that name; NULL when none is. */
static const double *given(const struct cc_config *config, const char *name)
{
    for (uint32_t i = 0; i < config->parameter_count; i++)
        if (strcmp(config->parameters[i].name, name) == 0)
            return &config->parameters[i].value;
    return NULL;
}

/* All the algorithm has, and no others. */
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
    const struct cc_algorithm *algorithm = named(config->algorithm);
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
