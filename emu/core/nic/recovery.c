/* The registry of loss recoveries, and look-up by name. Each scheme is in recovery_NAME.c. */
#include "nic/recovery.h"

#include <string.h>

REGISTRY(struct recovery, recoveries);

const char *recovery_name(uint32_t index)
{
    return index < REGISTRY_SIZE(recoveries) ? REGISTRY_AT(recoveries, index)->name : NULL;
}

const struct recovery *recovery_named(const char *name)
{
    for (size_t i = 0; name && i < REGISTRY_SIZE(recoveries); i++)
        if (strcmp(REGISTRY_AT(recoveries, i)->name, name) == 0)
            return REGISTRY_AT(recoveries, i);
    return NULL;
}
