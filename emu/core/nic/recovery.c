/* The registry of loss recoveries, and look-up by name. Each scheme is in recovery_NAME.c. */
#include "nic/recovery.h"

REGISTRY(struct recovery, recoveries);

const char *recovery_name(uint32_t index)
{
    return index < REGISTRY_SIZE(recoveries) ? REGISTRY_AT(recoveries, index)->name : NULL;
}

const struct recovery *recovery_named(const char *name)
{
    return REGISTRY_NAMED(recoveries, name);
}
