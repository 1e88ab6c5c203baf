#include "nic/recovery.h"

#include <string.h>

const struct recovery *recovery_named(const char *name)
{
    static const struct recovery *const all[] = {&recovery_go_back_n, &recovery_go_back_0,
                                                 &recovery_selective_repeat};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
